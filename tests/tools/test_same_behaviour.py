# SPDX-License-Identifier: Apache-2.0
"""tools/same_behaviour finds no difference where there is none, and each kind of difference where there is one."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or ROOT / "build/release/overcap").resolve()
sys.path.insert(0, str(ROOT / "tests" / "cli"))

from behaviour.normalise import Normaliser  # noqa: E402

DEADLINE_SECONDS = 240


class Tool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="same-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def new_program(self, script):
        """A program that does what the lines of sh say; $REAL is the real one."""
        path = self.folder / "new"
        path.write_text(f"#!/bin/sh\nREAL={BINARY}\n{script}\n")
        path.chmod(0o755)
        return path

    def compare(self, new, *words, old=BINARY, before=()):
        return subprocess.run([*before, sys.executable, str(ROOT / "tools/same_behaviour"), str(old), str(new), *words], capture_output=True, text=True,
                              timeout=200, check=False)

    def finds(self, script, case, what, *lines):
        """The tool names the case and what differs in it, shows both sides, and says how to see more."""
        done = self.compare(self.new_program(script), "--case", case)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"{case}: {what}\n", done.stdout)
        for line in lines:
            self.assertIn(line, done.stdout)
        self.assertIn(f"--case {case} --keep FOLDER\n", done.stdout)
        return done.stdout


# Wrappers that change a stream of the real program on its way to the caller, or do something after it.
OUTPUT = '"$REAL" "$@" >"$FACTS/../tmp/out"; status=$?; sed "%s" "$FACTS/../tmp/out"; rm "$FACTS/../tmp/out"; exit $status'
ERRORS = '"$REAL" "$@" 2>"$FACTS/../tmp/err"; status=$?; sed "%s" "$FACTS/../tmp/err" >&2; rm "$FACTS/../tmp/err"; exit $status'
AFTERWARDS = '"$REAL" "$@"; status=$?; %s; exit $status'


class Same(Tool):
    def test_a_program_behaves_as_itself(self):
        cases = ["jobs/exit-status", "jobs/dry-run", "array/one-at-a-time", "launch/retries", "store/sync", "workspace/backup", "policy/render",
                 "slurm/runs", "cross/engine-replaced"]
        done = self.compare(BINARY, *(word for case in cases for word in ("--case", case)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^9 cases \(1 crossings\), (\d+) of \1 verbs, 0 differences, \d+ s\n$")

    def test_it_may_run_in_the_background(self):
        done = self.compare(BINARY, "--case", "launch/HUP", "--case", "launch/INT", before=["env", "--ignore-signal=HUP,INT,QUIT"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_sentences_may_differ(self):
        done = self.compare(self.new_program(ERRORS % "s/succeeded/made it/"), "--case", "jobs/one-rank")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Different(Tool):
    def test_an_exit_status(self):
        self.finds(AFTERWARDS % '[ "$1" != wait ] || exit 8', "jobs/exit-status", "status 2", "    step 2: wait last --json", "    old: 7", "    new: 8")

    def test_a_value_of_json(self):
        self.finds(OUTPUT % 's/\\"cpus\\":1,/\\"cpus\\":2,/', "jobs/one-rank", "json 3", '    old:  "cpus": 1,', '    new:  "cpus": 2,')

    def test_a_key_of_json(self):
        self.finds(OUTPUT % 's/\\"cpus\\":1,//', "jobs/one-rank", "json 3", '    old:  "cpus": 1,', "    new: (no such line)")

    def test_the_code_of_an_error(self):
        self.finds(ERRORS % 's/\\"code\\":\\"not_found\\"/\\"code\\":\\"usage\\"/', "refused/ids", "error 1", '"code": "not_found"', '"code": "usage"')

    def test_a_byte_of_a_dry_run(self):
        self.finds(OUTPUT % "s/^resources  /resources/", "jobs/requeue-default", "output 1", "    old: resources   no GPUs", "    new: resources no GPUs")

    def test_a_variable_of_a_rank(self):
        self.finds('[ "$1" != submit ] || export NEW_VARIABLE=1; exec "$REAL" "$@"', "jobs/one-rank", "fact env.job.1.0", "    new: NEW_VARIABLE=1")

    def test_a_file_that_is_left_behind(self):
        self.finds(AFTERWARDS % 'touch "$HOME/.overcap_rc"', "jobs/one-rank", "files", "    new: user/.overcap_rc -rw")

    def test_the_mode_of_a_file(self):
        self.finds(AFTERWARDS % '/bin/chmod 640 "$OVERCAP_HOME"/jobs/*/spec.json', "jobs/one-rank", "files",
                   "    old: state/jobs/JOB1/spec.json -rw-------", "    new: state/jobs/JOB1/spec.json -rw-r-----")

    def test_what_a_file_holds(self):
        self.finds(AFTERWARDS % '[ "$1" != wait ] || echo "{}" >>"$(echo "$OVERCAP_HOME"/jobs/*/events.jsonl)"', "jobs/one-rank",
                   "file state/jobs/JOB1/events.jsonl", "    new: {}")

    def test_output_that_is_data(self):
        self.finds('[ "$1" != logs ] || echo more; exec "$REAL" "$@"', "jobs/follow", "output 2", "    new: more")

    def test_a_case_that_cannot_be_run(self):
        self.finds('[ "$1" != query ] || kill -SEGV $$; exec "$REAL" "$@"', "jobs/one-rank", "run", "new: AssertionError: ", "died by a signal")

    def test_what_only_the_other_program_cannot_use(self):
        shown = self.finds(AFTERWARDS % '[ "$2" != --save ] || echo "odd line" >>"$OVERCAP_HOME/env/slurm-123"', "cross/saved-environment",
                           "new+old status 2", "    new: 7")
        self.assertNotIn("old+new status 2", shown)

    def test_a_verb_that_no_case_runs(self):
        verb = "  teleport           bring a job elsewhere\\n"
        program = self.new_program(f'[ "$1" != --help ] || {{ "$REAL" --help; printf "{verb}"; exit; }}; exec "$REAL" "$@"')
        done = self.compare(program, "--case", "refused/completion")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("no case runs 'overcap teleport'", done.stdout)


class Allowed(Tool):
    def with_lines(self, text, new=None):
        path = self.folder / "allowed"
        path.write_text(f"# known\n{text}")
        return self.compare(new or self.new_program(AFTERWARDS % '[ "$1" != wait ] || exit 8'), "--case", "jobs/exit-status", "--allowed", str(path))

    def test_a_known_difference_is_none(self):
        for line in ("jobs/exit-status: status 2: waiting is different on purpose\n", "jobs/*: status *: patterns will do\n"):
            done = self.with_lines(line)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_line_for_something_else_hides_nothing(self):
        done = self.with_lines("jobs/exit-status: status 3: another step\n")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("jobs/exit-status: status 2\n", done.stdout)

    def test_a_line_that_matches_nothing_any_more_is_reported(self):
        line = "jobs/exit-status: status 2: waiting was different"
        done = self.with_lines(f"{line}\ncross/*: files: of cases that did not run nothing is known\n", new=BINARY)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"matches no difference: {line}\n", done.stdout)
        self.assertNotIn("cross/*", done.stdout)

    def test_a_line_without_a_reason_is_refused(self):
        done = self.with_lines("jobs/exit-status: status 2\n", new=BINARY)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("allowed:2: not 'CASE: WHAT: REASON'", done.stderr)


class Words(Tool):
    def test_the_files_of_both_runs_can_be_kept(self):
        kept = self.folder / "kept"
        self.assertEqual(self.compare(BINARY, "--case", "jobs/one-rank", "--keep", str(kept)).returncode, 0)
        for run in ("old", "new"):
            self.assertTrue((kept / "jobs-one-rank" / run / "state/journal").exists())

    def test_what_is_no_program_is_refused(self):
        for old, new in ((BINARY, "/nonexistent"), (self.folder, BINARY)):
            self.assertEqual(self.compare(new, old=old).returncode, 2)
        self.assertIn("no such case", self.compare(BINARY, "--case", "nothing/*").stderr)


class Normalised(unittest.TestCase):
    """A value that is the same in two runs of one program stays as it is."""

    def setUp(self):
        self.normal = Normaliser({"JOB": ["ann_1795000000_0123abcd"]})

    def test_times_of_this_run_only(self):
        now = int(self.normal.now)
        self.assertEqual(self.normal.text(f"{now} {now}123456 {now - 60}.5"), "TIME_S TIME_US TIME_S")
        for text in ("2027-12-01T08:00:00Z", "1700000000", "1700000000123456", "4102444800"):
            self.assertEqual(self.normal.text(text), text)

    def test_ids_in_the_order_of_making(self):
        self.assertEqual(self.normal.text("overcap-ann_1795000000_0123abcd.2 /jobs/bob_1795000001_89abcdef/x"), "overcap-JOB1.2 /jobs/JOB2/x")

    def test_free_ports_only(self):
        self.assertEqual(self.normal.text("MASTER_PORT=40123\nPORT=29500\nOTHER=40123"), "MASTER_PORT=PORT\nPORT=29500\nOTHER=40123")
        self.assertEqual(self.normal.value({"master_port": 40123, "port": 29500}), {"master_port": "PORT", "port": 29500})

    def test_hashes_of_what_was_captured_stay(self):
        digest = "ab" * 32
        self.assertEqual(self.normal.value({"snapshot": digest, "environment": digest, "id": digest}),
                         {"snapshot": digest, "environment": digest, "id": "RANDOM"})
        self.assertEqual(self.normal.text(f"state/store/blobs/{digest}"), f"state/store/blobs/{digest}")

    def test_numbers_that_say_none_stay(self):
        self.assertEqual(self.normal.value({"pid": 0, "pids": [17], "elapsed_s": None, "seconds": 0.25}),
                         {"pid": 0, "pids": ["PID"], "elapsed_s": None, "seconds": "SECONDS"})

    def test_sentences_are_no_codes(self):
        self.assertEqual(self.normal.value({"reason": "Priority", "text": "it waits", "state": "two words"}),
                         {"reason": "Priority", "text": "SENTENCE", "state": "two words"})

    def test_the_numbers_of_facts_stay(self):
        self.assertEqual(self.normal.value({"facts": ["1 job is ahead in 'short', asking for 2 GPUs, for 0.3s", "held"]}), {"facts": ["SENTENCE 1 2", "held"]})

    def test_a_promise_in_minutes_from_when_it_was_asked_for(self):
        made = 1_795_000_000_000_000
        self.assertEqual(self.normal.value({"made_us": made, "p50_us": made + 600_400_000})["p50_us"], "in 10 min")
        self.assertEqual(self.normal.value({"p50": 900}), {"p50": 900})

    def test_the_number_of_a_script_is_that_of_its_job_and_task(self):
        number = (1_795_000_000 - 1_577_836_800 << 32) | 0x0123abcd
        self.assertEqual(self.normal.text(f"SLURM_JOB_ID={number + 3} {number - 1}"), f"SLURM_JOB_ID=JOB1+3 {number - 1}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
