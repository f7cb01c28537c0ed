#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""mutants.py BUILD [COUNT|WORD] - puts the bugs of tests/mutants.txt into a copy of the tree, one after the other, and the
test named with each has to fail. COUNT: this many of them, spread over the list; WORD: those in whose line it stands. What is
built lies in BUILD."""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SECONDS = 120  # a hanging test has detected the bug as well
JOBS = "2"


class Mutant:
    def __init__(self, number, line):
        parts = [part.strip(" ").replace("\\n", "\n") for part in line.split("@@")]
        if len(parts) != 4:
            raise SystemExit(f"mutants: line {number} is not FILE @@ TEXT @@ REPLACEMENT @@ TEST")
        self.line, self.number, (self.file, self.text, self.replacement, self.test) = line, number, parts
        test, _, self.sanitizer = self.test.partition(" under ")
        self.kind, self.name = test.split(".")
        self.is_script = self.kind == "lint"  # of the tree, which is not compiled for it
        self.target = "" if self.is_script else f"{self.kind}_{self.name}"
        self.source = f"tests/{self.name}.py" if self.is_script else f"tests/{self.kind}/{self.name}.c"

    def title(self):
        return f"{self.file}: {self.text.splitlines()[0]} -> {self.replacement.splitlines()[0] if self.replacement else ''}"


def read_list(source, which):
    lines = (source / "tests/mutants.txt").read_text(encoding="utf-8").split("\n")
    mutants = [Mutant(i, line) for i, line in enumerate(lines, 1) if line and not line.startswith("#")]
    stale = []
    for m in mutants:
        found = (source / m.file).read_text(encoding="utf-8").count(m.text) if (source / m.file).is_file() else 0
        if found != 1 or not (source / m.source).is_file():
            stale.append(f"mutants: line {m.number}: '{m.text}' stands {found} times in {m.file}, and once is wanted; its test is "
                         f"{m.source}")
    if stale:
        raise SystemExit("\n".join(stale))
    if which and not which.isdigit():
        return [m for m in mutants if which in m.line]
    step = max(len(mutants) / int(which), 1) if which else 1
    return [mutants[int(i * step)] for i in range(int(len(mutants) / step))]


def copy_tree(source, tree):
    """Copies only what has changed, so that the rest need not be built again."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=source, capture_output=True, text=True)
    files = names.stdout.split("\n") if not names.returncode else [
        str(f.relative_to(source)) for f in source.rglob("*") if f.is_file() and "build" not in f.parts]
    for name in filter(None, files):
        old, new = tree / name, source / name
        if new.is_file() and not (old.is_file() and old.read_bytes() == new.read_bytes()):
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(new, old)
    for old in list(tree.rglob("*.[ch]")):
        if not (source / old.relative_to(tree)).is_file():
            old.unlink()


def configure(tree, out, sanitizer):
    if shutil.which("ninja"):
        os.environ["CMAKE_GENERATOR"] = "Ninja"
    subprocess.run(["cmake", "-S", tree, "-B", out, "--log-level=WARNING", "-DRDDP_WERROR=OFF", "-DCMAKE_BUILD_TYPE=None",
                    f"-DRDDP_SANITIZE={sanitizer}", "-DCMAKE_C_FLAGS=-O1 -w"], check=True, stdout=subprocess.DEVNULL)


def build(out, targets):
    targets = [target for target in targets if target]
    command = ["cmake", "--build", out, "-j", JOBS, "--target", *targets] if targets else ["true"]
    return subprocess.run(command, capture_output=True, text=True)


@functools.cache
def environment(out, test):
    """What CTest adds to the environment of a test, such as the device that a program of verbs is for."""
    listed = subprocess.run(["ctest", "--test-dir", out, "--show-only=json-v1", "-R", "^" + re.escape(test) + "$"],
                            capture_output=True, text=True, check=True)
    properties = [p for t in json.loads(listed.stdout)["tests"] for p in t["properties"] if p["name"] == "ENVIRONMENT"]
    return dict(setting.split("=", 1) for p in properties for setting in p["value"])


def passes(out, m):
    """Returns True, False, or a word for a test that cannot run here. A test that hangs has not passed."""
    where = {**environment(out, m.kind + "." + m.name), "RDDP_SOURCE_DIR": str(out.parent / "tree"),
             "RDDP_BUILD_DIR": str(out)}
    program = out.parent / "tree" / m.source if m.is_script else out / "tests" / m.kind / m.name
    try:
        got = subprocess.run([program], cwd=out, env={**os.environ, **where}, timeout=SECONDS,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return False
    return "skipped" if got.returncode == 77 else got.returncode == 0


def try_one(tree, out, m):
    path = tree / m.file
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace(m.text, m.replacement), encoding="utf-8")
    try:
        made = build(out, [m.target])
        if made.returncode:
            return "does not compile, so it is no mutant:\n" + made.stdout + made.stderr
        return "" if not passes(out, m) else f"{m.test} did not notice"
    finally:
        path.write_text(whole, encoding="utf-8")


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    source, work = pathlib.Path.cwd(), pathlib.Path(sys.argv[1]).resolve()
    mutants = read_list(source, sys.argv[2] if len(sys.argv) > 2 else "")
    tree = work / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(source, tree)
    outs = {m.sanitizer: work / (m.sanitizer or "plain") for m in mutants}
    for sanitizer, out in outs.items():
        configure(tree, out, sanitizer)
        made = build(out, sorted({m.target for m in mutants if m.sanitizer == sanitizer}))
        if made.returncode:
            raise SystemExit("mutants: the tree itself does not build\n" + made.stdout[-3000:] + made.stderr[-3000:])
    usable = {}
    for m in mutants:
        if m.test not in usable:
            usable[m.test] = passes(outs[m.sanitizer], m)
            if usable[m.test] is False:
                raise SystemExit(f"mutants: {m.test} fails without a bug")
    lived, left_out = [], [m for m in mutants if usable[m.test] == "skipped"]
    for m in mutants:
        if m in left_out:
            continue
        why = try_one(tree, outs[m.sanitizer], m)
        if why:
            lived.append(m)
            print(f"mutants: line {m.number}: {m.title()}: {why}", flush=True)
    for m in left_out:
        print(f"mutants: line {m.number} is skipped: {m.test} cannot run here")
    print(f"mutants: {len(mutants) - len(lived) - len(left_out)} of {len(mutants)} were detected")
    return bool(lived)


sys.exit(main())
