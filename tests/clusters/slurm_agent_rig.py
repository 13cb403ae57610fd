# SPDX-License-Identifier: Apache-2.0
"""Jobs whose batch script is `overcap agent --under slurm`, on a real Slurm, without the driver: their folders are made by
hand.

One cluster for all tests of a module. Its partitions: short, for those who go first; and three that give way: at once (over), with a grace
time that nobody here waits out (grace), and for good (gone).
"""
import json
import os
import pathlib
import unittest

from rigs.machines import wait_until
from rigs.slurm_rig import SlurmCluster

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
GRACE_SECONDS = 20
PARTITIONS = {
    "short": "PriorityTier=10 PreemptMode=OFF Default=YES",
    "over": "PriorityTier=1 PreemptMode=REQUEUE",
    "grace": f"PriorityTier=1 PreemptMode=REQUEUE GraceTime={GRACE_SECONDS}",
    "gone": "PriorityTier=1 PreemptMode=CANCEL",
}
WARNING = "--signal=B:USR1@60"
# Saves how far it came when it is told to stop, and says what it was told and when.
RESUMING = r"""
state=$OVERCAP_STATE_DIR/saved; told=$OVERCAP_JOB_DIR/told-$OVERCAP_ATTEMPT-${RANK:-b}
stop() { echo "$1 $EPOCHREALTIME" >> $told; echo "attempt $OVERCAP_ATTEMPT" >> $state; exit $2; }
trap 'stop TERM 143' TERM; trap 'stop USR1 138' USR1
test $OVERCAP_ATTEMPT -gt 1 && { echo "resumed after: $(tail -n 1 $state)"; exit 0; }
echo ready; while :; do sleep 0.05; done
"""


class Job:
    """A job folder under the cluster's shared folder, and its Slurm job."""
    count = 0

    def __init__(self, slurm, script, store=None, begin="", **spec):
        Job.count += 1
        self.slurm, self.root = slurm, slurm.folder / "work" / "root"
        store = store or self.root / "store"
        self.id = f"test_1700000000_{Job.count:08x}"
        self.folder = self.root / "jobs" / self.id
        self.folder.mkdir(parents=True)
        store.mkdir(exist_ok=True)
        command = ["/bin/bash", "-c", script] if isinstance(script, str) else script
        if spec.get("batch"):  # no submitter's environment is kept: with the usual PATH it would find this machine's srun
            command = ["/usr/bin/env", f"PATH={slurm.environment['PATH']}", *command]
        self.spec = {"id": self.id, "user": "test", "cluster": "sky", "command": command, "workdir": str(self.folder),
                     **spec}
        (self.folder / "spec.json").write_text(json.dumps(self.spec))
        (self.folder / "script.sh").write_text(
            f"#!/bin/sh\n{begin}\nexec {BINARY} agent --job {self.folder} --store {store} --under slurm --grace 10\n")

    def submit(self, *words):
        resources = self.spec.get("resources", {})
        asked = [f"--nodes={resources.get('nodes', 1)}", f"--ntasks-per-node={resources.get('ranks_per_node', 1)}"]
        if resources.get("gpus"):
            asked.append(f"--gpus-per-node={resources['gpus'] // resources.get('nodes', 1)}")
        if self.spec.get("array"):
            asked.append(f"--array={self.spec['array']}")
        asked.append("--requeue" if self.spec.get("requeue") else "--no-requeue")
        self.number = self.slurm.submit(*asked, f"--comment=overcap:{self.id}", f"--output={self.folder}/slurm.log",
                                        "--open-mode=append", "--time=10", *words, str(self.folder / "script.sh"))
        return self

    def lines(self, attempt=1, slot=0):
        try:
            data = (self.folder / f"attempt-{attempt}" / f"agent-{slot}.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in data.rstrip(b"\0").splitlines(keepends=True) if line.endswith(b"\n")]

    def end(self, attempt=1, slot=0, seconds=60):
        """Waits for the end of an attempt and gives its line."""
        def ended():
            return next((line for line in self.lines(attempt, slot) if line["e"] == "end"), None)
        try:
            return wait_until(ended, f"attempt {attempt} of {self.id} to end", seconds, pause=0.02)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.tell()}") from None

    def requeues(self, attempt=1, slot=0):
        return [line["why"] for line in self.lines(attempt, slot) if line["e"] == "requeue"]

    def log(self, rank=0, attempt=1, name=None):
        path = self.folder / f"attempt-{attempt}" / (name or f"rank-{rank}.log")
        return path.read_text() if path.exists() else ""

    def wait_log(self, text, rank=0, attempt=1, seconds=60):
        try:
            wait_until(lambda: text in self.log(rank, attempt), f"rank {rank} of {self.id} to say '{text}'", seconds,
                       pause=0.02)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.tell()}") from None
        return self

    def attempts(self):
        return len(list(self.folder.glob("attempt-*")))

    def told(self, attempt=1, rank="0"):
        """[(signal, when), ...] as the rank saw it."""
        path = self.folder / f"told-{attempt}-{rank}"
        text = path.read_text() if path.exists() else ""
        return [(line.split()[0], float(line.split()[1])) for line in text.splitlines()]

    def restarts(self):
        shown = self.slurm.run(["scontrol", "show", "job", "-o", str(self.number)]).stdout
        return int(shown.partition("Restarts=")[2].split()[0])

    def tell(self):
        """All that is known, for messages."""
        parts = [self.slurm.run(["scontrol", "show", "job", str(self.number)]).stdout]
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path.suffix in (".jsonl", ".log", ".claim"):
                parts.append(f"--- {path.relative_to(self.folder)}\n{path.read_text(errors='replace')[-1500:]}")
        return "\n".join(parts)


def begin_cluster():
    """For setUpModule."""
    if not BINARY.exists():
        raise unittest.SkipTest(f"NOT TESTED: {BINARY} is not built")
    SlurmAgentTest.slurm = SlurmCluster(nodes=4, gpus=4, partitions=PARTITIONS, kill_wait=5)
    unittest.addModuleCleanup(SlurmAgentTest.slurm.close)


class SlurmAgentTest(unittest.TestCase):
    slurm = None

    def setUp(self):
        self.addCleanup(self.slurm.empty_queue)

    def job(self, script, **spec):
        return Job(self.slurm, script, **spec)

    def take_nodes(self, *nodes):
        """Somebody who goes first wants all GPUs of these nodes."""
        return [self.slurm.submit("--gpus-per-node=4", "-w", node, "--output=/dev/null", "--wrap", "sleep 2")
                for node in nodes]

    def gone(self, node, words):
        """No process with these words is left on the node."""
        wait_until(lambda: self.slurm.run(["pgrep", "-f", words], node=node).returncode == 1,
                   f"'{words}' to be gone on {node}", 30)
