# SPDX-License-Identifier: Apache-2.0
"""`why` on this machine: when a job will start, what would start sooner, and how often that was right."""
import datetime
import json

from overcap_rig import Rig, main, shell


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Why(Rig):
    def setUp(self):
        super().setUp()
        self.declare_gpus(4)

    def why(self, job, *flags):
        return json.loads(self.ok("why", job, *flags, "--json").out)

    def record(self):
        return json.loads(self.ok("why", "--record", "--json").out)["promises"]

    def promises(self):
        return [json.loads(line) for line in (self.home / "promises.jsonl").read_text().splitlines()]

    def busy(self, gpus=4, limit="1h"):
        job = self.submit("-n", str(gpus), "--one-rank-per-node", "-t", limit, *shell(self.gate()))
        self.until_state(job, "running")
        return job

    def test_without_past_runs_the_limit_is_the_promise_and_the_answer_says_so(self):
        first = self.busy()
        waiting = self.submit("-n", "2", "--one-rank-per-node", "-t", "30m", "true")
        told = self.why(waiting)
        ends = seconds(self.job(first)["started"]) + 3600
        self.assertAlmostEqual(seconds(told["start"]["p50"]), ends, delta=90)
        self.assertAlmostEqual(seconds(told["start"]["p90"]), ends, delta=90)
        self.assertEqual((told["start"]["past_runs"], told["start"]["now"]), (0, False))
        self.assertEqual(told["start"]["replays"], 200)
        self.assertRegex("\n".join(told["facts"]), r"the earliest to end is \S+'s 4 ?x?\S* at .*\(limit\)")
        said = self.ok("why", waiting).out
        self.assertRegex(said, r"(?m)^start: by .* in half \(P50\) and by .* in nine tenths \(P90\) of 200 replays of the queue$")
        self.assertIn("only time limits, no past runs are known", said)
        self.assertEqual(len(self.promises()), 1, "the same promise is written once")

    def test_fewer_gpus_that_are_free_start_now(self):
        self.busy(gpus=2)
        waiting = self.submit("-n", "4", "--one-rank-per-node", "-t", "30m", "true")
        told = self.why(waiting)
        self.assertIn({"change": "2 GPUs instead of 4", "now": True, "note": "", "start": told["offers"][0]["start"]}, told["offers"])
        self.assertIn("2 GPUs instead of 4: now", told["sooner"])
        self.assertIn("  2 GPUs instead of 4: now\n", self.ok("why", waiting).out)

    def test_a_promise_that_held_stands_in_the_record(self):
        self.busy()
        waiting = self.submit("-n", "1", "-t", "30m", "true")
        gone = self.submit("-n", "1", "-t", "30m", "true")
        self.why(waiting)
        self.why(gone)
        row = self.record()[0]
        self.assertEqual((row["promises"], row["open"], row["p50_held"] + row["p50_broken"]), (2, 2, 0), row)
        self.ok("abort", gone)
        self.open_gate()
        self.ended(waiting)
        row = self.record()[0]
        self.assertEqual((row["jobs"], row["p50_held"], row["p90_held"], row["open"], row["void"]), (2, 1, 1, 0, 1), row)
        self.assertEqual([line.get("outcome") for line in self.promises()], [None, None, 1, 1])
        said = self.ok("why", "--record").out
        self.assertRegex(said, r"(?m)^CLUSTER .*P50 HELD +P90 HELD")
        self.assertRegex(said, r"(?m)^local +2 +2 +1 of 1 \(100 %\) +1 of 1 \(100 %\) +0$")

    def test_run_times_are_learned_from_jobs_that_have_ended(self):
        for _ in range(3):
            self.ended(self.submit("-n", "1", "-t", "1h", *shell("sleep 1.1")))
        self.busy()
        waiting = self.submit("-n", "1", "-t", "30m", "true")
        told = self.why(waiting)
        self.assertEqual((told["start"]["past_runs"], told["start"]["own_runs"]), (3, 3))

    def test_a_job_that_is_held_or_waits_for_another_gets_no_promise(self):
        first = self.busy()
        after = self.submit("--after", first, "-n", "1", "true")
        held = self.submit("--hold", "-n", "1", "true")
        self.assertEqual(self.why(after)["no_promise"], "no promise: it waits for other jobs first")
        self.assertEqual(self.why(held)["no_promise"], "no promise: it is held")
        self.assertFalse((self.home / "promises.jsonl").exists())

    def test_a_job_behind_one_without_a_limit_is_not_promised_anything(self):
        job = self.submit("-n", "4", "--one-rank-per-node", *shell(self.gate()))
        self.until_state(job, "running")
        waiting = self.submit("-n", "1", "-t", "30m", "true")
        told = self.why(waiting)
        self.assertIsNone(told["start"]["p50"])
        self.assertIn("start: not known", self.ok("why", waiting).out)

    def test_a_record_that_is_damaged_or_cannot_be_written_stops_nobody(self):
        self.busy()
        waiting = self.submit("-n", "1", "-t", "30m", "true")
        (self.home / "promises.jsonl").write_text('{"promise":1,"job":"x"\nnonsense\n{"promise":1,"cluster":"local","jo')
        self.why(waiting)
        self.assertEqual([row["promises"] for row in self.record()], [1])
        (self.home / "promises.jsonl").unlink()
        (self.home / "promises.jsonl").mkdir()
        done = self.overcap("why", waiting)
        self.assertEqual(done.status, 0, str(done))
        self.assertIn("could not be written down", done.err)

    def test_wrong_words_are_refused(self):
        self.refused("why", status=2)
        self.refused("why", "--record", "last", status=2)
        self.refused("why", "--replays", "0", "last", status=2)
        self.assertIn("no promises were made yet", self.ok("why", "--record").out)


if __name__ == "__main__":
    main()
