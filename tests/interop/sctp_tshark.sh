#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# sctp_tshark.sh - tshark dissects our associations, one of each indication: checksums, the indications in INIT and INIT-ACK,
# and every header extension with wireshark/sctpddp.lua. SCTP-1-03 SCTP-2.1-01 SCTP-2.2-01 SCTP-2.2-02 SCTP-2.2-04 SCTP-2.2-28
# SCTP-3.1-01 SCTP-3.1-03 SCTP-3.1-06 SCTP-3.2.2-01 are checked in the capture.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3
in_own_network "$@"
talk=$RDDP_BUILD_DIR/tests/interop/sctp_talk
rc=0
"$talk" >/dev/null 2>&1 || rc=$?
[ $rc != 77 ] || cannot "built without usrsctp"

ip link set lo mtu 1500 up
ip link set lo gso_max_segs 1 2>/dev/null || true
options=(-X "lua_script:$RDDP_SOURCE_DIR/wireshark/sctpddp.lua" -o sctp.try_heuristic_first:TRUE -o "sctp.checksum:CRC 32c")

dumpcap -q -i lo -s 0 -B 64 -w "$dir/capture" -f 'udp port 9899' 2>"$dir/dumpcap" &
dumpcap=$!
for _ in $(seq 100); do
    ! grep -q '^File:' "$dir/dumpcap" || break
    kill -0 $dumpcap 2>/dev/null || cannot "dumpcap: $(cat "$dir/dumpcap")"
    sleep 0.1
done

converse() { # INDICATION WRONG...: what both ends say
    local kind=$1 said
    shift
    "$talk" listen 127.0.0.1 $((5000 + kind)) 9899 "$kind" >"$dir/listen" 2>"$dir/listening" &
    local peer=$!
    for _ in $(seq 50); do ! grep -q listening "$dir/listening" || break; sleep 0.1; done
    said=$("$talk" connect 127.0.0.1 $((5000 + kind)) 9899 "$kind" "$@") || fail "connect: $said"
    wait $peer || fail "listen: $(cat "$dir/listen" "$dir/listening")"
    echo "$said, $(cat "$dir/listen")"
}
for kind in 1 2 3 4 5; do
    said=$(converse $kind)
    [ "$said" = "ok, ok" ] || fail "indication $kind: $said"
done
said=$(converse 3 mode 0)
[[ $said == "aborted by the peer: R1"*"aborted: chunk-unplaced"* ]] || fail "R1: $said"
sleep 1
kill -INT $dumpcap
wait $dumpcap || fail "dumpcap: $(cat "$dir/dumpcap")"
dumpcap=

ask() { # FILTER FIELD...: the values, one line a packet
    local fields=() field filter=$1
    shift
    for field in "$@"; do fields+=(-e "$field"); done
    tshark "${options[@]}" -r "$dir/capture" -Y "$filter" -T fields -E aggregator=, "${fields[@]}" 2>"$dir/errors" || fail "$(cat "$dir/errors")"
}
[ "$(ask sctp sctp.checksum.status | sort -u)" = 1 ] || fail "a checksum is wrong"
for kind in 1 2 3 4 5; do
    for type in 1 2; do
        [ "$(ask "sctp.chunk_type == $type && sctp.port == $((5000 + kind))" sctp.adaptation_layer_indication | sort -u | head -n 1)" = "0x0000000$kind" ] ||
            fail "the indication $kind is not in chunk type $type"
    done
done
# Each DATA chunk must be unordered and unfragmented, with a header that the dissector can parse.
ask sctp.chunk_type==0 sctp.data_u_bit sctp.data_b_bit sctp.data_e_bit | tr ',\t' '\n\n' | sort -u >"$dir/bits"
[ "$(cat "$dir/bits")" = 1 ] || [ "$(cat "$dir/bits")" = True ] || fail "U, B, E: $(cat "$dir/bits")"
chunks=$(ask sctp.chunk_type==0 sctp.data_tsn_raw | tr ',' '\n' | wc -l)
heads=$(ask sctpddp sctpddp.mode | tr ',' '\n' | wc -l)
[ "$chunks" = "$heads" ] && [ "$chunks" -gt 1000 ] || fail "$heads headers in $chunks chunks"
# The AWS of each direction must count its chunks from 0, except in the association that sends a wrong chunk.
ask 'sctpddp && sctp.srcport != 5003 && sctp.dstport != 5003' sctp.srcport sctp.dstport sctpddp.aws >"$dir/aws"
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
[ "$(ask 'sctpddp.r1' sctpddp.mode | wc -l)" = 1 ] || fail "R1 is not seen once"
[ -z "$(ask 'sctpddp.r2 || sctpddp.r3 || sctpddp.r4 || sctpddp.mode.unknown || sctpddp.short || sctpddp.reserved || sctpddp.offset.not_zero' frame.number)" ] ||
    fail "a rule is broken"
echo "$name: $chunks chunks in 6 associations, each as it must be"
