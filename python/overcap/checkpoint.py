# SPDX-License-Identifier: Apache-2.0
"""Work that goes on where it was stopped: by a preemption, a time limit, a node that failed.

    from overcap import checkpoint                      # first of all: from here on signals are caught

    state = checkpoint.load(default={"step": 0})        # what the attempt before has saved
    for step in range(state["step"], 1000):
        ...
        state = {"step": step + 1, ...}
        checkpoint.exit_if_asked(lambda: state)         # saves and ends the program, if it was told to stop
        if step % 100 == 0:
            checkpoint.save(state)                      # for what comes without a warning

SIGUSR1 (a warning) and SIGTERM both mean: save now, and end. Works with torch (DDP: all ranks agree) and without.
"""
import os
import pathlib
import sys
import time
from typing import Any, Callable, NoReturn, Optional, Union

from . import checkpoint_files, elastic, ranks
from .errors import OvercapError
from .stop_signals import stop_signals

__all__ = ["install", "should_stop", "save", "load", "exit", "exit_if_asked"]

Folder = Union[str, "os.PathLike[str]", None]
SEEN_SECONDS = 120.0  # for what rank 0 has found to be seen on other nodes: file systems over a network are late

_calls = 0  # of should_stop
_agreed = 0  # the signal that all ranks know of


def install() -> None:
    """Catches the signals, in place of handlers that were there. Importing this module does it in a program's own
    process, and every call below in any other; so this is needed only before a second thread makes the first call."""
    stop_signals.install()


def should_stop(every: int = 1) -> bool:
    """Whether this program was told to stop; once True, always True.

    With a process group of torch all ranks must call it equally often: they agree, by an all_reduce of one number in
    every call, or in every so-many-th (`every`; the calls between say False).
    """
    global _calls, _agreed
    stop_signals.install()
    if every < 1:
        raise OvercapError(f"every={every} is no count")
    _calls += 1
    if not _agreed and _calls % every == 0:
        _agreed = ranks.largest(stop_signals.asked)
    return _agreed != 0


def save(state: Any, folder: Folder = None) -> None:
    """Adds a checkpoint: whole and on the disk when this returns; whatever happens meanwhile, the one before stays.

    Into `folder`, else $OVERCAP_STATE_DIR, the folder of this job that all its attempts see. Rank 0 writes, on other
    ranks nothing happens: they may call it or not, and do not wait. state: bytes, or what torch.save (where torch is
    imported) or pickle can take. Raises OvercapError.
    """
    stop_signals.install()
    where = _folder(folder)
    if ranks.rank() != 0:
        return
    try:
        checkpoint_files.write(where, state)
    except OSError as error:
        raise OvercapError(f"cannot save a checkpoint in '{where}': {error.strerror or error}; "
                           "those before are kept") from error
    elastic.saved(state)


def load(default: Any = None, folder: Folder = None) -> Any:
    """The newest state that was saved and is whole, its tensors on the CPU; `default` when none ever was.

    A damaged one is passed over in favour of the one before, and stderr says so; OvercapError when none is whole. With a
    process group of torch all ranks must call it: they load the same one. It unpickles: load only what you trust.
    """
    stop_signals.install()
    where = _folder(folder)
    number = -1  # where rank 0 fails the others must not wait for ever
    try:
        if ranks.decides():
            number = checkpoint_files.newest(where, _say)
    finally:
        number = ranks.of_rank_0(number)
    if number < 0:
        raise OvercapError(f"rank 0 found no whole checkpoint in '{where}'")
    return _read(where, number) if number else default


def exit() -> NoReturn:
    """Ends the program with status 128 + signal, which tells whoever started it that the work is not done.

    With a process group of torch all ranks must call it: each waits until all have come, rank 0 having saved.
    """
    number = stop_signals.asked or _agreed
    try:
        number = ranks.largest(number)
    except RuntimeError as error:  # another rank is gone already
        _say(f"rank {ranks.rank()} does not wait for the others: {' '.join(str(error).split())}")
    raise SystemExit(128 + number if number else 0)


def exit_if_asked(state: Callable[[], Any], folder: Folder = None, every: int = 1) -> None:
    """When should_stop(every): saves state() and ends the program, all ranks of it, with status 128 + signal.

    state() is called on all ranks, because gathering one may take all of them (FSDP); rank 0's is saved.
    """
    if should_stop(every):
        save(state(), folder)
        exit()


def _folder(given: Folder) -> pathlib.Path:
    folder = given if given is not None else os.environ.get("OVERCAP_STATE_DIR")
    if not folder:
        raise OvercapError("no folder for checkpoints: set OVERCAP_STATE_DIR (jobs of 'overcap submit' have it), or give one")
    return pathlib.Path(folder)


def _read(folder: pathlib.Path, number: int) -> Any:
    end = time.monotonic() + SEEN_SECONDS
    while True:
        try:
            return checkpoint_files.read(folder, number)
        except checkpoint_files.Damaged as error:
            if ranks.decides() or time.monotonic() > end:
                raise OvercapError(f"cannot read checkpoint {number} in '{folder}': {error}") from None
        time.sleep(0.2)


def _say(text: str) -> None:
    print(f"overcap: {text}", file=sys.stderr, flush=True)


stop_signals.install_where_possible()
