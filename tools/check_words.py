#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds new commits and new text to docs/style.md.

Usage: tools/check_words.py [--base COMMIT]

New is what came after BASE below: titles `area: verb ...` of at most 72 characters with a body, and no word of the list in added comments,
messages, help and documents. A clone without that commit (a shallow one) is not checked, and that is printed.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASE = "b23eb5d6757ea36e32b165a58a29920315cc1f35"
TITLE = re.compile(r"[a-z0-9_./-]+((, | )[a-z0-9_./-]+)*: \S")
LONGEST = 72
WORDS = ("anew", "nobody", "somebody", "is told", "are told", "says so", "is none", "for ever", "whoever", "so many", "so long", "so often",
         "beside", "stands in", "stands for")
BANNED = re.compile(r"(?<![-\w])(?<!there )(" + "|".join(WORDS) + r")\b", re.I)
TEXTS = ("src", "docs", "python", "tools", "tests", "benchmarks", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "check",
         "bench", "quickstart")
ABOUT_WORDS = ("docs/style.md", "tools/check_words.py", "tools/shape.py", "tests/tools/test_check_words.py", "tests/tools/test_shape.py")


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True, errors="replace").stdout


def title_faults(title, body):
    if len(title) > LONGEST:
        yield f"has {len(title)} characters, the most is {LONGEST}"
    if not TITLE.match(title):
        yield "is not of the form `area: verb ...`"
    if not body.strip():
        yield "has no body that says why"


def prose_of(path, line):
    """The text for people in a line: documents whole, of code its comments and, in the product, its quoted texts of several words."""
    if path.endswith((".md", ".txt")):
        return line
    if line.lstrip().startswith(('"""', "'''")):
        return line
    found = re.findall(r'//.*|#.*|"(?:[^"\\]|\\.)*"', line)
    return " ".join(text for text in found if text[0] != '"' or (" " in text and not path.startswith("tests/")))


def added_lines(diff):
    """(path, number, text) of the added lines of a diff without context."""
    path, number = "", 0
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line[6:]
        elif line.startswith("@@"):
            number = int(re.search(r"\+(\d+)", line)[1])
        elif line.startswith("+"):
            yield path, number, line[1:]
            number += 1


def word_faults(diff):
    for path, number, line in added_lines(diff):
        found = BANNED.search(prose_of(path, line)) if path not in ABOUT_WORDS else None
        if found and found[1] != "is None":  # Python
            yield f"{path}:{number}: '{found[1]}' is on the list of docs/style.md"


def commit_faults(base):
    for entry in git("log", "--no-merges", "--format=%h%x00%s%x00%b%x01", f"{base}..HEAD").split("\x01"):
        if entry.strip():
            name, title, body = entry.strip("\n").split("\0")
            for fault in title_faults(title, body):
                yield f"commit {name}: '{title[:80]}' {fault}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", default=BASE)
    base = parser.parse_args().base
    if subprocess.run(["git", "cat-file", "-e", f"{base}^{{commit}}"], cwd=ROOT, capture_output=True).returncode != 0:
        print("not checked: this clone does not have the commit to compare with")
        return 0
    faults = list(commit_faults(base)) + list(word_faults(git("diff", "-U0", "-M", base, "--", *TEXTS)))
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults" if faults else "no faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
