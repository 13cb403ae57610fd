# SPDX-License-Identifier: Apache-2.0
"""Homes and projects with long paths, spaces, quotes and unicode in their names."""
from overcap_rig import Rig, alive, main, shell


class LongPath(Rig):
    folder_name = "a folder with spaces/" + "d" * 60 + "/ünïcode 東京 'quoted' \"twice\"/" + "e" * 60

    def test_a_home_deeper_than_a_socket_name_works(self):
        self.assertGreater(len(str(self.home)), 150)
        job = self.run_job(*shell('echo "$OVERCAP_JOB_DIR"'))
        self.assertEqual(job["state"], "succeeded")
        self.assertEqual(self.log(job["id"]).decode(), job["dir"] + "\n")
        self.assertTrue(job["dir"].startswith(str(self.home)))

    def test_the_engine_is_found_again_and_stopped(self):
        job_id = self.submit(*shell(f'echo up > "$FACTS/up"; {self.gate()}; exit 3'))
        self.fact("up")
        pid = self.daemon_pid()
        self.kill(pid)
        self.open_gate()
        self.assertEqual(self.ended(job_id)["exit_status"], 3)
        pid = self.daemon_pid()
        self.ok("daemon", "stop")
        self.until(lambda: not alive(pid), "the engine to end")

    def test_logs_exec_and_abort_work_there(self):
        job_id = self.submit(*shell('echo hello; echo up > "$FACTS/up"; exec sleep 300'))
        self.fact("up")
        self.until(lambda: self.ok("logs", job_id).out == "hello\n", "the log")
        self.assertEqual(self.ok("exec", job_id, "--", "pwd").out.strip(), self.job(job_id)["dir"] + "/attempt-1/code")
        self.ok("abort", job_id)
        self.assertEqual(self.ended(job_id)["state"], "cancelled")


class OddProject(Rig):
    def test_a_project_with_an_odd_name_is_captured_whole(self):
        folder = self.root / "my  project ünï\ncode $HOME `id` %s"
        deep = folder / "/".join(["sub folder"] * 20)
        deep.mkdir(parents=True)
        (deep / "file name.txt").write_text("found")
        job = self.run_job(*shell('find . -name "file name.txt" -exec cat {} +'), cwd=folder)
        self.assertEqual(self.log(job["id"]), b"found")
        self.assertEqual(job["source"], str(folder))

    def test_a_relative_home_is_the_same_from_everywhere_or_refused(self):
        done = self.overcap("submit", "true", env={"OVERCAP_HOME": "relative/state"})
        if done.status == 0:
            self.overcap("daemon", "stop", env={"OVERCAP_HOME": "relative/state"})
            self.fail("a relative OVERCAP_HOME means another state in every folder: refuse it")
        self.assertIn("OVERCAP_HOME", done.err)


if __name__ == "__main__":
    main()
