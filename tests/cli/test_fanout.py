# SPDX-License-Identifier: Apache-2.0
"""`overcap fanout`: a folder to hosts with an sshd and a network of their own, whatever happens to some of them."""
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess

from fanout_rig import FED_BY_HEAD, FED_THROUGH_SSH, FanoutRig
from launch_rig import HOST_PYTHON
from overcap_rig import BINARY, main

DEADLINE_SECONDS = 400


class Fanout(FanoutRig):
    def test_a_folder_reaches_every_node_and_nodes_serve_each_other(self):
        self.fill()
        said = self.brought()
        for name in self.hosts.names:
            self.assert_same(name)
            self.assertTrue(os.access(self.there(name) / "d0/run", os.X_OK))
        self.check_tree(said, FED_BY_HEAD)

    def check_tree(self, said, wanted):
        by_head = sum(node["from"] == "head" for node in said["nodes"])
        self.assertIn(by_head, wanted, said)
        self.assertEqual(sum(node["from"] in self.hosts.names for node in said["nodes"]), 4 - by_head, said)
        self.assertGreater(said["wire_bytes"], 4 * 4_000_000)
        self.assertLess(said["wire_bytes"], 4 * 4_000_000 * 1.05)
        self.assertGreater(said["from_head_bytes"], by_head * 4_000_000)
        self.assertLess(said["from_head_bytes"], by_head * 4_000_000 * 1.05)
        self.assertGreater(said["from_peers_bytes"], (4 - by_head) * 4_000_000)

    def test_all_that_the_head_sends_goes_through_ssh_when_told_so(self):
        self.fill()
        done, said = self.fanout("--ssh-only")
        self.assertEqual(done.status, 0, str(done))
        self.check_tree(said, FED_THROUGH_SSH)
        self.assertNotIn("fetches through ssh", done.err)

    def test_nodes_that_cannot_reach_the_head_get_it_through_ssh(self):
        self.fill()
        for name in self.hosts.names:  # answers of its sshd pass, nothing that it begins itself
            rules = f"ip rule add ipproto tcp sport 22 lookup main pref 100 && ip rule add to {self.hosts.machines.net}.254 ipproto tcp blackhole pref 200"
            made = self.hosts.run(name, ["sh", "-c", rules])
            self.addCleanup(self.hosts.run, name, ["sh", "-c", "ip rule del pref 100; ip rule del pref 200"])
            self.assertEqual(made.returncode, 0, made.stderr)
        done, said = self.fanout()
        self.assertEqual(done.status, 0, str(done))
        self.check_tree(said, FED_THROUGH_SSH)
        self.assertNotIn("could not fetch", done.err)
        (self.source / "more").write_bytes(random.Random(5).randbytes(1 << 20))
        told = self.overcap("fanout", str(self.source), "--to", self.target, "--hosts", self.hosts.hostfile())
        self.assertEqual(told.status, 0, str(told))
        self.assertEqual(told.err.count("fetches through ssh: it cannot do so from this machine directly"), 1, str(told))
        self.until_hosts_empty(20)

    def test_a_second_run_moves_what_changed(self):
        self.fill()
        (self.source / "large").write_bytes(random.Random(2).randbytes(40 << 20))
        whole = self.brought()["wire_bytes"]
        again = self.brought()
        self.assertLess(again["wire_bytes"], whole / 500, again)
        self.assertEqual([node["written_files"] for node in again["nodes"]], [0] * 4)
        for number in (3, 77):  # 1 % of the files, and a piece in the middle of the large one
            (self.source / f"d{number % 10}/f{number}").write_bytes(random.Random(number).randbytes(20_000))
        with open(self.source / "large", "r+b") as file:
            file.seek(20 << 20)
            file.write(b"changed")
        (self.source / "d1/f11").unlink()
        (self.source / "d2/f12").rename(self.source / "d2/renamed")
        changed = self.brought()
        for name in self.hosts.names:
            self.assert_same(name)
        self.assertLess(changed["wire_bytes"], whole * 0.1, changed)
        self.assertGreater(self.node(changed, "host1")["reused_bytes"], 30 << 20)

    def test_an_environment_works_at_its_new_place(self):
        made = subprocess.run([HOST_PYTHON, "-m", "venv", "--without-pip", str(self.source)], capture_output=True, text=True,
                              timeout=60, check=False)
        if made.returncode != 0:
            self.skipTest(f"NOT TESTED: no venv here: {made.stderr.strip()}")
        tool = self.source / "bin/tool"
        tool.write_text(f"#!{self.source}/bin/python\nimport sys\nprint(sys.prefix)\n")
        tool.chmod(0o755)
        site = next((self.source / "lib").glob("python*/site-packages"))
        (site / "module.py").write_text("value = 42\n")
        said = self.brought(hosts=["host1", "host2", "host3"])
        self.assertGreater(self.node(said, "host1")["fixed"], 2)
        for name in ("host1", "host2", "host3"):
            self.assertEqual(self.hosts.run(name, [f"{self.target}/bin/tool"]).stdout, f"{self.target}\n")
            ran = self.hosts.run(name, ["sh", "-c", f". {self.target}/bin/activate; python -c 'import module; print(module.value)'; command -v tool"])
            self.assertEqual(ran.stdout, f"42\n{self.target}/bin/tool\n")
            self.assertNotIn(str(self.source), (self.there(name) / "pyvenv.cfg").read_text())
        again = self.brought(hosts=["host1", "host2", "host3", "host4"])
        self.assertEqual(self.hosts.run("host4", [f"{self.target}/bin/tool"]).stdout, f"{self.target}\n")
        self.assertLess(self.node(again, "host1")["from_peers_bytes"], 1000, again)
        self.brought("--no-fix", hosts=["host1"])
        self.assertIn(str(self.source), (self.there("host1") / "bin/tool").read_text())

    def test_hosts_without_the_program_get_it(self):
        self.binary = pathlib.Path(self.hosts.private_dir) / "overcap"
        shutil.copy(BINARY, self.binary)
        self.addCleanup(self.binary.unlink)
        self.fill(files=20)
        self.brought(hosts=["host1", "host2"], deadline=60)
        self.assert_same("host2")

    def test_an_ssh_that_does_not_know_the_quick_ways_is_asked_without_them(self):
        self.fill(files=5)
        refuse = 'case "$*" in *Ciphers*) echo "command-line line 0: Bad SSH2 cipher spec" >&2; exit 255;; esac'
        old = self.write("old-ssh", f'#!/bin/sh\n{refuse}\nexec {self.hosts.ssh_program} "$@"\n', mode=0o755)
        self.brought(hosts=["host1"], env={"OVERCAP_SSH": str(old)})
        self.assert_same("host1")

    def test_a_snapshot_of_a_workspace_is_a_source(self):
        self.fill(files=20)
        self.ok("workspace", "create", "work", "--at", str(self.source), "--adopt")
        (self.source / "d0/f0").write_bytes(b"later")
        self.brought(source="work@latest", hosts=["host1"])
        self.assertEqual(len((self.there("host1") / "d0/f0").read_bytes()), 20_000)

    def test_a_folder_of_a_store_is_a_source(self):
        self.fill(files=20)
        os.unlink(self.source / "link")
        (self.project / "overcap.yaml").write_text(f"stores:\n  data: {self.source}\n")
        self.brought(source="data", hosts=["host1"])
        self.assertEqual((self.there("host1") / "d1/f1").read_bytes(), (self.source / "d1/f1").read_bytes())


class Trouble(FanoutRig):
    def test_nodes_that_fail_are_named_and_the_others_are_complete(self):
        self.fill()
        self.power_off("host1")  # does not answer
        self.there("host2").write_text("a file where the folder should be")
        self.addCleanup(self.there("host2").unlink, missing_ok=True)
        done, said = self.fanout(deadline=60)
        self.assertEqual(done.status, 5, str(done))
        self.assertEqual((said["complete"], said["failed"]), (2, 2))
        self.assertIn("host 'host1'", self.node(said, "host1")["error"]["message"])
        self.assertIn("is not a folder", self.node(said, "host2")["error"]["message"])
        for name in ("host3", "host4"):
            self.assert_same(name)
        self.there("host2").unlink()
        said = self.brought(hosts=["host2", "host3", "host4"])
        self.assert_same("host2")
        self.assertEqual(self.node(said, "host3")["written_files"], 0)

    def test_a_full_disk_on_one_node_is_that_nodes_trouble(self):
        self.fill(files=300, size=50_000)
        small = f"mkdir -p {self.target} && mount -t tmpfs -o size=8m,mode=0755 tmpfs {self.target}"
        # In the first process's namespace, which the host's sshd and all that comes in over it share.
        mounted = self.hosts.run("host2", ["sh", "-c", small])
        self.assertEqual(mounted.returncode, 0, mounted.stderr)
        self.addCleanup(self.hosts.run, "host2", ["umount", "-l", self.target])
        done, said = self.fanout()
        self.assertEqual(done.status, 5, str(done))
        self.assertIn("no space is left", self.node(said, "host2")["error"]["message"])
        self.assertEqual(said["complete"], 3)
        self.hosts.run("host2", ["mount", "-o", "remount,size=64m", self.target])
        said = self.brought()
        self.assertEqual([node["written_files"] for node in said["nodes"] if node["host"] != "host2"], [0, 0, 0])

    def test_a_node_that_is_killed_is_named_and_the_next_run_brings_the_rest(self):
        self.fill(files=4000, size=50_000)
        process = self.start("fanout", "--json", str(self.source), "--to", self.target, "--hosts", self.hosts.hostfile())
        victim = self.there("host1")
        self.until(lambda: len(list(victim.glob("d0/*"))) > 20 or process.poll() is not None, "the first files", 60)
        pids = [pid for pid, line in self.hosts.processes("host1") if line.endswith("fanout-node") and "sshd" not in line]
        for pid in pids:
            self.kill(pid, signal.SIGKILL)
        done = self.finish(process, 120)
        said = json.loads(done.out.splitlines()[-1])
        if self.node(said, "host1")["complete"]:
            self.skipTest("NOT TESTED: the node was complete before it could be killed")
        self.assertEqual((done.status, said["complete"]), (5, 3), str(done))
        self.until_hosts_empty(20)
        for name in ("host2", "host3", "host4"):
            self.assert_same(name)
        again = self.brought()
        self.assert_same("host1")
        self.assertLess(again["wire_bytes"], 210_000_000)
        self.assertEqual([node["written_files"] for node in again["nodes"] if node["host"] != "host1"], [0, 0, 0])

    def test_ctrl_c_ends_it_and_leaves_no_process(self):
        self.fill(files=4000, size=50_000)
        process = self.start("fanout", str(self.source), "--to", self.target, "--hosts", self.hosts.hostfile())
        self.until(lambda: len(list(self.there("host1").glob("d0/*"))) > 20 or process.poll() is not None, "the first files", 60)
        process.send_signal(signal.SIGINT)
        done = self.finish(process, 60)
        self.assertIn(done.status, (0, 130), str(done))
        self.until_hosts_empty(20)
        self.brought(deadline=60)
        self.assert_same("host4")

    def test_a_folder_that_holds_something_else_is_refused(self):
        self.fill(files=5)
        self.there("host1").mkdir()
        (self.there("host1") / "mine").write_text("x")
        done, said = self.fanout(hosts=["host1"])
        self.assertEqual(done.status, 6, str(done))
        self.assertEqual(self.node(said, "host1")["error"]["code"], "conflict")
        self.assertTrue((self.there("host1") / "mine").exists())
        self.brought("--force", hosts=["host1"])
        self.assertFalse((self.there("host1") / "mine").exists())

    def test_a_folder_that_nodes_share_is_refused_to_all_but_one(self):
        self.fill(files=2000)
        shared = self.root / "shared"
        self.target = str(shared)
        done = self.overcap("fanout", "--json", str(self.source), "--to", str(shared), "--hosts", self.hosts.hostfile(), deadline=60)
        said = json.loads(done.out.splitlines()[-1])
        self.assertGreaterEqual(said["complete"], 1, str(done))
        for node in said["nodes"]:
            if not node["complete"]:
                self.assertIn("another fan-out works on", node["error"]["message"])

    def test_bad_words_are_refused_before_anything_is_done(self):
        self.fill(files=1)
        one = ("--hosts", "host1")
        self.refused("fanout", str(self.source), *one, says="--to is missing")
        self.refused("fanout", str(self.source), "--to", "rel/ative", *one, says="not an absolute path")
        self.refused("fanout", str(self.source), "--to", "/x", says=("in no job", "--hosts"))
        self.refused("fanout", str(self.project / "none"), "--to", "/x", *one, status=3, says="none")
        self.refused("fanout", str(self.source / "d0/f0"), "--to", "/x", *one, says="single file")
        for bucket, place in (("s3://lab-data/my qd", "./my qd"), ("s3://lab-data", "./lab-data"), ("az://account/box/qd/", "./qd")):
            copied = f"overcap store cp {shlex.quote(bucket)} {shlex.quote(place)} && overcap fanout {shlex.quote(place)} --to '$TMPDIR/x'"
            self.refused("fanout", bucket, "--to", "$TMPDIR/x", *one, says=(f"'{bucket}' is in a bucket: a folder fans out", f"copy it first: {copied}"))
        self.refused("fanout", str(self.source), "--to", "/x", "--hosts", "-oProxyCommand=x", says="host")
        self.refused("fanout", str(self.source), "--to", "/x", "--hosts", "/no/such/file", says="/no/such/file")


if __name__ == "__main__":
    main()
