#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# tshark.sh - what we send is what we say: tshark dissects a conversation over each way to connect, in a network of its
# own, and sees each message as talk foretold it.
# Shows MPA-7.3-04.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3
in_own_network "$@"

here=$RDDP_SOURCE_DIR/tests/interop

compare() { # WANT SEEN: by connection and direction; within one, order counts
    diff <(grep -v '^#' "$1" | LC_ALL=C sort -s -k1,1n -k2,2) <(grep -v '^#' "$2" | LC_ALL=C sort -s -k1,1n -k2,2)
}

# Every copy of the first octets that the client ever sends gets one bit turned over.
spoil() { # CAPTURE COPY
    python3 - "$1" "$2" <<'END'
import sys
octets = bytes((i * 2654435761 & 0xffffffff) >> 24 for i in range(16))
capture = open(sys.argv[1], "rb").read()
if capture.count(octets) < 12:
    sys.exit("tshark: the capture does not hold what talk sends")
open(sys.argv[2], "wb").write(capture.replace(octets, octets[:-1] + bytes([octets[-1] ^ 1])))
END
}

# Without segmentation offload the capture shows what TCP makes of our FPDUs. 1500 cuts messages into many; 30000 makes
# large ones. (TCP's segment size follows the window while it is more than half of that, and could change on the way.)
for mtu in 1500 30000; do
    ip link set lo mtu $mtu up
    ip link set lo gso_max_segs 1 2>/dev/null || true
    start_capture "$dir/capture"
    "$RDDP_BUILD_DIR/tests/interop/talk" >"$dir/want" || fail "talk has failed"
    stop_capture
    "$here/fpdus.py" "$dir/capture" >"$dir/seen"
    compare "$dir/want" "$dir/seen" >"$dir/differences" || {
        echo "tshark: MTU $mtu: expected (<) and seen (>), of these connections:" >&2
        grep '^#' "$dir/want" >&2
        head -40 "$dir/differences" >&2
        exit 1
    }
    read -r _ fpdus _ _ _ _ longest _ <<<"$(tail -1 "$dir/seen")"
    [ "$longest" -le $((mtu - 40)) ] || fail "MTU $mtu: an FPDU of $longest octets"
    [ "$fpdus" -gt 200 ] || fail "MTU $mtu: no more than $fpdus FPDUs"
    echo "MTU $mtu: $(grep -vc '^#' "$dir/want") lines agree; $(tail -1 "$dir/seen" | tail -c +3)"

    # It can fail: a message that was another, and octets that are not what left.
    sed '0,/ read-request qn=1 msn=2 /s// read-request qn=1 msn=3 /' "$dir/want" >"$dir/wrong"
    ! compare "$dir/wrong" "$dir/seen" >/dev/null || fail "a wrong expectation is not noticed"
    spoil "$dir/capture" "$dir/spoiled"
    "$here/fpdus.py" "$dir/spoiled" >"$dir/seen"
    ! compare "$dir/want" "$dir/seen" >"$dir/differences" || fail "a wrong octet is not noticed"
    grep -q '^> .* crc=bad' "$dir/differences" || fail "tshark does not notice a wrong CRC"
done
