# SPDX-License-Identifier: Apache-2.0
"""A rank raises: which one, and what it raised, is on the terminal once, in every mode, and in the user's error file."""
import json

from launch_rig import LaunchRig
from overcap_rig import DEADLINE, PYTHON, Done, main

# As a program under torch's `record`: the exception goes to TORCHELASTIC_ERROR_FILE, its traceback to stderr.
FAILS = """import json, os, time, traceback
if os.environ['RANK'] != os.environ['BAD']:
    time.sleep(60)
try:
    raise ValueError('bad batch 17')
except ValueError as error:
    json.dump({'message': {'message': 'ValueError: bad batch 17',
                           'extraInfo': {'py_callstack': traceback.format_exc(), 'timestamp': '1'}}},
              open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w'))
    raise
"""
WAYS = {"plain": ("launch", "-n", "2"), "torch": ("launch", "--nproc-per-node", "2", "--no-python"),
        "submit": ("submit", "-n", "0", "--ranks-per-node", "2", "--follow")}


class FirstError(LaunchRig):
    def failed(self, way, bad, *flags):
        script = self.write("fails.py", FAILS)
        process = self.start(*WAYS[way], *flags, PYTHON, "-I", "-S", str(script), env={"BAD": str(bad)})
        out, err = process.communicate(timeout=DEADLINE)  # a traceback in it is what a rank wrote
        done = Done(process.args, process.returncode, out, err, 0)
        self.assertEqual(done.status, 1, str(done))
        return done

    def test_both_modes_of_a_launch_name_the_rank_and_its_error_in_the_same_words(self):
        for way in ("plain", "torch"):
            with self.subTest(way):
                done = self.failed(way, 1)
                self.assertIn(f"rank 1 on '{self.here}' failed first: exit status 1: ValueError: bad batch 17\n", done.err)
                self.assertEqual(done.err.count("Traceback"), 1, done.err)

    def test_what_rank_0_has_shown_already_is_not_shown_again(self):
        for way in ("plain", "torch"):
            with self.subTest(way):
                done = self.failed(way, 0)
                self.assertIn(f"rank 0 on '{self.here}' failed first: exit status 1: ValueError: bad batch 17\n", done.err)
                self.assertEqual((done.out + done.err).count("Traceback"), 1, str(done))

    def test_json_has_the_last_lines_all_the_same(self):
        done = self.failed("plain", 0, "--json")
        failure = json.loads(done.err.strip().splitlines()[-1])
        self.assertIn("ValueError: bad batch 17", failure["last_lines"])

    def test_the_users_error_file_gets_the_first_error(self):
        for way in WAYS:
            with self.subTest(way):
                users = self.root / f"error-of-{way}.json"
                flags = ("--env", f"TORCHELASTIC_ERROR_FILE={users}") if way == "submit" else ()
                self.env["TORCHELASTIC_ERROR_FILE"] = str(users)
                self.failed(way, 1, *flags)
                message = json.loads(users.read_text())["message"]
                self.assertEqual((message["message"], message["errorCode"]), ("ValueError: bad batch 17", 1))
                self.assertIn("Traceback", message["extraInfo"]["py_callstack"])

    def test_following_a_job_names_the_rank_and_shows_what_it_wrote(self):
        done = self.failed("submit", 1)
        self.assertRegex(done.err, r"failed, exit status 1, after .* \(ValueError: bad batch 17\)")
        self.assertIn("rank 1 failed first: exit status 1\n", done.err)
        self.assertIn("  | ValueError: bad batch 17\n", done.err)
        shown = self.failed("submit", 0)
        self.assertIn("rank 0 failed first: exit status 1\n", shown.err)
        self.assertEqual((shown.out + shown.err).count("Traceback"), 1, str(shown))


if __name__ == "__main__":
    main()
