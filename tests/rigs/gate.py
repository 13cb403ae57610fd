# SPDX-License-Identifier: Apache-2.0
"""A way to a server on 127.0.0.1 of this machine that can be shut for a while.

    with Gate(server_port) as gate:
        gate.port
        gate.close_for_a_while(); gate.open_again()

    Gate(server_port, network_of(pid))     # the way begins in the network of that process: in a cluster of the rigs
"""
import contextlib
import ctypes
import os
import socket
import threading
import unittest

CLONE_NEWNET = 0x40000000


def network_of(pid):
    """A socket that listens on all addresses of another process's network. A thread goes there and makes it; root only."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("NOT TESTED: only root can listen in another network")
    made = []

    def make():
        with open(f"/proc/{pid}/ns/net", "rb") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) == 0:
                made.append(socket.create_server(("0.0.0.0", 0)))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join(30)
    if not made:
        raise RuntimeError(f"nothing can listen in the network of process {pid}")
    return made[0]


class Gate:
    def __init__(self, target, listener=None):
        self.target, self.open, self.ways = target, True, []
        self.listener = listener or socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.close_for_a_while()
        self.listener.close()

    def close_for_a_while(self):
        self.open = False
        ways, self.ways = self.ways, []
        for way in ways:
            with contextlib.suppress(OSError):
                way.shutdown(socket.SHUT_RDWR)

    def open_again(self):
        self.open = True

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.target))
            self.ways += [client, server]
            threading.Thread(target=self.carry, args=(client, server), daemon=True).start()

    def carry(self, client, server):
        with client, server:
            back = threading.Thread(target=self.pump, args=(server, client), daemon=True)
            back.start()
            self.pump(client, server)
            back.join()

    @staticmethod
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
