#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""sctpddp_capture.py CAPTURE - writes the chunks of tests/vectors/sctp.json, and others that break a rule, as SCTP over UDP
(RFC 6951). Each association begins with INIT and INIT-ACK. Prints one line for each DATA chunk: what a dissector must say of it."""
import json
import os
import struct
import sys

INDICATION = {"DDP": 1, "DDP_WITH_TAG": 2, "RDMA_ONLY": 3, "RDMA_AND_NEGOTIATION": 4, "RDMA_NEGOTIATION": 5}
LINK_RAW, ENCAPSULATION = 101, 9899


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def packet(source, destination, chunk):
    def common(checksum):
        return struct.pack(">HHI", source, destination, 7) + checksum

    sctp = common(struct.pack("<I", crc32c(common(bytes(4)) + chunk))) + chunk
    udp = struct.pack(">HHHH", ENCAPSULATION, ENCAPSULATION, 8 + len(sctp), 0) + sctp
    address = bytes([10, 0, 0, 1 + (source < destination)]) + bytes([10, 0, 0, 2 - (source < destination)])
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + address
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack(">H", total ^ 0xFFFF) + head[12:] + udp


def init(kind, value):
    body = struct.pack(">IIHHI", 7, 65536, 8, 8, 4096) + (struct.pack(">HHI", 0xC006, 8, value) if value else b"")
    if kind == 2:
        body += struct.pack(">HHI", 7, 8, 0xC00C1E)  # a State Cookie
    return struct.pack(">BBH", kind, 0, 4 + len(body)) + body


def data(user, tsn=4096):
    return struct.pack(">BBHIHHI", 0, 7, 16 + len(user), tsn, 1, 0, 0) + user + bytes(-len(user) % 4)


vectors = json.load(open(os.path.join(os.environ["RDDP_SOURCE_DIR"], "tests/vectors/sctp.json")))
associations = []  # (initiator's indication, responder's, DATA chunks of the initiator, what is found in each)
for v in vectors["chunks"]:
    if "association" in v:
        ext = v["fields"]["ext"]
        found = [ext["mode"], ext["flags"], ext["tag"], int(str(ext["offset"]), 0), ext.get("aws", ""), ext["data_length"], ""]
        if ext["flags"] & 0x20:
            found[-1] = "released"
        associations.append((INDICATION[v["association"]], 4, [bytes.fromhex(v["hex"])], [found]))
for v in vectors["malformed"][:2]:
    associations.append((INDICATION[v["association"]], 4, [bytes.fromhex(v["hex"])], [["", "", "", "", "", "", "short"]]))
for row in vectors["receive_matrix"]:
    peer = INDICATION[row["peer_indicated"]]
    user = struct.pack(">IIQ", row["mode"] << 8, 1, 0) + (bytes(4) if peer > 2 else b"")
    error = row["rule"][:2].lower() if row["rule"][0] == "R" and row["action"] == "abort" else ""
    if row["action"] == "abort" and not error:
        error = "mode"
    associations.append((peer, 4, [data(user)], [[row["mode"], 0, 1, 0, 0 if peer > 2 else "", 0, error]]))
user = struct.pack(">IIQI", 0x1F, 0, 5, 0)
associations.append((4, 4, [data(user)], [[0, 0x1F, 0, 5, 0, 0, "reserved offset"]]))
associations.append((4, 0, [data(b"plain" * 9)], []))  # the responder indicated nothing: plain messages

with open(sys.argv[1], "wb") as capture:
    capture.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINK_RAW))
    moment = 0
    for port, (ours, theirs, chunks, expected) in enumerate(associations, 40000):
        packets = [packet(port, 18515, init(1, ours)), packet(18515, port, init(2, theirs))]
        for octets in packets + [packet(port, 18515, chunk) for chunk in chunks]:
            moment += 1
            capture.write(struct.pack("<IIII", moment, 0, len(octets), len(octets)) + octets)
        for found in expected:
            print("\t".join(str(value) for value in found))
