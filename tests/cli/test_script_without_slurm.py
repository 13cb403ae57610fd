# SPDX-License-Identifier: Apache-2.0
"""A batch script written for Slurm, unchanged, on this machine's engine: `srun`, `scontrol` and SLURM_* are there, and a program that
saves and requeues itself goes on at its very step when it is preempted and at its time limit."""
import os
import re
import time

from launch_rig import LaunchRig
from overcap_rig import PYTHON, main
from system_rig import SystemRig
from test_policy_engine import PolicyRig

# The pattern of labs that lend idle GPUs: USR1 means save and requeue, TERM means save; `srun -u python -u train.py` in a script.
TRAIN = """
import os, signal, subprocess, sys, time
home, job = os.environ["FACTS"], os.environ["SLURM_JOB_ID"]
state = os.path.join(home, job + ".pth")
leave, requeue = [], []
signal.signal(signal.SIGTERM, lambda *_: leave.append(1))
signal.signal(signal.SIGUSR1, lambda *_: (leave.append(1), requeue.append(1)))
step = int(open(state).read()) if os.path.exists(state) else 0
print(f"attempt {int(os.environ['SLURM_RESTART_COUNT']) + 1} begins at step {step}", flush=True)
while not os.path.exists(os.path.join(home, "finish")):
    time.sleep(0.01)
    step += 1
    if leave:
        with open(state + ".new", "w") as file:
            file.write(str(step))
        os.rename(state + ".new", state)
        print(f"saved step {step}", flush=True)
        if requeue:
            subprocess.check_call(["scontrol", "requeue", job])
        sys.exit(0)
print(f"done at step {step}", flush=True)
"""


class Scripts:
    def script(self, *lines, interpreter="/bin/bash"):
        self.write("job.sh", "\n".join((f"#!{interpreter}", *lines)) + "\n")

    def said(self, job, attempt=1):
        path = self.home / "jobs" / job / f"attempt-{attempt}" / "rank-0.log"
        return path.read_text().splitlines() if path.exists() else []

    def check_resumed(self, job, attempts=2):
        self.until(lambda: self.said(job, attempts), "the next attempt to begin", 60)
        saved = [line for line in self.said(job, attempts - 1) if line.startswith("saved")]
        step = int(re.fullmatch(r"saved step (\d+)", saved[0])[1])
        self.assertGreater(step, 0)
        self.assertEqual(self.said(job, attempts)[0], f"attempt {attempts} begins at step {step}")
        (self.facts / "finish").touch()
        record = self.ended(job, 60)
        self.assertEqual((record["state"], record["attempt"]), ("succeeded", attempts), record)
        return record


class AtItsTimeLimit(LaunchRig, Scripts):
    def setUp(self):
        super().setUp()
        self.declare_no_gpus()
        self.write("train.py", TRAIN)

    def test_it_saves_requeues_itself_and_goes_on(self):
        self.script("#SBATCH --requeue --ntasks=1 --time=1 --signal=USR1@57", "set -e", f"srun -u {PYTHON} -u train.py")
        job = self.submit("-n", "0", "job.sh")
        self.check_resumed(job)

    def test_a_script_without_the_directive_cannot(self):
        self.script("#SBATCH --ntasks=1", 'scontrol requeue "$SLURM_JOB_ID"; echo "status $?"')
        job = self.submit("-n", "0", "job.sh")
        self.assertEqual(self.ended(job)["state"], "succeeded")
        self.assertEqual(self.said(job)[-1], "status 2")
        self.assertIn("#SBATCH --requeue", "\n".join(self.said(job)))

    def test_what_ignores_the_requeue_is_stopped(self):
        self.script("#SBATCH --requeue", '[ "$SLURM_RESTART_COUNT" = 0 ] || exit 0', 'scontrol requeue "$SLURM_JOB_ID"', "sleep 600")
        job = self.submit("-n", "0", "job.sh")
        record = self.ended(job, 60)
        self.assertEqual((record["state"], record["attempt"]), ("succeeded", 2), record)

    def test_an_abort_wins_over_a_requeue(self):
        self.script("#SBATCH --requeue", 'trap "" TERM', 'scontrol requeue "$SLURM_JOB_ID"', "touch $FACTS/asked",
                    "while :; do sleep 0.05; done")
        job = self.submit("-n", "0", "job.sh")
        self.until(lambda: (self.facts / "asked").exists(), "the script to requeue itself")
        self.ok("abort", job, deadline=60)
        self.assertEqual((self.job(job)["state"], self.job(job)["attempt"]), ("cancelled", 1))

    def test_one_that_requeues_itself_at_once_is_started_ever_later(self):
        self.script("#SBATCH --requeue", 'date +%s%N >> "$FACTS/starts"', 'scontrol requeue "$SLURM_JOB_ID"')
        job = self.submit("-n", "0", "job.sh")
        time.sleep(6)
        starts = len((self.facts / "starts").read_text().split())
        self.ok("abort", job)
        self.assertIn(starts, range(3, 9))


class Steps(LaunchRig, Scripts):
    def setUp(self):
        super().setUp()
        self.declare_no_gpus()

    def run_script(self, *lines, flags=(), state="succeeded", **env):
        self.script(*lines)
        job = self.submit("-n", "0", *flags, "job.sh", env=env)
        self.assertEqual(self.ended(job, 60)["state"], state, self.said(job))
        return self.said(job)

    def test_a_step_has_all_tasks_of_the_job(self):
        tasks = ["0 of 3", "1 of 3", "2 of 3"]
        said = self.run_script("#SBATCH --ntasks=3", "said=$(srun bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS'); echo \"$said\"")
        self.assertEqual(sorted(said), tasks)
        said = self.run_script("#SBATCH --ntasks=3", "srun -l bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS'")
        self.assertEqual(sorted(said), [f"[{rank}] {task}" for rank, task in enumerate(tasks)])

    def test_a_step_of_fewer_tasks(self):
        said = self.run_script("#SBATCH --ntasks=3", "srun -n1 --exact bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS'")
        self.assertEqual(said, ["0 of 1"])

    def test_the_exit_status_of_a_task_is_that_of_srun(self):
        said = self.run_script("#SBATCH --ntasks=2", "srun -n1 bash -c 'exit 7'; echo $?", "srun bash -c 'exit 9'; echo $?")
        self.assertEqual([line for line in said if line.isdigit()], ["7", "9"])

    def test_the_variables_of_the_job(self):
        said = self.run_script("#SBATCH -J count --ntasks=2 --cpus-per-task=1",
                               'echo "$SLURM_JOB_NAME $SLURM_NTASKS $SLURM_CPUS_PER_TASK $SLURM_NNODES [$SLURM_QOS]"',
                               'cd /; [ -e "$SLURM_SUBMIT_DIR/job.sh" ]; echo "there $?"', 'echo "$((SLURM_JOB_ID > 1000000)) $SLURM_PROCID"',
                               SLURM_QOS="of another job")
        self.assertEqual(said, ["count 2 1 1 []", "there 0", "1 0"])
        self.assertEqual(self.run_script("#SBATCH --ntasks=1", 'echo "$SLURM_JOB_NAME"'), ["job.sh"], "without a name that of the file")

    def test_tasks_of_an_array_have_numbers_of_their_own(self):
        self.script("#SBATCH --array=3-4", 'echo "$SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $((SLURM_JOB_ID - SLURM_ARRAY_JOB_ID))"')
        job = self.submit("-n", "0", "job.sh")
        self.assertEqual(self.ended(job)["state"], "succeeded")
        logs = sorted((self.home / "jobs" / job / "attempt-1").glob("task-*.log"))
        self.assertEqual([log.read_text() for log in logs], ["3 2 3\n", "4 2 4\n"])

    def test_host_names(self):
        said = self.run_script("#SBATCH --ntasks=1", 'scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1; hostname')
        self.assertEqual(said[0].split(".")[0], said[1].split(".")[0])

    def test_what_cannot_be_had_is_refused_in_one_line(self):
        for words, says in (("-N 2 true", "'--nodes=2' cannot be had: this machine is one node"), ("--pty bash", "'--pty' cannot be had"),
                            ("-o out true", "write: srun ... > FILE"), ("--exprt=A true", "is no option of srun"),
                            ("-n x true", "is no number of tasks"), ("", "no command was given")):
            said = self.run_script("#SBATCH --ntasks=1", f"srun {words}; echo status $?")
            self.assertEqual(said[-1], "status 2", words)
            self.assertIn(says, "\n".join(said), words)

    def test_what_the_script_submits_has_nothing_of_it(self):
        self.write("bin/srun", "#!/bin/sh\necho the real one: $*\n", mode=0o755)
        self.write("inner.sh", 'echo "[$SLURM_JOB_ID]"; srun -n 2 hostname\n')
        self.script("#SBATCH --ntasks=1", f"{self.binary} submit -n 0 bash inner.sh")
        job = self.submit("-n", "0", "job.sh", env={"PATH": f"{self.project}/bin:{os.environ['PATH']}"})
        self.assertEqual(self.ended(job, 60)["state"], "succeeded", self.said(job))
        inner = self.said(job)[-1]
        self.assertEqual(self.ended(inner, 60)["state"], "succeeded", self.said(inner))
        self.assertEqual(self.said(inner), ["[]", "the real one: -n 2 hostname"])

    def test_an_elastic_job_is_no_script(self):
        job = self.submit("-n", "0", "--nodes", "1:2", "bash", "-c", 'echo "$PATH [$SLURM_NTASKS]"')
        self.assertEqual(self.ended(job, 60)["state"], "succeeded")
        log = next((self.home / "jobs" / job / "attempt-1" / "node-0").glob("**/rank-0.log")).read_text()
        self.assertNotIn("/tools", log)
        self.assertIn("[]", log)

    def test_versions_are_not_those_of_overcap(self):
        said = self.run_script("#SBATCH --ntasks=1", "srun --version; scontrol --version; true")
        self.assertNotIn("overcap 0", "\n".join(said))

    def test_export_and_folder(self):
        self.write("inner/file", "x")
        said = self.run_script("#SBATCH --ntasks=1", "srun --export=ALL,COLOUR=blue --chdir=inner bash -c 'echo $COLOUR; ls'")
        self.assertEqual(said, ["blue", "file"])

    def test_a_program_that_is_not_there(self):
        said = self.run_script("#SBATCH --ntasks=1", "srun ./missing; echo status $?")
        self.assertIn("command './missing' does not exist", said[0])
        self.assertNotEqual(said[-1], "status 0")

    def test_open_mpi_does_not_take_it_for_slurm(self):
        said = self.run_script("#SBATCH --ntasks=2", "mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 bash -c 'echo $OMPI_COMM_WORLD_RANK'")
        self.assertEqual(sorted(said), ["0", "1"])

    def test_mpich_does_not_take_it_for_slurm(self):
        said = self.run_script("#SBATCH --ntasks=2", "mpiexec.hydra -n 2 bash -c 'echo $PMI_RANK'")
        self.assertEqual(sorted(said), ["0", "1"])


class Preempted(PolicyRig, Scripts):
    def test_it_saves_and_goes_on_at_its_step(self):
        self.write("train.py", TRAIN)
        self.script("#SBATCH --partition=overcap --requeue --ntasks=1 --gpus=4 --signal=USR1@600", f"srun -u {PYTHON} -u train.py")
        job = self.submit("job.sh")
        self.until(lambda: self.said(job), "the script to run", 60)
        owner = self.hold_gpus("short", 2, "language")
        self.running(owner)
        self.assertIn("saved", self.said(job)[1])
        self.ok("abort", owner)
        record = self.check_resumed(job)
        self.assertEqual(record["preemptions"], 1)


class OnASharedMachine(SystemRig, Scripts):
    def script(self, *lines):
        self.here = self.homes["alice"] / "project"
        self.write("job.sh", "\n".join(("#!/bin/bash", *lines)) + "\n", base=self.here)
        os.chown(self.here, self.uid["alice"], self.gid["alice"])

    def test_a_users_script_requeues_itself(self):
        self.script("#SBATCH --requeue", '[ "$SLURM_RESTART_COUNT" = 1 ] || { scontrol requeue "$SLURM_JOB_ID"; sleep 600; }')
        record = self.ended(self.submit("-n", "0", "job.sh"), 60)
        self.assertEqual((record["state"], record["attempt"]), ("succeeded", 2), record)


del PolicyRig, SystemRig

if __name__ == "__main__":
    main()
