#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# roce.sh - tests RoCE version 2 from a plain UDP socket with a real kernel's rxe: ibv_rc_pingpong, ibv_uc_pingpong and
# ibv_ud_pingpong at the other end, in both roles, with losses, and with receives that are not posted in time.
#
#   roce.sh PATH/TO/roce_pingpong
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here. README.md lists the cases.
set -u

ours=$(realpath -e "${1:-}" 2>/dev/null)
if [ $# != 1 ] || [ ! -x "$ours" ]; then
    echo "usage: roce.sh PATH/TO/roce_pingpong" >&2
    exit 2
fi
# shellcheck disable=SC2034 # lib/peer.sh wants it
test_name=roce
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/peer.sh"

host=10.77.0.1 peer=10.77.0.2
gid=1 # of the device's GIDs, the one of its IPv4 address

theirs_ends() { # it has written its exit code, which is 0, and it has validated what it received
    wait_for 30 in_guest "[ -s /tmp/pp.rc ]" || fail "the guest's program still runs: $(in_guest "cat /tmp/pp.out")"
    in_guest "[ \$(cat /tmp/pp.rc) = 0 ] && ! grep -q invalid /tmp/pp.out" ||
        fail "the guest's program: $(in_guest "tail -n 5 /tmp/pp.out")"
}

theirs_starts() { # PROGRAM ARGUMENT ...
    in_guest "rm -f /tmp/pp.*; ($* >/tmp/pp.out 2>&1; echo \$? >/tmp/pp.rc) &"
}

says() { # PATTERN: what our end has printed must match
    grep -qE "$1" "$tmp/ours" || fail "not '$1': $(cat "$tmp/ours")"
}

we_call() { # PROGRAM SIZE COUNT OPTION ...
    local program=$1 size=$2 count=$3
    shift 3
    theirs_starts "$program" -g $gid -c -s "$size" -n "$count"
    "$guest" ns "$ours" "$@" $host $peer "$size" "$count" >"$tmp/ours" 2>&1 || fail "$(cat "$tmp/ours")"
    theirs_ends
    says "$count sent, $count received"
}

they_call() { # PROGRAM SIZE COUNT OPTION ...
    local program=$1 size=$2 count=$3 pid
    shift 3
    "$guest" ns "$ours" -s "$@" $host $peer "$size" "$count" >"$tmp/ours" 2>&1 &
    pid=$!
    wait_for 10 sh -c "$guest ns ss -Hltn 'sport = :18515' | grep -q ." || fail "our server does not listen"
    theirs_starts "$program" -g $gid -c -s "$size" -n "$count" $host
    wait $pid || fail "$(cat "$tmp/ours")"
    theirs_ends
    says "$count sent, $count received"
}

lossy() { # FUNCTION ARGUMENT ...: 5 % of the guest's packets, and of ours, are lost
    local code
    in_guest "tc qdisc add dev eth0 root netem loss 5%" || fail "no netem in the guest"
    ("$@") # whose failure is an exit
    code=$?
    in_guest "tc qdisc del dev eth0 root"
    return $code
}

late() { # FUNCTION ARGUMENT ...: the peer waits for our receives, and loses nothing
    "$@" -r && says 'not ready [1-9][0-9]*; wrong'
}

wrong_none() { # no packet of the kernel's had an ICRC that ours did not accept
    "$@" && says 'wrong ICRC 0'
}

"$guest" up || exit
in_guest "modprobe -a crc32_generic rdma_rxe && rdma link del siw0 && rdma link add rxe0 type rxe netdev eth0" ||
    { echo "roce: skipped: the guest has no rxe"; exit 77; }
wait_for 5 in_guest "grep -q ffff:0a4d:0002 /sys/class/infiniband/rxe0/ports/1/gids/$gid"

check "rc: we call, 5000 octets, 200 times" wrong_none we_call ibv_rc_pingpong 5000 200
check "rc: they call, 5000 octets, 200 times" wrong_none they_call ibv_rc_pingpong 5000 200
check "rc: we call, one octet" we_call ibv_rc_pingpong 1 50
check "rc: we call, 1 MiB" we_call ibv_rc_pingpong 1048576 5
check "rc: they call, 1 MiB" they_call ibv_rc_pingpong 1048576 5
check "rc: our receives are late, we call" late we_call ibv_rc_pingpong 5000 20
check "rc: our receives are late, they call" late they_call ibv_rc_pingpong 5000 20
check "rc: 5 % lost, we call" lossy we_call ibv_rc_pingpong 5000 200
check "rc: 5 % lost, they call" lossy they_call ibv_rc_pingpong 5000 200
check "uc: we call" we_call ibv_uc_pingpong 5000 100 -u
check "uc: they call" they_call ibv_uc_pingpong 5000 100 -u
check "ud: we call" wrong_none we_call ibv_ud_pingpong 1000 100 -d
check "ud: they call" wrong_none they_call ibv_ud_pingpong 1000 100 -d
check "ud: the path MTU, we call" we_call ibv_ud_pingpong 1024 50 -d

echo "roce: $passed passed, $failed failed, $((SECONDS - began)) s"
[ $failed = 0 ]
