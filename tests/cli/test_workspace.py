# SPDX-License-Identifier: Apache-2.0
"""Workspaces as a user meets them: make one, lose the node, get it back; and everything that can be asked wrongly."""
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import unittest

from overcap_rig import DEADLINE, Rig, main

NOBODY = 61003


class WorkspaceRig(Rig):
    def setUp(self):
        super().setUp()
        self.disk = self.root / "disk"  # in the place of /scratch
        self.disk.mkdir()
        self.folder = self.disk / "work"

    def create(self, *flags, name="work", folder=None, **options):
        return self.ok("workspace", "create", name, "--at", str(folder or self.folder), *flags, **options)

    def ws(self, *args, **options):
        """A command of workspaces that works, in the workspace's folder."""
        return self.ok("workspace", *args, cwd=self.folder, **options)

    def events(self, done):
        events = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(events[-1]["event"], "done", str(done))
        return events

    def done(self, *args, **options):
        """The last event of a command with --json."""
        return self.events(self.ws(*args, "--json", **options))[-1]

    def snapshots(self):
        return [snapshot["id"] for snapshot in self.ws("ls", "--json").json()]

    def fill(self, folder=None):
        folder = folder or self.folder
        self.write("src/model.py", "print(1)\n", base=folder)
        self.write("src/deep/er/data.bin", os.urandom(300_000), base=folder)
        self.write("run.sh", "#!/bin/sh\n", mode=0o755, base=folder)
        self.write(os.fsdecode(b"odd-\xff\xfe"), "not UTF-8\n", base=folder)
        (folder / "empty").mkdir(exist_ok=True)
        os.symlink("src/model.py", folder / "link")
        os.link(folder / "run.sh", folder / "second-name.sh")
        os.utime(folder / "run.sh", ns=(1, 1_600_000_000_123_456_789))

    def picture(self, folder):
        """Everything of a folder but .overcap, to be compared."""
        facts = {}
        for parent, folders, files in os.walk(os.fsencode(folder)):
            if parent == os.fsencode(folder):
                folders[:] = [name for name in folders if name != b".overcap"]
            for name in folders + files:
                path = os.path.join(parent, name)
                info = os.lstat(path)
                content = os.readlink(path) if stat.S_ISLNK(info.st_mode) else None
                if stat.S_ISREG(info.st_mode):
                    with open(path, "rb") as f:
                        content = (f.read(), info.st_nlink)
                facts[os.path.relpath(path, os.fsencode(folder))] = (info.st_mode, info.st_mtime_ns, content)
        return facts


class Story(WorkspaceRig):
    def test_words_are_kept_also_when_nothing_changed(self):
        self.create()
        self.assertIn("nothing has changed", self.ws("backup").out)
        self.assertIn("saved snapshot", self.ws("backup", "-m", "before the rewrite").out)
        self.assertEqual(len(self.snapshots()), 2)
        self.assertIn("before the rewrite", self.ws("ls").out)
        self.assertIn("nothing has changed", self.ws("backup").out)

    def test_a_lost_node_costs_what_was_done_since_the_last_backup(self):
        made = self.create("--setup", "mkdir notes", "-m", "first words")
        self.assertIn("saved snapshot", made.out)
        self.assertTrue((self.folder / "notes").is_dir())
        self.fill()
        self.assertIn("saved snapshot", self.ws("backup", "-m", "with code").out)
        again = self.ws("backup").out
        self.assertIn("nothing has changed since snapshot", again)
        self.assertEqual(len(self.snapshots()), 2)
        before = self.picture(self.folder)

        shutil.rmtree(self.folder)  # the node's disk is wiped
        self.refused("workspace", "backup", "work", status=3, says=["not on this node", "workspace init work"])
        self.assertIn("restored snapshot", self.ok("workspace", "init", "work").out)
        self.assertEqual(self.picture(self.folder), before)
        self.assertIn("has the newest snapshot", self.ws("init").out)
        self.assertIn("nothing has changed", self.ws("backup").out)

        other = self.disk / "other"  # as on another node
        restored = self.ok("workspace", "init", "work", "--at", str(other), "--json")
        self.assertEqual(self.events(restored)[-1]["outcome"], "restored")
        self.assertEqual(self.picture(other), before)

    def test_every_state_can_be_seen_compared_and_brought_back(self):
        self.create()
        self.fill()
        self.ws("backup")
        self.write("src/model.py", "print(2)\n", base=self.folder)
        self.write("new.txt", "new\n", base=self.folder)
        (self.folder / "link").unlink()
        self.assertEqual(self.ws("diff").out.split("\n"), ["- link", "+ new.txt", "~ src/model.py", ""])
        self.ws("backup", "-m", "second")
        self.assertEqual(self.ws("diff").out, "")
        changes = self.ws("diff", "latest~1", "latest", "--json").json()
        self.assertEqual({(c["change"], c["path"]) for c in changes["changes"]},
                         {("added", "new.txt"), ("removed", "link"), ("changed", "src/model.py")})

        self.assertEqual(self.ws("cat", "latest~1", "src/model.py").out, "print(1)\n")
        self.assertEqual(self.ok("workspace", "cat", "latest", "model.py", cwd=self.folder / "src").out, "print(2)\n")
        names = [entry["path"] for entry in self.ws("ls", "latest", "src", "--json").json()]
        self.assertEqual(names, ["src/deep", "src/model.py"])
        deep = [entry["path"] for entry in self.ws("ls", "latest", "src", "-R", "--json").json()]
        self.assertEqual(deep, ["src/deep", "src/deep/er", "src/deep/er/data.bin", "src/model.py"])
        self.assertIn("second", self.ws("ls").out)
        self.assertIn("-rwxr-xr-x", self.ws("ls", "latest~1", "run.sh").out)

        self.ws("restore", "latest~1", "link", "src/model.py")
        self.assertEqual((self.folder / "src/model.py").read_text(), "print(1)\n")
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertTrue((self.folder / "new.txt").exists())
        self.ok("workspace", "restore", "latest~1", "--to", str(self.disk / "old"), "--name", "work")
        self.assertFalse((self.disk / "old/new.txt").exists())
        self.assertEqual((self.disk / "old/src/model.py").read_text(), "print(1)\n")
        self.assertFalse((self.disk / "old/.overcap").exists())

    def test_two_copies_never_overwrite_each_others_work(self):
        self.create()
        self.write("a.txt", "1", base=self.folder)
        self.ws("backup")
        other = self.disk / "other"
        self.ok("workspace", "init", "work", "--at", str(other))
        self.write("a.txt", "changed here", base=other)
        self.write("b.txt", "from the first", base=self.folder)
        self.ws("backup")
        kept = self.refused("workspace", "init", cwd=other, status=6, says=["1 change", "a.txt", "--force"])
        self.assertIn("would be lost", kept.err)
        self.assertEqual((other / "a.txt").read_text(), "changed here")
        saved = self.ok("workspace", "backup", cwd=other)
        self.assertIn("did not come from the newest snapshot", saved.err)
        self.write("c.txt", "unsaved", base=other)
        self.ok("workspace", "init", "--force", cwd=other)
        self.assertFalse((other / "c.txt").exists())
        (other / "a.txt").write_text("again")
        told = self.ok("workspace", "init", cwd=other).out
        self.assertIn("1 change since: 'a.txt'", told)
        self.assertEqual((other / "a.txt").read_text(), "again")

    def test_going_back_asks_before_it_loses_something(self):
        self.create()
        self.write("a.txt", "1", base=self.folder)
        self.ws("backup")
        self.write("a.txt", "two", base=self.folder)
        self.ws("backup")
        self.write("a.txt", "three!", base=self.folder)
        self.refused("workspace", "restore", "latest~1", cwd=self.folder, status=6, says="a.txt")
        self.refused("workspace", "restore", "latest~1", "a.txt", cwd=self.folder, status=6, says="a.txt")
        self.ws("restore", "latest~1", "--force")
        self.assertEqual((self.folder / "a.txt").read_text(), "1")
        self.assertIn("the newest was taken elsewhere", self.ws("status").out)
        self.ws("init")
        self.assertEqual((self.folder / "a.txt").read_text(), "two")

    def test_pipes_and_sockets_are_named_once_saved_never_and_in_nobodys_way(self):
        self.fill()
        self.create("--adopt")
        os.mkfifo(self.folder / "src/pipe")
        self.assertIn("'src/pipe': a pipe (skipped)", self.ws("backup").err)
        self.assertRegex(self.ws("status").out, r"changes +none")
        self.write("src/model.py", "print(2)\n", base=self.folder)
        self.ws("backup")
        self.ws("restore", "latest~1")
        self.ok("workspace", "init", "work")
        self.ws("restore", "latest", "--force")
        self.assertEqual((self.folder / "src/model.py").read_text(), "print(2)\n")
        self.assertTrue((self.folder / "src/pipe").is_fifo())

    def test_what_is_excluded_is_neither_saved_nor_removed(self):
        self.create("--exclude", "*.o", "--exclude", "/data")
        self.write("data/big", "x" * 1000, base=self.folder)
        self.write("src/a.o", "object", base=self.folder)
        self.write("src/a.c", "source", base=self.folder)
        self.ws("backup")
        names = [entry["path"] for entry in self.ws("ls", "latest", "-R", "--json").json()]
        self.assertEqual(names, ["src", "src/a.c"])
        self.assertEqual(self.ws("diff").out, "")
        self.write("src/a.c", "changed", base=self.folder)
        self.ws("init", "--force")
        self.assertEqual((self.folder / "src/a.c").read_text(), "source")
        self.assertTrue((self.folder / "src/a.o").exists() and (self.folder / "data/big").exists())

    def test_a_restore_that_was_cut_off_is_continued_and_not_backed_up_before(self):
        self.create()
        self.fill()
        self.ws("backup")
        before = self.picture(self.folder)
        state = self.folder / ".overcap/workspace.json"
        facts = json.loads(state.read_text())
        facts.update(restoring=facts["base"], restoring_tree=facts["base_tree"], base="", base_tree="")
        state.write_text(json.dumps(facts))
        shutil.rmtree(self.folder / "src")
        self.refused("workspace", "backup", cwd=self.folder, status=6, says=["only restored in part", "workspace init work"])
        self.assertIn("restored in part", self.ws("status").out)
        self.assertIn("restored snapshot", self.ws("init").out)
        self.assertEqual(self.picture(self.folder), before)
        self.ws("backup")

    def test_status_and_list_say_what_is_not_saved(self):
        self.create()
        self.write("a.txt", "1", base=self.folder)
        facts = self.ws("status", "--json").json()
        self.assertEqual((facts["here"], facts["changes"]), (True, {"added": 1, "removed": 0, "changed": 0}))
        self.assertIn("1 new", self.ws("status").out)
        self.ws("backup")
        self.assertIn("all is saved", self.ws("status").out)
        (row,) = self.ok("workspace", "list", "--json").json()
        self.assertEqual((row["name"], row["here"], row["snapshots"], row["folder"]), ("work", True, 2, str(self.folder)))
        self.assertIn("work", self.ok("workspace", "list").out)

    def test_old_snapshots_go_by_rules_and_by_name_and_free_their_space(self):
        self.create()
        for number in range(4):
            self.write("big.bin", os.urandom(2_000_000), base=self.folder)
            self.ws("backup", "-m", str(number))
        ids = self.snapshots()
        dry = self.done("prune", "--keep-last", "2", "--dry-run")
        self.assertEqual((dry["removed"], len(self.snapshots())), (ids[:3], 5))
        pruned = self.done("prune", "--keep-last", "2")
        self.assertEqual((pruned["removed"], self.snapshots()), (ids[:3], ids[3:]))
        self.assertGreater(pruned["removed_bytes"], 3_000_000)
        self.ws("forget", "latest~1")
        self.assertEqual(self.snapshots(), ids[4:])
        gc = self.ok("gc", "--json").json()
        self.assertGreater(gc["object_bytes"], 1_000_000)
        self.assertTrue(self.done("verify", "--read-data")["sound"])
        self.ok("workspace", "restore", "latest", "--to", str(self.disk / "copy"), cwd=self.folder)
        self.assertEqual((self.disk / "copy/big.bin").read_bytes(), (self.folder / "big.bin").read_bytes())
        self.assertIn("no rule was given", self.ws("prune").err)

    def test_damage_is_found_and_named_and_harms_only_what_it_touches(self):
        self.create()
        self.write("hurt.bin", os.urandom(3_000_000), base=self.folder)
        self.ws("backup")
        self.write("fine.bin", os.urandom(3_000_000), base=self.folder)
        self.ws("backup")
        packs = sorted((self.home / "store/packs").rglob("??*/*"), key=lambda path: path.stat().st_mtime_ns)
        first = next(pack for pack in packs if pack.stat().st_size > 1_000_000)
        with open(first, "r+b") as f:
            f.seek(500_000)
            byte = f.read(1)
            f.seek(500_000)
            f.write(bytes([byte[0] ^ 1]))
        checked = self.overcap("workspace", "verify", "--read-data", cwd=self.folder)
        self.assertEqual(checked.status, 7, str(checked))
        self.assertIn("hurt.bin", checked.err)
        self.assertNotIn("fine.bin", checked.err)
        restored = self.overcap("workspace", "restore", "latest", "--to", str(self.disk / "copy"), cwd=self.folder)
        self.assertEqual(restored.status, 3, str(restored))
        self.assertIn("hurt.bin", restored.err)
        self.assertEqual((self.disk / "copy/fine.bin").read_bytes(), (self.folder / "fine.bin").read_bytes())
        first.rename(self.disk / "moved-out")
        self.ws("backup", "--read-all")
        self.assertTrue(self.done("verify", "--read-data")["sound"])

    def test_a_workspace_that_is_not_known_here_is_taken_from_its_store(self):
        self.create("--store", str(self.disk / "store"))
        self.fill()
        self.ws("backup")
        before = self.picture(self.folder)
        shutil.rmtree(self.home)
        shutil.rmtree(self.folder)
        self.refused("workspace", "init", "work", status=3, says="no workspace 'work'")
        self.ok("workspace", "init", "work", "--store", str(self.disk / "store"), "--at", str(self.folder))
        self.assertEqual(self.picture(self.folder), before)
        self.ws("backup")

    def test_a_venv_and_ccache_come_with_it(self):
        if subprocess.run(["python3", "-c", "import ensurepip"], capture_output=True, check=False).returncode != 0:
            raise unittest.SkipTest("NOT TESTED: python3 has no ensurepip, so no virtual environment can be made")
        self.create("--env", "venv", "--setup", "python3 -c 'open(\"which\", \"w\").write(__import__(\"sys\").prefix)'",
                    deadline=4 * DEADLINE)
        self.assertEqual((self.folder / "which").read_text(), str(self.folder / ".venv"))
        script = '. "$1/.overcap/activate" && echo "$CCACHE_DIR" && python3 -c "import sys; print(sys.prefix)"'
        said = subprocess.run(["sh", "-c", script, "sh", str(self.folder)], capture_output=True, text=True,
                              timeout=DEADLINE, check=True)
        self.assertEqual(said.stdout.split(), [str(self.folder / ".overcap/ccache"), str(self.folder / ".venv")])


class Encrypted(WorkspaceRig):
    def test_a_key_file_opens_it_and_nothing_else_does(self):
        key = self.disk / "keys/key"
        made = self.create("--key-file", str(key))
        self.assertIn("made the key file", made.err)
        self.assertEqual(self.mode_of(key), 0o600)
        self.write("secret.txt", "nobody may read this " * 100, base=self.folder)
        self.ws("backup")
        for path in (self.home / "workspaces/work/repository").rglob("*"):
            if path.is_file():
                self.assertNotIn(b"nobody may read", path.read_bytes())
                self.assertNotIn(b"secret.txt", path.read_bytes())
        self.assertEqual(self.ws("cat", "latest", "secret.txt").out, "nobody may read this " * 100)
        saved = key.read_bytes()
        key.write_bytes(b"another")
        self.refused("workspace", "backup", cwd=self.folder, status=4)
        key.unlink()
        self.refused("workspace", "backup", cwd=self.folder, status=4, says=str(key))
        self.assertEqual(self.ok("workspace", "list", "--json").json()[0]["snapshots"], 2)
        key.write_bytes(saved)
        self.ws("verify", "--read-data")

    def test_a_passphrase_comes_from_a_file_and_a_wrong_one_is_said_so(self):
        phrase = self.write("phrase", "correct horse\n", mode=0o600, base=self.root)
        self.refused("workspace", "create", "work", "--at", str(self.folder), "--passphrase", status=4,
                     says="OVERCAP_PASSPHRASE_FILE")
        self.assertFalse(self.folder.exists())
        self.env["OVERCAP_PASSPHRASE_FILE"] = str(phrase)
        self.create("--passphrase")
        self.write("a.txt", "1", base=self.folder)
        self.ws("backup")
        phrase.write_text("wrong\n")
        self.refused("workspace", "backup", cwd=self.folder, status=4)
        self.refused("workspace", "ls", cwd=self.folder, status=4)
        gc = self.ok("gc", "--json", env={"OVERCAP_PASSPHRASE_FILE": ""}).json()
        self.assertIn("passphrase", gc["repositories"][0]["skipped"])


class BadInput(WorkspaceRig):
    def nothing_was_made(self):
        self.assertEqual(list(self.disk.iterdir()), [])
        self.assertEqual(self.ok("workspace", "list", "--json").json(), [])
        self.assertEqual(list(self.home.glob("store/snapshots/*")), [])  # the store itself is for all, jobs too

    def test_a_disk_that_is_not_there_is_said_with_folders_that_would_do(self):
        if os.path.exists("/scratch"):
            raise unittest.SkipTest("NOT TESTED: this machine has a /scratch")
        self.refused("workspace", "create", status=3, says=["no '/scratch' on this machine", "--at DIR", " free)"])
        self.refused("workspace", "create", "--at", "/no-such-disk/ann/work", status=3, says="/no-such-disk")
        self.nothing_was_made()

    def test_wrong_words_are_refused_and_nothing_is_made(self):
        at = ("--at", str(self.folder))
        for words in (("../x", *at), ("-x", *at), ("a b", *at), ("work", *at, "--env", "pipenv"), ("work", *at, "--setup", "'open"),
                      ("work", *at, "--setup", ""), ("work", *at, "--passphrase", "--key-file", str(self.disk / "k")),
                      ("work", *at, "--store", str(self.folder / "store"))):
            self.refused("workspace", "create", *words, status=2)
            self.nothing_was_made()

    def test_a_setup_that_fails_leaves_nothing(self):
        self.refused("workspace", "create", "work", "--at", str(self.folder / "deep/er"), "--setup", "touch x", "--setup", "false",
                     status=6, says="'false' failed with status 1")
        self.nothing_was_made()
        self.folder.mkdir()
        self.refused("workspace", "create", "work", "--at", str(self.folder), "--setup", "no-such-command", status=3,
                     says="no-such-command")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_folder_that_is_not_empty_is_adopted_only_when_asked(self):
        self.write("mine.txt", "mine", base=self.folder)
        self.refused("workspace", "create", "work", "--at", str(self.folder), status=6, says=["not empty", "--adopt"])
        self.refused("workspace", "create", "work", "--at", str(self.folder), "--adopt", "--setup", "false", status=6)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["mine.txt"])
        self.create("--adopt")
        self.assertEqual(self.ws("cat", "latest", "mine.txt").out, "mine")
        self.refused("workspace", "create", "work", "--at", str(self.disk / "x"), status=6, says="already")
        self.refused("workspace", "create", "two", "--at", str(self.folder / "inside"), status=6, says="workspace already")
        self.refused("workspace", "restore", "latest", "--to", str(self.disk), "--name", "work", status=6, says="not empty")

    def test_init_into_a_folder_with_something_else_is_refused(self):
        self.create()
        other = self.disk / "other"
        self.write("theirs.txt", "theirs", base=other)
        self.refused("workspace", "init", "work", "--at", str(other), status=6, says="not empty")
        self.create(name="two", folder=self.disk / "two")
        self.refused("workspace", "init", "work", "--at", str(self.disk / "two"), status=6, says="another workspace, 'two'")
        self.assertEqual([path.name for path in other.iterdir()], ["theirs.txt"])

    def test_names_that_lead_nowhere(self):
        self.refused("workspace", "backup", status=3, says="no workspace yet")
        self.create()
        self.create(name="other", folder=self.disk / "other")
        self.refused("workspace", "status", status=2, says="which workspace? there are other, work")
        self.refused("workspace", "status", "wrok", status=3, says="did you mean 'work'?")
        self.refused("workspace", "ls", "other", cwd=self.folder, status=3, says="--name other")
        self.refused("workspace", "restore", "ffff", cwd=self.folder, status=3, says="ffff")
        self.refused("workspace", "cat", "latest", "nothing", cwd=self.folder, status=3, says="nothing")
        self.refused("workspace", "cat", "latest", "../other", cwd=self.folder, status=2, says="not inside")
        self.refused("workspace", "forget", "latest", "ffff", cwd=self.folder, status=3)
        self.assertEqual(len(self.snapshots()), 1)
        self.refused("workspace", "prune", "--keep-last", "x", cwd=self.folder, status=2)
        self.refused("workspace", "prune", "--keep-last", "0", cwd=self.folder, status=2, says="keep nothing")
        self.refused("workspace", "frobnicate", status=2)

    def test_formats_of_a_newer_overcap_are_said_so(self):
        self.create()
        for path in (self.home / "store/config", self.home / "workspaces/work/workspace.json",
                     self.folder / ".overcap/workspace.json"):
            text = path.read_text()
            body, check, _ = text.partition(',"check":"')
            newer = re.sub(r'"version": ?(\d+)', lambda found: f'"version":{int(found[1]) + 1}', body)
            if check:  # the repository's config has the hash of all before
                newer += check + hashlib.sha256(newer.encode()).hexdigest() + '"}\n'
            path.chmod(0o600)
            path.write_text(newer)
            self.refused("workspace", "backup", cwd=self.folder, status=6, says="newer")
            path.write_text(text)
        self.ws("backup")

    def test_a_broken_configuration_is_named_with_its_line(self):
        self.write("overcap.yaml", "workspaces:\n  keep: {last: some}\n")
        self.refused("workspace", "list", status=2, says="overcap.yaml:2")
        self.write("overcap.yaml", f"workspaces:\n  at: {self.disk}\n  exclude: ['*.o']\n")
        self.ok("workspace", "create")
        self.assertEqual(self.ok("workspace", "status", "--json").json()["exclude"], ["*.o"])
        self.assertTrue((self.disk / "work/.overcap").is_dir())

    def test_one_backup_at_a_time_names_who_has_the_folder(self):
        self.create()
        with open(self.folder / ".overcap/lock", "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.truncate(0)
            lock.write(b"pid 4711 on node7: overcap workspace backup, since 2026-01-01T00:00:00Z\n")
            lock.flush()
            self.refused("workspace", "backup", cwd=self.folder, status=6, says="pid 4711 on node7: overcap workspace backup")
            self.assertIn("pid 4711", self.ws("status").out)
        self.ws("backup")

    def test_ctrl_c_while_it_is_made_leaves_nothing(self):
        marker = self.facts / "begun"
        process = self.start("workspace", "create", "work", "--at", str(self.folder), "--setup", f"touch {marker}",
                             "--setup", "sleep 600")
        self.until(marker.exists, "the setup to begin")
        for pid in [process.pid, *self.children_of(process.pid)]:
            self.kill(pid, signal.SIGINT)  # as a terminal would, to all in the foreground
        done = self.finish(process)
        self.assertEqual(done.status, 130, str(done))
        self.assertIn("overcap: stopped; nothing was made\n", done.err)
        self.nothing_was_made()

    def test_ctrl_c_that_only_the_setup_is_told_of_stops_it_too(self):
        done = self.refused("workspace", "create", "work", "--at", str(self.folder), "--setup", "sh -c 'kill -INT $$'", status=130,
                            says="stopped; nothing was made")
        self.assertNotIn("failed with status", done.err)
        self.nothing_was_made()

    def children_of(self, pid):
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Unreadable(WorkspaceRig):
    parent = "/tmp"  # another user must get there

    def setUp(self):
        super().setUp()
        if os.geteuid() == 0:
            self.user = NOBODY
            self.share_with(NOBODY)
            os.chown(self.disk, NOBODY, NOBODY)

    def give(self, path, mode):
        if self.user is not None:
            os.chown(path, self.user, self.user)
        path.chmod(mode)

    def test_files_that_cannot_be_read_are_named_and_the_rest_is_saved(self):
        self.create()
        self.give(self.write("fine.txt", "fine", base=self.folder), 0o644)
        self.give(self.write("closed.txt", "closed", base=self.folder), 0)
        done = self.overcap("workspace", "backup", "--json", cwd=self.folder)
        self.assertEqual(done.status, 3, str(done))
        events = self.events(done)
        self.assertEqual([e["path"] for e in events if e["event"] == "problem"], ["closed.txt"])
        self.assertEqual((events[-1]["status"], events[-1]["unread"]), (3, 1))
        again = self.overcap("workspace", "backup", cwd=self.folder)
        self.assertEqual(again.status, 3, str(again))
        self.assertIn("closed.txt", again.err)
        names = [entry["path"] for entry in self.ws("ls", "latest", "--json").json()]
        self.assertEqual(names, ["fine.txt"])
        (self.folder / "closed.txt").chmod(0o600)
        self.assertEqual(self.done("backup")["status"], 0)

    def test_a_store_that_cannot_be_written_is_said_in_one_line(self):
        self.create()
        self.give(self.write("a.txt", "1", base=self.folder), 0o644)
        closed = [path for path in (self.home / "store").rglob("*") if path.is_dir()] + [self.home / "store"]
        modes = {path: self.mode_of(path) for path in closed}
        for path in closed:
            path.chmod(0o500)
        done = self.refused("workspace", "backup", cwd=self.folder, status=4, says="store")
        self.assertLessEqual(len(done.err.strip().splitlines()), 2)
        for path, mode in modes.items():
            path.chmod(mode)
        self.ws("backup")
        readonly = self.disk / "readonly"
        readonly.mkdir()
        self.give(readonly, 0o500)
        self.refused("workspace", "create", "two", "--at", str(self.disk / "two"), "--store", str(readonly / "store"), status=4)
        self.refused("workspace", "create", "two", "--at", str(readonly / "two"), status=4, says="--at DIR")
        self.assertFalse((self.disk / "two").exists())

    def test_a_store_that_is_none_is_refused_and_no_folder_of_its_name_made(self):
        for store in ("nosuch:x", "gs://bucket/x", "s3://K:SECRETWORD@bucket"):
            done = self.refused("workspace", "create", "two", "--at", str(self.disk / "two"), "--store", store, status=2)
            self.assertNotIn("SECRETWORD", done.err)
        self.assertFalse((self.disk / "two").exists())
        self.assertFalse((self.project / "nosuch:x").exists())


if __name__ == "__main__":
    main()
