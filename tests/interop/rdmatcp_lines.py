#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rdmatcp_lines.py - checks a capture of RDMA/TCP segments against the document; reads tshark's fields from stdin."""
import collections
import sys

SEND, WRITE, REQUEST, RESPONSE = range(4)
NAMES = ["Send", "RDMA Write", "RDMA Read Request", "RDMA Read Response"]


class Side:
    """One direction of a connection."""

    def __init__(self):
        self.next = self.open = None
        self.asked = collections.deque()
        self.answering = False


def wrong(line, what):
    sys.exit(f"line {line}: {what}")


def group_1(line, side, kind, begin, end, number):
    if side.next is not None and number != side.next:
        wrong(line, f"message number {number}, not {side.next}")
    if begin == (side.open is not None) or (side.open is not None and side.open != kind):
        wrong(line, f"B of message {number}")
    side.open = None if end else kind
    side.next = (number + end) % 2**32
    if kind == REQUEST:
        side.asked.append(number)


def group_2(line, side, peer, begin, end, number):
    if not peer.asked or peer.asked[0] != number:
        wrong(line, f"a response to {number}, which is not the oldest request")
    if begin == side.answering:
        wrong(line, f"B of response {number}")
    side.answering = not end
    if end:
        peer.asked.popleft()


def flag(text):
    return text in ("1", "True")


def main():
    sides, ids, seen, aligned, packets, spread = {}, {}, [0] * 4, 0, 0, 0
    for line, text in enumerate(sys.stdin, 1):
        stream, port, length, *columns = text.rstrip("\n").split("\t")
        packets += length not in ("", "0")
        if not columns[0]:
            spread += length not in ("", "0")
            continue
        rows = list(zip(*(c.split(",") for c in columns)))
        octets = 0
        for version, kind, begin, end, size, ident, number, _clen, _data, crc in rows:
            kind, number = int(kind), int(number)
            if version != "1":
                wrong(line, f"version {version}")
            if crc != "1":
                wrong(line, "a bad CRC")
            if ids.setdefault(stream, ident) != ident:
                wrong(line, f"Connection ID {ident}")
            streams = sides.setdefault(stream, collections.defaultdict(Side))
            side = streams[port]
            peer = next((s for p, s in streams.items() if p != port), Side())
            if kind == RESPONSE:
                group_2(line, side, peer, flag(begin), flag(end), number)
            else:
                group_1(line, side, kind, flag(begin), flag(end), number)
            seen[kind] += 1
            octets += (int(size) + 3) // 4 * 4 + 4
        aligned += octets == int(length)
    if not all(seen):
        sys.exit(f"seen: {seen}")
    if len(set(ids.values())) != len(ids):
        sys.exit("two connections have one ID")
    print(", ".join(f"{n} {name}" for n, name in zip(seen, NAMES)) + " segments, every CRC good;")
    print(f"{packets} TCP segments, {aligned} of them whole segments of ours, {spread} the beginning of one alone")


main()
