# SPDX-License-Identifier: Apache-2.0
"""tools/shape.py gives the known answer for a made-up tree, and each row counts what its definition says."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import shape

# A tree with something in each row.
TREE = {
    "src/base/text.h": "#pragma once\n",
    "src/base/text.cc": '#include "base/text.h"\n\n// Text beside text.\n',
    "src/base/text_test.cc": "int test;\n" * 50,
    "src/jobs/job.h": '#pragma once\n#include "base/text.h"\n#include "jobs/logs/log.h"\n',
    "src/jobs/wait.cc": "int a = poll(&entry, 1, 0);\n",
    "src/jobs/send.cc": 'Run({"sbatch", script});\n',
    "src/jobs/logs/log.h": "#pragma once\n",
    "src/jobs/logs/log.cc": '#include "jobs/job.h"\n',
    "src/jobs/testing/sample.h": "int sample;\n" * 50,
    "src/sched/both.h": "class Scheduler {\n};\nclass PooledScheduler {\n};\n",
    "docs/page.md": "Nobody reads it.\n",
}
KNOWN = {"lines": 15, "files": 8, "folder": 3, "headers": 3, "cycles": 1, "polls": 1, "twins": 1, "schedulers": 1,
         "wording": 2}


class Shape(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for name, text in TREE.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, *words, status=0):
        argv = [sys.executable, "-B", TOOLS / "shape.py", *words, self.root]
        result = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout if status == 0 else result.stderr

    def measure(self, row):
        """The value, the note and the list of a row."""
        return shape.ROWS[row].measure(shape.Tree(self.root))

    def value(self, row):
        return self.measure(row)[0]

    def files_of(self, row):
        return self.measure(row)[2]

    def assert_grows(self, row, by, name, text):
        """One more file changes the row by that much."""
        before = self.value(row)
        self.write(name, text)
        self.assertEqual(self.value(row) - before, by, f"{name}: {text}")
        (self.root / name).unlink()

    def test_each_row_of_the_tree_is_known(self):
        rows = json.loads(self.run_tool("--json"))
        self.assertEqual({name: row["value"] for name, row in rows.items()}, KNOWN)
        self.assertEqual(rows["cycles"], {"title": "folder cycles", "value": 1, "floor": 3, "aim": 3, "reached": "aim",
                                          "note": "jobs (2)"})

    def test_the_table_has_the_same_numbers(self):
        lines = [line.split() for line in self.run_tool().splitlines()[1:]]
        self.assertEqual([line[0] for line in lines], list(KNOWN))
        for line in lines:
            self.assertIn(str(KNOWN[line[0]]), line)

    def test_list_prints_the_files(self):
        self.assertEqual(self.run_tool("--list", "polls"), "src/jobs/wait.cc: 1\n")

    def test_floor_and_aim(self):
        row = shape.ROWS["folder"]
        self.assertEqual((row.floor, row.aim), (40, 30))
        self.assertEqual([shape.reached(row, value) for value in (30, 31, 40, 41)], ["aim", "floor", "floor", "no"])
        self.assertEqual(shape.reached(shape.ROWS["wording"], 0), "")

    def test_lines_and_files_leave_tests_out(self):
        for row, by in (("lines", 4), ("files", 1)):
            self.assert_grows(row, by, "src/base/more.cc", "int a;\n\n// b\nint c;")
            self.assert_grows(row, 0, "src/base/more_test.cc", "int a;\n")
            self.assert_grows(row, 0, "src/base/testing/more.h", "int a;\n")
            self.assert_grows(row, 0, "src/base/more.md", "words\n")
        self.assertIn("     3 src/base/text.cc", self.files_of("lines"))
        self.assertEqual(len(self.files_of("files")), KNOWN["files"])

    def test_the_largest_folder_is_named_and_sub_folders_count_separately(self):
        self.assertEqual(self.measure("folder")[1], "src/jobs")
        self.assertEqual(self.files_of("folder"), [])
        for number in range(31):
            self.write(f"src/jobs/logs/more{number}.cc", "")
        self.assertEqual(self.value("folder"), 33)
        self.assertEqual(self.files_of("folder"), ["    33 src/jobs/logs"])

    def test_a_header_is_used_outside_when_product_of_another_folder_includes_it(self):
        self.assertEqual(self.files_of("headers"),
                         ["src/base/text.h: jobs", "src/jobs/job.h: jobs/logs", "src/jobs/logs/log.h: jobs"])
        self.write("src/base/own.h", "#pragma once\n")
        include = '#include "base/own.h"\n'
        self.assert_grows("headers", 1, "src/sched/x.cc", include)
        self.assert_grows("headers", 1, "src/base/sub/x.cc", include)
        self.assert_grows("headers", 0, "src/base/x.cc", include)
        self.assert_grows("headers", 0, "src/sched/x_test.cc", include)
        self.assert_grows("headers", 0, "src/sched/x.cc", "// " + include)
        self.assert_grows("headers", 0, "src/sched/x.cc", f"/*\n{include}*/\n")
        self.assertEqual(self.measure("headers")[1], "of 5")

    def test_cycles_are_groups_of_folders(self):
        self.assertEqual(self.files_of("cycles"),
                         ["jobs jobs/logs", "    jobs -> jobs/logs: job.h", "    jobs/logs -> jobs: log.cc"])
        self.assert_grows("cycles", 0, "src/base/x_test.cc", '#include "jobs/job.h"\n')
        self.write("src/sched/uses.cc", '#include "base/text.h"\n')
        self.assert_grows("cycles", 0, "src/base/x.cc", '#include "base/text.h"\n')
        self.assert_grows("cycles", 1, "src/base/x.cc", '#include "sched/both.h"\n')
        # base -> jobs: now base is in the group of jobs, by way of a third folder.
        self.assert_grows("cycles", 0, "src/base/x.cc", '#include "jobs/job.h"\n')
        self.write("src/base/x.cc", '#include "jobs/job.h"\n')
        self.assertEqual(self.files_of("cycles")[0], "base jobs jobs/logs")

    def test_polls(self):
        self.assertEqual(self.files_of("polls"), ["src/jobs/wait.cc: 1"])
        for code in ("ppoll(&a, 1, t, m);", "while (::poll(fds, 2, -1) < 0) {", "n = epoll_wait(e, &x, 1, 0);",
                     "select(1, a, b, c, d);"):
            self.assert_grows("polls", 1, "src/base/x.cc", code + "\n")
        for code in ("// poll(&a, 1, 0)", "set.poll(1);", "loop->poll(1);", "Set::poll(1);", "#include <poll.h>",
                     "int unpoll(int a);"):
            self.assert_grows("polls", 0, "src/base/x.cc", code + "\n")
        for name in ("src/sys/x.cc", "src/net/http/x.cc", "src/base/x_test.cc"):
            self.assert_grows("polls", 0, name, "poll(&a, 1, 0);\n")

    def test_schedulers(self):
        self.assertEqual(self.files_of("schedulers"), ["src/jobs/send.cc: 1"])
        for code in ('Get("SLURM_JOB_ID")', "int slurm_id;", "SrunSetting a;", "cluster.srun", '"PBS_NODEFILE"', "kPbs",
                     '"squeue"', '"SQUEUE_FORMAT"', "AskQstat();", '#include "agent/slurm/x.h"', 'Fail("x // sacct");'):
            self.assert_grows("schedulers", 1, "src/base/x.cc", code + "\n")
        for code in ("// asks squeue", "int a;  // of Slurm", "IsRunning();", "isrun", "FsInfo", "siginfo_t a;",
                     "StepBSize"):
            self.assert_grows("schedulers", 0, "src/base/x.cc", code + "\n")
        for name in ("clusters/slurm/x.cc", "clusters/slurm/text/x.cc", "clusters/pbs/x.cc", "agent/slurm/x.h",
                     "agent/host/slurm/x.cc", "launch/x.cc", "launch/ssh/x.cc", "sched/trace/x.cc", "model/host_list.h",
                     "model/machine/compress_host_list.cc", "clusters/all_clusters.cc", "agent/slurm_test.cc"):
            self.assert_grows("schedulers", 0, f"src/{name}", "Slurm\n")
        for name in ("control/slurm/x.cc", "control/launch/x.cc", "clusters/x.cc", "model/x.h"):
            self.assert_grows("schedulers", 1, f"src/{name}", "Slurm\n")

    def test_a_twin_exists_while_both_halves_do(self):
        self.assertIn("there: schedulers", self.files_of("twins"))
        self.write("src/base/x.cc", "int RunAgent(int a);\n")
        for code in ("int RunSlurmAgent(int a) {", "return RunSlurmAgent(a);"):
            self.assert_grows("twins", 1, "src/far/away/x.cc", code + "\n")
        for code in ("// RunSlurmAgent()", "int NoRunSlurmAgent(int a);", "int RunSlurmAgents(int a);"):
            self.assert_grows("twins", 0, "src/far/away/x.cc", code + "\n")
        self.assert_grows("twins", 0, "src/base/x_test.cc", "int RunSlurmAgent(int a);\n")
        for code in ("class Scheduler;\n", "enum class Scheduler {\n", "class SchedulerKind {\n", ""):
            self.write("src/sched/both.h", code + "class PooledScheduler {\n")
            self.assertEqual(self.value("twins"), 0, code)
        listed = self.files_of("twins")
        self.assertIn("gone: schedulers", listed)
        self.assertIn("    class Scheduler: nowhere", listed)
        self.assertIn("    class PooledScheduler: src/sched/both.h", listed)

    def test_wording_in_comments_help_and_docs(self):
        listed = self.files_of("wording")
        for line in ("       1      0  beside", "       0      1  nobody, somebody", "       0      0  anew",
                     "     1 src/base/text.cc", "     1 docs/page.md"):
            self.assertIn(line, listed)
        for name, text in (("src/base/x.cc", "int a;  // begins anew\n"), ("src/base/x.cc", "/* begins anew */\n"),
                           ("src/base/x.cc", "// One\n// that waits\n"), ("src/base/x_test.cc", "// Whoever\n"),
                           ("src/cli/x.md", "It is\ntold.\n"), ("docs/deep/x.md", "for ever\n"), ("X.md", "so many\n")):
            self.assert_grows("wording", 1, name, text)
        for name, text in (("src/base/x.cc", 'Say("begins anew // anew");\n'),
                           ("src/base/x.cc", "// one\nint a;\n// that\n"),
                           ("src/base/x.cc", "// for every understanding, whose is no longer\n"),
                           ("tests/x.md", "anew\n")):
            self.assert_grows("wording", 0, name, text)

    def test_each_pattern_of_the_wording_finds_its_name(self):
        names = [line.split(None, 2)[2] for line in self.files_of("wording")[1:17]]
        self.assertIn("gives way, is gone, let go of", names)
        for name in names:
            for phrase in name.split(", "):
                text = f"// {phrase.capitalize() if phrase.startswith('who') else phrase} thing\n"
                self.assert_grows("wording", 1, "src/base/x.cc", text)

    def test_a_row_that_does_not_exist_and_a_tree_without_sources(self):
        self.assertIn("invalid choice: 'loops'", self.run_tool("--list", "loops", status=2))
        self.root = self.root / "docs"
        self.assertIn("no C++ files in", self.run_tool(status=1))


if __name__ == "__main__":
    unittest.main()
