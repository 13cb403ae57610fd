# SPDX-License-Identifier: Apache-2.0
"""`overcap launch ARGS` beside `torchrun ARGS`, for every flag that torchrun's --help has: both are run, and what their ranks saw and
what they showed is compared."""
import json
import os
import pathlib
import re
import signal
import socket
import tempfile

from elastic_rig import ElasticRig
from overcap_rig import main
from rigs.etcd_rig import free_ports
from rigs.torchrun_rig import PYTHON, Torchrun

GROUP = "stores"
DEADLINE_SECONDS = 400
CPUS = len(os.sched_getaffinity(0))

# Leaves what it was told as FACTS/RANK.json, says a line on both streams, and does what its words ask for.
TELL = """
import json, os, signal, sys, time
facts, rank = os.environ["FACTS"], os.environ["RANK"]
words = sys.argv[1:]
caught = []
if "catch" in words:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
        signal.signal(number, lambda number, frame: caught.append(signal.Signals(number).name))
def tell():
    with open(f"{facts}/new-{rank}", "w") as file:
        json.dump({"env": dict(os.environ), "argv": sys.argv, "caught": caught}, file)
    os.rename(f"{facts}/new-{rank}", f"{facts}/{rank}.json")
tell()
print("out", rank, flush=True)
print("err", rank, file=sys.stderr, flush=True)
if "fail" in words and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(3)
while "catch" in words and not caught:
    time.sleep(0.01)
if "catch" in words:
    tell()
while "deaf" in words:
    time.sleep(0.01)
"""
SEEN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE",
        "ROLE_NAME", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "CUDA_VISIBLE_DEVICES")
TWO = "--nproc-per-node=2"


class Case:
    """Words before the script, and what else must be the same. `shown`: the lines on the terminal; without it torchrun shows all ranks and
    Overcap rank 0. `peer`: whether torchrun can run it here."""

    def __init__(self, *words, seen=(), shown=False, env=None, script=None, fails=False, peer=True, says=""):
        self.words, self.seen, self.shown, self.env = words, seen, shown, env or {}
        self.script, self.fails, self.peer, self.says = script, fails, peer, says


IGNORED = "no effect here"
# Every flag of `torchrun --help`. PORT is a free port, LOGS a folder.
CASES = {
    "--help": [],
    "--nnodes": [Case("--nnodes=1", TWO), Case("--nnodes", "1:1", TWO)],
    "--nproc-per-node": [Case(TWO), Case("--nproc_per_node", "2"), Case("--nproc-per-node=cpu"), Case("--nproc-per-node=auto"),
                         Case("--nproc-per-node=gpu", fails=True), Case("--nproc-per-node=xpu", fails=True)],
    "--rdzv-backend": [Case(TWO, "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:PORT", "--rdzv-id=a", seen=["TORCHELASTIC_RUN_ID"]),
                       Case(TWO, "--rdzv-backend=static", "--rdzv-endpoint=127.0.0.1:PORT", seen=["MASTER_PORT"])],
    "--rdzv-endpoint": [Case(TWO, "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=b", seen=["TORCHELASTIC_RUN_ID"])],
    "--rdzv-id": [Case(TWO, "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:PORT", "--rdzv-id=my job 2", seen=["TORCHELASTIC_RUN_ID"])],
    "--rdzv-conf": [Case(TWO, "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:PORT",
                         "--rdzv-conf=timeout=30,join_timeout=60,last_call_timeout=1,close_timeout=5,read_timeout=20,is_host=1")],
    "--standalone": [Case("--standalone", TWO)],
    "--max-restarts": [Case(TWO, "--max-restarts=2", script=["tell.py", "fail"])],
    "--monitor-interval": [Case(TWO, "--monitor-interval=0.2", says=IGNORED)],
    "--start-method": [Case(TWO, "--start-method=fork", says=IGNORED)],
    "--event-log-handler": [Case(TWO, "--event-log-handler=null", says=IGNORED)],
    "--role": [Case(TWO, "--role=trainer")],
    "--module": [Case(TWO, "-m", script=["package.part", "a"]), Case(TWO, "--module", script=["package.part"])],
    "--no-python": [Case(TWO, "--no-python", script=[str(PYTHON), "tell.py", "b"])],
    "--run-path": [Case(TWO, "--run-path", "--start-method=fork", script=["TELL", "c"], says=IGNORED)],
    "--log-dir": [Case(TWO, "--log-dir=LOGS", "--redirects=3", shown=True)],
    "--redirects": [Case(TWO, "-r", "3", shown=True), Case(TWO, "--redirects=1", shown=True), Case(TWO, "-r0:3,1:2", shown=True)],
    "--tee": [Case(TWO, "-t", "3", shown=True), Case(TWO, "--tee=1", shown=True), Case(TWO, "--tee", "0:3,1:1", "-r", "3", shown=True)],
    "--log-line-prefix-template": [Case(TWO, "--tee=3", "--log-line-prefix-template=${role_name}/${rank}/${local_rank}: ", shown=True),
                                   Case(TWO, "-t3", "--role=x", shown=True,
                                        env={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "${hostname} "})],
    "--local-ranks-filter": [Case(TWO, "--local-ranks-filter=1", shown=True), Case(TWO, "--local-ranks-filter=0", "-t", "3", shown=True)],
    "--duplicate-stdout-filters": [Case(TWO, "--tee=3", "--duplicate-stdout-filters=out", shown=True, says=IGNORED)],
    "--duplicate-stderr-filters": [Case(TWO, "--tee=3", "--duplicate-stderr-filters=err", shown=True, says=IGNORED)],
    "--node-rank": [Case(TWO, "--nnodes=1", "--node-rank=0", "--master-port=PORT", seen=["MASTER_PORT"])],
    "--master-addr": [Case(TWO, "--master-addr=127.0.0.1", "--master-port=PORT", seen=["MASTER_ADDR", "MASTER_PORT"])],
    "--master-port": [Case(TWO, "--master_port", "PORT", seen=["MASTER_PORT"])],
    "--local-addr": [Case(TWO, "--local-addr=127.0.0.1")],
    "--logs-specs": [Case(TWO, "--logs-specs=of-a-plugin", peer=False, says=IGNORED)],
    "--numa-binding": [Case(TWO, "--numa-binding=node", peer=False, says=IGNORED)],
    "--signals-to-handle": [Case(TWO, "--signals-to-handle=SIGTERM,SIGUSR2", seen=["TORCHELASTIC_SIGNALS_TO_HANDLE"])],
    "--shutdown-timeout": [Case(TWO, "--shutdown-timeout=5")],
    "--virtual-local-rank": [Case(TWO, "--virtual-local-rank"),
                             Case(TWO, "--virtual-local-rank", env={"CUDA_VISIBLE_DEVICES": "5,7"})],
    "--print-completion": [],
}


class Beside(ElasticRig):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.torchrun = Torchrun()
        cls.addClassCleanup(cls.torchrun.close)

    def setUp(self):
        super().setUp()
        self.env.update(PATH=f"{PYTHON.parent}:{self.env['PATH']}", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        self.script = self.write("tell.py", TELL)
        package = self.project / "package"
        package.mkdir()
        (package / "part.py").write_text(TELL)

    # ---- running both

    def output(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.root))

    def begin_torchrun(self, words, env=None, **options):
        output = self.output()
        return self.torchrun.start(words, {**self.env, **(env or {})}, self.project, output, **options), output

    def end_torchrun(self, output):
        self.until((output / "status").exists, "torchrun to end", 60)
        return int((output / "status").read_text()), (output / "out").read_text(), (output / "err").read_text()

    def told(self, seen=()):
        """By rank, what the ranks of one run were told; then it is forgotten."""
        found = {}
        for path in sorted(self.facts.glob("*.json")):
            fact = json.loads(path.read_text())
            env = {name: fact["env"].get(name) for name in (*SEEN, *seen)}
            argv = [os.path.basename(fact["argv"][0]), *fact["argv"][1:]]
            found[int(path.stem)] = {"argv": argv, "caught": fact["caught"], **env}
            path.unlink()
        return found

    @staticmethod
    def lines(*texts):
        return [sorted(line for line in text.splitlines() if re.search(r"(out|err) \d$", line)) for text in texts]

    def filled(self, words, logs):
        (port,) = free_ports(1)
        host = socket.gethostname()
        return [word.replace("PORT", str(port)).replace("LOGS", str(logs)).replace("TELL", str(self.script)).replace("HOST", host)
                for word in words]

    def check(self, case):
        words = self.filled([*case.words, *(case.script or ["tell.py", "a b"])], self.root / "logs")
        ours = self.launch(*words, env=case.env)
        mine = self.told(case.seen)
        self.assertEqual(ours.status != 0, case.fails, str(ours))
        self.assertIn(case.says, ours.err)
        if not case.says and not case.fails:
            said = [line for line in ours.err.splitlines() if not re.search(r"(^epoch 2: .*|err \d)$", line)]
            self.assertEqual(said, [], "nothing is said about a flag that is obeyed")
        if not case.peer:
            return self.assertEqual(len(mine), 2)
        _, output = self.begin_torchrun(words, case.env)
        status, out, err = self.end_torchrun(output)
        self.assertEqual(status != 0, case.fails, err)
        self.assertEqual(mine, self.told(case.seen))
        if case.shown:
            self.assertEqual(self.lines(ours.out, ours.err), self.lines(out, err))


class Flags(Beside):
    def test_every_flag_of_torchrun_is_in_this_table(self):
        lines = [line for line in self.torchrun.help().split("options:")[1].splitlines() if line.startswith("  -")]
        options = {re.search(r"--[a-z-]+", line)[0] for line in lines}
        ours = set(re.findall(r"(--[a-z][a-z-]+)", self.ok("launch", "--help").out))
        self.assertGreater(len(options), 30)
        self.assertEqual(options - set(CASES), set(), "torchrun has flags that this test does not know")
        self.assertEqual(set(CASES) - options, set(), "torchrun has these no more")
        self.assertEqual(options - ours - {"--help"}, set(), "`overcap launch` does not know them")

    def test_print_completion_is_that_of_overcap(self):
        self.assertEqual(self.ok("launch", "--print-completion", "bash").out, self.ok("completion", "bash").out)
        self.refused("launch", "--print-completion=tcsh", status=2, says="'tcsh'")


def add_tests():
    for flag, cases in CASES.items():
        def test(self, cases=cases):
            for case in cases:
                with self.subTest(" ".join(case.words)):
                    self.check(case)
        if cases:
            setattr(Flags, f"test{flag.replace('-', '_')}", test)


add_tests()


class Variables(Beside):
    """PET_* in the environment."""

    def test_each_says_what_its_flag_says(self):
        for env in ({"PET_NPROC_PER_NODE": "2", "PET_ROLE": "r", "PET_MAX_RESTARTS": "1"}, {"PET_NPROC_PER_NODE": "2", "PET_STANDALONE": "1"},
                    {"PET_NPROC_PER_NODE": "2", "PET_STANDALONE": "0", "PET_VIRTUAL_LOCAL_RANK": "1"},
                    {"PET_NPROC_PER_NODE": "2", "PET_MODULE": "1"}):
            with self.subTest(env):
                self.check(Case(env=env, script=["package.part"] if "PET_MODULE" in env else None))
        self.check(Case(env={"PET_NPROC_PER_NODE": "2", "PET_TEE": "3", "PET_LOG_LINE_PREFIX_TEMPLATE": "${rank}|"}, shown=True))
        self.check(Case(env={"PET_NPROC_PER_NODE": "2", "PET_MASTER_PORT": str(free_ports(1)[0])}, seen=["MASTER_PORT"]))

    def test_a_flag_counts_more(self):
        self.check(Case(TWO, "--role=flag", env={"PET_NPROC_PER_NODE": "3", "PET_ROLE": "variable"}))

    def test_what_is_wrong_is_named_by_its_variable(self):
        self.refused("launch", "tell.py", env={"PET_NPROC_PER_NODE": "some"}, status=2, says="PET_NPROC_PER_NODE: 'some'")
        self.refused("launch", "tell.py", env={"PET_STANDALONE": "yes"}, status=2, says="PET_STANDALONE: 'yes' is neither 0 nor 1")

    def test_where_n_says_how_many_ranks_there_are_they_are_not_read(self):
        self.launched("-n", "1", str(PYTHON), "tell.py", env={"PET_NPROC_PER_NODE": "2"})
        self.assertEqual(list(self.told()), [0])


class Lines(Beside):
    """Whole lines as people type them."""

    def test_an_id_may_be_used_again(self):
        (port,) = free_ports(1)
        for where in ([], ["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}"]):
            for script in ("tell.py", "tell.py", "again.py"):
                self.write("again.py", TELL)
                self.check(Case(TWO, "--rdzv-id=101", *where, script=[script]))

    def test_a_script_needs_no_ending(self):
        self.write("train", TELL)
        self.check(Case(TWO, script=["train", "x"]))
        self.check(Case(TWO, script=[str(self.project / "train")]))

    def test_what_is_piped_in_reaches_the_ranks(self):
        text = self.write("input", "input\n")
        with open(text, encoding="utf-8") as stdin:
            ours = self.launched(TWO, "--no-python", "cat", stdin=stdin)
        _, output = self.begin_torchrun([TWO, "--no-python", "cat"], stdin=text)
        self.assertEqual(ours.out, self.end_torchrun(output)[1])

    def test_a_module_with_n_asks_for_no_elastic_group(self):
        self.launched("-n", "2", "-m", "package.part", "x")
        told = self.told()
        self.assertEqual([(fact["RANK"], fact["argv"][1:]) for fact in told.values()], [("0", ["x"]), ("1", ["x"])])
        self.refused("launch", "-n", "2", "-m", "--no-python", "package.part", status=2, says="--no-python does not go with -m")

    def test_a_folder_of_logs_may_be_used_again(self):
        for flag, count in (("--logs", 1), ("--log-dir", 2)):
            logs = self.root / f"folder{flag}"
            for _ in range(2):
                self.launched(TWO, flag, str(logs), "tell.py")
            found = sorted(str(path.relative_to(logs)) for path in logs.rglob("rank-1.log"))
            self.assertEqual(len(found), 2, found)
            self.assertEqual(sum(path.count("/") == 2 for path in found), count, f"each of these has its own folder: {found}")
            self.assertIn("out 1", (logs / found[0]).read_text())

    def test_the_error_of_the_first_rank_that_failed_is_left_where_the_caller_wants_it(self):
        self.write("tell.py", "import os, sys\nwith open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w') as file:\n"
                   "    file.write('{\"message\": {\"message\": \"bad batch\", \"extraInfo\": {\"timestamp\": \"1\"}}}')\nsys.exit(3)\n")
        files = [self.root / name for name in ("ours.json", "theirs.json")]
        self.assertEqual(self.launch(TWO, "tell.py", env={"TORCHELASTIC_ERROR_FILE": str(files[0])}).status, 3)
        _, output = self.begin_torchrun([TWO, "tell.py"], {"TORCHELASTIC_ERROR_FILE": str(files[1])})
        self.end_torchrun(output)
        ours, theirs = (json.loads(path.read_text())["message"] for path in files)
        self.assertEqual((ours["message"], theirs["message"]), ("bad batch", "bad batch"))

    def two_nodes(self, begin, end):
        (port,) = free_ports(1)
        nodes = [begin(node, ["--nnodes=2", "--nproc-per-node=1", f"--node-rank={node}", "--master-addr=127.0.0.1",
                              f"--master-port={port}", "tell.py", "--host", str(node)]) for node in range(2)]
        for node in nodes:
            self.assertEqual(end(node), 0)
        told = self.told(["MASTER_PORT", "TORCHELASTIC_RUN_ID"])
        self.assertEqual({fact.pop("MASTER_PORT") for fact in told.values()}, {str(port)})
        return told

    def test_two_nodes_meet_at_the_master_port_and_may_differ_in_their_arguments(self):
        def begin_ours(node, words):
            self.agent(node, *words)
            return node
        ours = self.two_nodes(begin_ours, lambda node: self.ended_agent(node).status)
        self.assertEqual(ours, self.two_nodes(lambda node, words: self.begin_torchrun(words)[1], lambda output: self.end_torchrun(output)[0]))

    def test_a_port_in_use_is_refused_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.refused("launch", TWO, f"--master-port={port}", "tell.py", status=5, says=[str(port), "MASTER_PORT"])


class Signals(Beside):
    def caught(self, words, number):
        """What the ranks caught when the signal went to each launcher, ours and torchrun's, and how these ended."""
        self.write("tell.py", TELL)
        words = [TWO, *words, "tell.py", "catch"]

        def until_told():
            self.until(lambda: len(list(self.facts.glob("*.json"))) == 2, "both ranks", 60)
        process = self.start("launch", *words)
        until_told()
        process.send_signal(number)
        ours = self.finish(process)
        mine = self.told()
        pid, output = self.begin_torchrun(words)
        until_told()
        os.kill(pid, number)
        status, _, _ = self.end_torchrun(output)
        self.assertEqual(mine, self.told())
        self.assertNotEqual(status, 0)
        return ours.status, [fact["caught"] for fact in mine.values()]

    def test_term_reaches_the_ranks(self):
        self.assertEqual(self.caught([], signal.SIGTERM), (143, [["SIGTERM"]] * 2))

    def test_one_that_is_listed_reaches_them_and_ends_the_launch(self):
        self.assertEqual(self.caught(["--signals-to-handle=SIGTERM,SIGUSR2"], signal.SIGUSR2), (128 + signal.SIGUSR2, [["SIGUSR2"]] * 2))

    def test_one_that_is_none_is_named(self):
        self.refused("launch", TWO, "--signals-to-handle=SIGTERM,SIGNONE", "tell.py", status=2, says="'SIGNONE' is no signal")

    def test_the_time_to_shut_down_is_kept_from_the_flag_and_from_the_variable(self):
        for words, env in ((["--shutdown-timeout=1"], {}), ([], {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"})):
            with self.subTest(words):
                process = self.start("launch", TWO, *words, "tell.py", "catch", "deaf", env=env)
                self.until(lambda: len(list(self.facts.glob("*.json"))) == 2, "both ranks", 60)
                process.send_signal(signal.SIGTERM)
                done = self.finish(process, 20)  # without it: 30 s
                self.assertEqual(done.status, 143, str(done))
                self.told()


if __name__ == "__main__":
    main()
