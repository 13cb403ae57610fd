# SPDX-License-Identifier: Apache-2.0
"""Buckets of a real S3 service (Ceph) in the folders of jobs: mounted by rclone, by a stand-in for a raw mounter, and copied."""
import os
import signal

from mounts_rig import MountsRig, needs_fuse
from overcap_rig import main, needs_root, shell
from store_rig import make_tree, tree
from rigs.ceph_rig import Ceph

GROUP = "stores"
DEADLINE_SECONDS = 300


class OnCeph(MountsRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Ceph()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket("mount-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)
        self.env["AWS_CA_BUNDLE"] = "/etc/ssl/certs/ca-certificates.crt"  # sites set it for all programs; rclone does not start with it
        self.there = f"s3://mount-tests/{self.id().rpartition('.')[2]}"
        self.files = make_tree(self.project / "from", large=20_000_000)
        self.ok("store", "cp", "from", self.there)
        self.write(".overcapignore", "/from\n/back\n")

    def back(self):
        self.ok("store", "sync", "--delete", self.there, "back")
        return tree(self.project / "back")

    @needs_fuse("rclone")
    def test_a_bucket_is_mounted_to_read(self):
        compare = "diff -r data \"$1\" && echo x > data/x"
        for more in ("", ",cache=100M"):
            job = self.run_job("--mount", f"data={self.there},mounter=rclone{more}", *shell(compare, str(self.project / "from")))
            self.assertIn("Read-only", self.log(job["id"]).decode())
            self.assertEqual(len(self.log(job["id"]).decode().splitlines()), 1)  # nothing differs
            self.assert_nothing_left()
        self.assert_no_key(self.server.secret_key)

    @needs_fuse("rclone")
    def test_what_is_written_in_the_last_moment_is_in_the_bucket(self):
        self.job_ok("--mount", f"data={self.there},mode=rw,mounter=rclone,option=--dir-cache-time,option=5s",
                    *shell("cp data/large data/again && mkdir data/new && mv data/plain.txt data/new/moved && rm data/empty"))
        files = {**self.files, "again": self.files["large"], "new/moved": self.files["plain.txt"]}
        self.assertEqual(self.back(), {name: text for name, text in files.items() if name not in ("plain.txt", "empty")})
        self.assert_nothing_left()

    @needs_fuse("rclone")
    def test_two_jobs_mount_the_same_bucket_and_keys_are_in_no_command_line(self):
        script = f"md5sum < data/large; touch \"$FACTS/in$1\"; {self.gate()}; md5sum < data/large"
        flags = ["--cpus", "1", "--mount", f"data={self.there},cache=100M", "--mount", f"other={self.there}/sub,at=in/sub"]
        jobs = [self.submit(*flags, *shell(script, str(i))) for i in (1, 2)]
        for i in (1, 2):
            self.until(lambda i=i: (self.facts / f"in{i}").exists(), f"job {i} to run")
        self.assertEqual(len(self.mounts()), 4)
        words = " ".join(word for pid in self.processes() for word in self.words_of(pid))
        self.assertIn("rclone mount", words.replace("\0", " "))
        self.assertNotIn(self.server.secret_key, words)
        self.assertNotIn(self.server.access_key, words)
        confs = list(self.node.rglob(".*.yaml"))
        self.assertEqual({oct(self.mode_of(path)) for path in confs}, {"0o600"})
        self.ok("abort", jobs[0])
        self.ended(jobs[0])
        self.until(lambda: len(self.mounts()) == 2, "the mounts of the first job to be gone")
        self.open_gate()
        self.assertEqual(self.ended(jobs[1])["state"], "succeeded")
        lines = self.log(jobs[1]).decode().splitlines()
        self.assertEqual(lines[0], lines[1])
        self.assert_nothing_left()
        self.assert_no_key(self.server.secret_key)

    @needs_fuse("rclone")
    def test_kill_minus_nine_of_the_agent_loses_nothing(self):
        job = self.submit("--mount", f"data={self.there},mode=rw,mounter=rclone", *shell("cp data/large data/again; touch \"$FACTS/there\"; sleep 100"))
        self.until(lambda: (self.facts / "there").exists(), "the job to write")
        (agent,) = self.running("agent", "--job")
        self.kill(agent, signal.SIGKILL)
        self.ended(job)
        self.until(lambda: not self.running("agent", "mounts"), "the keeper to end", 60)
        self.assert_nothing_left()
        self.assertEqual(self.back(), {**self.files, "again": self.files["large"]})

    def test_a_copy_moves_only_what_changed(self):
        flags = ["--mount", f"data={self.there},mode=copy,cache=1G"]
        self.job_ok(*flags, *shell("diff -r data \"$1\" && echo new > data/new && printf HELLO > data/plain.txt", str(self.project / "from")))
        files = {**self.files, "new": b"new\n", "plain.txt": b"HELLO"}
        self.assertEqual(self.back(), files)
        listed = {entry["name"]: entry["modified"] for entry in self.listed(self.there)}
        job = self.job_ok(*flags, *shell("cat data/plain.txt data/new; stat -L -c %i data/large; echo 2 > data/second"))
        self.assertTrue(self.log(job).startswith(b"HELLOnew\n"))
        again = {entry["name"]: entry["modified"] for entry in self.listed(self.there)}
        self.assertEqual({name for name in again if again[name] != listed.get(name)}, {"second"})
        self.assertEqual(self.back(), {**files, "second": b"2\n"})
        self.assert_nothing_left()
        self.assert_no_key(self.server.secret_key)

    def listed(self, there):
        return [__import__("json").loads(line) for line in self.ok("store", "ls", "-R", there, "--json").out.splitlines()]

    def raw(self):
        return f"data={self.there},mounter=goofys,option=-f,option=bucket,option=MOUNTPOINT"

    @needs_root
    def test_a_raw_mounter_gets_its_words_and_the_keys(self):
        self.fake_mounter("goofys", '$3')
        job = self.job_ok("--mount", self.raw(), *shell("cat data/mounted-by"))
        self.assertEqual(self.log(job).decode(), "goofys was here\n")
        argv = (self.facts / "goofys.argv").read_text().splitlines()
        self.assertEqual(argv[:2], ["-f", "bucket"])
        self.assertTrue(argv[2].startswith(str(self.node)), argv)
        self.assertNotIn(self.server.secret_key, " ".join(argv))
        self.assertIn(f"AWS_SECRET_ACCESS_KEY={self.server.secret_key}", (self.facts / "goofys.env").read_text().splitlines())
        self.assert_nothing_left()
        (self.facts / "goofys.fails").touch()
        self.job_fails("--mount", self.raw(), "true", says=["'goofys' ended", "is not known"])
        self.assert_nothing_left()

    @needs_fuse("rclone")
    def test_what_a_mounter_says_of_its_flags_is_the_reason(self):
        self.job_fails("--mount", f"data={self.there},mounter=rclone,option=--no-such-flag", "true", says="'rclone' ended: Error: unknown flag: --no-such-flag")
        self.assert_nothing_left()

    @needs_root
    def test_a_mounter_that_hangs_is_given_up_when_the_job_is(self):
        self.fake_mounter("goofys", '$3')
        (self.facts / "goofys.hangs").touch()
        job = self.submit("--mount", self.raw(), "true")
        self.until(lambda: (self.facts / "goofys.argv").exists(), "goofys to be started")
        self.ok("abort", job)
        self.assertEqual(self.ended(job)["state"], "cancelled")
        self.assert_nothing_left()
        self.until(lambda: not [pid for pid in self.processes() if any(word.endswith("/goofys") for word in self.words_of(pid))], "goofys to be gone")

    def test_names_of_mounts_do_not_meet_the_node_s_own_files(self):
        flags = [word for name in ("lock", "data", "data.cache", "data.had", "mounts.json") for word in ("--mount", f"{name}={self.there},mode=copy-ro")]
        self.job_ok(*flags, *shell('for name in lock data data.cache data.had mounts.json; do cmp $name/large "$1" || exit 5; done', str(self.project / "from/large")))
        self.assert_nothing_left()

    def test_what_is_wrong_is_said_in_a_line_before_the_ranks(self):
        self.job_fails("--mount", "data=s3://no-such-bucket-here", "true", says=["mount 'data' on node", "no-such-bucket-here"])
        self.job_fails("--mount", "data=s3://mount-tests/no/such/prefix", "true", says="nothing in")
        job = self.job_fails("--mount", f"data={self.there}", "true", env={"AWS_SECRET_ACCESS_KEY": "wrongSECRETwrong"}, says="mount 'data'")
        self.assertNotIn("wrongSECRETwrong", job["reason"])
        tools = self.root / "few"
        tools.mkdir()
        (tools / "true").symlink_to("/bin/true")
        self.job_fails("--env", f"PATH={tools}", "--mount", f"data={self.there}", "true", says=["'rclone' is not on the node", "mode: copy"] if os.path.exists("/dev/fuse") else "mode: copy")
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
