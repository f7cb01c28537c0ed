#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# roce_tool.sh - tests `rddp --wire roce` with a real kernel's rxe and rdma_cm: rping in both roles, Linux's NFS client on
# `rddp nfsd`, and `rddp nfs` on Linux's server, over RoCE.
#
#   roce_tool.sh PATH/TO/rddp
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here. README.md lists the cases.
set -u

rddp=$(realpath -e "${1:-}" 2>/dev/null)
if [ $# != 1 ] || [ ! -x "$rddp" ]; then
    echo "usage: roce_tool.sh PATH/TO/rddp" >&2
    exit 2
fi
# shellcheck disable=SC2034 # lib/peer.sh wants it
test_name=roce_tool
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/peer.sh"

host=10.77.0.1 peer=10.77.0.2
rping_port=7174
mib=$((1 << 20))

# --- rping ---------------------------------------------------------------------------------------------------------

theirs_starts() { # PROGRAM ARGUMENT ...
    in_guest "rm -f /tmp/rp.*; ($* >/tmp/rp.out 2>&1; echo \$? >/tmp/rp.rc) &"
}

theirs_ends() {
    wait_for 60 in_guest "[ -s /tmp/rp.rc ]" || fail "the guest's program still runs: $(in_guest "cat /tmp/rp.out")"
    in_guest "[ \$(cat /tmp/rp.rc) = 0 ]" || fail "the guest's program: $(in_guest "cat /tmp/rp.rc; tail -n 5 /tmp/rp.out")"
}

we_ping() { # COUNT SIZE HOST PEER
    theirs_starts rping -s -a "$4" -C "$1" -V -S "$2"
    wait_for 10 in_guest "pidof rping" || fail "the guest's server does not start"
    wait_for 2 false # rdma_cm does not show who listens
    timeout 100 "$guest" ns "$rddp" ping --rping --wire roce -p $rping_port -q -i 0 -c "$1" -s "$2" "$4" >"$tmp/ours" 2>&1 ||
        fail "$(cat "$tmp/ours")"
    theirs_ends
}

they_ping() { # COUNT SIZE HOST PEER
    local pid
    : >"$tmp/ours"
    timeout 100 "$guest" ns "$rddp" ping --rping --server --once --wire roce -a "$3" -p $rping_port >"$tmp/ours" 2>&1 &
    pid=$!
    wait_for 10 grep -qs listening "$tmp/ours" || fail "our server does not listen: $(cat "$tmp/ours")"
    theirs_starts rping -c -a "$3" -C "$1" -V -S "$2"
    theirs_ends
    wait $pid || fail "$(cat "$tmp/ours")"
}

no_one_listens() { # at that port: some process of ours has to be there, or no one answers
    local pid
    "$guest" ns "$rddp" ping --rping --wire roce -p 7999 -c 1 $peer >"$tmp/refused" 2>&1
    grep -q 'connection refused' "$tmp/refused" || fail "$(cat "$tmp/refused")"
    : >"$tmp/ours"
    "$guest" ns "$rddp" ping --server --wire roce -a $host -p 7998 >"$tmp/ours" 2>&1 &
    pid=$!
    wait_for 10 grep -qs listening "$tmp/ours" || fail "our server does not listen: $(cat "$tmp/ours")"
    in_guest "rping -c -a $host -p 7999 -C 1 >/tmp/refused 2>&1"
    kill $pid
    in_guest "grep -q 'REJECTED, error 8' /tmp/refused" || fail "the guest is told: $(in_guest "cat /tmp/refused")"
}

lossy() { # FUNCTION ARGUMENT ...: 5 % of the guest's packets are lost
    local code
    in_guest "tc qdisc add dev eth0 root netem loss 5%" || fail "no netem in the guest"
    ("$@")
    code=$?
    in_guest "tc qdisc del dev eth0 root"
    return $code
}

# --- killed ----------------------------------------------------------------------------------------------------------

# The kernel ends the connections of a process that is killed with a DREQ, so our end learns it at once. Of ours, only
# requests that have no answer say it (verbs_roce.sh, roce_nfs.sh).

ours_ends() { # PID: by itself, and it says why
    local i code
    for ((i = 0; i < 300; i++)); do kill -0 "$1" 2>/dev/null || break; sleep 0.1; done
    ! kill -9 "$1" 2>/dev/null || fail "ours still runs"
    wait "$1"
    code=$?
    [ $code -lt 126 ] || fail "ours: exit code $code"
    [ $code = 0 ] || [ "$(grep -c '^rddp' "$tmp/ours.err")" = 1 ] || fail "not one line: $(cat "$tmp/ours.err")"
    return $code
}

sent_there() { in_guest "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"; }
sends_on() { [ "$(sent_there)" -gt $(($1 + 200)) ]; }

their_server_dies() { # HOST PEER
    local before pid
    before=$(sent_there)
    theirs_starts rping -s -a "$2"
    wait_for 10 in_guest "pidof rping" || fail "the guest's server does not start"
    wait_for 2 false
    "$guest" ns "$rddp" ping --rping --wire roce -p $rping_port -q -i 0 -c 10000000 "$2" >"$tmp/ours" 2>"$tmp/ours.err" &
    pid=$!
    wait_for 20 sends_on "$before" || fail "no round trips: $(cat "$tmp/ours.err")"
    in_guest "kill -9 \$(pidof rping)" || fail "the guest's server has ended"
    if ours_ends $pid; then fail "ours ends well: $(cat "$tmp/ours")"; fi
}

their_client_dies() { # HOST PEER
    local before pid
    before=$(sent_there)
    : >"$tmp/ours"
    "$guest" ns "$rddp" ping --rping --server --once --wire roce -a "$1" -p $rping_port >"$tmp/ours" 2>"$tmp/ours.err" &
    pid=$!
    wait_for 10 grep -qs listening "$tmp/ours" || fail "our server does not listen: $(cat "$tmp/ours.err")"
    theirs_starts rping -c -a "$1" -C 10000000
    wait_for 20 sends_on "$before" || fail "no round trips: $(cat "$tmp/ours.err")"
    in_guest "kill -9 \$(pidof rping)" || fail "the guest's client has ended"
    ours_ends $pid || true # a server whose client has left at a good moment ends well
    grep -q 'after [1-9]' "$tmp/ours" "$tmp/ours.err" || fail "ours: $(cat "$tmp/ours" "$tmp/ours.err")"
}

# --- NFS -----------------------------------------------------------------------------------------------------------

nfs() { timeout 60 "$guest" ns "$rddp" nfs --wire roce --port 20049 --mount-port 20048 "$@"; }

linux_mounts_ours() {
    local pid
    mkdir -m 777 "$tmp/export"
    head -c $((5 * mib)) /dev/urandom >"$tmp/export/theirs"
    "$guest" ns "$rddp" nfsd --wire roce --state "$tmp/state" --squash none "$tmp/export" >"$tmp/ours" 2>&1 &
    pid=$!
    wait_for 10 grep -qs listening "$tmp/ours" || fail "our server does not listen: $(cat "$tmp/ours")"
    in_guest "mount -t nfs -o vers=3,nolock,proto=rdma,port=20049,mountproto=tcp,mountport=20048 $host:$tmp/export /mnt/a &&
        cat /mnt/a/theirs >/tmp/theirs && dd if=/dev/urandom of=/tmp/ours bs=1M count=5 2>/dev/null &&
        cp /tmp/ours /mnt/a/ours && sync /mnt/a/ours && mkdir /mnt/a/many && (cd /mnt/a/many && seq 100 | xargs touch) &&
        [ \$(ls /mnt/a/many | wc -l) = 100 ]" 60 || fail "the guest: $(tail -n 3 "$tmp/ours")"
    [ "$(in_guest "sha256sum </tmp/theirs")" = "$(sha256sum <"$tmp/export/theirs")" ] || fail "the guest has read another file"
    [ "$(in_guest "sha256sum </tmp/ours")" = "$(sha256sum <"$tmp/export/ours")" ] || fail "another file was written"
    (client_is_content /mnt/a) || exit
    in_guest "umount /mnt/a" 30 || fail "umount"
    kill $pid
    wait $pid || fail "our server's exit code: $?, $(tail -n 3 "$tmp/ours")"
}

we_use_theirs() {
    knfsd_start rw sync no_root_squash || fail "no knfsd"
    head -c $((5 * mib)) /dev/urandom >"$tmp/big"
    nfs -q put "$tmp/big" $peer:/export/big || fail "put"
    [ "$(in_guest "sha256sum </export/big")" = "$(sha256sum <"$tmp/big")" ] || fail "the server has another file"
    nfs -q get $peer:/export/big "$tmp/back" || fail "get"
    cmp "$tmp/big" "$tmp/back" || fail "what came back differs"
    in_guest "mkdir /export/many && cd /export/many && seq 300 | xargs touch"
    [ "$(nfs ls $peer:/export/many | wc -l)" = 300 ] || fail "not 300 names"
    knfsd_stop
}

disk_mib=200
"$guest" up || exit
in_guest "mkdir -p /mnt/a; modprobe -a crc32_generic rdma_rxe && rdma link del siw0 && rdma link add rxe0 type rxe netdev eth0" ||
    { echo "roce_tool: skipped: the guest has no rxe"; exit 77; }
wait_for 5 in_guest "grep -q ffff:0a4d:0002 /sys/class/infiniband/rxe0/ports/1/gids/1"

check "rping: we connect" we_ping 50 1000 $host $peer
check "rping: the kernel connects" they_ping 50 1000 $host $peer
check "rping, IPv6: we connect" we_ping 20 1000 fd77::1 fd77::2
check "rping, IPv6: the kernel connects" they_ping 20 1000 fd77::1 fd77::2
check "rping: no one listens, at either end" no_one_listens
check "rping: 5 % lost, we connect" lossy we_ping 50 4000 $host $peer
check "rping: 5 % lost, the kernel connects" lossy they_ping 50 4000 $host $peer
check "the kernel's server is killed" their_server_dies $host $peer
check "the kernel's server is killed, IPv6" their_server_dies fd77::1 fd77::2
check "the kernel's client is killed" their_client_dies $host $peer
check "the kernel's client is killed, IPv6" their_client_dies fd77::1 fd77::2
check "rping after them: we connect" we_ping 20 1000 $host $peer
check "Linux mounts rddp nfsd" linux_mounts_ours
check "rddp nfs on knfsd" we_use_theirs
check "the guest's kernel is well" kernel_is_well
finish
