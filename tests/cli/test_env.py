# SPDX-License-Identifier: Apache-2.0
"""`overcap env`: where this shell is. The schedulers' programs are scripts here that answer, fail, lie or hang."""
import json
import os
import re
import socket
import stat
import subprocess
import time

from overcap_rig import Rig, main

HOST = socket.gethostname()
SHORT = HOST.split(".")[0]


class EnvRig(Rig):
    def setUp(self):
        super().setUp()
        self.bin = self.root / "bin"
        self.bin.mkdir()
        # Nothing of the machine's own schedulers, MPIs and drivers is on this PATH.
        self.env["PATH"] = str(self.bin)
        for name in ("sh", "cat", "sleep", "printf"):
            os.symlink(f"/bin/{name}" if os.path.exists(f"/bin/{name}") else f"/usr/bin/{name}", self.bin / name)
        self.declare_no_gpus()

    def program(self, name, script):
        self.write(name, "#!/bin/sh\n" + script, mode=0o755, base=self.bin)

    def facts_here(self, **env):
        return self.ok("env", "--json", env=env).json()


class Detection(EnvRig):
    def test_a_plain_machine_is_local_and_says_why(self):
        found = self.facts_here()
        self.assertEqual((found["scheduler"], found["in_job"], found["job_id"]), ("local", False, ""))
        self.assertEqual(found["hosts"], [{"name": HOST, "slots": 0, "gpus": 0}])
        self.assertEqual(found["world_size"], 1)
        self.assertEqual(found["reasons"]["scheduler"], "no scheduler was found")
        text = self.ok("env").out
        for word in ("machine", "scheduler", "hosts", "GPUs per host", "world size", "no scheduler was found"):
            self.assertIn(word, text)
        self.assertFalse(self.home.exists(), "looking changes nothing")

    def test_declared_gpus_give_the_world_size(self):
        self.declare_gpus(4, "A40")
        found = self.facts_here()
        self.assertEqual((found["gpus_per_host"], found["gpu_type"], found["world_size"]), (4, "a40", 4))
        self.assertEqual(found["reasons"]["gpus_per_host"], "overcap.yaml")

    def test_a_scheduler_that_is_none_is_refused(self):
        self.refused("env", env={"OVERCAP_SCHEDULER": "lsf"}, says=["lsf", "slurm, pbs, local or mpi"])

    def test_an_mpi_around_us_is_seen(self):
        found = self.facts_here(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="3", OMPI_COMM_WORLD_LOCAL_RANK="1",
                                OMPI_COMM_WORLD_LOCAL_SIZE="3", OMPI_COMM_WORLD_NODE_RANK="1")
        self.assertEqual((found["scheduler"], found["started_by"]), ("mpi", "OMPI_COMM_WORLD_RANK"))
        self.assertEqual(found["world_size"], 3)

    def test_a_broken_configuration_is_named_but_lists_can_still_be_expanded(self):
        self.write("overcap.yaml", "nonsense: [\n")
        self.refused("env", says="overcap.yaml")
        self.assertEqual(self.ok("env", "--expand", "n[1-2]").out, "n1\nn2\n")

    def test_rocm_and_xpu_drivers_are_asked(self):
        (self.project / "overcap.yaml").unlink()
        if self.facts_here()["gpus_per_host"]:
            self.skipTest("NOT TESTED: this machine has GPUs of its own, which are found first")
        self.program("rocm-smi", """echo 'WARNING: low-power state'
echo '{"card0": {"Card Series": "AMD Instinct MI250X"}, "card1": {"Card Series": "AMD Instinct MI250X"}}'
""")
        found = self.facts_here()
        self.assertEqual((found["gpus_per_host"], found["gpu_type"]), (2, "mi250x"))
        self.assertEqual(self.facts_here(ROCR_VISIBLE_DEVICES="1")["gpus_per_host"], 1)
        self.program("rocm-smi", "echo broken; exit 3\n")
        self.program("xpu-smi", """echo '{"device_list": [{"device_name": "Intel(R) Data Center GPU Max 1550"}]}'\n""")
        found = self.facts_here()
        self.assertEqual((found["gpus_per_host"], found["reasons"]["gpus_per_host"]), (1, "xpu-smi"))
        self.assertEqual(found["warnings"], ["rocm-smi failed with status 3: broken"])


class Slurm(EnvRig):
    JOB = {"SLURM_JOB_ID": "123", "SLURM_JOB_NODELIST": f"{SHORT},other[1-2]", "SLURM_GPUS_PER_NODE": "a40:2",
           "SLURM_JWT": "very-secret", "SLURM_PROCID": "0"}

    def squeue(self, states, jobs=""):
        """A squeue that gives `states` for a job and `jobs` for a user's jobs."""
        self.program("squeue", f"""case "$*" in
*"-j 123 "*) {states};;
*-u*) cat <<'END'
{jobs}
END
;;
*) echo "unexpected: $*" >&2; exit 1;;
esac
""")

    def test_a_live_job_is_read_from_its_variables(self):
        self.squeue("echo RUNNING")
        self.program("srun", "echo 'slurm 22.05.8'\n")
        found = self.facts_here(**self.JOB)
        self.assertEqual((found["scheduler"], found["in_job"], found["job_id"]), ("slurm", True, "123"))
        self.assertEqual([host["name"] for host in found["hosts"]], [SHORT, "other1", "other2"])
        self.assertEqual([host["gpus"] for host in found["hosts"]], [2, 2, 2])
        self.assertEqual((found["gpu_type"], found["world_size"], found["launcher"]), ("a40", 6, "srun"))
        self.assertEqual(found["launch_command"][-3:], ["rank", "--", "CMD..."])
        self.assertEqual(found["warnings"], [])
        text = self.ok("env", env=self.JOB).out
        self.assertIn("launch command:\n  ", text)
        self.assertIn("SLURM_JOB_NODELIST", text)

    def test_a_job_that_is_over_is_not_believed(self):
        self.squeue("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
        done = self.ok("env", "--json", env=self.JOB)
        self.assertFalse(done.json()["in_job"])
        self.assertIn("job 123, which is over", done.err)

    def test_a_launch_that_cannot_be_planned_does_not_hide_the_rest(self):
        self.squeue("echo RUNNING")
        site = self.write("site.yaml", "name: here\nlauncher: mpiexec\n", base=self.root)
        found = self.facts_here(**self.JOB, OVERCAP_SITE=str(site))
        self.assertEqual((found["machine"], found["job_id"], found["world_size"], found["launcher"]),
                         ("here", "123", 0, ""))
        self.assertIn("'mpiexec' is not installed", found["reasons"]["launcher"])

    def test_a_squeue_that_hangs_or_raves_costs_seconds_and_a_warning(self):
        for script in ("sleep 1000", "sleep 1000 & sleep 1000", "printf '\\001\\377'; exit 1"):
            self.program("squeue", script + "\n")
            began = time.monotonic()
            done = self.ok("env", "--json", env=self.JOB)
            self.assertLess(time.monotonic() - began, 15, script)
            self.assertTrue(done.json()["in_job"], script)
            self.assertIn("SLURM_JOB_ID is believed", done.err)

    def test_a_second_shell_finds_the_job_that_holds_this_host(self):
        self.squeue("echo RUNNING", f"1234|2026-11-15T02:15:09|{SHORT}0,{SHORT}1\n123|2026-11-15T01:00:00|{SHORT},other1")
        self.program("scontrol", f"""[ "$*" = "-o -d show job 123" ] || exit 1
echo "JobId=123 JobName=it's mine UserId=u(1) Partition=short NodeList={SHORT},other1 WorkDir=/tmp/my work Power= TresPerNode=gres:gpu:a40:2"
""")
        found = self.facts_here()
        self.assertEqual((found["in_job"], found["job_id"]), (True, "123"))
        self.assertEqual(found["reasons"]["job_id"], "squeue: job 123 runs on this host")
        self.assertEqual(found["restored"]["SLURM_SUBMIT_DIR"], "/tmp/my work")
        exported = self.ok("env", "--export").out
        shell = subprocess.run(["/bin/sh", "-c", 'eval "$1"; printf "%s|%s|%s|%s" "$SLURM_JOB_ID" "$SLURM_JOB_NAME" '
                                '"$OVERCAP_NHOSTS" "$OVERCAP_GPUS_PER_HOST"', "sh", exported],
                               capture_output=True, text=True, timeout=20, check=True)
        self.assertEqual(shell.stdout, "123|it's mine|2|2")

    def test_a_login_node_is_in_no_job(self):
        self.squeue("exit 1", "123|2026-11-15T01:00:00|other1")
        self.program("sbatch", "exit 1\n")
        found = self.facts_here()
        self.assertEqual((found["scheduler"], found["in_job"], found["hosts"][0]["name"]), ("slurm", False, HOST))

    def test_saving_and_loading_restores_the_job_in_another_shell(self):
        self.squeue("echo RUNNING")
        file = self.ok("env", "--save", env=self.JOB).out.strip()
        self.assertEqual(file, str(self.home / "env/slurm-123"))
        self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
        with open(file, encoding="utf-8") as f:
            text = f.read()
        self.assertNotIn("very-secret", text)
        self.assertNotIn("SLURM_PROCID", text)
        for words in (("env", "--load"), ("env", "--load", "123"), ("env", "--load", "slurm-123")):
            lines = self.ok(*words).out
            self.assertIn("export SLURM_JOB_ID='123'\n", lines)
            self.assertIn("export OVERCAP_NHOSTS='3'\n", lines)
            self.assertTrue(all(re.fullmatch(r"export \w+='.*'", line) for line in lines.splitlines()), lines)
        self.refused("env", "--load", "12", status=3, says="job '12'")
        self.squeue("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
        self.refused("env", "--load", status=6, says="'slurm-123' is over")
        self.squeue("echo cannot >&2; exit 1")
        done = self.ok("env", "--load")
        self.assertIn("cannot tell", done.err)

    def test_a_damaged_file_never_reaches_a_shell(self):
        self.squeue("echo RUNNING")
        file = self.ok("env", "--save", env=self.JOB).out.strip()
        with open(file, "a", encoding="utf-8") as f:
            f.write("touch /tmp/never\n")
        self.refused("env", "--load", status=7, says="damaged")

    def test_nothing_saved_is_said(self):
        self.refused("env", "--load", status=3, says="no environment was saved")


class Pbs(EnvRig):
    def job(self, host, ids=("12.srv",)):
        jobs = {job_id: {"Job_Name": "train", "Job_Owner": f"{self.user_name()}@login", "job_state": "R", "queue": "workq",
                         "exec_host": f"{host}/0*4+other/0*4", "exec_vnode": f"({host}:ncpus=4:ngpus=2)+(other:ncpus=4:ngpus=2)",
                         "Resource_List": {"select": "2:ncpus=4:mpiprocs=2"}, "stime": "Sun Nov 15 01:10:44 2026",
                         "Variable_List": {"PBS_O_WORKDIR": "/work", "FOO": "bar"}} for job_id in ids}
        return json.dumps({"timestamp": 1, "Jobs": jobs}, indent=1)

    def user_name(self):
        return subprocess.run(["id", "-un"], capture_output=True, text=True, timeout=20, check=True).stdout.strip()

    def qstat(self, text):
        self.write("qstat.json", text, base=self.root)
        self.program("qstat", f"cat '{self.root}/qstat.json'\n")

    def test_lines_of_a_node_file_are_slots_not_hosts(self):
        nodes = self.write("nodes", f"{HOST}\n{HOST}\nother\nother\n")
        found = self.facts_here(PBS_JOBID="12.srv", PBS_NODEFILE=str(nodes))
        self.assertEqual((found["scheduler"], found["job_id"], len(found["hosts"])), ("pbs", "12.srv", 2))
        self.assertEqual([host["slots"] for host in found["hosts"]], [2, 2])

    def test_a_left_over_job_id_is_a_warning(self):
        done = self.ok("env", "--json", env={"PBS_JOBID": "12.srv", "PBS_NODEFILE": "/nonexistent/12.srv"})
        self.assertEqual(done.json()["scheduler"], "local")
        self.assertIn("PBS_JOBID names job 12.srv", done.err)

    def test_a_second_shell_finds_the_job_that_holds_this_host(self):
        self.qstat(self.job(SHORT))
        found = self.facts_here()
        self.assertEqual((found["scheduler"], found["job_id"]), ("pbs", "12.srv"))
        self.assertEqual([(host["name"], host["slots"], host["gpus"]) for host in found["hosts"]],
                         [(SHORT, 2, 2), ("other", 2, 2)])
        self.assertEqual(found["restored"]["PBS_O_WORKDIR"], "/work")
        self.assertNotIn("FOO", found["restored"])
        with open(found["restored"]["PBS_NODEFILE"], encoding="utf-8") as f:
            self.assertEqual(f.read(), f"{SHORT}\n{SHORT}\nother\nother\n")

    def test_a_host_whose_name_ours_begins_with_is_another(self):
        self.qstat(self.job(SHORT + "0"))
        self.assertFalse(self.facts_here()["in_job"])

    def test_cut_off_and_binary_answers_are_warnings(self):
        whole = self.job(SHORT)
        for text in (whole[:len(whole) // 2], "\x00\x01{", "{" * 100000, ""):
            self.qstat(text)
            done = self.ok("env", "--json")
            self.assertFalse(done.json()["in_job"])
            self.assertEqual(bool(done.json()["warnings"]), bool(text), text[:20])

    def test_a_qstat_that_hangs_is_given_up(self):
        self.program("qstat", "sleep 1000\n")
        began = time.monotonic()
        done = self.ok("env", "--json")
        self.assertLess(time.monotonic() - began, 15)
        self.assertIn("'qstat' did not end in time", done.err)


class HostLists(EnvRig):
    def run_with_input(self, text, *args):
        read, write = os.pipe()
        with os.fdopen(write, "wb") as f:
            f.write(text.encode())
        try:
            return self.ok("env", *args, stdin=read)
        finally:
            os.close(read)

    def test_lists_are_expanded_and_compressed(self):
        self.assertEqual(self.ok("env", "--expand", "rack[1-2]n[01-02],a").out,
                         "rack1n01\nrack1n02\nrack2n01\nrack2n02\na\n")
        self.assertEqual(self.ok("env", "--compress", "n1", "n2", "n3", "x").out, "n[1-3],x\n")
        self.assertEqual(self.ok("env", "--expand", "n[1-2]", "--json").json(), {"hosts": ["n1", "n2"]})
        self.assertEqual(self.ok("env", "--compress", "n1", "n2", "--json").json(), {"host_list": "n[1-2]"})

    def test_lists_come_from_stdin_too(self):
        self.assertEqual(self.run_with_input("n[1-2]\nb\n", "--expand", "-").out, "n1\nn2\nb\n")
        self.assertEqual(self.run_with_input("n1\nn2\n\nb\n", "--compress").out, "n[1-2],b\n")
        self.assertEqual(self.run_with_input("", "--expand", "-").out, "")

    def test_a_broken_list_and_modes_that_exclude_each_other_are_refused(self):
        self.refused("env", "--expand", "n[1-", says="n[1-")
        self.refused("env", "--export", "--save", says="exclude each other")
        self.refused("env", "word", says="'word'")
        self.refused("env", "--load", "a", "b", says="'b'")


if __name__ == "__main__":
    main()
