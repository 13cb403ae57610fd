# SPDX-License-Identifier: Apache-2.0
"""What is measured of `overcap launch`, side by side with both MPIs, torch's launcher, ssh and a bare spawn loop."""
import contextlib
import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import measure
from rows import Row, peer, spawn_loop, with_folder

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

HUNG = 10.0  # seconds after which a peer counts as hung

# torch's own launcher; with Python 3.11 some versions read the flag "0" as None and die.
TORCH_LAUNCHER = """
import sys
import torch.distributed.elastic.multiprocessing.api as api
old = api.Std.from_str.__func__
api.Std.from_str = classmethod(lambda cls, text: old(cls, text) or api.Std(0))
from torch.distributed.run import main
sys.argv[0] = "torchrun"
main()
"""


class Launches:
    """`with Launches(setting) as launches:` gives a private root for logs, gone afterwards."""

    def __init__(self, setting):
        self.binary = str(setting.overcap)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ocb-"))
        foreign = ("OVERCAP_", "SLURM_", "PBS_", "PMI_", "OMPI_")
        config = self.folder / "overcap.yaml"
        config.write_text("clusters: {local: {gpus: []}}\n")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.env.update(OVERCAP_HOME=str(self.folder / "root"), OVERCAP_CONFIG=str(config), NO_COLOR="1")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        measure.seconds(["rm", "-rf", self.folder])

    def seconds(self, *words, **more):
        return run_seconds([self.binary, "launch", *words], env=self.env, cwd=self.folder, **more)


def run_seconds(argv, status=0, limit=60.0, **more):
    """How long a command takes that must end with `status`. All processes of it that hang are ended."""
    argv = [str(word) for word in argv]
    begin = measure.now()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          start_new_session=True, **more) as process:
        try:
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            end_group(process)
            raise
        taken = measure.now() - begin
    if process.returncode != status:
        raise RuntimeError(f"{' '.join(argv)}: exit status {process.returncode}: {errors.decode(errors='replace')}")
    return taken


def end_group(process):
    """TERM, which both MPIs obey by ending their ranks, then KILL."""
    for number in (15, 9):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)
            return


class Peer:
    """A peer that may hang: counts how often it did, and how long the other runs took."""

    def __init__(self, function):
        self.function, self.runs, self.hung = function, 0, 0

    def __call__(self):
        self.runs += 1
        try:
            return self.function()
        except subprocess.TimeoutExpired:
            self.hung += 1
            return HUNG


def open_mpi(*words):
    program = peer("mpirun.openmpi")
    return program and [program, "--allow-run-as-root", "--oversubscribe", *words]


def mpich(*words):
    program = peer("mpirun.mpich")
    return program and [program, *words]


def torch_launcher(ranks):
    """Its argv, None where there is no torch."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        print("  SKIPPED peer: torch is not installed", flush=True)
        return None
    return [python, "-c", TORCH_LAUNCHER, "--nproc_per_node", str(ranks), "--no_python", "true"]


def mpis(ranks, **more):
    """{name: a function that gives the seconds of so many `true`}, of those that are installed."""
    commands = {"Open MPI": open_mpi("-n", ranks, "true"), "MPICH": mpich("-n", ranks, "true")}
    return {name: Peer(functools.partial(run_seconds, argv, limit=HUNG, **more))
            for name, argv in commands.items() if argv}


def milliseconds(found, contenders):
    """"Open MPI 73.0 ms, MPICH 16.0 ms"; who hung is told so."""
    words = []
    for name, value in found.items():
        hung = getattr(contenders[name], "hung", 0)
        text = f"{value * 1000:.1f} ms" if hung * 2 <= getattr(contenders[name], "runs", 1) else f"over {HUNG:.0f} s"
        words.append(f"{name} {text}" + (f" (hung in {hung} of {contenders[name].runs})" if hung else ""))
    return ", ".join(words)


def eight(setting):
    with Launches(setting) as launches:
        contenders = {"overcap": lambda: launches.seconds("-n", 8, "true"),
                      "spawn loop": lambda: with_folder(lambda d: spawn_loop(setting, 8, 8, d, "true")), **mpis(8)}
        found = measure.medians(setting.size(31, 3), contenders)
        if (argv := torch_launcher(8)):
            contenders["torch's launcher"] = lambda: run_seconds(argv)
            found |= measure.medians(setting.size(3, 1), {"torch's launcher": contenders["torch's launcher"]})
    fastest = min([found[name] for name in ("Open MPI", "MPICH") if name in found] or [0.016])
    overcap = found.pop("overcap")
    yield Row("local launch of 8 ranks of `true` (floor: the faster MPI; aim: twice the spawn loop)", overcap * 1000,
              "ms", round(fastest * 1000, 1), round(found["spawn loop"] * 2000, 1), detail=milliseconds(found, contenders))


def sixty_four(setting):
    with Launches(setting) as launches:
        times = sorted(launches.seconds("-n", 64, "true", limit=HUNG) for _ in range(setting.size(200, 5)))
        contenders = {"spawn loop": lambda: with_folder(lambda d: spawn_loop(setting, 64, 64, d, "true")), **mpis(64)}
        found = measure.medians(setting.size(10, 2), contenders)
    detail = f"never hung, slowest {times[-1] * 1000:.1f} ms; {milliseconds(found, contenders)}"
    yield Row(f"64 ranks of `true`, median of {len(times)} times", times[len(times) // 2] * 1000, "ms", 100, 30,
              detail=detail)


def ssh_hosts(setting):
    from rigs.hosts_rig import SshHosts  # only this row needs it
    with Launches(setting) as launches, SshHosts(3) as hosts:
        launches.env["OVERCAP_SSH"] = hosts.ssh_program
        ours, theirs = hosts.hostfile(4), hosts.hostfile(4, form=":")
        bare = [hosts.ssh_program, hosts.names[0], "true"]
        contenders = {"overcap": lambda: launches.seconds("--hostfile", ours, "true"),
                      "one bare ssh": lambda: run_seconds(bare),
                      "three ssh at once": lambda: three_at_once(hosts)}
        if hosts.separate:
            commands = {
                "Open MPI": open_mpi("--mca", "plm_rsh_agent", hosts.ssh_program, "--hostfile", ours, "-n", 12, "true"),
                "MPICH": mpich("-launcher", "ssh", "-launcher-exec", hosts.ssh_program, "-localhost",
                               f"{hosts.machines.net}.254", "-f", theirs, "-n", 12, "true")}
            contenders |= {name: Peer(functools.partial(run_seconds, argv, limit=HUNG))
                           for name, argv in commands.items() if argv}
        found = measure.medians(setting.size(15, 3), contenders)
    overcap = found["overcap"]
    yield Row("12 ranks of `true` on 3 ssh hosts, times of one bare ssh", overcap / found["one bare ssh"], "x", 1.2,
              1.05, detail=milliseconds(found, contenders))


def three_at_once(hosts):
    begin = measure.now()
    running = [subprocess.Popen([hosts.ssh_program, name, "true"], stdin=subprocess.DEVNULL) for name in hosts.names]
    for process in running:
        if process.wait(60) != 0:
            raise RuntimeError("ssh failed")
    return measure.now() - begin


def failure(setting):
    program = setting.programs / "fail_one"

    def until_over(argv, folder, **more):
        """Seconds from the failure of rank 5 to the end of everything."""
        run_seconds([*argv, program, folder, 8], status=7, limit=HUNG, **more)
        return measure.now() - int((folder / "5").read_text()) / 1e9

    with Launches(setting) as launches:
        ours = {"env": launches.env, "cwd": launches.folder}
        contenders = {"overcap": lambda: with_folder(
            lambda d: until_over([launches.binary, "launch", "-n", 8], d, **ours))}
        for name, argv in {"Open MPI": open_mpi("-n", 8), "MPICH": mpich("-n", 8)}.items():
            if argv:
                contenders[name] = Peer(lambda argv=argv: with_folder(lambda d: until_over(argv, d)))
        found = measure.medians(setting.size(11, 3), {"overcap": contenders["overcap"]})
        found |= measure.medians(setting.size(3, 1), {k: v for k, v in contenders.items() if k != "overcap"})
    overcap = found.pop("overcap")
    yield Row("one of 8 ranks fails: until the rest is stopped and the launch has ended", overcap * 1000, "ms", 200, 50,
              detail=milliseconds(found, contenders))


def expand(setting):
    hosts = "rack[001-100]n[0001-1000]"
    with Launches(setting) as launches:
        config = launches.folder / "slurm.conf"
        config.write_text("ClusterName=none\nSlurmctldHost=localhost\n")
        slurm = {**launches.env, "SLURM_CONF": str(config)}
        contenders = {"overcap": lambda: run_seconds([launches.binary, "env", "--expand", hosts], env=launches.env)}
        if scontrol := peer("scontrol"):
            contenders["scontrol show hostnames"] = lambda: run_seconds([scontrol, "show", "hostnames", hosts], env=slurm)
        found = measure.medians(setting.size(15, 3), contenders)
    overcap = found.pop("overcap")
    yield Row("expanding a list of 100,000 hosts, the whole program", overcap * 1000, "ms", 50, 10,
              detail=milliseconds(found, contenders))


def logs(setting):
    million, rounds = setting.size(200, 20), setting.size(5, 2)

    with Launches(setting) as launches, tempfile.TemporaryDirectory(prefix="ocb-") as folder:
        source = pathlib.Path(folder, "source")
        with open(source, "wb") as file:
            subprocess.run([setting.programs / "print_bytes", str(million)], stdout=file, check=True)

        def same_memory():
            """So that nobody pays for memory that a virtual machine has to get from its host first."""
            with tempfile.NamedTemporaryFile(dir=folder) as file:
                for _ in range(9 * million):
                    file.write(bytes(1_000_000))
            os.sync()

        def by_overcap(*command):
            with tempfile.TemporaryDirectory(prefix="ocb-") as logs_folder:
                same_memory()
                taken = launches.seconds("-n", 8, "--logs", f"{logs_folder}/logs", *command, limit=300)
                check_sizes(pathlib.Path(logs_folder, "logs", "attempt-1").glob("rank-*.log"), million)
                return taken

        def by_themselves(*command):
            def run(logs_folder):
                same_memory()
                taken = spawn_loop(setting, 8, 8, logs_folder, *command)
                check_sizes(logs_folder.glob("task-*.log"), million)
                return taken
            return with_folder(run)

        printing = [setting.programs / "print_bytes", million]
        contenders = {"overcap": lambda: by_overcap("cat", source), "cat > file": lambda: by_themselves("cat", source),
                      "overcap, printing from memory": lambda: by_overcap(*printing),
                      "the same > file": lambda: by_themselves(*printing)}
        if argv := open_mpi("-n", 8):
            contenders["Open MPI --output-filename"] = Peer(lambda: with_folder(
                lambda d: run_seconds([*argv, "--output-filename", d, "cat", source], limit=300)))
        found = measure.medians(rounds, contenders)
    detail = ", ".join(f"{name} {8 * million / value:,.0f} MB/s" for name, value in found.items())
    yield Row(f"logs of 8 ranks that print {million} MB each, of `cat > file` by the ranks themselves",
              found["cat > file"] / found["overcap"] * 100, "%", 50, 90, True, detail)


def check_sizes(paths, million):
    sizes = [path.stat().st_size for path in paths]
    if sizes != [million * 1_000_000] * 8:
        raise RuntimeError(f"the logs have {sizes} bytes")


LAUNCH_ROWS = {"launch-8": eight, "launch-64": sixty_four, "launch-ssh": ssh_hosts, "launch-failure": failure,
               "launch-expand": expand, "launch-logs": logs}
