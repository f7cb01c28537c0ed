#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rfc7306_lines.py - checks a capture of `rddp perf -n 20 write-imm fetch-add cmp-swap swap` against RFC 7306. Each line of
stdin is a packet; its columns are the fields that rfc7306_tshark.sh lists."""

import sys

N = 20
ONES = 0xFFFFFFFFFFFFFFFF
COLUMNS = "source target opcode qn msn immediate atomic request to data mask compare compare_mask original".split()
EXPERTS = "short queue unknown".split()
IMMEDIATE, REQUEST, RESPONSE = 8, 10, 11


def main():
    seen, queues, errors = {}, {}, []
    for line in sys.stdin:
        values = (line.rstrip("\n").split("\t") + [""] * 20)[:len(COLUMNS) + len(EXPERTS)]
        errors += [name for name, value in zip(EXPERTS, values[len(COLUMNS):]) if value]
        row = dict(zip(COLUMNS, [value.split(",") if value else [] for value in values]))
        way = (row["source"][0], row["target"][0])
        for name in ("immediate", "atomic", "request", "to", "data", "mask", "compare", "compare_mask", "original"):
            seen.setdefault((way, name), []).extend(int(value, 16 if name == "immediate" else 0) for value in row[name])
        for opcode, qn, msn in zip(row["opcode"], row["qn"], row["msn"]):
            queues.setdefault((way, int(opcode), int(qn)), []).append(int(msn))
    asks = [way for way, opcode, _ in queues if opcode == REQUEST]
    if errors or len(asks) != 1:
        sys.exit(f"rfc7306: {' '.join(sorted(set(errors)))}, requests on {len(asks)} streams")
    there, back = asks[0], asks[0][::-1]
    count = [i + 1 for i in range(N)]

    def is_seen(way, name, expected):
        found = seen.get((way, name), [])
        if found != expected:
            sys.exit(f"rfc7306: {way} {name}: other values: {found}, not {expected}")

    # The bandwidth test comes first, then the latency test, in which Writes go both ways. The Verbs value is in the first
    # half of the field (EXT-06).
    is_seen(there, "immediate", [i << 32 for i in 2 * count])
    is_seen(back, "immediate", [i << 32 for i in count])
    is_seen(there, "atomic", 2 * (N * [0] + 2 * N * [2]))
    is_seen(there, "data", 2 * (N * [1] + 2 * count))
    is_seen(there, "mask", 2 * (N * [0] + 2 * N * [ONES]))
    is_seen(there, "compare", 2 * (N * [0] + 2 * [i - 1 for i in count]))
    is_seen(there, "compare_mask", 2 * (2 * N * [ONES] + N * [0]))  # of a FetchAdd as RFC 7306 5.1 has it
    is_seen(back, "original", 6 * [i - 1 for i in count])
    is_seen(back, "request", seen[there, "request"])
    if len(set(seen[there, "to"])) != 1 or seen[there, "to"][0] % 8:
        sys.exit("rfc7306: not one word at a multiple of 8")
    messages = [i + 1 for i in range(6 * N)]
    if queues[there, REQUEST, 1] != messages or queues.get((back, RESPONSE, 3)) != messages:
        sys.exit("rfc7306: message numbers are not in sequence")
    for way in there, back:
        if sorted(set(queues[way, IMMEDIATE, 0])) != queues[way, IMMEDIATE, 0]:
            sys.exit("rfc7306: numbers of immediate data do not grow")


if __name__ == "__main__":
    main()
