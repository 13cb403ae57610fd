# SPDX-License-Identifier: Apache-2.0
"""tools/run_tests.py counts right, never hides a failure, and ends what a suite leaves behind."""
import importlib.util
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
        self.assertNotIn("once more", out)

    def test_a_suite_that_passes_alone_counts_and_is_called_unsteady(self):
        status, out = self.run_with({"tests/cli/test_once.py": FAILS_ONCE})
        self.assertEqual((status, out.splitlines()[-1]), (0, "1 passed, 0 failed"))
        self.assertIn("UNSTEADY: cli/test_once", out)
        self.assertIn("too busy", out)

    def test_a_test_program_too_gets_a_second_chance(self):
        status, out = self.run_with({"build/release/unit/a_test": GTEST_THAT_FAILS_ONCE})
        self.assertEqual((status, out.splitlines()[-1]), (0, "1 passed, 0 failed"), out)
        self.assertIn("UNSTEADY: release/a_test A.B", out)

    def test_a_report_of_a_sanitizer_is_not_tried_away(self):
        told = GTEST_THAT_FAILS_ONCE.replace("WHAT", "WARNING: ThreadSanitizer: data race (pid=7)")
        ended = GTEST_THAT_FAILS_ONCE.replace('[ -z "$failures" ]', '[ -z "$failures" ] || exit 66')
        for program in (told, ended):
            status, out = self.run_with({"build/release/unit/a_test": program})
            self.assertEqual((status, out.splitlines()[-1]), (1, "0 passed, 1 failed"), out)
            (self.root / "pid").unlink()

    def test_an_input_that_breaks_a_property_is_not_tried_away(self):
        program = GTEST_THAT_FAILS_ONCE.replace("WHAT", "Falsifiable after 3 tests")
        status, out = self.run_with({"build/release/unit/a_test": program})
        self.assertEqual((status, out.splitlines()[-1]), (1, "0 passed, 1 failed"), out)

    def test_many_failures_get_no_second_chance(self):
        many = FAILS_ONCE + "".join(f"    def test_bad_{n}(self): self.fail()\n" for n in range(5))
        status, out = self.run_with({"tests/cli/test_once.py": many})
        self.assertEqual((status, out.splitlines()[-1]), (1, "0 passed, 6 failed"))

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
        spec = importlib.util.spec_from_file_location("run_tests", TOOLS / "run_tests.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["run_tests"] = module  # dataclasses look for it
        spec.loader.exec_module(module)
        stat = self.root / "stat"  # user, nice, system, idle, iowait, irq, softirq, steal, guest
        stat.write_text("cpu  1 20 300 4000 50000 6 7 8 9000000\ncpu0 1 1 1 1 1 1 1 1 1\n")
        self.assertEqual(module.Gate.processor_ticks(stat), (54020, 54342))

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
