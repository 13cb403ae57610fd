# SPDX-License-Identifier: Apache-2.0
"""Naming clusters and submitting to a real Slurm: configuration, placement, batch scripts, sweeps, advice, bad input."""
import json
import os
import pathlib

from slurm_jobs_rig import SlurmJobsRig, main, shell
from rigs.slurm_accounts import Accounting

DEADLINE_SECONDS = 400
ON_EVERY_SLURM = True

SCRIPT = """#!/bin/bash
#SBATCH -p debug --job-name="my job"   # where
#SBATCH --gres=gpu:a40:2 -c 3 -t 30 --mem 200
#SBATCH --exclude=n2 -o out-%j.txt

echo "args: $1|$2 in $PWD"
echo "gpus $CUDA_VISIBLE_DEVICES of job $SLURM_JOB_ID, tasks $SLURM_NTASKS, $lr"
cat note.txt
#SBATCH -p long
"""


class SlurmSubmit(SlurmJobsRig):
    cluster = {"nodes": 2, "gpus": 4, "gpu_types": ("a40", "rtx_6000"), "accounting": Accounting(labs={"lab-a": 8})}
    settings = "partition: short, account: lab-a"

    def script(self, text=SCRIPT, name="job.sh"):
        self.write("note.txt", "as it was\n")
        return self.write(name, text, mode=0o644)

    def held(self, *args):
        """Submits a held job and gives its id and what Slurm knows of it."""
        job_id = self.submit("--hold", *args)
        return job_id, self.scontrol(job_id)


    def nothing_left(self):
        self.assertEqual(os.listdir(self.home / "jobs") if (self.home / "jobs").exists() else [], [])
        self.assertEqual(self.slurm.must(["squeue", "-h"]), "")


class Clusters(SlurmSubmit):
    def no_configuration(self):
        os.remove(self.env["XDG_CONFIG_HOME"] + "/overcap/overcap.yaml")

    def clusters(self, **options):
        return {row["name"]: row for row in self.ok("cluster", "list", "--json", **options).json()}

    def test_without_any_configuration_a_login_node_submits_to_its_slurm(self):
        self.no_configuration()
        clusters = self.clusters()
        self.assertEqual({name: row["default"] for name, row in clusters.items()}, {"local": False, "slurm": True})
        job_id = self.submit("--account", "lab-a", *shell("echo from $SLURM_JOB_ID"))
        self.assertEqual(self.overcap("wait", job_id).status, 0)
        self.assertEqual(self.job(job_id)["cluster"], "slurm")
        self.assertEqual(self.rank_log(job_id), f"from {self.slurm_id(job_id)}\n")
        inside = self.clusters(env={"SLURM_JOB_ID": "1"})
        self.assertTrue(inside["local"]["default"])
        self.assertIn("slurm", inside)

    def test_a_configured_cluster_is_named_by_c_before_or_after_the_verb(self):
        clusters = self.clusters()
        self.assertEqual(sorted(clusters), ["local", "sky"])
        self.assertTrue(clusters["sky"]["default"])
        self.assertIn("overcap.yaml:", clusters["sky"]["from"])
        job_id, _ = self.held("true")
        for words in (("-c", "sky", "query", job_id), ("query", "-c", "sky", job_id), ("--cluster=sky", "query", job_id)):
            self.assertIn(job_id, self.ok(*words).out)
        self.refused("-c", "sku", "ls", status=3, says=["'sku'", "local, sky"])
        self.refused("submit", "--cluster", "sku", "true", status=3, says="'sku'")

    def test_check_tells_that_all_is_well(self):
        done = self.ok("cluster", "check", "sky", "--json").json()
        self.assertTrue(done["healthy"], done)
        self.assertGreater(len(done["findings"]), 1)
        self.assertIn("ok", self.ok("-c", "sky", "cluster", "check").out)
        self.assertIn("machine", self.ok("cluster", "check", "local").out)
        self.refused("cluster", "check", "sku", status=3, says="'sku'")

    def test_a_cluster_has_a_folder_defaults_and_limits_of_its_own(self):
        self.env["SCRATCH"] = str(self.root / "scratch")
        self.configure(settings="account: lab-a, partition: 'debug,short', folder: $SCRATCH/jobs, max_gpus: 2,"
                                " args: --mail-type=FAIL, defaults: {gpus: 1, time: 30m, mem: 200M}",
                       more="defaults: {time: 1h, requeue: true}")
        job_id = self.submit(*shell("pwd"))
        self.assertEqual(self.overcap("wait", job_id).status, 0)
        job = self.job(job_id)
        self.assertEqual((job["gpus"], job["time_seconds"]), (1, 1800), job)
        folder = self.root / "scratch/jobs"
        self.assertTrue(job["dir"].startswith(str(folder)), job["dir"])
        self.assertFalse((self.home / "jobs").exists(), "nothing stands in the other place")
        self.assertTrue((folder / "store").exists())
        self.assertIn("attempt-1/code", self.ok("logs", job_id).out)
        number = json.loads((folder / "jobs" / job_id / "handle.json").read_text())["slurm_id"]
        said = self.scontrol_of(number)
        self.assertEqual((said["Partition"].split(",")[0][:5], said["TimeLimit"], said["Requeue"]),
                         ("debug", "00:30:00", "1"), said)
        self.ok("gc", "--older-than", "1s", "--dry-run")
        self.ok("rm", job_id)
        self.assertFalse((folder / "jobs" / job_id).exists())
        self.refused("submit", "-n", "4", "true", says=["4 GPUs", "at most 2"])
        del self.env["SCRATCH"]
        self.refused("ls", says=["overcap.yaml:3", "SCRATCH is not set"])

    def test_the_engine_of_this_machine_and_slurm_share_a_home_in_peace(self):
        """The engine leaves alone what waits in Slurm, and neither's clean-up takes the code of the other."""
        self.write("overcap.txt", "mine\n")
        waiting = self.submit("--hold", "--time", "10m", "cat", "overcap.txt")
        for _ in range(2):
            self.assertEqual(self.overcap("-c", "local", "submit", "--wait", *shell("exit 3")).status, 3)
            self.ok("daemon", "stop")
        self.assertEqual([job["cluster"] for job in self.jobs("-c", "local", "ls", "--all")], ["local", "local"])
        self.assertEqual([job["id"] for job in self.jobs("ls", "--all") if job["dir"]], [waiting])
        for folder, _, files in os.walk(self.home / "store"):  # as if it had been there for long
            for name in files:
                os.utime(os.path.join(folder, name), (1, 1))
        self.write("overcap.txt", "changed\n")
        self.ok("-c", "local", "gc", "--older-than", "1d")
        self.ok("gc", "--older-than", "1d")
        self.ok("release", waiting)
        self.assertEqual(self.overcap("wait", waiting).status, 0)
        self.assertEqual(self.rank_log(waiting), "mine\n")
        self.ok("daemon", "stop")

    def test_clean_up_leaves_jobs_alone_that_overcap_did_not_submit(self):
        done, held = (self.slurm.submit(*words, "-A", "lab-a", "--wrap", "true") for words in ((), ("-H",)))
        job_id = self.submit("true")
        self.assertEqual(self.overcap("wait", job_id).status, 0)
        self.slurm.wait_state(done, "COMPLETED", seconds=60)
        self.until(lambda: "removed 1 job" in self.ok("gc", "--older-than", "1s").out, "the job to be older than a second")
        self.assertEqual(self.slurm.job_state(held), "PENDING")
        self.assertFalse(self.folder(job_id).exists())

    def test_keys_that_mean_nothing_to_the_driver_are_refused_with_their_place(self):
        self.configure(settings="gpus: [{type: a40}]")
        self.refused("ls", says=["overcap.yaml:3", "'clusters.sky.gpus'", "driver 'slurm'", "partition"])


class Placement(SlurmSubmit):
    def test_flags_reach_slurm_and_win_over_the_configuration(self):
        _, said = self.held("-p", "long,overcap", "--node", "n2", "--qos", "labq", "--time", "30m", "--warn", "90s",
                            "--requeue", "--slurm-args", "--mail-type=END --nice=7", "--slurm-args=--exclude='n1'", "true")
        self.assertEqual((said["Partition"], said["ReqNodeList"], said["ExcNodeList"], said["TimeLimit"], said["Requeue"]),
                         ("long,overcap", "n2", "n1", "00:30:00", "1"), said)
        self.assertEqual((said["Account"], said["Nice"]), ("lab-a", "7"), said)
        plan = self.ok("submit", "--warn", "90s", "--requeue", "--dry-run", "true").out
        self.assertIn("--signal=B:USR1@90", plan)

    def test_odd_names_reach_slurm_to_the_byte(self):
        """Options travel as #SBATCH lines, which sbatch takes apart by rules of its own."""
        for name in ("a b", "  two  blanks  ", "it's \"quoted\"", "back\\slash\\", "# no comment", "$(x) `y` ${z};|&<>", "naïve 日本",
                     "--array=1-3", "'", '"', "my hetjob", "PackJob", "%j %x", "tab-free: a=b,c", "x" * 200):
            with self.subTest(name):
                number = self.slurm_id(self.submit("--hold", "--name", name, "true"))
                self.assertEqual(self.slurm.must(["squeue", "-h", "-j", str(number), "-o", "%j"]), f"{name}\n")

    def test_the_placement_wins_over_variables_of_sbatch(self):
        for flags, partition in (((), "short"), (("-p", "long"), "long")):
            job_id = self.ok("submit", "--hold", *flags, "true", env={"SBATCH_PARTITION": "debug"}).out.strip()
            self.assertEqual(self.scontrol(job_id)["Partition"], partition)

    def test_a_wrong_submit_leaves_no_sbatch_behind(self):
        """sbatch is begun before the job is checked, and has sent nothing when the job turns out to be none."""
        before = self.slurm.rpc_counts()
        for words, status in ((("./no-such-program-here",), 2), (("--workdir", "nowhere", "true"), 2), (("-n", "99", "true"), 2)):
            self.assertEqual(self.overcap("submit", *words).status, status)
        self.assertNotIn("REQUEST_SUBMIT_BATCH_JOB", self.slurm.rpc_counts().since(before).types)
        self.nothing_left()
        left = [path for path in pathlib.Path("/proc").glob("[0-9]*/environ") if self.is_sbatch_of_ours(path)]
        self.assertEqual(left, [])

    def is_sbatch_of_ours(self, path):
        try:
            return (path.with_name("comm").read_text().strip() == "sbatch" and
                    f"OVERCAP_HOME={self.home}".encode() in path.read_bytes().split(b"\0"))
        except OSError:
            return False

    def test_a_dry_run_prints_what_is_sent_and_sends_nothing(self):
        done = self.ok("submit", "-n", "2", "--gpu-type", "a40", "--slurm-args=--exclusive", "--dry-run", "true")
        for text in ("sbatch --comment=overcap:", "--partition=short", "--account=lab-a", "--exclusive", "agent --job",
                     "#!/bin/sh", "a40:2"):
            self.assertIn(text, done.out)
        spec = self.ok("submit", "-n", "2", "--dry-run", "--json", "true").json()
        self.assertEqual(spec["resources"]["gpus"], 2)
        self.assertIn("sbatch --comment=overcap:" + spec["id"], spec["plan"])
        self.nothing_left()

    def test_a_cluster_without_partitions_refuses_them(self):
        for flag in (("-p", "short"), ("--account", "x"), ("--qos", "x"), ("--node", "n1"), ("--slurm-args", "--exclusive")):
            self.refused("-c", "local", "submit", *flag, "true", says=["'local'", "no partitions"])
        self.refused("-c", "local", "submit", "--requeue-on-timeout", "--array", "0-1", "true", says="cannot requeue tasks of an array")
        self.assertEqual(self.jobs("-c", "local", "ls", "--all"), [])
        self.ok("daemon", "stop")

    def test_resubmit_keeps_the_placement(self):
        job_id, _ = self.held("-p", "long", "--slurm-args=--nice=5", "--sweep", "lr=1,2", "true")
        again = self.id_in(self.ok("resubmit", job_id))
        self.slurm.must(["scontrol", "hold", str(self.slurm_id(again))])
        said = self.scontrol(again)
        self.assertEqual((said["Partition"], said["Nice"], said["Account"]), ("long", "5", "lab-a"), said)
        spec = json.loads((self.folder(again) / "spec.json").read_text())
        self.assertEqual((spec["sweep"], spec["resubmit_of"]), ([{"name": "lr", "values": ["1", "2"]}], job_id))

    def test_a_job_that_slurm_alone_knows_cannot_be_run_again(self):
        number = self.slurm.submit("-H", "-A", "lab-a", "--wrap", "true")
        self.until(lambda: self.overcap("query", str(number)).status == 0, "the mirror to know it")
        self.refused("resubmit", str(number), says=[f"'{number}'", "was not submitted by overcap"])

    def test_jobs_get_one_gpu_where_there_are_any_from_the_first_one_on(self):
        self.configure(settings="account: lab-a, partition: short")
        first, second = (self.held("true")[1] for _ in range(2))
        self.assertTrue(first["TresPerNode"].endswith("gpu:1"), first)
        self.assertEqual([first[name] for name in ("TresPerNode", "CPUs/Task")],
                         [second[name] for name in ("TresPerNode", "CPUs/Task")])
        _, said = self.held("-n", "0", "true")
        self.assertNotIn("TresPerNode", said)

    def test_advice_is_printed_and_strict_makes_it_an_error(self):
        done = self.ok("submit", "-p", "debug", "-n", "1", "--cpus", "16", "--hold", "true")
        self.assertIn("advice: ", done.err)
        quiet = self.ok("--quiet", "submit", "-p", "debug", "-n", "1", "--cpus", "16", "--hold", "true")
        self.assertEqual(quiet.err, "")
        before = sorted(self.ls("--all"))
        self.refused("submit", "--strict", "-p", "debug", "-n", "1", "--cpus", "16", "true", says="nothing was submitted")
        self.assertEqual(sorted(self.ls("--all")), before)
        self.ok("submit", "--strict", "-n", "1", "--cpus", "4", "--time", "10m", "--hold", "true")


class Scripts(SlurmSubmit):
    def test_a_batch_script_runs_once_with_its_directives_and_is_frozen(self):
        self.script()
        done = self.ok("submit", "--hold", "job.sh", "one", "two words")
        self.assertIn("--output=out-%j.txt", done.err)
        job_id = self.id_in(done)
        said = self.scontrol(job_id)
        self.assertEqual((said["Partition"], said["TimeLimit"], said["ExcNodeList"], said["CPUs/Task"], said["Account"]),
                         ("debug", "00:30:00", "n2", "3", "lab-a"), said)
        self.assertIn("gpu:a40:2", said["TresPerNode"])  # 22.05 writes gres: before it, 24.11 gres/
        self.write("job.sh", "#!/bin/bash\necho changed\n")
        self.write("note.txt", "changed\n")
        self.ok("release", job_id)
        self.assertEqual(self.overcap("wait", job_id).status, 0, self.ok("logs", job_id).out)
        lines = self.rank_log(job_id).splitlines()
        self.assertRegex(lines[0], r"^args: one\|two words in .*/attempt-1/code$")
        self.assertEqual(lines[1:], [f"gpus 0,1 of job {self.slurm_id(job_id)}, tasks 1, ", "as it was"])
        job = self.job(job_id)
        self.assertEqual((job["name"], job["gpus"], job["command"]),
                         ("my job", 2, ["/bin/bash", "job.sh", "one", "two words"]))

    def test_tasks_of_a_script_see_the_gpus_that_sbatch_gives_them(self):
        """What they are depends on the release: under Slurm 22.05 none, for example."""
        script = self.script("#!/bin/bash\n#SBATCH -p debug -A lab-a --ntasks=2 --gpus-per-task=a40:1 -t 5\n"
                             "srun sh -c 'echo task $SLURM_PROCID sees $CUDA_VISIBLE_DEVICES' | sort\n")
        out = self.root / "sbatch.out"
        self.slurm.must(["sbatch", "--wait", "-N1", "-o", out, script], env=self.env, cwd=self.project)
        done = self.ok("submit", "--wait", "job.sh")
        self.assertEqual(self.rank_log(done.out.split()[0]), out.read_text())
        if self.slurm.version() >= (23, 11):
            self.assertEqual(out.read_text(), "task 0 sees 0\ntask 1 sees 1\n")

    def test_flags_win_over_directives(self):
        self.script()
        _, said = self.held("-p", "long", "-n", "1", "-t", "1h", "--name", "other", "job.sh")
        self.assertEqual((said["Partition"], said["TimeLimit"], said["JobName"]), ("long", "01:00:00", "other"), said)
        self.assertRegex(said["TresPerNode"], "gpu:a40:1|gpu:1")

    def test_the_same_script_runs_on_this_machine(self):
        self.script(SCRIPT.replace("a40:2", "1"))
        self.write("overcap.yaml", "clusters: {local: {gpus: [{type: a40, count: 1}], cpus: 4}}\n")
        done = self.ok("-c", "local", "submit", "--wait", "job.sh", "x", "y")
        self.assertIn("this cluster has no use for --partition=debug --exclude=n2", done.err)
        job_id = done.out.split()[0]
        self.assertIn("args: x|y in ", self.ok("-c", "local", "logs", job_id).out)
        self.ok("daemon", "stop")

    def test_a_sweep_makes_one_array_with_the_values_exported(self):
        self.script(SCRIPT.replace("--gres=gpu:a40:2 ", ""))
        done = self.ok("submit", "--sweep", "lr=1e-4,1e-3", "--sweep", r"opt=a\,b,x=y", "--sweep-limit", "2", "job.sh")
        self.assertEqual([line.split() for line in done.err.splitlines() if line.strip()[:1].isdigit() or "TASK" in line],
                         [["TASK", "lr", "opt"], ["0", "1e-4", "a,b"], ["1", "1e-4", "x=y"], ["2", "1e-3", "a,b"],
                          ["3", "1e-3", "x=y"]])
        job_id = self.id_in(done)
        self.assertEqual(self.overcap("wait", job_id).status, 0)
        for task, value in enumerate(("1e-4", "1e-4", "1e-3", "1e-3")):
            self.assertIn(f"tasks 1, {value}\n", self.ok("logs", "--task", str(task), job_id).out)
        self.assertEqual(self.job(job_id)["array"], "0-3%2")
        record = self.ok("submit", "--json", "--hold", "--sweep", "lr=1,2", "true").json()
        self.assertEqual(record["combinations"], [{"task": 0, "values": {"lr": "1"}}, {"task": 1, "values": {"lr": "2"}}])
        self.assertEqual(self.ok("--quiet", "submit", "--hold", "--sweep", "lr=1,2", "true").err, "")

    def test_scripts_and_sweeps_that_cannot_be_are_refused_with_a_clear_line(self):
        self.script("#!/bin/bash\n#SBATCH -p debug\n#SBATCH --mem=lots\n")
        self.refused("submit", "job.sh", says=["job.sh:3", "--mem=lots"])
        self.script("#!/bin/bash\n#SBATCH -p debug x\n")
        self.refused("submit", "job.sh", says=["job.sh:2", "'x'"])
        self.write("outer.sh", SCRIPT, base=self.root)
        self.refused("submit", "../outer.sh", says=["outside of the current folder", "cd to"])
        self.refused("submit", "--sweep", "lr", "true", says=["--sweep", "lr=1e-4,1e-3"])
        self.refused("submit", "--sweep", "lr=1,2", "--array", "0-1", "true", says=["--array", "--sweep-limit"])
        self.refused("submit", "--sweep-limit", "2", "true", says="without --sweep")
        self.nothing_left()


class Programs(SlurmSubmit):
    def test_a_program_that_only_nodes_have_is_a_note(self):
        program = f"/dev/shm/{self.root.name}"  # each node has a /dev/shm of its own
        self.slurm.must(["sh", "-c", f"printf '#!/bin/sh\\necho on $(hostname)\\n' > {program} && chmod 755 {program}"], node="n1")
        done = self.ok("submit", "--wait", "-n", "0", "-w", "n1", program)
        self.assertIn(f"command '{program}' is not on this machine", done.err)
        self.assertEqual(self.rank_log(done.out.split()[0]), "on n1\n")
        done = self.overcap("submit", "--wait", "-n", "0", "-w", "n2", program)
        job = self.job(done.out.split()[0])
        self.assertEqual((done.status, job["state"]), (127, "failed"), str(done))
        self.assertIn(program, job["reason"])


class BadInput(SlurmSubmit):
    def without_path(self, *words):
        argv = ["/usr/bin/env", "PATH=/nowhere", str(self.binary), *words]
        return self.done(self.slurm.run(argv, env=self.env, cwd=self.project, text=False))

    def test_what_slurm_refuses_is_said_and_leaves_nothing(self):
        for status, flags, says in ((4, ("--account", "nobody"), "'nobody'"), (2, ("-p", "nosuch"), "'nosuch'"),
                                    (4, ("--qos", "nosuch"), "'nosuch'"), (2, ("--node", "n99"), "node"),
                                    (2, ("-p", "debug", "-t", "2d"), "time limit"),
                                    (2, ("--slurm-args", "--nosuchoption=1"), "nosuchoption")):
            self.refused("submit", *flags, "true", status=status, says=says)
        for flags in (("--node", ""), ("-p", ""), ("-p", "a,,b"), ("--slurm-args", "--x='a"), ("--slurm-args", "script.sh"),
                      ("--slurm-args", "--output=x"), ("--warn", "soon"), ("-n", "99")):
            self.refused("submit", *flags, "true", status=2)
        self.nothing_left()

    def test_refusals_name_what_to_type(self):
        number = self.slurm.submit("-H", "-A", "lab-a", "-o", "/dev/null", "--wrap", "true")
        self.refused("query", f"{number}+1", says=[f"heterogeneous job {number}", "squeue -j"])
        self.refused("logs", str(number), status=3, says="not submitted by Overcap")
        self.refused("submit", "-A", "lab-a", "true", says="did you mean '--account'?")
        self.slurm.must(["scancel", str(number)])

    def test_no_sbatch_is_said_and_leaves_nothing(self):
        self.configure(settings=f"programs: {self.root / 'nowhere'}")
        self.refused("submit", "true", status=5, says=["no 'sbatch'", "nowhere"])
        self.configure()
        done = self.without_path("submit", "/bin/true")
        self.assertEqual(done.status, 5, str(done))
        self.assertIn("there is no 'sbatch' on PATH", done.err)
        self.nothing_left()
        done = self.without_path("cluster", "check", "sky")
        self.assertEqual(done.status, 5, str(done))
        self.assertIn("error", done.out)

    def test_munge_down_is_said(self):
        self.broken = True
        self.slurm.stop_munge()
        done = self.refused("submit", "true", status=5, deadline=120)
        self.assertIn("munge", done.err.lower())


if __name__ == "__main__":
    main()
