# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on one machine: munge, slurmctld and a slurmd per node, each node in namespaces of its own.

    with SlurmCluster(nodes=4, gpus=4) as slurm:
        slurm.run(["srun", "-N4", "hostname"])          # on the login node, `head`; gives a CompletedProcess
        slurm.run(["overcap", "env"], node="n2")        # on a node, as somebody who logged in there
        slurm.popen(["salloc", "-N2", "sleep", "60"])
        slurm.kill_node("n3"); slurm.start_node("n3")

No root needed where users may make namespaces; nothing outside the cluster's folder is touched, several clusters can
run side by side. Nodes have fake GPUs with a type (`gpu_types`, taken in turn): their files are links to /dev/null,
which is all that Slurm wants for setting CUDA_VISIBLE_DEVICES.

What a fuller cluster needs can be added in a subclass: `settings` and `partitions` make slurm.conf, `before_controller`
runs when munge is there and slurmctld is not (a database and slurmdbd: start them with `daemon`), `after_nodes` when
all is up (accounts and limits).
"""
import os
import shutil
import subprocess
import unittest

from rigs import machines
from rigs.machines import Machines, NotPermitted, need, wait_until

# Debian calls its programs slurmd-wlm and so on; under that name they silently forget Gres=.
DAEMONS = {"slurmctld": "/usr/sbin/slurmctld-wlm", "slurmd": "/usr/sbin/slurmd-wlm",
           "slurmstepd": "/usr/sbin/slurmstepd-wlm"}
PARTITIONS = {
    "debug": "MaxTime=1:00:00 PriorityTier=20 PreemptMode=OFF",
    "short": "MaxTime=2-00:00:00 PriorityTier=10 PreemptMode=OFF Default=YES",
    "long": "MaxTime=7-00:00:00 PriorityTier=10 PreemptMode=OFF",
    "user-overcap": "MaxTime=7-00:00:00 PriorityTier=5 PreemptMode=REQUEUE",
    "overcap": "MaxTime=7-00:00:00 PriorityTier=1 PreemptMode=REQUEUE",
}


class SlurmCluster:
    def __init__(self, nodes=4, gpus=4, gpu_types=("a40",), cpus=16, settings=None, partitions=None):
        need("munged", "mungekey", "srun", "scontrol", "ip", "unshare", "nsenter", "setpriv")
        self.programs = {name: find_daemon(name) for name in DAEMONS}
        self.names = [f"n{k + 1}" for k in range(nodes)]
        counts = gpus if isinstance(gpus, (list, tuple)) else [gpus] * nodes
        self.gpus = dict(zip(self.names, counts))
        self.types = {name: gpu_types[k % len(gpu_types)] for k, name in enumerate(self.names)}
        self.cpus, self.partitions = cpus, {**(PARTITIONS if partitions is None else partitions)}
        self.folder = machines.public_folder("overcap-slurm-")
        self.machines, self.daemons = None, []
        try:
            self.begin(settings or {})
        except NotPermitted as error:
            self.close()
            raise unittest.SkipTest(f"NOT TESTED: no Slurm without namespaces: {error}") from None
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    # ---- what tests ask for

    def run(self, argv, node=None, timeout=60, env=None, cwd=None, **more):
        """Runs argv on the login node, or on `node`, and gives the CompletedProcess (text)."""
        more = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False, **more}
        return subprocess.run(self.machines.words(node, argv, cwd or self.folder / "work"), timeout=timeout,
                              env=self.environment if env is None else env, **more)

    def popen(self, argv, node=None, env=None, cwd=None, **more):
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        return subprocess.Popen(self.machines.words(node, argv, cwd or self.folder / "work"),
                                env=self.environment if env is None else env, **more)

    def kill_node(self, name):
        """As if its power failed. Slurm notices after SlurmdTimeout; `down_node` tells it."""
        self.machines.power_off(name)

    def start_node(self, name):
        self.machines.power_on(name)
        self.wait_idle([name])

    def down_node(self, name):
        self.must(["scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=test"])

    def must(self, argv, **more):
        done = self.run(argv, **more)
        if done.returncode != 0:
            raise RuntimeError(f"{argv}: exit status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def job_state(self, job):
        return self.must(["squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T"]).strip()

    # ---- how it comes and goes

    def begin(self, settings):
        for name in ("etc", "state", "spool", "dev", "bin", "work"):
            (self.folder / name).mkdir()
        (self.folder / "work").chmod(0o777)
        self.machines = Machines(self.names, self.folder, head="inside")
        for name, program in self.programs.items():
            (self.folder / "bin" / name).symlink_to(program)
        path = f"{self.folder}/bin:{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
        foreign = ("SLURM", "SBATCH", "SALLOC", "PBS")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.environment.update(SLURM_CONF=f"{self.folder}/etc/slurm.conf", PATH=path)
        self.write_config(settings)
        self.start_munge()
        self.before_controller()
        self.start_controller()
        self.start_nodes()
        self.after_nodes()
        self.wait_idle(self.names)

    def before_controller(self):
        pass

    def after_nodes(self):
        pass

    def daemon(self, argv, name):
        """Starts a daemon on the login node that stays in the foreground; it ends with the cluster."""
        with open(self.folder / "log" / f"{name}.out", "ab") as log:
            self.daemons.append(self.popen(argv, stdout=log, stderr=log, start_new_session=True))

    def start_munge(self):
        at = self.folder
        self.must(["mungekey", "-c", "-k", f"{at}/munge.key"])
        # Returns when its socket is there.
        self.must(["munged", f"--key-file={at}/munge.key", f"--socket={at}/munge.sock", f"--pid-file={at}/munged.pid",
                   f"--log-file={at}/log/munged.log", f"--seed-file={at}/munged.seed"])

    def start_controller(self):
        self.daemon([f"{self.folder}/bin/slurmctld", "-D", "-i"], "slurmctld")
        # A slurmd that comes before it listens is refused and tries again only after a second.
        wait_until(self.controller_listens, "slurmctld to listen")

    def controller_listens(self):
        with open(f"/proc/{self.machines.switch_first}/net/tcp", encoding="ascii") as file:
            listening = [line.split()[1] for line in file if line.split()[3] == "0A"]
        return any(address.endswith(f":{6817:04X}") for address in listening)

    def start_nodes(self):
        drop = ["setpriv", "--ambient-caps=-all", "--inh-caps=-all"] if self.machines.as_user else []
        variables = ["env", f"SLURM_CONF={self.folder}/etc/slurm.conf", f"PATH={self.environment['PATH']}"]
        self.machines.add({name: [*drop, *variables, f"{self.folder}/bin/slurmd", "-D", "-N", name, "-d",
                                  f"{self.folder}/bin/slurmstepd"] for name in self.names},
                          mounts=[("/dev/shm", "tmpfs")])

    def wait_idle(self, names):
        def idle():
            seen = self.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"]).stdout.split()
            return set(names) <= set(seen)
        try:
            wait_until(idle, f"nodes {names} to be idle", pause=0.02)
        except TimeoutError as error:
            logs = "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
                             for path in sorted((self.folder / "log").iterdir()))
            raise RuntimeError(f"{error}\n{self.run(['sinfo', '-N', '-l']).stdout}\n{logs}") from None

    def write_config(self, settings):
        at, etc = self.folder, self.folder / "etc"
        user = self.run(["id", "-un"]).stdout.strip()
        (etc / "plugstack.conf").touch()
        # Nothing here uses control groups, but without this line slurmd looks for them and dies where there are none.
        (etc / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        values = {
            "ClusterName": "lab", "SlurmctldHost": f"head({self.machines.net}.254)", "SlurmUser": user,
            "SlurmdUser": user, "AuthType": "auth/munge", "CredType": "cred/munge",
            "AuthInfo": f"socket={at}/munge.sock,cred_expire=5", "PlugStackConfig": f"{etc}/plugstack.conf",
            "StateSaveLocation": f"{at}/state", "SlurmdSpoolDir": f"{at}/spool/%n", "SlurmctldPort": 6817,
            "SlurmdPort": 6818, "SlurmctldPidFile": f"{at}/slurmctld.pid", "SlurmdPidFile": f"{at}/slurmd-%n.pid",
            "SlurmctldLogFile": f"{at}/log/slurmctld.log", "SlurmdLogFile": f"{at}/log/slurmd-%n.log",
            "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "MailProg": "/bin/true",
            "MpiDefault": "none", "ReturnToService": 2, "SlurmdParameters": "config_overrides",
            "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core_Memory", "DefMemPerCPU": 100,
            "GresTypes": "gpu", "PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE",
            "SlurmctldParameters": "preempt_send_user_signal", "KillWait": 2, "EnforcePartLimits": "ANY",
            "SchedulerParameters": "sched_interval=1,bf_interval=1,batch_sched_delay=0", **settings}
        lines = [f"{name}={value}" for name, value in values.items() if value is not None]
        gres = []
        for name in self.names:
            count, kind = self.gpus[name], self.types[name]
            has = f" Gres=gpu:{kind}:{count} Feature={kind}" if count else ""
            address = self.machines.address(name)
            lines.append(f"NodeName={name} NodeAddr={address} CPUs={self.cpus} RealMemory=16000{has}")
            for number in range(count):
                device = self.folder / "dev" / f"gpu{number}"
                if not device.is_symlink():
                    device.symlink_to("/dev/null")
            if count:
                gres.append(f"NodeName={name} Name=gpu Type={kind} File={at}/dev/gpu[0-{count - 1}]")
        lines += [f"PartitionName={name} Nodes=ALL {rest}" for name, rest in self.partitions.items()]
        (etc / "slurm.conf").write_text("\n".join(lines) + "\n")
        (etc / "gres.conf").write_text("\n".join(gres) + "\n")

    def close(self):
        if self.machines is not None:
            self.machines.close()
        for daemon in self.daemons:
            daemon.wait(20)
        self.daemons.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def find_daemon(name):
    """Debian's file, else what is called so."""
    found = DAEMONS[name] if os.path.exists(DAEMONS[name]) else shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise unittest.SkipTest(f"NOT TESTED: {name} is not installed")
    return found
