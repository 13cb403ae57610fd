# SPDX-License-Identifier: Apache-2.0
"""Ranks that misbehave: all handled, all recorded, nothing survives the job."""
import hashlib
import os

from overcap_rig import DEADLINE, Rig, alive, main, python, shell

BIG = (1024 if os.environ.get("OVERCAP_TEST_BIG") else 256) * 1024 * 1024


class Hostile(Rig):
    def gone(self, *pids):
        self.until(lambda: not any(alive(pid) for pid in pids), f"processes {pids} to be gone", deadline=10)

    def test_a_rank_that_ignores_term_is_killed(self):
        job_id = self.submit(*shell('trap "" TERM INT HUP; echo $$ > "$FACTS/pid"; while :; do sleep 0.05; done'))
        pid = int(self.fact("pid"))
        self.ok("abort", job_id, deadline=90)
        self.assertEqual(self.ended(job_id, deadline=90)["state"], "cancelled")
        self.gone(pid)

    def test_a_grandchild_that_keeps_stdout_open_does_not_hold_the_job(self):
        job_id = self.submit(*shell('sleep 300 & echo $! > "$FACTS/pid"; echo done'))
        pid = int(self.fact("pid"))
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"]), ("succeeded", 0))
        self.assertEqual(self.log(job_id), b"done\n")
        self.gone(pid)

    def test_a_daemon_that_forked_twice_does_not_survive(self):
        code = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2):
            os.close(fd)
        path = sys.argv[1]
        with open(path + ".tmp", "w") as f:
            f.write(str(os.getpid()) + "\\n")
        os.rename(path + ".tmp", path)
        import time
        time.sleep(300)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]):
    pass
"""
        job = self.run_job(*python(code, str(self.facts / "pid")))
        self.assertEqual(job["state"], "succeeded")
        self.gone(int(self.fact("pid")))

    def test_a_large_output_is_kept_whole(self):
        code = ("import sys\nblock = bytes(range(256)) * 4096\n"
                "for _ in range(int(sys.argv[1]) // len(block)): sys.stdout.buffer.write(block)")
        job_id = self.submit(*python(code, str(BIG)))
        job = self.ended(job_id, deadline=4 * DEADLINE)
        self.assertEqual(job["state"], "succeeded", job)
        expected, seen = hashlib.sha256(), hashlib.sha256()
        block = bytes(range(256)) * 4096
        for _ in range(BIG // len(block)):
            expected.update(block)
        with open(job["logs"][0]["path"], "rb") as f:
            while chunk := f.read(1 << 20):
                seen.update(chunk)
        self.assertEqual(os.path.getsize(job["logs"][0]["path"]), BIG)
        self.assertEqual(seen.hexdigest(), expected.hexdigest())
        self.assertLess(len(self.ok("query", job_id).raw_out), 4 << 20, "query shows the end, not all of it")

    def test_a_line_that_never_ends_is_kept(self):
        job = self.run_job(*python("print('x' * 3000000, end='')"))
        self.assertEqual(self.log(job["id"]), b"x" * 3_000_000)
        self.ok("query", job["id"])
        self.assertEqual(len(self.ok("logs", "--tail", "1", job["id"]).raw_out), 3_000_000)

    def test_nul_and_other_odd_bytes_are_kept(self):
        job = self.run_job(*python("import os\nos.write(1, bytes(range(256)))"))
        self.assertEqual(self.log(job["id"]), bytes(range(256)))
        self.ok("query", job["id"])
        self.job(job["id"])

    def test_query_lets_no_terminal_escapes_of_a_rank_through_in_its_record(self):
        job = self.run_job("--name", "n\x1b[31m", "echo", "\x1b]0;owned\x07")
        self.assertEqual(job["state"], "succeeded")
        self.assertNotIn("\x1b", self.ok("ls", "--all").out)

    def test_a_rank_killed_by_a_signal_is_recorded_as_such(self):
        job = self.run_job(*shell("kill -KILL $$"))
        self.assertEqual((job["state"], job["signal"], job["exit_status"]), ("failed", 9, 137))
        text = self.ok("query", job["id"]).out
        self.assertTrue("SIGKILL" in text or "signal 9" in text, text)

    def test_one_rank_fails_the_others_are_stopped_and_the_first_failure_is_named(self):
        script = ('echo $$ > "$FACTS/pid-$RANK"; echo "rank $RANK speaking"; if [ $RANK = 2 ]; then '
                  'for r in 0 1 3; do while [ ! -s "$FACTS/pid-$r" ]; do sleep 0.02; done; done; '
                  'echo "the real reason"; exit 3; fi; trap "exit 99" TERM; while :; do sleep 0.02; done')
        job = self.run_job("--ranks-per-node", "4", *shell(script))
        self.assertEqual((job["state"], job["first_failed_rank"], job["exit_status"]), ("failed", 2, 3))
        self.gone(*[int(self.fact(f"pid-{rank}")) for rank in range(4)])
        text = self.ok("query", job["id"]).out
        self.assertIn("rank 2", text)
        self.assertIn("the real reason", text)
        self.assertNotIn("rank 0 speaking", text)
        self.assertEqual(self.overcap("wait", job["id"]).status, 3)

    def test_a_rank_that_fails_while_another_ignores_term_still_ends_the_job(self):
        script = ('if [ $RANK = 1 ]; then while [ ! -s "$FACTS/pid" ]; do sleep 0.02; done; exit 8; fi; '
                  'trap "" TERM; echo $$ > "$FACTS/pid"; while :; do sleep 0.05; done')
        job_id = self.submit("--ranks-per-node", "2", *shell(script))
        job = self.ended(job_id, deadline=90)
        self.assertEqual((job["state"], job["first_failed_rank"], job["exit_status"]), ("failed", 1, 8))
        self.gone(int(self.fact("pid")))

    def test_a_rank_that_stops_itself_can_be_aborted(self):
        job_id = self.submit(*shell('echo $$ > "$FACTS/pid"; kill -STOP $$; exit 0'))
        pid = int(self.fact("pid"))
        self.ok("abort", job_id, deadline=90)
        self.assertEqual(self.ended(job_id, deadline=90)["state"], "cancelled")
        self.gone(pid)

    def test_a_rank_that_kills_its_process_group_hurts_only_its_own_job(self):
        other = self.submit(*shell(self.gate()))
        self.until_state(other, "running")
        job = self.run_job(*shell("kill -KILL 0"))
        self.assertEqual((job["state"], job["signal"]), ("failed", 9))
        self.open_gate()
        self.assertEqual(self.ended(other)["state"], "succeeded")

    def test_a_rank_that_closes_its_output_and_goes_on_is_waited_for(self):
        job = self.run_job(*shell('exec >&- 2>&-; sleep 0.3; exit 6'))
        self.assertEqual((job["state"], job["exit_status"]), ("failed", 6))

    def test_a_crowd_of_children_does_not_survive(self):
        job = self.run_job(*shell('for i in $(seq 50); do setsid sleep 300 & echo $! >> "$FACTS/crowd"; done; exit 0'))
        self.assertEqual(job["state"], "succeeded")
        self.until(lambda: not self.processes(f"OVERCAP_JOB_ID={job['id']}"), "its processes to be gone", deadline=10)

    def test_a_rank_that_removes_its_own_folder_is_recorded(self):
        job = self.run_job(*shell('rm -rf "$OVERCAP_JOB_DIR/attempt-1/code"; echo still; exit 4'))
        self.assertEqual((job["state"], job["exit_status"], self.log(job["id"])), ("failed", 4, b"still\n"))


if __name__ == "__main__":
    main()
