# SPDX-License-Identifier: Apache-2.0
"""--array: each task exactly once, with its own exit status and log, in few long-lived agents."""
import glob
import json
import os

from overcap_rig import DEADLINE, Rig, main, shell


class Array(Rig):
    def task_ends(self, job):
        """(task, try) -> its task_end event, from the agents' own reports."""
        ends = {}
        for path in glob.glob(os.path.join(glob.escape(job["dir"]), "attempt-*", "agent-*.jsonl")):
            with open(path, "rb") as f:
                for line in f.read().rstrip(b"\0").splitlines():
                    event = json.loads(line)
                    if event["e"] == "task_end":
                        self.assertNotIn((event["task"], event["try"]), ends, "ended twice")
                        ends[event["task"], event["try"]] = event
        return ends

    def count(self):
        path = self.facts / "ran"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def test_200_tasks_four_at_a_time_each_run_exactly_once(self):
        script = ('s=$(date +%s%N); echo "task $OVERCAP_TASK_ID"; sleep 0.01; '
                  'echo "$OVERCAP_TASK_ID $s $(date +%s%N) $PPID" >> "$FACTS/ran"; '
                  'case $OVERCAP_TASK_ID in 17) exit 3;; 42) exit 5;; esac')
        job_id = self.submit("--array", "0-199%4", *shell(script))
        job = self.ended(job_id, deadline=2 * DEADLINE)
        ran = [[int(word) for word in line.split()] for line in (self.facts / "ran").read_text().splitlines()]
        self.assertEqual(sorted(row[0] for row in ran), list(range(200)))
        self.assertEqual(job["state"], "failed")
        self.assertEqual(job["array"], "0-199%4")
        counts = {"total": 200, "queued": 0, "running": 0, "succeeded": 198, "failed": 2, "lost": 0}
        self.assertEqual(job["tasks"], counts)
        edges = sorted([(start, 1) for _, start, _, _ in ran] + [(end, -1) for _, _, end, _ in ran])
        now = most = 0
        for _, step in edges:
            now += step
            most = max(most, now)
        self.assertLessEqual(most, 4)
        self.assertLessEqual(len({row[3] for row in ran}), 4, "tasks run in long-lived agents")
        ends = self.task_ends(job)
        self.assertEqual(sorted(task for task, _ in ends), list(range(200)))
        statuses = {task: end["exit_status"] for (task, _), end in ends.items()}
        self.assertEqual({task: status for task, status in statuses.items() if status}, {17: 3, 42: 5})
        logs = {log["task"]: log["path"] for log in job["logs"]}
        self.assertEqual(sorted(logs), list(range(200)))
        for task, path in logs.items():
            with open(path, encoding="utf-8") as f:
                self.assertEqual(f.read(), f"task {task}\n")

    def test_all_tasks_succeed_and_so_does_the_array(self):
        job = self.run_job("--array", "1,3,5-9:2", *shell('echo $OVERCAP_TASK_ID >> "$FACTS/ran"'))
        self.assertEqual((job["state"], job["exit_status"]), ("succeeded", 0))
        self.assertEqual(sorted((self.facts / "ran").read_text().split()), ["1", "3", "5", "7", "9"])
        self.assertEqual(job["tasks"]["total"], 5)

    def test_each_task_has_gpus_of_its_own(self):
        self.declare_gpus(2)
        script = ('echo "$OVERCAP_TASK_ID $CUDA_VISIBLE_DEVICES $(date +%s%N)" >> "$FACTS/start"; sleep 0.03; '
                  'echo "$OVERCAP_TASK_ID $CUDA_VISIBLE_DEVICES $(date +%s%N)" >> "$FACTS/end"')
        job = self.run_job("-n", "1", "--array", "0-19", *shell(script))
        self.assertEqual(job["state"], "succeeded", job)
        ends = {line.split()[0]: int(line.split()[2]) for line in (self.facts / "end").read_text().splitlines()}
        spans = {}
        for line in (self.facts / "start").read_text().splitlines():
            task, gpu, start = line.split()
            spans.setdefault(gpu, []).append((int(start), ends[task]))
        self.assertEqual(set(spans), {"0", "1"})
        for times in spans.values():
            times.sort()
            for (_, end), (start, _) in zip(times, times[1:]):
                self.assertLessEqual(end, start)

    def test_wait_gives_a_failed_tasks_status(self):
        job_id = self.submit("--array", "0-3", *shell('[ $OVERCAP_TASK_ID != 2 ] || exit 6'))
        self.assertEqual(self.overcap("wait", job_id).status, 6)

    def test_abort_stops_the_running_tasks_and_starts_no_more(self):
        job_id = self.submit("--array", "0-99%2", *shell('echo $OVERCAP_TASK_ID >> "$FACTS/ran"; sleep 300'))
        self.until(lambda: self.count() == 2, "two tasks")
        self.ok("abort", job_id)
        self.assertEqual(self.ended(job_id)["state"], "cancelled")
        self.assertEqual(len((self.facts / "ran").read_text().split()), 2)

    def test_a_killed_engine_in_the_middle_runs_no_task_twice(self):
        job_id = self.submit("--array", "0-99%3", *shell('echo $OVERCAP_TASK_ID >> "$FACTS/ran"; sleep 0.01'))
        for share in (10, 30, 60):
            self.until(lambda share=share: self.count() >= share, f"{share} tasks")
            self.kill(self.daemon_pid())
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["tasks"]["succeeded"]), ("succeeded", 100))
        self.assertEqual(sorted(int(word) for word in (self.facts / "ran").read_text().split()), list(range(100)))

    def test_a_killed_agent_loses_only_its_own_task(self):
        script = shell('echo "$OVERCAP_TASK_ID $PPID" >> "$FACTS/ran"; '
                       'if [ $OVERCAP_TASK_ID = 5 ] && mkdir "$FACTS/once"; then kill -9 $PPID; sleep 60; fi')
        job = self.run_job("--no-requeue", "--array", "0-19%2", *script)
        ran = [line.split()[0] for line in (self.facts / "ran").read_text().splitlines()]
        self.assertEqual(sorted(ran, key=int), [str(task) for task in range(20)])
        self.assertNotEqual(job["state"], "succeeded")
        self.assertEqual((job["tasks"]["succeeded"], job["tasks"]["lost"]), (19, 1))

    def test_with_requeue_a_lost_task_runs_again(self):
        script = shell('echo "$OVERCAP_TASK_ID" >> "$FACTS/ran"; '
                       'if [ $OVERCAP_TASK_ID = 5 ] && mkdir "$FACTS/once"; then kill -9 $PPID; sleep 60; fi')
        job = self.run_job("--requeue", "--array", "0-19%2", *script)
        ran = (self.facts / "ran").read_text().split()
        self.assertEqual(sorted(ran, key=int), sorted([str(task) for task in range(20)] + ["5"], key=int))
        self.assertEqual((job["state"], job["tasks"]["succeeded"]), ("succeeded", 20))


if __name__ == "__main__":
    main()
