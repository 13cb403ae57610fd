# SPDX-License-Identifier: Apache-2.0
"""An engine for all users of a machine, with users made for the test (docs/formats/system-engine.md)."""
import contextlib
import grp
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import unittest

from overcap_rig import Rig

HAS_USERADD = os.geteuid() == 0 and all(shutil.which(tool) for tool in ("useradd", "userdel", "groupadd", "groupdel"))


class Connection:
    """A client that speaks the socket's protocol and says whatever it likes."""

    def __init__(self, path, patient=False):
        """Patient: it waits for a place in a full backlog of the socket, as the client does."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(None if patient else 30)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise

    def __del__(self):
        self.socket.close()

    def send(self, payload):
        payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.socket.sendall(struct.pack("<I", len(payload)) + payload)

    def receive(self):
        header = self.take(4)
        return json.loads(self.take(struct.unpack("<I", header)[0]))

    def take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def ask(self, request):
        self.send(request)
        return self.receive()


@unittest.skipUnless(HAS_USERADD, "NOT TESTED: the engine of a machine needs root and useradd")
class SystemRig(Rig):
    """alice and bob, who share a group with nobody but their own, and carl; each with a home of their own."""

    parent = "/tmp"  # all must get there
    policy = None
    flags = ()
    wrapper = ()  # words before the engine's own, such as prlimit's

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.names = {who: f"oc{who[0]}{os.getpid()}" for who in ("alice", "bob", "carl")}
        cls.group = f"ocg{os.getpid()}"
        cls.addClassCleanup(cls.remove_users)
        subprocess.run(["groupadd", cls.group], check=True)
        for name in cls.names.values():
            subprocess.run(["useradd", "-M", "-U", "-d", "/nonexistent", "-s", "/bin/sh", name], check=True, capture_output=True)
        subprocess.run(["usermod", "-a", "-G", cls.group, cls.names["alice"]], check=True, capture_output=True)
        cls.uid = {who: pwd.getpwnam(name).pw_uid for who, name in cls.names.items()}
        cls.gid = {who: pwd.getpwnam(name).pw_gid for who, name in cls.names.items()}
        cls.group_id = grp.getgrnam(cls.group).gr_gid

    @classmethod
    def remove_users(cls):
        for name in cls.names.values():
            subprocess.run(["userdel", name], capture_output=True)
            subprocess.run(["groupdel", name], capture_output=True)
        subprocess.run(["groupdel", cls.group], capture_output=True)

    def setUp(self):
        super().setUp()
        os.chmod(self.root, 0o755)
        self.binary = self.root / "overcap"
        shutil.copy(self.__class__.source_binary(), self.binary)
        os.chmod(self.facts, 0o777)
        self.state = self.root / "lib"
        self.socket = self.root / "run/daemon.sock"
        self.homes = {}
        for who in self.uid:
            self.homes[who] = self.root / who
            self.homes[who].mkdir()
            os.chown(self.homes[who], self.uid[who], self.gid[who])
        self.engine = None
        self.start_engine()
        self.be("alice")

    @staticmethod
    def source_binary():
        import overcap_rig
        return overcap_rig.BINARY

    def tearDown(self):
        self.stop_engine()
        super().tearDown()

    def stop_everything(self):
        self.home = pathlib.Path("/nonexistent")  # there is no engine of one user
        super().stop_everything()
        ours = tuple(f"overcap-{name}_" for name in self.names.values())
        for parent, names, _ in os.walk("/sys/fs/cgroup", topdown=False):  # it goes on where others' groups vanish meanwhile
            for name in names:
                if name.startswith(ours):  # jobs that ended with no engine there leave empty groups
                    with contextlib.suppress(OSError):
                        os.rmdir(os.path.join(parent, name))

    # ---- the engine

    def start_engine(self):
        words = ["daemon", "--system", "--root", str(self.state), "--socket", str(self.socket), *self.flags]
        if self.policy:
            file = self.write("policy.yaml", self.policy.format(**self.names), base=self.root)
            words += ["--policy", str(file)]
        env = {**self.environment(self.root / "user", self.root / "unused"), "ROOTS_SECRET": "secret",
               "OVERCAP_CONFIG": str(self.write("system.yaml", self.config(), base=self.root))}
        self.log_file = open(self.root / "engine.log", "ab")
        self.engine = subprocess.Popen([*self.wrapper, str(self.binary), *words], env=env, stdin=subprocess.DEVNULL, stdout=self.log_file,
                                       stderr=self.log_file)
        self.until(self.listens, "the engine to listen")

    def config(self):
        return "clusters: {local: {gpus: [{type: a40, count: 4}], cpus: 8}}\n"

    def listens(self):
        if self.engine.poll() is not None:
            self.fail(f"the engine has ended: {(self.root / 'engine.log').read_text()}")
        try:
            Connection(self.socket).socket.close()
            return True
        except OSError:
            return False

    def stop_engine(self, number=signal.SIGTERM):
        if self.engine is not None:
            self.engine.send_signal(number)
            self.engine.wait(30)
            self.log_file.close()
            self.engine = None

    # ---- users

    def be(self, who):
        """From here on commands are this user's; "root" is one too."""
        self.who = who
        home = self.root / "user" if who == "root" else self.homes[who]
        self.env = self.environment(home, home / "own")
        self.env["OVERCAP_SYSTEM_SOCKET"] = str(self.socket)
        self.here = home

    def start(self, *args, cwd=None, env=None, stdin=subprocess.DEVNULL):
        who = {} if self.who == "root" else {
            "user": self.uid[self.who], "group": self.gid[self.who],
            "extra_groups": [self.group_id] if self.who == "alice" else []}
        return subprocess.Popen([str(self.binary), *args], cwd=cwd or self.here, env={**self.env, **(env or {})}, stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **who)

    def area(self, who):
        return self.state / "users" / str(self.uid[who])

    def text_of(self, job_id, who=None):
        return (self.area(who or self.who) / "jobs" / job_id / "attempt-1" / "rank-0.log").read_text()

    def running(self, *command):
        job_id = self.submit(*command)
        self.until_state(job_id, "running")
        return job_id

    def as_user(self, who, act):
        """What act() gives, as JSON carries it, in a child process with the rights of that user; the name of what it raised."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(read)
                os.setgroups([])
                os.setresgid(*[self.gid[who]] * 3)
                os.setresuid(*[self.uid[who]] * 3)
                answer = {"value": act()}
            except BaseException as error:
                answer = {"error": type(error).__name__, "text": str(error)}
            with os.fdopen(write, "w") as out:
                json.dump(answer, out)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            answer = json.load(f)
        os.waitpid(child, 0)
        return answer["error"] if "error" in answer else answer["value"]

    def ask(self, who, *requests):
        """The replies to requests that are written by hand."""

        def act():
            connection = Connection(self.socket)
            return [connection.ask(request) for request in requests]

        answers = self.as_user(who, act)
        self.assertIsInstance(answers, list, answers)
        return answers[0] if len(requests) == 1 else answers
