#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# sctp_tshark.sh - tshark dissects associations of our own SCTP, and of it with usrsctp, one of each indication:
# checksums, the indications in INIT and INIT-ACK, and every header extension with wireshark/sctpddp.lua. SCTP-1-03 SCTP-2.1-01 SCTP-2.2-01 SCTP-2.2-02 SCTP-2.2-04 SCTP-2.2-28
# SCTP-3.1-01 SCTP-3.1-03 SCTP-3.1-06 SCTP-3.2.2-01 are checked in the capture.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3
in_own_network "$@"
programs=$RDDP_BUILD_DIR/tests/interop
declare -A talk=([own]=$programs/sctp_talk [usrsctp]=$programs/usrsctp_talk)
couples=("own own") # the stack that connects, and the one that listens
if [ -x "${talk[usrsctp]}" ]; then
    couples+=("own usrsctp" "usrsctp own")
else
    echo "$name: built without usrsctp (Debian: libusrsctp-dev): our own SCTP meets itself alone"
fi

ip link set lo mtu 1500 up
ip link set lo gso_max_segs 1 2>/dev/null || true
options=(-X "lua_script:$RDDP_SOURCE_DIR/wireshark/sctpddp.lua" -o sctp.try_heuristic_first:TRUE -o "sctp.checksum:CRC 32c")

start_capture "$dir/capture" lo 'udp port 9899'

converse() { # COUPLE INDICATION WRONG...: what both ends say. The couple and the indication are digits of the SCTP port.
    local stacks port=$((5000 + 10 * $1 + $2)) kind=$2 said
    read -ra stacks <<<"${couples[$1]}"
    shift 2
    : >"$dir/listening"
    "${talk[${stacks[1]}]}" listen 127.0.0.1 $port 9899 "$kind" >"$dir/listen" 2>"$dir/listening" &
    local peer=$!
    for _ in $(seq 50); do ! grep -q listening "$dir/listening" || break; sleep 0.1; done
    said=$("${talk[${stacks[0]}]}" connect 127.0.0.1 $port 9899 "$kind" "$@") || fail "connect: $said"
    wait $peer || fail "listen: $(cat "$dir/listen" "$dir/listening")"
    echo "$said, $(cat "$dir/listen")"
}
for couple in "${!couples[@]}"; do
    for kind in 1 2 3 4 5; do
        said=$(converse "$couple" $kind)
        [ "$said" = "ok, ok" ] || fail "${couples[$couple]}: indication $kind: $said"
    done
    said=$(converse "$couple" 3 mode 0)
    [[ $said == "aborted by the peer: R1"*"aborted: chunk-no-placement"* ]] || fail "${couples[$couple]}: R1: $said"
done
stop_capture

ask() { # FILTER FIELD...: the values, one line a packet
    local fields=() field filter=$1
    shift
    for field in "$@"; do fields+=(-e "$field"); done
    tshark "${options[@]}" -r "$dir/capture" -Y "$filter" -T fields -E aggregator=, "${fields[@]}" 2>"$dir/errors" || fail "$(cat "$dir/errors")"
}
[ "$(ask sctp sctp.checksum.status | sort -u)" = 1 ] || fail "a checksum is wrong"
# Chunk types 1 and 2 are INIT and INIT-ACK: first the ports of the packet, of which the listener's names couple and indication.
ask 'sctp.chunk_type in {1, 2}' sctp.srcport sctp.dstport sctp.chunk_type sctp.adaptation_layer_indication >"$dir/setups"
for couple in "${!couples[@]}"; do
    for kind in 1 2 3 4 5; do
        port=$((5000 + 10 * couple + kind))
        grep -q "^[0-9]*"$'\t'"$port"$'\t1\t'"0x0000000$kind\$" "$dir/setups" || fail "${couples[$couple]}: the indication $kind is not in INIT"
        grep -q "^$port"$'\t[0-9]*\t2\t'"0x0000000$kind\$" "$dir/setups" || fail "${couples[$couple]}: the indication $kind is not in INIT-ACK"
        ! cut -f 1,2,4 "$dir/setups" | grep "\b$port\b" | grep -v "0x0000000$kind\$" >/dev/null || fail "${couples[$couple]}: another indication than $kind"
    done
done
# Each DATA chunk must be unordered and unfragmented, with a header that the dissector can parse.
ask sctp.chunk_type==0 sctp.data_u_bit sctp.data_b_bit sctp.data_e_bit | tr ',\t' '\n\n' | sort -u >"$dir/bits"
[ "$(cat "$dir/bits")" = 1 ] || [ "$(cat "$dir/bits")" = True ] || fail "U, B, E: $(cat "$dir/bits")"
# Wireshark does not dissect a retransmitted chunk again, and a busy machine delays an acknowledgement until one is sent.
chunks=$(ask sctp.chunk_type==0 sctp.srcport sctp.dstport sctp.data_tsn_raw |
    awk '{ n = split($3, tsn, ","); for (i = 1; i <= n; i++) seen[$1, $2, tsn[i]] } END { for (k in seen) many++; print many }')
heads=$(ask sctpddp sctpddp.mode | tr ',' '\n' | wc -l)
[ "$chunks" = "$heads" ] && [ "$chunks" -gt $((1000 * ${#couples[@]})) ] || fail "$heads headers in $chunks chunks"
# The AWS of each direction must count its chunks from 0, except in the association that sends a wrong chunk.
ask 'sctpddp && !(sctp.port in {5003, 5013, 5023})' sctp.srcport sctp.dstport sctpddp.aws >"$dir/aws"
python3 -c '
import sys
next_aws = {}
for line in sys.stdin:
    source, destination, numbers = line.rstrip("\n").split("\t")
    for number in filter(None, numbers.split(",")):
        expected = next_aws.get((source, destination), 0)
        if int(number) != expected and int(number) >= expected:
            sys.exit(f"from {source} to {destination}: AWS {number}, expected {expected}")
        next_aws[source, destination] = max(expected, int(number) + 1)
print(sum(next_aws.values()))
' <"$dir/aws" >"$dir/counted" || fail "$(cat "$dir/counted")"
# Only the rule that the test breaks on purpose may be reported.
[ "$(ask 'sctpddp.r1' sctpddp.mode | wc -l)" = ${#couples[@]} ] || fail "R1 is not seen once in each"
[ -z "$(ask 'sctpddp.r2 || sctpddp.r3 || sctpddp.r4 || sctpddp.mode.unknown || sctpddp.short || sctpddp.reserved || sctpddp.offset.not_zero' frame.number)" ] ||
    fail "a rule is broken"
echo "$name: $chunks chunks in $((6 * ${#couples[@]})) associations, each as it must be"
