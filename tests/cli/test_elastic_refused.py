# SPDX-License-Identifier: Apache-2.0
"""Elastic launches that cannot be: each says in one line what is wrong, with its own exit status, in time, and leaves no process; and
what torchrun is called with, in both of its spellings."""
import pathlib
import socket
import threading

from elastic_rig import STAY, TELL, ElasticRig
from overcap_rig import BINARY, main, shell
from rigs.etcd_rig import Etcd, free_ports


class Mute:
    """A server that takes connections and never says a word."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()


class Babbling(Mute):
    """One that answers everything with what is no HTTP."""

    def __init__(self):
        super().__init__()
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        while True:
            try:
                connection, _ = self.socket.accept()
                connection.sendall(b"220 mail.example.org ESMTP\r\n")
                connection.close()
            except OSError:
                return


class Refused(ElasticRig):
    def refuse_elastic(self, *args, status, says, within=15, **options):
        """One line and a hint at most, in time, with nothing left and no rank started."""
        done = self.refused("launch", *args, *shell('touch "$FACTS/ran"'), status=status, says=says, **options)
        self.assertLess(done.seconds, within, str(done))
        lines = [line for line in done.err.strip().splitlines() if not line.startswith("hint: ")]
        self.assertEqual(len(lines), 1, str(done))
        self.assertTrue(lines[0].startswith("overcap: "), str(done))
        self.until(lambda: not self.processes(), f"no process: {self.command_lines()}")
        self.assertFalse((self.facts / "ran").exists())
        return done

    def test_an_etcd_that_cannot_be_reached_is_named_with_what_was_tried(self):
        closed = free_ports(2)
        with Mute() as mute, Babbling() as babbling:
            ports = [*closed, mute.port, babbling.port]
            where = ",".join(f"127.0.0.1:{port}" for port in ports)
            done = self.refuse_elastic("--rdzv", f"etcd://{where}/x", "--join-timeout", "3s", status=5,
                                       says=[f"127.0.0.1:{port}" for port in ports] + ["within 3", "Connection refused"])
            self.assertGreaterEqual(done.seconds, 2.5)
        self.refuse_elastic("--rdzv", "etcd://no-such-host.invalid:2379/x", "--join-timeout", "1s", status=5,
                            says=["etcd://no-such-host.invalid:2379/x", "'no-such-host.invalid' is not known"])

    def test_an_etcd_with_another_certificate_or_none_is_no_etcd_of_ours(self):
        with Etcd(tls=True) as etcd:
            env = {"OVERCAP_ETCD_CA": str(self.write("other.pem", pathlib.Path(etcd.ca).read_text()[:200]))}
            self.refuse_elastic("--rdzv", f"etcds://{etcd.endpoints}/x", "--join-timeout", "2s", env=env, status=None, says="other.pem")
            self.refuse_elastic("--rdzv", f"etcd://{etcd.endpoints}/x", "--join-timeout", "2s", status=5, says=etcd.endpoints)

    def test_an_agent_of_another_version_is_refused_with_both_versions(self):
        (port,) = free_ports(1)
        flags = ("--nnodes", "1:2", "--nproc-per-node", "1", "--rdzv", f"tcp://127.0.0.1:{port}/v", "--last-call", "0")
        self.agent("a", *flags, *shell(TELL + STAY))
        self.until_epoch(1, 1)
        ours = self.ok("--version").out.split()[1]
        theirs = ours[:-1] + ("8" if ours[-1] != "8" else "7")
        other = self.root / "other-overcap"
        other.write_bytes(BINARY.read_bytes().replace(ours.encode(), theirs.encode()))
        other.chmod(0o755)
        mine, self.binary = self.binary, other
        try:
            done = self.refused("launch", *flags, *shell(TELL + STAY), status=6, says=[theirs, ours, "version"],
                                env={"OVERCAP_HOME": str(self.root / "home-b")})
        finally:
            self.binary = mine
        self.assertEqual(len(done.err.strip().splitlines()), 1, str(done))
        self.assertEqual(len(self.events("a", "epoch")), 1)  # the group is not disturbed
        self.go()
        self.assertEqual(self.ended_agent("a").status, 0)

    def test_each_thing_that_agents_must_have_in_common_is_named_when_it_differs(self):
        (port,) = free_ports(1)
        usual = {"--nnodes": "1:2", "--max-restarts": "1", "--ttl": "2s", "--grow": "never"}
        command = shell(TELL + STAY)

        def flags(**other):
            words = [word for pair in {**usual, **other}.items() for word in pair]
            return [*words, "--nproc-per-node", "1", "--last-call", "0", "--rdzv", f"tcp://127.0.0.1:{port}/c"]
        self.agent("a", *flags(), *command)
        self.until_epoch(1, 1)
        for flag, value in (("--nnodes", "1:3"), ("--max-restarts", "2"), ("--ttl", "3s"), ("--grow", "now")):
            self.refused("launch", *flags(**{flag: value}), *command, status=6, says=["was started differently", f"its {flag} is"])
        self.refused("launch", *flags(), "true", status=6, says=["its command is", "the leader's is"])
        self.assertEqual(len(self.events("a", "epoch")), 1)
        self.go()
        self.assertEqual(self.ended_agent("a").status, 0)

    def test_a_second_job_at_the_same_port_is_refused_at_once(self):
        """Its agent would be one more node of the first, and end with that job's 0 having run nothing."""
        ports = free_ports(2)
        for name, where in (("static", ["--master-addr=127.0.0.1", f"--master-port={ports[0]}"]),
                            ("c10d", ["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{ports[1]}"])):
            with self.subTest(name):
                command = shell(f'touch "$FACTS/{name}"; ' + STAY)
                flags = ("--nproc-per-node=1", *where, "--no-python")
                self.agent(name, *flags, *command)
                self.until((self.facts / name).exists, "the first job's rank")
                self.refused("launch", *flags, *command, status=6,
                             says=["one too many: the group has its 1 node already", "another job needs a port"])
                self.go()
                self.assertEqual(self.ended_agent(name).status, 0)
                (self.facts / "go").unlink()

    def test_a_node_that_ran_no_rank_says_so(self):
        (port,) = free_ports(1)
        flags = ("--nnodes", "1:1", "--nproc-per-node", "1", "--grow", "never", "--rdzv", f"tcp://127.0.0.1:{port}/r")
        self.agent("a", *flags, *shell(TELL + STAY))
        self.until_epoch(1, 1)
        self.agent("b", *flags, *shell(TELL + STAY))
        self.until(lambda: self.events("b", "joined"), "b to wait as a reserve")
        self.go()
        for name, says in (("a", ""), ("b", "overcap: the job has ended, and this node ran no rank of it\n")):
            done = self.ended_agent(name)
            self.assertEqual((done.status, done.err), (0, says), str(done))

    def test_the_id_of_a_job_that_has_ended_is_refused_wherever_it_was(self):
        (port,) = free_ports(1)
        for where in (f"tcp://127.0.0.1:{port}/done", "auto:over"):
            self.launched("--nnodes", "1:1", "--nproc-per-node", "1", "--rdzv", where, "true")
            self.refuse_elastic("--nnodes", "1:1", "--rdzv", where, status=6, says=[f"'{where[-4:]}'", "has already ended with status 0"])
        self.assertEqual(self.launch("--nnodes", "1:1", "--nproc-per-node", "1", "--rdzv", "auto:bad", *shell("exit 3")).status, 3)
        self.refuse_elastic("--nnodes", "1:1", "--rdzv", "auto:bad", status=6, says=["'bad'", "has already ended with status 3"])

    def test_a_node_without_the_key_is_refused_with_the_line_that_sets_it(self):
        del self.env["OVERCAP_RDZV_KEY"]
        (port,) = free_ports(1)
        flags = ("--nnodes", "1:3", "--nproc-per-node", "1", "--last-call", "0", "--rdzv", f"tcp://127.0.0.1:{port}/k")
        command = shell(TELL + 'env > "$FACTS/env-$RANK"; ' + STAY)
        self.agent("a", *flags, "--grow", "now", *command)
        self.until_epoch(1, 1)
        file = self.root / "home-a" / "elastic" / "k.key"
        key = file.read_text().strip()
        self.assertEqual(self.mode_of(file), 0o600)
        self.assertRegex(key, "^[0-9a-f]{64}$")
        done = self.refused("launch", *flags, "--grow", "now", *command, status=4, env={"OVERCAP_HOME": str(self.root / "home-b")},
                            says=[f"tcp://127.0.0.1:{port}/k", "another key", "export OVERCAP_RDZV_KEY=", "k.key", "--rdzv-open"])
        self.assertLess(done.seconds, 30, str(done))
        self.refused("launch", *flags, "--rdzv-open", "--grow", "now", *command, status=4, says="another key")
        self.assertEqual(len(self.events("a", "epoch")), 1)  # the group is not disturbed
        self.agent("c", *flags, "--grow", "now", *command, env={"OVERCAP_RDZV_KEY": key})
        self.until_epoch(2, 2)
        self.agent("d", *flags, "--grow", "now", *command, env={"OVERCAP_HOME": str(self.root / "home-a")})  # a home in common
        self.until_epoch(3, 3)
        words = self.command_lines()
        self.assertNotIn(key, str(words))
        self.assertNotIn(key, (self.facts / "env-0").read_text())
        self.go()
        said = self.ended_agent("a").err
        self.assertIn(f"cat {file}", said)
        self.assertNotIn(key, said)
        for name in ("c", "d"):
            self.assertEqual(self.ended_agent(name).status, 0)

    def test_an_open_group_takes_agents_without_a_key(self):
        (port,) = free_ports(1)
        flags = ("--nnodes", "2:2", "--nproc-per-node", "1", "--rdzv-open", "--rdzv", f"tcp://127.0.0.1:{port}/o")
        self.refused("launch", *flags, "true", status=2, says="OVERCAP_RDZV_KEY is set")
        del self.env["OVERCAP_RDZV_KEY"]
        for name in ("a", "b"):
            self.agent(name, *flags, *shell(TELL))
        for name in ("a", "b"):
            self.assertEqual(self.ended_agent(name).status, 0)
        self.refused("launch", "--nnodes", "1:1", "--rdzv-open", "--rdzv", "auto:o", "true", status=2, says="has no key to leave out")

    def test_a_port_that_another_program_has_is_named(self):
        with Mute() as other:
            self.refuse_elastic("--nnodes", "1:1", "--join-timeout", "2s", "--rdzv", f"tcp://127.0.0.1:{other.port}/p", status=5,
                                says=[f"tcp://127.0.0.1:{other.port}/p", str(other.port)])
            self.refuse_elastic("--nnodes", "1:1", "--join-timeout", "2s", "--master_addr", "127.0.0.1", "--master_port",
                                str(other.port), status=5, says=str(other.port))

    def test_more_than_can_be(self):
        for flags, says in ((["--nnodes", "5:2"], "'5:2' begins behind its end"), (["--nnodes", ":2"], "':2'"),
                            (["--nnodes", "2:"], "'2:'"), (["--nnodes", "1:99999999"], "99999999"),
                            (["--nproc-per-node", "0"], "'0'"), (["--nproc_per_node", "gpus"], "'gpus'"),
                            (["--join-timeout", "soon"], "--join-timeout"), (["--last-call", "-1"], "--last-call"),
                            (["--rdzv", "auto", "--standalone"], "given twice"), (["--rdzv", "etcd://a/b c"], "has no id")):
            with self.subTest(flags):
                self.refuse_elastic(*flags, status=2, says=says)


class AsTorchrun(ElasticRig):
    """`torchrun ARGS` becomes `overcap launch ARGS`."""

    def facts_of(self, *words):
        script = self.write("tell.py", "import os\nfor n in ('RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'GROUP_RANK', 'TORCHELASTIC_MAX_RESTARTS', "
                            "'TORCHELASTIC_RUN_ID'):\n    print(n, os.environ.get(n))\n")
        return self.launched(*words, str(script)).out

    def test_each_flag_in_both_of_its_spellings(self):
        (port,) = free_ports(1)
        for number, flags in enumerate((
                ["--nproc-per-node=2", "--max-restarts=4", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=ID",
                 "--nnodes=1:1", "--rdzv-conf=last_call_timeout=1,join_timeout=30", "--monitor-interval=1"],
                ["--nproc-per-node", "2", "--max-restarts", "4", "--rdzv-id", "ID", "--standalone", "--nnodes", "1"],
                ["--nproc-per-node=2", "--max-restarts=4", "--nnodes=1", "--node-rank=0", "--master-addr=127.0.0.1",
                 f"--master-port={port}", "--rdzv-id=ID", "--local-addr=127.0.0.1"])):
            for spelling in ("-", "_"):
                run_id = f"run{number}{'dash' if spelling == '-' else 'line'}"
                words = [("--" + flag[2:].split("=")[0].replace("-", spelling) + flag[len(flag.split("=")[0]):]).replace("ID", run_id)
                         if flag.startswith("--") else flag.replace("ID", run_id) for flag in flags]
                with self.subTest(words):
                    out = self.facts_of(*words)
                    self.assertEqual(out.split()[1::2], ["0", "2", "2", "0", "4", run_id if "--standalone" not in words else out.split()[-1]])

    def test_a_job_without_an_id_may_run_again_and_again_also_with_another_command(self):
        (port,) = free_ports(1)
        with Etcd() as etcd:
            for where in (["--master_addr=127.0.0.1", f"--master_port={port}"], ["--rdzv_backend=etcd-v2", f"--rdzv_endpoint={etcd.endpoints}"]):
                for words in (["true"], ["true"], ["sh", "-c", "exit 4"], ["true"]):
                    done = self.launch("--nnodes=1", "--nproc_per_node=1", "--no_python", *where, *words)
                    self.assertEqual(done.status, 4 if "exit 4" in words else 0, str(done))

    def test_one_that_was_killed_does_not_keep_the_next_from_running(self):
        (port,) = free_ports(1)
        flags = ("--nnodes=1", "--nproc_per_node=1", "--node_rank=0", "--master_addr=127.0.0.1", f"--master_port={port}", "--ttl=1s")
        self.agent("a", *flags, *shell(TELL + STAY), env={"OVERCAP_HOME": str(self.home)})
        self.until_epoch(1, 1)
        killed = self.agents.pop("a")
        killed.kill()
        killed.wait(20)
        killed.stdout.close()
        killed.stderr.close()
        self.until(lambda: not self.processes(), "nothing to be left")
        self.assertEqual(self.launch(*flags, "true").status, 0)

    def test_a_script_alone_is_run_by_python(self):
        self.write("plain.py", "import os\nprint('rank', os.environ['RANK'])\n")
        self.assertEqual(self.launched("-n", "1", "plain.py").out, "rank 0\n")


if __name__ == "__main__":
    main()
