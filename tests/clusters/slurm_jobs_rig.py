# SPDX-License-Identifier: Apache-2.0
"""What tests of jobs on a real Slurm stand on: one cluster per class, a home, a project and a configuration per test.

Every command runs on the cluster's login node. $OVERCAP_HOME lies on a file system that all nodes see, as the real one
must. A test's folder is named in the environment of everything that its jobs start, wherever Slurm starts it; when the
test ends nothing of that may be left.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from overcap_rig import DEADLINE, FINAL, REPOSITORY, Done, Rig, main, shell  # noqa: E402, F401
from rigs.slurm_rig import SlurmCluster  # noqa: E402

NODE_PYTHON = "/usr/bin/python3"  # that nodes have too
FOREIGN = re.compile(r"(SLURM|SBATCH|PBS|PMI|PMIX|OMPI|PALS|MPI_LOCAL|RANK$|WORLD_SIZE$|LOCAL_|MASTER_|NODE_RANK$)")


class SlurmJobsRig(Rig):
    cluster = {"nodes": 2, "gpus": 0}  # of SlurmCluster
    settings = "partition: short"      # of the cluster `sky` in the configuration
    more_config = "jobs: {grace: 2s}"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = SlurmCluster(**cls.cluster)
        cls.addClassCleanup(lambda: cls.slurm.close())

    @classmethod
    def new_cluster(cls):
        """In the place of one that a test has broken: quicker than repairing it."""
        cls.slurm.close()
        cls.slurm = SlurmCluster(**cls.cluster)

    def setUp(self):
        super().setUp()
        self.broken = False  # whether the test leaves a cluster that others cannot use
        self.env = {name: value for name, value in self.env.items() if not FOREIGN.match(name)}
        self.env.update({name: self.slurm.environment[name] for name in ("SLURM_CONF", "PATH")})
        self.configure()

    def configure(self, settings=None, more=None):
        text = (f"cluster: sky\nclusters:\n  sky: {{driver: slurm, {self.settings if settings is None else settings}}}\n"
                f"{self.more_config if more is None else more}\n")
        self.write("overcap/overcap.yaml", text, base=pathlib.Path(self.env["XDG_CONFIG_HOME"]))

    def tearDown(self):
        if self.broken:
            self.new_cluster()
        else:
            self.slurm.empty_queue(seconds=60)
        super().tearDown()

    def stop_everything(self):
        """There is no engine to stop; what jobs have started ends with them, or soon after."""
        end = time.monotonic() + 10
        while self.processes() and time.monotonic() < end:
            time.sleep(0.02)
        left = self.processes()
        for pid in left:
            self.kill(pid)
        self.assertEqual(left, [], "processes were left behind")

    # ---- commands: on the login node

    def start(self, *args, cwd=None, env=None, stdin=subprocess.DEVNULL, node=None):
        return self.slurm.popen([str(self.binary), *args], env={**self.env, **(env or {})}, cwd=cwd or self.project,
                                text=False, stdin=stdin, node=node)

    def done(self, completed):
        return Done(completed.args, completed.returncode, completed.stdout, completed.stderr, 0)

    def ls(self, *args):
        return {job["id"]: job for job in self.jobs("ls", *args)}

    # ---- what Slurm and the job's folder say

    def folder(self, job_id):
        return self.home / "jobs" / job_id

    def slurm_id(self, job_id):
        return json.loads((self.folder(job_id) / "handle.json").read_text())["slurm_id"]

    def scontrol(self, job_id):
        """{field: value} of what the controller knows of the job."""
        return self.scontrol_of(self.slurm_id(job_id))

    def scontrol_of(self, number):
        said = self.slurm.must(["scontrol", "-o", "show", "job", str(number)])
        return dict(re.findall(r"(\S+?)=(\S*)", said.splitlines()[0]))

    def report(self, job_id, attempt=1, slot=0):
        """The events that the agent has reported."""
        path = self.folder(job_id) / f"attempt-{attempt}" / f"agent-{slot}.jsonl"
        lines = path.read_bytes().rstrip(b"\0").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"}")]

    def until_running(self, job_id, attempt=1):
        """Until its ranks run; costs the controller nothing."""
        self.until(lambda: any(event["e"] == "started" for event in self.report(job_id, attempt)),
                   f"attempt {attempt} of {job_id} to start", 2 * DEADLINE)

    def lines(self, name):
        """Of facts/NAME; none while it is not there."""
        path = self.facts / name
        return path.read_text().splitlines() if path.exists() else []

    def rank_log(self, job_id, rank=0, attempt=1):
        return self.log(job_id, rank, attempt).decode()
