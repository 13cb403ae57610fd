# SPDX-License-Identifier: Apache-2.0
"""Workspaces when disks fill up and files are larger than old numbers can say."""
import os
import shutil
import subprocess
import unittest

from overcap_rig import DEADLINE, main
from test_workspace import WorkspaceRig

MEBI = 1 << 20


class FullDisk(WorkspaceRig):
    def small_disk(self, name, size):
        path = self.root / name
        path.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m,mode=0700", "overcap-e2e", str(path)], capture_output=True,
                                 timeout=20, check=False)
        if mounted.returncode != 0:
            raise unittest.SkipTest(f"NOT TESTED: cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(path)], timeout=20, check=True)
        return path

    def enlarge(self, disk, size):
        subprocess.run(["mount", "-o", f"remount,size={size}m", str(disk)], timeout=20, check=True)

    def one_line(self, done):
        self.assertLessEqual(len(done.err.strip().splitlines()), 2, str(done))  # and a hint

    def test_a_store_that_fills_up_keeps_its_snapshots_and_the_next_backup_uses_what_was_written(self):
        store = self.small_disk("store-disk", 40)  # more than two packs, which are written at a time
        self.fill()
        self.create("--adopt", "--store", str(store / "store"))
        before = self.picture(self.folder)
        for number in range(60):
            self.write(f"new/{number}", os.urandom(MEBI), base=self.folder)
        self.one_line(self.refused("workspace", "backup", cwd=self.folder, status=5, says=["No space left", str(store)]))
        self.assertEqual(len(self.snapshots()), 1)
        self.ws("restore", "latest", "--to", str(self.disk / "old"))
        self.assertEqual(self.picture(self.disk / "old"), before)
        self.enlarge(store, 120)
        self.ws("verify", "--read-data")
        written = self.done("backup")["stored_bytes"]
        self.assertLess(written, 60 * MEBI - 4 * MEBI)  # what the first try stored counts
        self.ws("restore", "latest", "--to", str(self.disk / "new"))
        self.assertEqual(self.picture(self.disk / "new"), self.picture(self.folder))

    def test_a_first_backup_that_does_not_fit_makes_no_workspace(self):
        store = self.small_disk("store-disk", 8)
        for number in range(20):
            self.write(f"new/{number}", os.urandom(MEBI), base=self.folder)
        self.one_line(self.refused("workspace", "create", "work", "--at", str(self.folder), "--adopt", "--store", str(store / "store"), status=5,
                                   says=["No space left"]))
        self.assertEqual(self.ok("workspace", "list", "--json").json(), [])
        self.assertFalse((self.folder / ".overcap").exists())

    def test_a_disk_too_small_for_a_restore_is_told_before_anything_is_written(self):
        target = self.small_disk("small", 8)
        self.write("large", os.urandom(20 * MEBI), base=self.folder)
        self.create("--adopt")
        self.one_line(self.refused("workspace", "restore", "latest", "--to", str(target / "back"), cwd=self.folder, status=5, says="MiB"))
        self.assertEqual(list(target.rglob("*")), [])
        self.enlarge(target, 40)
        self.ws("restore", "latest", "--to", str(target / "back"))
        self.assertEqual(self.picture(target / "back"), self.picture(self.folder))

    def test_a_target_that_is_not_empty_is_refused(self):
        self.fill()
        self.create("--adopt")
        other = self.write("other/mine.txt", "mine", base=self.disk).parent
        self.one_line(self.refused("workspace", "restore", "latest", "--to", str(other), cwd=self.folder, status=6, says=["not empty", str(other)]))
        self.assertEqual([path.name for path in other.iterdir()], ["mine.txt"])


class Killed(WorkspaceRig):
    def test_a_restore_elsewhere_that_was_killed_is_continued_by_the_same_command(self):
        for number in range(4000):
            self.write(f"many/{number}", os.urandom(8_000), base=self.folder)
        self.create("--adopt")
        back = self.disk / "back"
        words = ("workspace", "restore", "latest", "--to", str(back))
        restore = self.start(*words, cwd=self.folder)
        self.until(lambda: (back / "many").exists() and len(os.listdir(back / "many")) > 50, "some files to be there")
        restore.kill()
        restore.wait(DEADLINE)
        self.assertLess(len(os.listdir(back / "many")), 4000, "it was done before it could be killed")
        self.ws(*words[1:])
        self.assertEqual(self.picture(back), self.picture(self.folder))
        self.assertFalse((back / ".overcap").exists())


class Large(WorkspaceRig):
    def test_a_file_beyond_4_gib_with_a_hole_comes_back(self):
        size = (5 << 30) + 12_345
        self.write("small", "x", base=self.folder)
        with open(self.folder / "large", "wb") as large:
            for offset in (0, (4 << 30) - 5, size - 100_000):
                large.seek(offset)
                large.write(os.urandom(100_000))
            self.assertEqual(os.fstat(large.fileno()).st_size, size)
        self.create("--adopt", deadline=4 * DEADLINE)
        back = self.disk / "back"
        self.ws("restore", "latest", "--to", str(back), deadline=4 * DEADLINE)
        self.assertEqual((back / "large").stat().st_size, size)
        self.assertLess((back / "large").stat().st_blocks * 512, 4 * MEBI)
        with open(self.folder / "large", "rb") as one, open(back / "large", "rb") as other:
            for offset in (0, 1 << 30, (4 << 30) - 5, (4 << 30) + 50_000, size - 100_000):
                one.seek(offset), other.seek(offset)
                self.assertEqual(one.read(200_000), other.read(200_000), offset)
        if shutil.which("cmp"):
            subprocess.run(["cmp", str(self.folder / "large"), str(back / "large")], check=True, timeout=8 * DEADLINE)


if __name__ == "__main__":
    main()
