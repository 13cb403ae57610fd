# SPDX-License-Identifier: Apache-2.0
"""Compares two runs of a case, sorts out the differences that are known, and prints the others."""
import dataclasses
import fnmatch

SHOWN_LINES = 3     # of each difference
SHOWN_WIDTH = 150   # of a line, around the first character that differs


@dataclasses.dataclass
class Difference:
    case: str
    what: str   # "status 2", "json 3", "files", "file state/journal", "fact env.job.1.0"
    old: str    # None: it is not there
    new: str


@dataclasses.dataclass
class Allowed:
    line: str
    case: str
    what: str
    used: bool = False

    def covers(self, difference):
        return fnmatch.fnmatchcase(difference.case, self.case) and fnmatch.fnmatchcase(difference.what, self.what)


def differences(case, old, new):
    names = [*old, *(name for name in new if name not in old)]
    return [Difference(case.name, name, old.get(name), new.get(name)) for name in names
            if old.get(name) != new.get(name) and not any(fnmatch.fnmatchcase(name, pattern) for pattern in case.unstable)]


def read_allowed(path):
    """Lines `CASE: WHAT: REASON`; CASE and WHAT may be patterns of the shell."""
    allowed = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(": ", 2)]
        if len(parts) != 3 or not all(parts):
            raise SystemExit(f"same_behaviour: {path}:{number}: not 'CASE: WHAT: REASON'")
        allowed.append(Allowed(line, parts[0], parts[1]))
    return allowed


def sort_out(found, allowed):
    """The differences that no line allows; notes which lines were used."""
    unknown = []
    for difference in found:
        lines = [line for line in allowed if line.covers(difference)]
        for line in lines:
            line.used = True
        if not lines:
            unknown.append(difference)
    return unknown


def show(difference):
    """First lines that differ, old over new."""
    if difference.old is None or difference.new is None:
        there = difference.new if difference.old is None else difference.old
        return [f"    only {'new' if difference.old is None else 'old'}: {line[:SHOWN_WIDTH]}" for line in there.split("\n")[:SHOWN_LINES]]
    lines = []
    for old, new in changed_lines(difference.old.split("\n"), difference.new.split("\n"))[:SHOWN_LINES]:
        start = first_change(old or "", new or "")
        lines += [f"    old: {cut(old, start)}", f"    new: {cut(new, start)}"]
    return lines


def changed_lines(old, new):
    """Pairs of lines; one of them is None where the other text has a line more."""
    if len(old) == len(new):
        return [(a, b) for a, b in zip(old, new) if a != b]
    gone, come = [line for line in old if line not in new], [line for line in new if line not in old]
    pairs = [(line, None) for line in gone] + [(None, line) for line in come]
    return pairs or [(f"{len(old)} lines", f"{len(new)} lines, some of them repeated")]


def first_change(old, new):
    return next((at for at, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))


def cut(line, around):
    if line is None:
        return "(no such line)"
    begin = max(0, around - SHOWN_WIDTH // 2) if len(line) > SHOWN_WIDTH else 0
    return ("..." if begin else "") + line[begin:begin + SHOWN_WIDTH] + ("..." if begin + SHOWN_WIDTH < len(line) else "")
