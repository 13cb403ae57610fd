# SPDX-License-Identifier: Apache-2.0
"""--watch of ls, nodes and usage: in place on a terminal, one table after the other elsewhere; `why` on this machine."""
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time

from overcap_rig import DEADLINE, Rig, main, shell

ENTER, LEAVE = "\033[?1049h", "\033[?25h\033[?1049l"
FRAME = re.compile(r"\033\[\?2026h\033\[H(.*?)\033\[J\033\[\?2026l", re.S)


class Screen:
    """A command with a terminal of its own."""

    def __init__(self, argv, env, cwd, rows=24, columns=80):
        self.master, slave = os.openpty()
        self.resize(rows, columns)
        self.process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.text = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, until, seconds=DEADLINE):
        """What was written once `until` (of it) holds, or the program has ended."""
        end = time.monotonic() + seconds
        while not until(self.text) and time.monotonic() < end:
            if not select.select([self.master], [], [], 0.2)[0]:
                continue
            try:
                more = os.read(self.master, 65536)
            except OSError:  # ended
                break
            self.text += more.decode()
        if not until(self.text):
            raise AssertionError(f"not seen: {self.text!r}")
        return self.text

    def frames(self):
        return [re.sub(r"\033\[[0-9;]*[mK]", "", frame).replace("\r", "").split("\n") for frame in FRAME.findall(self.text)]

    def type(self, keys):
        os.write(self.master, keys)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=DEADLINE)
        os.close(self.master)


class Watch(Rig):
    def screen(self, *words, **size):
        env = {**self.env, "TERM": "xterm-256color"}
        screen = Screen([str(self.binary), *words], env, self.project, **size)
        self.addCleanup(screen.close)
        return screen

    def test_on_a_terminal_it_is_redrawn_in_place_and_ctrl_c_leaves_a_clean_one(self):
        job = self.submit(*shell("sleep 600"))
        screen = self.screen("ls", "--watch")
        screen.read(lambda text: len(FRAME.findall(text)) >= 1)
        self.assertTrue(screen.text.startswith(ENTER), repr(screen.text))
        self.assertIn(job, "\n".join(screen.frames()[0]))
        self.ok("abort", job)
        screen.read(lambda text: "cancelled" in text)  # drawn again by itself
        screen.type(b"\x03")
        self.assertEqual(screen.process.wait(DEADLINE), 130)
        screen.read(lambda text: text.endswith(LEAVE))
        self.assertEqual(screen.text.count(LEAVE), 1)

    def test_a_smaller_window_is_filled_and_not_passed(self):
        self.declare_no_gpus()
        for _ in range(6):
            self.submit("--hold", "--name", "a-rather-long-name-for-a-job", *shell("sleep 600; echo what a long command"))
        screen = self.screen("ls", "--watch", rows=24, columns=120)
        screen.read(lambda text: len(FRAME.findall(text)) >= 1)
        self.assertGreaterEqual(len(screen.frames()[0]), 8)
        screen.resize(4, 40)
        screen.read(lambda text: any(len(frame) == 4 for frame in screen.frames()))
        small = next(frame for frame in screen.frames() if len(frame) == 4)
        self.assertLessEqual(max(map(len, small)), 40, small)
        self.assertRegex(small[-1], r"^… \d+ more lines$")
        screen.process.send_signal(signal.SIGTERM)
        self.assertEqual(screen.process.wait(DEADLINE), 130)
        screen.read(lambda text: text.endswith(LEAVE))

    def test_elsewhere_one_table_follows_the_other(self):
        self.submit("--hold", *shell("true"))
        watcher = self.start("nodes", "--watch")
        self.addCleanup(watcher.kill)
        first = watcher.stdout.readline().decode()
        self.assertRegex(first, r"^NODE +STATE ")
        self.assertNotIn("\033", first)
        watcher.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(watcher).status, 130)

    def test_when_nobody_reads_any_more_it_ends(self):
        watcher = subprocess.Popen([str(self.binary), "usage", "--watch", "--json"], env=self.env, cwd=self.project,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(watcher.stderr.close)
        json.loads(watcher.stdout.readline())
        watcher.stdout.close()
        watcher.wait(DEADLINE)


class OwnMachine(Rig):
    def test_usage_and_nodes_of_this_machine(self):
        self.declare_gpus(4)
        self.submit("--gpus", "2", *shell("sleep 600"))
        self.submit("--gpus", "1", "--hold", *shell("sleep 600"))
        self.until(lambda: json.loads(self.ok("usage", "--json").out)["total"]["gpus"] == 2, "the job to start")
        told = json.loads(self.ok("usage", "--json").out)
        self.assertEqual((told["gpus_total"], told["gpus_free"], told["total"]["waiting_gpus"]), (4, 2, 1))
        self.assertEqual(told["users"][0]["types"], {"a40": 2})
        self.assertIn("2 of 4 GPUs in use; 2 free", self.ok("usage").out)
        (node,) = json.loads(self.ok("nodes", "--json").out)["nodes"]
        self.assertEqual(node["gpus_used"], [{"type": "a40", "count": 2}])
        self.assertRegex(self.ok("nodes").out, r"(?m)^\S+ +\S+ +2/4 a40 ")

    def test_why_a_job_waits_here(self):
        self.declare_gpus(1)
        first = self.submit("--gpus", "1", *shell("sleep 600"))
        self.until_state(first, "running")
        second = self.submit("--gpus", "1", *shell("true"))
        held = self.submit("--hold", *shell("true"))
        self.assertIn("waits for 1 GPU", self.ok("why", second).out)
        self.assertIn("it is running", self.ok("why", first).out)
        self.assertIn(f"overcap release {held}", self.ok("why", held).out)
        self.assertEqual(json.loads(self.ok("why", second, "--json").out)["state"], "queued")
        self.refused("why", "nosuchjob", status=3)


if __name__ == "__main__":
    main()
