# SPDX-License-Identifier: Apache-2.0
"""Preemption by a real Slurm's QOS, and time limits: the ranks are told, save, and the job goes on where it was."""
import time


from slurm_jobs_rig import DEADLINE, NODE_PYTHON, REPOSITORY, SlurmJobsRig, main, shell
from rigs.slurm_accounts import Accounting

DEADLINE_SECONDS = 500
PATIENCE = 4 * DEADLINE  # a requeued job waits some seconds, and whoever took its place must end first

# Counts steps until facts/finish is there; rank 0 saves when it is told to stop.
RESUME = """
from overcap import checkpoint
import os, signal, sys, time
facts, rank, attempt = os.environ["FACTS"], os.environ["RANK"], os.environ["OVERCAP_ATTEMPT"]
def tell(name, text):
    path = os.path.join(facts, f"{name}-{attempt}-{rank}")
    with open(path + ".new", "w") as file:
        file.write(f"{text}\\n")
    os.rename(path + ".new", path)
state = checkpoint.load({"step": 0})
print(f"attempt {attempt} begins at step {state['step']}", flush=True)
tell("begin", f"{state['step']} {os.environ['OVERCAP_STATE_DIR']}")
while not os.path.exists(os.path.join(facts, "finish")):
    time.sleep(0.005)
    state["step"] += 1
    if checkpoint.should_stop():
        tell("told", time.time_ns())
        checkpoint.save(state)
        print(f"saved step {state['step']}", flush=True)
        checkpoint.exit()
print(f"done at step {state['step']}", flush=True)
"""


# As many programs do it by hand: USR1 means save and requeue, TERM means save. Started by srun in a script.
BY_HAND = """
import os, signal, subprocess, sys, time
facts = os.environ["FACTS"]
path = os.path.join(facts, "saved")
leave, requeue = [], []
signal.signal(signal.SIGTERM, lambda *_: leave.append(1))
if "usr1" in sys.argv:
    signal.signal(signal.SIGUSR1, lambda *_: (leave.append(1), requeue.append(1)))
def write(name, text):
    with open(os.path.join(facts, name + ".new"), "w") as file:
        file.write(f"{text}\\n")
    os.rename(os.path.join(facts, name + ".new"), os.path.join(facts, name))
step = int(open(path).read()) if os.path.exists(path) else 0
write(f"begin-{os.environ['OVERCAP_ATTEMPT']}-0", f"{step} -")
while not os.path.exists(os.path.join(facts, "finish")):
    time.sleep(0.01)
    step += 1
    if leave:
        write("saved", step)
        if requeue:
            subprocess.check_call(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]])
        sys.exit(0 if requeue else 143)
"""


class PreemptRig(SlurmJobsRig):
    cluster = {"nodes": 2, "gpus": 2, "preemption": "qos", "accounting": Accounting(labs={"lab-a": None})}
    settings = "partition: short, account: lab-a"

    def setUp(self):
        super().setUp()
        self.write("resume.py", RESUME)
        self.write("by_hand.py", BY_HAND)
        self.env.update(PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1")
        self.resume = ["--", NODE_PYTHON, "-S", "resume.py"]

    def begun(self, attempt, rank=0):
        """(first step, state folder) of a rank, once it runs."""
        step, folder = self.fact(f"begin-{attempt}-{rank}", PATIENCE).split()
        return int(step), folder

    def take_all(self, seconds=1):
        """A job of the labs' own that needs every GPU for a while."""
        return self.slurm.submit("-A", "lab-a", "-N2", "--gpus-per-node=2", "-o", "/dev/null", "--wrap",
                                 f"exec sleep {seconds}")

    def events(self, job_id, attempt, kind):
        return [event for event in self.report(job_id, attempt) if event["e"] == kind]

    def finished(self, job_id, attempts):
        (self.facts / "finish").touch()
        done = self.overcap("wait", job_id, deadline=PATIENCE)
        self.assertEqual(done.status, 0, str(done))
        job = self.job(job_id)
        self.assertEqual((job["state"], job["attempt"], job["restarts"]), ("succeeded", attempts, attempts - 1), job)
        return job


class Preempted(PreemptRig):
    def test_it_saves_is_requeued_once_and_goes_on(self):
        """Two victims of one job: one that saves, on two nodes, and one that does not listen."""
        saver = self.submit("--requeue", "--qos", "over", "-n", "2", "--nodes", "2", *self.resume)
        deaf = self.submit("--requeue", "--qos", "over", "-n", "1", *shell(
            'trap "" TERM USR1; echo "deaf $OVERCAP_ATTEMPT"; echo "$OVERCAP_ATTEMPT" >> "$FACTS/deaf"; '
            'while [ ! -e "$FACTS/finish" ]; do sleep 0.05; done'))
        for rank in range(2):
            self.assertEqual(self.begun(1, rank), (0, str(self.folder(saver) / "state")))
        self.until(lambda: self.lines("deaf"), "the other victim to run")
        lab = self.take_all()
        self.slurm.wait_state(lab, "RUNNING", "COMPLETING", "COMPLETED", seconds=60)
        for rank in range(2):
            self.fact(f"told-1-{rank}")  # both ranks were told, whichever node they were on
            step, folder = self.begun(2, rank)
            self.assertEqual(folder, str(self.folder(saver) / "state"), "the same for all attempts")
            self.assertGreater(step, 0)
        self.until(lambda: len(self.lines("deaf")) == 2, "the other victim to run again", PATIENCE)
        saved = self.rank_log(saver, attempt=1).splitlines()
        self.assertEqual(saved[0], "attempt 1 begins at step 0")
        self.assertEqual(saved[1], f"saved step {step}", "it begins where it had saved")
        self.finished(saver, attempts=2)
        self.assertEqual(self.rank_log(saver, attempt=2).splitlines()[0], f"attempt 2 begins at step {step}")
        self.assertEqual(self.ok("logs", "--attempt", "1", saver).out.splitlines()[0], "attempt 1 begins at step 0")
        self.assertEqual([end["state"] for end in self.events(saver, 1, "end")], ["preempted"])
        self.assertEqual([event["why"] for event in self.events(saver, 1, "requeue")], ["preempted"])
        self.assertEqual(self.scontrol(saver)["Restarts"], "1")
        self.finished(deaf, attempts=2)
        self.assertEqual((self.lines("deaf"), self.scontrol(deaf)["Restarts"]), (["1", "2"], "1"))

    def test_without_requeue_it_ends_as_preempted(self):
        job_id = self.submit("--no-requeue", "--qos", "over", "-n", "1", *self.resume)
        self.begun(1)
        self.take_all(0)
        done = self.overcap("wait", job_id, deadline=PATIENCE)
        self.assertNotIn(done.status, (0, 124), str(done))
        job = self.job(job_id)
        self.assertEqual((job["state"], job["reason"], job["attempt"]), ("cancelled", "preempted", 1), job)
        self.assertRegex(self.rank_log(job_id), r"saved step [1-9]")
        self.assertFalse((self.folder(job_id) / "attempt-2").exists())


class InAScript(PreemptRig):
    cluster = {"nodes": 1, "gpus": 2, "preemption": "qos", "accounting": Accounting(labs={"lab-a": None})}

    def script(self, *directives, words="usr1", before="", flags=("-n", "0")):
        lines = ["#!/bin/bash", "#SBATCH -n 1 -N 1 --requeue", *directives, "trap 'echo over' EXIT", before,
                 f"srun -u {NODE_PYTHON} -S by_hand.py {words}"]
        self.write("job.sh", "\n".join(lines) + "\n")
        return self.submit(*flags, "job.sh")

    def check_resumed(self, job_id):
        step, _ = self.begun(2)
        self.assertGreater(step, 0)
        self.assertEqual(int((self.facts / "saved").read_text()), step, "it goes on at the very step")
        self.finished(job_id, attempts=2)

    def test_a_program_that_requeues_itself_at_the_warning(self):
        job_id = self.script("#SBATCH --signal=USR1@60 --time=1")
        self.begun(1)
        self.check_resumed(job_id)

    def check_preempted(self, words):
        job_id = self.script("#SBATCH --signal=USR1@60", words=words, flags=("-n", "2", "--qos", "over"))
        self.begun(1)
        self.slurm.submit("-A", "lab-a", "-N1", "--gpus-per-node=2", "-o", "/dev/null", "--wrap", "exec sleep 1")
        self.check_resumed(job_id)

    def test_preempted_a_program_that_saves_on_term_goes_on_at_its_step(self):
        self.check_preempted("")

    def test_preempted_a_program_that_handles_both_goes_on_at_its_step(self):
        self.check_preempted("usr1")

    def test_a_program_that_saves_on_term_only_is_not_killed_by_the_warning(self):
        job_id = self.script("#SBATCH --signal=USR1@60", words="")
        self.begun(1)
        self.slurm.must(["scancel", "--signal=USR1", "--batch", str(self.slurm_id(job_id))])
        time.sleep(2)
        self.assertEqual(self.job(job_id)["state"], "running")
        self.slurm.must(["scontrol", "requeue", str(self.slurm_id(job_id))])
        self.check_resumed(job_id)

    def test_b_sends_the_warning_to_the_shell_alone(self):
        job_id = self.script("#SBATCH --signal=B:USR1@60", before='trap "echo told > $FACTS/shell; touch $FACTS/finish" USR1')
        self.begun(1)
        self.slurm.must(["scancel", "--signal=USR1", "--batch", str(self.slurm_id(job_id))])
        time.sleep(2)
        self.assertFalse((self.facts / "saved").exists(), "the program heard nothing")
        (self.facts / "finish").touch()
        self.assertEqual(self.overcap("wait", job_id, deadline=PATIENCE).status, 0)
        self.assertEqual(self.fact("shell"), "told")


class Told(PreemptRig):
    """The signals as Slurm sends them to the batch script, without a second job."""
    cluster = {"nodes": 1, "gpus": 0}
    settings = "partition: short"

    def tell(self, job_id, name):
        self.slurm.must(["scancel", f"--signal={name}", "--batch", str(self.slurm_id(job_id))])

    def test_a_warning_reaches_the_ranks_soon_and_they_may_go_on(self):
        code = ("import os, signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'%d\\n' % time.time_ns()))\n"
                "open(os.environ['FACTS'] + '/ready', 'w').write('1\\n')\n"
                "while not os.path.exists(os.environ['FACTS'] + '/finish'): time.sleep(0.01)")
        job_id = self.submit("--requeue", "--", NODE_PYTHON, "-S", "-c", code)
        self.fact("ready")
        for number in range(3):
            began = time.time_ns()
            self.tell(job_id, "USR1")
            self.until(lambda: self.rank_log(job_id).count("\n") == number + 1, "the warning")
            self.assertLess(int(self.rank_log(job_id).split()[-1]) - began, 3_000_000_000)
        self.finished(job_id, attempts=1)

    def test_ranks_that_end_at_a_warning_are_requeued(self):
        job_id = self.submit("--requeue", "--requeue-on-timeout", *self.resume)
        self.begun(1)
        self.tell(job_id, "USR1")
        step, _ = self.begun(2)
        self.assertGreater(step, 0)
        self.finished(job_id, attempts=2)
        self.assertEqual(self.scontrol(job_id)["Restarts"], "1")

    def test_one_that_ends_at_once_is_not_sent_back_for_ever(self):
        job_id = self.submit("--requeue", *self.resume)
        for attempt in (1, 2, 3):
            self.begun(attempt)
            self.tell(job_id, "TERM")
        done = self.overcap("wait", job_id, deadline=PATIENCE)
        self.assertNotIn(done.status, (0, 124), str(done))
        job = self.job(job_id)
        self.assertEqual((job["state"], job["attempt"]), ("cancelled", 3), job)
        self.assertEqual([len(self.events(job_id, attempt, "requeue")) for attempt in (1, 2, 3)], [1, 1, 0])
        self.assertTrue(self.events(job_id, 3, "note"), "and says why")
        self.assertFalse((self.folder(job_id) / "attempt-4").exists())

    def test_abort_of_a_job_with_requeue_is_no_preemption(self):
        job_id = self.submit("--requeue", *self.resume)
        self.begun(1)
        self.ok("abort", job_id)
        self.assertEqual((self.job(job_id)["state"], self.job(job_id)["attempt"]), ("cancelled", 1))
        self.assertEqual(self.overcap("wait", job_id).status, 130)

    def test_the_time_limit_requeues_when_asked_to_and_else_ends_it(self):
        """Slurm counts minutes and looks every half: with a warning of a minute it comes at its first look."""
        again = self.submit("--requeue-on-timeout", "--time", "1m", "--warn", "60s", *self.resume)
        over = self.submit("--time", "1m", *shell('echo "$$" > "$FACTS/over"; exec sleep 300'))
        self.assertEqual(self.begun(1)[0], 0)
        self.assertGreater(self.begun(2)[0], 0)
        self.assertEqual([event["why"] for event in self.events(again, 1, "requeue")], ["time limit"])
        self.finished(again, attempts=2)
        done = self.overcap("wait", over, deadline=PATIENCE)
        self.assertEqual(done.status, 124, str(done))
        job = self.job(over)
        self.assertEqual(job["state"], "failed", job)
        self.assertIn("time limit", job["reason"], job)


if __name__ == "__main__":
    main()
