#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""http_cut.py HOST PORT FILE TAG OCTETS CUTS [CHANGED] - serves FILE with this ETag, and breaks off its first CUTS answers
at OCTETS of the body; then it answers as it should, or, if CHANGED is given, with that file and another ETag. OCTETS may
be a list with commas, one for each answer; "end" stands for an answer in chunks of which only the trailer is missing."""
import re
import socketserver
import sys

host, port, file, tag, octets, cuts = sys.argv[1:7]
with open(file, "rb") as f:
    body = f.read()
with open(sys.argv[7] if len(sys.argv) > 7 else file, "rb") as f:
    later = f.read()
left = [int(cuts)]
ends = octets.split(",")


class Cutter(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            fields = b""
            while (more := self.rfile.readline()).strip():
                fields += more
            cut = left[0] > 0
            changed = not cut and later != body
            octets_now, name = (later, b'"changed"') if changed else (body, tag.encode())
            if line.startswith(b"HEAD"): # of a file that is to change the HEAD tells what was there before
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: %s\r\n\r\n" % (len(body), tag.encode()))
                continue
            found = re.search(rb"Range: bytes=(\d+)-\r\nIf-Range: (\S+)", fields)
            print(line.split()[0].decode(), found and found[1].decode(), flush=True)
            at, status = 0, b"200 OK"
            if found and found[2] == name:
                at = int(found[1])
                status = b"206 Partial Content\r\nContent-Range: bytes %d-%d/%d" % (at, len(octets_now) - 1, len(octets_now))
            end = ends[min(int(cuts) - left[0], len(ends) - 1)]
            left[0] -= 1
            framing = b"Content-Length: %d" % (len(octets_now) - at)
            if cut and end == "end":
                framing = b"Transfer-Encoding: chunked"
            self.wfile.write(b"HTTP/1.1 %s\r\nETag: %s\r\n%s\r\n\r\n" % (status, name, framing))
            if cut and end == "end":
                self.wfile.write(b"%x\r\n%s\r\n" % (len(octets_now) - at, octets_now[at:]))
                return
            if cut:
                self.wfile.write(octets_now[at:int(end)])
                return
            self.wfile.write(octets_now[at:])


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def handle_error(self, request, client_address):
        pass


Server((host, int(port)), Cutter).serve_forever()
