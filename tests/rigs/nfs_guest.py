# SPDX-License-Identifier: Apache-2.0
"""The first process of the small Linux of nfs_rig.py: an NFS server and two hosts that mount what it exports.

Started by the kernel as `python3 nfs_guest.py FOLDER MODULES VERSION`. FOLDER is on the machine outside: requests are read
there (N.request), answers are put there (N.answer), both JSON."""
import ctypes
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import traceback

HOSTS = ("a", "b")
EXPORT, MOUNT = "/run/export", "/run/nfs"
NEVER = 2147483647
# rw, as root when root asks, ports past 1023, the root of NFSv4 (fsid=0), no subtree check
EXPORT_FLAGS = 0x2 | 0x2000 | 0x400
PRIVATE, POWER_OFF, FINIT_MODULE = 0x4000 | 0x40000, 0x4321fedc, 313  # MS_REC | MS_PRIVATE; x86-64
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


def mount(what, where, kind, options=""):
    os.makedirs(where, exist_ok=True)
    check(libc.mount(what.encode(), where.encode(), kind.encode(), 0, options.encode()), f"{kind} {what} {where} {options}")


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text + "\n")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def address(host, end):
    return f"10.9.{HOSTS.index(host)}.{end}"


class Modules:
    """What insmod does: not every machine has it."""

    def __init__(self, folder):
        self.folder, self.needs, self.loaded = folder, {}, set()
        for line in (folder / "modules.dep").read_text().splitlines():
            file, _, needs = line.partition(":")
            self.needs[pathlib.Path(file).stem] = [*reversed(needs.split()), file]

    def load(self, name):
        for file in self.needs.get(name, ()):  # none: it is part of the kernel
            if file not in self.loaded:
                with open(self.folder / file, "rb") as module:
                    check(libc.syscall(FINIT_MODULE, module.fileno(), b"", 0), f"module {file}")
                self.loaded.add(file)


class Server:
    """The kernel's NFS server, version 4 only. Its tables of exports, which mountd fills elsewhere, are written here."""

    def start(self):
        mount("tmpfs", EXPORT, "tmpfs")
        mount("nfsd", "/proc/fs/nfsd", "nfsd")
        write("/proc/fs/nfsd/versions", "-2 -3 +4 +4.1 +4.2")
        write("/proc/fs/nfsd/nfsv4leasetime", "10")
        write("/proc/fs/nfsd/nfsv4gracetime", "10")
        listener = socket.create_server(("0.0.0.0", 2049))
        write("/proc/fs/nfsd/portlist", str(listener.fileno()))
        write("/proc/fs/nfsd/threads", "4")
        for host in HOSTS:
            write("/proc/net/rpc/auth.unix.ip/channel", f"nfsd {address(host, 2)} {NEVER} *")
        write("/proc/net/rpc/nfsd.fh/channel", f"* 1 \\x00000000 {NEVER} {EXPORT}")
        write("/proc/net/rpc/nfsd.export/channel", f"* {EXPORT} {NEVER} {EXPORT_FLAGS} 65534 65534 0")
        # For so long it waits for clients of a server that ran before it; nobody gets anything until then.
        for _ in range(300):
            if pathlib.Path("/proc/fs/nfsd/v4_end_grace").read_text().strip() == "Y":
                return
            time.sleep(0.1)
        raise TimeoutError("the NFS server never ends its time of grace")


class Host:
    """Its own network, mounts and name: the kernel has an NFS client of its own for it."""

    def __init__(self, name, version):
        self.name = name
        ready, self.alive = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            self.live(version, ready)
        self.pid = pid
        os.close(self.alive[0])
        os.read(ready[0], 1)  # it has its namespaces
        ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        ip("address", "add", f"{address(name, 1)}/24", "dev", f"to-{name}")
        self.link(True)
        self.enter("ip", "link", "set", "lo", "up")
        self.enter("ip", "address", "add", f"{address(name, 2)}/24", "dev", "eth0")
        self.enter("ip", "link", "set", "eth0", "up")
        self.enter(sys.executable, __file__, "mount", self.name, version)

    def live(self, version, ready):
        os.close(self.alive[1])
        check(libc.unshare(0x40000000 | 0x00020000 | 0x04000000), "unshare")  # network, mounts, name
        check(libc.mount(b"none", b"/", None, PRIVATE, None), "private mounts")
        socket.sethostname(f"host-{self.name}")
        os.write(ready[1], b"x")
        os.read(self.alive[0], 1)
        os._exit(0)

    def argv(self, *argv):
        return ["nsenter", "-t", str(self.pid), "-n", "-m", "-u", "--", *argv]

    def enter(self, *argv):
        subprocess.run(self.argv(*argv), check=True)

    def link(self, up):
        ip("link", "set", f"to-{self.name}", "up" if up else "down")


def mount_here(host, version):
    """As one types it: caches of attributes and names are as they come."""
    mount(f"{address(host, 1)}:/", MOUNT, "nfs4", f"vers={version},addr={address(host, 1)},clientaddr={address(host, 2)}")


class Requests:
    def __init__(self, folder, hosts):
        self.folder, self.hosts = folder, hosts

    def serve(self):
        while True:
            for path in self.folder.glob("*.request"):
                request = json.loads(path.read_text())
                path.unlink()
                if "off" in request:
                    return
                threading.Thread(target=self.answer, args=(path.stem, request), daemon=True).start()
            time.sleep(0.02)

    def answer(self, number, request):
        try:
            answer = self.act(request)
        except Exception:
            answer = {"status": -1, "out": "", "err": traceback.format_exc()}
        half = self.folder / f"{number}.half"
        half.write_text(json.dumps(answer))
        half.rename(self.folder / f"{number}.answer")

    def act(self, request):
        host = self.hosts[request["host"]]
        if "link" in request:
            host.link(request["link"])
            return {"status": 0, "out": "", "err": ""}
        done = subprocess.run(host.argv(*request["argv"]), env=request["env"], cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=request["timeout"], text=True, errors="replace")
        return {"status": done.returncode, "out": done.stdout, "err": done.stderr}


def main(folder, modules, version):
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")):
        mount(kind, where, kind)
    mount("none", "/run/outside", "hostfs", folder)
    loader = Modules(pathlib.Path(modules) / os.uname().release)
    for name in ("veth", "nfsd", "nfsv4"):
        loader.load(name)
    Server().start()
    for name in HOSTS:
        os.makedirs(f"/run/disk-{name}")
    hosts = {name: Host(name, version) for name in HOSTS}
    outside = pathlib.Path("/run/outside")
    (outside / "ready").write_text(os.uname().release)
    Requests(outside, hosts).serve()


if __name__ == "__main__":
    if sys.argv[1] == "mount":
        mount_here(*sys.argv[2:])
    else:
        try:
            main(*sys.argv[1:4])  # the kernel adds words of its own
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        libc.reboot(POWER_OFF)
