# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""tcpopt_vectors.py make CAPTURE | check - writes the vectors of the TCP RDMA option as a capture; checks what tshark says of
them."""
import json
import os
import struct
import sys

WORDS = {"reject:illegal length": "Illegal length", "reject:misaligned": "Not on a boundary of 4 octets",
         "reject:data_offset>payload": "Data behind the end of the segment", "reject:data past end of segment": "Data behind the end of the segment",
         "reject:buffer offset wraps": "Buffer offset wraps", "reject:past total length": "Data behind the total length"}


def checksum(octets):
    total = sum(struct.unpack(">%dH" % (len(octets) // 2), octets))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def vectors():
    """Yields each vector that fits a TCP header, with its options and the payload that it describes."""
    with open(os.environ["RDDP_SOURCE_DIR"] + "/tests/vectors/tcpopt.json") as file:
        for vector in json.load(file)["options"]:
            context = vector.get("context", {})
            block = b"\1" * (context.get("opt_offset", 20) % 4) + bytes.fromhex(vector["hex"])
            if len(block) <= 40 and vector["id"] != "TCPOPT-V-trunc":
                yield vector, block + bytes(-len(block) % 4), context.get("payload_len", 60000)


def make(name):
    with open(name, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for i, (_, block, payload) in enumerate(vectors()):
            payload = min(payload, 65535 - 40 - len(block))
            head = (20 + len(block)) // 4 << 4
            tcp = struct.pack(">HHIIBBHHH", 1000 + i, 2000, 1, 1, head, 0x10, 1000, 0, 0) + block + bytes(payload)
            ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, 0x0A000001, 0x0A000002)
            packet = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:] + tcp
            out.write(struct.pack("<IIII", i, 0, len(packet), len(packet)) + packet)


FLAGS = {"False": "0", "True": "1"}  # since tshark 4.4


def wanted(vector):
    """Returns the columns that tshark must print for a vector, and its complaint."""
    fields = vector.get("fields", {})
    names = ("length", "A", "U", "rid", "buffer_offset", "data_offset", "data_length", "total_length")
    complaint = next((WORDS[key] for key in WORDS if vector["expect"].startswith(key)), "")
    return [fields.get(name, "") for name in names], complaint


def check(lines):
    count = 0
    for (vector, _, _), line in zip(vectors(), lines):
        *columns, said = line.rstrip("\n").split("\t")
        values = [int(FLAGS.get(c, c), 0) if c else "" for c in columns]
        fields, complaint = wanted(vector)
        if fields[0] == 4:
            fields[2] = ""  # U has no meaning there
        if fields[0] and values != fields:
            sys.exit(f"{vector['id']}: {values}, not {fields}")
        if any((words in said) != (words == complaint) for words in set(WORDS.values())):
            sys.exit(f"{vector['id']}: complains of '{said}', not of '{complaint}'")
        count += 1
    if count != len(list(vectors())):
        sys.exit(f"{count} lines")
    print(f"{count} vectors")


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    check(sys.stdin)
