# SPDX-License-Identifier: Apache-2.0
"""Workspaces as tars and from tars: what other programs write is read, what is written they read, nothing is half done."""
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
import unittest

from overcap_rig import Rig, main

LONG = "long/" + "/".join(["component-of-forty-characters-and-more-xx"] * 8) + "/file"
NS = 1_600_000_000_123_456_789


def tool(*argv, **options):
    return subprocess.run(argv, check=True, capture_output=True, timeout=60, **options).stdout


class TarRig(Rig):
    def setUp(self):
        super().setUp()
        self.disk = self.root / "disk"
        self.disk.mkdir()
        self.folder = self.disk / "work"

    def fill(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.write("src/model.py", "print(1)\n", base=folder)
        self.write("big.bin", os.urandom(3_000_000), base=folder)
        self.write("run.sh", "#!/bin/sh\n", mode=0o755, base=folder)
        self.write(LONG, "far away\n", base=folder)
        self.write(os.fsdecode(b"odd-\xff\xfe " + b"n" * 120), "not UTF-8\n", base=folder)
        (folder / "empty").mkdir()
        os.symlink("src/" + "t" * 150, folder / "link")
        os.link(folder / "run.sh", folder / "second-name.sh")
        with open(folder / "sparse", "wb") as f:
            f.truncate(20_000_000)
            f.seek(7_000_000)
            f.write(b"data in the middle" * 1000)
        for path in (folder / "run.sh", folder / "src"):
            os.utime(path, ns=(1, NS))

    def picture(self, folder, times=1):
        """Everything of a folder but .overcap; `times`: how many nanoseconds one step of the time stamps is."""
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
                        content = (info.st_size, hashlib.sha256(f.read()).hexdigest(), info.st_nlink)
                facts[os.path.relpath(path, os.fsencode(folder))] = (info.st_mode, info.st_mtime_ns // times, content)
        return facts

    def create(self):
        self.fill(self.folder)
        self.ok("workspace", "create", "work", "--at", str(self.folder), "--adopt")

    def export(self, name, *flags):
        path = self.root / name
        self.ok("workspace", "export", "--name", "work", "--tar", str(path), *flags)
        return path

    def imported(self, tar, name, *flags):
        """Imports and unpacks it; the folder."""
        folder = self.disk / name
        self.ok("workspace", "import", str(tar), "--name", name, "--at", str(folder), *flags)
        self.ok("workspace", "init", name)
        return folder


class Export(TarRig):
    def test_other_programs_unpack_what_was_exported(self):
        self.create()
        wanted = self.picture(self.folder)
        plain = self.export("a.tar")
        for name, command in (("a.tar.lz4", ["lz4", "-dc"]), ("a.tar.zst", ["zstd", "-dc"]), ("a.tgz", ["gzip", "-dc"])):
            self.assertEqual(tool(*command, str(self.export(name))), plain.read_bytes(), name)
        unpacked = self.root / "gnu"
        unpacked.mkdir()
        tool("tar", "-C", str(unpacked), "-xpf", str(plain))
        self.assertEqual(self.picture(unpacked), wanted)
        self.assertLess(os.stat(unpacked / "sparse").st_blocks * 512, 2_000_000)
        unpacked = self.root / "python"
        with tarfile.open(plain) as tar:
            tar.extractall(unpacked)
        # Python's times are floating point numbers.
        self.assertEqual(self.picture(unpacked, 1000).keys(), wanted.keys())
        self.assertEqual({k: (v[0], v[2]) for k, v in self.picture(unpacked).items()},
                         {k: (v[0], v[2]) for k, v in wanted.items()})

    def test_bsdtar_reads_what_is_exported(self):
        if not shutil.which("bsdtar"):
            self.skipTest("NOT TESTED: bsdtar (libarchive-tools) is not installed")
        self.create()
        wanted = self.picture(self.folder)
        unpacked = self.root / "bsd"
        unpacked.mkdir()
        tool("bsdtar", "-C", str(unpacked), "-xpf", str(self.export("a.tar")))
        self.assertEqual(self.picture(unpacked), wanted)

    def test_attributes_and_acls_reach_gnu_tar_and_come_back(self):
        self.fill(self.folder)
        probe = self.folder / "run.sh"
        try:
            os.setxattr(probe, "user.note", b"bytes \x00\n=\xff")
            tool("setfacl", "-m", "u:12345:r--", str(probe))
            tool("setfacl", "-d", "-m", "u:12345:rwx", str(self.folder / "src"))
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"NOT TESTED: no attributes or ACLs here: {error}")
        self.ok("workspace", "create", "work", "--at", str(self.folder), "--adopt")
        out = self.export("a.tar")
        unpacked = self.root / "gnu"
        unpacked.mkdir()
        tool("tar", "-C", str(unpacked), "--xattrs", "--acls", "-xpf", str(out))
        self.assertEqual(os.getxattr(unpacked / "run.sh", "user.note"), b"bytes \x00\n=\xff")
        for name in ("run.sh", "src"):
            self.assertEqual(tool("getfacl", "-cpn", str(unpacked / name)), tool("getfacl", "-cpn", str(self.folder / name)))
        again = self.root / "again.tar"
        tool("tar", "-C", str(unpacked), "--xattrs", "--acls", "-cf", str(again), ".")
        back = self.imported(again, "back")
        self.assertEqual(os.getxattr(back / "run.sh", "user.note"), b"bytes \x00\n=\xff")
        for name in ("run.sh", "src"):
            self.assertEqual(tool("getfacl", "-cpn", str(back / name)), tool("getfacl", "-cpn", str(self.folder / name)))

    def test_the_file_is_there_only_when_it_is_whole_and_never_replaced_unasked(self):
        self.create()
        out = self.export("a.tar.lz4")
        before = out.read_bytes()
        self.refused("workspace", "export", "--name", "work", "--tar", str(out), status=6, says="is there already")
        self.assertEqual(out.read_bytes(), before)
        self.export("a.tar.lz4", "--force")
        self.refused("workspace", "export", "--name", "work", "--tar", str(self.root / "a.zip"), status=2, says=".tar.lz4")
        self.refused("workspace", "export", "nosuch", "--name", "work", "--tar", str(self.root / "b.tar"), status=3)
        self.refused("workspace", "export", "--name", "work", "--tar", str(self.root / "no/b.tar"), status=3)
        for pack in (self.home / "store/packs").rglob("*"):
            if pack.is_file():
                damaged = bytearray(pack.read_bytes())
                damaged[len(damaged) // 3] ^= 16
                pack.chmod(0o600)
                pack.write_bytes(damaged)
        self.refused("workspace", "export", "--name", "work", "--tar", str(self.root / "b.tar"), status=None)
        self.assertEqual(sorted(p.name for p in self.root.iterdir() if ".tar" in p.name), ["a.tar.lz4"])

    def test_a_pipe_gets_all_of_it(self):
        self.create()
        done = self.ok("workspace", "export", "--name", "work", "--tar", "-", "--compress", "zstd")
        with tarfile.open(fileobj=io.BytesIO(tool("zstd", "-dc", input=done.raw_out))) as tar:
            self.assertIn("src/model.py", tar.getnames())


class Import(TarRig):
    def test_tars_of_other_programs_become_workspaces(self):
        source = self.root / "source"
        self.fill(source)
        wanted = self.picture(source)
        for number, form in enumerate(("posix", "gnu")):
            tar = self.root / f"{form}.tar"
            tool("tar", "-C", str(source), "-S", f"--format={form}", "-cf", str(tar), ".")
            folder = self.imported(tar, f"g{number}")
            coarse = 1 if form == "posix" else 10**9
            self.assertEqual(self.picture(folder, coarse), self.picture(source, coarse), form)
        self.assertLess(os.stat(self.disk / "g1" / "sparse").st_blocks * 512, 2_000_000)
        for version in ("0.0", "0.1", "1.0"):
            tar = self.root / f"sparse-{version}.tar"
            tool("tar", "-C", str(source), "-S", "--format=posix", f"--sparse-version={version}", "-cf", str(tar), ".")
            self.assertEqual(self.picture(self.imported(tar, f"s{version}")), wanted, version)
        self.assertEqual(wanted[b"run.sh"][1], NS)

    def test_tars_of_python_are_read_whatever_their_format_and_compression(self):
        source = self.root / "source"
        self.fill(source)
        os.unlink(source / os.fsdecode(b"odd-\xff\xfe " + b"n" * 120))  # Python's pax headers cannot keep it
        for number, (form, mode) in enumerate(((tarfile.PAX_FORMAT, "w:gz"), (tarfile.GNU_FORMAT, "w"))):
            tar = self.root / f"python{number}"
            with tarfile.open(tar, mode, format=form) as out:
                out.add(source, "top/work")
            folder = self.imported(tar, f"p{number}", "--strip", "2")
            self.assertEqual({k: (v[0], v[2]) for k, v in self.picture(folder).items()},
                             {k: (v[0], v[2]) for k, v in self.picture(source).items()})

    def test_entries_may_come_in_any_order_and_the_last_of_a_name_counts(self):
        tar = self.root / "x.tar"
        with tarfile.open(tar, "w") as out:
            def add(name, data=b"", **fields):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                for key, value in fields.items():
                    setattr(info, key, value)
                out.addfile(info, io.BytesIO(data))
            add("z/y/x", b"deep")
            add("hard", type=tarfile.LNKTYPE, linkname="z/y/x")
            add("twice", b"old")
            add("z/", type=tarfile.DIRTYPE, mode=0o711)
            add("./twice", b"new")
            add(".overcap/workspace.json", b"{}")
        folder = self.imported(tar, "x")
        self.assertEqual((folder / "twice").read_bytes(), b"new")
        self.assertEqual(self.mode_of(folder / "z"), 0o711)
        self.assertTrue((folder / "hard").samefile(folder / "z/y/x"))

    def test_a_round_trip_keeps_everything_and_stores_nothing_twice(self):
        self.create()
        done = self.ok("workspace", "import", str(self.export("a.tar.zst")), "--name", "two", "--at",
                       str(self.disk / "two"), "--json")
        last = json.loads(done.out.splitlines()[-1])
        self.assertEqual((last["event"], last["new_bytes"]), ("done", 0))
        self.ok("workspace", "init", "two")
        self.assertEqual(self.picture(self.disk / "two"), self.picture(self.folder))

    def test_more_of_the_same_workspace_is_a_newer_snapshot(self):
        self.create()
        tar = self.export("work.tar.lz4")
        self.refused("workspace", "import", str(tar), status=6, says="already")
        self.ok("workspace", "import", str(tar), "--add", "-m", "again")
        self.assertEqual(len(self.ok("workspace", "ls", "--json", cwd=self.folder).json()), 2)


class BadTars(TarRig):
    def refuse(self, data, status, *says):
        tar = self.root / "bad.tar"
        tar.write_bytes(data)
        done = self.refused("workspace", "import", str(tar), "--name", "bad", "--at", str(self.disk / "bad"), status=status,
                            says=says)
        self.assertEqual(len(done.err.strip().splitlines()), 2 if "hint:" in done.err else 1, str(done))
        self.assertEqual(self.ok("workspace", "list", "--json").json(), [])
        snapshots = self.home / "store/snapshots"
        self.assertEqual([p for p in snapshots.rglob("*") if p.is_file()] if snapshots.exists() else [], [])

    def tar(self, *entries):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, fields in (("good", {}), *entries):
                info = tarfile.TarInfo(name)
                for key, value in fields.items():
                    setattr(info, key, value)
                tar.addfile(info, io.BytesIO(b"x" * info.size))
        return out.getvalue()

    def test_what_no_workspace_may_have_is_refused(self):
        self.refuse(self.tar(("/etc/passwd", {})), 2, "absolute", "/etc/passwd")
        self.refuse(self.tar(("a/../../b", {})), 2, "'..'")
        self.refuse(self.tar(("dev", {"type": tarfile.CHRTYPE})), 2, "'dev' is a device", "--skip-devices")
        self.refuse(self.tar(("pipe", {"type": tarfile.FIFOTYPE})), 2, "a pipe")
        self.refuse(self.tar(("good/x", {})), 7, "'good'")
        self.refuse(self.tar(("h", {"type": tarfile.LNKTYPE, "linkname": "nowhere"})), 7, "nowhere")
        self.refuse(self.tar(("l", {"type": tarfile.SYMTYPE, "linkname": "/etc"}), ("l/passwd", {})), 7, "'l'")

    def test_devices_can_be_left_out(self):
        tar = self.root / "d.tar"
        tar.write_bytes(self.tar(("dev", {"type": tarfile.BLKTYPE}), ("also", {})))
        self.assertEqual(sorted(os.listdir(self.imported(tar, "d", "--skip-devices"))), [".overcap", "also", "good"])

    def test_what_is_cut_off_or_damaged_is_refused(self):
        whole = self.tar(("file", {"size": 5000}))
        self.refuse(b"", 7, "empty")
        self.refuse(b"no tar at all" * 100, 7, "no tar")
        self.refuse(whole[:3000], 7, "cut off")
        self.refuse(whole[:512], 7, "cut off", "end mark")
        self.refuse(whole[:520] + b"\xff" + whole[521:], 7, "damaged", "'good'")
        self.refuse(gzip.compress(whole)[:-30], 7, "cut off")
        self.refuse(tool("zstd", "-c", input=whole)[:-3], 7, "cut off")
        damaged = bytearray(tool("lz4", "-c", input=whole))
        damaged[len(damaged) // 2] ^= 1
        self.refuse(bytes(damaged), 7, "damaged")
        self.refuse(tool("xz", "-c", input=whole) if shutil.which("xz") else b"\xfd7zXZ\0", 2, "xz")

    def test_a_file_that_is_missing_is_named(self):
        self.refused("workspace", "import", "/nowhere/x.tar", status=3, says="/nowhere/x.tar")


if __name__ == "__main__":
    main()
