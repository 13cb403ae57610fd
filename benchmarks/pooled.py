# SPDX-License-Identifier: Apache-2.0
"""Rows of `./bench` about the pooled scheduler. OVERCAP_TRACES names a folder with philly_sia.csv and philly_vc_nodes.csv."""
import json
import os
import pathlib
import random
import subprocess
import tempfile
import time

import journal_file
import measure
from engine import Engine
from rows import Row

LABS = 13


def simulate(setting, *words):
    """Seconds and peak memory (MB) of one simulation; fails when it does."""
    before = time.monotonic()
    process = subprocess.Popen([setting.overcap, "policy", "simulate", *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"policy simulate ended with {process.returncode}")
    return time.monotonic() - before, usage.ru_maxrss / 1000


def write_policy(path, labs, nodes, caps, more=""):
    lines = [f"nodes:\n  n[0001-{nodes:04d}]: {{gpus: a40:8, cpus: 64}}\nlabs:"]
    lines += [f'  "{lab}": {cap} user-of-{lab}' for lab, cap in zip(labs, caps)]
    path.write_text("\n".join(lines) + "\n" + more)


def write_jobs(path, count, gpus, asked=0.9, seed=1):
    """Jobs of 13 labs with 20 users each that ask for `asked` of the pool, in bursts; above 1 the queue grows and grows."""
    chance = random.Random(seed)
    now, rate = 0.0, gpus * asked * 1.25 / (2.2 * 3600)  # jobs a second, of 2.2 GPUs; half of them slowly, half in a burst
    with open(path, "w") as file:
        file.write("submit,run,gpus,lab,user\n")
        for number in range(count):
            now += chance.expovariate(rate * (0.5 if number // 1000 % 2 else 2.0))
            lab = chance.randrange(LABS)
            file.write(f"{now:.0f},{chance.expovariate(1 / 3600) + 1:.0f},{chance.choice((1, 1, 1, 1, 1, 1, 2, 2, 4, 8))},"
                       f"lab{lab},u{lab}x{chance.randrange(20)}\n")


def philly(setting):
    folder = os.environ.get("OVERCAP_TRACES")
    if not folder or not (pathlib.Path(folder) / "philly_sia.csv").exists():
        print("  SKIPPED: set OVERCAP_TRACES to a folder with philly_sia.csv", flush=True)
        return
    vcs = [line.split(",") for line in (pathlib.Path(folder) / "philly_vc_nodes.csv").read_text().split()[2:]]
    labs = {line[0]: int(line[1]) * 8 for line in vcs if len(line) == 2} | {
        name: 0 for name in ("925e2b", "51b7ef", "23dbec", "795a4c")}
    with tempfile.TemporaryDirectory(prefix="ocb-") as place:
        policy = pathlib.Path(place) / "philly.yaml"
        write_policy(policy, labs, 352, labs.values(), "partitions:\n  long: {max_time: none}\n  overcap: {max_time: none}\n")
        taken = measure.medians(setting.size(5, 1), {"it": lambda: simulate(
            setting, policy, "--trace", pathlib.Path(folder) / "philly_sia.csv", "--scale", 0.2)[0]})["it"]
    yield Row("`policy simulate`, Philly, 82,247 jobs on 563 GPUs", taken, "s", 5, 1, detail="the whole program")


def growth(setting):
    counts = setting.size((10_000, 100_000, 1_000_000), (1000, 10_000))
    found, details = [], []
    with tempfile.TemporaryDirectory(prefix="ocb-") as place:
        policy = pathlib.Path(place) / "policy.yaml"
        write_policy(policy, [f"lab{i}" for i in range(LABS)], 130, [80] * LABS)
        for asked, most in ((1.5, counts[-2]), (0.9, counts[-1])):
            found = []
            for count in (count for count in counts if count <= most):
                jobs = pathlib.Path(place) / f"{count}.csv"
                write_jobs(jobs, count, 1040, asked)
                found.append((count, *simulate(setting, policy, "--trace", jobs)))
            details.append(f"jobs that ask for {asked} of the pool: " + "; ".join(
                f"{count:,} in {taken:.2f} s, {taken / count * 1e6:.1f} µs each" for count, taken, _ in found))
    detail = "; ".join(reversed(details))
    yield Row(f"memory of `policy simulate` with {counts[-1]:,} jobs", found[-1][2], "MB", 1000, 300, detail=detail)


def one_pass(setting):
    nodes, jobs = setting.size((10_000, 100_000), (500, 2000))
    median, slowest, running, queued, free = subprocess.run([setting.programs / "pooled_pass", str(nodes), str(jobs)], check=True,
                                                      capture_output=True, text=True, timeout=300).stdout.split()
    yield Row(f"one scheduling pass after one end, {nodes:,} nodes, {jobs:,} queued jobs", float(median), "ms", 10, 1,
              detail=f"slowest of 200: {slowest} ms; {running} jobs ran, {queued} waited, {free} of {nodes * 8:,} GPUs were free")


def why(setting):
    jobs = setting.size(2000, 100)
    found = []
    for _ in range(setting.size(5, 1)):
        found.append(subprocess.run([setting.programs / "why_replays", str(jobs), str(setting.at_once)], check=True,
                                    capture_output=True, text=True, timeout=300).stdout.split())
    found.sort(key=lambda words: float(words[0]))
    middle, last, running, waiting = found[len(found) // 2]
    yield Row(f"`why` with P50/P90 from 200 replays of a queue of {jobs:,} jobs, and what would start sooner", float(middle), "ms", 2000, 300,
              detail=f"of the job in the middle of the queue; of the last one {last} ms; {running} jobs ran, {waiting} of 130 users waited "
                     f"for 288 GPUs; {setting.at_once} threads, without the program's start and the cluster's answers")


def why_command(setting):
    """The whole program, asking an engine whose journal holds the queue."""
    jobs = setting.size(2000, 100)
    with Engine(setting.overcap, gpus=8) as engine:
        job = engine.run("submit", "-n", 8, "--one-rank-per-node", "-t", "4h", "sleep", 100000).split()[-1]
        engine.request("wait", ids=[job], until="started", timeout_s=30)
        engine.stop()
        with open(engine.root / "journal", "ab") as file:
            ids = journal_file.write_mixed_jobs(file, jobs, jobs, (int(time.time()) - 200_000) * 1_000_000, random.Random(1))
        engine.start()
        found = measure.medians(setting.size(5, 1), {
            name: lambda job=job: engine.seconds("why", job, "--json") * 1000
            for name, job in (("middle", ids[jobs // 2]), ("last", ids[-1]), ("first", ids[0]))})
        replays = json.loads(engine.run("why", ids[-1], "--json"))["start"]["replays"]
    yield Row(f"`overcap why` of the last of {jobs:,} jobs that wait, from the program's start to its end", found["last"], "ms", 2000, 300,
              detail=f"{replays} replays; in the middle {found['middle']:.0f} ms, first {found['first']:.0f} ms; one machine of 8 GPUs, 40 users")


SCHED_ROWS = {"why": why, "why-command": why_command, "sched-pass": one_pass, "sched-philly": philly, "sched-growth": growth}
