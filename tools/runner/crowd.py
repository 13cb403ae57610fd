# SPDX-License-Identifier: Apache-2.0
"""Runs suites at the same time, as many as the machine has room for."""
import concurrent.futures
import pathlib
import re
import threading
import time

from runner.processes import run_suite

SHOWN_LINES = 200  # of a failed suite's output


def show(outcome):
    total = outcome.passed + len(outcome.failed) + len(outcome.skipped)
    word = "FAILED" if outcome.failed else "ok"
    print(f"  {word:6} {outcome.suite.name}  {outcome.passed}/{total}  {outcome.seconds:.1f} s, "
          f"{outcome.busy:.1f} s busy", flush=True)
    for command in outcome.left_behind:
        print(f"         left running, ended: {command[:150]}")
    if outcome.failed:
        lines = outcome.output.splitlines()
        if len(lines) > SHOWN_LINES:
            print(f"    ... {len(lines) - SHOWN_LINES} lines more in {outcome.folder}/output")
        for line in lines[-SHOWN_LINES:]:
            print("    | " + line)
        for name in outcome.failed:
            print(f"    FAILED {name}")
        print(f"    its files are kept in {outcome.folder}", flush=True)


class Turnstile:
    """Lets `jobs` suites in, and one more at a time, up to `most`, while the machine is idle but for what has low priority."""

    IDLE_SHARE = 0.3     # of all processors since the last look
    FREE_SHARE = 0.25    # of the memory
    LOOK_SECONDS = 1.5

    def __init__(self, jobs, most):
        self.jobs, self.most, self.inside = jobs, max(jobs, most), 0
        self.changed = threading.Condition()
        self.looked, self.ticks = time.monotonic(), self.processor_ticks()

    @staticmethod
    def processor_ticks(stat=pathlib.Path("/proc/stat")):
        """(idle or at low priority, all) since boot"""
        ticks = [int(word) for word in stat.read_text().split("\n", 1)[0].split()[1:9]]
        return ticks[1] + ticks[3] + ticks[4], sum(ticks)

    @staticmethod
    def memory_is_free():
        sizes = dict(re.findall(r"^(MemTotal|MemAvailable): +(\d+)", pathlib.Path("/proc/meminfo").read_text(), re.M))
        return int(sizes["MemAvailable"]) > Turnstile.FREE_SHARE * int(sizes["MemTotal"])

    def machine_is_idle(self):
        """Asked again only after some time, so that who was let in last is seen."""
        if time.monotonic() < self.looked + self.LOOK_SECONDS:
            return False
        idle, total = self.processor_ticks()
        share = (idle - self.ticks[0]) / max(1, total - self.ticks[1])
        self.looked, self.ticks = time.monotonic(), (idle, total)
        return share > self.IDLE_SHARE and self.memory_is_free()

    def __enter__(self):
        with self.changed:
            while self.inside >= self.jobs and (self.inside >= self.most or not self.machine_is_idle()):
                self.changed.wait(0.5)
            self.inside += 1
            self.looked, self.ticks = time.monotonic(), self.processor_ticks()

    def __exit__(self, *_):
        with self.changed:
            self.inside -= 1
            self.changed.notify()


def run_all(suites, jobs, most, keep_going, counts=lambda outcome: bool(outcome.failed)):
    """`counts`: whether an outcome ends the run when keep_going is false."""
    outcomes = []
    stop = threading.Event()
    turnstile = Turnstile(jobs, most)
    apart = most > jobs  # test programs from Python suites

    def one(suite):
        if apart and not suite.python:
            return None if stop.is_set() else run_suite(suite, low_priority=True)
        with turnstile:
            return None if stop.is_set() else run_suite(suite)

    with concurrent.futures.ThreadPoolExecutor(jobs) as programs, concurrent.futures.ThreadPoolExecutor(turnstile.most) as pool:
        begun = [(programs if apart and not suite.python else pool).submit(one, suite) for suite in suites]
        for future in concurrent.futures.as_completed(begun):
            outcome = future.result()
            if outcome is None:
                continue
            outcomes.append(outcome)
            show(outcome)
            if counts(outcome) and not keep_going:
                stop.set()
    return outcomes
