# SPDX-License-Identifier: Apache-2.0
"""A machine whose power fails, with its disk.

The disk is an ext4 on a loop device. A power cut is a clone of the device's image in an instant (XFS makes it by reflink, under the
lock that each write of the device takes), then the end of every process, then another boot of the clone. So what had not been synced
is gone, and a cut may come in the middle of a sync.
"""
import ctypes
import fcntl
import os
import subprocess
import time
import unittest

from disasters import Disaster
from host_rig import Host
from overcap_rig import Rig

FICLONE = 0x40049409      # of linux/fs.h
CLONE_NEWNS = 0x00020000  # of linux/sched.h


def must(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest(f"NOT TESTED: {' '.join(words[:2])}: {done.stderr.strip()}")


class Machine(Rig):
    """A rig whose state is on the disk. What ranks leave as facts is outside of the machine and survives."""

    folder_name = "disk/state"

    @classmethod
    def setUpClass(cls):
        """Mounts are this process's own, so that none outlives it."""
        super().setUpClass()
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
            raise unittest.SkipTest(f"NOT TESTED: unshare: {os.strerror(ctypes.get_errno())}")
        must("mount", "--make-rprivate", "/")

    def setUp(self):
        super().setUp()
        self.shelf, self.disks, self.host = self.root / "shelf", 0, None
        for folder in (self.shelf, self.home.parent):
            folder.mkdir()
        with open(self.root / "shelf.xfs", "wb") as file:
            file.truncate(2 << 30)
        must("mkfs.xfs", "-q", "-m", "reflink=1", str(self.root / "shelf.xfs"))
        must("mount", "-o", "loop", str(self.root / "shelf.xfs"), str(self.shelf))
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.shelf)], timeout=20, check=True)
        with open(self.disk(), "wb") as file:
            file.truncate(512 << 20)
        must("mkfs.ext4", "-q", "-m", "0", str(self.disk()))
        self.boot()

    def tearDown(self):
        if self.host is not None:
            self.host.end()
        super().tearDown()

    def disk(self):
        return self.shelf / f"disk-{self.disks}"

    def boot(self):
        self.host = Host(self, "alpha", disk=(self.disk(), self.home.parent))

    def start(self, *args):
        return self.host.start(str(self.binary), *args)

    def cut_power(self):
        """What happened after the clone began has not happened: neither on the disk nor in the facts."""
        now = time.time_ns()
        with open(self.disk(), "rb") as old:
            self.disks += 1
            with open(self.disk(), "wb") as new:
                fcntl.ioctl(new, FICLONE, old.fileno())
        self.host.end()
        os.unlink(self.shelf / f"disk-{self.disks - 1}")
        for file in self.facts.iterdir():
            lines = [line for line in file.read_text().splitlines(True) if int(line.split()[1]) < now]
            file.write_text("".join(lines)) if lines else file.unlink()


class PowerCut(Disaster):
    may_lose = clients_die = True
    calm = 5

    def __init__(self, storm):
        self.storm = storm

    def strike(self):
        with self.storm.power:
            self.storm.rig.cut_power()
            self.storm.rig.boot()
            self.storm.boots += 1
