#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# holders.sh - tests that no client of `rddp ping --server` or `rddp perf --server` can have it for itself.
set -uo pipefail
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"
here=$(cd "$(dirname "$0")" && pwd)

# hold CASE [ARGUMENT...]: a client that keeps what it gets; sets `holder`.
hold() {
    local case=$1
    shift
    : >"$tmp/held"
    python3 "$here/holder.py" "$case" "$port" "$@" >"$tmp/held" 2>&1 &
    holder=$!
    eventually test -s "$tmp/held"
    grep -q '^held$' "$tmp/held" || wrong "$case: it gets nothing: $(tail -n 1 "$tmp/held")"
}
release() {
    kill "$holder" 2>/dev/null
    wait "$holder" 2>/dev/null
}

# --- ping: each of 512 places ---------------------------------------------------------------------------------------

start ping --server -a 127.0.0.1 -s 64
hold ping 512 127.0.0.9
expect 0 "one address has all places" "$rddp" ping -c 2 -i 0 "127.0.0.1:$port"
expect 0 "once more" "$rddp" ping -c 2 -i 0 "127.0.0.1:$port"
eventually grep -q '127.0.0.9:[0-9]*: ended, to serve another client' "$tmp/server.err" || wrong "no line about a client that gave way"
release
stop "ping server"

start ping --server --rping --verbose -a 127.0.0.1
expect 0 "a terminal's control characters" python3 "$here/holder.py" rping "$port"
eventually grep -qF 'server ping data: \x1b]0;owned\x07\x1b[2J\x0a' "$tmp/server.out" ||
    wrong "data of the peer: $(cat -v "$tmp/server.out")"
ends 1 "the server of a client that left in the middle"

# --- perf -----------------------------------------------------------------------------------------------------------

start perf --server -a 127.0.0.1 --idle 3
expect 0 "16 MiB" python3 "$here/holder.py" perf-size "$port" $((16 << 20))
expect_text "16 MiB" '^2 0 16777216$'
expect 0 "more than 16 MiB" python3 "$here/holder.py" perf-size "$port" $(((16 << 20) + 1))
expect_text "more than 16 MiB" '^2 0 16777216$'
expect 1 "a client that needs more" "$rddp" perf -n 1 -s 32M "127.0.0.1:$port" write
expect_text "a client that needs more" 'the server takes messages of up to 16777216 octets' err
[ "$(awk '/VmHWM/ { print $2 }' "/proc/$server/status")" -lt 600000 ] || wrong "memory: $(grep VmHWM "/proc/$server/status")"
expect 0 "idle connections" python3 "$here/holder.py" perf-idle "$port"
expect_text "idle connections" '^alone True beside 3 stranger True$'
stop "perf server"
start perf --server -a 127.0.0.1 -s 32M
expect 0 "a server that allows more" "$rddp" perf -n 1 -s 32M --bw "127.0.0.1:$port" write
stop "perf server"

start perf --server -a 127.0.0.1
hold perf-tcp
stop "perf server with a client that reads nothing"
release
start perf --server -a 127.0.0.1 --turn 1
hold perf-stay
eventually "$rddp" perf -n 20 "127.0.0.1:$port" >"$tmp/out" 2>"$tmp/err" || wrong "a client that tests nothing keeps the server"
eventually grep -q 'the client had its turn' "$tmp/server.err" || wrong "no line about a client that had its turn"
release
stop "perf server"
finish holders
