# SPDX-License-Identifier: Apache-2.0
"""People inside allocations of a real Slurm: shells in a terminal, allocations that outlive it, the way of ssh into them.

Where root runs the tests they are done as an ordinary user, as they must work.
"""
import grp
import json
import os
import pathlib
import pwd
import shutil
import unittest

from rigs.machines import wait_until
from rigs.slurm_rig import SlurmCluster
from rigs.terminal import SHELL, Terminal

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
DEADLINE_SECONDS = 300
WAIT = 60  # seconds, for wait_until
PATIENCE = WAIT * float(os.environ.get("OVERCAP_TEST_PATIENCE", "1"))


class People(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("ssh") or not os.path.exists("/usr/sbin/sshd"):
            raise unittest.SkipTest("NOT TESTED: ssh or sshd is not installed")
        root = os.geteuid() == 0
        if not root and pwd.getpwuid(os.geteuid()).pw_shell.endswith(("nologin", "false")):
            raise unittest.SkipTest("NOT TESTED: who runs the tests has no shell to log in with")
        cls.person = "alice" if root else None
        cls.slurm = SlurmCluster(nodes=3, gpus=2, users=("alice",) if root else ())
        cls.addClassCleanup(cls.slurm.close)
        at = cls.slurm.folder
        cls.home = at / "home" / "alice" if root else at / "work" / "home"
        cls.home.mkdir(exist_ok=True)
        cls.binary = at / "bin" / "overcap"
        shutil.copy(BINARY, cls.binary)
        if root:
            cls.mount_terminals()
        cls.env = {**cls.slurm.environment, "HOME": str(cls.home), "OVERCAP_HOME": str(cls.home / "state"), "NO_COLOR": "1"}

    @classmethod
    def mount_terminals(cls):
        """Terminals on the nodes as on any real machine: they belong to the group tty, else an sshd of a user refuses them."""
        for node in cls.slurm.names:
            cls.slurm.must(["mount", "-t", "devpts", "-o", "newinstance,gid=5,mode=620,ptmxmode=666", "devpts", "/dev/pts"],
                           node=node)

    def setUp(self):
        self.addCleanup(self.leave_nothing)

    def leave_nothing(self):
        self.slurm.empty_queue(seconds=WAIT)
        shutil.rmtree(self.home / ".ssh", ignore_errors=True)
        wait_until(lambda: self.json("alloc", "list") == [], "the names to be free", WAIT, pause=0.1)

    # ---- what people do

    def run_there(self, argv, **more):
        return self.slurm.run(argv, env=self.env, cwd=self.home, user=self.person, timeout=PATIENCE, **more)

    def overcap(self, *words, status=0, **more):
        done = self.run_there([str(self.binary), *words], **more)
        if status is not None:
            self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done

    def json(self, *words):
        return json.loads(self.overcap(*words, "--json").stdout)

    def terminal(self):
        words, env = self.slurm.words(SHELL, env=self.env, cwd=self.home, user=self.person)
        terminal = Terminal(words, env, PATIENCE)
        self.addCleanup(terminal.hang_up)
        terminal.expect("ready> ")
        return terminal

    def ssh(self, *words, program="ssh", **more):
        return self.run_there([program, "-F", str(self.home / ".ssh/overcap/config"), "-o", "BatchMode=yes", *words], **more)

    def entries(self):
        """{host: node} of what ssh knows."""
        try:
            lines = (self.home / ".ssh/overcap/config").read_text().splitlines()
        except FileNotFoundError:
            return {}
        values = [line.split()[1] for line in lines if line.split()[:1] in (["Host"], ["HostName"])]
        return dict(zip(values[::2], values[1::2], strict=True))

    def queue(self):
        return self.slurm.must(["squeue", "-h", "-o", "%A %T"]).split("\n")[:-1]

    def occupy(self, *words):
        """All GPUs of all nodes."""
        job = self.slurm.submit("-N3", "--gpus-per-node=2", *words, "--wrap", "sleep 600")
        self.slurm.wait_state(job, "RUNNING")
        return job

    def slurm_id(self, job):
        return json.loads((self.home / "state/jobs" / job / "handle.json").read_text())["slurm_id"]

    # ---- shell

    def test_a_shell_has_a_terminal_on_a_node_with_its_gpus_and_returns_its_status(self):
        terminal = self.terminal()
        terminal.type(f"{self.binary} shell -n 2 -c 3 -t 10m")
        terminal.type("export PS1='there''> '")
        terminal.expect("there> ")
        self.assertRegex(terminal.ask("tty"), "/dev/pts/")
        self.assertRegex(terminal.ask("hostname"), "^n[123]\n$")
        self.assertEqual(terminal.ask("echo $CUDA_VISIBLE_DEVICES"), "0,1\n")
        self.assertEqual(terminal.ask("stty size"), "24 80\n")
        terminal.resize(33, 99)
        wait_until(lambda: terminal.ask("stty size") == "33 99\n", "the new size to arrive")
        job = terminal.ask("echo $SLURM_JOB_ID").strip()
        self.assertIn("CPUs/Task=3", self.slurm.must(["scontrol", "show", "job", job]))
        self.assertEqual(terminal.ask("srun --overlap hostname")[:1], "n")
        terminal.type("sh -c 'echo be\"\"fore; exec sleep 600'")
        terminal.expect("before")
        terminal.keys(b"\x03")
        terminal.expect("there> ")
        self.assertEqual(terminal.status(), 130)
        terminal.type("exit 7")
        terminal.expect("ready> ")
        self.assertEqual(terminal.status(), 7)
        self.assertNotIn("srun:", terminal.text)
        wait_until(lambda: not self.queue(), "the queue to be empty")

    def test_while_a_shell_waits_it_says_why_and_ctrl_c_leaves_nothing(self):
        occupied = self.occupy()
        terminal = self.terminal()
        terminal.type(f"{self.binary} shell")
        terminal.expect("waits for 1 GPU since [^:]*: [a-z]+ ")
        terminal.keys(b"\x03")
        terminal.expect("given up; nothing is held(?s:.*)ready> ")
        self.assertEqual(terminal.status(), 130)
        wait_until(lambda: self.queue() == [f"{occupied} RUNNING"], "its job to be gone")

    def test_a_shell_ends_with_its_terminal(self):
        terminal = self.terminal()
        terminal.type(f"{self.binary} shell")
        terminal.type("export PS1='there''> '")
        terminal.expect("there> ")
        self.assertEqual(len(self.queue()), 1)
        terminal.hang_up()
        wait_until(lambda: not self.queue(), "the job to end", WAIT)

    def test_a_shell_without_a_terminal_runs_a_command(self):
        done = self.overcap("shell", "-w", "n2", "-n", "1", "--", "sh", "-c", "hostname; echo $CUDA_VISIBLE_DEVICES; exit 5", status=5)
        self.assertEqual(done.stdout, "n2\n0\n")
        done = self.overcap("shell", "-p", "no-such-partition", "true", status=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("partition", done.stderr)

    # ---- allocations

    def test_an_allocation_outlives_its_terminal_and_ssh_leads_into_it(self):
        terminal = self.terminal()
        terminal.type(f"mkdir -p project && cd project && {self.binary} alloc -n 2")
        terminal.expect(r"dev: running .* on n\d, 2 GPUs")
        terminal.expect("ready> ")
        terminal.hang_up()
        held, = self.json("alloc", "list")
        node, = held["nodes"]
        self.assertEqual((held["name"], held["state"], held["ssh_host"]), ("dev", "running", "overcap-dev"))
        self.assertEqual(self.entries(), {"overcap-dev": node})
        script = 'hostname; echo "$CUDA_VISIBLE_DEVICES"; echo "$SLURM_JOB_ID"; pwd; exit 4'
        done = self.ssh("overcap-dev", script)
        expected = f"{node}\n0,1\n{self.slurm_id(held['job'])}\n{self.home}/project\n"
        self.assertEqual((done.stdout, done.stderr, done.returncode), (expected, "", 4))
        self.assertEqual(self.overcap("ssh", "dev", "hostname").stdout, f"{node}\n")
        # An editor's ssh knows nothing of the user's shell: neither where the jobs are nor where Slurm is.
        bare = ["env", "-i", "PATH=/usr/bin:/bin", "ssh", "-F", f"{self.home}/.ssh/overcap/config", "overcap-dev", "hostname"]
        self.assertEqual(self.run_there(bare).stdout, f"{node}\n")
        self.check_files()
        self.check_forwarding(node)
        done = self.overcap("alloc", status=6)
        self.assertIn("there is an allocation 'dev' already", done.stderr)
        self.overcap("release", "dev")
        self.assertEqual((self.entries(), self.json("alloc", "list")), ({}, []))
        wait_until(lambda: not self.queue(), "the job to end", WAIT)
        self.assertNotEqual(self.ssh("overcap-dev", "true").returncode, 0)

    def check_files(self):
        """scp and sftp, byte for byte; they start at home."""
        (self.home / "sent").write_bytes(os.urandom(300_000) + bytes(range(256)))
        (self.home / "sent").chmod(0o644)
        done = self.ssh("-q", str(self.home / "sent"), "overcap-dev:by-scp", program="scp")
        self.assertEqual(done.returncode, 0, done.stderr)
        batch = f"get by-scp {self.home}/by-sftp\n"
        done = self.ssh("-b", "-", "overcap-dev", program="sftp", input=batch)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.ssh("overcap-dev", f"cmp {self.home}/sent {self.home}/by-scp && cmp {self.home}/sent {self.home}/by-sftp")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def check_forwarding(self, node):
        """A port of the node's loopback, as a notebook or an editor's server has it."""
        serve = ("import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
                 "import os\nwhile True:\n c, _ = s.accept(); c.sendall(os.uname().nodename.encode()); c.close()")
        server = self.slurm.popen([str(self.binary), "exec", "dev", "--", "/usr/bin/python3", "-c", serve],
                                  env=self.env, cwd=self.home, user=self.person)
        self.addCleanup(end, server)
        port = server.stdout.readline().strip()
        config = str(self.home / ".ssh/overcap/config")
        socket = self.home / "forwarded"
        client = self.slurm.popen(["ssh", "-F", config, "-N", "-L", f"{socket}:127.0.0.1:{port}", "overcap-dev"], env=self.env,
                                  user=self.person)
        self.addCleanup(end, client)
        wait_until(socket.exists, "ssh to listen", WAIT)
        read = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(socket)!r}); print(s.recv(99).decode())"
        self.assertEqual(self.run_there(["/usr/bin/python3", "-c", read]).stdout, f"{node}\n")
        for process in (client, server):
            end(process)

    def test_ssh_gives_a_terminal_in_an_allocation(self):
        if os.geteuid() != 0 and os.stat(os.ttyname(os.openpty()[1])).st_gid != grp.getgrnam("tty").gr_gid:
            self.skipTest("NOT TESTED: terminals do not belong to the group tty here, an sshd of a user refuses them")
        node, = self.json("alloc")["nodes"]
        terminal = self.terminal()
        terminal.type(f"ssh -F {self.home}/.ssh/overcap/config overcap-dev")
        terminal.type("export PS1='there''> '")
        terminal.expect("there> ")
        self.assertEqual(terminal.ask("hostname"), f"{node}\n")
        self.assertRegex(terminal.ask("tty"), "/dev/pts/")
        self.assertEqual(terminal.ask("echo $CUDA_VISIBLE_DEVICES"), "0\n")
        terminal.type("exit 9")
        terminal.expect("ready> ")
        self.assertEqual(terminal.status(), 9)

    def test_ssh_knows_an_allocation_only_while_it_runs(self):
        occupied = self.occupy()
        self.assertEqual(self.json("alloc", "--name", "big", "--no-wait")["ssh_host"], None)
        held, = self.json("alloc", "list")
        self.assertEqual((held["name"], held["state"], self.entries()), ("big", "queued", {}))
        self.slurm.must(["scancel", str(occupied)])
        wait_until(lambda: "overcap-big" in self.entries(), "the entry", WAIT)
        # Somebody ends it behind our back.
        self.slurm.must(["scancel", str(self.slurm_id(held["job"]))])
        wait_until(lambda: self.entries() == {}, "the entry to go", WAIT)
        wait_until(lambda: self.json("alloc", "list") == [], "the name to be free", WAIT, pause=0.1)

    def test_ctrl_c_leaves_an_allocation_in_the_queue(self):
        self.occupy()
        terminal = self.terminal()
        terminal.type(f"{self.binary} alloc --name late")
        terminal.expect("allocation 'late' queued")
        terminal.keys(b"\x03")
        terminal.expect("overcap release late gives it up(?s:.*)ready> ")
        self.assertEqual(terminal.status(), 130)
        self.assertEqual(self.json("alloc", "list")[0]["state"], "queued")
        self.overcap("alloc", "release", "late")
        self.assertEqual(self.json("alloc", "list"), [])

    def test_a_requeued_allocation_is_found_on_its_new_node(self):
        held = self.json("alloc", "--name", "moves")
        first, = held["nodes"]
        self.slurm.must(["scontrol", "update", f"nodename={first}", "state=drain", "reason=test"])
        self.addCleanup(self.slurm.must, ["scontrol", "update", f"nodename={first}", "state=resume"])
        self.slurm.must(["scontrol", "requeue", str(self.slurm_id(held["job"]))])
        wait_until(lambda: self.entries() == {}, "the entry to go", WAIT)
        wait_until(lambda: self.entries().get("overcap-moves") not in (None, first), "the entry to come again", WAIT)
        done = wait_until(lambda: (done := self.ssh("overcap-moves", "hostname")).returncode == 0 and done,
                          "ssh to get in", WAIT)
        self.assertEqual((done.stdout, done.stderr), (self.entries()["overcap-moves"] + "\n", ""))
        self.assertNotEqual(done.stdout.strip(), first)

    def test_an_entry_whose_holder_was_killed_is_removed_by_who_looks(self):
        held = self.json("alloc", "--name", "dead")
        config = self.home / ".ssh/overcap/config"
        text = config.read_text()
        self.slurm.must(["scancel", str(self.slurm_id(held["job"]))])
        wait_until(lambda: not self.queue() and not config.exists(), "the job to end", WAIT)
        # As it is when the node died.
        self.run_there(["tee", str(config)], input=text)
        self.assertEqual(self.entries(), {"overcap-dead": held["nodes"][0]})
        self.assertIn("allocation", self.ssh("overcap-dead", "true").stderr)
        wait_until(lambda: self.json("alloc", "list") == [], "the name to be free", WAIT, pause=0.1)
        self.assertEqual(self.entries(), {})

    def test_install_adds_one_line_and_keeps_what_was_there(self):
        folder, mine = self.home / ".ssh", "Host mine\r\n  User me\r\n"
        self.run_there(["mkdir", "-m", "700", str(folder)])
        self.run_there(["sh", "-c", f"cat > {self.home}/dotfile; ln -s ../dotfile {folder}/config"], input=mine)
        for changed in (True, False):
            done = self.json("alloc", "install")
            self.assertEqual(done["changed"], changed)
        text = (self.home / "dotfile").read_bytes().decode()
        self.assertTrue(text.endswith(mine))
        self.assertEqual(text.count("Include ~/.ssh/overcap/config\r\n"), 1)
        self.assertTrue((folder / "config").is_symlink())
        self.assertEqual((folder / "config.before-overcap").read_bytes().decode(), mine)
        self.assertEqual(self.run_there(["ssh", "-F", str(self.home / "dotfile"), "-G", "mine"]).returncode, 0)

    # ---- into jobs

    def test_a_job_of_several_nodes_is_entered_where_one_likes(self):
        job = self.overcap("submit", "-n", "4", "--nodes", "2", "--one-rank-per-node", "--env", "WORD=from  job", "sleep", "600").stdout.strip()
        self.overcap("wait", "--started", job, status=None)
        wait_until(lambda: self.overcap("exec", job, "--", "true", status=None).returncode == 0, "it to be entered", WAIT)
        nodes = self.slurm.must(["squeue", "-h", "-o", "%N", "-j", str(self.slurm_id(job))]).strip()
        nodes = self.slurm.must(["scontrol", "show", "hostnames", nodes]).split()
        for node in nodes:
            script = 'hostname; echo "$WORD"; echo "$CUDA_VISIBLE_DEVICES"'
            done = self.overcap("exec", job, "-w", node, "--", "sh", "-c", script + "; exit 3", status=3)
            self.assertEqual((done.stdout, done.stderr), (f"{node}\nfrom  job\n0,1\n", ""))
            self.assertEqual(self.overcap("ssh", job, "-w", node, "hostname").stdout, f"{node}\n")
        other, = {"n1", "n2", "n3"} - set(nodes)
        self.assertIn("has nothing on node", self.overcap("ssh", job, "-w", other, "true", status=2).stderr)
        terminal = self.terminal()
        terminal.type(f"{self.binary} ssh {job} -w {nodes[1]}")
        terminal.type("export PS1='there''> '")
        terminal.expect("there> ")
        self.assertEqual(terminal.ask("hostname"), f"{nodes[1]}\n")
        terminal.type("exit 6")
        terminal.expect("ready> ")
        self.assertEqual(terminal.status(), 6)
        self.overcap("abort", job)
        wait_until(lambda: not self.queue(), "the job to end", WAIT)
        self.assertIn("not running", self.overcap("ssh", job, "true", status=6).stderr)


def end(process):
    process.kill()
    process.wait(20)
    for stream in (process.stdout, process.stderr):
        stream.close()


if __name__ == "__main__":
    unittest.main()
