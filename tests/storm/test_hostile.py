# SPDX-License-Identifier: Apache-2.0
"""Requests, connections and reports made to stop the engine of a machine. All the while another user is answered within a second,
apart from the time for which a busy machine gives the engine no processor, and the engine's memory is bounded."""
import contextlib
import json
import os
import random
import socket
import struct
import time

import storm
from overcap_rig import main, shell
from system_rig import Connection, SystemRig

DEADLINE_SECONDS = 400
ANSWERED_WITHIN = 1.0  # seconds
MEMORY_KB = 1 << 20
FIRST = 1 << 28  # the number of the job that mutated ones wait for


class Watched(SystemRig):
    """While a test does its worst as bob, carl asks for the status."""

    kind = ""
    tried, slowest, most_kb = 0, 0.0, 0

    def setUp(self):
        super().setUp()
        self.watcher = os.fork()
        if self.watcher == 0:
            try:
                (self.facts / "seen").write_text(f"{self.as_user('carl', self.watch)}\n")
            finally:
                os._exit(0)

    def kept_off(self):
        """Seconds for which other processes have kept the engine, and this one, off the processors."""
        seconds = []
        for pid in (self.engine.pid, os.getpid()):
            with open(f"/proc/{pid}/schedstat") as f:
                seconds.append(int(f.read().split()[1]) / 1e9)
        return seconds

    def watch(self):
        slowest = 0.0
        while not os.path.exists(self.facts / "enough"):
            began, before = time.monotonic(), self.kept_off()
            Connection(self.socket, patient=True).ask({"op": "status"})
            took = time.monotonic() - began
            slowest = max(slowest, took - max(now - then for now, then in zip(self.kept_off(), before)))
            time.sleep(0.01)
        return slowest

    def tearDown(self):
        (self.facts / "enough").write_text("")
        os.waitpid(self.watcher, 0)
        with open(f"/proc/{self.engine.pid}/status", encoding="ascii") as f:
            peak = next((int(line.split()[1]) for line in f if line.startswith("VmHWM")), None)
        died = self.engine.poll()
        super().tearDown()
        self.assertIsNone(died, "the engine has died")
        seen = (self.facts / "seen").read_text().strip()
        self.assertRegex(seen, r"^[0-9.]+$", "the engine stopped answering")
        cls, slowest = type(self), float(seen)
        cls.tried, cls.slowest, cls.most_kb = cls.tried + 1, max(cls.slowest, slowest), max(cls.most_kb, peak)
        self.assertLess(slowest, ANSWERED_WITHIN)
        self.assertLess(peak, MEMORY_KB)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        storm.report(cls.kind, f"{cls.summary()}: 0 crashes, another user's status within {cls.slowest:.2f} s, "
                               f"{cls.most_kb >> 10} MiB of memory at most")

    @classmethod
    def summary(cls):
        return f"{cls.tried} attacks"

    def spec(self, number, **more):
        return {"id": f"{self.names['bob']}_17_{number:08x}", "command": ["true"], "workdir": "/tmp", "hold": True, **more}

    def ask_each(self, requests, timeout=60):
        """As bob, over one connection: for each reply its error's words, or "ok"; and how long the longest was."""

        def act():
            connection = Connection(self.socket)
            connection.socket.settimeout(timeout)
            said, longest = [], 0
            for request in requests:
                connection.send(request if isinstance(request, bytes) else json.dumps(request).encode())
                size = struct.unpack("<I", connection.take(4))[0]
                text = connection.take(size)
                longest = max(longest, size)
                reply = json.loads(text) if size < 1 << 20 else {}
                said.append(reply["error"]["message"] if "error" in reply else "ok")
            return [said, longest]

        answer = self.as_user("bob", act)
        self.assertIsInstance(answer, list, answer)
        return answer


class Hostile(Watched):
    kind = "hostile requests"

    def test_text_that_is_nested_very_deep_is_refused(self):
        deep = b"[" * 200_000 + b"]" * 200_000
        requests = [b'{"op":"submit","spec":{"x":' + deep + b"}}", b'{"op":"submit","spec":{"store":' + deep + b"}}",
                    b'{"op":"configure","machine":' + deep + b"}", b'{"op":"query","ids":' + deep + b"}",
                    b'{"op":' * 300_000 + b"1" + b"}" * 300_000, deep, b"[" * 4_000_000]
        said, _ = self.ask_each(requests)
        self.assertEqual(len(said), len(requests))
        for message in said:
            self.assertIn("32 levels", message)

    def test_requests_that_name_things_very_often_are_refused_or_answered_once(self):
        said, _ = self.ask_each([{"op": "submit", "spec": self.spec(n, command=["echo", "x" * 900_000])} for n in range(60)])
        self.assertEqual(set(said), {"ok"})
        first = self.spec(0)["id"]
        all_ids = [self.spec(n)["id"] for n in range(60)]
        said, longest = self.ask_each([{"op": "query", "ids": [first] * 1000}])
        self.assertEqual((said, longest < 3 << 20), (["ok"], True))
        said, longest = self.ask_each([{"op": "query", "ids": all_ids}, {"op": "list", "columns": ["argv"]}, {"op": "list"},
                                       {"op": "wait", "ids": all_ids, "timeout_s": 0}, {"op": "hold", "ids": all_ids}])
        for message in said[:3]:
            self.assertIn("16.0 MiB", message)
        self.assertEqual((said[3:], longest < 16 << 20), (["ok", "ok"], True))
        self.be("bob")
        self.assertEqual([job["id"] for job in self.jobs("ls")], all_ids)
        said, _ = self.ask_each([{"op": "resolve", "refs": ["last"] * 10_000}])
        self.assertEqual(said, ["ok"])
        said, _ = self.ask_each([{"op": "resolve", "refs": ["last"] * 400_000}, {"op": "query", "ids": [first] * 10_001},
                                 {"op": "list", "columns": ["argv"] * 200_000}, {"op": "list", "states": ["queued"] * 300_000},
                                 {"op": "list", "columns": ["argv", "argv"]}])
        for message in said[:4]:
            self.assertIn("at most 10000", message)
        self.assertIn("named twice", said[4])
        said, _ = self.ask_each([{"op": "submit", "spec": self.spec(n, command=["echo", "x" * 1_000_000])} for n in range(100, 120)])
        self.assertIn("64.0 MiB", said[-1])
        said, longest = self.ask_each([{"op": "cancel", "ids": all_ids}])
        self.assertEqual((said, longest < 16 << 20), (["ok"], True))
        self.ok("rm", *all_ids)
        self.assertEqual([job["id"] for job in self.jobs("ls", "--all") if job["id"] in all_ids], [])

    def test_a_job_that_is_too_large_is_refused_with_the_limit(self):
        several = {"name": ("x" * 3000, "at most 200"), "command": (["x" * (1 << 20)], "at most 1048576"),
                   "resources": ({"ranks_per_node": 1_000_000}, "at most 128 are possible: 16 for each of its 8"),
                   "array": ("0-1000000", "more than 1000000 tasks")}
        said, _ = self.ask_each([{"op": "submit", "spec": self.spec(n, **{key: value})} for n, (key, (value, _)) in enumerate(several.items())])
        for message, (_, words) in zip(said, several.values()):
            self.assertIn(words, message)
        self.refused("submit", "--ranks-per-node", "100000", "true", status=2, says="at most 128")
        self.refused("submit", "--name", "x" * 3000, "true", status=2, says="at most 200")

    def test_a_sparse_array_is_short_in_the_lists_of_others(self):
        sparse = ",".join(str(i) for i in range(0, 19_998, 2))
        self.assertEqual(self.ask_each([{"op": "submit", "spec": self.spec(1, array=sparse)}])[0], ["ok"])
        self.be("alice")
        self.assertLess(len(self.ok("ls").out), 1000)
        (record,) = self.jobs("ls")
        self.assertEqual((record["array"], record["tasks"]["total"]), ("0-19996:2", 9999))
        self.be("bob")
        self.assertEqual(self.jobs("ls")[0]["array"], sparse)

    def forge(self, job_id, line, megabytes):
        """Writes the report of bob's running job full of this line."""
        report = self.area("bob") / "jobs" / job_id / "attempt-1/agent-0.jsonl"
        self.until(report.exists, "the agent's report")

        def act():
            block = (line + "\n") * ((1 << 20) // (len(line) + 1))
            with open(report, "r+b") as f:
                f.seek(0, os.SEEK_END)
                end = len(report.read_bytes().rstrip(b"\0"))
                f.seek(end)
                for _ in range(megabytes):
                    f.write(block.encode())
            return 1

        answer = self.as_user("bob", act)
        self.assertEqual(answer, 1)
        return report

    def test_forged_reports_cost_the_engine_little(self):
        self.be("bob")
        small = ("-n", "0", "--cpus", "1")
        array = self.running(*small, "--array", "0-9%1", *shell(self.gate()))
        plain = self.running(*small, *shell(self.gate()))
        wide = self.running(*small, "--array", "0-999999%1", *shell(self.gate()))
        self.forge(array, '{"e":"task_start","t":1,"task":%d,"try":1}' % 77, 120)
        self.forge(wide, '{"e": "task_start", "t":1,"task":7,"try":1}', 120)
        self.forge(plain, '{"e":"note","t":1,"text":"\\u0041' + "x" * 100 + '"}', 120)
        for _ in range(5):
            for job_id in (array, plain, wide):
                self.job(job_id)
        self.assertEqual(self.job(array)["tasks"]["total"], 10)
        self.ok("abort", array, plain, wide)
        self.open_gate()
        for job_id in (array, plain, wide):
            self.ended(job_id)

    def test_a_thread_that_connects_and_closes_all_the_time_does_not_starve_others(self):
        def flood():
            end = time.monotonic() + 4
            while time.monotonic() < end:
                with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
                    s.connect(str(self.socket))
            return 1

        self.assertEqual(self.as_user("bob", flood), 1)

    def test_forty_waits_at_the_same_time_are_nothing_special(self):
        job_id = self.running(*shell(self.gate()))
        waits = [self.start("wait", job_id) for _ in range(40)]
        time.sleep(2)
        self.open_gate()
        for wait in waits:
            _, error = wait.communicate(timeout=60)
            self.assertEqual(wait.returncode, 0, error)

    def test_connections_half_requests_and_replies_that_nobody_reads_hold_up_nobody(self):
        def flood():
            connections, told = [], 0
            for i in range(300):
                try:
                    connection = Connection(self.socket)
                except OSError:
                    continue
                connections.append(connection)
                connection.socket.settimeout(0.05)
                try:
                    if i % 3 == 0:
                        connection.socket.sendall(struct.pack("<I", 4000000) + b"{")
                    elif i % 3 == 1:
                        for _ in range(200):
                            connection.send({"op": "list", "all": True})
                    else:
                        connection.send({"op": "status"})
                except OSError:
                    told += 1
            (self.facts / "flooded").write_text(f"{told}\n")
            end = time.monotonic() + 60
            while not os.path.exists(self.facts / "gate") and time.monotonic() < end:
                time.sleep(0.02)
            return told

        for _ in range(5):
            self.submit("--hold", "true")
        child = os.fork()
        if child == 0:
            try:
                self.as_user("bob", flood)
            finally:
                os._exit(0)
        try:
            self.fact("flooded")
            began = time.monotonic()
            self.assertEqual(self.run_job("true")["state"], "succeeded")
            self.assertLess(time.monotonic() - began, 20)
            answer = self.as_user("bob", lambda: Connection(self.socket).receive())
            self.assertEqual(answer["error"]["code"], "unavailable", answer)
            self.assertIn("connections", answer["error"]["message"])
        finally:
            self.open_gate()
            os.waitpid(child, 0)

    def test_a_request_that_is_too_long_is_told_so(self):
        def act():
            connection = Connection(self.socket)
            connection.socket.sendall(struct.pack("<I", 5 << 20))
            return connection.receive()

        self.assertIn("too long", self.as_user("bob", act)["error"]["message"])

    def test_whatever_a_user_sends_the_engine_goes_on(self):
        victim = self.running(*shell(self.gate()))
        chance = random.Random(7)
        good = [json.dumps(request).encode() for request in (
            {"op": "list", "all": True, "columns": ["id", "user", "command"]}, {"op": "query", "ids": [victim]},
            {"op": "cancel", "ids": [victim], "reason": "x"}, {"op": "wait", "ids": [victim], "until": "ended", "timeout_s": 0},
            {"op": "submit", "spec": {"id": f"{self.names['bob']}_17_00000001", "command": ["true"], "workdir": "/tmp", "hold": True,
                                      "array": "0-9", "owner": {"uid": 0, "gid": 0}}})]

        def mutate(text):
            text = bytearray(text)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(text))
                kind = chance.randrange(3)
                if kind == 0:
                    text[at] = chance.randrange(256)
                elif kind == 1:
                    del text[at:at + chance.randint(1, 8)]
                else:
                    text[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 4)))
                text = text or bytearray(b"{")
            return bytes(text)

        def act():
            answered = 0
            for _ in range(20):
                connection = Connection(self.socket)
                for _ in range(25):
                    connection.send(mutate(chance.choice(good)))
                    answer = connection.receive()
                    answered += "error" in answer or "ok" in answer
                connection.socket.sendall(bytes(chance.randrange(256) for _ in range(64)))
                connection.socket.shutdown(socket.SHUT_WR)
                connection.socket.close()
            return answered

        self.assertEqual(self.as_user("bob", act), 500)
        self.assertEqual(self.job(victim)["state"], "running")
        self.assertIsNone(self.engine.poll())


class Mutated(Watched):
    kind = "mutated specs"
    sent, taken = 0, 0

    WORDS = (b"[", b"{", b"]", b"}", b'"', b",", b":", b"-1", b"1e99", b"99999999999999999999", b"null", b"true", b"\\u0000",
             b'{"hex":"zz"}', b'"0-999999999"', b'"1,1,1"')

    @classmethod
    def summary(cls):
        return f"{cls.sent}, of which {cls.taken} were taken"

    def good(self, number):
        return json.dumps({"op": "submit", "spec": self.spec(
            number, name="n", command=["python", "train.py", {"hex": "ff01"}], array="0-9:3,20%2",
            resources={"gpus": 1, "cpus": 2, "gpu_type": "a40|h100", "time_seconds": 60},
            after=[{"job_id": f"{self.names['bob']}_17_{FIRST:08x}", "any_end": True}], sweep=[{"name": "LR", "values": ["1", "2", "3", "4", "5"]}],
            mounts=[{"name": "d", "store": "/data", "at": "data"}], owner={"uid": 0, "gid": 0})}).encode()

    def mutate(self, text, chance):
        text = bytearray(text)
        for _ in range(chance.randint(1, 4)):
            at, kind, word = chance.randrange(len(text)), chance.randrange(4), chance.choice(self.WORDS)
            if kind == 0:
                text[at] = chance.randrange(256)
            elif kind == 1:
                del text[at:at + chance.randrange(12)]
            else:
                text[at:at + 4 * (kind - 2)] = word
        return bytes(text)

    def test_each_is_taken_or_refused(self):
        chance = random.Random(storm.SEED)

        def act():
            connection, taken = Connection(self.socket), 0
            for whole in ({"op": "submit", "spec": self.spec(FIRST)}, self.good(storm.SPECS)):
                assert "ok" in (reply := connection.ask(whole)), reply
            for number in range(storm.SPECS):
                reply = connection.ask(self.mutate(self.good(number), chance))
                assert len({"ok", "error"} & set(reply)) == 1, reply
                taken += "ok" in reply
            return taken

        taken = self.as_user("bob", act)
        self.assertIsInstance(taken, int, taken)
        type(self).sent, type(self).taken = storm.SPECS, taken
        self.assertGreater(taken, 0)


if __name__ == "__main__":
    main()
