# SPDX-License-Identifier: Apache-2.0
"""The shared engine is restarted, as at every upgrade, while its users' commands wait for it and ask it."""
import contextlib
import json
import os
import signal
import socket
import struct
import threading
import time

from overcap_rig import main, shell
from rigs.terminal import SHELL, Terminal
from system_rig import Connection, SystemRig

DEADLINE_SECONDS = 400
# OVERCAP_RESTART_GAPS=0,1,5,20: how long the engine is away, in seconds
GAPS = [float(gap) for gap in os.environ.get("OVERCAP_RESTART_GAPS", "0,3").split(",")]


class Restarts(SystemRig):
    def restart(self, number, gap, meanwhile=lambda: None):
        self.stop_engine(number)
        end = time.monotonic() + gap
        meanwhile()
        time.sleep(max(0.0, end - time.monotonic()))
        self.start_engine()

    def finished(self, process, status=0):
        done = self.finish(process, 60)
        self.assertEqual(done.status, status, str(done))
        return done

    def test_commands_that_wait_live_through_restarts(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            for gap in GAPS:
                with self.subTest(signal=number.name, gap=gap):
                    name = f"gate-{number.name}-{gap}"
                    job_id = self.running(*shell(f"echo begun; {self.gate(name)}; echo said; exit 7"))
                    waits = [self.start("wait", job_id), self.start("logs", "-f", job_id), self.start("wait", "--json", job_id)]
                    own = [self.start("submit", flag, "-n", "0", *shell(f"echo begun; {self.gate(name)}; echo said; exit 7"))
                           for flag in ("--follow", "--wait")]
                    self.until(lambda: len(self.jobs("ls")) >= 3 and all(job["state"] != "queued" for job in self.jobs("ls")),
                               "all jobs to run")
                    self.restart(number, gap)
                    self.open_gate(name)
                    for process in (*waits, *own):
                        done = self.finished(process, 7)
                        self.assertNotIn("does not", done.err)
                        if "--follow" in done.argv or "logs" in done.argv:
                            self.assertTrue(done.out.endswith("begun\nsaid\n"), str(done))

    def test_commands_that_are_typed_while_the_engine_is_away_are_done_once_it_is_back(self):
        ended = self.run_job("true")["id"]
        held = self.submit("--hold", "true")
        victim = self.running("sleep", "60")
        free = self.submit("--hold", "true")
        started = {}

        def meanwhile():
            for name, words in {
                    "submit": ("submit", "-n", "0", *shell('echo x >> "$FACTS/plain"')), "ls": ("ls", "--all", "--json"),
                    "array": ("submit", "-n", "0", "--array", "0-3", *shell('echo $OVERCAP_TASK_ID >> "$FACTS/array"')),
                    "sweep": ("submit", "-n", "0", "--sweep", "lr=1,2", "--json", *shell('echo $lr >> "$FACTS/sweep"')),
                    "query": ("query", "--json", ended), "abort": ("abort", victim), "release": ("release", free),
                    "hold": ("hold", held), "resubmit": ("resubmit", ended), "wait": ("wait", ended), "logs": ("logs", ended)}.items():
                started[name] = self.start(*words)

        self.restart(signal.SIGTERM, 3, meanwhile)
        done = {name: self.finished(process) for name, process in started.items()}
        self.assertIn(victim, done["abort"].out)
        self.assertEqual(done["query"].json()["id"], ended)
        self.assertEqual(self.job(done["resubmit"].out.strip())["resubmit_of"], ended)
        for job_id in (done["submit"].out.strip(), done["array"].out.strip(), done["sweep"].json()["id"], free):
            self.assertEqual(self.ended(job_id)["state"], "succeeded")
        self.assertEqual((self.facts / "plain").read_text(), "x\n")
        self.assertEqual(sorted((self.facts / "array").read_text().split()), ["0", "1", "2", "3"])
        self.assertEqual(sorted((self.facts / "sweep").read_text().split()), ["1", "2"])
        self.assertEqual(len(self.jobs("ls", "--all")), 8)

    def test_40_commands_wait_at_the_same_time(self):
        job_id = self.running(*shell(self.gate()))
        waits = [self.start("wait", job_id) for _ in range(40)]
        time.sleep(1)
        self.open_gate()
        for process in waits:
            self.finished(process)


class Cutter:
    """Stands between clients and the engine, and cuts the connection when the answer to a submit comes: `cuts` times, then `gone`."""

    def __init__(self, path, engine, cuts, gone=False):
        self.engine, self.cuts, self.gone, self.submits = str(engine), cuts, gone, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        engine = Connection(self.engine)
        with client, contextlib.suppress(OSError, ConnectionError):
            while header := client.recv(4, socket.MSG_WAITALL):
                request = client.recv(struct.unpack("<I", header)[0], socket.MSG_WAITALL)
                answer = json.dumps(engine.ask(request)).encode()
                if json.loads(request)["op"] == "submit":
                    self.submits.append(request)
                    if len(self.submits) <= self.cuts:
                        if self.gone:
                            self.close()
                        return
                client.sendall(struct.pack("<I", len(answer)) + answer)


class AnswersThatAreCutOff(SystemRig):
    def setUp(self):
        super().setUp()
        self.be("root")
        self.way = self.root / "way.sock"
        self.env["OVERCAP_SYSTEM_SOCKET"] = str(self.way)

    def straight(self):
        self.env["OVERCAP_SYSTEM_SOCKET"] = str(self.socket)

    def test_a_submit_whose_answer_is_cut_off_is_one_job(self):
        with Cutter(self.way, self.socket, 2) as cutter:
            for words in (("-n", "1"), ("-n", "0", "--array", "0-2"), ("-n", "0", "--sweep", "lr=1,2")):
                cutter.submits.clear()
                job_id = self.submit(*words, *shell('echo x >> "$FACTS/ran-$OVERCAP_JOB_ID"'))
                self.assertEqual(len(cutter.submits), 3)
                self.assertEqual(len(set(cutter.submits)), 1, "the same request each time")
                self.assertEqual(json.loads(cutter.submits[0])["spec"]["id"], job_id)
                self.assertEqual(self.ended(job_id)["state"], "succeeded")
            cutter.submits.clear()
            elastic = self.submit("--hold", "--nodes", "1:2", "--gpus-per-node", "1", "true")
            self.assertEqual((len(cutter.submits), self.job(elastic)["max_nodes"]), (3, 2))
            cutter.submits.clear()
            again = self.ok("resubmit", job_id).out.strip()
            self.assertEqual(len(cutter.submits), 3)
            self.ended(again)
        self.straight()
        self.assertEqual(len(self.jobs("ls", "--all")), 5)
        runs = {path.name: path.read_text().count("x") for path in self.facts.glob("ran-*")}
        self.assertEqual(sorted(runs.values()), [1, 2, 2, 3])

    def test_a_client_that_gives_up_names_the_job_that_may_be_queued(self):
        for words in ((), ("--json",)):
            with Cutter(self.way, self.socket, 1, gone=True) as cutter:
                began = time.monotonic()
                done = self.overcap("submit", "-n", "0", *words, "true", deadline=90)
                self.assertGreater(time.monotonic() - began, 25, "it tries for half a minute")
                job_id = json.loads(cutter.submits[0])["spec"]["id"]
            self.way.unlink()
            self.assertEqual((done.status, done.out), (5, ""), str(done))
            self.assertIn(f"the job may have been queued as {job_id}", done.err)
            self.assertIn(f"overcap query {job_id}", done.err)
            self.straight()
            self.assertEqual(self.ended(job_id)["state"], "succeeded")
            self.env["OVERCAP_SYSTEM_SOCKET"] = str(self.way)

    def test_a_terminal_hears_once_that_the_engine_does_not_answer(self):
        self.straight()
        self.stop_engine()
        with Terminal(SHELL, self.env) as terminal:
            terminal.expect("ready> ")
            terminal.type(f"{self.binary} ls; echo status $?")
            terminal.expect("the engine does not answer; trying again for 30 s")
            time.sleep(2)  # that it is said once more
            self.start_engine()
            rest = terminal.expect(r"(?s)(.*)status 0\b")[1]
            self.assertNotIn("the engine does not answer", rest)

    def test_an_id_that_is_known_already_is_refused_for_another_spec_and_after_its_job_was_removed(self):
        with Cutter(self.way, self.socket, 0) as cutter:
            job_id = self.submit("-n", "0", "true")
        self.straight()
        self.ended(job_id)
        request = json.loads(cutter.submits[0])
        connection = Connection(self.socket)
        self.assertEqual(connection.ask(request)["ok"]["state"], "succeeded")
        other = json.loads(cutter.submits[0])
        other["spec"]["name"] = "other"
        self.assertEqual(connection.ask(other)["error"]["code"], "conflict")
        self.ok("rm", job_id)
        for _ in range(2):
            answer = Connection(self.socket).ask(request)["error"]
            self.assertEqual(answer["code"], "not_found")
            self.assertIn("was removed", answer["message"])
            self.stop_engine(signal.SIGKILL)
            self.start_engine()


if __name__ == "__main__":
    main()
