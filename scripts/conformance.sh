#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# conformance.sh - doc/conformance.md against the tests: each file and test that it names exists, each row says something,
# no ID is there twice, and no test names an ID that is not there.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

table=doc/conformance.md
id='((MPA|DDP|RDMAP|SEG)-[0-9.]+-[0-9]+|(M44|M65|EXT)-[0-9]+)'
reference='(unit|suite|sim|interop)/[a-z0-9_/]+\.(c|sh)(: [a-z0-9_]+(, [a-z0-9_]+)*)?'
bad=0

wrong() {
    echo "conformance: $*" >&2
    bad=1
}

# All references of the table, whatever row they stand in.
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
done < <(grep -E '^\|' $table | grep -v 'Open:' | grep -oE "$reference" | sort -u)

ids=$(grep -oE "^\| $id \|" $table | grep -oE "$id")
while IFS= read -r twice; do
    wrong "$table has $twice twice"
done < <(sort <<<"$ids" | uniq -d)
while IFS= read -r empty; do
    wrong "$table says nothing of $empty"
done < <(grep -E "^\| $id \|" $table | grep -E '\|[[:space:]]*\|$' | cut -d' ' -f2)
while IFS= read -r unknown; do
    wrong "tests name $unknown, which $table does not have: $(grep -rlE "$unknown\b" tests fuzz | tr '\n' ' ')"
done < <(comm -13 <(sort -u <<<"$ids") <(grep -rhoE "\b$id\b" tests/unit tests/suite tests/sim tests/interop fuzz --include='*.[ch]' --include='*.sh' | sort -u))

[ $bad = 0 ] || exit 1
echo "conformance: $(wc -l <<<"$ids") requirements, $(grep -cE "^\| $id \|.*(Not built|Open):" <<<"$(cat $table)") of them not shown in full yet"
