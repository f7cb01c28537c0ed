#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# roce.sh - tests the subcommands with `--wire roce`: ping, perf, serve and cp, nfsd and nfs. Listeners of RoCE are names,
# so the servers bind no port but that of UDP, which they share.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

export LC_ALL=C
chmod 755 "$tmp"

# --- ping ------------------------------------------------------------------------------------------------------------

start ping --server --wire roce -a 127.0.0.1
to=127.0.0.1:$port
expect 0 "ping" "$rddp" ping --wire roce -c 3 -i 0 "$to"
expect_text "ping" '3 round trips, all verified'
expect_text "ping names the wire" 'RoCE, path MTU 4096'
expect 0 "ping of 1 MiB" "$rddp" ping --wire roce -q -c 3 -i 0 -s 1M "$to"
expect 3 "ping speaks iWARP" "$rddp" ping -c 1 "$to"
expect 3 "no one listens" "$rddp" ping --wire roce -c 1 127.0.0.1:9
expect_text "no one listens" 'connection refused' err
for _ in 1 2 3 4 5; do
    "$rddp" ping --wire roce -q -c 200 -i 0 -s 10000 "$to" >>"$tmp/many" 2>&1 &
    clients[$!]=1
done
for client in "${!clients[@]}"; do
    if wait "$client"; then pass; else wrong "five clients at once: $(cat "$tmp/many")"; fi
done
stop "the server of pings"

if grep -qs ' lo$' /proc/net/if_inet6; then
    start ping --server --wire roce -a ::1 -1
    expect 0 "IPv6" "$rddp" ping --wire roce -c 3 -i 0 "[::1]:$port"
    ends 0 "IPv6, once"
fi

# --- perf ------------------------------------------------------------------------------------------------------------

start perf --server --wire roce -a 127.0.0.1
expect 0 "perf" "$rddp" perf --wire roce --json -s 4096 -n 200 "127.0.0.1:$port" all
expect_json "perf" 'v["wire"] == "roce" and v["crc"] and all(r["verified"] for r in v["results"])'
expect_json "perf of atomics and immediate data" \
    '{"fetch-add", "cmp-swap", "write-imm"} <= {r["operation"] for r in v["results"]}'
# It rejects others until it has noticed that a client is gone.
eventually grep -q 'done' "$tmp/server.out" || wrong "the server does not notice that its client is done"
done_times() { [ "$(grep -c 'done' "$tmp/server.out")" = "$1" ]; }

# What is counted (doc/perf-json.md): packets for no queue pair, which the kernel gives to the processes of port 4791 by
# their source port, so each gets some of those from 64 ports.
python3 - >"$tmp/sender" <<'END' &
import socket, time
packet = bytes([10, 0, 255, 255, 0, 0xff, 0xff, 7, 0, 0, 0, 1]) + bytes(20) # number 0xffff07: port 65535, slot 7
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
while True:
    for s in sockets:
        try:
            s.sendto(packet, ("127.0.0.1", 4791))
        except ConnectionRefusedError:
            pass
    print("sent", flush=True)
    time.sleep(0.01)
END
sender=$!
eventually grep -q sent "$tmp/sender" || wrong "no packets are sent"
expect 0 "perf beside packets of others" "$rddp" perf --wire roce --json --bw -s 64K -t 0.3 "127.0.0.1:$port" write
put_down $sender
expect_json "perf counts" 'all(type(v["roce"][n]) is int for n in "resent timeouts undone naks not_ready not_ready_here duplicates gaps wrong_icrc wrong_peer dropped handed".split())'
expect_json "perf counts packets of others" 'v["roce"]["unowned"] + v["roce"]["passed"] > 0'
eventually done_times 2 || wrong "the server does not notice that its client is done"
expect 0 "perf, text" "$rddp" perf --wire roce --bw -s 4096 -n 20 "127.0.0.1:$port" write
expect_text "perf, text" '^RoCE, the client: .'
eventually done_times 3 || wrong "the server does not notice that its client is done"
expect 0 "idle connections" "$rddp" perf --wire roce --idle 20 "127.0.0.1:$port"
stop "the server of perf"

# --- serve and cp ------------------------------------------------------------------------------------------------------

mkdir "$tmp/shared"
head -c 3000001 /dev/urandom >"$tmp/large"
mkdir "$tmp/tree" && for i in {1..50}; do echo "$i" >"$tmp/tree/$i"; done
start serve --wire roce -a 127.0.0.1 "$tmp/shared"
expect 0 "cp there" "$rddp" cp --wire roce -p "$port" "$tmp/large" 127.0.0.1:large
expect 0 "cp back" "$rddp" cp --wire roce -p "$port" 127.0.0.1:large "$tmp/again"
if cmp -s "$tmp/large" "$tmp/again"; then pass; else wrong "cp: another file came back"; fi
expect 0 "cp of a tree" "$rddp" cp --wire roce -p "$port" -r "$tmp/tree" 127.0.0.1:tree
if diff -r "$tmp/tree" "$tmp/shared/tree"; then pass; else wrong "cp: another tree arrived"; fi
stop "serve"

# --- nfsd and nfs ------------------------------------------------------------------------------------------------------

start nfsd --wire roce --rdma-port 0 --mount-port 0 --state "$tmp/state" --squash none -a 127.0.0.1 "$tmp/shared"
mount_port=$(sed -n '2s/.*mountport=\([0-9]*\).*/\1/p' "$tmp/server.out")
rdma_port=$(sed -n '2s/.*proto=rdma,port=\([0-9]*\).*/\1/p' "$tmp/server.out")
nfs=("$rddp" nfs --wire roce --port "$rdma_port" --mount-port "$mount_port")
at=127.0.0.1:$tmp/shared
expect 0 "nfs ls" "${nfs[@]}" ls "$at"
expect_text "nfs ls" '^large$'
expect 0 "nfs get" "${nfs[@]}" get "$at/large" "$tmp/got"
if cmp -s "$tmp/large" "$tmp/got"; then pass; else wrong "nfs get: another file"; fi
expect 0 "nfs put" "${nfs[@]}" put "$tmp/large" "$at/put"
if cmp -s "$tmp/large" "$tmp/shared/put"; then pass; else wrong "nfs put: another file"; fi
expect 0 "nfs cp of a tree" "${nfs[@]}" cp -r "$at/tree" "$tmp/tree-got"
if diff -r "$tmp/tree" "$tmp/tree-got"; then pass; else wrong "nfs cp: another tree"; fi
stop "nfsd"

finish roce
