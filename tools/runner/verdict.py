# SPDX-License-Identifier: Apache-2.0
"""Whether a run was good: failures, the lists of quarantined tests and of allowed skips, and the summary."""
import dataclasses
import datetime
import fnmatch

from runner.crowd import show
from runner.processes import run_suite
from runner.suites import ROOT

MOST_QUARANTINED = 10
MOST_DAYS = 14
MOST_RUN_AGAIN = 4  # failed tests in all; more have a common cause that a second run does not show


@dataclasses.dataclass(frozen=True)
class Line:
    """`SUITE TEST | TEXT...`; in tests/skips.txt suite and test are patterns (`*` is any text)."""
    suite: str
    test: str
    texts: tuple

    def names(self, suite, test):
        return fnmatch.fnmatchcase(suite, self.suite) and fnmatch.fnmatchcase(test, self.test)


def read_list(path, texts):
    """(lines, problems): comments begin with `#`; each line has the given number of texts after `SUITE TEST`."""
    lines, problems = [], []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        names, *found = [part.strip() for part in line.split("|")]
        if len(names.split()) != 2 or len(found) != texts or not all(found):
            problems.append(f"{path.name}:{number}: not of the form given at the top of the file")
            continue
        lines.append(Line(*names.split(), tuple(found)))
    return lines, problems


def read_quarantine(path=ROOT / "tests" / "quarantine.txt", today=None):
    """(lines, problems): a test may be in it for two weeks, and at most ten tests. Patterns are refused: each line is one test."""
    lines, problems = read_list(path, 2)
    today = today or datetime.date.today()
    for line in lines:
        try:
            age = (today - datetime.date.fromisoformat(line.texts[1])).days
        except ValueError:
            problems.append(f"{path.name}: {line.suite} {line.test}: '{line.texts[1]}' is not a date")
            continue
        if "*" in line.suite + line.test or "?" in line.suite + line.test:
            problems.append(f"{path.name}: {line.suite} {line.test}: a pattern could hide other tests")
        if age < 0:
            problems.append(f"{path.name}: {line.suite} {line.test}: {line.texts[1]} is in the future")
        if age > MOST_DAYS:
            problems.append(f"{path.name}: {line.suite} {line.test} has been in it for {age} days, the most is {MOST_DAYS}")
    if len(lines) > MOST_QUARANTINED:
        problems.append(f"{path.name}: {len(lines)} tests, the most is {MOST_QUARANTINED}")
    return lines, problems


def quarantined(outcome, lines):
    """Of a suite that came to its end, the failed tests that are in quarantine. A crash or a sanitizer's report always counts."""
    if not outcome.whole:
        return []
    return [name for name in outcome.failed if any(line.names(outcome.suite.name, name) for line in lines)]


def counts(outcome, lines):
    return len(outcome.failed) > len(quarantined(outcome, lines))


def take_quarantined(outcomes, lines):
    """Moves the failures that are in quarantine out of the outcomes; gives them as text."""
    moved = []
    for outcome in outcomes:
        known = quarantined(outcome, lines)
        outcome.failed = [name for name in outcome.failed if name not in known]
        moved += [f"{outcome.suite.name} {name}" for name in known]
    return moved


def forbidden_skips(outcomes, lines):
    return [f"{o.suite.name} {name}" for o in outcomes for name, _ in o.skipped
            if not any(line.names(o.suite.name, name) for line in lines)]


def run_again(outcomes):
    """Runs suites of which few tests failed once more, alone, to learn more of the failure; the first result counts."""
    failed = [o for o in outcomes if o.failed]
    if sum(len(o.failed) for o in failed) > MOST_RUN_AGAIN:
        return {}
    notes = {}
    for first in failed:
        print(f"once more, alone, to learn more: {first.suite.name}")
        again = run_suite(first.suite)
        show(again)
        for name in first.failed:
            always = name in again.failed or again.passed == 0
            notes[first.suite.name, name] = "fails always" if always else "fails sometimes: it passed alone"
    return notes


def show_slowest(outcomes, most=10):
    slowest = sorted(outcomes, key=lambda outcome: -outcome.seconds)[:most]
    print("slowest: " + ", ".join(f"{o.suite.name} {o.seconds:.0f} s" for o in slowest))


def summary(outcomes, suites, failed_steps, strict_skips):
    """Prints what matters and gives the exit status."""
    quarantine, problems = read_quarantine()
    allowed, more = read_list(ROOT / "tests" / "skips.txt", 1)
    problems += more
    quarantined = take_quarantined(outcomes, quarantine)
    notes = run_again(outcomes)
    skipped = [(o.suite.name, name, reason) for o in outcomes for name, reason in o.skipped]
    forbidden = forbidden_skips(outcomes, allowed) if strict_skips else []
    if len(outcomes) < len(suites):
        print(f"{len(suites) - len(outcomes)} suites were not run after the failure (--keep-going runs them)")
    if skipped:
        print("skipped:")
        for suite, name, reason in sorted(skipped):
            print(f"  {suite} {name}: {reason}")
    for name in quarantined:
        print(f"QUARANTINED: {name} failed; see tests/quarantine.txt")
    for outcome in outcomes:
        for name in outcome.failed:
            note = notes.get((outcome.suite.name, name))
            print(f"failed: {outcome.suite.name} {name}" + (f" ({note})" if note else ""))
    for name in forbidden:
        print(f"failed: {name} was skipped, which tests/skips.txt does not allow")
    for name in failed_steps:
        print(f"failed: the step '{name}'")
    for text in problems:
        print(f"failed: {text}")
    passed = sum(o.passed for o in outcomes)
    failed = sum(len(o.failed) for o in outcomes) + len(forbidden) + len(failed_steps) + len(problems)
    if not passed and not failed:
        print("no test ran: nothing matches, or nothing was built")
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 0 if passed and not failed else 1
