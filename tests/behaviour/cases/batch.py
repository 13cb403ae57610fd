# SPDX-License-Identifier: Apache-2.0
"""Batch scripts with #SBATCH lines, arrays and sweeps, on the embedded engine."""
from behaviour.case import case
from behaviour.presets import GPUS, PLAIN


def script(*directives, body="dump"):
    return "#!/bin/sh\n" + "".join(f"#SBATCH {line}\n" for line in directives) + f"\n{body}\n"


def with_script(*directives, body="dump", base=GPUS):
    return {**base, "project/job.sh": script(*directives, body=body)}


REQUEUES = 'dump\n[ "$SLURM_RESTART_COUNT" = 1 ] || { scontrol requeue "$SLURM_JOB_ID"; exec sleep 60; }'

CASES = [
    case("batch/plain", with_script("--gpus=2", "--time=00:10:00", "--job-name=scripted"), "submit --dry-run job.sh", "submit job.sh", "wait last",
         "query last --json"),
    case("batch/flags-win", with_script("--gpus=2", "-t 10", "-J scripted"), "submit --dry-run -n 1 --name flags -t 5m job.sh",
         "submit -n 1 job.sh a 'b c'", "wait last", "query last --json"),
    case("batch/short-options", with_script("-N 1", "-n 2", "-c 2", "--mem=1G", "-o out-%j.log", "-e err-%j.log"), "submit --dry-run job.sh",
         "submit job.sh", "wait last", "query last --json"),
    case("batch/tasks-per-node", with_script("--nodes=1", "--ntasks-per-node=3", "--gpus-per-node=3"), "submit --dry-run job.sh",
         "submit --json --hold job.sh"),
    case("batch/gres", with_script("--gres=gpu:a40:2", "--cpus-per-gpu=1"), "submit --dry-run job.sh", "submit --hold --json job.sh"),
    case("batch/array", with_script("--array=1-3%1", "--gpus=0", body='dump; echo "task $SLURM_ARRAY_TASK_ID $OVERCAP_TASK_ID"'),
         "submit --dry-run job.sh", "submit job.sh", "wait last", "> logs --task 2 last", "query --tasks last --json"),
    case("batch/requeue-signal", with_script("--requeue", "--signal=B:USR1@30", "--time=5"), "submit --dry-run job.sh",
         "submit --hold --json job.sh"),
    case("batch/hold-depend", with_script("--hold", "--gpus=0"), "submit job.sh", "query last --json", "release last", "wait last"),
    case("batch/left-out", with_script("--exclusive", "--mail-type=END", "--constraint=a40", "--partition=short", "--qos=high", "--account=lab"),
         "submit --dry-run job.sh", "submit --hold --json job.sh"),
    case("batch/bad-directive", with_script("--gpus=many"), "submit job.sh"),
    case("batch/unknown-directive", with_script("--nonsense=1"), "submit --dry-run job.sh", "submit --strict --hold job.sh"),
    case("batch/python", {**GPUS, "project/job.py": "#!/usr/bin/env python3\n#SBATCH --gpus=1\nimport os\nprint(os.environ.get('RANK'))\n"},
         "submit job.py", "wait last", "> logs last", "query last --json"),
    case("batch/behind-a-command", with_script("--gpus=1", body="true\n#SBATCH --gpus=4\ndump"), "submit --dry-run job.sh"),
    case("batch/overcap-directives", with_script("--gpus=1", "--export=ALL,LR=3"), "submit --dry-run job.sh", "submit job.sh", "wait last"),
    case("batch/srun",
         with_script("--gpus=2", "--ntasks=2", body="srun dump\nscontrol show hostnames \"$SLURM_JOB_NODELIST\"\nsrun --ntasks=1 fail 3"),
         "submit job.sh", "wait last", "> logs last", "query last --json"),
    case("batch/requeues-itself", with_script("--gpus=0", "--requeue", body=REQUEUES), "submit job.sh", "wait last", "query last --json"),
    case("array/one-at-a-time", PLAIN, "submit -n 0 --array 0-2%1 dump", "wait last", "query last --json", "query --tasks last --json",
         "why last --json", "> logs --task 1 last", "ls --json"),
    case("array/list", PLAIN, "submit -n 0 --array 1,3,5-9:2%1 say task", "wait last", "query --tasks last --json", "> logs --task 7 last",
         "logs --task 2 last"),
    case("array/failed-tasks", PLAIN, "submit -n 0 --array 0-3%1 sh -c 'exit $((OVERCAP_TASK_ID % 2 * 4))'", "wait last", "query last --json",
         "query --tasks last --json"),
    case("array/ranks", GPUS, "submit -n 2 --array 1-2%1 dump", "wait last", "query last --json"),
    case("array/restarts", PLAIN, "submit -n 0 --max-restarts 1 --array 4-5%1 sh -c 'dump; exit $OVERCAP_TASK_TRY'", "wait last",
         "query --tasks last --json"),
    case("array/abort", PLAIN, "submit -n 0 --array 0-5%1 gate go", "until facts/go.waits", "query last --json", "abort last --json",
         "query --tasks last --json"),
    case("array/held", PLAIN, "submit -n 0 --array 0-9999%100 --hold --json true", "why last --json", "ls --json", "abort last"),
    case("array/dry-run", GPUS, "submit --dry-run -n 1 --array 0-99%4 true", "submit --array 5-1 true", "submit --array x true",
         "submit --array 0-2000000 true"),
    case("array/resubmit", PLAIN, "submit -n 0 --array 0-1%1 true", "wait last", "resubmit last --json", "wait last", "query {2} --json"),
    case("sweep/two", PLAIN, "submit -n 0 --sweep lr=1e-4,1e-3 --sweep gamma=0.9,1 --sweep-limit 1 --json sh -c 'dump; echo $lr $gamma'", "wait last",
         "> logs --task 3 last", "query --tasks last --json"),
    case("sweep/escapes", PLAIN, r"submit --dry-run -n 0 --sweep 'a=x\,y,z\\w' true",
         "submit --hold -n 0 --json --sweep a=1,2,3 --sweep-limit 2 true", "submit --sweep a true", "submit --sweep a=1 --sweep a=2 true",
         "submit --sweep a=1,2 --array 0-1 true"),
    case("sweep/script", with_script("--gpus=0", body="dump"), "submit --sweep lr=1,2 --sweep-limit 1 job.sh", "wait last", "query last --json"),
]
