#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# tshark.sh - what we send is what we say: tshark dissects a conversation over each way to connect, in a network of its
# own, and sees each message as talk foretold it.
set -euo pipefail

cannot() { echo "tshark: cannot run here: $*"; exit 77; }
for tool in tshark dumpcap python3 ip unshare; do
    command -v $tool >/dev/null || cannot "no $tool"
done

# Once more, in a network namespace: root's, or one in which we are root. All of it goes when we do, however that is.
if [ "${1:-}" != inside ]; then
    new=(unshare --net --pid --fork --kill-child)
    [ "$(id -u)" = 0 ] || new+=(--map-root-user)
    "${new[@]}" true 2>/dev/null || cannot "no network namespace"
    exec "${new[@]}" "$0" inside
fi

here=$RDDP_SOURCE_DIR/tests/interop
dir=$(mktemp -d)
export HOME=$dir # no preferences but ours
unset XDG_CONFIG_HOME
dumpcap=
finish() {
    [ -z "$dumpcap" ] || kill "$dumpcap" 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

fail() { echo "tshark: $*" >&2; exit 1; }

start_capture() { # FILE
    : >"$dir/dumpcap" # what the one before said must not be taken for this one's
    dumpcap -q -i lo -s 0 -B 64 -w "$1" -f tcp 2>"$dir/dumpcap" &
    dumpcap=$!
    for _ in $(seq 100); do
        ! grep -q '^File:' "$dir/dumpcap" || return 0
        kill -0 $dumpcap 2>/dev/null || cannot "dumpcap: $(cat "$dir/dumpcap")"
        sleep 0.1
    done
    fail "dumpcap does not begin"
}

# Everything has passed when talk has ended, but may wait in dumpcap's ring.
stop_capture() {
    sleep 1
    kill -INT "$dumpcap"
    wait "$dumpcap" || fail "dumpcap: $(cat "$dir/dumpcap")"
    dumpcap=
    grep -q ': [0-9]*/0 (' "$dir/dumpcap" || fail "dumpcap lost packets: $(cat "$dir/dumpcap")"
}

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
