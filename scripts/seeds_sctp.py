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
