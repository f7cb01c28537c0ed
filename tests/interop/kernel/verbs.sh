#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# verbs.sh - tests unmodified programs made for verbs: on our side over rddp0, under `rddp run`; on the other over Linux's
# siw, in the guest. Both roles.
#
#   verbs.sh PATH/TO/rddp
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here.
# shellcheck disable=SC2154 # tmp, guest, passed, failed and began are peer.sh's
set -u

# shellcheck disable=SC2034 # lib/peer.sh wants it
test_name=verbs device=rddp0
# shellcheck source=tests/interop/kernel/lib/verbs_peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/verbs_peer.sh"
needs rping ucmatose rstream ib_write_bw

they_listen() {
    local socket
    # A wildcard of siw's listens at each address of its devices, one after the other, that of loopback among them.
    # shellcheck disable=SC2046,SC2086 # octets of an address, in the order that /proc has
    socket=$(IFS=.; set -- $theirs; printf '%02X%02X%02X%02X:%04X .* 0A ' $4 $3 $2 $1 "$port")
    wait_for 10 in_guest "grep -qE '$socket|00000000:$(printf '%04X .* 0A ' "$port")' /proc/net/tcp" ||
        fail "theirs does not listen: $(says_theirs)"
}

we_listen() { wait_for 10 is_ours || fail "ours does not listen: $(says_ours)"; }
is_ours() { [ -n "$("$guest" ns ss -Hltn "sport = :$port")" ]; }

# Two faults of siw show when the emulated guest is busy, and such a case, no other, gets more chances. It may overlook
# what comes right behind its MPA Reply, so that both ends wait. And when a program ends right after it has sent, TCP may
# reset the connection before all of that has left: probably since siw closes a socket with messages of ours unread.
again_if() { # PATTERN COMMAND...: of what it prints when it fails
    local said=$1 why
    shift
    for _ in 1 2 3; do
        why=$("$@" 2>&1) && return
        grep -q "$said" <<<"$why" || fail "$why"
        port=$((port + 500))
    done
    "$@"
}

"$guest" up || exit
both "rping -V" "rping -s -a @ -p % -C 50 -V -S 1000" "rping -c -a @ -p % -C 50 -V -S 1000"
both "rping -V, 60000 octets" "rping -s -a @ -p % -C 20 -V -S 60000" "rping -c -a @ -p % -C 20 -V -S 60000"
# Its server speaks first. siw calls without the peer-to-peer mode of RFC 6581, and then the end that was called must wait
# for the first message (RFC 5044 7.1.2): both would wait if they called.
port=$((port + 1))
seconds=30 # of 1
check "we call: ucmatose" again_if "receiving data transfers" we_call "ucmatose -p % -c 3 -C 20 -S 5000" "ucmatose -p % -c 3 -C 20 -S 5000 -s @"
seconds=${RDDP_VERBS_SECONDS:-120}
for program in ib_write_bw ib_read_bw ib_send_bw; do
    both "$program -R" "$program -R -p % -n 200" "$program -R -p % -n 200 @"
done
both "ib_send_lat -R" "ib_send_lat -R -p % -n 100" "ib_send_lat -R -p % -n 100 @"
# Rsockets: messages are Sends, and data RDMA Writes.
patience='again_if Connection.reset.by.peer'
for option in "-S 64 -C 10 -I 20" "-S 40000 -C 4 -I 3" "-S 1000000 -C 2 -I 2"; do
    both "rstream $option" "rstream -p % -T v $option" "rstream -p % -T v $option -s @"
done
patience=
# Debian's rpoll() reports POLLHUP when the peer has closed, data or not, and then its rstream -T a reads no further.
port=$((port + 1))
check "we call: rstream -T a" we_call "rstream -p % -T v -T a -S 3000 -C 10 -I 5" "rstream -p % -T v -T a -S 3000 -C 10 -I 5 -s @"
both "riostream" "riostream -p % -T v -S 4096 -C 10 -I 3" "riostream -p % -T v -S 4096 -C 10 -I 3 -s @"
check "the guest's kernel is well" kernel_is_well

echo "verbs: $passed passed, $failed failed, $((SECONDS - began)) s"
[ "$failed" = 0 ]
