# SPDX-License-Identifier: Apache-2.0
"""overcap.checkpoint: a state survives every moment at which its program can die, and ranks stop together."""
import errno
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock
from contextlib import redirect_stderr

from overcap_rig import REPOSITORY, Rig

sys.path.insert(0, str(REPOSITORY / "python"))

from overcap import OvercapError, checkpoint, checkpoint_files, ranks  # noqa: E402

for number in (signal.SIGUSR1, signal.SIGTERM):  # the import caught them; this program shall end by them
    signal.signal(number, signal.SIG_DFL)

DEADLINE_SECONDS = 400
TORCH_PYTHON = "/usr/bin/python3"
PATIENCE = 150 * float(os.environ.get("OVERCAP_TEST_PATIENCE", "1"))  # of one launch; torch is slow to import


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "state"
        variables = unittest.mock.patch.dict(os.environ, {"OVERCAP_STATE_DIR": str(self.folder)})
        variables.start()
        self.addCleanup(variables.stop)

    def names(self):
        return sorted(os.listdir(self.folder))

    def load(self, default="none"):
        """The state, and what was said."""
        said = io.StringIO()
        with redirect_stderr(said):
            return checkpoint.load(default), said.getvalue()


class Files(Folder):
    def test_without_a_checkpoint_the_default_counts(self):
        self.assertEqual(self.load({"step": 0}), ({"step": 0}, ""))
        self.assertFalse(self.folder.exists())

    def test_what_was_saved_last_comes_back(self):
        for state in ({"step": 1, "words": ["a"]}, b"bytes", b"", None, 7, bytearray(b"more"), "x" * 3_000_000):
            checkpoint.save(state)
            self.assertEqual(self.load(), (state, ""))

    def test_two_are_kept(self):
        for step in range(5):
            checkpoint.save(step)
        self.assertEqual(self.names(), ["checkpoint-4.json", "checkpoint-4.pkl", "checkpoint-5.json", "checkpoint-5.pkl"])

    def test_a_given_folder_counts_more_than_the_jobs(self):
        other = self.folder / "a" / "b"
        checkpoint.save("mine", folder=other)
        self.assertEqual(checkpoint.load(folder=str(other)), "mine")
        self.assertEqual(self.load(), ("none", ""))

    def test_without_a_folder_load_says_so_before_any_work_is_done(self):
        del os.environ["OVERCAP_STATE_DIR"]
        for call in (checkpoint.load, lambda: checkpoint.save(1)):
            with self.assertRaisesRegex(OvercapError, "set OVERCAP_STATE_DIR"):
                call()

    def test_only_rank_0_saves_and_all_load(self):
        with unittest.mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
            checkpoint.save("of rank 1")
            self.assertFalse(self.folder.exists())
            self.assertEqual(checkpoint.load("none"), "none")
        with unittest.mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "2"}):
            checkpoint.save("of rank 0")
        with unittest.mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
            self.assertEqual(checkpoint.load(), "of rank 0")

    def test_a_state_that_cannot_be_written_changes_nothing(self):
        checkpoint.save("good")
        before = self.names()
        with self.assertRaises(Exception):
            checkpoint.save({"lock": threading.Lock()})
        self.assertEqual((self.names(), self.load()), (before, ("good", "")))

    def test_a_state_that_cannot_be_unpickled_is_no_damage(self):
        """The class of a state was renamed: to go back to the one before would hide that."""
        module = types.ModuleType("shortlived")
        exec("class Thing: pass", module.__dict__)
        with unittest.mock.patch.dict(sys.modules, {"shortlived": module}):
            checkpoint.save("before")
            checkpoint.save(module.Thing())
        with self.assertRaises(ModuleNotFoundError):
            checkpoint.load()

    def test_other_files_in_the_folder_are_nobodys_business(self):
        self.folder.mkdir()
        for name in ("checkpoint-x.json", "checkpoint-1.txt", "notes", "checkpoint-.json"):
            (self.folder / name).write_text("mine")
        for step in range(4):
            checkpoint.save(step)
        self.assertEqual(self.load(), (3, ""))
        self.assertEqual((self.folder / "notes").read_text(), "mine")
        self.assertEqual(len(self.names()), 8)


class Damage(Folder):
    def setUp(self):
        super().setUp()
        for step in ("old", "new"):
            checkpoint.save({"step": step, "more": "x" * 1000})

    def back_to_old(self, *words):
        state, said = self.load()
        self.assertEqual((state["step"], said.count("\n")), ("old", 1), said)
        for word in ("overcap: checkpoint 2 in", "is damaged", *words):
            self.assertIn(word, said)

    def test_a_file_cut_short(self):
        path = self.folder / "checkpoint-2.pkl"
        whole = path.read_bytes()
        for size in (0, 1, len(whole) - 1):
            path.write_bytes(whole[:size])
            self.back_to_old(f"it has {size} of {len(whole)} bytes")

    def test_any_byte_changed(self):
        path = self.folder / "checkpoint-2.pkl"
        whole = path.read_bytes()
        for at in range(0, len(whole), 97):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            self.back_to_old("its bytes have changed")

    def test_a_file_that_is_gone(self):
        (self.folder / "checkpoint-2.pkl").unlink()
        self.back_to_old("No such file")

    def test_what_describes_it_is_no_description(self):
        for text in ("", "{", "[]", "{}", '{"file": "../../etc/passwd", "kind": "bytes", "bytes": 1, "crc32": 1}',
                     '{"file": "checkpoint-2.pkl", "kind": "shell", "bytes": 1, "crc32": 1}', "\xff"):
            (self.folder / "checkpoint-2.json").write_text(text)
            self.back_to_old("checkpoint-2.json makes no sense")

    def test_saving_after_damage_goes_on(self):
        (self.folder / "checkpoint-2.pkl").write_bytes(b"")
        checkpoint.save("newer")
        self.assertEqual(self.load(), ("newer", ""))

    def test_when_none_is_whole_it_does_not_begin_anew_by_itself(self):
        for number in (1, 2):
            (self.folder / f"checkpoint-{number}.pkl").write_bytes(b"")
        with redirect_stderr(io.StringIO()), self.assertRaisesRegex(OvercapError, "empty that folder"):
            checkpoint.load("none")


class Faulty:
    """The system calls of a save, counted; the one with number `at` goes wrong."""

    def __init__(self, at, wrong):
        self.at, self.wrong, self.done = at, wrong, []

    def __enter__(self):
        self.patches = [unittest.mock.patch.object(checkpoint_files.os, name, self.counted(name, getattr(os, name)))
                        for name in ("rename", "fsync", "unlink")]
        self.patches.append(unittest.mock.patch.object(checkpoint_files, "open", self.open, create=True))
        for patch in self.patches:
            patch.start()
        return self

    def __exit__(self, *unused):
        for patch in self.patches:
            patch.stop()

    def counted(self, name, call):
        def counted(*words, **named):
            self.done.append((name, *[os.path.basename(w) if isinstance(w, (str, os.PathLike)) else "" for w in words]))
            if len(self.done) == self.at + 1:
                self.wrong(name, words)
            return call(*words, **named)
        return counted

    def open(self, path, mode, buffering=-1):
        if "w" not in mode:
            return open(path, mode, buffering)
        file = self.counted("open", open)(path, mode, buffering)
        outer = self

        class Counted(type(file)):
            def write(self, data):
                return outer.counted("write", super().write)(data)
        file.close()
        return Counted(path, "wb")


def kill_myself(name, words):
    if name == "write":  # the half of it is on the disk already
        data = bytes(words[0])
        for path in pathlib.Path(os.environ["OVERCAP_STATE_DIR"]).glob(".checkpoint-new-*"):
            with open(path, "ab") as file:
                file.write(data[:len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


class Crashes(Folder):
    STATE = "new" * 1_000_000

    def calls(self):
        """What one save does, of a folder that has two already."""
        with Faulty(-1, None) as counted:
            checkpoint.save(self.STATE)
        return counted.done

    def begin(self):
        for name in self.names() if self.folder.exists() else ():
            (self.folder / name).unlink()
        for step in ("older", "old"):
            checkpoint.save(step)

    def test_what_says_that_it_is_whole_comes_last_and_after_the_disk_has_the_rest(self):
        self.begin()
        calls = [name if name != "rename" else words[1] for name, *words in self.calls() if name != "write"]
        self.assertEqual(calls, ["open", "fsync", "checkpoint-3.pkl", "fsync", "open", "fsync", "checkpoint-3.json",
                                 "fsync", "unlink", "unlink"])

    def test_kill_9_at_every_step_of_a_save_loses_nothing(self):
        self.begin()
        count = len(self.calls())
        self.assertGreater(count, 10)
        outcomes = []
        for at in range(count):
            self.begin()
            pid = os.fork()
            if pid == 0:
                try:
                    with Faulty(at, kill_myself):
                        checkpoint.save(self.STATE)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(pid, 0)[1], signal.SIGKILL)
            state, said = self.load()
            self.assertIn(state, ("old", self.STATE), f"killed at call {at}")
            self.assertEqual(said, "", f"killed at call {at}")
            outcomes.append(state == self.STATE)
            checkpoint.save("next")  # and the rubbish is gone
            self.assertEqual(self.load(), ("next", ""))
            self.assertLessEqual(len(self.names()), 4, self.names())
        self.assertEqual(outcomes, sorted(outcomes), "from some call on it is the new one")
        self.assertTrue(outcomes[-1] and not outcomes[0])

    def test_a_full_disk_at_every_step_of_a_save_is_told_and_loses_nothing(self):
        def full(name, words):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.begin()
        calls = self.calls()
        for at, call in enumerate(calls):
            if call[0] == "unlink":  # what can be left is left
                continue
            self.begin()
            with Faulty(at, full):
                with self.assertRaisesRegex(OvercapError, "No space left on device; those before are kept"):
                    checkpoint.save(self.STATE)
            state, said = self.load()
            self.assertTrue(state == "old" or (at >= len(calls) - 3 and state == self.STATE), f"{at} {call}")
            self.assertEqual(said, "")
            self.assertFalse([name for name in self.names() if name.startswith(".")])

    def test_a_writer_of_an_earlier_start_that_lives_on_fails_instead_of_writing_over(self):
        def meanwhile(name, words):
            pathlib.Path(words[0]).unlink()  # what the save of the next start does with what it finds
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        self.begin()
        self.folder.joinpath(".checkpoint-new-elsewhere-7").write_text("half")
        checkpoint.save("new")
        self.assertFalse([name for name in self.names() if name.startswith(".")])
        with Faulty([c[0] for c in self.calls()].index("rename"), meanwhile), self.assertRaises(OvercapError):
            checkpoint.save("stale")


class Agreement(unittest.TestCase):
    def test_the_tensor_is_where_the_backend_wants_it(self):
        for backend, device in (("gloo", "cpu"), ("mpi", "cpu"), ("nccl", "cuda"), ("xccl", "xpu"), ("ccl", "xpu"),
                                ("cpu:gloo,cuda:nccl", "cpu"), ("undefined", "cpu")):
            self.assertEqual(ranks.device_of(backend), device)

    def test_without_torch_a_rank_decides_alone(self):
        self.assertEqual((ranks.group(), ranks.largest(7), ranks.of_rank_0(3)), (None, 7, 3))


def in_a_program(code, *args, variables=None, **more):
    """Runs code in a Python of its own that has said "ready" when this comes back."""
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), **(variables or {})}
    env.pop("OVERCAP_STATE_DIR", None) if not variables else None
    process = subprocess.Popen([sys.executable, "-B", "-c", code, *args], env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    assert process.stdout.readline() == "ready\n", process.communicate()
    return process


LOOP = """
import sys, time
from overcap import checkpoint
state = checkpoint.load({"step": 0})
print("ready", flush=True)
while True:
    time.sleep(0.002)
    state["step"] += 1
    checkpoint.exit_if_asked(lambda: state)
"""

POOL = """
import multiprocessing, os, signal, subprocess, sys, time
from overcap import checkpoint

def work(seconds):
    time.sleep(seconds)
    return os.getpid()

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        while len(set(pool.map(work, [0.01] * 4, chunksize=1))) < 2:
            pass  # until both are there
        pids = sorted(process.pid for process in multiprocessing.active_children())
        for number in (signal.SIGUSR1, signal.SIGTERM):
            # As they come to a whole group, from another process.
            assert subprocess.run(["kill", f"-{number.value}", *map(str, pids)]).returncode == 0
        assert pool.apply(work, (0.1,)) in pids
        assert sorted(process.pid for process in multiprocessing.active_children()) == pids, "one was replaced"
        pool.apply_async(work, (300,))
    # __exit__ has terminated them: it would hang were TERM ignored there
    child = context.Process(target=time.sleep, args=(300,))
    child.start()
    time.sleep(0.2)
    child.terminate()
    child.join(60)
    assert child.exitcode == -signal.SIGTERM, child.exitcode
    assert subprocess.run(["sh", "-c", "kill -TERM $$"]).returncode == -signal.SIGTERM
    if (pid := os.fork()) == 0:
        os.execvp("sleep", ["sleep", "300"])
    while not open(f"/proc/{pid}/cmdline").read().startswith("sleep"):
        time.sleep(0.002)
    os.kill(pid, signal.SIGTERM)
    assert os.waitpid(pid, 0)[1] == signal.SIGTERM
    assert not checkpoint.should_stop()
    print("ready", flush=True)
"""

SPAWNED = """
import multiprocessing, signal
from overcap import checkpoint

def caught():
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    return [signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN) and number not in mask
            for number in (signal.SIGUSR1, signal.SIGTERM)]

def helper(queue):
    queue.put(caught())

def rank(queue):
    checkpoint.should_stop()
    queue.put(caught())

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for target, wanted in ((helper, [False, False]), (rank, [True, True])):
        queue = context.Queue()
        child = context.Process(target=target, args=(queue,))
        child.start()
        assert queue.get(timeout=60) == wanted, target
        child.join()
    assert caught() == [True, True]
    print("ready")
"""

THREADS = """
import threading, overcap
errors = []
def other():
    from overcap import checkpoint
    try:
        checkpoint.should_stop()
    except overcap.OvercapError as error:
        errors.append(str(error))
thread = threading.Thread(target=other); thread.start(); thread.join()
assert "main thread" in errors[0] and "install()" in errors[0], errors
from overcap import checkpoint
checkpoint.install(); checkpoint.install()
thread = threading.Thread(target=other); thread.start(); thread.join()
assert len(errors) == 1
print("ready")
"""


class Signals(Folder):
    def variables(self, **more):
        return {"OVERCAP_STATE_DIR": str(self.folder), **more}

    def test_both_signals_save_and_end_with_their_number(self):
        for number in (signal.SIGUSR1, signal.SIGTERM):
            process = in_a_program(LOOP, variables=self.variables())
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out, err), (128 + number, "", ""))
        self.assertEqual(self.names()[0], "checkpoint-1.json")
        first, second = (checkpoint_files.read(self.folder, number)["step"] for number in (1, 2))
        self.assertGreater(second, first, "the second went on where the first had stopped")

    def test_the_signals_are_caught_from_the_import_on(self):
        code = "from overcap import checkpoint; print('ready', flush=True); import time, sys; time.sleep(0.2)\n" \
               "sys.exit(3 if checkpoint.should_stop() and checkpoint.should_stop() else 4)"
        process = in_a_program(code, variables=self.variables())
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)

    def test_term_after_usr1_is_what_is_told(self):
        code = "from overcap import checkpoint; import os, time; print('ready', flush=True)\n" \
               "while not os.path.exists(__import__('sys').argv[1]): time.sleep(0.002)\ncheckpoint.exit()"
        gate = self.folder.parent / "gate"
        process = in_a_program(code, str(gate), variables=self.variables())
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR1):
            process.send_signal(number)
        gate.touch()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_helpers_outlive_signals_to_all_and_end_when_the_program_tells_them(self):
        path = self.folder.parent / "main.py"  # which spawned ones import again
        path.write_text(POOL)
        for way in ("fork", "spawn", "forkserver"):
            self.runs_well(str(path), way)

    def test_a_spawned_process_is_a_rank_only_when_it_says_so(self):
        path = self.folder.parent / "main.py"  # which such a process imports again
        path.write_text(SPAWNED)
        self.runs_well(str(path))

    def runs_well(self, *words):
        done = subprocess.run([sys.executable, "-B", *words], capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ready\n", ""), words)

    def test_another_thread_needs_install(self):
        self.ends_well(THREADS)

    def ends_well(self, code):
        process = in_a_program(code, variables=self.variables())
        _, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, err), (0, ""))

    def test_every_must_be_a_count(self):
        with self.assertRaisesRegex(OvercapError, "every=0"):
            checkpoint.should_stop(every=0)


def has_torch():
    words = [TORCH_PYTHON, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    return os.path.exists(TORCH_PYTHON) and subprocess.run(words, timeout=60, check=False).returncode == 0


# One process: kinds of state, a disk that is full for torch's own writer, damage.
TORCH_ALONE = """
import os, resource, signal, sys
from overcap import OvercapError, checkpoint
import torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.Adam(model.parameters())
model(torch.rand(4, 3)).sum().backward()
optimizer.step()
checkpoint.save({"step": 1, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()})
plain = torch.load(os.path.join(os.environ["OVERCAP_STATE_DIR"], "checkpoint-1.pt"))
back = checkpoint.load()
for state in (plain, back):
    assert state["step"] == 1 and torch.equal(state["model"]["weight"], model.weight)
other = torch.optim.Adam(model.parameters())
other.load_state_dict(back["optimizer"])
torch.set_rng_state(back["rng"])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoint.save({"big": torch.zeros(1_000_000)})
except OvercapError as error:
    assert "those before are kept" in str(error), error
else:
    raise AssertionError("a file larger than allowed")
assert checkpoint.load()["step"] == 1
assert sorted(os.listdir(os.environ["OVERCAP_STATE_DIR"])) == ["checkpoint-1.json", "checkpoint-1.pt"]
print("ok")
"""

# The workers of its DataLoader get the signals too.
TORCH_LOADER = """
import os, sys
from overcap import checkpoint
import torch
class Numbers(torch.utils.data.IterableDataset):
    def __iter__(self):
        number = 0
        while True:
            number += 1
            yield number
steps = 0
for batch in torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2):
    steps += 1
    if steps == 3:
        print("ready", flush=True)
    checkpoint.exit_if_asked(lambda: steps)
"""

# Several ranks, of which one alone is told to stop.
TORCH_RANK = """
import os, sys, time
from overcap import checkpoint
import torch, torch.distributed as dist
import overcap.torch
world = overcap.torch.setup(timeout=120)
state = checkpoint.load({"step": torch.tensor(0)})
facts = sys.argv[1]
def tell(name, text):
    with open(os.path.join(facts, name + ".new"), "w") as file:
        file.write(f"{text}\\n")
    os.rename(os.path.join(facts, name + ".new"), os.path.join(facts, name))
tell(f"rank-{world.rank}", f"{os.getpid()} {int(state['step'])}")
while True:
    time.sleep(0.01 * world.rank)  # ranks are not equally quick
    state["step"] += 1
    if checkpoint.should_stop(every=3):
        if world.rank == 0:
            time.sleep(0.3)  # the others must wait for it
        checkpoint.save(state)
        tell(f"stopped-{world.rank}", int(state["step"]))
        checkpoint.exit()
"""


@unittest.skipUnless(has_torch(), f"NOT TESTED: no torch for {TORCH_PYTHON} (tools/install_packages test)")
class WithTorch(Rig):
    def setUp(self):
        super().setUp()
        self.state = self.root / "checkpoints"
        self.env.update(
            PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1",
            CUDA_VISIBLE_DEVICES="", GLOO_SOCKET_IFNAME="lo", OVERCAP_STATE_DIR=str(self.state))

    def test_one_process(self):
        process = subprocess.Popen([TORCH_PYTHON, str(self.write("alone.py", TORCH_ALONE))], env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        done = self.finish(process, PATIENCE)
        self.assertEqual((done.status, done.out), (0, "ok\n"), str(done))

    def test_a_data_loader_does_not_break_when_its_workers_get_the_signals_too(self):
        for number in (signal.SIGUSR1, signal.SIGTERM):
            process = subprocess.Popen([TORCH_PYTHON, str(self.write("loader.py", TORCH_LOADER))], env=self.env,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       start_new_session=True)
            self.assertEqual(process.stdout.readline(), b"ready\n")
            os.killpg(process.pid, number)
            done = self.finish(process, PATIENCE)
            self.assertEqual((done.status, done.err), (128 + number, ""), str(done))
            self.until(lambda: not self.processes(), "the workers to end", PATIENCE)
        self.assertTrue((self.state / "checkpoint-2.json").exists())

    def ranks(self, count, start):
        """Starts them, and gives their (pid, first step) when all are in their loops."""
        for path in self.facts.iterdir():
            path.unlink()
        processes = start()
        return processes, [tuple(map(int, self.fact(f"rank-{rank}", PATIENCE).split())) for rank in range(count)]

    def stopped_at(self, count):
        (step,) = {int(self.fact(f"stopped-{rank}")) for rank in range(count)}  # the same on all
        self.assertEqual(step % 3, 0)
        return step

    def test_ranks_agree_when_one_alone_is_told(self):
        """Plain processes with RANK and WORLD_SIZE, then the same under `overcap launch`."""
        script = [TORCH_PYTHON, str(self.write("rank.py", TORCH_RANK)), str(self.facts)]

        def plain():
            places = [{"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}
                      for rank in range(2)]
            return [subprocess.Popen(script, env={**self.env, **place}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE) for place in places]
        processes, told = self.ranks(2, plain)
        self.assertEqual([first for _, first in told], [0, 0])
        os.kill(told[1][0], signal.SIGUSR1)
        for process in processes:
            done = self.finish(process, PATIENCE)
            self.assertEqual(done.status, 128 + signal.SIGUSR1, str(done))
        step = self.stopped_at(2)

        launch, told = self.ranks(3, lambda: self.start("launch", "--launcher", "local", "-n", "3", "--", *script))
        self.assertEqual([first for _, first in told], [step] * 3, "all begin where the others ended")
        os.kill(told[2][0], signal.SIGTERM)
        done = self.finish(launch, PATIENCE)
        self.assertEqual(done.status, 128 + signal.SIGTERM, str(done))
        self.assertGreater(self.stopped_at(3), step)
        self.assertEqual(json.loads((self.state / "checkpoint-2.json").read_text())["kind"], "torch")

    def test_the_example_is_stopped_and_goes_on(self):
        example = [TORCH_PYTHON, str(REPOSITORY / "examples" / "resume" / "train.py")]
        words = ["launch", "--launcher", "local", "-n", "2", "--", *example, "--steps"]
        launch = self.start(*words, "1000000", "--save-every", "50")
        self.until(lambda: (self.state / "checkpoint-2.json").exists(), "some steps to be saved", PATIENCE)
        launch.send_signal(signal.SIGTERM)
        done = self.finish(launch, PATIENCE)
        self.assertEqual(done.status, 128 + signal.SIGTERM, str(done))
        self.assertIn("attempt 1 begins at step 0\n", done.out)
        done = self.ok(*words, "1", env={"OVERCAP_ATTEMPT": "2"}, deadline=PATIENCE)  # it is further than that
        self.assertRegex(done.out, r"^attempt 2 begins at step [1-9][0-9]+\ndone after step 1: y = [0-9.]+ x \+ [0-9.]+\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
