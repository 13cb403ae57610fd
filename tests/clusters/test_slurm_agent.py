# SPDX-License-Identifier: Apache-2.0
"""`overcap agent --under slurm`: how it runs and stops jobs on a real Slurm."""
import json
import os
import signal
import subprocess
import time
import unittest

from rigs.machines import wait_until
from slurm_agent_rig import BINARY, RESUMING, SlurmAgentTest, begin_cluster


def setUpModule():
    begin_cluster()


class Running(SlurmAgentTest):
    def test_ranks_of_one_node_see_their_place_and_the_gpus_that_slurm_gave(self):
        job = self.job("echo $RANK/$WORLD_SIZE $LOCAL_RANK $SLURM_PROCID $CUDA_VISIBLE_DEVICES $OVERCAP_ATTEMPT "
                       "$SLURM_JOB_ID", resources={"ranks_per_node": 2, "gpus": 2}).submit()
        self.assertEqual(job.end()["state"], "succeeded", job.tell())
        for rank in range(2):
            self.assertEqual(job.log(rank), f"{rank}/2 {rank} {rank} 0,1 1 {job.number}\n")
        handle = json.loads((job.folder / "handle.json").read_text())
        self.assertEqual((handle["slurm_id"], handle["driver"]), (job.number, "slurm"))

    def test_the_exit_status_is_the_commands_so_that_dependencies_hold(self):
        job = self.job("exit 7").submit()
        after = self.slurm.submit(f"--dependency=afterok:{job.number}", "--output=/dev/null", "--wrap", "true")
        self.assertEqual((job.end()["state"], job.end()["exit_status"]), ("failed", 7))
        self.slurm.wait_reason(after, "DependencyNeverSatisfied")

    def test_two_nodes_reduce_with_torch(self):
        code = ("import os, torch, torch.distributed as d; d.init_process_group('gloo'); t = torch.ones(1) * d.get_rank();"
                "d.all_reduce(t); print(int(t), os.environ['NODE_RANK'], os.environ['LOCAL_RANK'],"
                "os.environ['CUDA_VISIBLE_DEVICES'])")
        if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode != 0:
            self.skipTest("NOT TESTED: /usr/bin/python3 has no torch")
        job = self.job(["/usr/bin/python3", "-c", code], resources={"nodes": 2, "ranks_per_node": 2, "gpus": 4}).submit()
        self.assertEqual(job.end(seconds=180)["state"], "succeeded", job.tell())
        self.assertEqual([job.log(rank) for rank in range(4)], [f"6 {k // 2} {k % 2} 0,1\n" for k in range(4)])
        self.assertEqual(sum(line["e"] == "rank_end" for line in job.lines()), 4)

    def test_a_rank_on_another_node_that_fails_is_named(self):
        job = self.job("test $RANK = 3 && exit 9; sleep 300", resources={"nodes": 2, "ranks_per_node": 2}).submit()
        end = job.end()
        self.assertEqual((end["state"], end["exit_status"], end["first_failed_rank"]), ("failed", 9, 3), job.tell())

    def test_every_task_of_a_sweep_has_its_values(self):
        job = self.job("echo $OVERCAP_TASK_ID $lr $gamma; test $OVERCAP_TASK_ID != 2", array="0-3",
                       sweep=[{"name": "lr", "values": ["1", "2"]}, {"name": "gamma", "values": ["a", "b"]}]).submit()
        states = [job.end(slot=slot)["state"] for slot in range(4)]
        self.assertEqual(states, ["succeeded", "succeeded", "failed", "succeeded"], job.tell())
        self.assertEqual([job.log(name=f"task-{k}.rank-0.log") for k in range(4)],
                         ["0 1 a\n", "1 1 b\n", "2 2 a\n", "3 2 b\n"])

    def test_tasks_on_several_nodes_have_logs_of_their_own(self):
        job = self.job("echo $OVERCAP_TASK_ID $RANK $(hostname)", array="5-6", resources={"nodes": 2}).submit()
        self.assertEqual([job.end(slot=slot)["state"] for slot in range(2)], ["succeeded"] * 2, job.tell())
        for task in (5, 6):
            self.assertRegex(job.log(name=f"task-{task}.rank-1.log"), rf"^{task} 1 n\d\n$")

    def test_a_batch_script_starts_its_own_steps(self):
        job = self.job("echo [$RANK] $SLURM_JOB_NUM_NODES; srun -n2 -N2 /bin/bash -c 'echo step $SLURM_PROCID'", batch=True,
                       resources={"nodes": 2})
        job.submit()
        self.assertEqual(job.end()["state"], "succeeded", job.tell())
        self.assertEqual(sorted(job.log().splitlines()), ["[] 2", "step 0", "step 1"])

    def test_nothing_that_ranks_leave_behind_survives_on_any_node(self):
        one = self.job("setsid sleep 98761 & disown", resources={"nodes": 1}).submit("-w", "n1")
        two = self.job("setsid sleep 98762 & disown; sleep 0.3", resources={"nodes": 2}).submit("-w", "n[1-2]")
        self.assertEqual((one.end()["state"], two.end()["state"]), ("succeeded", "succeeded"), two.tell())
        for node in ("n1", "n2"):
            self.gone(node, "sleep 9876[12]")

    def test_a_failed_job_is_tried_again_in_its_allocation(self):
        job = self.job("test $OVERCAP_ATTEMPT = 3", max_restarts=5).submit()
        self.assertEqual([job.end(attempt)["state"] for attempt in (1, 2, 3)], ["failed", "failed", "succeeded"])
        self.assertEqual((job.restarts(), job.attempts()), (0, 3))

    def test_ranks_of_a_killed_agent_die_on_all_nodes(self):
        job = self.job("sleep 98763", resources={"nodes": 2}).submit("-w", "n[1-2]")
        wait_until(lambda: any(line["e"] == "started" for line in job.lines()), "the ranks to start")
        claim = json.loads((job.folder / "attempt-1" / "agent-0.claim").read_text())
        self.slurm.must(["kill", "-KILL", str(claim["pid"])], node="n1")
        for node in ("n1", "n2"):
            self.gone(node, "sleep 98763")
        self.slurm.wait_state(job.number, "FAILED", "CANCELLED", "NODE_FAIL", seconds=40)

    def test_the_frozen_code_is_restored_on_every_attempt(self):
        source = self.slurm.folder / "work" / "source"
        source.mkdir()
        (source / "value.txt").write_text("frozen\n")
        home = self.slurm.folder / "work" / "home"
        environment = {**os.environ, "OVERCAP_HOME": str(home)}
        submitted = subprocess.run([BINARY, "submit", "--hold", "-q", "cat", "value.txt"], cwd=source, env=environment,
                                   capture_output=True, text=True, check=False, timeout=60)
        self.addCleanup(subprocess.run, [BINARY, "daemon", "stop"], env=environment, capture_output=True, check=False)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        held = submitted.stdout.split()[-1]
        spec = json.loads((home / "jobs" / held / "spec.json").read_text())
        (source / "value.txt").write_text("changed\n")
        job = self.job(spec["command"], snapshot=spec["snapshot"], environment=spec["environment"], store=home / "store",
                       workdir=spec.get("workdir", ""), resources={"nodes": 2}).submit()
        self.assertEqual(job.end()["state"], "succeeded", job.tell())
        self.assertEqual([job.log(0), job.log(1)], ["frozen\n"] * 2)


class Stopping(SlurmAgentTest):
    def test_signals_reach_all_ranks_and_a_stop_that_nobody_explains_is_a_preemption(self):
        one = self.job(RESUMING, resources={"ranks_per_node": 2}).submit().wait_log("ready", 1)
        two = self.job(RESUMING, resources={"nodes": 2}).submit().wait_log("ready", 0).wait_log("ready", 1)
        for job in (one, two):
            sent = time.time()
            self.slurm.must(["scancel", "--batch", "--signal=TERM", str(job.number)])
            end = job.end()
            self.assertEqual((end["state"], job.requeues()), ("preempted", []), job.tell())
            for rank in ("0", "1"):
                (word, when), = job.told(rank=rank)
                self.assertEqual(word, "TERM")
                self.assertLess(when - sent, 5)  # 50 ms by itself; the machine may be busy

    def test_a_warning_reaches_all_ranks(self):
        job = self.job(RESUMING, resources={"nodes": 2}).submit().wait_log("ready", 0).wait_log("ready", 1)
        self.slurm.must(["scancel", "--batch", "--signal=USR1", str(job.number)])
        end = job.end()
        self.assertEqual((end["state"], end["exit_status"]), ("failed", 138), job.tell())
        self.assertEqual(job.told(rank="0")[0][0], "USR1")
        self.assertEqual(job.told(rank="1")[0][0], "USR1")

    def test_who_cancels_gets_that_and_not_another_start(self):
        ours = self.job(RESUMING, requeue=True).submit().wait_log("ready")
        other = self.job(RESUMING, requeue=True).submit().wait_log("ready")
        (ours.folder / "cancel.json").write_text('{"t": 1, "by": "ada", "reason": "cancelled by ada"}')
        self.slurm.must(["scancel", str(ours.number), str(other.number)])
        self.assertEqual((ours.end()["state"], ours.end()["reason"]), ("cancelled", "cancelled by ada"))
        self.assertEqual((other.end()["state"], other.end()["reason"]), ("cancelled", "cancelled in Slurm"))
        for job in (ours, other):
            self.slurm.wait_state(job.number, "CANCELLED")
            self.assertEqual((job.requeues(), job.restarts()), ([], 0))

    def test_a_rank_that_ignores_term_is_killed_by_the_agent(self):
        job = self.job("trap '' TERM; echo ready; while :; do sleep 0.1; done").submit().wait_log("ready")
        self.slurm.must(["scancel", str(job.number)])
        end = job.end()
        self.assertEqual((end["state"], end["signal"]), ("cancelled", signal.SIGKILL), job.tell())

    def test_a_node_that_dies_is_named(self):
        job = self.job("echo ready; sleep 300", resources={"nodes": 2}).submit("-w", "n[3-4]")
        job.wait_log("ready", 0).wait_log("ready", 1)
        try:
            self.slurm.fail_node("n4")
            end = job.end(seconds=90)
            self.assertEqual(end["state"], "lost", job.tell())
            self.assertIn("'n4'", end["reason"])
            self.gone("n3", "sleep 300")
        finally:
            self.slurm.start_node("n4")


if __name__ == "__main__":
    unittest.main()
