# SPDX-License-Identifier: Apache-2.0
"""What is measured of `overcap fanout`: 2 GB in 20,000 files to 8 hosts with an sshd and a network of their own, all on this machine, beside
rsync to each in turn. Folders of the hosts are in memory where there is enough of it: eight disks are not to be had here."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import measure
from rows import Row, peer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
HOSTS = 8


def corpus(folder, files, size):
    """Like an environment: many small files, some large ones; `size` bytes in all."""
    rng = random.Random(1)
    block = rng.randbytes(8 << 20)
    large = max(files // 1000, 1)
    left = size
    for number in range(files):
        length = size // 4 // large if number < large else min(left // (files - number), rng.randrange(2 * left // (files - number) + 1))
        left -= length
        path = folder / f"lib{number % 97:02d}" / f"part{number % 13:02d}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            while length > 0:
                begin = rng.randrange(len(block) // 2)
                piece = number.to_bytes(8, "big") + block[begin:begin + min(length, len(block) // 2) - 8]
                file.write(piece[:length])
                length -= len(piece)


def change(folder, percent, seed):
    rng = random.Random(seed)
    paths = sorted(path for path in folder.rglob("*.py") if path.stat().st_size < 1 << 20)
    for path in rng.sample(paths, len(paths) * percent // 100):
        path.write_bytes(rng.randbytes(path.stat().st_size))


def available_memory():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) << 10
    return 0


class Contest:
    def __init__(self, setting, hosts, folder, size):
        self.setting, self.hosts, self.folder, self.size = setting, hosts, folder, size
        self.in_memory = available_memory() > HOSTS * size * 1.25
        self.target = hosts.private_dir + "/local"
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith(("OVERCAP", "SLURM", "PBS"))}, "OVERCAP_SSH": hosts.ssh_program,
                    "OVERCAP_HOME": str(folder / "state"), "OVERCAP_CONFIG": "/dev/null", "HOME": str(folder)}

    def fresh(self):
        for name in self.hosts.names:
            if self.in_memory:
                script = f'umount {self.target} 2>/dev/null; mkdir -p {self.target} && mount -t tmpfs -o size=90% tmpfs {self.target}'
            else:
                script = f'rm -rf {self.target} && mkdir {self.target}'
            done = self.hosts.run(name, ["sh", "-c", script], timeout=120)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
        os.sync()

    def timed(self, argv):
        begin = measure.now()
        done = subprocess.run([str(word) for word in argv], env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=900)
        if done.returncode != 0:
            raise RuntimeError(f"{argv}: {done.returncode}: {done.stderr[-500:]}")
        return measure.now() - begin, done.stdout

    def overcap(self):
        seconds, out = self.timed([self.setting.overcap, "fanout", "--json", "source", "--to", self.target, "--hosts",
                                   ",".join(self.hosts.names)])
        return seconds, json.loads(out.splitlines()[-1])

    def rsync(self, program):
        return sum(self.timed([program, "-a", "-e", self.hosts.ssh_program, "source/", f"{name}:{self.target}/"])[0]
                   for name in self.hosts.names)

    def check(self):
        for name in self.hosts.names:
            done = self.hosts.run(name, ["diff", "-rq", "-x", ".overcap", str(self.folder / "source"), self.target], timeout=300)
            if done.stdout or done.returncode != 0:
                raise RuntimeError(f"{name} differs: {done.stdout[:300]}{done.stderr[:300]}")


def fanout(setting):
    from rigs.hosts_rig import SshHosts
    rsync = peer("rsync")
    with tempfile.TemporaryDirectory(prefix="ocb-") as name, SshHosts(HOSTS) as hosts:
        if not hosts.separate:
            print("  SKIPPED fanout: no namespaces here, so no folder is a host's own", flush=True)
            return
        folder, size, files = pathlib.Path(name), setting.size(2_000_000_000, 20_000_000), setting.size(20_000, 400)
        corpus(folder / "source", files, size)
        contest = Contest(setting, hosts, folder, size)
        contest.fresh()
        ours, first = contest.overcap()
        contest.check()
        change(folder / "source", 1, 2)
        again, second = contest.overcap()
        contest.check()
        theirs = theirs_again = None
        if rsync:
            contest.fresh()
            theirs = contest.rsync(rsync)
            change(folder / "source", 1, 3)
            theirs_again = contest.rsync(rsync)
        contest.fresh()
    place = "in memory" if contest.in_memory else "on one disk"
    if rsync:
        yield Row(f"fanout of 2 GB, 20,000 files to {HOSTS} hosts: how many times faster than rsync to each in turn", theirs / ours, "x", 2, 5, True,
                  detail=f"overcap {ours:.1f} s, rsync {theirs:.1f} s; folders {place}; {first['from_head_bytes'] / 1e9:.2f} GB from the head, "
                         f"{first['from_peers_bytes'] / 1e9:.2f} GB among the hosts")
        yield Row("fanout again, 1 % of the files changed: how many times faster than rsync to each in turn", theirs_again / again, "x", 1, 2, True,
                  detail=f"overcap {again:.2f} s, rsync {theirs_again:.2f} s")
    yield Row("fanout again, 1 % of the files changed: bytes on the wire, of all", second["wire_bytes"] / (HOSTS * size) * 100, "%", 2, 1,
              detail=f"{second['wire_bytes'] / 1e6:.1f} MB of {HOSTS * size / 1e6:.0f} MB")


FANOUT_ROWS = {"fanout": fanout}
