# SPDX-License-Identifier: Apache-2.0
"""Beside and after a job: exec, rm, gc."""
import os

from overcap_rig import Rig, main, python, shell


class Exec(Rig):
    def running_job(self, *flags):
        job_id = self.submit(*flags, *shell(f'echo up > "$FACTS/up"; {self.gate()}'))
        self.fact("up")
        return job_id

    def test_exec_runs_in_the_jobs_folder_with_its_environment_and_gpus(self):
        self.declare_gpus(4)
        self.write("here.txt", "inside")
        job_id = self.running_job("-n", "2", "--one-rank-per-node", "--env", "WORD=from  job")
        self.env["WORD"] = "from caller"
        script = 'pwd; cat here.txt; echo; echo "$WORD"; echo "$CUDA_VISIBLE_DEVICES"; echo "$OVERCAP_JOB_ID"'
        done = self.ok("exec", job_id, "--", *shell(script))
        job = self.job(job_id)
        gpus = ",".join(str(index) for index in job["gpu_indices"])
        self.assertEqual(done.out.splitlines(), [job["dir"] + "/attempt-1/code", "inside", "from  job", gpus, job_id])
        self.open_gate()
        self.assertEqual(self.ended(job_id)["state"], "succeeded")

    def test_exec_returns_the_commands_status_and_passes_its_words_untouched(self):
        job_id = self.running_job()
        self.assertEqual(self.overcap("exec", job_id, "--", *shell("exit 9")).status, 9)
        words = ["a  b", "", "&&", "--help", "ü"]
        done = self.ok("exec", job_id, "--", *python("import sys\nprint(sys.argv[1:])", *words))
        self.assertEqual(done.out.strip(), repr(words))

    def test_exec_of_a_command_that_fails_does_not_harm_the_job(self):
        job_id = self.running_job()
        self.assertNotEqual(self.overcap("exec", job_id, "--", "/no/such/command").status, 0)
        self.open_gate()
        self.assertEqual(self.ended(job_id)["state"], "succeeded")

    def test_exec_in_a_job_that_never_ran_is_an_error(self):
        job_id = self.submit("--hold", "true")
        self.refused("exec", job_id, "--", "true", status=6, says=job_id)


class Remove(Rig):
    def test_rm_removes_an_ended_job_with_its_folder(self):
        job = self.run_job("true")
        self.ok("rm", job["id"])
        self.until(lambda: not os.path.exists(job["dir"]), "its folder to be gone")
        self.assertEqual(self.jobs("ls", "--all"), [])
        self.refused("query", job["id"], status=3, says=job["id"])

    def test_a_removed_job_stays_removed_after_a_restart(self):
        job, other = self.run_job("true"), self.run_job("true")
        self.ok("rm", job["id"])
        self.ok("daemon", "stop")
        self.assertEqual([j["id"] for j in self.jobs("ls", "--all")], [other["id"]])

    def test_rm_refuses_a_job_that_has_not_ended(self):
        running = self.submit(*shell(self.gate()))
        held = self.submit("--hold", "true")
        for job_id in (running, held):
            self.refused("rm", job_id, status=6, says=job_id)
        self.open_gate()
        self.assertEqual(self.ended(running)["state"], "succeeded")

    def test_rm_takes_several_jobs(self):
        ids = [self.run_job("true")["id"] for _ in range(3)]
        self.ok("rm", *ids[:2])
        self.assertEqual([job["id"] for job in self.jobs("ls", "--all")], ids[2:])


class Collect(Rig):
    def test_gc_by_size_removes_ended_jobs_and_nothing_that_waits_or_runs(self):
        ended = [self.run_job("echo", "x" * 1000)["id"] for _ in range(2)]
        held = self.submit("--hold", "true")
        running = self.submit(*shell(f'echo up > "$FACTS/up"; {self.gate()}; cat overcap.yaml 2>/dev/null; exit 0'))
        self.fact("up")
        facts = self.ok("gc", "--max-size", "1B", "--json").json()
        self.assertEqual(sorted(facts["jobs"]), sorted(ended))
        self.assertEqual({job["id"] for job in self.jobs("ls", "--all")}, {held, running})
        self.open_gate()
        self.ok("release", held)
        self.assertEqual([self.ended(job_id)["state"] for job_id in (running, held)], ["succeeded"] * 2)

    def test_gc_dry_run_removes_nothing(self):
        job = self.run_job("true")
        facts = self.ok("gc", "--max-size", "1B", "--dry-run", "--json").json()
        self.assertEqual((facts["jobs"], facts["dry_run"]), ([job["id"]], True))
        self.assertEqual([j["id"] for j in self.jobs("ls", "--all")], [job["id"]])

    def test_gc_by_age_keeps_what_is_young(self):
        job = self.run_job("true")
        self.assertEqual(self.ok("gc", "--older-than", "1h", "--json").json()["jobs"], [])
        self.assertTrue(os.path.exists(job["dir"]))
        self.refused("gc", "--older-than", "soon", says="soon")


if __name__ == "__main__":
    main()
