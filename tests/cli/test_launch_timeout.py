# SPDX-License-Identifier: Apache-2.0
"""`overcap launch --timeout`: silence of all ranks ends it with their stacks; one that speaks keeps all alive."""
import signal
import time

from launch_rig import STAY, TELL_PLACE, HostsRig, LaunchRig, by_rank
from overcap_rig import main, python, shell

DEADLINE_SECONDS = 240


class Silence(LaunchRig):
    def test_silence_of_all_ranks_ends_it_with_their_stacks(self):
        done = self.launch("-n", "3", "--timeout", "1s", *shell("echo begun; exec sleep 1000"))
        self.assertEqual(done.status, 124, str(done))
        self.assertTrue(1 <= done.seconds < 15, done.seconds)
        stacks = (self.folder() / "attempt-1" / "stacks.txt").read_text()
        for rank in range(3):
            self.assertRegex(stacks, rf"rank {rank}\b")
        self.assertIn("sleep", stacks)
        (attempt,) = self.result_of()["attempts"]
        self.assertEqual((attempt["cause"], attempt["first_failed_rank"]), ("idle", -1))
        self.assertIn("stacks.txt", done.err)

    def test_ranks_that_never_said_a_word_are_silent_too(self):
        done = self.launch("-n", "2", "--timeout", "1s", *shell(STAY))
        self.assertEqual(done.status, 124, str(done))

    def test_one_rank_that_writes_keeps_all_alive(self):
        speak = "i=0; while [ $i -lt 15 ]; do echo $i >&2; sleep 0.2; i=$((i+1)); done"
        began = time.monotonic()
        self.launched("-n", "3", "--timeout", "1s", *by_rank(r1=speak, other="sleep 3"))
        self.assertGreater(time.monotonic() - began, 2.9)

    def test_deaf_ranks_are_killed_after_the_grace_time(self):
        done = self.launch("-n", "2", "--timeout", "1s", "--grace", "1s", *shell(f"trap '' TERM; {STAY}"))
        self.assertEqual(done.status, 124, str(done))
        self.assertLess(done.seconds, 15)

    def test_a_rank_that_stands_still_has_a_stack_too(self):
        code = "import os, signal; print('stopping', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
        done = self.launch("-n", "2", "--timeout", "1s", "--grace", "1s", *python(code))
        self.assertEqual(done.status, 124, str(done))
        self.assertRegex((self.folder() / "attempt-1" / "stacks.txt").read_text(), r"rank 1\b")

    def test_silence_of_ranks_that_are_being_stopped_hides_no_failure(self):
        done = self.launch("-n", "2", "--timeout", "1s", "--grace", "3s",
                           *by_rank(r1="exit 3", other=f"trap '' TERM; {STAY}"))
        self.assertEqual(done.status, 3, str(done))
        self.assertEqual(self.result_of()["attempts"][0]["first_failed_rank"], 1)

    def test_silence_of_ranks_that_are_being_stopped_hides_no_signal(self):
        process = self.started("-n", "1", "--timeout", "2s", "--grace", "4s",
                               *shell(f"trap '' TERM; {TELL_PLACE}; {STAY}"), ranks=1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended_launch(process).status, 128 + signal.SIGTERM)

    def test_it_may_be_tried_again(self):
        script = 'echo x >> "$FACTS/starts"; [ "$(wc -l < "$FACTS/starts")" = 2 ] || exec sleep 1000'
        self.launched("-n", "1", "--timeout", "1s", "--retries", "1", *shell(script))
        self.assertEqual([one["cause"] for one in self.result_of()["attempts"]], ["idle", "done"])

    def test_a_launch_that_ends_in_time_is_left_alone(self):
        self.launched("-n", "2", "--timeout", "20s", *shell("sleep 0.3; echo done"))


class SilenceOnHosts(HostsRig):
    def test_the_stacks_of_every_host_are_collected(self):
        done = self.launch("--hostfile", self.hosts.hostfile(2), "--timeout", "1s", "sleep", "1000")
        self.assertEqual(done.status, 124, str(done))
        self.assertLess(done.seconds, 20)
        stacks = (self.folder() / "attempt-1" / "stacks.txt").read_text()
        for rank in range(6):
            self.assertRegex(stacks, rf"rank {rank}\b")

    def test_a_word_from_another_host_keeps_all_alive(self):
        speak = "i=0; while [ $i -lt 15 ]; do echo $i; sleep 0.2; i=$((i+1)); done"
        self.launched("--hostfile", self.hosts.hostfile(1), "--timeout", "1s", *by_rank(r2=speak, other="sleep 3"))


if __name__ == "__main__":
    main()
