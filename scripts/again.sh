#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# again.sh BUILD RUNS LOAD [CTEST-OPTION...] - runs the tests of `make check` RUNS times in a row beside LOAD processes that
# only compute. Prints one line a run, and stops at the first failure, with what the failed tests said.
set -euo pipefail

usage="usage: again.sh BUILD RUNS LOAD [CTEST-OPTION...]"
build=${1:?$usage} runs=${2:?$usage} load=${3:?$usage}
shift 3
log=$(mktemp)
spinning=()
cleanup() {
    [ ${#spinning[@]} = 0 ] || kill "${spinning[@]}" 2>/dev/null || true
    rm -f "$log"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

for ((i = 0; i < load; i++)); do
    (while :; do :; done) &
    spinning+=($!)
done
for ((run = 1; run <= runs; run++)); do
    began=$SECONDS result=passed
    ctest --test-dir "$build" --output-on-failure --no-tests=error -j $((2 * $(nproc))) -LE 'kernel|cross' "$@" >"$log" 2>&1 || result=FAILED
    read -r average _ </proc/loadavg
    echo "run $run of $runs: $((SECONDS - began)) s, load $average, $result: $(grep 'tests passed' "$log" || tail -n 1 "$log")"
    [ $result = passed ] || { cat "$log"; exit 1; }
done
