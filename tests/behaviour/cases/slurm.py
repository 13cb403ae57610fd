# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster that answers as a real one did: what would be sent, what is sent, what becomes of it, what is shown."""
from behaviour.case import case
from behaviour.cases.batch import script
from behaviour.presets import RUNS, SLURM

LIVE = {**SLURM, **RUNS}
SETTINGS = """
clusters:
  sky: {driver: slurm, partition: [short, overcap], qos: labq, constraint: a40, reservation: maint, args: --exclusive, gpu_type_as_constraint: true,
        max_time: 2d, folder: '{root}/shared', mirror: '{root}/mirror', defaults: {gpus: 2, time: 1h, requeue: true}}
"""
THROUGH_A_STORE = """
cluster: sky
clusters: {sky: {driver: slurm, partition: short, mirror: '{root}/mirror', node_folder: '{root}/node', store: '{root}/depot'}}
"""
REFUSALS = {
    "account": "Batch job submission failed: Invalid account or account/partition combination specified",
    "partition": "invalid partition specified: Invalid partition name specified",
    "time": "Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",
    "nodes": "Batch job submission failed: Requested node configuration is not available",
    "qos": "Batch job submission failed: Invalid qos specification",
    "away": "Batch job submission failed: Unable to contact slurm controller (connect failure)",
    "filter": "Batch job submission failed: Unspecified error",
}
NO_ANSWER = {**SLURM, **{f"bin/{name}": "#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2\nexit 1\n"
                         for name in ("squeue", "sinfo", "scontrol", "sacctmgr", "sacct")}}


def refuses(words):
    return {**SLURM, "bin/sbatch": f"#!/bin/sh\ncat >/dev/null\necho 'sbatch: error: {words}' >&2\nexit 1\n"}


def with_script(*directives):
    return {**SLURM, "project/job.sh": script(*directives)}


CASES = [
    case("slurm/dry-run", SLURM, "submit --dry-run true",
         "submit --dry-run -n 4 -p short,overcap --time 4h --mem 16G --cpus 8 --name train python3 train.py",
         "submit --dry-run --gpu-type 'a40|rtx_6000' -n 2 true", "submit --dry-run --nodes 2 --gpus-per-node 2 true",
         "submit --dry-run --array 0-99%4 -n 1 true", "submit --dry-run --requeue -t 1h --warn 5m true",
         "submit --dry-run --hold --priority -5 --slurm-args '--exclusive --mail-type=END' -n 0 true", "submit --dry-run -w n1 --qos labq true",
         "submit --dry-run --json -n 2 true", "submit --dry-run --one-rank-per-node -n 2 true", "submit --dry-run --requeue-on-timeout -t 10m true",
         "submit --dry-run -t 90s true"),
    case("slurm/settings", {**SLURM, "project/overcap.yaml": SETTINGS}, "-c sky submit --dry-run true",
         "-c sky submit --dry-run --gpu-type a40 -n 1 -p debug true", "-c sky submit -t 3d true", "-c sky submit --json true", "cluster list --json"),
    case("slurm/elastic", SLURM, "submit --dry-run --nodes 2:8 --gpus-per-node 4 --max-restarts 3 true",
         "submit --json --nodes 1:2 --gpus-per-node 1 true"),
    case("slurm/sweep", SLURM, "submit --dry-run --sweep lr=1,2,3 -n 1 true", "submit --json --sweep lr=1,2,3 --sweep-limit 2 -n 1 true"),
    case("slurm/script", with_script("-p debug --job-name='my job'", "--gres=gpu:a40:2 -c 3 -t 30 --mem 200", "--exclude=n2 -o out-%j.txt"),
         "submit --dry-run job.sh", "submit --dry-run -n 1 -p short job.sh a 'b c'", "submit --json job.sh"),
    case("slurm/script-array", with_script("--array=0-3%2", "--gpus-per-task=1", "--ntasks=2", "--signal=B:USR1@60", "--requeue"),
         "submit --dry-run job.sh"),
    case("slurm/script-odd",
         with_script("--nodes=2", "--ntasks-per-node=4", "--mem-per-cpu=2G", "--constraint='a40&ib'", "--dependency=afterok:17", "--wrap=x"),
         "submit --dry-run job.sh"),
    case("slurm/submit", SLURM, "submit --json -n 1 true", "query last --json", "ls --json", "why last --json", "hold last --json",
         "release last --json", "abort last --json"),
    case("slurm/submit-held", SLURM, "submit --hold -n 0 true", "release last", "submit --after {1} -n 0 true", "query {2} --json"),
    case("slurm/runs", LIVE, "submit -n 0 --env A=b dump", "until slurm/jobs/101/ended", "wait last", "query last --json", "> logs last", "ls --json",
         "why last --json", "rm last"),
    case("slurm/runs-gpus", LIVE, "submit -n 2 dump", "until slurm/jobs/101/ended", "wait last --json"),
    case("slurm/fails", LIVE, "submit -n 0 sh -c 'echo words; exit 6'", "until slurm/jobs/101/ended", "wait last", "query last --json",
         "> logs -f last"),
    case("slurm/restarts", LIVE, "submit -n 0 --max-restarts 1 sh -c 'dump; exit 6'", "until slurm/jobs/101/ended", "wait last", "query last --json"),
    case("slurm/array-runs", LIVE, "submit -n 0 --array 0-1%1 dump", "until slurm/jobs/101/ended", "wait last", "query last --json",
         "query --tasks last --json", "> logs --task 1 last"),
    case("slurm/script-runs", {**LIVE, "project/job.sh": script("-n 2", "-c 1", body="dump; echo of $SLURM_JOB_NAME")}, "submit job.sh",
         "until slurm/jobs/101/ended", "wait last", "> logs last", "query last --json"),
    case("slurm/abort", LIVE, "submit -n 0 gate go", "until facts/go.waits", "exec last -- true", "abort last --json", "query last --json",
         "until slurm/jobs/101/ended"),
    case("slurm/resubmit", LIVE, "submit -n 0 --name one say x", "until slurm/jobs/101/ended", "wait last", "resubmit --dry-run last",
         "resubmit last --json", "until slurm/jobs/102/ended", "wait last", "query {1} {2} --json"),
    case("slurm/of-others", SLURM, "query 7000 --json", "query 6_2 --json", "why 7000 --json", "why 15 --json", "hold 7000 --json",
         "release 7000 --json", "abort --no-wait 7000 --json", "abort 999999 --json", "logs 7000", "exec 7000 -- true", "ssh 15 true"),
    case("slurm/looks", SLURM, "usage", "nodes", "usage --json", "usage -u --types --json", "usage lab-a --json", "usage nobody --json",
         "nodes --json", "ls --all --json"),
    case("slurm/check", SLURM, "cluster check --json", "cluster list --json", "> -q cluster list", "config show --json"),
    case("slurm/no-answer", NO_ANSWER, "usage --json", "nodes --json", "ls --json", "why 12 --json", "submit --json -n 0 true",
         "cluster check sky --json"),
    *(case(f"slurm/refuses-{name}", refuses(words), "submit -n 0 --json true") for name, words in REFUSALS.items()),
    case("slurm/shell", SLURM, "shell --dry-run -n 1 -g a40 -p debug -c 8 -t 4h", "shell --dry-run -n 0 -w n1 --mem 16G",
         "> shell -n 0 say in a session", "shell -n 0 fail 5"),
    case("slurm/sessions", LIVE, "submit -n 0 gate go", "until facts/go.waits", "> exec last -- sh -c 'echo $RANK; pwd'", "> ssh last sh -c 'exit 4'",
         "exec last -w n9 -- true", "$ touch $FACTS/go", "until slurm/jobs/101/ended", "wait last"),
    case("slurm/alloc", LIVE, "alloc --name mine -n 0 --json", "alloc list --json", "alloc install --json", "alloc --name mine -n 0",
         "> ssh mine sh -c 'echo $OVERCAP_ATTEMPT'", "release mine --json", "alloc list --json", "until slurm/jobs/101/ended"),
    case("slurm/store", {**LIVE, "project/overcap.yaml": THROUGH_A_STORE}, "submit --dry-run -n 0 dump", "submit -n 0 dump",
         "until slurm/jobs/101/ended", "wait last", "query last --json", "> logs last", "query --from {root}/depot {1} --json",
         "> logs --from {root}/depot {1}"),
]
