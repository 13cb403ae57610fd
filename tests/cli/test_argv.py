# SPDX-License-Identifier: Apache-2.0
"""The argv reaches the ranks byte for byte; no shell ever parses it."""
import os

from overcap_rig import Rig, main, python

DUMP_ARGV = "import os, sys\nfor a in sys.argv[1:]: print(os.fsencode(a).hex())"


class Argv(Rig):
    def argv_seen(self, *words, before=()):
        job = self.run_job(*before, *python(DUMP_ARGV, *words))
        self.assertEqual(job["state"], "succeeded", job)
        return [bytes.fromhex(line) for line in self.log(job["id"]).decode().splitlines()]

    def test_odd_words_reach_the_rank_byte_for_byte(self):
        words = ["it's", 'say "hi"', "double  space", "line\nbreak", "tab\there", "Zürich 東京 🚀", "&&", ";", "|", ">",
                 "$HOME", "`id`", "$(id)", "*", "~", "\\n", "\\", "", " ", "a=b", "{x}", "%s", "!", "#", "\x01\x7f"]
        self.assertEqual(self.argv_seen(*words), [word.encode() for word in words])

    def test_flags_after_the_command_belong_to_the_command(self):
        words = ["--flag", "-n", "8", "--help", "--json", "--", "--wait", "-x"]
        self.assertEqual(self.argv_seen(*words), [word.encode() for word in words])

    def test_bytes_that_are_no_utf8_reach_the_rank(self):
        self.assertEqual(self.argv_seen(os.fsdecode(b"\xff\xfe\x80abc")), [b"\xff\xfe\x80abc"])

    def test_two_dashes_end_the_flags_of_submit(self):
        self.assertEqual(self.argv_seen("--x", before=["--"]), [b"--x"])

    def test_a_long_argument_reaches_the_rank(self):
        self.assertEqual(self.argv_seen("x" * 100_000), [b"x" * 100_000])

    def test_the_record_gives_the_argv_as_an_array(self):
        words = ["echo", "a  b", "", "&&", "line\nbreak", "Zürich"]
        self.assertEqual(self.run_job(*words)["command"], words)


if __name__ == "__main__":
    main()
