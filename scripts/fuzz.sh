#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# fuzz.sh SECONDS JOBS - runs each libFuzzer program of the build for SECONDS, JOBS of them at once. New inputs are kept
# in the build; fuzz/corpus is only read. The inputs of a failure are left in the build too, and their path is printed.
set -euo pipefail

seconds=${1:?how many seconds for each target}
jobs=${2:-1}
out=$RDDP_BUILD_DIR/fuzz
cd "$out"

fuzz_target() { # NAME
    local name=$1
    mkdir -p "learnt/$name" "found/$name"
    if ! "./$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$out/found/$name/" "learnt/$name" "$RDDP_SOURCE_DIR/fuzz/corpus/$name" >"$name.log" 2>&1; then
        tail -60 "$name.log"
        echo "fuzz: $name failed; its inputs are in $out/found/$name" >&2
        return 1
    fi
    echo "fuzz: $name for $seconds s:" "$(grep -E 'DONE|number_of_executed_units' "$name.log" | tr '\n' ' ')"
}

running=0 failed=0
take_one() { # waits until one has ended
    wait -n || failed=1
    running=$((running - 1))
}
for source in "$RDDP_SOURCE_DIR"/fuzz/*.c; do
    name=$(basename "$source" .c)
    [ "$name" != replay ] || continue
    ((running < jobs)) || take_one
    [ $failed = 0 ] || break
    fuzz_target "$name" &
    running=$((running + 1))
done
while ((running)); do
    take_one
done
exit $failed
