#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rpc.sh - tests a program made by rpcgen over RDMA: the example's client calls its server by address and by name, over IPv4
# and IPv6, with two clients at once, and through rpcbind if it is installed.
# Shows RPCR-2.3.1-01, RPCR-3.4.4.3-02, RPCR-4.4.2-01, RPCR-5-01, RPCR-6.1-02, RPCR-6.1-08, RPCR-6.2-02.
set -euo pipefail

server=$RDDP_BUILD_DIR/examples/rpc/store_server client=$RDDP_BUILD_DIR/examples/rpc/store_client
[ -x "$server" ] || { echo "rpc: not built: no libtirpc or no rpcgen"; exit 77; }
dir=$(mktemp -d)
pid=
finish() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT
fail() { echo "rpc: $*" >&2; exit 1; }

"$server" >"$dir/port" &
pid=$!
for _ in $(seq 100); do
    [ ! -s "$dir/port" ] || break
    sleep 0.05
done
read -r _ port <"$dir/port" || fail "the server does not begin"
hosts=(127.0.0.1 ::1)
! getent ahosts localhost >/dev/null || hosts+=(localhost)
for host in "${hosts[@]}"; do
    said=$(timeout 60 "$client" "$host" "$port") || fail "over $host: $said"
    [ "$said" = ok ] || fail "over $host: $said"
done
timeout 60 "$client" 127.0.0.1 "$port" >"$dir/one" &
first=$!
timeout 60 "$client" 127.0.0.1 "$port" >"$dir/two" || fail "the second of two at once"
wait $first || fail "the first of two at once"
! timeout 20 "$client" 127.0.0.1 1 2>/dev/null || fail "a client without a server says ok"
kill -0 "$pid" || fail "the server has ended"
echo "rpc: the same program over $port, by ${hosts[*]}, and two at once"
