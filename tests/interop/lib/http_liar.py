#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""http_liar.py HOST PORT - an HTTP server over the kernel's TCP that answers each name with a lie of its own."""
import socketserver
import sys
import time

OK = b"HTTP/1.1 200 OK\r\n"
SUM = b"Repr-Digest: xxh3-128=:tenBrQcbPn/Hec+qXlI4GA==:" # of "hello"
OTHER = b"Repr-Digest: xxh3-128=:AAAAAAAAAAAAAAAAAAAAAA==:"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
ANSWERS = {
    b"/good": OK + b"Content-Length: 5\r\n\r\nhello",
    b"/partial": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/50\r\nContent-Length: 5\r\n\r\nhello",
    b"/no-content": b"HTTP/1.1 204 No\r\n\r\n",
    b"/sum": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nRepr-Digest: xxh3-128=:tenBrQcbPn/Hec+qXlI4GA==:\r\n\r\n",
    b"/sum-in-head": OK + b"Content-Length: 5\r\nRepr-Digest: xxh3-128=:tenBrQcbPn/Hec+qXlI4GA==:\r\n\r\nhello",
    b"/wrong-sum": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhallo\r\n0\r\nRepr-Digest: xxh3-128=:tenBrQcbPn/Hec+qXlI4GA==:\r\n\r\n",
    b"/wrong-sum-in-head": OK + b"Content-Length: 5\r\nRepr-Digest: xxh3-128=:tenBrQcbPn/Hec+qXlI4GA==:\r\n\r\nhallo",
    b"/sum-of-parameters": OK + SUM + b";a=1\r\nContent-Length: 5\r\n\r\nhello",
    b"/wrong-sum-in-head-of-chunks": OK + OTHER + b"\r\n" + CHUNKED + b"\r\n",
    b"/wrong-sum-in-head-alone": OK + OTHER + b"\r\n" + CHUNKED + SUM + b"\r\n\r\n",
    b"/wrong-sum-in-trailer-alone": OK + SUM + b"\r\n" + CHUNKED + OTHER + b"\r\n\r\n",
    b"/wrong-sum-in-second-line": OK + SUM + b"\r\n" + OTHER + b"\r\nContent-Length: 5\r\n\r\nhello",
    b"/not-modified": b"HTTP/1.1 304 No\r\n\r\n",
}


class Liar(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            while self.rfile.readline().strip():
                pass
            name = line.split()[1]
            if name == b"/put-sum": # what was stored is not what was sent
                self.rfile.read(6)
                self.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nRepr-Digest: xxh3-128=:AAAAAAAAAAAAAAAAAAAAAA==:\r\n\r\n")
                continue
            if line.startswith(b"PUT"): # /early: success is said before the file has come, which is not read
                self.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
                time.sleep(1)
                return
            if name == b"/endless-100":
                while True:
                    self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 500)
            self.wfile.write(ANSWERS.get(name, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def handle_error(self, request, client_address):
        pass


Server((sys.argv[1], int(sys.argv[2])), Liar).serve_forever()
