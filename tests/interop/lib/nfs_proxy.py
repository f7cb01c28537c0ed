#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""nfs_proxy.py HOST SERVER drops|refuses - the NFS of SERVER at port 2050 of HOST, over the kernel's TCP, as of a server
that knows no digests: it drops calls of their program, or refuses them. Prints a line for each, with the number of other
calls of its connection that wait for an answer."""
import socket
import socketserver
import struct
import sys
import threading

host, server, how = sys.argv[1:4]
PROGRAM = 0x20727064
PROG_UNAVAIL = 1


def exactly(stream, n):
    octets = b""
    while len(octets) < n:
        part = stream.recv(n - len(octets))
        if not part:
            raise EOFError
        octets += part
    return octets


class Proxy(socketserver.BaseRequestHandler):
    def handle(self):
        # Whole answers only: a refusal stands between two of them.
        with socket.create_connection((server, 2049)) as behind:
            lock = threading.Lock()
            self.waiting = 0
            threading.Thread(target=self.records, args=(behind, self.request, lock), daemon=True).start()
            try:
                self.calls(behind, lock)
            except (EOFError, OSError):
                pass
            # The other thread reads from it: close() alone would leave the connection, and the server has a limit.
            behind.shutdown(socket.SHUT_RDWR)

    def records(self, behind, client, lock):
        try:
            while True:
                mark = exactly(behind, 4)
                record = mark + exactly(behind, struct.unpack(">I", mark)[0] & 0x7fffffff)
                with lock:
                    self.waiting -= 1
                    client.sendall(record)
        except (EOFError, OSError):
            client.close()

    def calls(self, behind, lock):
        while True:
            mark = exactly(self.request, 4)
            call = exactly(self.request, struct.unpack(">I", mark)[0] & 0x7fffffff)
            if struct.unpack(">I", call[12:16])[0] != PROGRAM:
                with lock:
                    self.waiting += 1
                behind.sendall(mark + call)
                continue
            print("digest", self.waiting, flush=True)
            if how == "refuses":
                with lock:
                    refusal = call[:4] + struct.pack(">IIIII", 1, 0, 0, 0, PROG_UNAVAIL)
                    self.request.sendall(struct.pack(">I", 1 << 31 | len(refusal)) + refusal)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def handle_error(self, request, client_address):
        pass


with Server((host, 2050), Proxy) as proxy:
    print("listening", flush=True)
    proxy.serve_forever()
