#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds_rpc.py - writes the seeds of fuzz/responder.c and fuzz/requester.c: conversations of the messages in the seeds of
fuzz/rpcrdma.c."""
import pathlib

corpus = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
messages = [path.read_bytes() for path in sorted((corpus / "rpcrdma").iterdir())]
messages = [m for m in messages if 16 <= len(m) <= 1020]


def deliver(message, repair=0):
    n = len(message)
    return bytes([1, 0, 1 | repair | (n & 3) << 6, n >> 2]) + message


connect, run, work, again, reply, cut = b"\x08\0", b"\x06\0", b"\x03\0\xff", b"\x01\0\0", b"\x04\0\x13", b"\x15\0"
def words(*values):
    return b"".join(value.to_bytes(4, "big") for value in values)


def small_chunks(xid, how):
    """Builds a call with two Write chunks, a Reply chunk or Read chunks, each of a few octets."""
    segment = words(7, 500 + how, 0, xid)
    payload = words(xid, 0, 2, 100003, 3, how % 8, 0, 0, 0, 0, how, xid)
    reads = (words(1, 48) + segment) if how & 4 else b""
    writes = words(1, 2) + segment + segment[:8] + words(1, 0) + words(1, 1) + words(8) + segment[4:]
    reply = (words(1, 1) + words(9) + segment[4:]) if how & 2 else words(0)
    return words(xid, 1, 8, 0) + reads + words(0) + (writes if how & 1 else b"") + words(0) + reply + payload


messages += [small_chunks(0x1000 + i, i) for i in range(48)]
folder = corpus / "responder"
folder.mkdir(parents=True, exist_ok=True)
for i in range(0, len(messages), 3):
    talk = connect + run
    for message in messages[i : i + 3]:
        talk += deliver(message, 2) + run + work + run + reply + run + work + run
    (folder / f"talk-{i // 3:02}").write_bytes(talk + again + run + work + run + cut + run + connect + run + again + run)

folder = corpus / "requester"
folder.mkdir(parents=True, exist_ok=True)
start, wait, answer = b"\x01", b"\x00", b"\x02"
for i in range(0, 32, 2):
    talk = wait + b"".join(start + bytes([i + k]) for k in range(4)) + wait + b"\x03\xff" + wait
    for k in range(4):
        talk += answer + bytes([k, i * 8 + k]) + wait + start + bytes([i * 5 + k]) + wait + b"\x03\xff"
    (folder / f"talk-{i:02}").write_bytes(talk + (b"\x04\0" if i & 2 else b"\x05\x01") + wait)
for i, message in enumerate(messages[::6]):
    raw = bytes([6, len(message) >> 2, len(message) & 3]) + message
    (folder / f"raw-{i:02}").write_bytes(wait + start + bytes([i]) + wait + b"\x03\xff" + raw + wait)
