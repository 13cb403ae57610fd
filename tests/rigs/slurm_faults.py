# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a cluster, and how it is put right again. A part of SlurmCluster."""
import contextlib
import os
import signal

from rigs.machines import children, wait_until

# A node's daemon. $1 is a file: while it exists slurmd is wanted dead and the node lives on without it. A slurmd that
# ends otherwise takes the node with it.
KEEP_SLURMD = """
stopped=$1
shift
while :; do
  "$@" &
  while kill -0 $! 2>/dev/null; do wait $! || true; done
  [ -e "$stopped" ] || exit 1
  while [ -e "$stopped" ]; do sleep 0.02; done
done
"""


class SlurmFaults:
    # ---- the controller

    def kill_controller(self):
        """kill -9. What was acknowledged in the last seconds, of jobs and nodes, may be lost with it; see wait_saved.
        After it, nodes answer again some 4 s after the restart."""
        self.end_daemon("slurmctld", signal.SIGKILL)

    def stop_controller(self):
        """In order: it saves its state first."""
        self.end_daemon("slurmctld", signal.SIGTERM)

    def restart_controller(self):
        """Ends it in order where it still runs, and starts it again."""
        if "slurmctld" in self.daemons:
            self.stop_controller()
        self.start_controller()
        wait_until(lambda: self.run(["scontrol", "ping"]).returncode == 0, "slurmctld to answer", pause=0.02)

    def freeze_controller(self):
        """It hangs: connections are taken and never answered."""
        os.kill(self.daemon_pid("slurmctld"), signal.SIGSTOP)

    def thaw_controller(self):
        """Also before anything else is done to it."""
        self.go_on(self.daemons["slurmctld"])
        os.kill(self.daemon_pid("slurmctld"), signal.SIGCONT)

    def wait_saved(self, word, seconds=90):
        """Until the controller has written something about a job, such as its name, to the disk."""
        def saved():
            try:
                return word.encode() in (self.folder / "state" / "job_state").read_bytes()
            except FileNotFoundError:  # none yet, or just being replaced
                return False
        wait_until(saved, f"'{word}' to be saved", seconds)

    # ---- nodes

    def kill_node(self, name):
        """As if its power failed. Slurm notices after SlurmdTimeout; `down_node` tells it."""
        self.machines.power_off(name)

    def start_node(self, name):
        self.slurmd_stop_file(name).unlink(missing_ok=True)
        self.machines.power_on(name)
        self.wait_idle([name])

    def fail_node(self, name):
        """Its power fails and Slurm knows: jobs there end as NODE_FAIL or are requeued."""
        self.kill_node(name)
        self.down_node(name)

    def kill_slurmd(self, name):
        """kill -9 of slurmd alone: steps run on, and the node stays reachable."""
        self.slurmd_stop_file(name).touch()
        pid = self.daemon_file_pid(f"slurmd-{name}.pid")
        self.must(["kill", "-KILL", pid], node=name)
        wait_until(lambda: self.run(["kill", "-0", pid], node=name).returncode != 0, f"slurmd of {name} to end")

    def start_slurmd(self, name):
        self.slurmd_stop_file(name).unlink()
        self.wait_node(name, "idle", "mixed", "allocated")

    def down_node(self, name):
        self.must(["scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=test"])

    def drain_node(self, name, reason="test"):
        self.must(["scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}"])

    def resume_node(self, name):
        self.must(["scontrol", "update", f"NodeName={name}", "State=RESUME"])

    # ---- munge and the database

    def stop_munge(self):
        """Nobody, on no node, can prove who they are any more."""
        pid = self.daemon_file_pid("munged.pid")
        self.must(["kill", "-TERM", pid])
        wait_until(lambda: not (self.folder / "munge.sock").exists(), "munged to end")

    def stop_database(self):
        """slurmdbd goes, as sacct and sacctmgr see it; start_database brings it back."""
        self.end_daemon("slurmdbd", signal.SIGTERM)

    def start_database(self):
        self.accounting.start_slurmdbd(self)

    # ---- how

    def daemon_pid(self, name):
        (pid,) = children(self.daemons[name].pid)  # nsenter waits for it
        return pid

    def end_daemon(self, name, number):
        """slurmctld 24.11 may lose a SIGTERM that comes just after a reconfigure, so it is sent again every two seconds."""
        pid, process = self.daemon_pid(name), self.daemons.pop(name)

        def ended():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            with contextlib.suppress(TimeoutError):
                return wait_until(lambda: self.go_on(process) is not None, f"{name} to end", 2)
        wait_until(ended, f"{name} to end", 90)

    def go_on(self, process):
        """nsenter stops itself when its child is stopped; gives its exit status if it has one."""
        process.send_signal(signal.SIGCONT)
        return process.poll()

    def daemon_file_pid(self, name):
        return (self.folder / name).read_text().strip()

    def slurmd_stop_file(self, name):
        return self.folder / "spool" / f"stopped-{name}"
