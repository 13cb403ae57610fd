# SPDX-License-Identifier: Apache-2.0
"""Things that one program makes and the other one uses: `b: ` steps run the second program. Each case is run with the old program in both
places, and then with the new one in either; all three must come out alike."""
from behaviour.case import case
from behaviour.cases.admin import SYSTEM
from behaviour.cases.launch import SRUN, SSH
from behaviour.cases.policies import HERE as POLICY
from behaviour.cases.shells import SLURM as IN_SLURM_JOB
from behaviour.cases.stores import TREE
from behaviour.cases.workspaces import CHANGE, MADE, SAVE, SERVICE_WAITS, SETTLE, WORK
from behaviour.presets import GPUS, PLAIN, RUNS, SLURM, fake

# The head's own program runs on its hosts: there it is the other one.
OTHER_THERE = {**SSH, "bin/ssh": fake("ssh").replace('"$*"', '"$(printf %s "$*" | sed s,/programs/a/,/programs/b/,g)"')}
OTHER_TASKS = {**SRUN, "bin/srun": fake("srun").replace(
    "words = sys.argv[1:]", "words = [word.replace('/programs/a/', '/programs/b/') for word in sys.argv[1:]]")}
NEXT_ENGINE = "daemon stop"
AGENT_ENDED = 'until state/jobs/*/attempt-1/agent-0.jsonl has "e":"end"'
KILLED = "$ kill -9 $(head -n 1 ../state/daemon.lock)"

CASES = [
    case("cross/ended-jobs", PLAIN, "submit -n 0 --name good --env A=b dump", "wait last", "submit -n 0 fail 7", "wait last",
         "submit -n 0 --array 0-2%1 say task", "wait last", NEXT_ENGINE, "b: ls --json", "b: query {1} {2} {3} --json", "b: > logs {2}",
         "b: > logs --task 1 {3}", "b: query --tasks {3} --json", "b: resubmit {1} --json", "b: wait last", "query {4} --json", "b: rm {2} --json",
         "b: gc --dry-run --max-size 1B --json", "ls --all --json"),
    case("cross/queued-jobs", PLAIN, "submit -n 0 --hold --name held dump", "submit -n 0 --after {1} true", NEXT_ENGINE, "b: ls --json",
         "b: query {1} {2} --json", "b: why {2} --json", "b: release {1}", "b: wait {1} {2}", "b: query {1} {2} --json"),
    case("cross/engine-replaced", GPUS, "submit -n 4 --one-rank-per-node gate go", "until facts/go.waits", "submit -n 4 --one-rank-per-node dump",
         NEXT_ENGINE, "b: query {1} {2} --json", "$ touch $FACTS/go", "b: wait {1} {2} --json", "b: ls --json", "b: daemon stop",
         "query {1} {2} --json"),
    case("cross/engine-killed", GPUS, "submit -n 4 --one-rank-per-node gate go", "until facts/go.waits", "submit -n 4 --one-rank-per-node dump",
         KILLED, "b: query {1} {2} --json", "$ touch $FACTS/go", "b: wait {1} {2} --json"),
    case("cross/agent-ends-between", PLAIN, "submit -n 0 gate go", "until facts/go.waits", NEXT_ENGINE, "$ touch $FACTS/go", AGENT_ENDED,
         "b: wait last --json", "b: > logs last"),
    case("cross/agent-of-an-array", PLAIN, "submit -n 0 --array 0-3%1 gate go", "until facts/go.waits", NEXT_ENGINE, "b: query last --json",
         "$ touch $FACTS/go", "b: wait last", "b: query --tasks last --json"),
    case("cross/abort-of-a-job", PLAIN, "submit -n 0 gate go", "until facts/go.waits", NEXT_ENGINE, "b: abort last --json", "b: query last --json"),
    case("cross/exec-in-a-job", PLAIN, "submit -n 0 gate go", "until facts/go.waits", "b: > exec last -- sh -c 'echo $RANK'", "b: exec last -- dump",
         "$ touch $FACTS/go", "b: wait last"),
    case("cross/restarts", PLAIN, "submit -n 0 --max-restarts 2 sh -c 'gate $OVERCAP_ATTEMPT; exit 5'", "until facts/1.waits", NEXT_ENGINE,
         "b: ls --json", "$ touch $FACTS/1", "until facts/2.waits", "b: daemon stop", "$ touch $FACTS/2", "query last", "until facts/3.waits",
         "$ touch $FACTS/3", "wait last", "query last --json"),
    case("cross/client", GPUS, "daemon --idle-exit 0 &", "until state/daemon.sock", "b: submit -n 2 dump", "b: wait last --json",
         "b: submit -n 4 --one-rank-per-node gate go", "until facts/go.waits", "b: submit -n 1 --hold true", "b: ls --json",
         "b: query {2} {3} --json", "b: why {3} --json", "b: usage --json", "b: nodes --json", "b: hold {3}", "b: release {3}", "b: abort {3} --json",
         "b: resubmit --dry-run {2}", "b: > logs {1}", "$ touch $FACTS/go", "b: wait {2}", "b: rm {1} --json", "b: daemon status --json",
         "b: daemon stop --json", "join"),
    case("cross/recover", PLAIN, "submit -n 0 --name kept true", "wait last", "submit -n 0 --hold --name held true", NEXT_ENGINE,
         "$ sed -i '3s/kept/torn/' ../state/journal", "b: daemon recover --json", "b: ls --json", "query {1} {2} --json"),
    case("cross/policy", POLICY, "policy apply {root}/policy.yaml", "submit -p short --account vision -n 1 gate go", "until facts/go.waits",
         "submit -p short --account vision -n 1 true", NEXT_ENGINE, "b: query {2} --json", "b: why {2} --json", "b: usage -l --json",
         "$ touch $FACTS/go", "b: wait {2}"),
    case("cross/promises", GPUS, "submit -n 4 -t 10m gate go", "until facts/go.waits", "submit -n 1 -t 5m true", "why last --json",
         "b: why last --json", "b: why --record --json", "$ touch $FACTS/go", "wait {2}", "b: why --record --json"),
    case("cross/captures", PLAIN, "submit -n 0 --hold true", "b: submit -n 0 --hold --json true", "$ echo more >> train.py", "b: init --json",
         "init --json"),
    case("cross/workspace", WORK, SETTLE, MADE, CHANGE, SAVE, "b: workspace status vision --json", "b: workspace backup vision --json",
         "$ echo 3 > ../work/model.py; settle ../work", "b: workspace backup vision --json", "workspace ls --name vision --json",
         "> workspace cat latest model.py --name vision", "workspace verify --read-data --json vision",
         "b: workspace prune vision --keep-last 1 --json", "workspace backup vision --json"),
    case("cross/workspace-init", WORK, SETTLE, "workspace create vision --at {root}/work --adopt --store {root}/repository --json", "$ rm -r ../work",
         "b: OVERCAP_HOME={root}/other workspace init vision --at {root}/there --store {root}/repository --json",
         "$ echo 2 > ../there/model.py; settle ../there", "b: OVERCAP_HOME={root}/other workspace backup vision --json",
         "workspace init vision --json", "> workspace cat latest model.py --name vision"),
    case("cross/workspace-restore", WORK, SETTLE, MADE, CHANGE, SAVE, "b: workspace restore latest~1 --to {root}/elsewhere --name vision --json",
         "b: workspace restore latest~1 model.py --name vision --json", "workspace status vision --json",
         "b: workspace forget {s1} --name vision --json", "workspace ls --name vision --json"),
    case("cross/workspace-encrypted", WORK, SETTLE, "workspace create secret --at {root}/work --adopt --key-file {root}/key --json",
         "$ echo 2 > ../work/model.py; settle ../work", "b: workspace backup secret --json", "> workspace cat latest model.py --name secret",
         "b: workspace verify secret --read-data --json"),
    case("cross/workspace-tar", WORK, SETTLE, MADE, SETTLE, SAVE, "workspace export --tar {root}/out.tar.lz4 --name vision --json",
         "b: workspace import {root}/out.tar.lz4 --name back --at {root}/disk/back --json", "workspace init back --json"),
    case("cross/workspace-auto", WORK, SETTLE, MADE, "workspace auto vision --every 1h --json", SERVICE_WAITS,
         "b: workspace auto vision --status --json", "$ echo late > ../work/late.txt; settle ../work", "b: workspace auto vision --stop --json",
         "workspace ls latest --name vision --json"),
    case("cross/saved-environment", IN_SLURM_JOB, "@job env --save --json", "b: > env --load", "b: env --load 123 --json",
         "b: @job env --save --json", "> env --load slurm-123"),
    case("cross/job-in-a-store", TREE, "submit -n 0 --store depot dump", "wait last", "submit -n 0 --store depot fail 4", "wait last", NEXT_ENGINE,
         "b: query --from depot {1} --json", "b: > logs --from depot {2}", "b: query {1} {2} --json", "b: > logs {2}", "b: resubmit {1} --json",
         "b: wait last", "query --from depot {3} --json", "b: rm {2} --json"),
    case("cross/job-in-a-store-runs", TREE, "submit -n 0 --store depot gate go", "until facts/go.waits", NEXT_ENGINE, "b: query last --json",
         "$ touch $FACTS/go", "b: wait last", "b: query --from depot {1} --json"),
    case("cross/mounts", TREE, "submit -n 0 --mount data,mode=copy sh -c 'gate go; cat data/a.txt'", "until facts/go.waits", NEXT_ENGINE,
         "b: query last --json", "$ touch $FACTS/go", "b: wait last", "b: > logs last"),
    case("cross/allocation", GPUS, "alloc --name mine -n 2 --json", "b: alloc list --json", "b: > ssh mine sh -c 'echo $CUDA_VISIBLE_DEVICES'",
         "b: alloc --name mine -n 0", "b: alloc release mine --json", "alloc list --json"),
    case("cross/launches", PLAIN, "> launch -n 2 say x", "launch -n 1 fail 3", "b: launches --json", "b: > launches --rank 0 latest",
         "b: gc --dry-run --json"),
    case("cross/launch-ssh", OTHER_THERE, "OVERCAP_SSH={root}/bin/ssh launch --hostfile hosts dump",
         "OVERCAP_SSH={root}/bin/ssh launch --hostfile hosts --json --tee none sh -c '[ $RANK = 2 ] && exit 9; exec sleep 60'",
         "b: launches latest --json"),
    case("cross/launch-srun", OTHER_TASKS, "@slurm-job launch dump", "b: launches latest --json"),
    case("cross/fanout", OTHER_THERE, "OVERCAP_SSH={root}/bin/ssh fanout {root}/project --to {root}/local/project --hosts n1 --json",
         "b: OVERCAP_SSH={root}/bin/ssh fanout {root}/project --to {root}/local/project --hosts n1 --json"),
    case("cross/elastic-agents", PLAIN,
         "OVERCAP_RDZV_KEY=k OVERCAP_HOME={root}/home-a launch --nnodes 2:2 --rdzv auto:job7 --node-rank 0 --nproc-per-node 1 --no-python dump &",
         "until home-a/launches/*/events.jsonl has leads",
         "b: OVERCAP_RDZV_KEY=k OVERCAP_HOME={root}/home-a launch --nnodes 2:2 --rdzv auto:job7 --node-rank 1 --nproc-per-node 1 --no-python dump &",
         "join"),
    case("cross/slurm", {**SLURM, **RUNS}, "submit -n 0 dump", "until slurm/jobs/101/ended", "b: wait last", "b: query last --json", "b: > logs last",
         "b: resubmit last --json", "until slurm/jobs/102/ended", "wait last", "query {1} {2} --json"),
    case("cross/slurm-waits", SLURM, "submit -n 1 --json true", "b: query last --json", "b: why last --json", "b: hold last --json",
         "release last --json", "b: abort last --json", "query last --json", "b: nodes", "usage", "b: nodes --json", "usage --json"),
    case("cross/slurm-runs", {**SLURM, **RUNS}, "submit -n 0 gate go", "until facts/go.waits", "b: query last --json", "b: exec last -- dump",
         "b: abort last --json", "query last --json", "until slurm/jobs/101/ended"),
    case("cross/system", GPUS, SYSTEM, "until run/daemon.sock", "b: nobody: submit -n 1 dump", "b: nobody: wait last --json",
         "b: nobody: submit -n 4 --one-rank-per-node gate go", "until facts/go.waits", "b: > exec {2} -- id -u", "b: query {1} {2} --json",
         "daemon stop --system", "join", "$ rm -f ../run/daemon.sock", "b: " + SYSTEM, "until run/daemon.sock", "nobody: query {2} --json",
         "$ touch $FACTS/go", "nobody: wait {2}", "nobody: resubmit {1} --json", "nobody: wait last", "b: daemon stop --system", "join", root=True),
    case("cross/configuration-of-a-root", PLAIN, "submit -n 0 --hold true", "b: daemon status --json", "b: doctor --json", "b: cluster check --json"),
]
