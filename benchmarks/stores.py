# SPDX-License-Identifier: Apache-2.0
"""What is measured of stores: one large file and many small ones to and from a real S3 service (Ceph, in memory, on this machine),
beside rclone and s3cmd with their own settings. The service takes most of the processor: its time is in both. It answers without
Nagle's delay, which else costs whoever asks for small objects, and does not acknowledge at once, 40 ms for each."""
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


def large(folder, size):
    (folder / "large").mkdir()
    block = random.Random(1).randbytes(1 << 20)
    with open(folder / "large/file", "wb") as file:
        for number in range(size >> 20):
            file.write(number.to_bytes(8, "big") + block[8:])


def small(folder, count):
    rng = random.Random(1)
    for number in range(count):
        path = folder / f"small/{number % 10}/{number % 100:02d}/{number:05d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(8192))


class Contenders:
    """How each of them copies a folder up to, and down from, a place in the bucket."""

    def __init__(self, setting, ceph, folder):
        self.ceph = ceph
        self.overcap, self.rclone, self.s3cmd = setting.overcap, peer("rclone"), peer("s3cmd")
        config = folder / "s3cmd.cfg"
        config.write_text(f"[default]\naccess_key = {ceph.access_key}\nsecret_key = {ceph.secret_key}\nhost_base = 127.0.0.1:{ceph.port}\n"
                          f"host_bucket = 127.0.0.1:{ceph.port}\nuse_https = False\nprogress_meter = False\n")
        self.options = ["--config", str(config), "--no-progress", "--quiet"]

    def up(self, who, what, place):
        return {"overcap": [self.overcap, "store", "cp", what, f"s3://{place}"], "rclone": [self.rclone, "copy", what, f"ceph:{place}"],
                "s3cmd": [self.s3cmd, *self.options, "sync", f"{what}/", f"s3://{place}/"]}[who]

    def down(self, who, place, back):
        return {"overcap": [self.overcap, "store", "cp", f"s3://{place}", back], "rclone": [self.rclone, "copy", f"ceph:{place}", back],
                "s3cmd": [self.s3cmd, *self.options, "sync", f"s3://{place}/", f"{back}/"]}[who]


def there_and_back(runs, contenders, who, what, number):
    """`what` is a folder"""
    place, key = f"{BUCKET}/{who}-{number}", what.split("/")[0]
    runs.run(who, f"{key} up", contenders.up(who, what, place))
    back = f"back-{who}-{number}"
    (runs.cwd / back).mkdir()
    runs.run(who, f"{key} down", contenders.down(who, place, back))
    subprocess.run(["diff", "-r", what, back], cwd=runs.cwd, check=True, timeout=300)
    if key == "large":  # ext4 is slow to make files where many were removed in the last minutes: small ones stay
        shutil.rmtree(runs.cwd / back)
    if number == 0:
        runs.run(who, f"{key} across", [contenders.overcap, "store", "cp", f"s3://{place}", f"s3://{place}-across"])
    if key == "large":  # small ones need little of the service's memory, and to remove them takes long
        for removed in (place, f"{place}-across")[:2 if number == 0 else 1]:
            remove(runs, contenders, removed)
            contenders.ceph.collect()


def remove(runs, contenders, place):
    subprocess.run([str(contenders.overcap), "store", "rm", "-r", f"s3://{place}"], env=runs.env, cwd=runs.cwd, check=True,
                   stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


def measured(setting, what):
    """The runs of all contenders with one of the folders; None without rclone."""
    from rigs.ceph_rig import Ceph
    if peer("rclone") is None:
        return None
    with tempfile.TemporaryDirectory(prefix="ocb-") as name, Ceph(memory=8 * 1024**3, no_delay=True) as ceph:
        folder = pathlib.Path(name)
        ceph.calls.make_bucket(BUCKET)
        env = {**{k: v for k, v in os.environ.items() if not k.startswith(("OVERCAP", "AWS", "RCLONE"))}, **ceph.environment,
               "NO_COLOR": "1", "OVERCAP_CONFIG": "/dev/null", "HOME": name, "RCLONE_CONFIG": str(folder / "none"),
               "RCLONE_CONFIG_CEPH_TYPE": "s3", "RCLONE_CONFIG_CEPH_PROVIDER": "Ceph", "RCLONE_CONFIG_CEPH_ENDPOINT": ceph.endpoint,
               "RCLONE_CONFIG_CEPH_ACCESS_KEY_ID": ceph.access_key, "RCLONE_CONFIG_CEPH_SECRET_ACCESS_KEY": ceph.secret_key}
        if what == "large":
            large(folder, setting.size(2 << 30, 64 << 20))
        else:
            small(folder, setting.size(10_000, 200))
        runs, contenders = Runs(env, folder), Contenders(setting, ceph, folder)
        ceph.calls.must("PUT", f"/{BUCKET}/first", body=b"x")  # makes Ceph's pools, which takes seconds
        # Ten thousand files take rclone minutes: it has one round of them, between two of Overcap's.
        order = ("overcap", "rclone", "rclone", "overcap") if what == "large" else ("overcap", "rclone", "overcap")
        for number, who in enumerate(order[:setting.size(len(order), 2)]):
            there_and_back(runs, contenders, who, what, number)
        if contenders.s3cmd:
            there_and_back(runs, contenders, "s3cmd", "large" if what == "large" else "small/0", len(order))
        return runs


def rows(runs, what, words, floor, aim, s3cmd_had):
    if runs is None:
        return
    for way in ("up", "down"):
        key = f"{what} {way}"
        mine, theirs = runs.median("overcap", key), runs.median("rclone", key)
        third = f", s3cmd {s3cmd_had}{runs.median('s3cmd', key):.2f} s" if ("s3cmd", key) in runs.found else ""
        yield Row(f"S3, {words} {way}: how many times faster than rclone", runs.ratio(key), "x", floor, aim, True,
                  detail=f"overcap {mine:.2f} s, rclone {theirs:.2f} s{third}")
        cpu, their_cpu = runs.median("overcap", key, 1), runs.median("rclone", key, 1)
        third = f", s3cmd {s3cmd_had}{runs.median('s3cmd', key, 1):.2f} s" if ("s3cmd", key) in runs.found else ""
        yield Row(f"S3, {words} {way}: processor seconds, times of rclone's", cpu / their_cpu, "x", 0.7, 0.3,
                  detail=f"overcap {cpu:.2f} s, rclone {their_cpu:.2f} s{third}")
    across = runs.median("overcap", f"{what} across")
    yield Row(f"S3, {words} up, down and from bucket to bucket: most memory", runs.memory["overcap"], "MB", 256, 64,
              detail=f"rclone {runs.memory['rclone']:.0f} MB, s3cmd {runs.memory.get('s3cmd', 0):.0f} MB; bucket to bucket took {across:.2f} s")


def stores_large(setting):
    return rows(measured(setting, "large"), "large", "1 x 2 GiB", 1.0, 1.5, "")


def stores_small(setting):
    return rows(measured(setting, "small"), "small", "10,000 x 8 KiB", 1.5, 3, "a tenth of them ")


STORE_ROWS = {"stores-large": stores_large, "stores-small": stores_small}
