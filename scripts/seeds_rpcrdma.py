#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds_rpcrdma.py - writes the seeds of fuzz/rpcrdma.c: messages of the vectors, and one of each shape that Linux has sent."""
import json
import pathlib

root = pathlib.Path(__file__).resolve().parent.parent
folder = root / "fuzz" / "corpus" / "rpcrdma"
folder.mkdir(parents=True, exist_ok=True)
vectors = json.loads((root / "tests" / "vectors" / "rpcrdma.json").read_text())
for part in ("messages", "malformed", "rfc8797_private_data"):
    for entry in vectors[part]:
        (folder / entry["id"].lower()).write_bytes(bytes.fromhex(entry["hex"]))
shapes = set()
for capture in sorted((root / "tests" / "captures").glob("*.txt")):
    for line in capture.read_text().splitlines():
        if line.startswith("#"):
            continue
        message = bytes.fromhex(line[2:])
        shape = (line[0], message[15], len(message).bit_length())
        if shape not in shapes:
            shapes.add(shape)
            (folder / f"linux-{len(shapes):02}").write_bytes(message)
