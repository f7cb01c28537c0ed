#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# tcpopt_tshark.sh - wireshark/tcpopt.lua dissects every vector of the TCP RDMA option and reports the wrong ones.
# TCPOPT-3.1-01 TCPOPT-3.1.1-03 TCPOPT-3.1.2-03 TCPOPT-3.1.3-03 TCPOPT-3.1.8-03
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3
dir=$(mktemp -d)
trap cleanup EXIT
export HOME=$dir

here=$RDDP_SOURCE_DIR/tests/interop
fields=()
for field in length a u rid buffer_offset data_offset data_length total; do
    fields+=(-e "tcpopt.$field")
done
python3 "$here/tcpopt_vectors.py" make "$dir/capture"
tshark -X "lua_script:$RDDP_SOURCE_DIR/wireshark/tcpopt.lua" -r "$dir/capture" -T fields "${fields[@]}" -e _ws.expert.message \
    >"$dir/lines" 2>"$dir/errors" || fail "$(cat "$dir/errors")"
python3 "$here/tcpopt_vectors.py" check <"$dir/lines" || fail "not what the vectors say"
# Show that the check can fail.
! sed '20s/0x/0x1/' "$dir/lines" | python3 "$here/tcpopt_vectors.py" check 2>/dev/null || fail "a wrong RID is not noticed"
