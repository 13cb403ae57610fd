# SPDX-License-Identifier: Apache-2.0
"""The Slurm that end-to-end tests stand on, at its fullest: caps, preemption, history, users, and what can fail."""
import os
import pathlib
import shutil
import subprocess
import unittest
from unittest import mock

from rigs.slurm_accounts import Accounting
from rigs.slurm_config import gpus_by_node, gres_lines, node_lines, partition_lines
from rigs.slurm_rig import CONTROLLER_PORT, SlurmCluster
from rigs.slurm_views import RpcCounts, parse_rpc_counts

SLEEP = ("-o", "/dev/null", "--wrap", "sleep 300")
OBEDIENT = ("-o", "/dev/null", "--wrap", "exec sleep 300")  # ends at once when told to


class Accounts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = SlurmCluster(nodes=4, gpus=4, gpu_types=("a40", "a40", "2080_ti", "rtx_6000"),
                                 features={"n2": "bigmem"}, accounting=Accounting(labs={"lab-a": 4, "lab-b": 8}))
        cls.addClassCleanup(cls.slurm.close)

    def setUp(self):
        self.addCleanup(self.slurm.empty_queue)

    def test_the_cap_of_a_lab_holds_its_third_job_and_not_the_other_labs(self):
        ask = ("-p", "short", "--gpus=2", *SLEEP)
        jobs = [self.slurm.submit("-A", "lab-a", *ask) for _ in range(3)]
        other = self.slurm.submit("-A", "lab-b", *ask)
        for job in (*jobs[:2], other):
            self.slurm.wait_state(job, "RUNNING")
        self.slurm.wait_reason(jobs[2], "AssocGrpGRES")
        over = self.slurm.submit("-A", "lab-a", "-p", "overcap", "--gpus=4", *SLEEP)
        self.slurm.wait_state(over, "RUNNING")
        self.assertEqual(self.slurm.job_state(jobs[2]), "PENDING")

    def test_a_lab_takes_its_gpus_back_and_the_job_above_the_cap_runs_again(self):
        over = self.slurm.submit("-A", "overcap", "-p", "overcap", "--requeue", "--gpus=a40:8", *OBEDIENT)
        self.slurm.wait_state(over, "RUNNING")
        lab = self.slurm.submit("-A", "lab-b", "-p", "short", "--gpus=a40:8", *OBEDIENT)
        self.slurm.wait_state(lab, "RUNNING")
        self.slurm.wait_state(over, "PENDING")
        self.slurm.must(["scancel", str(lab)])
        self.slurm.wait_state(over, "RUNNING", seconds=30)
        first, second = self.slurm.wait_sacct(over, "PREEMPTED", "RUNNING")
        self.assertEqual((first["Account"], first["Partition"]), ("overcap", "overcap"))
        self.assertIn("gres/gpu:a40=8", second["AllocTRES"])
        self.slurm.wait_sacct(lab, "CANCELLED")

    def test_the_limits_of_a_partition_hold(self):
        done = self.slurm.run(["sbatch", "-p", "debug", "-t", "2:00:00", *SLEEP])
        self.assertEqual(done.returncode, 1)
        self.assertIn("Requested time limit is invalid", done.stderr)
        ask = ("-p", "debug", "-A", "lab-b", "--gpus=2", *SLEEP)
        self.slurm.wait_state(self.slurm.submit(*ask), "RUNNING")
        self.slurm.wait_reason(self.slurm.submit(*ask), "QOSMaxGRESPerUser")

    def test_one_look_at_the_queue_is_one_call_for_jobs(self):
        for look, calls in ((["squeue"], {"REQUEST_JOB_INFO": 1, "REQUEST_PARTITION_INFO": 1}),
                            (["squeue", "--json"], {"REQUEST_JOB_INFO": 1}),
                            (["sinfo"], {"REQUEST_NODE_INFO": 1, "REQUEST_PARTITION_INFO": 1})):
            before = self.slurm.rpc_counts()
            self.slurm.must(look)
            self.assertEqual(self.slurm.rpc_counts().since(before).reads(), calls, look)

    def test_a_look_at_the_history_is_a_call_to_the_database_only(self):
        before, there = self.slurm.rpc_counts(), self.slurm.database_rpc_counts()
        self.slurm.must(["sacct"])
        self.assertEqual(self.slurm.rpc_counts().since(before).reads(), {})
        self.assertEqual(self.slurm.database_rpc_counts().since(there).types.get("DBD_GET_JOBS_COND"), 1)

    def test_gpu_types_and_features_choose_the_node(self):
        for ask, node in (("--gpus=2080_ti:1", "n3"), ("--constraint=rtx_6000", "n4"), ("--constraint=bigmem", "n2")):
            self.assertEqual(self.slurm.must(["srun", "-N1", ask, "hostname"]), node + "\n")

    def test_without_the_database_jobs_run_and_history_fails(self):
        self.slurm.stop_database()
        try:
            self.assertEqual(self.slurm.must(["srun", "-N1", "echo", "here"]), "here\n")
            self.assertNotEqual(self.slurm.run(["sacct"]).returncode, 0)
        finally:
            self.slurm.start_database()
        self.slurm.must(["sacct"])


class Qos(unittest.TestCase):
    def test_the_qos_of_the_labs_preempts_the_other(self):
        with SlurmCluster(nodes=1, gpus=2, preemption="qos", accounting=Accounting(labs={"lab-a": None})) as slurm:
            over = slurm.submit("-A", "lab-a", "--qos=over", "--requeue", "--gpus=2", *OBEDIENT)
            slurm.wait_state(over, "RUNNING")
            lab = slurm.submit("-A", "lab-a", "--gpus=2", *OBEDIENT)
            slurm.wait_state(lab, "RUNNING")
            self.assertEqual(slurm.job_state(over), "PENDING")


@unittest.skipIf(os.geteuid() != 0, "NOT TESTED: a cluster with several users needs root")
class Users(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        members = {"lab-a": ["alice"], "lab-b": ["bob"]}
        cls.slurm = SlurmCluster(nodes=1, gpus=0, users=("alice", "bob"), accounting=Accounting(members=members))
        cls.addClassCleanup(cls.slurm.close)

    def test_people_run_as_themselves_and_may_use_their_own_lab_only(self):
        script = 'echo $(id -un) $(whoami) $SLURM_JOB_ACCOUNT $HOME'
        home = self.slurm.folder / "home" / "alice"
        self.assertEqual(self.slurm.must(["srun", "sh", "-c", script], user="alice"), f"alice alice lab-a {home}\n")
        refused = self.slurm.run(["srun", "-A", "lab-a", "true"], user="bob")
        self.assertIn("Invalid account", refused.stderr)
        self.assertNotIn("alice", pathlib.Path("/etc/passwd").read_text())

    @unittest.skipUnless(shutil.which("useradd"), "NOT TESTED: useradd is not installed")
    def test_people_stay_when_users_of_the_real_machine_come_and_go(self):
        stranger = f"ocu{os.getpid()}"
        self.addCleanup(subprocess.run, ["userdel", stranger], capture_output=True)
        subprocess.run(["useradd", "-M", "-U", stranger], check=True, capture_output=True)
        for node in (None, "n1"):
            self.assertEqual(self.slurm.run(["id", "-un"], user="alice", node=node).stdout, "alice\n")

    def test_calls_are_counted_for_each(self):
        before = self.slurm.rpc_counts()
        for user, looks in (("alice", 2), ("bob", 3)):
            for _ in range(looks):
                self.slurm.must(["scontrol", "show", "job"], user=user)
        users = self.slurm.rpc_counts().since(before).users
        self.assertEqual((users["alice"], users["bob"]), (2, 3))


class KilledController(unittest.TestCase):
    def test_it_comes_back_with_a_queued_job(self):
        with SlurmCluster(nodes=1, gpus=0) as slurm:
            job = slurm.submit("-H", "-J", "kept-in-the-queue", *SLEEP)
            slurm.wait_saved("kept-in-the-queue")
            slurm.kill_controller()
            self.assertFalse(slurm.listens(CONTROLLER_PORT))
            slurm.restart_controller()
            self.assertEqual(slurm.job_state(job), "PENDING")
            slurm.must(["scontrol", "release", str(job)])
            slurm.wait_state(job, "RUNNING")


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = SlurmCluster(nodes=2, gpus=0)
        cls.addClassCleanup(cls.slurm.close)

    def setUp(self):
        self.addCleanup(self.slurm.empty_queue)

    def test_a_stopped_controller_saves_what_it_just_took(self):
        job = self.slurm.submit("-H", *SLEEP)
        self.slurm.restart_controller()
        self.assertEqual(self.slurm.job_state(job), "PENDING")

    def test_a_frozen_controller_answers_after_thawing(self):
        self.slurm.freeze_controller()
        asking = self.slurm.popen(["squeue", "-h"])
        with self.assertRaises(subprocess.TimeoutExpired):
            asking.communicate(timeout=0.3)
        self.slurm.thaw_controller()
        self.assertEqual(asking.communicate(timeout=20), ("", ""))

    def test_a_job_survives_the_slurmd_of_its_node(self):
        job = self.slurm.submit("-w", "n2", *SLEEP)
        self.slurm.wait_state(job, "RUNNING")
        self.slurm.kill_slurmd("n2")
        self.assertEqual(self.slurm.job_state(job), "RUNNING")
        self.slurm.start_slurmd("n2")
        self.assertEqual(self.slurm.job_state(job), "RUNNING")

    def test_a_failed_node_ends_its_job_and_comes_back(self):
        job = self.slurm.submit("-w", "n2", "--no-requeue", *SLEEP)
        self.slurm.wait_state(job, "RUNNING")
        self.slurm.fail_node("n2")
        self.slurm.wait_state(job, "NODE_FAIL")
        self.slurm.start_node("n2")
        self.assertEqual(self.slurm.must(["srun", "-w", "n2", "hostname"]), "n2\n")

    def test_without_munge_nothing_can_be_asked(self):
        self.slurm.stop_munge()
        try:
            done = self.slurm.run(["squeue"])
        finally:
            self.slurm.start_munge()
        self.assertEqual(done.returncode, 1)
        self.assertIn("Munge", done.stderr)
        self.slurm.must(["squeue"])

    def test_a_drained_node_takes_no_job_until_it_is_resumed(self):
        self.slurm.drain_node("n1", "new fan")
        self.assertEqual(self.slurm.node_state("n1"), "drained")
        self.assertEqual(self.slurm.must(["srun", "-N1", "hostname"]), "n2\n")
        self.slurm.resume_node("n1")
        self.slurm.wait_node("n1", "idle")


class SideBySide(unittest.TestCase):
    def test_two_clusters_know_nothing_of_each_other(self):
        one = SlurmCluster(nodes=1, gpus=0, accounting=Accounting(labs={"lab-x": 1}))
        self.addCleanup(one.close)
        with SlurmCluster(nodes=2, gpus=1, kill_wait=7, accounting=Accounting(labs={"lab-y": 1})) as two:
            job = one.submit("-H", "-A", "lab-x", *SLEEP)
            self.assertEqual(one.job_state(job), "PENDING")
            self.assertEqual(two.must(["squeue", "-h"]), "")
            self.assertEqual(len(two.must(["srun", "-A", "lab-y", "-N2", "hostname"]).split()), 2)
            self.assertIn("KillWait                = 7 sec", two.must(["scontrol", "show", "config"]))
            self.assertIn("Invalid account", two.run(["srun", "-A", "lab-x", "true"]).stderr)
        self.assertFalse(two.folder.exists())
        self.assertEqual(one.job_state(job), "PENDING")


class Words(unittest.TestCase):
    """What is decided without a cluster."""

    def test_gpus_of_mixed_nodes(self):
        gpus = gpus_by_node(["n1", "n2", "n3"], [2, {"a40": 1, "rtx": 2}, 0], ("a40", "x"))
        self.assertEqual(gpus, {"n1": {"a40": 2}, "n2": {"a40": 1, "rtx": 2}, "n3": {}})
        self.assertEqual(gres_lines("/f", gpus), ["NodeName=n1 Name=gpu Type=a40 File=/f/dev/gpu[0-1]",
                                                  "NodeName=n2 Name=gpu Type=a40 File=/f/dev/gpu[0-0]",
                                                  "NodeName=n2 Name=gpu Type=rtx File=/f/dev/gpu[1-2]"])
        lines = node_lines(gpus, lambda name: "a", 4, {"n3": "big"})
        self.assertTrue(lines[1].endswith(" Gres=gpu:a40:1,gpu:rtx:2 Feature=a40,rtx"), lines)
        self.assertTrue(lines[2].endswith(" RealMemory=16000 Feature=big"), lines)

    def test_partitions_say_nothing_of_preemption_when_the_qos_decides(self):
        line = partition_lines({"p": "MaxTime=1 PreemptMode=OFF GraceTime=4 Default=YES"}, "qos", {"p": "q"})
        self.assertEqual(line, ["PartitionName=p Nodes=ALL MaxTime=1 Default=YES QOS=q"])

    def test_what_is_missing_is_said_aloud(self):
        with mock.patch("shutil.which", lambda name, path=None: None if name == "mariadbd" else "/bin/true"):
            with self.assertRaisesRegex(unittest.SkipTest, "NOT TESTED: mariadbd is not installed"):
                Accounting()

    def test_who_asks_for_the_counts_is_left_out_of_them(self):
        text = ("... statistics by message type\n\tA   ( 1) count:5 x\n\tREQUEST_STATS_INFO ( 2) count:3 y\n\n"
                "... statistics by user\n\troot  ( 0) count:7 x\n\tbob (9) count:1 z\n\nPending (1) count:4\n")
        self.assertEqual(parse_rpc_counts(text, "root"), RpcCounts({"A": 5}, {"root": 4, "bob": 1}))


if __name__ == "__main__":
    unittest.main(verbosity=2)
