# SPDX-License-Identifier: Apache-2.0
"""Several "machines" on this one: each has its own network, host name, processes and mounts, from kernel namespaces.

All of them hang on a switch, a namespace of its own in which a bridge lives; whoever ends the switch's first
process ends every machine, and the kernel takes the network away with them. Nothing stays behind, not even after
kill -9 of the tests (the switch dies with its parent), but the folder; the next user removes that.

    NAMES AND ADDRESSES   machine K has 10.x.y.K, the head 10.x.y.254; every machine knows all names
    THE HEAD              the real machine (`head="here"`, needs root) or the switch's own namespace, which then has
                          processes and mounts of its own too (`head="inside"`, works where users may make namespaces)
"""
import atexit
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from rigs.user_namespace import master_of

# The first process of every machine. $1 name, $2 address, $3 file of /etc/hosts, $4 log, then pairs of mounts up to
# "--", then the daemon. It says when its namespaces are there, and goes on when its network is laid. Bash waits for
# any child, so it also reaps orphans.
FIRST_PROCESS = r"""
set -e
name=$1 address=$2 hosts=$3 log=$4
shift 4
echo ready
read -r _
exec >"$log" 2>&1 </dev/null
hostname "$name"
ip link set lo up
ip addr add "$address/24" dev eth0
ip link set eth0 up
mount --bind "$hosts" /etc/hosts
while [ "$1" != -- ]; do
  if [ "$2" = tmpfs ]; then mount -t tmpfs -o mode=0755 tmpfs "$1"; else mount --bind "$2" "$1"; fi
  shift 2
done
shift
"$@" &
daemon=$!
while kill -0 "$daemon" 2>/dev/null; do wait "$daemon" || true; done
"""

WAITING = ["bash", "-c", "echo ready; while :; do sleep 3600 & wait $! || true; done"]


class NotPermitted(Exception):
    """Namespaces cannot be had here; the text says what failed."""


def public_folder(prefix):
    """A new folder that every user can reach (daemons of other users insist), with its owner's name in it."""
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        path = pathlib.Path(parent).resolve()
        if all(step.stat().st_mode & 0o001 for step in (path, *path.parents)):
            break
    remove_leftovers(path, prefix)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=path))
    folder.chmod(0o755)
    owner = {"pid": os.getpid(), "start": start_time(os.getpid())}
    (folder / "owner.json").write_text(json.dumps(owner))
    return folder


def remove_leftovers(parent, prefix):
    """Folders of users that were killed. Their processes died with them."""
    for folder in parent.glob(prefix + "*"):
        try:
            owner = json.loads((folder / "owner.json").read_text())
            if folder.stat().st_uid == os.getuid() and start_time(owner["pid"]) != owner["start"]:
                shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError, KeyError):
            pass  # of somebody who is just making it, or not ours


def start_time(pid):
    """Tells apart two processes that had the same number; None when there is none."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def children(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_line(pid):
    """"" for one that has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def wait_until(condition, what, seconds=90.0, pause=0.004):
    """What the condition gives once that is true. Pauses twice as long as a look takes: it is not to hold up what is waited for."""
    end = time.monotonic() + seconds * float(os.environ.get("OVERCAP_TEST_PATIENCE", "1"))
    while True:
        began = time.monotonic()
        if value := condition():
            return value
        now = time.monotonic()
        if now > end:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(max(pause, min(0.5, 2 * (now - began))))


def end_on_sigterm():
    """Lets SIGTERM unwind `with` blocks, unless somebody else already handles it."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Machines:
    """Made by `add`, one call for all; ended by `close` (also at the end of the program). Not for threads."""

    def __init__(self, names, folder, head="here"):
        if head == "here" and os.geteuid() != 0:
            raise NotPermitted("only root can lay a network to this machine")
        end_on_sigterm()
        self.names, self.folder, self.head = list(names), pathlib.Path(folder), head
        self.as_user = os.geteuid() != 0
        self.net = f"10.{random.randrange(64, 127)}.{random.randrange(256)}"
        self.cable = f"oc{random.randrange(16**8):08x}"  # the head's end
        self.first = {}  # name -> pid of its first process
        self.running = {}  # name -> Popen
        self.started = {}  # name -> (daemon argv, mounts), for power_on
        for name in ("log", "private"):
            (self.folder / name).mkdir(exist_ok=True)
        lines = ["127.0.0.1 localhost", f"{self.net}.254 head"]
        lines += [f"{self.address(name)} {name}" for name in self.names]
        self.hosts_file = self.folder / "hosts"
        self.hosts_file.write_text("\n".join(lines) + "\n")
        atexit.register(self.close)
        try:
            self.make_switch()
        except BaseException:
            self.close()
            raise

    def address(self, name):
        return f"{self.net}.{self.names.index(name) + 1}"

    # ---- the switch

    def make_switch(self):
        user = ["--user", "--map-current-user", "--keep-caps"] if self.as_user else []
        self.switch = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *user, "--net", "--mount", "--uts", "--pid", "--fork",
             "--kill-child=KILL", "--mount-proc", *WAITING],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        if self.switch.stdout.readline() != b"ready\n":
            raise NotPermitted(self.switch.stderr.read().decode().strip() or "unshare failed")
        (self.switch_first,) = children(self.switch.pid)
        lines = ["link set lo up", "link add name br0 type bridge", "link set br0 up"]
        # Protocols that write twice per message would wait 40 ms for a delayed acknowledgement each time.
        lines += [f"route replace local {to} dev lo table local proto kernel scope host src 127.0.0.1 quickack 1"
                  for to in ("127.0.0.1", "127.0.0.0/8")]
        if self.head == "inside":
            lines.append(f"addr add {self.net}.254/24 dev br0")
        else:
            lines += [f"link add up0 type veth peer name {self.cable} netns {os.getpid()}",
                      "link set up0 master br0 up"]
        self.lay(lines)
        if self.head == "inside":
            for argv in (["hostname", "head"], ["mount", "--bind", str(self.hosts_file), "/etc/hosts"]):
                self.inside_switch(argv)
        else:
            ip_batch(["ip"], [f"addr add {self.net}.254/24 dev {self.cable}", f"link set {self.cable} up"])

    def enter_switch(self, *kinds):
        """The words that go before a command to run it in the switch's namespaces, with `self.master()`."""
        return ["nsenter", "-t", str(self.switch_first), *(f"--{kind}" for kind in kinds), "--"]

    def master(self):
        """More for subprocess: makes the child the master of the switch's namespaces, as root is everywhere."""
        return {"preexec_fn": master_of(self.switch_first)} if self.as_user else {}

    def lay(self, lines, must=True):
        ip_batch([*self.enter_switch("net"), "ip"], lines, must, **self.master())

    def inside_switch(self, argv):
        subprocess.run([*self.enter_switch("net", "mount", "uts", "pid"), *argv], check=True,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=90, **self.master())

    # ---- machines

    def add(self, daemons, mounts=()):
        """Starts machines. daemons: {name: argv of its daemon}; mounts: (path, "tmpfs" or what is seen there), for all.

        The folder private/ is each machine's own: what it sees there, others see nowhere but in private.NAME/.
        """
        for name, daemon in daemons.items():
            own = self.folder / f"private.{name}"
            own.mkdir(exist_ok=True)
            self.started[name] = (list(daemon), [*mounts, (str(self.folder / "private"), str(own))])
        self.power_on(*daemons)

    def power_on(self, *names):
        for name in names:
            daemon, mounts = self.started[name]
            (self.folder / "log" / f"{name}.log").unlink(missing_ok=True)
            pairs = [word for pair in mounts for word in pair]
            self.running[name] = subprocess.Popen(
                [*self.enter_switch("net", "mount", "uts", "pid"), "unshare", "--net", "--mount", "--uts", "--pid",
                 "--ipc", "--fork", "--kill-child=KILL", "--mount-proc", "bash", "-c", FIRST_PROCESS, "machine",
                 name, self.address(name), str(self.hosts_file), str(self.folder / "log" / f"{name}.log"), *pairs, "--",
                 *daemon],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, cwd="/",
                **self.master())
        lines = []
        for name in names:
            running = self.running[name]
            if running.stdout.readline() != b"ready\n":
                raise NotPermitted(running.stderr.read().decode().strip() or "unshare failed")
            (unshare,) = children(running.pid)
            (self.first[name],) = children(unshare)
            number = self.names.index(name) + 1
            port = f"m{number}"
            # Its own hardware address, as a real one has: neighbours remember it over power_off and power_on.
            hardware = f"02:0c:0a:00:{number // 256:02x}:{number % 256:02x}"
            lines += [f"link add {port} type veth peer name eth0 address {hardware} netns {self.first[name]}",
                      f"link set {port} master br0 up"]
        self.lay(lines)
        for name in names:
            with self.running[name].stdin as go:
                go.write(b"go\n")

    def power_off(self, name):
        """At once, as if somebody pulled the plug: no connection of it is closed, nothing answers any more."""
        os.kill(self.first.pop(name), signal.SIGKILL)
        self.running[name].wait(90)
        for pipe in (self.running[name].stdout, self.running[name].stderr):
            pipe.close()
        self.lay([f"link del m{self.names.index(name) + 1}"], must=False)  # the kernel does it too, but later

    def cut(self, name):
        """Pulls its network cable; all that runs there runs on."""
        self.lay([f"link set m{self.names.index(name) + 1} down"])

    def heal(self, name):
        self.lay([f"link set m{self.names.index(name) + 1} up"])

    def words(self, name, argv, cwd=None):
        """What runs argv on a machine (None: on the head inside)."""
        pid = self.first[name] if name is not None else self.switch_first
        drop = ["setpriv", "--ambient-caps=-all", "--inh-caps=-all"] if self.as_user else []
        user = ["--user", "--preserve-credentials"] if self.as_user else []
        kinds = ["--net", "--mount", "--uts", "--pid"] + (["--ipc"] if name is not None else [])
        return ["nsenter", "-t", str(pid), *user, *kinds, f"--wd={cwd or '/'}", "--", *drop, *map(str, argv)]

    def log(self, name):
        try:
            return (self.folder / "log" / f"{name}.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def close(self):
        """Ends everything. May be called again."""
        atexit.unregister(self.close)
        for process in [getattr(self, "switch", None), *self.running.values()]:
            if process is not None and process.poll() is None:
                process.kill()
        for process in [getattr(self, "switch", None), *self.running.values()]:
            if process is not None:
                process.wait(90)
                for pipe in (process.stdin, process.stdout, process.stderr):
                    if pipe is not None:
                        pipe.close()
        if self.head == "here" and self.running:
            ip_batch(["ip"], [f"link del {self.cable}"], must=False)  # the kernel does it too, but later
        self.running.clear()
        self.first.clear()


def ip_batch(ip, lines, must=True, **more):
    done = subprocess.run([*ip, "-batch", "-"], input="\n".join(lines) + "\n", text=True, capture_output=True,
                          timeout=90, check=False, **more)
    if must and done.returncode != 0:
        raise NotPermitted(f"ip: {done.stderr.strip()}")


def need(*programs):
    """Skips, and says so aloud, where a program is missing."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    for program in programs:
        if shutil.which(program, path=path) is None:
            raise unittest.SkipTest(f"NOT TESTED: {program} is not installed")
