# SPDX-License-Identifier: Apache-2.0
"""`why` on an engine that follows a policy: the promise knows its caps, quantum, grace and fair shares, and comes true."""
import datetime
import getpass
import json
import re

from overcap_rig import Rig, main, shell

ME = getpass.getuser()
POLICY = f"""nodes:
  here: {{gpus: a40:4, cpus: 16}}
labs:
  vision: 2 {ME}
  language: 2 {ME}
partitions:
  short: {{max_time: 1h}}
  overcap: {{grace: 3s, quantum: 15s, max_time: 2h}}
"""


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class WhyPolicy(Rig):
    def setUp(self):
        super().setUp()
        self.write("overcap.yaml", "clusters: {local: {cpus: 16, gpus: [{type: a40, count: 4}]}}\n")
        self.policy = self.root / "policy.yaml"
        self.policy.write_text(POLICY)
        self.start_engine()

    def start_engine(self):
        self.engine = self.start("daemon", "--policy", str(self.policy))
        self.until(lambda: self.overcap("daemon", "status").status == 0, "the engine")  # `ls` would start one without the policy

    def stop_engine(self):
        self.ok("daemon", "stop")
        self.finish(self.engine)

    def tearDown(self):
        self.stop_engine()
        super().tearDown()

    def hold(self, partition, gpus, lab, gate="gate", *words):
        return self.submit("-p", partition, "--account", lab, "-n", str(gpus), "--one-rank-per-node", *words,
                           *shell(f'trap : USR1; {self.gate(gate)}'))

    def why(self, job):
        return json.loads(self.ok("why", job, "--json").out)

    def started(self, job):
        self.until_state(job, "running", "succeeded")
        return seconds(self.job(job)["started"])

    def record(self):
        return json.loads(self.ok("why", "--record", "--json").out)["promises"][-1]


class Way(WhyPolicy):
    def test_who_borrows_gives_way_after_its_quantum_and_grace_and_so_it_is_promised(self):
        borrower = self.hold("overcap", 4, "vision", "borrowed")
        began = self.started(borrower)
        owner = self.hold("short", 2, "language")
        told = self.why(owner)
        p50, p90 = (seconds(told["start"][part]) for part in ("p50", "p90"))
        self.assertAlmostEqual(p50, began + 18, delta=2, msg="the quantum and the grace, not the limit of two hours")
        self.assertLessEqual(p50, p90)
        self.assertRegex("\n".join(told["facts"]), rf"the earliest to give way is {ME}'s 4xa40 in overcap at .* \(grace\)")
        self.until(lambda: re.search(rf"^its place in short is being made free: {ME}'s 4 GPUs in overcap go within [123]s$", self.why(owner)["text"]),
                   "the borrower to be told")
        self.assertNotIn("the earliest", "\n".join(self.why(owner)["facts"]), "who goes has been said")
        told_to_go = self.why(borrower)
        self.assertRegex(told_to_go["text"], "it is running")
        self.assertRegex("\n".join(told_to_go["facts"]), rf"(?s)told to give way to '{owner}': it is .*stopped.*its time limit ends it in .*over the cap")
        came = self.started(owner)
        self.assertGreaterEqual(came, began + 14)
        self.assertLess(abs(came - p50), 30, "what was promised came about")
        row = self.record()
        self.assertEqual((row["p50_held"], row["p90_held"], row["p50_broken"], row["p90_broken"]), (1, 1, 0, 0), row)
        self.open_gate()
        self.open_gate("borrowed")
        self.ended(borrower)


class Cap(WhyPolicy):
    def test_the_cap_of_the_lab_is_the_cause_and_its_own_jobs_decide_when(self):
        self.started(self.hold("short", 2, "vision", "vision", "-t", "10m"))
        own = self.hold("short", 2, "language", "language", "-t", "40m")
        began = self.started(own)
        waits = self.hold("short", 1, "language")
        self.until(lambda: "lab 'language' uses 2 of 2 GPUs" in self.why(waits)["text"], "the reason")
        told = self.why(waits)
        facts = "\n".join(told["facts"])
        self.assertNotIn("lab 'language' uses", facts, "said already")
        self.assertRegex(facts, rf"the earliest to end is {ME}'s 2xa40 at .* \(limit\)")
        self.assertAlmostEqual(seconds(told["start"]["p50"]), began + 2400, delta=90, msg="not the 10 minutes of the other lab")
        self.assertEqual([(offer["change"], offer["now"]) for offer in told["offers"]], [("overcap", False)], "in ten minutes")
        self.open_gate("vision")
        self.until(lambda: "overcap: now" in "\n".join(self.why(waits)["sooner"]), "overcap to be offered")
        self.open_gate("language")
        self.assertLess(self.started(waits), seconds(told["start"]["p50"]) + 60)
        self.open_gate()


class Never(WhyPolicy):
    def test_what_the_policy_never_allows_is_refused_with_the_limit_that_stands_against_it(self):
        self.policy.write_text(POLICY.replace(f"vision: 2 {ME}", f"vision: {{gpus: 2, members: [{ME}], per_user: {{jobs: 1, gpus: 1}}}}")
                               + "  tiny: {gpus_per_job: 1}\n  debug: {gpus_per_user: 1}\n")
        self.ok("policy", "apply", str(self.policy))
        for words, says in ((["-p", "short", "--account", "language", "-n", "3"], "asks for 3 GPUs, lab 'language' may have 2"),
                            (["--account", "vision", "-n", "2"], f"asks for 2 GPUs, user '{ME}' of lab 'vision' may have 1 at once"),
                            (["-p", "debug", "--account", "language", "-n", "2"], f"asks for 2 GPUs, user '{ME}' may have 1 at once in partition 'debug'"),
                            (["-p", "tiny", "--account", "language", "-n", "2"], "asks for 2 GPUs, a job in partition 'tiny' may have 1"),
                            (["-p", "short", "--account", "language", "-t", "2h"], "its time limit is 2h, partition 'short' allows 1h"),
                            (["-p", "overcap,short", "--account", "language", "-t", "3h"],
                             "its time limit is 3h, partition 'short' allows 1h, partition 'overcap' allows 2h")):
            self.refused("submit", *words, "true", says=[says])


class Closed(WhyPolicy):
    def test_a_maintenance_is_named_and_the_promise_is_its_end_and_a_shorter_limit_is_offered(self):
        now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        start, end = now + datetime.timedelta(minutes=30), now + datetime.timedelta(minutes=90)
        at = "%Y-%m-%dT%H:%M:%SZ"
        self.policy.write_text(POLICY + f"maintenance:\n  - {{name: power, start: {start.strftime(at)}, end: {end.strftime(at)}}}\n")
        self.ok("policy", "apply", str(self.policy))
        waits = self.hold("short", 1, "language")
        told = self.why(waits)
        self.assertRegex(told["text"], r"^short: maintenance 'power' begins in (30m|29m\d*s?), its time limit is 1h$")
        self.assertAlmostEqual(seconds(told["start"]["p50"]), end.timestamp(), delta=60)
        self.assertEqual([offer["now"] for offer in told["offers"] if offer["change"].startswith("a limit of ")], [True], told["offers"])
        fits = self.hold("short", 1, "language", "gate", "-t", "20m")
        self.until_state(fits, "running")
        self.assertEqual(self.job(waits)["state"], "queued")
        self.policy.write_text(POLICY)
        self.ok("policy", "apply", str(self.policy))
        self.until_state(waits, "running")
        self.open_gate()
        self.ended(waits)
        self.ended(fits)


class Shares(WhyPolicy):
    def test_a_lab_that_has_used_less_goes_first_and_the_promise_says_so(self):
        self.ended(self.submit("-p", "short", "--account", "vision", "-n", "2", "--one-rank-per-node", *shell("sleep 2")))
        self.stop_engine()  # one that starts looks at the shares at once
        self.start_engine()
        lasts = self.hold("short", 2, "vision", "lasts", "-t", "1h")
        lent = self.hold("overcap", 2, "vision", "lent", "-t", "30m")
        begun = max(self.started(lasts), self.started(lent))
        used_much = self.hold("overcap", 2, "vision", "then", "-t", "1h")
        used_nothing = self.hold("overcap", 2, "language", "then", "-t", "1h")
        sooner, later = (seconds(self.why(job)["start"]["p50"]) for job in (used_nothing, used_much))
        self.assertLessEqual(sooner, begun + 1860, "submitted later, and yet it does not wait for the other one")
        self.assertGreater(later, begun + 1860)
        self.open_gate("lent")
        self.started(used_nothing)
        self.assertEqual(self.job(used_much)["state"], "queued")
        for gate in ("lasts", "then"):
            self.open_gate(gate)
        self.ended(used_much)


if __name__ == "__main__":
    main()
