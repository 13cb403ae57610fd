# SPDX-License-Identifier: Apache-2.0
"""`overcap launch` and `overcap env` in a real Slurm job: srun places the ranks, failures are told, nothing stays."""
import json
import os
import shlex
import signal
import time

from launch_rig import STAY, TELL_PLACE, LaunchRig, by_rank
from overcap_rig import BINARY, CRASH_WORDS, Done, main, shell
from rigs.machines import wait_until
from rigs.slurm_rig import SlurmCluster

DEADLINE_SECONDS = 400
ON_EVERY_SLURM = True


class SlurmRig(LaunchRig):
    gpus = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = SlurmCluster(nodes=4, gpus=cls.gpus)
        cls.addClassCleanup(lambda: cls.slurm.close())

    def setUp(self):
        super().setUp()
        # Jobs write into these folders whoever Slurm runs them as.
        self.env.update({name: self.slurm.environment[name] for name in ("SLURM_CONF", "PATH")})
        self.dead = set()

    def tearDown(self):
        if self.dead:
            # Slurm takes its time to see a node come back and to end what was there: a new cluster is quicker.
            self.slurm.close()
            type(self).slurm = SlurmCluster(nodes=4, gpus=self.gpus)
        else:
            self.slurm.must(["scancel", "--user=" + self.slurm.must(["id", "-un"]).strip()])
            wait_until(lambda: not self.slurm.must(["squeue", "-h"]), "the queue to be empty", 60)
        super().tearDown()

    def kill_node(self, name):
        self.dead.add(name)
        self.slurm.kill_node(name)
        self.slurm.down_node(name)

    def done(self, completed):
        done = Done(completed.args, completed.returncode, completed.stdout, completed.stderr, 0)
        for word in CRASH_WORDS:
            self.assertNotIn(word, done.raw_err, f"crashed: {done}")
        return done

    def in_job(self, allocation, *words, node=None, timeout=60, env=None):
        """Runs `overcap WORDS` from the login node inside a new allocation."""
        argv = ["salloc", "--quiet", *allocation, str(BINARY), *words]
        return self.done(self.slurm.run(argv, env={**self.env, **(env or {})}, cwd=self.project, text=False, node=node,
                                        timeout=timeout))

    def launch_in(self, allocation, *words, **options):
        done = self.in_job(allocation, "launch", *words, **options)
        wait_until(lambda: not self.processes(), f"all of it to be gone: {self.command_lines()}", 10)
        return done

    def launched_in(self, allocation, *words, **options):
        done = self.launch_in(allocation, *words, **options)
        self.assertEqual(done.status, 0, str(done))
        return done

    def popen_in(self, allocation, *words, ranks):
        process = self.slurm.popen(["salloc", "--quiet", *allocation, str(BINARY), "launch", *words], env=self.env,
                                   cwd=self.project, text=False)
        self.until(lambda: len(self.places()) == ranks or process.poll() is not None, "all ranks to start")
        if process.poll() is not None:
            self.fail(f"ended too early: {process.communicate()}")
        return process


class Places(SlurmRig):
    def test_four_ranks_on_two_nodes_one_for_each_gpu(self):
        self.launched_in(["-N2", "--gpus-per-node=2", "-w", "n1,n2"], *shell(TELL_PLACE))
        self.assert_places([("n1", 2), ("n2", 2)])
        self.assertEqual(self.record()["launcher"], "srun")
        self.assertEqual(self.record()["scheduler"], "slurm")
        self.assertTrue(self.record()["job_id"])

    def test_a_job_without_gpus_has_one_rank_per_node(self):
        self.launched_in(["-N3", "-w", "n1,n2,n3"], *shell(TELL_PLACE))
        self.assert_places([("n1", 1), ("n2", 1), ("n3", 1)])

    def test_ppn_gives_each_node_so_many(self):
        self.launched_in(["-N2", "-c4", "-w", "n2,n3"], "--ppn", "3", *shell(TELL_PLACE))
        self.assert_places([("n2", 3), ("n3", 3)])

    def test_each_rank_gets_its_share_of_the_jobs_processors_and_what_torchrun_sets(self):
        tell = 'echo "$OMP_NUM_THREADS $GROUP_RANK/$GROUP_WORLD_SIZE $ROLE_RANK ${TORCHELASTIC_RUN_ID%-*-*} $TORCHELASTIC_ERROR_FILE"'
        self.launched_in(["-N2", "-c4", "-w", "n2,n3"], "--ppn", "2", *shell(tell))
        threads = max(1, min(len(os.sched_getaffinity(0)), 4) // 2)
        for rank in range(4):
            words = self.rank_log(rank).decode().split()
            self.assertEqual(words[:3], [str(threads), f"{rank // 2}/2", str(rank)])
            self.assertTrue(words[3].startswith("overcap-"))
            self.assertEqual(words[4], str(self.folder() / "attempt-1" / f"error-{rank}.json"))

    def test_nnodes_takes_the_first_nodes_only(self):
        self.launched_in(["-N4", "-c8"], "--nnodes", "2", "--ppn", "2", *shell(TELL_PLACE))
        self.assert_places([("n1", 2), ("n2", 2)])

    def test_a_host_file_really_places_the_ranks(self):
        hosts = self.write("hosts", "n3 slots=2\nn2 slots=2\n")
        self.launched_in(["-N4", "-c8"], "--hostfile", str(hosts), *shell(TELL_PLACE))
        self.assertEqual({place["HOST"] for place in self.places().values()}, {"n2", "n3"})
        self.assert_places([(self.places()[0]["HOST"], 2), (self.places()[2]["HOST"], 2)])

    def test_a_host_file_with_a_host_that_is_not_in_the_job(self):
        hosts = self.write("hosts", "n1\nn3\n")
        done = self.launch_in(["-N2", "-w", "n1,n2"], "--hostfile", str(hosts), *shell(TELL_PLACE))
        self.assertEqual((done.status, self.places()), (2, {}), str(done))
        self.assertRegex(done.err, r"^overcap: host 'n3' of host file '.*hosts' is not in job \d+\nhint: .*--launcher ssh.*\n$")

    def test_outside_a_job_the_user_is_told_and_with_quiet_not(self):
        for flags, words in ((), "in no Slurm job"), (("--quiet",), ""):
            done = self.done(self.slurm.run([str(BINARY), "launch", *flags, "true"], env=self.env, cwd=self.project, text=False))
            self.assertEqual(done.status, 0, str(done))
            self.assertIn(words, done.err)
            self.assertEqual(done.err == "", words == "", str(done))

    def test_unequal_slots_of_a_host_file(self):
        hosts = self.write("hosts", "n1 slots=1\nn2 slots=3\n")
        self.launched_in(["-N4", "-c8"], "--hostfile", str(hosts), *shell(TELL_PLACE))
        self.assert_places([("n1", 1), ("n2", 3)])

    def test_ranks_that_do_not_divide_by_the_nodes(self):
        self.launched_in(["-N2", "-c8", "-w", "n1,n2"], "-n", "5", *shell(TELL_PLACE))
        self.assert_places([("n1", 3), ("n2", 2)])

    def test_it_works_from_within_a_batch_script(self):
        script = f"{shlex.join([str(BINARY), 'launch', *shell(TELL_PLACE)])}\n"
        path = self.write("job.sh", f"#!/bin/sh\n{script}", mode=0o755)
        out = self.root / "job.out"
        self.slurm.must(["sbatch", "--wait", "-N2", "-o", str(out), "--gpus-per-node=2", "-w", "n3,n4", str(path)],
                        env=self.env, cwd=self.project)
        self.assert_places([("n3", 2), ("n4", 2)])

    def test_ssh_is_not_used_and_the_command_sees_its_arguments(self):
        done = self.launched_in(["-N2"], "--", "printf", "%s|", "a b", "", "'q'", "$HOME")
        self.assertEqual(done.out, "a b||'q'|$HOME|")

    def test_the_dry_run_prints_srun_and_starts_nothing(self):
        done = self.launched_in(["-N2", "--gpus-per-node=2"], "--dry-run", *shell('touch "$FACTS/ran"'))
        self.assertRegex(done.out, r"\bsrun -n 4 --distribution=arbitrary --nodelist=(n\d),\1,(n\d),\2 ")
        self.assertIn("--gpus-per-node", done.out)
        self.assertFalse((self.facts / "ran").exists())
        self.assert_no_logs()


class Gpus(SlurmRig):
    def test_ranks_see_all_gpus_of_their_host_however_the_job_asked_for_them(self):
        asked = [["-N1", "--gres=gpu:a40:2"], ["-N1", "--gpus=a40:2"], ["-N1", "--gpus-per-node=a40:2"], ["-n2", "--gpus-per-task=a40:1"],
                 ["-N1", "-n2", "--gpus-per-task=1"], ["-N1", "--gpus=2", "--ntasks-per-gpu=1"]]
        if self.slurm.version() >= (23, 11):
            asked += [["-N1", "-n2", "--tres-per-task=gres/gpu:a40:1"], ["-N1", "-n2", "--tres-per-task=gres/gpu:1"]]
        for words in asked:
            with self.subTest(" ".join(words)):
                self.launched_in(["-w", "n1", *words], *shell('echo "$LOCAL_RANK of $LOCAL_WORLD_SIZE sees $CUDA_VISIBLE_DEVICES"'))
                self.assertEqual([self.rank_log(rank) for rank in range(2)], [b"0 of 2 sees 0,1\n", b"1 of 2 sees 0,1\n"])


class Output(SlurmRig):
    def test_streams_stay_apart_and_each_rank_has_its_log(self):
        speak = 'echo "out $RANK"; echo "err $RANK" >&2'
        done = self.launched_in(["-N2", "--gpus-per-node=2"], *shell(speak))
        self.assertEqual((done.out, done.err), ("out 0\n", "err 0\n"))
        for rank in range(4):
            self.assertEqual(sorted(self.rank_log(rank).splitlines()), [b"err %d" % rank, b"out %d" % rank])
            self.assertEqual({stream for _, stream, _ in self.rank_times(rank)}, {1, 2})

    def test_two_megabytes_per_rank_arrive_whole(self):
        self.launched_in(["-N2", "--gpus-per-node=2"], *shell("seq 1 300000"))
        wanted = "".join(f"{n}\n" for n in range(1, 300_001)).encode()
        for rank in range(4):
            self.assertEqual(self.rank_log(rank), wanted)


class Ends(SlurmRig):
    def test_the_failing_task_is_named_with_its_node(self):
        done = self.launch_in(["-N2", "--gpus-per-node=2", "-w", "n1,n2"],
                              *by_rank(r2="echo last words; sleep 0.2; exit 9", other=STAY))
        self.assertEqual(done.status, 9, str(done))
        self.assertRegex(done.err, r"rank 2\b")
        self.assertIn("n2", done.err)
        self.assertIn("last words", done.err)

    def test_a_killed_task_is_told_so(self):
        done = self.launch_in(["-N2", "-w", "n1,n2"], *by_rank(r1="kill -SEGV $$", other=STAY))
        self.assertEqual(done.status, 139, str(done))
        self.assertRegex(done.err, r"rank 1\b.*(SIGSEGV|signal 11)")

    def test_a_node_that_dies_is_named_and_the_rest_is_stopped(self):
        process = self.popen_in(["-N3", "--no-kill", "-w", "n1,n2,n3"], *shell(f"{TELL_PLACE}; {STAY}"), ranks=3)
        began = time.monotonic()
        self.kill_node("n2")
        out, err = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - began, 40)
        self.assertNotEqual(process.returncode, 0, err)
        self.assertRegex(err, rb"overcap: .*n2")
        (attempt,) = self.result_of()["attempts"]
        self.assertEqual((attempt["cause"], attempt["bad_hosts"]), ("host_failed", ["n2"]))
        wait_until(lambda: not self.processes(), "all of it to be gone", 15)

    def test_a_spare_node_takes_the_place_of_one_that_died(self):
        script = f'{TELL_PLACE}; if [ -e "$FACTS/second" ]; then exit 0; fi; {STAY}'
        process = self.popen_in(["-N3", "--no-kill", "-w", "n1,n2,n3"], "--spare-nodes", "1", "--retries", "2",
                                *shell(script), ranks=2)
        self.assert_places([("n1", 1), ("n2", 1)])
        for path in self.facts.glob("place-*"):
            path.unlink()
        (self.facts / "second").touch()
        self.kill_node("n2")
        out, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, 0, err)
        self.assert_places([("n1", 1), ("n3", 1)])
        self.assertEqual([one["cause"] for one in self.result_of()["attempts"]][-1], "done")
        wait_until(lambda: not self.processes(), "all of it to be gone", 15)

    def test_unequal_gpus_give_unequal_ranks(self):
        with SlurmCluster(nodes=2, gpus=[1, 3]) as slurm:
            self.env.update({name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")})
            argv = ["salloc", "--quiet", "-N2", "--gpus=4", str(BINARY), "launch", *shell(TELL_PLACE)]
            done = self.done(slurm.run(argv, env=self.env, cwd=self.project, text=False))
            self.assertEqual(done.status, 0, str(done))
        self.assert_places([("n1", 1), ("n2", 3)])

    def test_interrupt_stops_all_ranks(self):
        script = f"{TELL_PLACE}; {STAY}"
        process = self.popen_in(["-N2", "--gpus-per-node=2"], *shell(script), ranks=4)
        (launch,) = [pid for pid in self.processes() if self.words_of(pid)[1:2] == ["launch"]]
        self.kill(launch, signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        wait_until(lambda: not self.processes(), "all of it to be gone", 15)

    def words_of(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().decode(errors="replace").split("\0")
        except OSError:
            return []

    def test_killing_the_launch_leaves_no_rank(self):
        process = self.popen_in(["-N2", "--gpus-per-node=2"], "--grace", "1s",
                                *shell(f"trap '' TERM; {TELL_PLACE}; {STAY}"), ranks=4)
        (launch,) = [pid for pid in self.processes() if self.words_of(pid)[1:2] == ["launch"]]
        self.kill(launch)
        process.communicate(timeout=30)
        wait_until(lambda: not self.processes(), f"all of it to be gone: {self.command_lines()}", 20)

    def test_silence_is_ended_with_the_stacks_of_all_nodes(self):
        done = self.launch_in(["-N2", "--gpus-per-node=2"], "--timeout", "1s", "sleep", "1000")
        self.assertEqual(done.status, 124, str(done))
        stacks = (self.folder() / "attempt-1" / "stacks.txt").read_text()
        for rank in range(4):
            self.assertRegex(stacks, rf"rank {rank}\b")

    def test_more_ranks_than_the_job_has_nodes_for_is_refused(self):
        done = self.launch_in(["-N2"], "--nnodes", "3", "true")
        self.assertEqual(done.status, 2, str(done))
        self.assert_no_logs()


class Environment(SlurmRig):
    def facts_of(self, done):
        self.assertEqual(done.status, 0, str(done))
        return json.loads(done.out)

    def test_env_tells_the_job(self):
        facts = self.facts_of(self.in_job(["-N2", "--gpus-per-node=2", "-w", "n2,n3"], "env", "--json"))
        text = json.dumps(facts)
        self.assertEqual(facts["scheduler"]["value"] if isinstance(facts["scheduler"], dict) else facts["scheduler"],
                         "slurm")
        self.assertIn("n2", text)
        self.assertIn("n3", text)

    def test_a_second_shell_on_a_node_finds_the_job_and_launches_in_it(self):
        self.slurm.must(["salloc", "--quiet", "--no-shell", "-N2", "--gpus-per-node=2", "-w", "n2,n3", "-J", "held"])
        try:
            number = self.slurm.must(["squeue", "-h", "-t", "running", "-o", "%i"]).strip()
            done = self.done(self.slurm.run([str(BINARY), "env", "--json"], node="n3", env=self.env, cwd=self.project,
                                            text=False))
            self.assertEqual(done.status, 0, str(done))
            self.assertIn(number, done.out)
            self.assertIn("n2", done.out)
            done = self.done(self.slurm.run([str(BINARY), "launch", *shell(TELL_PLACE)], node="n3", env=self.env,
                                            cwd=self.project, text=False))
            self.assertEqual(done.status, 0, str(done))
            self.assert_places([("n2", 2), ("n3", 2)])
        finally:
            self.slurm.must(["scancel", "--name=held"])

    def test_a_node_without_a_job_is_not_taken_for_one(self):
        done = self.done(self.slurm.run([str(BINARY), "env", "--json"], node="n4", env=self.env, cwd=self.project,
                                        text=False))
        self.assertEqual(done.status, 0, str(done))
        self.assertNotIn("SLURM_JOB_ID=", done.out)


if __name__ == "__main__":
    main()
