# SPDX-License-Identifier: Apache-2.0
"""How ranks are told that the end is near: a warning (USR1) goes to what handles it and kills nothing, TERM comes to all with the
whole grace time, and Ctrl-C comes as INT; the same for launches, elastic groups, jobs and batch scripts."""
import os
import signal
import time

from launch_rig import LaunchRig
from overcap_rig import PYTHON, REPOSITORY, main, shell
from rigs.counting_job import COUNTING_JOB
from system_rig import SystemRig
from test_policy_engine import PolicyRig

# Tells facts/RANK what happens to it; needs the seconds of its argument to save.
SAVER = """
import os, signal, sys, time
def tell(text):
    with open(os.path.join(os.environ["FACTS"], "rank-" + os.environ.get("RANK", "0")), "a") as file:
        file.write(text + "\\n")
def save():
    time.sleep(float(sys.argv[1]))
    tell("saved")
def on_term(*_):
    tell("got TERM")
    save()
    os._exit(7)
signal.signal(signal.SIGTERM, on_term)
if "usr1" in sys.argv:
    signal.signal(signal.SIGUSR1, lambda *_: tell("got USR1"))
try:
    if os.environ.get("RANK", "0") == os.environ.get("FAILS", "-"):
        while not os.path.exists(os.path.join(os.environ["FACTS"], "rank-0")): time.sleep(0.01)
        sys.exit(9)
    tell("ready")
    time.sleep(100)
except KeyboardInterrupt:
    tell("got INT")
    save()
    sys.exit(8)
"""


class Stopping(LaunchRig):
    def setUp(self):
        super().setUp()
        self.write("saver.py", SAVER)
        self.declare_no_gpus()

    def lines(self, rank=0):
        path = self.facts / f"rank-{rank}"
        return path.read_text().splitlines() if path.exists() else []

    def until_ready(self, ranks=2):
        self.until(lambda: all(self.lines(rank)[:1] == ["ready"] for rank in range(ranks)), "the ranks to be ready", 60)

    def stopped(self, sign, *args, seconds="1.5"):
        process = self.start("launch", *args, "saver.py", seconds)
        self.until_ready()
        process.send_signal(sign)
        return self.ended_launch(process, 40)

    def check_saved(self, word, ranks=2):
        for rank in range(ranks):
            self.assertEqual(self.lines(rank), ["ready", word, "saved"], f"rank {rank}")

    def test_term_to_a_group_of_torch_lets_its_ranks_save(self):
        self.assertEqual(self.stopped(signal.SIGTERM, "--nproc-per-node", "2").status, 143)
        self.check_saved("got TERM")

    def test_ctrl_c_reaches_the_ranks_of_a_group_as_an_interrupt(self):
        self.assertEqual(self.stopped(signal.SIGINT, "--nproc-per-node", "2").status, 130)
        self.check_saved("got INT")

    def test_term_to_a_launch_lets_its_ranks_save(self):
        self.assertEqual(self.stopped(signal.SIGTERM, "-n", "2", PYTHON).status, 143)
        self.check_saved("got TERM")

    def test_ctrl_c_reaches_the_ranks_of_a_launch_as_an_interrupt(self):
        self.assertEqual(self.stopped(signal.SIGINT, "-n", "2", PYTHON).status, 130)
        self.check_saved("got INT")

    def test_what_ignores_an_interrupt_gets_term(self):
        process = self.start("launch", "-n", "1", *shell(f"{PYTHON} saver.py 0.1 & wait"))
        self.until_ready(1)
        process.send_signal(signal.SIGINT)
        self.ended_launch(process, 40)
        self.check_saved("got TERM", 1)

    def test_a_warning_to_a_group_reaches_what_handles_it_and_kills_nothing(self):
        process = self.start("launch", "--nproc-per-node", "2", "saver.py", "0.1")
        self.until_ready()
        process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        self.assertEqual(self.lines(), ["ready"])
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended_launch(process, 40).status, 143)
        self.check_saved("got TERM")

    def test_a_peer_has_thirty_seconds_when_another_fails(self):
        done = self.launch("--nproc-per-node", "2", "saver.py", "5", env={"FAILS": "1"}, deadline=60)
        self.assertEqual(done.status, 9, str(done))
        self.check_saved("got TERM", 1)

    def test_an_abort_lets_the_ranks_of_a_job_save(self):
        job = self.submit("-n", "0", "--ranks-per-node", "2", PYTHON, "saver.py", "1.5")
        self.until_ready()
        self.ok("abort", job, deadline=60)
        self.check_saved("got TERM")

    def test_an_abort_lets_the_ranks_of_an_elastic_job_save(self):
        job = self.submit("-n", "0", "--nodes", "1:2", "--ranks-per-node", "2", PYTHON, "saver.py", "4.5")
        self.until_ready()
        self.ok("abort", job, deadline=60)
        self.check_saved("got TERM")
        self.assertEqual(self.ended(job, 60)["state"], "cancelled")


class TimeLimits(LaunchRig):
    """At its time limit a job goes on where it was, as on Slurm."""

    def setUp(self):
        super().setUp()
        self.declare_no_gpus()
        self.write("resume.py", COUNTING_JOB)
        self.env.update(PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1")

    def said(self, job, attempt):
        path = self.home / "jobs" / job / f"attempt-{attempt}" / "rank-0.log"
        return path.read_text().splitlines() if path.exists() else []

    def check_resumed(self, *flags):
        job = self.submit("-n", "0", "--one-rank-per-node", "--requeue-on-timeout", *flags, "--", PYTHON, "-S", "resume.py")
        self.until(lambda: self.said(job, 2), "the second attempt", 60)
        (self.facts / "finish").touch()
        record = self.ended(job, 60)
        self.assertEqual((record["state"], record["attempt"]), ("succeeded", 2), record)
        saved = self.said(job, 1)[1].removeprefix("saved step ")
        self.assertEqual(self.said(job, 2)[0], f"attempt 2 begins at step {saved}")
        return job

    def test_warned_before_it(self):
        began = time.monotonic()
        self.check_resumed("--time", "60s", "--warn", "57s")
        self.assertLess(time.monotonic() - began, 40, "the warning came, not the limit")

    def test_without_a_warning_term_is_enough(self):
        self.check_resumed("--time", "3s")

    def test_the_warning_ends_nothing(self):
        job = self.submit("-n", "0", "--one-rank-per-node", "--time", "60s", "--warn", "59s", *shell("sleep 3; echo well"))
        self.assertEqual(self.ended(job, 60)["state"], "succeeded")
        self.assertEqual(self.said(job, 1), ["well"])

    def test_tasks_of_an_array_cannot(self):
        self.refused("submit", "-n", "0", "--array", "0-1", "--requeue-on-timeout", "--time", "5s", "true", says="tasks of an array")


class TimeLimitsOfASharedMachine(SystemRig):
    def test_a_job_goes_back_to_the_queue_where_that_was_asked_for(self):
        job_id = self.submit("--requeue-on-timeout", "--time", "2s", "-n", "0", *shell('[ "$OVERCAP_ATTEMPT" = 2 ] || exec sleep 600'))
        record = self.ended(job_id)
        self.assertEqual((record["state"], record["attempt"]), ("succeeded", 2), record)


class GivingWay(PolicyRig):
    """A job that must give way on a shared machine; its grace is 20 s, that of jobs 10 s."""

    def setUp(self):
        super().setUp()
        self.write("saver.py", SAVER)

    def lines(self, name="rank-0"):
        path = self.facts / name
        return path.read_text().splitlines() if path.exists() else []

    def give_way(self, *command, shape=("-n", "4", "--one-rank-per-node")):
        job = self.submit("-p", "overcap", "--requeue", *shape, *command)
        self.until(lambda: self.lines(), "the job to be ready", 60)
        owner = self.hold_gpus("short", 2, "language")
        began = time.monotonic()
        self.until(lambda: self.job(owner)["state"] == "running", "the owner to run", 60)
        return job, owner, time.monotonic() - began

    def test_one_that_saves_on_term_has_the_whole_grace_time(self):
        job, _, seconds = self.give_way(PYTHON, "saver.py", "12")
        self.assertEqual(self.lines(), ["ready", "got TERM", "saved"])
        self.assertLess(seconds, 20, "TERM came with the warning")
        self.assertEqual((self.job(job)["state"], self.job(job)["preemptions"]), ("queued", 1))

    def test_one_that_handles_the_warning_is_warned_first(self):
        self.give_way(PYTHON, "saver.py", "0.1", "usr1")
        self.assertEqual(self.lines(), ["ready", "got USR1", "got TERM", "saved"])

    def test_the_ranks_of_an_elastic_job_are_warned_and_none_dies_of_it(self):
        self.give_way(PYTHON, "saver.py", "0.1", "usr1", shape=("--nodes", "2:2", "--gpus-per-node", "2", "--ranks-per-node", "1"))
        for rank in range(2):
            self.assertEqual(self.lines(f"rank-{rank}")[:2], ["ready", "got USR1"])
            self.assertEqual(self.lines(f"rank-{rank}")[-2:], ["got TERM", "saved"])

    def test_a_script_is_not_killed_by_the_warning_that_its_program_handles(self):
        self.write("job.sh", f"#!/bin/bash\n#SBATCH -p overcap\ntrap 'echo bye' EXIT\n{PYTHON} saver.py 0.1 usr1\necho $? >> $FACTS/shell\n")
        job = self.submit("-n", "4", "--requeue", "job.sh")
        self.until(lambda: self.lines(), "the program to be ready", 60)
        owner = self.hold_gpus("short", 2, "language")
        self.until(lambda: "got USR1" in self.lines(), "the warning", 60)
        time.sleep(1)
        self.assertEqual(self.job(job)["state"], "running", "neither the shell nor its program has died")
        self.until(lambda: self.job(owner)["state"] == "running", "the owner to run", 60)
        self.assertEqual(self.lines()[:2], ["ready", "got USR1"])
        self.assertIn("saved", self.lines())


del PolicyRig

if __name__ == "__main__":
    main()
