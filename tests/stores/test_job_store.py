# SPDX-License-Identifier: Apache-2.0
"""Jobs whose code and logs go through a real store: S3 (Ceph), Azure (Azurite), ssh."""
import json
import os
import pathlib
import signal

from mounts_rig import needs_fuse
from store_rig import StoreRig, main
from overcap_rig import python
from rigs.azurite_rig import Azurite
from rigs.ceph_rig import Ceph
from rigs.fault_proxy import FaultProxy
from rigs.gate import Gate
from rigs.hosts_rig import SshHosts

GROUP = "stores"
DEADLINE_SECONDS = 500
COUNT = "import time\nfor i in range(6):\n print('line', i, flush=True); time.sleep(0.4)"
LINES = "".join(f"line {i}\n" for i in range(6))
SECRETS = ("AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY")


class ThroughAStore:
    """What must hold of jobs on every kind of store; for classes beside StoreRig."""

    def setUp(self):
        super().setUp()
        (self.project / "train.py").write_text(COUNT)
        self.elsewhere = {"OVERCAP_HOME": str(self.root / "laptop")}  # a machine that sees nothing of the engine

    def submit(self, *words, store="jobs", **options):
        return self.ok("submit", "-n", "0", "--store", self.here(store), *words, **options).out.strip()

    def record(self, job):
        return self.ok("query", "--json", job).json()

    def test_code_goes_and_logs_come_through_the_store(self):
        job = self.submit("python3", "train.py")
        follow = self.overcap("logs", "-f", "--from", self.here("jobs"), job, env=self.elsewhere)
        self.assertEqual((follow.status, follow.out), (0, LINES), str(follow))
        self.ok("wait", job)
        record = self.record(job)
        self.assertEqual(record["state"], "succeeded")
        self.assertEqual(record["store"]["at"], self.here("jobs"))
        self.assertEqual(self.ok("logs", "--tail", "2", "--from", self.here("jobs"), "last", env=self.elsewhere).out, "line 4\nline 5\n")
        shown = self.ok("query", "--from", self.here("jobs"), job, env=self.elsewhere).out
        self.assertIn("succeeded", shown)
        self.assertIn("line 5", shown)
        # What is in the folder itself is read there; without it, from the store.
        os.unlink(self.home / "jobs" / job / "attempt-1/rank-0.log")
        self.assertEqual(self.ok("logs", job).out, LINES)
        again = self.ok("resubmit", job).out.strip()
        self.ok("wait", again)
        self.assertEqual(self.ok("logs", "--from", self.here("jobs"), again).out, LINES)
        self.no_key_anywhere()
        self.ok("rm", job, again)
        self.assertEqual([name for name in self.names(self.here("jobs")) if name.startswith("jobs/")], [])
        self.refused("logs", "--from", self.here("jobs"), job, status=3, env=self.elsewhere)

    def test_an_elastic_job(self):
        (self.project / "train.py").write_text(
            "import os, sys, time\n"
            "rank, epoch = os.environ['RANK'], os.environ['OVERCAP_ELASTIC_EPOCH']\n"
            "for i in range(5):\n print(f'rank {rank} of epoch {epoch}: line {i}', flush=True); time.sleep(0.2)\n"
            "sys.exit(3 if (rank, epoch) == ('1', '1') else 0)\n")
        job = self.submit("--nodes", "1:2", "--cpus", "1", "--max-restarts", "1", "python3", "train.py")
        follow = self.overcap("logs", "-f", "--rank", "all", "--from", self.here("jobs"), job, env=self.elsewhere, deadline=90)
        self.assertEqual(self.overcap("wait", job, deadline=90).status, 0, self.record(job))
        logs = self.ok("logs", "--rank", "all", "--from", self.here("jobs"), job, env=self.elsewhere).out
        for out in (follow.out, logs):
            for node in range(2):
                said = [line for line in out.splitlines() if line.startswith(f"[{node}] ") and "line" in line]
                for epoch in (1, 2):
                    lines = [line.rpartition(": ")[2] for line in said if f"of epoch {epoch}:" in line]
                    least = 5 if (node, epoch) != (0, 1) else 0  # its peer has failed: it may be stopped before
                    self.assertEqual(lines, [f"line {i}" for i in range(max(least, len(lines)))], out)
        self.assertEqual(len(self.record(job)["logs"]), 2)
        for words in ((), ("--from", self.here("jobs"))):
            shown = self.ok("query", *words, job, env=self.elsewhere if words else None).out
            self.assertIn("epoch 2: 2 ranks on 2 nodes", shown)
        names = [name for name in self.names(self.here("jobs")) if name.startswith(f"jobs/{job}/attempt-1/node-1/")]
        for name in ("attempt-1/rank-1.log", "attempt-2/rank-1.log", "events.jsonl"):
            self.assertTrue([found for found in names if f"/node-1/{name}/0" in found], names)

    def names(self, store):
        return self.ok("store", "ls", "-R", store).out.splitlines()

    def no_key_anywhere(self):
        secrets = [self.env[name].encode() for name in SECRETS if name in self.env]
        for path in self.home.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                self.assertEqual([s for s in secrets if s in content], [], path)
        if not secrets:
            return
        self.ok("store", "cp", self.here("jobs"), str(self.root / "copy"))
        for path in (self.root / "copy").rglob("*"):
            if path.is_file():
                self.assertEqual([s for s in secrets if s in path.read_bytes()], [], path)


class OnCeph(ThroughAStore, StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Ceph()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket("job-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)

    def here(self, name):
        return f"s3://job-tests/{self.id().rpartition('.')[2]}/{name}"

    def test_arrays_and_several_ranks(self):
        job = self.submit("--array", "0-3", "--ranks-per-node", "2", *python("import os; print(os.environ['OVERCAP_TASK_ID'], os.environ['RANK'])"))
        self.ok("wait", job)
        for task in range(4):
            out = self.ok("logs", "--task", str(task), "--rank", "all", "--from", self.here("jobs"), job, env=self.elsewhere).out
            self.assertEqual(out, f"[0] {task} 0\n[1] {task} 1\n")
        self.assertEqual(self.ok("query", "--json", "--from", self.here("jobs"), job, env=self.elsewhere).json()["tasks"]["succeeded"], 4)

    def test_a_killed_agent_loses_nothing_of_the_log(self):
        job = self.submit(*python("import time\nprint('x' * 300000, flush=True)\nprint('last words', flush=True)\ntime.sleep(60)"))
        log = self.home / "jobs" / job / "attempt-1/rank-0.log"
        self.until(lambda: log.exists() and log.read_bytes().endswith(b"last words\n"), "the log")
        agents = [pid for pid in self.processes() if b"agent\0--job" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
        self.assertEqual(len(agents), 1)
        os.kill(agents[0], signal.SIGKILL)
        # Until the first piece is there it has no log.
        self.until(lambda: self.overcap("logs", "--tail", "1", "--from", self.here("jobs"), job, env=self.elsewhere).out == "last words\n", "the upload")
        self.until(lambda: not self.couriers(), "the courier to end")

    def couriers(self):
        return [pid for pid in self.processes() if b"agent\0courier" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]

    def test_killed_agent_and_courier_leave_the_rest_to_the_next_attempt(self):
        flag = self.facts / "second"
        job = self.submit("--requeue", *python(
            "import os, sys, time\n"
            f"flag = {str(flag)!r}\n"
            "if os.path.exists(flag): sys.exit(0)\n"
            "print('of the first attempt', flush=True)\n"
            f"open({str(self.facts / 'wrote')!r}, 'w').close()\n"
            "time.sleep(600)"))
        self.until((self.facts / "wrote").exists, "the rank")
        for pid in self.couriers():
            os.kill(pid, signal.SIGKILL)
        log = self.home / "jobs" / job / "attempt-1/rank-0.log"
        with open(log, "ab") as file:
            file.write(b"never seen by its courier\n")
        flag.touch()
        for pid in self.processes():
            if b"agent\0--job" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        self.ok("wait", job, deadline=60)
        out = self.ok("logs", "--attempt", "1", "--from", self.here("jobs"), job, env=self.elsewhere).out
        self.assertEqual(out, "of the first attempt\nnever seen by its courier\n")

    def check_mounts(self, mode):
        (self.project / "in").mkdir()
        (self.project / "in/x").write_text("of the bucket\n")
        self.ok("store", "cp", "in", self.here("data"))
        self.write("overcap.yaml", f"clusters:\n  local:\n    gpus: []\n    store: {self.here('jobs')}\n    mounts_at: {self.root}/node\n"
                                   f"    mounts:\n      data: {{store: '{self.here('data')}', mode: {mode}}}\n")
        job = self.ok("submit", "--mount", f"out={self.here('results')},mode=copy", *python(
            "import os; print(open('data/x').read(), end=''); open('out/y', 'w').write('made'); print(os.environ.get('AWS_SECRET_ACCESS_KEY'))")).out.strip()
        self.assertEqual(self.overcap("wait", job, deadline=90).status, 0, self.record(job))
        self.assertEqual(self.ok("logs", "--from", self.here("jobs"), job, env=self.elsewhere).out, "of the bucket\nNone\n")
        self.ok("store", "cp", self.here("results"), "results")
        self.assertEqual((self.project / "results/y").read_text(), "made")
        self.assertEqual([path for path in (self.root / "node").rglob("*") if path.is_file()], [])
        self.no_key_anywhere()

    def test_mounts_of_jobs_through_a_store_are_copied_with_the_keys_of_the_machine(self):
        self.check_mounts("copy-ro")

    @needs_fuse("rclone")
    def test_mounts_of_jobs_through_a_store_are_mounted_with_the_keys_of_the_machine(self):
        self.check_mounts("ro")

    def test_gc_removes_code_that_no_job_needs(self):
        job = self.submit("python3", "train.py")
        self.ok("wait", job)
        self.ok("rm", job)
        self.assertTrue([name for name in self.names(self.here("jobs")) if "store/code/" in name])
        other = self.submit(*python("pass"))
        self.ok("wait", other)
        done = self.ok("gc", "--json").json()
        self.assertEqual([(store["store"], store["skipped"]) for store in done["job_stores"]], [(self.here("jobs"), "")])
        self.assertEqual(self.ok("logs", "--from", self.here("jobs"), other).out, "")

    def test_what_is_wrong_is_said_in_a_line(self):
        self.refused("submit", "-n", "0", "--store", "s3://no-such-bucket-here/x", "true", status=3, says="no-such-bucket-here")
        self.refused("submit", "-n", "0", "--store", "mem:x", "true", says="memory")
        self.refused("submit", "-n", "0", "--store", "lab:x", "true", says="no store 'lab'")
        self.assertEqual(self.ok("ls", "--json").json(), [])


    def test_faults_on_the_way_lose_nothing(self):
        with FaultProxy(self.server.port, seed=7, longest=60_000) as proxy:
            env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}
            words = python("import random, time\nr = random.Random(1)\nfor i in range(150):\n"
                           " print(i, 'x' * r.randrange(4000), flush=True); time.sleep(0.02)")
            job = self.submit(*words, env=env)
            self.assertEqual(self.overcap("wait", job, deadline=120).status, 0)
        local = self.home / "jobs" / job / "attempt-1/rank-0.log"
        self.assertGreater(sum(count for fate, count in proxy.counts.items() if fate != "lives"), 0)
        stored = self.ok("logs", "--from", self.here("jobs"), job, env=self.elsewhere).raw_out
        self.assertEqual(stored, local.read_bytes())

    def test_a_store_that_is_away_disturbs_no_rank_and_is_told(self):
        with Gate(self.server.port) as gate:
            env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{gate.port}"}
            script = "import time\nfor i in range(10):\n print('line', i, flush=True); time.sleep(0.2)"
            job = self.submit(*python(script), env=env)
            log = self.home / "jobs" / job / "attempt-1/rank-0.log"
            self.until(lambda: log.exists() and b"line 1" in log.read_bytes(), "the rank")
            gate.close_for_a_while()
            self.until(lambda: b"line 9" in log.read_bytes(), "the rank to go on")
            gate.open_again()
            self.assertEqual(self.overcap("wait", job, deadline=120).status, 0)
            stored = self.ok("logs", "--from", self.here("jobs"), job, env=self.elsewhere).out
            self.assertEqual(stored, "".join(f"line {i}\n" for i in range(10)))
            # And one that stays away: the job's own end counts, and says what is missing.
            job = self.submit(*python("import time; time.sleep(1); print('never there', flush=True); time.sleep(600)"), env=env)
            log = self.home / "jobs" / job / "attempt-1/rank-0.log"
            self.until(lambda: log.exists(), "the rank")
            gate.close_for_a_while()
            self.until(lambda: b"never there" in log.read_bytes(), "the rank")
            self.ok("abort", job)
            self.overcap("wait", job, deadline=90)
            record = self.record(job)
            self.assertEqual(record["state"], "cancelled")
            self.assertIn("could not be uploaded", json.dumps(record) + (log.parent / "agent-0.jsonl").read_text())


class OnAzurite(ThroughAStore, StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Azurite()
        cls.addClassCleanup(cls.server.close)
        cls.server.make_container("job-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)

    def here(self, name):
        return f"az://{self.server.account}/job-tests/{self.id().rpartition('.')[2]}/{name}"


class OverSsh(ThroughAStore, StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts(1)
        cls.addClassCleanup(cls.hosts.close)

    def setUp(self):
        super().setUp()
        self.env["OVERCAP_SSH"] = self.hosts.ssh_program

    def here(self, name):
        return f"ssh://{self.hosts.names[0]}{self.root}/far/{name}"


if __name__ == "__main__":
    main()
