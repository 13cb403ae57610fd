# SPDX-License-Identifier: Apache-2.0
"""The Slurm driver against a real Slurm: the conformance suite of all clusters, and what must hold when things break.

The suite is build/*/unit/clusters_test, beside $OVERCAP_BINARY.
"""
import os
import pathlib
import unittest

from rigs.slurm_rig import SlurmCluster

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
SUITE = BINARY.parent / "unit" / "clusters_test"
DEADLINE_SECONDS = 600


class Conformance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not SUITE.exists():
            raise unittest.SkipTest(f"NOT TESTED: {SUITE} is not built")
        cls.slurm = SlurmCluster(nodes=1, gpus=2)
        cls.addClassCleanup(cls.slurm.close)

    def test_the_suite_of_all_clusters_holds(self):
        env = {**self.slurm.environment, "OVERCAP_SLURM_STATE": str(self.slurm.folder / "work")}
        done = self.slurm.run([str(SUITE), "--gtest_filter=Slurm/*", "--gtest_brief=1"], env=env, timeout=DEADLINE_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        self.assertIn("PASSED", done.stdout)
        self.assertNotIn("SKIPPED: no Slurm", done.stdout)


if __name__ == "__main__":
    unittest.main()
