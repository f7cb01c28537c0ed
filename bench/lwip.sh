#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# lwip.sh [MIB] - compares our TCP with lwIP on the same path: goodput, and processor seconds for each GB.
# `software`: ours computes checksums itself, as lwIP does. Fails if lwIP is ahead anywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
bench=${RDDP_BUILD_DIR:-build/main}/bench
[ -x "$bench/lwip" ] || { echo "lwip: no $bench/lwip: scripts/setup.sh bench, then make check" >&2; exit 77; }
{
    "$bench/lwip" "${1:-64}"
    "$bench/stream" "${1:-64}"
    "$bench/stream" "${1:-64}" checksums | sed 's/^[a-z]* /&software/; s/^\([a-z]*\) software/\1+software/'
} | awk '
    $1 ~ /^(lwip|plain|option)/ && ($3 == "0.0" || $3 == "1.0") {
        key = $2 " " $3
        if ($1 == "lwip")
            keys[++n] = key
        rate[$1, key] = $4; cpu[$1, key] = $5
    }
    END {
        split("lwip plain plain+software option option+software", name, " ")
        printf "%5s %4s", "MTU", "loss"
        for (k = 1; k <= 5; k++) printf " %21s", name[k]
        printf "   (Gb/s, cpu s/GB)\n"
        for (i = 1; i <= n; i++) {
            split(keys[i], at, " ")
            printf "%5s %4s", at[1], at[2]
            for (k = 1; k <= 5; k++) {
                printf " %13.2f %7.2f", rate[name[k], keys[i]], cpu[name[k], keys[i]]
                behind = behind || (k > 1 && (rate[name[k], keys[i]] <= rate["lwip", keys[i]] || cpu[name[k], keys[i]] >= cpu["lwip", keys[i]]))
            }
            printf "\n"
        }
        if (behind)
            print "lwIP is ahead somewhere"
        exit behind
    }'
