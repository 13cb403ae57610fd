#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the test programs of builds and the Python suites under tests/, and counts every single test.

Usage: tools/run_tests.py [--jobs N] [--most N] [--keep-going] [--group NAME...] [--slurm RELEASE...] --build NAME... [FILTER]

  --build release      test programs of build/release; may be given several times. The first one's `overcap` is
                       what the Python suites (tests/*/test_*.py, stdlib unittest) run as $OVERCAP_BINARY. With
                       `release:sys_test,net_test` only these programs of it, with `release:` none
  --group NAME         Python suites of this group; may be given several times. A suite says `GROUP = "stores"`; without that line
                       it belongs to the group `gate`. `--group none`: test programs only. Without --group: all suites
  --suite NAME         only the suites and test programs named exactly so (`cli/test_x`, `net_test`); may be given several times
  --jobs N             N suites at once, 2 unless given
  --most N             Python suites apart from test programs: --jobs of each at once, and up to N Python suites while only test
                       programs, which get low priority, keep the processors busy: many wait for real servers, programs compute
  --slurm RELEASE      Python suites with the line `ON_EVERY_SLURM = True` once more with the Slurm of that Debian release
                       (tools/slurm_root), as `clusters/test_x@RELEASE`, in the group `clusters`; may be given several times
  --strict-skips       a skip that tests/skips.txt does not allow is a failure
  --failed-step NAME   something before the tests failed: counted and named at the end
  FILTER               suites whose name contains it; with `SUITE:TEST` only tests whose name contains TEST

Every suite gets a temporary folder of its own (TMPDIR, OVERCAP_HOME and HOME are in it), a deadline, and has what it
left running ended. The folder of a suite that failed is kept and named. A Python suite may ask for more time than
the usual with a line `DEADLINE_SECONDS = 400`. The suites that took longest last time begin first; the seconds of each are kept
in $XDG_CACHE_HOME/overcap-check (~/.cache) for all clones. Each suite's line has how long it ran and how much of a processor it
used, without the daemons that outlived it.

There is no second chance. When a few tests failed, their suites run once more alone, only to print whether they fail always or sometimes.
tests/quarantine.txt names tests that are known to fail sometimes: they run, and a failure is printed but not counted.

The last line is `N passed, N failed` or `N passed, N failed, N skipped`. Exit status 0 when at least one test ran and none failed.
"""
import argparse
import sys
import time

from runner.crowd import run_all
from runner.suites import find_suites, longest_first, remember_seconds
from runner.verdict import counts, read_quarantine, show_slowest, summary


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", action="append", required=True)
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--slurm", action="append", default=[])
    parser.add_argument("--strict-skips", action="store_true")
    parser.add_argument("--failed-step", action="append", default=[])
    parser.add_argument("filter", nargs="?", default="")
    args = parser.parse_args()
    suites = longest_first(find_suites(args.build, args.group, args.filter, args.slurm, args.suite))
    begin = time.monotonic()
    quarantine, _ = read_quarantine()
    outcomes = run_all(suites, args.jobs, args.most, args.keep_going, lambda outcome: counts(outcome, quarantine))
    remember_seconds(outcomes)
    print(f"{len(outcomes)} suites, {sum(o.seconds for o in outcomes):.0f} s of them in {time.monotonic() - begin:.0f} s, "
          f"{sum(o.busy for o in outcomes):.0f} s busy")
    show_slowest(outcomes)
    return summary(outcomes, suites, args.failed_step, args.strict_skips)


if __name__ == "__main__":
    sys.exit(main())
