# SPDX-License-Identifier: Apache-2.0
"""Waiting gives the job's own status; abort stops a job in whatever state it is."""
from overcap_rig import Rig, alive, main, shell


class Wait(Rig):
    def test_wait_returns_the_exit_status_of_the_job(self):
        for status in (0, 1, 2, 77, 255):
            job_id = self.submit(*shell(f"exit {status}"))
            self.assertEqual(self.overcap("wait", job_id).status, status)
            self.assertEqual(self.job(job_id)["exit_status"], status)

    def test_death_by_a_signal_is_128_and_the_signal(self):
        for name, number in (("KILL", 9), ("TERM", 15), ("SEGV", 11)):
            job_id = self.submit(*shell(f"kill -{name} $$"))
            self.assertEqual(self.overcap("wait", job_id).status, 128 + number)
            job = self.job(job_id)
            self.assertEqual((job["state"], job["exit_status"], job["signal"], job["first_failed_rank"]),
                             ("failed", 128 + number, number, 0))

    def test_wait_blocks_until_the_job_has_ended(self):
        job_id = self.submit(*shell(f"{self.gate()}; exit 9"))
        process = self.start("wait", job_id)
        self.until_state(job_id, "running")
        self.assertIsNone(process.poll())
        self.open_gate()
        self.assertEqual(self.finish(process).status, 9)

    def test_wait_for_several_returns_a_failure_when_one_failed(self):
        good, bad = self.submit("true"), self.submit(*shell("exit 4"))
        self.assertEqual(self.overcap("wait", good, bad).status, 4)
        self.assertEqual(self.overcap("wait", good, good).status, 0)

    def test_wait_for_a_cancelled_job_is_no_success(self):
        job_id = self.submit("--hold", "true")
        self.ok("abort", job_id)
        self.assertNotEqual(self.overcap("wait", job_id).status, 0)


class Abort(Rig):
    def test_abort_of_a_running_job_stops_its_processes(self):
        job_id = self.submit(*shell('sleep 300 & echo "$$ $!" > "$FACTS/pids.tmp"; mv "$FACTS/pids.tmp" "$FACTS/pids"; wait'))
        pids = [int(word) for word in self.fact("pids").split()]
        self.ok("abort", job_id)
        job = self.ended(job_id)
        self.assertEqual(job["state"], "cancelled")
        self.assertNotIn("signal", self.ok("query", job_id).out)  # that it was told to end says it all
        self.until(lambda: not any(alive(pid) for pid in pids), "its processes to be gone", deadline=5)

    def test_a_rank_hears_term_first_and_may_clean_up(self):
        job_id = self.submit(*shell(
            'trap \'echo cleaned > "$FACTS/cleaned"; exit 0\' TERM; echo up > "$FACTS/up"; while :; do sleep 0.05; done'))
        self.fact("up")
        self.ok("abort", job_id)
        self.assertEqual(self.ended(job_id)["state"], "cancelled")
        self.assertEqual(self.fact("cleaned"), "cleaned")

    def test_abort_of_a_queued_job_means_it_never_runs(self):
        self.declare_gpus(1)
        blocker = self.submit("-n", "1", *shell(self.gate()))
        self.until_state(blocker, "running")
        queued = self.submit("-n", "1", *shell('touch "$FACTS/ran"'))
        self.ok("abort", queued)
        job = self.job(queued)
        self.assertEqual((job["state"], job["attempt"], job["started"]), ("cancelled", 0, None))
        self.open_gate()
        self.assertEqual(self.ended(blocker)["state"], "succeeded")
        self.assertFalse((self.facts / "ran").exists())

    def test_abort_of_an_ended_job_leaves_it_as_it_is(self):
        job = self.run_job(*shell("exit 3"))
        self.ok("abort", job["id"])
        after = self.job(job["id"])
        self.assertEqual((after["state"], after["exit_status"], after["ended"]), ("failed", 3, job["ended"]))

    def test_one_job_named_gives_an_object_several_an_array(self):
        ids = [self.submit("--hold", "true") for _ in range(2)]
        for verb in ("query", "hold", "release", "wait", "abort", "resubmit"):
            self.assertIsInstance(self.ok(verb, "--json", ids[0]).json(), dict, verb)
            self.assertEqual(len(self.ok(verb, "--json", *ids).json()), 2, verb)

    def test_abort_takes_several_jobs(self):
        ids = [self.submit("sleep", "300") for _ in range(3)] + [self.submit("--hold", "true")]
        self.ok("abort", *ids)
        self.assertEqual({self.ended(job_id)["state"] for job_id in ids}, {"cancelled"})

    def test_abort_twice_is_the_same_as_once(self):
        job_id = self.submit("sleep", "300")
        self.ok("abort", job_id)
        self.ok("abort", job_id)
        self.assertEqual(self.ended(job_id)["state"], "cancelled")

    def test_an_aborted_job_gives_its_gpus_back(self):
        self.declare_gpus(2)
        first = self.submit("-n", "2", "--one-rank-per-node", "sleep", "300")
        self.until_state(first, "running")
        second = self.submit("-n", "2", "--one-rank-per-node", "true")
        self.ok("abort", first)
        self.assertEqual(self.ended(second)["state"], "succeeded")


if __name__ == "__main__":
    main()
