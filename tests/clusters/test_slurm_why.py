# SPDX-License-Identifier: Apache-2.0
"""`why` of jobs on a real Slurm cluster: when they will start, what would start sooner, and what came of it."""
import datetime
import json
import time

from slurm_jobs_rig import SlurmJobsRig, main

from rigs.machines import wait_until
from rigs.slurm_accounts import Accounting

DEADLINE_SECONDS = 400
LIMIT = 20 * 60


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class SlurmWhy(SlurmJobsRig):
    cluster = {"nodes": 2, "gpus": [{"a40": 4}, {"rtx_6000": 4}]}

    @classmethod
    def setUpClass(cls):
        cls.cluster = {**cls.cluster, "accounting": Accounting(labs={"lab-a": 4, "lab-b": 8}, members={})}
        super().setUpClass()
        for _ in range(3):
            cls.slurm.submit("-A", "lab-b", "-t", "20", "--wrap", "sleep 1")
        wait_until(lambda: cls.slurm.must(["sacct", "-X", "-n", "-P", "-o", "State,Partition,TimelimitRaw", "-s", "CD", "-S", "now-1hours", "-E",
                                           "now"]).count("COMPLETED|short|20") == 3,
                   "the accounts to know three runs", 90, pause=0.5)

    def sbatch(self, lab, *words):
        return self.slurm.submit("-A", lab, "-t", str(LIMIT // 60), *words, "--wrap", "sleep 1200")

    def running(self, lab, *words):
        job = self.sbatch(lab, *words)
        self.slurm.wait_state(job, "RUNNING")
        began = time.time()
        time.sleep(5)  # one that is younger than the runs that are known, of a second or two, would be taken for one of them
        return job, began

    def why(self, job, word):
        last = []

        def there():
            done = self.overcap("why", str(job), "--json")
            last[:] = [str(done)]
            told = json.loads(done.out) if done.status == 0 else {}
            return told.get("reason") == word and told
        try:
            return wait_until(there, f"job {job} to wait for {word}", 60, pause=0.5)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {last}") from None

    def record(self):
        rows = json.loads(self.ok("why", "--record", "--json").out)["promises"]
        return next((row for row in rows if row["partition"] == "short"), None)

    def test_a_job_under_a_full_cap_is_told_when_and_that_overcap_starts_now(self):
        first, began = self.running("lab-a", "--gpus=rtx_6000:4")
        waiting = self.sbatch("lab-a", "--gpus=a40:2")
        told = self.why(waiting, "AssocGrpGRES")
        self.assertEqual((told["cap"]["cap"], told["cap"]["used"]), (4, 4))
        self.assertRegex("\n".join(told["facts"]), r"the earliest to end is \S+'s 4xrtx_6000 at .* \(limit\)")
        self.assertAlmostEqual(seconds(told["start"]["p50"]), began + LIMIT, delta=120)
        self.assertGreaterEqual(told["start"]["past_runs"], 3, "runs are learned from the accounts")
        self.assertTrue(any(offer["change"] == "overcap" and offer["now"] for offer in told["offers"]), told)
        self.assertIn("no new job goes ahead of it", told["start"]["assumed"])
        said = self.ok("why", str(waiting)).out
        self.assertRegex(said, r"(?m)^start: by \S+.* in half \(P50\) and by .* \(P90\) of 200 replays of the queue$")
        self.assertRegex(said, r"(?m)^sooner:\n(  .*\n)*  overcap: now")
        before = self.record()
        self.assertGreaterEqual(before["open"], 1)
        self.slurm.must(["scancel", str(first)])
        self.slurm.wait_state(waiting, "RUNNING")
        after = wait_until(lambda: (row := self.record())["open"] < before["open"] and row, "the promise to be judged", 60, pause=0.5)
        self.assertGreater((after["p50_held"], after["p90_held"]), (before["p50_held"], before["p90_held"]), "it started before its time")
        self.assertEqual(after["p90_broken"], 0, after)

    def test_a_job_that_waits_for_a_type_is_told_of_another_that_is_free(self):
        _, began = self.running("lab-b", "--gpus=a40:3")
        waiting = self.sbatch("lab-b", "--gpus=a40:2")
        told = self.why(waiting, "Resources")
        self.assertAlmostEqual(seconds(told["start"]["p50"]), began + LIMIT, delta=120)
        now = [offer["change"] for offer in told["offers"] if offer["now"]]
        self.assertIn("rtx_6000 instead of a40", now)
        self.assertIn("1 GPU instead of 2", now)
        self.assertIn("lab 'lab-b' uses 3 of 8 GPUs", told["facts"])

    def test_a_job_that_was_cancelled_does_not_count(self):
        self.running("lab-b", "--gpus=a40:4")
        waiting = self.sbatch("lab-b", "--gpus=a40:1")
        self.why(waiting, "Resources")
        before = self.record()
        self.slurm.must(["scancel", str(waiting)])
        after = wait_until(lambda: (row := self.record())["void"] > before["void"] and row, "the promise to be void", 60, pause=0.5)
        self.assertEqual((after["p50_broken"], after["p90_broken"]), (before["p50_broken"], before["p90_broken"]))


class NothingStarts(SlurmJobsRig):
    """Why a job waits whose partition is down, whose nodes are drained, or that was submitted a moment ago."""
    cluster = {"nodes": 1, "gpus": 2}

    def told(self, job, holds, what):
        """The answer, once `holds` is true of it; the nodes and partitions that it rests on are asked for every 12 s at most."""
        last = []

        def there():
            done = self.overcap("why", str(job), "--json")
            last[:] = [str(done)]
            if done.status == 3:
                return None  # a job of Slurm's own that is newer than the last answer
            told = json.loads(done.out)
            return holds(told) and told
        try:
            return wait_until(there, what, 60, pause=0.5)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {last}") from None

    def partition(self, state):
        self.slurm.must(["scontrol", "update", "PartitionName=debug", f"State={state}"])

    def test_a_partition_that_is_down_promises_nothing_until_it_is_up(self):
        self.slurm.wait_state(self.slurm.submit("--gpus=2", "--wrap", "sleep 600"), "RUNNING")
        self.partition("DOWN")
        self.addCleanup(self.partition, "UP")
        waiting = self.slurm.submit("-p", "debug", "--gpus=1", "-t", "10", "--wrap", "sleep 600")
        down = self.told(waiting, lambda told: told["no_promise"] == "no promise: partition 'debug' is down", "it to be down")
        self.assertIsNone(down["start"])
        self.assertIn("partition 'debug' is down", down["facts"])
        self.partition("UP")
        # Within the minute for which that waits: the state is asked for with the nodes, not every 10 minutes.
        self.told(waiting, lambda told: not any("is down" in line for line in [told["no_promise"], *told["facts"]]), "it to be up")

    def test_drained_nodes_are_named_as_the_reason(self):
        self.slurm.drain_node("n1", reason="fan")
        self.addCleanup(self.slurm.resume_node, "n1")
        waiting = self.slurm.submit("--gpus=1", "-t", "10", "--wrap", "sleep 600")
        told = self.told(waiting, lambda told: told["no_promise"] == "no promise: the nodes that it needs take no jobs now", "the reason")
        self.assertIsNone(told["start"])

    def test_a_job_is_explained_right_after_its_submit(self):
        self.slurm.wait_state(self.slurm.submit("--gpus=2", "--wrap", "sleep 600"), "RUNNING")
        first = self.submit("-n", "1", "true")
        self.ok("why", first)  # the controller was asked just now
        second = self.submit("-n", "1", "true")
        said = self.ok("why", second).out
        self.assertNotIn("nothing is known yet", said)
        self.assertIn("partition 'short': 0 of 2 GPUs free", said)


if __name__ == "__main__":
    main()
