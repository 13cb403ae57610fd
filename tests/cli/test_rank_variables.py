# SPDX-License-Identifier: Apache-2.0
"""What a rank finds in its environment, whatever starts it: on this machine, over ssh, through the MPIs, as a job."""
import os
import shutil
import unittest

from launch_rig import HostsRig, LaunchRig
from overcap_rig import main, shell

CPUS = len(os.sched_getaffinity(0))
TELL = 'env -0 > "$FACTS/new-$RANK" && mv "$FACTS/new-$RANK" "$FACTS/env-$RANK"'


class Way:
    """Starts two ranks on one host and gives the environment of each."""
    patience = 5  # under an MPI the process that collects output ends on its own
    words = ()

    def ranks(self, *flags, count=2, **options):
        return self.told(count, *self.words, *flags, **options)

    def told(self, count, *words, **options):
        for path in self.facts.glob("env-*"):
            path.unlink()
        self.ok(*words, *shell(TELL), deadline=60, **options)
        return [self.told_by(rank) for rank in range(count)]

    def told_by(self, rank):
        entries = (self.facts / f"env-{rank}").read_bytes().decode().split("\0")
        return dict(entry.split("=", 1) for entry in entries if entry)

    def environment(self, user_home, overcap_home):
        env = super().environment(user_home, overcap_home)
        return {name: value for name, value in env.items() if name != "OMP_NUM_THREADS"}

    def check_threads(self, wanted, **options):
        self.assertEqual({told.get("OMP_NUM_THREADS") for told in self.ranks(**options)}, {wanted})

    def test_each_rank_gets_its_share_of_the_processors_for_its_threads(self):
        self.check_threads(str(max(1, CPUS // 2)))

    def test_the_user_decides_about_threads(self):
        self.check_threads("3", env={"OMP_NUM_THREADS": "3"})


class Launch(Way, LaunchRig):
    words = ("launch", "-n", "2")

    def test_a_rank_that_is_alone_lets_openmp_count(self):
        (alone,) = self.told(1, "launch")
        self.assertNotIn("OMP_NUM_THREADS", alone)

    def test_a_launch_within_a_rank_counts_for_itself(self):
        inner = self.told(2, "launch", "-n", "1", *shell('OMP_NUM_THREADS=7 OVERCAP_OMP_NUM_THREADS=7 exec "$@"'),
                          str(self.binary), "launch", "-n", "2")
        self.assertEqual({told["OMP_NUM_THREADS"] for told in inner}, {str(max(1, CPUS // 2))})


class Torch(Way, LaunchRig):
    words = ("launch", "--nproc-per-node", "2", "--no-python")


class Mpi(Way):
    def setUp(self):
        if shutil.which(self.program) is None:
            raise unittest.SkipTest(f"NOT TESTED: {self.program} is not installed")
        super().setUp()

    @property
    def words(self):
        return ("launch", "-n", "2", "--launcher", self.program)


class OpenMpi(Mpi, LaunchRig):
    program = "mpirun.openmpi"


class Mpich(Mpi, LaunchRig):
    program = "mpirun.mpich"


class Ssh(Way, HostsRig):
    count = 1

    @property
    def words(self):
        return ("launch", "-n", "2", "--hostfile", self.hosts.hostfile(2))


class Submit(Way, LaunchRig):
    words = ("submit", "-n", "0", "--cpus", str(CPUS), "--ranks-per-node", "2", "--follow")

    def test_a_variable_that_is_given_with_the_job_decides(self):
        told = self.ranks("--env", "OMP_NUM_THREADS=5")
        self.assertEqual({each["OMP_NUM_THREADS"] for each in told}, {"5"})

    def test_a_job_that_a_rank_submits_counts_for_itself(self):
        self.check_threads(str(max(1, CPUS // 2)), env={"OMP_NUM_THREADS": "7", "OVERCAP_OMP_NUM_THREADS": "7"})

    def test_a_rank_that_is_alone_lets_openmp_count(self):
        (alone,) = self.told(1, "submit", "-n", "0", "--follow")
        self.assertNotIn("OMP_NUM_THREADS", alone)


class ElasticSubmit(Way, LaunchRig):
    words = ("submit", "-n", "0", "--cpus", "1", "--nodes", "1:1", "--ranks-per-node", "2", "--follow")

    def check_threads(self, wanted, **options):
        super().check_threads("1" if wanted != "3" else wanted, **options)


if __name__ == "__main__":
    main()
