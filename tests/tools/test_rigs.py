# SPDX-License-Identifier: Apache-2.0
"""The rigs that end-to-end tests stand on: hosts behind ssh and a Slurm, and that nothing of them stays."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from rigs.hosts_rig import SshHosts
from rigs.machines import wait_until
from rigs.slurm_rig import SlurmCluster

TESTS = pathlib.Path(__file__).resolve().parents[1]


def processes_with(word):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts(3)
        cls.addClassCleanup(cls.hosts.close)

    def test_each_host_answers_over_ssh_with_its_own_name(self):
        said = [self.hosts.ssh(name, ["hostname"]).stdout.strip() for name in self.hosts.names]
        if self.hosts.separate:
            self.assertEqual(said, self.hosts.names)
        else:
            self.assertEqual(len(set(said)), 1)

    def test_a_private_folder_is_seen_on_one_host_only(self):
        pathlib.Path(self.hosts.private_path("host2"), "secret").touch()
        seen = [self.hosts.run(name, ["ls", self.hosts.private_dir]).stdout for name in self.hosts.names]
        self.assertEqual(seen, ["", "secret\n", ""])

    def test_a_host_that_is_cut_off_answers_again_after_healing(self):
        self.hosts.cut("host1")
        self.assertFalse(self.hosts.answers("host1"))
        self.hosts.heal("host1")
        end = time.monotonic() + 30  # an answer within a second is too much to ask of a busy machine
        while not (answers := self.hosts.answers("host1")) and time.monotonic() < end:
            pass
        self.assertTrue(answers)

    def test_a_host_can_be_powered_off_and_on(self):
        name = self.hosts.names[2]
        self.hosts.power_off(name)
        self.assertFalse(self.hosts.answers(name))
        self.hosts.power_on(name)
        self.assertEqual(self.hosts.ssh(name, ["echo", "here"]).stdout, "here\n")

    def test_a_host_file_has_one_line_for_each_host(self):
        one, two, three = self.hosts.names
        self.assertEqual(pathlib.Path(self.hosts.hostfile([1, 2, 3], form=":")).read_text(),
                         f"{one}:1\n{two}:2\n{three}:3\n")
        self.assertEqual(pathlib.Path(self.hosts.hostfile(4, [one])).read_text(), f"{one} slots=4\n")


class NothingStays(unittest.TestCase):
    def start(self, signal_number):
        """A program with hosts that is ended by a signal; gives its folder."""
        code = ("import time; from rigs.hosts_rig import SshHosts\n"
                "with SshHosts(2) as hosts: print(hosts.folder, flush=True); time.sleep(60)")
        with subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": str(TESTS)}) as program:
            folder = self.first_path(program)
            self.assertTrue(processes_with(folder))
            program.send_signal(signal_number)
            program.wait(20)
        return folder

    def first_path(self, program):
        while line := program.stdout.readline():
            if line.startswith("/"):
                return line.strip()
        raise unittest.SkipTest("NOT TESTED: no hosts here")

    def test_sigterm_removes_the_hosts_and_their_folder(self):
        folder = self.start(signal.SIGTERM)
        self.assertFalse(os.path.exists(folder))
        wait_until(lambda: not processes_with(folder), "processes to be gone")

    def test_kill_takes_the_processes_and_the_next_user_removes_the_folder(self):
        folder = self.start(signal.SIGKILL)
        wait_until(lambda: not processes_with(folder), "processes to be gone")
        self.assertTrue(os.path.exists(folder))
        SshHosts(1).close()
        self.assertFalse(os.path.exists(folder))


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = SlurmCluster(nodes=3, gpus=2, gpu_types=("a40", "2080_ti"))
        cls.addClassCleanup(cls.slurm.close)

    def test_a_step_runs_on_nodes_with_their_own_names(self):
        self.assertEqual(sorted(self.slurm.must(["srun", "-N3", "hostname"]).split()), ["n1", "n2", "n3"])

    def test_fake_gpus_have_types_and_are_given_out(self):
        script = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
        said = self.slurm.must(["srun", "-N1", "--gpus=2080_ti:2", "sh", "-c", script])
        self.assertEqual(said, "n2 0,1\n")

    def test_a_node_can_be_killed_and_started_again(self):
        self.slurm.kill_node("n3")
        self.slurm.down_node("n3")
        self.assertEqual(sorted(self.slurm.must(["srun", "-N2", "hostname"]).split()), ["n1", "n2"])
        self.slurm.start_node("n3")
        self.assertEqual(self.slurm.must(["srun", "-w", "n3", "hostname"]), "n3\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
