# SPDX-License-Identifier: Apache-2.0
"""`overcap fanout` among hosts that are slow, silent, that lie or cannot be written to; and the hosts of a PBS job."""
import os
import signal

from fanout_rig import FanoutRig
from overcap_rig import main

DEADLINE_SECONDS = 400


class Peers(FanoutRig):
    def check_rogue(self, mode, says):
        self.fill(files=40)
        self.programs({"host1": self.rogue(mode), **dict.fromkeys(("host2", "host3", "host4"), self.after_rogue())})
        done, said = self.fanout("--ssh-only", deadline=120)
        self.assertEqual(done.status, 0, str(done))
        for name in ("host2", "host3", "host4"):
            self.assert_same(name)
            self.assertNotEqual(self.node(said, name)["from"], "host1", said)
        self.assertIn("could not fetch from host 'host1' any more", done.err)
        self.assertIn(says, done.err)
        self.assertEqual(said["complete"], 4)

    def test_a_peer_that_sends_rubbish_is_left_for_another_source(self):
        self.check_rogue("rubbish", "it sent something else")

    def test_rubbish_with_the_right_checksum_is_seen_by_its_hash(self):
        self.check_rogue("forged", "it sent something else")

    def test_a_slow_node_holds_up_nobody(self):
        self.fill(files=400)
        slow = 'if [ "$1" = fanout-node ]; then kill -STOP $$; fi'  # until somebody lets it go on
        self.programs({"host1": slow, **dict.fromkeys(("host2", "host3", "host4"), "")})
        process = self.start("fanout", "--json", str(self.source), "--to", self.target, "--hosts", self.hosts.hostfile())
        for name in ("host2", "host3", "host4"):
            self.until(lambda name=name: (self.there(name) / ".overcap/fanout/chunks").exists(), f"{name} to be complete", 14)
        for pid, line in self.hosts.processes("host1"):
            if line.startswith("/bin/sh") and "fanout-node" in line:
                self.kill(pid, signal.SIGCONT)
        done = self.finish(process, 60)
        self.assertEqual(done.status, 0, str(done))
        self.until_hosts_empty(20)
        for name in self.hosts.names:
            self.assert_same(name)

    def test_a_folder_that_cannot_be_written_is_that_nodes_trouble(self):
        self.fill(files=50)
        parent = self.target
        self.target += "/at"
        for name in self.hosts.names:
            self.there(name).parent.mkdir()
        locked = self.hosts.run("host3", ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", parent])
        self.assertEqual(locked.returncode, 0, locked.stderr)
        self.addCleanup(self.hosts.run, "host3", ["umount", "-l", parent])
        done, said = self.fanout()
        self.assertEqual((done.status, said["complete"], said["failed"]), (5, 3, 1), str(done))
        trouble = self.node(said, "host3")["error"]
        self.assertIn(self.target, trouble["message"])
        self.assertIn("ead-only", trouble["message"])
        told = self.overcap("fanout", str(self.source), "--to", self.target, "--hosts", self.hosts.hostfile())
        self.assertEqual(told.status, 5, str(told))
        self.assertIn("host 'host3': ", told.err)
        self.assertIn("3 of 4 nodes", told.err)
        self.until_hosts_empty(20)
        self.hosts.run("host3", ["umount", "-l", parent])
        self.brought()

    def test_the_hosts_of_a_pbs_job(self):
        self.fill(files=30)
        nodes = self.root / "nodes"
        nodes.write_text("host2\nhost2\nhost4\nhost4\n")
        done = self.overcap("fanout", str(self.source), "--to", self.target, env={"PBS_JOBID": "12.server", "PBS_NODEFILE": str(nodes)})
        self.assertEqual(done.status, 0, str(done))
        for name in ("host2", "host4"):
            self.assert_same(name)
        for name in ("host1", "host3"):
            self.assertFalse(os.path.exists(self.there(name)))


if __name__ == "__main__":
    main()
