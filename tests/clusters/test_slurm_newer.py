# SPDX-License-Identifier: Apache-2.0
"""What Slurm 24.05 to 26.05 do otherwise, played in front of the Slurm at hand: its refusals by an srun that refuses the same
before it calls the real one, its further start of a job that has succeeded by `scontrol requeue`."""
import os

from slurm_jobs_rig import SlurmJobsRig, main, shell

SRUN = r"""#!/usr/bin/python3
import os, re, sys
options = [word for word in sys.argv[1:] if word.startswith("-")]
if "--distribution=arbitrary" in options and any(re.match("-N|--nodes(=|$)", word) for word in options):
    sys.exit("srun: error: --nodes is incompatible with --distribution=arbitrary")
asked = [word.partition("=")[2] for word in options if re.match("--(gpus|tres-per-task)", word)]
asked += [os.environ.get(name, "") for name in ("SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_TRES_PER_TASK")]
typed = {bool(re.match("[a-z]", re.sub("gres/gpu[:=]", "", part))) for text in asked for part in text.split(",") if part}
if len(typed) > 1:
    sys.exit("srun: error: Invalid GRES specification (with and without type identification)")
os.environ.pop("SLURM_TRES_PER_TASK", None)  # the real one may be too old for it
os.execv("REAL", ["srun", *sys.argv[1:]])
"""
# What salloc --gpus-per-task=a40:1 sets since 23.11.
PER_TASK = {"SLURM_TRES_PER_TASK": "gres/gpu:a40=1", "SLURM_TRES_BIND": "gres/gpu:per_task:1"}
TELL = 'echo "$RANK of $WORLD_SIZE sees $CUDA_VISIBLE_DEVICES"'


class Newer(SlurmJobsRig):
    cluster = {"nodes": 2, "gpus": 2}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        real = os.path.realpath(cls.slurm.program("srun"))
        path = cls.slurm.folder / "bin" / "srun"
        path.unlink(missing_ok=True)
        path.write_text(SRUN.replace("REAL", real))
        path.chmod(0o755)

    def srun(self, *words, **variables):
        return self.slurm.run(["salloc", "--quiet", "-N2", "env", *(f"{k}={v}" for k, v in variables.items()), "srun", *words], env=self.env)

    def test_the_refusals_are_those_of_26_05(self):
        self.assertIn("incompatible with --distribution=arbitrary", self.srun("-N", "2", "--distribution=arbitrary", "-w", "n1,n2", "true").stderr)
        self.assertIn("with and without type", self.srun("--gpus-per-node=1", "true", **PER_TASK).stderr)
        self.assertEqual(self.srun("-N", "2", "true").returncode, 0)

    def test_jobs_and_launches_on_several_nodes(self):
        job_id = self.submit("-n", "4", "--nodes", "2", *shell(TELL))
        self.assertEqual(self.overcap("wait", job_id).status, 0, self.ok("query", job_id).out)
        self.assertEqual([self.rank_log(job_id, rank) for rank in range(4)], [f"{rank} of 4 sees 0,1\n" for rank in range(4)])
        done = self.slurm.run(["salloc", "--quiet", "-N2", "--gpus-per-node=2", self.binary, "launch", *shell(TELL)], env=self.env, cwd=self.project)
        self.assertEqual((done.returncode, done.stdout), (0, "0 of 4 sees 0,1\n"), done.stderr)

    def test_a_launch_where_the_job_asked_for_gpus_per_task(self):
        variables = [f"{name}={value}" for name, value in PER_TASK.items()]
        done = self.slurm.run(["salloc", "--quiet", "-n2", "-w", "n1", "--gpus-per-task=a40:1", "env", *variables, self.binary, "launch",
                               *shell(TELL)], env=self.env, cwd=self.project)
        self.assertEqual((done.returncode, done.stdout), (0, "0 of 2 sees 0,1\n"), done.stderr)

    def test_a_further_start_of_a_job_that_has_succeeded_runs_nothing(self):
        """Since 24.05 slurmctld does that to jobs that their agent has requeued in a grace time."""
        job_id = self.submit("-n", "0", "--requeue", *shell('echo ran >> "$FACTS/ran"'))
        self.assertEqual(self.overcap("wait", job_id).status, 0)
        number = self.slurm_id(job_id)
        self.slurm.wait_state(number, "COMPLETED")
        self.slurm.must(["scontrol", "requeue", str(number)])
        self.slurm.wait_state(number, "RUNNING", "COMPLETING", "COMPLETED")
        self.slurm.wait_state(number, "COMPLETED")
        self.assertEqual(self.scontrol(job_id)["Restarts"], "1")
        self.assertEqual(self.lines("ran"), ["ran"])
        self.assertEqual(self.job(job_id)["state"], "succeeded")


if __name__ == "__main__":
    main()
