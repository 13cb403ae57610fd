# SPDX-License-Identifier: Apache-2.0
"""What is measured of jobs on Slurm: a real one on this machine (tests/rigs/slurm_rig.py), its own programs as peers."""
import json
import os
import pathlib
import shutil
import statistics
import sys

import measure
from rows import Row

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

# Runs commands on the login node, in turns, and prints {name: [seconds, ...]}. In there, because entering it costs as
# much as some of them take. {"name": [[argv to prepare, None for none], argv]}
TIMER = """
import json, os, sys, time
rounds, commands = json.loads(sys.argv[1])
found = {name: [] for name in commands}
quiet = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
def run(argv):
    begin = time.monotonic()
    _, status = os.waitpid(os.posix_spawnp(argv[0], argv, os.environ, file_actions=quiet), 0)
    if status != 0:
        sys.exit(f"{argv}: status {status}")
    return time.monotonic() - begin
for _ in range(rounds):
    for name, (prepare, argv) in commands.items():
        if prepare:
            run(prepare)
        found[name].append(run(argv))
print(json.dumps(found))
"""

# Waits for USR1 and then tells when it came, in FOLDER/told-RANK; before, that it is ready.
INFORMED = """
import os, signal, sys, time
folder, rank = sys.argv[1], os.environ.get("RANK", "0")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
open(f"{folder}/ready-{rank}", "w").close()
signal.sigwait([signal.SIGUSR1])
now = time.time_ns()
with open(f"{folder}/new-{rank}", "w") as file:
    file.write(str(now))
os.rename(f"{folder}/new-{rank}", f"{folder}/told-{rank}")
"""


class Sky:
    """`with Sky(setting) as sky:` gives a Slurm cluster and a home for jobs on it, gone afterwards."""

    def __init__(self, setting, **cluster):
        from rigs.slurm_rig import SlurmCluster  # only these rows need it
        self.binary = str(setting.overcap)
        self.slurm = SlurmCluster(**{"nodes": 4, "gpus": 0, **cluster})
        self.folder = self.slurm.folder / "work" / "bench"
        self.project = self.folder / "project"
        self.project.mkdir(parents=True)
        (self.project / "train.py").write_text("print('hello')\n")
        config = self.folder / "overcap.yaml"
        config.write_text("cluster: sky\nclusters: {sky: {driver: slurm, partition: short}}\n")
        env = {k: v for k, v in self.slurm.environment.items() if not k.startswith("OVERCAP_")}
        self.env = {**env, "OVERCAP_HOME": str(self.folder / "home"), "OVERCAP_CONFIG": str(config), "NO_COLOR": "1"}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.slurm.close()

    def must(self, *argv, timeout=600):
        return self.slurm.must([str(word) for word in argv], env=self.env, cwd=self.project, timeout=timeout)

    def overcap(self, *words):
        return self.must(self.binary, *words).strip()

    def medians(self, rounds, commands):
        """{name: median seconds} of {name: argv, or (argv to prepare, argv)}."""
        pairs = {name: words if isinstance(words, tuple) else (None, words) for name, words in commands.items()}
        said = self.must(sys.executable, "-S", "-c", TIMER, json.dumps([rounds, pairs]), timeout=1800)
        return {name: statistics.median(values) for name, values in json.loads(said).items()}

    def empty_folder(self, name):
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder


def milliseconds(found):
    return ", ".join(f"{name} {value * 1000:.1f} ms" for name, value in found.items())


def submit(setting):
    with Sky(setting) as sky:
        script = pathlib.Path(sky.env["OVERCAP_HOME"], "jobs", sky.overcap("submit", "--hold", "true"), "script.sh")
        found = sky.medians(setting.size(41, 5), {
            "overcap submit": [sky.binary, "submit", "--hold", "true"],
            "sbatch of the same script": ["sbatch", "--hold", "-o", "/dev/null", str(script)]})
        sky.slurm.empty_queue()
    yield Row("`overcap submit` on Slurm, times of a bare `sbatch` of the same script",
              found["overcap submit"] / found["sbatch of the same script"], "x", 1.6, 1.1, detail=milliseconds(found))


def fill(sky, jobs):
    """So many jobs that wait, each of its own."""
    words = ["sbatch", "-Q", "--hold", "-o", "/dev/null", "-J", "waiting", "--wrap", "true"]
    sky.must("sh", "-c", f"seq {jobs} | xargs -P4 -I_ {' '.join(words)}", timeout=3600)


def list_jobs(setting):
    jobs = setting.size(10_000, 300)
    with Sky(setting, nodes=1, settings={"MaxJobCount": 50_000}) as sky:
        fill(sky, jobs)
        mirror = f"/dev/shm/overcap-{os.geteuid()}-mirror"
        forget = ["sh", "-c", f"rm -f {mirror}/queue-*"]  # only a copy of what Slurm knows
        found = sky.medians(setting.size(9, 3), {
            "overcap ls, cold": (forget, [sky.binary, "ls"]), "squeue": ["squeue"],
            "overcap ls --json, cold": (forget, [sky.binary, "ls", "--json"])})
        json_time = sky.medians(setting.size(3, 1), {"squeue --json": ["squeue", "--json"]})
        # One reading serves for at least five seconds.
        warm = sky.medians(setting.size(15, 3), {"overcap ls, warm": ([sky.binary, "ls", "-q"], [sky.binary, "ls"]),
                                                 "squeue": ["squeue"]})
        shown = len(sky.overcap("ls", "-q").splitlines())
    if shown != jobs:
        raise RuntimeError(f"ls shows {shown} of {jobs} jobs")
    yield Row(f"`ls` with {jobs:,} pending jobs on Slurm, cold mirror, times of plain `squeue`",
              found["overcap ls, cold"] / found["squeue"], "x", 1.5, 1.1, detail=milliseconds(found | json_time))
    yield Row("the same with a warm mirror: how many times faster than `squeue`", warm["squeue"] / warm["overcap ls, warm"],
              "x", 5, 20, True, milliseconds(warm))


def since_process_start(ticks, end_ns):
    """Seconds from the start of a process (field 22 of /proc/PID/stat) to a time of day."""
    boot_ns = measure.time.time_ns() - measure.time.clock_gettime_ns(measure.time.CLOCK_BOOTTIME)
    return (end_ns - boot_ns) / 1e9 - ticks / os.sysconf("SC_CLK_TCK")


def agent(setting):
    """From the start of the batch script until all 8 ranks have ended: how long a job waits in the queue is left out."""
    with Sky(setting) as sky:
        home, done = pathlib.Path(sky.env["OVERCAP_HOME"]), sky.folder / "done"
        bare = sky.folder / "bare.sh"
        bare.write_text(f"#!/bin/sh\nread -r stat < /proc/$$/stat\nsrun -n8 -N4 true\n"
                        f'echo "$stat $(date +%s%N)" > {done}.new\nmv {done}.new {done}\n')

        def by_overcap():
            job = home / "jobs" / sky.overcap("submit", "--nodes", "4", "--ranks-per-node", "2", "true") / "attempt-1"
            report = job / "agent-0.jsonl"
            ended = measure.wait_until(lambda: report.exists() and
                                       [line for line in report.read_bytes().splitlines() if b'"e":"end"' in line], 60)
            sky.slurm.empty_queue()
            return since_process_start(json.loads((job / "agent-0.claim").read_text())["start_ticks"],
                                       json.loads(ended[0])["t"] * 1000)

        def by_sbatch():
            done.unlink(missing_ok=True)
            sky.must("sbatch", "-N4", "--ntasks-per-node=2", "-o", "/dev/null", bare)
            measure.wait_until(done.exists, 60)
            sky.slurm.empty_queue()
            stat, _, end = done.read_text().rpartition(" ")
            return since_process_start(int(stat.rpartition(")")[2].split()[19]), int(end))

        found = measure.medians(setting.size(15, 3), {"overcap": by_overcap, "srun in a batch script": by_sbatch})
        found |= sky.medians(setting.size(11, 3), {"srun -n8 -N4 true": ["srun", "-n8", "-N4", "true"]})
    yield Row("a Slurm job of `true`, 8 ranks on 4 nodes, from its start to its end: added to `srun -n8 -N4 true` in its place",
              (found["overcap"] - found["srun in a batch script"]) * 1000, "ms", 150, 50, detail=milliseconds(found))


def informed(setting):
    """From `scancel --signal=USR1 --batch` until the last rank has it, less what Slurm needs to tell a batch script."""
    with Sky(setting) as sky:
        program = sky.folder / "informed.py"
        program.write_text(INFORMED)
        python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

        def told(number, folder, ranks):
            measure.wait_until(lambda: len(list(folder.glob("ready-*"))) == ranks, 60)
            begin = measure.time.time_ns()
            sky.must("scancel", "--signal=USR1", "--batch", number)
            measure.wait_until(lambda: len(list(folder.glob("told-*"))) == ranks, 60)
            last = max(int(path.read_text()) for path in folder.glob("told-*"))
            sky.slurm.empty_queue()
            return (last - begin) / 1e9

        def by_overcap(nodes, ranks):
            folder = sky.empty_folder("told")
            job = sky.overcap("submit", "--nodes", nodes, "--ranks-per-node", ranks // nodes, "--", python, "-S", program,
                              folder)
            handle = pathlib.Path(sky.env["OVERCAP_HOME"], "jobs", job, "handle.json")
            return told(json.loads(handle.read_text())["slurm_id"], folder, ranks)

        def by_sbatch():
            folder = sky.empty_folder("told")
            words = f"exec {python} -S {program} {folder}"
            return told(sky.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", words).strip(), folder, 1)

        found = measure.medians(setting.size(9, 3), {"8 ranks on 4 nodes": lambda: by_overcap(4, 8),
                                                    "8 ranks on 1 node": lambda: by_overcap(1, 8),
                                                    "a bare batch script": by_sbatch})
    added = max(found["8 ranks on 4 nodes"], found["8 ranks on 1 node"]) - found["a bare batch script"]
    yield Row("preemption signal on Slurm until all 8 ranks are informed, added to what a bare batch script waits for it",
              added * 1000, "ms", 200, 50, detail=milliseconds(found))


SLURM_ROWS = {"slurm-submit": submit, "slurm-ls": list_jobs, "slurm-agent": agent, "slurm-signal": informed}
