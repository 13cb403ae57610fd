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

    def test_an_end_is_recorded_at_once_in_the_journals_reserve(self):
        job_id = self.submit("-n", "0", *shell(f'echo up > "$FACTS/up"; {self.gate()}; exit 3'))
        self.fact("up")
        self.fill()
        self.open_gate()
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"]), ("failed", 3))

    def fill_last_page(self):
        """Held jobs whose commands are as long as it takes: the next record of the journal needs another page of the disk."""
        def submit_padded(length):
            self.submit("--hold", "-n", "0", "true", "x" * length)
            return (self.home / "journal").stat().st_size

        before = (self.home / "journal").stat().st_size
        one = submit_padded(1)
        self.assertEqual(submit_padded(1 + (4090 - one - (one - before)) % 4096) % 4096, 4090)

    def test_where_nothing_can_be_written_every_command_says_so_and_the_true_end_wins(self):
        """The engine comes back to a disk that is full already, and so has no reserve: a job that ends now cannot be recorded."""
        job_id = self.submit("-n", "0", *shell(f'echo up > "$FACTS/up"; {self.gate()}; exit 3'))
        self.fact("up")
        self.fill_last_page()
        self.kill(self.daemon_pid())
        os.truncate(self.home / "journal", (self.home / "journal").stat().st_size)  # the reserve is given back
        self.fill()
        self.ok("ls")
        self.open_gate()
        self.until(lambda: b'"end"' in (self.home / "jobs" / job_id / "attempt-1/agent-0.jsonl").read_bytes(), "the agent to end")
        self.until(lambda: "cannot write its journal" in self.overcap("ls").err, "the engine to have tried")
        for words in (["ls"], ["daemon", "status"], ["wait", "--timeout", "1", job_id], ["abort", job_id]):
            done = self.overcap(*words)
            self.assertIn("No space left on device", done.err, words)
            self.assertIn(str(self.home), done.err, words)
        done = self.refused("abort", job_id, status=5)
        self.assertIn("has ended", done.err)
        self.assertEqual(self.job(job_id)["state"], "running")
        self.free()
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"]), ("failed", 3))
        self.assertNotIn("No space", self.ok("ls").err)

    def test_a_wait_says_so_while_it_waits(self):
        job_id = self.submit("-n", "0", *shell(f'echo up > "$FACTS/up"; {self.gate()}'))
        self.fact("up")
        self.fill_last_page()
        waiting = self.start("wait", job_id)
        os.truncate(self.home / "journal", (self.home / "journal").stat().st_size)  # the reserve is lost
        self.fill()
        self.open_gate()
        self.until(lambda: "cannot" in self.overcap("ls").err, "the engine to have tried")
        self.free()
        done = self.finish(waiting)
        self.assertEqual(done.status, 0)
        self.assertEqual(done.err.count("the engine cannot"), 1, done.err)

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
