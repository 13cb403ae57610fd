# SPDX-License-Identifier: Apache-2.0
"""What the tests of `overcap launch` share: its folder of logs, and that nothing of it may stay."""
import json
import os
import re
import shlex
import signal
import socket
import time
import unittest

from overcap_rig import PYTHON, Rig, shell
from rigs.hosts_rig import SshHosts

PLACE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
# Leaves the rank's place as facts/place-RANK, one variable a line, and the name of its host.
TELL_PLACE = ("{ " + " ".join(f'echo "{name}=${name}";' for name in PLACE) +
              ' echo "HOST=$(hostname)"; } > "$FACTS/new-$RANK" && mv "$FACTS/new-$RANK" "$FACTS/place-$RANK"')
# What launchers and schedulers of the machine that runs the tests may have set.
FOREIGN = re.compile(r"(SLURM|SBATCH|PBS|PMI|PMIX|OMPI|PALS|MPI_LOCAL|RANK$|WORLD_SIZE$|LOCAL_|MASTER_|NODE_RANK$)")
# A Python that hosts of the rig have too: the home of their root is their own.
HOST_PYTHON = "/usr/bin/python3" if PYTHON.startswith(os.path.expanduser("~root/")) else PYTHON
# A rank that stays until it is told to go.
STAY = "while :; do sleep 0.05; done"


class LaunchRig(Rig):
    patience = 0  # seconds that a process of a launch may stay after its end

    def environment(self, user_home, overcap_home):
        env = super().environment(user_home, overcap_home)
        return {name: value for name, value in env.items() if not FOREIGN.match(name)}

    # ---- starting

    def launch(self, *args, **options):
        """Runs `overcap launch` to its end; whatever came of it, no process of it may be left."""
        return self.with_nothing_left(self.overcap("launch", *args, **options))

    def launched(self, *args, **options):
        done = self.launch(*args, **options)
        self.assertEqual(done.status, 0, str(done))
        return done

    def started(self, *args, ranks, **options):
        """Starts a launch whose ranks do TELL_PLACE, and comes back when all have."""
        process = self.start("launch", *args, **options)
        self.until(lambda: all((self.facts / f"place-{rank}").exists() for rank in range(ranks)) or
                   process.poll() is not None, "all ranks to start")
        if process.poll() is not None:
            self.fail(f"ended too early: {self.finish(process)}")
        return process

    def check_warning(self, *flags, ranks):
        """USR1 to the launch reaches every rank and stops none."""
        script = f"trap 'exit 0' USR1; {TELL_PLACE}; while :; do sleep 0.05; done"
        process = self.started(*flags, *shell(script), ranks=ranks)
        process.send_signal(signal.SIGUSR1)
        done = self.ended_launch(process)
        self.assertEqual(done.status, 0, str(done))

    def ended_launch(self, process, deadline=None):
        return self.with_nothing_left(self.finish(process, deadline))

    def with_nothing_left(self, done):
        end = time.monotonic() + self.patience
        while self.processes() and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(self.processes(), [], f"processes are left: {self.command_lines()}\n{done}")
        return done

    def command_lines(self):
        lines = []
        for pid in self.processes():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    lines.append(shlex.join(file.read().decode(errors="replace").split("\0")[:-1]))
            except OSError:
                pass
        return lines

    # ---- what is left of it

    def folder(self, logs=None):
        return logs or (self.home / "launches" / "latest").resolve(strict=True)

    def rank_log(self, rank, attempt=1, logs=None):
        return (self.folder(logs) / f"attempt-{attempt}" / f"rank-{rank}.log").read_bytes()

    def rank_times(self, rank, attempt=1, logs=None):
        text = (self.folder(logs) / f"attempt-{attempt}" / f"rank-{rank}.times").read_text()
        return [tuple(map(int, line.split())) for line in text.splitlines()]

    def record(self, logs=None):
        return json.loads((self.folder(logs) / "launch.json").read_text())

    def result_of(self, logs=None):
        return json.loads((self.folder(logs) / "result.json").read_text())

    def places(self):
        """{rank: {variable: value}} as the ranks told."""
        found = {}
        for path in self.facts.glob("place-*[0-9]"):
            found[int(path.name[6:])] = dict(line.split("=", 1) for line in path.read_text().splitlines())
        return found

    def assert_places(self, hosts):
        """hosts: (name, number of ranks) in order. Every rank of every host must know its place."""
        places = self.places()
        world = sum(count for _, count in hosts)
        self.assertEqual(sorted(places), list(range(world)), places)
        rank = 0
        for node, (name, count) in enumerate(hosts):
            for local in range(count):
                place = places[rank]
                wanted = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": count,
                          "NODE_RANK": node}
                self.assertEqual({key: place[key] for key in wanted}, {key: str(v) for key, v in wanted.items()})
                if name is not None:
                    self.assertEqual(place["HOST"], name)
                rank += 1
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            self.assertEqual(len({place[name] for place in places.values()}), 1, places)
            self.assertTrue(places[0][name])

    def assert_no_logs(self):
        """No folder of a launch is left."""
        launches = self.home / "launches"
        left = [name for name in os.listdir(launches) if name != "latest"] if launches.exists() else []
        self.assertEqual(left, [])
        self.assertFalse(os.path.lexists(launches / "latest"))

    def refuse(self, *args, says=(), deadline=10, **options):
        """Exit status 2, one clear line and a hint, nothing started, nothing left."""
        began = time.monotonic()
        done = self.refused("launch", *args, says=says, deadline=deadline + 5, **options)
        self.assertLess(time.monotonic() - began, deadline, str(done))
        lines = done.err.strip().splitlines()
        self.assertTrue(lines[0].startswith("overcap: "), str(done))
        self.assertTrue(all(line.startswith("hint: ") for line in lines[1:]), f"one line and a hint: {done}")
        self.assertLessEqual(len(lines), 2, f"one line and a hint: {done}")
        self.assertEqual(self.processes(), [], self.command_lines())
        self.assert_no_logs()
        self.assertFalse((self.facts / "ran").exists(), "a rank was started")
        return done

    @property
    def here(self):
        return socket.gethostname()


class HostsRig(LaunchRig):
    count = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hosts = SshHosts(cls.count)
        cls.addClassCleanup(cls.hosts.close)

    def setUp(self):
        super().setUp()
        self.env["OVERCAP_SSH"] = self.hosts.ssh_program
        self.off = set()

    def tearDown(self):
        try:
            super().tearDown()
        finally:
            for name in sorted(self.off):
                self.hosts.power_on(name)

    def power_off(self, name):
        self.off.add(name)
        self.hosts.power_off(name)

    def name_of(self, host):
        """What `hostname` says there."""
        return host if self.hosts.separate else self.here

    def until_hosts_empty(self, deadline=5):
        """No host may have a process beside its own daemon; sshd says goodbye on its own time."""
        left = {}

        def empty():
            left.update({name: self.hosts.processes(name) for name in self.hosts.names if name not in self.off})
            return not any(left.values())
        try:
            self.until(empty, "the hosts to be empty", deadline)
        except AssertionError as error:
            self.fail(f"{error}: {left}")

    def launch(self, *args, **options):
        done = super().launch(*args, **options)
        self.until_hosts_empty()
        return done


def host_python(code, *args):
    """An argv that runs Python code in a rank on a host of the rig."""
    if not os.access(HOST_PYTHON, os.X_OK):
        raise unittest.SkipTest(f"NOT TESTED: hosts have no {HOST_PYTHON}")
    return [HOST_PYTHON, "-I", "-S", "-c", code, *args]


def by_rank(**scripts):
    """A shell command that runs scripts["rN"] in rank N and scripts["other"] in the others."""
    cases = [f"{name[1:]}) {script};;" for name, script in scripts.items() if name != "other"]
    cases.append(f"*) {scripts.get('other', 'true')};;")
    return shell("case $RANK in " + " ".join(cases) + " esac")
