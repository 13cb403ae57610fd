# SPDX-License-Identifier: Apache-2.0
"""SIGUSR1 (a warning: the end is near) and SIGTERM (the end) as a flag that may be looked at."""
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
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        if not self._forks_watched:
            self._forks_watched = True
            os.register_at_fork(after_in_child=self._leave_child_alone)

    def install_where_possible(self) -> None:
        """At import: in a program's own process. One that multiprocessing started to help another is left alone."""
        process = sys.modules.get("multiprocessing.process")  # one that was started so has it
        helper = process is not None and (process.parent_process() is not None or
                                          getattr(process.current_process(), "_inheriting", False))
        if not helper and threading.current_thread() is threading.main_thread():
            self.install()

    def _note(self, number: int, _frame: Optional[FrameType]) -> None:
        self.asked = max(self.asked, number)

    def _leave_child_alone(self) -> None:
        """A forked helper (a pool's, a DataLoader's) must end by TERM, and a warning that reaches it is not for it."""
        if not self._before:
            return
        before, self._before, self.asked = self._before, {}, 0
        for number, handler in before.items():
            if signal.getsignal(number) == self._note:
                theirs = signal.SIG_IGN if number == signal.SIGUSR1 else handler
                signal.signal(number, signal.SIG_DFL if theirs is None else theirs)


stop_signals = StopSignals()
