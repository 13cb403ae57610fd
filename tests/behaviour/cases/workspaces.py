# SPDX-License-Identifier: Apache-2.0
"""Workspaces in a repository that is a folder: made, saved, looked into, brought back, pruned, exported."""
from behaviour.case import case
from behaviour.presets import PLAIN

WORK = {**PLAIN, "work/model.py": "print(1)\n", "work/src/layer.py": "x = 2\n", "work/big.bin": "0123456789abcdef" * 4096,
        "project/overcap.yaml": "clusters: {local: {gpus: [], cpus: 4, mem: 8G}}\nworkspaces: {at: '{root}/disk'}\n"}
MADE = "workspace create vision --at {root}/work --adopt -m first --json"
CHANGE = "$ echo 'print(2)' > ../work/model.py; echo new > ../work/new.txt; rm ../work/src/layer.py; settle ../work"
SERVICE_WAITS = 'until state/workspaces/vision/auto/*.json has "next_why":"time"'
SETTLE = "$ settle ../work"
SAVE = "workspace backup vision --json"

CASES = [
    case("workspace/create", WORK, SETTLE, "workspace create --json", "workspace list --json", "workspace status --json", "workspace create --json",
         "workspace create big --at {root}/disk/big --exclude 'data/' --exclude '*.ckpt' --json", "workspace create other --at {root}/work --json",
         "workspace list --json"),
    case("workspace/adopt", WORK, SETTLE, MADE, "workspace status vision --json", "workspace list --json"),
    case("workspace/setup", WORK, SETTLE, "workspace create vision --setup 'touch made' --setup 'sh -c \"echo two > more\"' --json",
         "workspace create broken --setup 'false' --json", "workspace ls latest --name vision --json"),
    case("workspace/backup", WORK, SETTLE, MADE, SAVE, CHANGE, "workspace status vision --json", "workspace diff --name vision --json", SAVE,
         "workspace backup vision -m words --json", "workspace backup vision --read-all --json", "workspace ls --name vision --json"),
    case("workspace/looks", WORK, SETTLE, MADE, CHANGE, SAVE, "workspace ls latest -R --name vision --json",
         "workspace ls latest~1 src --name vision --json", "> workspace cat latest~1 model.py --name vision",
         "> workspace cat latest model.py --name vision", "workspace cat latest src --name vision", "workspace cat latest none --name vision",
         "workspace diff latest~1 latest --name vision --json", "workspace verify vision --json", "workspace verify --read-data --all --json vision"),
    case("workspace/restore", WORK, SETTLE, MADE, CHANGE, SAVE, "workspace restore latest~1 model.py --name vision --json",
         "workspace restore latest~1 --to {root}/elsewhere --name vision --json", "workspace restore latest~1 --name vision --json",
         "$ echo unsaved > ../work/model.py; settle ../work", "workspace restore latest --name vision --json",
         "workspace restore latest --force --name vision --json"),
    case("workspace/init", WORK, SETTLE, MADE, "$ rm -r ../work", "workspace status vision --json", "workspace init vision --json",
         "workspace init vision --json", "$ echo unsaved >> ../work/model.py; settle ../work", "workspace init vision --json",
         "workspace init vision --force --json", "workspace init vision --at {root}/second --json"),
    case("workspace/elsewhere", WORK, SETTLE, "workspace create vision --at {root}/work --adopt --store {root}/repository --json", "$ rm -r ../work",
         "OVERCAP_HOME={root}/other workspace init vision --store {root}/repository --json",
         "OVERCAP_HOME={root}/other workspace backup vision --json", "OVERCAP_HOME={root}/other workspace list --json"),
    case("workspace/prune", WORK, SETTLE, MADE, CHANGE, SAVE, "$ echo 3 > ../work/model.py; settle ../work", SAVE,
         "workspace prune vision --keep-last 1 --dry-run --json", "workspace prune vision --keep-last 1 --json", "workspace ls --name vision --json",
         "workspace prune vision --keep-last 0", "workspace prune vision --json"),
    case("workspace/forget", WORK, SETTLE, MADE, CHANGE, SAVE, "workspace forget zzzz --name vision --json",
         "workspace forget {s1} --name vision --json", "workspace ls --name vision --json", "workspace forget {s1} --name vision", "gc --json"),
    case("workspace/encrypted", WORK, SETTLE, "workspace create secret --at {root}/work --adopt --key-file {root}/key --json",
         SAVE.replace("vision", "secret"), "workspace ls --name secret --json", "$ mv ../key ../lost", "workspace ls --name secret --json",
         "workspace backup secret --json"),
    case("workspace/passphrase", {**WORK, "phrase": "open sesame\n", "wrong": "open barley\n"}, SETTLE,
         "OVERCAP_PASSPHRASE_FILE={root}/phrase workspace create secret --at {root}/work --adopt --passphrase --json",
         "OVERCAP_PASSPHRASE_FILE={root}/wrong workspace backup secret --json",
         "OVERCAP_PASSPHRASE_FILE={root}/phrase workspace backup secret --json"),
    case("workspace/export", WORK, SETTLE, MADE, SETTLE, SAVE, "workspace export --tar {root}/out.tar --name vision --json",
         "workspace export --tar {root}/out.tar --name vision", "$ tar -tvf ../out.tar --full-time | tr -s ' ' > ../facts/listing",
         "workspace export latest --tar {root}/out.tar.zst --name vision --json", "workspace export --tar {root}/out.odd --name vision"),
    case("workspace/import", WORK, "$ tar --sort=name --mtime=@1700000000 -C ../work -cf ../in.tar .",
         "workspace import {root}/in.tar --name back --at {root}/disk/back --json", "workspace ls latest -R --name back --json",
         "workspace init back --json", "workspace import {root}/in.tar --name back --json", "workspace import {root}/in.tar --name back --add --json",
         "workspace import {root}/work/model.py --name odd --json"),
    case("workspace/auto", WORK, SETTLE, MADE, "workspace auto vision --every 1h --json", SERVICE_WAITS, "workspace auto vision --every 1h --json",
         "workspace auto vision --every 2h --json", "$ echo late > ../work/late.txt; settle ../work", "workspace auto vision --stop --json",
         "workspace ls latest --name vision --json", "workspace auto vision --stop"),
    case("workspace/damaged", WORK, SETTLE, MADE, "$ for pack in ../state/store/packs/*/*; do echo damage > $pack; done",
         "workspace verify vision --read-data --json", "workspace cat latest model.py --name vision"),
]
