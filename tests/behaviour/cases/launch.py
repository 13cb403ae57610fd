# SPDX-License-Identifier: Apache-2.0
"""`launch`, `launches` and `rank`: on this machine, over ssh, through every launcher of tests/data."""
from behaviour.case import case
from behaviour.presets import DATA, GPUS, PLAIN, fake

SSH = {**PLAIN, "bin/ssh": fake("ssh"), "project/hosts": "n1 slots=2\nn2 slots=1\n"}
HYDRA = {**PLAIN, "bin/mpiexec": fake("hydra"), "project/hosts": "n1:2\nn2:1\n"}
SRUN = {**PLAIN, "bin/srun": fake("srun"), "bin/squeue": "#!/bin/sh\necho RUNNING\n",
        "slurm-job": "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=n[1-2]\nSLURM_GPUS_PER_NODE=a40:2\nSLURM_JOB_NUM_NODES=2\nSLURM_NNODES=2\n"
                     "SLURMD_NODENAME=n1\nSLURM_CPUS_ON_NODE=4\nSLURM_JOB_CPUS_PER_NODE=4(x2)\n"}


def version_program(text):
    """A launcher that only knows which one it is."""
    return f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n"


VERSIONS = {
    "hydra-4": (DATA / "mpich-4.0.2/mpiexec-version.txt").read_text(),
    "openmpi-4-mpirun": (DATA / "openmpi-4.1.4/mpirun-version.txt").read_text(),
    "openmpi-4-mpiexec": (DATA / "openmpi-4.1.4/mpiexec-version.txt").read_text(),
    "openmpi-4-named": (DATA / "openmpi-4.1.4/mpirun.openmpi-version.txt").read_text(),
    "openmpi-5": "mpirun (Open MPI) 5.0.3",
    "prterun": "prterun (PRRTE) 3.0.2",
    "intel-mpi": "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005",
    "pals": "mpiexec version 1.8.0 revision 1",
    "srun": "slurm-wlm 22.05.8",
}
BINDINGS = ("none", "threads", "cores", "sockets", "numa", "depth:2", "list:0-3:4-7")


def dry_runs(name, version):
    program = "bin/srun" if name == "srun" else f"bin/{name}"
    flags = "launch --dry-run --launcher {root}/" + program
    job = "SLURM_JOB_ID=7 " if name == "srun" else ""
    files = {**GPUS, program: version_program(version), "project/even": "n1 slots=4\nn2 slots=4\n", "project/odd": "n2:2\nn1:1\n"}
    return case(f"launch/dry-run-{name}", files, f"{job}{flags} true", f"{job}{flags} --hostfile even a.out",
                f"{job}{flags} --hostfile odd a.out 'b c'", f"{job}{flags} --hostfile even --ppn 2 --nnodes 1 true",
                f"{job}{flags} -n 3 --launcher-args --verbose true", f"{job}{flags} --json --hostfile even --spare-nodes 1 true",
                *(f"{job}{flags} -n 4 --cpu-bind {how} true" for how in BINDINGS))


def rank_in(name):
    sample = DATA / "launch-env" / f"{name}.txt"
    files = {**PLAIN, "variables": sample.read_text(), "project/nodes": "first.site\nfirst.site\nsecond.site\n"}
    return case(f"rank/{name}", files, "@variables rank -- dump",
                "@variables PBS_NODEFILE={root}/project/nodes env --json", "@variables env --export")


CASES = [
    case("launch/one", PLAIN, "launch dump", "> launches", "launches latest --json"),
    case("launch/gpus", GPUS, "launch dump", "launches --json latest"),
    case("launch/ranks", PLAIN, "> launch -n 3 say hello", "> launches --rank 2 latest", "launches --rank 5 latest",
         "launches --attempt 2 --rank 0 latest"),
    case("launch/ppn", PLAIN, "launch --ppn 2 dump", "launch --ppn 2 -n 3 true"),
    case("launch/tee", PLAIN, "> launch -n 1 --tee all say hello", "> launch -n 2 --tee none say hello", "> launch -n 1 -t 3 say hello"),
    case("launch/stdin", PLAIN, "> launch -n 1 cat < run.sh", "> launch -n 1 --pipes cat < train.py"),
    case("launch/module", {**PLAIN, "project/tell.py": "import os\nprint('tell', os.environ['RANK'])\n"}, "> launch -n 1 -m tell a b",
         "> launch -n 1 --no-python say x"),
    case("launch/fails", PLAIN, "launch -n 2 --tee none --json sh -c '[ $RANK = 1 ] && exit 4; exec sleep 60'", "launches latest --json"),
    case("launch/signal", PLAIN, "launch -n 1 --json sh -c 'kill -SEGV $$'", "launches latest --json"),
    case("launch/retries", PLAIN, "launch -n 1 --json --retries 1 fail 5", "launches latest --json", "> launches --rank 0 --attempt 1 latest"),
    *(case(f"launch/{name}", PLAIN, "launch -n 2 --grace 2s gate go &", "until facts/go.waits", f"signal {name}", "join", "launches latest --json")
      for name in ("INT", "TERM", "HUP")),
    case("launch/idle", PLAIN, "launch -n 1 --timeout 1s --grace 1s --json gate never", "launches latest --json", unstable=("file */stacks.txt",)),
    case("launch/logs", PLAIN, "launch -n 1 --logs {root}/logs say one", "launch -n 1 --logs {root}/logs say two",
         "launch -n 1 --log-dir {root}/dir say three", "launches {root}/dir --json", "launches --all --json"),
    case("launch/ports", PLAIN, "launch -n 1 --master-port 29500 dump", "> launch -n 1 sh -c 'echo $MASTER_ADDR'",
         "MASTER_PORT=1 OMP_NUM_THREADS=3 launch -n 1 dump"),
    case("launch/plan-only", GPUS, "launch --dry-run true", "launch --dry-run --json -n 8 --cpu-bind cores true",
         "launch --dry-run --ppn 2 --nnodes 1 sh -c 'a b'", "launch --dry-run --nnodes 2 true"),
    case("launch/unsaid-flags", PLAIN, "launch -np 2 true", "launch --ntasks 2 true", "launch --oversubscribe true", "launch --launcher-args -v true"),
    case("launch/threads", PLAIN, "launch -n 2 --cpu-bind threads dump", "launch -n 2 --cpu-bind list:0:0 dump", "launch -n 2 --cpu-bind none dump"),
    case("launch/ssh", SSH, "OVERCAP_SSH={root}/bin/ssh launch --hostfile hosts dump", "launches latest --json"),
    case("launch/ssh-fails", SSH,
         "OVERCAP_SSH={root}/bin/ssh launch --hostfile hosts --json --tee none sh -c '[ $RANK = 2 ] && exit 9; exec sleep 60'",
         "launches latest --json"),
    case("launch/ssh-dry-run", SSH, "OVERCAP_SSH=my-ssh launch --dry-run --hostfile hosts echo x",
         "launch --dry-run --json --launcher ssh --hostfile hosts --nnodes 1 true"),
    case("launch/ssh-refused", {**SSH, "bin/ssh": "#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n"},
         "OVERCAP_SSH={root}/bin/ssh launch --hostfile hosts --json true"),
    case("launch/hydra", HYDRA, "launch --launcher mpiexec -n 3 dump", "launches latest --json"),
    case("launch/hydra-fails", HYDRA, "launch --launcher mpiexec -n 2 --json sh -c '[ $RANK = 1 ] && exit 9; exec sleep 60'",
         "launches latest --json"),
    case("launch/srun", SRUN, "@slurm-job launch dump", "launches latest --json", "@slurm-job env --json", "@slurm-job launch --dry-run true"),
    case("launch/srun-hosts", {**SRUN, "project/hosts": "n2:2\nn1:1\n"}, "@slurm-job launch --hostfile hosts say x", "> launches --rank 2 latest"),
    case("rank/alone", PLAIN, "rank -- dump", "MASTER_ADDR=here MASTER_PORT=12345 rank -- dump", "rank -- fail 3", "rank -- nothing-like-this",
         "rank -- ./train.py"),
    case("rank/pals", PLAIN, "PALS_RANKID=13 PALS_LOCAL_RANKID=1 PALS_NODEID=1 OVERCAP_LAUNCH_PLAN=pals:12x2 rank -- dump"),
    case("rank/contradictions", PLAIN, "PMI_RANK=x PMI_SIZE=2 MPI_LOCALRANKID=0 rank -- dump", "PMI_RANK=5 PMI_SIZE=2 MPI_LOCALRANKID=0 rank -- dump",
         "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 OVERCAP_LAUNCH_PLAN=hydra:3 rank -- dump"),
    *(dry_runs(name, version) for name, version in VERSIONS.items()),
    *(rank_in(path.stem) for path in sorted((DATA / "launch-env").glob("*.txt"))),
]
