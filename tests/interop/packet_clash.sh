#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# packet_clash.sh - --packet with an address that is the host's own, or that another device has, or to which the host
# sends no packets: an error that says so, and whoever was there first goes on. A persistent device of the administrator's is afterwards as it was before.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs curl
in_own_network "$@"
rddp=$RDDP_BUILD_DIR/rddp
ip link set lo up
ip tuntap add dev probe mode tun 2>/dev/null || cannot "no TUN device can be made"
ip link del probe
mkdir "$dir/a" "$dir/b"
echo first >"$dir/a/f"
echo second >"$dir/b/f"

server=
start() { # WORD...
    : >"$dir/listening"
    "$rddp" "$@" >"$dir/listening" 2>"$dir/server" &
    server=$!
    started=("$server")
    until grep -q listening "$dir/listening"; do
        kill -0 "$server" 2>/dev/null || fail "$*: $(cat "$dir/server")"
        sleep 0.05
    done
}
stop() {
    kill "$server"
    wait "$server" || fail "the server ended badly: $(cat "$dir/server")"
    started=()
}
refused() { # WORD...
    local is=0
    timeout 20 "$rddp" "$@" >"$dir/said" 2>&1 || is=$?
    [ $is = 1 ] || fail "$*: exit code $is, not 1: $(cat "$dir/said")"
    grep -q 'own address, or behind another device, or the host refuses it' "$dir/said" || fail "$*: $(cat "$dir/said")"
}

# --- an address that another has --------------------------------------------------------------------------------------

for own in 10.71.0.2/24 fd71::2/64; do
    address=${own%/*}
    [[ $address != *:* ]] || address="[$address]"
    start http -q --packet $own serve "$dir/a"
    ip -o addr >"$dir/before"
    refused http --packet $own serve "$dir/b"
    refused serve -q -p 700 --packet $own "$dir/b"
    refused http --packet $own get -o "$dir/got" "http://$address/f"
    ip -o addr >"$dir/after"
    cmp "$dir/before" "$dir/after" || fail "something is left behind"
    [ "$(curl -sS -m 20 "http://$address/f")" = first ] || fail "the first one is no longer there"
    stop
done
# Who comes when the first one is about to end waits for it, as for the process of a mount that was just unmounted.
start http -q --packet 10.71.0.2/24 serve "$dir/a"
first=$server
: >"$dir/listening"
"$rddp" http -q --packet 10.71.0.2/24 serve "$dir/b" >"$dir/listening" 2>"$dir/server" &
server=$!
started=("$first" "$server")
sleep 0.3
kill "$first"
wait "$first" || fail "the first server ended badly"
until grep -q listening "$dir/listening"; do
    kill -0 "$server" 2>/dev/null || fail "not waited for an address: $(cat "$dir/server")"
    sleep 0.05
done
[ "$(curl -sS -m 20 http://10.71.0.2/f)" = second ] || fail "not served behind the first one"
stop

ip addr add 10.75.0.1/24 dev lo
ip addr add fd75::1/64 dev lo
for own in 127.0.0.1/8 10.75.0.1/24 10.75.0.1/30 fd75::1/64; do
    refused http --packet $own serve "$dir/b"
    refused serve -q -p 700 --packet $own "$dir/b"
done

# --- an address that the host refuses ----------------------------------------------------------------------------------

for kind in blackhole unreachable prohibit; do
    ip route add $kind 10.76.0.0/24
    ip route add $kind fd76::2/128
    refused http --packet 10.76.0.2/24 serve "$dir/b"
    refused http --packet fd76::2/64 serve "$dir/b"
    ip route del $kind 10.76.0.0/24
    ip route del $kind fd76::2/128
done
# To the address of a broadcast the host opens no connection.
refused http --packet 10.78.0.255/24 serve "$dir/b"
refused http --packet 10.78.0.7/29 serve "$dir/b"
if ip rule add to 10.77.0.0/24 unreachable 2>/dev/null; then
    refused http --packet 10.77.0.2/24 serve "$dir/b"
    ip rule del to 10.77.0.0/24 unreachable
fi

# --- a device that stays ----------------------------------------------------------------------------------------------

ip tuntap add dev mine mode tun
ip link set mine mtu 1400 txqueuelen 77
state() { ip -o link show mine | sed 's/ state [A-Z]*//; s/ qdisc [a-z_]*//; s/,LOWER_UP//'; ip -o addr show mine | grep -v fe80; }
for how in down up; do
    ip link set mine $how
    ip addr replace 10.99.0.1/24 dev mine
    ip addr replace 10.99.0.9/24 dev mine
    state >"$dir/before"
    start http -q --packet 10.71.0.2/24 --packet-device mine serve "$dir/a"
    [ "$(curl -sS -m 20 http://10.71.0.2/f)" = first ] || fail "not served behind the administrator's device"
    ip -o addr show mine | grep 10.99.0.1/24 >/dev/null || fail "the administrator's address is gone: $(ip -o addr show mine)"
    stop
    state >"$dir/after"
    diff "$dir/before" "$dir/after" || fail "http leaves the device otherwise, $how"
    start serve -q -p 700 --packet fd71::2/64 --packet-device mine "$dir/a"
    stop
    state >"$dir/after"
    diff "$dir/before" "$dir/after" || fail "serve leaves the device otherwise, $how"
    refused http --packet 10.75.0.1/24 --packet-device mine serve "$dir/b"
    state >"$dir/after"
    diff "$dir/before" "$dir/after" || fail "a refusal leaves the device otherwise, $how"
done
echo "packet_clash: all as it should be"
