#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# conformance.sh - checks doc/conformance*.md against the tests: each file and test that a table names exists; each row
# names a test or gives a reason, and one of its tests names the row's ID; no ID occurs twice; no test names an unknown
# ID.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

reference='(unit|suite|sim|interop|tool)/[a-z0-9_/]+\.(c|sh)(: [a-z0-9_]+(, [a-z0-9_]+)*)?'
reason="(Nothing to show|Outside|Not built|Not offered|Not used|Open): [A-Za-z0-9]|[a-z0-9)]\\. *\\|$"
bad=0

wrong() {
    echo "conformance: $*" >&2
    bad=1
}

check_references() { # TABLE: check the references of all rows
    local table=$1 found file test
    while IFS= read -r found; do
        file=tests/${found%%:*}
        if [ ! -f "$file" ]; then
            wrong "$table names $file, which is not there"
            continue
        fi
        [[ $found == *:* ]] || continue
        IFS=', ' read -ra tests <<<"${found#*: }"
        for test in "${tests[@]}"; do
            grep -qE "^static void $test\(void \*\*" "$file" || wrong "$table names the test $test, which is not in $file"
        done
    done < <(grep -E '^\|' "$table" | grep -v 'Open:' | grep -oE "$reference" | sort -u)
}

# named[FILE ID] is set if this file contains this ID.
declare -A named=()
note_names() { # ID
    local file id
    while IFS=: read -r file id; do
        named["$file $id"]=1
    done < <(grep -rowE "$1" tests)
}

named_back() { # ROW: whether a file that it names contains its ID
    local id row=$1
    id=${row#| }
    id=${id%% *}
    while [[ $row =~ $reference ]]; do
        [ -z "${named["tests/${BASH_REMATCH[0]%%:*} $id"]:-}" ] || return 0
        row=${row#*"${BASH_REMATCH[0]}"}
    done
    return 1
}

check_rows() { # TABLE ID
    local table=$1 id=$2 row ids
    ids=$(grep -oE "^\| $id \|" "$table" | grep -oE "$id")
    while IFS= read -r row; do
        wrong "$table has $row twice"
    done < <(sort <<<"$ids" | uniq -d)
    while IFS= read -r row; do
        wrong "$table neither names a test for $row nor says why not"
    done < <(grep -E "^\| $id \|" "$table" | grep -vE "$reference|$reason" | cut -d' ' -f2)
    while IFS= read -r row; do
        named_back "$row" || wrong "$table: none of the tests for $(cut -d' ' -f2 <<<"$row") names it"
    done < <(grep -E "^\| $id \|" "$table" | grep -E "$reference")
    while IFS= read -r row; do
        wrong "tests name $row, which $table does not have: $(grep -rlE "$row\b" tests fuzz | tr '\n' ' ')"
    done < <(comm -13 <(sort -u <<<"$ids") <(grep -rhoE "\b$id\b" tests/unit tests/suite tests/sim tests/interop tests/tool fuzz \
        --include='*.[ch]' --include='*.sh' | sort -u))
    echo "conformance: $table: $(wc -l <<<"$ids") requirements, $(grep -cE "^\| $id \|.*(Not built|Open):" "$table") of them not shown in full yet"
}

check() { # TABLE ID
    check_references "$1"
    note_names "$2"
    check_rows "$1" "$2"
}

check doc/conformance.md '((MPA|DDP|RDMAP|SEG)-[0-9.]+-[0-9]+|(M44|M65|EXT)-[0-9]+)'
check doc/conformance-rpcrdma.md 'RPCR-[0-9A-C.]+-[0-9]+'
check doc/conformance-tcpopt.md 'TCPOPT-[0-9.]+-[0-9]+'
check doc/conformance-roce.md 'ROCE-[A-Z]+-[0-9]+'
check doc/conformance-sctp.md 'SCTP-[0-9][0-9.]*-[0-9RS][0-9]*[abc]?'
[ $bad = 0 ] || exit 1
