# SPDX-License-Identifier: Apache-2.0
"""What every end-to-end test stands on: a private home per test, commands with deadlines, a clean end.

The binary is $OVERCAP_BINARY, else build/release/overcap. Each test has a folder of its own (`self.root`) that
holds its HOME, OVERCAP_HOME and a project; every process that it starts carries that folder's unique name in its
environment, which is how the rig finds (and ends) only what this test has started. The folder of a failed test
is kept and named.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
PYTHON = os.path.realpath(sys.executable)
FINAL = ("succeeded", "failed", "cancelled", "lost")
JOB_ID = re.compile(r"^[A-Za-z0-9.-]+_[0-9]{9,11}_[0-9a-f]{8}$")
DEADLINE = 30.0 * float(os.environ.get("OVERCAP_TEST_PATIENCE", "1"))
CRASH_WORDS = (b"Traceback", b"terminate called", b"AddressSanitizer", b"runtime error", b"ThreadSanitizer",
               b"Segmentation", b"core dumped")


class Done:
    """A command that has ended."""

    def __init__(self, argv, status, out, err, seconds):
        self.argv, self.status, self.raw_out, self.raw_err, self.seconds = argv, status, out, err, seconds
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def __str__(self):
        return f"{self.argv}: status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}\n---"

    def json(self):
        return json.loads(self.out)


def python(code, *args):
    """An argv that runs Python code in a rank, without site packages, so that it starts quickly."""
    return [PYTHON, "-I", "-S", "-c", code, *args]


def shell(script, *args):
    """An argv that runs a shell script in a rank; args are $1 and so on."""
    return ["/bin/sh", "-c", script, "sh", *args]


def alive(pid):
    """Whether the process runs; a zombie does not, but for one that has threads left: they hold its files."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            state = f.read().rpartition(b")")[2].split()[0]
        return state not in (b"Z", b"X") or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def needs_root(test):
    """Skips a test, and says so aloud, where it cannot have what only root can give."""
    return unittest.skipUnless(os.geteuid() == 0, "NOT TESTED: needs root")(test)


class Rig(unittest.TestCase):
    maxDiff = None
    folder_name = "state"  # of OVERCAP_HOME below the test's folder
    parent = None  # where the test's folder is made; None: the usual place for temporary files

    # ---- the world of one test

    def setUp(self):
        if not os.access(BINARY, os.X_OK):
            self.fail(f"no binary at {BINARY}: build it or set OVERCAP_BINARY")
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="overcap-e2e-", dir=self.parent))
        self.binary = BINARY
        self.user = None  # a number: run commands as that user
        self.home = self.root / self.folder_name
        self.project = self.root / "project"
        self.facts = self.root / "facts"  # where ranks leave what the test wants to know
        for folder in (self.project, self.facts, self.root / "user"):
            folder.mkdir()
        self.env = self.environment(self.root / "user", self.home)

    def environment(self, user_home, overcap_home):
        passed_on = {name: value for name, value in os.environ.items()
                     if name == "OVERCAP_TEST_FOLDER" or name.endswith("SAN_OPTIONS")}
        return {
            **passed_on, "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "HOME": str(user_home),
            "OVERCAP_HOME": str(overcap_home), "XDG_CONFIG_HOME": str(user_home / ".config"),
            "XDG_STATE_HOME": str(user_home / ".local/state"), "XDG_CACHE_HOME": str(user_home / ".cache"),
            "XDG_RUNTIME_DIR": str(user_home / "run"), "E2E_ROOT": str(self.root), "FACTS": str(self.facts),
        }

    def run(self, result=None):
        result = result if result is not None else self.defaultTestResult()
        self.root = None
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if self.root is None:
            return result
        if len(result.failures) + len(result.errors) > before:
            print(f"\nkept for {self.id()}: {self.root}", file=sys.stderr)
        else:
            for folder, _, _ in os.walk(self.root):
                os.chmod(folder, 0o700)
            shutil.rmtree(self.root, ignore_errors=True)
        return result

    def tearDown(self):
        self.stop_everything()

    def stop_everything(self):
        """Ends the engine as a user would, then by pid what this test has started and is still there."""
        if self.home.exists():
            try:
                self.overcap("daemon", "stop", deadline=10)
            except Exception as error:  # the kill below does it, whatever went wrong
                print(f"{self.id()}: daemon stop: {error}", file=sys.stderr)
        deadline = time.monotonic() + 10
        while pids := self.processes():
            for pid in pids:
                self.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise AssertionError(f"processes {pids} would not die")
            time.sleep(0.02)

    def processes(self, marker=None):
        """The processes whose environment names this test's folder (or holds `marker`)."""
        marker = (marker or str(self.root)).encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    with open(f"/proc/{entry}/environ", "rb") as f:
                        if marker in f.read() and alive(entry):
                            found.append(int(entry))
                except OSError:
                    pass
        return found

    def kill(self, pid, number=signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    # ---- commands

    def start(self, *args, cwd=None, env=None, stdin=subprocess.DEVNULL):
        return subprocess.Popen(
            [str(self.binary), *args], cwd=cwd or self.project, env={**self.env, **(env or {})}, stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=self.user, group=self.user,
            extra_groups=[] if self.user is not None else None)

    def finish(self, process, deadline=None, began=None):
        began = began or time.monotonic()
        try:
            out, err = process.communicate(timeout=deadline or DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                out, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                out, err = b"", b"(somebody keeps its output open)"
            raise AssertionError(f"{process.args} did not end in {deadline or DEADLINE} s\n{out!r}\n{err!r}")
        done = Done(process.args, process.returncode, out, err, time.monotonic() - began)
        self.assertGreaterEqual(done.status, 0, f"died by a signal: {done}")
        for word in CRASH_WORDS:
            self.assertNotIn(word, done.raw_err, f"crashed: {done}")
        return done

    def overcap(self, *args, deadline=None, **options):
        """Runs one command to its end, whatever its status."""
        began = time.monotonic()
        return self.finish(self.start(*args, **options), deadline, began)

    def ok(self, *args, **options):
        done = self.overcap(*args, **options)
        self.assertEqual(done.status, 0, str(done))
        return done

    def refused(self, *args, status=2, says=(), **options):
        """The command must fail with a short message, without a crash, without output on stdout."""
        done = self.overcap(*args, **options)
        if status is None:
            self.assertNotEqual(done.status, 0, str(done))
        else:
            self.assertEqual(done.status, status, str(done))
        self.assertTrue(done.err.strip(), f"failed without a word: {done}")
        self.assertEqual(done.out, "", f"a failure speaks on stderr: {done}")
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.err, str(done))
        return done

    def submit(self, *args, **options):
        """Submits and gives the id."""
        return self.id_in(self.ok("submit", *args, **options))

    def id_in(self, done):
        job_id = done.out.strip()
        self.assertRegex(job_id, JOB_ID, str(done))
        return job_id

    def run_job(self, *args, **options):
        """Submits, waits for the end and gives the record."""
        return self.ended(self.submit(*args, **options))

    def jobs(self, *args, **options):
        """The records that `ls --json` or `query --json` prints."""
        value = self.ok(*args, "--json", **options).json()
        if isinstance(value, dict):
            return value["jobs"] if "jobs" in value else [value]
        return value

    def job(self, job_id):
        (record,) = self.jobs("query", job_id)
        return record

    def log(self, job_id, rank=0, attempt=1):
        """What the rank wrote, from the job's folder."""
        return (self.home / "jobs" / job_id / f"attempt-{attempt}" / f"rank-{rank}.log").read_bytes()

    # ---- waiting: always for a condition, never for a time

    def until(self, condition, what, deadline=None):
        """Polls until the condition gives something true, and gives that back."""
        end = time.monotonic() + (deadline or DEADLINE)
        pause = 0.002
        while True:
            began = time.monotonic()
            if value := condition():
                return value
            now = time.monotonic()
            if now > end:
                self.fail(f"waited in vain for: {what}")
            time.sleep(max(pause, min(0.5, 2 * (now - began))))  # a look that takes long holds up what is waited for
            pause = min(pause * 1.5, 0.1)

    def until_state(self, job_id, *states, deadline=None):
        last = {}

        def reached():
            last.update(self.job(job_id))
            return last["state"] in states

        try:
            self.until(reached, f"{job_id} to be {' or '.join(states)}", deadline)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {last.get('state')}: {last}") from None
        return last

    def ended(self, job_id, deadline=None):
        self.overcap("wait", job_id, deadline=deadline)
        return self.until_state(job_id, *FINAL, deadline=deadline)

    def fact(self, name, deadline=None):
        """The text of facts/name once it is there and ends with a newline."""
        path = self.facts / name
        self.until(lambda: path.exists() and path.read_bytes().endswith(b"\n"), f"fact {name}", deadline)
        return path.read_text().strip()

    # ---- files

    def write(self, name, text, mode=None, base=None):
        path = (base or self.project) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text)
        if mode is not None:
            path.chmod(mode)
        return path

    def declare_gpus(self, count, kind="a40"):
        """Declares GPUs in the project's overcap.yaml; no real ones are needed."""
        self.write("overcap.yaml", f"clusters: {{local: {{gpus: [{{type: {kind}, count: {count}}}]}}}}\n")

    def declare_no_gpus(self):
        self.write("overcap.yaml", "clusters: {local: {gpus: []}}\n")

    def gate(self, name="gate"):
        """A shell line that waits until open_gate(name); it gives up after two minutes."""
        path = self.facts / name
        return f"i=0; while [ ! -e '{path}' ] && [ $i -lt 6000 ]; do sleep 0.02; i=$((i+1)); done"

    def open_gate(self, name="gate"):
        (self.facts / name).touch()

    def daemon_status(self):
        return self.ok("daemon", "status", "--json").json()

    def daemon_pid(self):
        """Of the engine, which is started when there is none."""
        self.ok("ls")
        return self.daemon_status()["pid"]

    def share_with(self, user):
        """Gives the project, the facts and the binary to another user (needs root)."""
        os.chmod(self.root, 0o755)
        for folder in self.root.parents:  # down to here it must be able to come
            if folder != pathlib.Path("/tmp") and os.access(folder, os.W_OK) and folder.is_relative_to("/tmp"):
                folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o011)
        self.binary = self.root / "overcap"
        shutil.copy(BINARY, self.binary)
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in (self.project, self.facts, self.root / "user", self.home):
            os.chown(path, user, user)
            for folder, folders, files in os.walk(path):
                for name in folders + files:
                    os.lchown(os.path.join(folder, name), user, user)

    def mode_of(self, path):
        return stat.S_IMODE(os.lstat(path).st_mode)


def main():
    unittest.main(verbosity=2)
