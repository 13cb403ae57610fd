# SPDX-License-Identifier: Apache-2.0
"""A host of a fan-out that lies (docs/formats/fanout.md): it says at once that it is complete, and then serves others badly.

    rogue_node.py MODE READY SOURCE     in the place of `overcap fanout-node`

MODE     rubbish    other bytes of the right length
         forged     other bytes with the same CRC-32C, made from those of the folder SOURCE
         silent     takes requests and answers none
         mute       says hello and never anything more: it never becomes complete
READY    a file that is made when others can fetch
"""
import hashlib
import hmac
import json
import os
import pathlib
import socket
import struct
import sys
import threading
import time

PREAMBLE = b"\0overcap link 1\n"
POLYNOMIAL = 0x82F63B78


def table():
    rows = []
    for row in range(256):
        for _ in range(8):
            row = (row >> 1) ^ (POLYNOMIAL if row & 1 else 0)
        rows.append(row)
    return rows


TABLE = table()
BY_TOP = {row >> 24: number for number, row in enumerate(TABLE)}


def register(data, value=0xFFFFFFFF):
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value


def forged(true):
    """Other bytes with the same sum: the first is another, the last four put it right."""
    if len(true) < 5:
        return bytes(true)
    wanted, head = register(true), bytes([true[0] ^ 1]) + true[1:-4]
    numbers, value = [], wanted
    for _ in range(4):  # backwards: which rows of the table lead there
        number = BY_TOP[value >> 24]
        numbers.append(number)
        value = ((value ^ TABLE[number]) << 8) & 0xFFFFFFFF
    last, now = [], register(head)
    for number in reversed(numbers):
        last.append((now ^ number) & 0xFF)
        now = TABLE[number] ^ (now >> 8)
    made = head + bytes(last)
    assert register(made) == wanted and made != true
    return made


def receive(connection, count):
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


class Rogue:
    def __init__(self, mode, ready, source):
        self.mode, self.ready = mode, ready
        self.chunks = {}  # whole small files are chunks
        if mode == "forged":
            for path in pathlib.Path(source).rglob("*"):
                if path.is_file():
                    content = path.read_bytes()
                    self.chunks[hashlib.sha256(content).digest()] = forged(content)

    def run(self):
        sys.stdout.buffer.write(PREAMBLE)
        self.say("H", {"protocol": 1, "version": os.environ["ROGUE_VERSION"], "host": socket.gethostname(), "addresses": self.addresses()})
        while (frame := self.read()) is not None:
            if frame[:1] == b"S" and self.mode != "mute":
                self.serve(bytes.fromhex(json.loads(frame[1:])["key"]))
            if frame[:1] == b"F":
                return

    def addresses(self):
        return [os.environ["SSH_CONNECTION"].split()[2]]

    def say(self, kind, members):
        body = kind.encode() + json.dumps(members).encode()
        sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
        sys.stdout.buffer.flush()

    def read(self):
        header = sys.stdin.buffer.read(4)
        return sys.stdin.buffer.read(struct.unpack("<I", header)[0]) if len(header) == 4 else None

    def serve(self, key):
        listener = socket.create_server(("0.0.0.0", 0))
        threading.Thread(target=self.accept, args=(listener, key), daemon=True).start()
        counts = dict.fromkeys(("files", "bytes", "written_files", "written_bytes", "same_files", "removed", "fixed", "from_peers",
                                "from_head", "reused", "failed"), 0)
        self.say("R", {"port": listener.getsockname()[1], **counts, "problems": []})
        time.sleep(0.3)  # until the head has read it
        pathlib.Path(self.ready).touch()

    def accept(self, listener, key):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.answer, args=(connection, key), daemon=True).start()

    def answer(self, connection, key):
        own = os.urandom(32)
        connection.sendall(own)
        theirs = receive(connection, 32)
        connection.sendall(hmac.new(key, b"head" + theirs, "sha256").digest())
        receive(connection, 32)
        while True:
            (length,) = struct.unpack("<I", receive(connection, 4))
            wanted = [(entry[:32], struct.unpack("<I", entry[32:])[0])
                      for entry in (lambda data: [data[i:i + 36] for i in range(0, length, 36)])(receive(connection, length))]
            if self.mode == "silent":
                time.sleep(600)
            bodies = [self.chunks.get(name) if self.mode == "forged" else os.urandom(size) for name, size in wanted]
            connection.sendall(bytes(body is not None for body in bodies) + b"".join(body or b"" for body in bodies))


if __name__ == "__main__":
    Rogue(*sys.argv[1:4]).run()
