# SPDX-License-Identifier: Apache-2.0
"""What a rank finds in its environment, whatever starts it: on this machine, over ssh, through the MPIs, as a job. The
table is held against a current torchrun itself (tools/install_torch)."""
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from launch_rig import HostsRig, LaunchRig
from overcap_rig import REPOSITORY, main, shell

GROUP = "stores"
DEADLINE_SECONDS = 400
CPUS = len(os.sched_getaffinity(0))
TORCH_PYTHON = REPOSITORY / "build/torch/bin/python"
TELL = 'env -0 > "$FACTS/new-$RANK" && mv "$FACTS/new-$RANK" "$FACTS/env-$RANK"'
# Set by both, with another value; docs/manual/launch.md says why.
OTHER_VALUES = {"MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RUN_ID",
                "TORCHELASTIC_USE_AGENT_STORE"}


def need_torch():
    if not TORCH_PYTHON.exists():
        raise unittest.SkipTest("NOT TESTED: no current torch; tools/install_torch gets one")


def told_in(folder, rank):
    entries = (pathlib.Path(folder) / f"env-{rank}").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


@functools.lru_cache(None)
def by_torchrun():
    """What torchrun adds to the environment of each of two ranks."""
    with tempfile.TemporaryDirectory(prefix="overcap-torchrun-") as folder:
        env = {"PATH": os.environ["PATH"], "HOME": folder, "FACTS": folder, "LC_ALL": "C.UTF-8"}
        subprocess.run([str(TORCH_PYTHON), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                        "--no-python", *shell(TELL)], env=env, check=True, timeout=180, stdin=subprocess.DEVNULL,
                       capture_output=True)
        return [{name: value for name, value in told_in(folder, rank).items()
                 if name not in env and name not in ("PWD", "SHLVL", "_")} for rank in range(2)]


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
        return [told_in(self.facts, rank) for rank in range(count)]

    def environment(self, user_home, overcap_home):
        env = super().environment(user_home, overcap_home)
        return {name: value for name, value in env.items()
                if name != "OMP_NUM_THREADS" and not name.startswith(("TORCH", "ROLE_", "GROUP_"))}

    def test_each_rank_has_all_that_torchrun_sets(self):
        need_torch()
        for told, wanted in zip(self.ranks(), by_torchrun()):
            self.assertEqual({name: told.get(name) for name in wanted if name not in OTHER_VALUES},
                             {name: value for name, value in wanted.items() if name not in OTHER_VALUES})
            self.assertEqual([name for name in OTHER_VALUES if not told.get(name)], [])
            self.assertEqual(told["TORCHELASTIC_USE_AGENT_STORE"], "False")
            self.assertTrue(told["TORCHELASTIC_ERROR_FILE"].endswith(f"/error-{told['RANK']}.json"))
            self.assertFalse({"OVERCAP_RUN", "OVERCAP_LAUNCH_PLAN"} & set(told))

    def check_threads(self, wanted, **options):
        self.assertEqual({told.get("OMP_NUM_THREADS") for told in self.ranks(**options)}, {wanted})

    def test_each_rank_gets_its_share_of_the_processors_for_its_threads(self):
        self.check_threads(str(max(1, CPUS // 2)))

    def test_the_user_decides_about_threads(self):
        self.check_threads("3", env={"OMP_NUM_THREADS": "3"})


class Launch(Way, LaunchRig):
    words = ("launch", "-n", "2")

    def test_a_retry_is_counted(self):
        done = self.ok(*self.words, "--retries", "1", *shell('[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exit 3; ' + TELL))
        self.assertIn("exit status 3", done.err)
        told = told_in(self.facts, 1)
        self.assertEqual((told["TORCHELASTIC_RESTART_COUNT"], told["TORCHELASTIC_MAX_RESTARTS"]), ("1", "1"))
        self.assertIn("/attempt-2/", told["TORCHELASTIC_ERROR_FILE"])

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

    def test_a_restart_is_counted(self):
        self.ok(*self.words, "--max-restarts", "1", *shell('[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exit 3; ' + TELL),
                deadline=60)
        told = told_in(self.facts, 1)
        self.assertEqual((told["TORCHELASTIC_RESTART_COUNT"], told["TORCHELASTIC_MAX_RESTARTS"]), ("1", "1"))

    def test_ranks_of_an_mpi_within_a_job_of_one_rank_are_the_mpis(self):
        if shutil.which("mpirun.openmpi") is None:
            self.skipTest("NOT TESTED: mpirun.openmpi is not installed")
        told = self.told(2, "submit", "-n", "0", "--follow", "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe",
                         "-n", "2", str(self.binary), "rank", "--")
        self.assertEqual([(each["RANK"], each["WORLD_SIZE"], each["GROUP_WORLD_SIZE"]) for each in told],
                         [("0", "2", "1"), ("1", "2", "1")])

    def test_a_job_that_a_rank_submits_counts_for_itself(self):
        self.check_threads(str(max(1, CPUS // 2)), env={"OMP_NUM_THREADS": "7", "OVERCAP_OMP_NUM_THREADS": "7"})

    def test_a_rank_that_is_alone_lets_openmp_count(self):
        (alone,) = self.told(1, "submit", "-n", "0", "--follow")
        self.assertNotIn("OMP_NUM_THREADS", alone)


class Lightning(LaunchRig):
    """A world of one has TORCHELASTIC_*, so that Lightning says at once what is wrong. Without them it takes LOCAL_RANK as
    a sign that something else starts its other processes, and waits for them."""
    CHOICE = ("import lightning.pytorch as pl\n"
              "trainer = pl.Trainer(devices=2, accelerator='cpu', logger=False, enable_checkpointing=False)\n"
              "environment = trainer.strategy.cluster_environment\nprint(type(environment).__name__)\n"
              "try: environment.validate_settings(num_devices=2, num_nodes=1)\n"
              "except ValueError as error: print(error)\n")

    def test_two_devices_in_a_world_of_one_are_refused_at_once(self):
        need_torch()
        if not list((TORCH_PYTHON.parent.parent / "lib").glob("python3*/site-packages/lightning")):
            self.skipTest("NOT TESTED: Lightning is not installed next to the current torch")
        script = self.write("choice.py", self.CHOICE)
        for words in (("launch",), ("submit", "-n", "0", "--follow")):
            done = self.ok(*words, str(TORCH_PYTHON), str(script), deadline=180)
            self.assertIn("TorchElasticEnvironment", done.out)
            self.assertIn("does not match the world size (1)", done.out)
        done = self.ok("launch", "-n", "2", str(TORCH_PYTHON), str(script), deadline=180)
        self.assertIn("TorchElasticEnvironment", done.out)
        self.assertNotIn("does not match", done.out)


class ElasticSubmit(Way, LaunchRig):
    words = ("submit", "-n", "0", "--cpus", "1", "--nodes", "1:1", "--ranks-per-node", "2", "--follow")

    def check_threads(self, wanted, **options):
        super().check_threads("1" if wanted != "3" else wanted, **options)


if __name__ == "__main__":
    main()
