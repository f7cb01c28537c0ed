#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# roce_tshark.sh - tshark dissects what two queue pairs of ours say to each other, and finds nothing malformed: every
# packet, with the headers that its opcode has. ROCE-PKT-01, 02, 06, 11.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs tshark dumpcap
in_own_network "$@"
talk=$RDDP_BUILD_DIR/tests/suite/roce_losses
[ -x "$talk" ] || cannot "$talk is not built"

ip link set lo mtu 1500 up
ip link set lo gso_max_segs 1 2>/dev/null || true
start_capture "$dir/capture" lo 'udp dst port 4791'
RDDP_HARMLESS=1 "$talk" >"$dir/said" 2>&1 || fail "the queue pairs: $(cat "$dir/said")"
stop_capture

# Whatever rpcordma guesses from a payload of a few octets is not there.
ask() { # FILTER FIELD...: the values, one line a packet
    local fields=() field filter=$1
    shift
    for field in "$@"; do fields+=(-e "$field"); done
    tshark --disable-protocol rpcordma -r "$dir/capture" -Y "$filter" -T fields -E occurrence=f "${fields[@]}" 2>"$dir/errors" || fail "$(cat "$dir/errors")"
}
packets=$(ask udp frame.number | wc -l)
[ "$packets" -gt 500 ] || fail "only $packets packets were captured"
[ "$(ask infiniband.bth frame.number | wc -l)" = "$packets" ] || fail "not every packet is InfiniBand's for tshark"
[ -z "$(ask '_ws.malformed || _ws.expert.severity >= warning' frame.number)" ] || fail "malformed: $(ask _ws.malformed frame.number _ws.col.Info | head -5)"
[ "$(ask infiniband.bth infiniband.bth.p_key | sort -u)" = 65535 ] || fail "another P_Key"
[ "$(ask infiniband.bth infiniband.bth.tver | sort -u)" = 0 ] || fail "another version"

# What each opcode has to have, and none may be without. The list: opcode, its name, a field of its own.
headers=$(ask infiniband.bth infiniband.bth.opcode | sort -n | uniq -c | awk '{ print $2 }' | tr '\n' ' ')
while read -r opcode what field; do
    seen=$(ask "infiniband.bth.opcode == $opcode" frame.number | wc -l)
    [ "$seen" -gt 0 ] || fail "no $what in the capture, only $headers"
    [ "$(ask "infiniband.bth.opcode == $opcode && $field" frame.number | wc -l)" = "$seen" ] || fail "a $what without $field"
done <<'END'
0 SEND_FIRST data
1 SEND_MIDDLE data
2 SEND_LAST data
6 WRITE_FIRST infiniband.reth
7 WRITE_MIDDLE data
8 WRITE_LAST data
12 READ_REQUEST infiniband.reth
13 READ_RESPONSE_FIRST infiniband.aeth
14 READ_RESPONSE_MIDDLE data
15 READ_RESPONSE_LAST infiniband.aeth
17 ACKNOWLEDGE infiniband.aeth
18 ATOMIC_ACKNOWLEDGE infiniband.atomicacketh
20 FETCH_ADD infiniband.atomiceth
END
echo "$name: $packets packets, each as it must be"
