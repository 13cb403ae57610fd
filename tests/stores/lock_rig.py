# SPDX-License-Identifier: Apache-2.0
"""What the tests of `overcap store lock` share: commands that leave a trail, and what must hold of trails on every kind of store."""
import os
import signal
import subprocess
import time

from store_rig import PYTHON, StoreRig

LEASE = 15  # seconds, the shortest
# Writes a line with the time every 20 ms, and so does a child of it; ends when the file `NAME.stop` is there.
TRAIL = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
name = sys.argv[1]
child = os.fork() == 0
with open(name + (".child" if child else ""), "a") as trail:
    while not os.path.exists(name + ".stop"):
        trail.write(f"{time.monotonic():.3f}\\n")
        trail.flush()
        time.sleep(0.02)
"""
# Reads a number, waits, writes the next: some are lost unless they are alone.
COUNT = """
import os, sys, time
path, turns = sys.argv[1:]
number = int(open(path).read())
time.sleep(0.03)
open(path, "w").write(str(number + 1))
open(turns, "a").write(os.environ["OVERCAP_LOCK_TURN"] + "\\n")
"""
LOOP = """
import subprocess, sys
for _ in range(int(sys.argv[1])):
    done = subprocess.run(sys.argv[2:], capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
"""


class LockRig(StoreRig):
    """Subclasses give `here(name)`: a location for a lock of this name."""

    def locked(self, where, *argv, env=None, flags=()):
        return self.start("store", "lock", where, "--lease", f"{LEASE}s", *flags, "--", *argv, env=env)

    def trail(self, where, name, env=None, flags=()):
        """Holds the lock and leaves a trail; gives the process when the trail has begun."""
        process = self.locked(where, PYTHON, "-I", "-S", "-c", TRAIL, str(self.facts / name), env=env, flags=flags)
        self.until(lambda: self.begun(name) or process.poll() is not None, f"trail {name}", 90)
        self.assertIsNone(process.poll(), process.poll() is not None and process.stderr.read())
        return process

    def begun(self, name):
        path = self.facts / name
        return path.exists() and path.stat().st_size > 0 and (self.facts / (name + ".child")).exists()

    def times(self, name):
        lines = [(self.facts / each).read_text().splitlines() for each in (name, name + ".child")]
        return sorted(float(line) for part in lines for line in part if line.count(".") == 1 and line)

    def stop_trail(self, name):
        (self.facts / (name + ".stop")).touch()

    def apart(self, first, second):
        """The trail of the first, its child's too, had ended before that of the second began."""
        self.assertLess(self.times(first)[-1], self.times(second)[0])


class LocksHold:
    """What holds on every kind of store; for classes beside LockRig."""

    def test_one_at_a_time(self):
        number, turns = self.facts / "number", self.facts / "turns"
        number.write_text("0")
        argv = [PYTHON, "-I", "-S", "-c", LOOP, str(self.rounds), str(self.binary), "store", "lock", self.here("count"), "--wait", "5m", "--",
                PYTHON, "-I", "-S", "-c", COUNT, str(number), str(turns)]
        crowd = [subprocess.Popen(argv, env=self.env, cwd=self.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
        for each in crowd:
            self.assertEqual(self.finish(each, 200).status, 0)
        self.assertEqual(number.read_text(), str(3 * self.rounds))
        order = [int(line) for line in turns.read_text().split()]
        self.assertEqual(order, sorted(set(order)))

    def test_who_holds_it_is_told(self):
        where = self.here("told")
        self.assertEqual(self.ok("store", "lock", where, "--status").out, "free\n")
        holder = self.trail(where, "a")
        other = self.refused("store", "lock", where, "--no-wait", "--", "true", status=6, says=f", pid {holder.pid}, since 2")
        self.assertIn("is held by ", other.err)
        status = self.overcap("store", "lock", where, "--status")
        self.assertEqual((status.status, status.out.split(",")[1]), (6, f" pid {holder.pid}"))
        told = self.overcap("store", "lock", where, "--status", "--json").json()
        self.assertEqual((told["held"], told["pid"], told["host"]), (True, holder.pid, os.uname().nodename))
        self.stop_trail("a")
        self.assertEqual(self.finish(holder).status, 0)
        self.assertEqual(self.ok("store", "lock", where, "--status").out, "free\n")

    def test_a_killed_holder_takes_its_command_along_and_is_followed(self):
        where = self.here("killed")
        holder = self.trail(where, "a")
        next_one = self.locked(where, PYTHON, "-I", "-S", "-c", TRAIL, str(self.facts / "b"), flags=("--wait", "2m"))
        self.until(lambda: b"held by" in self.said(next_one), "the other to wait")
        killed = time.monotonic()
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
        self.until(lambda: self.begun("b"), "the next one", 60)
        self.apart("a", "b")
        self.assertLess(self.times("a")[-1] - killed, 2)
        # It had renewed at most a sixth of the lease before. (Whole seconds count on Azure.)
        self.assertGreater(self.times("b")[0] - killed, LEASE * 5 / 6 - 1.5)
        self.stop_trail("b")
        next_one.wait(30)
        self.assertEqual(next_one.returncode, 0)

    def test_a_stopped_holder_knows_that_it_has_lost_it(self):
        where = self.here("stopped")
        holder = self.trail(where, "a")
        stopped = time.monotonic()
        holder.send_signal(signal.SIGSTOP)
        next_one = self.trail(where, "b", flags=("--wait", "2m"))
        self.apart("a", "b")
        self.assertLess(self.times("a")[-1] - stopped, LEASE * 5 / 6 + 0.5)
        holder.send_signal(signal.SIGCONT)
        done = self.finish(holder)
        self.assertEqual(done.status, 75, str(done))
        self.assertIn("is lost: ", done.err)
        # It has not disturbed the one that has it now.
        self.assertEqual(self.overcap("store", "lock", where, "--status").status, 6)
        self.stop_trail("b")
        self.assertEqual(self.finish(next_one).status, 0)

    def said(self, process):
        """What it has written to stderr so far."""
        os.set_blocking(process.stderr.fileno(), False)
        return (process.stderr.read() or b"")


class CutOff:
    """For stores on a net: `cut()` takes the way of the holder, `through()`, away from it alone."""

    def other_way(self, where):
        """The same lock, as the holder names it."""
        return where

    def test_a_holder_that_is_cut_off_ends_its_command_in_time(self):
        where = self.here("cut")
        holder = self.trail(self.other_way(where), "a", env=self.through())
        cut = time.monotonic()
        self.cut()
        next_one = self.trail(where, "b", flags=("--wait", "2m"))
        self.apart("a", "b")
        self.assertLess(self.times("a")[-1] - cut, LEASE * 5 / 6 + 0.5)
        done = self.finish(holder, 60)
        self.assertEqual(done.status, 75, str(done))
        self.assertIn("is lost: ", done.err)
        self.stop_trail("b")
        self.assertEqual(self.finish(next_one).status, 0)
