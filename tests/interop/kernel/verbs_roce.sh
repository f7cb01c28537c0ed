#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# verbs_roce.sh - tests unmodified programs made for verbs: on our side over rddpe0, under `rddp run`; on the other over
# Linux's rxe, in the guest. Both roles, with queue pairs connected by hand and by rdma_cm, and with losses.
#
#   verbs_roce.sh PATH/TO/rddp
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here.
# shellcheck disable=SC2154 # tmp, guest, ours and theirs are those of the files in lib
set -u

# shellcheck disable=SC2034 # lib/peer.sh and lib/verbs_peer.sh want them
test_name=verbs_roce device=rddpe0 their_gid=1 # of rxe0's GIDs, the one of its IPv4 address
# shellcheck source=tests/interop/kernel/lib/verbs_peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/verbs_peer.sh"
needs ibv_rc_pingpong rping ucmatose udaddy ib_write_bw

by_cm= # whether the server of the case listens by rdma_cm, which nothing in the guest shows

they_listen() {
    if [ -n "$by_cm" ]; then
        wait_for 10 in_guest "pidof $by_cm" || fail "theirs does not start: $(says_theirs)"
        wait_for 2 false
    else
        wait_for 10 in_guest "grep -qhE '$(printf ':%04X 0+:0000 0A ' "$port")' /proc/net/tcp /proc/net/tcp6" ||
            fail "theirs does not listen: $(says_theirs)"
    fi
}

we_listen() { wait_for 10 is_ours || fail "ours does not listen: $(says_ours)"; }

# By rdma_cm, too: the library keeps the port by a socket, just before rdma_listen(). udaddy's port is always 7174.
is_ours() { [ -n "$("$guest" ns ss -Hltun "sport = :$port or sport = :7174")" ]; }

# The pingpongs' own time-outs come to half a second, which an emulated guest beside other work may be silent for: such a
# case, and no other, gets a second chance.
patience=again_if_silent
again_if_silent() { # COMMAND...
    local why
    why=$("$@" 2>&1) && return
    case $why in
    *"acknowledged nothing, after all retries"*) port=$((port + 500)) && "$@" ;;
    *) fail "$why" ;;
    esac
}

# connected NAME SERVER CLIENT: a case of rdma_cm.
connected() {
    by_cm=${2%% *}
    both "$@"
    by_cm=
}

# -u 18: more patience than the half second of perftest's own time-outs.
perftest() { # OPTION... -- TEST...
    local test options=(-u 18)
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    for test; do
        both "$test ${options[*]}" "$test -F -p % -x # ${options[*]}" "$test -F -p % -x # ${options[*]} @"
    done
}

perftest_cm() { # TEST...
    local test
    for test; do connected "$test -R" "$test -F -R -p % -n 100" "$test -F -R -p % -n 100 @"; done
}

lossy() { # PERCENT COMMAND...: of the guest's packets, and of ours
    in_guest "tc qdisc add dev eth0 root netem loss $1%" || fail "no netem in the guest"
    "${@:2}"
    in_guest "tc qdisc del dev eth0 root"
}

# ib_write_bw writes without end, and one end is killed: the writer ends with what its time-outs report.
endless="-F -D 600"
sent_there() { in_guest "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"; }
sends_on() { [ "$(sent_there)" -gt $(($1 + 2000)) ]; }
our_pids() { # PROGRAM
    local pid
    for pid in $(ip netns pids "$RDDP_GUEST_NS"); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$1" ] || echo "$pid"
    done
}

# For rxe seven retries, perftest's usual, are as many as it takes.
ours_is_killed() {
    local before pid by_cm=ib_write_bw
    before=$(sent_there)
    we_run "ib_write_bw $endless -R -p $port" &
    pid=$!
    we_listen
    start_theirs "ib_write_bw $endless -R --retry_count=2 -p $port $ours"
    wait_for 30 sends_on "$before" || fail "no Writes: $(says_theirs)"
    # shellcheck disable=SC2046
    kill -9 $(our_pids ib_write_bw) || fail "ours ended before its time: $(says_ours)"
    wait $pid 2>/dev/null
    wait_for 120 in_guest "[ -s /tmp/$port.rc ]" || fail "theirs still runs: $(says_theirs)"
    in_guest "grep -q 'status 12' /tmp/$port.theirs" || fail "theirs: $(in_guest "head -c 300 /tmp/$port.theirs")"
}

theirs_is_killed() {
    local before pid
    before=$(sent_there)
    start_theirs "ib_write_bw $endless -x $their_gid -p $port"
    they_listen
    we_run "ib_write_bw $endless -u 18 -x $our_gid -p $port $theirs" &
    pid=$!
    wait_for 30 sends_on "$before" || fail "no acknowledgements: $(says_ours)"
    in_guest "kill -9 \$(pidof ib_write_bw)" || fail "theirs ended before its time: $(says_theirs)"
    wait $pid && fail "ours ends well"
    says_ours | grep -q 'status 12' || fail "ours: $(says_ours)"
}

"${CC:-gcc}" -std=gnu11 -O1 -Wall -Wextra -o "$tmp/timewait" "$lib/timewait.c" -lrdmacm -libverbs ||
    { echo "verbs_roce: skipped: no program can be built (librdmacm-dev)"; exit 77; }
"$guest" up || exit
in_guest "modprobe -a crc32_generic rdma_rxe && rdma link del siw0 && rdma link add rxe0 type rxe netdev eth0" ||
    { echo "verbs_roce: skipped: the guest has no rxe"; exit 77; }
wait_for 5 in_guest "grep -q ffff:0a4d:0002 /sys/class/infiniband/rxe0/ports/1/gids/$their_gid"
our_gid=$("$guest" ns "$rddp" run --device rddpe0 -- ibv_devinfo -v | sed -n "s/.*GID\[ *\([0-9]*\)\].*::ffff:$ours,.*/\1/p")
[ -n "$our_gid" ] || { echo "verbs_roce: rddpe0 has no GID of $ours"; exit 1; }

for kind in rc uc srq; do
    both "ibv_${kind}_pingpong" "ibv_${kind}_pingpong -p % -g # -c -n 100" "ibv_${kind}_pingpong -p % -g # -c -n 100 @"
done
both "ibv_rc_pingpong -e, 100000 octets" "ibv_rc_pingpong -p % -g # -c -e -s 100000 -n 20" \
    "ibv_rc_pingpong -p % -g # -c -e -s 100000 -n 20 @"
both "ibv_ud_pingpong" "ibv_ud_pingpong -p % -g # -c -s 1000 -n 100" "ibv_ud_pingpong -p % -g # -c -s 1000 -n 100 @"
perftest -n 100 -- ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw ib_write_lat ib_send_lat

connected "rping -V" "rping -s -a @ -p % -C 50 -V -S 1000" "rping -c -a @ -p % -C 50 -V -S 1000"
connected "ucmatose" "ucmatose -p % -c 3 -C 20 -S 5000" "ucmatose -p % -c 3 -C 20 -S 5000 -s @"
connected "udaddy" "udaddy -c 3 -C 20 -S 1000" "udaddy -c 3 -C 20 -S 1000 -s @"
in_guest "mkdir -p $tmp" && "$guest" put "$tmp/timewait" "$tmp/timewait" || exit 1
connected "TIMEWAIT_EXIT, the server disconnects" "$tmp/timewait -d -s @ %" "$tmp/timewait @ %"
connected "TIMEWAIT_EXIT, the client disconnects" "$tmp/timewait -s @ %" "$tmp/timewait -d @ %"
perftest_cm ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw

for end in ours theirs; do
    port=$((port + 1))
    check "ib_write_bw, $end is killed" ${end}_is_killed
done

lossy 5 both "ibv_rc_pingpong, 5 % lost" "ibv_rc_pingpong -p % -g # -c -n 100" "ibv_rc_pingpong -p % -g # -c -n 100 @"
lossy 5 connected "rping -V, 5 % lost" "rping -s -a @ -p % -C 30 -V -S 1000" "rping -c -a @ -p % -C 30 -V -S 1000"
lossy 1 perftest -n 50 -- ib_write_bw ib_send_bw ib_read_bw
check "the guest's kernel is well" kernel_is_well
finish
