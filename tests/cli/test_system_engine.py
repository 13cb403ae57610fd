# SPDX-License-Identifier: Apache-2.0
"""One engine for all users of a machine: everybody's jobs run as their own, and nobody touches another's."""
import json
import os
import pwd
import shutil
import signal
import subprocess

from overcap_rig import alive, main, shell
from system_rig import SystemRig

SHOW = r"""
echo uid $(id -u) gid $(id -g) groups $(id -G)
echo limits $(ulimit -Sn) $(ulimit -Hn) umask $(umask)
echo caps $(grep -h -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f2 | sort -u)
echo fds $(ls /proc/self/fd | sort -n | tr '\n' ' ')
echo home $HOME secret [$ROOTS_SECRET] adjust $(cat /proc/self/oom_score_adj)
echo signals $(grep -h SigIgn /proc/self/status | cut -f2)
"""


class RunsAsItsSubmitter(SystemRig):
    def test_a_job_has_its_submitters_ids_groups_limits_and_nothing_of_roots(self):
        done = subprocess.run(
            ["sh", "-c", 'ulimit -Sn 333; ulimit -Hn 777; umask 027; exec "$0" submit --wait sh -c "$1"', str(self.binary), SHOW],
            cwd=self.here, env=self.env, user=self.uid["alice"], group=self.gid["alice"], extra_groups=[self.group_id],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.text_of(self.job("last")["id"])
        uid, gid = self.uid["alice"], self.gid["alice"]
        self.assertIn(f"uid {uid} gid {gid} groups {gid} {self.group_id}\n", text)
        self.assertIn("limits 333 777 umask 0027\n", text)
        self.assertIn("caps 0000000000000000\n", text)
        self.assertIn("fds 0 1 2 3", text)  # the fourth is ls's own
        self.assertIn(f"home {self.here} secret [] adjust 0\n", text)
        self.assertIn("signals 0000000000000000\n", text)

    def test_groups_are_those_of_the_lists_at_the_start_not_what_the_client_had(self):
        """bob's client has root's group for once; his job does not."""
        done = subprocess.run([str(self.binary), "submit", "--wait", "id", "-G"], cwd=self.homes["bob"],
                              env={**self.env, "HOME": str(self.homes["bob"]), "OVERCAP_HOME": "/nonexistent"}, user=self.uid["bob"],
                              group=self.gid["bob"], extra_groups=[0, self.group_id], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.be("bob")
        self.assertEqual(self.text_of(self.job("last")["id"]).split(), [str(self.gid["bob"])])

    def test_a_user_whom_the_lists_do_not_know_is_refused_in_one_line(self):
        home = self.root / "nobody"
        home.mkdir()
        os.chown(home, 61007, 61008)
        done = subprocess.run([str(self.binary), "submit", "true"], cwd=home, env={**self.env, "HOME": str(home)}, user=61007, group=61008,
                              extra_groups=[61009], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("user id 61007 is not in the user list of this machine", done.stderr)
        self.assertFalse((self.state / "users/61007").exists())

    def test_a_job_of_a_user_who_has_left_runs_with_the_ids_of_the_submit(self):
        name = f"ocx{os.getpid()}"
        subprocess.run(["useradd", "-M", "-U", "-d", "/nonexistent", "-s", "/bin/sh", name], check=True, capture_output=True)
        try:
            uid, gid = pwd.getpwnam(name).pw_uid, pwd.getpwnam(name).pw_gid
            home = self.root / "leaver"
            home.mkdir()
            os.chown(home, uid, gid)
            done = subprocess.run([str(self.binary), "submit", "--hold", "-q", "sh", "-c", "id -u; id -g; id -G"], cwd=home,
                                  env={**self.env, "HOME": str(home)}, user=uid, group=gid, extra_groups=[61009],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
        finally:
            subprocess.run(["userdel", name], capture_output=True)
            subprocess.run(["groupdel", name], capture_output=True)
        self.be("root")
        job_id = done.stdout.split()[-1]
        self.ok("release", job_id)
        self.assertEqual(self.ended(job_id)["state"], "succeeded")
        log = self.state / "users" / str(uid) / "jobs" / job_id / "attempt-1/rank-0.log"
        self.assertEqual(log.read_text().split(), [str(uid), str(gid), str(gid), "61009"])

    def test_everything_of_a_job_is_its_submitters_and_private(self):
        job = self.run_job(*shell("echo hello"))
        self.assertTrue(job["dir"].startswith(str(self.area("alice"))), job["dir"])
        for folder, folders, files in os.walk(self.area("alice")):
            for name in [".", *folders, *files]:
                path = os.path.join(folder, name)
                info = os.lstat(path)
                self.assertEqual((info.st_uid, info.st_gid), (self.uid["alice"], self.gid["alice"]), path)
                if not path.startswith(os.path.join(job["dir"], "attempt-1/code")):
                    self.assertEqual(info.st_mode & 0o077, 0, path)
        for name in ("journal", "daemon.log", "claims"):
            self.assertEqual((os.lstat(self.state / name).st_uid, self.mode_of(self.state / name) & 0o077), (0, 0), name)
        self.assertEqual(self.mode_of(self.state), 0o711)

    def test_the_machines_engine_is_the_default_and_the_users_own_is_still_there(self):
        rows = {row["name"]: row for row in self.ok("cluster", "list", "--json").json()}
        self.assertTrue(rows["system"]["default"], rows)
        self.assertEqual(rows["system"]["folder"], str(self.area("alice")))
        self.assertIn("local", rows)

    def test_arrays_resubmits_and_removal_go_as_with_ones_own_engine(self):
        job = self.run_job("--array", "0-3", *shell("echo task $OVERCAP_TASK_ID"))
        self.assertEqual((job["state"], job["tasks"]["succeeded"]), ("succeeded", 4))
        plain = self.run_job(*shell("echo again"))
        again = self.ok("resubmit", plain["id"]).out.split()[-1]
        self.assertEqual(self.ended(again)["state"], "succeeded")
        self.ok("rm", plain["id"], again, job["id"])
        self.assertEqual(self.jobs("ls", "--all"), [])
        self.until(lambda: not os.listdir(self.area("alice") / "trash"), "the trash to be emptied")
        self.assertEqual(os.listdir(self.area("alice") / "jobs"), [])
        self.assertEqual(os.listdir(self.state / "claims"), [])
        self.ok("gc")


class SurvivesAKill(SystemRig):
    def test_running_jobs_are_found_again_and_can_be_stopped_with_all_they_started(self):
        """The job hides a process: a session of its own, no environment, its parent gone."""
        hide = f"setsid env -i sh -c 'echo $$ >{self.facts}/hidden; exec sleep 600' </dev/null >/dev/null 2>&1 & wait $!"
        job_id = self.running(*shell(f"({hide} &) ; echo $$ >{self.facts}/open; {self.gate()}"))
        hidden, shown = int(self.fact("hidden")), int(self.fact("open"))
        self.stop_engine(signal.SIGKILL)
        self.start_engine()
        self.assertEqual(self.job(job_id)["state"], "running")
        self.assertTrue(alive(hidden) and alive(shown))
        self.ok("abort", job_id)
        self.assertEqual(self.ended(job_id)["state"], "cancelled")
        self.until(lambda: not alive(shown) and not alive(hidden), "all of the job to be gone")

    def test_what_ended_while_no_engine_ran_is_known_afterwards(self):
        job_id = self.running(*shell(f"{self.gate()}; exit 7"))
        self.stop_engine(signal.SIGKILL)
        self.open_gate()
        report = self.area("alice") / "jobs" / job_id / "attempt-1/agent-0.jsonl"
        self.until(lambda: report.exists() and b'"end"' in report.read_bytes(), "the agent to end")
        self.start_engine()
        self.assertEqual((self.ended(job_id)["state"], self.job(job_id)["exit_status"]), ("failed", 7))

    def recover(self):
        done = subprocess.run([str(self.binary), "daemon", "recover", "--root", str(self.state)], env=self.environment(self.root, self.root),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def states(self):
        return {job["id"]: (job["state"], job["ended"]) for job in self.jobs("ls", "--all")}

    def test_a_damaged_or_lost_journal_is_mended_from_the_users_areas_without_believing_them_for_others(self):
        ended = self.run_job(*shell("exit 3"))["id"]
        held = self.submit("--hold", *shell('touch "$FACTS/ran"'))
        before = self.states()
        journal = self.state / "journal"
        self.stop_engine()
        lines = journal.read_bytes().splitlines(keepends=True)
        for line in range(1, len(lines)):
            journal.write_bytes(b"".join(lines[:line] + lines[line + 1:]) + b"x\n")
            self.recover()
            self.start_engine()
            states = self.states()
            self.assertEqual(states[ended], before[ended], f"line {line}")
            self.assertIn(states[held][0], ("held", "lost"), f"line {line}: {lines[line]}")
            self.stop_engine()
        area = self.state / "users" / str(self.uid["alice"])
        stolen = area / "jobs" / ended.replace(self.names["alice"], self.names["bob"])
        shutil.copytree(area / "jobs" / ended, stolen)
        journal.unlink()
        told = self.recover()
        self.assertIn(f"{stolen.name}' is left out: it names another user", told)
        self.start_engine()
        self.assertEqual(self.states()[ended], before[ended])
        self.assertEqual(self.states()[held][0], "lost")
        self.assertNotIn(stolen.name, self.states())
        self.assertFalse((self.facts / "ran").exists())

    def test_an_agent_that_its_user_kills_leaves_nothing_behind(self):
        job_id = self.running(*shell(f"echo $$ >{self.facts}/rank; {self.gate()}"))
        rank = int(self.fact("rank"))
        (claim,) = (self.state / "claims" / job_id).iterdir()
        agent = json.loads(claim.read_text())["pid"]
        self.as_user("alice", lambda: os.kill(agent, signal.SIGKILL))
        self.assertEqual(self.ended(job_id)["state"], "lost")
        self.until(lambda: not alive(rank), "the rank to be gone")


class Refusals(SystemRig):
    def test_only_root_can_serve_all(self):
        self.refused("daemon", "--system", "--root", str(self.here / "x"), "--socket", str(self.here / "s"), status=4, says="root")

    def test_a_folder_that_others_can_write_is_refused(self):
        self.be("root")
        folder = self.root / "open"
        folder.mkdir()
        folder.chmod(0o777)
        self.refused("daemon", "--system", "--root", str(folder), "--socket", str(self.root / "other/s"), status=4, says="root alone")

    def test_flags_of_the_machines_engine_need_it(self):
        for words in (["--socket", "/x"], ["--print-unit"]):
            self.refused("daemon", *words, status=2, says="--system")
        self.refused("daemon", "--system", "--socket", "x", status=2, says="absolute")

    def test_the_unit_names_this_program_and_its_flags(self):
        unit = self.ok("daemon", "--system", "--print-unit", "--root", "/srv/overcap").out
        self.assertIn(f"ExecStart={self.binary} daemon --system --root /srv/overcap\n", unit)
        for line in ("KillMode=process", "Delegate=yes", "Restart=always", "WantedBy=multi-user.target"):
            self.assertIn(line + "\n", unit)

    def test_without_the_engine_a_command_says_who_can_start_it(self):
        self.stop_engine()
        done = self.refused("submit", "true", status=5, says="administrator", deadline=90)
        self.assertTrue(25 < done.seconds < 50, f"it tries for half a minute, once: {done.seconds}")
        done = self.refused("ls", status=5, says="administrator", env={"OVERCAP_RETRY": "0"})
        self.assertLess(done.seconds, 10)

    def test_a_socket_of_somebody_else_is_not_believed(self):
        path = self.homes["bob"] / "fake.sock"
        os.chmod(self.homes["bob"], 0o755)
        listener = subprocess.Popen(
            ["python3", "-c", "import socket,os,sys,time\ns=socket.socket(socket.AF_UNIX);s.bind(sys.argv[1]);s.listen(8)\n"
             "os.chmod(sys.argv[1],0o777);print('up',flush=True);time.sleep(60)", str(path)],
            user=self.uid["bob"], group=self.gid["bob"], extra_groups=[], stdout=subprocess.PIPE, env=self.env)
        try:
            listener.stdout.readline()
            self.refused("submit", "true", status=4, says="not root", env={"OVERCAP_SYSTEM_SOCKET": str(path)})
        finally:
            listener.kill()
            listener.wait()
            listener.stdout.close()


if __name__ == "__main__":
    main()
