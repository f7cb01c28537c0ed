#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# fuzz.sh SECONDS - runs each libFuzzer program of the build for SECONDS. New inputs are kept in the build; fuzz/corpus
# is only read. The inputs of a failure are left in the build too, and their path is printed.
set -euo pipefail

seconds=${1:?how many seconds for each target}
out=$RDDP_BUILD_DIR/fuzz
cd "$out"
for source in "$RDDP_SOURCE_DIR"/fuzz/*.c; do
    name=$(basename "$source" .c)
    [ "$name" != replay ] || continue
    mkdir -p "learnt/$name" "found/$name"
    echo "fuzz: $name for $seconds s"
    if ! "./$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$out/found/$name/" "learnt/$name" "$RDDP_SOURCE_DIR/fuzz/corpus/$name" >"$name.log" 2>&1; then
        tail -60 "$name.log"
        echo "fuzz: $name failed; its inputs are in $out/found/$name" >&2
        exit 1
    fi
    grep -E 'DONE|number_of_executed_units' "$name.log" || true
done
