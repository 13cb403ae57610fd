# SPDX-License-Identifier: Apache-2.0
"""SIGUSR1 (a warning: the end is near) and SIGTERM (the end) as a flag that may be looked at.

Schedulers send them to every process of a job, helpers of the program among them: the workers of a DataLoader or a pool. If these
died, the program would fail instead of saving. So helpers ignore USR1, and obey TERM only when the program sends it.
"""
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, Dict, Optional

from .errors import OvercapError

SIGNALS = (signal.SIGUSR1, signal.SIGTERM)


class StopSignals:
    """What this process was told. A process has one: `stop_signals`."""

    def __init__(self) -> None:
        self.asked = 0  # the strongest signal so far, 0 for none; TERM is stronger than USR1, as a number too
        self._before: Dict[int, Any] = {}
        self._helps = False
        self._forks_watched = False

    @property
    def installed(self) -> bool:
        return bool(self._before)

    def install(self) -> None:
        """From now on the signals only raise the flag. Whoever had a handler before has none now. May be called again."""
        if self.installed:
            return
        if threading.current_thread() is not threading.main_thread():
            raise OvercapError("signals can be caught in the main thread only; "
                               "call overcap.checkpoint.install() there before other threads use overcap.checkpoint")
        self._stop_helping()
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        self._watch_forks()

    def install_where_possible(self) -> None:
        """At import: in a program's own process. One that multiprocessing started is a helper until it calls us."""
        if threading.current_thread() is not threading.main_thread():
            return
        if _is_helper():
            self._help()
        else:
            self.install()

    def _note(self, number: int, _frame: Optional[FrameType]) -> None:
        self.asked = max(self.asked, number)

    def _help(self) -> None:
        """SIGTERM ends this process only if the program sends it, or when that has gone. (A thread waits for it: a handler
        is not told who the sender is, and torch's workers install one of their own.)"""
        self._helps = True
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_wait_for_term, args=(os.getppid(),), daemon=True, name="overcap-signals").start()
        self._watch_forks()

    def _stop_helping(self) -> None:
        """A rank that multiprocessing started, or what is about to become another program."""
        if self._helps:
            self._helps = False
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            signal.signal(signal.SIGUSR1, signal.SIG_DFL)

    def _watch_forks(self) -> None:
        if not self._forks_watched:
            self._forks_watched = True
            os.register_at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        """What signals did before; a new helper is one from the start."""
        before, self._before, self.asked = self._before, {}, 0
        for number, handler in before.items():
            if signal.getsignal(number) == self._note:
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if (before or self._helps) and _forked_by_multiprocessing():
            self._help()
        else:
            self._stop_helping()


def _is_helper() -> bool:
    process = sys.modules.get("multiprocessing.process")  # one that was started so has it
    return process is not None and (process.parent_process() is not None or
                                    getattr(process.current_process(), "_inheriting", False))


def _forked_by_multiprocessing() -> bool:
    frame: Optional[FrameType] = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") in ("multiprocessing.popen_fork", "multiprocessing.forkserver"):
            return True
        frame = frame.f_back
    return False


def _wait_for_term(parent: int) -> None:
    while True:
        sender = signal.sigwaitinfo({signal.SIGTERM}).si_pid
        program = sys.modules["multiprocessing.process"].parent_process()  # our parent may be a server that forks for it
        if sender == parent or os.getppid() != parent or (program is not None and sender == program.pid):
            break
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    os.kill(os.getpid(), signal.SIGTERM)  # for this thread now: the process does what it does at SIGTERM


stop_signals = StopSignals()
