# SPDX-License-Identifier: Apache-2.0
"""What a rank of an elastic group tells its agent: that it lives, how far it is, and that it has saved.

Without an agent around (OVERCAP_ELASTIC_SOCKET is not set) nothing happens. Nothing here raises or waits long: a rank must not
fail because of who watches it.
"""
import os
import select
import socket
import threading
import time
from typing import Any, Optional

from . import ranks

ANSWER_SECONDS = 1.0
YIELD_SECONDS = 30.0  # until the stop that the agent has announced; then the rank goes on
LEAST_BETWEEN = 0.05  # seconds between heartbeats that are sent

_lock = threading.Lock()  # guards what follows
_socket: Optional[socket.socket] = None
_owner = 0  # process that made it: a fork has to make its own
_last = 0.0


def heartbeat(step: Optional[int] = None) -> None:
    """Says that this rank lives, and at which step it is. Call it as often as you like: in every step.

    With `overcap launch --hang-timeout TIME` a rank that has called it once and then not for so long has hung.
    """
    global _last
    if not os.environ.get("OVERCAP_ELASTIC_SOCKET"):
        return
    now = time.monotonic()
    if step is None and now - _last < LEAST_BETWEEN:
        return
    _last = now
    _send("H", step)


def saved(state: Any) -> None:
    """A checkpoint was written. When a node waits to join at this point, returns only when this rank is being stopped: what
    it would compute now would be lost."""
    if not _send("C", step_of(state)):
        return
    if _answer() != "yield":
        return
    end = time.monotonic() + YIELD_SECONDS
    from .stop_signals import stop_signals  # not at the top: it catches signals

    while time.monotonic() < end and not stop_signals.asked:
        time.sleep(0.01)


def step_of(state: Any) -> Optional[int]:
    """The step that a state says it is of, or None."""
    step = state.get("step") if isinstance(state, dict) else None
    return step if isinstance(step, int) and not isinstance(step, bool) and step >= 0 else None


def _send(word: str, step: Optional[int]) -> bool:
    global _socket, _owner
    name, epoch = os.environ.get("OVERCAP_ELASTIC_SOCKET"), os.environ.get("OVERCAP_ELASTIC_EPOCH", "")
    if not name or not epoch.isdigit():
        return False
    text = f"{word} {epoch} {ranks.rank()} {-1 if step is None else step}"
    try:
        with _lock:
            if _socket is None or _owner != os.getpid():
                _socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                _socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # gives it an address to be answered at
                _socket.setblocking(False)
                _owner = os.getpid()
            _socket.sendto(text.encode(), "\0" + name)
        return True
    except OSError:  # the agent is gone or busy; it will see for itself
        return False


def _answer() -> str:
    connection = _socket
    if connection is None or not select.select([connection], [], [], ANSWER_SECONDS)[0]:
        return ""
    try:
        return connection.recv(64).decode("ascii", "replace")
    except OSError:
        return ""
