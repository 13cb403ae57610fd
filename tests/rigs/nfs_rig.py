# SPDX-License-Identifier: Apache-2.0
"""A real NFS server and two hosts that mount it, on machines whose kernel knows no NFS and without root.

    with Nfs() as nfs:
        done = nfs.run("a", ["cp", "x", nfs.folder])     # on host a; .status .out .err
        busy = nfs.start("b", [...], deadline=60)        # busy.wait()
        nfs.cut("b"), nfs.mend("b")                      # its network

It is a Linux kernel that is a program (Debian's user-mode-linux), started in about a second, with the machine's files as its own,
read-only. Each host in it is a set of namespaces, which makes it a client of its own with its own caches; the server's disk is memory.
NFS 4.2 by default; version 3 needs mountd and is not there. `disk(host)` is a folder on that host's own disk."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest

GUEST = pathlib.Path(__file__).resolve().parent / "nfs_guest.py"
START_SECONDS = 120


class Nfs:
    folder = "/run/nfs"

    def __init__(self, version="4.2"):
        kernel = os.environ.get("OVERCAP_TEST_UML") or shutil.which("linux.uml")
        if not kernel:
            raise unittest.SkipTest("NOT TESTED: NFS: no linux.uml here; it is in Debian's package user-mode-linux")
        for program in ("ip", "nsenter"):
            if not shutil.which(program):
                raise unittest.SkipTest(f"NOT TESTED: NFS: no '{program}' here")
        self.outside = pathlib.Path(tempfile.mkdtemp(prefix="nfs-")).resolve()
        self.requests = 0
        modules = pathlib.Path(kernel).resolve().parents[1] / "lib/uml/modules"
        argv = [kernel, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "mem=1G", "quiet", "con=null", "con0=null,fd:1",
                f"uml_dir={self.outside}", f"init={os.path.realpath(sys.executable)}", "--", str(GUEST), str(self.outside), str(modules),
                version]
        with open(self.outside / "log", "wb") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.outside), "TMPDIR": self.memory()})
        try:
            self.wait_for(self.outside / "ready", START_SECONDS)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def memory():
        return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def log(self):
        return (self.outside / "log").read_text(errors="replace")[-4000:]

    def wait_for(self, path, seconds):
        end = time.monotonic() + seconds
        while not path.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"the small Linux ended:\n{self.log()}")
            if time.monotonic() > end:
                raise TimeoutError(f"no '{path.name}' within {seconds} s:\n{self.log()}")
            time.sleep(0.02)

    def ask(self, **request):
        self.requests += 1
        half = self.outside / f"{self.requests}.new"
        half.write_text(json.dumps(request))
        half.rename(self.outside / f"{self.requests}.request")
        return self.outside / f"{self.requests}.answer"

    def start(self, host, argv, env=None, deadline=60):
        usual = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        answer = self.ask(host=host, argv=[str(word) for word in argv], env={**usual, **(env or {})}, timeout=deadline)

        def wait():
            self.wait_for(answer, deadline + 20)
            return types.SimpleNamespace(argv=argv, **json.loads(answer.read_text()))
        return types.SimpleNamespace(wait=wait)

    def run(self, host, argv, env=None, deadline=60):
        return self.start(host, argv, env, deadline).wait()

    def disk(self, host):
        return f"/run/disk-{host}"

    def cut(self, host):
        self.wait_for(self.ask(host=host, link=False), 20)

    def mend(self, host):
        self.wait_for(self.ask(host=host, link=True), 20)

    def close(self):
        if self.process.poll() is None and (self.outside / "ready").exists():
            self.ask(off=True)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.outside, ignore_errors=True)
