# SPDX-License-Identifier: Apache-2.0
"""Labs share one machine by its own engine: caps hold, what is idle is lent, the owners get it back within the grace
time, and who borrowed loses not a step."""
import getpass
import json
import os
import signal
import time

from overcap_rig import PYTHON, REPOSITORY, Rig, main, shell
from rigs.counting_job import COUNTING_JOB

ME = getpass.getuser()
POLICY = f"""nodes:
  here: {{gpus: a40:4, cpus: 16}}
labs:
  vision: {{gpus: 2, members: [{ME}], per_user: {{gpus: 1}}}}
  language: 2 {ME}
partitions:
  debug: {{gpus_per_user: 1, max_time: 10m}}
  short: {{max_time: 1h}}
  user-overcap: {{grace: 20s, quantum: 0}}
  overcap: {{grace: 20s, quantum: 0}}
"""


class PolicyRig(Rig):
    policy_text = POLICY

    def setUp(self):
        super().setUp()
        self.write("overcap.yaml", "clusters: {local: {cpus: 16, gpus: [{type: a40, count: 4}]}}\n")
        self.policy = self.root / "policy.yaml"
        self.policy.write_text(self.policy_text)
        self.apply()

    def apply(self, *words):
        return self.ok("policy", "apply", *words, str(self.policy))

    def hold_gpus(self, partition, gpus=1, lab="vision", gate="gate", *words):
        return self.submit("-p", partition, "--account", lab, "-n", str(gpus), "--one-rank-per-node", *words,
                           *shell(f'trap "exit 3" USR1 TERM; {self.gate(gate)}'))

    def usage(self):
        return {lab["name"]: lab for lab in json.loads(self.ok("usage", "-l", "--json").out)["labs"]}

    def running(self, *jobs):
        for job in jobs:
            self.until_state(job, "running")

    def reason(self, job):
        return self.job(job)["reason"] or ""


class Lending(PolicyRig):
    def said(self, job, attempt=1):
        path = self.home / "jobs" / job / f"attempt-{attempt}" / "rank-0.log"
        return path.read_text().splitlines() if path.exists() else []

    def borrow(self, lab):
        return self.submit("-p", "overcap", "--account", lab, "-n", "1", "--", PYTHON, "-S", "resume.py")

    def test_borrowers_give_back_within_the_grace_time_and_lose_no_step(self):
        self.write("resume.py", COUNTING_JOB)
        self.env.update(PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1")
        jobs = [self.borrow(lab) for lab in ("vision", "vision", "vision", "language")]
        for job in jobs:
            self.until(lambda job=job: self.said(job), f"{job} to count")
        use = self.usage()
        self.assertEqual([(use[lab]["gpus"], use[lab]["overcap_gpus"], use[lab]["gpu_cap"]) for lab in ("vision", "language")],
                         [(0, 3, 2), (0, 1, 2)])
        began = time.monotonic()
        owner = self.hold_gpus("short", 2, "language")
        self.running(owner)
        self.assertLess(time.monotonic() - began, 20, "the warning is enough, the grace time is never needed")
        gone = [job for job in jobs if self.job(job)["state"] == "queued"]
        self.assertEqual(len(gone), 2, "never more than needed")
        for job in gone:
            record = self.job(job)
            self.assertEqual((record["preemptions"], record["preempted_by"], record["lab"]), (1, owner, record["lab"]))
            self.assertIn("preempted", self.ok("query", job).out)
        self.assertIn("language", self.ok("ls").out)
        self.open_gate()
        for job in gone:
            self.until(lambda job=job: self.said(job, 2), f"{job} to go on")
        (self.facts / "finish").touch()
        for job in jobs:
            self.assertEqual(self.ended(job)["state"], "succeeded", job)
        for job in gone:
            first, second = self.said(job), self.said(job, 2)
            self.assertEqual(first[0], "attempt 1 begins at step 0")
            saved = int(first[1].removeprefix("saved step "))
            self.assertEqual(second[0], f"attempt 2 begins at step {saved}", "not a step is lost or done twice")
            self.assertGreaterEqual(int(second[1].removeprefix("done at step ")), saved)

    def test_who_does_not_listen_is_stopped_when_the_grace_is_over(self):
        self.policy.write_text(self.policy_text.replace("overcap: {grace: 20s, quantum: 0}", "overcap: {grace: 1s, quantum: 0}"))
        self.apply()
        deaf = self.submit("-p", "overcap", "-n", "4", "--one-rank-per-node",
                           *shell(f'trap "" USR1; echo $OVERCAP_ATTEMPT >> $FACTS/starts; {self.gate("deaf")}'))
        self.fact("starts")
        owner = self.hold_gpus("short", 2, "language")
        self.running(owner)
        self.open_gate()
        self.until(lambda: (self.facts / "starts").read_text() == "1\n2\n", "the deaf one to begin again")
        self.open_gate("deaf")
        record = self.ended(deaf)
        self.assertEqual((record["state"], record["attempt"], record["preemptions"]), ("succeeded", 2, 1))

    def test_tasks_of_an_array_give_way_and_every_one_is_done(self):
        array = self.submit("-p", "overcap", "--array", "0-5", "-n", "1", "--one-rank-per-node",
                            *shell(f'echo $OVERCAP_TASK_ID >> $FACTS/begun; {self.gate("tasks")}'))
        self.until(lambda: (self.facts / "begun").exists() and len((self.facts / "begun").read_text().split()) == 4, "4 lanes")
        owner = self.hold_gpus("short", 2, "language")
        self.running(owner)
        self.open_gate("tasks")
        self.open_gate()
        record = self.ended(array)
        self.assertEqual((record["state"], record["tasks"]["succeeded"]), ("succeeded", 6), record)

    def test_kill_9_of_the_engine_between_warning_and_end_changes_nothing(self):
        script = 'echo "$OVERCAP_ATTEMPT $$" >> $FACTS/$OVERCAP_JOB_ID; trap "touch $FACTS/warned-$OVERCAP_JOB_ID" USR1; '
        jobs = [self.submit("-p", "overcap", "-n", "2", "--one-rank-per-node", *shell(script + self.gate("victims")))
                for _ in range(2)]
        for job in jobs:
            self.fact(job)
        owner = self.hold_gpus("short", 2, "language")
        self.until(lambda: [f for f in os.listdir(self.facts) if f.startswith("warned-")], "a warning")
        for _ in range(3):
            os.kill(self.daemon_pid(), signal.SIGKILL)
            self.until(lambda: self.overcap("ls").status == 0, "the engine to be back")
        told = [job for job in jobs if self.job(job)["preemptions"]]
        self.assertEqual([self.job(job)["preemptions"] for job in told], [1], "one victim, told once")
        self.running(owner)
        self.assertEqual(self.job(told[0])["state"], "queued")
        self.open_gate()
        self.open_gate("victims")
        for job in jobs:
            self.assertEqual(self.ended(job)["state"], "succeeded")
        attempts = [[line.split()[0] for line in (self.facts / job).read_text().splitlines()] for job in jobs]
        self.assertEqual(sorted(attempts), [["1"], ["1", "2"]], "no attempt ran twice")


class Ruled(PolicyRig):
    def test_caps_and_the_limits_of_debug_hold(self):
        first = self.hold_gpus("short", 2, "language")
        self.running(first)
        waits = self.hold_gpus("short", 1, "language")
        self.until(lambda: "lab 'language' uses 2 of 2 GPUs" in self.reason(waits), "the reason")
        self.assertIn("2 of 2", self.ok("why", waits).out)
        debug = [self.hold_gpus("debug", 1, "vision") for _ in range(2)]
        self.running(debug[0])
        self.assertEqual(self.job(debug[1])["state"], "queued", "one GPU per user there")
        self.refused("submit", "-p", "debug", "--time", "11m", "true", says=["time limit"])
        self.refused("submit", "-p", "debug", "-n", "2", "true", says=["of lab 'vision' may have 1 at once"])
        self.refused("submit", "-p", "short", "--account", "language", "-n", "3", "true", says=["lab 'language' may have 2", "caps"])
        self.refused("submit", "-p", "fast", "true", says=["no partition 'fast'", "debug"])
        self.refused("submit", "--account", "art", "true", status=4, says=["not in lab 'art'"])
        self.refused("submit", "--qos", "high", "true", says=["no QOS"])
        self.open_gate()
        self.assertEqual(self.ended(waits)["partition"], "short")

    def test_a_job_has_the_time_limit_of_its_partition(self):
        self.policy.write_text(self.policy_text.replace("max_time: 10m", "max_time: 1s"))
        self.apply()
        job = self.ended(self.submit("-p", "debug", "-n", "1", "--one-rank-per-node", *shell("exec sleep 100")))
        self.assertEqual((job["state"], job["reason"]), ("failed", "time limit of 1s reached"))

    def test_several_partitions_are_filled_in_their_order_and_the_borrower_yields_to_labmates(self):
        both = "short,user-overcap"
        jobs = [self.hold_gpus(both, 1) for _ in range(2)]
        self.running(*jobs)
        self.assertEqual([self.job(job)["partition"] for job in jobs], ["short", "user-overcap"], "one in short per user")
        third = self.hold_gpus(both, 1)
        self.until(lambda: "2 of 2" in self.reason(third), "the cap to hold")
        self.policy.write_text(self.policy_text.replace("per_user: {gpus: 1}", "per_user: {gpus: 2}"))
        self.apply()
        self.running(third)
        self.assertEqual(self.job(third)["partition"], "short")
        self.assertEqual((self.job(jobs[1])["state"], self.job(jobs[1])["preempted_by"]), ("queued", third), "it gave way")
        self.open_gate()
        for job in (*jobs, third):
            self.ended(job)

    def test_a_policy_is_changed_while_jobs_run_and_a_bad_one_changes_nothing(self):
        first = self.hold_gpus("short", 2, "language")
        waits = self.hold_gpus("short", 2, "language")
        self.running(first)
        good = self.policy.read_text()
        for bad, says in ((good.replace("language: 2", "language: 9"), "caps of 11 GPUs"), (good.replace("a40:4", "a40:8"), "a40:4"),
                          ("labs: [", "policy.yaml:1")):
            self.policy.write_text(bad)
            self.refused("policy", "apply", str(self.policy), says=[says])
        self.assertEqual(self.job(waits)["state"], "queued")
        self.policy.write_text(good.replace("language: 2", "language: 4").replace("gpus: 2, members", "gpus: 0, members"))
        shown = self.apply("--dry-run")
        self.assertIn("lab 'language': gpus 2 -> 4, shares 2 -> 4\n", shown.out)
        self.assertEqual(self.job(waits)["state"], "queued", "--dry-run changes nothing")
        self.apply()
        self.running(waits)
        self.assertEqual(self.apply().out.strip(), "nothing to change")
        os.kill(self.daemon_pid(), signal.SIGKILL)
        self.assertEqual(self.usage()["language"]["gpu_cap"], 4, "an engine that starts has the policy that was applied")
        self.open_gate()
        for job in (first, waits):
            self.ended(job)

    def test_a_file_that_is_bad_at_the_start_keeps_the_policy_before(self):
        self.ok("daemon", "stop")
        self.policy.write_text("labs: {vision: 1\n")
        daemon = self.start("daemon", "--policy", str(self.policy))
        self.until(lambda: self.overcap("daemon", "status").status == 0, "the engine")  # `ls` would start one without the policy
        self.assertEqual(self.usage()["language"]["gpu_cap"], 2)
        told = self.ok("daemon", "status")
        self.assertIn(f"policy   {self.policy}", told.out)
        self.assertRegex(told.err, r"not what is followed.*policy\.yaml:\d+: ")
        self.ok("daemon", "stop")
        done = self.finish(daemon)
        self.assertIn("policy.yaml:", done.err)
        os.remove(self.home / "policy.yaml")
        done = self.overcap("daemon", "--policy", str(self.policy))
        self.assertEqual(done.status, 2, str(done))


class Without(Rig):
    def test_without_a_policy_there_are_no_partitions(self):
        self.declare_gpus(2)
        self.refused("submit", "-p", "short", "true", says=["has no partitions"])
        self.assertEqual(self.run_job("-n", "1", "true")["lab"], None)


if __name__ == "__main__":
    main()
