# SPDX-License-Identifier: Apache-2.0
"""Runs cases with both programs, several at a time, and reports what differs."""
import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from behaviour import compare, verbs
from behaviour.cases import ALL_CASES
from behaviour.stage import Stage, words_of

ALLOWED = pathlib.Path(__file__).resolve().parents[1] / "allowed-differences.txt"
FAILED = "run"  # of a case that could not be run to its end


def combinations(case, old, new):
    """The runs of a case, each compared with the first. In a crossing one program makes things and the other one uses them."""
    if not case.crossing:
        return {"old": {"a": old}, "new": {"a": new}}
    return {"old": {"a": old, "b": old}, "old+new": {"a": old, "b": new}, "new+old": {"a": new, "b": old}}


def play(case, programs, folder, keep):
    """Everything that could be observed, or what went wrong. `keep`: where the folder goes afterwards, None: it is removed."""
    try:
        stage = Stage(case, programs, folder)
        try:
            return stage.play(), None
        finally:
            stage.close(keep)
    except Exception as error:  # of whatever kind: it is this case's, and the others go on
        return {}, f"{type(error).__name__}: {error}"


def run_case(case, old, new, folder, keep):
    """The differences of all its runs. All happen in one folder, one after the other: paths are equal."""
    first, found = None, []
    for name, programs in combinations(case, old, new).items():
        kept = keep and keep / case.name.replace("/", "-") / name
        seen, error = play(case, programs, folder / f"{case.name.replace('/', '-')}.case", kept)
        if error:
            return [*found, compare.Difference(case.name, FAILED, None, f"{name}: {error}")]
        if first is None:
            first = seen
            continue
        several = case.crossing
        for difference in compare.differences(case, first, seen):
            difference.what = f"{name} {difference.what}" if several else difference.what
            found.append(difference)
    return found


def run_all(cases, old, new, jobs, keep):
    found = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="same-"))
    try:
        folder.chmod(0o711)  # some cases have steps of another user
        old, new = (copy_of(program, folder / name) for name, program in (("old", old), ("new", new)))
        # Processes: where a thread has a program open that it writes, what another thread starts meanwhile keeps it busy.
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            runs = [pool.submit(run_case, case, old, new, folder, keep) for case in cases]
            for run in runs:
                found += run.result()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def heed_signals():
    """Lets cases send HUP, INT and QUIT under `nohup` too: a program hands a signal that it ignores on to all that it starts, a caught one not."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def copy_of(program, path):
    """A build may go on meanwhile; cases link to the copy."""
    shutil.copy2(program, path)
    return path


# ---- the report

def report(found, cases, old, new):
    by_name = {case.name: case for case in cases}
    for difference in found:
        print(f"{difference.case}: {difference.what}")
        number = difference.what.rpartition(" ")[2]
        steps = by_name[difference.case].steps
        if number.isdigit() and int(number) <= len(steps):
            print(f"    step {number}: {steps[int(number) - 1]}")
        for line in compare.show(difference):
            print(line)
    for name in dict.fromkeys(difference.case for difference in found):
        print(f"to see the files of both runs: tools/same_behaviour {old} {new} --case {name} --keep FOLDER")


def chosen(options):
    cases = [case for case in ALL_CASES if not options.crossings or case.crossing]
    if options.case:
        cases = [case for case in cases if any(fnmatch.fnmatchcase(case.name, pattern) for pattern in options.case)]
    if os.geteuid() != 0 and (left_out := [case.name for case in cases if case.root]):
        print(f"NOT TESTED, since they need root: {', '.join(left_out)}")
        cases = [case for case in cases if not case.root]
    if not cases:
        raise SystemExit("same_behaviour: there is no such case; --list names them")
    return cases


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="tools/same_behaviour", description="Runs the same command lines with two builds of overcap and compares what a user could see.",
        epilog="Exit status 0: no difference but those in tests/allowed-differences.txt; 1: differences, a case that could not be run, a line of "
               "that file that matches nothing, or a verb without a case; 2: wrong words.")
    parser.add_argument("old", nargs="?")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--case", action="append", metavar="PATTERN", help="only the cases with this name; may be given again")
    parser.add_argument("--crossings", action="store_true", help="only what one program makes and the other one uses")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="cases at a time; 4")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="keep the files of every run there")
    parser.add_argument("--allowed", type=pathlib.Path, default=ALLOWED, metavar="FILE", help="known differences; tests/allowed-differences.txt")
    options = parser.parse_args(argv)
    if not options.list:
        for name in ("old", "new"):
            program = getattr(options, name)
            if program is None or not os.access(program, os.X_OK) or os.path.isdir(program):
                parser.error(f"{name.upper()} must be a program that can be run")
            setattr(options, name, pathlib.Path(program).resolve())
    return options


def main(argv):
    options = parse(argv)
    cases, began = chosen(options), time.monotonic()
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    heed_signals()
    known = verbs.verbs_of(options.new)
    uncovered = verbs.missing(ALL_CASES, known, words_of)
    allowed = compare.read_allowed(options.allowed)
    found = compare.sort_out(run_all(cases, options.old, options.new, options.jobs, options.keep), allowed)
    report(found, cases, options.old, options.new)
    stale = [line for line in allowed if not line.used and any(fnmatch.fnmatchcase(case.name, line.case) for case in cases)]
    for line in stale:
        print(f"{options.allowed}: matches no difference: {line.line}")
    for verb in uncovered:
        print(f"no case runs 'overcap {verb}': add one to tests/behaviour/cases")
    print(f"{len(cases)} cases ({sum(case.crossing for case in cases)} crossings), {len(known) - len(uncovered)} of {len(known)} verbs, "
          f"{len(found)} differences, {time.monotonic() - began:.0f} s")
    return 1 if found or stale or uncovered else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
