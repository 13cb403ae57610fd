# SPDX-License-Identifier: Apache-2.0
"""What is seen of a shared Slurm cluster: usage, nodes, why, check and advice, against what Slurm itself says; and what
fifty who watch cost its controller."""
import json
import pathlib
import re
import signal
import time

from slurm_jobs_rig import SlurmJobsRig, main, shell

from rigs.machines import wait_until
from rigs.slurm_accounts import Accounting

DEADLINE_SECONDS = 500
USERS = ("alice", "bob")
SLEEP = ("--wrap", "sleep 600")


def accounting():
    return Accounting(labs={"lab-a": 4, "lab-b": 8, "lab-c": None}, members={"lab-a": USERS, "lab-b": ("bob",)})


class SightRig(SlurmJobsRig):
    def seen(self, *words, when=lambda told: True, what="it to be seen"):
        """What a command says as JSON once `when` holds: answers are up to 12 s old, those of jobs 5 s."""
        last = []

        def there():
            done = self.overcap(*words, "--json")
            last[:] = [str(done)]
            if done.status == 3:
                return None  # a job that is newer than the last answer
            self.assertEqual(done.status, 0, last[0])
            told = json.loads(done.out)
            return when(told) and told
        try:
            return wait_until(there, what, 60, pause=0.3)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {last}") from None

    def sbatch(self, *words, user=None, lab=None):
        return self.slurm.submit(*(("-A", lab) if lab else ()), *words, *SLEEP, user=user)

    def why(self, job, word):
        """`overcap why` of a job, once it knows the reason `word`."""
        return self.seen("why", str(job), when=lambda told: told["reason"] == word, what=f"job {job} to wait for {word}")


class Numbers(SightRig):
    """One busy cluster for all: everything is submitted once, and looked at from all sides."""
    cluster = {"nodes": 4, "gpus": [4, 4, {"a40": 2, "rtx_6000": 2}, {"rtx_6000": 8}], "users": USERS}

    @classmethod
    def setUpClass(cls):
        cls.cluster = {**cls.cluster, "accounting": accounting()}
        super().setUpClass()
        slurm = cls.slurm

        def sbatch(*words, user, lab):
            return slurm.submit("-A", lab, *words, *SLEEP, user=user)
        cls.running = [
            sbatch("--gpus=a40:2", "-c", "3", user="alice", lab="lab-a"),
            sbatch("--gpus=a40:2", user="bob", lab="lab-a"),
            sbatch("-N2", "--gpus-per-node=rtx_6000:1", user="bob", lab="lab-b"),
            sbatch("--gpus=2", "-p", "overcap", user="alice", lab="lab-a"),
            sbatch("-c", "4", user="bob", lab="lab-b"),
        ]
        cls.capped = sbatch("--gpus=a40:1", "--array=0-4", user="alice", lab="lab-a")
        cls.held = sbatch("--hold", "--gpus=1", user="bob", lab="lab-b")
        for job in cls.running:
            slurm.wait_state(job, "RUNNING")
        slurm.wait_reason(f"{cls.capped}_[0-4]", "AssocGrpGRES")

    def tearDown(self):
        self.slurm.empty_queue = lambda seconds: None  # the jobs are for all tests
        super().tearDown()

    def counted(self):
        """{user: ...} and {lab: ...} as squeue says, a row for each task."""
        said = self.slurm.must(["squeue", "--array", "--noheader", "--states=RUNNING,PENDING", "--Format",
                                "UserName:|,Account:|,Partition:|,State:|,tres-alloc:|"])
        users, labs = {}, {}
        for line in said.splitlines():
            user, lab, partition, state, tres, _ = line.split("|")
            gpus = int(dict(part.split("=") for part in tres.split(",")).get("gres/gpu", 0))
            kind = "waiting_gpus" if state == "PENDING" else "overcap_gpus" if "overcap" in partition else "gpus"
            for table, name in ((users, user), (labs, lab)):
                row = table.setdefault(name, {"gpus": 0, "overcap_gpus": 0, "waiting_gpus": 0})
                row[kind] += gpus
        return users, labs

    def test_usage_has_the_numbers_of_squeue(self):
        users, labs = self.counted()
        self.assertEqual(sum(row["waiting_gpus"] for row in users.values()), 6)
        told = self.seen("usage", when=lambda told: told["total"]["waiting_gpus"] == 6)
        for rows, expected in ((told["users"], users), (told["labs"], labs)):
            seen = {row["name"]: {key: row[key] for key in ("gpus", "overcap_gpus", "waiting_gpus")} for row in rows}
            self.assertEqual({name: row for name, row in seen.items() if any(row.values())}, expected)
        caps = {row["name"]: row["gpu_cap"] for row in told["labs"]}
        self.assertEqual((caps["lab-a"], caps["lab-b"]), (4, 8))
        lab_a = next(row for row in told["labs"] if row["name"] == "lab-a")
        self.assertEqual((lab_a["gpus"], lab_a["overcap_gpus"], lab_a["capped_gpus"]), (4, 2, 5))
        types = {row["type"]: row for row in told["types"]}
        self.assertEqual(sum(row["used"] for row in types.values()), 8)
        self.assertEqual((types["a40"]["total"], types["rtx_6000"]["total"], told["gpus_total"]), (10, 10, 20))
        self.assertEqual(told["gpus_free"], 12)

    def test_usage_for_people(self):
        self.seen("usage", when=lambda told: told["total"]["waiting_gpus"] == 6)
        table = self.ok("usage").out
        self.assertRegex(table, r"(?m)^LAB +GPUS +OVERCAP +WAITING +CAPPED")
        self.assertRegex(table, r"(?m)^lab-a +4/4 +2 +5 +5 +\d+ +3 +5$")
        self.assertIn("8 of 20 GPUs in use, 2 of them over the cap; 12 free", table)
        users = self.ok("usage", "-u", "--types").out
        self.assertRegex(users, r"(?m)^alice +2 +2 +5 +5 .* a40")
        self.assertRegex(users, r"(?m)^rtx_6000 +\d+ ")
        for words in (("lab-b",), ("-p", "lab-b")):
            self.assertRegex(self.ok("usage", *words).out, r"(?m)^bob +2 ")
            self.assertNotIn("alice", self.ok("usage", *words).out)
        self.assertTrue(self.ok("usage", "lab-a").out.endswith(
            "\nlab 'lab-a': 4 of 4 GPUs in use, 2 more over the cap; waiting jobs ask for 5\n"))
        self.assertEqual(self.ok("usage", "overcap").out, "lab 'overcap': 0 GPUs in use\n")
        self.refused("usage", "lab-x", status=3, says=("there is no lab 'lab-x'",))

    def test_nodes_have_the_numbers_of_sinfo(self):
        told = self.seen("nodes", when=lambda told: any("alice" in node["users"] for node in told["nodes"]))
        said = self.slurm.must(["sinfo", "--noheader", "-N", "-p", "short", "-O", "NodeList:|,GresUsed:|,CPUsState:|"])
        for line in said.splitlines():
            name, gres, cpus, _ = line.split("|")
            node = next(node for node in told["nodes"] if node["name"] == name)
            used = sum(int(count) for count in re.findall(r"gpu:\w+:(\d+)", gres))
            self.assertEqual(sum(kind["count"] for kind in node["gpus_used"]), used, line)
            self.assertEqual(f"{node['cpus_used']}", cpus.split("/")[0], line)
        self.assertEqual({user for node in told["nodes"] for user in node["users"]}, set(USERS))
        table = self.ok("nodes").out
        self.assertRegex(table, r"(?m)^n3 +\S+ +\d/2 a40, \d/2 rtx_6000 +\d+/16 ")
        self.assertIn("4 nodes; 20 GPUs, 12 free", table)

    def test_advice_comes_from_what_is_known_and_costs_nothing(self):
        self.seen("usage")
        before = self.slurm.rpc_counts()
        said = self.ok("submit", "--dry-run", "--account", "lab-a", "--gpus", "1", "--gpu-type", "a40", "--cpus", "16", "true")
        text = said.out + said.err
        self.assertIn("4 CPUs per GPU here", text)
        self.assertIn("3 GPUs of this node could not be used", text)
        self.assertRegex(text, "lab 'lab-a' has 4 of its 4 GPUs in use")
        said = self.ok("submit", "--dry-run", "--account", "nobodys", "-p", "debug", "--time", "3h", "--gpus", "1", "true")
        self.assertIn("you are not in account 'nobodys'", said.out + said.err)
        self.assertIn("partition 'debug' allows at most 1h, you ask for 3h", said.out + said.err)
        self.assertEqual(self.slurm.rpc_counts().since(before).reads(), {})


class Reasons(SightRig):
    """Why a job waits, each reason made by a real Slurm."""
    cluster = {"nodes": 2, "gpus": 2, "cpus": 4, "features": {"n2": "ib"}}

    @classmethod
    def setUpClass(cls):
        cls.cluster = {**cls.cluster, "accounting": accounting()}
        super().setUpClass()

    def text(self, told):
        return "\n".join([told["text"], *told["facts"]])

    def test_each_reason_is_told_with_its_numbers(self):
        impossible = self.sbatch("--hold", "--constraint=ib", lab="lab-c")
        self.slurm.must(["scontrol", "update", "NodeName=n2", "AvailableFeatures=a40", "ActiveFeatures=a40"])
        self.addCleanup(self.slurm.must, ["scontrol", "update", "NodeName=n2", "AvailableFeatures=a40,ib",
                                          "ActiveFeatures=a40,ib"])
        self.slurm.must(["scontrol", "release", str(impossible)])
        self.slurm.wait_reason(impossible, "BadConstraints")
        first = self.sbatch("-w", "n1", "--gpus=2", lab="lab-a")
        self.slurm.wait_state(first, "RUNNING")
        second = self.sbatch("-w", "n2", "--gpus=1", lab="lab-a")
        self.slurm.wait_state(second, "RUNNING")
        capped = self.sbatch("--gpus=2", lab="lab-a")
        resources = self.sbatch("--gpus=2", "--nice=0", lab="lab-c")
        self.slurm.wait_reason(resources, "Resources")
        behind = self.sbatch("--gpus=2", "--nice=50", lab="lab-c")
        after = self.sbatch(f"--dependency=afterok:{first}", lab="lab-c")
        held = self.sbatch("--hold", lab="lab-c")
        self.slurm.wait_reason(behind, "Priority")
        self.slurm.wait_reason(capped, "AssocGrpGRES")

        told = self.why(capped, "AssocGrpGRES")
        self.assertEqual((told["cap"]["of"], told["cap"]["cap"], told["cap"]["used"]), ("lab 'lab-a'", 4, 3), told)
        self.assertEqual(told["cap"]["by"], {self.slurm.owner: 3})
        self.assertIn("this job asks for 2; 1 must become free", told["facts"])
        # The GPU that is free on n2 is of no use to the job that goes first: it waits for two on one node.
        self.assertEqual(told["sooner"], ["1 GPU instead of 2: now"], told)

        told = self.why(resources, "Resources")
        self.assertIn("partition 'short': 1 of 4 GPUs free", told["facts"])
        self.assertIn("it needs 1 node with 2 GPUs and 1 CPU free; 0 have that now, 2 could", told["facts"])
        self.assertEqual(told["jobs_ahead"], 0)

        told = self.why(behind, "Priority")
        self.assertEqual((told["jobs_ahead"], told["gpus_ahead"]), (1, 2), told)
        self.assertIn("1 job is ahead in 'short', asking for 2 GPUs", told["facts"])

        told = self.why(after, "Dependency")
        self.assertIn(f"job {first} must succeed first; it is running, of {self.slurm.owner}", told["facts"])

        told = self.why(held, "JobHeldUser")
        self.assertEqual(told["sooner"], [f"overcap release {held}"])

        told = self.why(impossible, "BadConstraints")
        self.assertIn("it never starts as it is", told["text"])
        self.assertIn("the features 'ib'; partition 'short' has 0", self.text(told))

        said = self.ok("why", str(first)).out
        self.assertRegex(said, rf"^job {first}: it is running, for .*\n  on n1\n")

    def test_a_node_that_is_away_and_a_limit_of_the_user(self):
        self.slurm.drain_node("n2", reason="bad fan")
        self.addCleanup(self.slurm.resume_node, "n2")
        away = self.sbatch("-w", "n2", "--gpus=1", lab="lab-c")
        self.slurm.wait_reason(away, "ReqNodeNotAvail, UnavailableNodes:n2", "ReqNodeNotAvail")
        running = self.sbatch("-p", "debug", "--gpus=2", lab="lab-b")
        self.slurm.wait_state(running, "RUNNING")
        limited = self.sbatch("-p", "debug", "--gpus=1", lab="lab-b")
        self.slurm.wait_reason(limited, "QOSMaxGRESPerUser")
        told = self.why(away, "ReqNodeNotAvail")
        self.assertTrue(any(fact.startswith("node 'n2' is ") and fact.endswith(": bad fan") for fact in told["facts"]), told)
        told = self.why(limited, "QOSMaxGRESPerUser")
        self.assertIn(f"user '{self.slurm.owner}' in QOS 'p_debug' may have 2 GPUs at a time; 2 are in use: "
                      f"{self.slurm.owner} 2", told["facts"])
        nodes = self.seen("nodes", when=lambda told: any(node["reason"] for node in told["nodes"]))
        self.assertEqual([(node["usable"], node["reason"]) for node in nodes["nodes"]], [(True, ""), (False, "bad fan")])
        self.assertRegex(self.ok("nodes").out, r"(?m)^n2 .*bad fan$")

    def test_an_ended_job_says_how_it_ended(self):
        job = self.submit(*shell("exit 3"))
        self.ended(job)
        said = self.ok("why", job).out
        self.assertIn("it has ended: failed, exit status 3", said)


class PartitionCaps(Accounting):
    """Each lab has a partition whose QOS, called as the lab, has its cap; jobs have another QOS."""

    def qos_of(self, partitions):
        return {name: name for name in partitions if name in self.labs}


class HandMade(SightRig):
    cluster = {"nodes": 2, "gpus": 4, "partitions": {"lab-a": "Default=YES", "lab-b": "", "free": ""}}

    @classmethod
    def setUpClass(cls):
        caps = PartitionCaps(labs={"lab-a": None, "lab-b": None}, partition_limits={}, more=("modify qos lab-a set GrpTRES=gres/gpu=4",))
        cls.cluster = {**cls.cluster, "accounting": caps}
        super().setUpClass()

    def test_usage_counts_what_the_qos_of_the_partition_limits(self):
        self.slurm.wait_state(self.sbatch("-p", "lab-a", "--gpus=3", lab="lab-a"), "RUNNING")
        self.slurm.wait_state(self.sbatch("-p", "free", "--gpus=1", lab="lab-a"), "RUNNING")
        capped = self.sbatch("-p", "lab-a", "--gpus=2", lab="lab-a")
        self.slurm.wait_reason(capped, "QOSGrpGRES")
        told = self.seen("usage", when=lambda told: told["total"]["waiting_gpus"] == 2)
        row = next(row for row in told["labs"] if row["name"] == "lab-a")
        self.assertEqual((row["gpus"], row["gpu_cap"], row["overcap_gpus"]), (3, 4, 1), row)
        why = self.why(capped, "QOSGrpGRES")
        self.assertEqual((why["cap"]["cap"], why["cap"]["used"]), (4, 3), why)


class Private(SightRig):
    """A cluster on which users see only their own jobs."""
    cluster = {"nodes": 1, "gpus": 4, "users": USERS, "settings": {"PrivateData": "jobs"}}

    def test_hidden_jobs_are_told(self):
        self.slurm.wait_state(self.sbatch("--gpus=3", user="bob"), "RUNNING")
        home = {**self.slurm.environment, "OVERCAP_HOME": str(self.slurm.folder / "work" / "alice")}
        said = self.slurm.run([self.binary, "usage"], user="alice", env=home)
        self.assertIn("not known: jobs of other users: PrivateData=jobs hides them, so only your own are counted\n", said.stdout, said)
        self.assertIn("3 of 4 GPUs in use; 1 free", said.stdout)
        check = self.slurm.run([self.binary, "cluster", "check", "slurm"], user="alice", env=home)
        self.assertIn("PrivateData=jobs: users see only their own jobs", check.stdout, check)
        self.assertNotIn("PrivateData", self.ok("usage").out, "who runs the cluster sees all jobs")


class Broken(SightRig):
    """A cluster in which something is broken, and one without accounts."""
    cluster = {"nodes": 1, "gpus": 2, "settings": {"MessageTimeout": 2}}  # s until a dead controller is given up

    def findings(self, status=0):
        done = self.overcap("cluster", "check", "sky", "--json", deadline=60)
        self.assertEqual(done.status, status, str(done))
        return {finding["topic"]: finding for finding in json.loads(done.out)["findings"]}

    def test_a_healthy_one_without_accounts(self):
        found = self.findings()
        self.assertEqual(found["controller"]["health"], "ok")
        self.assertRegex(found["controller"]["text"], r"^Slurm \S+, cluster 'lab', answers in ")
        self.assertIn("keeps no accounts", found["accounting"]["text"])
        self.assertEqual({found[topic]["health"] for topic in ("programs", "authentication", "clock", "mirror", "settings")},
                         {"ok"})
        job = self.sbatch("--gpus=2", "-p", "overcap")
        self.slurm.wait_state(job, "RUNNING")
        told = self.seen("usage", when=lambda told: told["users"])
        self.assertEqual(told["labs"], [])
        self.assertEqual((told["total"]["overcap_gpus"], told["users"][0]["types"]), (2, {"a40": 2}))
        self.assertRegex(self.ok("usage").out, r"^USER +GPUS +OVERCAP")

    def test_settings_that_the_cluster_does_not_know(self):
        self.configure("partition: nowhere")
        self.assertIn("there is no partition 'nowhere'", self.findings(status=5)["settings"]["text"])

    def test_munge_is_down(self):
        self.slurm.stop_munge()
        try:
            found = self.findings(status=5)
        finally:
            self.slurm.start_munge()
        self.assertEqual(found["authentication"]["health"], "error", found)
        self.assertIn("unge", found["authentication"]["text"] + found["authentication"]["hint"])

    def test_without_its_controller_the_last_known_is_shown_with_its_age(self):
        job = self.sbatch("--hold", "--gpus=2")
        self.seen("usage", when=lambda told: told["total"]["waiting_gpus"] == 2)
        self.ok("nodes")
        self.slurm.stop_controller()
        try:
            told = self.seen("usage", when=lambda told: "stale" in told, what="the controller to be missed")
            self.assertEqual(told["total"]["waiting_gpus"], 2)
            for words in (("usage",), ("nodes",)):
                self.assertRegex(self.ok(*words).out, r"(?m)^last known \S+ ago: .*squeue|^last known \S+ ago: .*sinfo")
            self.assertIn(str(job), self.ok("ls").out)
            self.assertRegex(self.ok("ls").out, r"(?m)^not new: as of \S+ ago: ")
            found = self.findings(status=5)
            self.assertEqual(found["controller"]["health"], "error", found)
        finally:
            self.slurm.restart_controller()
        told = self.seen("usage", when=lambda told: "stale" not in told, what="the controller to be found again")
        self.assertEqual(told["total"]["waiting_gpus"], 2)


class Watchers(SightRig):
    """Fifty who watch with the real commands."""
    cluster = {"nodes": 1, "gpus": 2}
    SECONDS = 26
    EVERY = 12  # seconds between two questions at least

    def test_fifty_who_watch_cost_the_controller_15_reads_a_minute(self):
        job = self.submit(*shell("echo begun; sleep 600"))
        self.until_running(job)
        self.sbatch("--hold", "--gpus=1")
        watches = [("ls", "--watch"), ("usage", "--watch"), ("logs", "-f", job), ("ls", "--watch", "--json"), ("wait", job)]
        began, before = time.monotonic(), self.slurm.rpc_counts()
        watchers = [self.start(*watches[k % len(watches)]) for k in range(50)]
        time.sleep(self.SECONDS)
        reads = self.slurm.rpc_counts().since(before).reads()
        seconds = time.monotonic() - began
        ended = [watcher.args for watcher in watchers if watcher.poll() is not None]
        self.assertEqual(ended, [], "none of them ends by itself")
        outs = self.stop(watchers)
        # squeue is two requests, so is sinfo; the partitions are one, and once a day the configuration.
        self.assertLessEqual(sum(reads.values()), 2 * (int(seconds) // self.EVERY + 1) + 3 + 1, reads)
        self.assertLessEqual(2 * (60 // self.EVERY + 1) + 3, 15)
        self.assertGreaterEqual(reads["REQUEST_JOB_INFO"], 2, "they do look")
        self.assertEqual([words for words, out in zip(watches, outs, strict=False) if not out], [("wait", job)])
        self.assertGreaterEqual(outs[0].count(job), 2, "ls is shown again")
        self.assertEqual(outs[2], "begun\n")

    def stop(self, watchers):
        """Ctrl-C for all; gives what they have written."""
        for pid in self.processes():
            if self.words_of(pid)[:2] in ([str(self.binary), word] for word in ("ls", "usage", "logs", "wait")):
                self.kill(pid, signal.SIGINT)
        return [watcher.communicate(timeout=60)[0].decode() for watcher in watchers]

    def words_of(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:  # gone
            return []


if __name__ == "__main__":
    main()
