# SPDX-License-Identifier: Apache-2.0
"""`overcap rank`: whatever the launcher calls them, a rank's variables are there; the process becomes the command."""
import os
import signal
import subprocess
import time

from launch_rig import PLACE, LaunchRig
from overcap_rig import REPOSITORY, main, python, shell

TELL = "import os; print(*(os.environ.get(name, '-') for name in %r))" % (PLACE,)


def sample(name):
    """A real environment, without what would change how the test itself runs."""
    text = (REPOSITORY / "tests/data/launch-env" / name).read_text()
    pairs = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key: value for key, value in pairs.items() if key not in ("PATH", "HOME", "PWD", "SHLVL", "_")}


class Rank(LaunchRig):
    def place(self, **env):
        done = self.ok("rank", "--", *python(TELL), env={**self.env, **env})
        return done.out.split()

    def test_without_a_launcher_it_is_the_only_rank(self):
        place = self.place()
        self.assertEqual(place[:6], ["0", "1", "0", "1", "0", "127.0.0.1"])
        self.assertIn(int(place[6]), range(20000, 32768))

    def test_real_environments_of_every_launcher(self):
        for name, place in (("openmpi-4.1.4-local-rank1.txt", ["1", "2", "1", "2", "0"]),
                            ("openmpi-4.1.4-3hosts-rank2.txt", ["2", "3", "0", "1", "2"]),
                            ("mpich-4.0.2-local-rank1.txt", ["1", "2", "1", "2", "0"]),
                            ("mpich-4.0.2-3hosts-rank2.txt", ["2", "3", "0", "1", "2"]),
                            ("slurm-22.05.8-step-rank3.txt", ["3", "4", "1", "2", "1"]),
                            ("slurm-22.05.8-batch-script.txt", ["0", "1", "0", "1", "0"])):
            with self.subTest(name):
                self.assertEqual(self.place(**sample(name))[:5], place)

    def test_ranks_of_a_slurm_step_meet_on_its_first_host(self):
        step = sample("slurm-22.05.8-step-rank3.txt")
        addr, port = self.place(**step)[5:]
        self.assertEqual(addr, "n1")
        self.assertEqual(self.place(**{**step, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"})[5:],
                         [addr, port])

    def test_pbs_ranks_meet_on_the_first_host_of_the_node_file(self):
        nodes = self.write("nodes", "first.site\nfirst.site\nsecond.site\n")
        rank = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2",
                "PBS_NODEFILE": str(nodes), "PBS_JOBID": "12.server"}
        self.assertEqual(self.place(**rank)[:6], ["2", "4", "0", "2", "1", "first.site"])

    def test_what_the_user_has_set_stays(self):
        self.assertEqual(self.place(MASTER_ADDR="here", MASTER_PORT="12345")[5:], ["here", "12345"])

    def test_pals_with_the_plan_of_a_launch(self):
        pals = {"PALS_RANKID": "13", "PALS_LOCAL_RANKID": "1", "PALS_NODEID": "1"}
        self.assertEqual(self.place(**pals, OVERCAP_LAUNCH_PLAN="pals:12x2")[:5], ["13", "24", "1", "12", "1"])

    def test_the_plan_is_not_handed_on(self):
        done = self.ok("rank", "--", "env", env={**self.env, "OVERCAP_LAUNCH_PLAN": "hydra:1", "PMI_RANK": "0",
                                                 "PMI_SIZE": "1", "MPI_LOCALRANKID": "0"})
        self.assertNotIn("OVERCAP_LAUNCH_PLAN", done.out)

    def test_contradictions_are_said_and_nothing_runs(self):
        for env, word in (({"PMI_RANK": "x", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, "PMI_RANK"),
                          ({"PMI_RANK": "5", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, "rank 5 of 2"),
                          ({"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "OVERCAP_LAUNCH_PLAN": "hydra:3"},
                           "3")):
            with self.subTest(env):
                self.refused("rank", "--", "touch", str(self.facts / "ran"), status=7, says=(word,),
                             env={**self.env, **env})
                self.assertFalse((self.facts / "ran").exists())

    def test_the_process_becomes_the_command(self):
        process = self.start("rank", "--", *shell('echo $$; exec sleep 30'))
        pid = int(process.stdout.readline())
        self.assertEqual(pid, process.pid)
        self.assertEqual(self.processes(), [pid])
        process.kill()
        process.communicate(timeout=20)

    def test_arguments_and_exit_status_are_the_commands_own(self):
        words = ["a b", "", "--json", "-n", "--", "ä\n", "$HOME"]
        done = self.overcap("rank", "--", *python("import sys; print(sys.argv[1:]); sys.exit(41)", *words))
        self.assertEqual((done.status, done.out), (41, f"{words}\n"))
        self.assertEqual(self.ok("rank", "echo", "--quiet").out, "--quiet\n")

    def test_a_signal_ends_it_as_it_ends_the_command(self):
        process = self.start("rank", "--", *shell("echo up; exec sleep 30"))
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=20), -signal.SIGTERM)
        process.communicate(timeout=20)

    def test_signals_are_as_a_new_program_expects_them(self):
        ignoring = f"trap '' HUP INT USR1; exec {self.binary} rank -- grep -E 'Sig(Blk|Ign)' /proc/self/status"
        done = subprocess.run(shell(ignoring), env=self.env, capture_output=True, timeout=20, check=True)
        self.assertEqual([line.split()[1].lstrip(b"0") for line in done.stdout.splitlines()], [b"", b""])

    def test_descriptors_of_the_launcher_stay_and_none_is_added(self):
        read, write = os.pipe()
        os.set_inheritable(write, True)
        listing = ["ls", "/proc/self/fd"]
        plain = subprocess.run(listing, pass_fds=[write], env=self.env, capture_output=True, timeout=20, check=True)
        ours = subprocess.run([str(self.binary), "rank", "--", *listing], pass_fds=[write], env=self.env,
                              capture_output=True, timeout=20, check=True)
        os.close(read)
        os.close(write)
        self.assertEqual(ours.stdout, plain.stdout)

    def test_a_command_that_is_not_there_is_127_and_one_that_cannot_run_126(self):
        for command, status, word in (("no-such-program", 127, "no-such-program"), ("./nothing", 127, "./nothing"),
                                      (str(self.project), 126, str(self.project))):
            done = self.overcap("rank", "--", command)
            self.assertEqual(done.status, status, str(done))
            self.assertIn(word, done.err.splitlines()[0])
        script = self.write("plain", "echo no first line\n", mode=0o755)
        done = self.overcap("rank", "--", str(script))
        self.assertEqual(done.status, 126, str(done))
        self.assertIn("#!", done.err)
        self.refused("rank", says=("no command",))

    def test_neither_configuration_nor_home_is_needed(self):
        (self.project / "overcap.yaml").write_text("nonsense: [\n")
        self.assertEqual(self.ok("rank", "--", "echo", "fine").out, "fine\n")
        self.assertFalse(self.home.exists())

    def test_it_costs_next_to_nothing(self):
        def fastest(*argv):
            best = 9e9
            for _ in range(30):
                began = time.monotonic()
                subprocess.run(argv, env=self.env, timeout=20, check=True)
                best = min(best, time.monotonic() - began)
            return best
        extra = fastest(str(self.binary), "rank", "--", "/bin/true") - fastest("/bin/true")
        self.assertLess(extra, 0.010, "2 ms on an idle machine")


if __name__ == "__main__":
    main()
