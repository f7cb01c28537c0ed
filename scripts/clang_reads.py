#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# clang_reads.py BUILD - has clang read, without making code, each source of a build folder that was configured for it, with
# the flags it has there. Prints what clang says, and fails if that is an error. Files with the same flags are read by one
# process of the compiler proper: starting one for each takes three times as long as reading.
import collections
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

AT_ONCE = 64


def jobs(build):
    groups = collections.defaultdict(set)
    with open(build + "/compile_commands.json") as database:
        for entry in json.load(database):
            if "-I" + build not in entry["command"]:  # such a one reads, or is, what a step of the build makes
                words = shlex.split(entry["command"])
                groups[tuple(words[: words.index("-o")])].add(entry["file"])
    for flags, files in groups.items():
        files = sorted(files)
        for i in range(0, len(files), AT_ONCE):
            yield flags, files[i : i + AT_ONCE]


# The driver shows what it would start for the first file.
def read(flags, files):
    shown = subprocess.run([*flags, "-fsyntax-only", "-###", files[0]], stderr=subprocess.PIPE, text=True)
    words = shlex.split(shown.stderr.splitlines()[-1])
    if shown.returncode or "-cc1" not in words or words[-1] != files[0]:
        print(shown.stderr)
        return False
    return subprocess.run([*words[:-1], *files]).returncode == 0


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    sys.exit(not all([*pool.map(lambda job: read(*job), jobs(sys.argv[1]))]))
