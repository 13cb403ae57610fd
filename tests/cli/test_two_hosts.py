# SPDX-License-Identifier: Apache-2.0
"""One home that two hosts see, in turn and at once: no job runs twice, and each refusal names the other host."""
import json
import time

from host_rig import Host
from overcap_rig import Rig, main, needs_root, shell


@needs_root
class TwoHosts(Rig):
    def setUp(self):
        super().setUp()
        self.hosts = []

    def tearDown(self):
        for host in self.hosts:
            host.end()
        super().tearDown()

    def host(self, name, *args, **options):
        self.hosts.append(Host(self, name, *args, **options))
        return self.hosts[-1]

    def submit_on(self, host, *flags):
        job_id = self.id_in(host.ok("submit", "-n", "0", *flags, *shell(f'echo x >> "$FACTS/starts"; {self.gate()}')))
        self.until(lambda: self.starts() == 1, "the job to start")
        return job_id

    def starts(self):
        path = self.facts / "starts"
        return len(path.read_text().split()) if path.exists() else 0

    def test_a_job_of_a_host_whose_engine_was_killed_is_not_started_again_elsewhere(self):
        a, b = self.host("alpha"), self.host("beta", "b" * 32)
        job_id = self.submit_on(a, "--requeue")
        a.kill_engine()
        for command in (("ls",), ("query", job_id), ("why", job_id)):
            self.assertEqual(b.overcap(*command).status, 0)
        record = b.job(job_id)
        self.assertEqual((record["state"], record["attempt"]), ("running", 1))
        self.assertIn("'alpha'", record["reason"])
        refused = b.overcap("abort", job_id)
        self.assertEqual(refused.status, 6, str(refused))
        for word in ("'alpha'", "ssh alpha", "recover --gone alpha"):
            self.assertIn(word, refused.err)
        own = self.id_in(b.ok("submit", "-n", "0", "true"))
        self.assertEqual(b.overcap("wait", own).status, 0, "the queue serves this host")
        b.ok("daemon", "stop")
        self.assertEqual(a.job(job_id)["attempt"], 1)
        self.open_gate()
        self.assertEqual(a.overcap("wait", job_id).status, 0)
        self.assertEqual(self.starts(), 1)

    def test_the_end_that_an_agent_elsewhere_has_reported_counts(self):
        a, b = self.host("alpha"), self.host("beta", "b" * 32)
        job_id = self.submit_on(a, "--requeue")
        a.kill_engine()
        self.open_gate()
        report = self.home / "jobs" / job_id / "attempt-1" / "agent-0.jsonl"
        self.until(lambda: b'"e":"end"' in report.read_bytes(), "the agent's last line")
        self.assertEqual(b.job(job_id)["state"], "succeeded")
        self.assertEqual(self.starts(), 1)

    def test_an_engine_that_lives_elsewhere_is_named_at_once(self):
        a, b = self.host("alpha"), self.host("beta", "b" * 32)
        self.submit_on(a)
        b.run("mount", "--bind", "/dev/null", str(self.home / "daemon.sock"))  # another kernel's socket answers nobody
        for command in (("ls",), ("submit", "-n", "0", "true"), ("daemon", "recover")):
            began = time.monotonic()
            done = b.overcap(*command)
            self.assertEqual(done.status, 5, str(done))
            self.assertLess(time.monotonic() - began, 20, "it is refused at once, not after 30 s")
            for word in ("host 'alpha'", "ssh alpha", "OVERCAP_HOME", "recover --gone alpha"):
                self.assertIn(word, done.err)
        status = b.overcap("daemon", "status")
        self.assertEqual((status.status, "host 'alpha'" in status.out), (3, True), str(status))
        self.assertEqual(self.starts(), 1)

    def test_a_host_that_is_gone_gives_its_slots_back_when_the_user_says_so(self):
        a, b = self.host("alpha"), self.host("beta", "b" * 32)
        again = self.submit_on(a, "--requeue")
        once = self.id_in(a.ok("submit", "-n", "0", *shell('echo > "$FACTS/once"; sleep 1000')))
        self.until((self.facts / "once").exists, "the second job")
        a.end()
        self.assertEqual([b.job(each)["state"] for each in (again, once)], ["running", "running"])
        b.ok("daemon", "stop")
        self.assertEqual(b.overcap("daemon", "recover", "--gone", "beta").status, 2, "this host is not gone")
        told = b.ok("daemon", "recover", "--gone", "alpha").out
        for word in (again, once, "2 open slots"):
            self.assertIn(word, told)
        self.assertEqual(b.job(once)["state"], "lost")
        self.until(lambda: self.starts() == 2, "the second attempt")
        self.open_gate()
        self.assertEqual(b.overcap("wait", again).status, 0)
        self.assertEqual((b.job(again)["attempt"], self.starts()), (2, 2))

    def test_the_same_host_with_another_boot_is_a_reboot(self):
        job_id = self.submit_on(self.host("alpha"), "--requeue")
        self.hosts[0].end()
        a = self.host("alpha")
        a.ok("ls")
        self.until(lambda: self.starts() == 2, "the second attempt")
        self.assertEqual(a.job(job_id)["attempt"], 2)

    def test_a_container_with_a_new_name_is_the_same_host_by_its_variable(self):
        env = {"OVERCAP_HOST": "trainer"}
        job_id = self.submit_on(self.host("c1", env=env))
        self.hosts[0].end()
        c2 = self.host("c2", env=env)
        self.assertEqual(c2.job(job_id)["state"], "lost")
        self.assertEqual(self.starts(), 1)


if __name__ == "__main__":
    main()
