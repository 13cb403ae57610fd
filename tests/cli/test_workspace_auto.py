# SPDX-License-Identifier: Apache-2.0
"""The service that saves a workspace by itself: it outlives its starter, keeps its timer, and never gives up quietly."""
import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import subprocess
import time
import unittest

from overcap_rig import Rig, alive, main


class AutoRig(Rig):
    def setUp(self):
        super().setUp()
        self.folder = self.root / "disk" / "work"
        self.write("model.py", "print(1)\n", base=self.folder)
        self.ok("workspace", "create", "work", "--at", str(self.folder), "--adopt")

    def auto(self, *flags, **options):
        return self.ok("workspace", "auto", "work", *flags, "--json", **options).json()

    def state(self):
        (state,) = self.ok("workspace", "auto", "work", "--status", "--json").json()
        return state

    def until_state(self, what, condition):
        last = {}

        def holds():
            last.update(self.state())
            return condition(last)

        try:
            self.until(holds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {last}; {self.log_text()}") from None
        return last

    def log_text(self):
        return "".join(p.read_text() for p in (self.home / "workspaces/work/auto").glob("*.log"))

    def newest(self, path):
        """What the newest snapshot has of a file."""
        return self.overcap("workspace", "cat", "latest", path, cwd=self.folder).out

    def snapshots(self):
        return len(self.ok("workspace", "ls", "--json", cwd=self.folder).json())


class Service(AutoRig):
    def test_it_outlives_the_terminal_and_ends_after_a_last_backup(self):
        master, slave = pty.openpty()
        starter = subprocess.Popen([str(self.binary), "workspace", "auto", "work", "--every", "1h"], cwd=self.folder, env=self.env,
                                   stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.assertEqual(starter.wait(timeout=30), 0)
        os.close(master)
        state = self.until_state("the first backup", lambda s: s["life"] == "runs" and s["doing"] == "waits" and s["saved_us"])
        pid = state["pid"]
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            fields = f.read().rpartition(")")[2].split()
        session, terminal = int(fields[3]), int(fields[4])
        self.assertNotEqual(session, pid)  # leads no session: it can never get a terminal
        self.assertEqual(terminal, 0)
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        for number in (0, 1, 2):
            self.assertNotIn("/dev/pts", os.readlink(f"/proc/{pid}/fd/{number}"))
        self.write("model.py", "print(2)\n", base=self.folder)
        self.assertIn("all is saved", self.ok("workspace", "auto", "work", "--stop").out)
        self.until(lambda: not alive(pid), "the service to end")
        self.assertEqual(self.newest("model.py"), "print(2)\n")
        self.assertEqual(self.state()["life"], "ended")
        self.refused("workspace", "auto", "work", "--stop", status=3)

    def test_there_is_one_per_workspace(self):
        pid = self.auto("--every", "1h")["pid"]
        self.assertIn("already", self.ok("workspace", "auto", "work", "--every", "1h").out)
        self.refused("workspace", "auto", "work", status=6, says="--stop")
        self.refused("workspace", "auto", "work", "--every", "5m", "--foreground", status=6, says="already")
        self.assertEqual(self.state()["pid"], pid)
        self.kill(pid)
        self.until(lambda: self.state()["life"] == "died", "its death to be seen")
        self.assertNotEqual(self.auto("--every", "1h")["pid"], pid)

    def test_without_a_time_it_saves_every_five_minutes(self):
        self.assertEqual(self.auto()["rules"], "every 5m")
        state = self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        self.assertEqual(state["next_why"], "time")
        self.assertAlmostEqual(state["next_us"], state["saved_us"] + 300_000_000, delta=3_000_000)

    def test_a_timer_of_a_second_saves_what_changes(self):
        self.auto("--every", "1s")
        self.write("a", "1\n", base=self.folder)
        self.until(lambda: self.newest("a") == "1\n", "the backup")

    def test_a_warning_makes_it_save_now(self):
        pid = self.auto("--every", "10h")["pid"]
        self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        self.write("a", "1\n", base=self.folder)
        os.kill(pid, signal.SIGUSR1)
        self.until(lambda: self.newest("a") == "1\n", "the backup")
        self.assertTrue(alive(pid))

    def test_rules_that_make_no_sense_are_refused(self):
        for flags in (("--on-change",), ("--every", "1h", "--settle", "1s"), ("--max-delay", "1m"), ("--check", "1h")):
            self.refused("workspace", "auto", "work", *flags, status=2, says="use '--every 5m'")
        self.refused("workspace", "auto", "work", "--reboot", status=2, says="systemd user unit")
        self.refused("workspace", "auto", "work", "--every", "soon", status=2, says="--every")
        self.refused("workspace", "auto", "nosuch", "--every", "1h", status=3)
        self.refused("workspace", "auto", "work", "--status", status=3, says="by itself")


# A `crontab` that keeps what it is given in a file, and speaks as cron's own does.
CRONTAB = """#!/bin/sh
case $1 in
  -l) cat "$E2E_ROOT/crontab" 2>/dev/null || { echo "no crontab for $(id -un)" >&2; exit 1; } ;;
  -) cat > "$E2E_ROOT/crontab" ;;
  *) exit 2 ;;
esac
"""
OTHERS = "# mine\n0 3 * * * true\n@reboot env true # overcap workspace auto 0123\n"


class LinesOfOlderVersions(AutoRig):
    """Before 0.1.0 `workspace auto --reboot` wrote a line into the user's crontab."""
    def setUp(self):
        super().setUp()
        self.crontab = self.root / "crontab"
        self.write("bin/crontab", CRONTAB, mode=0o755, base=self.root)
        self.env["PATH"] = f"{self.root}/bin:{self.env['PATH']}"
        self.workspace_id = json.loads((self.home / "workspaces/work/workspace.json").read_text())["id"]

    def store_line(self, *flags):
        """The line of an older version; returns its command as cron's shell gets it."""
        words = ["env", f"PATH={self.env['PATH']}", f"OVERCAP_HOME={self.home}", str(self.binary), "--cluster", "local", "workspace", "auto",
                 "work", *flags]
        self.crontab.write_text(f"{OTHERS}@reboot {shlex.join(words)} # overcap workspace auto {self.workspace_id}\n")
        return words

    def as_cron(self, words):
        bare = {"HOME": self.env["HOME"], "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin", "E2E_ROOT": str(self.root)}
        return subprocess.run(words, env=bare, cwd="/", stdin=subprocess.DEVNULL, timeout=60, check=True, capture_output=True, text=True)

    def test_a_start_and_a_stop_remove_the_line_and_no_other(self):
        self.store_line("--every", "1h")
        self.assertIn("systemd user unit", self.ok("workspace", "auto", "work", "--every", "1h").err)
        self.assertEqual(self.crontab.read_text(), OTHERS)
        self.store_line("--every", "1h")
        self.assertIn("crontab", self.ok("workspace", "auto", "work", "--stop").err)
        self.assertEqual(self.crontab.read_text(), OTHERS)
        self.store_line("--every", "1h")
        self.ok("workspace", "auto", "work", "--stop")  # nothing runs: to remove the line is enough
        self.assertEqual(self.crontab.read_text(), OTHERS)
        self.refused("workspace", "auto", "work", "--stop", status=3)

    def test_a_start_that_is_refused_keeps_the_line(self):
        self.store_line("--on-change")
        before = self.crontab.read_text()
        self.refused("workspace", "auto", "work", "--on-change", status=2, says="--every 5m")
        self.assertEqual(self.crontab.read_text(), before)

    def test_cron_starts_it_once_more_and_on_change_is_every_five_minutes(self):
        words = self.store_line("--settle", "1s", "--on-change")
        self.assertIn("systemd user unit", self.as_cron(words).stderr)
        self.assertEqual(self.until_state("the first backup", lambda s: s["saved_us"])["rules"], "every 5m")
        self.assertEqual(self.crontab.read_text(), OTHERS)

    def test_a_crontab_that_cannot_be_changed_keeps_nothing_from_starting(self):
        self.store_line("--every", "1h")
        self.write("bin/crontab", CRONTAB.replace('cat > "$E2E_ROOT/crontab"', "{ echo 'disk full' >&2; exit 1; }"), mode=0o755, base=self.root)
        self.assertIn("disk full", self.ok("workspace", "auto", "work", "--every", "1h").err)
        self.assertEqual(self.state()["life"], "runs")


class SystemdUnit(AutoRig):
    """The recipe in docs/manual/workspaces-auto.md."""
    def unit(self):
        manual = pathlib.Path(__file__).resolve().parents[2] / "docs/manual/workspaces-auto.md"
        (unit,) = re.findall(r"```ini\n(.*?)```", manual.read_text(), re.S)
        return unit.replace("%h/.local/bin/overcap", str(self.binary))

    def test_systemd_accepts_it(self):
        if not shutil.which("systemd-analyze"):
            raise unittest.SkipTest("NOT TESTED: no systemd-analyze here")
        file = self.root / "overcap-auto@work.service"
        file.write_text(self.unit())
        done = subprocess.run(["systemd-analyze", "verify", "--user", "--man=no", str(file)], env={**self.env, "XDG_RUNTIME_DIR": str(self.root)},
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_its_command_saves_until_it_is_ended(self):
        (command,) = re.findall(r"^ExecStart=(.*)$", self.unit(), re.M)
        bare = {"HOME": self.env["HOME"], "PATH": "/usr/bin:/bin", "OVERCAP_HOME": str(self.home)}
        service = subprocess.Popen(shlex.split(command.replace("%i", "work")), env=bare, cwd=bare["HOME"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            self.until(lambda: list((self.home / "workspaces/work/auto").glob("*.json")), "it to begin")
            state = self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
            self.assertEqual((state["pid"], state["rules"]), (service.pid, "every 5m"))
            self.write("a", "1\n", base=self.folder)
        finally:
            service.terminate()
            said = service.communicate(timeout=60)[0]
        self.assertEqual(service.returncode, 0)
        self.assertIn("ends: all is saved", said)
        self.assertEqual(self.newest("a"), "1\n")


class Trouble(AutoRig):
    def test_a_store_that_vanishes_is_waited_for(self):
        pid = self.auto("--every", "1s")["pid"]
        self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        away = self.home / "away"
        os.rename(self.home / "store", away)
        self.write("a", "1\n", base=self.folder)
        state = self.until_state("it to fail", lambda s: s["failures"] >= 1)
        self.assertEqual(state["doing"], "paused")
        self.assertTrue(state["error"])
        self.assertIn("failed: ", self.ok("workspace", "auto", "work", "--status").out)
        os.rename(away, self.home / "store")
        os.kill(pid, signal.SIGUSR1)  # else it would try again by itself, a little later
        self.until(lambda: self.newest("a") == "1\n", "the backup")
        self.until_state("the failure to be forgotten", lambda s: s["failures"] == 0)
        self.assertIn("cannot save", self.log_text())
        self.assertIn("reached again", self.log_text())

    def test_without_a_store_it_ends_and_says_what_is_not_saved(self):
        self.auto("--every", "1h")
        self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        os.rename(self.home / "store", self.home / "away")
        self.refused("workspace", "auto", "work", "--stop", status=5, says="could not save", deadline=90)
        self.assertIn("older than the work", self.log_text())

    def test_a_folder_that_is_gone_ends_nothing(self):
        pid = self.auto("--every", "10h")["pid"]
        self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        os.rename(self.folder, self.root / "away")
        os.kill(pid, signal.SIGUSR1)
        self.until(lambda: "cannot save" in self.log_text(), "it to say so")
        os.rename(self.root / "away", self.folder)
        self.write("a", "1\n", base=self.folder)
        os.kill(pid, signal.SIGUSR1)
        self.until(lambda: self.newest("a") == "1\n", "the backup")


class Allocations(AutoRig):
    def test_before_the_end_of_a_slurm_job_it_saves_and_the_jobs_log_says_so(self):
        log = self.root / "job.log"
        end = int(time.time()) + 3600
        with open(log, "wb") as out:
            service = subprocess.Popen([str(self.binary), "workspace", "auto", "work", "--every", "10h", "--margin", "3590s"],
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       env={**self.env, "SLURM_JOB_ID": "4711", "SLURM_JOB_END_TIME": str(end)})
        self.assertEqual(service.wait(timeout=30), 0)
        state = self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        self.assertEqual((state["job"], state["job_end_us"]), ("4711", end * 1_000_000))
        self.write("a", "1\n", base=self.folder)
        self.until(lambda: self.newest("a") == "1\n", "the backup before the end")
        self.until(lambda: "the allocation ends soon" in self.log_text(), "its log to say why")  # after the snapshot is there
        os.kill(state["pid"], signal.SIGTERM)
        self.until(lambda: "all is saved" in log.read_text(), "the job's log to say so")

    def test_a_held_allocation_that_ends_lets_its_workspaces_save_themselves(self):
        self.declare_no_gpus()
        self.ok("alloc", "--gpus", "0", "--name", "dev", "--time", "1h")
        (job,) = [entry["job"] for entry in self.ok("alloc", "list", "--json").json()]
        self.until(lambda: b"is held" in self.log(job) if (self.home / "jobs" / job / "attempt-1/rank-0.log").exists() else False,
                   "the allocation")
        self.ok("workspace", "auto", "work", "--every", "10h", env={"OVERCAP_JOB_ID": job})
        state = self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        self.assertEqual(state["job"], job)
        with open(f"/proc/{state['pid']}/stat", encoding="ascii") as f:
            parent = int(f.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{parent}/cmdline", "rb") as f:
            self.assertIn(b"hold-allocation", f.read())  # so it does not end with the shell that asked for it
        self.write("a", "1\n", base=self.folder)
        self.ok("release", "dev")
        self.until_state("the service to end", lambda s: s["life"] == "ended")
        self.assertEqual(self.newest("a"), "1\n")
        self.assertIn(b"workspace 'work': all is saved", self.log(job))


if __name__ == "__main__":
    main()
