#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# sctpddp_tshark.sh - wireshark/sctpddp.lua dissects every vector of the SCTP DDP/RDMA adaptation, reports each broken rule,
# and dissects nothing where an end indicated no adaptation. SCTP-2.1-01 SCTP-2.2-01 SCTP-2.2-18 SCTP-3.1-06
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3
dir=$(mktemp -d)
trap cleanup EXIT
export HOME=$dir # no preferences but ours
unset XDG_CONFIG_HOME

python3 "$RDDP_SOURCE_DIR/tests/interop/sctpddp_capture.py" "$dir/capture" >"$dir/expected"
options=(-X "lua_script:$RDDP_SOURCE_DIR/wireshark/sctpddp.lua" -o sctp.try_heuristic_first:TRUE -o "sctp.checksum:CRC 32c")

# Print one line per chunk, in the format of sctpddp_capture.py.
errors=(short:sctpddp.short r1:sctpddp.r1 r2:sctpddp.r2 r3:sctpddp.r3 r4:sctpddp.r4 mode:sctpddp.mode.unknown
    reserved:sctpddp.reserved offset:sctpddp.offset.not_zero released:sctpddp.released)
read_capture() { # CAPTURE
    local fields=() field
    for field in mode flags tag offset aws length; do
        fields+=(-e "sctpddp.$field")
    done
    for field in "${errors[@]}"; do
        fields+=(-e "${field#*:}")
    done
    tshark "${options[@]}" -r "$1" -Y sctpddp -T fields "${fields[@]}" 2>"$dir/said" || fail "$(cat "$dir/said")"
    ! grep -qi lua "$dir/said" || fail "$(cat "$dir/said")"
}
read_capture "$dir/capture" | python3 -c '
import sys
names = sys.argv[1:]
for line in sys.stdin:
    column = (line.rstrip("\n").split("\t") + [""] * 20)[:6 + len(names)]
    values = [str(int(value, 0)) if value else "" for value in column[:6]]
    print("\t".join(values + [" ".join(name for name, value in zip(names, column[6:]) if value)]))
' "${errors[@]%%:*}" >"$dir/found"
diff "$dir/expected" "$dir/found" >"$dir/diff" || fail "expected (<) and found (>): $(cat "$dir/diff")"
[ "$(wc -l <"$dir/found")" -gt 50 ] || fail "too few chunks: $(wc -l <"$dir/found")"

# tshark's own SCTP dissector checks the indications and the checksums.
tshark "${options[@]}" -r "$dir/capture" -T fields -e sctp.checksum.status 2>/dev/null | sort -u >"$dir/checksums"
[ "$(cat "$dir/checksums")" = 1 ] || fail "checksums: $(cat "$dir/checksums")"
tshark "${options[@]}" -r "$dir/capture" -T fields -e sctp.adaptation_layer_indication 2>/dev/null | sort -u | tr -d '\n' >"$dir/values"
[ "$(cat "$dir/values")" = 0x000000010x000000020x000000030x000000040x00000005 ] || fail "indications: $(cat "$dir/values")"
echo "$name: $(wc -l <"$dir/found") chunks, each as it must be"
