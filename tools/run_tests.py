#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the test programs of builds and the Python suites under tests/, and counts every single test.

Usage: tools/run_tests.py [--jobs N] [--most N] [--keep-going] [--no-python] [--slurm RELEASE...] --build NAME... [FILTER]

  --build release      test programs of build/release; may be given several times. The first one's `overcap` is
                       what the Python suites (tests/*/test_*.py, stdlib unittest) run as $OVERCAP_BINARY. With
                       `release:sys_test,net_test` only these programs of it
  --jobs N             N suites at once, 2 unless told
  --most N             Python suites apart from test programs: --jobs of each at once, and up to N Python suites while only test
                       programs, which get low priority, keep the processors busy: many wait for real servers, programs compute
  --no-python          test programs only
  --slurm RELEASE      Python suites with the line `ON_EVERY_SLURM = True` once more with the Slurm of that Debian release
                       (tools/slurm_root), as `clusters/test_x@RELEASE`; may be given several times
  --failed-step NAME   something before the tests failed: counted and named at the end
  FILTER               suites whose name contains it; with `SUITE:TEST` only tests whose name contains TEST

Every suite gets a temporary folder of its own (TMPDIR, OVERCAP_HOME and HOME lie in it), a deadline, and has what it
left running ended. The folder of a suite that failed is kept and named. A Python suite may ask for more time than
the usual with a line `DEADLINE_SECONDS = 400`. Those that took longest last time begin first; the seconds of each are kept
in $XDG_CACHE_HOME/overcap-check (~/.cache) for all clones. With each suite stands how long it ran and how much of a processor it
took meanwhile, daemons that left it aside.

A suite of which a few tests failed is run once more when nothing else runs: the machine may have been too busy for the real
daemons and processes in it. What then passes is counted as passed, and named at the end as unsteady: it wants mending.
No second chance gets a test program that died, as one does after a sanitizer's report, or ran past its deadline, or found an
input for which a property does not hold: the next run would try other inputs.

The last line is `N passed, N failed` or `N passed, N failed, N skipped`. Exit status 0 when at least one test ran and none failed.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GTEST_DEADLINE = 900  # with the race detector, beside other suites and behind them
PYTHON_DEADLINE = 240
SHOWN_LINES = 200  # of a failed suite's output
# `nohup` and a script's background ignore these, and what ignores a signal passes that on to all that it starts. The runner itself
# goes on ignoring them: it is meant to outlive its terminal.
HEED_SIGNALS = ["env", "--default-signal=HUP,INT,QUIT"]
LOW_PRIORITY = 5   # of test programs beside Python suites: those have deadlines of real daemons to meet
MOST_UNSTEADY = 4  # failed tests in all; more are no bad luck

SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


@dataclasses.dataclass
class Suite:
    name: str           # "release/base_test", "cli/test_submit"
    path: pathlib.Path
    python: bool
    deadline: int
    binary: pathlib.Path
    only: str = ""      # tests whose name contains this
    slurm: str = ""     # the Debian release whose Slurm it runs on; "": this machine's


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


def find_suites(builds, python, pattern, slurm):
    wanted, _, only = pattern.partition(":")
    suites = []
    binary = ROOT / "build" / builds[0].partition(":")[0] / "overcap"
    if python:
        for path in sorted((ROOT / "tests").glob("*/test_*.py")):
            text = path.read_text()
            match = re.search(r"^DEADLINE_SECONDS *= *(\d+)", text, re.M)
            deadline = int(match[1]) if match else PYTHON_DEADLINE
            name = f"{path.parent.name}/{path.stem}"
            suites.append(Suite(name, path, True, deadline, binary, only))
            for release in slurm if re.search(r"^ON_EVERY_SLURM = True$", text, re.M) else ():
                suites.append(Suite(f"{name}@{release}", path, True, deadline, binary, only, release))
    for build in builds:
        build, colon, programs = build.partition(":")
        for path in sorted((ROOT / "build" / build / "unit").glob("*_test")):
            if colon and path.name not in programs.split(","):
                continue
            own = ROOT / "build" / build / "overcap"
            suites.append(Suite(f"{build}/{path.name}", path, False, GTEST_DEADLINE, own, only))
    return [suite for suite in suites if wanted in suite.name]


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


def suite_command(suite, report):
    if suite.python:
        return [sys.executable, "-B", str(ROOT / "tools" / "run_unittest.py"), str(suite.path), str(report), suite.only]
    command = [str(suite.path), f"--gtest_output=json:{report}", "--gtest_color=no"]
    return command + ([f"--gtest_filter=*{suite.only}*"] if suite.only else [])


def suite_env(suite, folder):
    foreign = re.compile(r"OVERCAP_(?!TEST_)|XDG_|GTEST_")
    env = {name: value for name, value in os.environ.items() if not foreign.match(name)}
    env.update(SANITIZER_ENV)
    home = folder / "home"
    home.mkdir()
    env.update(TMPDIR=str(folder), HOME=str(home), OVERCAP_HOME=str(folder / "oc"), OVERCAP_BINARY=str(suite.binary),
               OVERCAP_SOURCE=str(ROOT), OVERCAP_TEST_FOLDER=str(folder), PYTHONPATH=str(ROOT / "tests"), NO_COLOR="1")
    if suite.slurm:
        env["OVERCAP_TEST_SLURM_SUITE"] = suite.slurm
    return env


def processes_of(folder):
    """Processes that carry the suite's folder in their environment, whoever their parent is."""
    mark = f"OVERCAP_TEST_FOLDER={folder}".encode()
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words != [b""]:  # a zombie has none
                    yield int(entry.name), b" ".join(words).decode(errors="replace").strip()
        except OSError:
            continue


def end_processes_of(folder):
    """Ends what a suite left running; gives their command lines. Repeats because a dying parent may have just forked."""
    seen = {}
    for _ in range(20):
        now = dict(processes_of(folder))
        if not now:
            break
        seen.update(now)
        for pid in now:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    return list(seen.values())


def ends_within(process, seconds):
    """Waits without taking its exit status."""
    watched = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(watched)


def run_process(suite, folder, report, low_priority):
    """(exit status, or None at the deadline; seconds; seconds on a processor)"""
    begin = time.monotonic()
    nice = ["nice", "-n", str(LOW_PRIORITY)] if low_priority else []
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(HEED_SIGNALS + nice + suite_command(suite, report), env=suite_env(suite, folder), cwd=ROOT,
                                   stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
    if low_priority:
        try:  # where the kernel shares processors among sessions, the priority of the session counts
            pathlib.Path(f"/proc/{process.pid}/autogroup").write_text(str(LOW_PRIORITY))
        except OSError:
            pass
    in_time = ends_within(process, suite.deadline)
    if not in_time:
        end_processes_of(folder)
        os.kill(process.pid, signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode if in_time else None, time.monotonic() - begin, usage.ru_utime + usage.ru_stime


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


def run_suite(suite, low_priority=False):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="oct-", dir="/tmp"))
    folder.chmod(0o755)  # tests of several users: others may pass through, and learn where they are
    report = folder / "report"
    outcome = Outcome(suite)
    status, outcome.seconds, outcome.busy = run_process(suite, folder, report, low_priority)
    outcome.left_behind = end_processes_of(folder)
    outcome.output = (folder / "output").read_text(errors="replace")
    judge(outcome, status, report)
    if outcome.failed:
        outcome.folder = str(folder)
    else:
        remove_folder(folder)
    return outcome


def remove_folder(folder):
    """Removes it also when a test left folders in it that may not be written."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for path, names, _ in os.walk(folder):
            for name in names:
                os.chmod(os.path.join(path, name), 0o700)
        shutil.rmtree(folder, ignore_errors=True)


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


class Gate:
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
        return int(sizes["MemAvailable"]) > Gate.FREE_SHARE * int(sizes["MemTotal"])

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


def run_all(suites, jobs, most, keep_going):
    outcomes = []
    stop = threading.Event()
    gate = Gate(jobs, most)
    apart = most > jobs  # test programs from Python suites

    def one(suite):
        if apart and not suite.python:
            return None if stop.is_set() else run_suite(suite, low_priority=True)
        with gate:
            return None if stop.is_set() else run_suite(suite)

    with concurrent.futures.ThreadPoolExecutor(jobs) as programs, concurrent.futures.ThreadPoolExecutor(gate.most) as pool:
        begun = [(programs if apart and not suite.python else pool).submit(one, suite) for suite in suites]
        for future in concurrent.futures.as_completed(begun):
            outcome = future.result()
            if outcome is None:
                continue
            outcomes.append(outcome)
            show(outcome)
            if outcome.failed and not keep_going:
                stop.set()
    return outcomes


def second_chance(outcomes):
    """Runs suites again of which few tests failed, alone. Gives the outcomes, and what was unsteady."""
    failed = [o for o in outcomes if o.failed]
    if not all(o.suite.python or (o.whole and "Falsifiable after" not in o.output) for o in failed):
        return outcomes, []
    if sum(len(o.failed) for o in failed) > MOST_UNSTEADY:
        return outcomes, []
    unsteady = []
    for first in failed:
        print(f"once more, alone: {first.suite.name}")
        again = run_suite(first.suite)
        show(again)
        unsteady += [f"{first.suite.name} {name}" for name in first.failed if name not in again.failed]
        outcomes[outcomes.index(first)] = again
    return outcomes, unsteady


def summary(outcomes, suites, failed_steps, unsteady):
    passed = sum(o.passed for o in outcomes)
    failed = sum(len(o.failed) for o in outcomes) + len(failed_steps)
    skipped = [(o.suite.name, name, reason) for o in outcomes for name, reason in o.skipped]
    if len(outcomes) < len(suites):
        print(f"{len(suites) - len(outcomes)} suites were not run after the failure (--keep-going runs them)")
    if skipped:
        print("skipped:")
        for suite, name, reason in sorted(skipped):
            print(f"  {suite} {name}: {reason}")
    for name in unsteady:
        print(f"UNSTEADY: {name} failed beside other tests and passed alone")
    for outcome in outcomes:
        for name in outcome.failed:
            print(f"failed: {outcome.suite.name} {name}")
    for name in failed_steps:
        print(f"failed: the step '{name}'")
    if not passed and not failed:
        print("no test ran: nothing matches, or nothing was built")
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", action="append", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--no-python", action="store_true")
    parser.add_argument("--slurm", action="append", default=[])
    parser.add_argument("--failed-step", action="append", default=[])
    parser.add_argument("filter", nargs="?", default="")
    args = parser.parse_args()
    suites = longest_first(find_suites(args.build, not args.no_python, args.filter, args.slurm))
    begin = time.monotonic()
    outcomes, unsteady = second_chance(run_all(suites, args.jobs, args.most, args.keep_going))
    remember_seconds(outcomes)
    print(f"{len(outcomes)} suites, {sum(o.seconds for o in outcomes):.0f} s of them in {time.monotonic() - begin:.0f} s, "
          f"{sum(o.busy for o in outcomes):.0f} s busy")
    return summary(outcomes, suites, args.failed_step, unsteady)


if __name__ == "__main__":
    sys.exit(main())
