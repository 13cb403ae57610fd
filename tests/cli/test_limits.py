# SPDX-License-Identifier: Apache-2.0
"""Time limits, memory limits and CPU sets are enforced."""
import os
import unittest

from overcap_rig import Rig, alive, main, python, shell

CPUS = len(os.sched_getaffinity(0))
AFFINITY = "import os\nprint(*sorted(os.sched_getaffinity(0)))"


class Limits(Rig):
    def test_a_job_past_its_time_limit_is_stopped_and_says_why(self):
        job_id = self.submit("--time", "1s", *shell('echo $$ > "$FACTS/pid"; exec sleep 300'))
        job = self.ended(job_id)
        self.assertEqual(job["state"], "failed")
        self.assertIn("time limit", job["reason"])
        self.assertNotEqual(job["exit_status"], 0)
        self.assertGreaterEqual(job["elapsed_s"], 1)
        self.assertLess(job["elapsed_s"], 15)
        self.assertFalse(alive(int(self.fact("pid"))))
        self.assertIn("time limit", self.ok("query", job_id).out)

    def test_the_time_limit_holds_without_the_engine(self):
        job_id = self.submit("--time", "1s", *shell('echo $$ > "$FACTS/pid"; exec sleep 300'))
        pid = int(self.fact("pid"))
        self.kill(self.daemon_pid())
        self.until(lambda: not alive(pid), "the rank to be stopped", deadline=20)
        job = self.ended(job_id)
        self.assertEqual(job["state"], "failed")
        self.assertIn("time limit", job["reason"])

    def test_a_job_within_its_time_limit_succeeds(self):
        self.assertEqual(self.run_job("--time", "30s", "true")["state"], "succeeded")

    def test_a_job_past_its_memory_limit_is_stopped_and_says_why(self):
        code = ("import time\nkept = []\nfor _ in range(60):\n    kept.append(bytearray(b'x' * (10 << 20)))\n"
                "    time.sleep(0.02)\ntime.sleep(120)")
        job = self.ended(self.submit("--mem", "128M", *python(code)), deadline=60)
        self.assertEqual(job["state"], "failed")
        self.assertIn("memory", job["reason"])

    def test_children_count_for_the_memory_limit(self):
        code = ("import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        kept = bytearray(b'x' * (60 << 20))\n"
                "        time.sleep(120)\ntime.sleep(120)")
        job = self.ended(self.submit("--mem", "150M", *python(code)), deadline=60)
        self.assertEqual(job["state"], "failed")
        self.assertIn("memory", job["reason"])

    def test_a_job_within_its_memory_limit_succeeds(self):
        job = self.run_job("--mem", "512M", *python("x = bytearray(b'x' * (64 << 20))\nprint(len(x))"))
        self.assertEqual(job["state"], "succeeded", job)

    @unittest.skipIf(CPUS < 2, "NOT TESTED: needs two CPUs")
    def test_a_job_runs_on_as_many_cpus_as_it_asked_for(self):
        job = self.run_job("--cpus", "1", *python(AFFINITY))
        self.assertEqual(len(self.log(job["id"]).split()), 1)
        whole = self.run_job("--cpus", str(CPUS), *python(AFFINITY))
        self.assertEqual(len(self.log(whole["id"]).split()), CPUS)

    @unittest.skipIf(CPUS < 2, "NOT TESTED: needs two CPUs")
    def test_two_jobs_have_different_cpus(self):
        code = (AFFINITY + "\nimport sys, time\nopen(sys.argv[1] + '/up-' + os.environ['OVERCAP_JOB_ID'], 'w')\n"
                "while not os.path.exists(sys.argv[1] + '/gate'): time.sleep(0.02)")
        ids = [self.submit("--cpus", "1", *python(code, str(self.facts))) for _ in range(2)]
        self.until(lambda: all((self.facts / f"up-{job_id}").exists() for job_id in ids), "both to run")
        self.open_gate()
        seen = []
        for job_id in ids:
            self.assertEqual(self.ended(job_id)["state"], "succeeded")
            seen += self.log(job_id).split()
        self.assertEqual(len(set(seen)), 2)

    def test_jobs_that_ask_for_all_cpus_run_one_after_the_other(self):
        first = self.submit("--cpus", str(CPUS), *shell(self.gate()))
        self.until_state(first, "running")
        second = self.submit("--cpus", "1", "true")
        self.assertEqual(self.job(second)["state"], "queued")
        self.open_gate()
        self.assertEqual(self.ended(second)["state"], "succeeded")


if __name__ == "__main__":
    main()
