#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# profile.sh RECORD USE - lets the command of the build RECORD (RDDP_PROFILE=record) work for some seconds over loopback, at
# what is worth to be fast, and lays what it recorded where the build USE looks for it, whose objects are made again. What it
# did not do is optimised as ever. It does nothing if USE has a record of this very build.
set -euo pipefail

record=$(cd "${1:?usage: profile.sh RECORD USE}" && pwd)
mkdir -p "${2:?usage: profile.sh RECORD USE}"
use=$(cd "$2" && pwd)
stamp=$use/profiled
trap 'exit 130' INT
[ -x "$record/rddp" ] || { echo "profile: no command rddp in $record: CMake said what it needs" >&2; exit 1; }
is_older() { [ "$1" -ot "$stamp" ]; }
! { is_older "$record/rddp" && is_older "$record/librddp.so" && is_older "$0"; } || exit 0

find "$record" "$use" \( -name '*.gcda' -o -path "$use/*" -name '*.o' \) -delete
work() { # PERF-OPTION...
    timeout --foreground 120 "$record/rddp" perf --loopback "$@" >"$record/profile.log" 2>&1 || {
        cat "$record/profile.log"
        echo "profile: rddp perf $* failed" >&2
        exit 1
    }
}
echo "profile: rddp perf works for half a minute" >&2
for wire in iwarp roce; do
    grep -q "^RDDP_WITHOUT:STRING=.*$wire" "$record/CMakeCache.txt" && continue
    work --wire "$wire" -t 1.5 --lat -s 8,4K write send
    work --wire "$wire" -t 0.5 --lat -s 8 read
    work --wire "$wire" -t 0.3 --lat -e write send
    work --wire "$wire" -t 0.02 --bw -s 8 # as many messages in lists as alone: branches are laid out for what is usual
    work --wire "$wire" -t 0.1 --bw -s 64K,1M
done
(cd "$record" && find . -name '*.gcda' -print0 | xargs -0 cp --parents -t "$use")
touch "$stamp"
