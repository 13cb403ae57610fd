# SPDX-License-Identifier: Apache-2.0
"""torchrun itself, of the torch that tools/install_torch gets.

Importing torch takes seconds, so one process imports it and forks for each run; what runs then is torchrun's own main().
"""
import json
import os
import pathlib
import subprocess
import unittest

TORCH = pathlib.Path(__file__).resolve().parents[2] / "build/torch"
PYTHON = TORCH / "bin/python"

SERVER = """
import json, os, signal, sys
from torch.distributed.run import main
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    for fd, (path, flags) in enumerate(asked["streams"]):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    status = 1
    try:
        main(asked["words"])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    with open(asked["status"] + ".new", "w") as file:
        file.write(str(status))
    os.rename(asked["status"] + ".new", asked["status"])
    os._exit(status)
"""


class Torchrun:
    def __init__(self):
        if not PYTHON.exists():
            raise unittest.SkipTest("NOT TESTED: no current torch here; tools/install_torch gets it from PyPI")
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PET_", "TORCH"))}
        self.server = subprocess.Popen([PYTHON, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        if self.server.stdout.readline() != "ready\n":
            self.close()
            raise AssertionError("torch cannot be imported")

    def close(self):
        self.server.stdin.close()
        self.server.wait(30)
        self.server.stdout.close()

    @staticmethod
    def help():
        """What `torchrun --help` prints."""
        done = subprocess.run([TORCH / "bin/torchrun", "--help"], capture_output=True, text=True, check=True, timeout=120,
                              env={**os.environ, "COLUMNS": "200"})
        return done.stdout

    def start(self, words, env, folder, output, stdin="/dev/null"):
        """Starts torchrun; its stdout, stderr and status go to files in `output`."""
        write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        streams = [(str(stdin), os.O_RDONLY), (str(output / "out"), write), (str(output / "err"), write)]
        asked = {"words": words, "env": env, "folder": str(folder), "streams": streams, "status": str(output / "status")}
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())
