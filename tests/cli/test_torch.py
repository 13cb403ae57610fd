# SPDX-License-Identifier: Apache-2.0
"""overcap.torch with a real torch: four ranks add up a tensor under every launcher there is.

Torch is Debian's for /usr/bin/python3, with gloo. The launchers are real: both MPIs, torch's own, ssh to hosts of their
own, Slurm. No GPU is needed.
"""
import json
import os
import shutil
import subprocess
import unittest

from overcap_rig import REPOSITORY, Rig

GROUP = "stores"
DEADLINE_SECONDS = 600
PYTHON = "/usr/bin/python3"
PATIENCE = 150 * float(os.environ.get("OVERCAP_TEST_PATIENCE", "1"))  # of one launch; torch is slow to import

RANK = """
import dataclasses, json, os, sys, torch, torch.distributed as dist
import overcap.torch
world = overcap.torch.setup(timeout=120, seed=5)
assert overcap.torch.ensure_init_process_group() == world
total = torch.tensor([world.rank + 1.0], device=world.device)
dist.all_reduce(total)
facts = {**{name: getattr(world, name) for name in ("rank", "world_size", "local_rank", "local_world_size",
         "node_rank", "backend", "told_by")}, "device": str(world.device), "sum": total.item(),
         "draw": torch.rand(1).item(), "address": os.environ["MASTER_ADDR"]}
with open(os.path.join(sys.argv[1], f"rank-{world.rank}.json"), "w") as file:
    json.dump(facts, file)
overcap.torch.cleanup()
overcap.torch.cleanup()
"""

# What torchrun does; Debian's torchrun itself does not start with Python 3.11.
TORCHRUN = """
import sys
from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.launcher.api import LaunchConfig, launch_agent
config = LaunchConfig(1, 1, 2, run_id="test", rdzv_backend="c10d", rdzv_endpoint="127.0.0.1:0", monitor_interval=0.1,
                      redirects=Std.NONE, tee=Std.NONE)
launch_agent(config, sys.executable, sys.argv[1:])
"""

ALONE = """
import datetime, os, random, sys, torch, torch.distributed as dist
import overcap, overcap.torch
from overcap.torch import World

def refused(words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except overcap.OvercapError as error:
        assert words in str(error) and "\\n" not in str(error), error
    else:
        raise AssertionError(words)

overcap.torch.cleanup()
refused("a timeout of 0 s", overcap.torch.setup, timeout=0)
refused("no cuda device is visible", overcap.torch.setup, device="cuda")
refused("there is no 'cuda:7'", overcap.torch.setup, device="cuda:7")
refused("is no device", overcap.torch.setup, device="nope")
assert not dist.is_initialized()
world = overcap.torch.setup(timeout=datetime.timedelta(seconds=60), seed=3)
assert world == World(0, 1, 0, 1, 0, device=torch.device("cpu"), backend="gloo"), world
assert world.told_by == "none"
first = torch.rand(1), random.random()
assert overcap.torch.setup(seed=3) == world
assert first == (torch.rand(1), random.random())
assert os.environ["WORLD_SIZE"] == "1" and int(os.environ["MASTER_PORT"]) > 0
dist.barrier()
overcap.torch.cleanup()
assert not dist.is_initialized()
assert overcap.torch.setup() == world  # a second life
overcap.torch.cleanup()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # somebody else did it
assert overcap.torch.ensure_init_process_group() == world
os.environ.update(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
refused("call overcap.torch.setup() in place of init_process_group()", overcap.torch.setup)
dist.destroy_process_group()
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
refused("rank 1 of 2 could not join the gloo group at 127.0.0.1:1", overcap.torch.setup, timeout=1)
print("ok")
"""


def has_torch():
    if not os.path.exists(PYTHON):
        return False
    words = [PYTHON, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    return subprocess.run(words, stdin=subprocess.DEVNULL, timeout=60, check=False).returncode == 0


@unittest.skipUnless(has_torch(), f"NOT TESTED: no torch for {PYTHON} (tools/install_packages test)")
class Torch(Rig):
    def setUp(self):
        super().setUp()
        self.env.update(
            PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1",
            CUDA_VISIBLE_DEVICES="",
            OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
        self.env["PATH"] += ":/usr/sbin:/sbin"
        self.script = self.write("rank.py", RANK)
        self.rank = [PYTHON, str(self.script), str(self.facts)]

    def only_loopback(self):
        self.env["GLOO_SOCKET_IFNAME"] = "lo"

    def run_words(self, words, **more):
        """Runs to the end and must succeed."""
        process = subprocess.Popen([str(word) for word in words], cwd=self.project, env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        done = self.finish(process, PATIENCE)
        self.assertEqual(done.status, 0, str(done))
        return done

    def ranks(self, count=4):
        """What the ranks have left, by rank; all of them met."""
        self.assertEqual(sorted(path.name for path in self.facts.iterdir()), [f"rank-{n}.json" for n in range(count)])
        facts = [json.loads((self.facts / f"rank-{n}.json").read_text()) for n in range(count)]
        for number, fact in enumerate(facts):
            self.assertEqual((fact["rank"], fact["world_size"]), (number, count), facts)
            self.assertEqual((fact["sum"], fact["backend"]), (count * (count + 1) / 2, "gloo"), facts)
        self.assertEqual(len({fact["draw"] for fact in facts}), count, "ranks draw numbers of their own")
        return facts

    def met_on_one_host(self, told_by, count=4):
        for fact in self.ranks(count):
            self.assertEqual((fact["local_rank"], fact["local_world_size"], fact["node_rank"], fact["told_by"]),
                             (fact["rank"], count, 0, told_by), fact)

    def met_on_two_hosts(self, told_by):
        places = [(f["local_rank"], f["local_world_size"], f["node_rank"], f["told_by"]) for f in self.ranks()]
        self.assertEqual(places, [(0, 2, 0, told_by), (1, 2, 0, told_by), (0, 2, 1, told_by), (1, 2, 1, told_by)])

    def mpirun(self, flavour):
        """Its full name; the plain one is the machine's choice."""
        found = shutil.which(f"mpirun.{flavour}")
        if found is None:
            self.skipTest(f"NOT TESTED: no mpirun.{flavour} (tools/install_packages test)")
        return found

    def overcap_words(self, verb, *words):
        return [str(self.binary), verb, *words]

    def first_on_path(self, flavour):
        """Makes mpiexec and mpirun that flavour's."""
        folder = self.root / "bin"
        folder.mkdir()
        for name in ("mpirun", "mpiexec"):
            # No link: Hydra looks for its proxy beside the name it was called by.
            program = self.mpirun(flavour).replace("mpirun", name)
            (folder / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
            (folder / name).chmod(0o755)
        self.env["PATH"] = f"{folder}:{self.env['PATH']}"


class OnOneHost(Torch):
    def setUp(self):
        super().setUp()
        self.only_loopback()

    def test_alone(self):
        done = self.run_words([PYTHON, self.write("alone.py", ALONE)])
        self.assertEqual(done.out, "ok\n", str(done))

    def test_bare_open_mpi(self):
        self.run_words([self.mpirun("openmpi"), "-n", "4", *self.rank])
        self.met_on_one_host("OMPI_COMM_WORLD_*")

    def test_bare_mpich(self):
        self.run_words([self.mpirun("mpich"), "-n", "4", *self.rank])
        self.met_on_one_host("PMI_*")

    def test_torchs_own_launcher(self):
        self.run_words([PYTHON, self.write("torchrun.py", TORCHRUN), *self.rank[1:]])
        self.met_on_one_host("RANK", count=2)

    def test_two_launches_side_by_side_do_not_meet(self):
        words = [self.mpirun("mpich"), "-n", "2", *self.rank[:2]]
        folders = [self.root / "one", self.root / "two"]
        running = []
        for folder in folders:
            folder.mkdir()
            running.append(subprocess.Popen([*words, str(folder)], env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for process, folder in zip(running, folders):
            done = self.finish(process, PATIENCE)
            self.assertEqual(done.status, 0, str(done))
            self.facts = folder
            self.met_on_one_host("PMI_*", count=2)

    def test_open_mpi_with_overcap_rank(self):
        self.run_words([self.mpirun("openmpi"), "-n", "4", *self.overcap_words("rank", "--"), *self.rank])
        self.met_on_one_host("RANK")

    def test_mpich_with_overcap_rank(self):
        self.run_words([self.mpirun("mpich"), "-n", "4", *self.overcap_words("rank", "--"), *self.rank])
        self.met_on_one_host("RANK")

    def test_overcap_launch(self):
        self.run_words([*self.overcap_words("launch", "--launcher", "local", "-n", "4", "--"), *self.rank])
        self.met_on_one_host("RANK")

    def test_overcap_launch_through_open_mpi(self):
        self.first_on_path("openmpi")
        self.run_words([*self.overcap_words("launch", "--launcher", "mpiexec", "-n", "4", "--"), *self.rank])
        self.met_on_one_host("RANK")

    def test_overcap_launch_through_mpich(self):
        self.first_on_path("mpich")
        self.run_words([*self.overcap_words("launch", "--launcher", "mpiexec", "-n", "4", "--"), *self.rank])
        self.met_on_one_host("RANK")

    def test_the_example_trains(self):
        example = REPOSITORY / "examples" / "ddp" / "train.py"
        done = self.run_words([self.mpirun("mpich"), "-n", "2", PYTHON, example, "--steps", "60"])
        self.assertIn("rank 0 of 2 on cpu by gloo\n", done.out)
        self.assertIn("rank 1 of 2 on cpu by gloo\n", done.out)
        first, last = [float(line.split()[3]) for line in done.out.splitlines() if line.startswith("step")][::3]
        self.assertLess(last, first, done.out)
        self.assertRegex(done.out, r"y = [0-9.]+ x \+ [0-9.]+; the same on all ranks: yes\n")


class OnSeveralHosts(Torch):
    def test_overcap_launch_over_ssh(self):
        from rigs.hosts_rig import SshHosts
        words = self.overcap_words("launch", "--launcher", "ssh", "-n", "4")
        with SshHosts(2) as hosts:
            if not hosts.separate:
                self.only_loopback()
            self.env["OVERCAP_SSH"] = hosts.ssh_program
            self.run_words([*words, "--hostfile", hosts.hostfile(slots=2), "--", *self.rank])
            self.met_on_two_hosts("RANK")


class UnderSlurm(Torch):
    """On two nodes, two tasks each."""

    def run_in(self, *words):
        from rigs.slurm_rig import SlurmCluster
        with SlurmCluster(nodes=2, gpus=0) as slurm:
            env = {**slurm.environment, **self.env, "PATH": slurm.environment["PATH"]}
            done = slurm.run([*words, *self.rank], env=env, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, f"{done.args}\n{done.stdout}\n{done.stderr}")

    def test_bare_srun(self):
        self.run_in("srun", "-N2", "--ntasks-per-node=2")
        self.met_on_two_hosts("SLURM_*")

    def test_srun_with_overcap_rank(self):
        self.run_in("srun", "-N2", "--ntasks-per-node=2", *self.overcap_words("rank", "--"))
        self.met_on_two_hosts("RANK")

    def test_overcap_launch_in_an_allocation(self):
        self.run_in("salloc", "-N2", "--ntasks-per-node=2", *self.overcap_words("launch", "-n", "4", "--"))
        self.met_on_two_hosts("RANK")


if __name__ == "__main__":
    unittest.main(verbosity=2)
