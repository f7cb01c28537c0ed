#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""declared.py [--self-test] - checks the headers: each prototype is declared once and defined, and
each prototype, member and limit is used somewhere else."""
import collections
import glob
import re
import sys

FLOORS = ("base", "core", "wire", "conn", "tcp", "sctp", "roce", "loop", "endpoint", "stream", "drive", "api", "rpc", "nfs", "http", "verbs", "tools", "include")
USERS = FLOORS + ("tests", "fuzz", "examples", "bench")


def code(text):
    """Removes comments, strings, characters and preprocessor lines other than #define; keeps line numbers."""
    blank = lambda m: "\n" * m.group(0).count("\n")
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(\\.|[^'\\\n])'", "0", text)
    return re.sub(r"^[ \t]*#[ \t]*(?!define)[a-z]+([^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def outermost(text):
    """Returns the text outside of braces; each body becomes `{}`."""
    text = re.sub(r"^[ \t]*#([^\n]*\\\n)*[^\n]*", "", re.sub(r'extern ""\s*\{', "", text), flags=re.M)
    depth, out = 0, []
    for c in text:
        depth -= c == "}" and depth > 0
        if depth == 0:
            out.append(c)
        depth += c == "{"
    return "".join(out)


def functions(text, end):
    """Returns the names of functions whose head ends with `end`: ';' for prototypes, '{' for definitions."""
    pattern = r"(?:^|[;}])\s*((?:[\w*]+\s+|\*)+?)\**(\w+)\s*\((?:[^(){};]|\([^()]*\))*\)\s*(?:__attribute__\s*\(\([^;{]*\)\)\s*)?(?=" + re.escape(end) + ")"
    for match in re.finditer(pattern, outermost(text), flags=re.S):
        words = match.group(1).split()
        if words and not {"typedef", "static", "return", "else"} & set(words):
            yield match.group(2)


def limits_and_members(name, text):
    for number, line in enumerate(text.split("\n"), 1):
        found = re.findall(r"\b([A-Z][A-Z0-9_]+) = ", line)
        if name.endswith(".h") and re.fullmatch(r"\s+[\w\s*,\[\]+()]+;\s*", line) and "return" not in line:
            found += re.findall(r"\b([a-z]\w*)(?:\[[^\]]*\])?\s*(?=[,;])", line)
        for word in found:
            yield number, word


def complaints(files):
    """Checks `files`, a map from names to texts."""
    files = {name: code(text) for name, text in files.items()}
    words = collections.Counter()
    for text in files.values():
        words.update(re.findall(r"[A-Za-z_]\w*", text))
    own = {name: text for name, text in files.items() if name.startswith(FLOORS)}
    defined = {f for name, text in own.items() for f in functions(text, "{")}
    for name, text in sorted(own.items()):
        if name.endswith(".h"):
            for function, n in collections.Counter(functions(text, ";")).items():
                if n > 1:
                    yield f"{name}: {function}() is declared {n} times"
                if function not in defined:
                    yield f"{name}: {function}() is declared and nowhere defined"
                elif words[function] < 3 and not name.startswith("include"):
                    yield f"{name}: {function}() is declared and nowhere called"
        if not name.startswith("include"):
            for number, word in limits_and_members(name, text):
                if words[word] == 1:
                    yield f"{name}:{number}: {word} stands nowhere else"


def self_test():
    """Checks that each fault is found, and nothing else."""
    base = {"base/a.h": "enum { A_MAX = 3 };\nstruct a {\n    int n;\n};\nint a_get(const struct a *a);\n",
            "base/a.c": "int a_get(const struct a *a)\n{\n    return a->n < A_MAX;\n}\n",
            "core/b.c": "int b(void)\n{\n    return a_get(0);\n}\n"}
    assert list(complaints(base)) == [], list(complaints(base))
    for add, said in (("int a_put(struct a *a, void (*f)(int));\n", "nowhere defined"), ("int a_get(const struct a *a);\n", "declared 2 times"),
                      ("struct b {\n    int wanted, n;\n};\n", "wanted stands"), ("enum { B_MAX = 2 };\n", "B_MAX stands")):
        found = list(complaints({**base, "base/a.h": base["base/a.h"] + add}))
        assert len(found) == 1 and said in found[0], (add, found)
    unused = dict(base)
    del unused["core/b.c"]
    assert "nowhere called" in "".join(complaints(unused))


if sys.argv[1:] == ["--self-test"]:
    self_test()
names = [n for folder in USERS for n in glob.glob(f"{folder}/**/*.[ch]", recursive=True)]
said = list(complaints({n: open(n, encoding="utf-8").read() for n in names}))
print("\n".join(said) or "declared: everything that headers declare is defined and used")
sys.exit(bool(said))
