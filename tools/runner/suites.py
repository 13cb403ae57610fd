# SPDX-License-Identifier: Apache-2.0
"""Which suites there are: Python files under tests/ and test programs of builds."""
import dataclasses
import json
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GTEST_DEADLINE = 900  # seconds; with the race detector, in parallel with other suites
PYTHON_DEADLINE = 240
GROUPS = ("gate", "threads", "clusters", "stores")  # of Python suites


@dataclasses.dataclass
class Suite:
    name: str           # "release/base_test", "cli/test_submit"
    path: pathlib.Path
    python: bool
    deadline: int
    binary: pathlib.Path
    only: str = ""      # tests whose name contains this
    slurm: str = ""     # the Debian release whose Slurm it runs on; "": this machine's


def python_suites(binary, groups, only, slurm):
    for path in sorted((ROOT / "tests").glob("*/test_*.py")):
        text = path.read_text()
        match = re.search(r"^DEADLINE_SECONDS *= *(\d+)", text, re.M)
        deadline = int(match[1]) if match else PYTHON_DEADLINE
        group = re.search(r'^GROUP *= *"(\w+)"', text, re.M)
        name = f"{path.parent.name}/{path.stem}"
        group = group[1] if group else "gate"
        if group not in GROUPS:
            sys.exit(f"run_tests: {path}: there is no group '{group}'; there are: {' '.join(GROUPS)}")
        if not groups or group in groups:
            yield Suite(name, path, True, deadline, binary, only)
        for release in slurm if re.search(r"^ON_EVERY_SLURM = True$", text, re.M) else ():
            if not groups or "clusters" in groups:
                yield Suite(f"{name}@{release}", path, True, deadline, binary, only, release)


def find_suites(builds, groups, pattern, slurm, names=()):
    """Suites whose name contains the pattern: Python suites of the groups (none given: of all), and the programs of the builds."""
    wanted, _, only = pattern.partition(":")
    suites = list(python_suites(ROOT / "build" / builds[0].partition(":")[0] / "overcap", groups, only, slurm))
    for build in builds:
        build, colon, programs = build.partition(":")
        for path in sorted((ROOT / "build" / build / "unit").glob("*_test")):
            if colon and path.name not in programs.split(","):
                continue
            own = ROOT / "build" / build / "overcap"
            suites.append(Suite(f"{build}/{path.name}", path, False, GTEST_DEADLINE, own, only))
    return [suite for suite in suites if wanted in suite.name and (not names or suite.name in names or suite.path.name in names)]


def seconds_file():
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (pathlib.Path(cache) if cache.startswith("/") else pathlib.Path.home() / ".cache") / "overcap-check" / "seconds.json"


def known_seconds():
    """Suite to seconds, as last time; what cannot be read is not known."""
    try:
        known = json.loads(seconds_file().read_text())
        return {name: seconds for name, seconds in known.items() if isinstance(seconds, (int, float))}
    except (OSError, ValueError, AttributeError):
        return {}


def longest_first(suites):
    """So that the end is not one long suite alone. Of a suite that never ran, the deadline tells something."""
    known = known_seconds()
    return sorted(suites, key=lambda suite: -known.get(suite.name, suite.deadline / 4))


def remember_seconds(outcomes):
    """A convenience: where it cannot be kept, the order is another next time."""
    whole = {o.suite.name: round(o.seconds, 1) for o in outcomes if not o.failed and not o.suite.only}
    path = seconds_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as new:
            json.dump(known_seconds() | whole, new, indent=0, sort_keys=True)
        os.replace(new.name, path)
    except OSError:
        pass
