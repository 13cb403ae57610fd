# SPDX-License-Identifier: Apache-2.0
"""A person at a terminal: a shell in a pseudo-terminal, typed at and read from.

    with Terminal(argv, env) as terminal:             # argv of an interactive shell
        terminal.type("overcap shell")
        terminal.expect("some text")                  # everything up to there
        status = terminal.status()                    # of the last command
        terminal.keys(b"\\x03")                        # Ctrl-C
        terminal.resize(40, 120)
        terminal.hang_up()                            # the window is closed
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

SHELL = ["bash", "--norc", "--noprofile", "-i"]


class Terminal:
    def __init__(self, argv, env, seconds=30.0):
        self.seconds, self.text, self.questions = seconds, "", 0
        self.master, slave = pty.openpty()
        self.resize(24, 80)

        def lead():
            for number in (signal.SIGINT, signal.SIGQUIT):  # which scripts in the background have ignored
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(argv, env={**env, "PS1": "ready> ", "TERM": "xterm", "HISTFILE": ""}, stdin=slave,
                                        stdout=slave, stderr=slave, preexec_fn=lead)
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.hang_up()

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def keys(self, data):
        os.write(self.master, data)

    def type(self, line):
        self.keys(line.encode() + b"\n")

    def expect(self, pattern, seconds=None):
        """Waits for the regular expression; gives its match and forgets what came before and with it."""
        end = time.monotonic() + (seconds or self.seconds)
        while not (match := re.search(pattern, self.text)):
            left = end - time.monotonic()
            if left <= 0 or not self.read(left):
                raise AssertionError(f"the terminal does not show {pattern!r} but {self.text!r}")
        self.text = self.text[match.end():]
        return match

    def read(self, seconds):
        """False: nothing more will come."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def ask(self, line):
        """What the command prints; $? is that of the one before."""
        self.questions += 1
        mark = f"m{self.questions}"
        self.type(f"s=$?; echo {mark}''b; (exit $s); {line}; echo {mark}''e")
        self.expect(f"{mark}b\r?\n")
        return self.expect(f"((?s:.*?)){mark}e\r?\n")[1].replace("\r", "")

    def status(self):
        return int(self.ask("echo $?"))

    def hang_up(self):
        """Closes the terminal, as a window or a connection that goes; what it started gets SIGHUP."""
        if self.master is None:
            return
        os.close(self.master)
        self.master = None
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
