#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# lint.sh [WHAT...] - checks the rules of STYLE.md that a machine can check, or those called WHAT. Reports all faults, then fails.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

mapfile -d '' -t all < <(git ls-files -zco --exclude-standard 2>/dev/null | sort -zu | while IFS= read -rd '' f; do [ ! -f "$f" ] || printf '%s\0' "$f"; done)
[ ${#all[@]} -gt 0 ] || mapfile -d '' -t all < <(find . \( -path ./build -o -path ./.git \) -prune -o -type f -printf '%P\0')
only() { # PATTERN: the files whose name matches
    printf '%s\n' "${all[@]}" | grep -E "$1"
}
mapfile -t c < <(only '\.[ch]$')
mapfile -t sources < <(only '^(base|core|wire|conn|tcp|sctp|roce|loop|endpoint|stream|drive|api|rpc|nfs|http|verbs|tools)/.*\.c$')
# A header without a guard is a template, to be included in the middle of another file.
mapfile -t headers < <(only '^(base|core|wire|conn|tcp|sctp|roce|loop|endpoint|stream|drive|api|rpc|nfs|http|verbs|include)/.*\.h$' | xargs -r grep -lE '^#(ifndef|pragma once)')
mapfile -t shell < <(printf '%s\0' "${all[@]}" | xargs -0 awk 'FNR == 1 { if (/^#!.*[\/ ](ba)?sh( |$)/) print FILENAME; nextfile }')
# Data and documents have no licence line.
mapfile -t build < <(only '(^|/)(CMakeLists\.txt|Makefile)$|\.(cmake|py|lua)$')
mapfile -t licensed < <(only '(\.([ch]|sh|py|lua|cmake|in|map)|Makefile|CMakeLists\.txt|\.clang-format)$'; printf '%s\n' "${shell[@]}")

layers() { scripts/layering.sh; }

# Other versions lay out some lines otherwise, or give other false alarms. CI has that of Debian 12.
is_of() { # TOOL VERSION WHAT
    "$1" --version | grep -qF " $2" || { echo "lint: $3: skipped, it wants $1 $2"; return 1; }
}

# Prints the first line of each file that `make format` would change.
layout() {
    is_of clang-format 14. layout || return 0
    ! clang-format --dry-run --style=file "${c[@]}" 2>&1 | grep -E '(warning|error):' | sort -t: -u -k1,1 | cut -c1-120 | grep .
}

licences() {
    awk '/SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only/ { ok[FILENAME] = 1 }
        FNR == 3 { nextfile }
        END { for (i = 1; i < ARGC; i++) if (!ok[ARGV[i]]) { print ARGV[i] ": no SPDX line at its top"; bad = 1 } exit bad }' "${licensed[@]}"
}

# What is not text is test data; anything else was left behind by accident.
texts() {
    printf '%s\0' "${all[@]}" | grep -zvE '^(fuzz/corpus|tests/captures)/' | xargs -0 python3 -c 'import sys
bad = 0
for name in sys.argv[1:]:
    octets = open(name, "rb").read()
    if b"\0" in octets or octets.decode(errors="replace").encode() != octets:
        bad = print(name + ": not text, and no test data") or 1
sys.exit(bad)'
}

# The words are written in two pieces so that this file does not match itself. The X's in mktemp templates are no words.
# A warning that a pragma switches off, even for a while, would be off in all files that clang_reads.py reads behind it.
words() {
    local bad=0
    ! grep -nwE "TO""DO|FIX""ME|X""XX" "${c[@]}" "${shell[@]}" "${build[@]}" || bad=1
    ! grep -nE '^\s*#\s*pragma\s+(clang|GCC)\s+diagnostic|\b_Pragma\b' "${c[@]}" || bad=1
    return $bad
}

# Words that send a native reader back to the start of the sentence (STYLE.md 18a). STYLE.md quotes them.
plain='^(base|core|wire|conn|tcp|sctp|roce|loop|endpoint|stream|drive|api|rpc|nfs|http|verbs|include|tools|examples|bench|fuzz|tests|packaging|wireshark|doc)/|^(ARCHITECTURE|README|CONTRIBUTING)\.md$'
others='^tests/(interop/kernel/guest-init$|vectors/)' # a user called nobody; data
# Names that had to be explained where the field has a word that needs none, also as a part of a name.
named='^(base|core|wire|conn|tcp|sctp|roce|loop|endpoint|stream|drive|api|rpc|nfs|http|verbs|include|tools)/.*\.[ch]$'
explained='unsaid|farewell|hush|bury|habit|spoilt|laps|strangers?|heard|visitors?|bells'
wording() {
    local bad=0
    ! only "$plain" | grep -vE "$others" | xargs grep -nwiE 'whom|nobody|somebody|anew|dear|so many|for ever' || bad=1
    ! only "$named" | xargs grep -niE "(^|[^a-z])($explained)([^a-z]|\$)|_told\b|\btold_" || bad=1
    return $bad
}

# A function begins and ends with a brace in the first column, which the layout check has verified before.
sizes() {
    awk 'FNR == 1 { start = 0 }
        FNR == 501 { print FILENAME ": more than 500 lines"; bad = 1 }
        length($0) > 120 && FILENAME ~ /\.[ch]$/ { print FILENAME ":" FNR ": more than 120 columns"; bad = 1 }
        /^{$/ { start = FNR }
        /^}/ && start { 
            n = FNR - start - 1
            if (n > 70) { print FILENAME ":" start ": a function of " n " lines, more than 70"; bad = 1 }
            start = 0
        }
        END { exit bad }' "${c[@]}" "${shell[@]}"
}

# Each header must compile by itself. Those that need libtirpc and libfuse3 are left out where one of these is missing.
headers() {
    local header found bad=0 theirs='^(rpc/tirpc_|nfs/mount/)'
    read -ra found <<<"$(pkg-config --silence-errors --cflags libtirpc fuse3)"
    for header in "${headers[@]}"; do
        [[ ${#found[@]} == 0 && $header =~ $theirs ]] && continue
        ${CC:-cc} -std=gnu11 -D_GNU_SOURCE= -Wall -Wextra -Werror -I. -Iinclude "${found[@]}" -fsyntax-only -x c - <<<"#include \"${header#include/}\"" || bad=1
    done
    return $bad
}

# What gcc accepts, clang may refuse, and warnings are errors: each source with the flags of the build, but without code.
clang_reads() {
    local build bad=0
    build=$(mktemp -d)
    cmake -S . -B "$build" -DCMAKE_C_COMPILER=clang --log-level=ERROR >/dev/null || bad=1
    scripts/clang_reads.py "$build" || bad=1
    rm -rf "$build"
    return $bad
}

# The suppressed checks give false alarms: they lose track of what a caller frees, want a file for an anonymous mmap(),
# and reject readdir(), which is safe in glibc. The two files with a CRC table are left out: expanding its chain of
# enumerators takes cppcheck half a minute.
analysis() {
    local files
    is_of cppcheck 2.10 cppcheck || return 0
    mapfile -t files < <(printf '%s\n' "${sources[@]}" | grep -vxE 'base/(crc32c|crcseg)\.c')
    printf '%s\0' "${files[@]}" | xargs -0 -n 60 -P "$(nproc)" cppcheck --quiet --std=c11 --enable=performance,portability \
        --inline-suppr --error-exitcode=1 --library=posix -I. -Iinclude \
        --suppress={missingIncludeSystem,memleak,resourceLeak,invalidFunctionArg,readdirCalled}
}

# A program that cannot run here says why, in the line before: what runs the tests wants the reason of each.
skips() {
    local tests
    mapfile -t tests < <(only '^tests/.*\.c$')
    awk 'FNR == 1 { in_main = 0 }
        /^int main\(/ { in_main = 1 }
        in_main && /return 77;/ && before !~ /put|print/ { print FILENAME ":" FNR ": is skipped and does not say why"; bad = 1 }
        { before = $0 }
        END { exit bad }' "${tests[@]}"
}

declared() { scripts/declared.py --self-test; }

names() { scripts/names.py; }
members() { scripts/members.py --self-test; }

pages() { scripts/pages.py --self-test; }
documents() { scripts/documents.py --self-test; }
commits() { scripts/commits.sh --self-test; }
measured() { PYTHONDONTWRITEBYTECODE=1 python3 bench/report.py --check; }

scripts() {
    printf '%s\0' "${shell[@]}" |
        xargs -0 -n 20 -P "$(nproc)" shellcheck --severity=warning --external-sources --source-path=SCRIPTDIR
}

failed=() wanted=("$@") checks=0
check() { # FUNCTION TOOL WHAT
    [ ${#wanted[@]} -eq 0 ] || printf '%s\n' "${wanted[@]}" | grep -qxF "$3" || return 0
    ((++checks))
    if ! command -v "$2" >/dev/null; then
        echo "lint: $3: skipped, $2 is not installed"
    elif ! "$1"; then
        echo "lint: $3: FAILED" >&2
        failed+=("$3")
    fi
}
check layers nm "layers"
check layout clang-format "layout"
check licences awk "licences"
check texts python3 "no binary files"
check words grep "words"
check wording grep "wording"
check sizes awk "sizes"
check headers "${CC:-cc}" "headers stand alone"
check clang_reads clang "clang"
check skips awk "skipped tests"
check declared python3 "declarations"
check names python3 "names"
check members python3 "members"
check pages python3 "manual pages"
check documents python3 "documents"
check commits git "commits"
check measured python3 "published measurements"
check analysis cppcheck "cppcheck"
check scripts shellcheck "shellcheck"
[ ${#failed[@]} -eq 0 ] || exit 1
[ $checks -ge ${#wanted[@]} ] || { echo "lint: some of these are no checks: ${wanted[*]}" >&2; exit 2; }
echo "lint: clean"
