#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# perf.sh - tests rddp perf with itself: verification of every operation, tables, JSON, credits, one client at a time.
# It checks only that the figures are there, not their values.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

count() { # NAME NUMBER PATTERN: this many lines of the output
    local n
    n=$(grep -cE "$3" "$tmp/out")
    if [ "$n" = "$2" ]; then pass; else wrong "$1: $n lines with '$3', not $2"; fi
}

expect 0 "all" "$rddp" perf --loopback -n 20
count "all" 6 ' verified'
count "all" 2 '^write .* verified'
sctp="--wire sctp --udp-port $((20000 + RANDOM % 12000))"
for options in --no-crc "--markers --no-crc" "--mpa-rev 1" --immediate --p2p "--wire rdmatcp" "$sctp" \
    --stable "-a ::1"; do
    [ "$options" != "-a ::1" ] || grep -qs ' lo$' /proc/net/if_inet6 || continue
    # shellcheck disable=SC2086
    expect 0 "$options" "$rddp" perf --loopback -n 20 $options
    count "$options" 6 ' verified'
done

# Immediate data and atomics (EXT-01 EXT-02 EXT-04 EXT-05 EXT-06 EXT-07): the other side counts each message. On a
# wire without them, perf says so before it begins.
expect 0 "all operations" "$rddp" perf --loopback -n 100 -s 1,8,1000,70000 all
count "all operations" 38 ' verified'
count "all operations" 6 '^(fetch-add|cmp-swap|swap) +8 .* verified'
count "all operations" 8 '^write-imm .* verified'
expect 0 "many of them" "$rddp" perf --loopback --bw -n 5000 -s 8 write-imm fetch-add cmp-swap swap
count "many of them" 4 ' verified'
expect 0 "atomics, JSON" "$rddp" perf --loopback -n 20 --json fetch-add write-imm
expect_json "atomics, JSON" '[(r["operation"], r.get("full_round_trip")) for r in v["results"]] == [("write-imm", None), ("fetch-add", None), ("write-imm", False), ("fetch-add", True)]'
for pair in "--wire rdmatcp:write-imm" "--wire rdmatcp:swap" "--wire sctp:fetch-add"; do
    # shellcheck disable=SC2086
    expect 2 "$pair" "$rddp" perf --loopback -n 20 ${pair%:*} "${pair##*:}"
    expect_one_line "$pair" perf
done
expect 0 "all of rdmatcp" "$rddp" perf --loopback -n 20 --wire rdmatcp all
count "all of rdmatcp" 6 ' verified'

# Test sizes around the 64 octets of a receive's head and around segment sizes, with many more Sends than receives.
expect 0 "sizes" "$rddp" perf --loopback -n 10 -s 1,7,8,9,63,65,1000,4095:5000,65535,65537,1M,3M
count "sizes" 72 ' verified'
expect 0 "credits" "$rddp" perf --loopback --bw send -n 5000 -s 1,8,5000
count "credits" 3 '^send .* verified'
for window in 1 2 3 4096; do
    expect 0 "window $window" "$rddp" perf --loopback --bw -n 5000 -s 8 -w $window
    count "window $window" 3 ' verified'
done
expect 0 "time" "$rddp" perf --loopback -t 0.02 write
for size in 1 63 4K 1000K; do # the places of 1 and 63 octets do not fill the memory exactly
    expect 0 "walk, $size" "$rddp" perf --loopback --bw --walk 1000K -n 40 -s "$size" write send read
    count "walk, $size" 3 ' verified'
done
expect 0 "walk, raw TCP" "$rddp" perf --loopback --bw --walk 3M --tcp-ref -r 1 -n 10 --json write
expect_json "walk, raw TCP" 'v["walk_octets"] == 3 << 20 and v["results"][0]["raw_bytes_per_second"] > 0'
expect 0 "no walk" "$rddp" perf --loopback --bw -n 10 --json write
expect_json "no walk" 'v["walk_octets"] == 0'
expect 2 "walk less than a message" "$rddp" perf --loopback --bw --walk 4K -s 4097 write
expect_one_line "walk less than a message" perf
expect 2 "walk nothing" "$rddp" perf --loopback --walk 0 write
# The server completes nothing during a Read test, which may last longer than the time after which it gives up a peer.
if [ -n "${RDDP_LONG:-}" ]; then
    limit=400 expect 0 "longer than the silence" "$rddp" perf --loopback --bw -s 8 -r 1 -t 33 read
fi

expect 0 "JSON" "$rddp" perf --loopback -n 20 -r 3 --json
expect_json "JSON" 'len(v["results"]) == 6 and all(r["verified"] and r["repetitions"] == 3 for r in v["results"])'
expect_json "JSON" 'v["crc"] is True and v["mpa_revision"] == 2 and not v["markers_sent"]'
expect_json "JSON" 'all(r["bytes_per_second"] > 0 and len(r["bytes_per_second_runs"]) == 3 for r in v["results"] if r["kind"] == "bandwidth")'
expect_json "JSON" 'all(0 < r["lat_us_min"] <= r["lat_us_p50"] <= r["lat_us_p99"] <= r["lat_us_max"] for r in v["results"] if r["kind"] == "latency")'
expect 0 "beside TCP" "$rddp" perf --loopback -n 20 -r 2 --tcp-ref --json write
expect_json "beside TCP" 'all(r["ratio_to_raw"] > 0 for r in v["results"])'
expect_json "beside TCP" 'v["results"][0]["raw_bytes_per_second"] > 0 and v["results"][1]["raw_lat_us_p50"] > 0'
expect 0 "beside TCP, text" "$rddp" perf --loopback -n 20 -r 1 --tcp-ref read
expect_text "beside TCP, text" ' ratio '
# Whoever polls leaves its processor to others only now and then; both sides have nothing to do most of the time here.
expect 0 "events" "$rddp" perf --loopback -n 300 -s 8,70000 -e all
count "events" 22 ' verified'
for wire in rdmatcp "${sctp#--wire }"; do
    # shellcheck disable=SC2086
    expect 0 "events over $wire" "$rddp" perf --loopback -n 100 --events --wire $wire
    count "events over $wire" 6 ' verified'
done
expect 0 "events beside TCP" "$rddp" perf --loopback -n 100 -r 2 -e --tcp-ref --json write send
expect_json "events beside TCP" 'v["events"] is True and all(r["verified"] and r["ratio_to_raw"] > 0 for r in v["results"])'
expect 0 "idle" "$rddp" perf --loopback --idle 200 --json
expect_json "idle" 'v["idle_connections"] == 200 and 0 < v["client_octets_per_connection"] < 1e6'

# --- server and client as two commands -----------------------------------------------------------------------------

start perf --server -a 127.0.0.1
to=127.0.0.1:$port
expect 0 "first client" "$rddp" perf -n 20 "$to" write send
count "first client" 4 ' verified'
expect 0 "second client" "$rddp" perf -n 20 "$to" read --markers
count "second client" 2 ' verified'

# shellcheck disable=SC2317 # eventually calls it
says() { [ "$(grep -c ": $1\$" "$tmp/server.out")" = "$2" ]; }
eventually says 'done' 2 || wrong "the server does not notice that its clients are done"

# One client at a time, and the others hear so at once, whatever the server is polling for. --time would be too little:
# how many messages it takes is estimated from the first ones, which may be slow.
for test in "-n 1000000 --lat write" "-n 50000000 --bw write" "-n 1000000 --lat send" "-n 50000000 --bw send" "-n 50000000 --bw read"; do
    : >"$tmp/server.out"
    # shellcheck disable=SC2086
    "$rddp" perf -s 4K "$to" $test >"$tmp/busy" 2>&1 &
    busy=$!
    eventually says connected 1 || wrong "$test: the server tests no client: $(cat "$tmp/busy")"
    expect 3 "beside $test" "$rddp" perf -n 20 "$to"
    expect_text "beside $test" 'rejected by the peer: busy' err
    kill -9 $busy
    wait $busy 2>/dev/null
    eventually says failed 1 || wrong "$test: the server does not notice that the client was killed"
done
expect 0 "after a client was killed" "$rddp" perf -n 20 "$to"
eventually says 'done' 1 || wrong "the server does not notice that its client is done"

# A signal ends a client in the middle of a test.
: >"$tmp/server.out"
"$rddp" perf -n 50000000 "$to" --bw write >"$tmp/out" 2>"$tmp/err" &
busy=$!
eventually says connected 1 || wrong "interrupted: the server tests no client"
kill -INT $busy
wait $busy
code=$?
if [ $code = 130 ]; then pass; else wrong "interrupted: exit code $code"; fi
expect_text "interrupted" '^rddp perf: (cannot connect to .*: )?interrupted$' err # the server may see the connection first
stop "server"

start perf --server -a 127.0.0.1
(eventually says connected 1; kill -9 "$server") &
expect 1 "the server is killed" "$rddp" perf -n 50000000 --bw "127.0.0.1:$port"
expect_one_line "the server is killed" perf
wait "$server" 2>/dev/null
server=''
expect 3 "no listener" "$rddp" perf "127.0.0.1:$port"
expect_one_line "no listener" perf

start ping --server -a 127.0.0.1
expect 4 "a server that is no perf" "$rddp" perf -n 20 "127.0.0.1:$port"
expect_one_line "a server that is no perf" perf
stop "ping server"

finish perf
