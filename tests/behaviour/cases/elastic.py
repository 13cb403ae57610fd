# SPDX-License-Identifier: Apache-2.0
"""Elastic groups: jobs with a range of nodes, agents that meet each other, the flags of torchrun."""
from behaviour.case import case
from behaviour.presets import GPUS, PLAIN

TWO_RANKS = "launch --standalone --nproc-per-node 2"

CASES = [
    case("elastic/standalone", PLAIN, f"{TWO_RANKS} --no-python dump", "launches latest --json"),
    case("elastic/torchrun-words", {**PLAIN, "project/tell.py": "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"},
         "> launch --standalone --nproc_per_node=1 tell.py", "launches latest --json"),
    case("elastic/restart", PLAIN, "launch --standalone --nproc-per-node 1 --max-restarts 1 --no-python sh -c 'dump; exit 4'",
         "launches latest --json"),
    case("elastic/fails", PLAIN, "launch --standalone --nproc-per-node 1 --no-python fail 6"),
    case("elastic/rdzv-auto", PLAIN, "launch --nnodes 1:2 --rdzv auto --nproc-per-node 1 --last-call 1s --no-python dump"),
    case("elastic/two-agents", PLAIN, "OVERCAP_RDZV_KEY=k launch --nnodes 2:2 --rdzv auto:job7 --node-rank 0 --nproc-per-node 1 --no-python dump &",
         "until state/launches/*/events.jsonl has leads",
         "OVERCAP_RDZV_KEY=k launch --nnodes 2:2 --rdzv auto:job7 --node-rank 1 --nproc-per-node 1 --no-python dump &", "join"),
    case("elastic/refused", PLAIN, "launch --nnodes 3:2 true", "launch --nnodes 1:2 --rdzv nowhere true",
         "launch --nnodes 1:2 --rdzv auto --nproc-per-node x true", "launch --standalone --ttl 0s true",
         "launch --nnodes 1:2 --grow sometimes --rdzv auto true"),
    case("elastic/dry-run", PLAIN, "launch --dry-run --nnodes 1:4 --rdzv etcd://h1:2379,h2:2379/job7 --max-restarts 3 true",
         "launch --dry-run --json --standalone --nproc-per-node 2 true"),
    case("elastic/submit", GPUS, "submit --nodes 1:2 --gpus-per-node 4 --cpus 2 dump", "wait last", "query last --json",
         unstable=("file */events.jsonl",)),  # its leader and the engine both append to that
    case("elastic/submit-two", GPUS, "submit --nodes 1:2 --gpus-per-node 2 --cpus 2 dump", "wait last", "query last --json",
         unstable=("json 3", "file */events.jsonl")),  # which of the two agents leads is chance
    case("elastic/submit-dry-run", GPUS, "submit --dry-run --nodes 1:3 --gpus-per-node 1 --max-restarts 3 true",
         "submit --nodes 1:8 --json --hold --gpus-per-node 4 true", "submit --nodes 2:1 true", "submit --nodes 0:2 true"),
]
