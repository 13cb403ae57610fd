# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that goes wrong at random, by a seed, between an HTTP client and its server.

    with FaultProxy(server_port, seed=1) as proxy:
        proxy.port, proxy.counts

Each connection is given a fate: it lives for some requests, is slow, is answered 503 at once, hangs, or is cut after so many bytes to the
server (the request arrives in part, or whole with its answer lost) or from it (the answer is truncated). Cuts are resets or
orderly ends. What passes is passed unchanged, so that signatures stay right; but for FLIPS, with which one byte of one answer's
body is another than the server sent.
"""
import asyncio
import collections
import random
import socket
import struct

from rigs.loop_server import LoopServer

BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: 49\r\nConnection: close\r\n\r\n" \
       b"<Error><Code>ServerBusy</Code><Message/></Error>\n"
METHODS = (b"GET ", b"PUT ", b"POST ", b"HEAD ", b"DELETE ")
NEVER = 1 << 60
FATES = (("lives", 60), ("slow", 8), ("busy", 8), ("hangs", 1), ("request cut", 9), ("answer lost", 6), ("answer cut", 8))

FLIPS = (("flips", 1),)


class FaultProxy(LoopServer):
    def __init__(self, port, seed, longest=400_000, fates=FATES):
        self.target, self.random, self.longest, self.fates = port, random.Random(seed), longest, fates
        self.counts = collections.Counter()
        self.flips_left = 1
        super().__init__()

    async def serve(self, reader, writer):
        fate = self.random.choices([name for name, _ in self.fates], [weight for _, weight in self.fates])[0]
        bytes_until, reset = self.random.randrange(1, self.longest), self.random.random() < 0.5
        if self.random.random() < 0.5:
            bytes_until = self.random.randrange(1, 2000)  # most requests are small
        self.counts[fate] += 1
        try:
            if fate == "busy":
                await reader.readuntil(b"\r\n\r\n")
                writer.write(BUSY)
                await writer.drain()
                await asyncio.sleep(0.02)
            elif fate == "hangs":
                await reader.read()
            else:
                await self.connect(reader, writer, fate, bytes_until)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            end(writer, reset and fate not in ("lives", "slow", "busy"))

    async def connect(self, reader, writer, fate, bytes_until):
        theirs, to_them = await asyncio.open_connection("127.0.0.1", self.target)
        # With its answer lost, a request still arrives: only the way back is cut.
        up = bytes_until if fate == "request cut" else NEVER
        down = {"answer cut": bytes_until, "answer lost": 0}.get(fate, NEVER)
        ways = [self.pump(reader, to_them, up, fate == "slow", self.random.randrange(1, 13)), self.pump(theirs, writer, down, flips=fate == "flips")]
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            end(to_them, False)

    async def pump(self, source, sink, left, slow=False, requests=NEVER, flips=False):
        """Until the source ends, `left` bytes have passed, or so many requests (which here begin with a piece)."""
        while data := await source.read(65536):
            requests -= data.startswith(METHODS)
            if requests < 0:
                return
            if slow and self.random.random() < 0.2:
                await asyncio.sleep(self.random.random() * 0.1)
            if flips and self.flips_left and len(data) > 20_000 and not data.startswith(b"HTTP/"):
                self.flips_left -= 1
                self.counts["flipped"] += 1
                middle = len(data) // 2
                data = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:]
            sink.write(data[:left])
            await sink.drain()
            left -= len(data)
            if left <= 0:
                return


def end(writer, reset):
    if reset:
        plain = writer.get_extra_info("socket")
        if plain is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()
