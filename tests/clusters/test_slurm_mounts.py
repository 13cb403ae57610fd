# SPDX-License-Identifier: Apache-2.0
"""Stores in the folders of jobs on a real Slurm: links, copies, and a FUSE mount on the node."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from slurm_jobs_rig import DEADLINE, NODE_PYTHON, SlurmJobsRig, main, shell

DEADLINE_SECONDS = 200
SFTP_SERVER = "/usr/lib/openssh/sftp-server"
NEEDS_FUSE = unittest.skipUnless(os.path.exists("/dev/fuse") and shutil.which("sshfs") and os.path.exists(SFTP_SERVER) and os.geteuid() == 0,
                                 "NOT TESTED: FUSE mounts on nodes need root, /dev/fuse, sshfs and sftp-server")
# Both ranks are there at once, so that nothing is taken away while one reads.
READ_BOTH = """
import os, pathlib, time
facts, rank = pathlib.Path(os.environ["FACTS"]), os.environ["RANK"]
kinds = [line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo") if line.split()[4] == os.path.realpath("data")]
print(os.environ["SLURMD_NODENAME"], open("data/x").read().strip(), kinds, flush=True)
(facts / f"read-{rank}").touch()
while len(list(facts.glob("read-*"))) < 2:
    time.sleep(0.02)
"""


class MountsRig(SlurmJobsRig):
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

    def far_by_ssh(self, mode="ro"):
        ssh = self.root / "ssh"  # whatever host it is told, it serves this one
        ssh.write_text(f"#!/bin/sh\nexec {SFTP_SERVER}\n")
        ssh.chmod(0o755)
        words = ["-f", "-o", mode, "-o", f"ssh_command={ssh}", f"anywhere:{self.far}", "MOUNTPOINT"]
        raw = ",".join(f"option={word}" for word in words)
        return ["--env", f"OVERCAP_SSH={ssh}", "--mount", f"data=ssh://anywhere{self.far},mode={mode},mounter=sshfs,{raw}"]

    def left(self):
        return sorted(path.name for path in (self.root / f"node/overcap-mounts-{os.geteuid()}").iterdir() if path.name != "kept")


class Mounts(MountsRig):
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
        self.assertEqual(self.left(), [])

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

    @NEEDS_FUSE
    def test_a_mount_on_the_node_goes_with_the_job_also_when_slurm_kills_all_of_it(self):
        flags = ["-w", "n1", *self.far_by_ssh()]
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


class MountsOnEachNode(MountsRig):
    """Jobs on several nodes, whose folder for mounts is each node's own."""

    def setUp(self):
        super().setUp()
        self.own = self.slurm.folder / "private" / self.id().rpartition(".")[2]
        self.configure(settings=f"partition: short, mounts_at: {self.own}")

    def left_on(self, node):
        folder = f"{self.own}/overcap-mounts-{os.geteuid()}"
        names = self.slurm.run(["ls", folder], node=node).stdout.split()
        points = [line.split()[4] for line in self.slurm.must(["cat", "/proc/self/mountinfo"], node=node).splitlines()]
        return [name for name in names if name != "kept"] + [point for point in points if point.startswith(str(self.own))]

    def assert_nothing_left(self):
        for node in self.slurm.names:
            self.until(lambda node=node: self.left_on(node) == [], f"node {node} to have nothing left", 2 * DEADLINE)

    def logs_of_both(self, job):
        return sorted(self.rank_log(job, rank) for rank in range(2))

    def read_on_both(self, *words):
        job = self.submit("--nodes", "2", *words, *self.far_by_ssh(), NODE_PYTHON, "-c", READ_BOTH)
        self.assertEqual(self.overcap("wait", job).status, 0, self.job(job))
        self.assert_nothing_left()
        return job

    @NEEDS_FUSE
    def test_a_store_is_mounted_on_every_node(self):
        self.assertEqual(self.logs_of_both(self.read_on_both()), ["n1 hello ['fuse.sshfs']\n", "n2 hello ['fuse.sshfs']\n"])

    @NEEDS_FUSE
    def test_and_on_those_of_an_elastic_job_and_of_one_that_starts_its_own_steps(self):
        job = self.submit("--nodes", "1:2", *self.far_by_ssh(), NODE_PYTHON, "-c", READ_BOTH)
        self.assertEqual(self.overcap("wait", job).status, 0, f"{self.job(job)}\n{self.overcap('logs', '--rank', 'all', job).out}")
        said = self.ok("logs", "--rank", "all", job).out
        self.assertEqual((said.count("n1 hello ['fuse.sshfs']"), said.count("n2 hello ['fuse.sshfs']")), (1, 1), said)
        self.assert_nothing_left()
        steps = "#!/bin/sh\n#SBATCH --nodes=2\nexec srun -n 2 -N 2 sh -c 'echo $SLURMD_NODENAME $(cat data/x)'\n"
        self.write("steps.sh", steps, mode=0o755)
        job = self.submit(*self.far_by_ssh(), "steps.sh")
        self.assertEqual(self.overcap("wait", job).status, 0, self.job(job))
        self.assertEqual(sorted(self.rank_log(job).splitlines()), ["n1 hello", "n2 hello"])
        self.assert_nothing_left()

    def test_each_node_has_a_copy_and_saves_what_it_wrote(self):
        job = self.submit("--nodes", "2", "--mount", f"out={self.far},mode=copy", *shell("cat out/x; ls out; echo $RANK > out/rank-$RANK"))
        self.assertEqual(self.overcap("wait", job).status, 0, self.job(job))
        self.assertEqual(self.logs_of_both(job), ["hello\nx\n"] * 2)
        self.assertEqual([(self.far / f"rank-{k}").read_text() for k in range(2)], ["0\n", "1\n"])
        self.assert_nothing_left()

    def test_an_aborted_job_saves_what_all_its_nodes_wrote(self):
        job = self.submit("--nodes", "2", "--mount", f"out={self.far},mode=copy",
                          *shell('echo 1 > out/rank-$RANK; touch "$FACTS/there-$RANK"; sleep 300'))
        self.until(lambda: len(list(self.facts.glob("there-*"))) == 2, "the ranks to write", 2 * DEADLINE)
        self.ok("abort", job)
        self.assertEqual(self.ended(job, 2 * DEADLINE)["state"], "cancelled")
        self.until(lambda: len(list(self.far.glob("rank-*"))) == 2, "the outputs to be saved", 2 * DEADLINE)
        self.assert_nothing_left()

    @NEEDS_FUSE
    def test_a_killed_agent_leaves_no_mount_on_any_node(self):
        job = self.submit("--nodes", "2", "--max-restarts", "0", *self.far_by_ssh(), *shell('cat data/x; touch "$FACTS/there-$RANK"; sleep 300'))
        self.until(lambda: len(list(self.facts.glob("there-*"))) == 2, "the ranks to read", 2 * DEADLINE)
        self.assertEqual([len(self.left_on(node)) for node in ("n1", "n2")], [2, 2])
        claim = json.loads((self.folder(job) / "attempt-1/agent-0.claim").read_text())
        self.slurm.must(["kill", "-9", str(claim["pid"])], node="n1")
        self.ended(job, 3 * DEADLINE)
        self.assert_nothing_left()

    @NEEDS_FUSE
    def test_a_node_that_cannot_mount_is_named_and_the_others_are_cleared(self):
        self.broken = True  # node n2 has no sshfs any more
        subprocess.run(["nsenter", "-t", str(self.slurm.machines.first["n2"]), "--mount", "mount", "--bind", "/dev/null", shutil.which("sshfs")], check=True)
        self.fails_to_mount("mount 'data' on node 'n2': ", "sshfs")
        self.assert_nothing_left()

    def fails_to_mount(self, *says):
        job = self.submit("--nodes", "2", *self.far_by_ssh(), "true")
        self.overcap("wait", job)
        record = self.job(job)
        self.assertEqual(record["state"], "failed", record)
        for text in says:
            self.assertIn(text, record["reason"])

    @NEEDS_FUSE
    def test_one_folder_for_all_nodes_cannot_have_mounts(self):
        self.configure(settings=f"partition: short, mounts_at: {self.root}/node")
        self.fails_to_mount("is one folder for several nodes", "'mounts_at'")
        self.until(lambda: not self.mounts_of("n1") and self.left() == [], "the mount to be gone")

    @NEEDS_FUSE
    def test_tasks_of_an_array_have_mounts_on_their_nodes(self):
        job = self.submit("--nodes", "2", "--array", "0-1", *self.far_by_ssh(), *shell("echo $OVERCAP_TASK_ID $RANK $(cat data/x)"))
        self.assertEqual(self.overcap("wait", job).status, 0, self.job(job))
        for task in range(2):
            said = self.ok("logs", "--rank", "all", "--task", str(task), job).out
            self.assertEqual([said.count(f"{task} {rank} hello") for rank in range(2)], [1, 1], said)
        self.assert_nothing_left()

    def test_a_requeued_job_finds_what_it_wrote_on_every_node(self):
        script = ('if [ -e out/mark-$RANK ]; then cat out/mark-$RANK; exit 0; fi; '
                  'echo $RANK > out/mark-$RANK; touch "$FACTS/there-$RANK"; sleep 300')
        job = self.submit("--requeue", "--nodes", "2", "--mount", f"out={self.far},mode=copy", *shell(script))
        self.until(lambda: len(list(self.facts.glob("there-*"))) == 2, "the ranks to write", 2 * DEADLINE)
        self.slurm.must(["scontrol", "requeue", str(self.slurm_id(job))])
        self.assertEqual(self.overcap("wait", job, deadline=6 * DEADLINE).status, 0, self.job(job))
        self.assertEqual([self.rank_log(job, rank, attempt=2) for rank in range(2)], ["0\n", "1\n"])
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
