# SPDX-License-Identifier: Apache-2.0
"""`overcap store` and the conformance suite over a real sshd."""
import random
import signal
import subprocess
import unittest

from store_rig import BINARY, MIB, CopiesHold, StoreRig, main, make_tree
from rigs.hosts_rig import SshHosts

DEADLINE_SECONDS = 400


class OverSsh(CopiesHold, StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts(1)
        cls.addClassCleanup(cls.hosts.close)

    def setUp(self):
        super().setUp()
        self.env["OVERCAP_SSH"] = self.hosts.ssh_program
        self.host = self.hosts.names[0]

    def here(self, name):
        return f"ssh://{self.host}{self.root}/far/{name}"

    def test_the_suite_of_all_stores_holds(self):
        suite = BINARY.parent / "unit" / "stores_test"
        if not suite.exists():
            raise unittest.SkipTest(f"NOT TESTED: {suite} is not built")
        env = {**self.env, "OVERCAP_TEST_SSH": self.hosts.ssh_program, "OVERCAP_TEST_SSH_HOST": self.host}
        # On separate hosts /dev/shm is not shared: the suite's folder is then made on the far side only.
        done = subprocess.run([str(suite), "--gtest_filter=Sftp/StoreConformance.*:Sftp/LockConformance.*", "--gtest_brief=1"], env=env,
                              capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        self.assertRegex(done.stdout, r"PASSED  \] [1-9]\d* tests")

    def test_from_host_to_host_without_this_disk(self):
        files = make_tree(self.project / "from", large=100)
        self.ok("store", "cp", "from", self.here("a"))
        self.ok("store", "sync", self.here("a"), self.here("b"))
        self.assertEqual(self.done("store", "check", "from", self.here("b"))["same"], len(files))

    def test_a_large_upload_goes_on_behind_what_is_on_the_disk_there(self):
        content = random.Random(5).randbytes(160 * MIB)
        (self.project / "large").write_bytes(content)
        far, there = self.root / "far/large", self.here("large") + "/"
        process = self.start("store", "cp", "large", there)
        self.until(lambda: [path for path in far.glob("*.done") if path.read_text().count("\n") > 4], "lines of the journal")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        [part] = [path for path in far.iterdir() if not path.name.endswith(".done")]
        self.assertRegex(part.name, "^.overcap-part-[0-9a-f]{16}$")
        self.assertEqual(self.listed(self.here("large")), [])
        begun = part.stat().st_ino
        self.assertEqual(self.done("store", "cp", "large", there)["copied"], 1)
        self.assertEqual([path.name for path in far.iterdir()], ["large"])
        self.assertEqual((far / "large").stat().st_ino, begun)
        self.assertEqual((far / "large").read_bytes(), content)

    def test_hosts_that_cannot_be_reached_are_told(self):
        self.refused("store", "ls", "ssh://no-such-host.invalid/x", status=5, says="no-such-host.invalid")
        self.refused("store", "ls", f"ssh://{self.host}/no/such/folder", status=3)
        self.refused("store", "ls", f"ssh://{self.host}", says="path")
        self.refused("store", "ls", "ssh://-oProxyCommand=touch${IFS}x/y")


if __name__ == "__main__":
    main()
