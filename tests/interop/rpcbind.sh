#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rpcbind.sh - a server over RDMA registers with rpcbind as rdma and rdma6, and a client without a port number finds it there.
# The test has its own network and its own /run.
# Shows RPCR-5-02, RPCR-5-05, RPCR-9-01.
set -euo pipefail

cannot() { echo "rpcbind: cannot run here: $*"; exit 77; }
PATH=$PATH:/usr/sbin:/sbin
for tool in rpcbind rpcinfo ip unshare mount; do
    command -v $tool >/dev/null || cannot "no $tool"
done
[ -s /etc/services ] || cannot "rpcbind has its port from /etc/services (a package of Debian: netbase)"
[ "$(id -u)" = 0 ] || cannot "rpcbind wants to be root"
[ "$(cat /proc/self/setgroups 2>/dev/null || echo allow)" = allow ] || cannot "rpcbind cannot be another user here"
server=$RDDP_BUILD_DIR/examples/rpc/store_server client=$RDDP_BUILD_DIR/examples/rpc/store_client
[ -x "$server" ] || cannot "not built: no libtirpc or no rpcgen"
if [ "${1:-}" != inside ]; then
    new=(unshare --net --pid --fork --kill-child --mount-proc)
    "${new[@]}" true 2>/dev/null || cannot "no namespaces"
    exec "${new[@]}" "$0" inside
fi
fail() { echo "rpcbind: $*" >&2; exit 1; }

ip link set lo up
mount -t tmpfs tmpfs /run && mkdir -p /run/rpcbind
rpcbind -f -i &
for _ in $(seq 100); do
    ! rpcinfo >/dev/null 2>&1 || break
    sleep 0.1
done
! timeout 20 "$client" 127.0.0.1 0 2>/dev/null || fail "a client finds a server that is not there"
"$server" 0 register >/dev/null &
for _ in $(seq 100); do
    seen=$(rpcinfo | awk '$1 == 536894129 { print $3 }' | sort | tr '\n' ' ')
    [ "$seen" != "rdma rdma6 " ] || break
    sleep 0.1
done
[ "$seen" = "rdma rdma6 " ] || fail "rpcbind knows it as: $seen"
for host in 127.0.0.1 ::1; do
    [ "$(timeout 60 "$client" $host 0)" = ok ] || fail "the client does not find it over $host"
done
# A client needs none: containers rarely have it.
said=$(unshare --mount sh -c 'mount --bind /dev/null /etc/services && exec "$@"' sh timeout 60 "$client" 127.0.0.1 0 2>&1) || true
[ "$said" = ok ] || fail "without /etc/services: $said"
echo "rpcbind: known as $seen"
