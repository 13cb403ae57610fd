# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs on a real Slurm whose nodes share nothing with each other or with the submitter but a bucket (Ceph).

Each node has a folder for jobs that no other sees, and an empty folder where the submitter's things are. What ranks tell the tests stands
in a folder that all see, which is the tests' only.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest

from slurm_jobs_rig import NODE_PYTHON, REPOSITORY, SlurmJobsRig, main
from rigs.ceph_rig import Ceph
from rigs.fault_proxy import FaultProxy
from rigs.gate import Gate, network_of
from rigs.slurm_accounts import Accounting

GROUP = "stores"
DEADLINE_SECONDS = 500
PATIENCE = 120
# Counts aloud until it may go; every line is one that no other rank, epoch or attempt writes.
TRAIN = """
import os, pathlib, time
import lines
facts, env = pathlib.Path(os.environ["FACTS"]), os.environ
me = lines.name(env["OVERCAP_ATTEMPT"], env["OVERCAP_ELASTIC_EPOCH"], env["RANK"])
(facts / ("new-" + me)).write_text(env["SLURMD_NODENAME"] + " " + env["WORLD_SIZE"])
(facts / ("new-" + me)).rename(facts / me)
number = 0
while not (facts / "go").exists() and not (facts / ("fail-" + me)).exists():
    print(me, "line", number, flush=True)
    number += 1
    (facts / ("count-" + me)).write_text(str(number))
    time.sleep(0.05)
print(me, "ends after", number, flush=True)
raise SystemExit(7 if (facts / ("fail-" + me)).exists() else 0)
"""
# Saves where it is when it is told to stop: in a place that all nodes see, as a mount or a store is.
RESUME = """
import os, pathlib, time
from overcap import checkpoint
import lines
facts, env = pathlib.Path(os.environ["FACTS"]), os.environ
me, saved = lines.name(env["OVERCAP_ATTEMPT"], env["OVERCAP_ELASTIC_EPOCH"], env["RANK"]), facts / ("saved-" + env["RANK"])
number = int(saved.read_text()) if saved.exists() else 0
(facts / me).write_text(env["SLURMD_NODENAME"] + " " + env["WORLD_SIZE"])
while not (facts / "go").exists():
    print(me, "line", number, flush=True)
    number += 1
    (facts / ("count-" + me)).write_text(str(number))
    time.sleep(0.05)
    if checkpoint.should_stop():
        saved.write_text(str(number))
        print(me, "saved", number, flush=True)
        checkpoint.exit()
"""
# Both ranks are there at once, so that nothing is taken away while one reads.
READ = """
import os, pathlib, time
facts, env = pathlib.Path(os.environ["FACTS"]), os.environ
kinds = [line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo") if line.split()[4] == os.path.realpath("data")]
print(env["SLURMD_NODENAME"], "has", open("data/x").read().strip(), "by", *kinds, flush=True)
open("out/" + env["ROUND"] + "-" + env["RANK"], "w").write(env["RANK"] + "\\n")
(facts / ("read-" + env["ROUND"] + "-" + env["RANK"])).touch()
while len(list(facts.glob("read-" + env["ROUND"] + "-?"))) < 2:
    time.sleep(0.02)
"""
NAME = "def name(attempt, epoch, rank): return f'a{attempt}-e{epoch}-r{rank}'\n"


class ElasticStoreRig(SlurmJobsRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Ceph()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket("elastic")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.slurm.wait_idle(self.slurm.names)
        self.facts = self.slurm.folder / "work" / self.id().rpartition(".")[2]
        self.facts.mkdir()
        self.keys = self.facts / "keys"
        self.keys.touch(mode=0o600)
        self.keys.write_text(f"access_key: {self.server.access_key}\nsecret_key: {self.server.secret_key}\n")
        self.node_folder = self.slurm.folder / "private" / "overcap"  # of each node its own
        self.env["FACTS"] = str(self.facts)
        self.way(self.server.port)
        self.write("train.py", TRAIN)
        self.write("lines.py", NAME)
        self.empty_on_nodes(self.root)

    def way(self, port):
        """From the cluster to a server of this machine."""
        self.gate = Gate(port, network_of(self.slurm.machines.switch_first))
        self.addCleanup(self.gate.close)
        store = (f"{{at: 's3://elastic/{self.facts.name}', endpoint: 'http://{self.slurm.head_address}:{self.gate.port}', region: us-east-1,"
                 f" path_style: true, credentials: '{self.keys}'}}")
        self.configure(f"{self.settings}, store: bucket, node_folder: {self.node_folder}, mounts_at: {self.slurm.folder}/private/mounts",
                       f"{self.more_config}\nstores: {{bucket: {store}}}")

    def empty_on_nodes(self, folder):
        for name in self.slurm.names:
            subprocess.run(["nsenter", "-t", str(self.slurm.machines.first[name]), "--mount", "mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)

    def train(self, *words, env=None):
        return self.submit(*words, "-n", "0", "--cpus", "1", "--", NODE_PYTHON, "-S", "train.py", env=env)

    def at(self, attempt, epoch, ranks):
        """The nodes of a group by rank, once all its ranks count."""
        def places():
            names = [f"a{attempt}-e{epoch}-r{rank}" for rank in range(ranks)]
            words = [(self.facts / name).read_text().split() for name in names if (self.facts / f"count-{name}").exists()]
            return words if len(words) == ranks else None
        found = self.until(places, f"{ranks} ranks of epoch {epoch} in attempt {attempt}", PATIENCE)
        self.assertEqual({world for _, world in found}, {str(ranks)})
        return [node for node, _ in found]

    def count(self, attempt, epoch, rank):
        """How far that rank has counted."""
        return int((self.facts / f"count-a{attempt}-e{epoch}-r{rank}").read_text() or 0)

    def go(self, job, state="succeeded"):
        (self.facts / "go").touch()
        record = self.ended(job, PATIENCE)
        self.assertEqual(record["state"], state, f"{record}\n{self.all_logs(job)}")
        return record

    def all_logs(self, job, *words):
        return self.overcap("logs", "--rank", "all", *words, job, deadline=PATIENCE).out

    def said(self, job, *words):
        """{a1-e1-r0: [its lines]} of all logs, each line as the rank wrote it."""
        lines = {}
        for line in self.all_logs(job, *words).splitlines():
            found = re.search(r"(a\d+-e\d+-r\d+) (.*)", line)
            if found:
                lines.setdefault(found[1], []).append(found[2])
        return lines

    def check_whole(self, job, *words, lost=()):
        """Every line of every rank is there once, in its order. Of ranks that were `lost` the last lines may be missing."""
        said = self.said(job, *words)
        for path in self.facts.glob("count-*"):
            name = path.name.removeprefix("count-")
            attempt = "--attempt" in words and words[words.index("--attempt") + 1] or "1"
            if not name.startswith(f"a{attempt}-"):
                continue
            lines = [line for line in said.get(name, []) if line.startswith("line ")]
            self.assertEqual(lines, [f"line {i}" for i in range(len(lines))], name)
            counted = path.read_text()  # "": it was killed while it wrote the number
            if counted and name not in lost:
                self.assertIn(len(lines), (int(counted), int(counted) + 1), f"{name}: {said.get(name, [])[-3:]}")
        return said

    def epochs(self, job):
        return [event for event in self.job(job)["group"] if event["event"] == "epoch"]

    def head(self, job):
        return self.scontrol(job)["BatchHost"]

    def in_bucket(self, job):
        begin = f"jobs/{job}/"
        names = self.ok("store", "ls", "-R", "bucket:").out.split()
        return [name.removeprefix(begin) for name in names if name.startswith(begin)]

    def left_on_nodes(self):
        return sorted(str(path.relative_to(self.slurm.folder)) for name in self.slurm.names
                      for path in (self.slurm.folder / f"private.{name}/overcap/jobs").glob("*"))


class Nodes(ElasticStoreRig):
    cluster = {"nodes": 3, "gpus": 0, "kill_wait": 10}

    def test_every_node_gets_the_code_and_its_logs_are_read_while_it_runs(self):
        job = self.train("--nodes", "2:3")
        follow = self.start("logs", "-f", "--rank", "all", job)
        nodes = self.at(1, 1, 3)
        self.assertEqual(sorted(nodes), ["n1", "n2", "n3"])
        for node in range(3):
            self.until(lambda: " line 5\n" in self.overcap("logs", "--rank", str(node), job).out, f"the log of node {node}", PATIENCE)
        record = self.job(job)
        self.assertEqual((record["state"], len(record["logs"])), ("running", 3))
        self.assertIn("epoch 1: 3 ranks on 3 nodes", self.ok("query", job).out)
        self.assertEqual(self.ls()[job]["state"], "running")
        self.go(job)
        followed = self.finish(follow, PATIENCE)
        said = self.check_whole(job)
        self.assertEqual(sorted(said), ["a1-e1-r0", "a1-e1-r1", "a1-e1-r2"])
        for name, lines in said.items():
            self.assertEqual(len([line for line in followed.out.splitlines() if f"{name} " in line]), len(lines), name)
        (epoch,) = self.epochs(job)
        self.assertEqual((epoch["group_size"], sorted(epoch["joined"])), (3, ["n1", "n2", "n3"]))
        self.assertEqual(self.ok("logs", "--from", "bucket", "--rank", "1", "--tail", "1", job).out, self.ok("logs", "--rank", "1", "--tail", "1", job).out)
        self.assertIn("epoch 1: 3 ranks on 3 nodes", self.ok("query", "--from", "bucket", job, env={"OVERCAP_HOME": str(self.root / "laptop")}).out)
        names = self.in_bucket(job)
        for node in range(3):
            self.assertTrue([name for name in names if re.match(rf"attempt-1/node-{node}/attempt-1/rank-\d.log/0", name)], names)
        self.assertFalse((self.folder(job) / "attempt-1/rank-0.log").exists())
        self.until(lambda: not self.left_on_nodes(), "the nodes to have nothing left", 30)
        again = self.id_in(self.ok("resubmit", job))
        self.assertEqual(self.ended(again, PATIENCE)["state"], "succeeded")
        self.assertEqual(len(self.said(again)), 3)
        self.ok("rm", job)
        self.assertEqual(self.in_bucket(job), [])

    def test_a_failed_rank_begins_a_round_and_no_line_is_lost_or_doubled(self):
        job = self.train("--nodes", "2:2", "--max-restarts", "1")
        self.at(1, 1, 2)
        (self.facts / "fail-a1-e1-r1").touch()
        self.at(1, 2, 2)
        self.go(job)
        said = self.check_whole(job, lost=("a1-e1-r0",))
        self.assertEqual(sorted(said), ["a1-e1-r0", "a1-e1-r1", "a1-e2-r0", "a1-e2-r1"])
        self.assertIn("ends after", said["a1-e1-r1"][-1])
        self.assertEqual([epoch["restarts"] for epoch in self.epochs(job)], [0, 1])
        names = self.in_bucket(job)
        self.assertTrue([name for name in names if re.match(r"attempt-1/node-\d/attempt-2/rank-1.log/0", name)], names)

    def test_what_a_lost_node_had_uploaded_stays(self):
        job = self.train("--nodes", "2:3")
        nodes = self.at(1, 1, 3)
        lost = next(rank for rank, node in enumerate(nodes) if node != self.head(job))
        self.until(lambda: f"a1-e1-r{lost} line 40\n" in self.all_logs(job), "its log", PATIENCE)
        self.broken = True
        before = self.count(1, 1, lost)
        self.slurm.kill_node(nodes[lost])
        self.at(1, 2, 2)
        self.go(job)
        name = f"a1-e1-r{lost}"
        said = self.check_whole(job, lost=[f"a1-e1-r{rank}" for rank in range(3)])
        # The courier puts about once a second, and waits a second for each 64 KiB of what it puts again.
        self.assertGreaterEqual(len(said[name]), before - 3 * 20, (len(said[name]), before))
        self.assertEqual(self.epochs(job)[-1]["left"], [nodes[lost]])

    def test_killed_processes_of_a_node_leave_the_rest_to_the_next_job_there(self):
        job = self.train("--nodes", "2:3")
        nodes = self.at(1, 1, 3)
        lost = next(rank for rank, node in enumerate(nodes) if node != self.head(job))
        self.gate.close_for_a_while()  # so that much is not uploaded
        far = self.count(1, 1, lost) + 60
        self.until(lambda: self.count(1, 1, lost) > far, "it to count on", PATIENCE)
        self.kill_all_on(nodes[lost])
        self.gate.open_again()
        self.at(1, 2, 2)
        self.go(job)
        self.assertLess(len(self.said(job).get(f"a1-e1-r{lost}", [])), far)
        other = self.submit("--node", nodes[lost], "-n", "0", "--", "/bin/true")
        self.assertEqual(self.ended(other, PATIENCE)["state"], "succeeded")
        self.until(lambda: len(self.said(job).get(f"a1-e1-r{lost}", [])) >= far, "the rest", PATIENCE)
        self.check_whole(job, lost=[f"a1-e1-r{rank}" for rank in range(3) if rank != lost])
        self.until(lambda: not self.left_on_nodes(), "the nodes to have nothing left", 30)

    def kill_all_on(self, node):
        """kill -9 of all that the job has on a node; slurmd lives."""
        script = "for p in /proc/[0-9]*; do case \"$(readlink $p/exe) $(tr '\\0' ' ' < $p/cmdline)\" in */overcap\\ *|*train.py*) echo ${p#/proc/};; esac; done"
        found = self.slurm.must(["sh", "-c", script], node=node).split()
        self.assertGreater(len(found), 3, "agent, courier, launch and rank")
        self.slurm.run(["kill", "-KILL", *found], node=node)  # some die with others

    def test_when_its_first_node_is_lost_the_others_say_so_through_the_store(self):
        job = self.train("--nodes", "2:3", "--requeue", env={"OVERCAP_JOIN_TIMEOUT": "3s"})
        nodes = self.at(1, 1, 3)
        head = self.head(job)
        rank = nodes.index(head)
        self.until(lambda: f"a1-e1-r{rank} line 20\n" in self.all_logs(job), "its log", PATIENCE)
        self.broken = True
        self.slurm.fail_node(head)
        self.assertEqual(sorted(self.at(2, 1, 2)), sorted({"n1", "n2", "n3"} - {head}))
        record = self.go(job)
        self.assertEqual(record["attempt"], 2)
        (end,) = [event for event in self.report(job, 1) if event["e"] == "end"]
        self.assertEqual((end["state"], end["reason"]), ("lost", f"its first node, '{head}', was lost"))
        first = self.check_whole(job, "--attempt", "1", lost=[f"a1-e1-r{rank}" for rank in range(3)])
        self.assertEqual(len(first), 3)
        self.assertGreater(len(first[f"a1-e1-r{rank}"]), 20)
        self.assertEqual(sorted(self.check_whole(job, "--attempt", "2")), ["a2-e1-r0", "a2-e1-r1"])
        self.assertEqual([(event["attempt"], event["group_size"]) for event in self.epochs(job)], [(1, 3), (2, 2)])

    def test_a_store_that_is_away_disturbs_nobody(self):
        job = self.train("--nodes", "2:2", "--max-restarts", "1")
        self.at(1, 1, 2)
        self.gate.close_for_a_while()
        far = self.count(1, 1, 0) + 40
        self.until(lambda: self.count(1, 1, 0) > far, "ranks to go on", PATIENCE)
        (self.facts / "fail-a1-e1-r0").touch()
        self.at(1, 2, 2)
        self.gate.open_again()
        self.go(job)
        self.check_whole(job, lost=("a1-e1-r1",))

    def test_a_store_that_is_away_while_nodes_start_ends_no_attempt(self):
        other = self.slurm.submit("-p", "short", "-N3", "--exclusive", "-o", "/dev/null", "--wrap", "exec sleep 600")
        self.slurm.wait_state(other, "RUNNING", seconds=60)
        job = self.train("--nodes", "2:2")
        self.gate.close_for_a_while()
        self.slurm.must(["scancel", str(other)])
        self.until(lambda: self.scontrol(job)["JobState"] == "RUNNING", "the job to start", PATIENCE)
        back = time.monotonic() + 20  # longer than the 10 s that a service gets which has never answered
        while time.monotonic() < back:
            self.assertEqual(self.scontrol(job)["JobState"], "RUNNING")
            time.sleep(0.5)
        self.gate.open_again()
        self.at(1, 1, 2)
        self.go(job)
        self.check_whole(job)

    def test_tasks_of_an_array_on_several_nodes_do_not_take_each_others_code(self):
        self.write("task.py", "import os, time, lines\ntime.sleep(0.5 * int(os.environ['OVERCAP_TASK_ID']))\nimport late\n")
        self.write("late.py", "import os\nprint('task', os.environ['OVERCAP_TASK_ID'], 'rank', os.environ['RANK'], flush=True)\n")
        job = self.submit("--array", "0-3", "--nodes", "2", "-n", "0", "--cpus", "1", "--", NODE_PYTHON, "-B", "task.py")
        record = self.ended(job, PATIENCE)
        self.assertEqual(record["state"], "succeeded", record)
        for task in range(4):
            said = self.ok("logs", "--rank", "all", "--task", str(task), job).out
            self.assertEqual([said.count(f"task {task} rank {rank}") for rank in range(2)], [1, 1], said)
        left = [path.name for name in self.slurm.names for path in (self.slurm.folder / f"private.{name}").rglob("code*")]
        self.assertEqual(left, [])

    @unittest.skipUnless(os.path.exists("/dev/fuse") and shutil.which("rclone"), "NOT TESTED: FUSE mounts on nodes need /dev/fuse and rclone")
    def test_every_node_has_the_mounts(self):
        self.write("x", "hello\n")
        self.ok("store", "cp", "x", "bucket:data/x")
        self.ok("store", "cp", "x", "bucket:out/x")
        self.write("read.py", READ)
        for nodes in ("2", "2:2"):
            job = self.submit("--mount", "data=bucket:data", "--mount", "out=bucket:out,mode=copy", "--nodes", nodes, "-n", "0", "--cpus", "1",
                              "--", NODE_PYTHON, "-S", "read.py", env={"ROUND": nodes.replace(":", "-")})
            record = self.ended(job, PATIENCE)
            self.assertEqual(record["state"], "succeeded", f"{record}\n{self.all_logs(job)}")
            said = self.all_logs(job)
            for node in sorted({line.split(" has ")[0].split()[-1] for line in said.splitlines() if " has " in line}):
                self.assertIn(f"{node} has hello by fuse.rclone", said)
            self.assertEqual(said.count("has hello by fuse.rclone"), 2, said)
            for rank in range(2):
                self.assertEqual(self.ok("store", "cp", f"bucket:out/{nodes.replace(':', '-')}-{rank}", "-").out, f"{rank}\n")
            self.until(lambda: not self.left_on_nodes(), "the nodes to have nothing left", 30)
            for name in self.slurm.names:
                mounted = self.slurm.must(["cat", "/proc/self/mountinfo"], node=name)
                self.assertNotIn("fuse.rclone", mounted, name)
                self.assertEqual(list((self.slurm.folder / f"private.{name}/mounts").glob("overcap-mounts-*/root_*")), [])

    @unittest.skipUnless(os.path.exists("/dev/fuse") and shutil.which("rclone"), "NOT TESTED: FUSE mounts on nodes need /dev/fuse and rclone")
    def test_a_lost_node_takes_its_mounts_with_it_and_nobody_else(self):
        self.write("x", "hello\n")
        self.ok("store", "cp", "x", "bucket:data/x")
        job = self.train("--mount", "data=bucket:data", "--nodes", "2:3")
        nodes = self.at(1, 1, 3)
        lost = next(node for node in nodes if node != self.head(job))
        self.broken = True
        self.slurm.kill_node(lost)
        left = self.at(1, 2, 2)
        for node in left:
            self.assertIn("fuse.rclone", self.slurm.must(["cat", "/proc/self/mountinfo"], node=node))
        record = self.go(job)
        self.assertIn(f"node '{lost}' was lost before the job's mounts there were taken away", str(record["notes"]))
        for node in left:
            self.assertNotIn("fuse.rclone", self.slurm.must(["cat", "/proc/self/mountinfo"], node=node))

    def test_an_abort_while_the_store_is_away_ends_it(self):
        job = self.train("--nodes", "2:2")
        self.at(1, 1, 2)
        self.until(lambda: len(self.said(job)) == 2, "the logs", PATIENCE)
        self.gate.close_for_a_while()
        number = self.slurm_id(job)
        self.ok("abort", job, "--reason", "no more", deadline=PATIENCE)
        self.until(lambda: str(number) not in self.slurm.must(["squeue", "--noheader", "-o", "%A"]).split(), "the end", 40)  # Slurm waits for nobody
        self.gate.open_again()
        record = self.ended(job, PATIENCE)
        self.assertEqual((record["state"], record["reason"]), ("cancelled", "no more"))
        self.assertEqual(len(self.said(job)), 2)

    def test_faults_on_the_way_lose_and_double_nothing(self):
        with FaultProxy(self.server.port, seed=11, longest=60_000) as proxy:
            self.gate.target = proxy.port
            job = self.train("--nodes", "2:2", "--max-restarts", "1")
            self.at(1, 1, 2)
            (self.facts / "fail-a1-e1-r1").touch()
            self.at(1, 2, 2)
            far = self.count(1, 2, 0) + 40
            self.until(lambda: self.count(1, 2, 0) > far, "ranks to go on", PATIENCE)
            self.go(job)
            self.gate.target = self.server.port
        self.assertGreater(sum(count for fate, count in proxy.counts.items() if fate != "lives"), 0)
        self.check_whole(job, lost=("a1-e1-r0",))


class Preempted(ElasticStoreRig):
    cluster = {"nodes": 2, "gpus": 0, "preemption": "qos", "accounting": Accounting(labs={"lab-a": None}), "cpus": 2}
    settings = "partition: short, account: lab-a"

    def test_it_goes_on_with_the_next_attempt_and_the_logs_of_both_are_there(self):
        self.write("train.py", RESUME)
        self.env.update(PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1")
        job = self.train("--requeue", "--qos", "over", "--nodes", "1:2")
        self.at(1, 1, 2)
        lab = self.slurm.submit("-A", "lab-a", "-N2", "--exclusive", "-o", "/dev/null", "--wrap", "exec sleep 1")
        self.slurm.wait_state(lab, "RUNNING", "COMPLETING", "COMPLETED", seconds=60)
        self.at(2, 1, 2)
        self.go(job)
        self.assertEqual(self.job(job)["attempt"], 2)
        (end,) = [event for event in self.report(job, 1) if event["e"] == "end"]
        self.assertEqual(end["state"], "preempted")
        first, second = self.said(job, "--attempt", "1"), self.said(job, "--attempt", "2")
        for rank in range(2):
            saved = int((self.facts / f"saved-{rank}").read_text())
            self.assertEqual(first[f"a1-e1-r{rank}"], [f"line {i}" for i in range(saved)] + [f"saved {saved}"])
            self.assertEqual(second[f"a2-e1-r{rank}"][0], f"line {saved}")
        self.assertEqual([(event["attempt"], event["group_size"]) for event in self.epochs(job)], [(1, 2), (2, 2)])
        self.assertIn("attempt 2: ", self.ok("query", job).out)


if __name__ == "__main__":
    main()
