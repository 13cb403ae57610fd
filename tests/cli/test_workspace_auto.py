# SPDX-License-Identifier: Apache-2.0
"""The service that saves a workspace by itself: it outlives its starter, hears of changes, and never gives up quietly."""
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import time
import unittest

from overcap_rig import Rig, alive, main, needs_root


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
        self.refused("workspace", "auto", "work", "--on-change", status=6, says="--stop")
        self.refused("workspace", "auto", "work", "--every", "5m", "--foreground", status=6, says="already")
        self.assertEqual(self.state()["pid"], pid)
        self.kill(pid)
        self.until(lambda: self.state()["life"] == "died", "its death to be seen")
        self.assertNotEqual(self.auto("--every", "1h")["pid"], pid)

    def test_changes_are_saved_a_moment_after_they_are_made(self):
        self.auto("--on-change", "--settle", "1s")
        state = self.until_state("it to watch", lambda s: s["doing"] == "waits" and s["watch"])
        self.assertEqual(state["work"], "saved")
        before = self.snapshots()
        self.write("new/deep/er.txt", "fresh\n", base=self.folder)
        self.until(lambda: self.newest("new/deep/er.txt") == "fresh\n", "the change to be saved")
        self.write("new/deep/er.txt", "again\n", base=self.folder)
        self.until(lambda: self.newest("new/deep/er.txt") == "again\n", "the change of a new folder's file to be saved")
        os.rename(self.folder / "new", self.folder / "moved")
        self.until(lambda: self.newest("moved/deep/er.txt") == "again\n", "the moved folder to be saved")
        self.until_state("all to be saved", lambda s: s["work"] == "saved" and s["doing"] == "waits")
        self.assertLessEqual(self.snapshots(), before + 6)  # not one for each event

    def test_the_clock_alone_is_enough(self):
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
        self.refused("workspace", "auto", "work", status=2, says="--every")
        self.refused("workspace", "auto", "work", "--every", "1h", "--on-change", status=2)
        self.refused("workspace", "auto", "work", "--every", "soon", status=2, says="--every")
        self.refused("workspace", "auto", "work", "--every", "1h", "--settle", "1s", status=2, says="--settle")
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
# In a mount namespace of its own, with nothing of the machine's cron: the crontab is put in, the service is killed as by a power cut, cron starts.
BOOT = """
mount -t tmpfs none /var/spool/cron && mkdir -m 1730 /var/spool/cron/crontabs && chgrp crontab /var/spool/cron/crontabs || exit 1
mount -t tmpfs none /run && mount -t tmpfs none /etc/cron.d && mount --bind /dev/null /etc/crontab || exit 1
told=$("$1" workspace auto work --every 1h --reboot --json) || exit 1
echo "$told"
crontab -l >&2
kill -9 "$(echo "$told" | sed -n 's/.*"pid": *\\([0-9]*\\).*/\\1/p')" || exit 1
exec timeout 20 cron -f
"""


class Reboot(AutoRig):
    def setUp(self):
        super().setUp()
        self.crontab = self.root / "crontab"
        self.crontab.write_text("# mine\n0 3 * * * true\n")
        self.write("bin/crontab", CRONTAB, mode=0o755, base=self.root)
        self.env["PATH"] = f"{self.root}/bin:{self.env['PATH']}"

    def cut_power(self, pid):
        self.kill(pid)
        self.until(lambda: not alive(pid), "it to be gone")

    def own_line(self):
        lines = self.crontab.read_text().splitlines()
        self.assertEqual(lines[:2], ["# mine", "0 3 * * * true"])
        return lines[2:]

    def test_a_line_in_the_crontab_starts_it_again_until_it_is_stopped(self):
        pid = self.auto("--every", "1h", "--reboot")["pid"]
        (line,) = self.own_line()
        self.assertIn("already", self.ok("workspace", "auto", "work", "--every", "1h", "--reboot").err)
        self.assertEqual(self.own_line(), [line])
        self.cut_power(pid)
        words = line.removeprefix("@reboot ").replace("\\%", "%")
        bare = {"HOME": self.env["HOME"], "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin", "E2E_ROOT": str(self.root)}  # as cron has it
        subprocess.run(["/bin/sh", "-c", words], env=bare, cwd="/", timeout=30, check=True, capture_output=True)
        state = self.until_state("the first backup", lambda s: s["life"] == "runs" and s["saved_us"] and s["doing"] == "waits")
        self.assertNotEqual(state["pid"], pid)
        self.assertEqual(state["rules"], "every 1h")
        self.cut_power(state["pid"])
        self.auto("--on-change", "--reboot")  # other rules take the place of the old ones
        self.assertIn("--on-change", self.own_line()[0])
        self.assertEqual(len(self.own_line()), 1)
        self.assertIn("no longer started after a reboot", self.ok("workspace", "auto", "work", "--stop").err)
        self.assertEqual(self.own_line(), [])

    def test_it_can_be_taken_back_where_nothing_runs(self):
        pid = self.auto("--every", "1h", "--reboot")["pid"]
        self.until_state("the first backup", lambda s: s["saved_us"])
        self.cut_power(pid)
        self.ok("workspace", "auto", "work", "--stop")
        self.assertEqual(self.own_line(), [])
        self.refused("workspace", "auto", "work", "--stop", status=3)

    def test_what_cannot_be_done_is_told_before_anything_is_started(self):
        rules = ("workspace", "auto", "work", "--every", "1h", "--reboot")
        self.refused(*rules, "--foreground", status=2, says="--reboot")
        self.refused(*rules, status=2, says="job", env={**self.env, "SLURM_JOB_ID": "7"})
        self.write("bin/crontab", "#!/bin/sh\necho 'You (ann) are not allowed to use this program (crontab)' >&2\nexit 1\n", mode=0o755,
                   base=self.root)
        self.refused(*rules, status=4, says="You (ann) are not allowed")
        (self.root / "bin/crontab").unlink()
        self.refused(*rules, status=3, says="crontab", env={**self.env, "PATH": str(self.root / "bin")})
        self.assertEqual(self.own_line(), [])
        self.refused("workspace", "auto", "work", "--stop", status=3)

    @needs_root
    def test_a_real_cron_starts_it(self):
        if not all(map(shutil.which, ("cron", "crontab", "unshare"))):
            raise unittest.SkipTest("NOT TESTED: no cron here")
        (self.root / "bin/crontab").unlink()
        cron = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", BOOT, "sh", str(self.binary)], env=self.env,
                                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            first = json.loads(cron.stdout.readline())["pid"]
            self.until_state("cron to start it", lambda s: s["life"] == "runs" and s["pid"] != first and s["saved_us"])
        finally:
            cron.terminate()
            said = cron.communicate(timeout=30)[1]
        self.assertIn("@reboot env PATH=", said)


class Trouble(AutoRig):
    def test_a_store_that_vanishes_is_waited_for(self):
        pid = self.auto("--on-change", "--settle", "1s")["pid"]
        self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        away = self.home / "away"
        os.rename(self.home / "store", away)
        self.write("a", "1\n", base=self.folder)
        state = self.until_state("it to fail", lambda s: s["failures"] >= 1)
        self.assertEqual((state["doing"], state["work"]), ("paused", "newer"))
        self.assertTrue(state["error"])
        self.assertIn("older than the work", self.ok("workspace", "auto", "work", "--status").out)
        os.rename(away, self.home / "store")
        os.kill(pid, signal.SIGUSR1)  # else it would try again by itself, a little later
        self.until(lambda: self.newest("a") == "1\n", "the backup")
        self.until_state("the failure to be forgotten", lambda s: s["failures"] == 0 and s["work"] == "saved")
        self.assertIn("cannot save", self.log_text())
        self.assertIn("reached again", self.log_text())

    def test_without_a_store_it_ends_and_says_what_is_not_saved(self):
        self.auto("--every", "1h")
        self.until_state("the first backup", lambda s: s["saved_us"] and s["doing"] == "waits")
        os.rename(self.home / "store", self.home / "away")
        self.refused("workspace", "auto", "work", "--stop", status=5, says="could not save", deadline=90)
        self.assertIn("older than the work", self.log_text())

    def test_a_folder_that_is_gone_ends_nothing(self):
        pid = self.auto("--on-change", "--settle", "1s")["pid"]
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
