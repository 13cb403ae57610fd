# SPDX-License-Identifier: Apache-2.0
"""Commands of one user's engine: killed, stopped and restarted beneath them; and a stdout that takes nothing."""
import json
import os
import signal
import subprocess
import time

from overcap_rig import Rig, main, shell
from rigs.terminal import SHELL, Terminal


class EngineAway(Rig):
    def test_commands_that_wait_live_through_kills_of_the_engine(self):
        job_id = self.submit(*shell(f"echo begun; {self.gate()}; echo said; exit 7"))
        self.until_state(job_id, "running")
        waits = [self.start("wait", job_id), self.start("logs", "-f", job_id),
                 self.start("submit", "--follow", *shell(f"{self.gate()}; echo said; exit 7"))]
        for _ in range(4):
            time.sleep(0.2)
            self.kill(self.daemon_pid())
        self.open_gate()
        for process in waits:
            done = self.finish(process)
            self.assertEqual(done.status, 7, str(done))

    def test_a_wait_with_a_timeout_ends_in_time_though_the_engine_was_killed(self):
        job_id = self.submit("sleep", "60")
        began = time.monotonic()
        waits = self.start("wait", "--timeout", "4", job_id)
        time.sleep(2)
        self.kill(self.daemon_pid())
        done = self.finish(waits)
        self.assertEqual(done.status, 124, str(done))
        self.assertLess(time.monotonic() - began, 30, "it ends by its timeout, not by the time to ask again")
        self.ok("abort", job_id)

    def test_a_stopped_engine_is_mentioned_after_some_seconds_and_named_by_daemon_stop(self):
        pid = self.daemon_pid()
        with Terminal(SHELL, {**self.env, "PATH": f"{os.path.dirname(self.binary)}:{self.env['PATH']}"}) as terminal:
            terminal.expect("ready> ")
            self.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            terminal.type(f"{self.binary} ls")
            terminal.expect("the engine has not answered for 3 s; waiting up to 60 s", 20)
            self.assertGreater(time.monotonic() - began, 2.5)
            done = self.refused("daemon", "stop", status=5, says=[f"process {pid}", f"kill -CONT {pid}", f"kill -9 {pid}"])
            self.assertNotIn("`overcap daemon status` tells", done.err)
            self.kill(pid, signal.SIGCONT)
            terminal.expect("ready> ")
            terminal.type("echo status $?")
            terminal.expect("status 0")


class StdoutThatTakesNothing(Rig):
    def setUp(self):
        super().setUp()
        self.declare_gpus(1)
        self.known = [self.run_job("true")["id"]]

    def run_into(self, stdout, *words):
        return subprocess.run([str(self.binary), *words], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=stdout,
                              stderr=subprocess.PIPE, text=True, timeout=60)

    def new_jobs(self):
        ids = [job["id"] for job in self.jobs("ls", "--all") if job["id"] not in self.known]
        self.known += ids
        return ids

    def test_the_id_is_on_stderr_and_the_status_is_not_that_of_try_again(self):
        for words in (("submit", "true"), ("submit", "--json", "true"), ("submit", "--wait", "true"), ("submit", "--json", "--wait", "true"),
                      ("submit", "--follow", "true"), ("submit", "--sweep", "lr=1,2", "true"), ("resubmit", self.known[0]),
                      ("resubmit", "--json", self.known[0]), ("alloc", "-n", "0", "--no-wait")):
            for what in ("full", "closed pipe"):
                with self.subTest(words=words, stdout=what):
                    if what == "full":
                        with open("/dev/full", "w") as full:
                            done = self.run_into(full, *words)
                    else:
                        read, write = os.pipe()
                        os.close(read)
                        with os.fdopen(write, "w") as pipe:
                            done = self.run_into(pipe, *words)
                    (job_id,) = self.new_jobs()
                    self.assertEqual(done.returncode, 70, done.stderr)
                    self.assertIn(f"queued as job {job_id}" if words[0] == "alloc" else f"the job is queued as {job_id}", done.stderr)
                    if "--json" in words:
                        self.assertIn(job_id, json.loads(done.stderr.splitlines()[-1])["error"]["message"])
                    if words[0] == "alloc":
                        self.ok("release", "dev")

    def test_of_several_jobs_none_follows_the_one_whose_id_was_not_printed(self):
        second = self.run_job("true")["id"]
        self.known.append(second)
        with open("/dev/full", "w") as full:
            done = self.run_into(full, "resubmit", self.known[0], second)
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertEqual(len(self.new_jobs()), 1)
        with open("/dev/full", "w") as full:
            done = self.run_into(full, "resubmit", "--json", self.known[0], second)
        for job_id in self.new_jobs():
            self.assertIn(job_id, done.stderr)

    def test_looking_into_a_closed_pipe_still_ends_by_the_signal(self):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            self.assertEqual(self.run_into(pipe, "ls", "--all").returncode, -signal.SIGPIPE)


if __name__ == "__main__":
    main()
