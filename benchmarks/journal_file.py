# SPDX-License-Identifier: Apache-2.0
"""Writes records of many jobs straight into a journal (docs/formats/journal.md): submitting 100,000 takes too long."""
import json

POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected


def make_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


TABLE = make_table()


def feed(state, data):
    for byte in data:
        state = TABLE[(state ^ byte) & 255] ^ (state >> 8)
    return state


def crc32c(data):
    return feed(0xFFFFFFFF, data) ^ 0xFFFFFFFF


class Tail:
    """A fixed text that ends many records: its part of each CRC is linear, so it takes four look-ups, not one per byte."""

    def __init__(self, text):
        self.text = text
        self.own = feed(0, text)
        zeros = bytes(len(text))
        bits = [feed(1 << bit, zeros) for bit in range(32)]
        self.tables = [[self.combine(bits[8 * k:8 * k + 8], value) for value in range(256)] for k in range(4)]

    @staticmethod
    def combine(bits, value):
        result = 0
        for bit, image in enumerate(bits):
            if value >> bit & 1:
                result ^= image
        return result

    def record(self, head):
        """The journal's line for the JSON text head + tail."""
        state = feed(0xFFFFFFFF, head)
        t = self.tables
        state = t[0][state & 255] ^ t[1][state >> 8 & 255] ^ t[2][state >> 16 & 255] ^ t[3][state >> 24] ^ self.own
        return b"%08x %s%s\n" % (state ^ 0xFFFFFFFF, head, self.text)


SPEC = {
    "user": "bench", "cluster": "local", "name": "train",
    "command": ["python3", "train.py", "--config", "configs/base.yaml", "--seed", "17"],
    "resources": {"nodes": 1, "gpus": 1, "ranks_per_node": 1, "time_seconds": 86400},
    "workdir": "", "source": "/home/bench/project",
    "snapshot": "5e" * 32, "environment": "ab" * 32,
}
SPEC_TAIL = Tail(b"," + json.dumps(SPEC, separators=(",", ":")).encode()[1:] + b"}")
STARTED = Tail(b',"attempt":1,"slot":0,"gpus":[0],"cpus":[]}')
SLOT_ENDED = Tail(b',"attempt":1,"slot":0,"state":"succeeded","exit_status":0}')
ENDED = Tail(b',"state":"succeeded","exit_status":0}')


def write_jobs(file, finished, queued, first_time_us):
    """Appends `finished` jobs that have succeeded, one after the other, then `queued` ones that want a GPU."""
    for number in range(finished + queued):
        at = first_time_us + number * 10_000_000
        name = b"bench_%010d_%08x" % (at // 1_000_000, (number * 2654435761) & 0xFFFFFFFF)
        spec_head = b'"spec":{"id":"%s","submitted_us":%d' % (name, at)
        file.write(SPEC_TAIL.record(b'{"e":"submitted","t":%d,"id":"%s",%s' % (at, name, spec_head)))
        if number < finished:
            file.write(STARTED.record(b'{"e":"started","t":%d,"id":"%s"' % (at + 1000, name)))
            file.write(SLOT_ENDED.record(b'{"e":"slot_ended","t":%d,"id":"%s"' % (at + 9_000_000, name)))
            file.write(ENDED.record(b'{"e":"ended","t":%d,"id":"%s"' % (at + 9_000_000, name)))


def line(record):
    """The journal's line for any record."""
    text = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def write_mixed_jobs(file, finished, queued, first_time_us, chance):
    """Appends jobs of 40 users and many sizes: `finished` ones that used a part of their limit, then `queued` ones; their ids."""
    ids = []
    for number in range(finished + queued):
        at = first_time_us + number * 10_000_000
        name, user = f"bench_{at // 1_000_000:010d}_{number:08x}", number % 40
        limit = chance.choice((3600, 4 * 3600, 12 * 3600, 86400))
        resources = {"nodes": 1, "gpus": chance.choice((1, 1, 1, 2, 4, 8)), "ranks_per_node": 1, "time_seconds": limit}
        spec = SPEC | {"id": name, "submitted_us": at, "user": f"u{user}", "resources": resources}
        file.write(line({"e": "submitted", "t": at, "id": name, "spec": spec}))
        if number < finished:
            end = at + int(limit * 1_000_000 * chance.uniform(0.02, 1) / (1 + user % 3))
            file.write(line({"e": "started", "t": at + 1000, "id": name, "attempt": 1, "slot": 0, "gpus": [0], "cpus": []}))
            file.write(line({"e": "slot_ended", "t": end, "id": name, "attempt": 1, "slot": 0, "state": "succeeded", "exit_status": 0}))
            file.write(line({"e": "ended", "t": end, "id": name, "state": "succeeded", "exit_status": 0}))
        else:
            ids.append(name)
    return ids
