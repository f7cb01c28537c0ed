#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# roce_cm.sh - tests the connection manager of RoCE with a real kernel's: ucmatose and udaddy at the other end, in both
# roles, without messages; requests that no one wants; losses and duplicates. Then udaddy with messages, and rddp.h.
#
#   roce_cm.sh PATH/TO/roce_cm_talk PATH/TO/roce_udaddy
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here. README.md lists the cases.
set -u

ours=$(realpath -e "${1:-}" 2>/dev/null)
udaddy=$(realpath -e "${2:-}" 2>/dev/null)
if [ $# != 2 ] || [ ! -x "$ours" ] || [ ! -x "$udaddy" ]; then
    echo "usage: roce_cm.sh PATH/TO/roce_cm_talk PATH/TO/roce_udaddy" >&2
    exit 2
fi
# shellcheck disable=SC2034 # lib/peer.sh wants it
test_name=roce_cm
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/peer.sh"

host=10.77.0.1 peer=10.77.0.2
connections=7471 datagrams=7174 # the ports of ucmatose and udaddy

theirs_starts() { # PROGRAM ARGUMENT ...
    in_guest "rm -f /tmp/cm.*; ($* >/tmp/cm.out 2>&1; echo \$? >/tmp/cm.rc) &"
}

theirs_ends() { # EXIT-CODE
    wait_for 60 in_guest "[ -s /tmp/cm.rc ]" || fail "the guest's program still runs: $(in_guest "cat /tmp/cm.out")"
    in_guest "[ \$(cat /tmp/cm.rc) = $1 ]" ||
        fail "the guest's program: $(in_guest "cat /tmp/cm.rc; tail -n 5 /tmp/cm.out")"
}

says() { # PATTERN: what our end has printed must match
    grep -qE "$1" "$tmp/ours" || fail "not '$1': $(cat "$tmp/ours")"
}

we_call() { # PROGRAM PORT COUNT OPTION ...
    local program=$1 port=$2 count=$3
    shift 3
    theirs_starts "$program" -C 0 -c "$count"
    wait_for 10 in_guest "pidof $program" || fail "the guest's server does not start"
    wait_for 2 false # rdma_cm does not show who listens
    "$guest" ns "$ours" "$@" $host $peer "$port" "$count" >"$tmp/ours" 2>&1 || fail "$(cat "$tmp/ours")"
    says 'wrong ICRC 0'
}

they_call() { # PROGRAM PORT COUNT EXIT-CODE OPTION ...
    local program=$1 port=$2 count=$3 code=$4 pid
    shift 4
    : >"$tmp/ours"
    "$guest" ns "$ours" -s "$@" $host $peer "$port" "$count" >"$tmp/ours" 2>&1 &
    pid=$!
    wait_for 10 grep -qs listening "$tmp/ours" || fail "our server does not listen"
    theirs_starts "$program" -C 0 -c "$count" -s $host
    wait $pid || fail "$(cat "$tmp/ours")"
    theirs_ends "$code"
    says 'wrong ICRC 0'
}

connect_and_leave() { # COUNT: we call, and the kernel disconnects
    we_call ucmatose $connections "$1"
    theirs_ends 0
    says "$1 established, .* 0 failed, $1 disconnected"
}

accept_and_leave() { # COUNT: the kernel calls, and we disconnect
    they_call ucmatose $connections "$1" 0 -w
    says "$1 established, .* 0 failed, $1 disconnected"
}

not_wanted() { # no one listens there
    "$guest" ns "$ours" $host $peer 7999 2 >"$tmp/ours" 2>&1 || fail "$(cat "$tmp/ours")"
    says '2 rejected \(8\)'
}

reject() { # 28: by the application
    they_call ucmatose $connections 1 28 -r
    says '1 rejected'
    in_guest "grep -q 'REJECTED, error: 28' /tmp/cm.out" || fail "$(in_guest "cat /tmp/cm.out")"
}

resolve() {
    we_call udaddy $datagrams 3 -d
    theirs_ends 0
    says '3 resolved, 0 rejected'
}

be_resolved() {
    they_call udaddy $datagrams 3 0 -d
    says '3 resolved, 0 rejected'
}

exchange() { # COUNT MESSAGES OCTETS: datagrams both ways, the kernel's service
    theirs_starts udaddy -c "$1" -C "$2" -S "$3"
    wait_for 10 in_guest "pidof udaddy" || fail "the guest's server does not start"
    wait_for 2 false
    "$guest" ns "$udaddy" $host $peer "$1" "$2" "$3" >"$tmp/ours" 2>&1 || fail "$(cat "$tmp/ours")"
    theirs_ends 0
    says "$2 messages each way with each of $1, wrong ICRC 0"
}

be_exchanged() { # COUNT MESSAGES OCTETS: the same, our service
    local pid
    : >"$tmp/ours"
    "$guest" ns "$udaddy" -s $host $peer "$1" "$2" "$3" >"$tmp/ours" 2>&1 &
    pid=$!
    wait_for 10 grep -qs listening "$tmp/ours" || fail "our server does not listen"
    theirs_starts udaddy -c "$1" -C "$2" -S "$3" -s $host
    wait $pid || fail "$(cat "$tmp/ours")"
    theirs_ends 0
    says "$2 messages each way with each of $1, wrong ICRC 0"
}

lossy() { # FUNCTION ARGUMENT ...: 20 % of the guest's packets are lost, and 20 % come twice
    local code
    in_guest "tc qdisc add dev eth0 root netem loss 20% duplicate 20%" || fail "no netem in the guest"
    "$@"
    code=$?
    in_guest "tc qdisc del dev eth0 root"
    return $code
}

"$guest" up || exit
in_guest "modprobe -a crc32_generic rdma_rxe && rdma link del siw0 && rdma link add rxe0 type rxe netdev eth0" ||
    { echo "roce_cm: skipped: the guest has no rxe"; exit 77; }
wait_for 5 in_guest "grep -q ffff:0a4d:0002 /sys/class/infiniband/rxe0/ports/1/gids/1"

check "we connect 5 times, the kernel disconnects" connect_and_leave 5
check "the kernel connects 5 times, we disconnect" accept_and_leave 5
check "no one listens at the kernel's end" not_wanted
check "we reject the kernel's request" reject
check "we resolve a datagram service of the kernel's" resolve
check "the kernel resolves one of ours" be_resolved
check "datagrams both ways, found by name at the kernel's end" exchange 3 10 100
check "datagrams both ways, found by name at ours" be_exchanged 3 10 1000
check "the same with losses and duplicates: we connect" lossy connect_and_leave 10
check "the same with losses and duplicates: the kernel connects" lossy accept_and_leave 10
check "the guest's kernel is well" kernel_is_well
finish
