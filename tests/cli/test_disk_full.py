# SPDX-License-Identifier: Apache-2.0
"""A full disk: submit fails with a clear error, running jobs go on, and all works again after space is freed."""
import os
import subprocess
import unittest

from overcap_rig import Rig, main, shell


class DiskFull(Rig):
    def setUp(self):
        super().setUp()
        self.small = self.root / "small"
        self.small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "overcap-e2e", str(self.small)],
                                 capture_output=True, timeout=20, check=False)
        if mounted.returncode != 0:
            raise unittest.SkipTest(f"NOT TESTED: cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.small)], timeout=20, check=True)
        self.home = self.small / "state"
        self.env["OVERCAP_HOME"] = str(self.home)

    def fill(self):
        with open(self.small / "filler", "ab", buffering=0) as f:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        f.write(b"x" * size)
                except OSError:
                    pass
        usage = os.statvfs(self.small)
        self.assertEqual(usage.f_bavail, 0)

    def free(self):
        (self.small / "filler").unlink()

    def test_submit_fails_with_a_clear_error_and_leaves_nothing(self):
        old = self.run_job("true")
        self.fill()
        self.write("code.py", "x" * 100_000)
        done = self.refused("submit", *shell('touch "$FACTS/ran"'), status=5)
        self.assertRegex(done.err.lower(), "no space left|disk is full|disk full")
        self.assertEqual(self.job(old["id"])["state"], "succeeded")
        self.free()
        self.assertEqual([job["id"] for job in self.jobs("ls", "--all")], [old["id"]])
        self.assertEqual(os.listdir(self.home / "jobs"), [old["id"]])
        self.assertFalse((self.facts / "ran").exists())
        self.assertEqual(self.run_job("true")["state"], "succeeded")

    def test_a_running_job_goes_on_and_its_end_is_recorded(self):
        script = f'echo before; echo up > "$FACTS/up"; {self.gate()}; seq 1 300000; echo done > "$FACTS/done"; exit 3'
        job_id = self.submit(*shell(script))
        self.fact("up")
        self.fill()
        self.open_gate()
        self.assertEqual(self.fact("done"), "done")
        self.ok("daemon", "status")
        self.free()
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"], job["attempt"]), ("failed", 3, 1))
        self.assertTrue(self.log(job_id).startswith(b"before\n"))

    def test_the_journal_stays_readable_after_a_restart_on_the_full_disk(self):
        ids = [self.run_job("echo", str(number))["id"] for number in range(3)]
        self.fill()
        self.refused("submit", "true", status=5)
        self.overcap("abort", ids[0])
        self.kill(self.daemon_pid())
        self.free()
        self.assertEqual({job["id"] for job in self.jobs("ls", "--all")}, set(ids))
        self.assertEqual({self.ended(job_id)["state"] for job_id in ids}, {"succeeded"})
        self.assertEqual(self.run_job("true")["state"], "succeeded")

    def test_jobs_can_be_read_on_the_full_disk_even_after_a_crash(self):
        job_id = self.run_job("echo", "kept")["id"]
        pid = self.daemon_pid()
        self.fill()
        self.kill(pid)
        done = self.overcap("query", job_id)
        if done.status != 0:
            self.assertRegex(done.err.lower(), "no space left|disk is full|disk full")
        self.free()
        self.assertEqual(self.job(job_id)["state"], "succeeded")


if __name__ == "__main__":
    main()
