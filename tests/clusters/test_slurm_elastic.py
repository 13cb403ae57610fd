# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs on a real Slurm: `submit --nodes MIN:MAX`, `srun overcap launch --rdzv auto`, a node that leaves and one that is lost."""
import json
import pathlib
import signal

from slurm_jobs_rig import SlurmJobsRig, main, shell
from elastic_rig import STAY, TELL

DEADLINE_SECONDS = 300
PATIENCE = 120
WHERE = 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" > "$FACTS/where-$OVERCAP_ELASTIC_EPOCH-$RANK"; '
# Slurm itself sends TERM to all processes of a job that it ends; else USR1 comes first.
WARNED = 'trap "echo warned > $FACTS/warned-$RANK; exit 0" USR1 TERM; '


class SlurmElastic(SlurmJobsRig):
    cluster = {"nodes": 3, "gpus": 2, "kill_wait": 10}

    def setUp(self):
        super().setUp()
        self.slurm.wait_idle(self.slurm.names)  # a node that still cleans up would not be given

    def told(self, epoch, rank):
        path = self.facts / f"{epoch}-{rank}"
        return dict(line.split("=", 1) for line in path.read_text().splitlines()) if path.exists() else None

    def until_epoch(self, epoch, ranks, what=None):
        try:
            self.until(lambda: all(self.told(epoch, rank) for rank in range(ranks)), f"{ranks} ranks of epoch {epoch}", PATIENCE)
        except AssertionError as error:
            self.fail(f"{error}\n{what() if what else ''}")
        self.assertEqual({self.told(epoch, rank)["WORLD_SIZE"] for rank in range(ranks)}, {str(ranks)})

    def all_said(self, job_id):
        return "\n".join(f"--- {path}\n{path.read_text(errors='replace')[-3000:]}" for path in
                         sorted(self.folder(job_id).rglob("*.log")) + sorted(self.folder(job_id).rglob("*.jsonl")))

    def where(self, epoch, ranks):
        return [(self.facts / f"where-{epoch}-{rank}").read_text().split() for rank in range(ranks)]

    def go(self):
        (self.facts / "go").touch()

    def agents(self):
        """{node: process} of the agents (not their guards) that this test has started."""
        found = {}
        for pid in self.processes():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                env = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                guard = "guard" in pathlib.Path(f"/proc/{pid}/comm").read_text()
            except OSError:
                continue
            node = [entry.partition(b"=")[2].decode() for entry in env if entry.startswith(b"SLURMD_NODENAME=")]
            if not guard and words[1:2] == [b"launch"] and node:
                found[node[0]] = pid
        return found

    def epochs(self, job_id):
        return [event for event in self.job(job_id)["group"] if event["event"] == "epoch"]

    def test_a_range_is_asked_for_and_every_node_that_came_takes_part(self):
        plan = self.ok("submit", "--dry-run", "--nodes", "2:8", "--gpus-per-node", "1", *shell("true")).out
        self.assertIn("--nodes=2-8", plan)
        self.assertIn("--no-kill", plan)
        job_id = self.submit("--nodes", "2:8", "--gpus-per-node", "2", "--max-restarts", "2", *shell(WHERE + TELL + STAY))
        self.until_epoch(1, 6, lambda: self.all_said(job_id))
        self.assertEqual(sorted({name for name, _ in self.where(1, 6)}), ["n1", "n2", "n3"])
        self.assertEqual({gpus for _, gpus in self.where(1, 6)}, {"0,1"})
        self.assertEqual({self.told(1, rank)["TORCHELASTIC_MAX_RESTARTS"] for rank in range(6)}, {"2"})
        record = self.job(job_id)
        self.assertEqual((record["state"], record["nodes"], record["max_nodes"], len(record["logs"])), ("running", 2, 8, 3))
        self.go()
        record = self.ended(job_id, PATIENCE)
        self.assertEqual(record["state"], "succeeded", self.all_said(job_id))
        (epoch,) = self.epochs(job_id)
        self.assertEqual((epoch["group_size"], epoch["world_size"], sorted(epoch["joined"])), (3, 6, ["n1", "n2", "n3"]))
        self.assertIn("epoch 1: 6 ranks on 3 nodes", self.ok("query", job_id).out)
        private = [path for path in self.folder(job_id).rglob("*") if path.is_file() and b"RDZV_KEY" in path.read_bytes()]
        self.assertEqual(private, [], "the group's key is in no file")
        # Fewer nodes are enough; a rank that fails is told with its node.
        for path in self.facts.iterdir():
            path.unlink()
        self.slurm.drain_node("n3")
        try:
            again = self.id_in(self.ok("resubmit", job_id))
            self.until_epoch(1, 4, lambda: self.all_said(again))
            spec = json.loads((self.folder(again) / "spec.json").read_text())["resources"]
            self.assertEqual((spec["nodes"], spec["max_nodes"], spec["gpus"]), (2, 8, 4))
            self.assertEqual({name for name, _ in self.where(1, 4)}, {"n1", "n2"})
            self.ok("abort", again, deadline=PATIENCE)
            self.assertEqual(self.ended(again, PATIENCE)["state"], "cancelled")
        finally:
            self.slurm.resume_node("n3")

    def test_an_abort_warns_the_ranks_of_all_nodes(self):
        job_id = self.submit("--nodes", "1:3", "-n", "0", *shell(WARNED + TELL + STAY))
        self.until_epoch(1, 3, lambda: self.all_said(job_id))
        self.ok("abort", job_id, deadline=PATIENCE)
        self.assertEqual(self.ended(job_id, PATIENCE)["state"], "cancelled")
        self.assertEqual(sorted(path.name for path in self.facts.glob("warned-*")), ["warned-0", "warned-1", "warned-2"],
                         self.all_said(job_id))

    def test_agents_of_a_step_find_each_other_and_one_may_leave(self):
        step = self.slurm.popen(["srun", "-N3", "--ntasks-per-node=1", "--kill-on-bad-exit=0", str(self.binary), "launch",
                                 "--nnodes", "1:3", "--rdzv", "auto", "--last-call", "60s", *shell(WARNED + WHERE + TELL + STAY)], env=self.env,
                                cwd=self.project)
        try:
            self.until_epoch(1, 3)
            self.assertEqual(self.told(1, 0)["TORCHELASTIC_RUN_ID"].split(".")[0].split("-")[0], "slurm")
            self.kill(self.agents()["n2"], signal.SIGTERM)  # as before a preemption
            self.until_epoch(2, 2)
            self.assertEqual({name for name, *_ in self.where(2, 2)}, {"n1", "n3"})
            self.go()
            out, err = step.communicate(timeout=PATIENCE)
            self.assertEqual(step.returncode, 143, err)
            self.assertIn("left", out + err)
        finally:
            self.slurm.empty_queue(seconds=60)
            step.kill()
            step.wait(60)
            for stream in (step.stdout, step.stderr):
                stream.close()

    def test_the_others_go_on_when_a_node_is_lost(self):
        job_id = self.submit("--nodes", "2:3", "-n", "0", *shell(WHERE + TELL + STAY))
        self.until_epoch(1, 3, lambda: self.all_said(job_id))
        lost = next(name for name, *_ in self.where(1, 3) if name != "n1")
        self.broken = True
        self.slurm.kill_node(lost)
        self.until_epoch(2, 2, lambda: self.all_said(job_id))
        self.assertEqual({name for name, *_ in self.where(2, 2)}, {"n1", "n2", "n3"} - {lost})
        self.go()
        record = self.ended(job_id, PATIENCE)
        self.assertEqual((record["state"], record["attempt"]), ("succeeded", 1), self.all_said(job_id))
        second = self.epochs(job_id)[-1]
        self.assertEqual((second["epoch"], second["left"], second["restarts"]), (2, [lost], 0))
        self.assertIn(f"left: {lost}", self.ok("query", job_id).out)


if __name__ == "__main__":
    main()
