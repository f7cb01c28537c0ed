#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds_osctp.py - writes the seeds of fuzz/osctp.c: conversations of a few steps each."""
import os

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz/corpus/osctp")
os.makedirs(folder, exist_ok=True)

DATA, SACK, CHUNK, RAW, INIT, SUBMIT, TIME, WINDOW, END, SCARCE, SEND = range(11)
MORE = 132  # a multiple of the kinds: more chunks follow in the packet
ACTIVE, PASSIVE, CONNECTING = 8, 8 | 64, 8 | 128
ESTABLISHED_PEER_WRAPS = 8 | 32


def data(ahead=0, octets=20):
    return bytes([DATA, ahead, octets, 0])


def sack(ahead, *blocks):
    """Acknowledges `ahead` TSNs more. Each block: how far behind the last one it begins, and its length less 1."""
    return bytes([SACK, ahead, len(blocks) | 128, 255]) + bytes(octet for block in blocks for octet in block)


def chunk(kind, value=b""):
    return bytes([CHUNK, kind, 0, len(value)]) + value


def submit(octets, count):
    return bytes([SUBMIT]) + octets.to_bytes(2, "big") + bytes([count])


next_timer = bytes([TIME, 3, 0])
shutdown = bytes([END, 64])
seeds = {
    "in_order": (ACTIVE, data() * 6 + next_timer),
    "out_of_order": (ESTABLISHED_PEER_WRAPS, data(3) + data(1) + data(1) + data() + data(30) + data() * 3 + next_timer),
    "bundle": (PASSIVE, bytes([MORE]) + data()[1:] + bytes([MORE]) + data(1)[1:] + data(2)),
    "acknowledged": (ACTIVE, submit(1400, 10) + sack(2) + sack(2) + sack(5) + next_timer),
    "lost": (ACTIVE, submit(1400, 20) + sack(4) + sack(4) + sack(0, (2, 3)) + sack(0, (2, 5)) + next_timer + sack(9)),
    "timed_out": (PASSIVE, submit(1400, 8) + next_timer * 4 + sack(1) + next_timer * 3 + sack(3)),
    "small": (PASSIVE, submit(64, 31) * 4 + sack(30) + sack(30, (2, 1), (3, 2)) + next_timer),
    "closed_window": (ACTIVE, submit(500, 9) + bytes([SACK, 1, 128, 0]) + next_timer * 3 + sack(1)),
    "init": (CONNECTING, next_timer + bytes([INIT, 16 | 8, 1]) + chunk(11) + data() + submit(10, 2)),
    "init_lost": (CONNECTING, next_timer * 6),
    "shut_down": (ACTIVE, submit(100, 3) + shutdown + sack(3) + next_timer + data() + chunk(8)),
    "peer_shuts_down": (PASSIVE, submit(100, 3) + chunk(7, b"") + sack(3) + next_timer + chunk(14)),
    "both_shut_down": (PASSIVE, shutdown + chunk(7) + chunk(8)),
    "heartbeats": (ACTIVE, next_timer * 3 + chunk(4, bytes([0, 1, 0, 8, 1, 2, 3, 4]))),
    "unknown": (ACTIVE, chunk(0xC1, b"abc") + chunk(0x81, b"abc") + bytes([RAW, 12]) + bytes(12)),
    "abort": (ACTIVE, submit(100, 1) + chunk(6, bytes([0, 12, 0, 8]) + b"why!")),
    "we_abort": (ACTIVE, data(3) + bytes([END, 5])),
    "scarce": (ACTIVE, bytes([SCARCE, 3, 2]) + data() * 5 + submit(100, 5)),
    "windows": (ACTIVE, bytes([WINDOW, 0, 0]) + data() * 2 + bytes([WINDOW, 40, 0]) + next_timer),
    "tags": (ACTIVE, bytes([MORE]) + data()[1:] + bytes([SEND, 0, 1]) + data()),
}
for name, (how, steps) in seeds.items():
    with open(os.path.join(folder, name), "wb") as seed:
        seed.write(bytes([how]) + steps)
