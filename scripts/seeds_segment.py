#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds_segment.py - writes the seeds of fuzz/rdmatcp.c from tests/vectors/segment.json."""
import json
import os

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
vectors = json.load(open(os.path.join(root, "tests/vectors/segment.json")))
folder = os.path.join(root, "fuzz/corpus/rdmatcp")
os.makedirs(folder, exist_ok=True)

REPAIR_CRC, REPAIR_ID = 1, 2


def write(name, options, octets):
    with open(os.path.join(folder, name), "wb") as seed:
        seed.write(bytes([options]) + octets)


segments = {v["id"]: bytes.fromhex(v["hex"]) for v in vectors["segments"] if "hex" in v}
for name in ("SEG-V-send-empty", "SEG-V-rreq", "SEG-V-rresp", "SEG-V-ctl-1", "SEG-V-ctl-write", "SEG-V-boff-max"):
    write(name.lower(), REPAIR_CRC | REPAIR_ID, segments[name])
write("every-segment", REPAIR_CRC | REPAIR_ID, b"".join(segments.values()))
write("stream", 0, bytes.fromhex(vectors["stream"]["hex"]))
for v in vectors["malformed"]:
    write(v["id"].lower(), 0, bytes.fromhex(v["hex"]))
