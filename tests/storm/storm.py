# SPDX-License-Identifier: Apache-2.0
"""A storm: clients submit jobs with side effects while disasters happen, and then everything is counted.

A suite brings a rig with an engine (cli/overcap_rig.Rig, cli/system_rig.SystemRig) and its disasters, and asks for the sums:

    storm = Storm(self, "engine kills")
    storm.run([EngineKill(self)] * 20)        # disasters, in this order, at random moments
    storm.check()                             # 0 missing, 0 twice, 0 clients that saw an error

A disaster is a subclass of Disaster (disasters.py, power_cut.py). tests/storm/run runs all storms, small or in full, by these variables:

    OVERCAP_STORM_KILLS=540      engine kills; 20 by default
    OVERCAP_STORM_AGENTS=431     agent kills among as many engine kills; 20 by default
    OVERCAP_STORM_CUTS=18        power cuts; 2 by default
    OVERCAP_STORM_SPECS=20000    mutated specs; 2,000 by default
    OVERCAP_STORM_CLIENTS=3      clients that submit at the same time
    OVERCAP_STORM_SEED=N         of all random choices; printed at the end
"""
import json
import os
import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from overcap_rig import FINAL, shell  # noqa: E402


def setting(name, default):
    return int(os.environ.get(f"OVERCAP_STORM_{name}", default))


KILLS, AGENTS, CUTS, SPECS = setting("KILLS", 20), setting("AGENTS", 20), setting("CUTS", 2), setting("SPECS", 2000)
CLIENTS, SEED = setting("CLIENTS", 3), setting("SEED", 1563257309)

# One line for each time that a task runs: the task, and when.
EFFECT = 'echo "${OVERCAP_TASK_ID:-0} $(date +%s%N)" >> "$FACTS/$OVERCAP_JOB_ID"; sleep "$1"'
LOST = 75  # the exit status of a client that waits for a job that is lost


def report(kind, text):
    """One line of sums, which tests/storm/run prints."""
    print(f"\nstorm: {kind}: {text}", file=sys.stderr, flush=True)


class Client(threading.Thread):
    """Submits one job after the other until its `end` is set."""

    KINDS = ((("submit", "-n", "0"), 1), (("submit", "-n", "0", "--wait"), 1), (("submit", "-n", "0", "--follow"), 1),
             (("submit", "-n", "0", "--json"), 1), (("submit", "-n", "0", "--array", "0-2"), 3))

    def __init__(self, storm, seed):
        super().__init__(daemon=True)
        self.storm, self.rng, self.end = storm, random.Random(seed), threading.Event()
        self.acknowledged = {}  # id: how many side effects it has
        self.succeeded = set()  # ids of jobs that a command has reported as succeeded
        self.errors = []

    def run(self):
        while not self.end.is_set():
            self.submit(*self.rng.choice(self.KINDS))
            self.end.wait(self.rng.random() * 0.1)

    def submit(self, words, effects):
        boot, done = self.storm.start(*words, *shell(EFFECT, self.rng.choice(("0", "0", "0.05", "0.3"))))
        try:
            out, err = done.communicate(timeout=120)
        except Exception as error:
            done.kill()
            self.errors.append(f"{words}: {error}")
            return
        with self.storm.power:
            if self.storm.boots != boot:
                return  # the power failed: the command died with its machine
            job_id = self.id_in(out.decode())
            if done.returncode not in ((0, LOST) if self.storm.may_lose else (0,)) or not job_id:
                self.errors.append(f"{words}: status {done.returncode}, {err.decode()!r}")
            if job_id:
                self.acknowledged[job_id] = effects
                if done.returncode == 0 and words[-1] in ("--wait", "--follow"):
                    self.succeeded.add(job_id)

    @staticmethod
    def id_in(out):
        return json.loads(out)["id"] if out.startswith("{") else out.split("\n")[0]


class Storm:
    def __init__(self, rig, kind, clients=CLIENTS, seed=SEED):
        self.rig, self.kind, self.seed, self.rng = rig, kind, seed, random.Random(seed)
        self.power = threading.Lock()  # held while the machine is down
        self.boots = 0
        self.clients = [Client(self, seed + number) for number in range(1, clients + 1)]
        self.struck, self.may_lose, self.clients_die = 0, False, False

    def start(self, *words):
        """Starts a command on the machine once that is up; gives the number of the boot too."""
        with self.power:
            return self.boots, self.rig.start(*words)

    def run(self, disasters):
        self.may_lose = any(disaster.may_lose for disaster in disasters)
        self.clients_die = any(disaster.clients_die for disaster in disasters)
        for client in self.clients:
            client.start()
        try:
            for disaster in disasters:
                time.sleep(self.rng.random() * disaster.calm)  # the random moment
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
        return sorted(line.split()[0] for line in file.read_text().splitlines()) if file.exists() else []

    def check(self):
        """Counts once all jobs have ended, reports the sums, and fails unless each is what it must be."""
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
        changed = [job_id for client in self.clients for job_id in client.succeeded
                   if job_id not in records or records[job_id]["state"] != "succeeded"]
        ran = [file.name for file in self.rig.facts.iterdir()]
        twice = [job_id for job_id in ran if len(self.effects(job_id)) != len(set(self.effects(job_id)))]
        unknown = sorted((set(records) | set(ran)) - set(acknowledged))
        sums = (f"{self.struck} disasters, {len(acknowledged)} jobs acknowledged: {len(missing)} missing, {len(twice)} twice, "
                f"{len(changed)} ends changed, {len(unknown)} that no client knows, {len(lost)} reported as lost, "
                f"{len(errors)} clients saw an error; seed {self.seed}")
        report(self.kind, sums)
        self.rig.assertEqual((missing, twice, changed, errors), ([], [], [], []), sums)
        if not self.clients_die:
            self.rig.assertEqual(unknown, [], sums)
        self.rig.assertGreaterEqual(len(acknowledged), self.struck, sums)
