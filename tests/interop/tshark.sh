#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# tshark.sh - tshark dissects a conversation over each kind of connection in a network of its own, and must see each message
# as talk predicted it.
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

# Flips one bit in every copy of the first octets of the client's payload.
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

# Without segmentation offload the capture shows how TCP segments our FPDUs. An MTU of 1500 cuts messages into many FPDUs;
# 30000 makes large FPDUs. (With an MTU so large that a segment exceeds half the window, TCP's segment size would follow the
# window and could change during the conversation.)
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

    # Show that the check can fail: with a changed message and with changed octets.
    sed '0,/ read-request qn=1 msn=2 /s// read-request qn=1 msn=3 /' "$dir/want" >"$dir/wrong"
    ! compare "$dir/wrong" "$dir/seen" >/dev/null || fail "a wrong expectation is not noticed"
    spoil "$dir/capture" "$dir/spoiled"
    "$here/fpdus.py" "$dir/spoiled" >"$dir/seen"
    ! compare "$dir/want" "$dir/seen" >"$dir/differences" || fail "a wrong octet is not noticed"
    grep -q '^> .* crc=bad' "$dir/differences" || fail "tshark does not notice a wrong CRC"
done
