# SPDX-License-Identifier: Apache-2.0
"""Programs that serve a test: started in a private folder, waited for, and ended by their process ids."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

_given = set()


def free_port():
    """One that nobody listens at, and that was not given to anybody else of this process."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port


def listens(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Servers:
    """A folder and the programs that live in it. Use it with `with`, or close() it."""

    def __init__(self, prefix):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix)).resolve()
        self.processes = []

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

    def start(self, name, argv, env=None):
        """Begins a program; its output goes to NAME.out in the folder."""
        with open(self.folder / f"{name}.out", "ab") as out:
            process = subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=self.folder,
                                       env={**os.environ, **(env or {})})
        self.processes.append(process)
        process.name = name
        return process

    def run(self, argv, env=None, seconds=120):
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.folder,
                              env={**os.environ, **(env or {})}, timeout=seconds, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{argv[0]} failed: {(done.stderr or done.stdout)[-2000:]}")
        return done.stdout

    def wait(self, ready, what, seconds=90):
        """Until ready() is true; fails with what the programs wrote when one ends or the time is up."""
        end = time.monotonic() + seconds
        while True:
            if ready():
                return
            dead = [p.name for p in self.processes if p.poll() is not None]
            if dead or time.monotonic() > end:
                raise RuntimeError(f"{what}: {'ended: ' + ' '.join(dead) if dead else 'not within the time'}\n{self.outputs()}")
            time.sleep(0.05)

    def outputs(self):
        texts = (f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in sorted(self.folder.glob("*.out")))
        return "\n".join(texts)
