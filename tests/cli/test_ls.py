# SPDX-License-Identifier: Apache-2.0
"""ls: what runs, what waits, what ended."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

import overcap_rig
from overcap_rig import Rig, main, shell


class Listing(Rig):
    def test_ls_shows_running_and_ended_jobs_and_filters_by_status(self):
        ended = self.run_job("false")["id"]
        running = self.submit(*shell(self.gate()))
        self.until_state(running, "running")
        held = self.submit("--hold", "true")
        table = self.ok("ls").out
        for job_id in (ended, running, held):
            self.assertIn(job_id[-8:], table)
        self.assertNotIn("\x1b", table)
        self.assertEqual([job["id"] for job in self.jobs("ls", "--status", "running")], [running])
        self.assertEqual([job["id"] for job in self.jobs("ls", "--status", "failed")], [ended])
        self.assertEqual({job["id"] for job in self.jobs("ls", "--all")}, {ended, running, held})

    def test_ls_gives_the_20_that_ended_last_and_with_all_every_one(self):
        ids = [self.submit("true") for _ in range(25)]
        for job_id in ids:
            self.ended(job_id)
        self.assertEqual(len(self.jobs("ls")), 20)
        self.assertEqual({job["id"] for job in self.jobs("ls", "--all")}, set(ids))

    def test_ls_quiet_gives_ids_only_for_scripts_and_completion(self):
        ids = [self.submit("--hold", "true") for _ in range(3)]
        self.assertEqual(self.ok("ls", "-q").out.split("\n"), [*ids, ""])
        self.assertEqual(self.ok("ls", "-q", "--status", "running, held").out.split(), ids)

    def test_ls_says_why_a_job_waits_and_leaves_out_empty_columns(self):
        held = self.submit("--hold", "true")
        self.assertNotIn("REASON", self.ok("ls").out)
        self.submit("--after", held, "--name", "second", "true")
        table = self.ok("ls").out
        self.assertIn(f"waits for '{held}'", table)
        self.assertIn("NAME", table)

    def test_a_huge_argument_does_not_flood_a_table(self):
        job_id = self.submit("--hold", "echo", "x" * 100_000)
        self.assertLess(len(self.ok("ls").out), 1000)
        self.assertLess(len(self.ok("query", job_id).out), 2000)
        self.assertEqual(self.job(job_id)["command"][1], "x" * 100_000)

    def test_a_long_name_is_cut_on_a_terminal_and_whole_elsewhere(self):
        name = "n" * 200
        self.submit("--hold", "--name", name, "true")
        self.assertIn(name, self.ok("ls").out)
        self.assertEqual(self.jobs("ls")[0]["name"], name)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 300, 0, 0))
        try:
            subprocess.run([overcap_rig.BINARY, "ls"], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=theirs, check=True, timeout=60)
            shown = os.read(ours, 1 << 16).decode()
        finally:
            os.close(ours)
            os.close(theirs)
        self.assertIn("n" * 20, shown)
        self.assertNotIn("n" * 31, shown)

    def test_ls_filters_by_user_and_age(self):
        job = self.run_job("true")
        self.assertEqual([j["id"] for j in self.jobs("ls", "--all", "--user", job["user"])], [job["id"]])
        self.assertEqual(self.jobs("ls", "--all", "--user", "nobody-else"), [])
        self.assertEqual([j["id"] for j in self.jobs("ls", "--all", "--since", "1h")], [job["id"]])

    def test_ls_of_nothing_is_an_empty_list(self):
        self.assertEqual(self.jobs("ls"), [])
        self.assertEqual(self.jobs("ls", "--all"), [])


if __name__ == "__main__":
    main()
