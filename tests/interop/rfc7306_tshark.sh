#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rfc7306_tshark.sh - wireshark/rfc7306.lua dissects the immediate data and atomics that we send with their values, and
# reports wrong ones. EXT-02 EXT-04 EXT-05 EXT-06 are checked in the capture.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3
in_own_network "$@"

here=$RDDP_SOURCE_DIR/tests/interop
options=(-X "lua_script:$RDDP_SOURCE_DIR/wireshark/rfc7306.lua" -o tcp.try_heuristic_first:TRUE)

ip link set lo mtu 1500 up
ip link set lo gso_max_segs 1 2>/dev/null || true
start_capture "$dir/capture"
# On one CPU loopback keeps the packets in order, and so does the capture.
taskset -c 0 "$RDDP_TOOL" perf --loopback -n 20 -s 8 write-imm fetch-add cmp-swap swap >"$dir/perf" || fail "perf: $(cat "$dir/perf")"
stop_capture

read_capture() { # CAPTURE: one line a packet; of each field what its messages have, in order
    local field fields=()
    for field in tcp.srcport tcp.dstport rfc7306.opcode rfc7306.qn rfc7306.msn rfc7306.immediate rfc7306.atomic \
        rfc7306.request rfc7306.to rfc7306.data rfc7306.mask rfc7306.compare rfc7306.compare_mask rfc7306.original \
        rfc7306.short rfc7306.queue rfc7306.unknown; do
        fields+=(-e "$field")
    done
    tshark "${options[@]}" -r "$1" -Y rfc7306 -T fields -E aggregator=, "${fields[@]}" 2>"$dir/errors" || fail "$(cat "$dir/errors")"
    ! grep -qi 'lua.*error' "$dir/errors" || fail "$(cat "$dir/errors")"
}

read_capture "$dir/capture" >"$dir/lines"
python3 "$here/rfc7306_lines.py" <"$dir/lines" || fail "the capture is not what it must be"

# Show that the check can fail: change an atomic's old value, an atomic's operation, and the length of immediate data.
spoil() { # FROM TO OFFSET VALUE: of the last message that begins like this, the octet there
    python3 - "$@" <<'END'
import sys
octets = bytearray(open(sys.argv[1], "rb").read())
at = octets.rfind(bytes.fromhex(sys.argv[3]))
octets[at + int(sys.argv[4])] ^= int(sys.argv[5])
open(sys.argv[2], "wb").write(octets)
sys.exit(at < 0)
END
}
# Each pattern is the length and the control octets of DDP and RDMAP: of a response, a request and immediate data.
for wrong in "001e414b 31 1 values" "0046414a 23 4 unknown" "001a4148 1 1 short"; do
    read -r begins offset value word <<<"$wrong"
    spoil "$dir/capture" "$dir/corrupted" "$begins" "$offset" "$value" || fail "no message $begins in the capture"
    read_capture "$dir/corrupted" >"$dir/lines"
    ! python3 "$here/rfc7306_lines.py" <"$dir/lines" >"$dir/said" 2>&1 || fail "$begins: a wrong octet is not noticed"
    grep -q "$word" "$dir/said" || fail "$begins: not for its $word: $(cat "$dir/said")"
done
