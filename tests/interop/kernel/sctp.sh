#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# sctp.sh - tests our associations, over our own SCTP, with a real kernel's SCTP over UDP: each indication, both
# roles, each rule broken by either side, loss and reordering. The peer is lib/sctp_peer.c, which has its own implementation of the adaptation.
#
#   sctp.sh PATH/TO/sctp_talk
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here.
# SCTP-2.1-01 SCTP-2.2-23 SCTP-2.2-24 SCTP-3.1-02 SCTP-3.2.1-R1 SCTP-3.2.1-R2 SCTP-3.2.1-R3 SCTP-3.2.1-R4 SCTP-3.2.1-09
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
guest=$here/guest
talk=$(realpath -e "${1:-}" 2>/dev/null)
if [ $# != 1 ] || [ ! -x "$talk" ]; then
    echo "usage: sctp.sh PATH/TO/sctp_talk" >&2
    exit 2
fi
export RDDP_GUEST_NS=${RDDP_GUEST_NS:-rddp-sctp-$$}
tmp=$(mktemp -d)
passed=0 failed=0

cleanup() {
    trap - EXIT
    "$guest" down
    rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -static -o "$tmp/sctp_peer" "$here/lib/sctp_peer.c" ||
    { echo "sctp: skipped: no static programs can be built"; exit 77; }
"$guest" up || exit
"$guest" put "$tmp/sctp_peer" /tmp/sctp_peer || exit 1
"$guest" run 'modprobe sctp && echo 9899 >/proc/sys/net/sctp/udp_port && echo 9899 >/proc/sys/net/sctp/encap_port' ||
    { echo "sctp: skipped: the guest has no SCTP over UDP"; exit 77; }

check() { # NAME FUNCTION [ARGUMENT ...]: when the case fails, it prints why
    local name=$1 start=${EPOCHREALTIME/./} why
    shift
    if why=$("$@" 2>&1); then
        passed=$((passed + 1))
        printf 'ok    %-66s %6d ms\n' "$name" $(((${EPOCHREALTIME/./} - start) / 1000))
    else
        failed=$((failed + 1))
        printf 'FAIL  %s: %s\n' "$name" "${why:-no reason given}"
    fi
}

fail() { # REASON: the end of a case, which has a subshell to itself
    [ -z "${pid:-}" ] || kill -9 "$pid" 2>/dev/null
    "$guest" run "kill -9 \$(pidof sctp_peer)" >/dev/null 2>&1
    echo "$*"
    exit 1
}

expect() { # WHO SAID PATTERN
    # shellcheck disable=SC2053
    [[ $2 == $3 ]] || fail "$1: '$2', not '$3'"
}

they_call() { # OURS THEIRS INDICATION WRONG...: what each says, as a pattern
    local ours=$1 theirs=$2 kind=$3 said
    shift 3
    : >"$tmp/err"
    "$guest" ns "$talk" listen 10.77.0.1 5001 9899 "$kind" >"$tmp/ours" 2>"$tmp/err" &
    pid=$!
    for _ in {1..50}; do ! grep -q listening "$tmp/err" || break; sleep 0.1; done
    said=$("$guest" run "/tmp/sctp_peer connect 10.77.0.2 10.77.0.1 5001 $kind $* 2>/tmp/peer.err" 120) || fail "the peer: $said"
    wait $pid || fail "ours: $(cat "$tmp/err")"
    expect "the peer" "$said" "$theirs"
    expect ours "$(cat "$tmp/ours")" "$ours"
}

we_call() { # the same
    local ours=$1 theirs=$2 kind=$3 said
    shift 3
    "$guest" run ": >/tmp/peer.err; (/tmp/sctp_peer listen 10.77.0.2 10.77.0.1 5001 $kind >/tmp/peer.out 2>/tmp/peer.err; echo over >>/tmp/peer.err) &
        for i in \$(seq 50); do ! grep -q listening /tmp/peer.err || exit 0; sleep 0.1; done; exit 1" || fail "the peer does not listen"
    said=$("$guest" ns "$talk" connect 10.77.0.2 5001 9899 "$kind" "$@" 2>"$tmp/err") || fail "ours: $(cat "$tmp/err")"
    "$guest" run "for i in \$(seq 200); do ! grep -q over /tmp/peer.err || exit 0; sleep 0.1; done; exit 1" || fail "the peer does not end"
    expect "the peer" "$("$guest" run "cat /tmp/peer.out")" "$theirs"
    expect ours "$said" "$ours"
}

indications() { # PREFIX KIND...: of the names of the tests
    local prefix=$1 kind
    for kind in "${@:2}"; do
        check "${prefix}they call, indication $kind" they_call ok ok "$kind"
        check "${prefix}we call, indication $kind" we_call ok ok "$kind"
    done
}

every_rule() {
    local gone='aborted by the peer: the peer aborted the association'
    check "they break R1" they_call 'aborted: chunk-no-placement *' 'aborted by the peer: RDDP0101 R1*' 3 mode 0
    check "they break R2" they_call 'aborted: chunk-ddp *' 'aborted by the peer: RDDP0202 R2*' 3 mode 1
    check "they break R3" they_call 'aborted: chunk-tag *' 'aborted by the peer: RDDP0203 R3*' 1 mode 2
    check "they break R4" they_call 'aborted: chunk-rdma *' 'aborted by the peer: RDDP0204 R4*' 2 mode 3
    check "they use an unknown mode" they_call 'aborted: chunk-mode *' 'aborted by the peer: RDDP0205*' 3 mode 9
    check "they use a tag that there is not" they_call 'aborted: key *' 'aborted by the peer: RDDP0210*' 3 tag
    check "they go beyond the buffer" they_call 'aborted: bounds *' 'aborted by the peer: RDDP0213*' 2 offset
    check "they use no stream's buffer beyond" they_call 'aborted: bounds *' 'aborted by the peer: RDDP0213*' 1 offset
    check "we break R1" we_call "$gone" 'aborted: R1*' 3 mode 0
    check "we break R2" we_call "$gone" 'aborted: R2*' 3 mode 1
    check "we break R3" we_call "$gone" 'aborted: R3*' 1 mode 2
    check "we break R4" we_call "$gone" 'aborted: R4*' 2 mode 3
    check "we use a tag that there is not" we_call "$gone" 'aborted: R5*' 3 tag
    check "we go beyond the buffer" we_call "$gone" 'aborted: R5*' 2 offset
}

indications "" 1 2 3 4 5
every_rule
if "$guest" run 'modprobe sch_netem && tc qdisc add dev eth0 root netem delay 2ms loss 3% reorder 20% 50%'; then
    indications "3 % loss, 20 % reordered: " 1 2 3 4
    "$guest" run 'tc qdisc del dev eth0 root'
else
    failed=$((failed + 1))
    echo "FAIL  no netem in the guest"
fi
quiet() { ! "$guest" run 'dmesg' | grep -E 'BUG|Oops|WARNING|lockup'; }
check "nothing in the guest's log" quiet

echo "sctp: $passed passed, $failed failed"
[ $failed = 0 ]
