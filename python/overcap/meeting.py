# SPDX-License-Identifier: Apache-2.0
"""Where the ranks meet when nobody gave MASTER_ADDR and MASTER_PORT.

On one host rank 0 tells the others its port over an abstract Unix socket whose name only this launch knows: nothing
is left behind, no port is guessed. Under srun on several hosts it is the first of them. Elsewhere nobody knows an
address, and the error says what to type.
"""
import hashlib
import os
import shutil
import socket
import struct
import subprocess
import time
import zlib
from typing import List, Optional, Set, Tuple

from .errors import OvercapError
from .launchers import LAUNCHERS, TORCH, Environ, all_told
from .place import Place

Address = Tuple[str, int]
FIRST_PORT, PORTS = 20000, 12000  # below the ports that Linux gives to outgoing connections


def known_address(place: Place, environ: Environ) -> Optional[Address]:
    """The address that every rank knows; None when all ranks are on this host and may agree on one."""
    address, port = environ.get("MASTER_ADDR", ""), environ.get("MASTER_PORT", "")
    if port and not (port.isdigit() and 0 < int(port) < 65536):
        raise OvercapError(f"'MASTER_PORT' holds '{port}', which is no port")
    if address and port and place.told_by != "none":
        return address, int(port)
    if place.local_world_size == place.world_size:
        return None
    address = address or _first_slurm_host(place, environ)
    if not address:
        raise OvercapError(f"{place.world_size} ranks on several hosts and no MASTER_ADDR; "
                           "start it with 'overcap launch', or 'overcap rank --' behind the launcher")
    return address, int(port) if port else _port_of(_job(environ))


def _port_of(job: str) -> int:
    return FIRST_PORT + zlib.crc32(job.encode()) % PORTS


def _job(environ: Environ) -> str:
    """The same on all hosts of a launch."""
    names = ("TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "PALS_APID", "SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID")
    return "/".join(environ.get(name, "") for name in names)


def _first_slurm_host(place: Place, environ: Environ) -> str:
    """Expanding a host list is left to the programs that know how; either is on every node of a Slurm cluster."""
    hosts = environ.get("SLURM_STEP_NODELIST", "")
    ours = ("SLURM_*", place.rank, place.world_size)  # a step of mpirun's own daemons has other ranks
    if not hosts or ours not in [(told.name, told.rank, told.world_size) for told in all_told(environ)]:
        return ""
    for words in (["overcap", "env", "--expand", hosts], ["scontrol", "show", "hostnames", hosts]):
        if shutil.which(words[0], path=environ.get("PATH")):
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
                                  stdin=subprocess.DEVNULL, check=False, env=dict(environ))
            if done.returncode == 0 and done.stdout.split():
                return done.stdout.split()[0].decode()
    return ""


def launch_name(place: Place, environ: Environ) -> str:
    """A name that all ranks of this launch on this host find, and no other launch has."""
    if environ.get("PMIX_NAMESPACE") and environ.get("PMIX_SERVER_TMPDIR"):
        launch = f"{environ['PMIX_NAMESPACE']}/{environ['PMIX_SERVER_TMPDIR']}"
    elif place.told_by == "SLURM_*":
        launch = f"{environ.get('SLURM_JOB_ID')}/{environ.get('SLURM_STEP_ID')}"
    elif place.told_by == "PALS_*" and environ.get("PALS_APID"):
        launch = environ["PALS_APID"]
    else:
        names = {launcher.name: launcher.rank for launcher in (TORCH, *LAUNCHERS)}
        launch = _launching_process(f"{names[place.told_by]}={environ[names[place.told_by]]}")
    return f"overcap-{os.getuid()}-{hashlib.sha256(launch.encode()).hexdigest()[:24]}"


def _launching_process(variable: str) -> str:
    """The nearest process above us that was not itself started as this rank: the launcher's own on this host."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if variable.encode() not in file.read().split(b"\0"):
                    break
        except OSError:
            break  # another user's: no rank of ours
        pid = int(_stat(pid)[1])
    return f"{pid}/{_stat(pid)[19]}" if pid > 0 else "0"


def _stat(pid: int) -> List[str]:
    """The fields of /proc/PID/stat behind the command's name: [1] is the parent, [19] the start time."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        raise OvercapError("cannot find the launcher's process; "
                           "start it with 'overcap rank --' behind the launcher") from None


class PortTeller:
    """Rank 0's side: listens as soon as it is made, so that the others need not wait long."""

    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind("\0" + name)
        except OSError as error:
            self._socket.close()
            raise OvercapError(f"another rank 0 of this launch is meeting its ranks ({error.strerror})") from None
        self._socket.listen(1024)

    def tell(self, port: int, ranks: int, seconds: float) -> None:
        """Returns when so many other ranks know the port; OvercapError after that time."""
        end = time.monotonic() + seconds
        told: Set[bytes] = set()
        with self._socket:
            while len(told) < ranks:
                try:
                    self._socket.settimeout(max(0.001, end - time.monotonic()))
                    peer, _ = self._socket.accept()
                except socket.timeout:
                    raise OvercapError(f"{ranks - len(told)} of {ranks} other ranks did not come to the meeting in "
                                       f"{seconds:g} s; did one of them fail?") from None
                with peer:
                    told |= self._tell_one(peer, port)

    @staticmethod
    def _tell_one(peer: socket.socket, port: int) -> Set[bytes]:
        peer.settimeout(5)
        try:
            if _user_of(peer) != os.getuid():
                return set()
            rank = peer.recv(16)
            peer.sendall(b"%d\n" % port)
            return {rank} if peer.recv(1) else set()
        except OSError:
            return set()  # it asks again, or it is gone


def learn_port(name: str, rank: int, seconds: float) -> int:
    """The other ranks' side; OvercapError when rank 0 is not there in that time."""
    end = time.monotonic() + seconds
    while True:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.settimeout(5)
                peer.connect("\0" + name)
                if _user_of(peer) != os.getuid():
                    raise OvercapError("another user answers in rank 0's place")
                peer.sendall(b"%d\n" % rank)
                answer = peer.recv(16)
                if answer.endswith(b"\n"):
                    peer.sendall(b"k")
                    return int(answer)
        except OSError:
            pass  # not there yet, or still importing
        if time.monotonic() > end:
            raise OvercapError(f"rank 0 did not come to the meeting in {seconds:g} s; did it fail?")
        time.sleep(0.02)


def _user_of(peer: socket.socket) -> int:
    pid_uid_gid = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", pid_uid_gid)[1])
