# SPDX-License-Identifier: Apache-2.0
"""`overcap agent --under slurm` as the batch script of real Slurm jobs, without the driver: job folders are made by hand.

One cluster for all. Its partitions: short, for those who go first; and three that give way: at once (over), with a grace
time that nobody here waits out (grace), and for good (gone).
"""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from rigs.machines import wait_until
from rigs.slurm_rig import SlurmCluster

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
GRACE_SECONDS = 20
PARTITIONS = {
    "short": "PriorityTier=10 PreemptMode=OFF Default=YES",
    "over": "PriorityTier=1 PreemptMode=REQUEUE",
    "grace": f"PriorityTier=1 PreemptMode=REQUEUE GraceTime={GRACE_SECONDS}",
    "gone": "PriorityTier=1 PreemptMode=CANCEL",
}
# Saves how far it came when it is told to stop, and says what it was told and when.
RESUMING = r"""
state=$OVERCAP_STATE_DIR/saved; told=$OVERCAP_JOB_DIR/told-$OVERCAP_ATTEMPT-${RANK:-b}
stop() { echo "$1 $EPOCHREALTIME" >> $told; echo "attempt $OVERCAP_ATTEMPT" >> $state; exit $2; }
trap 'stop TERM 143' TERM; trap 'stop USR1 138' USR1
test $OVERCAP_ATTEMPT -gt 1 && { echo "resumed after: $(tail -n 1 $state)"; exit 0; }
echo ready; while :; do sleep 0.05; done
"""


class Job:
    """A job folder under the cluster's shared folder, and its Slurm job."""
    count = 0

    def __init__(self, slurm, script, store=None, begin="", **spec):
        Job.count += 1
        self.slurm, self.root = slurm, slurm.folder / "work" / "root"
        store = store or self.root / "store"
        self.id = f"test_1700000000_{Job.count:08x}"
        self.folder = self.root / "jobs" / self.id
        self.folder.mkdir(parents=True)
        store.mkdir(exist_ok=True)
        command = ["/bin/bash", "-c", script] if isinstance(script, str) else script
        self.spec = {"id": self.id, "user": "test", "cluster": "sky", "command": command, "workdir": str(self.folder),
                     **spec}
        (self.folder / "spec.json").write_text(json.dumps(self.spec))
        (self.folder / "script.sh").write_text(
            f"#!/bin/sh\n{begin}\nexec {BINARY} agent --job {self.folder} --store {store} --under slurm --grace 10\n")

    def submit(self, *words):
        resources = self.spec.get("resources", {})
        asked = [f"--nodes={resources.get('nodes', 1)}", f"--ntasks-per-node={resources.get('ranks_per_node', 1)}"]
        if resources.get("gpus"):
            asked.append(f"--gpus-per-node={resources['gpus'] // resources.get('nodes', 1)}")
        if self.spec.get("array"):
            asked.append(f"--array={self.spec['array']}")
        asked.append("--requeue" if self.spec.get("requeue") else "--no-requeue")
        self.number = self.slurm.submit(*asked, f"--comment=overcap:{self.id}", f"--output={self.folder}/slurm.log",
                                        "--open-mode=append", "--time=10", *words, str(self.folder / "script.sh"))
        return self

    def lines(self, attempt=1, slot=0):
        try:
            data = (self.folder / f"attempt-{attempt}" / f"agent-{slot}.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in data.rstrip(b"\0").splitlines(keepends=True) if line.endswith(b"\n")]

    def end(self, attempt=1, slot=0, seconds=60):
        """Waits for the end of an attempt and gives its line."""
        def ended():
            return next((line for line in self.lines(attempt, slot) if line["e"] == "end"), None)
        try:
            return wait_until(ended, f"attempt {attempt} of {self.id} to end", seconds, pause=0.02)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.tell()}") from None

    def requeues(self, attempt=1, slot=0):
        return [line["why"] for line in self.lines(attempt, slot) if line["e"] == "requeue"]

    def log(self, rank=0, attempt=1, name=None):
        path = self.folder / f"attempt-{attempt}" / (name or f"rank-{rank}.log")
        return path.read_text() if path.exists() else ""

    def wait_log(self, text, rank=0, attempt=1, seconds=60):
        try:
            wait_until(lambda: text in self.log(rank, attempt), f"rank {rank} of {self.id} to say '{text}'", seconds,
                       pause=0.02)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.tell()}") from None
        return self

    def attempts(self):
        return len(list(self.folder.glob("attempt-*")))

    def told(self, attempt=1, rank="0"):
        """[(signal, when), ...] as the rank saw it."""
        path = self.folder / f"told-{attempt}-{rank}"
        text = path.read_text() if path.exists() else ""
        return [(line.split()[0], float(line.split()[1])) for line in text.splitlines()]

    def restarts(self):
        shown = self.slurm.run(["scontrol", "show", "job", "-o", str(self.number)]).stdout
        return int(shown.partition("Restarts=")[2].split()[0])

    def tell(self):
        """All that is known, for messages."""
        parts = [self.slurm.run(["scontrol", "show", "job", str(self.number)]).stdout]
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path.suffix in (".jsonl", ".log", ".claim"):
                parts.append(f"--- {path.relative_to(self.folder)}\n{path.read_text(errors='replace')[-1500:]}")
        return "\n".join(parts)


def setUpModule():
    if not BINARY.exists():
        raise unittest.SkipTest(f"NOT TESTED: {BINARY} is not built")
    SlurmAgent.slurm = SlurmCluster(nodes=4, gpus=4, partitions=PARTITIONS, kill_wait=5)
    unittest.addModuleCleanup(SlurmAgent.slurm.close)


class SlurmAgent(unittest.TestCase):
    slurm = None

    def setUp(self):
        self.addCleanup(self.slurm.empty_queue)

    def job(self, script, **spec):
        return Job(self.slurm, script, **spec)

    def take_nodes(self, *nodes):
        """Somebody who goes first wants all GPUs of these nodes."""
        return [self.slurm.submit("--gpus-per-node=4", "-w", node, "--output=/dev/null", "--wrap", "sleep 2")
                for node in nodes]

    def gone(self, node, words):
        """No process with these words is left on the node."""
        wait_until(lambda: self.slurm.run(["pgrep", "-f", words], node=node).returncode == 1,
                   f"'{words}' to be gone on {node}", 30)


class Running(SlurmAgent):
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


class Stopping(SlurmAgent):
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


class StartingAgain(SlurmAgent):
    def assert_resumed(self, job, why="preempted"):
        """Started again exactly once, with what the first attempt saved."""
        self.assertEqual(job.requeues(), [why], job.tell())
        self.assertEqual(job.end(2, seconds=90)["state"], "succeeded", job.tell())
        self.assertEqual(job.log(0, 2), "resumed after: attempt 1\n")
        self.slurm.wait_state(job.number, "COMPLETED")
        self.assertEqual((job.restarts(), job.attempts()), (1, 2), job.tell())

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
            (word, when), = jobs[name].told()
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
