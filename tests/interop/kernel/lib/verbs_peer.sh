# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # test_name and device are the sourcing script's; guest and tmp are peer.sh's
# verbs_peer.sh - has what the tests with unmodified programs share: one end under `rddp run`, the other in the guest.
# Sourced with the name of our device in `device`; the script's one argument is the path of rddp. The script has
# they_listen() and we_listen(), which wait for the server of the case.

rddp=$(realpath -e "${1:-}" 2>/dev/null)
if [ $# != 1 ] || [ ! -x "$rddp" ]; then
    echo "usage: $test_name.sh PATH/TO/rddp" >&2
    exit 2
fi
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/peer.sh"

ours=10.77.0.1 theirs=10.77.0.2
seconds=${RDDP_VERBS_SECONDS:-120}
port=7300 # each case has its own

needs() { # PROGRAM...
    local program
    "$rddp" env >/dev/null 2>&1 || { echo "$test_name: skipped: this build has no libibverbs.so.1"; exit 77; }
    for program; do
        command -v "$program" >/dev/null || { echo "$test_name: skipped: $program is not installed (ibverbs-utils, rdmacm-utils, perftest)"; exit 77; }
    done
}

we_run() { # COMMAND: ours, bounded
    # shellcheck disable=SC2086 # a command and its options
    "$guest" ns timeout -k 2 $seconds stdbuf -oL "$rddp" run --device $device -- $1 >"$tmp/$port.ours" 2>&1
}

says_ours() { tail -n 12 "$tmp/$port.ours" | tr '\n' ';'; }
says_theirs() { in_guest "tail -n 8 /tmp/$port.theirs" | tr '\n' ';'; }

start_theirs() { # COMMAND
    in_guest "(timeout $seconds $1 >/tmp/$port.theirs 2>&1; echo \$? >/tmp/$port.rc) &" || fail "no guest"
}

theirs_ends() { # with 0
    local code
    in_guest "for i in \$(seq $((seconds * 10))); do [ -s /tmp/$port.rc ] && exit; sleep 0.1; done; exit 1" $((seconds + 10)) ||
        fail "theirs still runs: $(says_theirs)"
    code=$(in_guest "cat /tmp/$port.rc")
    # siw completes a Send with IBV_WC_LOC_QP_OP_ERR (2) if the peer, who has received it, closes before TCP has its
    # acknowledgement: perftest's very last message, after its result.
    [ "$device" != rddp0 ] || ! says_theirs | grep -q 'Bad wc status 2;.*Failed to close connection' || code=0
    [ "$code" = 0 ] || fail "theirs ends with $code: $(says_theirs) ours: $(says_ours)"
}

# fill COMMAND ADDRESS GID: @ stands for the server's address, % for the port, # for the index of a GID.
fill() {
    local filled=${1//@/$2}
    filled=${filled//%/$port}
    echo "${filled//\#/$3}"
}

we_call() { # SERVER CLIENT
    start_theirs "$(fill "$1" $theirs "${their_gid:-}")"
    they_listen
    we_run "$(fill "$2" $theirs "${our_gid:-}")" || fail "ours ends: $(says_ours) theirs: $(says_theirs)"
    theirs_ends
}

they_call() { # SERVER CLIENT
    local pid
    we_run "$(fill "$1" $ours "${our_gid:-}")" &
    pid=$!
    we_listen
    start_theirs "$(fill "$2" $ours "${their_gid:-}")"
    theirs_ends
    wait $pid || fail "ours ends with $?: $(says_ours)"
}

both() { # NAME SERVER CLIENT
    port=$((port + 1))
    check "we call: $1" ${patience:-} we_call "$2" "$3"
    port=$((port + 1))
    check "they call: $1" ${patience:-} they_call "$2" "$3"
}
