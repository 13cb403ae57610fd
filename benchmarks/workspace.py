# SPDX-License-Identifier: Apache-2.0
"""What is measured of workspaces: a folder like a large checkout with its build (workspace_corpus.py), beside `tar | lz4` and
the backup programs that people use. The page cache is warm; what others left to be written is written before each run.

Every round has folders of its own, and nothing is removed before the end: ext4 takes no inode again within minutes of its
removal but looks at each such one, so that a tree made after another was removed costs several times as much, whoever makes it.
That is about 50 GB of disk.

All of it takes about ten minutes. In pieces: OVERCAP_BENCH_ROUNDS=1 (3 by default), OVERCAP_BENCH_PEERS=restic (or
borg,rsync; none; all of them by default)."""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import measure
from rows import Row, peer

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("restic", "borg", "rsync")


class Times(dict):
    """{name: [seconds, ...]}, and in `memory` the most MB that a run of `overcap` took."""

    def __init__(self):
        super().__init__()
        self.memory = {}

    def add(self, name, seconds):
        self.setdefault(name, []).append(seconds)

    def median(self, name):
        return statistics.median(self[name])

    def spread(self, name):
        return ", ".join(f"{seconds:.1f} s" for seconds in self[name])


class Bench:
    def __init__(self, setting, folder):
        self.setting, self.folder, self.times = setting, folder, Times()
        self.rounds = int(os.environ.get("OVERCAP_BENCH_ROUNDS", setting.size(3, 1)))
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith(("OVERCAP", "SLURM"))},
                    "NO_COLOR": "1", "OVERCAP_CONFIG": "/dev/null", "TMPDIR": str(folder)}

    def path(self, name):
        return self.folder / name

    def corpus(self, *words):
        subprocess.run([sys.executable, HERE / "workspace_corpus.py", *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def timed(self, name, argv, **more):
        os.sync()
        self.times.add(name, measure.seconds(argv, **more))

    def pipe(self, name, command, *words):
        """A pipe of programs, as people type it; the words are its arguments."""
        os.sync()
        self.times.add(name, measure.seconds(["sh", "-c", command, "sh", *words]))

    def overcap(self, name, *words, cwd=None):
        os.sync()
        begin = measure.now()
        argv = [str(self.setting.overcap), *map(str, words)]
        with open(os.devnull, "r+b") as null:
            child = subprocess.Popen(argv, env=self.env, cwd=cwd or self.folder, stdin=null, stdout=null)
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise RuntimeError(f"{argv}: exit status {child.returncode}")
        if name:
            self.times.add(name, measure.now() - begin)
            self.times.memory[name] = max(self.times.memory.get(name, 0), usage.ru_maxrss / 1000)

    def warm(self, *names):
        """Packs are written past the page cache, archives through it: now both are in it."""
        for name in names:
            for file in self.path(name).rglob("*") if self.path(name).is_dir() else [self.path(name)]:
                if file.is_file():
                    with open(file, "rb") as bytes_of_it:
                        while bytes_of_it.read(1 << 20):  # little at a time: a child's memory counts from its parent's
                            pass

    def check_space(self):
        """In all: the first version, per round a copy, its repository, two restored trees; per peer about three; two archives."""
        tree = sum(path.lstat().st_size for path in self.path("v1").rglob("*"))
        needed = tree * (1.5 + 3.7 * self.rounds + 3.1 * len(PEERS))
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise RuntimeError(f"'{self.folder}' has {free / 1e9:.0f} GB free and {needed / 1e9:.0f} GB are needed: "
                               "set TMPDIR, or OVERCAP_BENCH_ROUNDS and OVERCAP_BENCH_PEERS for less")


def lives(bench, number):
    """One life of a workspace: made, saved again unchanged and changed, restored in full and in part."""
    times, root, work = bench.times, bench.path(f"home{number}"), bench.path(f"work{number}")
    bench.env["OVERCAP_HOME"] = str(root)
    shutil.copytree(bench.path("v1"), work, symlinks=True)
    bench.pipe("tar | lz4", 'tar c -C "$1" . | lz4 -q > "$2"', work, bench.path("v1.tar.lz4"))
    bench.overcap("first", "workspace", "create", "bench", "--at", work, "--adopt", "--env", "none")
    stored = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    times.add("stored MB", stored / 1e6)
    times.add("tar.lz4 MB", bench.path("v1.tar.lz4").stat().st_size / 1e6)
    bench.overcap(None, "workspace", "backup", "bench")  # now no file is so new that its time cannot be trusted
    for _ in range(3):
        bench.timed("statx walk", [bench.setting.programs / "statx_walk", work])
        bench.overcap("unchanged", "workspace", "backup", "bench")
    bench.corpus(work, "--change", 2, "--seed", 2)
    bench.overcap("second", "workspace", "backup", "bench")
    bench.pipe("tar | lz4 again", 'tar c -C "$1" . | lz4 -q > "$2"', work, bench.path("v2.tar.lz4"))
    full_restores(bench, number)
    for _ in range(2):
        bench.overcap("98 % there", "workspace", "restore", "latest~1", "--name", "bench")
        bench.overcap("98 % there", "workspace", "restore", "latest", "--name", "bench")
    check_same(work, bench.path(f"restored{number}"))


def full_restores(bench, number):
    """Ours and tar's, into fresh folders; who is first changes with the rounds."""
    restored, tarred = bench.path(f"restored{number}"), bench.path(f"tarred{number}")
    tarred.mkdir()

    def ours():
        bench.warm(f"home{number}")
        bench.overcap("restore", "workspace", "restore", "latest", "--name", "bench", "--to", restored)

    def tars():
        bench.warm("v2.tar.lz4")
        bench.pipe("lz4 -d | tar x", 'lz4 -dq < "$1" | tar x -C "$2"', bench.path("v2.tar.lz4"), tarred)

    for restore in (ours, tars) if number % 2 == 0 else (tars, ours):
        restore()


def check_same(work, restored):
    same = subprocess.run(["rsync", "-aHAXn", "--checksum", "--delete", "-i", "--exclude=/.overcap", f"{work}/", f"{restored}/"],
                          capture_output=True, text=True, timeout=600)
    if same.returncode != 0 or same.stdout:
        raise RuntimeError(f"what was restored differs: {same.stdout[:400]}{same.stderr[:400]}")


def wanted_peer(name):
    wanted = os.environ.get("OVERCAP_BENCH_PEERS", ",".join(PEERS)).split(",")
    return peer(name) if name in wanted else None


def peers(bench):
    """Once each: they take long."""

    def tool(name, make, save, restore, env):
        changed, restored = bench.path(f"{name}-work"), bench.path(f"{name}-restored")
        for folder in (bench.path(name), restored):
            folder.mkdir()
        shutil.copytree(bench.path("v1"), changed, symlinks=True)
        more = {"stderr": subprocess.DEVNULL, "env": {**bench.env, **env}, "cwd": changed}
        measure.seconds(make, **more)
        bench.timed(f"{name} first", save, **more)
        bench.corpus(changed, "--change", 2, "--seed", 2)
        bench.timed(f"{name} second", save, **more)
        bench.timed(f"{name} restore", restore, **{**more, "cwd": restored})

    if restic := wanted_peer("restic"):
        tool("restic", [restic, "init"], [restic, "backup", "-q", "."], [restic, "restore", "-q", "latest", "--target", "."],
             {"RESTIC_REPOSITORY": str(bench.path("restic")), "RESTIC_PASSWORD": "x", "RESTIC_CACHE_DIR": str(bench.path("restic-cache"))})
    if borg := wanted_peer("borg"):
        repository = str(bench.path("borg"))
        tool("borg", [borg, "init", "-e", "none", repository], [borg, "create", "::{now:%H%M%S%f}", "."],
             ["sh", "-c", '"$1" extract "::$("$1" list --last 1 --short)"', "sh", borg],
             {"BORG_REPO": repository, "BORG_BASE_DIR": str(bench.path("borg-base")), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"})
    if rsync := wanted_peer("rsync"):
        repository = str(bench.path("rsync"))
        tool("rsync", ["true"], [rsync, "-a", "--delete", "./", repository], [rsync, "-a", f"{repository}/", "./"], {})


def capture(bench):
    """What `submit` adds for the code of a folder, beside that of an empty one."""
    empty, work = bench.path("empty"), bench.path("work0")
    empty.mkdir()
    bench.env["OVERCAP_HOME"] = str(bench.path("jobs-home"))
    shutil.rmtree(work / ".overcap", ignore_errors=True)
    for _ in range(2):
        bench.overcap(None, "-c", "local", "submit", "--dry-run", "true", cwd=work)
    for _ in range(bench.setting.size(7, 2)):
        for name, folder in (("capture", work), ("nothing to capture", empty)):
            bench.overcap(name, "-c", "local", "submit", "--dry-run", "true", cwd=folder)


def beside(times, kind):
    return ", ".join(f"{name} {times.median(f'{name} {kind}'):.1f} s" for name in PEERS if f"{name} {kind}" in times)


def workspace(setting):
    with tempfile.TemporaryDirectory(prefix="ocb-") as folder:
        bench = Bench(setting, pathlib.Path(folder))
        bench.corpus(bench.path("v1"), "--scale", setting.size(1, 0.02))
        bench.check_space()
        for number in range(bench.rounds):
            lives(bench, number)
        capture(bench)
        peers(bench)
    yield from table(bench.times)


def table(times):
    at = times.median
    yield Row("first backup, times of `tar | lz4`", at("first") / at("tar | lz4"), "x", 0.7, 0.4,
              detail=f"overcap {at('first'):.1f} s, {at('stored MB'):,.0f} MB; tar | lz4 {at('tar | lz4'):.1f} s, "
                     f"{at('tar.lz4 MB'):,.0f} MB; {beside(times, 'first')}")
    yield Row("second backup, 2 % changed: how many times faster than `tar | lz4` again", at("tar | lz4 again") / at("second"), "x",
              8, 25, True, detail=f"overcap {at('second'):.2f} s, tar | lz4 {at('tar | lz4 again'):.1f} s, {beside(times, 'second')}")
    yield Row("backup with nothing changed, times of a bare walk on two threads", at("unchanged") / at("statx walk"), "x", 4, 1.5,
              detail=f"overcap {at('unchanged'):.3f} s, walk {at('statx walk'):.3f} s")
    yield Row("full restore, times of `lz4 -d | tar x`", at("restore") / at("lz4 -d | tar x"), "x", 0.6, 0.42,
              detail=f"overcap {at('restore'):.1f} s (each round: {times.spread('restore')}), lz4 -d | tar x {at('lz4 -d | tar x'):.1f} s "
                     f"({times.spread('lz4 -d | tar x')}), {beside(times, 'restore')}")
    yield Row("restore when 98 % is there: how many times faster than a full one", at("restore") / at("98 % there"), "x", 10, 30, True,
              detail=f"overcap {at('98 % there'):.2f} s")
    yield Row("most memory of any of these", max(times.memory.values()), "MB", 512, 128,
              detail=", ".join(f"{name} {megabytes:.0f} MB" for name, megabytes in times.memory.items()))
    taken = (at("capture") - at("nothing to capture")) * 1000
    yield Row("`submit` of an unchanged folder of that size, capture part", taken, "ms", 300, 100,
              detail=f"submit --dry-run {at('capture') * 1000:.0f} ms, of an empty folder {at('nothing to capture') * 1000:.0f} ms")


WORKSPACE_ROWS = {"workspace": workspace}
