#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# tcpopt_ebpf.sh - the TCP RDMA option between our streams and a second implementation: the kernel's TCP with a BPF
# program, in another network namespace. Both roles and directions, with losses. Data and options must agree.
# TCPOPT-1-01 TCPOPT-3.1.1-01 TCPOPT-3.1.5-01 TCPOPT-3.1.6-01 TCPOPT-3.1.8-01 TCPOPT-3.2-01 TCPOPT-3.3-03
set -euo pipefail
source_dir=${RDDP_SOURCE_DIR:?}/tests/interop
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "$source_dir/lib/capture.sh"
needs clang cc nft nsenter findmnt
[ -e /usr/include/bpf/libbpf.h ] || cannot "no libbpf (Debian: libbpf-dev)"
[ -e /sys/kernel/btf/vmlinux ] || cannot "the kernel has no type information for BPF"
groups=$(findmnt -n -t cgroup2 -o TARGET | head -1)
[ -n "$groups" ] || cannot "no cgroup2 file system is mounted"
in_own_network "$@"
group=$groups/rddp-test-$(basename "$dir")
mkdir "$group" 2>/dev/null || cannot "no control group can be made in $groups"
far_away=
leave() {
    [ -z "$far_away" ] || kill "$far_away" 2>/dev/null || true
    [ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true
    wait
    started=()
    for _ in $(seq 100); do # processes may take a moment to leave it
        rmdir "$group" 2>/dev/null && break
        sleep 0.1
    done
    cleanup
}
trap leave EXIT
triplet=$(cc -dumpmachine)
clang -O2 -g -target bpf "-I/usr/include/$triplet" -c "$source_dir/ebpf/tcpopt.bpf.c" -o "$dir/tcpopt.bpf.o" || fail "the BPF program does not compile"
cc -std=gnu11 -O2 -Wall -Wextra "$source_dir/ebpf/peer.c" -o "$dir/peer" -lbpf || fail "the peer does not compile"

# shellcheck disable=SC2016
unshare --net bash -c 'read -r pid rest </proc/self/stat; echo "/proc/$pid/ns/net" >"$1"; exec sleep 1000' far "$dir/far" &
far_away=$!
until [ -s "$dir/far" ]; do
    kill -0 $far_away 2>/dev/null || cannot "no second network namespace"
    sleep 0.05
done
far() { nsenter "--net=$(cat "$dir/far")" "$@"; }
ip link set lo up
ip link add near type veth peer name remote 2>/dev/null || cannot "no veth devices can be made"
ip link set remote netns "$(cat "$dir/far")"
ip address add 10.82.2.1/24 dev near
ip link set near up
far ip address add 10.82.2.2/24 dev remote
far ip link set remote up
far ip route add default via 10.82.2.1
far sysctl -qw net.ipv4.tcp_congestion_control=cubic 2>/dev/null || true
sysctl -qw net.ipv4.ip_forward=1
ip tuntap add dev ours mode tun vnet_hdr 2>/dev/null || cannot "no TUN device can be made"
ip link set ours up

lose() { # PER_THOUSAND, in each direction
    nft delete table netdev losses 2>/dev/null || true
    [ "$1" != 0 ] || return 0
    nft -f - <<RULES || cannot "nft has no ingress chains"
table netdev losses {
    chain ours {
        type filter hook ingress device "ours" priority 0
        meta length > 200 numgen random mod 1000 < $1 drop
    }
    chain near {
        type filter hook ingress device "near" priority 0
        meta length > 200 numgen random mod 1000 < $1 drop
    }
}
RULES
}

port=7000
wait_ready() { # FILE PID
    until grep -q ready "$1"; do
        kill -0 "$2" 2>/dev/null || return 0 # it tells why when it is waited for
        sleep 0.05
    done
}
finish() { # PID...: waits for all; if the first that ends has failed, it does not wait for the others
    local code=0 pid
    wait -n "$@" 2>/dev/null || code=$?
    if [ $code = 0 ] || [ $code = 127 ]; then # 127: all had ended
        code=0
        for pid in "$@"; do
            wait "$pid" || code=$?
        done
    fi
    [ $code != 77 ] || cannot "$(cat "$dir/peer.error")"
    [ $code = 0 ] || fail "code $code: $(cat "$dir"/{peer,ours}.{error,said})"
}
# talk connect|listen send|receive|both [partly]: role and direction are those of our end.
talk() {
    local role=listen direction=$2 peer ours file
    [ "$1" = connect ] || role=connect
    [ "$2" != send ] || direction=receive
    [ "$2" != receive ] || direction=send
    port=$((port + 1))
    for file in "$dir"/{peer,ours}.{error,said}; do
        : >"$file"
    done
    run_peer() {
        local address=10.82.2.2
        [ $role = listen ] || address=10.82.1.2
        timeout 100 nsenter "--net=$(cat "$dir/far")" "$dir/peer" "$dir/tcpopt.bpf.o" "$group" $role "$direction" $address $port \
            >"$dir/peer.said" 2>"$dir/peer.error" &
        peer=$!
    }
    run_ours() {
        timeout 100 "$RDDP_BUILD_DIR/tests/interop/stream_end" ours "$@" 10.82.1.1 10.82.1.2 10.82.2.2 $port \
            "${partly[@]}" >"$dir/ours.said" 2>"$dir/ours.error" &
        ours=$!
    }
    local partly=("${@:3}")
    if [ "$1" = connect ]; then
        run_peer
        wait_ready "$dir/peer.said" "$peer"
        kill -0 "$peer" 2>/dev/null || finish "$peer"
        run_ours connect "$2"
    else
        run_ours listen "$2"
        wait_ready "$dir/ours.said" "$ours"
        run_peer
    fi
    started=("$peer" "$ours")
    finish "$peer" "$ours"
    started=()
    echo "$*: ours $(tail -1 "$dir/ours.said"); kernel $(tail -1 "$dir/peer.said")"
}
of() { # FIELD FILE
    sed -n "s/.*$1=\([0-9]*\).*/\1/p" "$2"
}

talk connect receive
talk listen receive
talk connect send
talk listen send
# Where data flow one way there are no SACK blocks beside them, and each segment has its option.
lose 10
talk connect receive
[ "$(of early "$dir/ours.said")" -gt 0 ] || fail "nothing was placed before its turn"
talk listen send
[ "$(of again "$dir/ours.said")" -gt 0 ] || fail "nothing was lost"
# Both ways the kernel prefers SACK blocks to the room that BPF asks for, so they are off.
far sysctl -qw net.ipv4.tcp_sack=0
talk connect both
talk listen both
[ "$(of no_room "$dir/peer.said")" = 0 ] || fail "segments without room for the option"
# With them some segments have no option. Their data are read as plain octets, and none is lost.
far sysctl -qw net.ipv4.tcp_sack=1
talk connect both partly
