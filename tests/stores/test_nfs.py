# SPDX-License-Identifier: Apache-2.0
"""A folder on NFS as a store: the suite of all stores. Real: the kernel's NFS server and its client (rigs/nfs_rig.py)."""
import os
import pathlib
import unittest

from rigs.nfs_rig import Nfs

DEADLINE_SECONDS = 600
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
SUITE = BINARY.parent / "unit" / "stores_test"


class OnNfs(unittest.TestCase):
    version = "4.2"

    @classmethod
    def setUpClass(cls):
        cls.nfs = Nfs(cls.version)
        cls.addClassCleanup(cls.nfs.close)

    def run_on(self, host, argv, **more):
        done = self.nfs.run(host, argv, **more)
        self.assertEqual(done.status, 0, f"{done.argv}\n{done.out[-3000:]}\n{done.err[-3000:]}")
        return done


class OneHost(OnNfs):
    def test_it_is_nfs(self):
        self.assertIn(f" {self.nfs.folder} nfs4 rw,relatime,vers={self.version}", self.run_on("a", ["cat", "/proc/mounts"]).out)

    def test_the_suite_of_all_stores_holds(self):
        if not SUITE.exists():
            raise unittest.SkipTest(f"NOT TESTED: {SUITE} is not built")
        tests = "File/StoreConformance.*:FileStore*.*:All/PutCrash.*:PartialUpload*.*"
        done = self.run_on("a", [SUITE, f"--gtest_filter={tests}", "--gtest_brief=1"], deadline=200,
                           env={"OVERCAP_TEST_QUICK_FOLDER": self.nfs.folder, "TMPDIR": self.nfs.folder})
        self.assertRegex(done.out, r"PASSED  \] [1-9]\d* tests?")
        self.assertNotIn("SKIPPED", done.out)


class OldVersion(OneHost):
    version = "4.0"


del OnNfs

if __name__ == "__main__":
    unittest.main()
