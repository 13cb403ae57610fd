# SPDX-License-Identifier: Apache-2.0
"""A training loop over gloo that counts its steps, with something killed again and again (a rank, an agent, a whole node, a
member of etcd): it must end with the exact number of steps and the exact loss of a run that nobody disturbed."""
import json
import random
import signal
import subprocess
import time

from elastic_rig import ElasticRig
from launch_rig import HOST_PYTHON
from overcap_rig import REPOSITORY, main
from rigs.etcd_rig import Etcd

GROUP = "stores"
DEADLINE_SECONDS = 600
KILLS = 20
STEPS = 400

TRAIN = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
import torch
import torch.distributed as dist
import overcap
from overcap import checkpoint

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, facts = dist.get_rank(), os.environ["FACTS"]
with open(f"{facts}/pid-{os.getpid()}", "w") as f:
    f.write(os.environ["OVERCAP_ELASTIC_EPOCH"])
steps = int(sys.argv[2])
state = checkpoint.load({"step": 0, "weight": torch.ones(4, dtype=torch.float64), "loss": 0.0})
while state["step"] < steps:
    # Whole numbers in exact parts, the same in every world: every rank adds what belongs to it by its number.
    part = torch.zeros(4, dtype=torch.float64)
    for shard in range(rank, 12, dist.get_world_size()):
        part += float((state["step"] * 7 + shard * 3) % 11)
    dist.all_reduce(part)
    weight = state["weight"] * 0.5 + part / 1024
    state = {"step": state["step"] + 1, "weight": weight, "loss": float(weight.sum())}
    overcap.heartbeat(state["step"])
    checkpoint.save(state)
    if rank == 0:
        with open(f"{facts}/progress", "w") as f:
            f.write(str(state["step"]))
    time.sleep(0.004)
if rank == 0:
    with open(f"{facts}/result.json", "w") as f:
        json.dump({"step": state["step"], "loss": state["loss"].hex(), "weight": [w.hex() for w in state["weight"].tolist()]}, f)
dist.destroy_process_group()
"""


def has_torch():
    return subprocess.run([HOST_PYTHON, "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                          capture_output=True, check=False, timeout=60).returncode == 0


class Training(ElasticRig):
    def setUp(self):
        super().setUp()
        if not has_torch():
            self.skipTest("NOT TESTED: no torch with gloo")
        self.script = self.write("train.py", TRAIN)

    def begin(self, name, etcd, job):
        env = {"OVERCAP_STATE_DIR": str(self.root / f"state-{job}"), "GLOO_SOCKET_IFNAME": "lo"}
        return self.agent(name, "--nnodes", "1:2", "--nproc-per-node", "2", "--ttl", "2s", "--last-call", "300ms", "--max-restarts",
                          "1000", "--grow", "now", "--grace", "1s", "--tee", "none", "--local-addr", "127.0.0.1", "--rdzv", f"etcd://{etcd.endpoints}/{job}",
                          HOST_PYTHON, str(self.script), str(REPOSITORY / "python"), str(STEPS), env=env)

    def result(self, name, deadline):
        path = self.facts / "result.json"
        self.until(path.exists, "the end of the training", deadline)
        for each in list(self.agents):
            done = self.ended_agent(each, deadline)
            self.assertEqual(done.status, 0, str(done))
        found = json.loads(path.read_text())
        path.unlink()
        return found

    def ranks(self):
        """Processes of ranks that run."""
        return [pid for pid in self.processes() if (self.facts / f"pid-{pid}").exists()]

    def forget(self, name):
        process = self.agents.pop(name)
        process.wait(20)
        process.stdout.close()
        process.stderr.close()

    def test_twenty_kills_change_nothing_of_the_result(self):
        with Etcd(3) as etcd:
            self.begin("calm", etcd, "calm")
            wanted = self.result("calm", 120)
            self.assertEqual(wanted["step"], STEPS)
            (self.facts / "progress").unlink()
            dice = random.Random(20)
            for name in ("n1", "n2"):
                self.begin(name, etcd, "stormy")
            killed = {"rank": 0, "agent": 0, "node": 0, "etcd": 0}
            lives = 2
            down = None
            progress = self.facts / "progress"
            victims = [*["rank"] * 8, *["agent", "node", "etcd"] * 4]
            self.assertEqual(len(victims), KILLS)
            dice.shuffle(victims)
            for what in victims:
                ranks = self.until(self.ranks, "ranks that run", 60)
                time.sleep(dice.uniform(0, 0.4))
                if (self.facts / "result.json").exists():
                    break
                killed[what] += 1
                if what == "rank":
                    self.kill(dice.choice(ranks), signal.SIGKILL)
                elif what == "etcd":
                    if down is not None:
                        etcd.restart(down)
                        self.until(lambda: etcd.healthy(down), "etcd's member to be back")
                    down = dice.randrange(3)
                    etcd.kill(down)
                else:
                    name = dice.choice(sorted(self.agents))
                    if what == "node":  # everything on it at once
                        pids = self.processes(f"home-{name}")
                        for pid in pids:
                            self.kill(pid, signal.SIGKILL)
                    self.agents[name].kill()
                    self.forget(name)
                    lives += 1
                    self.begin(f"n{lives}", etcd, "stormy")
            self.assertEqual(sum(killed.values()), KILLS, f"the training ended too early: {killed}")
            self.assertEqual(self.result("stormy", 120), wanted, killed)
            self.assertEqual(progress.read_text(), str(STEPS))


if __name__ == "__main__":
    main()
