#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# check.sh BUILD CTEST-OPTION... - runs tests of a build, and then says of each that was skipped, or left something out, why.
# A test that is skipped without a word is a fault.
# With RDDP_UNSTEADY=FILE up to three tests that failed run once more, alone: one that passes then was disturbed by what ran
# beside it. FILE gets its name, and it is a fault of the test all the same. A crash, or what a sanitizer reports, is none,
# but for memory that a test leaves behind as it fails.
set -uo pipefail

build=$(cd "${1:?usage: check.sh BUILD CTEST-OPTION...}" && pwd) || exit
shift
report=$(mktemp)
trap 'rm -f "$report" "$report.out"' EXIT

# Tests talk over the loopback interface, which is down in a new network namespace.
is_loopback_up() { (: >/dev/udp/127.0.0.1/9) 2>/dev/null; }
is_loopback_up || ip link set lo up 2>/dev/null
is_loopback_up || { echo "check: the loopback interface is down: run 'ip link set lo up'" >&2; exit 1; }

ctest --test-dir "$build" --output-on-failure --no-tests=error --output-junit "$report" "$@" | tee "$report.out"
code=${PIPESTATUS[0]}
failed=$build/Testing/Temporary/LastTestsFailed.log

# Is there no fault in what they said that forbids to run them again? Each test is asked for itself.
may_be_busy() {
    awk '
        function judge() { faults += is_fault || (has_left && !has_failed); is_fault = has_left = has_failed = 0 }
        / Test +#[0-9]+: / { judge() }
        /\[  FAILED  \]/ { has_failed = 1 }
        /ERROR: LeakSanitizer|SUMMARY: AddressSanitizer: [0-9]+ byte/ { has_left = 1; next }
        /\*\*\*Exception|(Address|Leak|Thread)Sanitizer|runtime error:/ { is_fault = 1 }
        END { judge(); exit faults > 0 }' "$report.out"
}
once_more() {
    local names
    [ -n "${RDDP_UNSTEADY:-}" ] && [ -s "$failed" ] && [ "$(wc -l <"$failed")" -le 3 ] && may_be_busy || return 1
    names=$(sed 's/^[0-9]*://' "$failed" | paste -sd ' ')
    printf '\nOnce more, alone: %s\n' "$names"
    ctest --test-dir "$build" --output-on-failure --rerun-failed || return 1
    printf '\nUNSTEADY, passed only alone: %s\n' "$names"
    echo "$names" >>"$RDDP_UNSTEADY"
}
[ "$code" = 0 ] || ! once_more || code=0

# A skipped test ends with its reason; one that leaves out a part says so in a line of its own.
reasons() {
    sed 's/&quot;/"/g; s/&apos;/'"'"'/g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' "$report" | awk '
        match($0, /<testcase name="[^"]*"/) { name = substr($0, RSTART + 16, RLENGTH - 17); skipped = reading = 0; last = "" }
        /<skipped / { skipped = 1 }
        sub(/.*<system-out>/, "") { reading = 1 }
        /<\/testcase>/ { if (skipped) print name ": " (last == "" ? "does not say why" : last) }
        { done = sub(/<\/system-out>.*/, "") }
        reading && /[^ \t]/ { last = $0 }
        reading && /left out: / && !skipped { print name ": " $0 }
        done { reading = 0 }'
}
said=$(reasons)
[ -z "$said" ] || printf '\nSkipped, or left out:\n%s\n' "$said"
! grep ': does not say why$' <<<"$said" >/dev/null || code=1
exit "$code"
