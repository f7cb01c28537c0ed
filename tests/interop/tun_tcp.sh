#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# tun_tcp.sh - tests our TCP behind a TUN device with the kernel's TCP, in both roles and directions, over every MTU, with
# losses. tshark must see no wrong checksum and no anomaly in our packets. MPA-4-02 TCPOPT-0-02 TCPOPT-3.1.8-02
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
in_own_network "$@"
sysctl -qw net.ipv4.tcp_congestion_control=cubic 2>/dev/null || true

talk() { # WORD...
    timeout 100 "$RDDP_BUILD_DIR/tests/interop/tun_tcp" "$@" >"$dir/said" 2>&1 || {
        [ $? != 77 ] || cannot "$(cat "$dir/said")"
        fail "tun_tcp $*: $(cat "$dir/said")"
    }
    echo "$*: $(cat "$dir/said")"
}

for mtu in 1280 1500 9000 65000; do
    talk connect send mtu=$mtu octets=4000000 option=20
    talk listen receive mtu=$mtu octets=4000000
done
talk connect both v6 octets=2000000
talk listen both octets=2000000 option=20
talk listen send v6 octets=2000000 mtu=9000 fast option=20
talk connect receive octets=4000000 fast
# loss=1000 drops one packet in a hundred in each direction, loss=5000 one in twenty. Units and options must stay intact.
talk connect send octets=8000000 loss=1000 option=20 unit=4321
talk connect receive octets=8000000 loss=1000
talk listen both octets=1000000 loss=5000 option=16
# The kernel must understand our SACK blocks: it may not resend many more segments than were lost.
# After a time-out it resends what it likes, and on a busy machine it has some: such a run shows nothing.
value() { sed "s/.*$1=\([0-9]*\).*/\1/" "$dir/said"; }
timeouts() { awk '/^TcpExt:/ { if (!n++) split($0, name); else for (i in name) if (name[i] == "TCPTimeouts") print $i }' /proc/net/netstat; }
for _ in {1..10}; do
    before=$(timeouts)
    talk connect receive octets=8000000 loss=500 window=4000000
    after=$(timeouts)
    [ "$(value duplicates)" -gt $(($(value dropped) + 5)) ] || break
    [ "$after" -gt "$before" ] || break
done
[ "$(value duplicates)" -le $(($(value dropped) + 5)) ] || fail "$(value duplicates) segments came twice, $(value dropped) were lost"

ip tuntap add dev ours mode tun vnet_hdr 2>/dev/null || cannot "no TUN device can be made"
ip link set ours up
capture() { # FILE WORD...
    local file=$1
    shift
    start_capture "$file" ours
    talk "$@"
    echo $(($(value probes) + $(value timeouts))) >"$file.late"
    stop_capture
}
ours='ip.src == 10.9.0.2'
odd="($strange) || $broken"
look() { # FILE FILTER
    # Our payload at port 7000 is not Gryphon's.
    tshark -d tcp.port==7000,data -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -r "$1" -Y "$2" 2>/dev/null
}

capture "$dir/send" connect send octets=1000000 option=20
capture "$dir/both" listen both octets=1000000 option=20 mtu=1500
for file in send both; do
    [ "$(look "$dir/$file" "$ours && tcp.len > 0" | wc -l)" -gt 300 ] || fail "$file: our segments are not in the capture"
    # What one of the two answers late, because it got no processor time for a while, is sent again. A SYN too: Linux takes
    # up to a second until it sends through a device that has just been opened.
    look "$dir/$file" "$ours && tcp.flags.syn == 0 && ($odd)" >"$dir/odd"
    [ "$(wc -l <"$dir/odd")" -le "$(cat "$dir/$file.late")" ] || fail "$file: $(head -5 "$dir/odd")"
    # Each segment with data must have the option, aligned to four octets.
    tshark -r "$dir/$file" -Y "$ours && tcp.len > 0" -T fields -e tcp.options 2>/dev/null |
        grep -qvE '^0101080a.{16}1914' && fail "$file: data without the option, or not where it has to be"
done
# Show that the check can fail.
capture "$dir/lossy" connect send octets=1000000 loss=5000
look "$dir/lossy" "$ours && ($odd)" >"$dir/odd"
[ -s "$dir/odd" ] || fail "losses are not noticed"
look "$dir/lossy" "tcp.checksum.status == 0 && $ours" >"$dir/odd"
[ ! -s "$dir/odd" ] || fail "lossy: $(head -5 "$dir/odd")"
