#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""names.py - checks that the names of functions, struct tags and files are unique in the product, and none is misleading.

So a name in a profile, a backtrace or a search means one place, even if it is static. Each program has a main().
Tests may reuse names, but not misleading ones.
"""
import collections
import re
import subprocess
import sys

FOLDERS = ("base", "core", "wire", "conn", "tcp", "sctp", "roce", "loop", "endpoint", "stream", "drive", "api", "rpc", "nfs", "http",
           "verbs", "tools")
# A function may begin with a macro: INLINE, TARGET.
FUNCTION = re.compile(r"^(?:[A-Za-z_]\w*[ *]+)+(\w+)\((?:[^;{}]|\n)*?\)\n\{", re.M)
# "room" once was a buffer, free space and a size; say which (STYLE.md 12). The others meant something else than they said.
MISLEADING = re.compile(r"(?<![\"<./\w])(?:\w*_)?(?:room|aim|conn_gap)(?:_\w*)?\b", re.I)
NOT_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
# Folders whose files may have the same names, since these mean the same there.
SAME_MEANING = (
    {"tcp", "sctp", "stream"},              # engines, which are cut along their RFCs in the same way
    {"core", "api", "verbs", "verbs/cm"},   # an object of verbs on its floors
    {"tools/cp", "tools/perf", "tools/ping"},  # what each command has of its own
    {"tools", "nfs/server"},                # a command, and the server that it runs
)
TAG = re.compile(r"^(?:(?:static|const|typedef) )*(?:struct|enum|union) (\w+) \{", re.M)


def taken_twice(files, definition, least):
    """Returns the names that `definition` finds in more than one file, and the number of all names."""
    places = collections.defaultdict(list)
    for name in files:
        with open(name, encoding="utf-8") as file:
            for match in definition.finditer(file.read()):
                places[match[1]].append(name)
    if len(places) < least:
        sys.exit("names: only %d found" % len(places))
    return {name: where for name, where in places.items() if len(set(where)) > 1 and name != "main"}, len(places)


def misleading(files):
    """Yields each file and misleading name in it."""
    for name in files:
        with open(name, encoding="utf-8") as file:
            for found in sorted(set(MISLEADING.findall(NOT_CODE.sub("", file.read())))):
                yield name, found


def named_after_folder(files):
    """Yields each file and static function in it that begins with a folder's name, where neither the file's name nor the
    functions that it exports do.

    `api_transfer_receive` beside `transfer_receive` says nothing of what differs.
    """
    for path in files:
        *folders, stem = path.rsplit(".", 1)[0].split("/")
        with open(path, encoding="utf-8") as file:
            found = [(match[1], "static" in match[0][:match.start(1) - match.start()].split())
                     for match in FUNCTION.finditer(file.read())]
        exported = [name for name, is_static in found if not is_static]
        for name, folder in [(name, folder) for name, is_static in found if is_static for folder in folders]:
            module = re.match("%s_[^_]+" % folder, name)
            if module and not re.search("(^|_)%s(_|$)" % folder, stem) and \
                    not any(re.match("%s(_|$)" % module[0], other) for other in exported):
                yield path, name


def files_taken_twice(files):
    """Yields each file name that stands in two folders where it means two things, and the folders."""
    places = collections.defaultdict(set)
    for path in files:
        folder, _, name = path.rpartition("/")
        if not folder.startswith("include"):
            places[name].add(folder)
    for name, folders in sorted(places.items()):
        if len(folders) > 1 and not any(folders <= same for same in SAME_MEANING):
            yield name, folders


def main():
    everything = subprocess.run(["git", "ls-files", "--", "*.[ch]"], check=True, capture_output=True, text=True).stdout.split()
    wrong = list(misleading(everything))
    for name, found in wrong:
        print("names: %s: %s is misleading" % (name, found), file=sys.stderr)
    files = subprocess.run(["git", "ls-files", "--", "include/*.h"] + ["%s/*.[ch]" % folder for folder in FOLDERS],
                           check=True, capture_output=True, text=True).stdout.split()
    # Stand-ins for a missing library have that library's names.
    files = [name for name in files if not name.endswith("_none.c")]
    same_files = list(files_taken_twice(files))
    for name, folders in same_files:
        print("names: a file %s in %s" % (name, ", ".join(sorted(folders))), file=sys.stderr)
    functions, n = taken_twice(files, FUNCTION, 2000)
    tags, m = taken_twice(files, TAG, 300)
    for name, where in sorted(functions.items()) + sorted(tags.items()):
        print("names: %s in %s" % (name, ", ".join(where)), file=sys.stderr)
    folder_names = list(named_after_folder(name for name in files if name.endswith(".c")))
    for name, found in folder_names:
        print("names: %s: %s is static and has its folder's name in front, as if it were exported" % (name, found), file=sys.stderr)
    if wrong or folder_names:
        sys.exit("names: use a name that says what it is")
    if same_files:
        sys.exit("names: a file name means one thing: let it say what differs")
    if functions or tags:
        sys.exit("names: a name takes its module's in front where another has the plain one")
    print("names: %d functions and %d tags, all with unique names" % (n, m))


main()
