# SPDX-License-Identifier: Apache-2.0
"""A Slurm that is ruled by a policy: two labs with two GPUs each, on two nodes with two each."""
import json
import re

from slurm_jobs_rig import DEADLINE, NODE_PYTHON, REPOSITORY, SlurmJobsRig
from rigs.counting_job import COUNTING_JOB
from rigs.slurm_policy import PolicyCluster

PATIENCE = 4 * DEADLINE  # a requeued job waits some seconds, and whoever took its place must end first

POLICY = """
nodes:
  n[1-2]: {{gpus: a40:2, cpus: 16}}
labs:
  vision: {{gpus: 2, members: [{owner}, ann, bob], admins: [ann]}}
  language: {{gpus: {{total: 2, a40: 2}}, cpus: 24, members: [{owner}, carol, ann]}}
partitions:
  debug: {{gpus_per_user: 1}}
  user-overcap: {{grace: 0, quantum: 0}}
  overcap: {{grace: 2m, quantum: 0}}
maintenance:
  - {{name: power, nodes: n1, start: 2036-12-01T08:00:00Z, duration: 8h}}
"""


class PolicyRig(SlurmJobsRig):
    settings = "partition: short"
    cluster_settings = {}

    @classmethod
    def setUpClass(cls):
        super(SlurmJobsRig, cls).setUpClass()
        cls.slurm = PolicyCluster(nodes=2, gpus=2, settings=cls.cluster_settings)
        cls.addClassCleanup(lambda: cls.slurm.close())

    def setUp(self):
        super().setUp()
        self.policy = self.project / "policy.yaml"
        self.policy.write_text(POLICY.format(owner=self.slurm.owner))

    def change(self, old, new):
        text = self.policy.read_text()
        self.assertIn(old, text)
        self.policy.write_text(text.replace(old, new))

    def apply_once(self, *words):
        return self.overcap("policy", "apply", *words, str(self.policy), deadline=2 * DEADLINE)

    def apply(self):
        """Applies the policy, puts the printed lines into slurm.conf when there are any, and applies it again."""
        done = self.apply_once()
        lines = self.lines_in(done.out)
        if done.status != 6 or not lines:
            return done
        self.slurm.take_lines(lines)
        again = self.apply_once()
        again.out = done.out + again.out
        return again

    @staticmethod
    def lines_in(text):
        """Those for slurm.conf."""
        return [line for line in text.splitlines() if re.match(r"\w+=", line)]

    def lines_of(self, *argv):
        return self.slurm.must(list(argv)).splitlines()


class SharedRig(PolicyRig):
    """With jobs: of Slurm's own, and ours that count steps."""
    def setUp(self):
        super().setUp()
        self.write("resume.py", COUNTING_JOB)
        self.env.update(PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1")

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

    def count(self, lab, partition):
        """A job of ours that counts steps, and of which only the lab and the partition are told."""
        return self.submit("-p", partition, "--account", lab, "--requeue", "--warn", "60s", "-n", "1", "--", NODE_PYTHON,
                           "-S", "resume.py")

    def wait_counts(self, jobs, attempt=1):
        for job in jobs:
            self.until(lambda job=job: self.said(job, attempt), f"{job} to count in attempt {attempt}", PATIENCE)

    def wait_ends_at_the_exact_step(self, jobs):
        """Each was preempted once and is in its second attempt."""
        (self.facts / "finish").touch()
        for job in jobs:
            self.assertEqual(self.overcap("wait", job, deadline=PATIENCE).status, 0)
            first, second = self.said(job), self.said(job, attempt=2)
            self.assertEqual(first[0], "attempt 1 begins at step 0")
            saved = int(first[1].removeprefix("saved step "))
            self.assertEqual(second[0], f"attempt 2 begins at step {saved}", "not a step is lost or done twice")
            self.assertGreaterEqual(int(second[1].removeprefix("done at step ")), saved)
            self.assertEqual((self.job(job)["state"], self.job(job)["restarts"]), ("succeeded", 1))

    def place_of(self, number):
        return self.slurm.must(["squeue", "-h", "-j", str(number), "-o", "%a %q"]).strip()

    def partition_of(self, number):
        return self.slurm.must(["squeue", "-h", "-j", str(number), "-o", "%P"]).strip()

    def yielding(self, lab, gpus=1, *words, **more):
        return self.sbatch(lab, gpus, "--requeue", f"--qos={lab}-user-overcap", *words, partition="user-overcap", **more)
