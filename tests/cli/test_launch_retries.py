# SPDX-License-Identifier: Apache-2.0
"""`overcap launch --retries`: again after a failure, with back-off, on other hosts when a host is to blame."""
import signal
import time

from launch_rig import STAY, TELL_PLACE, HostsRig, LaunchRig
from overcap_rig import main, shell

DEADLINE_SECONDS = 300
# Counts the starts of each rank; fails in rank 1 until its third.
THIRD_TIME = """
echo x >> "$FACTS/starts-$RANK"; n=$(wc -l < "$FACTS/starts-$RANK"); echo "start $n of $RANK"
if [ "$RANK" = 1 ] && [ "$n" -lt 3 ]; then exit 6; fi; exit 0
"""


class OnOneMachine(LaunchRig):
    def starts(self, rank):
        return (self.facts / f"starts-{rank}").read_text().count("x")

    def test_it_is_tried_again_until_it_works_and_every_attempt_keeps_its_logs(self):
        self.launched("-n", "2", "--retries", "5", *shell(THIRD_TIME))
        self.assertEqual(self.starts(1), 3)
        for attempt in (1, 2, 3):
            self.assertEqual(self.rank_log(1, attempt), b"start %d of 1\n" % attempt)
        self.assertFalse((self.folder() / "attempt-4").exists())
        result = self.result_of()
        self.assertEqual(result["exit_status"], 0)
        self.assertEqual([one["cause"] for one in result["attempts"]], ["rank_failed", "rank_failed", "done"])
        self.assertEqual([one["attempt"] for one in result["attempts"]], [1, 2, 3])

    def test_each_pause_is_longer_than_the_one_before(self):
        self.launched("-n", "2", "--retries", "2", *shell(THIRD_TIME))
        first, second, third = self.result_of()["attempts"]
        pauses = [second["started_us"] - first["ended_us"], third["started_us"] - second["ended_us"]]
        self.assertGreater(pauses[0], 0)
        self.assertGreater(pauses[1], pauses[0])

    def test_the_last_failure_is_the_exit_status(self):
        done = self.launch("-n", "2", "--retries", "1", *shell(THIRD_TIME))
        self.assertEqual(done.status, 6, str(done))
        self.assertEqual(self.starts(1), 2)
        self.assertEqual(len(self.result_of()["attempts"]), 2)

    def test_without_retries_it_is_tried_once(self):
        self.assertEqual(self.launch("-n", "2", *shell(THIRD_TIME)).status, 6)
        self.assertEqual(self.starts(1), 1)

    def test_an_interrupt_is_no_failure_and_ends_it(self):
        process = self.started("-n", "2", "--retries", "5", *shell(f"{TELL_PLACE}; {STAY}"), ranks=2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ended_launch(process).status, 130)
        self.assertFalse((self.folder() / "attempt-2").exists())

    def test_an_interrupt_during_the_pause_ends_it_at_once(self):
        process = self.start("launch", "-n", "1", "--retries", "30", *shell('echo x >> "$FACTS/starts-0"; exit 3'))
        path = self.facts / "starts-0"
        self.until(lambda: path.exists() and self.starts(0) >= 2, "the second attempt")
        time.sleep(0.2)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ended_launch(process).status, 130)
        self.assertLess(time.monotonic() - began, 3)

    def test_each_attempt_has_ranks_that_can_meet(self):
        meet = 'echo x >> "$FACTS/here"; while [ $(($(wc -l < "$FACTS/here") % 2)) = 1 ]; do sleep 0.02; done'
        script = f'echo "$MASTER_PORT" >> "$FACTS/ports-$RANK"; {meet}; [ "$(wc -l < "$FACTS/ports-$RANK")" = 2 ]'
        self.launched("-n", "2", "--retries", "1", *shell(script))
        ports = [(self.facts / f"ports-{rank}").read_text().split() for rank in range(2)]
        self.assertEqual(ports[0], ports[1])


class OnSeveralHosts(HostsRig):
    count = 4
    # The first attempt stays, later ones end well.
    SCRIPT = f'{TELL_PLACE}; if [ -e "$FACTS/second" ]; then exit 0; fi; {STAY}'

    def run_with_a_host_lost(self, lost, *args, ranks):
        process = self.started(*args, *shell(self.SCRIPT), ranks=ranks)
        for path in self.facts.glob("place-*"):
            path.unlink()
        (self.facts / "second").touch()
        self.power_off(lost)
        return self.ended_launch(process, 90)

    def test_a_spare_host_takes_the_place_of_one_that_died(self):
        one, two, three, _ = self.hosts.names
        done = self.run_with_a_host_lost(two, "--hostfile", self.hosts.hostfile(2, [one, two, three]), "--spare-nodes",
                                         "1", "--retries", "2", ranks=4)
        self.assertEqual(done.status, 0, str(done))
        self.assert_places([(self.name_of(one), 2), (self.name_of(three), 2)])
        first, second = self.result_of()["attempts"]
        self.assertEqual((first["cause"], first["bad_hosts"], second["cause"]), ("host_failed", [two], "done"))
        self.assertIn(three, str(self.record()["spares"]))

    def test_spare_hosts_have_no_rank_at_first(self):
        one, two, three, _ = self.hosts.names
        self.launched("--hostfile", self.hosts.hostfile(2), "--spare-nodes", "2", *shell(TELL_PLACE))
        self.assert_places([(self.name_of(one), 2), (self.name_of(two), 2)])

    def test_without_a_spare_the_remaining_hosts_go_on(self):
        one, two, three, _ = self.hosts.names
        done = self.run_with_a_host_lost(one, "--hostfile", self.hosts.hostfile(1, [one, two, three]), "--retries", "1",
                                         ranks=3)
        self.assertEqual(done.status, 0, str(done))
        self.assert_places([(self.name_of(two), 1), (self.name_of(three), 1)])

    def test_a_rank_that_fails_by_itself_blames_no_host(self):
        one, two, three, _ = self.hosts.names
        # Each fails at its first start. Whoever is stopped because the other was first may not have come so far: two attempts
        # fail at most.
        script = f'{TELL_PLACE}; echo x >> "$FACTS/starts-$RANK"; [ "$(wc -l < "$FACTS/starts-$RANK")" -ge 2 ]'
        self.launched("--hostfile", self.hosts.hostfile(1, [one, two, three]), "--spare-nodes", "1", "--retries", "2",
                      *shell(f"sleep 0.2; {script}"))
        self.assert_places([(self.name_of(one), 1), (self.name_of(two), 1)])
        *failed, last = self.result_of()["attempts"]
        self.assertIn(len(failed), (1, 2))
        self.assertEqual({(attempt["cause"], tuple(attempt["bad_hosts"])) for attempt in failed}, {("rank_failed", ())})
        self.assertEqual(last["cause"], "done")


if __name__ == "__main__":
    main()
