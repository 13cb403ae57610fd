# SPDX-License-Identifier: Apache-2.0
"""The code is frozen at submit; every attempt runs in its own copy."""
import os

from overcap_rig import Rig, main, shell


class Freeze(Rig):
    def blocked(self, *command):
        """A job that is queued behind another one; open_gate() lets it run."""
        self.declare_gpus(1)
        blocker = self.submit("-n", "1", *shell(self.gate()))
        self.until_state(blocker, "running")
        job_id = self.submit("-n", "1", *command)
        self.assertEqual(self.job(job_id)["state"], "queued")
        return job_id

    def files_seen(self, *flags):
        job = self.run_job(*flags, *shell("find . -type f -o -type l | sort"))
        self.assertEqual(job["state"], "succeeded", job)
        return self.log(job["id"]).decode().split()

    def test_edits_after_submit_do_not_change_a_queued_job(self):
        self.write("model.py", "one\n")
        self.write("gone.txt", "still here\n")
        job_id = self.blocked(*shell("cat model.py gone.txt; ls"))
        self.write("model.py", "two\n")
        (self.project / "gone.txt").unlink()
        self.write("new.txt", "new")
        self.open_gate()
        self.ended(job_id)
        self.assertEqual(self.log(job_id), b"one\nstill here\ngone.txt\nmodel.py\novercap.yaml\n")

    def test_an_edit_in_place_does_not_reach_a_running_job(self):
        path = self.write("model.py", "one\n")
        job_id = self.submit(*shell(f"echo up > \"$FACTS/up\"; {self.gate()}; cat model.py"))
        self.fact("up")
        with open(path, "r+", encoding="utf-8") as f:
            f.write("TWO\n")
        self.open_gate()
        self.ended(job_id)
        self.assertEqual(self.log(job_id), b"one\n")

    def test_a_job_that_writes_into_its_copy_changes_nobody_elses(self):
        self.write("data.txt", "clean\n")
        os.chmod(self.write("tool.sh", "echo clean\n"), 0o755)
        first = self.run_job(*shell("echo dirty >> data.txt; echo echo dirty > tool.sh; chmod 600 tool.sh; cat data.txt"))
        self.assertEqual(self.log(first["id"]), b"clean\ndirty\n")
        self.assertEqual((self.project / "data.txt").read_text(), "clean\n")
        second = self.run_job(*shell("cat data.txt; ./tool.sh 2>/dev/null || sh tool.sh"))
        self.assertEqual(second["snapshot"], first["snapshot"])
        self.assertEqual(self.log(second["id"]), b"clean\nclean\n")

    def test_a_home_folder_is_frozen_only_when_that_is_meant(self):
        home = self.root / "user"
        for number in range(4):
            self.write(f"thesis/{number}", "x" * 1000, base=home)
        self.write("overcap.yaml", "code: {max_bytes_warn: 3K}\n", base=home)
        self.write("overcap.yaml", "code: {max_bytes_warn: 3K}\n")
        for command in (("submit", "true"), ("submit", "--dry-run", "true"), ("init",)):
            self.refused(*command, cwd=home, says=("is your home folder", "would be frozen", "change to the folder", ".overcapignore"))
        self.refused("init", cwd="/", says=("'/' is everything", "would be frozen"))
        self.assertEqual(self.jobs("ls", "-a"), [])
        self.write("big", "x" * 5000)
        self.assertEqual(self.run_job("true")["state"], "succeeded")  # a project of that size gets a warning
        self.write(".overcapignore", "nothing\n", base=home)
        self.assertEqual(self.run_job(*shell("cat thesis/3 | wc -c"), cwd=home)["state"], "succeeded")

    def test_untracked_files_travel_and_ignored_ones_do_not(self):
        self.write(".gitignore", "*.o\n/build/\n!keep.o\nlogs/**\n")
        self.write(".overcapignore", "checkpoints/\n")
        self.write("sub/.gitignore", "local.txt\n")
        for name in ("a.py", "x.o", "keep.o", "build/out", "sub/build/in", "sub/local.txt", "local.txt",
                     "checkpoints/big.pt", "logs/deep/er.txt", "with space.txt"):
            self.write(name, name)
        job = self.run_job(*shell("find . -type f | sort"))
        seen = self.log(job["id"]).decode().splitlines()
        expected = {"./.gitignore", "./.overcapignore", "./a.py", "./keep.o", "./local.txt", "./sub/.gitignore",
                    "./sub/build/in", "./with space.txt"}
        self.assertEqual(set(seen), expected)

    def test_the_git_folder_does_not_travel(self):
        self.write(".git/HEAD", "ref: refs/heads/main\n")
        self.write(".git/objects/aa/bb", "x")
        self.write("a.py", "x")
        self.assertEqual(self.files_seen(), ["./a.py"])

    def test_modes_links_empty_files_and_odd_names_are_kept(self):
        self.write("run.sh", "#!/bin/sh\necho ran\n", mode=0o755)
        self.write("empty", b"")
        self.write("line\nbreak ünïcode", "odd")
        os.symlink("run.sh", self.project / "link")
        os.symlink("/nowhere/at/all", self.project / "dangling")
        script = './link; readlink dangling; cat "line\nbreak ünïcode"; test -f empty && test ! -s empty && echo " empty"'
        job = self.run_job(*shell(script))
        self.assertEqual(self.log(job["id"]).decode(), "ran\n/nowhere/at/all\nodd empty\n")

    def test_a_file_that_is_no_utf8_name_is_kept(self):
        path = os.path.join(os.fsencode(self.project), b"bad\xff\xfename")
        with open(path, "wb") as f:
            f.write(b"content")
        job = self.run_job(*shell("cat bad*"))
        self.assertEqual(self.log(job["id"]), b"content")

    def test_a_pipe_or_socket_in_the_folder_does_not_hang_submit(self):
        os.mkfifo(self.project / "pipe")
        self.write("a.py", "x")
        job = self.run_job("cat", "a.py")
        self.assertEqual(self.log(job["id"]), b"x")

    def test_the_same_tree_has_the_same_snapshot_and_an_edit_another(self):
        self.write("a.py", "x")
        one, two = self.run_job("true"), self.run_job("true")
        self.write("a.py", "y")
        three = self.run_job("true")
        self.assertEqual(one["snapshot"], two["snapshot"])
        self.assertNotEqual(one["snapshot"], three["snapshot"])

    def test_an_edit_with_the_same_size_and_time_is_noticed(self):
        path = self.write("a.py", "first")
        os.utime(path, ns=(10**18, 10**18))
        self.run_job("true")
        path.write_text("other")
        os.utime(path, ns=(10**18, 10**18))
        job = self.run_job("cat", "a.py")
        self.assertEqual(self.log(job["id"]), b"other")


class Init(Rig):
    def test_init_tells_files_bytes_and_what_is_new(self):
        self.write("big.bin", b"x" * 5_000_000)
        self.write("src/a.py", "a" * 100)
        text = self.ok("init").out
        self.assertIn("2", text)
        self.assertIn("big.bin", text)
        facts = self.ok("init", "--json").json()
        self.assertEqual((facts["files"], facts["bytes"]), (2, 5_000_100))
        self.assertRegex(facts["snapshot"], "^[0-9a-f]{64}$")

    def test_init_captures_the_code_that_submit_then_uses(self):
        self.write("a.py", "x")
        facts = self.ok("init", "--json").json()
        self.assertEqual(self.run_job("true")["snapshot"], facts["snapshot"])

    def test_a_second_init_finds_nothing_new(self):
        self.write("a.py", "x" * 1000)
        first = self.ok("init", "--json").json()
        second = self.ok("init", "--json").json()
        self.assertEqual(first["snapshot"], second["snapshot"])
        new = [key for key in second if "new" in key]
        self.assertTrue(new, second)
        for key in new:
            self.assertFalse(second[key], second)
        self.assertTrue(any(first[key] for key in new), first)

    def test_init_starts_no_job(self):
        self.ok("init")
        self.assertEqual(self.jobs("ls", "--all"), [])


if __name__ == "__main__":
    main()
