# SPDX-License-Identifier: Apache-2.0
"""Runs one suite in a folder of its own and ends what it leaves running."""
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
import time

from runner.reports import Outcome, judge
from runner.suites import ROOT

# `nohup` and a script's background ignore these signals, and every process inherits that. The runner itself
# goes on ignoring them: it is meant to outlive its terminal.
HEED_SIGNALS = ["env", "--default-signal=HUP,INT,QUIT"]
LOW_PRIORITY = 5  # of test programs that run in parallel with Python suites: those have deadlines of real daemons to meet

SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


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
    """Processes that carry the suite's folder in their environment, whatever their parent is."""
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
