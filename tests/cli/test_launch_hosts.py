# SPDX-License-Identifier: Apache-2.0
"""`overcap launch` on several hosts over a real ssh: places, failures, hosts that die, nothing left on any of them."""
import hashlib
import signal
import time

from launch_rig import STAY, TELL_PLACE, HostsRig, LaunchRig, by_rank, host_python
from overcap_rig import main, shell
from rigs.hosts_rig import SshHosts

DEADLINE_SECONDS = 400


class Places(HostsRig):
    def check(self, hostfile, *args, wanted):
        for path in self.facts.glob("place-*"):
            path.unlink()
        self.launched("--hostfile", hostfile, *args, *shell(TELL_PLACE))
        self.assert_places([(self.name_of(self.hosts.names[host]), count) for host, count in wanted])

    def test_slots_of_a_host_file_place_the_ranks(self):
        self.check(self.hosts.hostfile(2), wanted=[(0, 2), (1, 2), (2, 2)])

    def test_slots_may_differ_and_may_follow_a_colon(self):
        self.check(self.hosts.hostfile([1, 3, 2], form=":"), wanted=[(0, 1), (1, 3), (2, 2)])

    def test_ranks_are_spread_when_hosts_do_not_divide_them(self):
        self.check(self.hosts.hostfile(4), "-n", "5", wanted=[(0, 2), (1, 2), (2, 1)])

    def test_ppn_and_nnodes_choose_hosts_in_order(self):
        self.check(self.hosts.hostfile(4), "--nnodes", "2", "--ppn", "3", wanted=[(0, 3), (1, 3)])

    def test_hosts_without_slots_and_gpus_take_one_rank_each(self):
        self.declare_no_gpus()
        self.check(self.hosts.hostfile(), wanted=[(0, 1), (1, 1), (2, 1)])

    def test_the_order_of_the_file_is_the_order_of_the_ranks(self):
        names = [self.hosts.names[2], self.hosts.names[0]]
        self.check(self.hosts.hostfile(2, names), wanted=[(2, 2), (0, 2)])

    def test_ranks_of_all_hosts_meet_at_the_master_address(self):
        code = """
import os, socket, time
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(("", address[1])) as server:
        server.settimeout(20)
        print(sorted(int(server.accept()[0].recv(9)) for _ in range(5)))
else:
    for _ in range(2000):
        try:
            socket.create_connection(address, 5).sendall(os.environ["RANK"].encode())
            break
        except OSError:
            time.sleep(0.01)
"""
        done = self.launched("--hostfile", self.hosts.hostfile(2), *host_python(code))
        self.assertEqual(done.out, "[1, 2, 3, 4, 5]\n")

    def test_the_dry_run_reaches_no_host(self):
        no_ssh = {"OVERCAP_SSH": "/bin/false"}
        done = self.launched("--dry-run", "--hostfile", self.hosts.hostfile(2), "true", env=no_ssh)
        for name in self.hosts.names:
            self.assertIn(name, done.out)
        self.assert_no_logs()


class NamesThatArePrefixes(LaunchRig):
    def test_each_rank_is_on_its_own_host(self):
        with SshHosts(names=["node1", "node10", "node100"]) as hosts:
            if not hosts.separate:
                self.skipTest("NOT TESTED: no namespaces here, so hosts have no names of their own")
            self.launched("--hostfile", hosts.hostfile([1, 2, 1]), *shell(TELL_PLACE),
                          env={"OVERCAP_SSH": hosts.ssh_program})
        self.assert_places([("node1", 1), ("node10", 2), ("node100", 1)])


class Transport(HostsRig):
    def test_arguments_variables_and_folder_arrive_as_they_are(self):
        value = "two words\nnewline 'quote' \"double\" $HOME `id` \\ end"
        folder = self.project / "a folder's \"name\""
        folder.mkdir()
        code = "import os, sys; print([os.environ['ODD'], os.getcwd(), *sys.argv[1:]])"
        words = ["", "a b", "'$HOME'", "new\nline", "*", "; exit 3"]
        done = self.launched("--hostfile", self.hosts.hostfile(1), "--", *host_python(code, *words), env={"ODD": value},
                             cwd=folder)
        self.assertEqual(done.out, f"{[value, str(folder), *words]}\n")

    def test_no_variables_value_is_on_a_command_line_of_any_host(self):
        secret = "hush-" + self.root.name
        process = self.started("--hostfile", self.hosts.hostfile(1), *shell(f"{TELL_PLACE}; {self.gate()}"), ranks=3,
                               env={"TOKEN": secret})
        lines = self.command_lines() + [str(self.hosts.processes(name)) for name in self.hosts.names]
        self.open_gate()
        self.assertEqual(self.ended_launch(process).status, 0)
        self.assertNotIn(secret, "\n".join(lines))

    def test_streams_of_rank_0_stay_apart_and_every_log_is_here(self):
        speak = 'echo "out $RANK"; echo "err $RANK" >&2'
        done = self.launched("--hostfile", self.hosts.hostfile(2), *shell(speak))
        self.assertEqual((done.out, done.err), ("out 0\n", "err 0\n"))
        for rank in range(6):
            self.assertEqual(sorted(self.rank_log(rank).splitlines()), [b"err %d" % rank, b"out %d" % rank])
            self.assertEqual({stream for _, stream, _ in self.rank_times(rank)}, {1, 2})

    def test_ten_megabytes_per_rank_arrive_whole(self):
        code = """
import os, sys
for n in range(100): sys.stdout.buffer.write((b"%d\\0%06d\\xff" % (int(os.environ["RANK"]), n)) * 10_000)
"""
        done = self.launched("--hostfile", self.hosts.hostfile(1), *host_python(code))
        for rank in range(3):
            wanted = b"".join((b"%d\0%06d\xff" % (rank, n)) * 10_000 for n in range(100))
            self.assertEqual(hashlib.sha256(self.rank_log(rank)).digest(), hashlib.sha256(wanted).digest())
        self.assertEqual(len(done.raw_out), 9_000_000)

    def test_ranks_on_other_hosts_read_the_end_of_their_input(self):
        with open(self.write("input", "for nobody\n"), "rb") as file:
            self.launched("--hostfile", self.hosts.hostfile(1), "cat", stdin=file)
        self.assertEqual([self.rank_log(rank) for rank in range(3)], [b""] * 3)

    def test_twelve_ranks_on_three_hosts_run_again_and_again(self):
        for _ in range(5):
            self.assertLess(self.launched("--hostfile", self.hosts.hostfile(4), "true").seconds, 10)


class Ends(HostsRig):
    def test_a_failing_rank_is_named_with_its_host(self):
        hostfile = self.hosts.hostfile(2)
        done = self.launch("--hostfile", hostfile, *by_rank(r3="echo last words >&2; exit 9", other=STAY))
        self.assertEqual(done.status, 9, str(done))
        self.assertRegex(done.err, r"rank 3\b")
        self.assertIn(self.hosts.names[1], done.err)
        self.assertIn("last words", done.err)
        (attempt,) = self.result_of()["attempts"]
        found = (attempt["cause"], attempt["first_failed_rank"], attempt["host"], attempt["bad_hosts"])
        self.assertEqual(found, ("rank_failed", 3, self.hosts.names[1], []))

    def test_a_rank_killed_by_a_signal_on_another_host_is_told_so(self):
        done = self.launch("--hostfile", self.hosts.hostfile(1), *by_rank(r2="kill -ABRT $$", other=STAY))
        self.assertEqual(done.status, 134, str(done))
        self.assertRegex(done.err, r"rank 2\b.*(SIGABRT|signal 6)")

    def test_deaf_ranks_everywhere_are_killed_after_the_grace_time(self):
        script = by_rank(r0="sleep 0.5; exit 3", other=f"trap '' TERM HUP INT; {STAY}")
        done = self.launch("--hostfile", self.hosts.hostfile(2), "--grace", "1s", *script)
        self.assertEqual(done.status, 3, str(done))
        self.assertLess(done.seconds, 8)

    def test_interrupt_stops_the_ranks_on_all_hosts(self):
        process = self.started("--hostfile", self.hosts.hostfile(2), *shell(f"{TELL_PLACE}; {STAY}"), ranks=6)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ended_launch(process).status, 130)
        self.until_hosts_empty()

    def test_a_warning_reaches_every_rank(self):
        self.check_warning("--hostfile", self.hosts.hostfile(1), ranks=3)

    def test_killing_the_launch_leaves_no_rank_on_any_host(self):
        script = f"trap '' TERM HUP INT; {TELL_PLACE}; {STAY}"
        process = self.started("--hostfile", self.hosts.hostfile(2), "--grace", "1s", *shell(script), ranks=6)
        process.kill()
        process.communicate(timeout=10)
        self.until(lambda: not self.processes(), "the ranks to be gone", 15)
        self.until_hosts_empty(15)

    def test_a_host_that_loses_its_power_is_named_and_the_others_are_stopped(self):
        name = self.hosts.names[1]
        process = self.started("--hostfile", self.hosts.hostfile(2), *shell(f"{TELL_PLACE}; {STAY}"), ranks=6)
        began = time.monotonic()
        self.power_off(name)
        done = self.ended_launch(process, 60)
        self.assertNotEqual(done.status, 0)
        self.assertLess(time.monotonic() - began, 40, "a dead host must be noticed")
        self.assertIn(name, done.err)
        (attempt,) = self.result_of()["attempts"]
        self.assertEqual((attempt["cause"], attempt["bad_hosts"]), ("host_failed", [name]))

    def test_a_command_that_is_missing_on_a_host_is_named(self):
        done = self.launch("--hostfile", self.hosts.hostfile(1), "no-such-command-anywhere")
        self.assertIn(done.status, (2, 126, 127), str(done))
        self.assertIn("no-such-command-anywhere", done.err)


if __name__ == "__main__":
    main()
