# SPDX-License-Identifier: Apache-2.0
"""Ports for servers of tests, several of which run side by side on one machine.

They lie below those that the kernel gives to outgoing connections, so that none of these takes one between the choice and
the server's start, and each is locked while the process that chose it lives, so that no other one of the tests gets it.
"""
import fcntl
import os
import pathlib
import random
import socket
import tempfile

LOWEST = 11000
_locks = {}  # port -> the open file of its lock


def free_port(address="127.0.0.1"):
    """One that nobody listens at, and that nobody else of the tests was given."""
    highest = first_outgoing() - 1
    for _ in range(2000):
        port = random.SystemRandom().randint(LOWEST, highest)
        if port not in _locks and lock(port):
            if can_listen(address, port):
                return port
            _locks.pop(port).close()
    raise RuntimeError(f"no free port of {LOWEST} to {highest}")


def first_outgoing():
    try:
        first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32768
    return first if first > LOWEST + 2000 else 32768


def lock(port):
    # Not in TMPDIR: each suite has its own.
    folder = pathlib.Path("/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir()) / f"overcap-test-ports-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = open(folder / str(port), "ab")  # noqa: SIM115  open as long as the process lives
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return False
    _locks[port] = file
    return True


def can_listen(address, port):
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
