# SPDX-License-Identifier: Apache-2.0
"""What `overcap launch` refuses: one clear line, exit status 2, no process and no folder left."""
import os
import time

from launch_rig import HostsRig, LaunchRig
from overcap_rig import main, needs_root, shell

RAN = shell('touch "$FACTS/ran"')


class BadFlags(LaunchRig):
    def test_an_unknown_launcher(self):
        self.refuse("--launcher", "telnet", *RAN, says=["telnet", "srun"])
        self.refuse("--launcher", "", *RAN)

    def test_a_launcher_that_is_not_installed(self):
        folder = self.root / "bin"
        folder.mkdir()
        for name in ("sh", "touch", "hostname"):
            (folder / name).symlink_to(f"/bin/{name}")
        for name in ("srun", "mpiexec", "mpirun"):
            with self.subTest(name):
                self.refuse("--launcher", name, "-n", "2", *RAN, says=name, env={"PATH": str(folder)})

    def test_no_command(self):
        self.refuse(says="command")
        self.refuse("-n", "2", says="command")
        self.refuse("-n", "2", "--", says="command")

    def test_zero_or_senseless_counts(self):
        for flag in ("-n", "--ppn", "--nnodes"):
            for value in ("0", "-1", "two", "", "1.5", "99999999999999999999"):
                with self.subTest(flag=flag, value=value):
                    self.refuse(f"{flag}={value}" if flag != "-n" else f"-n{value}", *RAN)

    def test_other_senseless_values(self):
        for flag, value in (("--timeout", "soon"), ("--timeout", "-1s"), ("--retries", "-1"), ("--retries", "many"),
                            ("--spare-nodes", "-2"), ("--tee", "3x"), ("--tee", "none of it"), ("--grace", "later"),
                            ("--master-port", "0"), ("--master-port", "65536"), ("--master-port", "http")):
            with self.subTest(flag=flag, value=value):
                done = self.refuse(f"{flag}={value}", "-n", "1", *RAN)
                self.assertIn(value, done.err)

    def test_an_unknown_flag_is_not_the_launchers(self):
        self.refuse("--oversubscribe", "-n", "2", *RAN, says="--oversubscribe")

    def test_more_nodes_than_there_are(self):
        self.refuse("--nnodes", "2", *RAN, says="2")
        self.refuse("--spare-nodes", "1", *RAN)

    def test_a_rank_count_that_ppn_and_nodes_contradict(self):
        self.refuse("-n", "4", "--ppn", "2", *RAN, says="4")

    def test_a_folder_for_logs_that_cannot_be_made(self):
        file = self.write("file", "x")
        self.refuse("--logs", str(file / "below"), "-n", "1", *RAN, says=str(file))
        self.refuse("--logs", "/proc/nowhere", "-n", "1", *RAN, says="/proc/nowhere")

    def test_a_refused_launch_makes_no_folder_for_its_logs(self):
        logs = self.root / "logs"
        self.refuse("--logs", str(logs), "-n", "0", *RAN)
        self.assertFalse(logs.exists())

    def test_a_site_file_with_unknown_keys_or_that_is_not_there(self):
        site = self.write("site.yaml", "name: here\nturbo: yes\n")
        self.refuse("-n", "1", *RAN, says=["site.yaml", "turbo"], env={"OVERCAP_SITE": str(site)})
        self.refuse("-n", "1", *RAN, says="nowhere.yaml", env={"OVERCAP_SITE": str(self.root / "nowhere.yaml")})


class BadHostFiles(LaunchRig):
    def bad(self, text, *args, says=()):
        path = self.write("hosts", text)
        return self.refuse("--hostfile", str(path), *args, *RAN, says=says, env={"OVERCAP_SSH": "/bin/false"})

    def test_a_file_that_is_not_there_or_is_none(self):
        self.refuse("--hostfile", "no/such/file", *RAN, says="no/such/file")
        self.refuse("--hostfile", str(self.root), *RAN, says=str(self.root))

    @needs_root
    def test_a_file_that_may_not_be_read(self):
        path = self.write("hosts", "localhost\n", mode=0o000)
        self.share_with(65534)
        os.chown(path, 0, 0)
        self.user = 65534
        self.refuse("--hostfile", str(path), *RAN, says=str(path))

    def test_a_file_without_hosts(self):
        self.bad("", says="hosts")
        self.bad("# only words\n\n", says="hosts")

    def test_slots_that_are_no_numbers(self):
        for line in ("localhost slots=two", "localhost slots=-1", "localhost:x", "localhost slots=",
                     "localhost slots=99999999999999"):
            with self.subTest(line):
                self.bad(f"other slots=1\n{line}\n", says="2")  # the line's number

    def test_hosts_that_are_no_names(self):
        for line in ("-oProxyCommand=touch$IFS$FACTS/ran", "two words", "a;b", "a/b", "$(id)", "\x01"):
            with self.subTest(line):
                self.bad(f"{line}\n")

    def test_binary_rubbish(self):
        self.bad(bytes(range(256)))

    def test_more_ranks_than_slots(self):
        self.bad("localhost slots=2\n", "-n", "3", says=["3", "2"])

    def test_a_file_with_no_slots_at_all(self):
        self.bad("localhost slots=0\n")


class BadHosts(HostsRig):
    count = 2

    def test_a_host_that_nobody_knows_is_named(self):
        one, two = self.hosts.names
        path = self.write("hosts", f"{one}\nno-such-host.invalid\n{two}\n")
        self.refuse("--hostfile", str(path), *RAN, says="no-such-host.invalid", deadline=12)
        self.until_hosts_empty()

    def test_a_host_that_does_not_answer_is_named_within_ten_seconds(self):
        one, two = self.hosts.names
        self.power_off(two)
        self.refuse("--hostfile", self.hosts.hostfile(2), *RAN, says=two, deadline=12)
        self.until_hosts_empty()

    def test_a_host_that_swallows_everything_is_named_within_ten_seconds(self):
        one, two = self.hosts.names
        self.hosts.cut(one)
        try:
            self.refuse("--hostfile", self.hosts.hostfile(2), *RAN, says=one, deadline=12)
        finally:
            self.hosts.heal(one)
        self.until_hosts_empty()

    def test_an_ssh_program_that_is_missing_is_named(self):
        self.refuse("--hostfile", self.hosts.hostfile(1), *RAN, says="no-such-ssh",
                    env={"OVERCAP_SSH": str(self.root / "no-such-ssh")})

    def test_an_ssh_that_never_ends_is_given_up_within_ten_seconds(self):
        program = self.write("ssh", "#!/bin/sh\nexec sleep 1000\n", mode=0o755)
        began = time.monotonic()
        self.refuse("--hostfile", self.hosts.hostfile(1), *RAN, says=self.hosts.names[0], deadline=13,
                    env={"OVERCAP_SSH": str(program)})
        self.assertGreater(time.monotonic() - began, 3)


if __name__ == "__main__":
    main()
