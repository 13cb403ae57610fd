# SPDX-License-Identifier: Apache-2.0
"""A TCP server on a free port, in a thread with an event loop of its own: what proxies between clients and servers share.

A class of it has `async def serve(self, reader, writer)`, and calls LoopServer.__init__ when all that serve() needs is there.
"""
import asyncio
import threading


class LoopServer:
    def __init__(self, address="127.0.0.1"):
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(address, ready), daemon=True)
        self.thread.start()
        if not ready.wait(30):
            raise RuntimeError(f"nothing can listen at {address}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)

    def run(self, address, ready):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, address, 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        server.close()
