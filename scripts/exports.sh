#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# exports.sh - librddp.so shows the calls that include/rddp/ marks RDDP_API, and nothing else.
set -euo pipefail
export LC_ALL=C

library=$RDDP_BUILD_DIR/librddp.so
declared=$(cd "$RDDP_SOURCE_DIR/include" && cat rddp/*.h | sed -e 's,/\*.*\*/,,' -e '/^#/d' | tr '\n' ' ' |
    grep -oE 'RDDP_API [^;(]*\(' | grep -oE 'rddp_[a-z0-9_]+\($' | tr -d '(' | sort)
exported=$(nm -D --defined-only -f posix "$library" | awk '$2 != "A" { sub("@.*", "", $1); print $1 }' | sort)
[ -n "$declared" ] || { echo "exports: found no RDDP_API in include/rddp" >&2; exit 1; }
diff <(echo "$declared") <(echo "$exported") >/dev/null || {
    echo "exports: declared but not in the library, or in it (>) but not declared:"
    diff <(echo "$declared") <(echo "$exported") | grep '^[<>]'
    exit 1
}
echo "exports: $(wc -l <<<"$declared") calls, each declared and each in the library"
