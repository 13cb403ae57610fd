# SPDX-License-Identifier: Apache-2.0
"""Policies: checked, rendered, applied to Slurm and to this machine's engine, replayed on histories."""
import getpass
import random

from behaviour.case import case
from behaviour.presets import DATA, EXAMPLES, GPUS, SLURM

ME = getpass.getuser()
REAL = DATA / "slurm-22.05.8"
ANSWERS = {"associations": "associations", "qos": "qos", "user": "users", "account": "coordinators", "partition": "partitions", "config": "config",
           "node": "nodes", "reservation": "reservations"}
LIVE = {**SLURM, **{f"slurm/{name}": (REAL / f"policy-{file}.txt").read_text() for name, file in ANSWERS.items()},
        "project/policy.yaml": (REAL / "policy.yaml").read_text()}
EXAMPLE = (EXAMPLES / "pooled-cluster-policy.yaml").read_text()
SMALL = "nodes:\n  a[1-4]: {gpus: a40:8, cpus: 64}\nlabs:\n  vision: 16 ann bob\n  nlp: 16 carol\n"
OTHER = "nodes:\n  a[1-2]: {gpus: a40:8, cpus: 128}\nlabs:\n  vision: 1 ann\n  speech: 2 joe\npartitions: {overcap: none, user-overcap: none}\n"
# Waits until facts/ATTEMPT is there; ends when its GPUs are wanted back.
YIELDS = """#!/usr/bin/env -S python3 -I -S
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(3))
name = os.environ["FACTS"] + "/" + os.environ["OVERCAP_ATTEMPT"]
open(name + ".waits", "w").close()
while not os.path.exists(name):
    time.sleep(0.02)
"""
HERE = {**GPUS, "bin/yields": YIELDS, "policy.yaml": f"""
nodes:
  here: {{gpus: a40:4, cpus: 8}}
labs:
  vision: {{gpus: 2, members: [{ME}], per_user: {{gpus: 1}}}}
  language: 2 {ME}
partitions:
  debug: {{gpus_per_user: 1, max_time: 10m}}
  short: {{max_time: 1h}}
  overcap: {{grace: 20s, quantum: 0}}
"""}


def history(jobs=300):
    chance, now = random.Random(1), 0
    lines = ["submit,run,gpus,lab,user"]
    for _ in range(jobs):
        now += chance.randrange(300)
        lab, user = chance.choice((("vision", "ann"), ("vision", "bob"), ("nlp", "carol")))
        lines.append(f"{now},{chance.randrange(60, 20000)},{chance.choice((1, 1, 2, 4, 8, 16))},{lab},{user}")
    return "\n".join(lines) + "\n"


SACCT = "JobID|User|Account|Partition|Submit|Elapsed|Timelimit|AllocTRES|ReqTRES\n" + "".join(
    f"{n}|u{n % 4}|lab{n % 2}|short|2026-01-02T03:{n:02}:00|00:{n:02}:10|01:00:00|gres/gpu={1 + n % 3}|gres/gpu={1 + n % 3}\n"
    for n in range(1, 60))
SIMULATED = {"project/policy.yaml": SMALL, "project/other.yaml": OTHER, "project/jobs.csv": history(), "project/sacct.txt": SACCT,
             "project/odd.csv": "submit,run,gpus,lab\n1,5,1,vision\n-2,5,1,vision\n3,5,64,nlp\n4,5,1,art\n",
             "project/units.csv": "arrived,took,n,team\n0,60000,1,vision\n5,120000,2,nlp\n"}

CASES = [
    case("policy/check",
         {"project/policy.yaml": SMALL, "project/example.yaml": EXAMPLE, "project/warns.yaml": SMALL + "partitions: {debug: {max_time: 100d}}\n"},
         "policy check policy.yaml --json", "policy check example.yaml --json", "policy check warns.yaml --json"),
    case("policy/render", {"project/policy.yaml": SMALL}, "> policy render slurm policy.yaml", "policy render slurm policy.yaml --json"),
    case("policy/render-example", {"project/policy.yaml": EXAMPLE}, "> policy render slurm policy.yaml", "policy render slurm policy.yaml --json"),
    case("policy/render-recorded", {"project/policy.yaml": (REAL / "policy.yaml").read_text()}, "> policy render slurm policy.yaml"),
    case("policy/apply-slurm", LIVE, "policy apply --dry-run policy.yaml", "policy apply --dry-run policy.yaml --json",
         "policy apply policy.yaml --json"),
    case("policy/apply-slurm-other", {**LIVE, "project/policy.yaml": LIVE["project/policy.yaml"].replace("gpus: 3, cpus: 8", "gpus: 2, cpus: 4")},
         "policy apply --dry-run policy.yaml", "policy apply policy.yaml --json"),
    case("policy/apply-slurm-wrong", {**LIVE, "project/policy.yaml": SMALL}, "policy apply --dry-run policy.yaml", "policy apply policy.yaml --json"),
    case("policy/apply-here", HERE, "policy apply --dry-run {root}/policy.yaml", "policy apply {root}/policy.yaml --json",
         "policy apply {root}/policy.yaml --json", "daemon status --json"),
    case("policy/engine", HERE, "policy apply {root}/policy.yaml", "submit -p short --account vision -n 1 dump", "wait last", "query last --json",
         "submit -p short --account vision -n 1 gate go", "until facts/go.waits", "submit -p short --account vision -n 1 true", "query last --json",
         "why last --json", "submit -p debug -n 2 true", "submit -p nowhere -n 1 true", "submit --account art true", "usage -l --json", "ls --json",
         "$ touch $FACTS/go", "wait {2} {3}"),
    case("policy/preempts", HERE, "policy apply {root}/policy.yaml", "submit -p overcap --account vision -n 4 --one-rank-per-node yields",
         "until facts/1.waits", "submit -p short --account language -n 1 true", "wait {2}", "until facts/2.waits", "query {1} --json",
         "$ touch $FACTS/2", "wait {1}", "query {1} --json"),
    case("policy/simulate", SIMULATED, "policy simulate policy.yaml --trace jobs.csv --json", "> policy simulate policy.yaml --trace jobs.csv",
         "policy simulate policy.yaml --against other.yaml --trace jobs.csv --json"),
    case("policy/simulate-flags", SIMULATED, "policy simulate policy.yaml --trace jobs.csv --scale 0.5 --json",
         "policy simulate policy.yaml --trace jobs.csv --partition short,overcap --checkpoint 10m --json",
         "policy simulate policy.yaml --trace sacct.txt --seed 7 --json",
         "policy simulate policy.yaml --trace units.csv --columns submit=arrived,run=took:ms,gpus=n,lab=team --json",
         "policy simulate policy.yaml --trace odd.csv --json", "policy simulate policy.yaml --trace jobs.csv --format sacct --json",
         "> policy simulate policy.yaml --trace jobs.csv --against other.yaml"),
]
