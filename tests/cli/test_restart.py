# SPDX-License-Identifier: Apache-2.0
"""--max-restarts and --requeue: a new attempt with a fresh copy of the same code."""
import json

from overcap_rig import Rig, alive, main, shell


class Restart(Rig):
    def test_a_job_that_fails_is_started_again_until_it_succeeds(self):
        job = self.run_job("--max-restarts", "5", *shell('echo "attempt $OVERCAP_ATTEMPT"; [ $OVERCAP_ATTEMPT = 3 ]'))
        self.assertEqual((job["state"], job["exit_status"], job["attempt"], job["restarts"]), ("succeeded", 0, 3, 2))
        for attempt in (1, 2, 3):
            self.assertEqual(self.log(job["id"], attempt=attempt), f"attempt {attempt}\n".encode())

    def test_a_job_that_always_fails_ends_after_its_restarts(self):
        job = self.run_job("--max-restarts", "2", *shell('echo x >> "$FACTS/count"; exit 6'))
        self.assertEqual((job["state"], job["exit_status"], job["attempt"], job["restarts"]), ("failed", 6, 3, 2))
        self.assertEqual((self.facts / "count").read_text(), "x\n" * 3)

    def test_without_the_flag_a_failure_is_final(self):
        job = self.run_job(*shell('echo x >> "$FACTS/count"; exit 6'))
        self.assertEqual((job["state"], job["attempt"]), ("failed", 1))
        self.assertEqual((self.facts / "count").read_text(), "x\n")

    def test_every_attempt_begins_with_the_captured_code(self):
        self.write("state.txt", "clean\n")
        job = self.run_job("--max-restarts", "1", *shell("cat state.txt; echo dirty >> state.txt; exit 1"))
        self.assertEqual([self.log(job["id"], attempt=n) for n in (1, 2)], [b"clean\n", b"clean\n"])

    def test_an_aborted_job_is_not_started_again(self):
        job_id = self.submit("--max-restarts", "5", *shell('echo x >> "$FACTS/count"; echo up > "$FACTS/up"; exec sleep 300'))
        self.fact("up")
        self.ok("abort", job_id)
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["attempt"]), ("cancelled", 1))


class Requeue(Rig):
    SCRIPT = ('echo "$$" > "$FACTS/pid-$OVERCAP_ATTEMPT"; [ $OVERCAP_ATTEMPT != 1 ] && exit 0; sleep 300 & '
              'echo $! > "$FACTS/child"; wait')

    def kill_agent(self, job_id):
        pids = [int(self.fact("pid-1")), int(self.fact("child"))]
        claim = json.loads((self.home / "jobs" / job_id / "attempt-1/agent-0.claim").read_text())
        self.assertEqual(claim["by"], "agent")
        self.kill(claim["pid"])
        return pids

    def test_a_job_whose_agent_was_killed_is_requeued(self):
        job_id = self.submit("--requeue", *shell(self.SCRIPT))
        pids = self.kill_agent(job_id)
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 2))
        self.assertFalse(any(alive(pid) for pid in pids), "what the killed agent had started does not survive")

    def test_without_requeue_it_is_lost_and_says_so(self):
        job_id = self.submit("--no-requeue", *shell(self.SCRIPT))
        pids = self.kill_agent(job_id)
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["attempt"]), ("lost", 1))
        self.assertIn("agent", job["reason"])
        self.until(lambda: not any(alive(pid) for pid in pids), "its ranks to be gone", deadline=10)
        self.assertNotEqual(self.overcap("wait", job_id).status, 0)

    def test_a_lost_job_gives_its_gpus_back(self):
        self.declare_gpus(1)
        job_id = self.submit("-n", "1", "--no-requeue", *shell(self.SCRIPT))
        pids = self.kill_agent(job_id)
        after = self.run_job("-n", "1", *shell('echo "$CUDA_VISIBLE_DEVICES"'))
        self.assertEqual((after["state"], self.log(after["id"])), ("succeeded", b"0\n"))
        self.assertFalse(any(alive(pid) for pid in pids), "a GPU is free only when nobody uses it any more")

    def test_an_agent_that_died_while_the_engine_was_dead_is_noticed(self):
        job_id = self.submit("--requeue", *shell(self.SCRIPT))
        self.fact("child")
        self.kill(self.daemon_pid())
        pids = self.kill_agent(job_id)
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 2))
        self.assertFalse(any(alive(pid) for pid in pids))


if __name__ == "__main__":
    main()
