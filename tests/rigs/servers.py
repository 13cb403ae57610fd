# SPDX-License-Identifier: Apache-2.0
"""Programs that serve a test: started in a private folder, waited for, and ended by their process ids."""
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from rigs.ports import free_port  # noqa: F401  (for those who use this)

START_SECONDS = 240  # for each step of a start: machines that run many tests at once are slow


def listens(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def installed(name, script):
    """Where the script put a program: in ~/.cache, whatever $HOME is in a test, or below $OVERCAP_TEST_SERVERS."""
    folder = os.environ.get("OVERCAP_TEST_SERVERS") or pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache/overcap-servers"
    path = pathlib.Path(folder) / name
    if not path.exists():
        raise unittest.SkipTest(f"NOT TESTED: {path} is not there; {script} gets it")
    return str(path)


class Servers:
    """A folder and the programs that live in it. Use it with `with`, or close() it."""

    def __init__(self, prefix):
        self.prefix, self.processes = prefix, []
        self.make_folder()

    def make_folder(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=self.prefix)).resolve()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()
        self.processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def begin_patiently(self, begin, times=3):
        """begin(); where that fails all is ended and begun anew, in an empty folder and with other ports."""
        problems = []
        try:
            while True:
                try:
                    return begin()
                except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                    problems.append(f"{error}\n{self.outputs()}")
                if len(problems) == times:
                    raise RuntimeError(f"did not start, {times} times:\n" + "\n".join(problems))
                print(f"{type(self).__name__}: did not start, once more: {problems[-1]}", file=sys.stderr, flush=True)
                self.close()
                self.make_folder()
        except BaseException:
            self.close()
            raise

    def start(self, name, argv, env=None):
        """Begins a program; its output goes to NAME.out in the folder."""
        with open(self.folder / f"{name}.out", "ab") as out:
            process = subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=self.folder,
                                       env={**os.environ, **(env or {})})
        self.processes.append(process)
        process.name = name
        return process

    def run(self, argv, env=None, seconds=START_SECONDS):
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.folder,
                              env={**os.environ, **(env or {})}, timeout=seconds, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)}: exit status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def wait(self, ready, what, seconds=START_SECONDS):
        """Until ready() is true; fails with what the programs wrote when one ends or the time is up."""
        end = time.monotonic() + seconds
        while True:
            said = ready()
            dead = [p.name for p in self.processes if p.poll() is not None]  # who else answered is not ours
            if said and not dead:
                return
            if dead or time.monotonic() > end:
                raise RuntimeError(f"{what}: {'ended: ' + ' '.join(dead) if dead else 'not within the time'}\n{self.outputs()}")
            time.sleep(0.05)

    def outputs(self):
        texts = (f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in sorted(self.folder.glob("*.out")))
        return "\n".join(texts)
