# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on one machine: munge, slurmctld and a slurmd per node, each node in namespaces of its own.

    with SlurmCluster(nodes=4, gpus=4) as slurm:
        slurm.run(["srun", "-N4", "hostname"])          # on the login node, `head`; gives a CompletedProcess
        slurm.run(["overcap", "env"], node="n2")        # on a node, as somebody who logged in there
        slurm.popen(["salloc", "-N2", "sleep", "60"])
        job = slurm.submit("--wrap", "sleep 60"); slurm.wait_state(job, "RUNNING")
        slurm.kill_node("n3"); slurm.start_node("n3")   # more that goes wrong: slurm_faults.py
        before = slurm.rpc_counts(); ...; slurm.rpc_counts().since(before)

No root needed where users may make namespaces; nothing outside the cluster's folder is touched, several clusters can
run side by side. Nodes have fake GPUs with a type (`gpu_types`, taken in turn): their files are links to /dev/null,
which is all that Slurm wants for setting CUDA_VISIBLE_DEVICES.

Off unless asked for:
    suite="trixie"              the Slurm of that Debian release (tools/slurm_root) instead of this machine's; by default that of
                                $OVERCAP_TEST_SLURM_SUITE, so that any suite can be run on another version
    accounting=Accounting()     labs with caps, QOS, sacct: MariaDB and slurmdbd, see slurm_accounts.py
    users=("alice", "bob")      people besides who runs the tests (root only); slurm.run(argv, user="alice")
    gpus=[4, {"a40": 2, "rtx_6000": 2}], features={"n1": "bigmem"}
    preemption="qos"            else by partition; overcap and user-overcap give way to the others
    partitions, settings        instead of PARTITIONS; what slurm.conf says otherwise ({name: value}, None: leave out)
Times are set for impatient tests; None gives Slurm's own: sched_interval (s between looks at the queue), cred_expire
(a requeued job waits one second more than that), kill_wait (TERM to KILL), slurmd_timeout (a silent node is down then).
"""
import os
import pathlib
import shutil
import subprocess
import unittest

from rigs import machines, slurm_config, slurm_users
from rigs.machines import Machines, NotPermitted, need, wait_until
from rigs.slurm_config import PARTITIONS
from rigs.slurm_faults import KEEP_SLURMD, SlurmFaults
from rigs.slurm_views import SlurmViews

# Debian calls its programs slurmd-wlm and so on; under that name they silently forget Gres=.
DAEMONS = {"slurmctld": "/usr/sbin/slurmctld-wlm", "slurmd": "/usr/sbin/slurmd-wlm",
           "slurmstepd": "/usr/sbin/slurmstepd-wlm"}
CONTROLLER_PORT = 6817
ROOT = pathlib.Path(__file__).resolve().parents[2]


class SlurmCluster(SlurmFaults, SlurmViews):
    def __init__(self, nodes=4, gpus=4, gpu_types=("a40",), cpus=16, settings=None, partitions=None, *, accounting=None,
                 users=(), features=None, preemption="partition", sched_interval=1, cred_expire=5, kill_wait=2,
                 preempt_send_user_signal=True, slurmd_timeout=None, suite=None):
        self.root = slurm_root(suite or os.environ.get("OVERCAP_TEST_SLURM_SUITE"))
        need("munged", "mungekey", "srun", "scontrol", "ip", "unshare", "nsenter", "setpriv")
        slurm_users.need_root(users)
        self.programs = {name: find_daemon(name, self.root) for name in DAEMONS}
        self.names = [f"n{k + 1}" for k in range(nodes)]
        self.gpus = slurm_config.gpus_by_node(self.names, gpus, gpu_types)
        self.cpus, self.partitions = cpus, {**(PARTITIONS if partitions is None else partitions)}
        self.features, self.users, self.accounting = features or {}, tuple(users), accounting
        self.knobs = {"preemption": preemption, "sched_interval": sched_interval, "cred_expire": cred_expire,
                      "kill_wait": kill_wait, "preempt_send_user_signal": preempt_send_user_signal,
                      "slurmd_timeout": slurmd_timeout}
        self.folder = machines.public_folder("overcap-slurm-")
        self.machines, self.daemons = None, {}
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

    def run(self, argv, node=None, timeout=120, env=None, cwd=None, user=None, **more):
        """Runs argv on the login node, or on `node`, and gives the CompletedProcess (text)."""
        more = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False, **more}
        if "input" in more:
            del more["stdin"]
        words, env = self.words(argv, node, env, cwd, user)
        return subprocess.run(words, timeout=timeout, env=env, **more)

    def popen(self, argv, node=None, env=None, cwd=None, user=None, **more):
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        words, env = self.words(argv, node, env, cwd, user)
        return subprocess.Popen(words, env=env, **more)

    def words(self, argv, node=None, env=None, cwd=None, user=None):
        """(argv, environment) for subprocess that run argv in the cluster, as whoever runs the tests or as `user`."""
        env = self.environment if env is None else env
        if user is not None:
            argv, env = slurm_users.as_user(self.folder, user, argv, env)
        return self.machines.words(node, argv, cwd or self.folder / "work"), env

    def must(self, argv, **more):
        done = self.run(argv, **more)
        if done.returncode != 0:
            raise RuntimeError(f"{argv}: exit status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    @property
    def head_address(self):
        return f"{self.machines.net}.254"

    # ---- how it comes and goes

    def begin(self, settings):
        for name in ("etc", "state", "spool", "dev", "bin", "work"):
            (self.folder / name).mkdir()
        (self.folder / "work").chmod(0o777)
        self.machines = Machines(self.names, self.folder, head="inside")
        for name, program in self.programs.items():
            (self.folder / "bin" / name).symlink_to(program)
        for program in [*(self.root / "bin").iterdir(), self.root / "sbin" / "slurmdbd"] if self.root else []:
            (self.folder / "bin" / program.name).symlink_to(program)
        path = f"{self.folder}/bin:{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
        foreign = ("SLURM", "SBATCH", "SALLOC", "PBS")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.environment.update(SLURM_CONF=f"{self.folder}/etc/slurm.conf", PATH=path)
        self.owner = self.run(["id", "-un"]).stdout.strip()
        try:
            self.start_all(settings)
        except TimeoutError as error:
            raise RuntimeError(f"{error}\n{self.logs()}") from None

    def start_all(self, settings):
        if self.accounting:
            self.accounting.start_mariadb(self)
        if self.users:
            slurm_users.add_users(self.machines, self.folder, self.users)
        self.write_config(settings)
        self.start_munge()
        if self.accounting:
            self.accounting.start_slurmdbd(self)
            self.accounting.add_qos_names(self)
        self.start_controller()
        self.start_nodes()
        if self.accounting:
            self.accounting.add_accounts(self)
        self.wait_idle(self.names)

    def daemon(self, argv, name):
        """Starts a daemon on the login node that stays in the foreground; it ends with the cluster."""
        with open(self.folder / "log" / f"{name}.out", "ab") as log:
            words, env = self.words(argv)
            # nsenter stops when its child is frozen; it must not outlive tests that are killed then.
            self.daemons[name] = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], env=env, stdout=log,
                                                  stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def version(self):
        """(24, 11) of the daemons."""
        words = subprocess.run([self.folder / "bin" / "slurmctld", "-V"], capture_output=True, text=True, check=True, timeout=30).stdout
        return tuple(int(part) for part in words.split()[-1].split(".")[:2])

    def program(self, name):
        return shutil.which(name, path=self.environment["PATH"])

    def start_munge(self):
        at = self.folder
        if not (at / "munge.key").exists():
            self.must(["mungekey", "-c", "-k", f"{at}/munge.key"])
        # Returns when its socket is there.
        self.must(["munged", f"--key-file={at}/munge.key", f"--socket={at}/munge.sock", f"--pid-file={at}/munged.pid",
                   f"--log-file={at}/log/munged.log", f"--seed-file={at}/munged.seed"])

    def start_controller(self):
        self.daemon([f"{self.folder}/bin/slurmctld", "-D", "-i"], "slurmctld")
        # A slurmd that comes before it listens is refused and tries again only after a second.
        wait_until(lambda: self.listens(CONTROLLER_PORT), "slurmctld to listen")

    def listens(self, port):
        """Whether somebody does on the login node."""
        with open(f"/proc/{self.machines.switch_first}/net/tcp", encoding="ascii") as file:
            listening = [line.split()[1] for line in file if line.split()[3] == "0A"]
        return any(address.endswith(f":{port:04X}") for address in listening)

    def start_nodes(self):
        drop = ["setpriv", "--ambient-caps=-all", "--inh-caps=-all"] if self.machines.as_user else []
        variables = ["env", f"SLURM_CONF={self.folder}/etc/slurm.conf", f"PATH={self.environment['PATH']}"]
        self.machines.add({name: [*drop, *variables, "sh", "-c", KEEP_SLURMD, "node", str(self.slurmd_stop_file(name)),
                                  f"{self.folder}/bin/slurmd", "-D", "-N", name, "-d",
                                  f"{self.folder}/bin/slurmstepd"] for name in self.names},
                          mounts=[("/dev/shm", "tmpfs")])

    def wait_idle(self, names):
        def idle():
            seen = self.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"]).stdout.split()
            return set(names) <= set(seen)
        try:
            wait_until(idle, f"nodes {names} to be idle", pause=0.02)
        except TimeoutError as error:
            raise RuntimeError(f"{error}\n{self.run(['sinfo', '-N', '-l']).stdout}\n{self.logs()}") from None

    def logs(self):
        """The end of every log, for messages."""
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
                         for path in sorted((self.folder / "log").iterdir()))

    def write_config(self, settings):
        at, etc = self.folder, self.folder / "etc"
        (etc / "plugstack.conf").touch()
        if self.version() >= (22, 5):
            # Nothing here uses control groups, but without this line slurmd looks for them and dies where there are none.
            plugin = "disabled" if self.version() >= (23, 11) else "cgroup/v1"
            (etc / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")
        if self.root:
            settings = {"PluginDir": self.root / "plugins", **settings}
        for number in range(max((sum(kinds.values()) for kinds in self.gpus.values()), default=0)):
            (at / "dev" / f"gpu{number}").symlink_to("/dev/null")
        qos_of = {}
        if self.accounting:
            kinds = dict.fromkeys(kind for kinds in self.gpus.values() for kind in kinds)
            settings = {**self.accounting.settings(at, self.head_address, kinds), **settings}
            qos_of = self.accounting.qos_of(self.partitions)
        lines = [*slurm_config.general_lines(at, self.head_address, self.owner, self.knobs, settings),
                 *slurm_config.node_lines(self.gpus, self.machines.address, self.cpus, self.features),
                 *slurm_config.partition_lines(self.partitions, self.knobs["preemption"], qos_of)]
        (etc / "slurm.conf").write_text("\n".join(lines) + "\n")
        (etc / "gres.conf").write_text("\n".join(slurm_config.gres_lines(at, self.gpus)) + "\n")

    def close(self):
        if self.machines is not None:
            self.machines.close()
        for daemon in self.daemons.values():
            daemon.kill()  # its child has gone with the machines
            daemon.wait(90)
        self.daemons.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def slurm_root(suite):
    """The folder with the Slurm of that Debian release; None for this machine's."""
    if not suite:
        return None
    made = subprocess.run([ROOT / "tools" / "slurm_root", suite], capture_output=True, text=True, timeout=300, check=False)
    if made.returncode != 0:
        raise unittest.SkipTest(f"NOT TESTED: no Slurm of {suite}: {made.stderr.strip()[-300:]}")
    return pathlib.Path(made.stdout.strip())


def find_daemon(name, root=None):
    """That of `root`, else Debian's file, else what is called so."""
    if root:
        return root / "sbin" / name
    found = DAEMONS[name] if os.path.exists(DAEMONS[name]) else shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise unittest.SkipTest(f"NOT TESTED: {name} is not installed")
    return found
