#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""names.py - checks that each function name and each struct tag is unique in the product, and that no name is misleading.

So a name in a profile, a backtrace or a search means one place, even if it is static. Each program has a main().
Tests may reuse names, but not misleading ones.
"""
import collections
import re
import subprocess
import sys

FOLDERS = ("base", "core", "wire", "conn", "tcp", "sctp", "roce", "loop", "endpoint", "stream", "drive", "api", "rpc", "nfs", "http", "tools")
FUNCTION = re.compile(r"^(?:[a-z_]\w*[ *]+)+(\w+)\((?:[^;{}]|\n)*?\)\n\{", re.M)
# "room" once was a buffer, free space and a size; say which (STYLE.md 12). The others meant something else than they said.
MISLEADING = re.compile(r"(?<![\"<./\w])(?:\w*_)?(?:room|aim|conn_gap)(?:_\w*)?\b", re.I)
NOT_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
TAG = re.compile(r"^(?:struct|enum|union) (\w+) \{", re.M)


def taken_twice(files, definition, least):
    """Returns the names that `definition` finds in more than one place, and the number of all names."""
    places = collections.defaultdict(list)
    for name in files:
        with open(name, encoding="utf-8") as file:
            for match in definition.finditer(file.read()):
                places[match[1]].append(name)
    if len(places) < least:
        sys.exit("names: only %d found" % len(places))
    return {name: where for name, where in places.items() if len(where) > 1 and name != "main"}, len(places)


def misleading(files):
    """Yields each file and misleading name in it."""
    for name in files:
        with open(name, encoding="utf-8") as file:
            for found in sorted(set(MISLEADING.findall(NOT_CODE.sub("", file.read())))):
                yield name, found


def main():
    everything = subprocess.run(["git", "ls-files", "--", "*.[ch]"], check=True, capture_output=True, text=True).stdout.split()
    wrong = list(misleading(everything))
    for name, found in wrong:
        print("names: %s: %s is misleading" % (name, found), file=sys.stderr)
    files = subprocess.run(["git", "ls-files", "--", "include/*.h"] + ["%s/*.[ch]" % folder for folder in FOLDERS],
                           check=True, capture_output=True, text=True).stdout.split()
    # Stand-ins for a missing library have that library's names.
    files = [name for name in files if not name.endswith("_none.c")]
    functions, n = taken_twice(files, FUNCTION, 2000)
    tags, m = taken_twice(files, TAG, 300)
    for name, where in sorted(functions.items()) + sorted(tags.items()):
        print("names: %s in %s" % (name, ", ".join(where)), file=sys.stderr)
    if wrong:
        sys.exit("names: use a name that says what it is")
    if functions or tags:
        sys.exit("names: a name takes its module's in front where another has the plain one")
    print("names: %d functions and %d tags, all with unique names" % (n, m))


main()
