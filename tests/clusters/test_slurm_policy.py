# SPDX-License-Identifier: Apache-2.0
"""A policy brought to a real Slurm that has nothing of it: what differs, making it so, being killed meanwhile; then the rules
hold: caps, limits of debug, who gives way to whom, and nobody loses a step."""
import json
import signal
import time

from slurm_jobs_rig import DEADLINE, NODE_PYTHON, REPOSITORY, SlurmJobsRig, main
from rigs.counting_job import COUNTING_JOB
from rigs.slurm_policy import PolicyCluster

DEADLINE_SECONDS = 400
PATIENCE = 4 * DEADLINE  # a requeued job waits some seconds, and whoever took its place must end first

POLICY = """
nodes:
  n[1-2]: {{gpus: a40:2, cpus: 16}}
labs:
  vision: {{gpus: 2, members: [{owner}, ann, bob], admins: [ann]}}
  language: {{gpus: {{total: 2, a40: 2}}, cpus: 32, members: [{owner}, carol, ann]}}
partitions:
  debug: {{gpus_per_user: 1}}
  user-overcap: {{grace: 0, quantum: 0}}
  overcap: {{grace: 2m, quantum: 0}}
maintenance:
  - {{name: power, nodes: n1, start: 2036-12-01T08:00:00Z, duration: 8h}}
"""


class PolicyRig(SlurmJobsRig):
    settings = "partition: short"
    applied = False

    @classmethod
    def setUpClass(cls):
        super(SlurmJobsRig, cls).setUpClass()
        cls.slurm = PolicyCluster(nodes=2, gpus=2)
        cls.addClassCleanup(lambda: cls.slurm.close())

    def setUp(self):
        super().setUp()
        self.policy = self.project / "policy.yaml"
        self.policy.write_text(POLICY.format(owner=self.slurm.owner))

    def apply(self, *words):
        return self.overcap("policy", "apply", "--write", str(self.slurm.folder / "etc"), *words, str(self.policy),
                            deadline=2 * DEADLINE)

    def lines_of(self, *argv):
        return self.slurm.must(list(argv)).splitlines()


class Applied(PolicyRig):
    def qos(self):
        return self.lines_of("sacctmgr", "-n", "-P", "show", "qos", "format=Name,GrpTRES,Preempt")

    def change(self, old, new):
        text = self.policy.read_text()
        self.assertIn(old, text)
        self.policy.write_text(text.replace(old, new))

    def test_it_is_shown_applied_and_then_there_is_nothing_to_change(self):
        before = self.qos()
        shown = self.apply("--dry-run")
        self.assertEqual(shown.status, 0, str(shown))
        self.assertIn("add account 'vision'", shown.out)
        self.assertIn("partition 'debug': (nothing) -> there", shown.out)
        self.assertEqual(self.qos(), before, "--dry-run changes nothing")

        for number in range(8):  # killed at some moment or other, each time a little later
            process = self.start("policy", "apply", "--write", str(self.slurm.folder / "etc"), str(self.policy))
            time.sleep(0.03 * number)  # of the test's own doing: the moment does not matter
            process.send_signal(signal.SIGKILL)
            process.communicate()
        done = self.apply()
        self.assertEqual(done.status, 0, str(done))
        again = self.apply()
        self.assertEqual((again.status, again.out.splitlines()), (0, ["nothing to change"]), str(again))
        facts = json.loads(self.ok("policy", "apply", "--json", str(self.policy)).out)
        self.assertEqual((facts["nothing"], facts["steps"], facts["left"]), (True, [], []))

        rows = dict(line.split("|", 1) for line in self.qos())
        self.assertEqual(rows["vision"], "gres/gpu=2|language-user-overcap,overcap,vision-user-overcap")
        self.assertEqual(set(rows["language"].split("|")[0].split(",")), {"cpu=32", "gres/gpu=2", "gres/gpu:a40=2"})
        accounts = self.lines_of("sacctmgr", "-n", "-P", "show", "account", "withcoord", "format=Account,Coordinators")
        self.assertIn("vision|ann", accounts)
        self.assertIn("ReservationName=power", self.slurm.must(["scontrol", "show", "reservation"]))

        self.change("ann, bob]", "ann, eve]")   # one leaves, one comes
        self.change("gpus_per_user: 1", "gpus_per_user: 2")
        self.change("gpus: 2, members", "gpus: 1, members")
        changed = self.apply()
        self.assertEqual(changed.status, 0, str(changed))
        for text in ("add to account 'vision': eve", "remove from account 'vision': bob", "GrpTRES=gres/gpu=1",
                     "MaxTRESPerUser=gres/gpu=2"):
            self.assertIn(text, changed.out)
        self.assertEqual(self.apply().out.splitlines(), ["nothing to change"])

    def test_what_is_not_written_is_told_and_left(self):
        self.change("n[1-2]: {gpus: a40:2", "n[1-2]: {gpus: a40:3")
        self.change("gpus_per_user: 1", "max_time: 3h")
        done = self.overcap("policy", "apply", str(self.policy), deadline=2 * DEADLINE)
        self.assertEqual(done.status, 6, str(done))
        self.assertIn("left to do in the files of the scheduler", done.out)
        self.assertIn("node 'n1': GPUs: a40:2 -> a40:3", done.out)

    def test_a_policy_for_another_cluster_is_refused(self):
        self.policy.write_text("cluster: other\n" + self.policy.read_text())
        done = self.apply()
        self.assertEqual(done.status, 2, str(done))
        self.assertIn("the policy is for cluster 'other', this one is called 'lab'", done.err)


class Ruled(PolicyRig):
    def setUp(self):
        super().setUp()
        self.write("resume.py", COUNTING_JOB)
        self.env.update(PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1")
        if not type(self).applied:
            done = self.apply()
            self.assertEqual(done.status, 0, str(done))
            type(self).applied = True

    def sbatch(self, lab, gpus, *words, partition="short", seconds=300):
        return self.slurm.submit("-A", lab, "-p", partition, "-N1", f"--gpus-per-node={gpus}", "-o", "/dev/null", *words,
                                 "--wrap", f"exec sleep {seconds}")

    def said(self, job, attempt=1):
        """The lines of its rank; none while it has not begun."""
        path = self.folder(job) / f"attempt-{attempt}" / "rank-0.log"
        return path.read_text().splitlines() if path.exists() else []

    def wait_usage(self, wanted):
        """wanted: {lab: {field: value}}. What is shown may be some seconds old."""
        def shown():
            labs = {lab["name"]: lab for lab in json.loads(self.ok("usage", "-l", "--json").out)["labs"]}
            return {name: {field: labs.get(name, {}).get(field) for field in fields} for name, fields in wanted.items()}
        self.until(lambda: shown() == wanted, f"usage to show {wanted}", PATIENCE)

    def partition_of(self, number):
        return self.slurm.must(["squeue", "-h", "-j", str(number), "-o", "%P"]).strip()

    def test_borrowers_give_back_within_the_grace_time_and_lose_no_step(self):
        jobs = [self.submit("-p", "overcap", "--qos", "overcap", "--account", lab, "--requeue", "--warn", "60s", "-n", "1",
                            "--", NODE_PYTHON, "-S", "resume.py") for lab in ("vision", "vision", "vision", "language")]
        for job in jobs:  # vision has three GPUs, and owns two
            self.until(lambda job=job: self.said(job), f"{job} to count", PATIENCE)
        self.wait_usage({"vision": {"gpus": 0, "overcap_gpus": 3, "gpu_cap": 2},
                         "language": {"gpus": 0, "overcap_gpus": 1, "gpu_cap": 2}})
        began = time.monotonic()
        owners = [self.sbatch("language", 2, seconds=2), self.sbatch("vision", 2, seconds=2)]
        for number in owners:
            self.slurm.wait_state(number, "RUNNING", "COMPLETING", "COMPLETED", seconds=PATIENCE)
        # The grace time is never needed, the warning is enough.
        self.assertLess(time.monotonic() - began, 120)
        for job in jobs:
            self.until(lambda job=job: self.said(job, attempt=2), f"{job} to go on", PATIENCE)
        (self.facts / "finish").touch()
        for job in jobs:
            self.assertEqual(self.overcap("wait", job, deadline=PATIENCE).status, 0)
            first, second = self.said(job), self.said(job, attempt=2)
            self.assertEqual(first[0], "attempt 1 begins at step 0")
            saved = int(first[1].removeprefix("saved step "))
            self.assertEqual(second[0], f"attempt 2 begins at step {saved}", "not a step is lost or done twice")
            self.assertGreaterEqual(int(second[1].removeprefix("done at step ")), saved)
            self.assertEqual((self.job(job)["state"], self.job(job)["restarts"]), ("succeeded", 1))

    def test_caps_and_the_limits_of_debug_hold(self):
        inside = self.sbatch("language", 2)
        self.slurm.wait_state(inside, "RUNNING")
        above = self.sbatch("language", 1)
        self.slurm.wait_reason(above, "QOSGrpGRES")
        debug = self.sbatch("vision", 1, partition="debug")
        self.slurm.wait_state(debug, "RUNNING")
        second = self.sbatch("vision", 1, partition="debug")
        self.slurm.wait_reason(second, "QOSMaxGRESPerUser")
        long = self.slurm.run(["sbatch", "-A", "vision", "-p", "debug", "-t", "5:00:00", "--wrap", "true"])
        self.assertIn("Requested time limit is invalid", long.stderr)
        # Nobody borrows under the name of what he owns, and the other way round.
        for words in (["-p", "overcap"], ["-p", "short", "--qos=overcap"], ["-p", "user-overcap"]):
            refused = self.slurm.run(["sbatch", "-A", "vision", *words, "--wrap", "true"])
            self.assertIn("Invalid qos specification", refused.stderr, words)
        self.wait_usage({"language": {"gpus": 2, "gpu_cap": 2, "capped_gpus": 1}, "vision": {"gpus": 1, "gpu_cap": 2}})

    def test_user_overcap_spills_and_yields_to_labmates(self):
        """Two that may spill have the lab's two GPUs, the other lab has its own: then a labmate comes."""
        spilled = [self.sbatch("vision", 1, "--requeue", "--qos=vision-user-overcap", partition="short,user-overcap")
                   for _ in range(2)]
        other = self.sbatch("language", 2)
        for number in (*spilled, other):
            self.slurm.wait_state(number, "RUNNING")
            self.assertIn(self.partition_of(number), ("short", "user-overcap"))
        third = self.sbatch("vision", 1, "--qos=vision-user-overcap", partition="user-overcap")
        self.slurm.wait_reason(third, "QOSGrpGRES", seconds=PATIENCE)  # also by itself it is held to the cap
        mate = self.sbatch("vision", 2)
        self.slurm.wait_state(mate, "RUNNING", seconds=PATIENCE)
        for number in spilled:
            self.assertEqual(self.slurm.job_state(number), "PENDING")
        self.assertEqual(self.slurm.job_state(other), "RUNNING", "what counts in full is nobody's to take")


if __name__ == "__main__":
    main()
