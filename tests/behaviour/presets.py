# SPDX-License-Identifier: Apache-2.0
"""Files that many cases share: small programs for ranks, projects, a login node of a Slurm cluster."""
import getpass
import pathlib

TESTS = pathlib.Path(__file__).resolve().parents[1]
DATA = TESTS / "data"              # what programs of clusters have really said
EXAMPLES = TESTS.parent / "examples"


def fake(name):
    """The text of a program of tests/behaviour/fakes."""
    return (TESTS / "behaviour" / "fakes" / name).read_text()


# All that steps and ranks can find beyond the case's own programs; no scheduler, launcher or driver of this machine.
SYSTEM_TOOLS = ("sh", "bash", "cat", "cp", "mv", "rm", "mkdir", "ls", "env", "true", "false", "echo", "printf", "sleep", "touch", "id", "head",
                "sed", "python3")

PROGRAMS = {
    # Leaves the variables that the rank was started with, byte for byte.
    "bin/dump": """#!/bin/sh
name="${OVERCAP_TASK_ID:-job}.${OVERCAP_ATTEMPT:-0}${OVERCAP_ELASTIC_EPOCH:+.epoch$OVERCAP_ELASTIC_EPOCH}${SLURM_PROCID:+.task$SLURM_PROCID}"
cat /proc/$$/environ >"$FACTS/env.$name.${RANK:-none}"
""",
    # Leaves facts/$1.waits, and waits until facts/$1 is there; a minute at most.
    "bin/gate": """#!/bin/sh
: >"$FACTS/$1.waits"
i=0
while [ ! -e "$FACTS/$1" ] && [ $i -lt 3000 ]; do sleep 0.02; i=$((i+1)); done
""",
    # Gives everything in the folders $@ the same time, as far as a snapshot knows it. A backup reads again what changed in the 0.1 s before it.
    "bin/settle": """#!/bin/sh
/usr/bin/find "$@" -exec /usr/bin/touch -h -d @1700000100 {} +
sleep 0.12
""",
    "bin/say": '#!/bin/sh\necho "rank ${RANK:-none}: $*"\necho "to stderr: $*" >&2\n',
    "bin/fail": '#!/bin/sh\necho "rank ${RANK:-none} fails"\nexit "$1"\n',
}

PROJECT = {"project/train.py": "print('a step')\n", "project/src/model.py": "layers = 3\n", "project/run.sh": "#!/bin/sh\necho ran\n"}
GPUS = {**PROJECT, "project/overcap.yaml": "clusters: {local: {gpus: [{type: a40, count: 4}], cpus: 8, mem: 16G}}\n"}
PLAIN = {**PROJECT, "project/overcap.yaml": "clusters: {local: {gpus: [], cpus: 4, mem: 8G}}\n"}

_RECORDED = {"queue": "squeue-marked", "nodes": "sinfo-marked", "partition": "scontrol-show-partition", "config": "scontrol-show-config",
             "associations": "sacctmgr-associations", "qos": "sacctmgr-qos", "users": "sacctmgr-users"}
# A job that this user submitted without Overcap.
_TYPED = (f"7000;7000;N/A;{getpass.getuser()};lab-a;short;labq;PENDING;Priority;1;;cpu=1,mem=100M,node=1,billing=1,gres/gpu=2;1;1:00:00;"
          "1794735703;N/A;N/A;900;(null);0;0;N/A;N/A;N/A;1;(null);typed;Mark1234(null);Mark1234\n").replace(";", "\x1f")
# A login node of a Slurm cluster: the programs of fakes/slurm with recorded answers. Its mirror is not shared with other runs.
SLURM = {
    **PROJECT,
    **{f"bin/{name}": fake("slurm") for name in ("sbatch", "squeue", "sinfo", "sacct", "sacctmgr", "scancel", "scontrol", "srun")},
    **{f"slurm/{name}": (DATA / "slurm-22.05.8" / f"{file}.txt").read_text() for name, file in _RECORDED.items()},
    "mirror/.keep": "",
    "project/overcap.yaml": "cluster: sky\nclusters: {sky: {driver: slurm, partition: short, account: lab-a, mirror: '{root}/mirror'}}\n",
}
SLURM["slurm/queue"] += _TYPED
RUNS = {"slurm/runs": ""}  # jobs of that Slurm start at once
