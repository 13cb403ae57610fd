# SPDX-License-Identifier: Apache-2.0
"""Limits of the engine of a machine bind the user whom they limit, whatever the user does to the job's files and processes."""
import errno
import json
import os
import pathlib
import stat
import subprocess
import unittest

from overcap_rig import alive, main, shell
from system_rig import SystemRig


class Limits(SystemRig):
    flags = ("--slack", "1")

    def config(self):
        return "clusters: {local: {gpus: [{type: a40, count: 4}], cpus: 8}}\njobs: {grace: 1s}\n"

    def rewrite_spec(self, job_id, **resources):
        """As the job's user, who owns the file."""
        path = self.area("alice") / "jobs" / job_id / "spec.json"

        def act():
            spec = json.loads(path.read_text())
            for key, value in resources.items():
                spec["resources"][key] = value
            path.write_text(json.dumps(spec))
            return spec["resources"]

        self.as_user("alice", act)
        return json.loads(path.read_text())

    def test_a_time_limit_that_is_edited_out_of_the_spec_holds(self):
        job_id = self.submit("--hold", "--time", "1s", "-n", "0", "sleep", "600")
        self.assertEqual(self.rewrite_spec(job_id, time_seconds=0)["resources"]["time_seconds"], 0)
        self.ok("release", job_id)
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"], job["reason"]), ("failed", 124, "time limit of 1s reached"))

    def test_a_memory_limit_that_is_edited_out_of_the_spec_holds(self):
        fill = "import time\nkeep = b'x' * (300 << 20)\ntime.sleep(600)"
        job_id = self.submit("--hold", "--mem", "64M", "-n", "0", "python3", "-c", fill)
        self.rewrite_spec(job_id, mem_bytes=0)
        self.ok("release", job_id)
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"]), ("failed", 137))
        self.assertIn("memory limit", job["reason"])

    def test_a_job_that_stops_its_agent_ends_soon_after_its_time_limit_with_all_it_started(self):
        hide = f"setsid sh -c 'echo $$ >{self.facts}/hidden; exec sleep 600' </dev/null >/dev/null 2>&1 &"
        job_id = self.submit("--time", "1s", "-n", "0", *shell(f"kill -STOP $PPID; {hide} sleep 600"))
        hidden = int(self.fact("hidden"))
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"]), ("failed", 124))
        self.assertIn("its agent had not ended it", job["reason"])
        self.until(lambda: not alive(hidden), "what the job had started to be gone")

    def test_the_kernel_holds_the_memory_limit_where_the_agent_is_stopped(self):
        if not pathlib.Path("/sys/fs/cgroup/memory").exists() and "memory" not in pathlib.Path("/sys/fs/cgroup/cgroup.controllers").read_text():
            raise unittest.SkipTest("NOT TESTED: no memory controller")
        fill = "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nkeep = [b'x' * (1 << 20) for _ in range(1000)]\nopen('%s/over', 'w').close()"
        job_id = self.submit("--mem", "64M", "--time", "20s", "-n", "0", "python3", "-c", fill % self.facts)
        job = self.ended(job_id)
        self.assertEqual(job["state"], "failed")
        self.assertFalse((self.facts / "over").exists())

    def test_what_was_used_is_counted_by_the_engines_clock(self):
        """The job writes its own end into the report, one millisecond after its start, and kills its agent."""
        forge = ('r=$(ls ../agent-0.jsonl); t=$(date +%s%6N); sleep 3; '
                 'printf \'{"e":"end","t":%s,"state":"succeeded","exit_status":0,"signal":0,"first_failed_rank":-1}\\n\' $t >>$r; kill -9 $PPID; sleep 60')
        job = self.ended(self.submit("-n", "1", *shell(forge)))
        self.assertGreaterEqual(job["elapsed_s"], 3, job)

    def test_processes_of_a_killed_agent_leave_no_zombies(self):
        job_id = self.running("-n", "0", *shell(f"for i in 1 2 3 4 5 6 7 8; do sleep 600 & done; echo $PPID >{self.facts}/agent; wait"))
        os.kill(int(self.fact("agent")), 9)
        self.ended(job_id)

        def zombies():
            text = subprocess.run(["ps", "-o", "stat=", "--ppid", str(self.engine.pid)], capture_output=True, text=True).stdout
            return [line for line in text.split() if line.startswith("Z")]

        self.until(lambda: not zombies(), "the engine to have taken all of them", deadline=5)

    def test_an_area_that_its_user_has_closed_is_named_to_the_user(self):
        job_id = self.submit("--hold", "-n", "0", "true")
        os.chmod(self.area("alice"), 0)
        self.addCleanup(os.chmod, self.area("alice"), 0o700)
        self.ok("release", job_id)
        self.until(lambda: "could not be started" in (self.job(job_id)["reason"] or ""), "the reason", deadline=10)
        reason = self.job(job_id)["reason"]
        self.assertIn(str(self.area("alice")), reason)
        self.assertIn("Permission denied", reason)
        self.assertNotIn("daemon.log", reason)

    def test_a_limit_of_the_submitting_shell_that_no_agent_can_live_with_is_the_reason_of_the_failure(self):
        self.run_job("-n", "0", "true")  # the code is captured: the client itself needs no thread
        # An agent that was started ahead gets further than one that is started for the job.
        for limit, words in (("-u 0", "Resource temporarily unavailable"), ("-f 0", "File too large"), ("-n 9", "Too many open files")):
            done = subprocess.run(["bash", "-c", f'ulimit {limit}; exec "$0" submit --json -n 0 true', str(self.binary)], cwd=self.here,
                                  env=self.env, user=self.uid["alice"], group=self.gid["alice"], extra_groups=[], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            job = self.ended(json.loads(done.stdout)["id"])
            self.assertEqual((job["state"], job["exit_status"]), ("failed", 126), limit)
            self.assertRegex(job["reason"], rf"\(ulimit\); see {self.area('alice')}/agent.log|{words}", limit)

    def test_the_time_an_agent_may_be_late_is_said_in_the_unit(self):
        unit = self.ok("daemon", "--system", "--print-unit", "--slack", "7").out
        self.assertIn("daemon --system --slack 7\n", unit)
        self.refused("daemon", "--slack", "7", status=2, says="--system")


class Gpus(SystemRig):
    """There are no GPUs here: the kernel says ENXIO to who may open /dev/nvidiaN, EPERM to who may not."""

    LOOK = ("import os, sys\nfor n in range(4):\n    try:\n        os.open(f'{sys.argv[1]}/nvidia{n}', os.O_RDWR)\n"
            "    except OSError as error:\n        print(n, error.errno)\nprint('visible', os.environ['CUDA_VISIBLE_DEVICES'])")

    def setUp(self):
        super().setUp()
        self.nodes = self.root / "dev"
        self.nodes.mkdir()
        for minor in range(4):
            try:
                os.mknod(self.nodes / f"nvidia{minor}", 0o666 | stat.S_IFCHR, os.makedev(195, minor))
            except OSError as error:
                raise unittest.SkipTest(f"NOT TESTED: mknod: {error}")
            os.chmod(self.nodes / f"nvidia{minor}", 0o666)
        if "can open GPUs" in self.overcap("daemon", "status", "--system").err:
            raise unittest.SkipTest("NOT TESTED: the kernel does not restrict devices")

    def look(self, *flags):
        job = self.run_job(*flags, "python3", "-c", self.LOOK, str(self.nodes))
        lines = self.text_of(job["id"]).split("\n")
        allowed = [int(line.split()[0]) for line in lines if line.endswith(f" {errno.ENXIO}")]
        refused = [int(line.split()[0]) for line in lines if line.endswith(f" {errno.EPERM}")]
        self.assertEqual(sorted(allowed + refused), [0, 1, 2, 3], lines)
        return job["gpu_indices"], allowed, [line for line in lines if line.startswith("visible")][0]

    def test_a_job_opens_the_gpus_that_it_was_given_and_no_others(self):
        first = self.submit("-n", "2", "--one-rank-per-node", *shell(f"echo up >{self.facts}/up; {self.gate()}"))
        self.fact("up")
        self.assertEqual(self.look("-n", "1"), ([2], [2], "visible 0"))
        self.assertEqual(self.look("-n", "1", "--mem", "256M"), ([2], [2], "visible 0"))
        self.assertEqual(self.look("-n", "0"), ([], [], "visible "))
        self.assertIn("visible 0,1", self.ok("exec", first, *shell('echo visible $CUDA_VISIBLE_DEVICES')).out)
        self.open_gate()
        self.ended(first)

    def test_exec_beside_a_job_sees_the_jobs_gpus_by_the_machines_numbers(self):
        first = self.running("-n", "2", "--one-rank-per-node", *shell(self.gate("one")))
        second = self.submit("-n", "1", *shell(f"echo up >{self.facts}/up; {self.gate('two')}"))
        self.fact("up")
        self.assertIn("visible 2", self.ok("exec", second, *shell('echo visible $CUDA_VISIBLE_DEVICES')).out)
        for name, job_id in (("one", first), ("two", second)):
            self.open_gate(name)
            self.ended(job_id)


class Helpers(SystemRig):
    def test_a_helper_is_in_a_group_of_its_own_and_cannot_be_traced(self):
        """A trash that takes long to empty: its helper is looked at meanwhile."""
        job_id = self.run_job("-n", "0", *shell('for d in 1 2 3 4 5; do mkdir $d; (cd $d; seq 1 2500 | xargs touch); done'))["id"]
        self.ok("rm", job_id)

        def helper():
            for folder in pathlib.Path("/proc").iterdir():
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                    if folder.name.isdigit() and b"empty" in words and os.stat(folder / "cmdline") and f"Uid:\t{self.uid['alice']}\t" in (folder / "status").read_text():
                        if str(self.state).encode() in b" ".join(words):
                            return int(folder.name)
                except OSError:
                    continue
            return None

        pid = self.until(helper, "the helper")
        os.kill(pid, 19)  # so that it can be looked at
        group = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
        self.assertIn(f"overcap-helper-{self.uid['alice']}-trash", group)
        self.assertEqual(self.as_user("alice", lambda: len(open(f"/proc/{pid}/environ", "rb").read())), "PermissionError")
        self.assertEqual(os.stat(f"/proc/{pid}/environ").st_uid, 0)  # as the kernel shows what may not be traced
        os.kill(pid, 18)
        self.until(lambda: not os.listdir(self.area("alice") / "trash"), "the trash to be empty")
        self.until(lambda: not any(f"overcap-helper-{self.uid['alice']}" in names for _, folders, _ in os.walk("/sys/fs/cgroup") for names in folders),
                   "the group to be gone")


class FullDisk(SystemRig):
    """The engine's folder on a file system of its own, of which an ext4 without reserved blocks behaves as the usual ones do."""

    def start_engine(self):
        if not self.state.exists():
            self.state.mkdir()
            os.chmod(self.state, 0o711)
            image = self.root / "disk"
            with open(image, "wb") as file:
                file.truncate(48 << 20)
            for words in (["mkfs.ext4", "-q", "-m", "0", "-I", "256", str(image)], ["mount", "-o", "loop", str(image), str(self.state)]):
                done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
                if done.returncode != 0:
                    raise unittest.SkipTest(f"NOT TESTED: {' '.join(words[:2])}: {done.stderr.strip()}")
            self.addCleanup(subprocess.run, ["umount", "-l", str(self.state)], timeout=20, check=True)
            os.rmdir(self.state / "lost+found")
            os.chmod(self.state, 0o711)
        super().start_engine()

    def fill(self):
        with open(self.state / "filler", "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def used(self):
        usage = os.statvfs(self.state)
        return (usage.f_blocks - usage.f_bfree) * usage.f_frsize

    def removed_on_a_full_disk(self, before):
        job_id = self.run_job("-n", "0", *shell("head -c 8000000 /dev/zero >big; mkdir -p a/b/c"))["id"]
        before()
        self.fill()
        full = self.used()
        self.overcap("rm", job_id)
        self.until(lambda: not (self.area("alice") / "jobs" / job_id).exists(), "its folder to be gone")
        self.until(lambda: self.used() < full - 7_000_000, "the space to be free")
        self.until(lambda: self.overcap("rm", job_id).status == 3 and not self.jobs("ls", "--all"), "the record to be gone")
        self.assertEqual(self.run_job("-n", "0", "true")["state"], "succeeded")

    def test_rm_frees_the_space_and_leaves_no_folder_behind(self):
        self.removed_on_a_full_disk(lambda: None)

    def test_rm_frees_it_also_where_no_trash_can_be_made(self):
        self.removed_on_a_full_disk(lambda: os.rmdir(self.area("alice") / "trash"))

    def test_a_job_that_ends_on_the_full_disk_is_recorded_as_it_ended(self):
        job_id = self.submit("-n", "0", *shell(f"echo up >{self.facts}/up; {self.gate()}; exit 3"))
        self.fact("up")
        self.fill()
        self.open_gate()
        job = self.ended(job_id)
        self.assertEqual((job["state"], job["exit_status"]), ("failed", 3))


if __name__ == "__main__":
    main()
