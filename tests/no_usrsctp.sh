#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# no_usrsctp.sh - the library builds where usrsctp is missing, does not need it, works over rddp's own SCTP, and the command
# says what is missing.
set -euo pipefail
name=$(basename "$0" .sh)
source_dir=${RDDP_SOURCE_DIR:?}
fail() { echo "$name: $*" >&2; exit 1; }
# shellcheck source=tests/lib/objects.sh disable=SC1091
source "$source_dir/tests/lib/objects.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

launcher=$(sed -n 's/^CMAKE_C_COMPILER_LAUNCHER:[A-Z]*=//p' "${RDDP_BUILD_DIR:?}/CMakeCache.txt")
cmake -S "$source_dir" -B "$dir/build" -DRDDP_USRSCTP=OFF -DRDDP_TESTS=OFF \
    -DCMAKE_C_COMPILER_LAUNCHER="$launcher" >"$dir/log" 2>&1 || fail "$(tail -n 20 "$dir/log")"
grep -q 'usrsctp is left out' "$dir/log" || fail "cmake does not say that usrsctp is missing"
reuse_objects "$source_dir" "$dir/build" # all layers but sctp/io/
cmake --build "$dir/build" -j "${JOBS:-2}" --target rddp >"$dir/log" 2>&1 || fail "$(tail -n 20 "$dir/log")"
! ldd "$dir/build/librddp.so" | grep -q usrsctp || fail "the library needs usrsctp's"
export LD_PRELOAD=$dir/build/librddp.so

refused() { # COMMAND...: exit code 3 and the reason
    local rc=0
    "$@" >"$dir/out" 2>"$dir/err" || rc=$?
    [ $rc = 3 ] || fail "$*: exit code $rc, not 3: $(cat "$dir/err")"
    grep -q 'made without usrsctp (Debian: libusrsctp-dev)' "$dir/err" || fail "$*: $(cat "$dir/err")"
}
refused "${RDDP_TOOL:?}" ping --wire sctp --sctp usrsctp 127.0.0.1:1
refused timeout 20 "${RDDP_TOOL:?}" ping --server --wire sctp --sctp usrsctp -a 127.0.0.1 -p 0
timeout 60 "${RDDP_TOOL:?}" perf --loopback --wire sctp --udp-port $((20000 + RANDOM % 12000)) -n 20 >"$dir/out" 2>"$dir/err" ||
    fail "own SCTP: $(cat "$dir/err")"
[ "$(grep -c ' verified' "$dir/out")" = 6 ] || fail "own SCTP: $(cat "$dir/out")"
timeout 20 "${RDDP_TOOL:?}" ping 127.0.0.1:1 >"$dir/out" 2>"$dir/err" || true
grep -q refused "$dir/err" || fail "iWARP: $(cat "$dir/err")"
echo "$name: builds, and says what is missing"
