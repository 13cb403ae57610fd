# SPDX-License-Identifier: Apache-2.0
"""What the tests of a suite came to, from its report or, where it died, from its output."""
import dataclasses
import json
import re

from runner.suites import Suite


@dataclasses.dataclass
class Outcome:
    suite: Suite
    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)   # "name: what"
    whole: bool = True  # it came to its end and told of every test
    skipped: list = dataclasses.field(default_factory=list)  # (name, reason)
    output: str = ""
    folder: str = ""    # kept when something failed
    seconds: float = 0.0
    busy: float = 0.0   # of these, on a processor
    left_behind: list = dataclasses.field(default_factory=list)


def read_gtest(report, outcome):
    for group in json.loads(report.read_text())["testsuites"]:
        for test in group["testsuite"]:
            name = f"{group['name']}.{test['name']}"
            if test.get("failures"):
                outcome.failed.append(name)
            elif test.get("result") == "SKIPPED":
                outcome.skipped.append((name, ""))
            elif test.get("status") == "RUN":
                outcome.passed += 1


def gtest_skip_reasons(outcome):
    """googletest's report leaves out why a test was skipped; its output has it between RUN and SKIPPED."""
    for index, (name, _) in enumerate(outcome.skipped):
        match = re.search(r"\[ RUN      \] " + re.escape(name) + r"\n(.*?)\[  SKIPPED \]", outcome.output, re.S)
        lines = [line.strip() for line in (match[1] if match else "").splitlines()]
        lines = [line for line in lines if line and not re.search(r":\d+: Skipped$", line)]
        outcome.skipped[index] = (name, " ".join(lines) or "no reason given")


def read_gtest_output(outcome):
    """A program that died wrote no report: count what its output says; the test that was running has failed."""
    running = None
    for match in re.finditer(r"\[ (RUN     |      OK|SKIPPED|FAILED ) +\] (\S+?),?(?= |$)(.*)$", outcome.output, re.M):
        word, name = match[1].strip(), match[2]
        if word == "RUN":
            running = name
        elif name == running:
            if word == "OK":
                outcome.passed += 1
            elif word == "FAILED":
                outcome.failed.append(name)
            else:
                outcome.skipped.append((name, "no reason given"))
            running = None
    return running


def read_unittest(report, outcome):
    finished = False
    for line in report.read_text().splitlines():
        entry = json.loads(line)
        if entry["what"] == "passed":
            outcome.passed += 1
        elif entry["what"] == "skipped":
            outcome.skipped.append((entry["name"], entry["reason"]))
        elif entry["what"] == "failed":
            outcome.failed.append(entry["name"])
        finished = finished or entry["what"] == "finished"
    return finished


def judge(outcome, status, report):
    suite = outcome.suite
    finished = False
    running = None
    if report.exists() and suite.python:
        finished = read_unittest(report, outcome)
    elif report.exists() and not suite.python:
        try:
            read_gtest(report, outcome)
            gtest_skip_reasons(outcome)
            finished = True
        except ValueError:
            pass
    elif not suite.python:
        running = read_gtest_output(outcome)
    if status is None:
        outcome.failed.append(f"{running or 'the suite'}: ran past its deadline of {suite.deadline} s")
    elif not finished:
        died = f"died by signal {-status}" if status < 0 else f"ended early with exit status {status}"
        outcome.failed.append(f"{running or 'the suite'}: {died}")
    elif status != 0 and not outcome.failed:
        outcome.failed.append(f"the suite: exit status {status} though no test failed (a sanitizer's report?)")
    elif status in (0, 1) and not re.search(r"Sanitizer|: runtime error: ", outcome.output):
        return
    outcome.whole = False
