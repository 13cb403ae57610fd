# SPDX-License-Identifier: Apache-2.0
"""A real etcd on loopback, of one member or several.

    with Etcd(3) as etcd:
        etcd.endpoints            # "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
        etcd.kill_leader()        # kill -9; gives its number
        etcd.restart(0)
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from rigs.machines import need, wait_until
from rigs.ports import free_port


def free_ports(count):
    return [free_port() for _ in range(count)]


class Etcd:
    def __init__(self, members=1, address="127.0.0.1", tls=False):
        need("etcd", "etcdctl")
        for times_left in (2, 1, 0):  # with other ports each time
            try:
                self.begin_all(members, address, tls)
                return
            except TimeoutError as error:
                problem = f"{error}: {self.logs()}"
                self.close()
                if times_left == 0:
                    raise RuntimeError(problem) from None
                print(f"etcd: did not start, once more: {problem}", file=sys.stderr, flush=True)
            except BaseException:
                self.close()
                raise

    def begin_all(self, members, address, tls):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="overcap-etcd-"))
        self.running = [None] * members
        self.address, self.scheme, self.flags, self.trust = address, "http", [], []
        if tls:
            self.make_certificate()
        ports = free_ports(2 * members)
        self.client_ports, self.peer_ports = ports[:members], ports[members:]
        for k in range(members):
            self.begin(k)
        wait_until(lambda: self.ended() or all(self.healthy(k) for k in range(members)), "etcd to be healthy")
        if self.ended():
            raise TimeoutError("a member of etcd has ended")

    def ended(self):
        return any(process is not None and process.poll() is not None for process in self.running)

    def logs(self):
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in sorted(self.folder.glob("*.log")))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    @property
    def endpoints(self):
        return ",".join(f"{self.address}:{port}" for port in self.client_ports)

    def make_certificate(self):
        need("openssl")
        self.ca = str(self.folder / "cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=etcd", "-addext", f"subjectAltName=IP:{self.address}", "-keyout",
                        str(self.folder / "key.pem"), "-out", self.ca], check=True, capture_output=True, timeout=60)
        self.scheme = "https"
        self.flags = ["--cert-file", self.ca, "--key-file", str(self.folder / "key.pem")]
        self.trust = ["--cacert", self.ca]

    def begin(self, k):
        client = f"{self.scheme}://{self.address}:{self.client_ports[k]}"
        peer = f"http://{self.address}:{self.peer_ports[k]}"
        cluster = ",".join(f"m{i}=http://{self.address}:{port}" for i, port in enumerate(self.peer_ports))
        with open(self.folder / f"m{k}.log", "ab") as log:
            self.running[k] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "etcd", "--name", f"m{k}", "--data-dir",
                            str(self.folder / f"m{k}"), "--listen-client-urls", client, "--advertise-client-urls", client,
                            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster, *self.flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": os.environ.get("PATH", ""), "ETCDCTL_API": "3"})

    def ctl(self, *words, endpoint=None, **more):
        port = self.client_ports[endpoint] if endpoint is not None else None
        at = f"{self.scheme}://{self.address}:{port}" if port else ",".join(
            f"{self.scheme}://{self.address}:{p}" for p in self.client_ports)
        return subprocess.run(["etcdctl", "--endpoints", at, *self.trust, "--command-timeout=3s", *words],
                              env={"PATH": os.environ.get("PATH", ""), "ETCDCTL_API": "3"}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30, check=False, **more)

    def healthy(self, k):
        try:
            return self.ctl("endpoint", "health", endpoint=k).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def leader(self):
        for k, process in enumerate(self.running):
            if process is None:
                continue
            try:
                with urllib.request.urlopen(urllib.request.Request(
                        f"http://{self.address}:{self.client_ports[k]}/v3/maintenance/status", b"{}", method="POST"), timeout=2) as answer:
                    status = json.load(answer)
                if status.get("leader") == status["header"]["member_id"]:
                    return k
            except (OSError, ValueError, KeyError):
                pass
        return None

    def kill(self, k):
        self.running[k].kill()
        self.running[k].wait(90)
        self.running[k] = None

    def kill_leader(self):
        k = wait_until(lambda: self.leader() is not None and [self.leader()], "etcd to have a leader")[0]
        self.kill(k)
        return k

    def restart(self, k):
        self.begin(k)

    def writes(self):
        """How many changes etcd has seen in all."""
        with urllib.request.urlopen(urllib.request.Request(
                f"http://{self.address}:{self.client_ports[0]}/v3/kv/range", b'{"key":"AA=="}', method="POST"), timeout=5) as answer:
            return int(json.load(answer)["header"]["revision"])

    def close(self):
        for process in self.running:
            if process is not None:
                process.kill()
                process.wait(90)
        shutil.rmtree(self.folder, ignore_errors=True)
