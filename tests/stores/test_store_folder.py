# SPDX-License-Identifier: Apache-2.0
"""`overcap store` between folders, and what it refuses."""
import os
import stat
import subprocess

from store_rig import DEADLINE, MIB, PYTHON, CopiesHold, StoreRig, main, make_tree, needs_root, tree

DEADLINE_SECONDS = 300


class Folders(CopiesHold, StoreRig):
    def here(self, name):
        return str(self.root / "stores" / name)

    def test_files_are_made_as_the_umask_says_and_keep_their_times(self):
        (self.project / "a").write_bytes(b"x")
        os.utime(self.project / "a", (1_500_000_000, 1_500_000_000))
        self.ok("store", "cp", "a", "sub/")
        made = self.project / "sub/a"
        self.assertEqual(int(made.stat().st_mtime), 1_500_000_000)
        self.assertEqual(stat.S_IMODE(made.stat().st_mode), 0o666 & ~self.umask())

    def umask(self):
        now = os.umask(0)
        os.umask(now)
        return now

    def test_links_and_pipes_are_told_of(self):
        source = self.project / "from"
        make_tree(source, large=10)
        os.symlink("plain.txt", source / "link")
        os.symlink("..", source / "circle")
        os.symlink("none", source / "dangling")
        os.mkfifo(source / "pipe")
        done = self.done("store", "cp", "from", "to")
        self.assertEqual(done["left_out"], 3)  # circle, dangling, pipe
        self.assertEqual((self.project / "to/link").read_bytes(), b"hello\n")
        self.assertFalse((self.project / "to/link").is_symlink())

    def test_what_is_no_file_is_not_replaced(self):
        (self.project / "x").write_bytes(b"1")
        os.mkfifo(self.project / "pipe")
        os.symlink("pipe", self.project / "link")
        for name in ("pipe", "link"):
            self.refused("store", "cp", "x", name, status=6, says=[f"'{name}'", "a device, a pipe or a socket"])
        self.refused("store", "cp", "pipe", "y", status=6, says="a device, a pipe or a socket")
        self.assertTrue((self.project / "pipe").is_fifo() and (self.project / "link").is_symlink())

    def test_a_pipe_that_nobody_reads_or_nothing_fits_behind(self):
        (self.project / "large").write_bytes(bytes(30 * MIB))
        with open("/dev/full", "wb") as full:
            with subprocess.Popen([str(self.binary), "store", "cp", "large", "-"], cwd=self.project, env=self.env,
                                  stdout=full, stderr=subprocess.PIPE) as copy:
                err = copy.communicate(timeout=DEADLINE)[1].decode()
        self.assertEqual((copy.returncode, err.count("\n") <= 2), (5, True), err)
        self.assertIn("cannot write to stdout: No space left on device", err)
        with subprocess.Popen([str(self.binary), "store", "cp", "large", "-"], cwd=self.project, env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as copy:
            self.assertEqual(copy.stdout.read(10), bytes(10))
            copy.stdout.close()
            err = copy.stderr.read().decode()
            self.assertEqual(copy.wait(timeout=DEADLINE), -13)  # SIGPIPE, as of cat
        self.assertEqual(err, "")

    @needs_root
    def test_few_threads_are_enough_and_none_are_told(self):
        self.root.chmod(0o755)
        self.project.chmod(0o755)
        files = make_tree(self.project / "from")
        (self.project / "to").mkdir()
        (self.project / "to").chmod(0o777)
        # RLIMIT_NPROC counts what a user has: one whom nobody else is.
        as_other = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "prlimit"]
        for most, status in ((1, 5), (4, 0)):
            done = subprocess.run([*as_other, f"--nproc={most}", str(self.binary), "store", "cp", "from", "to"], cwd=self.project, env=self.env,
                                  capture_output=True, text=True, timeout=DEADLINE, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual("no thread can be started" in done.stderr, status != 0, done.stderr)
        self.assertEqual(tree(self.project / "to"), files)
        done = subprocess.run([*as_other, "--nproc=1", str(self.binary), "store", "check", "from", "to"], cwd=self.project, env=self.env,
                              capture_output=True, text=True, timeout=DEADLINE, check=False)
        self.assertEqual((done.returncode, done.stdout.split()[0]), (0, str(len(files))), done.stderr)

    def test_a_profile_or_a_file_of_keys_that_is_not_there_is_named(self):
        env = {"AWS_PROFILE": "labb", "HOME": str(self.root), "AWS_EC2_METADATA_DISABLED": "true"}
        self.write("overcap.yaml", f"stores:\n  p: {{at: s3://bucket, profile: nosuch}}\n  f: {{at: s3://bucket, credentials: {self.root}/none}}\n")
        for location, says in (("s3://bucket", "there is no profile 'labb'"), ("s3://bucket/x", "there is no profile 'labb'"),
                               ("p", "there is no profile 'nosuch'"), ("p:x", "there is no profile 'nosuch'"), ("f:x", f"cannot read '{self.root}/none'")):
            for words in (["ls", location], ["stat", location], ["cp", location, "here"], ["check", location]):
                self.refused("store", *words, status=3, says=says, env=env)

    def test_every_name_stands_on_one_line(self):
        (self.project / "from").mkdir()
        names = ["a\nb", "c\td", "e\x1b[31mf", "plain"]
        for name in names:
            (self.project / "from" / name).write_bytes(b"1")
        shown = ["a\ufffdb", "c\ufffdd", "e\ufffd[31mf", "plain"]
        self.assertEqual(self.ok("store", "ls", "from").out.split("\n"), [*shown, ""])
        self.assertEqual([entry["name"] for entry in self.events("store", "ls", "from")], names)
        steps = self.ok("store", "cp", "from", "to", "--dry-run").out.splitlines()
        self.assertEqual([line.split("  (")[0].removeprefix("copy").strip() for line in steps], shown)

    def test_stdin_is_kept_where_tmpdir_says(self):
        for name in ("t", "a-folder-with-a-longer-name-" + "x" * 60):  # short texts live elsewhere in memory than long ones
            folder = self.root / name
            folder.mkdir()
            with subprocess.Popen(["echo", name], stdout=subprocess.PIPE) as echo:
                self.ok("store", "cp", "-", "got", stdin=echo.stdout, env={**self.env, "TMPDIR": str(folder)})
            self.assertEqual((self.project / "got").read_text(), name + "\n")
            folder.rmdir()
            with subprocess.Popen(["echo", name], stdout=subprocess.PIPE) as echo:
                self.refused("store", "cp", "-", "got", stdin=echo.stdout, status=3, says=f"cannot make a file in '{folder}'",
                             env={**self.env, "TMPDIR": str(folder)})

    @needs_root
    def test_what_is_not_allowed_is_told_with_whom_to_ask(self):
        self.root.chmod(0o755)
        self.project.chmod(0o755)
        for name in ("from/secret", "from/public", "mine/x"):
            (self.project / name).parent.mkdir(exist_ok=True)
            (self.project / name).write_bytes(b"1")
        (self.project / "mine/x").write_bytes(b"other")
        (self.project / "from/secret").chmod(0)
        (self.project / "to").mkdir()
        (self.project / "to").chmod(0o777)
        as_other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(self.binary), "store", "cp"]
        for words, path in ((["from", "to/new"], "from/secret"), (["from/public", "mine/x"], "mine"), (["from", "mine/sub/new"], "mine")):
            done = subprocess.run([*as_other, *words], cwd=self.project, env=self.env, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn(f"'ls -ld {self.project / path}'", done.stderr)
        self.assertEqual(tree(self.project / "to"), {"new/public": b"1"})

    def test_what_is_everything_or_home_is_not_removed(self):
        home = self.root / "home"
        (home / "sub").mkdir(parents=True)
        (home / "sub/x").write_bytes(b"1")
        (self.project / "from").mkdir()
        (self.project / "from/y").write_bytes(b"1")
        env = {**self.env, "HOME": str(home)}
        for words in (["rm", "-r", str(home)], ["rm", "-r", str(self.root)], ["sync", "from", str(home), "--delete"], ["rm", "-r", "~"],
                      ["rm", "-r", "/", "--dry-run"]):
            self.refused("store", *words, status=2, says="neither removed nor replaced", env=env)
        self.ok("store", "sync", "from", str(home), env=env)
        self.ok("store", "rm", "-r", str(home / "sub"), env=env)
        self.assertEqual(tree(home), {"y": b"1"})

    def test_names_of_the_configuration(self):
        (self.project / "overcap.yaml").write_text(f"stores:\n  data: {self.root}/data\n")
        (self.project / "x").write_bytes(b"1")
        self.ok("store", "cp", "x", "data:deep/er/")
        self.assertEqual(tree(self.root / "data"), {"deep/er/x": b"1"})
        self.assertIn("data", self.ok("store", "ls").out)
        self.assertEqual(self.ok("store", "ls", "data:deep").out, "er/\n")
        self.assertIn("stores.data.at", self.ok("config", "show").out)
        self.refused("store", "ls", "dato:x", says="data")

    def test_what_cannot_be_is_said_in_a_line(self):
        (self.project / "dir").mkdir()
        (self.project / "dir/f").write_bytes(b"1")
        self.refused("store", "cp", "none", "to", status=3, says="none")
        self.refused("store", "cp", "dir", "dir/sub", says="into itself")
        self.refused("store", "cp", "dir", "./dir")
        self.refused("store", "sync", "dir/f", "to", says="store cp")
        self.refused("store", "ls", "gs://bucket", says="gs://")
        self.refused("store", "ls", "s3://UPPER", says="bucket")
        self.refused("store", "url", "dir/f", says="s3://")
        self.refused("store", "rm", "dir", says="rm -r")
        self.refused("store", "cp", "dir", "to", "-j", "0")
        self.refused("store", "check", "none", status=3)
        (self.project / "empty").mkdir()
        self.refused("store", "sync", "empty", "dir", "--delete", status=6, says="nothing")
        self.assertEqual(tree(self.project / "dir"), {"f": b"1"})

    def test_keys_in_locations_and_files_are_not_repeated(self):
        secret = "SECRETWORD"
        for words in (("store", "ls", f"s3://AKIA:{secret}@bucket/x"), ("store", "cp", "x", f"ssh://me:{secret}@host/x"),
                      ("store", "ls", f"az://account1/cont?sig={secret}")):
            self.assertNotIn(secret, self.refused(*words).err)
        (self.project / "overcap.yaml").write_text(f"stores:\n  a: {{at: s3://bucket, secret_key: {secret}}}\n")
        done = self.refused("store", "ls")
        self.assertNotIn(secret, done.err)
        self.assertIn("credentials: FILE", done.err)
        keys = self.project / "keys.yaml"
        keys.write_text(f"access_key: A\nsecret_key: {secret}\n")
        keys.chmod(0o644)
        (self.project / "overcap.yaml").write_text(f"stores:\n  a: {{at: s3://bucket, credentials: {keys}}}\n")
        done = self.refused("store", "ls", "a", status=4, says=f"chmod 600 {keys}")
        self.assertNotIn(secret, done.err + self.ok("config", "show").out + self.ok("config", "show", "--json").out)

    def test_a_limit_of_file_sizes_is_told_and_nothing_is_half_written(self):
        (self.project / "large").write_bytes(bytes(3 * MIB))
        done = subprocess.run(["sh", "-c", 'ulimit -f 1000; exec "$0" store cp large to/', str(self.binary)], env=self.env, cwd=self.project,
                              capture_output=True, text=True, timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 5, done)
        self.assertIn("File too large", done.stderr)
        self.assertIn("ulimit -f", done.stderr)
        self.assertEqual(tree(self.project / "to"), {})

    @needs_root
    def test_a_full_disk_is_told_and_nothing_is_half_written(self):
        small = self.root / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", small], check=False).returncode != 0:
            self.skipTest("NOT TESTED: no tmpfs can be mounted here")
        try:
            (self.project / "large").write_bytes(bytes(20 * MIB))
            make_tree(self.project / "from", large=6 * MIB)
            done = self.overcap("store", "cp", "large", str(small) + "/")
            self.assertEqual(done.status, 5, str(done))
            self.assertIn("No space left", done.err)
            self.assertEqual(tree(small), {})
            (self.project / "from/large2").write_bytes(bytes(5 * MIB))
            self.assertEqual(self.overcap("store", "cp", "from", str(small / "x")).status, 5)
            for name, content in tree(small / "x").items():
                self.assertEqual(content, (self.project / "from" / name).read_bytes(), name)
        finally:
            subprocess.run(["umount", small], check=False)

    def test_a_bar_is_shown_on_a_terminal_only(self):
        make_tree(self.project / "from", large=10)
        self.assertNotIn("\r", self.ok("store", "cp", "from", "to").err)

    def test_large_files_need_little_memory(self):
        with open(self.project / "big", "wb") as big:
            big.truncate(600 * MIB)
        # The memory of who starts a program counts as the program's own: a small process does it.
        measure = ("import os, sys; pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); "
                   "_, status, usage = os.wait4(pid, 0); print(usage.ru_maxrss); sys.exit(os.waitstatus_to_exitcode(status))")
        done = subprocess.run([PYTHON, "-I", "-S", "-c", measure, str(self.binary), "store", "cp", "big", "copy"], cwd=self.project,
                              env=self.env, capture_output=True, text=True, timeout=DEADLINE * 4, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(int(done.stdout), 100 * 1024, "KiB resident")


if __name__ == "__main__":
    main()
