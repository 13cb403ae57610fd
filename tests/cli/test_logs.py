# SPDX-License-Identifier: Apache-2.0
"""Logs are kept per rank and attempt, byte for byte, and can be followed."""
import os
import sys

from overcap_rig import Rig, main, python, shell


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


MIB = 1 << 20
# Lines of 64 bytes with their number: 40 MiB.
PRINT = "import sys\nfor i in range(655360): sys.stdout.write('%063d\\n' % i)"


class LargeLogs(Rig):
    """A log that grows beyond logs.max keeps its beginning and its newest part, and the job never notices."""

    def setUp(self):
        super().setUp()
        self.write("bound.yaml", "logs:\n  max: 4M\n")

    def submit_bounded(self, *words):
        return self.id_in(self.ok("--config", "bound.yaml", "submit", *words))

    def kept(self, path):
        return os.stat(path).st_blocks * 512

    def check_text(self, text):
        lines = text.split(b"\n")
        self.assertEqual(lines.pop(), b"")
        (marker,) = [line for line in lines if line.startswith(b"[overcap: ")]
        at = lines.index(marker)
        self.assertRegex(marker, rb"^\[overcap: 3\d\.\d MiB of this log were dropped here \(logs\.max\)\]$")
        numbers = [int(line) for line in lines if line != marker]
        self.assertEqual(numbers[:at], list(range(at)))
        self.assertEqual(numbers[at:], list(range(numbers[at], 655360)))
        self.assertGreaterEqual(at * 64, 2 * MIB - 64)
        self.assertGreaterEqual((655360 - numbers[at]) * 64, 1.5 * MIB - 64)

    def test_the_first_and_the_newest_lines_stay_and_the_disk_is_spared(self):
        job = self.ended(self.submit_bounded(*python(PRINT)))
        self.assertEqual(job["state"], "succeeded")
        path = job["logs"][0]["path"]
        self.assertEqual(os.stat(path).st_size, 40 * MIB)
        self.assertLessEqual(self.kept(path), 4 * MIB)
        self.check_text(self.ok("logs", job["id"]).raw_out)
        told = self.ok("query", job["id"]).out
        self.assertEqual(told.count("logs.max"), 1, told)
        self.assertIn("the log of rank 0 is larger than logs.max (4.0 MiB)", told)
        self.assertEqual(self.ok("logs", "--tail", "2", job["id"]).out, "%063d\n%063d\n" % (655358, 655359))

    def test_a_tail_that_is_longer_than_the_newest_part_begins_before_the_hole(self):
        job = self.ended(self.submit_bounded(*python(PRINT)))
        lines = self.ok("logs", "--tail", "60000", job["id"]).out.splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("[overcap: ")]), 1)
        self.assertNotIn("\0", "".join(lines))
        self.assertLess(int(lines[0]), 40000)
        self.assertEqual(int(lines[-1]), 655359)

    def test_several_ranks_are_bounded_each_and_the_report_says_it_once(self):
        job = self.ended(self.submit_bounded("--ranks-per-node", "2", *python(PRINT)))
        self.assertEqual(job["state"], "succeeded")
        for log in job["logs"]:
            self.assertLessEqual(self.kept(log["path"]), 4 * MIB)
        self.assertEqual(self.ok("query", job["id"]).out.count("logs.max"), 1)
        out = self.ok("logs", "--rank", "all", job["id"]).out
        self.assertEqual([out.count(f"[{rank}] [overcap: ") for rank in (0, 1)], [1, 1])

    def test_while_the_job_runs_the_log_is_bounded_and_a_follower_sees_the_newest_lines(self):
        script = f'{sys.executable} -I -S -c "$1"; {self.gate()}; echo last'
        job_id = self.submit_bounded(*shell(script, PRINT))
        self.until_state(job_id, "running")
        path = self.job(job_id)["logs"][0]["path"]
        self.until(lambda: os.path.exists(path) and os.stat(path).st_size == 40 * MIB and
                   self.kept(path) <= 4 * MIB, "its log is bounded while it runs")
        follower = self.start("logs", "-f", job_id)
        self.open_gate()
        done = self.finish(follower)
        self.assertTrue(done.raw_out.endswith(b"%063d\nlast\n" % 655359))
        self.assertNotIn(b"\0", done.raw_out)

    def test_none_keeps_all(self):
        self.write("bound.yaml", "logs:\n  max: none\n")
        job = self.ended(self.submit_bounded(*python(PRINT)))
        self.assertGreaterEqual(self.kept(job["logs"][0]["path"]), 40 * MIB)
        self.assertNotIn("logs.max", self.ok("query", job["id"]).out)

    def test_the_logs_of_a_launch_are_bounded_with_and_without_pipes(self):
        for name, words in (("own", []), ("pipes", ["--pipes"])):
            done = self.ok("--config", "bound.yaml", "launch", "-n", "1", *words, "--logs", name, *python(PRINT))
            path = self.project / name / "attempt-1/rank-0.log"
            self.assertLessEqual(self.kept(path), 4 * MIB)
            self.assertEqual(done.err.count("logs.max"), 1, done.err)
            self.assertNotIn("\0", done.out)
            self.check_text(self.ok("launches", "--rank", "0", f"./{name}").raw_out)
            timed = self.ok("launches", "--times", "--rank", "0", f"./{name}").out
            self.assertNotIn("\0", timed)
            self.assertEqual(timed.count("[overcap: "), 1)
            self.assertTrue(timed.endswith("%063d\n" % 655359))


if __name__ == "__main__":
    main()
