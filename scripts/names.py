#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""names.py - checks that each function name and each struct tag is unique in the product.

So a name in a profile, a backtrace or a search means one place, even if it is static. Each program has a main();
tests are not checked.
"""
import collections
import re
import subprocess
import sys

FOLDERS = ("base", "core", "wire", "conn", "utcp", "net", "api", "rpc", "nfs", "tools")
FUNCTION = re.compile(r"^(?:[a-z_]\w*[ *]+)+(\w+)\((?:[^;{}]|\n)*?\)\n\{", re.M)
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


def main():
    files = subprocess.run(["git", "ls-files", "--", "include/*.h"] + ["%s/*.[ch]" % folder for folder in FOLDERS],
                           check=True, capture_output=True, text=True).stdout.split()
    # Stand-ins for a missing library have that library's names.
    files = [name for name in files if not name.endswith("_none.c")]
    functions, n = taken_twice(files, FUNCTION, 2000)
    tags, m = taken_twice(files, TAG, 300)
    for name, where in sorted(functions.items()) + sorted(tags.items()):
        print("names: %s in %s" % (name, ", ".join(where)), file=sys.stderr)
    if functions or tags:
        sys.exit("names: a name takes its module's in front where another has the plain one")
    print("names: %d functions and %d tags, all with unique names" % (n, m))


main()
