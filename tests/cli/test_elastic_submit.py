# SPDX-License-Identifier: Apache-2.0
"""`submit --nodes MIN:MAX` on the embedded engine: each node is an agent of this machine with its share of the GPUs."""
import json
import os
import pathlib
import signal

from elastic_rig import STAY, TELL
from overcap_rig import Rig, main, shell

SHARE = 'echo "$CUDA_VISIBLE_DEVICES" > "$FACTS/gpus-$GROUP_RANK-$RANK"; '
PATIENCE = 90


class ElasticJobs(Rig):
    def told(self, epoch, rank):
        path = self.facts / f"{epoch}-{rank}"
        return dict(line.split("=", 1) for line in path.read_text().splitlines()) if path.exists() else None

    def until_epoch(self, epoch, ranks):
        self.until(lambda: all(self.told(epoch, rank) for rank in range(ranks)), f"{ranks} ranks of epoch {epoch}", PATIENCE)
        self.assertEqual({self.told(epoch, rank)["WORLD_SIZE"] for rank in range(ranks)}, {str(ranks)})

    def agents(self, job_id):
        """{number of the node: process of its agent}."""
        return self.agents_and_guards(job_id)[0]

    def agents_and_guards(self, job_id):
        """The same, and {number of the node: the process that guards its ranks}."""
        found = ({}, {})
        for pid in self.processes():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                guard = "guard" in pathlib.Path(f"/proc/{pid}/comm").read_text()  # beside the agent, and as it is called
            except OSError:
                continue
            if b"launch" in words[1:2] and b"--node-rank" in words and job_id.encode() in b" ".join(words):
                found[guard][int(words[words.index(b"--node-rank") + 1])] = pid
        return found

    def group(self, job_id, kind="epoch"):
        return [event for event in self.job(job_id)["group"] if event["event"] == kind]

    def test_nodes_are_agents_with_their_share_of_the_gpus(self):
        self.declare_gpus(5)
        job_id = self.submit("--nodes", "1:8", "--gpus-per-node", "2", "--cpus", "1", *shell(SHARE + TELL + STAY))
        self.until_epoch(1, 4)
        self.assertEqual({(self.facts / f"gpus-{rank // 2}-{rank}").read_text().strip() for rank in range(4)},
                         {"0,1", "2,3"}, "two nodes have room on 5 GPUs")
        record = self.job(job_id)
        self.assertEqual((record["nodes"], record["max_nodes"], record["gpu_indices"]), (1, 8, [0, 1, 2, 3]))
        (self.facts / "go").touch()
        self.assertEqual(self.ended(job_id, PATIENCE)["state"], "succeeded")
        record = self.job(job_id)
        self.assertEqual(len(record["logs"]), 2, "a log for each node")
        self.assertNotIn("OVERCAP_RDZV_KEY", (self.home / "jobs" / job_id / "attempt-1" / "environment").read_text())
        (epoch,) = self.group(job_id)
        self.assertEqual((epoch["group_size"], epoch["world_size"], epoch["joined_count"]), (2, 4, 2))
        self.assertGreaterEqual(epoch["took_us"], 0)
        self.assertIn("epoch 1: 4 ranks on 2 nodes", self.ok("query", job_id).out)
        lines = (self.home / "jobs" / job_id / "events.jsonl").read_text().splitlines()
        kinds = [json.loads(line)["e"] for line in lines]
        self.assertEqual((kinds[0], kinds[-1], kinds.count("group")), ("submitted", "ended", 3))
        self.assertEqual([json.loads(line)["nodes"] for line in lines if '"e":"started"' in line], [2])
        # The range is kept, and so is what it means.
        again = self.id_in(self.ok("resubmit", job_id))
        self.assertEqual(self.ended(again, PATIENCE)["state"], "succeeded")
        spec = json.loads((self.home / "jobs" / again / "spec.json").read_text())
        self.assertEqual((spec["resources"].get("nodes", 1), spec["resources"]["max_nodes"], spec["resources"]["gpus"]), (1, 8, 2))

    def test_a_node_that_is_lost_is_told_and_the_job_goes_on(self):
        self.declare_gpus(2)
        job_id = self.submit("--nodes", "1:2", "--gpus-per-node", "1", "--cpus", "1", *shell(TELL + STAY))
        self.until_epoch(1, 2)
        # The engine may be restarted in between: it finds its job again, and writes nothing twice.
        self.kill(self.daemon_pid())
        follower = 1 - self.leader(job_id)
        self.kill(self.agents(job_id)[follower])
        self.until_epoch(2, 1)
        (self.facts / "go").touch()
        self.assertEqual(self.ended(job_id, PATIENCE)["state"], "succeeded")
        second = self.group(job_id)[-1]
        self.assertEqual((second["epoch"], second["group_size"], second["left_count"], second["restarts"]), (2, 1, 1, 0))
        self.assertIn("lost", second["why"])
        kinds = [json.loads(line)["e"] for line in (self.home / "jobs" / job_id / "events.jsonl").read_text().splitlines()]
        self.assertEqual((kinds.count("submitted"), kinds.count("started"), kinds.count("ended")), (1, 1, 1))

    def leader(self, job_id):
        """The number of the node whose agent leads."""
        for node in self.agents(job_id):
            events = self.home / "jobs" / job_id / "attempt-1" / f"node-{node}" / "events.jsonl"
            if '"event":"leads"' in events.read_text():
                return node
        return self.fail("nobody leads")

    def test_a_failure_is_restarted_in_the_group_and_told_when_it_stays(self):
        script = TELL + 'if [ "$RANK" = 1 ]; then echo broken; exit 9; fi; ' + STAY
        self.declare_gpus(2)
        job_id = self.submit("--nodes", "2:2", "--gpus-per-node", "1", "--cpus", "1", "--max-restarts", "1", *shell(script))
        record = self.ended(job_id, PATIENCE)
        self.assertEqual((record["state"], record["exit_status"], record["attempt"], record["restarts"]), ("failed", 9, 1, 0))
        self.assertRegex(record["reason"], r"rank 1 on '.*' failed first: exit status 9")
        self.assertEqual([epoch["restarts"] for epoch in self.group(job_id)], [0, 1])
        self.assertEqual(self.overcap("wait", job_id).status, 9)

    def test_an_abort_warns_the_ranks_and_leaves_nothing(self):
        self.declare_gpus(2)
        job_id = self.submit("--nodes", "1:2", "--gpus-per-node", "1", "--cpus", "1",
                             *shell('trap "echo warned > $FACTS/warned-$RANK; exit 0" USR1; ' + TELL + STAY))
        self.until_epoch(1, 2)
        self.ok("abort", job_id, deadline=PATIENCE)
        self.assertEqual(self.ended(job_id, PATIENCE)["state"], "cancelled")
        self.assertEqual(sorted(path.name for path in self.facts.glob("warned-*")), ["warned-0", "warned-1"])
        self.assertEqual(self.agents(job_id), {})

    def test_all_its_agents_killed(self):
        self.declare_gpus(2)
        job_id = self.submit("--nodes", "1:2", "--gpus-per-node", "1", "--cpus", "1", *shell(TELL + STAY))
        self.until_epoch(1, 2)
        for pid in self.agents(job_id).values():
            os.kill(pid, signal.SIGKILL)
        record = self.ended(job_id, PATIENCE)
        self.assertEqual((record["state"], record["signal"]), ("failed", 9), record)
        self.assertIn("the agent of node 0 was killed", record["reason"])

    def test_agents_that_told_their_end_and_do_not_end_hold_up_no_job(self):
        self.declare_gpus(2)
        job_id = self.submit("--nodes", "2:2", "--gpus-per-node", "1", "--cpus", "1", *shell(TELL + STAY))
        self.until_epoch(1, 2)
        agents, guards = self.agents_and_guards(job_id)
        for pid in guards.values():
            os.kill(pid, signal.SIGSTOP)  # each agent waits for its guard, after all else
        (self.facts / "go").touch()
        folder = self.home / "jobs" / job_id / "attempt-1"
        self.until(lambda: (folder / "node-0/result.json").exists(), "the result of node 0", PATIENCE)
        os.kill(agents[0], signal.SIGSTOP)
        record = self.ended(job_id, PATIENCE)
        self.assertEqual((record["state"], record["exit_status"]), ("succeeded", 0), record)
        notes = "the agent of node 0 had written its result and did not end: it was killed"
        self.assertIn(notes, self.ok("query", job_id).out)
        ends = [json.loads(line) for line in (folder / "agent-0.jsonl").read_text().splitlines() if '"rank_end"' in line]
        self.assertEqual({end["rank"]: end["signal"] for end in ends}, {0: 9, 1: 0})
        for pid in (*agents.values(), *guards.values()):
            self.until(lambda: not os.path.exists(f"/proc/{pid}"), "nothing to be left", PATIENCE)

    def test_what_cannot_be_is_refused_in_one_line(self):
        self.declare_gpus(2)
        for words, says in ((["--nodes", "2:1"], "--nodes: '2:1' begins behind its end"),
                            (["--nodes", "0:3"], "--nodes: '0:3' is no range of nodes"),
                            (["--nodes", "x:y"], "--nodes: 'x:y' is no range of nodes"),
                            (["--nodes", "3:4", "--gpus-per-node", "1"], "asks for 3 GPUs, this machine has 2"),
                            (["--nodes", "2:4", "-n", "3"], "3 GPUs cannot be shared evenly by 2 nodes"),
                            (["--nodes", "1:2", "--array", "0-3"], "a range of nodes does not go with an array"),
                            (["-n", "1", "--gpus-per-node", "1"], "--gpus and --gpus-per-node"),
                            (["--nodes", "2", "-n", "2"], "asks for 2 nodes, this machine is one")):
            done = self.refused("submit", *words, *shell("true"), says=[says])
            self.assertLessEqual(len(done.err.strip().splitlines()), 2, str(done))
        self.assertEqual(self.jobs("ls"), [])


if __name__ == "__main__":
    main()
