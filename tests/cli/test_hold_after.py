# SPDX-License-Identifier: Apache-2.0
"""Jobs that wait because the user said so: --hold, hold, release, --after."""
from overcap_rig import Rig, main, shell


class Hold(Rig):
    def test_a_held_job_does_not_start_until_it_is_released(self):
        held = self.submit("--hold", *shell('touch "$FACTS/ran"'))
        self.run_job("true")  # the engine has had its chance
        self.assertEqual(self.job(held)["state"], "held")
        self.assertFalse((self.facts / "ran").exists())
        self.ok("release", held)
        self.assertEqual(self.ended(held)["state"], "succeeded")
        self.assertTrue((self.facts / "ran").exists())

    def test_a_queued_job_can_be_held_and_released(self):
        self.declare_gpus(1)
        blocker = self.submit("-n", "1", *shell(self.gate()))
        self.until_state(blocker, "running")
        queued = self.submit("-n", "1", "true")
        self.ok("hold", queued)
        self.open_gate()
        self.ended(blocker)
        self.assertEqual(self.job(queued)["state"], "held")
        self.ok("release", queued)
        self.assertEqual(self.ended(queued)["state"], "succeeded")

    def test_hold_of_an_ended_job_is_an_error(self):
        job = self.run_job("true")
        self.refused("hold", job["id"], status=6, says=job["id"])
        self.assertEqual(self.job(job["id"])["state"], "succeeded")

    def test_a_hold_survives_the_engine(self):
        held = self.submit("--hold", "true")
        self.ok("daemon", "stop")
        self.assertEqual(self.job(held)["state"], "held")
        self.ok("release", held)
        self.assertEqual(self.ended(held)["state"], "succeeded")


class After(Rig):
    def test_a_job_starts_after_the_other_has_succeeded(self):
        first = self.submit(*shell(f"{self.gate()}; echo first >> \"$FACTS/order\""))
        second = self.submit("--after", first, *shell('echo second >> "$FACTS/order"'))
        self.assertEqual(self.job(second)["after"], [first])
        self.until_state(first, "running")
        self.assertEqual(self.job(second)["state"], "queued")
        self.open_gate()
        self.assertEqual(self.ended(second)["state"], "succeeded")
        self.assertEqual((self.facts / "order").read_text(), "first\nsecond\n")

    def test_a_job_is_cancelled_when_the_other_fails(self):
        first = self.submit(*shell(f"{self.gate()}; exit 1"))
        second = self.submit("--after", first[-8:], *shell('touch "$FACTS/ran"'))
        self.open_gate()
        job = self.ended(second)
        self.assertEqual((job["state"], job["attempt"]), ("cancelled", 0))
        self.assertIn(first, job["reason"])
        self.assertFalse((self.facts / "ran").exists())

    def test_a_chain_falls_with_its_first_link(self):
        first = self.submit("--hold", "false")
        second = self.submit("--after", first, "true")
        third = self.submit("--after", second, "true")
        self.ok("release", first)
        self.assertEqual([self.ended(i)["state"] for i in (first, second, third)], ["failed", "cancelled", "cancelled"])

    def test_after_two_jobs_waits_for_both(self):
        one = self.submit(*shell(self.gate("one")))
        two = self.submit(*shell(self.gate("two")))
        both = self.submit("--after", one, "--after", two, "true")
        self.open_gate("one")
        self.ended(one)
        self.assertEqual(self.job(both)["state"], "queued")
        self.open_gate("two")
        self.assertEqual(self.ended(both)["state"], "succeeded")

    def test_after_a_job_that_has_already_succeeded_starts_at_once(self):
        first = self.run_job("true")["id"]
        self.assertEqual(self.run_job("--after", first, "true")["state"], "succeeded")

    def test_after_a_job_that_has_already_failed_is_refused(self):
        first = self.run_job("false")["id"]
        self.refused("submit", "--after", first, "true", status=6, says=[first, "--after-any"])
        self.assertEqual(self.run_job("--after-any", first, "true")["state"], "succeeded")

    def test_after_an_unknown_job_is_refused_and_leaves_nothing(self):
        unknown = "nobody_1563257309_00000000"
        self.refused("submit", "--after", unknown, "true", status=None, says=unknown)
        self.assertEqual(self.jobs("ls", "--all"), [])


if __name__ == "__main__":
    main()
