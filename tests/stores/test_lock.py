# SPDX-License-Identifier: Apache-2.0
"""`overcap store lock` on a folder: what it passes on, what it refuses, terminals; and what holds on every kind of store."""
import pathlib
import signal
import subprocess
import time

from lock_rig import LockRig, LocksHold
from store_rig import PYTHON, main
from rigs.terminal import SHELL, Terminal

DEADLINE_SECONDS = 300


class OnAFolder(LocksHold, LockRig):
    rounds = 12

    def here(self, name):
        return str(self.root / "locks" / name)

    def test_the_command_is_run_as_it_is(self):
        where = self.here("run")
        done = self.overcap("store", "lock", where, "--", PYTHON, "-c", "import os, sys; print(sys.argv[1:], os.environ['OVERCAP_LOCK_TURN']); sys.exit(7)",
                            "$HOME; *", "--json", "-c", "")
        self.assertEqual((done.status, done.out), (7, "['$HOME; *', '--json', '-c', ''] 1\n"))
        fed = subprocess.run([str(self.binary), "store", "lock", where, "cat"], input=b"through\n", capture_output=True, env=self.env,
                             cwd=self.project, timeout=60, check=False)
        self.assertEqual((fed.returncode, fed.stdout, fed.stderr), (0, b"through\n", b""))
        self.assertEqual(self.overcap("store", "lock", where, "--", "sh", "-c", "kill -9 $$").status, 137)
        self.assertEqual(self.overcap("store", "lock", where, "--", "sh", "-c", "exit 75").err, "")
        for _ in range(3):
            self.ok("store", "lock", where, "true")
        # A lock is a few small objects beside what has its name.
        files = [path for path in pathlib.Path(where + ".lock").iterdir()]
        self.assertIn(len(files), range(1, 11))
        for file in files:
            self.assertLess(file.stat().st_size, 600)
            self.assertNotIn(self.env["HOME"], file.read_text())

    def test_bad_input_is_refused_in_one_line(self):
        where = self.here("bad")
        self.refused("store", "lock", where, says="there is no command to run")
        self.refused("store", "lock", where, "--status", "--", "true", says="--status only looks")
        self.refused("store", "lock", where, "--status", "--no-wait", says="--status only looks")
        self.refused("store", "lock", where, "--wait", "1m", "--no-wait", "--", "true", says="contradict")
        self.refused("store", "lock", where, "--wait", "soon", "--", "true", says="--wait: ")
        for lease in ("14s", "61s", "0"):
            self.refused("store", "lock", where, "--lease", lease, "--", "true", says="--lease: ")
        for place in ("s3://bucket", "az://account/container", "/", self.here("x") + "/"):
            self.refused("store", "lock", place, "--", "true", says="names no lock")
        self.refused("store", "lock", where, "make", "-j4", says="behind '--'")
        self.refused("store", "lock", where, "--", "no-such-command-here", status=127, says="command 'no-such-command-here' does not exist")
        self.refused("store", "lock", where, "--", str(self.write("plain", "x", 0o600)), status=126)
        self.assertFalse((self.root / "locks").exists())
        self.write("file", "in the way")
        self.refused("store", "lock", str(self.project / "file/lock"), "--", "true")

    def test_damage_is_waited_for_and_then_replaced(self):
        where = self.here("damaged")
        self.write("damaged.lock/0000000000000007", "\x1b[2J no record", base=self.root / "locks")
        self.refused("store", "lock", where, "--no-wait", "--", "true", status=6, says="somebody who does not say who")
        self.assertEqual(self.overcap("store", "lock", where, "--status", "--json").json(), {"lock": where, "held": True})

    def test_waiting_ends_in_time_or_with_the_lock(self):
        where = self.here("wait")
        holder = self.trail(where, "a")
        done = self.refused("store", "lock", where, "--wait", "2s", "--", "true", status=6, says="is held by")
        self.assertGreater(done.seconds, 2)
        self.assertLess(done.seconds, 10)
        other = self.locked(where, "true", flags=("--wait", "1m"))
        self.until(lambda: b"held by" in self.said(other), "the other to wait")
        other.send_signal(signal.SIGTERM)
        self.assertEqual(other.wait(10), 143)
        other.communicate()
        other = self.locked(where, "true", flags=("--wait", "1m"))
        self.until(lambda: b"held by" in self.said(other), "the other to wait")
        self.stop_trail("a")
        released = time.monotonic()
        self.assertEqual(other.wait(30), 0)
        other.communicate()
        self.assertLess(time.monotonic() - released, 5)  # nobody waits for a lease that was let go of
        self.assertEqual(self.finish(holder).status, 0)

    def test_signals_reach_the_command(self):
        where = self.here("signals")
        for sig, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGUSR1, 138)):
            holder = self.trail(where, sig.name)
            holder.send_signal(sig)
            self.assertEqual(self.finish(holder).status, status)
            self.until(lambda: self.quiet_for(sig.name), "its child to end, too")
            self.assertEqual(self.ok("store", "lock", where, "--status").out, "free\n")

    def quiet_for(self, name):
        return time.monotonic() - self.times(name)[-1] > 0.5

    def test_at_a_terminal(self):
        where = self.here("terminal")
        holder = self.trail(where, "a")
        with Terminal(SHELL, self.env) as terminal:
            terminal.type(f"{self.binary} store lock {where} -- head -n1")
            terminal.expect(rf"waiting \d+s: held by .*, pid {holder.pid}, since ")
            terminal.keys(b"\x03")
            self.assertEqual(terminal.status(), 130)
            self.stop_trail("a")
            self.finish(holder)
            terminal.type(f"{self.binary} store lock {where} -- bash -c 'echo be''gun; head -n1; echo do''ne'")
            terminal.expect("begun")
            terminal.keys(b"\x1a")  # Ctrl-Z
            terminal.type("typed by hand")
            terminal.expect("typed by hand\r?\n(?s:.*)done")
            self.assertEqual(terminal.status(), 0)
            terminal.type(f"{self.binary} store lock {where} -- bash -c 'echo be''gun; sleep 60; true'")
            terminal.expect("begun")
            terminal.keys(b"\x03")
            self.assertEqual(terminal.status(), 130)
            self.assertEqual(terminal.ask("echo still here").strip(), "still here")
        self.assertEqual(self.ok("store", "lock", where, "--status").out, "free\n")

    def test_everybody_who_was_stopped_ends_when_he_goes_on(self):
        where = self.here("all-stopped")
        holder = self.trail(where, "a")
        everybody = [pid for pid in self.processes() if pid != holder.pid] + [holder.pid]
        for pid in everybody:
            self.kill(pid, signal.SIGSTOP)
        next_one = self.trail(where, "b", flags=("--wait", "2m"))
        before = len(self.times("a"))
        for pid in reversed(everybody):  # the holder first, the guard among the last
            self.kill(pid, signal.SIGCONT)
        done = self.finish(holder)
        self.assertEqual(done.status, 75, str(done))
        self.assertLess(len(self.times("a")) - before, 2 * 0.6 / 0.02)
        self.stop_trail("b")
        self.assertEqual(self.finish(next_one).status, 0)


if __name__ == "__main__":
    main()
