# SPDX-License-Identifier: Apache-2.0
"""Stores: folders and hosts with ssh; jobs whose code and logs go through a store; locks; fan-out."""
from behaviour.case import case
from behaviour.presets import PLAIN, fake

TREE = {**PLAIN, "src/a.txt": "alpha\n", "src/b/c.txt": "gamma\n", "src/b/d/e.bin": "0123456789" * 1000,
        "project/overcap.yaml": "clusters: {local: {gpus: [], cpus: 4, mem: 8G, mounts_at: '{root}/node'}}\n"
                                "stores: {data: '{root}/src', depot: '{root}/depot'}\n"}
SSH = {**TREE, "bin/ssh": fake("ssh"), "project/hosts": "n1\n"}
THERE = "ssh://far{root}/there"
VENV = {**SSH, "src/venv/pyvenv.cfg": "home = /usr/bin\n", "src/venv/bin/tool": "#!{root}/src/venv/bin/python\nprint(1)\n"}

CASES = [
    case("store/cp", TREE, "store cp {root}/src {root}/dst --json", "store cp {root}/src {root}/dst --json",
         "store cp {root}/src/a.txt {root}/one/ --json", "> store cp {root}/src/a.txt -", "store cp - {root}/piped.txt --json < train.py",
         "store cp {root}/src {root}/dst --dry-run --force --json", "store cp {root}/src {root}/dst --dry-run --force"),
    case("store/cp-checksum", TREE, "store cp data {root}/dst --fsync", "$ echo alphA > ../dst/a.txt",
         "store cp data {root}/dst --checksum --json --jobs 1", "> store cp data:a.txt -"),
    case("store/sync", TREE, "store sync {root}/src {root}/dst --json --jobs 1",
         "$ rm ../src/a.txt; echo new > ../src/n.txt; echo x > ../dst/extra.txt", "store sync {root}/src {root}/dst --delete --dry-run",
         "store sync {root}/src {root}/dst --delete --json --jobs 1", "store check {root}/src {root}/dst --json --jobs 1"),
    case("store/looks", TREE, "store ls", "store ls --json", "> store ls data", "> store ls -R data", "store ls -lR data --json",
         "store stat data:a.txt --json", "store du data --json", "store du {root}/src --json", "store check data --json",
         "store check data --clean --json", "store ls data:b --json"),
    case("store/differs", TREE, "store cp data {root}/dst", "$ echo other > ../dst/a.txt; echo x > ../dst/more.txt; rm ../dst/b/c.txt",
         "store check data {root}/dst --json --jobs 1"),
    case("store/rm", TREE, "store rm data:a.txt --json", "store rm data:b", "store rm -r data:b --dry-run", "store rm -r data:b --json --jobs 1",
         "store rm -r {root}/src", "store rm data:none --json"),
    case("store/ssh", SSH, f"OVERCAP_SSH={{root}}/bin/ssh store cp {{root}}/src {THERE} --json --jobs 1",
         f"> OVERCAP_SSH={{root}}/bin/ssh store ls -R {THERE}", f"OVERCAP_SSH={{root}}/bin/ssh store stat {THERE}/a.txt --json",
         f"OVERCAP_SSH={{root}}/bin/ssh store sync {THERE} {{root}}/back --json --jobs 1",
         f"OVERCAP_SSH={{root}}/bin/ssh store rm -r {THERE} --json --jobs 1"),
    case("store/url", {**TREE, "user/.aws/credentials": "[default]\naws_access_key_id = AK\naws_secret_access_key = SK\n"},
         "store url {root}/src/a.txt --json", "AWS_ENDPOINT_URL=http://127.0.0.1:1 store url s3://bucket/key --json"),
    case("store/job", TREE, "submit -n 0 --store depot dump", "wait last", "query last --json", "> logs last", "query --from depot {1} --json",
         "> logs --from depot {1}", "resubmit last --json", "wait last", "rm {1} --json", "gc --dry-run --json"),
    case("store/job-fails", TREE, "submit -n 0 --store {root}/depot fail 3", "wait last", "> logs --from {root}/depot {1}",
         "submit --dry-run -n 0 --store {root}/depot true", "submit --store none -n 0 --dry-run true"),
    case("store/mount-named", TREE, "submit -n 0 --mount data sh -c 'cat data/a.txt'", "wait last", "> logs last",
         "submit --dry-run -n 0 --mount data=data,mode=copy-ro --mount depot=none true"),
    case("store/fanout", SSH, "OVERCAP_SSH={root}/bin/ssh fanout {root}/src --to {root}/local/src --hosts n1 --json",
         "OVERCAP_SSH={root}/bin/ssh fanout {root}/src --to {root}/local/src --hosts hosts --ssh-only --json", "$ echo mine > ../own",
         "OVERCAP_SSH={root}/bin/ssh fanout {root}/src --to {root}/user --hosts n1 --json"),
    case("store/fanout-environment", VENV, "OVERCAP_SSH={root}/bin/ssh fanout {root}/src/venv --to {root}/local/venv --hosts n1 --json",
         "OVERCAP_SSH={root}/bin/ssh fanout {root}/src/venv --to {root}/raw --hosts n1 --no-fix"),
]
