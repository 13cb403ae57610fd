# SPDX-License-Identifier: Apache-2.0
"""Ranks of this machine write their logs themselves: whose bytes are whose, what harms a log, what it costs."""
import os
import signal
import stat
import subprocess
import time
import unittest

from launch_rig import TELL_PLACE, LaunchRig
from overcap_rig import main, needs_root, python, shell

DEADLINE_SECONDS = 200
NOBODY = 65534
# `seen TEXT` waits until the rank's own log holds it.
SEEN = 'seen() { until grep -q "$1" /proc/$$/fd/1; do sleep 0.01; done; }; '
STDOUT_IS = ('out=$(readlink /proc/$$/fd/1); err=$(readlink /proc/$$/fd/2); '
             'echo "$out" > "$FACTS/out-$RANK"; echo "$err" > "$FACTS/err-$RANK"; ')


class OwnLogs(LaunchRig):
    def streams(self, rank):
        """The stream of each line of the log, as its times tell it."""
        log, times = self.rank_log(rank), self.rank_times(rank)
        streams, at = [], 0
        for line in log.splitlines(keepends=True):
            streams.append((line.decode().strip(), [stream for offset, stream, _ in times if offset <= at][-1]))
            at += len(line)
        return streams

    def fact(self, name):
        return (self.facts / name).read_text().strip()

    def test_stdout_is_the_log_and_stderr_a_pipe(self):
        self.launched("-n", "2", *shell(STDOUT_IS))
        log = self.folder() / "attempt-1" / "rank-1.log"
        self.assertEqual(self.fact("out-1"), str(log))
        self.assertTrue(self.fact("err-1").startswith("pipe:"))
        self.assertEqual(self.mode_of(log), 0o600)

    def test_with_pipes_both_are(self):
        done = self.launched("-n", "2", "--pipes", *shell(STDOUT_IS + "echo out; echo err >&2"))
        self.assertTrue(self.fact("out-1").startswith("pipe:"))
        self.assertEqual((done.out, sorted(self.rank_log(1).splitlines())), ("out\n", [b"err", b"out"]))
        self.assertIn("err\n", done.err)

    def test_the_ranks_of_an_elastic_agent_write_theirs_too(self):
        done = self.launched("--rdzv", "auto", "--nproc-per-node", "2", *shell(STDOUT_IS + "echo out $RANK; echo err >&2"))
        self.assertEqual(self.fact("out-1"), str(self.folder() / "attempt-1" / "rank-1.log"))
        self.assertEqual((done.out, sorted(self.rank_log(1).splitlines())), ("out 0\n", [b"err", b"out 1"]))
        self.launched("--rdzv", "auto", "--nproc-per-node", "1", "--pipes", *shell(STDOUT_IS))
        self.assertTrue(self.fact("out-0").startswith("pipe:"))

    def test_what_came_first_stands_first_and_each_line_has_its_stream(self):
        script = SEEN + "echo o1; echo e1 >&2; seen e1; echo o2; echo e2 >&2; seen e2; echo e3 >&2; seen e3; echo o3"
        done = self.launched("-n", "3", *shell(script))
        wanted = [("o1", 1), ("e1", 2), ("o2", 1), ("e2", 2), ("e3", 2), ("o3", 1)]
        for rank in range(3):
            self.assertEqual(self.streams(rank), wanted)
        self.assertEqual(done.out, "o1\no2\no3\n")
        self.assertIn("e1\ne2\ne3\n", done.err)

    def test_all_ranks_are_shown_by_whole_lines(self):
        code = """
import os
stream = 1 + int(os.environ["RANK"]) % 2
for n in range(3000): os.write(stream, b"half "); os.write(stream, b"line %d\\n" % n)
"""
        done = self.launched("-n", "4", "--tee", "all", *python(code))
        for rank in range(4):
            prefix, shown = f"[{rank}] ", (done.out, done.err)[rank % 2]
            lines = [line for line in shown.splitlines() if line.startswith(prefix)]
            self.assertEqual(lines, [f"{prefix}half line {n}" for n in range(3000)])

    def test_a_line_is_shown_while_its_rank_runs(self):
        process = self.start("launch", "-n", "2", *shell(f"echo hello; {TELL_PLACE}; while :; do sleep 0.05; done"))
        self.assertEqual(process.stdout.readline().strip(), b"hello")
        process.terminate()
        self.ended_launch(process)

    def test_what_a_rank_leaves_behind_writes_on_while_others_run(self):
        script = f"""{SEEN}
if [ $RANK = 0 ]; then (until [ -e "$FACTS/gone" ]; do sleep 0.01; done; echo late; echo late >&2) & exit 0; fi
until ! kill -0 "$(cat "$FACTS/pid-0" 2>/dev/null)" 2>/dev/null; do sleep 0.01; done
touch "$FACTS/gone"
until [ "$(grep -c late "{self.home}/launches/latest/attempt-1/rank-0.log")" = 2 ]; do sleep 0.01; done"""
        done = self.launched("-n", "2", *shell('echo $$ > "$FACTS/pid-$RANK"; ' + script))
        self.assertEqual(sorted(self.streams(0)), [("late", 1), ("late", 2)])
        self.assertEqual(done.out, "late\n")

    def test_a_rank_that_writes_nothing_has_an_empty_log_and_no_times(self):
        self.launched("-n", "2", "true")
        self.assertEqual(self.rank_log(1), b"")
        self.assertEqual(sorted(os.listdir(self.folder() / "attempt-1")), ["rank-0.log", "rank-1.log"])

    def test_the_last_lines_of_a_rank_that_fails_are_told(self):
        # Of rank 1: rank 0 is shown while it runs.
        done = self.launch("-n", "2", *shell('[ "$RANK" = 1 ] || exec sleep 60; seq 1 30; echo the end >&2; exit 3'))
        self.assertEqual(done.status, 3)
        self.assertIn("| 30\n", done.err)
        self.assertIn("| the end\n", done.err)

    # ---- what harms a log

    @needs_root
    def test_root_may_empty_its_log_and_is_told_so(self):
        process = self.start("launch", "-n", "1", *shell(
            "echo first of many words; until [ -e \"$FACTS/go\" ]; do sleep 0.01; done; echo x > /dev/stdout; echo last"))
        self.assertEqual(process.stdout.readline().strip(), b"first of many words")
        (self.facts / "go").touch()
        done = self.ended_launch(process)
        self.assertEqual((done.status, self.rank_log(0)), (0, b"x\nlast\n"))
        self.assertIn("emptied its own log", done.err)
        self.assertEqual([offset for offset, _, _ in self.rank_times(0)][0], 0)

    @needs_root
    def test_nobody_else_empties_it_by_mistake(self):
        self.share_with(NOBODY)
        say = SEEN + "echo first; echo x > /dev/stdout || seen denied; echo err > /dev/stderr; echo last"
        for flags, wanted in (((), ["err", "first", "last"]), (("--pipes",), ["err", "first", "last", "x"])):
            with self.subTest(flags):
                done = subprocess.run([str(self.binary), "launch", *flags, "-n", "1", *shell(say)], env=self.env, user=NOBODY,
                                      group=NOBODY, extra_groups=[], cwd=self.project, capture_output=True, timeout=30,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = [line for line in self.rank_log(0).decode().splitlines() if "denied" not in line]
                self.assertEqual(sorted(lines), wanted)
                self.assertEqual(b"ermission denied" in self.rank_log(0), not flags)

    @needs_root
    def test_a_disk_that_becomes_full_fails_the_rank_as_it_would_any_program(self):
        small, image = self.root / "small", self.root / "image"
        small.mkdir()
        with open(image, "wb") as file:
            file.truncate(1300 << 20)
        made = subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1", str(image)], check=False,
                              capture_output=True, timeout=60)
        if made.returncode == 0:
            made = subprocess.run(["mount", "-o", "loop", str(image), str(small)], check=False, capture_output=True, timeout=60)
        if made.returncode != 0:
            raise unittest.SkipTest(f"NOT TESTED: cannot mount a file system of its own: {made.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(small)], timeout=20, check=True)
        code = """
import os, pathlib, time
print("ready", flush=True); facts = pathlib.Path(os.environ["FACTS"])
while not (facts / "full").exists(): time.sleep(0.01)
for _ in range(100): print("x" * 100000, flush=True)
"""
        process = self.start("launch", "-n", "1", "--logs", str(small / "logs"), *python(code))
        self.assertEqual(process.stdout.readline().strip(), b"ready")
        free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
        with open(small / "filler", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, free - (64 << 10))
        (self.facts / "full").touch()
        done = self.ended_launch(process)
        self.assertEqual(done.status, 1, str(done))
        self.assertIn("No space left on device", done.err)

    def test_a_launch_that_was_killed_leaves_logs_that_can_be_read(self):
        process = self.started("-n", "1", *shell(f"echo kept; {TELL_PLACE}; while :; do sleep 0.05; done"), ranks=1)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        self.until(lambda: not self.processes(), "the rank to end with its launch")
        log = self.folder() / "attempt-1" / "rank-0.log"
        self.assertEqual(stat.S_IMODE(log.stat().st_mode), 0o400)
        self.assertEqual(self.ok("launches", "--rank", "0", "latest").out, "kept\n")
        process.communicate(timeout=20)

    # ---- what it costs

    def test_a_rank_that_writes_without_pause_wakes_the_launch_a_thousand_times_a_second_at_most(self):
        code = """
import os, pathlib, time
end = time.monotonic() + 1
while time.monotonic() < end: os.write(1, b"a line\\n")
(pathlib.Path(os.environ["FACTS"]) / "written").touch()
while not (pathlib.Path(os.environ["FACTS"]) / "counted").exists(): time.sleep(0.01)
"""
        began = time.monotonic()
        with open(os.devnull, "wb") as nowhere:
            process = subprocess.Popen([str(self.binary), "launch", "-n", "1", *python(code)], env=self.env,
                                       cwd=self.project, stdout=nowhere, stderr=nowhere)
        self.until(lambda: (self.facts / "written").exists(), "the rank to write")
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            wakes = int(next(line for line in file if line.startswith("voluntary")).split()[1])
        seconds = time.monotonic() - began
        (self.facts / "counted").touch()
        self.assertEqual(process.wait(20), 0)
        self.assertGreater(len(self.rank_log(0)), 100_000)
        self.assertLess(wakes, 2100 * seconds + 200)


if __name__ == "__main__":
    main()
