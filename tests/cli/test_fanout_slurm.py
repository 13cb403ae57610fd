# SPDX-License-Identifier: Apache-2.0
"""`overcap fanout` in a real Slurm allocation: to its nodes and no others. Each node of the cluster has an sshd here, as on real ones."""
import pathlib
import random
import subprocess

from launch_rig import LaunchRig
from overcap_rig import BINARY, main, needs_root
from rigs.machines import wait_until
from rigs.slurm_rig import SlurmCluster

DEADLINE_SECONDS = 300


@needs_root
class InAnAllocation(LaunchRig):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = SlurmCluster(nodes=4, gpus=0)
        cls.addClassCleanup(cls.slurm.close)
        cls.start_daemons()

    @classmethod
    def start_daemons(cls):
        at = cls.slurm.folder
        for key in ("id", "hostkey"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(at / key)], check=True, stdin=subprocess.DEVNULL, timeout=90)
        (at / "sshd_config").write_text(f"Port 22\nHostKey {at}/hostkey\nAuthorizedKeysFile {at}/id.pub\nStrictModes no\nUsePAM no\n"
                                        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nPidFile none\n")
        lines = [f"Host {name}\n  HostName {cls.slurm.machines.address(name)}\n" for name in cls.slurm.names]
        (at / "ssh_config").write_text("".join(lines) + f"Host *\n  IdentityFile {at}/id\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
                                       "  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  BatchMode yes\n")
        cls.ssh = at / "ssh"
        cls.ssh.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F "{at}/ssh_config" "$@"\n')
        cls.ssh.chmod(0o755)
        for name in cls.slurm.names:  # /run of each node is its own from here on
            daemon = cls.slurm.popen(["sh", "-c", "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f \"$1\"",
                                      "sh", str(at / "sshd_config")], node=name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            cls.addClassCleanup(daemon.wait, 60)
            cls.addClassCleanup(daemon.kill)
            wait_until(lambda name=name: cls.slurm.run([str(cls.ssh), name, "true"], node=name).returncode == 0, f"the sshd of {name}")

    def test_the_nodes_of_the_allocation_get_it_and_serve_each_other(self):
        source, target = self.project / "source", f"{self.slurm.folder}/private/env"
        rng, content = random.Random(1), {}
        for number in range(60):
            path = source / f"d{number % 5}/f{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            content[str(path.relative_to(source))] = rng.randbytes(20_000)
            path.write_bytes(content[str(path.relative_to(source))])
        env = {**self.env, **{name: self.slurm.environment[name] for name in ("SLURM_CONF", "PATH")}, "OVERCAP_SSH": str(self.ssh)}
        done = self.slurm.run(["salloc", "--quiet", "-N3", "-w", "n1,n2,n4", str(BINARY), "fanout", str(source), "--to", target], env=env,
                              cwd=self.project, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("n1", "n2", "n4"):
            there = pathlib.Path(f"{self.slurm.folder}/private.{name}/env")
            found = {str(path.relative_to(there)): path.read_bytes() for path in there.rglob("*")
                     if path.is_file() and ".overcap" not in path.parts}
            self.assertEqual(found.keys(), content.keys(), name)
            self.assertEqual(found, content, name)
        self.assertFalse(pathlib.Path(f"{self.slurm.folder}/private.n3/env").exists())
        # And from a node of the job itself, which is one of its targets.
        script = f"{BINARY} fanout {source} --to {target}"
        done = self.slurm.run(["srun", "--quiet", "-N1", "-n1", "-w", "n1", "sh", "-c", script], env=env, cwd=self.project, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1", done.stdout + done.stderr)


if __name__ == "__main__":
    main()
