# SPDX-License-Identifier: Apache-2.0
"""A researcher types one command and the job runs: submit, query, ls."""
import json
import os
import time

from overcap_rig import JOB_ID, Rig, main, python, shell

# The fields that docs/formats/api.md promises for every job.
FIELDS = """id cluster user name state reason attempt exit_status signal first_failed_rank command gpus nodes
ranks_per_node cpus mem_bytes time_seconds gpu_type array tasks first_failed_task failed_tasks snapshot
source workdir submitted started ended elapsed_s dir logs after resubmit_of priority restarts gpu_indices""".split()


class FirstJob(Rig):
    def test_the_first_submit_starts_the_engine_and_the_job_succeeds(self):
        job = self.run_job("echo", "hello")
        self.assertEqual(job["state"], "succeeded")
        self.assertEqual(job["exit_status"], 0)
        self.assertEqual(job["attempt"], 1)
        self.assertEqual(job["command"], ["echo", "hello"])
        self.assertIsNone(job["first_failed_rank"])
        self.assertEqual(self.log(job["id"]), b"hello\n")

    def test_an_id_is_user_time_and_eight_hex_digits(self):
        before = int(time.time())
        job_id = self.submit("true")
        self.assertRegex(job_id, JOB_ID)
        self.assertAlmostEqual(int(job_id.split("_")[-2]), before, delta=60)

    def test_submit_prints_the_id_and_nothing_else_on_stdout(self):
        done = self.ok("submit", "true")
        self.assertEqual(done.raw_out.count(b"\n"), 1, str(done))
        self.assertRegex(done.out.strip(), JOB_ID)

    def test_the_private_folder_is_0700_and_its_files_0600(self):
        job = self.run_job("echo", "secret")
        self.assertEqual(self.mode_of(self.home), 0o700)
        job_dir = self.home / "jobs" / job["id"]
        for path in (self.home / "journal", job_dir / "spec.json", job_dir / "events.jsonl",
                     job_dir / "attempt-1/rank-0.log", job_dir / "attempt-1/environment"):
            self.assertEqual(self.mode_of(path), 0o600, str(path))
        self.assertIn(self.mode_of(self.home / "daemon.sock"), (0o600, 0o700))

    def test_json_of_submit_query_and_ls_has_every_documented_field(self):
        submitted = self.ok("submit", "--json", "true").json()
        job_id = submitted["id"]
        self.ended(job_id)
        (listed,) = [job for job in self.jobs("ls", "--all") if job["id"] == job_id]
        for record in (submitted, self.job(job_id), listed):
            self.assertEqual([name for name in FIELDS if name not in record], [], record)
        self.assertIn(submitted["state"], ("queued", "running"))

    def test_the_record_of_an_ended_job_tells_the_truth(self):
        job = self.run_job("--name", "my run", "--cpus", "1", "--mem", "512M", "--time", "1h", "echo", "x")
        self.assertEqual(job["name"], "my run")
        self.assertEqual((job["cpus"], job["mem_bytes"], job["time_seconds"]), (1, 512 * 1024 * 1024, 3600))
        self.assertEqual((job["nodes"], job["gpus"], job["ranks_per_node"]), (1, 0, 1))
        self.assertEqual(job["dir"], str(self.home / "jobs" / job["id"]))
        self.assertEqual(job["logs"], [{"attempt": 1, "rank": 0,
                                        "path": str(self.home / "jobs" / job["id"] / "attempt-1/rank-0.log")}])
        self.assertEqual(job["source"], str(self.project))
        self.assertRegex(job["snapshot"], "^[0-9a-f]{64}$")
        self.assertIsNone(job["tasks"])
        self.assertLessEqual(job["submitted"], job["started"])
        self.assertLessEqual(job["started"], job["ended"])
        self.assertRegex(job["ended"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")

    def test_a_job_that_waits_has_null_where_there_is_no_value_yet(self):
        job = self.job(self.submit("--hold", "true"))
        self.assertEqual(job["state"], "held")
        for field in ("exit_status", "first_failed_rank", "started", "ended"):
            self.assertIsNone(job[field], field)

    def test_of_many_ranks_query_prints_a_pattern_for_the_logs(self):
        few = self.run_job("--ranks-per-node", "16", "true")
        self.assertEqual(self.ok("query", few["id"]).out.count("/rank-"), 16)
        many = self.run_job("--ranks-per-node", "17", "true")
        shown = self.ok("query", many["id"]).out
        self.assertIn(f"{many['dir']}/attempt-1/rank-*.log\n", shown)
        self.assertEqual(shown.count("/rank-"), 1)
        self.assertEqual(len(many["logs"]), 17)

    def test_query_shows_status_command_and_the_last_100_lines(self):
        job = self.run_job("seq", "1", "250")
        text = self.ok("q", job["id"]).out
        self.assertIn("succeeded", text)
        self.assertIn("seq 1 250", text)
        self.assertIn(job["logs"][0]["path"], text)
        lines = [line.strip() for line in text.splitlines()]
        self.assertIn("250", lines)
        self.assertIn("151", lines)
        self.assertNotIn("150", lines)
        self.assertNotIn("\x1b", text)

    def test_spec_and_events_are_plain_json_in_the_job_folder(self):
        job = self.run_job("echo", "a  b")
        folder = self.home / "jobs" / job["id"]
        spec = json.loads((folder / "spec.json").read_text())
        self.assertEqual((spec["id"], spec["command"]), (job["id"], ["echo", "a  b"]))
        events = [json.loads(line)["e"] for line in (folder / "events.jsonl").read_text().splitlines()]
        self.assertEqual((events[0], events[-1]), ("submitted", "ended"))
        self.assertIn("started", events)

    def test_a_rank_reads_nothing_from_stdin(self):
        job = self.run_job("cat")
        self.assertEqual((job["state"], self.log(job["id"])), ("succeeded", b""))

    def test_stdout_and_stderr_are_kept_in_one_log_in_order(self):
        job = self.run_job(*shell("echo one; echo two >&2; echo three"))
        self.assertEqual(self.log(job["id"]), b"one\ntwo\nthree\n")

    def test_twenty_jobs_submitted_at_once_by_twenty_commands_all_run(self):
        running = [self.start("submit", *shell('echo ran >> "$FACTS/$OVERCAP_JOB_ID"')) for _ in range(20)]
        ids = [self.id_in(self.finish(process)) for process in running]
        self.assertEqual(len(set(ids)), 20)
        for job_id in ids:
            self.assertEqual(self.ended(job_id)["state"], "succeeded")
            self.assertEqual((self.facts / job_id).read_text(), "ran\n")


class Ranks(Rig):
    DUMP = ('import os, json\nopen(os.environ["FACTS"] + "/" + os.environ["RANK"], "w")'
            '.write(json.dumps(dict(os.environ)) + "\\n")')

    def environments(self, *flags, ranks):
        job = self.run_job(*flags, *python(self.DUMP))
        self.assertEqual(job["state"], "succeeded", job)
        return job, [json.loads(self.fact(str(rank))) for rank in range(ranks)]

    def test_two_ranks_get_their_places(self):
        job, (zero, one) = self.environments("--ranks-per-node", "2", ranks=2)
        for rank, env in enumerate((zero, one)):
            self.assertEqual((env["RANK"], env["LOCAL_RANK"]), (str(rank), str(rank)))
            self.assertEqual((env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"], env["NODE_RANK"]), ("2", "2", "0"))
            self.assertEqual(env["OVERCAP_JOB_ID"], job["id"])
            self.assertEqual(env["OVERCAP_ATTEMPT"], "1")
            self.assertEqual(env["OVERCAP_JOB_DIR"], job["dir"])
            self.assertTrue(env["PYTHONUNBUFFERED"])
        self.assertEqual((zero["MASTER_ADDR"], zero["MASTER_PORT"]), (one["MASTER_ADDR"], one["MASTER_PORT"]))
        self.assertEqual([log["rank"] for log in job["logs"]], [0, 1])

    def test_the_master_port_can_be_bound_by_rank_zero(self):
        code = ("import os, socket\ns = socket.socket()\n"
                "s.bind((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])))\ns.listen()\nprint('bound')")
        job = self.run_job(*python(code))
        self.assertEqual((job["state"], self.log(job["id"])), ("succeeded", b"bound\n"))

    def test_the_submitters_environment_and_env_flags_reach_the_rank(self):
        self.env["FROM_SHELL"] = "yes  please"
        self.env["OVERRIDDEN"] = "old"
        _, (env,) = self.environments("--env", "OVERRIDDEN=new=1", "--env", "EMPTY=", ranks=1)
        self.assertEqual((env["FROM_SHELL"], env["OVERRIDDEN"], env["EMPTY"]), ("yes  please", "new=1", ""))

    def test_values_of_variables_are_in_no_readable_record(self):
        job, _ = self.environments("--env", "TOKEN=hunter2secret", ranks=1)
        folder = self.home / "jobs" / job["id"]
        for path in (folder / "spec.json", folder / "events.jsonl", self.home / "journal", self.home / "daemon.log"):
            self.assertNotIn(b"hunter2secret", path.read_bytes(), str(path))
        self.assertNotIn("hunter2secret", self.ok("query", job["id"]).out)
        self.assertNotIn("hunter2secret", self.ok("query", "--json", job["id"]).out)

    def test_the_ranks_start_in_their_own_copy_of_the_folder(self):
        self.write("sub/here.txt", "x")
        job = self.run_job("--workdir", "sub", *shell("pwd; ls"))
        self.assertEqual(job["state"], "succeeded", job)
        where, listing = self.log(job["id"]).decode().splitlines()
        self.assertEqual(where, job["dir"] + "/attempt-1/code/sub")
        self.assertEqual(listing, "here.txt")


class Waiting(Rig):
    def test_wait_returns_the_jobs_own_exit_status(self):
        self.assertEqual(self.overcap("submit", "--wait", *shell("exit 7")).status, 7)
        self.assertEqual(self.overcap("submit", "--wait", "true").status, 0)

    def test_follow_prints_the_output_and_returns_the_status(self):
        done = self.overcap("submit", "--follow", *shell("echo one; sleep 0.2; echo two; printf three; exit 5"))
        self.assertEqual(done.status, 5, str(done))
        text = done.out
        self.assertLess(text.index("one\n"), text.index("two\n"))
        self.assertIn("three", text)

    def test_follow_shows_output_while_the_job_runs(self):
        process = self.start("submit", "--follow", *shell(f"echo early; {self.gate()}"))
        seen = b""
        while b"early" not in seen:
            chunk = os.read(process.stdout.fileno(), 4096)
            self.assertTrue(chunk, f"it ended before it showed anything: {seen!r}")
            seen += chunk
        self.open_gate()
        self.assertEqual(self.finish(process).status, 0)

    def test_dry_run_submits_nothing(self):
        done = self.ok("submit", "--dry-run", *shell('touch "$FACTS/ran"'))
        self.assertIn("/bin/sh", done.out)
        self.assertEqual(self.jobs("ls", "--all"), [])
        jobs = self.home / "jobs"
        self.assertEqual(os.listdir(jobs) if jobs.exists() else [], [])
        self.assertFalse((self.facts / "ran").exists())


if __name__ == "__main__":
    main()
