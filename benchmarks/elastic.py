# SPDX-License-Identifier: Apache-2.0
"""What is measured of elastic launches, beside torch's own elastic launcher in the same run."""
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

import measure
from launch import Launches
from rows import Row

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from rigs.etcd_rig import Etcd, free_ports  # noqa: E402
from rigs.machines import Machines, NotPermitted, public_folder  # noqa: E402

# torch's elastic launcher as a library: its command line does not start with Python 3.11.
TORCH = """
import sys
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.distributed.elastic.multiprocessing import Std
low, high, workers, restarts, endpoint, interval, last = sys.argv[1:8]
config = LaunchConfig(min_nodes=int(low), max_nodes=int(high), nproc_per_node=int(workers), run_id="bench", rdzv_backend="c10d",
                      rdzv_endpoint=endpoint, max_restarts=int(restarts), monitor_interval=float(interval), redirects=Std.NONE,
                      tee=Std.NONE, rdzv_configs={"last_call_timeout": int(last)})
elastic_launch(config, sys.argv[8])(*sys.argv[9:])
"""
# A worker that says when it began, and stays until it is told to go; then it says when it ended.
WORKER = """#!/bin/sh
me=$WORLD_SIZE-$RANK-$$
date +%s%N > "$1/new-$me"; mv "$1/new-$me" "$1/began-$me"
[ "$2" = stay ] || exit 0
while [ ! -e "$1/go" ]; do sleep 0.005; done
date +%s%N > "$1/ended-$me"
"""
# For torch's launcher: ranks that talk to each other, or nobody would notice that one is gone.
TALKER = """
import os, sys, time
notes, began = sys.argv[1], time.time_ns()
with open(f"{notes}/new-{os.getpid()}", "w") as file:
    file.write(f"{began}\\n")
os.rename(f"{notes}/new-{os.getpid()}", f"{notes}/began-{os.environ['WORLD_SIZE']}-{os.environ['RANK']}-{os.getpid()}")
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
while not os.path.exists(notes + "/go"):
    dist.all_reduce(torch.ones(1))
    open(f"{notes}/talks-{os.environ['WORLD_SIZE']}", "w").close()
    time.sleep(0.01)
"""
TTL_S = 2


class Bench:
    def __init__(self, launches):
        self.launches = launches
        self.python = sys.executable if self.has_torch(sys.executable) else "/usr/bin/python3"
        self.torch = self.has_torch(self.python)
        if not self.torch:
            print("  SKIPPED peer: torch is not installed", flush=True)
        self.count = 0
        self.processes = []
        self.worker = launches.folder / "worker.sh"
        self.worker.write_text(WORKER)
        self.worker.chmod(0o755)
        self.script = launches.folder / "torch_launcher.py"
        self.script.write_text(TORCH)
        self.talker = launches.folder / "talker.py"
        self.talker.write_text(TALKER)

    @staticmethod
    def has_torch(python):
        return subprocess.run([python, "-c", "import torch.distributed.launcher.api"], capture_output=True, check=False).returncode == 0

    def notes(self):
        self.count += 1
        folder = self.launches.folder / f"notes-{self.count}"
        folder.mkdir()
        return folder

    def start(self, argv, home="root", host=None, hosts=None):
        env = {**self.launches.env, "OVERCAP_HOME": str(self.launches.folder / home)}
        argv = hosts.words(host, argv) if hosts else argv
        process = subprocess.Popen([str(word) for word in argv], env=env, cwd=self.launches.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.processes.append(process)
        return process

    def overcap(self, *flags, home="root", **where):
        return self.start([self.launches.binary, "launch", *flags], home, **where)

    def torch_agent(self, low, high, workers, endpoint, notes, restarts=3, interval=5, last=1, command=None):
        command = command or [self.worker, notes, "stay"]
        return self.start([self.python, self.script, low, high, workers, restarts, endpoint, interval, last, *command])

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.wait(20)


def began(notes, world, besides=()):
    """{name: nanoseconds} of workers that began in a world of this size."""
    found = {}
    for path in notes.glob(f"began-{world}-*"):
        text = path.read_text()
        if text.endswith("\n") and path.name not in besides:
            found[path.name] = int(text)
    return found


def kill_one(workers):
    os.kill(int(next(iter(workers)).rpartition("-")[2]), signal.SIGKILL)


def until_began(notes, world, count, besides=(), limit=90):
    measure.wait_until(lambda: len(began(notes, world, besides)) >= count, limit, 0.001)
    return began(notes, world, besides)


def finish(process, notes):
    """Lets the workers go; milliseconds from the last worker's end to the launcher's."""
    (notes / "go").touch()
    process.wait(60)
    end = time.time_ns()
    last = max(int(path.read_text()) for path in notes.glob("ended-*"))
    return (end - last) / 1e6


def one_node(bench, kind, notes):
    if kind == "overcap":
        return bench.overcap("--nnodes", "1:1", "--nproc-per-node", "4", "--max-restarts", "3", bench.worker, notes, "stay")
    return bench.torch_agent(1, 1, 4, f"127.0.0.1:{free_ports(1)[0]}", notes)


def start_exit_restart(bench, kind):
    """Start to first instruction of all, kill to all running again, exit after the workers': ms each."""
    notes, begin = bench.notes(), time.time_ns()
    process = one_node(bench, kind, notes)
    first = until_began(notes, 4, 4)
    start_ms = (max(first.values()) - begin) / 1e6
    killed = time.time_ns()
    kill_one(first)
    again = until_began(notes, 4, 4, besides=first)
    restart_ms = (max(again.values()) - killed) / 1e6
    return start_ms, restart_ms, finish(process, notes)


def elastic_one_node(setting):
    rounds, peers = setting.size(7, 2), setting.size(3, 1)
    with Launches(setting) as launches:
        bench = Bench(launches)
        try:
            ours = [statistics.median(column) for column in zip(*(start_exit_restart(bench, "overcap") for _ in range(rounds)))]
            theirs = [float("nan")] * 3
            if bench.torch:
                theirs = [statistics.median(c) for c in zip(*(start_exit_restart(bench, "torch") for _ in range(peers)))]
        finally:
            bench.close()
    beside = "torch's elastic_launch: {:,.0f} ms"
    yield Row("elastic: 4 workers on one host, start to first instruction, against torch", theirs[0] / ours[0], "x", 20, 100, True,
              f"{ours[0]:.1f} ms; " + beside.format(theirs[0]))
    yield Row("elastic: launcher's exit after its workers'", ours[2], "ms", 50, 10, detail=beside.format(theirs[2]))
    yield Row("elastic: worker killed to all workers running again", ours[1], "ms", 100, 30, detail=beside.format(theirs[1]))


def join(bench, etcd, number):
    """Second agent's start to all in the larger group: ms."""
    notes = bench.notes()
    flags = ["--nnodes", "1:2", "--nproc-per-node", "2", "--grow", "now", "--last-call", "0", "--ttl", f"{TTL_S}s", "--rdzv",
             f"etcd://{etcd.endpoints}/join-{number}", bench.worker, notes, "stay"]
    first = bench.overcap(*flags, home="first")
    until_began(notes, 2, 2)
    begin = time.time_ns()
    second = bench.overcap(*flags, home="second")
    joined = until_began(notes, 4, 4)
    finish(first, notes)
    second.wait(60)
    return (max(joined.values()) - begin) / 1e6


def torch_join_and_loss(bench):
    """The same of torch's launcher, which polls each 0.1 s here; then the second agent and its worker are killed, until the first's
    worker begins again: ms and ms."""
    notes, endpoint = bench.notes(), f"127.0.0.1:{free_ports(1)[0]}"
    talk = [bench.python, bench.talker, notes]
    bench.torch_agent(1, 2, 1, endpoint, notes, interval=0.1, command=talk)
    until_began(notes, 1, 1)
    begin = time.time_ns()
    second = bench.torch_agent(1, 2, 1, endpoint, notes, interval=0.1, command=talk)
    joined = until_began(notes, 2, 2)
    join_ms = (max(joined.values()) - begin) / 1e6
    measure.wait_until((notes / "talks-2").exists, 60)
    before = began(notes, 1)
    lost = time.time_ns()
    os.killpg(second.pid, signal.SIGKILL)
    alone = until_began(notes, 1, 1, besides=before, limit=90)
    (notes / "go").touch()
    return join_ms, (max(alone.values()) - lost) / 1e6


class Nodes:
    """Machines with a network of their own, and an etcd that all of them reach."""

    def __enter__(self):
        self.folder = public_folder("overcap-bench-")
        self.hosts = Machines(["n1", "n2", "n3"], self.folder)
        self.hosts.add({name: ["sleep", "600"] for name in self.hosts.names})
        self.etcd = Etcd(address=f"{self.hosts.net}.254")
        return self

    def __exit__(self, *unused):
        self.etcd.close()
        self.hosts.close()
        subprocess.run(["rm", "-rf", str(self.folder)], check=False)


def leads(bench, home):
    log = bench.launches.folder / home / "launches" / "latest" / "events.jsonl"
    return log.exists() and '"event":"leads"' in log.read_text()


def node_lost(bench, nodes, number, leader):
    """A node's cable is pulled (the leader's, or another's) to the other two running again: ms."""
    notes, names = bench.notes(), nodes.hosts.names
    homes = {name: f"lost-{number}-{name}" for name in names}
    running = {name: bench.overcap("--nnodes", "1:3", "--nproc-per-node", "1", "--last-call", "20s", "--ttl", f"{TTL_S}s", "--rdzv",
                                   f"etcd://{nodes.etcd.endpoints}/lost-{number}", bench.worker, notes, "stay", home=homes[name],
                                   host=name, hosts=nodes.hosts) for name in names}
    until_began(notes, 3, 3)
    time.sleep(0.3 * (number % 5))  # anywhere between two beats
    lost = next(name for name in names if leads(bench, homes[name]) == leader)
    begin = time.time_ns()
    nodes.hosts.cut(lost)
    again = until_began(notes, 2, 2)
    taken = (max(again.values()) - begin) / 1e6
    (notes / "go").touch()
    for name in names:
        if name != lost:
            running[name].wait(60)
    nodes.hosts.heal(lost)
    running[lost].wait(60)
    return taken


def elastic_join(setting):
    with Launches(setting) as launches, Etcd() as etcd:
        bench = Bench(launches)
        try:
            ours = [join(bench, etcd, k) for k in range(setting.size(7, 1))]
            theirs = torch_join_and_loss(bench) if bench.torch else (float("nan"), float("nan"))
        finally:
            bench.close()
    yield Row("elastic: second agent admitted with --grow now", statistics.median(ours), "ms", 500, 100,
              detail=f"slowest of {len(ours)}: {max(ours):.0f} ms; torch's elastic_launch, c10d, polling each 0.1 s: {theirs[0]:,.0f} ms; its second "
                     f"agent and worker killed, to the first's running again: {theirs[1]:,.0f} ms")


def elastic_node_lost(setting):
    try:
        nodes = Nodes().__enter__()
    except NotPermitted as error:
        return print(f"  SKIPPED: {error}", flush=True)
    with Launches(setting) as launches:
        bench = Bench(launches)
        try:
            others = [node_lost(bench, nodes, k, False) for k in range(setting.size(7, 1))]
            leaders = [node_lost(bench, nodes, 100 + k, True) for k in range(setting.size(5, 1))]
        finally:
            bench.close()
            nodes.__exit__()
    for what, found in (("node cut off to the others running again", others), ("the same when it is the leader's node", leaders)):
        middle = statistics.median(found)
        yield Row(f"elastic: {what}, beyond the TTL", middle - TTL_S * 1000, "ms", 500, 100,
                  detail=f"{middle:,.0f} ms in all at a TTL of {TTL_S} s; of {len(found)}: {min(found):,.0f} to {max(found):,.0f} ms")


def until_writes(etcd, out):
    """Seconds until etcd itself takes a write again, through any member that lives."""
    begin = time.monotonic()
    while time.monotonic() - begin < 20:
        for port in [port for k, port in enumerate(etcd.client_ports) if etcd.running[k]]:
            try:
                urllib.request.urlopen(urllib.request.Request(f"http://{etcd.address}:{port}/v3/kv/put", b'{"key":"YQ==","value":"YQ=="}',
                                                              method="POST"), timeout=0.1).close()
                return out.append(time.monotonic() - begin)
            except OSError:
                pass
    return out.append(float("nan"))


def etcd_leader_killed(setting):
    """Seconds until the group has kept its next epoch, whether only the worker that was asked for restarted, and those of etcd itself."""
    with Launches(setting) as launches, Etcd(3) as etcd:
        bench = Bench(launches)
        try:
            notes = bench.notes()
            process = bench.overcap("--nnodes", "1:1", "--nproc-per-node", "2", "--max-restarts", "9", "--rdzv",
                                    f"etcd://{etcd.endpoints}/leader", bench.worker, notes, "stay")
            first = until_began(notes, 2, 2)
            etcd.kill_leader()
            killed = time.time_ns()
            kill_one(first)  # a new epoch needs a write
            itself = []
            watcher = threading.Thread(target=until_writes, args=(etcd, itself))
            watcher.start()
            again = until_began(notes, 2, 2, besides=first)
            watcher.join()
            taken = (max(again.values()) - killed) / 1e9
            time.sleep(6)
            quiet = len(began(notes, 2)) == 4
            finish(process, notes)
        finally:
            bench.close()
    return taken, quiet, itself[0]


def elastic_etcd_leader(setting):
    """etcd's leader is killed under a running group: how long until the group's lease is renewed again (etcd writes)."""
    taken, quiet, itself = zip(*(etcd_leader_killed(setting) for _ in range(setting.size(7, 1))))
    yield Row("elastic: etcd's leader killed (3 members) to the group keeping an epoch again", statistics.median(taken), "s", 3, 1.5,
              detail=f"of {len(taken)}: {', '.join(f'{each:.2f}' for each in sorted(taken))} s; workers restarted beside the one that was asked "
                     f"for: {0 if all(quiet) else 'SOME'}; etcd itself takes a write again after {statistics.median(itself):.2f} s")


def elastic_swarm(setting):
    count = setting.size(4000, 200)
    with Launches(setting) as launches, Etcd() as etcd:
        bench = Bench(launches)
        try:
            flags = ["--nnodes", f"{count + 1}:{count + 1}", "--nproc-per-node", "1", "--rdzv", f"etcd://{etcd.endpoints}/swarm", "sleep", "600"]
            leader = bench.overcap(*flags)
            log = launches.folder / "root" / "launches" / "latest" / "events.jsonl"
            measure.wait_until(lambda: log.exists() and "leads" in log.read_text(), 20)
            hold = setting.size(15, 3)
            swarm = subprocess.Popen(
                [str(setting.programs / "elastic_swarm"), str(etcd.client_ports[0]), "swarm", str(count), str(hold + 5),
                 "command=sleep 600", f"--nnodes={count + 1}:{count + 1}", "--max-restarts=0", "--ttl=5.0s", "--grow=1"],
                stdout=subprocess.PIPE, text=True)
            bench.processes.append(swarm)
            joined = float(swarm.stdout.readline().split()[1])
            time.sleep(2)
            before, begin = cpu_seconds(leader.pid), measure.now()
            time.sleep(hold - 3 if hold > 3 else 1)
            after, taken = cpu_seconds(leader.pid), measure.now() - begin
            user, kernel = (100 * (b - a) / taken for a, b in zip(before, after))
            memory = resident_mb(leader.pid)
        finally:
            bench.close()
    yield Row(f"elastic: {count:,} simulated agents, join to final ranks, one etcd", joined, "s", 10, 1)
    yield Row(f"elastic: leader's memory with {count:,} idle agents", memory, "MB", 200, 50)
    yield Row(f"elastic: leader's CPU with {count:,} idle agents", user + kernel, "%", 10, 2,
              detail=f"{user:.1f} % of a core itself, {kernel:.1f} % in the kernel")


def cpu_seconds(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(word) / os.sysconf("SC_CLK_TCK") for word in words[11:13]]  # itself, and in the kernel


def resident_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


ELASTIC_ROWS = {
    "elastic-one": elastic_one_node,
    "elastic-join": elastic_join,
    "elastic-node": elastic_node_lost,
    "elastic-etcd": elastic_etcd_leader,
    "elastic-swarm": elastic_swarm,
}
