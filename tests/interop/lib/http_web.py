#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""http_web.py HOST DIRECTORY - conditions, ranges and HTTP/1.0 as Python's client and a bare socket see them. DIRECTORY is
served writable."""
import email.utils
import http.client
import os
import socket
import sys
import time

host, directory = sys.argv[1:]
failures = 0
path = os.path.join(directory, "file.txt")
text = bytes(range(256)) * 40
with open(path, "wb") as file:
    file.write(text)
os.utime(path, (1000000000, 1000000000))
# A tag is strong when the file has been at rest for a moment.
while time.time() - os.stat(path).st_ctime < 2.5:
    time.sleep(0.1)
connection = http.client.HTTPConnection(host, timeout=20)


def ask(method, target="/file.txt", body=None, **fields):
    connection.request(method, target, body, {name.replace("_", "-"): value for name, value in fields.items()})
    answer = connection.getresponse()
    return answer, answer.read()


def expect(name, got, status, body=None):
    global failures
    answer, octets = got
    if answer.status != status or (body is not None and octets != body):
        failures += 1
        print("FAIL", name, answer.status, len(octets), octets[:60])
    return answer


first = expect("get", ask("GET"), 200, text)
tag, modified = first.getheader("ETag"), first.getheader("Last-Modified")
assert tag[0] == '"' and modified == "Sun, 09 Sep 2001 01:46:40 GMT", (tag, modified)
assert first.getheader("Accept-Ranges") == "bytes" and first.getheader("Content-Type") == "text/plain; charset=utf-8"
assert abs(email.utils.parsedate_to_datetime(first.getheader("Date")).timestamp() - time.time()) < 60
head = expect("head", ask("HEAD", Range="bytes=1-2"), 200, b"")
assert (head.getheader("ETag"), head.getheader("Content-Length")) == (tag, str(len(text)))
# Conditions.
same = expect("the same tag", ask("GET", If_None_Match=tag), 304, b"")
assert same.getheader("ETag") == tag and same.getheader("Date") and not same.getheader("Content-Type")
expect("head, the same tag", ask("HEAD", If_None_Match='"x", ' + tag), 304, b"")
expect("another tag", ask("GET", If_None_Match='"x"'), 200, text)
expect("not since then", ask("GET", If_Modified_Since=modified), 304, b"")
expect("since then", ask("GET", If_Modified_Since="Sun, 09 Sep 2001 01:46:39 GMT"), 200, text)
expect("if this", ask("GET", If_Match=tag), 200, text)
expect("if that", ask("GET", If_Match='"x"'), 412)
# Ranges.
part = expect("a range", ask("GET", Range="bytes=100-199"), 206, text[100:200])
assert part.getheader("Content-Range") == "bytes 100-199/%d" % len(text) and part.getheader("ETag") == tag
expect("the rest", ask("GET", Range="bytes=10000-"), 206, text[10000:])
expect("the end", ask("GET", Range="bytes=-5"), 206, text[-5:])
expect("all of it", ask("GET", Range="bytes=0-"), 206, text)
none = expect("behind the end", ask("GET", Range="bytes=%d-" % len(text)), 416)
assert none.getheader("Content-Range") == "bytes */%d" % len(text)
expect("two ranges", ask("GET", Range="bytes=0-1,4-5"), 200, text)
expect("a range of this", ask("GET", Range="bytes=5-9", If_Range=tag), 206, text[5:10])
expect("a range of that", ask("GET", Range="bytes=5-9", If_Range='"x"'), 200, text)
expect("a range of then", ask("GET", Range="bytes=5-9", If_Range=modified), 206, text[5:10])
# Nothing is replaced that was not to be.
new = "/new.txt"
expect("put, if there is one", ask("PUT", new, b"a", If_Match="*"), 412)
connection.close()
assert not os.path.exists(directory + new)
expect("put, if there is none", ask("PUT", new, b"a", If_None_Match="*"), 201)
expect("again", ask("PUT", new, b"b", If_None_Match="*"), 412)
connection.close()
expect("over that", ask("PUT", "/file.txt", b"b", If_Match='"x"'), 412)
connection.close()
expect("over what is new", ask("PUT", "/file.txt", b"b", If_Unmodified_Since="Sun, 09 Sep 2001 01:46:39 GMT"), 412)
connection.close()
with open(directory + new, "rb") as one, open(path, "rb") as two:
    assert one.read() == b"a" and two.read() == text
expect("over this", ask("PUT", "/file.txt", b"b", If_Match=tag), 204)
with open(path, "rb") as two:
    assert two.read() == b"b"
# Two that both want to make it: the one that is whole first does.
racers = [socket.create_connection((host, 80), 20) for _ in range(2)]
for s in racers:
    s.sendall(b"PUT /race HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\nContent-Length: 4\r\n\r\nab")
time.sleep(0.2)
answers = []
for i, s in enumerate(racers):
    s.sendall(b"%d\n" % i)
    answers.append(s.recv(4096).split()[1])
assert answers == [b"201", b"412"], answers
with open(directory + "/race", "rb") as file:
    assert file.read() == b"ab0\n"


def old(octets):
    s = socket.create_connection((host, 80), 20)
    s.sendall(octets)
    got = b""
    while got_more := s.recv(65536):
        got += got_more
    s.close()
    return got


# HTTP/1.0: without Host, without chunks, and the end of the connection is the end of a listing.
listing = old(b"GET /list/ HTTP/1.0\r\n\r\n")
fields, body = listing.split(b"\r\n\r\n", 1)
assert b" 200 OK" in fields and b"chunked" not in fields and b"Connection: close" in fields, fields
lines = body.decode().splitlines()
shown = [line.split(">")[1].split("<")[0] for line in lines]
assert shown == sorted(shown) and len(shown) == 303, shown[:5]
assert not any(ord(c) < 0x20 or ord(c) == 0x7f for line in lines for c in line), lines[:3]
assert "\\x1b[2Jevil" in body.decode() and "href=\"./%1B%5B2Jevil\"" in body.decode()
_, chunked = ask("GET", "/list/")
assert chunked == body
assert old(b"GET /small HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\nhello\n")
# index.html stands for its directory.
os.mkdir(directory + "/site")
with open(directory + "/site/index.html", "wb") as file:
    file.write(b"<p>here")
index = expect("index", ask("GET", "/site/"), 200, b"<p>here")
assert index.getheader("Content-Type") == "text/html; charset=utf-8"
for wrong in (b"a b/@", b"a/b", b"u@a", b"a\x01"):
    assert b" 400 " in old(b"GET /small HTTP/1.1\r\nHost: " + wrong + b"\r\n\r\n").split(b"\r\n")[0], wrong
assert b" 400 " in old(b"PUT /chunk HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\x1b[2J\r\na\r\n0\r\n\r\n")


def end_of_get(during):
    """The last octets of an answer that was asked for a digest; `during` is called when its first octets are here."""
    with open(directory + "/moves", "wb") as file:
        file.write(bytes(20000000))
    with socket.create_connection((host, 80), 20) as s:
        s.sendall(b"GET /moves HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close, TE\r\n"
                  b"Want-Repr-Digest: xxh3-128=10\r\n\r\n")
        got = s.recv(1000)
        octets = len(got)
        during(directory + "/moves")
        while more := s.recv(65536):
            octets += len(more)
            got = (got + more)[-200:]
    assert octets > 20000000, octets
    return got


def overwrite(name):
    with open(name, "r+b") as file:
        file.write(b"new")


# What was read while the file changed is no version of it: that has no digest. Nor is it known whether the mode alone did.
assert b"\r\n0\r\nRepr-Digest: xxh3-128=:" in end_of_get(lambda name: None)
for change in (overwrite, lambda name: os.chmod(name, 0o600)):
    assert end_of_get(change).endswith(b"\r\n0\r\n\r\n")
sys.exit(failures > 0)
