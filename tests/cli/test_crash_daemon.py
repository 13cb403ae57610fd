# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the engine at random moments, with a fixed seed: no job lost, none run twice, no GPU given twice."""
import json
import os
import random
import signal
import time

from overcap_rig import FINAL, Rig, alive, main, shell

ROUNDS = int(os.environ.get("OVERCAP_CRASH_ROUNDS", "200"))
SEED = int(os.environ.get("OVERCAP_CRASH_SEED", "1563257309"))

# Each job writes into a file of its own: when it started on which GPUs, and when it ended.
SCRIPT = ('echo "start $(date +%s%N) $CUDA_VISIBLE_DEVICES" >> "$FACTS/$OVERCAP_JOB_ID"; sleep "$1"; '
          'echo "end $(date +%s%N)" >> "$FACTS/$OVERCAP_JOB_ID"; exit "$2"')


class CrashRounds(Rig):
    def test_no_job_is_lost_none_runs_twice_and_no_gpu_is_given_twice(self):
        self.declare_gpus(3)
        rng = random.Random(SEED)
        accepted, refused, kills = {}, 0, 0
        self.run_job("true")
        pid = self.daemon_pid()
        for number in range(ROUNDS):
            submits = []
            for _ in range(rng.randint(1, 2)):
                status = rng.choice((0, 0, 0, 7))
                job = shell(SCRIPT, f"{rng.choice((0, 0.01, 0.03, 0.1))}", str(status))
                submits.append((status, self.start("submit", "-n", str(rng.randint(1, 2)), "--one-rank-per-node", *job)))
            time.sleep(rng.random() * 0.03)  # the random moment
            self.kill(pid, signal.SIGKILL)
            kills += 1
            for status, process in submits:
                done = self.finish(process)
                if done.status == 0:
                    accepted[self.id_in(done)] = status
                else:
                    refused += 1
                    self.assertTrue(done.err.strip(), str(done))
            if number % 10 == 9:  # let the queue drain now and then
                for job_id in list(accepted)[-3:]:
                    self.ended(job_id)
            pid = self.daemon_pid()
        self.assertGreater(len(accepted), ROUNDS // 2, "most submits get through")
        self.until(lambda: all(job["state"] in FINAL for job in self.jobs("ls", "--all")), "all jobs to end")
        records = {job["id"]: job for job in self.jobs("ls", "--all")}
        self.check_every_job(accepted, records)
        self.check_gpus(records)
        print(f"\n{kills} kills, {len(accepted)} accepted, {refused} refused, seed {SEED}")

    def check_every_job(self, accepted, records):
        for job_id, status in accepted.items():
            self.assertIn(job_id, records, "an accepted job was lost")
            job = records[job_id]
            ending = ("succeeded" if status == 0 else "failed", status)
            self.assertEqual((job["state"], job["exit_status"]), ending, job)
        for name in os.listdir(self.facts):
            lines = (self.facts / name).read_text().splitlines()
            self.assertEqual([line.split()[0] for line in lines], ["start", "end"], f"{name}: {lines}")
            self.assertIn(name, records, "a job ran that nobody knows")
        self.assertLessEqual(set(accepted), set(os.listdir(self.facts)), "an accepted job never ran")

    def check_gpus(self, records):
        spans = {}
        for name in os.listdir(self.facts):
            start, end = [line.split() for line in (self.facts / name).read_text().splitlines()]
            self.assertEqual(len(start[2].split(",")), records[name]["gpus"])
            for gpu in start[2].split(","):
                spans.setdefault(gpu, []).append((int(start[1]), int(end[1]), name))
        self.assertLessEqual(set(spans), {"0", "1", "2"})
        for gpu, times in spans.items():
            times.sort()
            for (_, end, one), (start, _, two) in zip(times, times[1:]):
                self.assertLessEqual(end, start, f"GPU {gpu} was given to {one} and {two} at the same time")


class AgentCrashRounds(Rig):
    def test_a_killed_agent_is_reported_and_its_job_neither_lost_nor_run_twice(self):
        self.declare_gpus(3)
        rng = random.Random(SEED)
        self.run_job("true")
        ids, killed = [], 0
        for _ in range(ROUNDS):
            job_id = self.submit("-n", "1", "--one-rank-per-node", *shell(SCRIPT, f"{rng.choice((0.01, 0.03, 5))}", "0"))
            ids.append(job_id)
            time.sleep(rng.random() * 0.03)  # the random moment
            claim = self.home / "jobs" / job_id / "attempt-1" / "agent-0.claim"
            self.until(claim.exists, "the agent's claim")
            agent = json.loads(claim.read_text())["pid"]
            if alive(agent):
                self.kill(agent, signal.SIGKILL)
                killed += 1
        self.until(lambda: all(job["state"] in FINAL for job in self.jobs("ls", "--all")), "all jobs to end")
        records = {job["id"]: job for job in self.jobs("ls", "--all")}
        for job_id in ids:
            facts = self.facts / job_id
            lines = [line.split()[0] for line in facts.read_text().splitlines()] if facts.exists() else []
            self.assertIn(records[job_id]["state"], ("lost", "succeeded"), records[job_id])
            self.assertLessEqual(lines.count("start"), 1, "a job ran twice")
            if records[job_id]["state"] == "succeeded":
                self.assertEqual(lines, ["start", "end"])
            else:
                self.assertIn("agent was killed", records[job_id]["reason"])
        lost = sum(records[job_id]["state"] == "lost" for job_id in ids)
        self.assertGreater(lost, ROUNDS // 4, "agents were really killed")
        self.assertLessEqual(lost, killed)
        self.assertEqual(self.daemon_status()["gpus_free"], 3, "every GPU came back")
        self.assertEqual(self.processes(), [self.daemon_pid()], "only the engine is left")


class Crash(Rig):
    def test_a_running_job_is_found_again_and_not_started_twice(self):
        job_id = self.submit(*shell(f'echo $$ >> "$FACTS/pids"; {self.gate()}; exit 5'))
        rank = int(self.fact("pids"))
        for _ in range(3):
            self.kill(self.daemon_pid())
            job = self.job(job_id)
            self.assertEqual((job["state"], job["attempt"]), ("running", 1))
        self.assertTrue(alive(rank))
        self.open_gate()
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"], job["attempt"]), ("failed", 5, 1))
        self.assertEqual(self.fact("pids"), str(rank))

    def ended_while_the_engine_was_dead(self, name, how):
        """The record of a job that ended as `how` says between two engines, and when that was."""
        job_id = self.submit(*shell(f'echo $$ > "$FACTS/{name}"; {self.gate("gate-" + name)}; {how}'))
        self.fact(name)
        self.kill(self.daemon_pid())
        self.open_gate("gate-" + name)
        self.until(lambda: not self.processes(), "the rank and its agent to end")
        return job_id, time.time()

    def test_what_ended_while_the_engine_was_dead_has_its_true_status(self):
        for name, how, state, status, number in (("a", "exit 0", "succeeded", 0, None), ("b", "exit 7", "failed", 7, None),
                                                 ("c", "kill -SEGV $$", "failed", 139, 11)):
            job_id, _ = self.ended_while_the_engine_was_dead(name, how)
            job = self.ended(job_id)
            self.assertEqual((job["state"], job["exit_status"], job["signal"]), (state, status, number), how)

    def test_it_ended_when_it_ended_and_not_when_the_engine_came_back(self):
        job_id, gone = self.ended_while_the_engine_was_dead("a", "exit 0")
        time.sleep(1.5)
        limit = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(gone + 1.2))
        self.assertLess(self.ended(job_id)["ended"], limit)

    def test_a_queued_job_survives_the_engine(self):
        self.declare_gpus(1)
        blocker = self.submit("-n", "1", *shell(self.gate()))
        self.until_state(blocker, "running")
        queued = [self.submit("-n", "1", "echo", str(i)) for i in range(5)]
        self.kill(self.daemon_pid())
        self.assertEqual([self.job(job_id)["state"] for job_id in queued], ["queued"] * 5)
        self.open_gate()
        self.assertEqual([self.ended(job_id)["state"] for job_id in queued], ["succeeded"] * 5)
        starts = [self.job(job_id)["started"] for job_id in queued]
        self.assertEqual(starts, sorted(starts))

    def test_the_gpus_of_a_running_job_stay_taken_after_a_crash(self):
        self.declare_gpus(2)
        first = self.submit("-n", "2", "--one-rank-per-node", *shell(self.gate()))
        self.until_state(first, "running")
        self.kill(self.daemon_pid())
        second = self.submit("-n", "1", "true")
        self.assertEqual(self.job(second)["state"], "queued")
        self.open_gate()
        self.assertEqual(self.ended(second)["state"], "succeeded")
        self.assertGreaterEqual(self.job(second)["started"], self.job(first)["ended"])

    def test_an_abort_that_was_accepted_is_carried_out_after_a_crash(self):
        job_id = self.submit(*shell('trap "sleep 0.5; exit 0" TERM; echo up > "$FACTS/up"; while :; do sleep 0.02; done'))
        self.fact("up")
        process = self.start("abort", job_id)
        pid = self.daemon_pid()
        self.kill(pid)
        accepted = self.finish(process).status == 0
        if not accepted:
            self.ok("abort", job_id)
        self.assertEqual(self.ended(job_id)["state"], "cancelled")

    def test_wait_outlives_a_crash_of_the_engine(self):
        job_id = self.submit(*shell(f"{self.gate()}; exit 3"))
        self.until_state(job_id, "running")
        waiting = self.start("wait", job_id)
        self.kill(self.daemon_pid())
        self.daemon_restarted()
        self.open_gate()
        self.assertEqual(self.finish(waiting).status, 3)

    def daemon_restarted(self):
        self.jobs("ls")


if __name__ == "__main__":
    main()
