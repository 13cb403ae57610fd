#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-14 with the checks of .clang-tidy (all fatal) over src/, tests aside, within a time budget.

A file whose text and project headers have not changed since it passed is not looked at again. Files that git says
have changed come first, those that parse JSON last (they take longest); when the budget is spent, the rest is named.

Usage: tools/run_tidy.py [--build build/release] [--budget SECONDS] [--jobs N]
"""
import argparse
import concurrent.futures
import hashlib
import json
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
        if path.is_relative_to(ROOT / "src") and not path.name.endswith("_test.cc") and "testing" not in path.parts:
            yield path


def project_files(path, seen):
    """The file and every header of ours that it includes, directly or not."""
    if path in seen or not path.exists():
        return
    seen.add(path)
    for name in INCLUDE.findall(path.read_text(errors="replace")):
        project_files(ROOT / "src" / name, seen)


def fingerprint(path):
    seen = set()
    project_files(path, seen)
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for name in sorted(seen):
        digest.update(str(name.relative_to(ROOT)).encode() + b"\0" + name.read_bytes() + b"\0")
    return digest.hexdigest()


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
    stamps = ROOT / "build" / "tidy"
    stamps.mkdir(parents=True, exist_ok=True)
    changed = changed_files()
    todo = [(path, stamps / fingerprint(path)) for path in sorted(set(sources(args.build)))]
    known = [path for path, stamp in todo if stamp.exists()]
    todo = [item for item in todo if not item[1].exists()]
    todo.sort(key=lambda item: (item[0] not in changed, "<nlohmann/" in item[0].read_text()))
    end = time.monotonic() + args.budget
    bad, left_out = [], []

    def one(item):
        path, stamp = item
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
    print(f"clang-tidy: {done} files checked, {len(known)} unchanged since they passed, {len(bad)} with findings")
    if left_out:
        names = " ".join(str(path.relative_to(ROOT)) for path in left_out)
        print(f"clang-tidy: not looked at, {args.budget:.0f} s were over (run it again to go on): {names}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
