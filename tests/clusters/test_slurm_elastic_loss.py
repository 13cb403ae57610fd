# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs on a real Slurm that lose more than they can bear: too few nodes, the first node, or all of them to a preemption."""
from slurm_jobs_rig import NODE_PYTHON, REPOSITORY, SlurmJobsRig, main, shell
from rigs.slurm_accounts import Accounting

DEADLINE_SECONDS = 400
PATIENCE = 120
# Each rank tells where it runs; then it stays until it may go.
TELL = 'echo "$SLURMD_NODENAME $WORLD_SIZE" > "$FACTS/at-$OVERCAP_ATTEMPT-$OVERCAP_ELASTIC_EPOCH-$RANK"; '
STAY = 'while [ ! -e "$FACTS/go" ]; do sleep 0.02; done'

# All ranks count together, as training does: nobody begins a step before all have ended the one before.
TRAIN = """
from overcap import checkpoint
import os, sys, time
import overcap
facts, rank, world = os.environ["FACTS"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
attempt, epoch = os.environ["OVERCAP_ATTEMPT"], os.environ["OVERCAP_ELASTIC_EPOCH"]
state = checkpoint.load({"step": 0})
with open(f"{facts}/begin-{attempt}-{epoch}-{rank}.new", "w") as file:
    file.write(f"{state['step']}\\n")
os.rename(f"{facts}/begin-{attempt}-{epoch}-{rank}.new", f"{facts}/begin-{attempt}-{epoch}-{rank}")
while not os.path.exists(facts + "/finish"):
    time.sleep(0.01)
    state = {"step": state["step"] + 1}
    overcap.heartbeat(state["step"])
    if checkpoint.should_stop():
        with open(f"{facts}/told-{attempt}-{rank}", "w") as file:
            file.write(f"{state['step']}\\n")
        checkpoint.save(state)
        checkpoint.exit()
"""


class ElasticLossRig(SlurmJobsRig):
    def at(self, attempt, epoch, ranks):
        """The nodes of a group, once all its ranks run."""
        def places():
            names = [self.facts / f"at-{attempt}-{epoch}-{rank}" for rank in range(ranks)]
            words = [name.read_text().split() for name in names if name.exists()]
            return words if len(words) == ranks and all(len(word) == 2 for word in words) else None
        found = self.until(places, f"{ranks} ranks of epoch {epoch} in attempt {attempt}", PATIENCE)
        self.assertEqual({world for _, world in found}, {str(ranks)})
        return sorted(name for name, _ in found)

    def said(self, job_id):
        return "\n".join(f"--- {path}\n{path.read_text(errors='replace')[-2000:]}" for path in
                         sorted(self.folder(job_id).rglob("*.log")) + sorted(self.folder(job_id).rglob("*.jsonl")))

    def finished(self, job_id, attempts):
        (self.facts / "go").touch()
        (self.facts / "finish").touch()
        record = self.ended(job_id, PATIENCE)
        self.assertEqual((record["state"], record["attempt"]), ("succeeded", attempts), self.said(job_id))

    def ends(self, job_id, attempt):
        return [event for event in self.report(job_id, attempt) if event["e"] == "end"]


class Lost(ElasticLossRig):
    cluster = {"nodes": 3, "gpus": 0, "kill_wait": 5}

    def setUp(self):
        super().setUp()
        self.slurm.wait_idle(self.slurm.names)
        self.broken = True

    def test_with_fewer_than_the_least_nodes_it_is_lost_and_starts_again_when_there_are_enough(self):
        job_id = self.submit("--nodes", "2:2", "-n", "0", "--cpus", "1", "--requeue", *shell(TELL + STAY),
                             env={"OVERCAP_JOIN_TIMEOUT": "3s"})
        first = self.at(1, 1, 2)
        self.slurm.kill_node(next(name for name in first if name != self.head(job_id)))
        self.until(lambda: self.ends(job_id, 1), "the attempt to end", PATIENCE)
        (end,) = self.ends(job_id, 1)
        self.assertEqual(end["state"], "lost", self.said(job_id))
        self.assertIn("only 1 of at least 2 nodes", end["reason"])
        self.assertIn("was lost", end["reason"])
        lost = ({*self.slurm.names} & {*first}) - {self.head(job_id)}
        self.slurm.down_node(*lost)
        second = self.at(2, 1, 2)
        self.assertFalse(lost & {*second}, "the third node stands in")
        self.finished(job_id, attempts=2)

    def test_without_requeue_too_few_nodes_end_it_as_lost(self):
        job_id = self.submit("--nodes", "3:3", "-n", "0", "--cpus", "1", "--no-requeue", *shell(TELL + STAY),
                             env={"OVERCAP_JOIN_TIMEOUT": "2s"})
        names = self.at(1, 1, 3)
        self.slurm.kill_node(next(name for name in names if name != self.head(job_id)))
        record = self.ended(job_id, PATIENCE)
        self.assertEqual((record["state"], record["attempt"]), ("lost", 1), self.said(job_id))
        self.assertIn("only 2 of at least 3 nodes", record["reason"])
        self.assertEqual(self.overcap("wait", job_id).status, 75)

    def test_when_its_first_node_is_lost_it_starts_again_without_it(self):
        job_id = self.submit("--nodes", "2:3", "-n", "0", "--cpus", "1", "--requeue", *shell(TELL + STAY),
                             env={"OVERCAP_JOIN_TIMEOUT": "3s"})
        self.assertEqual(self.at(1, 1, 3), ["n1", "n2", "n3"])
        head = self.head(job_id)
        self.slurm.fail_node(head)
        self.assertEqual(self.at(2, 1, 2), sorted({"n1", "n2", "n3"} - {head}))
        (end,) = self.ends(job_id, 1)
        self.assertEqual((end["state"], end["reason"]), ("lost", f"its first node, '{head}', was lost"))
        self.finished(job_id, attempts=2)

    def test_without_requeue_the_loss_of_its_first_node_ends_it(self):
        job_id = self.submit("--nodes", "1:2", "-n", "0", "--cpus", "1", "--no-requeue", *shell(TELL + STAY),
                             env={"OVERCAP_JOIN_TIMEOUT": "2s"})
        self.at(1, 1, 2)
        head = self.head(job_id)
        self.slurm.fail_node(head)
        record = self.ended(job_id, PATIENCE)
        self.assertEqual((record["state"], record["reason"]), ("lost", f"its first node, '{head}', was lost"), self.said(job_id))

    def head(self, job_id):
        return self.scontrol(job_id)["BatchHost"]


class Preempted(ElasticLossRig):
    cluster = {"nodes": 2, "gpus": 2, "preemption": "qos", "accounting": Accounting(labs={"lab-a": None})}
    settings = "partition: short, account: lab-a"

    def test_its_ranks_save_and_it_goes_on_where_they_had_saved(self):
        self.write("train.py", TRAIN)
        self.env.update(PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1")
        job_id = self.submit("--requeue", "--qos", "over", "--nodes", "1:2", "--gpus-per-node", "1", "--", NODE_PYTHON, "-S", "train.py")
        for rank in range(2):
            self.assertEqual(self.fact(f"begin-1-1-{rank}", PATIENCE).strip(), "0", self.said(job_id))
        lab = self.slurm.submit("-A", "lab-a", "-N2", "--gpus-per-node=2", "-o", "/dev/null", "--wrap", "exec sleep 1")
        self.slurm.wait_state(lab, "RUNNING", "COMPLETING", "COMPLETED", seconds=60)
        saved = [int(self.fact(f"told-1-{rank}", PATIENCE)) for rank in range(2)]
        begun = {int(self.fact(f"begin-2-1-{rank}", PATIENCE)) for rank in range(2)}
        self.assertEqual(begun, {saved[0]}, self.said(job_id))  # rank 0 is the one that writes
        self.assertGreater(saved[0], 0)
        self.assertEqual([end["state"] for end in self.ends(job_id, 1)], ["preempted"])
        self.finished(job_id, attempts=2)


if __name__ == "__main__":
    main()
