# SPDX-License-Identifier: Apache-2.0
"""Mounts of jobs: links to folders, copies, and ssh mounted for real; what is refused, and what a kill leaves."""
import os
import signal

from mounts_rig import MountsRig, needs_fuse
from store_rig import make_tree, tree
from overcap_rig import main, shell
from rigs.hosts_rig import SshHosts

DEADLINE_SECONDS = 200


class Folders(MountsRig):
    def test_a_folder_becomes_a_link(self):
        data = self.root / "data"
        data.mkdir()
        (data / "x").write_text("hello\n")
        self.config(f"    mounts:\n      data: {data}\nmounts:\n  more: {{store: '{data}', at: in/more, mode: rw}}\n")
        job = self.job_ok(*shell("cat data/x; readlink data; echo 7 > in/more/result"))
        self.assertEqual(self.log(job).decode(), f"hello\n{data}\n")
        self.assertEqual((data / "result").read_text(), "7\n")
        self.assertEqual(tree(data), {"x": b"hello\n", "result": b"7\n"})
        done = self.ok("submit", "--wait", "--mount", f"data={data},mode=ro", "--mount", "more=none", *shell("test ! -e in/more"))
        self.assertIn("can write there", done.err)
        self.ok("rm", self.job(job)["id"])
        self.assertTrue((data / "x").exists())
        shown = {row["key"]: row["value"] for row in self.ok("config", "show", "--json").json()["values"]}
        self.assertEqual(shown["mounts.more.at"], "in/more")

    def test_a_copy_comes_before_and_goes_back_after(self):
        store = self.root / "far"
        files = make_tree(store, large=9_000_000)
        before = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
        job = self.job_ok("--mount", f"data={store},mode=copy", *shell(
            "cmp data/large \"$0\"/large || exit 4; echo new > data/new; mkdir data/d; echo n > data/d/n; printf HELLO > data/plain.txt; rm data/empty",
        )[:3], str(store))
        self.assertEqual(tree(store), {**files, "new": b"new\n", "d/n": b"n\n", "plain.txt": b"HELLO"})
        self.assertEqual({path for path, at in before.items() if path.stat().st_mtime_ns != at}, {store / "plain.txt"})
        self.assertFalse((self.home / "jobs" / job / "attempt-1/code/data").is_symlink())
        self.assert_nothing_left()

    def test_a_copy_to_read_does_not_go_back_and_is_kept_for_the_next_job(self):
        store = self.root / "far"
        files = make_tree(store, large=100)
        flags = ["--mount", f"data={store},mode=copy-ro,cache=1G"]
        self.job_ok(*flags, *shell("test -e data/large"))
        kept = self.node / f"overcap-mounts-{os.geteuid()}" / "kept"
        (first,) = kept.iterdir()
        inode = (first / "large").stat().st_ino
        (store / "plain.txt").write_bytes(b"changed since")
        (store / "empty").unlink()
        job = self.job_ok(*flags, *shell("cat data/plain.txt; ls data/empty; stat -L -c %i data/large; echo x > data/x"))
        self.assertEqual(self.log(job).decode().splitlines()[0], "changed since" + "ls: cannot access 'data/empty': No such file or directory")
        self.assertIn(str(inode), self.log(job).decode())
        self.assertNotIn("x", tree(store))
        self.assertEqual(len(tree(store)), len(files) - 1)
        self.assertEqual(list(kept.iterdir()), [])  # it was written to: no copy any more
        self.assert_nothing_left()

    def test_two_jobs_at_once_have_a_copy_each(self):
        store = self.root / "far"
        make_tree(store, large=100)
        script = f"echo $1 > data/$1; echo $1 > data/plain.txt; touch \"$FACTS/in$1\"; {self.gate()}; cat data/plain.txt; ls data/1 data/2"
        jobs = [self.submit("--cpus", "1", "--mount", f"data={store},mode=copy,cache=1G", *shell(script, str(i))) for i in (1, 2)]
        for i in (1, 2):
            self.until(lambda i=i: (self.facts / f"in{i}").exists(), f"job {i} to run")
        self.open_gate()
        for i, job in enumerate(jobs, 1):
            self.ended(job)
            log = self.log(job).decode()
            self.assertTrue(log.startswith(f"{i}\n"), log)
            self.assertIn("No such file", log)
        self.assertEqual((tree(store)["1"], tree(store)["2"]), (b"1\n", b"2\n"))
        self.assert_nothing_left()

    def test_tasks_of_an_array_have_a_copy_each(self):
        store = self.root / "far"
        make_tree(store, large=100)
        self.job_ok("--array", "0-3", "--cpus", "1", "--mount", f"data={store},mode=copy", *shell("echo $OVERCAP_TASK_ID > data/task-$OVERCAP_TASK_ID"))
        self.assertEqual([tree(store)[f"task-{i}"] for i in range(4)], [b"0\n", b"1\n", b"2\n", b"3\n"])
        self.assert_nothing_left()

    def test_outputs_are_saved_also_of_jobs_that_fail_or_are_stopped(self):
        store = self.root / "far"
        store.mkdir()
        self.assertEqual(self.run_job("--mount", f"out={store},mode=copy", *shell("echo 1 > out/a; exit 3"))["state"], "failed")
        job = self.submit("--mount", f"out={store},mode=copy", *shell("echo 1 > out/b; touch \"$FACTS/there\"; sleep 100"))
        self.until(lambda: (self.facts / "there").exists(), "the job to write")
        self.ok("abort", job)
        self.assertEqual(self.ended(job)["state"], "cancelled")
        self.assertEqual(tree(store), {"a": b"1\n", "b": b"1\n"})
        self.assert_nothing_left()

    def keepers(self):
        return self.running("agent", "mounts")

    def running_copy(self, store):
        job = self.submit("--mount", f"out={store},mode=copy", *shell("echo 1 > out/a; touch \"$FACTS/there\"; sleep 100"))
        self.until(lambda: (self.facts / "there").exists(), "the job to write")
        return job

    def test_a_killed_agent_s_outputs_are_saved(self):
        store = self.root / "far"
        store.mkdir()
        job = self.running_copy(store)
        (agent,) = self.running("agent", "--job")
        self.kill(agent, signal.SIGKILL)
        self.ended(job)
        self.until(lambda: tree(store) == {"a": b"1\n"}, "the keeper to upload")
        self.until(lambda: not self.keepers(), "the keeper to end")
        self.assert_nothing_left()

    def test_the_next_attempt_finds_what_the_killed_one_wrote(self):
        script = 'if [ -e out/checkpoint ]; then cat out/checkpoint; exit 0; fi; echo 7 > out/checkpoint; touch "$FACTS/$1"; sleep 100'
        for victims in ("agent", "keeper and agent"):
            store = self.root / f"far of {victims}"
            store.mkdir()
            job = self.submit("--requeue", "--mount", f"out={store},mode=copy", *shell(script, victims))
            self.until(lambda: (self.facts / victims).exists(), "the job to write")
            for pid in ([] if victims == "agent" else self.keepers()) + self.running("agent", "--job"):
                self.kill(pid, signal.SIGKILL)
            self.assertEqual(self.ended(job)["state"], "succeeded")
            self.assertEqual(self.ok("logs", job).out.splitlines()[-1], "7")
            if victims != "agent":
                self.assertIn("outputs of an attempt that was killed were saved first", self.ok("query", job).out)
            self.assertEqual(tree(store), {"checkpoint": b"7\n"})
            self.assert_nothing_left()

    def test_what_a_killed_keeper_leaves_is_saved_by_gc(self):
        store = self.root / "far"
        store.mkdir()
        job = self.running_copy(store)
        (keeper,) = self.keepers()
        self.kill(keeper, signal.SIGKILL)
        self.ok("abort", job)
        self.ended(job)
        self.assertEqual(tree(store), {})
        self.job_ok("--mount", f"other={store},mode=copy", *shell("ls other"))  # clears, but does not upload for others
        self.assertEqual(tree(store), {})
        done = self.ok("gc")
        self.assertIn("saved", done.out + done.err)
        self.assertEqual(tree(store), {"a": b"1\n"})
        self.assert_nothing_left()

    def test_a_full_or_missing_store_fails_the_job_and_its_outputs_stay(self):
        store = self.root / "far"
        store.mkdir()
        job = self.run_job("--mount", f"out={store},mode=copy", *shell('echo 1 > out/a; rmdir "$1"; touch "$1"', str(store)))
        self.assertEqual(job["state"], "failed", job)
        self.assertIn("mount 'out'", job["reason"])
        (left,) = (self.node / f"overcap-mounts-{os.geteuid()}").glob("*/out/a")
        self.assertEqual(left.read_text(), "1\n")
        store.unlink()
        store.mkdir()
        job = self.run_job("--mount", f"out={store},mode=copy", *shell('echo 1 > out/b; rmdir "$1"; touch "$1"; exit 3', str(store)))
        self.assertEqual(job["exit_status"], 3, job)
        self.assertIn("mount 'out'", job["reason"])  # it failed anyway, but that counts too
        self.assertIn("mount 'out'", " ".join(self.ok("query", job["id"], "--json").json()["notes"]))

    def test_what_is_wrong_is_said_before_anything_is_sent(self):
        data = self.root / "data"
        data.mkdir()
        run = ["--", "true"]
        self.refused("submit", "--mount", "data=gs://x/y", *run, says="gs://")
        self.refused("submit", "--mount", f"data={data},mode=wo", *run, says="ro, rw, copy or copy-ro")
        self.refused("submit", "--mount", f"data={data},at=/x", *run, says="in the job's folder")
        self.refused("submit", "--mount", "x=nobody:y", *run, says="there is no store 'nobody'")
        self.refused("submit", "--mount", f"a={data},at=d", "--mount", f"b={data},at=d/e", *run, says="in the way")
        self.write("full/file", "x")
        self.refused("submit", "--mount", f"full={data}", *run, says=["'full' is in the captured code already", ".overcapignore"])
        self.refused("submit", "--mount", f"a={data},at=full/file/x", *run, says=["'full/file' of the captured code is no folder", "'/full/file' in .overcapignore"])
        self.refused("submit", "--mount", "a=s3://lab-bucket,mounter=blobfuse2", *run, says="mounter 'blobfuse2' cannot mount 's3://lab-bucket'")
        raw = ["is neither blobfuse2 nor rclone: 'options' must be all its words, with MOUNTPOINT", "options: [-f, -o, ro, host:/path, MOUNTPOINT]"]
        for mounter in ("sshfs", "sshfs,option=-o,option=compression=yes", "goofys", "mount-s3,option=--debug"):
            self.refused("submit", "--mount", f"a=ssh://host/x,mounter={mounter}", *run, says=raw)
        self.refused("submit", "--mount", "a=ssh://host/x", *run, says=["can be mounted by a raw mounter only", "mode: copy"])
        self.refused("submit", "-n", "0", "--nodes", "2", "--mount", "data=ssh://host/x,mode=copy", *run, says="asks for 2 nodes")
        self.refused("submit", "--workdir", "/", "--mount", f"data={data}", *run, says="not in a copy")
        for text, says in (("mounts:\n  data: {store: s3://lab-bucket, mod: ro}\n", "overcap.yaml:6: mount 'data': unknown key 'mod'"),
                           ("mounts:\n  data: {at: x}\n", "overcap.yaml:6: mount 'data' has no 'store'"),
                           ("mounts:\n  data: {store: s3://lab-bucket, cache: 5}\n", "overcap.yaml:6: mount 'data': 'cache' must be a size"),
                           ("mounts:\n  data:\n    at: x\n", "overcap.yaml:6: mount 'data' has no 'store'"),
                           ("mounts:\n  data:\n", "overcap.yaml:6: mount 'data' must be a store"),
                           ("mounts:\n  data: {store: s3://lab-bucket, options: {a: b}}\n", "overcap.yaml:6: mount 'data': 'options' must be a list of words"),
                           ("    mounts:\n      a: {store: /x, at: d}\nmounts:\n  b: {store: /y, at: d}\n", "overcap.yaml:8: mount 'b': 'd' is in the way of mount 'a' at 'd'"),
                           ("mounts: [a]\n", "overcap.yaml:5: 'mounts' must have names below it"),
                           ("mounts:\n  data: ftp://x\n", "overcap.yaml:6: mount 'data': "),
                           ("    mounts:\n      data: {store: x, at: ../x}\n", "overcap.yaml:6: mount 'data': 'at' is '../x'"),
                           ("mounts:\n  -x: /y\n", "overcap.yaml:6: '-x' is no name of a mount")):
            self.config(text)
            self.refused("submit", *run, says=says)

    def test_what_would_be_mounted_is_shown_before(self):
        shown = self.ok("submit", "--dry-run", "--mount", "data=s3://lab-bucket/x,cache=2G,mounter=rclone,option=-v", "--mount", f"here={self.root},at=in/here", "true").out
        self.assertIn("mount       data = s3://lab-bucket/x (ro, cache 2.0 GiB, rclone -v)\n", shown)
        self.assertIn(f"mount       in/here = {self.root} (a link, ro)\n", shown)
        self.assertIn(f"there is no folder '{self.project}/nosuch' on this machine", self.ok("submit", "--dry-run", "--mount", "x=nosuch", "true").err)

    def test_what_is_wrong_on_the_node_fails_the_job_before_its_ranks(self):
        ran = ["sh", "-c", 'touch "$FACTS/ran"']
        self.job_fails("--mount", f"data={self.root}/none", *ran, says=["mount 'data' on node", "none"])
        (self.root / "file").write_text("x")
        self.job_fails("--mount", f"data={self.root}/file", *ran, says="no folder")
        empty = self.root / "empty"
        empty.mkdir()
        self.job_fails("--mount", f"data={empty},mode=copy-ro", *ran, says="nothing in")
        self.node.mkdir(exist_ok=True)
        folder = self.node / f"overcap-mounts-{os.geteuid()}"
        folder.chmod(0o755)
        self.job_fails("--mount", f"data={empty},mode=copy", *ran, says=["'mounts_at' of the cluster on node", "not this user's own folder"])
        self.write("overcap.yaml", "clusters:\n  local:\n    gpus: []\n    mounts_at: /proc/nope\n")
        self.job_fails("--mount", f"data={empty},mode=copy", *ran, says=["'mounts_at' of the cluster on node", "'/proc/nope'", "where you may write"])
        self.assertFalse((self.facts / "ran").exists())

    def test_a_resubmitted_job_has_the_same_mounts(self):
        data = self.root / "data"
        data.mkdir()
        (data / "x").write_text("hello\n")
        job = self.job_ok("--mount", f"data={data}", *shell("cat data/x"))
        again = self.ok("resubmit", job).out.split()[-1]
        self.assertEqual(self.ended(again)["state"], "succeeded")
        self.assertEqual(self.log(again).decode(), "hello\n")


class OverSsh(MountsRig):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts(1)
        cls.addClassCleanup(cls.hosts.close)

    def setUp(self):
        super().setUp()
        self.far = self.root / "far"
        self.files = make_tree(self.far, large=3_000_000)
        self.ssh = ["--env", f"OVERCAP_SSH={self.hosts.ssh_program}"]
        self.there = f"ssh://{self.hosts.names[0]}{self.far}"

    def mounted(self, mode="ro", *more):
        """By sshfs as a raw mounter."""
        words = ["-f", "-o", mode, "-o", f"ssh_command={self.hosts.ssh_program}", *more, f"{self.hosts.names[0]}:{self.far}", "MOUNTPOINT"]
        return [*self.ssh, "--mount", f"data={self.there},mode={mode},mounter=sshfs," + ",".join(f"option={word}" for word in words)]

    @needs_fuse("sshfs")
    def test_a_folder_of_another_host_is_mounted(self):
        script = "cmp data/large \"$1\"/large && cat data/sub/with\\ blank && grep -c fuse.sshfs /proc/self/mountinfo; echo x > data/x"
        job = self.run_job(*self.mounted(), *shell(script, str(self.far)))
        self.assertEqual(job["state"], "failed", job)
        self.assertIn("Read-only", self.log(job["id"]).decode())
        self.assertEqual(tree(self.far), self.files)
        self.assert_nothing_left()
        self.job_ok(*self.mounted("rw", "-o", "cache=no"), *shell("echo x > data/x"))
        self.assertEqual(tree(self.far), {**self.files, "x": b"x\n"})
        self.assert_nothing_left()

    @needs_fuse("sshfs")
    def test_kill_minus_nine_leaves_no_mount(self):
        def running():
            job = self.submit(*self.mounted(), *shell("ls data > \"$FACTS/there\"; sleep 100"))
            self.until(lambda: (self.facts / "there").exists(), "the job to run")
            (self.facts / "there").unlink()
            return job
        for victim, words in (("agent", ["--job"]), ("keeper", ["mounts"]), ("both", ["--job", "mounts"])):
            job = running()
            self.assertEqual(len(self.mounts()), 1)
            for pid in [pid for word in words for pid in self.running("agent", word)]:
                self.kill(pid, signal.SIGKILL)
            if victim == "keeper":
                self.ok("abort", job)
            self.ended(job)
            self.until(lambda: not self.mounts(), f"the mount to be gone after the {victim} was killed")
        self.job_ok(*self.mounted(), *shell("test -e data/large"))  # clears what the killed keepers left
        self.assert_nothing_left()

    @needs_fuse("sshfs")
    def test_a_mounter_that_dies_is_started_again(self):
        script = f"ls data > /dev/null && touch \"$FACTS/there\"; {self.gate()}; i=0; until cmp -s data/large \"$1\"/large || [ $i -ge 300 ]; do sleep 0.1; i=$((i+1)); done; cmp data/large \"$1\"/large"
        job = self.submit(*self.mounted(), *shell(script, str(self.far)))
        self.until(lambda: (self.facts / "there").exists(), "the job to run")
        (mounter,) = [pid for pid in self.processes() if self.words_of(pid)[0] == "sshfs"]
        self.kill(mounter, signal.SIGKILL)
        self.open_gate()
        self.assertEqual(self.ended(job)["state"], "succeeded", self.log(job))
        self.assertRegex(self.ok("query", job).out, "note +mount 'data': 'sshfs' ended while the job ran .*, it was started again")
        self.assert_nothing_left()

    def test_without_fuse_a_copy_is_offered(self):
        self.ssh = []  # a variable of the submitter is heard too
        self.env["OVERCAP_SSH"] = str(self.hosts.ssh_program)
        tools = self.root / "few"
        tools.mkdir()
        for name in ("sh", "cat", "ls"):
            (tools / name).symlink_to(f"/bin/{name}")
        self.job_fails("--env", f"PATH={tools}", *self.mounted(), "sh", "-c", "true", says=["mode: copy"])
        self.job_ok(*self.ssh, "--mount", f"data={self.there},mode=copy", *shell("cmp data/large \"$1\"/large; echo x > data/x", str(self.far)))
        self.assertEqual(tree(self.far), {**self.files, "x": b"x\n"})
        self.job_fails(*self.ssh, "--mount", "data=ssh://no-such-host.invalid/x,mode=copy", "true", says="no-such-host.invalid")
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
