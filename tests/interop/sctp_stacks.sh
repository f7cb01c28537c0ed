#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# sctp_stacks.sh - rddp over its own SCTP with rddp over usrsctp, an implementation by others, in two processes, and over its own
# at both ends: files, round trips and verified measurements, both address families, several MTUs, and losses.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs nft
in_own_network "$@"
declare -A rddp=([own]=$RDDP_BUILD_DIR/rddp [usrsctp]=$RDDP_BUILD_DIR/tests/interop/usrsctp_rddp)
[ -x "${rddp[usrsctp]}" ] || cannot "built without usrsctp (Debian: libusrsctp-dev)"
couples=("own own" "own usrsctp" "usrsctp own") # the stack of the server, and that of the client
ip link set lo up
ip link set lo gso_max_segs 1 2>/dev/null || true # a batch would be lost whole

mkdir "$dir/served"
head -c 3000001 /dev/urandom >"$dir/source"

lose() { # [NUMBERS]: packets whose number of numgen is one of these, in both directions; without: none
    nft delete table inet losses 2>/dev/null || true
    [ $# != 0 ] || return 0
    nft -f - <<RULES || cannot "nft cannot drop by number"
table inet losses {
    chain arriving {
        type filter hook input priority 0
        meta l4proto udp numgen $1 counter drop
    }
}
RULES
}
lost() { nft list table inet losses | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'; }

start() { # SUBCOMMAND NAME UDP-PORT OPTION...: a server of this kind
    local subcommand=$1 name=$2 udp=$3
    shift 3
    : >"$dir/$name.listening"
    "${rddp[$there]}" "$subcommand" -p 700 --wire sctp --udp-port "$udp" "$@" >"$dir/$name.listening" 2>"$dir/$name.error" &
    started+=($!)
    until grep -q listening "$dir/$name.listening"; do
        kill -0 $! 2>/dev/null || fail "$subcommand $*: $(cat "$dir/$name.error")"
        sleep 0.05
    done
}
start_all() { # ADDRESS OPTION...: servers of files, of round trips and of measurements, at three ports of UDP
    local address=$1
    shift
    started=()
    rm -rf "$dir/served/"*
    start serve serve 9900 -q -a "$address" "$@" "$dir/served"
    start ping ping 9901 --server -a "$address" "$@"
    start perf perf 9902 --server -a "$address" "$@"
}
stop_all() {
    kill "${started[@]}" 2>/dev/null || true
    wait "${started[@]}" 2>/dev/null || true
    started=()
}

said() { tail -n 3 "$dir/said" "$dir"/*.error; }
talk() { # WHAT SUBCOMMAND UDP-PORT ARGUMENT...
    local what=$1 subcommand=$2 udp=$3
    shift 3
    timeout 100 "${rddp[$here]}" "$subcommand" --wire sctp --udp-port "$udp" "$@" >"$dir/said" 2>&1 || fail "$what: $subcommand $*: $(said)"
}
both_ways() { # WHAT ADDRESS OPTION...
    local what=$1 to=$2
    shift 2
    rm -f "$dir/back"
    talk "$what" cp 9900 -p 700 "$@" "$dir/source" "$to:sent"
    cmp "$dir/source" "$dir/served/sent" || fail "$what: cp to: other octets"
    talk "$what" cp 9900 -p 700 "$@" "$to:sent" "$dir/back"
    cmp "$dir/source" "$dir/back" || fail "$what: cp from: other octets"
}
round_trips() { # WHAT ADDRESS SIZE OPTION...
    local what=$1 to=$2 size=$3
    shift 3
    talk "$what" ping 9901 -c 20 -i 0.001 -W 60 -s "$size" "$@" "$to:700"
    grep -q '20 round trips, all verified' "$dir/said" || fail "$what: ping: $(said)"
}
measure() { # WHAT ADDRESS OPTION...
    local what=$1 to=$2
    shift 2
    talk "$what" perf 9902 -n 100 -s 64,20000 "$@" "$to:700"
    [ "$(grep -c ' verified' "$dir/said")" = 12 ] || fail "$what: perf: $(said)"
}

for couple in "${couples[@]}"; do
    here=${couple#* } there=${couple% *}
    for address in 127.0.0.1 ::1; do
        to=$address
        [ $address != ::1 ] || to='[::1]'
        start_all $address
        both_ways "$couple, $to" "$to"
        round_trips "$couple, $to" "$to" 100
        round_trips "$couple, $to" "$to" 100000
        measure "$couple, $to" "$to"
        lose 'random mod 1000 < 10'
        both_ways "$couple, $to, losses" "$to"
        round_trips "$couple, $to, losses" "$to" 20000
        [ "$(lost)" -gt 10 ] || fail "$couple, $to: $(lost) packets lost"
        echo "server and client $couple, $to: well, also with $(lost) packets lost"
        lose
        stop_all
    done
    for mtu in 576 9000 60000; do
        start_all 127.0.0.1 --mtu $mtu
        both_ways "$couple, MTU $mtu" 127.0.0.1 --mtu $mtu
        round_trips "$couple, MTU $mtu" 127.0.0.1 100000 --mtu $mtu
        stop_all
    done
    # RTO.Initial is 1 s (RFC 9260 16): the first INIT is lost, and 2.5 s are enough, unless one end gets no processor.
    start_all 127.0.0.1
    quick=no
    for _ in {1..5}; do
        lose 'inc mod 1000000 == 0' # the first
        timeout 2.5 "${rddp[$here]}" ping --wire sctp --udp-port 9901 -q -c 1 127.0.0.1:700 >"$dir/said" 2>&1 && quick=yes && break
    done
    [ "$(lost)" = 1 ] || fail "$couple: $(lost) packets lost, not the first"
    [ $quick = yes ] || fail "$couple: no round trip within 2.5 s if the first INIT is lost: $(said)"
    lose
    stop_all
    # A server that is killed: the client notices, and does not hang.
    start_all 127.0.0.1
    timeout 100 "${rddp[$here]}" ping --wire sctp --udp-port 9901 -q -i 0.01 127.0.0.1:700 >"$dir/said" 2>&1 &
    client=$!
    sleep 0.5
    kill "${started[1]}"
    code=0
    wait $client || code=$?
    [ $code = 1 ] || fail "$couple: the server ended, and the client ended with $code: $(said)"
    stop_all
done
echo "$name: ${#couples[@]} couples of stacks"
