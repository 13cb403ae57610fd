# SPDX-License-Identifier: Apache-2.0
"""Stores in the folders of jobs on a real Slurm: links, copies, and a FUSE mount on the node."""
import os
import pathlib
import shutil
import unittest

from slurm_jobs_rig import DEADLINE, SlurmJobsRig, main, shell

DEADLINE_SECONDS = 200
SFTP_SERVER = "/usr/lib/openssh/sftp-server"


class Mounts(SlurmJobsRig):
    def setUp(self):
        super().setUp()
        self.far = self.root / "far"
        self.far.mkdir()
        (self.far / "x").write_text("hello\n")
        self.configure(settings=f"partition: short, mounts_at: {self.root}/node")

    def config_with(self, mounts):
        self.configure(settings=f"partition: short, mounts_at: {self.root}/node, mounts: {mounts}")

    def mounts_of(self, node):
        table = self.slurm.must(["cat", "/proc/self/mountinfo"], node=node)
        return [line.split()[4] for line in table.splitlines() if str(self.root) in line]

    def left(self):
        return sorted(path.name for path in (self.root / f"node/overcap-mounts-{os.geteuid()}").iterdir() if path.name != "kept")

    def test_links_and_copies_of_the_cluster_and_of_the_job(self):
        self.config_with(f"{{data: '{self.far}'}}")
        job = self.submit("--mount", f"out={self.far},mode=copy", *shell("cat data/x out/x; echo 7 > out/result"))
        self.ok("wait", job)
        self.assertEqual(self.rank_log(job), "hello\nhello\n")
        self.assertEqual((self.far / "result").read_text(), "7\n")
        self.assertEqual(self.left(), [])

    def test_a_copy_reaches_two_nodes_where_all_see_it(self):
        job = self.submit("--nodes", "2", "--mount", f"out={self.far},mode=copy", *shell("cat out/x; echo $RANK > out/rank-$RANK"))
        self.ok("wait", job)
        self.assertEqual([(self.far / f"rank-{k}").read_text() for k in range(2)], ["0\n", "1\n"])
        self.refused("submit", "--nodes", "2", "--mount", "data=ssh://host/x", "true", says="2 nodes of a job")

    def test_an_aborted_job_saves_what_it_wrote(self):
        job = self.submit("--mount", f"out={self.far},mode=copy", *shell('echo 1 > out/a; touch "$FACTS/there"; sleep 300'))
        self.until(lambda: (self.facts / "there").exists(), "the job to write", 2 * DEADLINE)
        self.ok("abort", job)
        self.ended(job, 2 * DEADLINE)
        self.until(lambda: (self.far / "a").exists() and self.left() == [], "the outputs to be saved", 2 * DEADLINE)

    def test_outputs_of_tasks_and_of_a_job_that_fails_are_saved(self):
        job = self.submit("--array", "0-2", "--mount", f"out={self.far},mode=copy", *shell("cat out/x; echo $OVERCAP_TASK_ID > out/task-$OVERCAP_TASK_ID"))
        self.ok("wait", job)
        self.assertEqual([(self.far / f"task-{k}").read_text() for k in range(3)], ["0\n", "1\n", "2\n"])
        job = self.submit("--mount", f"out={self.far},mode=copy", *shell("echo 1 > out/of-failed; exit 3"))
        self.overcap("wait", job)
        self.assertEqual(self.ended(job, 2 * DEADLINE)["exit_status"], 3)
        self.assertEqual((self.far / "of-failed").read_text(), "1\n")
        self.assertEqual(self.left(), [])

    def test_a_requeued_job_finds_what_it_wrote(self):
        script = 'if [ -e out/checkpoint ]; then cat out/checkpoint; exit 0; fi; echo 7 > out/checkpoint; touch "$FACTS/there"; sleep 300'
        job = self.submit("--requeue", "--mount", f"out={self.far},mode=copy", *shell(script))
        self.until(lambda: (self.facts / "there").exists(), "the job to write", 2 * DEADLINE)
        self.slurm.must(["scontrol", "requeue", str(self.slurm_id(job))])
        self.until(lambda: (self.far / "checkpoint").exists(), "the first attempt's outputs to be saved", 2 * DEADLINE)
        self.assertEqual(self.overcap("wait", job, deadline=6 * DEADLINE).status, 0, self.job(job))
        self.assertEqual(self.ok("logs", job).out.splitlines()[-1], "7")
        self.until(lambda: self.left() == [], "the copies to be gone")

    @unittest.skipUnless(os.path.exists("/dev/fuse") and shutil.which("sshfs") and os.path.exists(SFTP_SERVER) and os.geteuid() == 0,
                         "NOT TESTED: FUSE mounts on nodes need root, /dev/fuse, sshfs and sftp-server")
    def test_a_mount_on_the_node_goes_with_the_job_also_when_slurm_kills_all_of_it(self):
        ssh = self.root / "ssh"  # whatever host it is told, it serves this one
        ssh.write_text(f"#!/bin/sh\nexec {SFTP_SERVER}\n")
        ssh.chmod(0o755)
        flags = ["-w", "n1", "--env", f"OVERCAP_SSH={ssh}", "--mount", f"data=ssh://anywhere{self.far}"]
        job = self.submit(*flags, *shell("cat data/x; grep -c fuse.sshfs /proc/self/mountinfo"))
        self.ok("wait", job)
        self.assertEqual(self.rank_log(job), "hello\n1\n")
        self.until(lambda: not self.mounts_of("n1") and self.left() == [], "the mount to be gone")
        job = self.submit(*flags, *shell('cat data/x > "$FACTS/there"; sleep 300'))
        self.until(lambda: (self.facts / "there").exists(), "the job to read", 2 * DEADLINE)
        self.assertEqual(len(self.mounts_of("n1")), 1)
        self.slurm.must(["scancel", "--full", "--signal=KILL", str(self.slurm_id(job))])
        self.ended(job, 2 * DEADLINE)
        self.assertTrue(pathlib.Path(self.far / "x").exists())
        job = self.submit(*flags, *shell("cat data/x"))  # clears what the killed one left
        self.ok("wait", job)
        self.assertEqual(self.rank_log(job), "hello\n")
        self.until(lambda: not self.mounts_of("n1") and self.left() == [], "all mounts to be gone")


if __name__ == "__main__":
    main()
