#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-14 with the checks of .clang-tidy (all fatal) over src/, tests aside, within a time budget.

Looks at what the build compiles: units of several sources (cmake/batch.py) in a third of the time. What has not changed,
nor its headers of ours, since it passed is not looked at again, in no clone of this user: that is kept in
$XDG_CACHE_HOME/overcap-check/tidy (~/.cache). What git says has changed comes first, what parses JSON last (it takes longest); when
the budget is spent, the rest is named.

Usage: tools/run_tidy.py [--build build/release] [--budget SECONDS] [--jobs N]
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def sources(build):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        ours = path.is_relative_to(ROOT / "src") or path.is_relative_to(build / "units")
        if ours and not re.search(r"_test(_placed)?(_\d+)?$", path.stem) and "testing" not in path.parts:
            yield path


def project_files(path, seen):
    """The file and every header of ours that it includes, directly or not."""
    if path in seen or not path.exists():
        return
    seen.add(path)
    for name in INCLUDE.findall(path.read_text(errors="replace")):
        project_files(ROOT / "src" / name, seen)


def fingerprint(files):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for name in sorted(files):
        digest.update(str(name.relative_to(ROOT)).encode() + b"\0" + name.read_bytes() + b"\0")
    return digest.hexdigest()


def stamp_folder():
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (pathlib.Path(cache) if cache.startswith("/") else pathlib.Path.home() / ".cache") / "overcap-check" / "tidy"


def forget_old(stamps):
    """What nobody asked for in a month will not be asked for again."""
    for stamp in stamps.iterdir():
        if stamp.stat().st_mtime < time.time() - 30 * 86400:
            stamp.unlink(missing_ok=True)


def changed_files():
    lines = subprocess.run(["git", "status", "--porcelain", "src"], cwd=ROOT, capture_output=True, text=True).stdout
    return {ROOT / line[3:] for line in lines.splitlines()}


def tidy(path, build):
    result = subprocess.run(["clang-tidy-14", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p", str(build),
                             str(path)], capture_output=True, text=True)
    return result.returncode, result.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--budget", type=float, default=90)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.build = args.build.resolve()
    stamps = stamp_folder()
    stamps.mkdir(parents=True, exist_ok=True)
    forget_old(stamps)
    changed = changed_files()
    todo, known = [], []
    for path in sorted(set(sources(args.build))):
        files = set()
        project_files(path, files)
        stamp = stamps / fingerprint(files)
        if stamp.exists():
            stamp.touch()
            known.append(path)
        else:
            todo.append((path, stamp, not changed & files, "<nlohmann/" in path.read_text()))
    todo.sort(key=lambda item: item[2:])
    end = time.monotonic() + args.budget
    bad, left_out = [], []

    def one(item):
        path, stamp = item[:2]
        if time.monotonic() > end:
            left_out.append(path)
            return
        status, text = tidy(path, args.build)
        if status == 0:
            stamp.touch()
        else:
            bad.append(path)
            print(text, end="", flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, todo))
    done = len(todo) - len(left_out)
    print(f"clang-tidy: {done} units checked, {len(known)} unchanged since they passed, {len(bad)} with findings")
    if left_out:
        names = " ".join(str(path.relative_to(ROOT)) for path in left_out)
        print(f"clang-tidy: not looked at, {args.budget:.0f} s were over (run it again to go on): {names}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
