# SPDX-License-Identifier: Apache-2.0
"""Runs the rows, prints the table and, after a full run, writes docs/benchmarks.md. Called by ./bench."""
import dataclasses
import datetime
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time
import traceback

import measure
from elastic import ELASTIC_ROWS
from fanout import FANOUT_ROWS
from launch import LAUNCH_ROWS
from rows import ROWS, Setting
from pooled import SCHED_ROWS
from slurm import SLURM_ROWS
from stores import STORE_ROWS
from workspace import WORKSPACE_ROWS

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECIMALS = {"x": 2, "ms": 1, "%": 0, "/s": 0, "MB": 0, "s": 2}


def text(value, unit):
    space = "" if unit in ("x", "%", "/s") else " "
    return f"{value:,.{DECIMALS[unit]}f}{space}{unit}"


def limit(value, unit):
    space = "" if unit in ("x", "%", "/s") else " "
    return f"{value:,g}{space}{unit}"


def verdict(row):
    if row.meets(row.aim):
        return "aim met"
    return "floor met" if row.meets(row.floor) else "NOT MET"


def table(rows):
    lines = ["| what | Overcap | floor | aim | | beside it, in the same run |", "|---|---|---|---|---|---|"]
    for row in rows:
        what, detail = (words.replace("|", "\\|") for words in (row.what, row.detail))
        lines.append(f"| {what} | {text(row.value, row.unit)} | {limit(row.floor, row.unit)} | "
                     f"{limit(row.aim, row.unit)} | {verdict(row)} | {detail} |")
    return "\n".join(lines)


def sync_microseconds():
    """What one fdatasync of a small append costs where the benchmark's files are."""
    with tempfile.NamedTemporaryFile() as file:
        def once():
            begin = measure.now()
            os.write(file.fileno(), b"x" * 300)
            os.fdatasync(file.fileno())
            return (measure.now() - begin) * 1e6
        return measure.medians(50, {"sync": once})["sync"]


def file_system(path):
    """The type of the file system that holds `path`."""
    best = ("", "unknown")
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, mount, kind = line.split()[:3]
        if (path + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


def machine():
    model = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"{os.cpu_count()} CPUs ({model}), {memory:.0f} GiB memory, Linux {platform.release()}, files on "
            f"{file_system(tempfile.gettempdir())} where an fdatasync takes {sync_microseconds():.0f} µs")


def write_page(rows):
    version = (ROOT / "VERSION").read_text().strip()
    page = f"""# Benchmarks

Made by `./bench` on {datetime.date.today()} with Overcap {version}; do not edit, run it again. Every figure is a median of
several rounds in which the contenders take turns; all of them ran on the same machine in the same run:
{machine()}.

{table(rows)}

How each row is measured: benchmarks/rows.py, launch.py, elastic.py, slurm.py, workspace.py and stores.py. The queued jobs of the rows about memory and `ls`
wait for a GPU that a running job has.
"""
    (ROOT / "docs" / "benchmarks.md").write_text(page)


WORST = 0.9    # of what the other program does; less is a loss


def ratio(row, ours, other):
    """How good `ours` is as a multiple of `other`, more is better; None where a value of 0 or less allows no ratio."""
    if min(ours, other) <= 0:
        return None
    return ours / other if row.more_is_better else other / ours


def in_turns(function, ours, other, turns):
    """[(row, our median, the other program's median)]: both programs measure the rows `turns` times, each going first in turn."""
    found = {}
    for turn in range(turns):
        for setting in ((ours, other), (other, ours))[turn % 2]:
            for row in function(setting):
                found.setdefault(row.what, (row, {id(ours): [], id(other): []}))[1][id(setting)].append(row.value)
    return [(row, statistics.median(values[id(ours)]), statistics.median(values[id(other)]))
            for row, values in found.values() if values[id(ours)] and values[id(other)]]


def run_beside(chosen, ours, other, turns):
    """Prints every row next to the other program's; the exit status is 1 when a row lost or could not be measured."""
    lines, lost = ["| what | now | other program | now / other |", "|---|---|---|---|"], []
    for name, function in chosen.items():
        print(f"{name} ...", flush=True)
        try:
            measured = in_turns(function, ours, other, turns)
        except Exception:  # the other rows are still worth having
            traceback.print_exc()
            lost.append(f"{name} (not measured)")
            continue
        for row, now, before in measured:
            good = ratio(row, now, before)
            verdict_here = "-" if good is None else f"{good:.2f}x"
            lines.append(f"| {row.what} | {text(now, row.unit)} | {text(before, row.unit)} | {verdict_here} |")
            print(lines[-1], flush=True)
            if good is not None and good < WORST:
                lost.append(f"{row.what} ({verdict_here})")
    print("\n" + "\n".join(lines))
    if lost:
        sys.exit(f"bench: worse than {WORST} of the other program: " + "; ".join(lost))


def read_words(argv):
    """(flags, the other program or None, turns, words that name rows)."""
    flags, words, other, turns = set(), [], None, 3
    argv = list(argv)
    while argv:
        word = argv.pop(0)
        if word == "--beside":
            other = pathlib.Path(argv.pop(0)).resolve() if argv else sys.exit("bench: --beside needs the path of a program")
            if not os.access(other, os.X_OK) or other.is_dir():
                sys.exit(f"bench: --beside: '{other}' is not a program; build the other commit and name its build/release/overcap")
        elif word == "--turns":
            turns = int(argv.pop(0)) if argv and argv[0].isdigit() else 0
            if turns < 1:
                sys.exit("bench: --turns needs a number of 1 or more")
        elif word == "--quick":
            flags.add(word)
        elif word.startswith("-"):
            sys.exit(f"bench: unknown flag '{word}'; there are --quick, --beside OTHER_BINARY and --turns N")
        else:
            words.append(word)
    return flags, other, turns, words


def main():
    flags, other, turns, words = read_words(sys.argv[1:])
    build = ROOT / "build" / "release"
    setting = Setting(build / "overcap", build / "bench", "--quick" in flags, os.cpu_count())
    all_rows = ROWS | LAUNCH_ROWS | ELASTIC_ROWS | SLURM_ROWS | WORKSPACE_ROWS | STORE_ROWS | FANOUT_ROWS | SCHED_ROWS
    chosen = {name: function for name, function in all_rows.items() if not words or any(word in name for word in words)}
    if not chosen:
        sys.exit(f"bench: no row is named so; there are: {' '.join(all_rows)}")
    if other:
        programs = other.parent / "bench"
        if not programs.is_dir():
            print(f"bench: '{programs}' does not exist: rows that need only bench_programs compare this build with itself", flush=True)
            programs = setting.programs
        run_beside(chosen, setting, dataclasses.replace(setting, overcap=other, programs=programs), turns)
        return
    rows, broken = [], []
    for name, function in chosen.items():
        begin = time.monotonic()
        print(f"{name} ...", flush=True)
        try:
            for row in function(setting):
                rows.append(row)
                print(f"  {row.what}: {text(row.value, row.unit)} ({verdict(row)})\n    {row.detail}", flush=True)
        except Exception:  # the other rows are still worth having
            traceback.print_exc()
            broken.append(name)
        print(f"  took {time.monotonic() - begin:.0f} s", flush=True)
    print("\n" + table(rows))
    if setting.quick or words:
        print("\nnot a full run: docs/benchmarks.md is left as it is")
    elif not broken:
        write_page(rows)
        print("\nwritten: docs/benchmarks.md")
    if broken:
        sys.exit(f"bench: could not be measured: {' '.join(broken)}")


if __name__ == "__main__":
    main()
