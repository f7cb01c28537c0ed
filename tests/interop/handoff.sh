#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# handoff.sh - our TCP takes over connections that the kernel's TCP has begun, over a veth pair between two network
# namespaces. The peer is the kernel's TCP or our own. The test covers both roles, every MTU, losses, killed processes,
# missing privileges and forged packets. tshark must see one FPDU in each of our segments, and no anomaly.
# MPA-2-01 MPA-3.2-04 MPA-4-02 MPA-4-03 MPA-5.1-01 MPA-5.1-03 MPA-7.3-02 MPA-7.3-03
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3 tshark dumpcap nsenter setpriv ss
in_own_network "$@"
rddp=$RDDP_BUILD_DIR/rddp
# The process writes the path of its namespace as /proc shows it, because /proc numbers processes differently.
# shellcheck disable=SC2016
unshare --net bash -c 'read -r pid rest </proc/self/stat; echo "/proc/$pid/ns/net" >"$1"; exec sleep 1000' far "$dir/far" &
far_away=$!
trap 'kill $far_away 2>/dev/null; cleanup' EXIT
until [ -s "$dir/far" ]; do
    kill -0 $far_away 2>/dev/null || cannot "no second network namespace"
    sleep 0.05
done
into_far=(nsenter "--net=$(cat "$dir/far")")
far() { "${into_far[@]}" "$@"; }
ip link set lo up
ip link add near type veth peer name remote 2>/dev/null || cannot "no veth devices can be made"
ip link set remote netns "$(cat "$dir/far")"
ip address add 10.81.0.1/24 dev near
ip address add fd81::1/64 dev near nodad
ip link set near up
far ip address add 10.81.0.2/24 dev remote
far ip address add fd81::2/64 dev remote nodad
far ip link set remote up
far ip link set lo up

mkdir "$dir/served"
head -c 3000000 /dev/urandom >"$dir/source"

serve() { # near|far OPTION...
    local where=()
    [ "$1" = near ] || where=("${into_far[@]}")
    shift
    rm -rf "$dir/served/"*
    : >"$dir/listening"
    "${where[@]}" "$rddp" serve -q -p 700 "$@" "$dir/served" >"$dir/listening" 2>"$dir/server" &
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
    ! grep -q "stays with the kernel" "$dir/server" || fail "not handed off: $(cat "$dir/server")"
}
both_ways() { # near|far ADDRESS OPTION...
    local where=() to=$2
    [ "$1" = near ] || where=("${into_far[@]}")
    shift 2
    timeout 60 "${where[@]}" "$rddp" cp -p 700 "$@" "$dir/source" "$to:sent" >"$dir/said" 2>&1 || fail "cp to $to $*: $(cat "$dir/said")"
    cmp "$dir/source" "$dir/served/sent" || fail "cp to $to $*: other octets"
    rm -f "$dir/back"
    timeout 60 "${where[@]}" "$rddp" cp -p 700 "$@" "$to:sent" "$dir/back" >"$dir/said" 2>&1 || fail "cp from $to $*: $(cat "$dir/said")"
    cmp "$dir/source" "$dir/back" || fail "cp from $to $*: other octets"
    echo "$to $*: $(tail -1 "$dir/said")"
}

for mtu in 1280 1500 9000 65000; do
    ip link set near mtu $mtu
    far ip link set remote mtu $mtu
    serve near --hand-off
    both_ways far 10.81.0.1
    both_ways far 10.81.0.1 --markers --hand-off
    stop
    serve far
    both_ways near 10.81.0.2 --hand-off
    stop
done
ip link set near mtu 1500
far ip link set remote mtu 1500
serve near --hand-off --wire rdmatcp
both_ways far '[fd81::1]' --wire rdmatcp
stop
serve near --hand-off --immediate
both_ways far '[fd81::1]' --immediate --hand-off
stop

# Without privileges the kernel's TCP keeps the connection, and rddp prints the reason.
serve near
setpriv --bounding-set=-net_admin,-net_raw --inh-caps=-all "$rddp" cp -p 700 --hand-off "$dir/source" 127.0.0.1:sent >"$dir/said" 2>&1 ||
    fail "without privileges: $(cat "$dir/said")"
grep -q 'CAP_NET_ADMIN and CAP_NET_RAW' "$dir/said" || fail "without privileges nothing is said: $(cat "$dir/said")"
stop

# When a process is killed, its peer learns of it with the peer's next packet.
head -c 300000000 /dev/zero >"$dir/large"
serve near --hand-off
far "$rddp" cp -p 700 "$dir/large" 10.81.0.1:large >"$dir/said" 2>&1 &
copy=$!
until [ -n "$(find "$dir/served" -size +2000k)" ]; do
    kill -0 $copy 2>/dev/null || fail "the copy is over: $(cat "$dir/said")"
    sleep 0.02
done
kill -KILL "$server"
wait "$server" || true
started=("$copy")
begun=$SECONDS
wait "$copy" && fail "the peer of a killed process noticed nothing"
started=()
[ $((SECONDS - begun)) -lt 20 ] || fail "the peer noticed after $((SECONDS - begun)) s"
ss -Htan | grep -v LISTEN >"$dir/left" || true
! grep -q ':700 .*ESTAB\|ESTAB.*:700 ' "$dir/left" || fail "left behind: $(cat "$dir/left")"
rm -f "$dir/large"

odd="($strange && !tcp.analysis.zero_window) || $broken"
look() { # FILE FILTER FIELD...
    local file=$1 filter=$2 fields=()
    shift 2
    for field in "$@"; do fields+=(-e "$field"); done
    tshark --disable-protocol rpcordma --disable-protocol smb_direct -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -r "$file" -Y "$filter" -T fields "${fields[@]}" 2>/dev/null
}
far ethtool -K remote tso off gso off gro off >/dev/null 2>&1 || true
ethtool -K near gro off >/dev/null 2>&1 || true
start_capture "$dir/clean" near
serve far
timeout 60 "$rddp" cp -p 700 --hand-off "$dir/source" 10.81.0.2:sent >"$dir/said" 2>&1 || fail "cp: $(cat "$dir/said")"
stop
stop_capture
look "$dir/clean" "ip.src == 10.81.0.1 && tcp.len > 0" tcp.payload | python3 -c '
import sys
seen = wrong = 0
for line in sys.stdin:
    octets = bytes.fromhex(line.strip())
    if octets.startswith(b"MPA ID Re"):
        continue
    seen += 1
    wrong += len(octets) < 8 or (int.from_bytes(octets[:2], "big") + 2 + 3) // 4 * 4 + 4 != len(octets)
print(seen, wrong)' >"$dir/units"
read -r seen wrong <"$dir/units"
[ "$seen" -gt 2000 ] && [ "$wrong" = 0 ] || fail "$wrong of $seen segments are not one FPDU"
# The request has 32 octets. The kernel leaves the checksums of the packets that it sends up to there to the device.
look "$dir/clean" "ip.src == 10.81.0.1 && (tcp.seq > 33 || (tcp.seq == 33 && tcp.len > 0)) && ($odd)" frame.number _ws.col.Info >"$dir/odd"
# A probe to a peer that got no processor time for a while looks like a retransmission.
[ "$(wc -l <"$dir/odd")" -le 2 ] || fail "anomalies: $(head -5 "$dir/odd")"
[ -z "$(look "$dir/clean" "tcp.flags.reset == 1" frame.number)" ] || fail "a reset was sent"
[ "$(look "$dir/clean" "tcp.flags.fin == 1" ip.src | sort -u | wc -l)" = 2 ] || fail "no FIN both ways"
echo "$seen segments, each one FPDU; $(wc -l <"$dir/odd") anomalies"

# rddp itself drops one packet in a hundred, because a rule does not work. A packet socket sees an arriving packet before any
# ingress rule does. A packet dropped as it leaves the peer is known to the peer's TCP, which resends it at once.
lose=(--packet-lose 1000)
serve near --hand-off --markers "${lose[@]}"
both_ways far 10.81.0.1 --markers
both_ways far '[fd81::1]' --markers
stop
serve far --markers
both_ways near 10.81.0.2 --markers --hand-off "${lose[@]}"
# Chance may lose nothing of one copy, which is a few hundred packets on a fast machine.
early=0
for ((i = 0; i < 20 && early <= 10000; i++)); do
    rm -rf "$dir/back"
    "$rddp" cp -p 700 --hand-off "${lose[@]}" --json --markers 10.81.0.2:sent "$dir/back" >"$dir/json" || fail "with losses: $(cat "$dir/json")"
    early=$((early + $(sed -n 's/.*"placed_early_bytes": \([0-9]*\).*/\1/p' "$dir/json")))
done
[ "$early" -gt 10000 ] || fail "behind losses only $early octets were placed early"
echo "losses: $early octets of $i copies were placed early"
stop
