#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds_rpc.py - the seeds of fuzz/responder.c and fuzz/requester.c: conversations made of the messages in the seeds of
fuzz/rpcrdma.c."""
import pathlib

corpus = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
messages = [path.read_bytes() for path in sorted((corpus / "rpcrdma").iterdir())]
messages = [m for m in messages if 16 <= len(m) <= 1020]


def deliver(message, repair=0):
    n = len(message)
    return bytes([1, 0, 1 | repair | (n & 3) << 6, n >> 2]) + message


connect, run, work, again, reply, cut = b"\x08\0", b"\x06\0", b"\x03\0\xff", b"\x01\0\0", b"\x04\0\x13", b"\x15\0"
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
for i in range(32):
    talk = wait + b"".join(start + bytes([i + k]) for k in range(4)) + wait + b"\x03\xff" + wait
    for k in range(4):
        talk += answer + bytes([k, i * 8 + k]) + wait + start + bytes([i * 5 + k]) + wait + b"\x03\xff"
    (folder / f"talk-{i:02}").write_bytes(talk + (b"\x04\0" if i & 1 else b"\x05\x01") + wait)
for i, message in enumerate(messages[::3]):
    raw = bytes([6, len(message) >> 2, len(message) & 3]) + message
    (folder / f"raw-{i:02}").write_bytes(wait + start + bytes([i]) + wait + b"\x03\xff" + raw + wait)
