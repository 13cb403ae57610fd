# SPDX-License-Identifier: Apache-2.0
"""The engine, the configuration, what a machine says of itself, allocations on this machine, why jobs wait."""
from behaviour.case import case
from behaviour.presets import GPUS, PLAIN

CONFIGURED = {
    **PLAIN,
    "user/.config/overcap/overcap.yaml": """
defaults: {gpus: 2, time: 4h, mem: 1G, requeue: true}
jobs: {grace: 3s}
retention: {age: 7d, size: 50G}
logs: {max: 1G}
""",
    "project/overcap.yaml": """
clusters: {local: {gpus: [{type: a40, count: 2, memory: 48G}], cpus: 4, mem: 8G}}
stores: {data: s3://lab/data}
workspaces: {at: /scratch/x, env: venv, keep: {last: 3, daily: 7}}
mounts: {data: {store: data, mode: ro}}
""",
    "project/other.yaml": "defaults: {gpus: 0}\n",
}
SYSTEM = "daemon --system --root {root}/lib --socket {root}/run/daemon.sock --idle-exit 0 &"
STOP = "daemon stop"

CASES = [
    case("admin/configuration", CONFIGURED, "config show --json", "--config other.yaml config show --json",
         "OVERCAP_CONFIG={root}/project/other.yaml config show --json", "cluster list --json", "submit --dry-run true", "submit --dry-run -t 2d true",
         "submit --dry-run -n 3 true"),
    case("admin/nothing-configured", {"project/train.py": "1\n"}, "config show --json", "cluster list --json", "doctor --json",
         "submit --dry-run -n 0 true"),
    case("admin/engine", PLAIN, "daemon status --json", "daemon --idle-exit 0 &", "until state/daemon.sock", "daemon status --json", "daemon",
         "submit -n 0 true", "wait last", "daemon stop --json", "join", "daemon status --json"),
    case("admin/engine-idle", PLAIN, "daemon --idle-exit 1", "daemon status --json"),
    case("admin/engine-root", PLAIN, "daemon --root {root}/elsewhere --idle-exit 0 &", "until elsewhere/daemon.sock",
         "OVERCAP_HOME={root}/elsewhere submit -n 0 true", "OVERCAP_HOME={root}/elsewhere wait last", "OVERCAP_HOME={root}/elsewhere daemon stop",
         "join"),
    case("admin/engine-is-replaced", PLAIN, "submit -n 0 gate go", "until facts/go.waits", STOP, "$ touch $FACTS/go", "wait last",
         "query last --json", "ls --json"),
    case("admin/queue-outlives-engine", PLAIN, "submit -n 0 --hold true", STOP, "query last --json", "release last", "wait last"),
    case("admin/recover", PLAIN, "submit -n 0 --name kept true", "wait last", "submit -n 0 --hold --name held true", STOP,
         "$ sed -i '3s/kept/torn/' ../state/journal", "ls --json", "daemon recover --json", "ls --json", "query {1} {2} --json"),
    case("admin/recover-without-journal", PLAIN, "submit -n 0 true", "wait last", STOP, "$ rm ../state/journal", "ls --json", "daemon recover",
         "ls --json", "query last --json"),
    case("admin/torn-line", PLAIN, "submit -n 0 --hold true", STOP, "$ printf '12345678 {\"n\":9,\"e\":\"hel' >> ../state/journal",
         "query last --json"),
    case("admin/system-unit", PLAIN, "> daemon --system --print-unit --policy /etc/overcap/policy.yaml --idle-exit 0",
         "daemon status --system --json"),
    case("admin/engine-policy-missing", GPUS, "daemon --policy {root}/none.yaml", "daemon --policy none.yaml"),
    case("admin/machine-changes", GPUS, "submit -n 1 true", "wait last", "$ sed -i 's/count: 4/count: 2/' overcap.yaml", "submit -n 3 true",
         "nodes --json"),
    case("system/engine", GPUS, SYSTEM, "until run/daemon.sock", "cluster list --json", "submit -n 2 dump", "wait last --json", "query last --json",
         "> logs last", "submit -n 4 --one-rank-per-node gate go", "until facts/go.waits", "submit -n 1 true", "ls --json", "why last --json",
         "usage --json", "> exec {2} -- sh -c 'echo $RANK'", "$ touch $FACTS/go", "wait {2} {3}", "resubmit {1} --json", "wait last", "rm {1} --json",
         "daemon status --system --json", "doctor --json", "cluster check --json", "daemon stop --system --json", "join",
         "daemon status --system --json", root=True),
    case("system/two-users", GPUS, SYSTEM, "until run/daemon.sock", "nobody: submit -n 1 dump", "nobody: wait last --json",
         "nobody: query last --json", "nobody: > logs last", "nobody: submit -n 4 --one-rank-per-node gate go", "until facts/go.waits",
         "submit -n 0 --hold --json true", "query {2} --json", "> logs {1}", "> exec {2} -- id -u", "nobody: > exec {2} -- id -u",
         "nobody: query {3} --json", "nobody: abort {3} --json", "nobody: logs {3}", "nobody: resubmit {3}", "nobody: rm {3}", "nobody: ls --json",
         "nobody: usage -u --json", "resubmit {1}", "abort {2} {3} --json", "rm {1} --json", "nobody: ls --json", "nobody: daemon stop --system",
         "daemon stop --system", "join", root=True),
    case("alloc/held", GPUS, "alloc --name mine -n 2 --json", "alloc list --json", "alloc --name mine -n 0", "submit -n 4 true", "query last --json",
         "> ssh mine sh -c 'echo $CUDA_VISIBLE_DEVICES'", "alloc install --json", "alloc install --json", "exec mine -- dump",
         "alloc release mine --json", "wait {2}", "alloc list --json"),
    case("alloc/given-back", GPUS, "submit -n 4 gate go", "until facts/go.waits", "alloc -n 1 --no-wait --json", "alloc list --json",
         "release dev --json", "alloc list --json", "abort {1}"),
    case("alloc/connect", GPUS, "alloc -n 0 --ssh jump --json", "alloc connect dev", "alloc connect none", "alloc release dev"),
    case("why/gpus", GPUS, "submit -n 3 --name long -t 1h gate go", "until facts/go.waits", "submit -n 2 -t 1h true", "why last --json",
         "why last --replays 50 --json", "why --record --json", "submit -n 4 --hold true", "why last --json", "why {1} --json",
         "why last --replays 0", "$ touch $FACTS/go", "wait {2}", "why --record --json"),
    case("why/ahead", GPUS, "submit -n 4 -t 10m gate go", "until facts/go.waits", "submit -n 4 -t 1h true", "submit -n 1 -t 2h --cpus 8 true",
         "submit -n 1 -t 5m true", "why {2} --json", "why {3} --json", "why {4} --json", "abort {1} {2} {3} {4}"),
]
