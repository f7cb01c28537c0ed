#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# packet.sh - tests the command with our TCP (--packet). The peer is the kernel's TCP or our own. The test covers both roles,
# every MTU and losses. tshark must see one FPDU in each of our segments, also in retransmissions, and no anomaly.
# MPA-2-01
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3 tshark dumpcap
in_own_network "$@"
rddp=$RDDP_BUILD_DIR/rddp
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward 2>/dev/null || cannot "no forwarding"
ip tuntap add dev probe mode tun 2>/dev/null || cannot "no TUN device can be made"

mkdir "$dir/served"
head -c 5000000 /dev/urandom >"$dir/source"
here=10.71.0.2/24 there=10.72.0.2/24

serve() { # OPTION...
    rm -rf "$dir/served/"*
    : >"$dir/listening"
    "$rddp" serve -q -p 700 "$@" "$dir/served" >"$dir/listening" 2>"$dir/server" &
    server=$!
    started=("$server")
    until grep -q listening "$dir/listening"; do
        kill -0 "$server" 2>/dev/null || fail "serve $*: $(cat "$dir/server")"
        sleep 0.05
    done
}
stop() {
    kill "$server"
    wait "$server" || true
    started=()
}
both_ways() { # ADDRESS OPTION...
    local to=$1
    shift
    timeout 60 "$rddp" cp -p 700 "$@" "$dir/source" "$to:sent" >"$dir/said" 2>&1 || fail "cp to $to $*: $(cat "$dir/said")"
    cmp "$dir/source" "$dir/served/sent" || fail "cp to $to $*: other octets"
    rm -f "$dir/back"
    timeout 60 "$rddp" cp -p 700 "$@" "$to:sent" "$dir/back" >"$dir/said" 2>&1 || fail "cp from $to $*: $(cat "$dir/said")"
    cmp "$dir/source" "$dir/back" || fail "cp from $to $*: other octets"
    echo "$to $*: $(tail -1 "$dir/said")"
}

for mtu in 1280 1500 9000 65000; do
    serve --packet $here --mtu $mtu
    both_ways 10.71.0.2
    both_ways 10.71.0.2 --markers --packet $there --mtu $mtu
    stop
    serve
    both_ways 10.71.0.1 --packet $here --mtu $mtu
    stop
done
serve --packet fd71::2/64
both_ways '[fd71::2]'
stop
serve --packet $here --packet-lose 1000
both_ways 10.71.0.2
for options in --aligned --markers "--markers --no-crc" "--wire rdmatcp" --immediate; do
    stop
    # shellcheck disable=SC2086
    serve --packet $here --packet-lose 1000 $options
    # shellcheck disable=SC2086
    both_ways 10.71.0.2 --packet $there --packet-lose 1000 $options
done
stop

# Each segment is one FPDU. Packets are lost behind the capture, so it shows a lost packet and its retransmission.
ip tuntap add dev ours mode tun vnet_hdr
ip link set ours up
odd="($strange) || $broken"
look() { # FILE FILTER FIELD...
    local file=$1 filter=$2 fields=()
    shift 2
    for field in "$@"; do fields+=(-e "$field"); done
    # These dissectors would take our payload for their protocol.
    tshark --disable-protocol rpcordma --disable-protocol smb_direct -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -r "$file" -Y "$filter" -T fields "${fields[@]}" 2>/dev/null
}
capture() { # FILE LOSSES
    start_capture "$1" ours
    serve
    rm -f "$dir/served/sent"
    timeout 60 "$rddp" cp -p 700 --packet $here --packet-device ours --packet-checksums --packet-lose "$2" "$dir/source" 10.71.0.1:sent \
        >"$dir/said" 2>&1 || fail "cp: $(cat "$dir/said")"
    stop
    stop_capture
}
# Prints the number of segments with data, and how many of them are not exactly one FPDU.
units() { # FILE FILTER
    look "$1" "$2 && tcp.len > 0" tcp.payload | python3 -c '
import sys
seen = wrong = 0
for line in sys.stdin:
    octets = bytes.fromhex(line.strip())
    if octets.startswith(b"MPA ID Re"):
        continue
    seen += 1
    wrong += len(octets) < 8 or (int.from_bytes(octets[:2], "big") + 2 + 3) // 4 * 4 + 4 != len(octets)
print(seen, wrong)'
}

# MPA-3.2-04 MPA-4-03 MPA-5.1-01 MPA-7.3-02 MPA-7.3-03
capture "$dir/clean" 0
read -r seen wrong <<<"$(units "$dir/clean" "ip.src == 10.71.0.2")"
[ "$seen" -gt 3000 ] && [ "$wrong" = 0 ] || fail "$wrong of $seen segments are not one FPDU"
look "$dir/clean" "ip.src == 10.71.0.2 && ($odd)" frame.number _ws.col.Info >"$dir/odd"
# When one of the two gets no processor time for 2 ms, we probe (RFC 8985 7.2), which looks like a retransmission. Anything
# that we send again earlier than that is wrong.
look "$dir/clean" "ip.src == 10.71.0.2 && tcp.len > 0" frame.number frame.time_relative |
    awk 'NR > 1 && $2 - last >= 0.002 { print $1 } { last = $2 }' >"$dir/late"
grep 'Retransmission\]' "$dir/odd" | grep -v 'Fast' | cut -f1 | grep -Fxf "$dir/late" >"$dir/probes" || true
awk 'NR == FNR { probe[$1]; next } !($1 in probe)' FS='\t' "$dir/probes" "$dir/odd" >"$dir/wrong"
[ ! -s "$dir/wrong" ] || fail "anomalies: $(head -5 "$dir/wrong")"
echo "$seen segments, each one FPDU; $(wc -l <"$dir/probes") probes"
# MPA-7.3-09
capture "$dir/lossy" 1000
read -r seen wrong <<<"$(units "$dir/lossy" "ip.src == 10.71.0.2")"
again=$(look "$dir/lossy" 'ip.src == 10.71.0.2 && tcp.len > 0 && tcp.analysis.out_of_order || tcp.analysis.retransmission' frame.number | wc -l)
[ "$seen" -gt 3000 ] && [ "$wrong" = 0 ] && [ "$again" -gt 5 ] || fail "with losses, $wrong of $seen segments are not one FPDU, $again came again"
echo "with losses: $seen segments, each one FPDU, $again of them again"
# Show that the check can fail: the kernel's TCP does not align segments with FPDUs.
start_capture "$dir/kernel"
serve -a 127.0.0.1
timeout 60 "$rddp" cp -p 700 "$dir/source" 127.0.0.1:sent >/dev/null
stop
stop_capture
read -r seen wrong <<<"$(units "$dir/kernel" "tcp.dstport == 700")"
[ "$wrong" -gt 10 ] || fail "segments of the kernel look like FPDUs"
