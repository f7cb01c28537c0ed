#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""names.py - the name of a function, or the tag of a struct, is its own: nothing else in the product is called the same.

A name in a profile, a backtrace or a search then means one place, static or not. Programs have a main() each; tests are
not looked at.
"""
import collections
import re
import subprocess
import sys

FOLDERS = ("base", "core", "wire", "conn", "utcp", "net", "api", "rpc", "nfs", "tools")
FUNCTION = re.compile(r"^(?:[a-z_]\w*[ *]+)+(\w+)\((?:[^;{}]|\n)*?\)\n\{", re.M)
TAG = re.compile(r"^(?:struct|enum|union) (\w+) \{", re.M)


def taken_twice(files, definition, least):
    """Names that `definition` finds in more than one place, and how many there are in all."""
    places = collections.defaultdict(list)
    for name in files:
        with open(name, encoding="utf-8") as file:
            for match in definition.finditer(file.read()):
                places[match[1]].append(name)
    if len(places) < least:
        sys.exit("names: only %d found" % len(places))
    return {name: where for name, where in places.items() if len(where) > 1 and name != "main"}, len(places)


def main():
    files = subprocess.run(["git", "ls-files", "--", "include/*.h"] + ["%s/*.[ch]" % folder for folder in FOLDERS],
                           check=True, capture_output=True, text=True).stdout.split()
    # What stands in for a library that is not there has the names of what it stands for.
    files = [name for name in files if not name.endswith("_none.c")]
    functions, n = taken_twice(files, FUNCTION, 2000)
    tags, m = taken_twice(files, TAG, 300)
    for name, where in sorted(functions.items()) + sorted(tags.items()):
        print("names: %s in %s" % (name, ", ".join(where)), file=sys.stderr)
    if functions or tags:
        sys.exit("names: a name takes its module's in front where another has the plain one")
    print("names: %d functions and %d tags, each with a name of its own" % (n, m))


main()
