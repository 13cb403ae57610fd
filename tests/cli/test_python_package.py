# SPDX-License-Identifier: Apache-2.0
"""python/overcap without torch: a rank's place under every launcher, how ranks of one host meet, and installing it."""
import ast
import dataclasses
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = REPOSITORY / "tests" / "data" / "launch-env"
sys.path.insert(0, str(REPOSITORY / "python"))

import overcap  # noqa: E402
from overcap import OvercapError, Place, meeting, place  # noqa: E402

SYSTEM_PYTHON = "/usr/bin/python3"


def sample(name, **more):
    """The variables of a real process, as its launcher set them."""
    lines = (SAMPLES / f"{name}.txt").read_text().splitlines()
    return {**dict(line.split("=", 1) for line in lines), **{key: str(value) for key, value in more.items()}}


def torch_variables(rank, world_size, local_rank=None, local_world_size=None, **more):
    values = {"RANK": rank, "WORLD_SIZE": world_size, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_world_size,
              **more}
    return {name: str(value) for name, value in values.items() if value is not None}


class PlaceOfARank(unittest.TestCase):
    def is_at(self, environ, *numbers, told_by):
        found = place(environ)
        self.assertEqual((found, found.told_by), (Place(*numbers), told_by))

    def test_without_a_launcher_the_world_is_one_rank(self):
        self.is_at({"PATH": "/bin"}, 0, 1, 0, 1, 0, told_by="none")

    def test_open_mpi_on_one_host(self):
        self.is_at(sample("openmpi-4.1.4-local-rank1"), 1, 2, 1, 2, 0, told_by="OMPI_COMM_WORLD_*")

    def test_open_mpi_on_three_hosts_its_node_rank_is_no_number_of_a_host(self):
        self.is_at(sample("openmpi-4.1.4-3hosts-rank2"), 2, 3, 0, 1, 2, told_by="OMPI_COMM_WORLD_*")

    def test_mpich_on_one_host(self):
        self.is_at(sample("mpich-4.0.2-local-rank1"), 1, 2, 1, 2, 0, told_by="PMI_*")

    def test_mpich_on_three_hosts(self):
        self.is_at(sample("mpich-4.0.2-3hosts-rank2"), 2, 3, 0, 1, 2, told_by="PMI_*")

    def test_srun_on_two_nodes(self):
        self.is_at(sample("slurm-22.05.8-step-rank3"), 3, 4, 1, 2, 1, told_by="SLURM_*")

    def test_the_local_rank_is_not_read_from_a_name_that_slurm_never_sets(self):
        self.is_at(sample("slurm-22.05.8-step-rank3", SLURM_LOCAL_ID=0), 3, 4, 1, 2, 1, told_by="SLURM_*")

    def test_srun_with_unequal_nodes(self):
        environ = sample("slurm-22.05.8-step-rank3", SLURM_PROCID=6, SLURM_LOCALID=0, SLURM_NODEID=3,
                         SLURM_STEP_NUM_TASKS=7, SLURM_STEP_TASKS_PER_NODE="2(x3),1")
        self.is_at(environ, 6, 7, 0, 1, 3, told_by="SLURM_*")

    def test_a_step_smaller_than_its_job_counts_its_own_tasks(self):
        environ = sample("slurm-22.05.8-step-rank3", SLURM_PROCID=1, SLURM_LOCALID=1, SLURM_NODEID=0,
                         SLURM_STEP_NUM_TASKS=2, SLURM_STEP_TASKS_PER_NODE="2")
        self.is_at(environ, 1, 2, 1, 2, 0, told_by="SLURM_*")

    def test_a_batch_script_is_no_rank_of_four(self):
        self.is_at(sample("slurm-22.05.8-batch-script"), 0, 1, 0, 1, 0, told_by="none")

    def test_a_pbs_job_without_mpi_is_one_rank(self):
        self.is_at(sample("openpbs-23.06-job"), 0, 1, 0, 1, 0, told_by="none")

    def test_mpirun_in_a_batch_job_counts_and_not_the_batch_step(self):
        environ = {**sample("slurm-22.05.8-batch-script"), **sample("openmpi-4.1.4-local-rank1")}
        self.is_at(environ, 1, 2, 1, 2, 0, told_by="OMPI_COMM_WORLD_*")

    def test_mpirun_whose_daemons_are_slurm_tasks_counts_and_not_the_daemons(self):
        environ = {**sample("slurm-22.05.8-step-rank3"), **sample("mpich-4.0.2-3hosts-rank2")}
        self.is_at(environ, 2, 3, 0, 1, 2, told_by="PMI_*")

    def test_srun_with_pmix_says_the_rest_through_slurm(self):
        self.is_at(sample("slurm-22.05.8-step-rank3", PMIX_RANK=3), 3, 4, 1, 2, 1, told_by="SLURM_*")

    def test_srun_with_pmi2_says_the_rest_through_slurm(self):
        environ = sample("slurm-22.05.8-step-rank3", PMI_RANK=3, PMI_SIZE=4)
        self.is_at(environ, 3, 4, 1, 2, 1, told_by="SLURM_*")

    def test_a_launcher_with_pmi_alone_must_know_local_ranks(self):
        environ = {"PMI_RANK": "5", "PMI_SIZE": "8", "PMI_LOCAL_RANK": "1", "PMI_LOCAL_SIZE": "4"}
        self.is_at(environ, 5, 8, 1, 4, 1, told_by="PMI_*")

    def test_pals(self):
        environ = {"PALS_RANKID": "14", "PALS_LOCAL_RANKID": "2", "PALS_LOCAL_SIZE": "12", "PALS_NODEID": "1",
                   "PMI_RANK": "14", "PMI_SIZE": "24"}
        self.is_at(environ, 14, 24, 2, 12, 1, told_by="PALS_*")

    def test_pals_without_a_size_takes_the_users(self):
        environ = {"PALS_RANKID": "14", "PALS_LOCAL_RANKID": "2", "PALS_LOCAL_SIZE": "12", "PALS_NODEID": "1",
                   "WORLD_SIZE": "24"}
        self.is_at(environ, 14, 24, 2, 12, 1, told_by="PALS_*")

    def test_torchrun(self):
        self.is_at(sample("torchrun-1.13.1-c10d-rank1"), 1, 2, 1, 2, 0, told_by="RANK")

    def test_a_job_of_one_rank_gives_way_to_the_mpirun_in_it(self):
        environ = {**sample("openmpi-4.1.4-local-rank1"), "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0",
                   "LOCAL_WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "overcap-ada_1700000000_0000000a"}
        self.is_at(environ, 1, 2, 1, 2, 0, told_by="OMPI_COMM_WORLD_*")

    def test_torchrun_of_one_rank_under_mpirun_counts_itself(self):
        environ = {**sample("openmpi-4.1.4-local-rank1"), **sample("torchrun-1.13.1-c10d-rank1"),
                   **torch_variables(0, 1, 0, 1)}
        self.is_at(environ, 0, 1, 0, 1, 0, told_by="RANK")

    def test_overcap_rank_under_an_mpi(self):
        environ = sample("mpich-4.0.2-3hosts-rank2", **torch_variables(2, 3, 0, 1, NODE_RANK=2))
        self.is_at(environ, 2, 3, 0, 1, 2, told_by="RANK")

    def test_mpirun_in_a_job_of_one_rank_counts(self):
        environ = sample("openmpi-4.1.4-local-rank1", **torch_variables(0, 1, 0, 1, NODE_RANK=0))
        self.is_at(environ, 1, 2, 1, 2, 0, told_by="OMPI_COMM_WORLD_*")

    def test_a_launch_inside_a_step_of_one_task_counts(self):
        environ = sample("slurm-22.05.8-step-rank3", SLURM_PROCID=0, SLURM_LOCALID=0, SLURM_NODEID=0,
                         SLURM_STEP_NUM_TASKS=1, SLURM_STEP_TASKS_PER_NODE=1,
                         **torch_variables(5, 8, 1, 4, NODE_RANK=1))
        self.is_at(environ, 5, 8, 1, 4, 1, told_by="RANK")

    def test_rank_and_world_size_alone_take_the_rest_from_the_launcher_that_agrees(self):
        self.is_at(sample("slurm-22.05.8-step-rank3", **torch_variables(3, 4)), 3, 4, 1, 2, 1, told_by="RANK")

    def test_rank_and_world_size_alone_are_a_container_of_one_process(self):
        self.is_at(torch_variables(3, 4), 3, 4, 0, 1, 3, told_by="RANK")

    def test_a_world_size_left_over_in_the_shell_says_nothing(self):
        self.is_at(sample("openmpi-4.1.4-local-rank1", WORLD_SIZE=16), 1, 2, 1, 2, 0, told_by="OMPI_COMM_WORLD_*")

    def test_ranks_dealt_round_the_hosts_have_their_hosts_number(self):
        environ = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "6", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                   "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        self.is_at(environ, 3, 6, 1, 2, 1, told_by="OMPI_COMM_WORLD_*")
        self.is_at({**environ, "OMPI_COMM_WORLD_RANK": "4"}, 4, 6, 1, 2, 1, told_by="OMPI_COMM_WORLD_*")

    def test_hosts_with_different_numbers_of_ranks_have_no_number_under_a_bare_mpi(self):
        environ = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                   "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        self.is_at(environ, 3, 5, 0, 2, -1, told_by="OMPI_COMM_WORLD_*")
        self.assertNotIn("NODE_RANK", place(environ).variables())

    def test_the_variables_of_a_place_lead_back_to_it(self):
        mine = Place(5, 8, 1, 4, 1)
        self.assertEqual(place(mine.variables()), mine)

    def test_a_place_cannot_be_changed(self):
        with self.assertRaises(dataclasses.FrozenInstanceError):
            place({}).rank = 1


class BadVariables(unittest.TestCase):
    def refused(self, environ, *words):
        with self.assertRaises(OvercapError) as caught:
            place(environ)
        said = str(caught.exception)
        self.assertNotIn("\n", said)
        for word in words:
            self.assertIn(word, said)

    def test_what_is_no_number_is_named(self):
        self.refused(torch_variables("one", 2, 0, 1), "'RANK'", "'one'")
        self.refused({"PMI_RANK": "-1", "PMI_SIZE": "2"}, "'PMI_RANK'", "'-1'")
        self.refused({"PMI_RANK": "²", "PMI_SIZE": "2"}, "'PMI_RANK'")

    def test_contradictions_are_named(self):
        self.refused(torch_variables(4, 4, 0, 1), "rank 4 of 4")
        self.refused(torch_variables(1, 4, 2, 2), "local rank 2 of 2")
        self.refused(torch_variables(1, 4, 0, 8), "local rank 0 of 8")

    def test_a_missing_count_is_named_with_what_to_do(self):
        self.refused({"PALS_RANKID": "3", "PALS_LOCAL_RANKID": "3"}, "how many ranks", "overcap launch")
        self.refused(torch_variables(1, 4, 1), "LOCAL_WORLD_SIZE", "overcap launch")
        self.refused({"PMI_RANK": "1", "PMI_SIZE": "4"}, "LOCAL_RANK")

    def test_a_list_of_counts_that_is_none_is_named(self):
        self.refused(sample("slurm-22.05.8-step-rank3", SLURM_STEP_TASKS_PER_NODE="2(x"), "'2(x'")


class WhereRanksMeet(unittest.TestCase):
    def address(self, environ):
        return meeting.known_address(place(environ), environ)

    def test_a_given_address_counts(self):
        environ = sample("mpich-4.0.2-3hosts-rank2", MASTER_ADDR="head", MASTER_PORT=1234)
        self.assertEqual(self.address(environ), ("head", 1234))

    def test_ranks_of_one_host_agree_among_themselves(self):
        self.assertIsNone(self.address(sample("openmpi-4.1.4-local-rank1")))

    def test_one_process_needs_no_address_even_where_one_is_left_over(self):
        self.assertIsNone(self.address({"MASTER_ADDR": "elsewhere", "MASTER_PORT": "1234"}))

    def test_under_srun_it_is_the_first_host_of_the_step_and_a_port_of_the_steps_own(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "scontrol"
            program.write_text('#!/bin/sh\n[ "$*" = "show hostnames n[1-2]" ] && printf "n1\\nn2\\n"\n')
            program.chmod(0o755)
            environ = sample("slurm-22.05.8-step-rank3", PATH=folder)
            host, port = self.address(environ)
            self.assertEqual(host, "n1")
            self.assertEqual(self.address(sample("slurm-22.05.8-step-rank3", PATH=folder, SLURM_PROCID=2,
                                                 SLURM_LOCALID=0)), (host, port))
            self.assertNotEqual(self.address(sample("slurm-22.05.8-step-rank3", PATH=folder, SLURM_STEP_ID=1)),
                                (host, port))
            self.assertTrue(1024 < port < 32768)

    def test_on_several_hosts_without_an_address_the_error_says_what_to_type(self):
        for name in ("openmpi-4.1.4-3hosts-rank2", "mpich-4.0.2-3hosts-rank2"):
            with self.assertRaisesRegex(OvercapError, "no MASTER_ADDR; start it with 'overcap launch'"):
                self.address(sample(name))

    def test_a_port_that_is_none_is_named(self):
        for port in ("http", "0", "65536"):
            with self.assertRaisesRegex(OvercapError, f"'MASTER_PORT' holds '{port}'"):
                self.address(sample("mpich-4.0.2-local-rank1", MASTER_ADDR="head", MASTER_PORT=port))

    def test_launches_have_names_of_their_own(self):
        names = {meeting.launch_name(place(environ), environ) for environ in (
            sample("openmpi-4.1.4-local-rank1"), sample("openmpi-4.1.4-local-rank1", PMIX_NAMESPACE=1),
            sample("slurm-22.05.8-step-rank3"), sample("slurm-22.05.8-step-rank3", SLURM_STEP_ID=7))}
        self.assertEqual(len(names), 4)

    def test_ranks_of_one_launcher_find_the_same_name_through_scripts_between_them(self):
        code = ("import os, overcap; from overcap import meeting; "
                "print(meeting.launch_name(overcap.place(), os.environ))")
        between = "python=$1; shift; \"$python\" \"$@\"; exit $?"
        names = []
        for rank, words in enumerate(([], ["/bin/sh", "-c", between, "sh"])):
            variables = {"PMI_RANK": str(rank), "PMI_SIZE": "2", "MPI_LOCALRANKID": str(rank), "MPI_LOCALNRANKS": "2",
                         "PYTHONPATH": str(REPOSITORY / "python")}
            done = subprocess.run([*words, sys.executable, "-B", "-c", code], env=variables, stdout=subprocess.PIPE,
                                  timeout=60, check=True)
            names.append(done.stdout)
        self.assertEqual(names[0], names[1])

    def test_the_others_learn_rank_0s_port(self):
        name = f"overcap-test-{os.getpid()}-{id(self)}"
        ports = {}

        def learn(rank):
            ports[rank] = meeting.learn_port(name, rank, 60)

        others = [threading.Thread(target=learn, args=(rank,)) for rank in range(1, 9)]
        for thread in others:
            thread.start()
        meeting.PortTeller(name).tell(4321, len(others), 60)
        for thread in others:
            thread.join(60)
        self.assertEqual(ports, {rank: 4321 for rank in range(1, 9)})

    def test_a_rank_that_does_not_come_is_missed(self):
        name = f"overcap-test-{os.getpid()}-{id(self)}"
        with self.assertRaisesRegex(OvercapError, "3 of 3 other ranks did not come"):
            meeting.PortTeller(name).tell(4321, 3, 0.05)
        with self.assertRaisesRegex(OvercapError, "rank 0 did not come"):
            meeting.learn_port(name, 1, 0.05)

    def test_a_second_rank_0_is_told_so(self):
        name = f"overcap-test-{os.getpid()}-{id(self)}"
        teller = meeting.PortTeller(name)
        with self.assertRaisesRegex(OvercapError, "another rank 0"):
            meeting.PortTeller(name)
        teller.tell(1, 0, 1)


class FakeDevice:
    """torch.device("cuda"), torch.device("cuda", 1), torch.device("cuda:1")."""

    def __init__(self, kind, index=None):
        self.type, _, number = str(kind).partition(":")
        self.index = int(number) if number else index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


class FakeAccelerator:
    def __init__(self, count):
        self.count, self.current = count, None

    def is_available(self):
        return self.count > 0

    def device_count(self):
        return self.count

    def set_device(self, device):
        self.current = str(device)


def fake_torch(cuda=0, xpu=0, nccl=True, xccl=None):
    """As much of a torch as choosing a device and a backend asks for, with such devices."""
    torch, dist = types.ModuleType("torch"), types.ModuleType("torch.distributed")
    torch.device, torch.cuda, torch.distributed = FakeDevice, FakeAccelerator(cuda), dist
    if xpu:
        torch.xpu = FakeAccelerator(xpu)
    dist.TCPStore = lambda *arguments, **named: types.SimpleNamespace(port=4321)
    dist.is_available, dist.is_nccl_available, dist.is_initialized = lambda: True, lambda: nccl, lambda: False
    if xccl is not None:
        dist.is_xccl_available = lambda: xccl
    dist.init_process_group = lambda backend, **named: None
    return torch, dist


class WhichDevice(unittest.TestCase):
    """Devices that this machine need not have; tests/cli/test_torch.py has a real torch."""

    def world(self, environ=None, modules=None, call=None, **devices):
        torch, dist = fake_torch(**devices)
        with unittest.mock.patch.dict(sys.modules, {"torch": torch, "torch.distributed": dist, **(modules or {})}), \
                unittest.mock.patch.dict(os.environ, environ or {}, clear=True):
            sys.modules.pop("overcap.torch", None)
            module = importlib.import_module("overcap.torch")
            world = module.setup(**(call or {}))
        sys.modules.pop("overcap.torch", None)
        current = torch.xpu.current if devices.get("xpu") else torch.cuda.current
        return str(world.device), world.backend, current

    def rank(self, rank):
        return torch_variables(rank, 6, rank, 6, MASTER_ADDR="here", MASTER_PORT=1)

    def test_each_local_rank_has_its_own_gpu(self):
        self.assertEqual(self.world(self.rank(2), cuda=4), ("cuda:2", "nccl", "cuda:2"))

    def test_more_ranks_than_visible_gpus_begin_again(self):
        self.assertEqual(self.world(self.rank(5), cuda=4), ("cuda:1", "nccl", "cuda:1"))
        self.assertEqual(self.world(self.rank(5), cuda=1), ("cuda:0", "nccl", "cuda:0"))

    def test_without_nccl_gpus_go_by_gloo(self):
        self.assertEqual(self.world(self.rank(1), cuda=2, nccl=False), ("cuda:1", "gloo", "cuda:1"))

    def test_what_is_asked_for_is_taken(self):
        self.assertEqual(self.world(self.rank(1), cuda=4, call={"device": "cuda:3", "backend": "gloo"}),
                         ("cuda:3", "gloo", "cuda:3"))
        self.assertEqual(self.world(self.rank(1), cuda=4, call={"device": "cpu"}), ("cpu", "gloo", None))

    def test_xpu_goes_by_xccl(self):
        self.assertEqual(self.world(self.rank(3), xpu=12, xccl=True), ("xpu:3", "xccl", "xpu:3"))

    def test_xpu_goes_by_ccl_where_torch_has_only_that(self):
        binding = {"oneccl_bindings_for_pytorch": types.ModuleType("oneccl_bindings_for_pytorch")}
        self.assertEqual(self.world(self.rank(3), binding, xpu=12, xccl=False), ("xpu:3", "ccl", "xpu:3"))
        self.assertEqual(self.world(self.rank(3), binding, xpu=12), ("xpu:3", "ccl", "xpu:3"))

    def test_xpu_without_either_is_said(self):
        with self.assertRaisesRegex(OvercapError, "neither xccl nor ccl"):
            self.world(self.rank(3), {"oneccl_bindings_for_pytorch": None}, xpu=12)

    def test_one_process_alone_has_the_first_gpu(self):
        self.assertEqual(self.world({}, cuda=2), ("cuda:0", "nccl", "cuda:0"))


class ThePackage(unittest.TestCase):
    def test_it_is_written_for_python_3_8(self):
        files = sorted((REPOSITORY / "python" / "overcap").glob("*.py"))
        self.assertGreater(len(files), 3)
        for path in files:
            ast.parse(path.read_text(), str(path), feature_version=(3, 8))

    def test_it_imports_nothing_but_the_standard_library_until_torch_is_asked_for(self):
        code = "import overcap, sys; overcap.place(); print([m for m in ('torch', 'numpy') if m in sys.modules])"
        done = subprocess.run([sys.executable, "-B", "-S", "-c", code], stdout=subprocess.PIPE, timeout=60, check=True,
                              env={"PYTHONPATH": str(REPOSITORY / "python")}, text=True)
        self.assertEqual(done.stdout, "[]\n")

    def test_it_installs_from_the_checkout_with_the_programs_version(self):
        needs = subprocess.run([SYSTEM_PYTHON, "-c", "import setuptools, pip, wheel"], capture_output=True, timeout=60,
                               check=False)
        if needs.returncode != 0:
            self.skipTest(f"NOT TESTED: {SYSTEM_PYTHON} has no pip, setuptools or wheel (tools/install_packages test)")
        with tempfile.TemporaryDirectory() as folder:
            checkout, target = pathlib.Path(folder) / "checkout", pathlib.Path(folder) / "target"
            shutil.copytree(REPOSITORY / "python", checkout / "python",
                            ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
            shutil.copy(REPOSITORY / "VERSION", checkout)
            self.checked([SYSTEM_PYTHON, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps",
                          "--disable-pip-version-check", "--target", str(target), "./python"], checkout)
            said = self.checked([SYSTEM_PYTHON, "-c", "import overcap; print(overcap.__version__, overcap.__file__)"],
                                checkout, PYTHONPATH=str(target))
            version = (REPOSITORY / "VERSION").read_text().strip()
            self.assertEqual(said, f"{version} {target}/overcap/__init__.py\n")
            self.assertTrue((target / "overcap" / "py.typed").exists())

    def checked(self, argv, cwd, **variables):
        env = {**os.environ, "PYTHONPATH": "", "PIP_ROOT_USER_ACTION": "ignore", **variables}
        done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, f"{argv}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_its_errors_are_runtime_errors(self):
        self.assertTrue(issubclass(overcap.OvercapError, RuntimeError))


if __name__ == "__main__":
    unittest.main()
