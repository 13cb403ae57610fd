# SPDX-License-Identifier: Apache-2.0
"""Lets hosts of a rig reach a server that listens on 127.0.0.1 only, and counts what each gets of it.

    relay = Relay("10.9.8.1", server_port)
    relay.endpoint            # "http://10.9.8.1:PORT"
    relay.to_others()         # bytes of answers to other addresses than its own
    relay.slow_down(1 << 20)  # each connection of others gets so many bytes a second; 0: as many as there are
    relay.only_this_machine() # others are turned away
    relay.refuse(20)          # so many of the next connections of others are answered 503
"""
import asyncio
import collections

from rigs.fault_proxy import BUSY, end
from rigs.loop_server import LoopServer


class Relay(LoopServer):
    def __init__(self, address, port):
        self.address, self.target = address, port
        self.got = collections.Counter()  # address -> bytes
        self.rate, self.closed_to_others, self.to_refuse, self.refused = 0, False, 0, 0
        super().__init__(address)
        self.endpoint = f"http://{address}:{self.port}"

    def clear(self):
        self.got.clear()

    def to_this_machine(self):
        return self.got[self.address]

    def to_others(self):
        return sum(self.got.values()) - self.got[self.address]

    def slow_down(self, rate):
        self.rate = rate

    def only_this_machine(self):
        self.closed_to_others = True

    def refuse(self, times):
        self.to_refuse = times

    async def serve(self, reader, writer):
        peer = writer.get_extra_info("peername")[0]
        other = peer != self.address
        try:
            if other and self.closed_to_others:
                return
            if other and self.to_refuse > 0:
                self.to_refuse -= 1
                self.refused += 1
                await reader.readuntil(b"\r\n\r\n")
                writer.write(BUSY)
                await writer.drain()
                await asyncio.sleep(0.02)
                return
            await self.connect(reader, writer, peer, other)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            end(writer, other and self.closed_to_others)

    async def connect(self, reader, writer, peer, other):
        theirs, to_them = await asyncio.open_connection("127.0.0.1", self.target)
        tasks = [asyncio.ensure_future(way) for way in (self.up(reader, to_them), self.down(theirs, writer, peer, other))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            end(to_them, False)

    async def up(self, source, sink):
        while data := await source.read(1 << 18):
            sink.write(data)
            await sink.drain()

    async def down(self, source, sink, peer, other):
        while data := await source.read(1 << 16):
            self.got[peer] += len(data)
            sink.write(data)
            await sink.drain()
            if other and self.rate:
                await asyncio.sleep(len(data) / self.rate)
