# SPDX-License-Identifier: Apache-2.0
"""Lets a child process act as the master of another process's user namespace, for `preexec_fn` of subprocess.

nsenter alone gives a user who is not root these rights only up to the next exec."""
import ctypes
import os
import pathlib

CLONE_NEWUSER = 0x10000000
CAPABILITY_VERSION = 0x20080522
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2


def master_of(pid):
    """A function to be called in the child, before it becomes the program."""
    libc = ctypes.CDLL(None, use_errno=True)
    last = int(pathlib.Path("/proc/sys/kernel/cap_last_cap").read_text())
    every = (1 << (last + 1)) - 1
    low, high = every & 0xFFFFFFFF, every >> 32
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(low, low, low, high, high, high)  # effective, permitted, inheritable

    def check(result):
        if result != 0:
            raise OSError(ctypes.get_errno(), "cannot enter the user namespace")

    def enter():
        space = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
        check(libc.setns(space, CLONE_NEWUSER))
        os.close(space)
        check(libc.capset(header, sets))
        for capability in range(last + 1):
            check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0))
    return enter
