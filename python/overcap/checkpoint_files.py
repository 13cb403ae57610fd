# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as files: `checkpoint-N.pt` (.pkl, .bin) and beside it `checkpoint-N.json`, which says that it is whole.

N counts up. A checkpoint is there once its .json is: that is written last, when all before it has reached the disk. So a
program or a machine that dies at any moment leaves the one before as it was. The newest two are kept.
"""
import errno
import io
import json
import os
import pathlib
import pickle
import re
import socket
import sys
import zlib
from typing import Any, BinaryIO, Callable, Dict, List, NamedTuple, Optional

from .errors import OvercapError

NAME = re.compile(r"checkpoint-([0-9]{1,15})\.json")
OF_NUMBER = re.compile(r"checkpoint-([0-9]{1,15})\.(json|pt|pkl|bin)")
NEW = ".checkpoint-new-"  # what is still being written begins so
KEPT = 2


class Damaged(Exception):
    """Why a checkpoint is not whole, in a few words."""


class Writer(io.RawIOBase):
    """Passes bytes on and remembers what they were. It never raises: torch ends the whole program when its file does.
    What went wrong first is in `error`, and nothing is written after it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.size, self.crc = file, 0, 0
        self.error: Optional[OSError] = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with memoryview(data) as view, view.cast("B") as plain:
            if self.error is None:
                try:
                    self._write_all(plain)
                except OSError as error:
                    self.error = error
            return plain.nbytes

    def _write_all(self, left: memoryview) -> None:
        while left:
            written = self._file.write(left)
            self.crc = zlib.crc32(left[:written], self.crc)
            self.size += written
            left = left[written:]


class Kind(NamedTuple):
    suffix: str
    write: Callable[[Any, BinaryIO], Any]
    read: Callable[[pathlib.Path], Any]


def _write_torch(state: Any, file: BinaryIO) -> None:
    import torch

    torch.save(state, file)


def _read_torch(path: pathlib.Path) -> Any:
    """To the CPU: the GPU that it came from may be another rank's now."""
    import inspect

    import torch

    # A state has more than weights (optimizers, random numbers, one's own classes); the folder is the job's own.
    more = {"weights_only": False} if "weights_only" in inspect.signature(torch.load).parameters else {}
    return torch.load(str(path), map_location="cpu", **more)


def _read_pickle(path: pathlib.Path) -> Any:
    with open(path, "rb") as file:
        return pickle.load(file)


KINDS: Dict[str, Kind] = {
    "torch": Kind("pt", _write_torch, _read_torch),
    "pickle": Kind("pkl", lambda state, file: pickle.dump(state, file, protocol=5), _read_pickle),
    "bytes": Kind("bin", lambda state, file: file.write(state), lambda path: path.read_bytes()),
}


def kind_of(state: Any) -> str:
    if isinstance(state, (bytes, bytearray, memoryview)):
        return "bytes"
    return "torch" if "torch" in sys.modules else "pickle"


def numbers(folder: pathlib.Path) -> List[int]:
    """Of the checkpoints in the folder, the newest first; whether they are whole is not looked at."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OvercapError(f"cannot look for checkpoints in '{folder}': {error.strerror}") from None
    return sorted((int(match[1]) for match in map(NAME.fullmatch, names) if match), reverse=True)


def write(folder: pathlib.Path, state: Any) -> pathlib.Path:
    """Adds a checkpoint and gives its file. OSError when it cannot; then the others are as they were."""
    os.makedirs(folder, exist_ok=True)
    kind = kind_of(state)
    taken = [int(match[1]) for match in map(OF_NUMBER.fullmatch, os.listdir(folder)) if match]
    number = max(taken, default=0) + 1
    new = folder / f"{NEW}{socket.gethostname()}-{os.getpid()}"
    path = folder / f"checkpoint-{number}.{KINDS[kind].suffix}"
    try:
        writer = _write_file(new, lambda out: KINDS[kind].write(state, out))
        os.rename(new, path)
        facts = {"kind": kind, "file": path.name, "bytes": writer.size, "crc32": writer.crc}
        _sync_folder(folder)  # its data must not come to the disk after what says that it is whole
        _write_file(new, lambda out: out.write(json.dumps(facts).encode() + b"\n"))
        os.rename(new, folder / f"checkpoint-{number}.json")
        _sync_folder(folder)
    except BaseException:
        _remove(new)
        if not (folder / f"checkpoint-{number}.json").exists():
            _remove(path)
        raise
    _remove_old(folder)
    return path


def _write_file(path: pathlib.Path, fill: Callable[[BinaryIO], Any]) -> Writer:
    with open(path, "wb", buffering=0) as file:
        writer = Writer(file)
        with io.BufferedWriter(writer, 1 << 20) as buffered:
            fill(buffered)  # type: ignore[arg-type]
        if writer.error is not None:
            raise writer.error
        os.fsync(file.fileno())
    return writer


def _sync_folder(folder: pathlib.Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have no such thing for folders
            raise
    finally:
        os.close(handle)


def _remove(path: pathlib.Path) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # was not there, or stays: nobody takes it for a checkpoint


def _remove_old(folder: pathlib.Path) -> None:
    """Old ones, and what writers that died have left. One that lives on from an earlier start fails from here on."""
    kept = numbers(folder)[:KEPT]
    for name in os.listdir(folder):
        match = OF_NUMBER.fullmatch(name)
        if name.startswith(NEW) or (match and int(match[1]) not in kept and int(match[1]) < max(kept)):
            _remove(folder / name)


def check(folder: pathlib.Path, number: int) -> pathlib.Path:
    """The file of a checkpoint that is whole; else Damaged."""
    facts = _facts(folder / f"checkpoint-{number}.json")
    path = folder / facts["file"]
    size, crc = 0, 0
    try:
        with open(path, "rb", buffering=0) as file:
            while block := file.read(1 << 20):
                size, crc = size + len(block), zlib.crc32(block, crc)
    except OSError as error:
        raise Damaged(f"{path.name}: {error.strerror}") from None
    if size != facts["bytes"]:
        raise Damaged(f"it has {size} of {facts['bytes']} bytes")
    if crc != facts["crc32"]:
        raise Damaged("its bytes have changed")
    return path


def _facts(path: pathlib.Path) -> Dict[str, Any]:
    try:
        facts = json.loads(path.read_bytes())
        if OF_NUMBER.fullmatch(facts["file"]) and facts["kind"] in KINDS and isinstance(facts["bytes"], int):
            return dict(facts)
    except OSError as error:
        raise Damaged(f"{path.name}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise Damaged(f"{path.name} makes no sense")


def newest(folder: pathlib.Path, say: Callable[[str], None]) -> int:
    """The number of the newest whole one, 0 when there is none at all; OvercapError when all are damaged."""
    found = numbers(folder)
    for number in found:
        try:
            check(folder, number)
            return number
        except Damaged as error:
            say(f"checkpoint {number} in '{folder}' is damaged ({error}); trying the one before")
    if found:
        raise OvercapError(f"no checkpoint in '{folder}' is whole; empty that folder to start from the beginning")
    return 0


def read(folder: pathlib.Path, number: int) -> Any:
    return KINDS[_facts(folder / f"checkpoint-{number}.json")["kind"]].read(check(folder, number))
