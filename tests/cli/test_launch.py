# SPDX-License-Identifier: Apache-2.0
"""`overcap launch` on this machine: what ranks see, where their output goes, how they end, that nothing stays."""
import hashlib
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import time
import unittest

from launch_rig import STAY, TELL_PLACE, LaunchRig, by_rank
from overcap_rig import main, needs_root, python, shell

DEADLINE_SECONDS = 400


class WhatRanksSee(LaunchRig):
    def test_every_rank_knows_its_place(self):
        self.launched("-n", "4", *shell(TELL_PLACE))
        self.assert_places([(self.here, 4)])

    def test_a_machine_without_gpus_has_one_rank_by_default(self):
        self.declare_no_gpus()
        self.launched(*shell(TELL_PLACE))
        self.assert_places([(self.here, 1)])

    def test_a_machine_has_one_rank_for_each_declared_gpu(self):
        self.declare_gpus(3)
        self.launched(*shell(TELL_PLACE))
        self.assert_places([(self.here, 3)])

    def test_ppn_wins_over_the_gpus(self):
        self.declare_gpus(4)
        self.launched("--ppn", "2", *shell(TELL_PLACE))
        self.assert_places([(self.here, 2)])

    def test_nnodes_of_one_is_this_machine(self):
        self.launched("--nnodes", "1", "--ppn", "2", *shell(TELL_PLACE))
        self.assert_places([(self.here, 2)])

    def test_a_host_file_that_names_this_machine_needs_no_ssh(self):
        for name in ("localhost", self.here):
            with self.subTest(name):
                hosts = self.write("hosts", f"# ours\n\n{name} slots=3\n")
                self.launched("--hostfile", str(hosts), *shell(TELL_PLACE), env={"OVERCAP_SSH": "/bin/false"})
                self.assert_places([(self.here, 3)])

    def test_variables_of_an_outer_launch_do_not_get_through(self):
        outer = {"RANK": "17", "WORLD_SIZE": "99", "LOCAL_RANK": "5", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}
        self.launched("-n", "2", "--launcher", "local", *shell(TELL_PLACE), env=outer)
        self.assert_places([(self.here, 2)])
        self.assertNotEqual(self.places()[0]["MASTER_ADDR"], "nowhere")

    def test_ranks_meet_at_the_master_address(self):
        code = """
import os, socket
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(address) as server:
        server.settimeout(20)
        print(sorted(server.accept()[0].recv(9) for _ in range(2)))
else:
    import time
    for _ in range(2000):
        try:
            socket.create_connection(address, 5).sendall(os.environ["RANK"].encode())
            break
        except OSError:
            time.sleep(0.01)
"""
        self.assertEqual(self.launched("-n", "3", *python(code)).out, "[b'1', b'2']\n")

    def test_the_master_port_can_be_chosen(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.launched("-n", "2", "--master-port", str(port), *shell(TELL_PLACE))
        self.assertEqual({place["MASTER_PORT"] for place in self.places().values()}, {str(port)})

    def test_two_launches_at_once_have_different_ports(self):
        first = self.started("-n", "1", *shell(f"{TELL_PLACE}; {self.gate()}"), ranks=1)
        one = self.places()[0]["MASTER_PORT"]
        self.assertNotEqual(one, self.launched_port())
        self.open_gate()
        self.assertEqual(self.ended_launch(first).status, 0)

    def launched_port(self):
        return self.overcap("launch", "-n", "1", *shell('echo "$MASTER_PORT"')).out.strip()

    def test_arguments_arrive_as_they_are(self):
        words = ["a b", "", "'\"\\$HOME`id`", "new\nline", "-n", "--", "--tee", "*"]
        code = "import os, sys; print([os.fsencode(word) for word in sys.argv[1:]])"
        raw = os.fsdecode(b"\xff\xfe")
        done = self.launched("-n", "2", "--", *python(code, *words, raw))
        self.assertEqual(done.out, f"{[os.fsencode(word) for word in [*words, raw]]}\n")

    def test_flags_after_the_command_are_the_commands_own(self):
        self.assertEqual(self.launched("-n", "1", "echo", "-n", "5", "--dry-run").out, "5 --dry-run")

    def test_the_environment_and_the_folder_are_the_callers(self):
        value = "two words\nnewline 'quote' $HOME"
        folder = self.project / "a folder"
        folder.mkdir()
        code = "import os; print(repr(os.environ['ODD']), os.getcwd())"
        done = self.launched("-n", "1", *python(code), env={"ODD": value}, cwd=folder)
        self.assertEqual(done.out, f"{value!r} {folder}\n")

    def test_a_variables_value_is_on_no_command_line_and_in_no_file(self):
        secret = "hush-" + self.root.name
        process = self.started("-n", "2", *shell(f"{TELL_PLACE}; {self.gate()}"), ranks=2, env={"TOKEN": secret})
        lines = self.command_lines()
        self.open_gate()
        self.assertEqual(self.ended_launch(process).status, 0)
        self.assertGreaterEqual(len(lines), 3)
        self.assertNotIn(secret, "\n".join(lines))
        for path in self.home.rglob("*"):
            if path.is_file():
                self.assertNotIn(secret.encode(), path.read_bytes(), path)

    def test_many_ranks_need_no_higher_limit_of_open_files_and_see_the_callers(self):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
        for launcher in ("local", "ssh"):
            with self.subTest(launcher):
                self.launched("-n", "48", "--launcher", launcher, *shell("ulimit -Sn"))
                self.assertEqual({self.rank_log(rank) for rank in range(48)}, {b"128\n"})

    def test_stdin_goes_to_rank_0_and_the_others_see_its_end(self):
        process = self.start("launch", "-n", "3", *shell('cat > "$FACTS/in-$RANK"'), stdin=subprocess.PIPE)
        process.stdin.write(b"hello\nranks")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.ended_launch(process).status, 0)
        self.assertEqual([(self.facts / f"in-{rank}").read_bytes() for rank in range(3)], [b"hello\nranks", b"", b""])


class WhereOutputGoes(LaunchRig):
    SPEAK = 'echo "out $RANK"; echo "err $RANK" >&2'

    def test_rank_0_is_on_the_terminal_with_its_streams_apart(self):
        done = self.launched("-n", "4", *shell(self.SPEAK))
        self.assertEqual((done.out, done.err), ("out 0\n", "err 0\n"))

    def test_tee_all_shows_whole_lines_of_all_ranks_with_their_rank(self):
        lines = "i=0; while [ $i -lt 50 ]; do printf 'from-'; printf '%s\\n' $RANK; i=$((i+1)); done"
        done = self.launched("-n", "4", "--tee", "all", *shell(f'{lines}; echo "err-$RANK" >&2'))
        for stream, pattern, count in ((done.out, r"^\W*(?:rank )?(\d+)\W+from-(\d+)$", 50),
                                       (done.err, r"^\W*(?:rank )?(\d+)\W+err-(\d+)$", 1)):
            lines = stream.splitlines()
            self.assertEqual(len(lines), 4 * count, stream)
            for text in lines:
                match = re.match(pattern, text)
                self.assertTrue(match and match[1] == match[2], text)
            for rank in range(4):
                self.assertEqual(sum(text.endswith(f"-{rank}") for text in lines), count)

    def test_tee_all_shows_a_last_line_without_newline(self):
        done = self.launched("-n", "2", "--tee", "all", "printf", "unended")
        self.assertEqual(done.out.count("unended"), 2)
        self.assertEqual(len(done.out.splitlines()), 2, done.out)

    def test_each_rank_has_its_own_log(self):
        self.launched("-n", "4", *shell(self.SPEAK))
        for rank in range(4):
            self.assertEqual(sorted(self.rank_log(rank).splitlines()), [b"err %d" % rank, b"out %d" % rank])

    def test_times_stand_beside_the_log_and_tell_the_streams_apart(self):
        began = time.time() * 1e6
        self.launched("-n", "2", *python("""
import sys, time
for n in range(3):
    print("out", n, flush=True); time.sleep(0.02)
    print("err", n, file=sys.stderr, flush=True); time.sleep(0.02)
"""))
        for rank in range(2):
            log, times = self.rank_log(rank), self.rank_times(rank)
            self.assertEqual(times[0][0], 0)
            self.assertEqual([one[0] for one in times], sorted({one[0] for one in times}))
            ends = [one[0] for one in times[1:]] + [len(log)]
            parts = {1: b"", 2: b""}
            for (offset, stream, when), end in zip(times, ends):
                parts[stream] += log[offset:end]
                self.assertTrue(began - 2e3 <= when <= time.time() * 1e6 + 2e3)
            self.assertEqual(parts, {1: b"out 0\nout 1\nout 2\n", 2: b"err 0\nerr 1\nerr 2\n"})
            stamps = [one[2] for one in times]
            self.assertEqual(stamps, sorted(stamps))
            self.assertGreater(stamps[-1] - stamps[0], 50_000)

    def test_the_folder_says_what_was_started_and_how_it_ended(self):
        self.launched("-n", "2", *shell(self.SPEAK))
        folder = self.folder()
        self.assertRegex(folder.name, r"^[0-9]{8}-[0-9]{6}-[0-9a-z]{6}$")
        record, result = self.record(), self.result_of()
        self.assertEqual(record["id"], folder.name)
        self.assertEqual(record["command"], shell(self.SPEAK))
        self.assertEqual((record["launcher"], record["world_size"], record["folder"]), ("local", 2, str(self.project)))
        self.assertEqual([(host["first_rank"], host["ranks"]) for host in record["hosts"]], [(0, 2)])
        self.assertEqual(result["exit_status"], 0)
        (attempt,) = result["attempts"]
        self.assertEqual((attempt["attempt"], attempt["cause"], attempt["first_failed_rank"]), (1, "done", -1))
        self.assertLess(attempt["started_us"], attempt["ended_us"])
        self.assertEqual(self.mode_of(folder), 0o700)
        for path in folder.rglob("*"):
            self.assertEqual(self.mode_of(path), 0o700 if path.is_dir() else 0o600, path)

    def test_logs_puts_the_folder_elsewhere(self):
        logs = self.root / "kept" / "here"
        self.launched("-n", "2", "--logs", str(logs), *shell(self.SPEAK))
        self.assertEqual(self.rank_log(0, logs=logs).splitlines()[0], b"out 0")
        self.assertEqual(self.result_of(logs)["exit_status"], 0)
        self.assertTrue((logs / "launch.json").exists())

    def test_a_silent_rank_has_an_empty_log_and_no_times(self):
        self.launched("-n", "2", "true")
        self.assertEqual(self.rank_log(1), b"")
        self.assertFalse((self.folder() / "attempt-1" / "rank-1.times").exists())

    def test_output_can_be_read_while_it_runs(self):
        process = self.start("launch", "-n", "2", *shell(f'echo "early $RANK"; {self.gate()}'))
        latest = self.home / "launches" / "latest" / "attempt-1"
        self.until(lambda: (latest / "rank-1.log").exists() and (latest / "rank-1.log").read_bytes() == b"early 1\n",
                   "the log of rank 1")
        self.assertEqual(process.stdout.readline(), b"early 0\n")
        self.open_gate()
        self.assertEqual(self.ended_launch(process).status, 0)

    def test_binary_output_is_kept_byte_for_byte(self):
        code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 100 + b'\\r\\n\\0no newline')"
        wanted = bytes(range(256)) * 100 + b"\r\n\0no newline"
        done = self.launched("-n", "2", *python(code))
        self.assertEqual(done.raw_out, wanted)
        self.assertEqual([self.rank_log(rank) for rank in range(2)], [wanted] * 2)

    def test_fifty_megabytes_per_rank_arrive_whole(self):
        code = """
import os, sys
rank = int(os.environ["RANK"])
for n in range(50):
    sys.stdout.buffer.write((b"%d %06d " % (rank, n)) * 100_000)
"""
        process = self.start("launch", "-n", "3", *python(code))
        shown = hashlib.sha256()
        while block := process.stdout.read(1 << 20):
            shown.update(block)
        self.assertEqual(self.ended_launch(process, 120).status, 0)
        for rank in range(3):
            wanted = hashlib.sha256()
            for n in range(50):
                wanted.update((b"%d %06d " % (rank, n)) * 100_000)
            with open(self.folder() / "attempt-1" / f"rank-{rank}.log", "rb") as file:
                self.assertEqual(hashlib.file_digest(file, "sha256").digest(), wanted.digest())
            if rank == 0:
                self.assertEqual(shown.digest(), wanted.digest())

    def test_a_reader_that_has_left_does_not_stop_the_ranks(self):
        process = self.start("launch", "-n", "2", *shell(f'echo first; {self.gate()}; seq 1 20000; echo last'))
        self.assertEqual(process.stdout.readline(), b"first\n")
        process.stdout.close()
        self.open_gate()
        self.assertEqual(process.wait(30), 0, process.stderr.read())
        process.stderr.close()
        self.assertEqual(self.processes(), [])
        for rank in range(2):
            self.assertTrue(self.rank_log(rank).endswith(b"20000\nlast\n"))

    def test_streams_that_the_caller_has_closed_do_no_harm(self):
        command = [str(self.binary), "launch", "-n", "2", *shell("echo out; echo err >&2; cat")]
        process = subprocess.Popen(shell('exec "$@" <&- >&- 2>&-', *command), env=self.env, cwd=self.project)
        self.assertEqual(process.wait(30), 0)
        for rank in range(2):
            self.assertEqual(sorted(self.rank_log(rank).splitlines()), [b"err", b"out"])

    def test_a_terminal_that_does_not_read_does_not_hold_up_the_ranks(self):
        process = self.start("launch", "-n", "2", *shell('seq 1 200000; touch "$FACTS/through-$RANK"'))
        self.until(lambda: all((self.facts / f"through-{rank}").exists() for rank in range(2)), "ranks to end")
        done = self.ended_launch(process)
        self.assertEqual((done.status, len(done.out.splitlines())), (0, 200_000))

    def small_disk(self):
        small = self.root / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "overcap-e2e", str(small)],
                                 capture_output=True, timeout=20, check=False)
        if mounted.returncode != 0:
            raise unittest.SkipTest(f"NOT TESTED: cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(small)], timeout=20, check=True)
        return small

    @needs_root
    def test_a_reader_that_has_stopped_does_not_keep_a_launch_from_being_stopped(self):
        for tee, where in (("0", ""), ("all", ""), ("0", ">&2")):
            with self.subTest(tee=tee, where=where):
                speak = f"yes $RANK | head -c 8000000 {where}; sleep 60"  # a rank's log has no end else
                process = self.started("-n", "2", "--tee", tee, *shell(f"{TELL_PLACE}; {speak}"), ranks=2)
                self.until(lambda: all(len(self.rank_log(rank)) > 1 << 20 for rank in range(2)),
                           "more output than any pipe takes")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(20), 128 + signal.SIGTERM)
                self.ended_launch(process)
                for place in self.facts.glob("place-*"):
                    place.unlink()

    def test_a_full_disk_is_told_and_does_not_hurt_the_ranks(self):
        self.write("overcap.yaml", "logs: {max: none}\n")  # else a tenth of that disk is the bound of a log
        logs = self.small_disk() / "logs"
        code = "import sys\nfor n in range(400): sys.stdout.write('%09d\\n' % n * 1000)"
        done = self.launched("-n", "2", "--logs", str(logs), *python(code))
        self.assertIn("No space left on device", done.err)
        wanted = b"".join(b"%09d\n" % n * 1000 for n in range(400))
        for rank in range(2):
            kept = self.rank_log(rank, logs=logs)
            self.assertEqual(kept, wanted[:len(kept)])
        self.assertGreater(len(self.rank_log(0, logs=logs)) + len(self.rank_log(1, logs=logs)), 1_000_000)

    @needs_root
    def test_a_limit_of_the_size_of_files_is_told_and_does_not_hurt_the_ranks(self):
        for launcher in ("local", "ssh"):
            with self.subTest(launcher):
                command = [str(self.binary), "launch", "-n", "2", "--tee", "none", "--launcher", launcher,
                           *shell("head -c 300000 /dev/zero")]
                done = subprocess.run(shell('ulimit -f 100; exec "$@"', *command), env=self.env, cwd=self.project,
                                      capture_output=True, timeout=30, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b"File too large", done.stderr)
                self.assertLessEqual(len(self.rank_log(1)), 102_400)

    def test_a_full_disk_is_not_taken_for_silence(self):
        speak = "head -c 3000000 /dev/zero; i=0; while [ $i -lt 15 ]; do echo alive; sleep 0.2; i=$((i+1)); done"
        self.launched("-n", "1", "--timeout", "1s", "--logs", str(self.small_disk() / "logs"), *shell(speak))


class DryRun(LaunchRig):
    patience = 3  # the process that collects output beside an MPI's ranks ends on its own

    def test_it_starts_nothing_and_keeps_nothing(self):
        done = self.launched("--dry-run", "-n", "3", *shell('touch "$FACTS/ran"'))
        self.assertFalse((self.facts / "ran").exists())
        self.assert_no_logs()
        self.assertIn("touch", done.out)

    def test_it_prints_the_very_command_of_a_launcher(self):
        for name in ("mpirun.openmpi", "mpiexec.hydra"):
            if not pathlib.Path("/usr/bin", name).exists():
                raise unittest.SkipTest(f"NOT TESTED: {name} is not installed")
            with self.subTest(name):
                folder = self.root / f"bin-{name}"
                self.write("mpiexec", f'#!/bin/sh\nexec /usr/bin/{name} "$@"\n', mode=0o755, base=folder)
                env = {"PATH": f"{folder}:{self.env['PATH']}"}
                logs = self.root / f"logs-{name}"
                flags = ["-n", "2", "--launcher", "mpiexec", "--logs", str(logs)]
                printed = self.launched("--dry-run", *flags, "echo", "a b", env=env).out
                self.assertFalse(logs.exists())
                self.launched(*flags, "echo", "a b", env=env)
                words = self.record(logs)["launch_command"]
                self.assertIn("rank", words)
                position = 0
                for word in words:
                    position = printed.find(word, position)
                    self.assertGreaterEqual(position, 0, f"{word!r} of {words} is not in: {printed}")

    def test_launcher_args_reach_the_launcher_and_only_so(self):
        if not pathlib.Path("/usr/bin/mpirun.openmpi").exists():
            raise unittest.SkipTest("NOT TESTED: Open MPI is not installed")
        flags = ["--dry-run", "-n", "2", "--launcher", "mpirun"]
        done = self.launched(*flags, "--launcher-args", "--tag-output --report-bindings", "true")
        self.assertRegex(done.out, r"--tag-output\s+.*--report-bindings")
        self.refuse(*flags, "--tag-output", "true", says="--tag-output")


class HowItEnds(LaunchRig):
    def test_the_exit_status_is_that_of_the_first_rank_to_fail(self):
        lines = "; ".join(f"echo line-{n:02d}" for n in range(1, 31))
        done = self.launch("-n", "4", *by_rank(r2=f"{lines}; exit 7", other=STAY))
        self.assertEqual(done.status, 7, str(done))
        self.assertLess(done.seconds, 5)
        self.assertRegex(done.err, r"rank 2\b")
        self.assertIn(self.here, done.err)
        self.assertRegex(done.err, r"status 7\b")
        self.assertIn("line-11", done.err)
        self.assertIn("line-30", done.err)
        self.assertNotIn("line-10", done.err)
        (attempt,) = self.result_of()["attempts"]
        found = (attempt["cause"], attempt["exit_status"], attempt["first_failed_rank"])
        self.assertEqual(found, ("rank_failed", 7, 2))

    def test_a_rank_that_fails_because_it_was_stopped_is_not_to_blame(self):
        done = self.launch("-n", "4", *by_rank(r3="sleep 0.2; exit 5", other=f"trap 'exit 9' TERM; {STAY}"))
        self.assertEqual(done.status, 5, str(done))
        self.assertRegex(done.err, r"rank 3\b")

    def test_a_rank_killed_by_a_signal_is_told_so(self):
        done = self.launch("-n", "3", *by_rank(r1="kill -SEGV $$", other=STAY))
        self.assertEqual(done.status, 128 + signal.SIGSEGV, str(done))
        self.assertRegex(done.err, r"rank 1\b.*(SIGSEGV|signal 11)")
        (attempt,) = self.result_of()["attempts"]
        self.assertEqual((attempt["signal"], attempt["first_failed_rank"]), (signal.SIGSEGV, 1))

    def test_a_rank_that_ends_well_early_stops_nobody(self):
        self.launched("-n", "3", *by_rank(r0="true", other='sleep 0.3; touch "$FACTS/late-$RANK"'))
        self.assertTrue(all((self.facts / f"late-{rank}").exists() for rank in (1, 2)))

    def test_ranks_may_clean_up_within_the_grace_time(self):
        clean = f"trap 'sleep 0.3; touch \"$FACTS/clean-'$RANK'\"; exit 0' TERM; touch \"$FACTS/set-$RANK\"; {STAY}"
        wait = 'while [ ! -e "$FACTS/set-1" ]; do sleep 0.02; done; exit 3'
        self.assertEqual(self.launch("-n", "2", *by_rank(r0=wait, other=clean)).status, 3)
        self.assertTrue((self.facts / "clean-1").exists())

    def test_ranks_that_ignore_term_are_killed_after_the_grace_time(self):
        wait = 'while [ ! -e "$FACTS/set-1" ]; do sleep 0.02; done; exit 3'
        deaf = f"trap '' TERM; touch \"$FACTS/set-1\"; {STAY}"
        done = self.launch("-n", "2", "--grace", "1s", *by_rank(r0=wait, other=deaf))
        self.assertEqual(done.status, 3, str(done))
        self.assertTrue(1 <= done.seconds < 6, done.seconds)

    def test_a_command_that_cannot_be_run_is_named(self):
        self.write("plain", "text", mode=0o644)
        for command in ("no-such-command-anywhere", "./plain", "/nowhere/at/all"):
            with self.subTest(command):
                done = self.launch("-n", "2", command)
                self.assertIn(done.status, (2, 126, 127), str(done))
                self.assertIn(command, done.err)

    def test_descendants_in_sessions_of_their_own_are_ended_too(self):
        escape = "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' >/dev/null 2>&1 &"
        self.assertEqual(self.launch("-n", "2", "--grace", "1s", *shell(f"{escape} sleep 0.2; exit 4")).status, 4)
        self.launched("-n", "2", "--grace", "1s", *shell(f"{escape} sleep 0.2; true"))

    def test_a_child_that_keeps_the_output_open_holds_nobody_up(self):
        done = self.launched("-n", "2", "--grace", "1s", *shell("sleep 100 & echo said"))
        self.assertLess(done.seconds, 10)
        self.assertEqual(done.out, "said\n")

    def test_a_caller_that_ignores_the_ends_of_children_does_no_harm(self):
        for launcher in ("local", "ssh"):
            with self.subTest(launcher):
                code = ("import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
                        "os.execv(sys.argv[1], sys.argv[1:])")
                command = [str(self.binary), "launch", "-n", "2", "--launcher", launcher, *shell("exit 3")]
                done = subprocess.run([*python(code), *command], env=self.env, cwd=self.project,
                                      capture_output=True, timeout=30, check=False)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertNotIn(b"warning", done.stderr)

    def test_interrupt_stops_all_ranks(self):
        process = self.started("-n", "4", *shell(f"{TELL_PLACE}; {STAY}"), ranks=4)
        process.send_signal(signal.SIGINT)
        done = self.ended_launch(process)
        self.assertEqual(done.status, 130, str(done))
        self.assertEqual(self.result_of()["attempts"][0]["cause"], "cancelled")

    def test_a_warning_reaches_every_rank(self):
        self.check_warning("-n", "3", ranks=3)

    def test_a_second_interrupt_does_not_wait_for_the_grace_time(self):
        process = self.started("-n", "2", "--grace", "60s", *shell(f"trap '' TERM INT; {TELL_PLACE}; {STAY}"), ranks=2)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ended_launch(process).status, 130)
        self.assertLess(time.monotonic() - began, 10)

    def test_terminate_and_hangup_stop_all_ranks_too(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                for path in self.facts.glob("place-*"):
                    path.unlink()
                process = self.started("-n", "2", *shell(f"{TELL_PLACE}; {STAY}"), ranks=2)
                process.send_signal(number)
                self.assertEqual(self.ended_launch(process).status, 128 + number)

    def test_what_a_script_began_before_it_became_the_launch_is_left_alone(self):
        command = [str(self.binary), "launch", "-n", "2", *shell("sleep 1000 & echo begun")]
        done = subprocess.run(shell('sleep 100 < /dev/null > /dev/null 2>&1 & echo $!; exec "$@"', *command),
                              env=self.env, cwd=self.project, capture_output=True, timeout=30, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        background = int(done.stdout.split()[0])
        self.assertEqual(self.processes(), [background], self.command_lines())
        os.kill(background, signal.SIGKILL)

    def test_killing_the_launch_leaves_no_rank(self):
        script = f"trap '' TERM INT HUP; {TELL_PLACE}; {STAY}"
        process = self.started("-n", "4", "--grace", "1s", *shell(script), ranks=4)
        process.kill()
        process.wait(10)
        self.until(lambda: not self.processes(), "the ranks to be gone", 10)
        for pipe in (process.stdout, process.stderr):
            pipe.close()
        self.assertFalse((self.folder() / "result.json").exists())

    def test_sixty_four_ranks_of_true_never_hang(self):
        for _ in range(20):
            done = self.launched("-n", "64", "true")
            self.assertLess(done.seconds, 5)

    def test_the_first_of_many_failures_is_blamed(self):
        codes = "sleep 0.$((9 - RANK)); exit $((10 + RANK))"
        done = self.launch("-n", "8", *shell(codes))
        self.assertEqual(done.status, 17, str(done))
        self.assertRegex(done.err, r"rank 7\b")


@needs_root
class OutOfMemory(LaunchRig):
    def setUp(self):
        super().setUp()
        base = pathlib.Path("/sys/fs/cgroup/memory")
        self.group = base / self.root.name
        try:
            self.group.mkdir()
            (self.group / "memory.limit_in_bytes").write_text(str(150 << 20))
        except OSError as error:
            raise unittest.SkipTest(f"NOT TESTED: no memory control group (version 1) can be had: {error}") from None
        self.addCleanup(self.remove_group)

    def remove_group(self):
        self.until(lambda: not (self.group / "cgroup.procs").read_text(), "the group to be empty")
        self.group.rmdir()

    EAT = python("import time; x = []\nwhile True: x.append(b'x' * (8 << 20)); time.sleep(0.002)")

    def check(self, done):
        self.assertEqual(done.status, 137, str(done))
        self.assertRegex(done.err, r"rank 1\b")
        self.assertRegex(done.err, r"(?i)out of memory|out-of-memory|OOM")
        self.assertTrue(self.result_of()["attempts"][0]["out_of_memory"])

    def test_a_rank_that_the_kernel_kills_for_its_memory_is_told_so(self):
        command = by_rank(r1='exec "$@"', other=STAY)
        process = subprocess.Popen(
            [*shell(f'echo $$ > {self.group}/cgroup.procs; exec "$@"'), str(self.binary), "launch", "-n", "2", *command,
             *self.EAT], env=self.env, cwd=self.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.check(self.ended_launch(process))

    def test_a_plain_kill_is_not_taken_for_it(self):
        process = subprocess.Popen(
            [*shell(f'echo $$ > {self.group}/cgroup.procs; exec "$@"'), str(self.binary), "launch", "-n", "2",
             *by_rank(r1="kill -KILL $$", other=STAY)], env=self.env, cwd=self.project, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        done = self.ended_launch(process)
        self.assertEqual(done.status, 137, str(done))
        self.assertNotRegex(done.err, r"(?i)out of memory|OOM")


if __name__ == "__main__":
    main()
