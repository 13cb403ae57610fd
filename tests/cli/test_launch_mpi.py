# SPDX-License-Identifier: Apache-2.0
"""`overcap launch` through the real Open MPI and MPICH, here and on several hosts."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest

from launch_rig import STAY, TELL_PLACE, HostsRig, LaunchRig, by_rank
from overcap_rig import shell

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d: sum %d, RANK %s\n", rank, size, sum, getenv("RANK"));
  fflush(stdout);
  if (argc > 1) {
    if (rank == 1 && !strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    if (rank == 1 && !strcmp(argv[1], "exit")) exit(5);
    sleep(60);
  }
  MPI_Finalize();
  return 0;
}
"""
FLAVOURS = {"openmpi": ("mpirun.openmpi", "mpicc.openmpi"), "mpich": ("mpirun.mpich", "mpicc.mpich")}


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise unittest.SkipTest(f"NOT TESTED: {program} is not installed")


class Flavour:
    """One test class for each MPI."""
    name = None
    patience = 5  # the process that collects output on each host ends on its own

    def setUp(self):
        self.mpirun, self.mpicc = FLAVOURS[self.name]
        need(self.mpirun)
        super().setUp()

    def flags(self, ranks):
        return ["--launcher", self.mpirun, "-n", str(ranks)]

    def mpi_program(self):
        need(self.mpicc)
        source = self.root / "program.c"
        source.write_text(PROGRAM)
        program = self.root / "program"
        subprocess.run([self.mpicc, str(source), "-o", str(program)], check=True, timeout=120)
        return str(program)

    def first(self):
        attempt = self.result_of()["attempts"][-1]
        return attempt["cause"], attempt["first_failed_rank"], attempt["exit_status"]


class OneHost(Flavour):
    def test_every_rank_knows_its_place_and_has_its_log(self):
        done = self.launched(*self.flags(4), *shell(f"{TELL_PLACE}; echo out $RANK; echo error $RANK >&2"))
        self.assert_places([(None, 4)])
        self.assertIn("out 0", done.out)
        self.assertIn("error 0", done.err)
        self.assertNotIn("out 1", done.out)
        for rank in range(4):
            self.assertEqual(sorted(self.rank_log(rank).splitlines()), [b"error %d" % rank, b"out %d" % rank])
            self.assertEqual({stream for _, stream, _ in self.rank_times(rank)}, {1, 2})

    def test_ranks_are_the_command_itself_and_see_nothing_of_the_link(self):
        self.launched(*self.flags(2), *shell('tr "\\0" "\\n" < /proc/$$/environ; tr "\\0" " " < /proc/$$/cmdline'))
        log = self.rank_log(1).decode()
        for name in ("OVERCAP_LAUNCH=", "OVERCAP_LAUNCH_KEY=", "OVERCAP_LAUNCH_PLAN="):
            self.assertNotIn("\n" + name, log)
        self.assertIn("/bin/sh -c", log.splitlines()[-1])

    def test_strangers_at_the_door_do_not_keep_it_from_its_end(self):
        process = self.started(*self.flags(2), *shell(f"{TELL_PLACE}; sleep 1"), ranks=2)
        environments = [pathlib.Path(f"/proc/{pid}/environ").read_bytes() for pid in self.processes()]
        port = next(int(entry.split()[2]) for environment in environments for entry in environment.split(b"\0")
                    if entry.startswith(b"OVERCAP_LAUNCH="))
        end = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < end:
            try:
                self.addCleanup(socket.create_connection(("127.0.0.1", port), 1).close)
            except OSError:
                pass
            time.sleep(0.2)
        self.assertEqual(process.poll(), 0)
        self.assertEqual(self.ended_launch(process).err, "")

    def test_an_mpi_program_works(self):
        self.launched(*self.flags(4), self.mpi_program())
        for rank in range(4):
            self.assertEqual(self.rank_log(rank), b"rank %d of 4: sum 6, RANK %d\n" % (rank, rank))

    def test_the_first_failed_rank_is_named_and_the_others_are_stopped_at_once(self):
        began = time.monotonic()
        done = self.launch(*self.flags(4), *by_rank(r2="sleep 0.3; echo last words; exit 7", other="sleep 60"))
        self.assertEqual(done.status, 7, str(done))
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(self.first(), ("rank_failed", 2, 7))
        self.assertRegex(done.err, r"rank 2 on \S+ failed first: exit status 7")
        self.assertIn("last words", done.err)

    def test_a_killed_rank_is_told_so(self):
        done = self.launch(*self.flags(4), *by_rank(r1="kill -9 $$", other="sleep 60"))
        self.assertEqual(done.status, 137, str(done))
        self.assertIn("SIGKILL", done.err)
        self.assertEqual(self.first()[1], 1)

    def test_the_rank_that_aborts_is_the_first_though_all_are_killed(self):
        done = self.launch(*self.flags(4), self.mpi_program(), "abort")
        self.assertEqual(done.status, 7, str(done))
        self.assertEqual(self.first(), ("rank_failed", 1, 7))

    def test_a_rank_that_leaves_without_a_word_is_the_first_though_all_are_killed(self):
        done = self.launch(*self.flags(4), self.mpi_program(), "exit")
        self.assertEqual(done.status, 5, str(done))
        self.assertEqual(self.first(), ("rank_failed", 1, 5))

    def test_a_command_that_does_not_exist_is_named(self):
        done = self.launch(*self.flags(2), "/nonexistent/command")
        self.assertEqual(done.status, 127, str(done))
        self.assertIn("/nonexistent/command", done.err)

    def test_what_ranks_leave_behind_is_ended(self):
        self.launched(*self.flags(2), *shell("setsid sleep 60 & sleep 60 & echo done"))
        self.assertEqual(self.rank_log(1), b"done\n")

    def test_interrupt_stops_all(self):
        process = self.started(*self.flags(4), *shell(f"{TELL_PLACE}; {STAY}"), ranks=4)
        process.send_signal(signal.SIGINT)
        done = self.ended_launch(process)
        self.assertEqual(done.status, 130, str(done))
        self.assertEqual(self.result_of()["attempts"][-1]["cause"], "cancelled")

    def test_a_warning_reaches_every_rank(self):
        self.check_warning(*self.flags(3), ranks=3)

    def test_killing_the_launch_leaves_no_rank(self):
        process = self.started(*self.flags(4), "--grace", "1s",
                               *shell(f"trap '' TERM; {TELL_PLACE}; setsid sleep 60 & {STAY}"), ranks=4)
        process.kill()
        process.communicate()
        self.until(lambda: not self.processes(), "all processes to end", 15)

    def test_silence_is_ended_with_the_stack_of_each_rank(self):
        done = self.launch(*self.flags(3), "--timeout", "1s", *shell("echo begun; sleep 60"))
        self.assertEqual(done.status, 124, str(done))
        stacks = (self.folder() / "attempt-1" / "stacks.txt").read_text()
        for rank in range(3):
            self.assertIn(f"rank {rank}", stacks)
        self.assertIn("sleep 60", stacks)

    def test_megabytes_of_each_rank_arrive_whole(self):
        self.launched(*self.flags(4), *shell("seq 400000"))
        wanted = b"".join(b"%d\n" % n for n in range(1, 400001))
        for rank in range(4):
            self.assertTrue(self.rank_log(rank) == wanted, f"rank {rank}")

    def test_where_no_link_can_be_had_output_and_failure_come_through_the_launcher(self):
        # a launcher that loses the key on the way to the ranks
        program = self.root / "bin" / self.mpirun
        self.write(self.mpirun, f'#!/bin/sh\nOVERCAP_LAUNCH_KEY=lost exec {shutil.which(self.mpirun)} "$@"\n', mode=0o755,
                   base=program.parent)
        env = {"PATH": f"{program.parent}:{self.env['PATH']}"}
        done = self.launched(*self.flags(2), *shell('echo "out $RANK at $MASTER_ADDR"; echo "error $RANK" >&2'), env=env)
        for rank in range(2):
            self.assertIn(f"out {rank} at 127.0.0.1", done.out)
            self.assertIn(f"error {rank}", done.err)
        self.assertIn("no link to 'overcap launch'", done.err)
        failed = self.launch(*self.flags(2), *by_rank(r1="exit 3"), env=env)
        self.assertEqual(failed.status, 3, str(failed))

    def test_a_launcher_that_never_ends_is_ended(self):
        # as Open MPI's mpirun sometimes does when many ranks end at once
        folder = self.root / "bin"
        self.write(self.mpirun, f'#!/bin/sh\n{shutil.which(self.mpirun)} "$@"\ncase "$*" in *rank*) exec sleep 300;; esac\n',
                   mode=0o755, base=folder)
        began = time.monotonic()
        done = self.launched(*self.flags(2), "true", env={"PATH": f"{folder}:{self.env['PATH']}"})
        self.assertLess(time.monotonic() - began, 15)
        self.assertIn("did not end", done.err)

    def test_a_rank_that_comes_when_all_is_over_is_not_the_first_that_failed(self):
        late = "trap \"\" TERM; [ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} != 1 ] || sleep 0.3; exec \"$@\""
        script = f"""#!/bin/sh
for word do
  shift
  [ "$word" != {self.binary} ] || set -- "$@" /bin/sh -c '{late}' sh
  set -- "$@" "$word"
done
exec {shutil.which(self.mpirun)} "$@"
"""
        folder = self.root / "bin"
        self.write(self.mpirun, script, mode=0o755, base=folder)
        # The launcher hears of both at the same time, and looks at the lower rank first.
        dies = 'kill -STOP $PPID; setsid sh -c "sleep 1; kill -CONT $PPID" & kill -9 $$'
        done = self.launch(*self.flags(4), *by_rank(r2=dies, other="sleep 60"), env={"PATH": f"{folder}:{self.env['PATH']}"})
        self.assertEqual(done.status, 137, str(done))
        self.assertEqual(self.first()[1], 2)

    def test_a_launcher_that_cannot_start_is_quoted(self):
        done = self.launch(*self.flags(2), "--launcher-args", "--no-such-flag-of-any-mpi", "true")
        self.assertNotIn(done.status, (0, 127), str(done))
        self.assertIn("no-such-flag-of-any-mpi", done.err)


class OpenMpi(OneHost, LaunchRig):
    name = "openmpi"


class Mpich(OneHost, LaunchRig):
    name = "mpich"


class ThreeHosts(Flavour):
    """12 ranks on hosts that the MPI reaches by its own ssh."""

    def setUp(self):
        super().setUp()
        if not self.hosts.separate:
            self.skipTest("NOT TESTED: hosts are no separate machines here")

    def flags(self, ranks):
        hosts = self.hosts.hostfile(slots=ranks // 3)
        words = self.ssh_words()
        return ["--launcher", self.mpirun, "--hostfile", str(hosts), "-n", str(ranks),
                *[item for word in words for item in ("--launcher-args", word)]]

    def test_twelve_ranks_know_their_places(self):
        self.launched(*self.flags(12), *shell(f"{TELL_PLACE}; echo out $RANK"))
        self.assert_places([(name, 4) for name in self.hosts.names])
        self.assertEqual(self.places()[0]["MASTER_ADDR"], self.hosts.address(self.hosts.names[0]))
        self.assertEqual(self.rank_log(11), b"out 11\n")

    def test_the_first_failed_rank_is_named_with_its_host(self):
        done = self.launch(*self.flags(12), *by_rank(r9="sleep 0.5; exit 7", other="sleep 60"))
        self.assertEqual(done.status, 7, str(done))
        self.assertIn(f"rank 9 on '{self.hosts.names[2]}' failed first: exit status 7", done.err)

    def test_killing_the_launch_leaves_no_rank_on_any_host(self):
        process = self.started(*self.flags(6), "--grace", "1s", *shell(f"{TELL_PLACE}; {STAY}"), ranks=6)
        process.kill()
        process.communicate()
        self.until_hosts_empty(15)

    def test_the_key_is_on_no_command_line(self):
        process = self.started(*self.flags(6), *shell(f"{TELL_PLACE}; {STAY}"), ranks=6)
        keys = set()
        for pid in self.processes():
            try:
                variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            keys.update(v.partition(b"=")[2] for v in variables if v.startswith(b"OVERCAP_LAUNCH_KEY="))
        self.assertEqual(len(keys), 1, keys)
        key = keys.pop()
        for entry in os.listdir("/proc"):
            try:
                line = pathlib.Path("/proc", entry, "cmdline").read_bytes() if entry.isdigit() else b""
            except OSError:
                continue
            self.assertNotIn(key, line)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended_launch(process).status, 143)


class OpenMpiHosts(ThreeHosts, HostsRig):
    name = "openmpi"

    def ssh_words(self):
        return ["--mca", "plm_rsh_agent", self.hosts.ssh_program]


class MpichHosts(ThreeHosts, HostsRig):
    name = "mpich"

    def ssh_words(self):
        head = self.hosts.address(self.hosts.names[0]).rpartition(".")[0] + ".254"
        return ["-launcher", "ssh", "-launcher-exec", self.hosts.ssh_program, "-localhost", head]


class Mpi4py(LaunchRig):
    """A program that loads MPI when it runs: one world under an mpiexec, in a launch and in a job."""
    patience = 5
    program = "from mpi4py import MPI; print(f'rank {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size}', flush=True)"

    def setUp(self):
        need("mpirun.openmpi")
        super().setUp()
        if subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], check=False, capture_output=True).returncode != 0:
            self.skipTest("NOT TESTED: python3-mpi4py is not installed")
        self.words = ["launch", "-n", "2", "--launcher", "mpirun.openmpi", "--tee", "all", "/usr/bin/python3", "-c", self.program]

    def check(self, done):
        self.assertEqual(sorted(line for line in done.out.splitlines() if "rank" in line),
                         ["[0] rank 0 of 2", "[1] rank 1 of 2"], str(done))

    def test_a_launch_through_mpiexec_is_one_world(self):
        self.check(self.with_nothing_left(self.ok(*self.words)))

    def test_such_a_launch_in_a_job_is_one_world(self):
        self.check(self.ok("submit", "-n", "0", "--cpus", "2", "--one-rank-per-node", "--follow", str(self.binary), *self.words))

    def test_help_says_which_word_makes_one_world(self):
        for command in ("launch", "submit"):
            self.assertIn("--launcher mpiexec", self.ok("help", command).out)


if __name__ == "__main__":
    unittest.main()
