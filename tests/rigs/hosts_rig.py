# SPDX-License-Identifier: Apache-2.0
"""Hosts that can be reached by ssh, on one machine, in about a second.

    with SshHosts(3) as hosts:
        hosts.names                      # ["host1", "host2", "host3"]
        hosts.ssh_program                # a program that is ssh, and knows these hosts; for OVERCAP_SSH
        hosts.hostfile(slots=4)          # a host file of all of them
        hosts.run("host1", ["hostname"]) # without ssh
        hosts.power_off("host2"); hosts.cut("host3"); hosts.heal("host3")

As root each host has its own network, host name, processes, /run, /root and /dev/shm; other files are this machine's.
Where that is not permitted (`hosts.separate` is False) they are 127.0.1.K, with an sshd of this user on each: one machine
in truth, so that only the ssh connection is real; power_off then ends what came in over ssh, cut is not to be had.
"""
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import unittest

from rigs import machines
from rigs.machines import Machines, NotPermitted, need, wait_until
from rigs.ports import free_port

SSHD = "/usr/sbin/sshd"


class SshHosts:
    def __init__(self, count=3, names=None):
        need("sshd", "ssh", "ssh-keygen", "ip", "unshare", "nsenter", "setpriv")
        self.folder = machines.public_folder("overcap-hosts-")
        self.machines = None
        self.daemons = {}  # name -> Popen, without namespaces
        self.ports = {}
        self.private_dir = str(self.folder / "private")
        try:
            self.make_keys()
            self.begin(names or [f"host{k + 1}" for k in range(count)])
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    # ---- what tests ask for

    def hostfile(self, slots=None, names=None, form="slots="):
        """A host file; slots: a number for all, or one for each, or None; form: "slots=" or ":"."""
        names = names or self.names
        each = slots if isinstance(slots, (list, tuple)) else [slots] * len(names)
        joint = " slots=" if form == "slots=" else ":"
        lines = [name if n is None else f"{name}{joint}{n}" for name, n in zip(names, each)]
        path = self.folder / f"hostfile-{random.randrange(16**8):08x}"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    def run(self, name, argv, timeout=60, **more):
        """Runs argv on the host, not through ssh, and gives the CompletedProcess (text)."""
        more = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False, **more}
        return subprocess.run(self.words(name, argv), timeout=timeout, **more)

    def ssh(self, name, argv, timeout=60, **more):
        more = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False, **more}
        return subprocess.run([self.ssh_program, name, *argv], timeout=timeout, **more)

    def words(self, name, argv):
        return self.machines.words(name, argv) if self.separate else list(argv)

    def private_path(self, name):
        """Where this machine sees what the host has in private_dir."""
        if not self.separate:
            raise unittest.SkipTest("NOT TESTED: no namespaces here, so no folder is a host's own")
        return str(self.folder / f"private.{name}")

    def processes(self, name):
        """What runs on a host beside its own daemon: [(pid here, command line)]."""
        first = self.machines.first[name] if self.separate else self.daemons[name].pid
        own, found = {first, *(machines.children(first)[:1] if self.separate else [])}, []
        pids = [first]
        while pids:
            pid = pids.pop()
            pids += machines.children(pid)
            line = machines.command_line(pid)
            if pid not in own and line:
                found.append((pid, line))
        return found

    def power_off(self, name):
        if self.separate:
            self.machines.power_off(name)
        else:
            self.end_daemon(self.daemons.pop(name))

    def power_on(self, *names):
        if self.separate:
            self.machines.power_on(*names)
        else:
            self.start_daemons(names)
        self.wait_for(names)

    def cut(self, name):
        if not self.separate:
            raise unittest.SkipTest("NOT TESTED: no namespaces here, so no host can be cut off")
        self.machines.cut(name)

    def heal(self, name):
        self.machines.heal(name)

    def address(self, name):
        return self.machines.address(name) if self.separate else name

    # ---- how they come and go

    def make_keys(self):
        for key in ("id", "hostkey"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "overcap-test", "-f",
                            str(self.folder / key)], check=True, stdin=subprocess.DEVNULL, timeout=90)
        shutil.copy(self.folder / "id.pub", self.folder / "authorized_keys")

    def begin(self, names):
        self.separate = True
        try:
            self.machines = Machines(names, self.folder)
            self.names = list(names)
            self.ports = dict.fromkeys(names, 22)
            self.write_config()
            mounts = [("/run", "tmpfs"), ("/root", "tmpfs"), ("/dev/shm", "tmpfs")]
            daemon = ["sh", "-c", 'mkdir /run/sshd && exec "$@"', "sh", SSHD, "-D", "-e", "-f", self.sshd_config(22)]
            self.machines.add({name: list(map(str, daemon)) for name in names}, mounts)
        except NotPermitted as error:
            print(f"hosts: {error}; going on with loopback addresses", flush=True)
            self.begin_on_loopback(len(names))
        self.wait_for(self.names)

    def begin_on_loopback(self, count):
        self.separate = False
        if self.machines is not None:
            self.machines.close()
        self.names = [f"127.0.1.{k + 1}" for k in range(count)]
        self.ports = {name: free_port(name) for name in self.names}
        self.write_config()
        self.start_daemons(self.names)
        self.wait_for(self.names)
        if (done := self.ssh(self.names[0], ["true"])).returncode != 0:
            raise unittest.SkipTest(f"NOT TESTED: no namespaces, and this user cannot log in: {done.stderr.strip()}")

    def start_daemons(self, names):
        (self.folder / "log").mkdir(exist_ok=True)
        for name in names:
            with open(self.folder / "log" / f"{name}.log", "ab") as log:
                self.daemons[name] = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", SSHD, "-D", "-e", "-f",
                     str(self.sshd_config(self.ports[name], name))],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def end_daemon(self, daemon):
        """And every session that it has let in: they are its descendants."""
        pids, found = [daemon.pid], []
        while pids:
            found.append(pids.pop())
            pids += machines.children(found[-1])
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        daemon.wait(90)

    def sshd_config(self, port, address=None):
        lines = [f"Port {port}", f"HostKey {self.folder}/hostkey", f"AuthorizedKeysFile {self.folder}/authorized_keys",
                 "StrictModes no",
                 # With PAM, for which a user without password is not locked out; root has no need of it.
                 f"UsePAM {'yes' if address else 'no'}", "PermitRootLogin prohibit-password",
                 "PasswordAuthentication no", "PidFile none", "MaxStartups 200", "Subsystem sftp internal-sftp"]
        lines += [f"ListenAddress {address}"] if address else []
        path = self.folder / f"sshd_config-{address or 'all'}"
        path.write_text("\n".join(lines) + "\n")
        return path

    def write_config(self):
        lines = []
        for name in self.names:
            lines += [f"Host {name}", f"  HostName {self.address(name)}", f"  Port {self.ports[name]}"]
        lines += ["Host *", f"  IdentityFile {self.folder}/id", "  IdentitiesOnly yes", "  StrictHostKeyChecking no",
                  "  UserKnownHostsFile /dev/null", "  GlobalKnownHostsFile /dev/null", "  LogLevel ERROR",
                  "  BatchMode yes"]
        self.ssh_config = str(self.folder / "ssh_config")
        pathlib.Path(self.ssh_config).write_text("\n".join(lines) + "\n")
        program = self.folder / "ssh"
        program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F "{self.ssh_config}" "$@"\n')
        program.chmod(0o755)
        self.ssh_program = str(program)

    def wait_for(self, names):
        # Who asks before the network is up waits a second for the next question after the host's address.
        for ready in (lambda name: "Server listening" in self.log(name), self.answers):
            for name in names:
                try:
                    wait_until(lambda name=name, ready=ready: ready(name), f"the sshd of {name}")
                except TimeoutError as error:
                    raise RuntimeError(f"{error}: {self.log(name)}") from None

    def answers(self, name):
        try:
            with socket.create_connection((self.address(name), self.ports[name]), 1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def log(self, name):
        path = self.folder / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self):
        if self.machines is not None:
            self.machines.close()
        for daemon in self.daemons.values():
            self.end_daemon(daemon)
        self.daemons.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
