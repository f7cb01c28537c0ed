#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rpc_tshark.sh - tshark dissects every RPC-over-RDMA message of the example program in a network of its own, and must see no
# malformed message.
# Shows RPCR-5-03, RPCR-9-03.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
server=$RDDP_BUILD_DIR/examples/rpc/store_server client=$RDDP_BUILD_DIR/examples/rpc/store_client
[ -x "$server" ] || cannot "not built: no libtirpc or no rpcgen"
in_own_network "$@"

ip link set lo up
start_capture "$dir/pcap"
"$server" 20049 >"$dir/port" &
started+=($!)
for _ in $(seq 100); do
    [ ! -s "$dir/port" ] || break
    sleep 0.05
done
[ "$(timeout 60 "$client" 127.0.0.1 20049)" = ok ] || fail "the client did not succeed"
stop_capture

fields=(rpcordma.xid rpcordma.version rpcordma.flow_control rpcordma.msg_type rpcordma.reads_count rpcordma.writes_count
    rpcordma.reply_count)
tshark -r "$dir/pcap" -Y rpcordma -T fields "${fields[@]/#/-e}" >"$dir/seen" 2>/dev/null
messages=$(tr '\t' '\n' <"$dir/seen" | grep -c '^0x' || true)
[ "$messages" -ge 700 ] || fail "only $messages messages seen"
bad=$(tshark -r "$dir/pcap" -Y '_ws.malformed' 2>/dev/null | head -3)
[ -z "$bad" ] || fail "malformed: $bad"
longs=$(tshark -r "$dir/pcap" -Y 'rpcordma.msg_type == 1' 2>/dev/null | wc -l)
[ "$longs" -ge 1 ] || fail "no long message seen"
reads=$(tshark -r "$dir/pcap" -Y 'rpcordma.reads_count > 0' 2>/dev/null | wc -l)
writes=$(tshark -r "$dir/pcap" -Y 'rpcordma.writes_count > 0' 2>/dev/null | wc -l)
((reads >= 4 && writes >= 60)) || fail "$reads with Read chunks, $writes with Write chunks"
wrong=$(tshark -r "$dir/pcap" -Y 'rpcordma.version != 1 || rpcordma.flow_control == 0' 2>/dev/null | wc -l)
[ "$wrong" = 0 ] || fail "$wrong of another version or without credits"
echo "rpc_tshark: $messages messages, none malformed; $longs long, $reads with Read and $writes with Write chunks"
