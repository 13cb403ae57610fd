# SPDX-License-Identifier: Apache-2.0
"""What the tests of `overcap store` share: trees of odd files, and what must hold of a copy wherever it goes."""
import os
import pathlib
import random
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from overcap_rig import BINARY, DEADLINE, PYTHON, Rig, main, needs_root  # noqa: E402,F401  (for the tests)

MIB = 1 << 20


def make_tree(folder, large=20 * MIB, seed=1):
    """Files with odd names, an empty one, one of several parts; {name: bytes}."""
    rng = random.Random(seed)
    files = {"plain.txt": b"hello\n", "empty": b"", "sub/deep/er/x": b"x" * 1000, "sub/with blank": b"1",
             ".hidden/.file": b"2", "ümläut/Ωmega": b"3", "a+b&c=d?e#f%41": b"4", "quote'\"": b"5", "sub.d": b"6", "sub-d": b"7"}
    files |= {f"many/{i:03d}": rng.randbytes(rng.randrange(5000)) for i in range(60)}
    files["large"] = rng.randbytes(large)
    for name, content in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return files


def tree(folder):
    """{name: bytes} of all files, those on their way too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file()}


class StoreRig(Rig):
    """Subclasses that test a kind of store give `here(name)`: a fresh location of it."""
    maxDiff = 2000

    def events(self, *args, status=0, **options):
        """The events of a command with --json; the last one is `done`."""
        done = self.overcap(*args, "--json", **options)
        self.assertEqual(done.status, status, str(done))
        return [__import__("json").loads(line) for line in done.out.splitlines()]

    def done(self, *args, **options):
        last = self.events(*args, **options)[-1]
        self.assertEqual(last["event"], "done")
        return last

    def kill_copies(self, argv, times, seed=1, env=None):
        """Starts the copy and kills it at random moments; how often it was killed before it was done."""
        rng, killed = random.Random(seed), 0
        for _ in range(times):
            process = self.start(*argv, env=env)
            try:
                process.wait(timeout=rng.uniform(0.005, 0.12))
            except Exception:  # noqa: BLE001  it still runs: that is what was wanted
                process.send_signal(signal.SIGKILL)
                killed += 1
            process.communicate()
        return killed


class CopiesHold:
    """What every kind of store must do; for classes beside StoreRig."""

    def here(self, name):
        raise NotImplementedError

    def test_there_and_back(self):
        files = make_tree(self.project / "from")
        there = self.here("copy")
        up = self.done("store", "cp", "from", there)
        self.assertEqual((up["copied"], up["failed"], up["left_out"]), (len(files), 0, 0))
        self.assertEqual(up["copied_bytes"], sum(map(len, files.values())))
        again = self.done("store", "cp", "from", there)
        self.assertEqual((again["copied"], again["same"]), (0, len(files)))
        down = self.done("store", "cp", there, "back")
        self.assertEqual(down["copied"], len(files))
        self.assertEqual(tree(self.project / "back"), files)
        self.assertEqual(self.done("store", "cp", there, "back")["copied"], 0)
        check = self.done("store", "check", "from", there)
        self.assertEqual((check["same"], check["different"], check["missing"], check["extra"]), (len(files), 0, 0, 0))

    def test_one_file(self):
        (self.project / "model.pt").write_bytes(b"weights")
        there = self.here("one")
        self.ok("store", "cp", "model.pt", there + "/")
        self.assertEqual(self.ok("store", "stat", there + "/model.pt", "--json").json()["bytes"], 7)
        self.ok("store", "cp", "model.pt", there + "/renamed.pt")
        self.ok("store", "cp", there + "/renamed.pt", "back.pt")
        for other in (there + "/renamed.pt", there + "/"):
            check = self.done("store", "check", "model.pt", other)
            self.assertEqual((check["same"], check["same_bytes"], check["different"], check["missing"]), (1, 7, 0, 0))
        (self.project / "model2.pt").write_bytes(b"WEIGHTS")
        self.assertEqual(self.done("store", "check", "model2.pt", there + "/renamed.pt", status=6)["different"], 1)
        self.assertEqual(self.done("store", "check", "model2.pt", there + "/", status=6)["missing"], 1)
        self.assertEqual((self.project / "back.pt").read_bytes(), b"weights")
        (self.project / "into").mkdir()
        self.ok("store", "cp", there + "/renamed.pt", "into")
        self.assertEqual(tree(self.project / "into"), {"renamed.pt": b"weights"})
        self.assertEqual(self.ok("store", "ls", there).out.split(), ["model.pt", "renamed.pt"])
        self.ok("store", "rm", there + "/model.pt")
        self.assertEqual(self.ok("store", "ls", there).out.split(), ["renamed.pt"])
        self.refused("store", "stat", there + "/model.pt", status=3)

    def test_through_pipes(self):
        there = self.here("pipes")
        for name, content in {"small": b"weights", "empty": b"", "large": random.Random(3).randbytes(21 * MIB)}.items():
            (self.project / "content").write_bytes(content)
            for _ in range(2):  # also over one that is there
                with subprocess.Popen(["cat", str(self.project / "content")], stdout=subprocess.PIPE) as cat:
                    self.assertEqual(self.done("store", "cp", "-", f"{there}/{name}", stdin=cat.stdout)["copied"], 1)
            self.assertEqual(self.ok("store", "cp", f"{there}/{name}", "-").raw_out, content)
        self.refused("store", "cp", there, "-", status=2, says="is a folder")
        self.refused("store", "cp", f"{there}/none", "-", status=3)
        self.refused("store", "cp", f"{there}/small", "-", "--json", status=2, says="--json")
        self.refused("store", "cp", "-", "-", status=2, says="not both")
        self.refused("store", "cp", "-", f"{there}/", status=2, says="stdin has no name")
        self.assertFalse((self.project / "-").exists())

    def test_sync_copies_what_changed_and_removes_what_is_gone(self):
        source = self.project / "from"
        make_tree(source, large=100)
        there = self.here("sync")
        self.ok("store", "sync", "from", there)
        (source / "plain.txt").write_bytes(b"changed now\n")
        (source / "new").write_bytes(b"new")
        (source / "sub/with blank").unlink()
        steps = self.events("store", "sync", "from", there, "--delete", "--dry-run")[:-1]
        self.assertEqual({(step["action"], step["key"]) for step in steps},
                         {("copy", "plain.txt"), ("copy", "new"), ("remove", "sub/with blank")})
        done = self.done("store", "sync", "from", there, "--delete")
        self.assertEqual((done["copied"], done["removed"], done["extra"]), (2, 1, 0))
        self.ok("store", "cp", there, "back")
        self.assertEqual(tree(self.project / "back"), tree(source))
        self.assertEqual(self.done("store", "sync", "from", there, "--delete")["copied"], 0)

    def test_listing_and_sums(self):
        make_tree(self.project / "from", large=1000)
        there = self.here("list")
        self.ok("store", "cp", "from", there)
        names = self.ok("store", "ls", there).out.splitlines()
        self.assertEqual(names, sorted(names, key=lambda name: name.encode()))
        self.assertIn("sub/", names)
        self.assertIn("sub.d", names)
        self.assertEqual(len(self.ok("store", "ls", "-R", there).out.splitlines()), 71)
        sums = self.ok("store", "du", there, "--json").json()
        self.assertEqual((sums["files"], {f["name"]: f["files"] for f in sums["folders"]}["many/"]), (71, 60))
        self.ok("store", "rm", "-r", there + "/many")
        self.assertEqual(self.ok("store", "du", there, "--json").json()["files"], 11)
        self.refused("store", "rm", there, says="rm -r")

    def test_killed_copies_go_on_and_copy_no_whole_file_twice(self):
        files = make_tree(self.project / "from", large=60 * MIB)
        there = self.here("killed")
        self.kill_copies(["store", "cp", "from", there], 8)
        copied = {entry["name"] for entry in self.listed(there)}
        up = self.done("store", "cp", "from", there)
        self.assertEqual(up["copied"] + up["same"], len(files))
        self.assertLessEqual(up["copied"], len(files) - len(copied) + 16)
        self.kill_copies(["store", "cp", there, "back"], 8, seed=2)
        self.ok("store", "cp", there, "back")
        self.assertEqual({n: c for n, c in tree(self.project / "back").items() if "/.overcap-" not in "/" + n}, files)

    def listed(self, there):
        done = self.overcap("store", "ls", "-R", there, "--json")
        return [__import__("json").loads(line) for line in done.out.splitlines()] if done.status == 0 else []

    def test_a_workspace_lives_there(self):
        folder = self.root / "space"
        self.ok("workspace", "create", "w", "--at", str(folder), "--store", self.here("repository"))
        (folder / "code.py").write_text("print(1)\n")
        (folder / "data").write_bytes(random.Random(1).randbytes(3 * MIB))
        self.ok("workspace", "backup", "w")
        self.ok("workspace", "verify", "w")
        (folder / "code.py").unlink()
        (folder / "data").write_bytes(b"spoilt")
        self.ok("workspace", "init", "w", "--force")
        self.assertEqual((folder / "code.py").read_text(), "print(1)\n")
        self.assertEqual((folder / "data").stat().st_size, 3 * MIB)
        self.assertIn("w", self.ok("workspace", "list").out)
