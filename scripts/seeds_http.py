#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds_http.py - writes the seeds of fuzz/http.c from tests/vectors/http.json."""
import json
import os

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
folder = os.path.join(root, "fuzz/corpus/http")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(root, "tests/vectors/http.json"), encoding="utf-8") as file:
    vectors = json.load(file)
for kind, letter in (("requests", "q"), ("responses", "s"), ("targets", "t"), ("chunks", "c")):
    for vector in vectors[kind]:
        with open(os.path.join(folder, vector["id"].lower()), "wb") as seed:
            seed.write((letter + vector["text"]).encode())
