#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""http_peer.py HOST PORT DIRECTORY - attacks an HTTP server over the kernel's TCP; each case has its own connection.
DIRECTORY is served, writable, with a limit of 1 MiB and a time-out of 2 s."""
import os
import socket
import sys
import time

host, port, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(os.path.join(directory, "small"), "rb") as file:
    small = file.read()
H = b"Host: a\r\n"
failures = 0


def wrong(text):
    global failures
    failures += 1
    print("FAIL", text)


def connect():
    s = socket.create_connection((host, port), 20)
    s.settimeout(30)
    return s


def rest(s):
    """Returns everything that arrives until the server closes."""
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except ConnectionResetError:
        got += b"<reset>"
    s.close()
    return got


def ask(octets):
    s = connect()
    s.sendall(octets)
    return rest(s)


def statuses(octets):
    return [int(part[:3]) for part in octets.split(b"HTTP/1.1 ")[1:]]


def expect(name, octets, wanted):
    got = ask(octets)
    if statuses(got) != wanted:
        wrong(f"{name}: {statuses(got)}, not {wanted}: {got[:200]}")
    return got


END = b"GET /small HTTP/1.1\r\n" + H + b"Connection: close\r\n\r\n"
GET = b"GET /small HTTP/1.1\r\n" + H + b"\r\n"
# The server answers many requests on one connection in order, and closes after the last one.
got = expect("pipeline", GET * 200 + END, [200] * 201)
if got.count(small) != 201:
    wrong("pipeline: other octets")
expect("pipelined puts", b"".join(b"PUT /p%d HTTP/1.1\r\n" % i + H + b"Content-Length: 5\r\n\r\nhell%d" % i for i in range(10)) + END,
       [201] * 10 + [200])
if any(open(os.path.join(directory, "p%d" % i), "rb").read() != b"hell%d" % i for i in range(10)):
    wrong("pipelined puts: other octets")
expect("an empty line behind a body", b"PUT /p0 HTTP/1.1\r\n" + H + b"Content-Length: 1\r\n\r\nx\r\n" + END, [204, 200])
expect("missing things between good ones", GET + b"GET /none HTTP/1.1\r\n" + H + b"\r\n" + END, [200, 404, 200])
# The server refuses an ambiguous request and closes the connection, so it never serves the second request.
for name, fields in (("both", b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
                     ("both, the other way round", b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"),
                     ("two lengths", b"Content-Length: 4\r\nContent-Length: 40\r\n"),
                     ("blank before the colon", b"Content-Length : 4\r\n"),
                     ("folded", b"X: a\r\n Content-Length: 4\r\n"),
                     ("lone LF", b"X: a\nContent-Length: 4\r\n")):
    expect(name, b"PUT /smuggled HTTP/1.1\r\n" + H + fields + b"\r\n0\r\n\r\n" + END, [400])
expect("a coding that we do not have", b"PUT /smuggled HTTP/1.1\r\n" + H + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + END, [501])
expect("a GET with a body", b"GET /small HTTP/1.1\r\n" + H + b"Content-Length: 5\r\n\r\nGET /" + END, [200])
expect("a broken chunk", b"PUT /smuggled HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n" + END, [400])
# The server refuses paths outside of the directory.
for target in (b"/../secret", b"/..%2fsecret", b"/%2e%2e/secret", b"//secret", b"/sub/../../secret", b"/small%00.x"):
    expect(target.decode(), b"GET " + target + b" HTTP/1.1\r\n" + H + b"Connection: close\r\n\r\n", [400])
for target in (b"/out", b"/out-dir/secret", b"/pipe"):
    got = expect(target.decode(), b"GET " + target + b" HTTP/1.1\r\n" + H + b"Connection: close\r\n\r\n",
                 [403 if target == b"/pipe" else 404])
    if b"secret octets" in got:
        wrong("a secret")
for target, status in ((b"/../made", 400), (b"/out-dir/made", 404), (b"/sub", 409), (b"/sub/", 409), (b"/none/made", 409)):
    expect("put " + target.decode(), b"PUT " + target + b" HTTP/1.1\r\n" + H + b"Content-Length: 1\r\n\r\nx", [status])
# The server enforces its limits.
expect("a head without end", b"GET / HTTP/1.1\r\n" + H + b"X: " + b"y" * 20000, [431])
expect("fields without end", b"GET / HTTP/1.1\r\n" + H + b"X: y\r\n" * 101 + b"\r\n", [431])
expect("a long target", b"GET /" + b"y" * 4096 + b" HTTP/1.1\r\n" + H + b"\r\n", [414])
expect("at the limit", b"PUT /limit HTTP/1.1\r\n" + H + b"Content-Length: 1048576\r\n\r\n" + bytes(1 << 20) + END, [201, 200])
expect("one above", b"PUT /above HTTP/1.1\r\n" + H + b"Content-Length: 1048577\r\n\r\n", [413])
expect("more than there is in the world", b"PUT /above HTTP/1.1\r\n" + H + b"Content-Length: 999999999999999999\r\n\r\n", [413])
expect("chunks above it", b"PUT /above HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n" + (b"80000\r\n" + bytes(1 << 19) + b"\r\n") * 2 + b"1\r\nx", [413])
expect("a chunk without end", b"PUT /above HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 300, [400])
expect("no length", b"PUT /above HTTP/1.1\r\n" + H + b"\r\n", [411])
expect("another method", b"DELETE /small HTTP/1.1\r\n" + H + b"Connection: close\r\n\r\n", [405])
expect("no HTTP", b"\x16\x03\x01\x02\x00\x01\r\n\r\n", [400])
# The server drops slow clients, and they do not delay other clients meanwhile.
slow = [connect() for _ in range(8)]
for i, s in enumerate(slow):
    s.sendall((b"", b"G", GET[:-2], b"PUT /slow HTTP/1.1\r\n" + H + b"Content-Length: 1000000\r\n\r\nabc")[i % 4])
reader = connect()
reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
reader.sendall(b"GET /big HTTP/1.1\r\n" + H + b"\r\n") # and never reads the answer
expect("beside slow ones", GET * 20 + END, [200] * 21)
begun = time.monotonic()
for s in slow:
    if statuses(rest(s)) not in ([], [408]):
        wrong("a slow one got an answer")
time.sleep(max(0, 4 - (time.monotonic() - begun)))
got = rest(reader)
if not got.endswith(b"<reset>"):
    wrong("whoever reads nothing is not given up: %d octets" % len(got))
# A client that disconnects in the middle leaves no file behind.
s = connect()
s.sendall(b"PUT /half HTTP/1.1\r\n" + H + b"Content-Length: 1000\r\n\r\nhalf")
s.close()
expect("behind one that left", END, [200])
for _ in range(100):
    left = [name for name in os.listdir(directory) if ".rddp-" in name or name in ("half", "slow", "above", "smuggled", "made")]
    if not left:
        break
    time.sleep(0.1)
if left:
    wrong(f"left behind: {left}")
sys.exit(failures > 0)
