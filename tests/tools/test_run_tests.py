# SPDX-License-Identifier: Apache-2.0
"""tools/run_tests.py counts right, never hides a failure, and ends what a suite leaves behind."""
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"

MIXED = """
import unittest
class Mixed(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.fail("broken on purpose")
    @unittest.skip("no GPU here")
    def test_skipped(self): pass
"""
GOOD = "import unittest\nclass Good(unittest.TestCase):\n    def test_good(self): pass\n"
LEAVES_A_PROCESS = GOOD.replace("pass", """
        import subprocess, os
        p = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        open(os.environ["PID_FILE"], "w").write(str(p.pid))
        p.returncode = 0
""")
FAILS_ONCE = GOOD.replace("pass", """
        import os, pathlib
        been_here = pathlib.Path(os.environ["PID_FILE"])
        if not been_here.exists():
            been_here.touch()
            self.fail("too busy")
""")
HEEDS_SIGNALS = GOOD.replace("pass", """
        import signal
        for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            self.assertNotEqual(signal.getsignal(one), signal.SIG_IGN, one)
""")
DIES = GOOD + "    def test_that_dies(self):\n        import os\n        os._exit(3)\n"
SLOW = "DEADLINE_SECONDS = 1\n" + GOOD.replace("pass", "import time; time.sleep(1000)")
GTEST_THAT_DIES = """#!/bin/sh
printf '[ RUN      ] A.Good\\n[       OK ] A.Good (0 ms)\\n[ RUN      ] A.Bad\\n'
kill -SEGV $$
"""
GTEST_THAT_PASSES = """#!/bin/sh
printf '{"testsuites": [{"name": "A", "testsuite": [{"name": "B", "status": "RUN"}]}]}' >"${1#*json:}"
"""
GTEST_THAT_FAILS_ONCE = """#!/bin/sh
echo 'WHAT'
failures='"failures": [{}],'
[ -e "$PID_FILE" ] && failures=
touch "$PID_FILE"
printf '{"testsuites": [{"name": "A", "testsuite": [{"name": "B", %s "status": "RUN"}]}]}' "$failures" >"${1#*json:}"
[ -z "$failures" ]
"""


class RunTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        for name in ("run_tests.py", "run_unittest.py"):
            shutil.copy(TOOLS / name, self.root / "tools" / name)
        shutil.copytree(TOOLS / "runner", self.root / "tools" / "runner", ignore=shutil.ignore_patterns("__pycache__"))

    def run_with(self, suites, *flags, **more):
        for name, text in suites.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        env = dict(os.environ, PID_FILE=str(self.root / "pid"), XDG_CACHE_HOME=str(self.root / "cache"))
        result = subprocess.run([sys.executable, self.root / "tools" / "run_tests.py", "--build", "release", *flags],
                                capture_output=True, text=True, timeout=120, env=env, **more)
        for line in result.stdout.splitlines():
            if "its files are kept in" in line:
                shutil.rmtree(line.split()[-1])
        return result.returncode, result.stdout

    def test_passed_failed_and_skipped_are_counted_and_reasons_listed(self):
        status, out = self.run_with({"tests/cli/test_mixed.py": MIXED})
        self.assertEqual(out.splitlines()[-1], "1 passed, 1 failed, 1 skipped")
        self.assertIn("no GPU here", out)
        self.assertIn("broken on purpose", out)
        self.assertEqual(status, 1)

    def test_all_good_ends_with_exactly_two_counts(self):
        status, out = self.run_with({"tests/cli/test_good.py": GOOD, "tests/sim/test_more.py": GOOD})
        self.assertEqual((status, out.splitlines()[-1]), (0, "2 passed, 0 failed"))

    def test_no_test_at_all_is_a_failure(self):
        status, out = self.run_with({})
        self.assertEqual((status, out.splitlines()[-1]), (1, "0 passed, 0 failed"))

    def test_a_failed_step_before_the_tests_counts(self):
        status, out = self.run_with({"tests/cli/test_good.py": GOOD}, "--failed-step=format")
        self.assertEqual((status, out.splitlines()[-1]), (1, "1 passed, 1 failed"))

    def test_a_suite_that_dies_is_a_failure(self):
        status, out = self.run_with({"tests/cli/test_dies.py": DIES})
        self.assertEqual((status, out.splitlines()[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("ended early with exit status 3", out)

    def test_a_suite_past_its_deadline_is_a_failure(self):
        status, out = self.run_with({"tests/cli/test_slow.py": SLOW})
        self.assertEqual((status, out.splitlines()[-1]), (1, "0 passed, 1 failed"))
        self.assertIn("deadline of 1 s", out)

    def test_a_test_program_that_crashes_names_the_test(self):
        status, out = self.run_with({"build/release/unit/a_test": GTEST_THAT_DIES})
        self.assertEqual((status, out.splitlines()[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("A.Bad: died by signal 11", out)

    def test_a_suite_that_passes_alone_has_failed_and_is_said_to_fail_sometimes(self):
        for path, program, name in (("tests/cli/test_once.py", FAILS_ONCE, "cli/test_once test_once.Good.test_good"),
                                    ("build/release/unit/a_test", GTEST_THAT_FAILS_ONCE, "release/a_test A.B")):
            status, out = self.run_with({path: program})
            self.assertEqual((status, out.splitlines()[-1]), (1, "0 passed, 1 failed"), out)
            self.assertIn(f"failed: {name} (fails sometimes: it passed alone)", out)
            (self.root / "pid").unlink()
            (self.root / path).unlink()

    def test_a_suite_that_fails_again_is_said_to_fail_always(self):
        status, out = self.run_with({"tests/cli/test_mixed.py": MIXED})
        self.assertEqual(status, 1)
        self.assertIn("test_mixed.Mixed.test_bad (fails always)", out)

    def test_many_failures_are_not_run_again(self):
        many = FAILS_ONCE + "".join(f"    def test_bad_{n}(self): self.fail()\n" for n in range(5))
        status, out = self.run_with({"tests/cli/test_once.py": many})
        self.assertEqual((status, out.splitlines()[-1]), (1, "0 passed, 6 failed"))
        self.assertNotIn("once more", out)

    def quarantine(self, *lines):
        (self.root / "tests").mkdir(exist_ok=True)
        (self.root / "tests/quarantine.txt").write_text("# a comment\n" + "".join(f"{line}\n" for line in lines))

    def test_a_failure_in_quarantine_is_printed_and_not_counted(self):
        self.quarantine(f"cli/test_mixed test_mixed.Mixed.test_bad | the clock | {datetime.date.today()}")
        status, out = self.run_with({"tests/cli/test_mixed.py": MIXED})
        self.assertEqual((status, out.splitlines()[-1]), (0, "1 passed, 0 failed, 1 skipped"), out)
        self.assertIn("QUARANTINED: cli/test_mixed test_mixed.Mixed.test_bad failed", out)

    def test_a_quarantine_that_is_too_old_too_long_or_not_readable_is_a_failure(self):
        today = datetime.date.today()
        old = today - datetime.timedelta(days=15)
        for lines, says in (([f"a b | why | {old}"], "has been in it for 15 days"), ([f"a b{n} | why | {today}" for n in range(11)], "11 tests"),
                            (["a b | why"], "not of the form"), (["a b | why | soon"], "'soon' is not a date"),
                            ([f"* b | why | {today}"], "a pattern could hide"), (["a b | why | 2999-01-01"], "is in the future")):
            self.quarantine(*lines)
            status, out = self.run_with({"tests/cli/test_good.py": GOOD})
            self.assertEqual(status, 1, lines)
            self.assertIn(says, out)

    def test_a_quarantined_failure_neither_stops_the_run_nor_hides_a_crash(self):
        self.quarantine(f"cli/test_mixed test_mixed.Mixed.test_bad | the clock | {datetime.date.today()}",
                        f"release/a_test A.B | the clock | {datetime.date.today()}")
        status, out = self.run_with({"tests/cli/test_mixed.py": MIXED, "tests/cli/test_z.py": DIES}, "--jobs", "1")
        self.assertEqual((status, out.splitlines()[-1]), (1, "2 passed, 1 failed, 1 skipped"), out)
        told = GTEST_THAT_FAILS_ONCE.replace("WHAT", "ERROR: LeakSanitizer: detected memory leaks")
        status, out = self.run_with({"build/release/unit/a_test": told}, "--group", "none")
        self.assertEqual((status, out.splitlines()[-1]), (1, "0 passed, 1 failed"), out)

    def test_an_unknown_group_is_refused(self):
        self.assertNotEqual(self.run_with({"tests/cli/test_far.py": 'GROUP = "store"\n' + GOOD})[0], 0)

    def test_only_skips_that_are_allowed_are_no_failures_where_that_is_asked_for(self):
        suites = {"tests/cli/test_mixed.py": MIXED.replace('self.fail("broken on purpose")', "pass")}
        status, out = self.run_with(suites, "--strict-skips")
        self.assertEqual((status, out.splitlines()[-1]), (1, "2 passed, 1 failed, 1 skipped"), out)
        self.assertIn("test_skipped was skipped, which tests/skips.txt does not allow", out)
        self.assertEqual(self.run_with(suites)[0], 0)
        (self.root / "tests/skips.txt").write_text("cli/* *.test_skipped | on machines with a GPU\n")
        self.assertEqual(self.run_with(suites, "--strict-skips")[0], 0)

    def test_only_the_suites_of_a_group_run(self):
        suites = {"tests/cli/test_good.py": GOOD, "tests/cli/test_far.py": 'GROUP = "stores"\n' + MIXED}
        self.assertEqual(self.run_with(suites, "--group", "gate")[1].splitlines()[-1], "1 passed, 0 failed")
        self.assertEqual(self.run_with(suites, "--group", "stores")[1].splitlines()[-1], "1 passed, 1 failed, 1 skipped")
        suites["build/release/unit/a_test"] = GTEST_THAT_PASSES
        self.assertEqual(self.run_with(suites, "--group", "none")[1].splitlines()[-1], "1 passed, 0 failed")

    def test_only_the_suites_that_are_named_run(self):
        suites = {"tests/cli/test_good.py": GOOD, "tests/cli/test_good_too.py": GOOD, "build/release/unit/a_test": GTEST_THAT_PASSES}
        self.assertEqual(self.run_with(suites, "--suite", "cli/test_good")[1].splitlines()[-1], "1 passed, 0 failed")
        self.assertEqual(self.run_with(suites, "--suite", "cli/test_good", "--suite", "a_test")[1].splitlines()[-1], "2 passed, 0 failed")

    def test_the_slowest_suites_are_named(self):
        self.assertIn("slowest: cli/test_good ", self.run_with({"tests/cli/test_good.py": GOOD})[1])

    def test_what_a_suite_leaves_running_is_ended_and_said(self):
        status, out = self.run_with({"tests/cli/test_leaves.py": LEAVES_A_PROCESS})
        self.assertEqual(status, 0, out)
        self.assertIn("left running, ended: sleep 1000", out)
        command = pathlib.Path("/proc", (self.root / "pid").read_text(), "cmdline")
        self.assertFalse(command.exists() and command.read_bytes())  # a zombie has no command line

    def test_suites_heed_signals_that_the_runner_was_started_to_ignore(self):
        def as_nohup_in_the_background():
            for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(one, signal.SIG_IGN)
        status, out = self.run_with({"tests/cli/test_heeds.py": HEEDS_SIGNALS}, preexec_fn=as_nohup_in_the_background)
        self.assertEqual((status, out.splitlines()[-1]), (0, "1 passed, 0 failed"), out)

    def test_only_the_programs_that_are_named_of_a_build_run(self):
        suites = {"build/asan/unit/a_test": GTEST_THAT_PASSES, "build/asan/unit/b_test": GTEST_THAT_DIES}
        status, out = self.run_with(suites, "--build", "asan:a_test")
        self.assertEqual((status, out.splitlines()[-1]), (0, "1 passed, 0 failed"), out)
        self.assertNotIn("b_test", out)

    def test_what_took_longest_last_time_begins_first(self):
        order = GOOD.replace("pass", "import os; print(file=open(os.environ['PID_FILE'], 'a'), *[os.environ['OVERCAP_TEST_FOLDER'], __file__])")
        suites = {f"tests/cli/test_{name}.py": order for name in ("a", "b", "c")}
        suites["tests/cli/test_b.py"] = order.replace("import os;", "import os, time; time.sleep(1);")
        first = self.run_with(suites, "--jobs", "1")[1]
        self.assertIn("3 suites, ", first)
        (self.root / "pid").unlink()
        self.run_with(suites, "--jobs", "1")
        self.assertIn("test_b.py", (self.root / "pid").read_text().splitlines()[0])

    def test_test_programs_run_beside_python_suites_and_at_low_priority(self):
        meet = "i=0; until [ -e {0}/waits ] || [ $i = 600 ]; do sleep 0.05; i=$((i+1)); done; nice >{0}/computes; [ -e {0}/waits ] || exit 1\nprintf"
        program = GTEST_THAT_PASSES.replace("printf", meet.format(self.root))
        waits = GOOD.replace("pass", f"""
        import os, pathlib, time
        pathlib.Path("{self.root}/waits").write_text(str(os.nice(0)))
        end = time.monotonic() + 30
        while not pathlib.Path("{self.root}/computes").exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
""")
        suites = {"tests/cli/test_waits.py": waits, "build/release/unit/a_test": program}
        status, out = self.run_with(suites, "--jobs", "1", "--most", "2")  # each waits for the other
        self.assertEqual((status, out.splitlines()[-1]), (0, "2 passed, 0 failed"), out)
        own = os.nice(0)
        self.assertEqual((self.root / "waits").read_text(), str(own))
        self.assertEqual((self.root / "computes").read_text().strip(), str(min(19, own + 5)))

    def test_a_processor_at_low_priority_counts_as_idle(self):
        sys.path.insert(0, str(TOOLS))
        self.addCleanup(sys.path.remove, str(TOOLS))
        from runner.crowd import Turnstile
        stat = self.root / "stat"  # user, nice, system, idle, iowait, irq, softirq, steal, guest
        stat.write_text("cpu  1 20 300 4000 50000 6 7 8 9000000\ncpu0 1 1 1 1 1 1 1 1 1\n")
        self.assertEqual(Turnstile.processor_ticks(stat), (54020, 54342))

    def test_what_a_suite_takes_of_a_processor_is_told(self):
        busy = GOOD.replace("pass", "\n        import time\n        while time.process_time() < 1: pass")
        out = self.run_with({"tests/cli/test_busy.py": busy, "tests/cli/test_idle.py": GOOD.replace("pass", "import time; time.sleep(1)")})[1]
        seconds = {line.split()[1]: float(line.split()[-3]) for line in out.splitlines() if line.startswith("  ok")}
        self.assertGreaterEqual(seconds["cli/test_busy"], 1, out)
        self.assertLess(seconds["cli/test_idle"], 1, out)

    def test_a_suite_that_asks_for_it_runs_on_every_slurm(self):
        says = "ON_EVERY_SLURM = True\n" + GOOD.replace("pass", "self.assertIn(__import__('os').environ.get('OVERCAP_TEST_SLURM_SUITE'), (None, 'trixie'))")
        status, out = self.run_with({"tests/cli/test_every.py": says, "tests/cli/test_one.py": GOOD}, "--slurm", "trixie")
        self.assertEqual((status, out.splitlines()[-1]), (0, "3 passed, 0 failed"), out)
        self.assertIn("cli/test_every@trixie", out)

    def test_the_filter_takes_suites_and_tests(self):
        suites = {"tests/cli/test_mixed.py": MIXED, "tests/cli/test_good.py": GOOD}
        self.assertEqual(self.run_with(suites, "test_mixed:test_good")[1].splitlines()[-1], "1 passed, 0 failed")


if __name__ == "__main__":
    unittest.main()
