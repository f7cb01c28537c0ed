#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds_sctp.py - writes the seeds of fuzz/sctpddp.c from tests/vectors/sctp.json."""
import json
import os

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
vectors = json.load(open(os.path.join(root, "tests/vectors/sctp.json")))
folder = os.path.join(root, "fuzz/corpus/sctpddp")
os.makedirs(folder, exist_ok=True)
INDICATIONS = ["none", "DDP", "DDP_WITH_TAG", "RDMA_ONLY", "RDMA_AND_NEGOTIATION", "RDMA_NEGOTIATION"]

for v in vectors["chunks"] + vectors["malformed"]:
    octets = bytes.fromhex(v["hex"])
    if "association" in v:
        length = int.from_bytes(octets[2:4], "big")
        octets = bytes([INDICATIONS.index(v["association"]), octets[1] & 7 == 7]) + octets[16:length]
    with open(os.path.join(folder, v["id"].lower()), "wb") as seed:
        seed.write(octets)

# Seeds of fuzz/assoc.c: both sides of each pair of indications, with a few octets of each action.
folder = os.path.join(root, "fuzz/corpus/assoc")
os.makedirs(folder, exist_ok=True)
for ours, theirs in ((4, 4), (1, 1), (2, 2), (3, 3), (4, 5), (5, 5), (0, 0), (4, 2)):
    for passive in (0, 0x80):
        kinds = next(k for k in range(128) if k % 6 == ours and (k >> 3 & 15) % 7 == theirs)
        hello = bytes([2, 0, 0 if passive else 1, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        send = bytes([2, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 10, 7, 0])
        post = bytes(range(0, 96, 3))
        place = bytes([1, 0, 0, 100, 0, 1, 1, 40, 9, 0])
        with open(os.path.join(folder, f"{ours}-{theirs}-{'passive' if passive else 'active'}"), "wb") as seed:
            seed.write(bytes([passive | kinds]) + bytes([4]) + hello + bytes([4]) + post + send + bytes([4]) + place * 4 + bytes([4, 6]))
