#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# exports.sh - checks that each library, shared and static, exports exactly the functions that its header marks.
set -euo pipefail
export LC_ALL=C
shopt -s extglob

cd "$RDDP_SOURCE_DIR/include/rddp"
bad=0
compare() { # LIBRARY DECLARED SHOWN
    [ "$2" != "$3" ] || return 0
    echo "exports: $1: declared but not exported (<), or exported but not declared (>):"
    diff <(echo "$2") <(echo "$3") | grep '^[<>]' || true
    bad=1
}

check() { # LIBRARY MARK PREFIX HEADER...
    local library=$RDDP_BUILD_DIR/$1 mark=$2 prefix=$3 declared
    declared=$(cat "${@:4}" | sed -e 's,/\*.*\*/,,' -e '/^#/d' | tr '\n' ' ' | grep -oE "$mark [^;(]*\(" |
        grep -oE "${prefix}[a-z0-9_]+\($" | tr -d '(' | sort)
    [ -n "$declared" ] || { echo "exports: found no $mark in ${*:4}" >&2; exit 1; }
    compare "$1.so" "$declared" "$(nm -D --defined-only -f posix "$library.so" |
        awk '$2 != "A" { sub("@.*", "", $1); print $1 }' | sort)"
    compare "$1.a" "$declared" "$(nm -g --defined-only -f posix "$library.a" | awk 'NF > 1 { print $1 }' | sort)"
    echo "exports: $1: $(wc -l <<<"$declared") calls"
}

check librddp RDDP_API rddp_ !(rpc).h
if [ -e "$RDDP_BUILD_DIR/librddp-rpc.so" ]; then
    check librddp-rpc RDDP_RPC_API '(clnt|svc)_' rpc.h
fi
exit $bad
