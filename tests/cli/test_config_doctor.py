# SPDX-License-Identifier: Apache-2.0
"""Configuration with its origins, doctor, the engine's status and its end."""
import os

from overcap_rig import Rig, alive, main, shell


class Config(Rig):
    def test_config_show_names_the_file_and_line_of_every_value(self):
        text = "# first line\nclusters:\n  local:\n    gpus:\n      - type: a40\n        count: 3\n"
        path = self.write("overcap.yaml", text)
        text = self.ok("config", "show").out
        self.assertIn("a40", text)
        self.assertRegex(text, f"{path}:[3-6]\\b")

    def test_the_folder_above_counts_and_the_nearest_file_wins(self):
        self.declare_gpus(2)
        inner = self.project / "deep/er"
        inner.mkdir(parents=True)
        self.ok("submit", "-n", "2", "--hold", "true", cwd=inner)
        self.write("deep/er/overcap.yaml", "clusters: {local: {gpus: [{type: a40, count: 1}]}}\n")
        self.assertIn(str(inner / "overcap.yaml"), self.ok("config", "show", cwd=inner).out)

    def test_the_users_own_configuration_is_read(self):
        text = "clusters: {local: {gpus: [{type: h200, count: 2}]}}\n"
        self.write(".config/overcap/overcap.yaml", text, base=self.root / "user")
        text = self.ok("config", "show").out
        self.assertIn("h200", text)
        job = self.run_job("-n", "2", "--one-rank-per-node", "--gpu-type", "h200", "true")
        self.assertEqual(job["state"], "succeeded")

    def test_an_unknown_key_is_an_error_with_the_place_and_the_nearest_key(self):
        self.write("overcap.yaml", "# comment\nclustres:\n  local: {}\n")
        for command in (("config", "show"), ("submit", "true")):
            self.refused(*command, says=["overcap.yaml:2", "clustres", "'clusters'"])
        self.write("overcap.yaml", "clusters:\n  local:\n    gpu:\n      - {type: a40, count: 1}\n")
        self.refused("config", "show", says=["overcap.yaml:3", "'gpus'"])

    def test_a_wrong_type_or_bad_value_is_an_error_with_the_place(self):
        for line, text in ((1, "clusters: 5\n"), (2, "clusters:\n  local: {gpus: [{type: a40, count: many}]}\n"),
                           (1, "clusters: {local: {gpus: [{type: a40, count: -1}]}}\n"), (1, "clusters: [local\n")):
            self.write("overcap.yaml", text)
            done = self.refused("config", "show")
            self.assertRegex(done.err, f"overcap.yaml:[{line}-3]", text)

    def test_an_unknown_driver_is_an_error_with_the_place(self):
        self.write("overcap.yaml", "clusters:\n  local: {driver: lokal}\n")
        self.refused("config", "show", says=["overcap.yaml:2", "'lokal'", "'local'"])

    def test_a_bad_configuration_leaves_nothing_behind(self):
        self.write("overcap.yaml", "nonsense: 1\n")
        self.refused("submit", "true")
        (self.project / "overcap.yaml").unlink()
        self.assertEqual(self.jobs("ls", "--all"), [])


class Doctor(Rig):
    def test_doctor_tells_what_it_found(self):
        self.declare_gpus(4)
        done = self.overcap("doctor")
        self.assertIn(done.status, (0, 1), str(done))
        self.assertIn("a40", done.out)
        self.assertIn(str(self.home), done.out)

    def test_doctor_speaks_json(self):
        self.assertTrue(self.overcap("doctor", "--json").json())


class Engine(Rig):
    def test_status_tells_pid_socket_uptime_and_counts(self):
        self.run_job("true")
        self.submit("--hold", "true")
        status = self.daemon_status()
        self.assertTrue(alive(status["pid"]))
        self.assertTrue(os.path.exists(status["socket"]))
        self.assertEqual(status["root"], str(self.home))
        self.assertGreaterEqual(status["uptime_s"], 0)
        self.assertEqual(status["counts"]["held"], 1)
        for field in ("version", "started", "machine", "gpus_free", "journal_bytes"):
            self.assertIn(field, status)

    def test_stop_ends_the_engine_and_running_jobs_go_on(self):
        job_id = self.submit(*shell(f'echo up > "$FACTS/up"; {self.gate()}; exit 4'))
        self.fact("up")
        pid = self.daemon_pid()
        self.ok("daemon", "stop")
        self.until(lambda: not alive(pid), "the engine to end")
        self.open_gate()
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"], job["attempt"]), ("failed", 4, 1))
        self.assertNotEqual(self.daemon_pid(), pid)

    def test_stop_without_an_engine_is_no_crash(self):
        done = self.overcap("daemon", "stop")
        self.assertTrue(done.out.strip() or done.err.strip() or done.status == 0, str(done))
        self.assertEqual(self.processes(), [])

    def test_ten_first_commands_at_once_start_one_engine(self):
        processes = [self.start("submit", "true") for _ in range(10)]
        ids = [self.id_in(self.finish(process)) for process in processes]
        self.assertEqual({self.ended(job_id)["state"] for job_id in ids}, {"succeeded"})
        self.until(lambda: len(self.processes()) == 1, "one process, the engine, to be left")

    def test_a_second_engine_says_that_one_runs(self):
        pid = self.daemon_pid()
        self.assertIn(f"pid {pid}", self.ok("daemon").err)
        self.refused("daemon", "recover", status=6, says=[f"pid {pid}", "overcap daemon stop"])

    def test_a_stale_socket_is_no_obstacle(self):
        self.run_job("true")
        self.kill(self.daemon_pid())
        self.assertTrue((self.home / "daemon.sock").exists())
        self.assertEqual(self.run_job("true")["state"], "succeeded")


if __name__ == "__main__":
    main()
