# SPDX-License-Identifier: Apache-2.0
"""`workspace auto` in a job on a real Slurm: it knows when the allocation ends, and saves before that and when it is ended."""
import json

from slurm_jobs_rig import DEADLINE, SlurmJobsRig, main

DEADLINE_SECONDS = 240


class Auto(SlurmJobsRig):
    cluster = {"nodes": 1, "gpus": 0, "kill_wait": 60}

    def test_it_saves_before_the_limit_and_when_the_job_is_ended(self):
        work = self.root / "disk" / "work"
        self.write("model.py", "1\n", base=work)
        self.ok("workspace", "create", "work", "--at", str(work), "--adopt")
        script = self.root / "job.sh"
        script.write_text(f"#!/bin/sh\ncd {work}\n'{self.binary}' workspace auto --every 1h --margin 45s --foreground &\nwait\n")
        log = self.root / "job.log"
        said = self.slurm.run(["sbatch", "--parsable", "--time=1", "--partition=short", f"--output={log}", str(script)], env=self.env)
        job = said.stdout.strip()
        self.assertTrue(job.isdigit(), f"{said.stdout}{said.stderr}")
        state = self.until_state(lambda s: s.get("saved_us") and s["job_end_us"], log)
        self.assertEqual(state["job"], job)
        end = self.slurm.must(["squeue", "-h", "-j", job, "-o", "%e"], env={**self.env, "SLURM_TIME_FORMAT": "%s"}).strip()
        self.assertEqual(state["job_end_us"], int(end) * 1_000_000)
        self.assertEqual(state["next_why"], "the allocation ends soon")

        self.write("late", "2\n", base=work)
        self.until(lambda: self.newest("late") == "2\n", "a backup before the end", 2 * DEADLINE)
        self.until(lambda: "(the allocation ends soon)" in log.read_text(), "the job's log to say why")
        self.assertEqual(self.scontrol_of(job)["JobState"], "RUNNING")

        self.write("last", "3\n", base=work)
        self.slurm.must(["scancel", job])
        self.until(lambda: self.newest("last") == "3\n", "a backup when it is ended", 2 * DEADLINE)
        self.until(lambda: "all is saved in" in log.read_text(), "its last words in the job's log")

    def until_state(self, holds, log):
        last = {}

        def looks():
            states = json.loads(self.ok("workspace", "auto", "work", "--status", "--json").out)
            last.update(states[0] if states else {})
            return bool(last) and holds(last)

        try:
            self.until(looks, "the service to know the end of the job", 2 * DEADLINE)
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {last}; {log.read_text() if log.exists() else ''}") from None
        return last

    def newest(self, path):
        return self.overcap("workspace", "cat", "latest", path, "--name", "work").out


if __name__ == "__main__":
    main()
