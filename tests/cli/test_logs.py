# SPDX-License-Identifier: Apache-2.0
"""Logs are kept per rank and attempt, byte for byte, and can be followed."""
import os

from overcap_rig import Rig, main, shell


class Logs(Rig):
    def test_logs_prints_what_the_rank_wrote_byte_for_byte(self):
        job = self.run_job(*shell(r"printf 'a\r\nb\033[31m\377\000end'"))
        self.assertEqual(self.ok("logs", job["id"]).raw_out, b"a\r\nb\x1b[31m\xff\x00end")

    def test_each_rank_has_its_own_log(self):
        job = self.run_job("--ranks-per-node", "3", *shell('echo "I am $RANK"'))
        for rank in range(3):
            self.assertEqual(self.ok("logs", "--rank", str(rank), job["id"]).out, f"I am {rank}\n")
        self.assertEqual(self.ok("logs", job["id"]).out, "I am 0\n")

    def test_a_rank_that_there_is_not_is_an_error(self):
        job = self.run_job("true")
        self.refused("logs", "--rank", "7", job["id"], status=3, says="7")
        self.refused("logs", "--attempt", "9", job["id"], status=3, says="9")

    def test_tail_gives_the_last_lines(self):
        job = self.run_job("seq", "1", "100000")
        self.assertEqual(self.ok("logs", "--tail", "3", job["id"]).out, "99998\n99999\n100000\n")
        self.assertEqual(self.ok("logs", "--tail", "0", job["id"]).out, "")
        self.assertEqual(self.ok("logs", "--tail", "1000000", job["id"]).out.count("\n"), 100000)

    def test_tail_counts_a_last_line_without_a_newline(self):
        job = self.run_job("printf", r"one\ntwo\nthree")
        self.assertEqual(self.ok("logs", "--tail", "2", job["id"]).out, "two\nthree")

    def test_an_attempt_can_be_chosen_and_the_last_one_is_the_default(self):
        job = self.run_job("--max-restarts", "1", *shell('echo "try $OVERCAP_ATTEMPT"; exit 1'))
        self.assertEqual(job["attempt"], 2)
        self.assertEqual(self.ok("logs", "--attempt", "1", job["id"]).out, "try 1\n")
        self.assertEqual(self.ok("logs", "--attempt", "2", job["id"]).out, "try 2\n")
        self.assertEqual(self.ok("logs", job["id"]).out, "try 2\n")
        self.assertEqual([(log["attempt"], log["rank"]) for log in job["logs"]], [(1, 0), (2, 0)])

    def test_follow_shows_lines_as_they_come_and_ends_with_the_job(self):
        job_id = self.submit(*shell(f"echo first; {self.gate()}; echo second; exit 3"))
        process = self.start("logs", "-f", job_id)
        seen = b""
        while b"first\n" not in seen:
            chunk = os.read(process.stdout.fileno(), 4096)
            self.assertTrue(chunk, f"it ended before the job: {seen!r}")
            seen += chunk
        self.open_gate()
        done = self.finish(process)
        self.assertEqual(seen + done.raw_out, b"first\nsecond\n", str(done))

    def test_follow_of_a_job_that_still_waits_begins_when_it_starts(self):
        job_id = self.submit("--hold", "echo", "late")
        process = self.start("logs", "-f", job_id)
        self.ok("release", job_id)
        self.assertEqual(self.finish(process).out, "late\n")

    def test_logs_of_a_running_job_end_at_once_without_follow(self):
        job_id = self.submit(*shell(f"echo now; {self.gate()}"))
        self.until(lambda: self.overcap("logs", job_id).out == "now\n", "the first line")
        self.assertEqual(self.job(job_id)["state"], "running")
        self.open_gate()

    def test_logs_of_a_job_that_never_started_say_so(self):
        job_id = self.submit("--hold", "true")
        done = self.overcap("logs", job_id)
        self.assertEqual(done.out, "")
        self.assertTrue(done.err.strip(), str(done))

    def test_a_reader_that_goes_away_does_no_harm(self):
        job = self.run_job("seq", "1", "200000")
        process = self.start("logs", job["id"])
        os.read(process.stdout.fileno(), 100)
        process.stdout.close()
        process.stdout = None
        process.wait(timeout=20)
        self.assertNotIn(b"terminate", process.stderr.read())
        process.stderr.close()
        self.assertEqual(self.job(job["id"])["state"], "succeeded")

    def test_follow_with_json_shows_the_output_beside_the_record(self):
        done = self.ok("submit", "--follow", "--json", "echo", "said")
        self.assertEqual((done.json()["state"], done.err), ("succeeded", "said\n"))


if __name__ == "__main__":
    main()
