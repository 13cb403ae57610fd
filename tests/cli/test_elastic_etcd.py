# SPDX-License-Identifier: Apache-2.0
"""Elastic groups that meet in a real etcd: leaders that die, etcd's own leader killed, credentials, hosts that are cut off."""
import signal
import subprocess
import time

from elastic_rig import STAY, TELL, ElasticRig
from overcap_rig import BINARY, main, needs_root, shell
from rigs import machines
from rigs.etcd_rig import Etcd
from rigs.machines import Machines


class EtcdRig(ElasticRig):
    members = 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.etcd = Etcd(cls.members)
        cls.addClassCleanup(cls.etcd.close)

    def flags(self, nnodes, *more, ttl="2s"):
        return ("--nnodes", nnodes, "--nproc-per-node", "2", "--ttl", ttl, "--last-call", "200ms", "--rdzv",
                f"etcd://{self.etcd.endpoints}/{self._testMethodName[:60]}", *more)

    def end_well(self, *names):
        self.go()
        for name in names:
            self.assertEqual(self.ended_agent(name).status, 0)

    def leader_and_other(self):
        self.until(lambda: self.events("a", "leads") or self.events("b", "leads"), "a leader")
        return ("a", "b") if self.events("a", "leads") else ("b", "a")


class OneEtcd(EtcdRig):
    def test_agents_meet_and_etcd_is_written_to_once_an_epoch(self):
        for name in ("a", "b"):
            self.agent(name, *self.flags("2:2", "--max-restarts", "9"), *shell(TELL + STAY))
        self.until_epoch(1, 4)
        before = self.etcd.writes()
        for epoch in range(1, 5):
            self.kill_rank(epoch, epoch % 4)
            self.until_epoch(epoch + 1, 4)
        self.assertEqual(self.etcd.writes() - before, 4)
        self.end_well("a", "b")

    def test_when_the_leader_is_killed_another_leads_and_the_job_goes_on(self):
        for name in ("a", "b"):
            self.agent(name, *self.flags("1:2"), *shell(TELL + STAY))
        self.until_epoch(1, 4)
        leader, other = self.leader_and_other()
        self.agents[leader].kill()
        self.until_epoch(2, 2)
        self.assertTrue(self.events(other, "leads"))
        lost = self.agents.pop(leader)
        lost.wait(20)
        lost.stdout.close()
        lost.stderr.close()
        self.agent("c", *self.flags("1:2"), *shell(TELL + STAY))
        self.until(lambda: self.events("c", "joined"), "another to join")
        self.end_well(other, "c")

    def test_a_leader_that_leaves_hands_over_at_once(self):
        script = "trap 'exit 0' USR1; " + TELL + STAY
        for name in ("a", "b"):
            self.agent(name, *self.flags("1:2", ttl="20s"), *shell(script))
        self.until_epoch(1, 4)
        leader, other = self.leader_and_other()
        self.agents[leader].send_signal(signal.SIGTERM)
        self.assertEqual(self.ended_agent(leader).status, 143)
        self.until_epoch(2, 2, deadline=12)  # long before the lease would end
        self.end_well(other)

    def test_an_id_of_a_job_that_has_ended_is_refused(self):
        self.launched(*self.flags("1:1"), "true")
        self.refused("launch", *self.flags("1:1"), "true", status=6, says="has already ended")

    def test_when_etcd_is_gone_for_longer_than_the_lease_no_rank_runs(self):
        with Etcd() as etcd:
            flags = [*self.flags("1:1", ttl="2s")]
            flags[flags.index("--rdzv") + 1] = f"etcd://{etcd.endpoints}/x"
            self.agent("a", *flags, *shell(TELL + STAY))
            self.until_epoch(1, 2)
            etcd.kill(0)
            self.until(lambda: self.events("a", "cut_off"), "the agent to see that its right is over")
            etcd.restart(0)
            # Its number may be 3: when etcd comes back it may first take the record of epoch 2 that the old leader, whose right
            # has ended, sent it meanwhile. Numbers only rise, so the next leader begins epoch 3.
            self.until(lambda: len(self.events("a", "epoch")) > 1, "another epoch")
            self.until_epoch(self.events("a", "epoch")[-1]["epoch"], 2)
            self.end_well("a")


class Credentials(ElasticRig):
    def test_a_user_and_password_are_needed_and_never_shown(self):
        with Etcd() as etcd:
            for words in (["user", "add", "root:secret-word"], ["user", "grant-role", "root", "root"], ["auth", "enable"]):
                done = etcd.ctl(*words)
                self.assertEqual(done.returncode, 0, done.stderr)
            flags = ("--nnodes", "1:1", "--nproc-per-node", "1", "--rdzv", f"etcd://{etcd.endpoints}/auth")
            env = {"OVERCAP_ETCD_USER": "root", "OVERCAP_ETCD_PASSWORD": "secret-word"}
            done = self.launched(*flags, *shell('test -z "$OVERCAP_ETCD_PASSWORD"'), env=env)
            self.assertNotIn("secret-word", done.err)
            for wrong in ({**env, "OVERCAP_ETCD_PASSWORD": "wrong-word"}, {}):
                done = self.refused("launch", *flags, "true", env=wrong, status=4, says="etcd")
                self.assertNotIn("wrong-word", done.err)


class Encrypted(ElasticRig):
    def test_the_way_to_etcd_is_encrypted_and_its_certificate_is_checked(self):
        with Etcd(tls=True) as etcd:
            flags = ("--nnodes", "1:1", "--nproc-per-node", "1", "--join-timeout", "2s", "--rdzv", f"etcds://{etcd.endpoints}/tls")
            self.refused("launch", *flags, "true", status=4, says=etcd.endpoints)
            self.launched(*flags, "true", env={"OVERCAP_ETCD_CA": etcd.ca})


class ThreeEtcds(EtcdRig):
    members = 3

    def test_no_worker_restarts_when_the_leader_of_etcd_is_killed(self):
        for name in ("a", "b"):
            self.agent(name, *self.flags("2:2", "--max-restarts", "3", ttl="5s"), *shell(TELL + STAY))
        self.until_epoch(1, 4)
        killed = self.etcd.kill_leader()
        time.sleep(6)  # longer than the lease: it must have been renewed through another member
        self.assertEqual([len(self.events(name, "epoch")) for name in ("a", "b")], [1, 1])
        self.kill_rank(1, 0)  # and a new epoch can be kept
        self.until_epoch(2, 4)
        self.etcd.restart(killed)
        self.end_well("a", "b")

    def test_the_leader_of_etcd_dies_in_the_middle_of_a_rendezvous(self):
        self.until(lambda: self.etcd.leader() is not None, "etcd to have a leader")
        self.agent("a", *self.flags("2:2", "--max-restarts", "3", ttl="5s"), *shell(TELL + STAY))
        self.until(lambda: self.events("a", "leads"), "a to lead")
        self.agent("b", *self.flags("2:2", "--max-restarts", "3", ttl="5s"), *shell(TELL + STAY))
        killed = self.etcd.kill_leader()
        self.until(lambda: self.events("a", "epoch"), "a group")
        epoch = self.events("a", "epoch")[-1]["epoch"]
        self.until_epoch(epoch, 4)
        self.etcd.restart(killed)
        self.end_well("a", "b")


@needs_root
class CutHosts(ElasticRig):
    """Hosts are network namespaces; etcd is on the head."""

    def setUp(self):
        super().setUp()
        machines.need("ip", "unshare", "nsenter", "setpriv")
        self.folder_ = machines.public_folder("overcap-elastic-")
        self.hosts = Machines(["n1", "n2", "n3"], self.folder_)
        self.addCleanup(subprocess.run, ["rm", "-rf", str(self.folder_)], check=False)
        self.addCleanup(self.hosts.close)
        self.hosts.add({name: ["sleep", "600"] for name in self.hosts.names})
        self.etcd = Etcd(address=f"{self.hosts.net}.254")
        self.addCleanup(self.etcd.close)

    def on(self, host, *flags):
        home = self.root / f"home-{host}"
        argv = ["env", f"OVERCAP_HOME={home}", str(BINARY), "launch", "--nnodes", "1:3", "--nproc-per-node", "1", "--ttl", "2s",
                "--last-call", "10s", "--rdzv", f"etcd://{self.etcd.endpoints}/cut", *flags, *shell(self.SCRIPT)]
        self.agents[host] = subprocess.Popen(self.hosts.words(host, argv), env=self.env, cwd=self.project,
                                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    # Each rank writes its epoch and the time, again and again: what ran when can be told afterwards.
    SCRIPT = TELL + ('while [ ! -e "$FACTS/go" ]; do echo "$OVERCAP_ELASTIC_EPOCH $(date +%s%N)" >> "$FACTS/ran-$RANK-$OVERCAP_ELASTIC_EPOCH"; '
                     'sleep 0.02; done')

    def spans(self):
        spans = {}
        for path in self.facts.glob("ran-*"):
            lines = [line.split() for line in path.read_text().splitlines()]
            epoch, times = int(lines[0][0]), [int(words[1]) for words in lines if len(words) == 2]
            low, high = spans.get(epoch, (times[0], times[0]))
            spans[epoch] = (min(low, *times), max(high, *times))
        return [spans[epoch] for epoch in sorted(spans)]

    def test_a_host_that_is_cut_off_kills_its_ranks_before_the_others_go_on(self):
        for host in self.hosts.names:
            self.on(host)
        self.until_epoch(1, 3)
        cut = next(h for h in self.hosts.names if not self.events(h, "leads"))
        leader = next(h for h in self.hosts.names if self.events(h, "leads"))
        self.hosts.cut(cut)
        self.until_epoch(2, 2)
        self.until(lambda: self.events(cut, "cut_off"), "the host that is cut off to see it")
        self.hosts.cut(leader)  # now the leader: it cannot reach etcd either
        self.until(lambda: len(self.events(leader, "cut_off")) > 0, "the leader to see it")
        third = next(h for h in self.hosts.names if h not in (cut, leader))
        self.until(lambda: self.events(third, "leads"), "the third to lead")
        for host in (cut, leader):
            self.hosts.heal(host)
        self.until(lambda: any(self.events(h, "epoch")[-1]["group_size"] >= 1 and self.events(h, "epoch")[-1]["epoch"] >= 3
                               for h in self.hosts.names if self.events(h, "epoch")), "a group that goes on")
        self.until(lambda: all(self.events(h, "joined")[-1]["term"] == self.events(third, "leads")[-1]["term"]
                               for h in self.hosts.names), "all to be back in the lobby")
        self.go()
        for host in self.hosts.names:
            self.assertEqual(self.ended_agent(host).status, 0, host)
        spans = self.spans()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            self.assertLess(end, begin, f"two groups at once: {spans}")


if __name__ == "__main__":
    main()
