# SPDX-License-Identifier: Apache-2.0
"""A storm: clients submit jobs with side effects while disasters happen, and then everything is counted.

A suite brings a rig with an engine (cli/overcap_rig.Rig, cli/system_rig.SystemRig) and its disasters, and asks for the sums:

    storm = Storm(self, clients=3)
    storm.run([EngineKill(self)] * 20)        # disasters, in this order, at random moments
    storm.check()                             # 0 missing, 0 twice, 0 clients that saw an error

A disaster is an object with `strike()`, which does the harm and puts right what clients cannot (a client starts the engine of its
own user, but not the shared one). One that kills more than the engine, such as AgentKill, says by `may_lose()` that jobs may end as
`lost`; these must have begun once at the most and are counted apart. A power cut would be one more class.

How large a storm is, is told by variables, so that the gate's small one and a full one are the same code:

    OVERCAP_STORM_KILLS=540      engine kills; 20 unless told
    OVERCAP_STORM_AGENTS=431     agent kills among as many engine kills; 20 unless told
    OVERCAP_STORM_CLIENTS=3      clients that submit at the same time
    OVERCAP_STORM_SEED=N         of all random choices; printed at the end
"""
import json
import os
import pathlib
import random
import re
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from overcap_rig import FINAL, alive, shell  # noqa: E402

KILLS = int(os.environ.get("OVERCAP_STORM_KILLS", "20"))
AGENTS = int(os.environ.get("OVERCAP_STORM_AGENTS", "20"))
CLIENTS = int(os.environ.get("OVERCAP_STORM_CLIENTS", "3"))
SEED = int(os.environ.get("OVERCAP_STORM_SEED", "1563257309"))

# One line for each time that a task runs.
EFFECT = 'echo "${OVERCAP_TASK_ID:-0}" >> "$FACTS/$OVERCAP_JOB_ID"; sleep "$1"'
LOST = 75  # the exit status of a client that waits for a job that is lost


class EngineKill:
    """kill -9 of a user's own engine. The next client starts another."""

    def __init__(self, rig):
        self.rig, self.killed = rig, 0

    def may_lose(self):
        return False

    def pid(self):
        try:
            pid = int(re.search(r"\d+", (self.rig.home / "daemon.lock").read_text())[0])
        except (OSError, TypeError):
            return 0
        return pid if pid != self.killed and alive(pid) else 0

    def strike(self):
        self.killed = self.rig.until(self.pid, "an engine to kill")
        self.rig.kill(self.killed, signal.SIGKILL)


class AgentKill:
    """kill -9 of an agent, as soon as there is one. Its job is lost, or has just ended."""

    def __init__(self, rig):
        self.rig, self.killed = rig, set()

    def may_lose(self):
        return True

    def agent(self):
        for pid in self.rig.processes():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if pid not in self.killed and words[1:2] == [b"agent"] and b"--job" in words:
                return pid
        return None

    def strike(self):
        pid = self.rig.until(self.agent, "an agent to kill")
        self.killed.add(pid)
        self.rig.kill(pid, signal.SIGKILL)


class SharedEngineKill:
    """kill -9 of the engine of a whole machine, which is away for some time before it is started again."""

    def __init__(self, rig, rng):
        self.rig, self.rng = rig, rng

    def may_lose(self):
        return False

    def strike(self):
        self.rig.stop_engine(signal.SIGKILL)
        time.sleep(self.rng.choice((0, 0, 0.1, 1)))
        self.rig.start_engine()


class Client(threading.Thread):
    """Submits one job after the other until it is told to end."""

    KINDS = ((("submit", "-n", "0"), 1), (("submit", "-n", "0", "--wait"), 1), (("submit", "-n", "0", "--follow"), 1),
             (("submit", "-n", "0", "--json"), 1), (("submit", "-n", "0", "--array", "0-2"), 3))

    def __init__(self, rig, seed):
        super().__init__(daemon=True)
        self.rig, self.rng, self.end = rig, random.Random(seed), threading.Event()
        self.may_lose = False
        self.acknowledged = {}  # id: how many side effects it has
        self.errors = []

    def run(self):
        while not self.end.is_set():
            words, effects = self.rng.choice(self.KINDS)
            done = self.rig.start(*words, *shell(EFFECT, self.rng.choice(("0", "0", "0.05", "0.3"))))
            try:
                out, err = done.communicate(timeout=120)
            except Exception as error:
                done.kill()
                self.errors.append(f"{words}: {error}")
                continue
            job_id = self.id_in(out.decode())
            if done.returncode not in ((0, LOST) if self.may_lose else (0,)) or not job_id:
                self.errors.append(f"{words}: status {done.returncode}, {err.decode()!r}")
            if job_id:
                self.acknowledged[job_id] = effects
            self.end.wait(self.rng.random() * 0.1)

    @staticmethod
    def id_in(out):
        return json.loads(out)["id"] if out.startswith("{") else out.split("\n")[0]


class Storm:
    def __init__(self, rig, clients=CLIENTS, seed=SEED):
        self.rig, self.seed, self.rng = rig, seed, random.Random(seed)
        self.clients = [Client(rig, seed + number) for number in range(1, clients + 1)]
        self.struck, self.may_lose = 0, False

    def run(self, disasters):
        self.may_lose = any(disaster.may_lose() for disaster in disasters)
        for client in self.clients:
            client.may_lose = self.may_lose
            client.start()
        try:
            for disaster in disasters:
                time.sleep(self.rng.random() * 0.4)  # the random moment
                disaster.strike()
                self.struck += 1
        finally:
            for client in self.clients:
                client.end.set()
            for client in self.clients:
                client.join(180)
        self.rig.assertFalse([client for client in self.clients if client.is_alive()], "a client hangs")

    def effects(self, job_id):
        file = self.rig.facts / job_id
        return sorted(file.read_text().split()) if file.exists() else []

    def check(self):
        """Counts once all jobs have ended, prints the sums, and fails unless each is what it must be."""
        def all_ended():
            return all(job["state"] in FINAL for job in self.rig.jobs("ls", "--all"))

        self.rig.until(all_ended, "all jobs to end", 120)
        records = {job["id"]: job for job in self.rig.jobs("ls", "--all")}
        acknowledged = {job_id: count for client in self.clients for job_id, count in client.acknowledged.items()}
        errors = [error for client in self.clients for error in client.errors]
        lost = {job_id for job_id, job in records.items()
                if self.may_lose and (job["state"] == "lost" or (job["tasks"] or {}).get("lost"))}
        missing = [job_id for job_id, count in acknowledged.items()
                   if job_id not in lost and (job_id not in records or records[job_id]["state"] != "succeeded"
                                              or len(set(self.effects(job_id))) != count)]
        ran = [file.name for file in self.rig.facts.iterdir()]
        twice = [job_id for job_id in ran if len(self.effects(job_id)) != len(set(self.effects(job_id)))]
        unasked = sorted((set(records) | set(ran)) - set(acknowledged))
        sums = (f"{self.struck} disasters, {len(acknowledged)} jobs acknowledged: {len(missing)} missing, {len(twice)} twice, "
                f"{len(unasked)} that no client knows, {len(lost)} lost, {len(errors)} clients saw an error; seed {self.seed}")
        print(f"\n{sums}", file=sys.stderr)
        self.rig.assertEqual((missing, twice, unasked, errors), ([], [], [], []), sums)
        self.rig.assertGreaterEqual(len(acknowledged), self.struck, sums)
