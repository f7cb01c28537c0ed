#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# sctp_tool.sh - tests rddp over a real kernel's SCTP in the guest with rddp over our own on the host. It
# also tests the kernel's SCTP at both ends over plain IP, and an association with two paths that loses one of them.
#
#   sctp_tool.sh PATH/TO/rddp
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here.
# SCTP-2.1-01 SCTP-2.1-08 SCTP-2.2-12 SCTP-2.2-24 SCTP-3.1-01 SCTP-3.1-02 SCTP-3.2.1-R6
set -u

rddp=$(realpath -e "${1:-}" 2>/dev/null)
if [ $# != 1 ] || [ ! -x "$rddp" ]; then
    echo "usage: sctp_tool.sh PATH/TO/rddp" >&2
    exit 2
fi
test_name=sctp_tool
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$source_dir/tests/interop/kernel/lib/peer.sh"
undo+=(servers_stop)

# The program for the guest is statically linked.
build=$(dirname "$(dirname "$rddp")")
if ! make -s -C "$source_dir" BUILD="$build" static >"$tmp/static.log" 2>&1; then
    echo "sctp_tool: skipped: no static command: $(tail -n 1 "$tmp/static.log")"
    exit 77
fi
strip -o "$tmp/rddp" "$build/static/rddp"

"$guest" up || exit
"$guest" put "$tmp/rddp" /tmp/rddp || exit 1
# Linux 6.1 loses SCTP packets over UDP that it leaves to GSO for segmentation.
in_guest 'modprobe -a sctp veth sch_netem && echo 9899 >/proc/sys/net/sctp/udp_port &&
    ip link set dev eth0 gso_max_size 1400 && mkdir /tmp/there' || { echo "sctp_tool: skipped: the guest has no SCTP"; exit 77; }
mkdir "$tmp/here"
head -c 2000000 /dev/urandom >"$tmp/file"

# --- both roles ----------------------------------------------------------------------------------------------------

pids=()
there=(--wire sctp --sctp kernel) here=(--wire sctp)

servers_stop() {
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
    pids=()
    in_guest 'kill $(pidof rddp) 2>/dev/null; true'
}

serve_there() { # ADDRESS OPTION ...: a server of each kind, at ports 7000, 7001, 7002
    local address=$1
    shift
    in_guest "cd /tmp
        (./rddp serve ${there[*]} $* -a $address -p 7000 there >serve.log 2>&1 &)
        (./rddp ping --server ${there[*]} $* -a $address -p 7001 >ping.log 2>&1 &)
        (./rddp perf --server ${there[*]} $* -a $address -p 7002 >perf.log 2>&1 &)
        for i in \$(seq 100); do [ \$(cat serve.log ping.log perf.log | grep -c listening) != 3 ] || exit 0; sleep 0.1; done
        cat serve.log ping.log perf.log; exit 1"
}

serve_here() { # ADDRESS
    rm -f "$tmp"/{serve,ping,perf}.log
    "$guest" ns "$rddp" serve "${here[@]}" -a "$1" -p 7000 "$tmp/here" >"$tmp/serve.log" 2>&1 &
    pids+=($!)
    "$guest" ns "$rddp" ping --server "${here[@]}" --udp-port 9900 -a "$1" -p 7001 >"$tmp/ping.log" 2>&1 &
    pids+=($!)
    "$guest" ns "$rddp" perf --server "${here[@]}" --udp-port 9901 -a "$1" -p 7002 >"$tmp/perf.log" 2>&1 &
    pids+=($!)
    wait_for 20 all_listen || fail "$(cat "$tmp"/*.log)"
}

all_listen() { [ "$(cat "$tmp"/{serve,ping,perf}.log 2>/dev/null | grep -c listening)" = 3 ]; }

we_copy() {
    "$guest" ns timeout 100 "$rddp" cp "${here[@]}" -p 7000 "$tmp/file" "$1":file &&
        "$guest" ns timeout 100 "$rddp" cp "${here[@]}" -p 7000 "$1":file "$tmp/back" && cmp "$tmp/file" "$tmp/back"
}
we_ping() { "$guest" ns timeout 60 "$rddp" ping "${here[@]}" -c 20 -i 0.01 -s 20000 "$1:7001"; }
we_perf() { "$guest" ns timeout 100 "$rddp" perf "${here[@]}" --bw -n 30 -s 64K "$1:7002"; }

they_copy() { # ADDRESS OPTION ...
    local address=$1
    shift
    in_guest "cd /tmp && rm -f back && head -c 2000000 /dev/urandom >file &&
        ./rddp cp ${there[*]} $* -p 7000 file $address:file2 && ./rddp cp ${there[*]} $* -p 7000 $address:file2 back &&
        cmp file back" 200
}
they_ping() { # ADDRESS PORT OPTION ...
    local address=$1
    shift
    in_guest "/tmp/rddp ping ${there[*]} $* -c 20 -i 0.01 -s 20000 $address:7001" 60
}
they_perf() {
    local address=$1
    shift
    in_guest "/tmp/rddp perf ${there[*]} $* --bw -n 30 -s 64K $address:7002" 100
}

for address in 10.77.0.2 [fd77::2]; do
    bare=${address//[][]/}
    check "the kernel serves at $address, in UDP" serve_there "$bare"
    check "we copy there and back" we_copy "$address"
    check "we ping" we_ping "$address"
    check "we measure" we_perf "$address"
    servers_stop
done
for address in 10.77.0.1 [fd77::1]; do
    serve_here "${address//[][]/}"
    check "the kernel copies to us and back, $address, in UDP" they_copy "$address"
    check "it pings" they_ping "$address" --udp-port 9900
    check "it measures" they_perf "$address" --udp-port 9901
    servers_stop
done

# --- plain IP, kernel with kernel ----------------------------------------------------------------------------------

check "kernel with kernel, in IP" serve_there 127.0.0.1 --udp-port 0
check "they copy" they_copy 127.0.0.1 --udp-port 0
check "they ping" they_ping 127.0.0.1 --udp-port 0
check "they measure" they_perf 127.0.0.1 --udp-port 0

no_listener() { # A closed port refuses at once, and a server at all addresses is refused.
    local said
    said=$(in_guest "/tmp/rddp ping ${there[*]} --udp-port 0 127.0.0.1:7009")
    [[ $said == *refused* ]] || fail "$said"
    said=$(in_guest "/tmp/rddp ping --server ${there[*]} --udp-port 0 -a 0.0.0.0 -p 7009")
    [[ $said == *"name those its peers are told"* ]] || fail "$said"
    said=$(in_guest "echo 0 >/proc/sys/net/sctp/udp_port; /tmp/rddp ping ${there[*]} 127.0.0.1:7009")
    [[ $said == *"net.sctp.udp_port"* ]] || fail "$said"
}
check "what cannot be is said" no_listener
servers_stop

# --- two paths, one of them lost -----------------------------------------------------------------------------------

# The timers of SCTP (RFC 9260 16) are: RTO.Initial 0.5 s, RTO.Min 0.3 s, RTO.Max 1 s, Path.Max.Retrans 1, HB.interval 1 s.
two_paths() {
    in_guest '
        for n in a b; do ip netns add $n && ip -n $n link set lo up || exit; done
        for p in 1 2; do
            ip link add a$p netns a type veth peer name b$p netns b
            ip -n a addr add 10.$p.0.1/24 dev a$p && ip -n b addr add 10.$p.0.2/24 dev b$p
            ip -n a link set a$p up && ip -n b link set b$p up || exit
        done
        for n in a b; do
            ip netns exec $n sh -c "cd /proc/sys/net/sctp && echo 300 >rto_min && echo 1000 >rto_max &&
                echo 500 >rto_initial && echo 1 >path_max_retrans && echo 1000 >hb_interval" || exit
        done
        ip netns exec a /tmp/rddp serve --wire sctp --sctp kernel --udp-port 0 -a 10.1.0.1 --own-address 10.2.0.1 -p 7000 \
            /tmp/there >/tmp/serve.log 2>&1 &
        for i in $(seq 100); do ! grep -q listening /tmp/serve.log || exit 0; sleep 0.1; done
        cat /tmp/serve.log; exit 1'
}

# Cuts the busier path in both directions while the copy runs. Prints how long it took until the other path carried data. If
# the guest stood still meanwhile, the printed time is longer.
cut_one() {
    in_guest '
        sent() { ip netns exec b cat /sys/class/net/b$1/statistics/tx_bytes; }
        now() { sed "s/ .*//; s/\.\(..\)/\10/" /proc/uptime; }
        head -c 8000000 /dev/urandom >/tmp/eight
        start1=$(sent 1) start2=$(sent 2)
        ip netns exec b /tmp/rddp cp --wire sctp --sctp kernel --udp-port 0 --own-address 10.1.0.2 --own-address 10.2.0.2 \
            -p 7000 /tmp/eight 10.1.0.1:eight >/tmp/cp.log 2>&1 &
        cp=$!
        for i in $(seq 300); do [ $(($(sent 1) - start1 + $(sent 2) - start2)) -lt 1000000 ] || break; sleep 0.1; done
        ip netns exec b cat /proc/net/sctp/assocs >/tmp/assocs
        dead=1 other=2
        [ $(($(sent 1) - start1)) -gt $(($(sent 2) - start2)) ] || { dead=2; other=1; }
        before=$(sent $other)
        tc -n a qdisc add dev a$dead root netem loss 100% && tc -n b qdisc add dev b$dead root netem loss 100% || exit
        from=$(now)
        until [ $(sent $other) -gt $((before + 20000)) ]; do
            kill -0 $cp 2>/dev/null || { echo "the copy ended before its path was lost"; cat /tmp/cp.log; exit 1; }
            sleep 0.05
        done
        echo "path $dead lost, path $other took over within $(($(now) - from)) ms"
        wait $cp || { tail -n 3 /tmp/cp.log; exit 1; }
        tc -n a qdisc del dev a$dead root && tc -n b qdisc del dev b$dead root
        cmp /tmp/eight /tmp/there/eight' 200
}

failover() {
    local said ms
    for _ in 1 2 3; do
        said=$(cut_one) || fail "$said"
        echo "$said" >>"$tmp/failover"
        ms=$(sed -n 's/.*within \([0-9]*\) ms$/\1/p' <<<"$said")
        [ "${ms:-9999}" -ge 5000 ] || return 0
    done
    fail "$(cat "$tmp/failover")"
}

addresses() {
    local line
    line=$(in_guest 'cat /tmp/assocs')
    [[ $line == *" 10.1.0.2 10.2.0.2 <-> "*"10.1.0.1"*"10.2.0.1 "* ]] || fail "$line"
}

check "two paths" two_paths
check "one is lost, the other takes over in time, the file is whole" failover
[ ! -f "$tmp/failover" ] || sed 's/^/      /' "$tmp/failover"
check "each end told the addresses it was asked to, and no others" addresses
servers_stop

quiet() { ! in_guest 'dmesg' | grep -E 'BUG|Oops|WARNING|lockup'; }
check "nothing in the guest's log" quiet
echo "sctp_tool: $passed passed, $failed failed in $((SECONDS - began)) s"
[ $failed = 0 ]
