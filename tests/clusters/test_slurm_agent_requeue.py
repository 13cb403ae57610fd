# SPDX-License-Identifier: Apache-2.0
"""`overcap agent --under slurm`: jobs that go back to the queue of a real Slurm, exactly once, and go on where they were."""
import time
import unittest

from rigs.machines import wait_until
from slurm_agent_rig import GRACE_SECONDS, RESUMING, WARNING, SlurmAgentTest, begin_cluster

DEADLINE_SECONDS = 600
ON_EVERY_SLURM = True


def setUpModule():
    begin_cluster()


class StartingAgain(SlurmAgentTest):
    def assert_resumed(self, job, why="preempted"):
        """Started again exactly once, with what the first attempt saved."""
        self.assertEqual(job.requeues(), [why], job.tell())
        self.assertEqual(job.end(2, seconds=90)["state"], "succeeded", job.tell())
        self.assertEqual(job.log(0, 2), "resumed after: attempt 1\n")
        self.slurm.wait_state(job.number, "COMPLETED")
        # Slurm 24.05 and newer start what was preempted in a grace time once more after it has succeeded; that start runs nothing.
        self.assertIn(job.restarts(), (1, 2) if self.slurm.version() >= (24, 5) else (1,), job.tell())
        self.assertEqual(job.attempts(), 2, job.tell())

    def test_a_preempted_job_goes_on_where_it_was_whatever_slurm_does_with_it(self):
        """One node each, all preempted at once: Slurm requeues it, forgets it, or gives it time first."""
        jobs = {"over": "n1", "gone": "n2", "grace": "n3"}
        jobs = {name: self.job(RESUMING, requeue=True, resources={"gpus": 4}).submit("-p", name, "-w", node)
                for name, node in jobs.items()}
        final = self.job(RESUMING, resources={"gpus": 4}).submit("-p", "gone", "-w", "n4")
        for job in (*jobs.values(), final):
            job.wait_log("ready")
        asked = time.time()
        self.take_nodes("n1", "n2", "n4")
        for name in ("over", "gone"):
            self.assertEqual(jobs[name].end()["state"], "preempted", jobs[name].tell())
            word, when = jobs[name].told()[0]  # Slurm and the agent may both tell it
            self.assertEqual(word, "TERM")
            self.assertLess(when - asked, 10)
        self.assertEqual((final.end()["state"], final.requeues()), ("preempted", []), final.tell())
        self.slurm.must(["scontrol", "requeue", str(jobs["grace"].number)])  # an administrator does what he likes
        self.assertEqual(jobs["grace"].end()["state"], "preempted")
        for job in jobs.values():
            self.assert_resumed(job)
        self.slurm.wait_state(final.number, "PREEMPTED", "FAILED", "CANCELLED")
        self.assertEqual(final.attempts(), 1)

    def test_in_its_grace_time_a_job_of_several_nodes_and_a_batch_script_go_back_by_themselves(self):
        """Slurm tells the steps only, and would take a script that ends now for one that is done."""
        two = self.job(RESUMING, requeue=True, resources={"nodes": 2, "gpus": 8}).submit("-p", "grace", "-w", "n[1-2]")
        steps = "test $OVERCAP_ATTEMPT -gt 1 && exec bash -c \"$0\"; srun -n1 --gpus-per-node=4 /bin/bash -c \"$0\"; exit $?"
        script = self.job(["/bin/bash", "-c", steps, RESUMING], batch=True, requeue=True, resources={"gpus": 4})
        script.submit("-p", "grace", "-w", "n3")
        for job in (two, script):
            job.wait_log("ready")
        self.take_nodes("n1", "n2", "n3")
        for job in (two, script):
            self.assertEqual(job.end()["state"], "preempted", job.tell())
            self.assert_resumed(job)

    def test_a_job_of_one_node_uses_its_grace_time(self):
        job = self.job(RESUMING, requeue=True, resources={"gpus": 4}).submit("-p", "grace", "-w", "n1").wait_log("ready")
        time.sleep(2.5)  # as long as an agent waits before it listens
        asked = time.time()
        self.take_nodes("n1")
        self.assertEqual(job.end(seconds=90)["state"], "preempted", job.tell())
        (word, when), = job.told()
        self.assertEqual(word, "TERM")
        self.assertLess(when - asked, GRACE_SECONDS)
        self.assert_resumed(job)

    def test_a_warning_at_preemption_is_enough(self):
        """With preempt_send_user_signal USR1 comes to the batch script, instead of the first TERM."""
        one = self.job(RESUMING, requeue=True, resources={"gpus": 4}).submit("-p", "grace", "-w", "n1", WARNING)
        two = self.job(RESUMING, requeue=True, resources={"nodes": 2, "gpus": 8})
        two.submit("-p", "grace", "-w", "n[2-3]", WARNING)
        for job in (one, two):
            job.wait_log("ready", job.spec["resources"].get("nodes", 1) - 1)
        self.take_nodes("n1", "n2", "n3")
        for job in (one, two):
            self.assertEqual((job.end()["state"], job.end()["exit_status"]), ("preempted", 138), job.tell())
            self.assertEqual(job.told()[0][0], "USR1")
            self.assert_resumed(job)

    def test_a_step_of_a_batch_script_does_not_wait_for_the_agents_own(self):
        if self.slurm.version() < (21, 8):
            self.skipTest("NOT TESTED: under Slurm 20.11 it does wait, unless it is started by srun --overlap (a known limit)")
        job = self.job("sleep 3; srun -n1 --gpus-per-node=4 /bin/bash -c 'echo step $CUDA_VISIBLE_DEVICES'", batch=True,
                       requeue=True, resources={"gpus": 4}).submit("-p", "over", "--exclusive")
        self.assertEqual(job.end()["state"], "succeeded", job.tell())
        self.assertEqual(job.log(), "step 0,1,2,3\n")

    def test_a_job_whose_time_is_over_starts_again(self):
        # What this Slurm does not tell yet.
        soon = "test -n \"$SLURM_RESTART_COUNT\" || export SLURM_JOB_END_TIME=$(($(date +%s) + 12))"
        ended = self.job(RESUMING, begin=soon, requeue_on_timeout=True, warn_seconds=4).submit()
        saved = self.job(RESUMING, requeue_on_timeout=True).submit().wait_log("ready")
        self.slurm.must(["scancel", "--batch", "--signal=USR1", str(saved.number)])
        for job in (ended, saved):
            end = job.end()
            self.assertEqual((end["state"], end["exit_status"]), ("failed", 124), job.tell())
            self.assertRegex(end["reason"], "time limit.* reached")
            self.assert_resumed(job, "time limit")

    def test_a_job_that_always_ends_soon_is_not_started_for_ever(self):
        job = self.job(RESUMING.replace("-gt 1", "-gt 9"), requeue=True)
        for attempt in (1, 2):
            folder = job.folder / f"attempt-{attempt}"
            folder.mkdir()
            (folder / "agent-0.claim").write_text('{"pid": 1, "slurm_id": 1, "slurm_restart": 0}')
            (folder / "agent-0.jsonl").write_text(
                '{"e":"started","t":1,"pids":[],"master_port":0}\n{"e":"requeue","t":9,"why":"preempted"}\n'
                '{"e":"end","t":9,"state":"preempted","exit_status":143,"signal":15,"first_failed_rank":-1,"reason":""}\n')
        job.submit().wait_log("ready", attempt=3)
        self.slurm.must(["scancel", "--batch", "--signal=TERM", str(job.number)])
        self.assertEqual((job.end(3)["state"], job.requeues(3)), ("preempted", []), job.tell())
        self.assertIn("three times", str(job.lines(3)))
        self.slurm.wait_state(job.number, "FAILED")

    def test_what_slurm_says_when_it_refuses_is_kept(self):
        job = self.job(RESUMING, requeue=True).submit().wait_log("ready")
        self.slurm.must(["scontrol", "update", f"JobId={job.number}", "Requeue=0"])
        self.slurm.must(["scancel", "--batch", "--signal=TERM", str(job.number)])
        self.assertEqual(job.end()["state"], "preempted", job.tell())
        refused = wait_until(lambda: [line for line in job.lines() if line["e"] == "not_requeued"], "the refusal")
        self.assertIn("disabled", refused[0]["text"])

    def test_a_job_whose_node_died_starts_again_elsewhere(self):
        job = self.job("test $OVERCAP_ATTEMPT -gt 1 && exit 0; echo ready; sleep 300", requeue=True, resources={"nodes": 2})
        job.submit("-x", "n4")
        nodes = wait_until(lambda: self.slurm.must(["squeue", "-h", "-j", str(job.number), "-o", "%N"]).strip(), "nodes")
        job.wait_log("ready", 1)
        victim = self.slurm.must(["scontrol", "show", "hostnames", nodes]).split()[1]
        try:
            self.slurm.fail_node(victim)
            self.slurm.must(["scontrol", "update", f"JobId={job.number}", "ExcNodeList="])
            self.assertEqual(job.end(2, seconds=120)["state"], "succeeded", job.tell())
            self.assertEqual(job.attempts(), 2)
        finally:
            self.slurm.start_node(victim)

    def test_a_task_of_an_array_starts_again_by_itself(self):
        job = self.job("trap 'exit 143' TERM; test $OVERCAP_TASK_TRY = 2 && exit 0; test $OVERCAP_TASK_ID = 0 && exit 0;"
                       "echo ready; while :; do sleep 0.05; done", array="0-1", requeue=True).submit()
        wait_until(lambda: "ready" in job.log(name="task-1.rank-0.log"), "task 1 to be ready")
        self.assertEqual(job.end(slot=0)["state"], "succeeded")
        self.slurm.must(["scancel", "--batch", "--signal=TERM", f"{job.number}_1"])
        self.assertEqual((job.end(slot=1)["state"], job.requeues(slot=1)), ("preempted", ["preempted"]), job.tell())
        self.assertEqual(job.end(slot=3, seconds=90)["state"], "succeeded", job.tell())
        self.assertEqual(len(list(job.folder.glob("attempt-1/agent-*.jsonl"))), 3)


if __name__ == "__main__":
    unittest.main()
