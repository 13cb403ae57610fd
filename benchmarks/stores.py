# SPDX-License-Identifier: Apache-2.0
"""What is measured of stores: one large file and many small ones to and from a real S3 service (Ceph, in memory, on this machine),
beside rclone with its own settings. The service takes most of the processor: its time is in both."""
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

import measure
from rows import Row, peer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
BUCKET = "bench"


class Runs:
    """Seconds, processor seconds and memory of each contender's runs."""

    def __init__(self, env, cwd):
        self.env, self.cwd, self.found, self.memory = env, cwd, {}, {}

    def run(self, who, what, argv):
        os.sync()
        begin = measure.now()
        with open(os.devnull, "r+b") as null:
            child = subprocess.Popen([str(word) for word in argv], env=self.env, cwd=self.cwd, stdin=null, stdout=null)
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise RuntimeError(f"{argv}: exit status {child.returncode}")
        self.found.setdefault((who, what), []).append((measure.now() - begin, usage.ru_utime + usage.ru_stime))
        self.memory[who] = max(self.memory.get(who, 0), usage.ru_maxrss / 1000)

    def median(self, who, what, column=0):
        return statistics.median(values[column] for values in self.found[who, what])

    def ratio(self, what):
        return self.median("rclone", what) / self.median("overcap", what)


def corpus(folder, large, count):
    rng = random.Random(1)
    (folder / "large").mkdir()
    block = rng.randbytes(1 << 20)
    with open(folder / "large/file", "wb") as file:
        for number in range(large >> 20):
            file.write(number.to_bytes(8, "big") + block[8:])
    for number in range(count):
        path = folder / f"small/{number % 100:02d}/{number:05d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(8192))


def lives(runs, setting, ceph, rclone, number):
    for what in ("large", "small"):
        for who in ("overcap", "rclone") if number % 2 == 0 else ("rclone", "overcap"):
            place = f"{BUCKET}/{who}-{what}-{number}"
            up, down = ((["store", "cp", what, f"s3://{place}"], ["store", "cp", f"s3://{place}", "back"]) if who == "overcap"
                        else (["copy", what, f"ceph:{place}"], ["copy", f"ceph:{place}", "back"]))
            program = [setting.overcap] if who == "overcap" else [rclone]
            runs.run(who, f"{what} up", program + up)
            shutil.rmtree(runs.cwd / "back", ignore_errors=True)
            runs.run(who, f"{what} down", program + down)
            subprocess.run(["diff", "-r", what, "back"], cwd=runs.cwd, check=True, timeout=300)
            shutil.rmtree(runs.cwd / "back")
            subprocess.run([str(setting.overcap), "store", "rm", "-r", f"s3://{place}"], env=runs.env, cwd=runs.cwd, check=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


def stores(setting):
    from rigs.ceph_rig import Ceph
    rclone = peer("rclone")
    if rclone is None:
        return
    with tempfile.TemporaryDirectory(prefix="ocb-") as name, Ceph(memory=8 * 1024**3) as ceph:
        folder = pathlib.Path(name)
        ceph.calls.make_bucket(BUCKET)
        env = {**{k: v for k, v in os.environ.items() if not k.startswith(("OVERCAP", "AWS", "RCLONE"))}, **ceph.environment,
               "NO_COLOR": "1", "OVERCAP_CONFIG": "/dev/null", "HOME": name, "RCLONE_CONFIG": str(folder / "none"),
               "RCLONE_CONFIG_CEPH_TYPE": "s3", "RCLONE_CONFIG_CEPH_PROVIDER": "Ceph", "RCLONE_CONFIG_CEPH_ENDPOINT": ceph.endpoint,
               "RCLONE_CONFIG_CEPH_ACCESS_KEY_ID": ceph.access_key, "RCLONE_CONFIG_CEPH_SECRET_ACCESS_KEY": ceph.secret_key}
        corpus(folder, setting.size(2 << 30, 64 << 20), setting.size(10_000, 200))
        runs = Runs(env, folder)
        for number in range(setting.size(3, 1)):
            lives(runs, setting, ceph, rclone, number)
    yield from table(runs)


def table(runs):
    for what, floor, aim, words in (("large", 1.0, 1.5, "1 x 2 GiB"), ("small", 1.5, 3, "10,000 x 8 KiB")):
        for way in ("up", "down"):
            key = f"{what} {way}"
            mine, theirs = runs.median("overcap", key), runs.median("rclone", key)
            yield Row(f"S3, {words} {way}: how many times faster than rclone", runs.ratio(key), "x", floor, aim, True,
                      detail=f"overcap {mine:.2f} s, rclone {theirs:.2f} s")
            cpu, their_cpu = runs.median("overcap", key, 1), runs.median("rclone", key, 1)
            yield Row(f"S3, {words} {way}: processor seconds, times of rclone's", cpu / their_cpu, "x", 0.7, 0.3,
                      detail=f"overcap {cpu:.2f} s, rclone {their_cpu:.2f} s")
    yield Row("S3: most memory of any of these copies", runs.memory["overcap"], "MB", 256, 64, detail=f"rclone {runs.memory['rclone']:.0f} MB")


STORE_ROWS = {"stores": stores}
