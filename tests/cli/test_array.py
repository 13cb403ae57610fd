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
        counts = {"total": 200, "queued": 0, "running": 0, "succeeded": 198, "failed": 2, "lost": 0, "not_run": 0}
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
        self.assertEqual([self.job(job_id)["tasks"][name] for name in ("queued", "not_run")], [0, 98])
        text = self.ok("query", job_id).out
        self.assertIn("2 cancelled, 98 not run", text)
        self.assertNotIn("failed", text)
        states = [task["state"] for task in self.ok("query", "--tasks", "--json", job_id).json()]
        self.assertEqual(states, 2 * ["cancelled"] + 98 * ["not_run"])

    def test_an_array_that_was_cancelled_before_it_began_has_run_nothing(self):
        job_id = self.submit("--hold", "--array", "0-2", "true")
        self.assertIn("none yet", self.ok("query", job_id).out)
        self.ok("abort", job_id)
        text = self.ok("query", job_id).out
        self.assertIn("3 tasks, 3 not run", text)
        self.assertRegex(text, r"attempt +none\n")

    def test_the_failed_task_is_found(self):
        job_id = self.run_job("--array", "0-9%1", *shell(
            'echo "out $OVERCAP_TASK_ID"; case $OVERCAP_TASK_ID in 4) exit 3;; 7) kill -9 $$;; esac'))["id"]
        job = self.job(job_id)
        self.assertEqual(job["first_failed_task"], 4)
        failed = [(task["task"], task["exit_status"], task["signal"], task["try"]) for task in job["failed_tasks"]]
        self.assertEqual(failed, [(4, 3, None, 1), (7, 137, 9, 1)])
        text = self.ok("query", job_id).out
        for words in ("task 4 failed first: exit status 3", "8 succeeded, 2 failed", "4, 7", "out 4",
                      job["dir"] + "/attempt-1/task-*.rank-*.log"):
            self.assertIn(words, text)
        self.assertNotIn("out 0", text)
        self.assertLess(text.count("\n"), 25)
        shown = self.ok("logs", job_id)
        self.assertEqual(shown.out, "out 4\n")
        self.assertIn("task 4", shown.err)
        self.assertEqual(self.ok("logs", "--task", "7", job_id).out, "out 7\n")
        self.assertEqual(self.overcap("logs", "-f", "--task", "2", job_id).out, "out 2\n")
        self.refused("logs", "--task", "10", job_id, status=3, says="0-9%1")
        tasks = self.ok("query", "--tasks", "--json", job_id).json()
        self.assertEqual([task["task"] for task in tasks], list(range(10)))
        self.assertEqual([task["state"] for task in tasks if task["task"] in (4, 7)], ["failed", "failed"])
        for task in tasks:
            with open(task["log"], encoding="utf-8") as f:
                self.assertEqual(f.read(), f"out {task['task']}\n")
        table = self.ok("query", "--tasks", job_id).out.splitlines()
        self.assertEqual(len(table), 11)
        self.assertEqual(table[5].split()[:4], ["4", "failed", "1", "3"])

    def test_each_try_of_a_task_has_its_own_log(self):
        script = 'echo "try $OVERCAP_TASK_TRY"; [ $OVERCAP_TASK_ID$OVERCAP_TASK_TRY != 11 ]'
        job_id = self.run_job("--max-restarts", "2", "--array", "0-2", *shell(script))["id"]
        self.assertEqual(self.ok("logs", "--task", "1", job_id).out, "try 2\n")
        self.assertEqual(self.ok("logs", "--task", "1", "--attempt", "1", job_id).out, "try 1\n")
        self.refused("logs", "--task", "1", "--attempt", "3", job_id, status=3)
        self.assertEqual(self.ok("logs", job_id).out, "try 1\n")
        logs = [(log["task"], log["attempt"]) for log in self.job(job_id)["logs"]]
        self.assertEqual(logs, [(0, 1), (1, 1), (1, 2), (2, 1)])
        tries = [task["try"] for task in self.ok("query", "--tasks", "--json", job_id).json()]
        self.assertEqual(tries, [1, 2, 1])

    def test_the_tasks_of_a_plain_job_are_refused(self):
        self.refused("query", "--tasks", self.submit("true"), says="no array")

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
        self.assertEqual([(task["task"], task["state"]) for task in job["failed_tasks"]], [(5, "lost")])
        self.assertIn("task 5 was lost", self.ok("query", job["id"]).out)

    def test_with_requeue_a_lost_task_runs_again(self):
        script = shell('echo "$OVERCAP_TASK_ID" >> "$FACTS/ran"; '
                       'if [ $OVERCAP_TASK_ID = 5 ] && mkdir "$FACTS/once"; then kill -9 $PPID; sleep 60; fi')
        job = self.run_job("--requeue", "--array", "0-19%2", *script)
        ran = (self.facts / "ran").read_text().split()
        self.assertEqual(sorted(ran, key=int), sorted([str(task) for task in range(20)] + ["5"], key=int))
        self.assertEqual((job["state"], job["tasks"]["succeeded"]), ("succeeded", 20))
        self.assertEqual((job["first_failed_task"], job["failed_tasks"]), (None, []))


if __name__ == "__main__":
    main()
