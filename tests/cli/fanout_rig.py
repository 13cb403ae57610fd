# SPDX-License-Identifier: Apache-2.0
"""What the tests of `overcap fanout` share: hosts with an sshd and a network of their own, a source, and what must hold of the copies."""
import json
import os
import pathlib
import random
import shlex
import shutil
import subprocess

from launch_rig import HOST_PYTHON, HostsRig
from overcap_rig import BINARY, REPOSITORY

# At first, docs/formats/fanout.md: nodes near to it, and through ssh.
FED_BY_HEAD = range(1, 4)  # three, and fewer where the first was complete before others asked
FED_THROUGH_SSH = range(1, 3) if len(os.sched_getaffinity(0)) >= 4 else range(1, 2)


class FanoutRig(HostsRig):
    count = 4

    def setUp(self):
        super().setUp()
        if not self.hosts.separate:
            self.skipTest("NOT TESTED: no namespaces here, so no folder is a host's own")
        self.own_folder = self.id().rpartition(".")[2][:40]
        self.target = f"{self.hosts.private_dir}/{self.own_folder}"
        self.source = self.project / "source"

    def tearDown(self):
        super().tearDown()
        if self.hosts.separate:
            for name in self.hosts.names:
                shutil.rmtree(pathlib.Path(self.hosts.private_path(name)) / self.own_folder, ignore_errors=True)

    def there(self, name):
        return pathlib.Path(self.hosts.private_path(name)) / pathlib.Path(self.target).relative_to(self.hosts.private_dir)

    def fill(self, files=200, size=20_000):
        rng = random.Random(1)
        for number in range(files):
            path = self.source / f"d{number % 10}" / f"f{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rng.randbytes(size))
        (self.source / "link").symlink_to("d0/f0")
        (self.source / "d0/run").write_text("#!/bin/sh\necho ran\n")
        (self.source / "d0/run").chmod(0o755)

    def fanout(self, *args, hosts=None, **options):
        """Runs it to its end, and gives what it says of it with what it was."""
        done = self.overcap("fanout", "--json", str(options.pop("source", self.source)), "--to", self.target, "--hosts",
                            self.hosts.hostfile(names=hosts), *args, **options)
        self.until_hosts_empty(20)
        lines = [line for line in done.out.splitlines() if line.startswith("{")]
        return done, json.loads(lines[-1]) if lines else None

    def brought(self, *args, **options):
        done, said = self.fanout(*args, **options)
        self.assertEqual(done.status, 0, str(done))
        return said

    def assert_same(self, name, source=None):
        differs = subprocess.run(["diff", "-r", "--no-dereference", "-x", ".overcap", str(source or self.source), str(self.there(name))],
                                 capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(differs.stdout + differs.stderr, "", name)

    def node(self, said, name):
        return next(node for node in said["nodes"] if node["host"] == name)

    def programs(self, scripts):
        """Lets each host have a program of its own in the place of overcap: {host: lines of sh, "" for the real one}."""
        self.binary = pathlib.Path(self.hosts.private_dir) / "overcap"
        shutil.copy(BINARY, self.binary)
        self.addCleanup(self.binary.unlink)
        for name, script in scripts.items():
            path = pathlib.Path(self.hosts.private_path(name)) / "overcap"
            path.write_text(f'#!/bin/sh\n{script or chr(58)}\nexec {BINARY} "$@"\n')
            path.chmod(0o755)
            self.addCleanup(path.unlink, missing_ok=True)

    def rogue(self, mode):
        """Lines of sh for a host that lies, see rogue_node.py."""
        version = self.ok("--version").out.split()[-1]
        words = shlex.join([HOST_PYTHON, "-I", "-S", str(REPOSITORY / "tests/cli/rogue_node.py"), mode, str(self.facts / "ready"), str(self.source)])
        return f"export ROGUE_VERSION={version}\nexec {words}"

    def after_rogue(self):
        """Lines of sh for a host that begins when that one can be fetched from."""
        return f"until [ -e {self.facts}/ready ]; do sleep 0.05; done"
