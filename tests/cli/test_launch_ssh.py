# SPDX-License-Identifier: Apache-2.0
"""The way of `overcap launch` to its hosts: odd login shells, odd ssh programs, hosts without the program, hosts that
do not answer, and hosts that vanish from the network."""
import hashlib
import os
import pathlib
import shutil
import signal
import time

from launch_rig import STAY, TELL_PLACE, HostsRig
from overcap_rig import BINARY, main, shell

DEADLINE_SECONDS = 400
CACHE = ".cache/overcap/bin"
# A node of another version: says hello, then leaves when it is told to go.
OLD_NODE = r"""#!/usr/bin/python3
import json, os, struct, sys
open(os.path.dirname(__file__) + "/asked", "w").close()
hello = b"H" + json.dumps({"protocol": 1, "version": "0.0.0-old", "host": "x", "address": "", "free_port": 1}).encode()
sys.stdout.buffer.write(b"\0overcap link 1\n" + struct.pack("<I", len(hello)) + hello)
sys.stdout.flush()
sys.stdin.buffer.read()
"""


class ProgramOnHosts(HostsRig):
    """The program lies in a folder that is another one on every host."""

    def setUp(self):
        super().setUp()
        if not self.hosts.separate:
            self.skipTest("NOT TESTED: no namespaces here, so every host has the program")
        self.binary = pathlib.Path(self.hosts.private_dir) / "overcap"
        self.binary.parent.mkdir(exist_ok=True)
        shutil.copy(BINARY, self.binary)
        for name in self.hosts.names:
            self.hosts.run(name, ["rm", "-rf", os.path.expanduser(f"~root/{CACHE}")])

    def copies(self, name):
        done = self.hosts.run(name, ["ls", "-A", os.path.expanduser(f"~root/{CACHE}")])
        return done.stdout.split() if done.returncode == 0 else []

    def put_node(self, name, text):
        path = pathlib.Path(self.hosts.private_path(name)) / "overcap"
        path.write_text(text)
        path.chmod(0o755)
        self.addCleanup(path.unlink)

    def test_a_host_without_the_program_gets_a_copy_and_keeps_it(self):
        hostfile = self.hosts.hostfile(2)
        first = self.launched("--hostfile", hostfile, *shell(TELL_PLACE))
        self.assert_places([(name, 2) for name in self.hosts.names])
        digest = hashlib.sha256(self.binary.read_bytes()).hexdigest()[:12]
        for name in self.hosts.names:
            self.assertIn(f"copied to host '{name}'", first.err)
            (copy,) = self.copies(name)
            self.assertRegex(copy, rf"^overcap-[0-9.]+-{digest}$")
        again = self.launched("--hostfile", hostfile, "true")
        self.assertEqual(again.err, "")

    def test_a_host_with_another_version_gets_a_copy(self):
        name = self.hosts.names[1]
        self.put_node(name, OLD_NODE)
        done = self.launched("--hostfile", self.hosts.hostfile(1, [name]), "--launcher", "ssh", "hostname")
        self.assertEqual(done.out, f"{name}\n")
        self.assertTrue((pathlib.Path(self.hosts.private_path(name)) / "asked").exists(), "the old one was not asked")
        self.assertEqual(len(self.copies(name)), 1)

    def test_a_copy_that_cannot_be_made_names_the_host(self):
        name = self.hosts.names[2]
        self.hosts.run(name, ["sh", "-c", "rm -rf /root/.cache; touch /root/.cache"])
        self.addCleanup(self.hosts.run, name, ["rm", "/root/.cache"])
        done = self.launch("--hostfile", self.hosts.hostfile(1), *shell("touch $FACTS/ran"))
        self.assertEqual(done.status, 2, str(done))
        self.assertIn(f"host '{name}' cannot be used", done.err)
        self.assertFalse((self.facts / "ran").exists())


class Way(HostsRig):
    def ssh_wrapper(self, lines):
        path = self.write("ssh", f"#!/bin/sh\n{lines}\nexec {self.hosts.ssh_program} \"$@\"\n", mode=0o755)
        return {"OVERCAP_SSH": str(path)}

    def test_what_login_scripts_print_is_no_part_of_the_link(self):
        name = self.hosts.names[0]
        if not self.hosts.separate:
            self.skipTest("NOT TESTED: no namespaces here, so no host has a home of its own")
        self.hosts.run(name, ["sh", "-c", "printf 'echo welcome\\necho; head -c 20000 /dev/urandom\\n' > /root/.bashrc"])
        self.addCleanup(self.hosts.run, name, ["rm", "-f", "/root/.bashrc"])
        noise = self.hosts.ssh(name, ["true"], text=False).stdout
        if not noise:
            self.skipTest("NOT TESTED: the login shell here reads no start-up file for ssh")
        done = self.launched("--hostfile", self.hosts.hostfile(1), "hostname")
        self.assertEqual(done.out, f"{name}\n")

    def test_an_ssh_that_refuses_our_key_exchange_is_asked_without_it(self):
        refuse = 'case "$*" in *KexAlgorithms*) echo "command-line: line 0: Bad SSH2 KexAlgorithms" >&2; exit 255;; esac'
        self.launched("--hostfile", self.hosts.hostfile(1), *shell(TELL_PLACE), env=self.ssh_wrapper(refuse))
        self.assert_places([(self.name_of(name), 1) for name in self.hosts.names])

    def test_an_ssh_that_does_not_exist_is_named(self):
        done = self.launch("--hostfile", self.hosts.hostfile(1), "true", env={"OVERCAP_SSH": "/no/such/ssh"})
        self.assertEqual(done.status, 2, str(done))
        self.assertIn("/no/such/ssh", done.err)

    def test_what_ssh_says_is_kept_in_the_launcher_log(self):
        env = self.ssh_wrapper("echo 'a word of warning' >&2")
        self.launched("--hostfile", self.hosts.hostfile(1), "true", env=env)
        text = (self.folder() / "attempt-1" / "launcher.log").read_text()
        for name in self.hosts.names:
            self.assertIn(f"{name}: a word of warning\n", text)

    def test_this_machine_needs_no_ssh(self):
        names = ["localhost", self.hosts.names[1]]
        self.launched("--hostfile", self.hosts.hostfile(2, names), *shell(TELL_PLACE))
        self.assert_places([(self.here, 2), (self.name_of(names[1]), 2)])
        done = self.launched("--launcher", "ssh", "-n", "2", "hostname", env={"OVERCAP_SSH": "/bin/false"})
        self.assertEqual(done.out, f"{self.here}\n")

    def test_a_host_that_refuses_is_named_at_once_with_ssh_s_own_words(self):
        names = [self.hosts.names[0], "no-such-host.invalid"]
        done = self.launch("--hostfile", self.hosts.hostfile(1, names), *shell("touch $FACTS/ran"))
        self.assertEqual(done.status, 2, str(done))
        self.assertRegex(done.err, r"host 'no-such-host.invalid' cannot be used: ssh: .*resolve")
        self.assertLess(done.seconds, 10)
        self.assertFalse((self.facts / "ran").exists(), "a rank was started")

    def test_a_host_that_does_not_answer_is_named_within_ten_seconds(self):
        if not self.hosts.separate:
            self.skipTest("NOT TESTED: no namespaces here, so no host can be silent")
        name = self.hosts.names[2]
        self.power_off(name)
        done = self.launch("--hostfile", self.hosts.hostfile(1), *shell("touch $FACTS/ran"), deadline=20)
        self.assertEqual(done.status, 2, str(done))
        self.assertIn(f"host '{name}'", done.err)
        self.assertLess(done.seconds, 10)
        self.assertFalse((self.facts / "ran").exists(), "a rank was started")

    def test_an_ssh_that_hangs_is_given_up_within_ten_seconds(self):
        env = {"OVERCAP_SSH": str(self.write("hang", "#!/bin/sh\nexec sleep 600\n", mode=0o755))}
        done = self.launch("--hostfile", self.hosts.hostfile(1), "true", env=env, deadline=20)
        self.assertEqual(done.status, 2, str(done))
        self.assertRegex(done.err, "did not answer within 10 s")
        self.assertLess(done.seconds, 11.5)

    def test_a_folder_that_a_host_does_not_have_is_one_clear_line(self):
        if not self.hosts.separate:
            self.skipTest("NOT TESTED: no namespaces here, so no folder is this machine's alone")
        folder = pathlib.Path(self.hosts.private_dir) / "only-here"
        folder.mkdir(parents=True, exist_ok=True)
        done = self.launch("--hostfile", self.hosts.hostfile(1), "true", cwd=folder)
        self.assertNotEqual(done.status, 0)
        (line,) = [line for line in done.err.splitlines() if str(folder) in line]
        self.assertRegex(line, r"rank \d")

    def test_a_hundred_megabytes_arrive_whole(self):
        self.launched("--hostfile", self.hosts.hostfile(1, self.hosts.names[:1]), "--launcher", "ssh", "--tee", "none",
                      *shell("seq 100000000 | head -c 100000000"), deadline=120)
        log = self.rank_log(0)
        self.assertEqual(len(log), 100_000_000)
        lines = log.split(b"\n")
        self.assertEqual([int(line) for line in lines[:-1]], list(range(1, len(lines))))

    def test_a_second_interrupt_kills_deaf_ranks_on_all_hosts_at_once(self):
        script = shell(f"trap '' TERM HUP INT; {TELL_PLACE}; {STAY}")
        process = self.started("--hostfile", self.hosts.hostfile(1), "--grace", "60s", *script, ranks=3)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)  # two that wait together are one
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ended_launch(process, 30).status, 130)
        self.assertLess(time.monotonic() - began, 10)
        self.until_hosts_empty()

    def test_a_host_that_is_cut_off_is_noticed_and_the_others_are_stopped(self):
        name = self.hosts.names[1]
        process = self.started("--hostfile", self.hosts.hostfile(1), *shell(f"{TELL_PLACE}; {STAY}"), ranks=3)
        self.hosts.cut(name)
        began = time.monotonic()
        try:
            done = self.finish(process, 60)
        finally:
            self.hosts.heal(name)
        self.assertNotEqual(done.status, 0)
        self.assertIn(f"host '{name}' is lost", done.err)
        self.assertLess(time.monotonic() - began, 40)
        (attempt,) = self.result_of()["attempts"]
        self.assertEqual((attempt["cause"], attempt["bad_hosts"]), ("host_failed", [name]))
        self.power_off(name)  # its sshd has not seen that the connection is gone
        self.until_hosts_empty()


if __name__ == "__main__":
    main()
