# SPDX-License-Identifier: Apache-2.0
"""What kills an engine or an agent while clients submit."""
import pathlib
import re
import signal
import time

from overcap_rig import alive


class Disaster:
    """strike() does the harm, and puts right what clients cannot: they start the engine of their own user, but not the shared one."""

    may_lose = False     # jobs may end as `lost`; these have begun once at most
    clients_die = False  # a command may end before it has printed the id of the job that it has queued
    calm = 0.4           # seconds at most before it strikes

    def strike(self):
        raise NotImplementedError


class EngineKill(Disaster):
    """kill -9 of a user's own engine. The next client starts another."""

    def __init__(self, rig):
        self.rig, self.killed = rig, 0

    def pid(self):
        try:
            pid = int(re.search(r"\d+", (self.rig.home / "daemon.lock").read_text())[0])
        except (OSError, TypeError):
            return 0
        return pid if pid != self.killed and alive(pid) else 0

    def strike(self):
        self.killed = self.rig.until(self.pid, "an engine to kill")
        self.rig.kill(self.killed, signal.SIGKILL)


class AgentKill(Disaster):
    """kill -9 of an agent, as soon as there is one. Its job is lost, or has just ended."""

    may_lose = True

    def __init__(self, rig):
        self.rig, self.killed = rig, set()

    def agent(self):
        for pid in self.rig.processes():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if pid not in self.killed and words[1:2] == [b"agent"] and b"--job" in words:
                return pid
        return None

    def strike(self):
        pid = self.rig.until(self.agent, "an agent to kill")
        self.killed.add(pid)
        self.rig.kill(pid, signal.SIGKILL)


class SharedEngineKill(Disaster):
    """kill -9 of the engine of a whole machine, which is away for some time before it is started again."""

    def __init__(self, rig, rng):
        self.rig, self.rng = rig, rng

    def strike(self):
        self.rig.stop_engine(signal.SIGKILL)
        time.sleep(self.rng.choice((0, 0, 0.1, 1)))
        self.rig.start_engine()
