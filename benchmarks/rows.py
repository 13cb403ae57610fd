# SPDX-License-Identifier: Apache-2.0
"""What is measured. Each function gives Rows; ROWS at the end is the list of them."""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import journal_file
import measure
from engine import Engine


@dataclasses.dataclass
class Row:
    what: str
    value: float        # Overcap's, in `unit`
    unit: str           # how it is written: "x", "ms", "%", "/s", "MB", "s"
    floor: float
    aim: float
    more_is_better: bool = False
    detail: str = ""    # what stands beside it

    def meets(self, limit):
        return self.value >= limit if self.more_is_better else self.value <= limit


@dataclasses.dataclass
class Setting:
    overcap: pathlib.Path
    programs: pathlib.Path  # folder of spawn_loop and first_act
    quick: bool
    at_once: int            # commands at the same time: the number of CPUs

    def size(self, full, quick):
        return quick if self.quick else full


def peer(name):
    """The peer's path; None, and a line that says so, when it is not installed."""
    found = shutil.which(name)
    if found is None:
        print(f"  SKIPPED peer: {name} is not installed", flush=True)
    return found


def spawn_loop(setting, count, at_once, logs, *command, **more):
    return measure.seconds([setting.programs / "spawn_loop", count, at_once, logs, *command], **more)


def with_folder(function):
    """Calls it with an empty folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ocb-") as folder:
        return function(pathlib.Path(folder))


def version(setting):
    count, rounds = setting.size(200, 20), setting.size(9, 3)
    commands = {"overcap --version": [setting.overcap, "--version"], "/bin/true": ["/bin/true"],
                "git --version": [peer("git"), "--version"], "python3 -c pass": [sys.executable, "-c", "pass"]}
    contenders = {name: (lambda command=command: spawn_loop(setting, count, 1, "-", *command) / count * 1000)
                  for name, command in commands.items() if command[0]}
    found = measure.medians(rounds, contenders)
    detail = ", ".join(f"{name} {value:.2f} ms" for name, value in found.items())
    yield Row("`overcap --version`, times of /bin/true", found["overcap --version"] / found["/bin/true"], "x", 3, 2,
              detail=detail)


def make_project(folder, files):
    for number in range(files):
        path = folder / f"package{number // 100}" / f"module{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# module {number}\n" + "value = 1\n" * (number % 200))


def first_instruction(setting):
    with Engine(setting.overcap) as engine:
        make_project(engine.project, 2000)
        act, note = setting.programs / "first_act", engine.folder / "note"

        def until_first_act(*launcher, env=None):
            note.unlink(missing_ok=True)
            begin = time.monotonic_ns()
            subprocess.run([*launcher, str(act), str(note)], check=True, stdin=subprocess.DEVNULL, cwd=engine.project,
                           stdout=subprocess.DEVNULL, env=env or engine.env, timeout=60)
            measure.wait_until(note.exists, 30)
            return (int(note.read_text()) - begin) / 1e6

        def hurried():
            taken = until_first_act(*engine.argv("submit", "--"))
            engine.wait_idle()
            return taken

        def overcap():
            time.sleep(0.5)  # an idle engine has made the next attempt's copy of the code by then
            return hurried()

        overcap(), overcap()  # the first takes the code in, the second finds it unchanged
        time.sleep(setting.size(2, 0))  # a capture trusts no file that has just been written
        overcap()
        contenders = {"overcap submit": overcap, "right after another job": hurried, "posix_spawn alone": until_first_act}
        if tsp := peer("tsp"):
            ts_env = dict(engine.env, TS_SOCKET=str(engine.folder / "tsp.sock"), TMPDIR=str(engine.folder))
            contenders["task-spooler (no code captured)"] = lambda: until_first_act(tsp, env=ts_env)
        try:
            found = measure.medians(setting.size(31, 5), contenders)
        finally:
            if tsp:
                subprocess.run([tsp, "-K"], env=ts_env, stdout=subprocess.DEVNULL, timeout=30)
    detail = ", ".join(f"{name} {value:.1f} ms" for name, value in found.items() if name != "overcap submit")
    yield Row("submit to the rank's first instruction, 2,000 files unchanged", found["overcap submit"], "ms", 30, 10,
              detail=detail)


def array_rate(setting, count, at_once):
    """Tasks per second of one array, every task's log on disk."""
    with Engine(setting.overcap) as engine:
        engine.run("submit", "--wait", "true")  # the engine is up
        taken = engine.seconds("submit", "--wait", "--array", f"0-{count - 1}%{at_once}", "true")
        job = engine.request("query", ids=engine.request("resolve", refs=["last"])["ids"])["jobs"][0]
        logs = sum(1 for _ in pathlib.Path(job["dir"]).rglob("task-*.log"))
        if job["tasks"]["succeeded"] != count or logs != count:
            raise RuntimeError(f"{count} tasks, but {job['tasks']} and {logs} logs")
        return count / taken


def array(setting):
    count, rounds = setting.size(10_000, 500), setting.size(3, 1)
    few = count // 10  # for peers that are much slower
    for at_once in sorted({1, setting.at_once}):
        contenders = {
            "overcap": lambda: array_rate(setting, count, at_once),
            "loop": lambda: with_folder(lambda d: count / spawn_loop(setting, count, at_once, d, "true")),
            "loop without logs": lambda: count / spawn_loop(setting, count, at_once, "-", "true"),
        }
        numbers = "\n".join(map(str, range(count))).encode()
        if xargs := peer("xargs"):
            contenders["xargs -P without logs"] = lambda: count / measure_input(
                [xargs, "-P", at_once, "-n", 1, "true"], numbers)
        if parallel := peer("parallel"):
            contenders["GNU parallel with --results"] = lambda: with_folder(lambda d: few / measure_input(
                [parallel, "--will-cite", "-j", at_once, "--results", d, "true"], numbers,
                lines=few))
        found = measure.medians(rounds, contenders)
        detail = ", ".join(f"{name} {value:,.0f}/s" for name, value in found.items())
        yield Row(f"array of {count:,} `true`, a log each, {at_once} at once, of a bare posix_spawn loop with logs",
                  found["overcap"] / found["loop"] * 100, "%", 60, 90, True, detail)


def measure_input(argv, data, lines=None):
    """Seconds of a command that reads `data`, or its first lines."""
    if lines is not None:
        data = b"\n".join(data.split(b"\n")[:lines])
    with tempfile.TemporaryFile() as file:
        file.write(data + b"\n")
        file.seek(0)
        begin = measure.now()
        subprocess.run([str(word) for word in argv], check=True, stdin=file, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=600)
        return measure.now() - begin


def submits(setting):
    count, rounds = setting.size(2000, 100), setting.size(3, 1)
    few = count // 5

    def overcap():
        with Engine(setting.overcap) as engine:
            engine.run("submit", "--wait", "true")
            begin = measure.now()
            spawn_loop(setting, count, setting.at_once, "-", setting.overcap, "submit", "true", env=engine.env,
                       cwd=engine.project)
            engine.wait_idle()
            taken = measure.now() - begin
            done = engine.request("status")["counts"].get("succeeded", 0)
            if done != count + 1:
                raise RuntimeError(f"{done} of {count + 1} jobs succeeded")
            return count / taken

    def spooler(folder):
        env = dict(os.environ, TS_SOCKET=str(folder / "sock"), TMPDIR=str(folder), TS_MAXFINISHED="10")
        try:
            measure.seconds([tsp, "-S", setting.at_once], env=env)
            begin = measure.now()
            spawn_loop(setting, count, setting.at_once, "-", tsp, "true", env=env)
            measure.seconds([tsp, "-f", "true"], env=env)  # waits behind all others
            return count / (measure.now() - begin)
        finally:
            subprocess.run([tsp, "-K"], env=env, stdout=subprocess.DEVNULL, timeout=30)

    contenders = {"overcap": overcap}
    if tsp := peer("tsp"):
        contenders["task-spooler (nothing durable)"] = lambda: with_folder(spooler)
    if parallel := peer("parallel"):
        numbers = "\n".join(map(str, range(few))).encode()
        contenders["GNU parallel --joblog (one command, nothing queued)"] = lambda: with_folder(
            lambda d: few / measure_input([parallel, "--will-cite", "-j", setting.at_once, "--joblog", d / "log", "true"],
                                          numbers))
    found = measure.medians(rounds, contenders)
    detail = ", ".join(f"{name} {value:,.0f}/s" for name, value in found.items() if name != "overcap")
    yield Row(f"{count:,} separate submits of `true`, finished and durable", found["overcap"], "/s", 300, 1000, True,
              detail)


def filled_engine(setting, finished, queued):
    """An engine, stopped, whose journal holds these jobs; the queued ones wait for the GPU that a sleeper has."""
    engine = Engine(setting.overcap, gpus=1)
    try:
        job = engine.run("submit", "-n", 1, "sleep", 100000).split()[-1]
        engine.request("wait", ids=[job], until="started", timeout_s=30)
        engine.stop()
        with open(engine.root / "journal", "ab") as file:
            journal_file.write_jobs(file, finished, queued, (int(time.time()) - 2_000_000) * 1_000_000)
        return engine
    except BaseException:
        engine.__exit__()
        raise


def started_with(engine, finished, queued):
    """Starts it, checks that it holds all the jobs, gives the seconds."""
    taken = engine.start()
    counts = engine.request("status")["counts"]
    wanted = {"succeeded": finished, "queued": queued, "running": 1}
    if any(counts.get(state, 0) != number for state, number in wanted.items()):
        raise RuntimeError(f"wanted {wanted}, the engine has {counts}")
    return taken


def listing(setting):
    finished, queued = setting.size(100_000, 5000), setting.size(10_000, 500)
    with filled_engine(setting, finished, queued) as engine:
        first = started_with(engine, finished, queued)
        found = measure.medians(setting.size(11, 3), {
            "ls": lambda: engine.seconds("ls") * 1000,
            "ls --all": lambda: engine.seconds("ls", "--all") * 1000,
            "ls --json": lambda: engine.seconds("ls", "--json") * 1000,
        })
        memory = engine.resident_bytes() / 1e6
    detail = f"ls --all {found['ls --all']:.0f} ms, ls --json {found['ls --json']:.0f} ms; this engine: " \
             f"first start {first:.2f} s, {memory:.0f} MB"
    yield Row(f"`ls` with {finished:,} finished and {queued:,} queued jobs", found["ls"], "ms", 200, 50, detail=detail)


def memory_and_restart(setting):
    queued = setting.size(100_000, 5000)
    with filled_engine(setting, 0, queued) as engine:
        first = started_with(engine, 0, queued)
        memory = engine.resident_bytes() / 1e6

        def restart():
            engine.stop()
            return started_with(engine, 0, queued)

        again = measure.medians(setting.size(5, 2), {"restart": restart})["restart"]
        size = (engine.root / "journal").stat().st_size / 1e6
    yield Row(f"engine's memory with {queued:,} queued jobs", memory, "MB", 400, 150,
              detail=f"resident; the journal has {size:.0f} MB")
    yield Row("restart with that journal, until it answers", again, "s", 3, 1, detail=f"the very first time {first:.2f} s")


ROWS = {"version": version, "first-instruction": first_instruction, "array": array, "submits": submits, "ls": listing,
        "memory": memory_and_restart}
