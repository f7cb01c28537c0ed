#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""members.py [--self-test] - checks that no struct has more than LIMIT members, which a reader takes in at a glance.

Each declarator is a member. The members of a nested struct without a name belong to its owner; a nested struct with a
name counts once.
"""

import re
import subprocess
import sys

LIMIT = 30
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\\\n]|\\.|\\\n)*', re.S | re.M)
OPENS = re.compile(r"\b(?:struct|union)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)?(\w*)\s*\{")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def end_of(text, at):
    """Returns the position behind the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    return len(text)


def declarators(statement):
    """Counts declarators: commas outside of parentheses and brackets separate them."""
    depth = commas = 0
    for c in statement:
        depth += (c in "([") - (c in ")]")
        commas += c == "," and depth == 0
    return commas + 1


def members(body):
    count, at = 0, 0
    while at < len(body):
        semicolon, brace = body.find(";", at), body.find("{", at)
        if semicolon < 0:
            break
        if 0 <= brace < semicolon:
            end = end_of(body, brace)
            semicolon = body.find(";", end)
            name = body[end:semicolon].strip()
            is_enum = re.match(r"\s*enum\b", body[at:brace])
            count += declarators(name) if name else 0 if is_enum else members(body[brace + 1:end - 1])
        else:
            count += declarators(body[at:semicolon])
        at = semicolon + 1
    return count


def too_many(text):
    """Yields (line, tag, members) for each struct that is too large."""
    text = NOT_CODE.sub(blank, text)
    for match in OPENS.finditer(text):
        start = match.end() - 1
        count = members(text[start + 1:end_of(text, start) - 1])
        if count > LIMIT:
            yield text.count("\n", 0, match.start()) + 1, match.group(1) or "without a name", count


def self_test():
    many = "".join(f"int m{i}, *n{i};\n" for i in range(LIMIT // 2))
    assert not list(too_many("struct whole {" + many + "};"))
    assert list(too_many("struct a {" + many + "char c[3]; /* one; two; */ };")) == [(1, "a", LIMIT + 1)]
    assert list(too_many("\nstruct a { union { int i; struct b *b; };" + many + "};")) == [(2, "a", LIMIT + 2)]
    assert not list(too_many("struct a { struct { int i, k; } s; " + many[:-1].replace("int m0, *n0;", "") + "};"))
    assert list(too_many("struct a { int (*f)(int, char *); struct b { int i, k; } s;" + many + "};")) == [(1, "a", LIMIT + 2)]
    assert [tag for _, tag, _ in too_many("struct o { struct i {" + many + "int x; } i; };")] == ["i"]


def main():
    if "--self-test" in sys.argv:
        self_test()
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.c", "*.h"], capture_output=True, text=True, check=True)
    structs = bad = 0
    for name in files.stdout.split():
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            continue
        structs += len(OPENS.findall(text))
        for line, tag, count in too_many(text):
            print(f"{name}:{line}: struct {tag} has {count} members, more than {LIMIT}")
            bad += 1
    if not bad:
        print(f"members: {structs} structs, all with at most {LIMIT} members")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
