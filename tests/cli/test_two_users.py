# SPDX-License-Identifier: Apache-2.0
"""Two users of one machine cannot read each other's jobs, logs or socket."""
import os
import socket
import struct
import subprocess

from overcap_rig import Rig, main, needs_root, shell

ALICE, BOB = 61001, 61002


def ask(path):
    """Asks an engine for all its jobs, as docs/formats/api.md says."""
    message = b'{"op":"list","all":true}'
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(path)
        s.sendall(struct.pack("<I", len(message)) + message)
        with s.makefile("rb") as replies:
            header = replies.read(4)
            return replies.read(struct.unpack("<I", header)[0]) if len(header) == 4 else header


@needs_root
class TwoUsers(Rig):
    parent = "/tmp"  # both must get there

    def setUp(self):
        super().setUp()
        self.share_with(ALICE)
        self.alice_home = self.home
        self.bob_project = self.root / "bob"
        self.bob_project.mkdir()
        (self.bob_project / "home").mkdir()
        for path in (self.bob_project, self.bob_project / "home"):
            os.chown(path, BOB, BOB)
        self.be(ALICE)

    def be(self, user):
        self.user = user
        if user == ALICE:
            self.home, folder = self.alice_home, self.root / "user"
        else:
            self.home, folder = self.bob_project / "state", self.bob_project / "home"
        self.env = self.environment(folder, self.home)
        self.here = self.project if user == ALICE else self.bob_project

    def tearDown(self):
        for user in (BOB, ALICE):
            self.be(user)
            self.overcap("daemon", "stop", cwd=self.here)
        super().tearDown()

    def as_user(self, user, act):
        """What act() gives, or the name of what it raises, in a child process with the rights of that user."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
                os.write(write, repr(act()).encode()[:60000])
            except BaseException as error:
                os.write(write, type(error).__name__.encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as f:
            text = f.read().decode()
        os.waitpid(child, 0)
        return text

    def test_each_user_has_an_engine_of_their_own(self):
        mine = self.submit(*shell(self.gate()))
        alice_engine = self.daemon_pid()
        self.be(BOB)
        theirs = self.submit("true", cwd=self.here)
        self.assertNotEqual(self.ok("daemon", "status", "--json", cwd=self.here).json()["pid"], alice_engine)
        self.assertEqual([job["id"] for job in self.jobs("ls", "--all", cwd=self.here)], [theirs])
        self.refused("query", mine, status=3, cwd=self.here)
        self.refused("abort", mine, status=3, cwd=self.here)
        self.be(ALICE)
        self.assertEqual(self.job(mine)["state"], "running")
        self.open_gate()

    def test_nobody_else_can_read_jobs_logs_journal_or_code(self):
        self.write("code.py", "secret code")
        os.chown(self.project / "code.py", ALICE, ALICE)
        job = self.run_job("echo", "secret output", env={"TOKEN": "secret"})
        paths = [job["logs"][0]["path"], job["dir"], job["dir"] + "/spec.json", str(self.home / "journal"),
                 str(self.home / "store"), str(self.home / "daemon.log"), str(self.home)]
        for path in paths:
            act = os.listdir if os.path.isdir(path) else lambda path: open(path, "rb").read()
            self.assertEqual(self.as_user(BOB, lambda: act(path)), "PermissionError", path)

    def test_nobody_else_can_connect_to_the_socket(self):
        self.run_job("true")
        path = self.daemon_status()["socket"]
        self.assertEqual(self.as_user(BOB, lambda: ask(path)), "PermissionError")

    def test_even_with_the_folder_open_the_engine_turns_others_away(self):
        job = self.run_job("true")
        path = self.daemon_status()["socket"]
        os.chmod(self.home, 0o755)
        os.chmod(path, 0o777)
        answer = self.as_user(BOB, lambda: ask(path))
        self.assertNotIn(job["id"], answer)
        self.assertIn(answer, ("b''", "ConnectionResetError", "BrokenPipeError"))
        self.assertIn(job["id"], self.as_user(ALICE, lambda: ask(path)), "its owner is let in")
        self.assertEqual(self.job(job["id"])["state"], "succeeded")

    def test_a_home_that_belongs_to_another_user_is_refused(self):
        self.run_job("true")
        self.be(BOB)
        done = self.overcap("ls", cwd=self.here, env={"OVERCAP_HOME": str(self.alice_home)})
        self.assertNotEqual(done.status, 0, str(done))
        self.assertIn(str(self.alice_home), done.err)

    def test_another_user_cannot_join_an_elastic_group(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = ["launch", "--nnodes", "1:2", "--nproc-per-node", "1", "--last-call", "0", "--grow", "now",
                 "--rdzv", f"tcp://127.0.0.1:{port}/theirs", *shell('touch "$FACTS/begun-$(id -u)-$WORLD_SIZE"; ' + self.gate())]
        alice = self.start(*words)
        self.until(lambda: (self.facts / f"begun-{ALICE}-1").exists(), "her rank to run")
        self.be(BOB)
        self.refused(*words, status=4, says="another key", cwd=self.here, deadline=60)
        self.assertEqual(sorted(path.name for path in self.facts.glob("begun-*")), [f"begun-{ALICE}-1"])
        self.be(ALICE)
        self.open_gate()
        done = self.finish(alice)
        self.assertEqual(done.status, 0, str(done))
        self.assertNotIn("epoch 2", done.err)

    def test_the_default_home_is_private_too(self):
        del self.env["OVERCAP_HOME"]
        job_id = self.submit("true")
        home = self.root / "user/.local/state/overcap"
        self.assertEqual(self.mode_of(home), 0o700)
        self.assertTrue((home / "jobs" / job_id / "spec.json").exists())
        self.ended(job_id)
        self.ok("daemon", "stop")

    def test_a_lax_umask_opens_nothing(self):
        process = subprocess.Popen(
            shell('umask 0; exec "$1" submit --wait sh -c "echo x"', str(self.binary)), user=ALICE, group=ALICE,
            extra_groups=[], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.assertEqual(self.finish(process).status, 0)
        job = self.job("last")
        self.assertEqual(self.mode_of(self.home), 0o700)
        for path in (job["dir"], job["dir"] + "/attempt-1"):
            self.assertEqual(self.mode_of(path) & 0o077, 0, path)
        for path in (job["logs"][0]["path"], job["dir"] + "/spec.json", self.home / "journal", self.home / "daemon.log"):
            self.assertEqual(self.mode_of(path) & 0o077, 0, path)


if __name__ == "__main__":
    main()
