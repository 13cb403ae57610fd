# SPDX-License-Identifier: Apache-2.0
"""What a user may try against the engine of a machine: nothing of it reaches root, or another user."""
import json
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

from overcap_rig import alive, main, shell
from system_rig import Connection, SystemRig

PRIVATE = ("name", "reason", "command", "snapshot", "source", "workdir", "dir", "logs", "exit_status", "cluster", "after")


class OthersJobs(SystemRig):
    def test_others_see_the_public_row_and_touch_nothing(self):
        job_id = self.running("--name", "secret-name", *shell(f"echo secret-output; {self.gate()} # secret-word"))
        log = self.job(job_id)["logs"][0]["path"]
        self.be("bob")
        record = self.job(job_id)
        self.assertEqual((record["user"], record["state"], record["gpus"]), (self.names["alice"], "running", 1))
        self.assertTrue(record["submitted"] and record["started"])
        self.assertEqual([record[key] for key in PRIVATE], [None, None, [], None, None, None, None, [], None, None, []])
        for words in (["query", job_id, "--json"], ["ls", "--all"], ["ls", "--json"], ["ls", "--quiet"], ["why", job_id], ["logs", job_id],
                      ["exec", job_id, "id"], ["resubmit", job_id], ["wait", "--timeout", "1", job_id]):
            done = self.overcap(*words)
            for secret in ("secret-name", "secret-output", "secret-word"):
                self.assertNotIn(secret, done.out + done.err, words)
        for words in (["logs", job_id], ["exec", job_id, "id"], ["resubmit", job_id], ["abort", job_id], ["hold", job_id], ["release", job_id], ["rm", job_id], ["submit", "--after", job_id, "true"],
                      ["submit", "--after-any", job_id, "true"], ["daemon", "stop", "--system"]):
            self.refused(*words, status=4)
        self.refused("abort", "last", status=3)
        self.refused("abort", job_id[-6:], status=3)
        for path in (log, os.path.dirname(log), str(self.area("alice")), str(self.state / "journal"), str(self.state / "claims")):
            act = os.listdir if os.path.isdir(path) else lambda path: open(path, "rb").read()
            self.assertEqual(self.as_user("bob", lambda: len(act(path))), "PermissionError", path)
        self.assertEqual(self.as_user("bob", lambda: os.listdir(self.state)), "PermissionError")
        self.be("alice")
        self.assertEqual(self.job(job_id)["state"], "running")
        self.open_gate()
        self.ended(job_id)
        self.be("bob")
        self.ok("gc", "--older-than", "1s")
        self.be("alice")
        self.assertEqual([job["id"] for job in self.jobs("ls", "--all")], [job_id])

    def test_forged_requests_are_the_senders_own_or_nothing(self):
        victim = self.running(*shell(self.gate()))
        mine = f"{self.names['bob']}_17_0000000"
        spec = {"command": ["id", "-u"], "workdir": "/tmp"}
        forged = {**spec, "id": mine + "1", "user": self.names["alice"], "lab": "theirs", "submitted_us": 1,
                  "owner": {"uid": 0, "gid": 0, "groups": [0], "limits": {"nofile": [9, 9]}}}
        denied = [{**spec, "id": f"{self.names['alice']}_17_00000001"}, {**spec, "id": victim},
                  {**spec, "id": mine + "2", "priority": 5}, {**spec, "id": mine + "3", "replaces": victim},
                  {**spec, "id": mine + "4", "resubmit_of": victim}, {**spec, "id": mine + "5", "after": [{"job_id": victim}]}]
        usage = [{**spec, "id": "../../etc"}, {**spec, "id": mine + "/../x"}, {**spec, "id": mine + "6", "owner": {"uid": -5, "gid": 0}},
                 {**spec, "id": mine + "7", "placement": {"partitions": ["debug"]}}]
        requests = [{"op": "submit", "spec": forged, "machine": {"host": "x", "cpus": 999}, "uid": 0, "user": "root"},
                    *({"op": "submit", "spec": bad} for bad in denied + usage),
                    {"op": "cancel", "ids": [victim], "uid": 0, "user": self.names["alice"]}, {"op": "remove", "ids": [victim]},
                    {"op": "hold", "ids": [victim]}, {"op": "stop"}, {"op": "configure", "machine": {"host": "x", "cpus": 1}},
                    {"op": "status"}]
        replies = self.ask("bob", *requests)
        record = replies[0]["ok"]
        self.assertEqual((record["user"], record["lab"]), (self.names["bob"], None))
        self.assertGreater(record["submitted"], "2020")
        self.assertEqual([reply["error"]["code"] for reply in replies[1:7]], ["denied"] * 6, replies)
        self.assertTrue(all(reply["error"]["code"] in ("denied", "usage", "corrupt") for reply in replies[7:11]), replies)
        self.assertEqual([reply["error"]["code"] for reply in replies[11:16]], ["denied"] * 5, replies)
        self.assertEqual(replies[16]["ok"]["machine"]["cpus"], 8)
        self.be("bob")
        self.assertEqual(self.ended(mine + "1")["state"], "succeeded")
        self.assertEqual(self.text_of(mine + "1"), f"{self.uid['bob']}\n")
        self.be("alice")
        self.assertEqual(self.job(victim)["state"], "running")

    def test_resubmit_is_the_owners_alone(self):
        """The user's copy of the spec would be believed by whoever runs the job again."""
        job_id = self.ended(self.submit("true"))["id"]
        spec = self.area("alice") / "jobs" / job_id / "spec.json"
        text = spec.read_text()
        forged = text.replace(f'"user":"{self.names["alice"]}"', '"user":"root"').replace('"true"', '"id"')
        self.assertNotEqual(forged, text)
        self.as_user("alice", lambda: spec.write_text(forged) and 1)
        self.be("root")
        done = self.overcap("resubmit", job_id)
        self.assertEqual([job["user"] for job in self.jobs("ls", "--all")], [self.names["alice"]], "a job of root's")
        self.assertEqual((done.status, done.out), (4, ""))
        self.assertIn(f"'{self.names['alice']}', who alone can run it again", done.err)
        self.assertIn(f"sudo -H -u {self.names['alice']} overcap resubmit {job_id}", done.err)
        self.refused("resubmit", "--dry-run", job_id, status=4)
        self.as_user("alice", lambda: spec.write_text(text) and 1)
        self.be("alice")
        again = self.ok("resubmit", job_id).out.strip()
        self.assertEqual(self.ended(again)["user"], self.names["alice"])

    def test_the_same_submit_twice_is_one_job_and_another_one_is_refused(self):
        spec = {"id": f"{self.names['bob']}_17_00000001", "command": ["true"], "workdir": "/tmp"}
        first, again, other = self.ask("bob", {"op": "submit", "spec": spec}, {"op": "submit", "spec": spec},
                                       {"op": "submit", "spec": {**spec, "command": ["false"]}})
        self.assertEqual(first["ok"]["id"], again["ok"]["id"])
        self.assertEqual(other["error"]["code"], "conflict")


class Administrators(SystemRig):
    policy = """
labs:
  vision: {{gpus: 2, members: [{alice}, {bob}], admins: [{carl}]}}
  language: {{gpus: 2, members: [{bob}]}}
nodes: {{here: {{gpus: "a40:4", cpus: 8}}}}
"""

    def test_a_labs_administrator_stops_and_holds_its_jobs_and_no_others(self):
        theirs = self.running(*shell(self.gate()))
        self.assertEqual(self.job(theirs)["lab"], "vision")
        self.be("bob")
        self.assertEqual(self.job(self.submit("--hold", "true"))["lab"], "vision")
        other = self.submit("--hold", "--account", "language", "true")
        self.assertEqual(self.job(other)["lab"], "language")
        self.refused("abort", theirs, status=4)
        self.be("carl")
        self.assertEqual(self.job(theirs)["command"], [])
        self.refused("abort", other, status=4)
        self.refused("rm", theirs, status=4)
        self.refused("logs", theirs, status=4, says=self.names["alice"])
        self.ok("abort", theirs)
        self.be("alice")
        job = self.ended(theirs)
        self.assertEqual((job["state"], job["reason"]), ("cancelled", f"cancelled by {self.names['carl']}"))
        self.be("root")
        self.assertEqual(self.job(other)["command"], ["true"])
        self.ok("release", other)
        self.be("bob")
        self.assertEqual(self.ended(other)["state"], "succeeded")

    def test_labs_of_others_and_users_of_none_are_refused(self):
        self.refused("submit", "--account", "language", "true", status=4, says="not in lab 'language'")
        self.refused("submit", "--account", "nolab", "true", status=4, says="--account vision")


class RootsClient(SystemRig):
    """Root's own client does not believe what users wrote: it becomes the owner of a job before it opens anything of it."""

    policy = """
labs:
  vision: {{gpus: 4, members: [{alice}, {bob}]}}
nodes: {{here: {{gpus: "a40:4", cpus: 8}}}}
admins: [{carl}]
"""

    def planted(self, **spec):
        """A job of alice's, taken by the engine, whose spec no client would have sent."""
        job_id = f"{self.names['alice']}_17_{random.randrange(1 << 32):08x}"
        reply = self.ask("alice", {"op": "submit", "spec": {"id": job_id, "command": ["true"], "workdir": "/tmp", "hold": True, **spec}})
        self.assertIn("ok", reply)
        self.ok("abort", job_id)
        self.ended(job_id)
        return job_id

    def precious(self):
        victim = self.root / "precious"
        (victim / "sub").mkdir(parents=True)
        victim.chmod(0o700)
        for name in ("one", "sub/two"):
            (victim / name).write_text("root's\n")
        return victim

    def store_with_a_link(self, victim):
        """A job whose folder in its store is a link to root's."""
        store = self.homes["alice"] / "st"
        job_id = self.planted(store={"at": str(store)})
        self.as_user("alice", lambda: (store / "jobs").mkdir(parents=True, exist_ok=True) or (store / "jobs" / job_id).symlink_to(victim) or 1)
        self.assertTrue((store / "jobs" / job_id).is_symlink())
        return job_id

    def test_exec_runs_nothing_of_the_jobs_as_root(self):
        evil = self.homes["alice"] / "evilbin"
        self.as_user("alice", lambda: evil.mkdir() or 1)
        program = self.write("nvidia-smi", f"#!/bin/sh\nid -u >{self.facts}/pwned\nenv; id -G; ps -o sid= -p $$\n", mode=0o755, base=evil)
        job_id = self.entered(*shell(self.gate()), env={"PATH": f"{evil}:{self.env['PATH']}", "OF_THE_JOB": "yes"})
        self.be("root")
        for verb in ("exec", "ssh"):
            done = self.ok(verb, job_id, "--", program.name, env={"ROOTS_SECRET": "secret-of-root"})
            self.assertEqual(self.fact("pwned").strip(), str(self.uid["alice"]), verb)
            self.assertIn("OF_THE_JOB=yes", done.out)
            self.assertNotIn("secret-of-root", done.out + done.err)
            os.unlink(self.facts / "pwned")
        ids = self.ok("exec", job_id, "--", "id", "-G").out.split()
        self.assertEqual(sorted(ids), sorted([str(self.gid["alice"]), str(self.group_id)]))
        fds = self.ok("exec", job_id, "--", "/bin/sh", "-c", "for f in /proc/self/fd/*; do readlink $f; done; true").out
        self.assertNotIn(str(self.root), fds.replace("/proc", ""))
        self.assertEqual(self.overcap("exec", job_id, "--", "/bin/sh", "-c", "exit 7").status, 7)
        self.assertEqual(self.overcap("exec", job_id, "--", "cat", stdin=self.pipe_of(b"typed\n")).out, "typed\n")
        began = time.monotonic()
        self.ok("exec", job_id, "--", "/bin/sh", "-c", "sleep 60 & exit 0")  # what is left behind holds nobody up
        self.assertLess(time.monotonic() - began, 20)
        for who in ("bob", "carl"):
            self.be(who)
            self.refused("exec", job_id, "--", "true", status=4, says=self.names["alice"])
        self.be("alice")
        self.assertEqual(self.ok("exec", job_id, "--", "id", "-u").out, f"{self.uid['alice']}\n")

    def entered(self, *command, **options):
        """A job that has come so far that others can be run beside it."""
        job_id = self.submit(*command, **options)
        self.until((self.area(self.who) / "jobs" / job_id / "attempt-1/environment").exists, "its environment")
        self.until_state(job_id, "running")
        return job_id

    def pipe_of(self, text):
        read, write = os.pipe()
        os.write(write, text)
        os.close(write)
        self.addCleanup(os.close, read)
        return read

    def test_on_a_terminal_the_command_has_one_of_its_own(self):
        """What it types into its terminal reaches nothing of root's."""
        job_id = self.entered(*shell(self.gate()))
        self.be("root")
        master, slave = os.openpty()
        child = subprocess.Popen([str(self.binary), "ssh", job_id, "--", "/bin/sh", "-c", "tty; id -u; read line; echo got $line"],
                                 env=self.env, cwd=self.here, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        own = os.ttyname(slave)
        os.close(slave)
        text = b""
        try:
            while b"got" not in text.replace(b"got $line", b""):
                self.assertTrue(select.select([master], [], [], 30)[0], text)
                text += os.read(master, 4096)
                if text.endswith(f"{self.uid['alice']}\r\n".encode()):
                    os.write(master, b"hello\r")
        finally:
            status = child.wait(30)
            os.close(master)
        self.assertEqual(status, 0)
        self.assertIn("got hello", text.decode())
        self.assertIn("/dev/pts/", text.decode())
        self.assertNotIn(own + "\r", text.decode())

    def test_rm_of_root_follows_no_link_of_the_owners_and_that_of_administrators_is_refused(self):
        victim = self.precious()
        job_id = self.store_with_a_link(victim)
        folder = self.area("alice") / "jobs" / job_id
        self.be("carl")
        self.refused("rm", job_id, status=4, says=self.names["alice"])
        self.assertTrue(folder.exists())
        self.be("root")
        done = self.overcap("rm", job_id)
        self.refused("query", job_id, status=3)
        self.assertEqual(sorted(os.listdir(victim)), ["one", "sub"], done)
        self.assertEqual(os.listdir(victim / "sub"), ["two"], done)
        self.assertFalse(folder.exists())

    def test_rm_of_root_removes_jobs_of_several_owners(self):
        jobs = [self.planted()]
        self.be("bob")
        jobs.append(self.ended(self.submit("true"))["id"])
        running = self.running(*shell(self.gate()))
        self.be("root")
        self.refused("rm", running, *jobs, status=6)
        self.assertEqual(len(self.ok("query", *jobs, "--json").json()), 2)
        self.assertEqual(sorted(self.ok("rm", *jobs, "--json").json()["removed"]), sorted(jobs))
        for job_id in jobs:
            self.refused("query", job_id, status=3)

    def test_keys_of_root_do_not_travel_to_an_address_of_the_owners(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(0.5)
        port = listener.getsockname()[1]
        keys = {"AZURE_STORAGE_ACCOUNT": "labacct", "AZURE_STORAGE_SAS_TOKEN": "sv=2021&sig=SECRETSIG"}
        for who, verb in (("root", "logs"), ("root", "query"), ("root", "rm"), ("carl", "logs"), ("carl", "query"), ("carl", "rm")):
            self.be("alice")
            job_id = self.planted(store={"at": "az://labacct/cont", "endpoint": f"http://127.0.0.1:{port}"})
            self.be(who)
            client = self.start(verb, job_id, env=keys)
            heard = b""
            end = time.monotonic() + 5
            while client.poll() is None and time.monotonic() < end:
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                connection.settimeout(1)
                heard += connection.recv(65536)
                connection.close()
            client.kill()
            client.communicate()
            self.assertNotIn(b"SECRETSIG", heard, (who, verb))
            if who == "carl":
                self.assertEqual(heard, b"", verb)

    def test_a_log_that_is_a_link_shows_root_nothing_of_roots(self):
        secret = self.write("secret", "line-of-root\n", mode=0o600, base=self.root)
        job_id = self.ended(self.submit("true"))["id"]
        log = self.area("alice") / "jobs" / job_id / "attempt-1/rank-0.log"
        self.as_user("alice", lambda: log.unlink() or log.symlink_to(secret) or 1)
        self.be("root")
        for words in (["logs", job_id], ["query", job_id], ["query", "--json", job_id], ["logs", "-f", job_id], ["logs", "--tail", "1", job_id]):
            done = self.overcap(*words)
            self.assertNotIn("line-of-root", done.out + done.err, words)

    def test_a_strangers_job_in_a_folder_store_shows_root_its_record_only(self):
        secret = self.write("secret", "line-of-root\n", mode=0o600, base=self.root)
        job_id = self.ended(self.submit("true"))["id"]
        spec = (self.area("alice") / "jobs" / job_id / "spec.json").read_text()
        store = self.homes["alice"] / "shared-store"

        def plant():
            attempt = store / "jobs" / job_id / "attempt-1"
            (attempt / "rank-0.log").mkdir(parents=True)
            (store / "jobs" / job_id / "spec.json").write_text(spec)
            (attempt / "agent-0.claim").write_text("{}")
            (attempt / "rank-0.log/0000000000000000").symlink_to(secret)
            return 1

        self.as_user("alice", plant)
        self.be("root")
        for words in (["logs"], ["query"], ["query", "--json"], ["logs", "-f"]):
            done = self.overcap(*words, "--from", str(store), job_id)
            self.assertNotIn("line-of-root", done.out + done.err, words)
        self.refused("logs", "--from", str(store), job_id, status=4, says=self.names["alice"])
        record = self.ok("query", "--json", "--from", str(store), job_id).json()
        self.assertEqual((record["user"], record["dir"], record["logs"]), (self.names["alice"], None, []))

    def test_root_reads_logs_and_records_as_the_owner_and_administrators_have_the_record(self):
        job_id = self.ended(self.submit(*shell("echo out-of-alice; exit 3")))["id"]
        self.be("root")
        self.assertEqual(self.ok("logs", job_id).out, "out-of-alice\n")
        done = self.ok("query", job_id)
        self.assertIn("out-of-alice", done.out)
        self.assertIn("exit status 3", done.out)
        record = self.job(job_id)
        self.assertEqual((record["user"], record["exit_status"]), (self.names["alice"], 3))
        self.assertTrue(record["logs"] and record["dir"])
        self.assertEqual(self.overcap("logs", "-f", job_id).status, 3)
        self.assertEqual(self.ok("logs", "--json", job_id).json()[0]["path"], record["logs"][0]["path"])
        self.be("carl")
        record = self.job(job_id)
        self.assertEqual((record["command"][0], record["exit_status"], record["dir"], record["logs"]), ("/bin/sh", 3, None, []))
        self.assertNotIn("out-of-alice\n", self.ok("query", job_id).out)
        for verb in ("logs", "resubmit"):
            self.refused(verb, job_id, status=4, says=self.names["alice"])

    def test_a_person_who_looks_at_a_job_on_a_terminal_sees_text_only(self):
        text = self.write("text", "\033]0;owned\007\033[2Jhello\n 10%\r 99%\rdone\n", base=self.homes["alice"])
        job_id = self.ended(self.submit("cat", str(text)))["id"]
        for who in ("alice", "root"):
            self.be(who)
            text = self.on_a_terminal("query", "--no-color", job_id)
            self.assertIn("hello", text)
            self.assertIn("done", text)
            for bad in ("\033", "\a", "99%", "owned"):
                self.assertNotIn(bad, text, who)

    def on_a_terminal(self, *words):
        master, slave = os.openpty()
        who = {} if self.who == "root" else {"user": self.uid[self.who], "group": self.gid[self.who], "extra_groups": []}
        child = subprocess.Popen([str(self.binary), *words], env=self.env, cwd=self.here, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, **who)
        os.close(slave)
        text = b""
        try:
            while select.select([master], [], [], 30)[0]:
                text += os.read(master, 65536)
        except OSError:
            pass
        child.wait(30)
        os.close(master)
        return text.decode()


class Areas(SystemRig):
    def plant(self, who, act):
        answer = self.as_user(who, act)
        self.assertNotIsInstance(answer, str, answer)

    def test_links_and_pipes_in_a_users_area_lead_nowhere(self):
        target = self.write("roots-file", "as it was", mode=0o600, base=self.root)
        victim = self.root / "alice/precious"
        victim.write_text("alice's")
        os.chown(victim, self.uid["alice"], self.gid["alice"])
        self.be("bob")
        job_id = self.running(*shell(self.gate()))
        folder = self.area("bob") / "jobs" / job_id

        def replace():
            for name, to in (("events.jsonl", target), ("spec.json", victim)):
                os.unlink(folder / name)
                os.symlink(to, folder / name)
            report = folder / "attempt-1/agent-0.jsonl"
            os.unlink(report)
            os.mkfifo(report)
            return 1

        self.until((folder / "attempt-1/agent-0.jsonl").exists, "the agent's report")
        self.plant("bob", replace)
        self.ok("abort", job_id)
        self.assertIn(self.ended(job_id)["state"], ("lost", "cancelled"))
        self.assertEqual((target.read_text(), victim.read_text()), ("as it was", "alice's"))
        self.ok("rm", job_id)
        self.be("alice")
        self.assertEqual(self.run_job("true")["state"], "succeeded")

    def test_a_folder_of_jobs_that_is_a_link_takes_nothing_anywhere(self):
        self.be("bob")
        self.ok("ls")
        area, elsewhere = self.area("bob"), self.root / "elsewhere"
        elsewhere.mkdir()
        elsewhere.chmod(0o777)
        self.plant("bob", lambda: os.symlink(elsewhere, area / "jobs") or 1)
        reply = self.ask("bob", {"op": "submit", "spec": {"id": f"{self.names['bob']}_17_00000001", "command": ["true"],
                                                          "workdir": "/tmp"}})
        self.assertIn("error", reply)
        self.assertEqual(os.listdir(elsewhere), [])
        self.be("alice")
        self.assertEqual(self.run_job("true")["state"], "succeeded")

    def test_a_claim_that_a_user_writes_signals_nobody(self):
        """Of old the claim in the job's folder said which process is the agent."""
        self.be("alice")
        bystander_job = self.running(*shell(f"echo $$ >{self.facts}/bystander; {self.gate()}"))
        bystander = int(self.fact("bystander"))
        self.be("bob")
        job_id = self.running(*shell(self.gate("other")))
        claim = self.area("bob") / "jobs" / job_id / "attempt-1/agent-0.claim"
        self.until(claim.exists, "the agent's own claim")
        with open(f"/proc/{bystander}/stat", "rb") as f:
            ticks = int(f.read().rpartition(b")")[2].split()[19])
        forged = {**json.loads(claim.read_text()), "pid": bystander, "start_ticks": ticks}
        self.plant("bob", lambda: claim.write_text(json.dumps(forged)))
        self.stop_engine(signal.SIGKILL)
        self.start_engine()
        self.ok("abort", job_id)
        self.assertEqual(self.ended(job_id)["state"], "cancelled")
        self.assertTrue(alive(bystander))
        self.be("alice")
        self.assertEqual(self.job(bystander_job)["state"], "running")

    def test_a_report_that_lies_is_about_its_own_job_only(self):
        self.be("bob")
        job_id = self.running(*shell(f"echo $$ >{self.facts}/rank; {self.gate()}"))
        rank = int(self.fact("rank"))
        report = self.area("bob") / "jobs" / job_id / "attempt-1/agent-0.jsonl"
        lines = [{"e": "end", "t": 1, "state": "succeeded", "exit_status": 0, "signal": 0, "first_failed_rank": -1, "reason": "x" * 9000}]
        (claim,) = (self.state / "claims" / job_id).iterdir()
        agent = json.loads(claim.read_text())["pid"]

        def lie():
            os.kill(agent, signal.SIGKILL)
            report.write_text("".join(json.dumps(line) + "\n" for line in lines))
            return 1

        self.plant("bob", lie)
        self.assertIn(self.ended(job_id)["state"], ("succeeded", "lost"))
        self.until(lambda: not alive(rank), "what it left to be killed, whatever it says")


class FewPlaces(SystemRig):
    """An engine with 64 places, 16 of them for root."""

    wrapper = ("prlimit", "--nofile=128:128")

    def hold(self, who, count, request=None):
        """Connections of that user that stay; how many are open is in a file."""
        child = os.fork()
        if child == 0:
            def act():
                kept = []
                for _ in range(count):
                    connection = Connection(self.socket)
                    if request is not None:
                        connection.send(request)
                    kept.append(connection)
                time.sleep(0.3)
                (self.facts / f"held-{who}").write_text("1\n")
                end = time.monotonic() + 60
                while not os.path.exists(self.facts / "gate") and time.monotonic() < end:
                    time.sleep(0.02)
                return 1

            try:
                self.as_user(who, act)
            finally:
                os._exit(0)
        self.addCleanup(os.waitpid, child, 0)
        self.fact(f"held-{who}")

    def status_of(self, uid):
        """The reply to `status` that a user of that id gets, in a child process."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                os.write(write, json.dumps(Connection(self.socket).ask({"op": "status"})).encode()[:200])
            except OSError as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            text = f.read()
        os.waitpid(child, 0)
        return text

    def test_idle_connections_make_room_and_places_stay_for_root(self):
        held = self.submit("--hold", "true")
        self.hold("bob", 60)
        self.assertIn('"ok"', self.status_of(self.uid["carl"]))
        self.hold("carl", 40)
        self.assertIn('"ok"', self.status_of(self.uid["alice"]))
        wait = {"op": "wait", "ids": [held], "timeout_s": 60}
        self.hold("alice", 40, wait)
        self.assertIn('"ok"', self.status_of(0))
        self.open_gate()

    def test_ids_that_the_user_list_does_not_know_get_one_line_and_no_area(self):
        for uid in (3_000_001, 3_000_002):
            self.assertIn("is not in the user list", self.status_of(uid))
        self.assertEqual([name for name in os.listdir(self.state / "users") if name.startswith("300000")], [])
        for uid in range(3_000_100, 3_000_300):
            self.status_of(uid)
        self.assertIn('"ok"', self.status_of(self.uid["alice"]))


class Stalled(SystemRig):
    flags = ("--stall", "1")

    def test_a_connection_in_the_middle_of_something_that_does_not_move_is_closed_and_an_idle_one_is_not(self):
        def act():
            idle, half, unread = (Connection(self.socket) for _ in range(3))
            idle.ask({"op": "status"})
            half.socket.sendall(struct.pack("<I", 1000) + b"{")
            unread.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.socket.settimeout(0.5)
            try:  # until neither side takes more
                while True:
                    unread.send({"op": "list", "all": True})
            except OSError:
                pass
            closed = half.socket.recv(1) == b""
            gone = select.poll()
            gone.register(unread.socket, select.POLLRDHUP)
            ended = bool(gone.poll(30000))
            return [closed, ended, "ok" in idle.ask({"op": "status"})]

        self.assertEqual(self.as_user("bob", act), [True, True, True])

    def test_the_time_is_said_in_the_unit(self):
        unit = self.ok("daemon", "--system", "--print-unit", "--stall", "7").out
        self.assertIn("daemon --system --stall 7\n", unit)
        self.assertIn("StartLimitIntervalSec=0\n", unit.partition("[Service]")[0])
        self.refused("daemon", "--stall", "7", status=2, says="--system")

    def test_a_program_that_users_can_write_is_not_put_into_the_unit(self):
        self.be("root")
        theirs = self.homes["bob"] / "overcap"
        shutil.copy(self.binary, theirs)
        unit = subprocess.run([str(theirs), "daemon", "--system", "--print-unit"], env=self.env, capture_output=True, text=True)
        self.assertEqual((unit.returncode, unit.stdout), (4, ""))
        self.assertIn(f"'{self.homes['bob']}' can be written by users other than root", unit.stderr)
        self.assertIn("sudo install -m 755", unit.stderr)


if __name__ == "__main__":
    main()
