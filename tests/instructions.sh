#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# instructions.sh [--update] - counts with callgrind the instructions in user space that a message costs at each end
# (bench/instructions.c) and compares them with bench/instructions.txt: none may grow by more than 2 % and 20 instructions. In
# a build of `make fast` both ends of a message of 8 octets alone have to cost 10 % less together, over RoCE 13: to optimise
# across files saves 7 and 10, and what the profile adds makes it 12 and 17. What copies 64 KiB may cost 5 % more. --update
# writes that file again, for a change that is worth what it costs, or that made something cheaper.
set -euo pipefail

table=${RDDP_SOURCE_DIR:?}/bench/instructions.txt
program=${RDDP_BUILD_DIR:?}/bench/instructions
cache=$RDDP_BUILD_DIR/CMakeCache.txt
times=1000
cannot() { echo "instructions: cannot run here: $1"; exit 77; }
[ -x "$program" ] || cannot "this build has no benchmarks"
command -v valgrind >/dev/null || cannot "no valgrind"
grep -q '^RDDP_SANITIZE:STRING=$' "$cache" || cannot "a build with sanitizers"
! grep -q '^RDDP_WITHOUT:STRING=.*roce' "$cache" || cannot "this build has no RoCE"

# The counts are those of one compiler, and of the variants of memcpy() and CRC for one kind of processor.
grep -qw avx2 /proc/cpuinfo || cannot "the table was counted on a processor with AVX2"
compiler=$($(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$cache") --version | sed -n '1s/^[^ ]* //p')
fast=0
! grep -q '^RDDP_PROFILE:STRING=use$' "$cache" || fast=1
[ "${1:-}" = --update ] || [ "$(sed -n 's/^# counted with //p' "$table")" = "$compiler" ] ||
    cannot "the table was counted with another compiler than $compiler"

count() { # FUNCTIONS OPERATION OCTETS LIST: instructions a message, rounded
    local all
    all=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "--toggle-collect=$1" "$program" "${@:2}" "$times" 2>&1 |
        sed -n 's/.*Collected : //p')
    [ -n "$all" ] || { echo "instructions: $* does not count" >&2; exit 1; }
    echo $(((all + times * $4 / 2) / (times * $4)))
}

# least LAST FUNCTIONS...: as count, of two counts the smaller one if the first is more than LAST: a slow processor lets more
# timers pass between two messages.
least() {
    local first second
    first=$(count "${@:2}") || return 1
    [ $((100 * first)) -gt $((102 * $1 + 2000)) ] || { echo "$first"; return; }
    second=$(count "${@:2}") || return 1
    echo $((second < first ? second : first))
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
{
    sed '/^# counted with/q' "$table" | sed "s|^# counted with.*|# counted with $compiler|"
    while read -r operation octets list client server; do
        printf '%-10s %6s %5s %7s %7s\n' "$operation" "$octets" "$list" \
            "$(least "$client" 'client_*' "$operation" "$octets" "$list")" \
            "$(least "$server" 'server_*' "$operation" "$octets" "$list")"
    done < <(grep -v '^#' "$table")
} >"$new"
if [ "${1:-}" = --update ]; then
    cp "$new" "$table"
    exit 0
fi
paste <(grep -v '^#' "$table") <(grep -v '^#' "$new") | awk -v fast=$fast '
    { slack = fast && $2 == 65536 ? 1.05 : 1.02; most = !fast || $2 != 8 || $3 != 1 ? 9 : $1 ~ /^roce/ ? 0.87 : 0.9
      printf "%-10s %6s octets, lists of %2s: client %6d (%6d), server %6d (%6d)", $1, $2, $3, $9, $4, $10, $5
      worse = $9 > slack * $4 + 20 || $10 > slack * $5 + 20 || $9 + $10 > most * ($4 + $5)
      print worse ? "  MORE" : fast ? "" : $9 < 0.98 * $4 - 20 || $10 < 0.98 * $5 - 20 ? "  less: --update" : ""
      bad += worse }
    END { print "instructions a message, in brackets those of bench/instructions.txt: " (bad ? bad " rows cost more" : "no more")
          exit bad > 0 }'
