# SPDX-License-Identifier: Apache-2.0
"""Jobs on a real Slurm whose nodes do not see the submitter's root: all goes through a store.

The nodes of the rig share this machine's files. So the root is taken away while a job runs: what still works needs none of it.
"""
import contextlib
import json
import shutil

from slurm_jobs_rig import DEADLINE, NODE_PYTHON, SlurmJobsRig, main, shell

DEADLINE_SECONDS = 400
COUNT = "import time\nfor i in range(5):\n print('line', i, flush=True); time.sleep(0.3)"
LINES = "".join(f"line {i}\n" for i in range(5))


class WithoutASharedFolder(SlurmJobsRig):
    def setUp(self):
        super().setUp()
        self.store, self.node = self.root / "store", self.root / "node"
        program = self.root / "bin" / "overcap"
        program.parent.mkdir()
        shutil.copy2(self.binary, program)
        self.configure(f"partition: short, store: {self.store}, node_folder: {self.node}, node_program: {program}")
        self.write("train.py", COUNT)

    @contextlib.contextmanager
    def no_root(self):
        """While the nodes work the root is not there."""
        hidden = self.root / "hidden"
        self.home.rename(hidden)
        try:
            yield hidden
        finally:
            self.assertFalse(self.home.exists(), "somebody has made the root again")
            hidden.rename(self.home)

    def run_hidden(self, job):
        """From release to the end without the root."""
        number = self.slurm_id(job)
        with self.no_root():
            self.slurm.must(["scontrol", "release", str(number)])
            self.until(lambda: str(number) not in self.slurm.must(["squeue", "--noheader", "-o", "%A"]).split(), "the end", 3 * DEADLINE)

    def test_a_job_needs_nothing_of_the_root(self):
        job = self.submit("--hold", NODE_PYTHON, "train.py")
        self.assertNotIn(str(self.home), (self.folder(job) / "script.sh").read_text())
        self.run_hidden(job)
        self.assertEqual(self.overcap("wait", job).status, 0)
        self.assertEqual(self.ok("logs", job).out, LINES)
        self.assertEqual(self.ok("logs", "--tail", "1", job).out, "line 4\n")
        self.assertIn("line 4", self.ok("query", job).out)
        self.assertEqual(self.job(job)["state"], "succeeded")
        self.assertFalse((self.folder(job) / "attempt-1/rank-0.log").exists())
        self.assertEqual(list((self.node / "jobs").iterdir()), [], "the node has nothing left")
        self.ok("rm", job)
        self.assertFalse((self.store / "jobs" / job / "spec.json").exists())

    def test_it_is_followed_while_it_runs(self):
        job = self.submit(NODE_PYTHON, "train.py")
        followed = self.overcap("logs", "-f", job, deadline=3 * DEADLINE)
        self.assertEqual((followed.status, followed.out), (0, LINES), str(followed))

    def test_failures_and_aborts_are_told(self):
        failing = self.submit("--ranks-per-node", "2", "--cpus", "2", *shell("echo rank $RANK; exit $((RANK * 3))"))
        self.assertEqual(self.overcap("wait", failing).status, 3)
        record = self.job(failing)
        self.assertEqual((record["state"], record["first_failed_rank"]), ("failed", 1), record)
        self.assertEqual(self.ok("logs", "--rank", "1", failing).out, "rank 1\n")
        waiting = self.submit(*shell("echo begun; sleep 600"))
        self.until(lambda: self.overcap("logs", waiting).out == "begun\n", "the log", 2 * DEADLINE)
        self.ok("abort", waiting, "--reason", "no more")
        self.assertEqual(self.overcap("wait", waiting, deadline=3 * DEADLINE).status, 130)
        record = self.job(waiting)
        self.assertEqual((record["state"], record["reason"]), ("cancelled", "no more"), record)

    def test_a_requeued_job_goes_on_with_the_next_attempt(self):
        flag = self.facts / "again"
        job = self.submit("--requeue", *shell(f'echo "attempt $OVERCAP_ATTEMPT"; [ -e {flag} ] || sleep 600'))
        self.until(lambda: self.overcap("logs", job).out == "attempt 1\n", "the first attempt", 2 * DEADLINE)
        flag.touch()
        self.slurm.must(["scontrol", "requeue", str(self.slurm_id(job))])
        self.assertEqual(self.overcap("wait", job, deadline=6 * DEADLINE).status, 0)
        self.assertEqual(self.job(job)["attempt"], 2)
        self.assertEqual(self.ok("logs", job).out, "attempt 2\n")
        self.assertEqual(self.ok("logs", "--attempt", "1", job).out, "attempt 1\n")

    def test_arrays(self):
        job = self.submit("--array", "0-2", *shell("echo task $OVERCAP_TASK_ID; exit $((OVERCAP_TASK_ID == 1))"))
        self.overcap("wait", job, deadline=3 * DEADLINE)
        record = self.job(job)
        self.assertEqual((record["tasks"]["succeeded"], record["tasks"]["failed"], record["first_failed_task"]), (2, 1, 1), record)
        for task in range(3):
            self.assertEqual(self.ok("logs", "--task", str(task), job).out, f"task {task}\n")

    def test_ranks_on_two_nodes(self):
        job = self.submit("--nodes", "2", NODE_PYTHON, "train.py")
        self.assertEqual(self.overcap("wait", job, deadline=3 * DEADLINE).status, 0, self.job(job))
        for rank in range(2):
            self.assertEqual(self.ok("logs", "--rank", str(rank), job).out, LINES)


if __name__ == "__main__":
    main()
