# SPDX-License-Identifier: Apache-2.0
"""GPUs: declared ones, who gets which, who waits for whom."""
from overcap_rig import Rig, main, shell


class Gpus(Rig):
    def setUp(self):
        super().setUp()
        self.declare_gpus(4)

    def test_gpus_may_stand_before_or_after_submit(self):
        before = self.id_in(self.ok("-n", "2", "submit", "--hold", "true"))
        after = self.submit("-n", "2", "--hold", "true")
        self.assertEqual([self.job(before)["gpus"], self.job(after)["gpus"]], [2, 2])

    def test_a_job_sees_its_gpus_and_no_others(self):
        job = self.run_job("-n", "3", "--one-rank-per-node", *shell('echo "$CUDA_VISIBLE_DEVICES"'))
        self.assertEqual(job["state"], "succeeded", job)
        indices = [int(word) for word in self.log(job["id"]).decode().strip().split(",")]
        self.assertEqual(len(set(indices)), 3)
        self.assertLessEqual(set(indices), {0, 1, 2, 3})

    def test_the_record_of_a_running_job_names_its_gpus(self):
        job_id = self.submit("-n", "2", "--one-rank-per-node", *shell(f'echo "$CUDA_VISIBLE_DEVICES" > "$FACTS/gpus"; {self.gate()}'))
        seen = [int(word) for word in self.fact("gpus").split(",")]
        self.assertEqual(sorted(self.job(job_id)["gpu_indices"]), seen)
        self.open_gate()
        self.assertEqual(sorted(self.ended(job_id)["gpu_indices"]), seen, "those that it had")
        self.assertIn("had GPU", self.ok("query", job_id).out)

    def test_a_job_without_gpus_sees_none(self):
        job = self.run_job("-n", "0", *shell('echo "[${CUDA_VISIBLE_DEVICES-unset}]"'))
        self.assertEqual(self.log(job["id"]), b"[]\n")

    def test_by_default_there_is_one_rank_per_gpu(self):
        job = self.run_job("-n", "2", *shell('echo "$RANK of $WORLD_SIZE with $CUDA_VISIBLE_DEVICES"'))
        self.assertEqual(job["ranks_per_node"], 2)
        first, second = self.log(job["id"], 0).decode(), self.log(job["id"], 1).decode()
        self.assertTrue(first.startswith("0 of 2 with ") and second.startswith("1 of 2 with "), (first, second))
        self.assertEqual(first.split()[-1], second.split()[-1])

    def test_no_gpu_is_given_to_two_jobs_at_once(self):
        script = ('echo "start $(date +%s%N) $CUDA_VISIBLE_DEVICES" >> "$FACTS/$OVERCAP_JOB_ID"; sleep 0.05; '
                  'echo "end $(date +%s%N)" >> "$FACTS/$OVERCAP_JOB_ID"')
        ids = [self.submit("-n", str(1 + i % 3), "--one-rank-per-node", *shell(script)) for i in range(18)]
        spans = {}
        for job_id in ids:
            self.assertEqual(self.ended(job_id)["state"], "succeeded")
            start, end = [line.split() for line in (self.facts / job_id).read_text().splitlines()]
            for gpu in start[2].split(","):
                spans.setdefault(gpu, []).append((int(start[1]), int(end[1])))
        for gpu, times in spans.items():
            times.sort()
            for (_, end), (start, _) in zip(times, times[1:]):
                self.assertLessEqual(end, start, f"GPU {gpu} was given twice")

    def test_a_job_waits_in_the_queue_until_its_gpus_are_free(self):
        first = self.submit("-n", "4", "--one-rank-per-node", *shell(self.gate()))
        self.until_state(first, "running")
        second = self.submit("-n", "1", "true")
        waiting = self.job(second)
        self.assertEqual(waiting["state"], "queued")
        self.assertTrue(waiting["reason"], "a waiting job says why it waits")
        self.open_gate()
        self.assertEqual(self.ended(second)["state"], "succeeded")
        self.assertGreaterEqual(self.job(second)["started"], self.job(first)["ended"])

    def test_equal_jobs_run_in_the_order_of_their_submission(self):
        blocker = self.submit("-n", "4", "--one-rank-per-node", *shell(self.gate()))
        self.until_state(blocker, "running")
        script = shell('echo "$OVERCAP_JOB_ID" >> "$FACTS/order"')
        ids = [self.submit("-n", "4", "--one-rank-per-node", *script) for _ in range(5)]
        self.open_gate()
        for job_id in ids:
            self.ended(job_id)
        self.assertEqual((self.facts / "order").read_text().split(), ids)

    def test_a_gpu_type_is_matched(self):
        self.write("overcap.yaml", "clusters: {local: {gpus: [{type: a40, count: 1}, {type: rtx_6000, count: 2}]}}\n")
        job = self.run_job("-n", "2", "--one-rank-per-node", "--gpu-type", "rtx_6000", *shell('echo $CUDA_VISIBLE_DEVICES'))
        self.assertEqual((job["state"], self.log(job["id"])), ("succeeded", b"1,2\n"))
        either = self.run_job("-n", "3", "--one-rank-per-node", "--gpu-type", "a40|rtx_6000", "true")
        self.assertEqual((either["state"], either["gpu_type"]), ("succeeded", "a40|rtx_6000"))

    def test_a_short_job_with_a_time_limit_goes_ahead_where_it_delays_nobody(self):
        running = self.submit("-n", "3", "--time", "1h", "--one-rank-per-node", *shell(self.gate()))
        self.until_state(running, "running")
        wide = self.submit("-n", "4", "--time", "1h", "--one-rank-per-node", "true")
        short = self.submit("-n", "1", "--time", "1m", "true")
        self.assertEqual(self.ended(short)["state"], "succeeded")
        self.assertEqual(self.job(wide)["state"], "queued")
        self.open_gate()
        self.assertEqual(self.ended(wide)["state"], "succeeded")


if __name__ == "__main__":
    main()
