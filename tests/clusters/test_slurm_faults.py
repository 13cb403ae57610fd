# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around jobs on a real Slurm: nodes, the controller, replies and commands that die. No job runs twice,
none is lost from sight, and nothing is told that is not so."""
import os
import pathlib
import random
import re
import shutil
import signal
import time

from slurm_jobs_rig import DEADLINE, FINAL, SlurmJobsRig, main, shell
from rigs.machines import children
from rigs.slurm_accounts import Accounting
from rigs.slurm_rig import SlurmCluster

DEADLINE_SECONDS = 600
PATIENCE = 4 * DEADLINE
# Tells who ran, and waits for the gate.
ONCE = 'echo "$OVERCAP_JOB_ID" >> "$FACTS/ran"'


class FaultsRig(SlurmJobsRig):
    def shown_with_age(self, *words):
        """What `ls` shows when the controller is away: all of it, and that it is old, with its age. What was read lately
        is not asked for again for some seconds."""
        seen = []

        def told():
            seen[:] = [self.overcap("ls", deadline=60)]
            self.assertEqual(seen[0].status, 0, str(seen[0]))
            for word in words:
                self.assertIn(word, seen[0].out)
            return re.search(r"as of \S+ ago: .*(controller|munge)", seen[0].out + seen[0].err)
        try:
            self.until(told, "the age of what is shown", 2 * DEADLINE)
        except AssertionError as error:
            self.fail(f"{error}: {seen[0]}")

    def settled(self, job_id):
        """The record once it does not change any more."""
        return self.until_state(job_id, *FINAL, "preempted", deadline=PATIENCE)


class Controller(FaultsRig):
    cluster = {"nodes": 1, "gpus": 0}

    def test_without_its_controller_everything_known_is_still_shown(self):
        waits = self.submit("--hold", "--name", "waits", *shell("true"))
        runs = self.submit("--name", "runs", *shell(f"{ONCE}; {self.gate()}; exit 3"))
        foreign = self.slurm.submit("-H", "-J", "foreign", "--wrap", "true")
        self.until_running(runs)
        self.until(lambda: {waits, runs, str(foreign)} <= set(self.ls()), "ls to have them")
        self.slurm.stop_controller()
        try:
            self.shown_with_age(waits, runs, "foreign")
            done = self.overcap("query", "--json", waits, deadline=60)
            self.assertEqual((done.status, done.json()["state"]), (0, "held"), str(done))
            done = self.overcap("submit", *shell(ONCE), deadline=90)
            self.assertEqual((done.status, done.out), (5, ""), str(done))
            self.assertRegex(done.err.lower(), "controller")
            self.assertEqual(sorted(os.listdir(self.home / "jobs")), sorted([waits, runs]), "nothing is left of it")
            done = self.overcap("shell", "-n", "0", "true", deadline=90)
            self.assertEqual((done.status, done.out), (5, ""), str(done))
            self.assertRegex(done.err, r"^overcap: cluster 'sky': the controller does not answer .*\nhint: .*\n$")
            done = self.overcap("abort", "--no-wait", waits, deadline=90)
            self.assertNotEqual(done.status, 0, str(done))
            # The job ends meanwhile: its own evidence counts.
            self.open_gate()
            self.assertEqual(self.overcap("wait", runs, deadline=60).status, 3)
            self.assertEqual(self.job(runs)["state"], "failed")
        finally:
            self.slurm.restart_controller()
        self.assertEqual(self.lines("ran"), [runs])
        self.until(lambda: self.job(waits)["state"] in ("held", "cancelled"), "the controller's own word again")
        if self.job(waits)["state"] == "held":
            # Nobody could tell Slurm, but somebody wanted it to end: it runs nothing.
            self.ok("release", waits)
            self.assertEqual(self.overcap("wait", waits, deadline=60).status, 130)

    def test_a_controller_that_never_answered(self):
        """Nothing is known yet: that is said, and no empty list."""
        with SlurmCluster(**self.cluster) as silent:
            silent.stop_controller()
            self.env["SLURM_CONF"] = silent.environment["SLURM_CONF"]
            done = self.done(silent.run([str(self.binary), "ls"], env=self.env, cwd=self.project, text=False, timeout=90))
        self.assertEqual((done.status, done.out), (5, ""), str(done))
        self.assertRegex(done.err.lower(), "controller")

    def test_a_killed_and_restarted_controller_in_the_middle_of_a_job(self):
        job_id = self.submit("--name", "in-the-middle", *shell(f"{ONCE}; {self.gate()}; exit 4"))
        self.until_running(job_id)
        self.slurm.wait_saved("in-the-middle")
        wait = self.start("wait", job_id)
        self.slurm.kill_controller()
        self.slurm.restart_controller()
        self.assertEqual(self.job(job_id)["state"], "running")
        self.open_gate()
        self.assertEqual(self.finish(wait, PATIENCE).status, 4)
        self.assertEqual((self.job(job_id)["state"], self.lines("ran")), ("failed", [job_id]))

    def test_a_job_that_the_controller_has_forgotten_runs_on_and_is_told_as_it_is(self):
        """As after a kill -9 right after the submit. (slurmd would end it at the controller's word: it is away too.)"""
        job_id = self.submit(*shell(f"{ONCE}; {self.gate()}; echo to the end"))
        self.until_running(job_id)
        self.broken = True
        self.slurm.kill_slurmd("n1")
        self.slurm.kill_controller()
        for path in (self.slurm.folder / "state").glob("job_state*"):
            path.unlink()
        self.slurm.restart_controller()
        self.assertEqual(self.slurm.must(["squeue", "-h"]), "")
        foreign = self.slurm.submit("-H", "--wrap", "true")
        self.until(lambda: str(foreign) in self.ls(), "the queue to be read again")
        self.assertEqual((self.job(job_id)["state"], self.ls()[job_id]["state"]), ("running", "running"))
        self.open_gate()
        self.assertEqual(self.overcap("wait", job_id, deadline=PATIENCE).status, 0)
        self.assertEqual((self.job(job_id)["state"], self.lines("ran")), ("succeeded", [job_id]))
        self.assertEqual(self.rank_log(job_id), "to the end\n")

    def test_without_munge(self):
        job_id = self.submit("--hold", *shell("true"))
        self.ls()
        self.slurm.stop_munge()
        try:
            done = self.overcap("submit", *shell(ONCE), deadline=60)
            self.assertEqual((done.status, done.out), (5, ""), str(done))
            self.assertIn("munge", done.err.lower())
            self.assertEqual(os.listdir(self.home / "jobs"), [job_id])
            self.shown_with_age(job_id)
        finally:
            self.slurm.start_munge()


class Nodes(FaultsRig):
    cluster = {"nodes": 2, "gpus": 0}

    def test_a_node_fails_with_and_without_requeue(self):
        """n2 has both jobs; the one that may start again does so on n1."""
        self.slurm.drain_node("n1")
        script = f'echo "$OVERCAP_JOB_ID $(hostname)" >> "$FACTS/ran"; {self.gate()}'
        again = self.submit("--requeue", *shell(script))
        lost = self.submit("--no-requeue", *shell(script))
        self.until(lambda: len(self.lines("ran")) == 2, "both to run", PATIENCE)
        self.slurm.resume_node("n1")
        self.broken = True
        self.slurm.fail_node("n2")
        done = self.overcap("wait", lost, deadline=PATIENCE)
        self.assertEqual(done.status, 75, str(done))
        job = self.job(lost)
        self.assertEqual((job["state"], job["attempt"]), ("lost", 1), job)
        self.assertRegex(job["reason"].lower() + job["raw_state"].lower(), "node", job)
        self.until(lambda: f"{again} n1" in self.lines("ran"), "the other to run again", PATIENCE)
        self.open_gate()
        self.ok("wait", again, deadline=PATIENCE)
        job = self.job(again)
        self.assertEqual((job["state"], job["attempt"], job["restarts"]), ("succeeded", 2, 1), job)
        self.assertEqual(len(self.lines("ran")), 3)

    def test_ranks_that_slurm_has_lost_sight_of_end_when_it_starts_the_job_again(self):
        """slurmd and its steps are killed on n2, the agent and its rank live on; Slurm starts the job on n1."""
        self.slurm.drain_node("n1")
        job_id = self.submit("--requeue", *shell(f'echo "$(hostname)" >> "$FACTS/ran"; {self.gate()}'))
        self.until(lambda: self.lines("ran") == ["n2"], "the job to run", PATIENCE)
        self.broken = True
        self.slurm.resume_node("n1")
        self.slurm.kill_slurmd("n2")
        steps = [line.split()[0] for line in self.slurm.must(["ps", "-eo", "pid,comm"], node="n2").splitlines() if "slurmstepd" in line]
        self.slurm.must(["kill", "-KILL", *steps], node="n2")
        self.slurm.down_node("n2")
        self.until(lambda: self.lines("ran") == ["n2", "n1"], "the job to run again", PATIENCE)
        self.assertEqual((self.job(job_id)["state"], self.job(job_id)["attempt"]), ("running", 2))
        self.assertIn("has not reported its end", self.ok("query", job_id).out)
        self.until(lambda: self.report(job_id, 1)[-1]["e"] == "end", "the first attempt to see the second", PATIENCE)
        self.assertEqual(self.report(job_id, 1)[-1]["state"], "preempted")
        self.open_gate()
        self.assertEqual(self.overcap("wait", job_id, deadline=PATIENCE).status, 0)
        self.assertEqual((self.job(job_id)["state"], self.job(job_id)["attempt"]), ("succeeded", 2))

    def test_the_agent_is_killed(self):
        job_id = self.submit("--no-requeue", *shell(f"{ONCE}; exec sleep 300"))
        self.until_running(job_id)
        (agent,) = [pid for pid in self.processes() if self.is_agent(pid)]
        os.kill(agent, signal.SIGKILL)
        job = self.settled(job_id)
        self.assertIn(job["state"], ("lost", "failed"), job)
        self.assertTrue(job["reason"], job)
        self.assertNotEqual(self.overcap("wait", job_id).status, 0)
        self.until(lambda: not self.processes(), "its ranks to be gone")

    @staticmethod
    def is_agent(pid):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return len(words) > 2 and words[0].endswith(b"overcap") and words[1] == b"agent"


# In the place of sbatch. FOLDER/mode says what becomes of the reply.
SBATCH = """#!/bin/sh
echo called >> FOLDER/calls
away="sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
read -r mode < FOLDER/mode
case $mode in
  lost) REAL "$@" >/dev/null 2>&1
    echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1;;
  silent) REAL "$@" >/dev/null 2>&1; exit 0;;
  garbage) REAL "$@" >/dev/null 2>&1; echo "Submitted batch job soon"; exit 0;;
  killed) REAL "$@" >/dev/null 2>&1; kill -KILL $$;;
  never) echo "$away" >&2; exit 1;;
esac
"""


class Replies(FaultsRig):
    cluster = {"nodes": 2, "gpus": 0, "accounting": Accounting(labs={"lab-a": 4}), "settings": {"MinJobAge": 2}}

    def programs(self):
        """A folder with all of Slurm's programs, of which sbatch is SBATCH."""
        folder = self.root / "programs"
        folder.mkdir()
        for name in ("squeue", "sinfo", "sacct", "sacctmgr", "scontrol", "scancel", "srun", "salloc", "sdiag", "sprio", "sshare"):
            if found := shutil.which(name, path=self.env["PATH"]):
                (folder / name).symlink_to(found)
        real = shutil.which("sbatch", path=self.env["PATH"])
        self.write("sbatch", SBATCH.replace("FOLDER", str(self.root)).replace("REAL", real), mode=0o755, base=folder)
        self.configure(f"{self.settings}, programs: {folder}")

    def test_a_submit_whose_reply_is_lost_runs_exactly_once(self):
        self.programs()
        for number, mode in enumerate(("lost", "silent", "garbage", "killed"), 1):
            with self.subTest(mode):
                (self.root / "mode").write_text(f"{mode}\n")
                done = self.overcap("submit", "--name", mode, *shell(ONCE), deadline=PATIENCE)
                jobs = os.listdir(self.home / "jobs")
                self.until(lambda: len(self.lines("ran")) >= number, f"it to run: {done}", PATIENCE)
                (job_id,) = [name for name in jobs if self.job(name)["name"] == mode]
                self.assertEqual(self.settled(job_id)["state"], "succeeded", str(done))
                if done.status == 0:
                    self.assertEqual(done.out.strip(), job_id)
        self.until(lambda: not self.slurm.must(["squeue", "-h"]), "the queue to be empty")
        self.assertEqual((len(self.lines("ran")), len(set(self.lines("ran")))), (4, 4))
        self.assertGreaterEqual((self.root / "calls").read_text().count("called"), 4)

    def test_a_submit_that_never_arrived_leaves_nothing(self):
        self.programs()
        (self.root / "mode").write_text("never\n")
        done = self.overcap("submit", *shell(ONCE), deadline=PATIENCE)
        self.assertEqual((done.status, done.out), (5, ""), str(done))
        self.assertIn("contact slurm controller", done.err.lower())
        left = os.listdir(self.home / "jobs") if (self.home / "jobs").exists() else []
        self.assertEqual(left, [], str(done))

    def test_submits_killed_at_any_moment_run_once_or_not_at_all(self):
        """Twenty of them: what is in the folder of jobs then is a job that has run once, or one that never will."""
        began = time.monotonic()
        first = self.submit("--wait", *shell("true"))
        whole = time.monotonic() - began
        source = random.Random(4)
        for _ in range(20):
            process = self.start("submit", "--", *shell(ONCE))
            time.sleep(source.uniform(0, min(whole, 0.5)))
            for pid in self.tree(process.pid):
                self.kill(pid)
            process.communicate(timeout=20)
        self.until(lambda: not self.slurm.must(["squeue", "-h"]), "the queue to be empty", PATIENCE)
        ran = self.lines("ran")
        self.assertEqual(len(ran), len(set(ran)), "one ran twice")
        shown = {}

        def told():
            shown.update({job_id: job["state"] for job_id, job in self.ls("--all").items() if not job_id.isdigit()})
            return not {"queued", "running", "held"} & set(shown.values())
        # What was read of the queue is a little old at first.
        self.until(told, "nobody to say of one that was never sent that it waits", 2 * DEADLINE)
        self.assertEqual({shown.get(job_id) for job_id in ran}, {"succeeded"}, shown)
        self.assertNotIn("succeeded", {state for job_id, state in shown.items() if job_id not in (*ran, first)})

    def tree(self, pid):
        """It and all below, the lowest last."""
        found = [pid]
        for parent in found:
            found += children(parent)
        return found

    def test_jobs_that_the_controller_has_purged(self):
        gone = self.submit(*shell("exit 3"))
        unseen = self.submit("--hold", *shell(ONCE))  # ended without an agent: only the database knows
        self.slurm.must(["scancel", str(self.slurm_id(unseen))])
        self.assertEqual(self.overcap("wait", gone).status, 3)
        for job_id in (gone, unseen):
            number = str(self.slurm_id(job_id))
            self.until(lambda: self.slurm.run(["scontrol", "show", "job", number]).returncode != 0, "it to be purged", PATIENCE)
        self.assertEqual((self.job(gone)["state"], self.job(gone)["exit_status"]), ("failed", 3))
        self.assertEqual(self.settled(unseen)["state"], "cancelled")
        self.slurm.stop_database()
        try:
            self.assertEqual((self.job(gone)["state"], self.job(unseen)["state"]), ("failed", "cancelled"))
        finally:
            self.slurm.start_database()
        self.assertEqual(self.lines("ran"), [])

    def test_a_handle_of_another_slurm_job_runs_nothing(self):
        """Whoever starts the script of a job as another Slurm job finds that the job is not its own."""
        job_id = self.submit("--hold", *shell(ONCE))
        script = self.folder(job_id) / "script.sh"
        number = self.slurm.submit("-o", "/dev/null", str(script), env=self.env)
        self.slurm.must(["scontrol", "release", number])  # the script itself says --hold
        self.slurm.wait_state(number, "FAILED", "COMPLETED", "Invalid job id specified", seconds=60)
        self.assertEqual(self.lines("ran"), [])
        self.ok("release", job_id)
        self.ok("wait", job_id)
        self.assertEqual(self.lines("ran"), [job_id])


if __name__ == "__main__":
    main()
