#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""documents.py [--self-test] - checks that names in the Markdown documents exist: paths, files, functions and other names with an
underscore; in doc/tour.md each function is defined in a file named in its line, and each struct, enum or other symbol in the
file that is said to have it. Lines have at most 120 columns; tables may be wider."""
import fnmatch
import glob
import os
import re
import subprocess
import sys

COLUMNS = 120
# Words in capitals stand for any name, as in tests/unit/MODULE.c.
PLACEHOLDER = r"\b[A-Z]{2,}\b"
PATH = r"(?<![\w./:-])((?:[\w.-]+/)+[\w.*-]*)"
FILE = r"`([\w*-]+\.(?:c|h|sh|py|md|lua|txt|json|cmake))`"
NAME = r"(?:`|\b)([a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?:\(\)|`)"
CALL = r"`([a-z]\w*)\(\)`"
# `SYMBOL` in `FILE`, and in `FILE`
SYMBOL = r"`((?:struct |enum )?\w+)` in ((?:`[\w./-]+`(?:,? and in )?)+)"


def tracked():
    found = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=False)
    names = found.stdout.split("\n") if found.returncode == 0 else [n[2:] for n in glob.glob("./**", recursive=True)]
    return {name for name in names if os.path.isfile(name)}


def folders(files):
    found = set()
    for name in files:
        while name := os.path.dirname(name):
            found.add(name)
    return found


def exists(path, base, files, dirs):
    """Whether it is a file, folder or pattern relative to the root or to the document; programs may omit .c."""
    pattern = re.sub(PLACEHOLDER, "*", path).rstrip("/.")
    places = [pattern, os.path.normpath(os.path.join(base, pattern))]
    if any("*" in p for p in places):
        return any(fnmatch.fnmatch(name, p) for p in places for name in files | dirs)
    return any(p in files or p in dirs or p + ".c" in files for p in places)


def complaints(documents, files, words, sources):
    """`words` are all identifiers of the sources; `sources` maps files to texts, for the tour."""
    dirs = folders(files)
    tops = {name.split("/")[0] for name in files}
    names = {os.path.basename(name) for name in files}
    for document, text in documents.items():
        base = os.path.dirname(document)
        for number, line in enumerate(text.split("\n"), 1):
            at = f"{document}:{number}"
            if len(line) > COLUMNS and not line.startswith("|"):
                yield f"{at}: more than {COLUMNS} columns"
            for path in re.findall(PATH, line):
                if path.split("/")[0] in tops and not exists(path, base, files, dirs):
                    yield f"{at}: there is no {path}"
            for name in re.findall(FILE, line):
                if not fnmatch.filter(names, re.sub(PLACEHOLDER, "*", name)):
                    yield f"{at}: there is no file {name}"
            for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", line):
                if not exists(link, base, files, dirs):
                    yield f"{at}: links to {link}, which is not there"
            for name in re.findall(NAME, line):
                if name not in words:
                    yield f"{at}: {name} stands in no source"
            if document == "doc/tour.md":
                yield from check_tour(at, line, sources)


def check_tour(at, line, sources):
    """A definition has the function's name, followed by '(', in a line that begins in the first column."""
    paths = [path for path in re.findall(r"`([\w./-]+\.[ch])`", line) if path in sources]
    for name in re.findall(CALL, line):
        definition = rf"^\w[^;\n=]*\b{name}\("
        if not any(re.search(definition, sources[path], flags=re.M) for path in paths):
            yield f"{at}: {name}() is defined in none of the files of this line"
    for name, where in re.findall(SYMBOL, line):
        definition = rf"^{name} \{{" if " " in name else rf"\b{name}\b"
        for path in re.findall(r"`([\w./-]+)`", where):
            if not re.search(definition, sources.get(path, ""), flags=re.M):
                yield f"{at}: {name} is not in {path}"


def self_test():
    """Checks that each fault is found, and nothing else."""
    files, sources = {"core/a.c", "doc/a.md", "doc/tour.md"}, {"core/a.c": "int a_get(int n)\n{\n    return a_put(n);\n}\n"}
    words = {"a_get", "a_put"}
    good = "See `core/a.c`, `a.c`, core/NAME.c, core/*.c, [a](a.md): `a_get()`. | doc/performance"
    assert not list(complaints({"doc/a.md": good.split(" |")[0]}, files, words, sources))
    for line, said in (("core/b.c", "no core/b.c"), ("core/*.h", "no core/*.h"), ("`b.c`", "no file b.c"), ("[a](b.md)", "links to b.md"),
                       ("`b_get()`", "b_get stands"), ("x" * 121, "more than 120")):
        found = list(complaints({"doc/a.md": line}, files, words, sources))
        assert len(found) == 1 and said in found[0], (line, found)
    assert not list(complaints({"doc/tour.md": "`core/a.c` `a_get()`"}, files, words, sources))
    assert not list(complaints({"doc/tour.md": "`struct a` in `core/a.c`; `n` in `core/a.c`"}, files, words, {"core/a.c": "struct a {\n  int n"}))
    found = list(complaints({"doc/tour.md": "`struct n` in `core/a.c`; `m` in `core/a.c`"}, files, words, {"core/a.c": "struct a {\n  int n"}))
    assert len(found) == 2 and all("is not in core/a.c" in f for f in found), found
    found = list(complaints({"doc/tour.md": "`core/a.c` `a_put()`"}, files, words, sources))
    assert len(found) == 1 and "defined in none" in found[0], found


def main():
    files = tracked()
    texts = {n: open(n, encoding="utf-8", errors="replace").read() for n in files if not n.endswith((".pcap", ".pcapng", ".bin")) and "corpus/" not in n}
    documents = {n: t for n, t in sorted(texts.items()) if n.endswith(".md")}
    sources = {n: t for n, t in texts.items() if not n.endswith(".md")}
    words = set().union(*(re.findall(r"[a-z]\w*", t) for t in sources.values())) | {os.path.splitext(os.path.basename(n))[0] for n in files}
    said = list(complaints(documents, files, words, sources))
    print("\n".join(said) or f"documents: {len(documents)} documents name only what exists")
    sys.exit(bool(said))


if sys.argv[1:] == ["--self-test"]:
    self_test()
main()
