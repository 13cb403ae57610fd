# SPDX-License-Identifier: Apache-2.0
"""Work that no snapshot has is neither overwritten nor removed without --force: every way that once lost some."""
import json
import os
import shutil
import subprocess
import time
import unittest

from overcap_rig import DEADLINE, main, needs_root
from test_workspace import WorkspaceRig

SHIM = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec* now) {
  const int failed = (int)syscall(SYS_clock_gettime, id, now);
  const char* ahead = getenv("CLOCK_AHEAD");
  if (failed == 0 && id == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);
  return failed;
}
"""


class LossRig(WorkspaceRig):
    def setUp(self):
        super().setUp()
        self.b = self.disk / "b"  # the folder of the other node

    def with_clock(self, seconds):
        """The environment of a command whose clock is that much ahead."""
        shim = self.root / "clock.so"
        if not shim.exists():
            if not shutil.which("cc"):
                raise unittest.SkipTest("NOT TESTED: no C compiler to make a wrong clock")
            source = self.write("clock.c", SHIM, base=self.root)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(source)], check=True, timeout=60)
        return {"LD_PRELOAD": str(shim), "CLOCK_AHEAD": str(seconds)}

    def on_b(self, *args, status=0, cwd=None):
        """A command on another node: another host name, its own folder."""
        argv = ["unshare", "-u", "sh", "-c", 'hostname node-b && exec "$@"', "sh", str(self.binary), "workspace", *args]
        cwd = cwd or (self.b if self.b.exists() else self.disk)
        done = subprocess.run(argv, cwd=cwd, env=self.env, capture_output=True, timeout=DEADLINE, check=False, text=True)
        self.assertEqual(done.returncode, status, f"{args}: {done}")
        return done

    def save(self, name="f", text="one", base=None, **options):
        self.write(name, text, base=base or self.folder)
        self.ws("backup", **options)

    def text(self, name, base=None):
        return ((base or self.folder) / name).read_text()

    def kept(self, name, text, *words, status=6, base=None, says=("would be lost", "--force")):
        """A command that must not touch what is in no snapshot."""
        done = self.overcap("workspace", *words, cwd=base or self.folder)
        self.assertEqual(self.text(name, base), text, str(done))
        self.assertEqual(done.status, status, str(done))
        for part in says:
            self.assertIn(part, done.err, str(done))
        return done


@needs_root
class Newest(LossRig):
    def test_a_child_is_later_than_its_parent_whatever_the_clocks_say(self):  # P-L1
        for ahead in (5, 86_400):
            with self.subTest(ahead=ahead):
                name = f"work{ahead}"
                self.folder, self.b = self.disk / name, self.disk / f"b{ahead}"
                self.create(name=name)
                self.save(env=self.with_clock(ahead))
                self.on_b("init", name, "--at", str(self.b))
                self.write("f", "work of b", base=self.b)
                saved = self.on_b("backup")
                self.assertIn("clock", saved.stderr)
                self.on_b("init")
                self.assertEqual(self.text("f", self.b), "work of b")
                self.on_b("prune", "--keep-last", "1")
                self.ws("init")
                self.assertEqual(self.text("f"), "work of b")

    def test_a_snapshot_of_the_far_future_does_not_stay_the_newest(self):  # P-L1
        self.create()
        self.save(env=self.with_clock(4 * 365 * 86_400))
        self.save(text="two")
        self.save(text="three")
        self.assertEqual(self.ws("cat", "latest", "f").out, "three")
        self.assertNotIn(str(time.gmtime().tm_year + 4), self.ws("status").out)
        self.ws("prune", "--keep-last", "1")
        self.assertEqual(self.ws("cat", "latest", "f").out, "three")

    def test_snapshots_are_as_old_as_the_newest_says_not_as_the_clock_of_the_pruner(self):  # P-L9
        self.create()
        for text in "abc":
            self.save(text=text)
        before = self.snapshots()
        self.ws("prune", "--keep-within", "30d", env=self.with_clock(60 * 86_400))
        self.assertEqual(self.snapshots(), before)

    def test_a_prune_never_takes_the_snapshot_that_another_copy_stands_on(self):  # N-D1b
        self.create()
        self.save()
        self.on_b("init", "work", "--at", str(self.b))
        self.write("only-b", "b", base=self.b)
        self.on_b("backup")
        self.save("only-a", "a")
        pruned = self.done("prune", "--keep-last", "1")
        self.assertEqual(len(self.snapshots()), 2)
        self.assertIn("node-b", json.dumps(pruned["kept"]))
        self.on_b("init")  # its own work is in a snapshot
        self.ws("restore", "latest~1", "--to", str(self.root / "back"))
        self.assertEqual(self.text("only-b", self.root / "back"), "b")


class BaseIsGone(LossRig):
    def start_with_two(self):
        self.create()
        self.save()
        self.write("g", "new", base=self.folder)
        self.save(text="two")
        self.ws("forget", "latest")

    def refused_everywhere(self):
        status = self.ws("status").out
        self.assertNotIn("all is saved", status)
        self.assertRegex(status, r"changes +.*'f'")
        self.kept("f", "two", "init", says=("gone", "--force"))
        self.kept("f", "two", "restore", "latest", says=("gone", "--force"))
        self.kept("f", "two", "restore", "latest", "f", says=("gone", "--force"))
        self.assertEqual(self.text("g"), "new")
        self.assertIn("saved snapshot", self.ws("backup").out)  # the hint works
        self.assertIn("has the newest snapshot", self.ws("init").out)
        self.assertEqual(self.text("f"), "two")

    def test_after_forget(self):  # N-D1, P-L4 a
        self.start_with_two()
        self.refused_everywhere()

    def test_after_forget_and_prune(self):  # N-D1, P-L4
        self.start_with_two()
        self.ws("prune")
        self.refused_everywhere()

    @needs_root
    def test_when_another_node_forgot_it(self):  # P-L4 c
        self.create()
        self.save()
        self.on_b("init", "work", "--at", str(self.b))
        self.write("f", "two", base=self.b)
        self.on_b("backup")
        self.ws("init")
        self.on_b("forget", "latest")
        self.on_b("prune")
        self.kept("f", "two", "restore", "latest", says=("gone", "--force"))
        self.assertRegex(self.ws("status").out, r"changes +.*'f'")


class Above(LossRig):
    def test_what_stands_where_a_folder_on_the_way_belongs_is_kept(self):  # P-L3
        self.create()
        self.save("a/b/c/file", "code")
        for at in ("a/b/c", "a/b", "a"):
            for link in (False, True):
                with self.subTest(at=at, link=link):
                    place = self.folder / at
                    shutil.rmtree(place)
                    if link:
                        place.symlink_to("my only copy")
                    else:
                        place.write_text("my only copy")
                    done = self.overcap("workspace", "restore", "latest", "a/b/c/file", cwd=self.folder)
                    self.assertEqual(done.status, 6, str(done))
                    self.assertIn(f"'{at}'", done.err)
                    self.assertEqual(os.readlink(place) if link else place.read_text(), "my only copy")
                    self.ws("restore", "latest", "a/b/c/file", "--force")
                    self.assertEqual(self.text("a/b/c/file"), "code")


class Meanwhile(LossRig):
    FILES = 3000

    def test_what_changes_while_a_restore_goes_on_is_kept_and_named(self):  # P-L2
        self.create()
        for number in range(self.FILES):
            self.write(f"many/{number}", f"one {number}\n", base=self.folder)
            self.write(f"gone/{number}", f"gone {number}\n", base=self.folder)
        self.ws("backup")
        first = self.snapshots()[-1]
        for number in range(self.FILES):
            self.write(f"many/{number}", f"two {number}\n", base=self.folder)
        shutil.rmtree(self.folder / "gone")
        self.ws("backup")
        second = self.snapshots()[-1]
        noticed = 0
        begun = (self.folder / ".overcap/seen.restoring").exists
        moments = {"at its start": lambda: True, "begun": begun, "a third": lambda: self.text(f"many/{self.FILES // 3}").startswith("two"),
                   "begun again": begun, "two thirds": lambda: self.text(f"many/{self.FILES * 2 // 3}").startswith("two")}
        for moment, has_come in moments.items():
            self.ws("restore", first)
            names = [f"{part}/{number}" for number in range(0, self.FILES, self.FILES // 6) for part in ("many", "gone")]
            restore = self.start("workspace", "restore", second, cwd=self.folder)
            while not has_come() and restore.poll() is None:
                time.sleep(0.001)
            edited = []
            for name in names:
                try:
                    fd = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND)
                except FileNotFoundError:  # removed already, or being replaced
                    continue
                os.write(fd, b"UNSAVED\n")
                still = os.path.exists(self.folder / name) and os.path.samestat(os.fstat(fd), os.stat(self.folder / name))
                os.close(fd)
                edited += [name] if still else []
            done = self.finish(restore)
            for name in edited:
                self.assertTrue(os.path.exists(self.folder / name), f"{name} is gone, {moment}: {done}")
                self.assertIn("UNSAVED", self.text(name), f"{moment}: {done}")
            if done.status == 3:
                noticed += 1
                self.assertIn("kept", done.err)
            else:
                self.assertIn(done.status, (0, 6), str(done))
            self.ws("restore", first, "--force")
        self.assertGreater(noticed, 0, "no edit ever met the restore")

    def test_what_changed_since_a_restore_elsewhere_was_cut_off_is_kept_and_named(self):  # P-L6
        for number in range(4000):
            self.write(f"many/{number}", os.urandom(8_000), base=self.folder)
        self.create("--adopt")
        back = self.disk / "back"
        words = ("workspace", "restore", "latest", "--to", str(back))
        restore = self.start(*words, cwd=self.folder)
        self.until(lambda: (back / "many").exists() and len(os.listdir(back / "many")) > 50, "some files to be there")
        restore.kill()
        restore.wait(DEADLINE)
        whole = [path for path in (back / "many").iterdir() if path.read_bytes() == (self.folder / "many" / path.name).read_bytes()]
        mine = whole[0]
        with open(mine, "a", encoding="utf-8") as edited:
            edited.write("UNSAVED")
        done = self.overcap(*words, cwd=self.folder)
        self.assertEqual(done.status, 3, str(done))
        self.assertIn(f"many/{mine.name}", done.err)
        self.assertTrue(mine.read_bytes().endswith(b"UNSAVED"))
        for path in (self.folder / "many").iterdir():
            if path.name != mine.name:
                self.assertEqual((back / "many" / path.name).read_bytes(), path.read_bytes())
        self.ok(*words, "--force", cwd=self.folder)
        self.assertEqual(self.picture(back), self.picture(self.folder))


@needs_root
class InPart(LossRig):
    def test_a_folder_that_is_restored_in_part_is_never_saved_as_if_it_were_whole(self):  # P-L8
        self.write("build/s", "source", base=self.folder)
        self.write("build/x.o", "object", base=self.folder)
        self.create("--adopt", "--exclude", "*.o")
        self.on_b("init", "work", "--at", str(self.b))
        shutil.rmtree(self.b / "build")
        self.write("build", "now a file", base=self.b)
        self.on_b("backup")
        done = self.overcap("workspace", "init", cwd=self.folder)
        self.assertEqual(done.status, 3, str(done))
        self.assertIn("restored in part", self.ws("status").out)
        self.refused("workspace", "backup", cwd=self.folder, status=6, says=["restored in part", "init"])
        self.assertEqual(self.overcap("workspace", "init", cwd=self.folder).status, 3)
        shutil.rmtree(self.folder / "build")  # as it says: that is in the way
        self.ws("init")
        self.assertEqual(self.text("build"), "now a file")
        self.ws("backup")


class CutOff(LossRig):
    def test_an_edit_after_an_init_that_was_killed_blocks_neither_init_nor_backup(self):  # P-B7
        for number in range(4000):
            self.write(f"many/{number}", os.urandom(8_000), base=self.folder)
        self.create("--adopt")
        before = self.picture(self.folder)
        shutil.rmtree(self.folder)
        init = self.start("workspace", "init", "work")
        self.until(lambda: (self.folder / "many").exists() and len(os.listdir(self.folder / "many")) > 50, "some files to be there")
        init.kill()
        init.wait(DEADLINE)
        mine = self.write("many/0", "edited while it was cut off", base=self.folder)
        self.write("new", "new", base=self.folder)
        self.refused("workspace", "backup", cwd=self.folder, status=6, says=["init"])
        done = self.overcap("workspace", "init", cwd=self.folder)
        self.assertEqual(done.status, 3, str(done))
        self.assertIn("'many/0'", done.err)
        self.assertIn("kept", done.err)
        self.assertEqual((mine.read_text(), self.text("new")), ("edited while it was cut off", "new"))
        self.assertIn("saved snapshot", self.ws("backup").out)
        now = self.picture(self.folder)
        different = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
        self.assertLessEqual(different, {b"many", b"many/0", b"new"})
        self.assertEqual(self.ws("cat", "latest", "many/0").out, "edited while it was cut off")


class Saved(LossRig):
    def lose_packs(self, since):
        packs = [path for path in (self.home / "store/packs").rglob("*") if path.is_file() and path not in since]
        self.assertTrue(packs)
        for path in packs:
            path.unlink()

    def packs(self):
        return {path for path in (self.home / "store/packs").rglob("*") if path.is_file()}

    def test_saved_is_said_only_of_what_the_store_has(self):  # P-L5
        for words in (("-m", "next"), ()):
            for change in (True, False):
                with self.subTest(words=words, change=change):
                    name = f"work{len(words)}{change:d}"
                    self.folder = self.disk / name
                    self.create(name=name)
                    before = self.packs()
                    for number in range(6):
                        self.write(f"part/{number}", os.urandom(5_000), base=self.folder)
                    self.write("large", os.urandom(1_500_000), base=self.folder)
                    self.ws("backup")
                    self.lose_packs(before)
                    if change:
                        self.write("other", "other", base=self.folder)
                    done = self.ws("backup", *words)
                    self.assertIn("pack", done.err)
                    self.ws("restore", "latest", "--to", str(self.root / f"back-{name}"))
                    self.assertEqual(self.picture(self.root / f"back-{name}"), self.picture(self.folder))


class OwnFile(LossRig):
    def setUp(self):
        super().setUp()
        self.create()
        self.save()
        self.file = self.folder / ".overcap/workspace.json"

    def usable(self):
        """Whatever only reads the repository works."""
        for words in (("ls",), ("verify",), ("cat", "latest", "f"), ("diff", "latest~1", "latest"), ("restore", "latest", "--to", str(self.root / "back"))):
            self.ws(*words)
        shutil.rmtree(self.root / "back")
        for words in (("ls", "--name", "work"), ("verify", "work"), ("status", "work"), ("list",)):
            self.ok("workspace", *words)

    def test_an_empty_or_damaged_one_stops_only_what_needs_it(self):  # P-B8
        whole = self.file.read_bytes()
        base = self.file.read_text().split('"base":"')[1][:4].encode()
        flipped = whole.replace(b'"base":"' + base, b'"base":"' + (b"0000" if base != b"0000" else b"1111"))
        for number, content in enumerate((b"", b"{", flipped)):
            with self.subTest(content=content):
                edited = f"edited {number}"
                self.file.write_bytes(content)
                self.usable()
                self.write("f", edited, base=self.folder)
                self.kept("f", edited, "init", says=("--force", "backup"))
                self.ws("backup")  # as the hint says; nothing is lost by it
                self.assertEqual(self.ws("cat", "latest", "f").out, edited)
                self.assertIn("all is saved", self.ws("status").out)
                self.file.write_bytes(content)
                self.write("f", "one", base=self.folder)
                self.ws("init", "--force")
                self.assertEqual(self.text("f"), edited)
                self.ws("backup")

    def test_one_of_an_older_program_is_read(self):
        old = json.loads(self.file.read_text())
        self.assertIn("check", old)
        del old["check"]
        self.file.write_text(json.dumps(old) + "\n")
        self.assertIn("all is saved", self.ws("status").out)
        self.ws("backup")

    def test_one_that_is_missing_is_told_as_such(self):  # P-B8
        self.file.unlink()
        done = self.refused("workspace", "backup", "work", status=3, says=[str(self.folder), "workspace.json", "init work"])
        self.assertNotIn(f"no '{self.folder}'", done.err)
        self.write("f", "edited", base=self.folder)
        self.kept("f", "edited", "init", "work", says=("--force",))


if __name__ == "__main__":
    main()
