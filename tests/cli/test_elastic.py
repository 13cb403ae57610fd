# SPDX-License-Identifier: Apache-2.0
"""`overcap launch --nnodes MIN:MAX`: groups that shrink, grow and restart, on one machine."""
import json
import signal
import socket

from elastic_rig import STAY, TELL, ElasticRig
from launch_rig import HOST_PYTHON
from overcap_rig import REPOSITORY, main, shell
from rigs.etcd_rig import free_ports

FAIL_ONCE = 'if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ] && [ "$RANK" = 1 ]; then exit 9; fi; '


class OneNode(ElasticRig):
    def test_ranks_see_what_torchrun_tells(self):
        self.launched("--nnodes", "1:1", "--nproc-per-node", "2", "--max-restarts", "3", "--rdzv-id", "my.job", *shell(TELL))
        for rank, place in enumerate(self.until_epoch(1, 2)):
            folder = self.folder()
            self.assertEqual({k: v for k, v in place.items() if k not in ("PID", "MASTER_PORT")},
                             {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
                              "GROUP_RANK": "0", "ROLE_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                              "TORCHELASTIC_RUN_ID": "my.job", "TORCHELASTIC_RESTART_COUNT": "0",
                              "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_USE_AGENT_STORE": "False",
                              "TORCHELASTIC_ERROR_FILE": f"{folder}/attempt-1/error-{rank}.json"})

    def test_a_rank_that_fails_restarts_all_with_a_fresh_port(self):
        done = self.launched("--nnodes", "1:1", "--nproc-per-node", "2", "--max-restarts", "1", *shell(TELL + FAIL_ONCE))
        self.assertIn("rank 1 on", done.err)
        first, second = self.told(1, 1), self.told(2, 1)
        self.assertNotEqual(first["MASTER_PORT"], second["MASTER_PORT"])
        self.assertEqual((first["TORCHELASTIC_RESTART_COUNT"], second["TORCHELASTIC_RESTART_COUNT"]), ("0", "1"))
        self.assertEqual(self.result_of()["attempts"][0]["first_failed_rank"], 1)
        self.assertIn("epoch 2: 2 ranks on 1 node", self.ok("launches", "latest").out)
        events = self.ok("launches", "latest", "--json").json()["events"]
        self.assertEqual([e["rank"] for e in events if e["event"] == "failed"], [1])

    def test_when_restarts_are_used_up_the_first_error_is_told_with_its_traceback(self):
        script = self.write("train.py", "import json, os, sys, time\n"
                            "if os.environ['RANK'] != '2': time.sleep(60)\n"
                            "json.dump({'message': {'message': 'ValueError: bad batch', 'extraInfo': {'py_callstack': "
                            "'Traceback (most recent call last)\\n  File train.py, line 3\\nValueError: bad batch', 'timestamp': '1'}}},"
                            " open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w'))\nsys.exit(5)\n")
        process = self.start("launch", "--nproc_per_node=3", "--max_restarts=1", str(script))
        out, err = process.communicate(timeout=30)
        err = err.decode()
        self.assertEqual(process.returncode, 5, err)
        self.assertIn("rank 2 on", err)
        self.assertIn("failed first: exit status 5: ValueError: bad batch", err)
        self.assertIn("File train.py, line 3", err)
        self.assertEqual([e["restarts"] for e in map(json.loads, (self.folder() / "events.jsonl").read_text().splitlines())
                          if e["event"] == "epoch"], [0, 1])
        self.assertEqual(out, b"")

    def test_term_warns_the_ranks_and_ends(self):
        process = self.started_epoch("trap 'echo warned > $FACTS/warned; exit 0' USR1; " + TELL + STAY)
        process.send_signal(signal.SIGTERM)
        done = self.ended_launch(process)
        self.assertEqual(done.status, 143, str(done))
        self.assertTrue((self.facts / "warned").exists(), str(done))

    def test_an_agent_that_is_killed_leaves_no_rank_nor_what_it_has_started(self):
        process = self.started_epoch("sleep 600 & " + TELL + "wait")
        process.kill()
        process.wait(20)
        process.stdout.close()
        process.stderr.close()
        self.until(lambda: not self.processes(), "all ranks to be gone")

    def test_ranks_of_an_agent_that_is_stopped_for_too_long_are_killed(self):
        process = self.started_epoch(TELL + STAY, "--ttl", "1s")
        pids = [int(self.told(1, rank)["PID"]) for rank in range(2)]
        process.send_signal(signal.SIGSTOP)
        try:
            self.until(lambda: not any(self.runs(pid) for pid in pids), "the guard to end the ranks")
        finally:
            process.send_signal(signal.SIGCONT)
        self.until_epoch(2, 2)  # the agent sees it and goes on
        self.go()
        self.assertEqual(self.ended_launch(process).status, 0)

    def test_a_rank_that_hangs_is_found_by_its_heartbeat_and_the_group_restarts(self):
        script = self.write("hang.py", "import os, sys, time\nsys.path.insert(0, sys.argv[1])\nimport overcap\n"
                            "rank, first = int(os.environ['RANK']), os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'\n"
                            "for step in range(40):\n"
                            "    if first and rank == 1 and step == 5: time.sleep(600)\n"
                            "    overcap.heartbeat(step)\n    time.sleep(0.05 if not first or step < 6 else 0.2)\n")
        done = self.launch("--nproc-per-node", "2", "--max-restarts", "1", "--hang-timeout", "2s", HOST_PYTHON, str(script),
                           str(REPOSITORY / "python"))
        self.assertEqual(done.status, 0, str(done))
        self.assertIn("rank 1 on", done.err)
        self.assertIn("the slowest, at step 4", done.err)
        self.assertIn("rank 1", (self.folder() / "attempt-1" / "stacks.txt").read_text())

    def test_steps_that_were_lost_are_told_with_the_next_epoch(self):
        script = self.write("lose.py", "import os, sys, time\nsys.path.insert(0, sys.argv[1])\nimport overcap\nfrom overcap import checkpoint\n"
                            "state = checkpoint.load({'step': 0})\n"
                            "for step in range(state['step'] + 1, 21):\n"
                            "    overcap.heartbeat(step)\n"
                            "    if step == 10: checkpoint.save({'step': step})\n"
                            "    if step == 17 and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0': sys.exit(3)\n")
        done = self.launched("--nproc-per-node", "1", "--max-restarts", "1", HOST_PYTHON, str(script), str(REPOSITORY / "python"),
                             env={"OVERCAP_STATE_DIR": str(self.root / "state")})
        self.assertIn("epoch 2", done.err)
        events = self.ok("launches", "latest", "--json").json()["events"]
        self.assertEqual([e.get("steps_lost") for e in events if e["event"] == "epoch"], [None, 7])
        self.assertIn("7 steps lost", self.ok("launches", "latest").out)

    def test_silence_of_all_ranks_is_a_hang_too(self):
        done = self.launch("--nproc-per-node", "2", "--hang-timeout", "1s", *shell("sleep 600"))
        self.assertEqual(done.status, 124, str(done))
        self.assertIn("no rank wrote anything", done.err)

    def started_epoch(self, script, *flags):
        process = self.start("launch", "--nnodes", "1:1", "--nproc-per-node", "2", *flags, *shell(script))
        self.until_epoch(1, 2)
        return process

    def runs(self, pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False


class SeveralAgents(ElasticRig):
    """Each agent is a node, all on this machine, at a port of the first."""

    def setUp(self):
        super().setUp()
        (self.port,) = free_ports(1)

    def flags(self, nnodes="1:3", *more):
        return ("--nnodes", nnodes, "--nproc-per-node", "2", "--ttl", "1s", "--last-call", "200ms", "--rdzv",
                f"tcp://127.0.0.1:{self.port}/job", *more)

    def end_well(self, *names):
        self.go()
        for name in names:
            self.assertEqual(self.ended_agent(name).status, 0)
        self.assertEqual(self.processes(), [])

    def test_a_node_joins_now_and_all_restart_with_it(self):
        self.agent("a", *self.flags("1:3", "--grow", "now"), *shell(TELL + STAY))
        self.until_epoch(1, 2)
        self.agent("b", *self.flags("1:3", "--grow", "now"), *shell(TELL + STAY))
        places = self.until_epoch(2, 4)
        self.assertEqual([p["GROUP_RANK"] for p in places], ["0", "0", "1", "1"])
        self.assertEqual({p["TORCHELASTIC_RESTART_COUNT"] for p in places}, {"0"})
        self.end_well("a", "b")
        epochs = self.events("a", "epoch")
        self.assertEqual([(e["group_size"], e["why"]) for e in epochs], [(1, ""), (2, "a node joined")])

    def test_a_node_that_comes_waits_for_a_checkpoint_and_no_step_is_lost(self):
        script = self.write("train.py", "import os, sys, time\nsys.path.insert(0, sys.argv[1])\nimport overcap\n"
                            "from overcap import checkpoint\n"
                            "state = checkpoint.load({'step': 0})\nrank, facts = int(os.environ['RANK']), os.environ['FACTS']\n"
                            "epoch = os.environ['OVERCAP_ELASTIC_EPOCH']\nopen(f'{facts}/began-{epoch}-{rank}', 'w').close()\n"
                            "while not os.path.exists(facts + '/go'):\n"
                            "    if rank == 0:\n"
                            "        with open(facts + '/steps', 'a') as f: f.write(f'{epoch} {state[\"step\"]}\\n')\n"
                            "    state = {'step': state['step'] + 1}\n    overcap.heartbeat(state['step'])\n    time.sleep(0.01)\n"
                            "    if os.path.exists(facts + '/save') and state['step'] % 5 == 0: checkpoint.save(state)\n"
                            "    if checkpoint.should_stop(): sys.exit(143)\n")
        env = {"OVERCAP_STATE_DIR": str(self.root / "checkpoints")}
        command = (HOST_PYTHON, str(script), str(REPOSITORY / "python"))
        self.agent("a", *self.flags("1:2"), *command, env=env)
        self.until(lambda: (self.facts / "began-1-0").exists(), "the first epoch")
        self.agent("b", *self.flags("1:2"), *command, env=env)
        self.until(lambda: self.events("b", "joined"), "b to be in the lobby")
        self.assertEqual(len(self.events("a", "epoch")), 1)  # nobody is disturbed
        (self.facts / "save").touch()
        self.until(lambda: all((self.facts / f"began-2-{rank}").exists() for rank in range(4)), "the second epoch")
        self.end_well("a", "b")
        steps = [tuple(map(int, line.split())) for line in (self.facts / "steps").read_text().splitlines()]
        numbers = [step for _, step in steps]
        self.assertEqual(numbers, sorted(set(numbers)), "a step was computed twice")

    def test_a_node_that_may_not_join_stands_in_for_one_that_is_lost(self):
        for name in ("a", "b"):
            self.agent(name, *self.flags("2:2", "--grow", "never"), *shell(TELL + STAY))
        self.until_epoch(1, 4)
        self.agent("c", *self.flags("2:2", "--grow", "never"), *shell(TELL + STAY))
        self.until(lambda: self.events("c", "joined"), "c to be in the lobby")
        other = "b" if self.events("a", "leads") else "a"
        self.agents[other].kill()
        self.until_epoch(2, 4)
        lost = self.agents.pop(other)
        lost.wait(20)
        lost.stdout.close()
        lost.stderr.close()
        rest = [name for name in ("a", "b", "c") if name != other]
        self.assertIn("was lost", self.events(rest[0], "epoch")[-1]["why"])
        self.assertEqual(self.events(rest[0], "epoch")[-1]["restarts"], 0)
        self.end_well(*rest)

    def test_a_node_leaves_at_term_and_the_others_go_on(self):
        script = "trap 'exit 0' USR1; " + TELL + STAY
        for name in ("a", "b"):
            self.agent(name, *self.flags("1:2"), *shell(script))
        self.until_epoch(1, 4)
        other, rest = ("b", "a") if self.events("a", "leads") else ("a", "b")
        self.agents[other].send_signal(signal.SIGTERM)
        self.assertEqual(self.ended_agent(other).status, 143)
        self.until_epoch(2, 2)
        self.assertIn("leaves", self.events(rest, "epoch")[-1]["why"])
        self.end_well(rest)

    def test_a_warning_to_one_agent_reaches_the_ranks_of_all_and_stops_nothing(self):
        script = "trap 'echo $RANK >> $FACTS/warned' USR1; " + TELL + STAY
        for name in ("a", "b"):
            self.agent(name, *self.flags("2:2"), *shell(script))
        self.until_epoch(1, 4)
        follower = "b" if self.events("a", "leads") else "a"
        self.agents[follower].send_signal(signal.SIGUSR1)
        warned = self.facts / "warned"
        self.until(lambda: warned.exists() and len(warned.read_text().split()) == 4, "the ranks of both nodes to be warned")
        self.assertEqual(sorted(warned.read_text().split()), ["0", "1", "2", "3"])
        self.assertEqual(len(self.events("a", "epoch")), 1)
        self.end_well("a", "b")

    def test_a_rank_that_fails_on_one_node_restarts_the_ranks_of_all(self):
        for name in ("a", "b"):
            self.agent(name, *self.flags("2:2", "--max-restarts", "2"), *shell(TELL + STAY))
        self.until_epoch(1, 4)
        self.kill_rank(1, 3)
        places = self.until_epoch(2, 4)
        self.assertEqual({p["TORCHELASTIC_RESTART_COUNT"] for p in places}, {"1"})
        self.kill_rank(2, 0)
        self.until_epoch(3, 4)
        self.end_well("a", "b")

    def test_too_few_nodes_fail_after_the_join_timeout(self):
        done = self.launch(*self.flags("2:3", "--join-timeout", "1s"), "true")
        self.assertEqual(done.status, 5, str(done))
        self.assertIn("only 1 of at least 2 nodes", done.err)

    def test_an_agent_that_was_started_differently_is_refused_with_the_difference(self):
        self.agent("a", *self.flags(), *shell(TELL + STAY))
        self.until_epoch(1, 2)
        self.refused("launch", *self.flags(), "other", "words", status=127, says="other")
        self.refused("launch", *self.flags(), "true", status=6, says=["its command is 'true'", "the leader's is"])
        self.refused("launch", *self.flags("1:4"), *shell(TELL + STAY), status=6, says=["--nnodes", "1:4", "1:3"])
        self.assertEqual(len(self.events("a", "epoch")), 1)
        self.end_well("a")

    def test_an_id_of_a_job_that_has_ended_is_refused(self):
        self.launched(*self.flags(), "true")
        self.refused("launch", *self.flags(), "true", status=6, says=["'job'", "has already ended"])

    def test_a_port_that_another_program_has(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", self.port))
            taken.listen()
            self.refused("launch", *self.flags("1:1", "--join-timeout", "2s"), "true", status=5,
                         says=["tcp://127.0.0.1", str(self.port)])


class BadInput(ElasticRig):
    def test_flags_that_make_no_sense(self):
        for flags, says in ((["--nnodes", "4:2"], "begins behind its end"), (["--nnodes", "1:2:3"], "no range"),
                            (["--nnodes", "0:2"], "0"), (["--nnodes", "2:3"], "nothing says where"),
                            (["--rdzv", "http://a/b"], "is no rendezvous"), (["--rdzv", "etcd://a:1/"], "has no id"),
                            (["--rdzv", "tcp://a/b"], "no host and port"), (["--rdzv", "etcd://u:p@a/b"], "OVERCAP_ETCD_PASSWORD"),
                            (["--grow", "soon"], "at-checkpoint"), (["--ttl", "500ms"], "--ttl"),
                            (["--rdzv-backend", "zeus", "--rdzv-endpoint", "a"], "zeus"),
                            (["--rdzv-conf", "join_timeout"], "'join_timeout' has no value"), (["--nproc-per-node", "many"], "many"),
                            (["--max-restarts", "-1"], "-1"), (["--standalone", "-n", "3"], "-n"),
                            (["--standalone", "--retries", "3"], "--retries")):
            with self.subTest(flags):
                self.refused("launch", *flags, "true", status=2, says=says)
        self.assertEqual(self.processes(), [])

    def test_etcd_that_is_not_there_is_named(self):
        done = self.refused("launch", "--rdzv", "etcd://127.0.0.1:1,127.0.0.1:2/x", "--join-timeout", "1s", "true", status=5,
                            says=["127.0.0.1:1", "127.0.0.1:2", "etcd://"])
        self.assertLess(done.seconds, 10)


if __name__ == "__main__":
    main()
