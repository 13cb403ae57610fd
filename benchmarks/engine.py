# SPDX-License-Identifier: Apache-2.0
"""An embedded engine of its own for a benchmark: own root, own configuration, asked over its socket (docs/formats/api.md)."""
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile

import measure


class Engine:
    """`with Engine(binary) as engine:` gives a root that is gone afterwards, with all that runs in it."""

    def __init__(self, binary, gpus=0):
        self.binary = str(binary)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ocb-"))
        self.root = self.folder / "root"
        self.root.mkdir(mode=0o700)
        config = self.folder / "overcap.yaml"
        gpu_list = f"[{{type: a40, count: {gpus}}}]" if gpus else "[]"
        config.write_text(f"clusters: {{local: {{gpus: {gpu_list}}}}}\n")
        self.project = self.folder / "project"
        self.project.mkdir()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("OVERCAP_")}
        self.env.update(OVERCAP_HOME=str(self.root), OVERCAP_CONFIG=str(config), NO_COLOR="1")
        self.daemon = None  # when we started it ourselves

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            if self.running():
                ids = [job["id"] for job in self.request("list", states=["running"])["jobs"]]
                if ids:
                    self.request("cancel", ids=ids, reason="the benchmark is over")
                    self.request("wait", ids=ids, until="ended", timeout_s=30)
                self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def argv(self, *words):
        return [self.binary, *map(str, words)]

    def run(self, *words):
        """The output of `overcap WORDS...`, run in the project's folder."""
        result = subprocess.run(self.argv(*words), env=self.env, cwd=self.project, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=600)
        if result.returncode != 0:
            raise RuntimeError(f"overcap {' '.join(map(str, words))}: exit status {result.returncode}: {result.stderr}")
        return result.stdout.strip()

    def seconds(self, *words):
        return measure.seconds(self.argv(*words), env=self.env, cwd=self.project)

    def request(self, op, **fields):
        """One request over the socket; what stands under `ok`."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(120)
            connection.connect(str(self.root / "daemon.sock"))
            body = json.dumps({"op": op, **fields}).encode()
            connection.sendall(struct.pack("<I", len(body)) + body)
            size = struct.unpack("<I", read_exactly(connection, 4))[0]
            reply = json.loads(read_exactly(connection, size))
        if "error" in reply:
            raise RuntimeError(f"{op}: {reply['error']}")
        return reply["ok"]

    def running(self):
        """Its status, None when no engine answers."""
        try:
            return self.request("status")
        except (OSError, EOFError):
            return None

    def wait_idle(self, limit=600):
        """Until nothing is queued or running."""
        def idle():
            counts = self.request("status")["counts"]
            return counts.get("queued", 0) + counts.get("running", 0) == 0
        measure.wait_until(idle, limit, pause=0.01)

    def start(self):
        """Starts the engine and gives the seconds until it answered."""
        begin = measure.now()
        self.daemon = subprocess.Popen(self.argv("daemon"), env=self.env, cwd="/", stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        measure.wait_until(self.running, 120)
        return measure.now() - begin

    def stop(self):
        pid = self.request("status")["pid"]
        self.request("stop")
        if self.daemon is not None:
            self.daemon.wait(60)
            self.daemon = None
        else:
            measure.wait_until(lambda: gone(pid), 60)

    def resident_bytes(self):
        pid = self.request("status")["pid"]
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")


def read_exactly(connection, size):
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError("the engine closed the connection")
        data += part
    return bytes(data)


def gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
