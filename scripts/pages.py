#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pages.py [--self-test] - checks the manual pages against the headers: each public call, inline ones too, is in the NAME and
the SYNOPSIS of one page of section 3, a call that nothing in the tree uses but tests is there for a reason that its NOTES give,
each page lists the errors that the header names, shows structs as they are declared,
names only members and parameters that exist, its references exist, its examples compile, and mandoc finds nothing to
complain about."""
import collections
import errno
import glob
import os
import re
import shutil
import subprocess
import sys

SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "NOTES", "EXAMPLES", "SEE ALSO")
# External pages are not checked, except that these names are known.
VARIABLES = {"RDDP_LOG"}  # of the environment
FOREIGN = ("net.", "rpc_createerr.")  # sysctls, and what another library has
OURS = r"\b((?:rddp|clnt_rdma|svc_rdma)[\w-]*)\s?\((\d)\)"


def errors_in(text):
    return {word for word in re.findall(r"\bE[A-Z0-9]{2,}\b", text) if word in errno.errorcode.values()}


def declarations(header):
    """Yields name, prototype and comments of each public call. Comments precede the call, or follow it in its line."""
    pattern = r"((?:/\*(?:[^*]|\*(?!/))*\*/\s*)?)RDDP(?:_RPC)?_API\s+([^;/]*?\b(\w+)\([^;]*\));([^\n]*)"
    for before, prototype, name, behind in re.findall(pattern, header):
        yield name, " ".join(prototype.split()), before + behind
    for prototype, name in re.findall(r"^static inline ([^;{]*?\b(\w+)\([^)]*\))[^\n]*\n\{", header, flags=re.M):
        yield name, " ".join(prototype.split()), ""


def plain(page):
    """Returns the page as plain text, without fonts and macros; `\\e` and `\\-` become what the reader sees."""
    page = re.sub(r'^\.\\".*\n', "", page, flags=re.M)
    page = re.sub(r"\\f[BIRP]", "", page)
    return page.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def words_of_macro(rest):
    return "".join(quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', rest))


def sections(page):
    found = re.split(r"^\.SH (.*)\n", plain(page), flags=re.M)
    return dict(zip((name.strip('"') for name in found[1::2]), found[2::2]))


def names_of(page):
    names = " ".join(sections(page).get("NAME", "").split()).split(" - ")[0]
    return [name for name in names.split(", ") if name]


def synopsis_of(page):
    lines = [re.match(r"\.BI? (.*)", line) for line in sections(page).get("SYNOPSIS", "").split("\n")]
    text = " ".join(words_of_macro(line.group(1)) for line in lines if line and "#include" not in line.group(1))
    return [" ".join(prototype.split()) for prototype in text.split(";") if prototype.strip()]


def examples_of(page):
    return re.findall(r"^\.EX\n(#include.*?)^\.EE", plain(page), flags=re.M | re.S)


def structs_of(text):
    """Yields the name and the members of each struct, as the compiler sees them."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for name, members in re.findall(r"^struct (\w+) \{\n(.*?)^\};", code, flags=re.M | re.S):
        yield name, " ".join(members.split())


def unknown_words(page, headers):
    """Yields what is set in italics like a member or a parameter, and stands neither in a header nor in code of the page."""
    code = "\n".join([*headers.values(), sections(page).get("SYNOPSIS", ""), *re.findall(r"^\.EX\n(.*?)^\.EE", page, flags=re.M | re.S)])
    known = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", code, flags=re.S)))
    for line in re.findall(r"^(?!\.(?:BI|\\\")).*", page, flags=re.M):
        yield from (word for word in re.findall(r"\\fI([a-z]\w+)(?=\\fR)", line) if word not in known)
        for path in re.findall(r"\\fI([a-z]\w*(?:(?:\.|->|\\->)\w+)+)(?=\\fR)", line):
            yield from (word for word in re.findall(r"\w+", path) if not path.startswith(FOREIGN) and word not in known)


def unknown_names(page, headers):
    """Yields names with our prefix that no header has. One that ends in _ stands for those that begin so."""
    known = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", "\n".join(headers.values()), flags=re.S))) | VARIABLES
    text = re.sub(r"^\.TH .*", "", plain(page), flags=re.M)
    for name in sorted(set(re.findall(r"\b(?:RDDP|rddp|clnt_rdma|svc_rdma)_\w+", text))):
        if name not in known and not (name.endswith("_") and any(word.startswith(name) for word in known)):
            yield name


def used_in(folders):
    """Returns all words of the sources in these folders."""
    words = set()
    for path in glob.iglob("*/**/*.[ch]", recursive=True):
        if path.split("/")[0] in folders:
            words.update(re.findall(r"\w+", open(path, encoding="utf-8").read()))
    return words


def check_reasons(path, page, used):
    """A call that no service, command or example uses says for whom it is: "rddp_x() is for programs that ..."."""
    notes = " ".join(sections(page).get("NOTES", "").split())
    for name in names_of(page):
        reason = f"{name}() is for programs " in notes
        if name not in used and not reason:
            yield f"{path}: {name}() has no user but tests: NOTES says why it is there (\"{name}() is for programs that ...\")"
        elif name in used and reason:
            yield f"{path}: NOTES gives a reason for {name}(), which has users"


def complaints(headers, pages, used):
    calls = {name: (prototype, said) for header in headers.values() for name, prototype, said in declarations(header)}
    libraries = {path: page for path, page in pages.items() if path.endswith(".3")}
    named = collections.Counter(name for page in libraries.values() for name in names_of(page))
    for name in calls:
        if named[name] != 1:
            yield f"{name}(): in the NAME of {named[name]} pages of section 3, wanted 1: write it into the page of its topic"
    known = {(name, os.path.splitext(path)[1][1:]) for path, page in pages.items() for name in names_of(page)}
    for path, page in pages.items():
        for name, section in set(re.findall(OURS, re.sub(r"^\.BR (\S+) \((\d)\)", r"\1(\2)", plain(page), flags=re.M))):
            if (name, section) not in known:
                yield f"{path}: refers to {name}({section}), which is not there"
    structs = dict(pair for header in headers.values() for pair in structs_of(header))
    for path, page in libraries.items():
        yield from check_library(path, page, calls)
        yield from check_reasons(path, page, used)
        yield from (f"{path}: struct {name} is declared otherwise" for name, members in structs_of(plain(page))
                    if name in structs and members != structs[name])
        yield from (f"{path}: {word} is no member or parameter of a header" for word in unknown_words(page, headers))
        yield from (f"{path}: {name} is in no header" for name in unknown_names(page, headers))


def check_library(path, page, calls):
    own, shown, parts = names_of(page), synopsis_of(page), sections(page)
    yield from (f"{path}: no section {name}" for name in SECTIONS if not parts.get(name, "").strip())
    for name in own:
        if name not in calls:
            yield f"{path}: NAME has {name}, which is no public call"
        elif calls[name][0] not in shown:
            yield f"{path}: SYNOPSIS lacks: {calls[name][0]};"
    yield from (f"{path}: SYNOPSIS has what no header declares: {s};" for s in shown if s not in [calls[n][0] for n in own if n in calls])
    header = set().union(*(errors_in(calls[name][1]) for name in own if name in calls))
    listed = errors_in(parts.get("ERRORS", ""))
    yield from (f"{path}: ERRORS lacks {word}, which the header names" for word in sorted(header - listed))
    yield from (f"{path}: ERRORS has {word}, which the header does not name for these calls" for word in sorted(listed - header))
    programs = re.findall(r"^\.EX\n(.*)", parts.get("EXAMPLES", ""), flags=re.M)
    if not programs or not all(first.startswith("#include") for first in programs):
        yield f"{path}: EXAMPLES has no program, or one that does not begin with #include"


def flags_of(package):
    found = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True, check=False)
    return found.stdout.split() if found.returncode == 0 else None


def compile_examples(pages):
    tirpc = flags_of("libtirpc") if shutil.which("pkg-config") else None
    for path, page in pages.items():
        for source in examples_of(page):
            if "<rpc/" in source and tirpc is None:
                continue
            done = subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-Iinclude",
                                   *(tirpc if "<rpc/" in source else []), "-fsyntax-only", "-x", "c", "-"], input=source, capture_output=True, text=True, check=False)
            if done.returncode:
                yield f"{path}: its example does not compile:\n{done.stderr}"


def mandoc(paths):
    if not shutil.which("mandoc"):
        print("pages: mandoc is not installed, its checks are skipped")
        return
    yield from subprocess.run(["mandoc", "-T", "lint", *paths], capture_output=True, text=True, check=False).stdout.splitlines()


PAGE = """.TH RDDP_A 3
.SH NAME
rddp_a \\- do a
.SH SYNOPSIS
.nf
.B #include <rddp/a.h>
.BI "int rddp_a(int " n );
.fi
.SH DESCRIPTION
See \\fBrddp_a\\fR(3), and \\fIn\\fR.
.EX
NULL
.EE
.SH RETURN VALUE
0.
.SH ERRORS
\\fBEINVAL\\fR
.SH NOTES
None.
.SH EXAMPLES
.EX
#include <errno.h>
int a = EINVAL;
.EE
.SH SEE ALSO
.BR rddp_a (3)
"""


def self_test():
    """Checks that each fault is found, and nothing else."""
    header, page = {"a.h": "/* Does a. -EINVAL. */\nRDDP_API int rddp_a(int n);\n"}, {"rddp_a.3": PAGE}
    assert list(complaints(header, page, {"rddp_a"})) == [], list(complaints(header, page, {"rddp_a"}))
    assert "has no user but tests" in "".join(complaints(header, page, {"rddp_b"}))
    reason = {"rddp_a.3": PAGE.replace("None.", "\\fBrddp_a\\fR() is for programs\nthat a.")}
    assert list(complaints(header, reason, {"rddp_b"})) == []
    assert "which has users" in "".join(complaints(header, reason, {"rddp_a"}))
    assert list(compile_examples(page)) == []
    for change, said in (
        (lambda h, p: (h + "RDDP_API int rddp_b(void); /* too */\n", p), "rddp_b(): in the NAME of 0 pages"),
        (lambda h, p: (h.replace("-EINVAL", "-EINVAL, -ENOMEM"), p), "ERRORS lacks ENOMEM"),
        (lambda h, p: (h + "static inline int rddp_b(int n) /* too */\n{\n", p), "rddp_b(): in the NAME of 0 pages"),
        (lambda h, p: (h + "struct s {\n    int b; /* of b */\n};\n", p.replace("NULL", "struct s {\n    int c;\n};")), "struct s is declared otherwise"),
        (lambda h, p: (h, p.replace("See ", "See \\fIroom\\fR, ")), "room is no member"),
        (lambda h, p: (h, p.replace("See ", "See \\fIn.room\\fR, ")), "room is no member"),
        (lambda h, p: (h, p.replace("See ", "See \\fIn\\->room\\fR, ")), "room is no member"),
        (lambda h, p: (h, p.replace("See ", "See \\fBRDDP_A_ROOM\\fR, ")), "RDDP_A_ROOM is in no header"),
        (lambda h, p: (h, p.replace("See ", "See \\fBrddp_room\\fR(), ")), "rddp_room is in no header"),
        (lambda h, p: (h, p.replace("fBEINVAL", "fBEINVAL and EIO")), "ERRORS has EIO"),
        (lambda h, p: (h.replace("int n", "long n"), p), "SYNOPSIS lacks: int rddp_a(long n)"),
        (lambda h, p: (h, p.replace("rddp_a \\-", "rddp_a, rddp_c \\-")), "NAME has rddp_c"),
        (lambda h, p: (h, p.replace(".SH NOTES\nNone.\n", "")), "no section NOTES"),
        (lambda h, p: (h, p.replace("See ", "See \\fBrddp\\-z\\fR(1), ")), "refers to rddp-z(1)"),
        (lambda h, p: (h, p.replace(".BR rddp_a", ".BR rddp_z")), "refers to rddp_z(3)"),
        (lambda h, p: (h, p.replace("#include <errno.h>\n", "")), "EXAMPLES has no program"),
        (lambda h, p: (h, p.replace(".SH SEE", ".EX\nint b;\n.EE\n.SH SEE")), "EXAMPLES has no program"),
    ):
        h, p = change(header["a.h"], PAGE)
        found = list(complaints({"a.h": h}, {"rddp_a.3": p}, {"rddp_a", "rddp_c"}))
        assert any(said in f for f in found) and len(found) <= 2, (said, found)
    broken = list(compile_examples({"rddp_a.3": PAGE.replace("int a =", "int a")}))
    assert len(broken) == 1 and "does not compile" in broken[0], broken


def read(pattern):
    return {path: open(path, encoding="utf-8").read() for path in sorted(glob.glob(pattern))}


if sys.argv[1:] == ["--self-test"]:
    self_test()
all_headers, all_pages = read("include/rddp/*.h"), read("doc/man/*.[1-8]")
users = used_in(("rpc", "nfs", "http", "verbs", "tools", "examples"))
bad = [*complaints(all_headers, all_pages, users), *compile_examples(all_pages), *mandoc(all_pages)]
count = sum(len(list(declarations(header))) for header in all_headers.values())
print("\n".join(bad) or f"pages: {count} public calls, each in a manual page")
sys.exit(bool(bad))
