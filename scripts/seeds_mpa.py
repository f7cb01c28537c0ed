#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds_mpa.py - writes the seeds of fuzz/iwarp.c and fuzz/mpa_start.c from tests/vectors/mpa.json."""
import json
import os
import struct

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
vectors = json.load(open(os.path.join(root, "tests/vectors/mpa.json")))

# The options of fuzz/iwarp.c.
CRC, MARKERS, VERSION_0, REPAIR_CRC, REPAIR_MARKERS, NEAR_2_32 = 1, 2, 4, 8, 16, 32


def write(target, name, octets):
    folder = os.path.join(root, "fuzz/corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as seed:
        seed.write(octets)


def fpdu(ulpdu):
    """Builds an FPDU without markers; the target sets the CRC."""
    return struct.pack(">H", len(ulpdu)) + ulpdu + bytes(-(2 + len(ulpdu)) % 4) + bytes(4)


def iwarp(name, options, pos, octets):
    write("iwarp", name, struct.pack(">BH", options, pos // 4) + octets)


ulpdus = {v["id"]: bytes.fromhex(v["hex"]) for v in vectors["ddp_rdmap"]}
once = ["DDP-V-write", "DDP-V-rreq", "DDP-V-rresp", "DDP-V-send", "DDP-V-sendseinv", "DDP-V-imm", "DDP-V-fadd",
        "DDP-V-seg-u0", "TERM-V-ddp-t-stag", "TERM-V-ddp-u-1", "TERM-V-rdmap-p-0", "TERM-V-llp-6"]
for name in once:
    iwarp(name.lower(), CRC | REPAIR_CRC, 0, fpdu(ulpdus[name]))
for v in vectors["ddp_rdmap"]:
    if v["id"] in ("TERM-V-ddp-t-stag", "TERM-V-rdmap-p-9", "TERM-V-rdmap-o-6", "TERM-V-llp-3"):
        iwarp(v["id"].lower() + "-siw", CRC | REPAIR_CRC, 0, fpdu(bytes.fromhex(v["hex_as_linux_siw_little_endian"])))
every = b"".join(fpdu(u) for i, u in ulpdus.items() if u[1] & 15 < 8)
iwarp("every-message", CRC | REPAIR_CRC, 0, every)
iwarp("every-message-crc-off", 0, 0, every)
for name in ("MPA-V-fig5", "MPA-V-fig6", "MPA-V-fig6-first"):
    v = next(v for v in vectors["fpdus"] if v["id"] == name)
    iwarp(name.lower(), CRC | MARKERS | VERSION_0, v["stream_offset"], bytes.fromhex(v["hex"]))

# The records of the marker vectors are not DDP segments: they get the header of a Write, and the target sets markers
# and CRC.
head = ulpdus["DDP-V-write-0"]
for v in vectors["fpdus"]:
    if v["markers_on"] and "hex" in v and v.get("ulpdu_length", 0) >= 20 and v["source"] == "document":
        octets = bytearray(bytes.fromhex(v["hex"]))
        at = 6 if v["stream_offset"] % 512 == 0 else 2
        octets[at:at + 14] = head
        iwarp(v["id"].lower() + "-write", CRC | MARKERS | REPAIR_CRC | REPAIR_MARKERS, v["stream_offset"], bytes(octets))
iwarp("around-2-32", CRC | MARKERS | REPAIR_CRC | REPAIR_MARKERS | NEAR_2_32, 256, fpdu(head + bytes(1000)) + bytes(8))
for v in vectors["negative"]:
    if len(v["hex"]) < 1024:
        iwarp(v["id"].lower(), CRC | (MARKERS if v["markers_on"] else 0), v["stream_offset"], bytes.fromhex(v["hex"]))

# Our choices in fuzz/mpa_start.c: bit 0 a reply, bits 1 to 3 the ready-to-receive messages; then IRD and ORD.
for v in vectors["startup"]:
    frame = bytes.fromhex(v["hex"])
    write("mpa_start", v["id"].lower(), bytes([14 | (frame[9:10] == b"p"), 4, 8]) + frame)
