# SPDX-License-Identifier: Apache-2.0
"""The command lines that `overcap launch` composes, and whether the real programs take them."""
import json
import os
import re
import shutil
import socket
import subprocess
import unittest

from launch_rig import LaunchRig
from overcap_rig import main, python
from rigs.slurm_rig import SlurmCluster

HOST = socket.gethostname()
TELL = ("import os; print(*(os.environ[name] for name in "
        "('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'NODE_RANK')), flush=True)")
PALS = "mpiexec version 1.8.0 revision 1"


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"NOT TESTED: '{program}' is not installed")


class Composed(LaunchRig):
    def plan(self, *args, env=None):
        """What `--dry-run` says."""
        return json.loads(self.ok("launch", "--dry-run", "--json", *args, env={**self.env, **(env or {})}).out)

    def line(self, *args, env=None):
        """The command line, this program and host as BINARY and HOST."""
        words = self.plan(*args, env=env)["launch_command"]
        return " ".join("BINARY" if word == str(self.binary) else word for word in words).replace(HOST, "HOST")

    def fake(self, name, version):
        """A launcher that knows only how to tell its version."""
        return str(self.write(name, f"#!/bin/sh\ncat <<'E'\n{version}\nE\n", mode=0o755, base=self.root))

    def hosts(self, text):
        return str(self.write("hosts", text))


class Golden(Composed):
    """Launchers that are not here: their words are compared with what their manuals say."""

    def test_pals_on_hosts_of_a_file(self):
        self.assertEqual(
            self.line("--launcher", self.fake("mpiexec", PALS), "--hostfile", self.hosts("x1 slots=12\nx2 slots=12\n"),
                      "--cpu-bind", "depth:8", "python", "train.py"),
            f"{self.root}/mpiexec --envall --np 24 --ppn 12 --hostfile HOSTFILE --cpu-bind depth --depth 8 "
            "BINARY rank -- python train.py")

    def test_pals_with_the_processors_of_an_xpu_node(self):
        cpus = "list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100"
        line = self.line("--launcher", self.fake("mpiexec", PALS), "--hostfile", self.hosts("x1:12\n"), "--cpu-bind", cpus,
                         "--launcher-args", "--no-vni", "a.out")
        self.assertEqual(line, f"{self.root}/mpiexec --envall --np 12 --ppn 12 --hostfile HOSTFILE --cpu-bind {cpus} "
                               "--no-vni BINARY rank -- a.out")

    def test_pals_cannot_place_every_plan(self):
        self.refused("launch", "--dry-run", "--launcher", self.fake("mpiexec", PALS), "--hostfile",
                     self.hosts("x1:1\nx2:4\n"), "a.out", says=("PALS", "--ppn 4"))

    def test_intel_mpi_is_a_hydra(self):
        program = self.fake("mpiexec", "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005")
        self.assertEqual(self.line("--launcher", program, "--hostfile", self.hosts("a:2\nb:2\n"), "a.out"),
                         f"{program} -n 4 -genvall -ppn 2 -f HOSTFILE BINARY rank -- a.out")

    def test_open_mpi_five(self):
        line = self.line("--launcher", self.fake("mpirun", "mpirun (Open MPI) 5.0.3"), "--hostfile",
                         self.hosts("a slots=1\nb slots=1\n"), "--cpu-bind", "sockets", "a.out")
        self.assertIn("--map-by ppr:1:node --rank-by slot --bind-to package", line)

    def test_srun_in_a_slurm_job_names_the_host_of_each_rank(self):
        env = {"SLURM_JOB_ID": "7"}
        line = self.line("--launcher", self.fake("srun", "slurm 23.11.4"), "--hostfile", self.hosts("n2:2\nn1:1\n"), "a.out",
                         env=env)
        self.assertEqual(line, f"{self.root}/srun -n 3 --distribution=arbitrary --nodelist=n2,n2,n1 --overlap "
                               "--overcommit --kill-on-bad-exit=1 --export=ALL --unbuffered BINARY rank -- a.out")

    def test_what_cannot_be_is_refused_in_one_line(self):
        for args, words in ((("--launcher", "foo"), ("unknown launcher 'foo'",)),
                            (("--launcher", "srum"), ("did you mean 'srun'",)),
                            (("--launcher", self.fake("strange", "who knows")), ("who knows",)),
                            (("--launcher", "local", "--cpu-bind", "sockets"), ("sockets", "local")),
                            (("--cpu-bind", "sideways"), ("sideways",))):
            with self.subTest(args):
                self.refused("launch", "--dry-run", *args, "true", says=words)


class Real(Composed):
    """Launchers that are here run their line as it is."""

    def run_line(self, *args):
        plan = self.plan(*args)
        words, hostfile = plan["launch_command"], self.root / "hostfile"
        hostfile.write_text(plan["hostfile"])
        words = [str(hostfile) if word == "HOSTFILE" else word for word in words]
        counts = ",".join(str(host["ranks"]) for host in plan["hosts"])
        env = {**self.env, "OVERCAP_LAUNCH_PLAN": f"{plan['launcher']}:{counts}"}
        done = subprocess.run(words, env=env, cwd=self.project, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stderr}")
        return sorted(done.stdout.splitlines(), key=lambda line: int(line.split()[0]))

    FOUR = ["0 4 0 4 0", "1 4 1 4 0", "2 4 2 4 0", "3 4 3 4 0"]

    @needs("mpirun.openmpi")
    def test_open_mpi_takes_its_line(self):
        self.assertEqual(self.run_line("--launcher", "mpirun.openmpi", "-n", "4", *python(TELL)), self.FOUR)
        self.assertEqual(self.run_line("--launcher", "mpirun.openmpi", "-n", "2", "--cpu-bind", "none", *python(TELL)),
                         ["0 2 0 2 0", "1 2 1 2 0"])
        for bind in ("cores", "sockets", "numa", "threads", "depth:1", "list:0"):
            with self.subTest(bind):
                self.assertEqual(self.run_line("--launcher", "mpirun.openmpi", "-n", "1", "--cpu-bind", bind,
                                               *python(TELL)), ["0 1 0 1 0"])

    @needs("mpirun.openmpi")
    def test_open_mpi_binds_more_ranks_than_processors_when_asked(self):
        ranks = (os.cpu_count() or 1) + 1
        lines = self.run_line("--launcher", "mpirun.openmpi", "-n", str(ranks), "--cpu-bind", "cores", *python(TELL))
        self.assertEqual(len(lines), ranks)

    @needs("mpirun.mpich")
    def test_mpich_takes_its_line(self):
        self.assertEqual(self.run_line("--launcher", "mpirun.mpich", "-n", "4", *python(TELL)), self.FOUR)
        for bind in ("none", "cores", "sockets", "numa", "threads", "depth:1", "list:0:0-0"):
            with self.subTest(bind):
                self.assertEqual(self.run_line("--launcher", "mpirun.mpich", "-n", "2", "--cpu-bind", bind,
                                               *python(TELL)), ["0 2 0 2 0", "1 2 1 2 0"])

    @needs("mpirun.mpich")
    def test_mpich_places_unequal_hosts(self):
        lines = self.run_line("--launcher", "mpirun.mpich", "--hostfile", self.hosts(f"{HOST}:3\nlocalhost:2\n"),
                              *python(TELL))
        self.assertEqual(lines, ["0 5 0 3 0", "1 5 1 3 0", "2 5 2 3 0", "3 5 0 2 1", "4 5 1 2 1"])

    @needs("mpirun.mpich")
    def test_the_program_is_asked_what_it_is(self):
        plan = self.plan("--launcher", "mpiexec.mpich", "-n", "1", "true")
        self.assertEqual(plan["launcher"], "hydra")
        self.assertRegex(plan["reason"], "HYDRA build details")

    @needs("mpicc.mpich")
    def test_a_program_linked_with_mpi_gets_an_mpiexec_when_it_is_named(self):
        source = self.write("m.c", "#include <mpi.h>\nint main(int c, char** v) { MPI_Init(&c, &v); return MPI_Finalize(); }\n")
        program = self.root / "m"
        subprocess.run(["mpicc.mpich", str(source), "-o", str(program)], check=True, timeout=60, capture_output=True)
        self.assertEqual(self.plan("-n", "1", str(program))["launcher"], "local")
        self.assertEqual(self.plan("--launcher", "mpiexec.mpich", "-n", "1", str(program))["launcher"], "hydra")


class Slurm(Composed):
    """The real srun, in jobs whose own requests contradict the plan."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = SlurmCluster(nodes=2, gpus=4)
        cls.addClassCleanup(cls.slurm.close)

    def lines_in(self, allocation, *args):
        self.env.update({name: self.slurm.environment[name] for name in ("SLURM_CONF", "PATH")})
        done = self.slurm.run(["salloc", "--quiet", *allocation, str(self.binary), "launch", "--tee", "all", *args],
                              env=self.env, cwd=self.project)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = [re.search(r"@(.*)@", line) for line in done.stdout.splitlines()]
        return sorted(match[1] for match in found if match)

    WHERE = ("import os; print('@', os.environ['RANK'], os.environ['LOCAL_RANK'], os.environ['NODE_RANK'], "
             "os.environ['SLURMD_NODENAME'], os.environ.get('CUDA_VISIBLE_DEVICES'), '@', flush=True)")

    def test_ranks_are_placed_as_planned_whatever_the_processors(self):
        # salloc gives 3 and 1 processors here, and srun by itself would place 3 and 1 tasks
        self.assertEqual(self.lines_in(["-N2", "-n4", "--gpus-per-node=2"], *python(self.WHERE)),
                         [" 0 0 0 n1 0,1 ", " 1 1 0 n1 0,1 ", " 2 0 1 n2 0,1 ", " 3 1 1 n2 0,1 "])

    def test_requests_of_the_job_are_not_asked_again(self):
        for gpus in ("--gpus-per-node=a40:2", "--gres=gpu:2"):
            with self.subTest(gpus):
                self.assertEqual(len(self.lines_in(["-N2", "-n2", "--ntasks-per-node=1", gpus], *python(self.WHERE))), 4)

    def test_a_host_file_places_ranks_in_its_order(self):
        hosts = self.hosts("n2:2\nn1:1\n")
        self.assertEqual(self.lines_in(["-N2", "-n4"], "--hostfile", hosts, *python(self.WHERE)),
                         [" 0 0 0 n2 None ", " 1 1 0 n2 None ", " 2 0 1 n1 None "])


if __name__ == "__main__":
    main()
