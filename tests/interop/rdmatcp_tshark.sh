#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rdmatcp_tshark.sh - wireshark/rdmatcp.lua dissects the RDMA/TCP segments that we send: fields, CRC, reassembly.
# SEG-1-01 SEG-2-04 SEG-3.4-10 SEG-3.4-13 SEG-3.4-14 SEG-3.4-37 SEG-4-01 SEG-4-02 SEG-4-03 are checked in the capture.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3
in_own_network "$@"

lua=$RDDP_SOURCE_DIR/wireshark/rdmatcp.lua
here=$RDDP_SOURCE_DIR/tests/interop

ip link set lo mtu 1500 up
ip link set lo gso_max_segs 1 2>/dev/null || true
start_capture "$dir/capture"
# On one CPU loopback keeps the packets in order, and so does the capture.
taskset -c 0 "$RDDP_TOOL" perf --loopback --wire rdmatcp -n 4 -s 1,2,3,5000,70000 >"$dir/perf" || fail "perf: $(cat "$dir/perf")"
stop_capture

# One of our ports may by chance belong to another protocol, so tshark tries its heuristics first.
options=(-X "lua_script:$lua" -o tcp.try_heuristic_first:TRUE)
read_capture() { # CAPTURE: one line a TCP segment, its fields in order of appearance
    local field fields=()
    for field in tcp.stream tcp.srcport tcp.len rdmatcp.version rdmatcp.type rdmatcp.b rdmatcp.e rdmatcp.length rdmatcp.id \
        rdmatcp.number rdmatcp.clen rdmatcp.data_length rdmatcp.crc.status; do
        fields+=(-e "$field")
    done
    tshark "${options[@]}" -r "$1" -T fields -E aggregator=, "${fields[@]}" 2>"$dir/errors" || fail "$(cat "$dir/errors")"
}

read_capture "$dir/capture" >"$dir/lines"
python3 "$here/rdmatcp_lines.py" <"$dir/lines" || fail "the capture is not what it must be"

# All padding that we send must be zero.
tshark "${options[@]}" -r "$dir/capture" -Y rdmatcp.padding -T fields -e rdmatcp.padding 2>/dev/null | tr ',' '\n' | sort -u >"$dir/padding"
[ "$(tr '\n' ' ' <"$dir/padding")" = "00 0000 000000 " ] || fail "padding: $(cat "$dir/padding")"

# Show that the check can fail: change one bit of a payload, and a message number.
python3 - "$dir/capture" "$dir/corrupted" <<'END'
import sys
octets = bytearray(open(sys.argv[1], "rb").read())
at = octets.rfind(b"\x01\x0c")  # a Send of one segment, late: the stream is known by then
while at >= 0 and int.from_bytes(octets[at + 2:at + 4], "big") not in range(25, 1449):
    at = octets.rfind(b"\x01\x0c", 0, at)
octets[at + 24] ^= 1
open(sys.argv[2], "wb").write(octets)
END
read_capture "$dir/corrupted" >"$dir/lines"
! python3 "$here/rdmatcp_lines.py" <"$dir/lines" >"$dir/said" 2>&1 || fail "a wrong octet is not noticed"
grep -q "CRC" "$dir/said" || fail "not for its CRC: $(cat "$dir/said")"
