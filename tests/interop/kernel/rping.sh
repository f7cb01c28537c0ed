#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rping.sh - tests rddp ping with rping on a real kernel: both roles, every MPA start-up that siw knows, and killed processes.
#
#   rping.sh PATH/TO/rddp
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here. README.md lists the cases.
set -u

rddp=$(realpath -e "${1:-}" 2>/dev/null)
if [ $# != 1 ] || [ ! -x "$rddp" ]; then
    echo "usage: rping.sh PATH/TO/rddp" >&2
    exit 2
fi
# shellcheck disable=SC2034 # lib/peer.sh wants it
test_name=rping
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/peer.sh"

declare -A ours=([v4]=10.77.0.1 [v6]=fd77::1) theirs=([v4]=10.77.0.2 [v6]=fd77::2)
few=200 many=10000 endless=1000000 # iterations
port=7200      # each case has its own, which names its files and finds its packets
tool=          # process id of our tool
packet=()      # its options, if its TCP is our own
guest_crc=     # what the guest's siw asks for when it connects: --crc or --no-crc

guest_start() { # --crc or --no-crc
    guest_crc=$1
    if [ "$1" = --crc ]; then "$guest" up --crc; else "$guest" up; fi || exit
    capture_start
}

try() { # NAME FUNCTION [ARGUMENT ...]: a case at a port of its own
    port=$((port + 1))
    check "$@"
}

fail() { # REASON: the end of a case, and of what it has started
    [ -z "$tool" ] || kill -9 "$tool" 2>/dev/null
    "$guest" run "kill -9 \$(pidof rping)" >/dev/null 2>&1
    echo "$*"
    exit 1
}

# --- our tool ------------------------------------------------------------------------------------------------------

tool_start() { # ARGUMENT ...
    "$guest" ns "$rddp" ping --rping -p "$port" "${packet[@]}" "$@" >"$tmp/$port.out" 2>"$tmp/$port.err" &
    tool=$!
}

tool_listens() {
    for _ in {1..50}; do
        [ ${#packet[@]} = 0 ] || ! grep -qs listening "$tmp/$port.out" || return 0
        [ -z "$("$guest" ns ss -Hltn "sport = :$port")" ] || return 0
        kill -0 "$tool" 2>/dev/null || break
        sleep 0.1
    done
    fail "our server does not listen: $(tool_says)"
}

tool_ends() { # SECONDS: returns its exit code
    local i
    for ((i = 0; i < $1 * 10; i++)); do
        kill -0 "$tool" 2>/dev/null || { wait "$tool"; return; }
        sleep 0.1
    done
    fail "our tool still runs after $1 s"
}

tool_says() { head -n 1 "$tmp/$port.err"; }

tool_complains() { # within seconds, with one line and an exit code of its own
    local rc lines
    tool_ends 5
    rc=$?
    lines=$(wc -l <"$tmp/$port.err")
    if [ "$rc" = 0 ] || [ "$rc" -ge 126 ]; then fail "our tool: exit code $rc, $(tool_says)"; fi
    [ "$lines" = 1 ] || fail "our tool says $lines lines, not one: $(tr '\n' ';' <"$tmp/$port.err")"
}

tool_dies() {
    kill -9 "$tool" 2>/dev/null || fail "our tool ended before its time: $(tool_says)"
    wait "$tool" 2>/dev/null
}

# --- the guest's rping ---------------------------------------------------------------------------------------------

rping_start() { # ARGUMENT ...
    "$guest" run "(rping -v -p $port $* >/tmp/$port.out 2>/tmp/$port.err; echo \$? >/tmp/$port.rc) &" || fail "no guest"
}

guest_sees() { # SECONDS CONDITION: waits for it
    "$guest" run "for i in \$(seq $(($1 * 10))); do $2 && exit; sleep 0.1; done; exit 1" $(($1 + 10))
}

rping_listens() {
    local socket
    socket=$(printf ':%04X .* 0A ' "$port")
    guest_sees 5 "grep -q '$socket' /proc/net/tcp /proc/net/tcp6" ||
        fail "the guest's rping does not listen: $(rping_says)"
}

rping_is_busy() { # its output is a block of 4096 octets, or none
    guest_sees 10 "[ -s /tmp/$port.out ]" || fail "nothing done in 10 s: $(tool_says) $(rping_says)"
}

rping_ends() { # SECONDS EXIT-CODE
    local rc
    guest_sees "$1" "[ -s /tmp/$port.rc ]" || fail "the guest's rping still runs after $1 s: $(rping_says)"
    rc=$("$guest" run "cat /tmp/$port.rc")
    # At its end rping destroys the event channel under its own thread, which ends the process if it asks once more.
    [ "$rc" != 255 ] || ! rping_says | grep -q 'rdma_get_cm_event: Bad file descriptor' || rc=0
    [ "$rc" = "$2" ] || fail "the guest's rping: exit code $rc, $(rping_says)"
}

rping_dies() {
    "$guest" run "kill -9 \$(pidof rping)" || fail "the guest's rping ended before its time: $(rping_says)"
}

rping_says() { "$guest" run "cat /tmp/$port.err" | tr '\n' ';'; }

rping_has_seen() { # COUNT: each iteration, in turn, with its number
    local seen
    seen=$("$guest" run "grep -o 'ping data: rdma-ping-[0-9]*:' /tmp/$port.out | sed 's/.*-//; s/://' |
        awk '\$1 != NR - 1 { exit } { n = NR } END { print n + 0 }'; rm /tmp/$port.*")
    [ "$seen" = "$1" ] || fail "the guest has seen $seen iterations, not $1"
}

# --- the wire ------------------------------------------------------------------------------------------------------

option_of() { # --crc|--no-crc: our tool asks for the CRC unless it is told not to
    [ "$1" = --crc ] || echo "$1"
}

frame() { # --crc|--no-crc REVISION: octets 16 and 17 of a Request or Reply; bits C (0x40) and S (0x10)
    local bits=0
    [ "$1" = --crc ] && bits=$((bits | 0x40))
    [ "$2" = 2 ] && bits=$((bits | 0x10))
    printf '%02x%02x' "$bits" "$2"
}

wire_shows() { # REQUEST REPLY, as frame() prints them
    local frames
    frames=$("$guest" ns tcpdump -nr "$tmp/wire.pcap" -x "port $port" 2>/dev/null | sed -n 's/^\s*0x[0-9a-f]*: //p' |
        tr -d ' \n' | grep -oE '52657[01]204672616d65.{4}' | sed 's/.*65//' | xargs)
    [ "$frames" = "$1 $2" ] || fail "MPA frames on the wire: '$frames', not '$1 $2'"
}

# --- the cases -----------------------------------------------------------------------------------------------------

we_call() { # CRC REVISION FAMILY COUNT SIZE
    local quirk=
    # For a request of revision 1 siw reports no room for Reads, and rping accepts that. With -q rping asks for one Read.
    [ "$2" = 1 ] && quirk=-q
    rping_start -s $quirk -a "${theirs[$3]}" -S "$5"
    rping_listens
    # shellcheck disable=SC2046 # an option or none
    tool_start -a "${theirs[$3]}" -c "$4" -S "$5" -V $(option_of "$1") --mpa-rev "$2"
    tool_ends 120 || fail "our client: exit code $?, $(tool_says)"
    rping_ends 5 0
    rping_has_seen "$4"
    wire_shows "$(frame "$1" "$2")" "$(frame "$1" "$2")"
}

they_call() { # CRC FAMILY COUNT SIZE
    local reply=$1
    [ "$guest_crc" = --crc ] && reply=--crc # one side's wish is enough
    # shellcheck disable=SC2046 # an option or none
    tool_start --server -a "${ours[$2]}" -c "$3" -S "$4" $(option_of "$1")
    tool_listens
    rping_start -c -V -a "${ours[$2]}" -C "$3" -S "$4"
    rping_ends 120 0
    tool_ends 5 || fail "our server: exit code $?, $(tool_says)"
    rping_has_seen "$3"
    wire_shows "$(frame "$guest_crc" 2)" "$(frame "$reply" 2)"
}

# Runs FUNCTION with our TCP behind a TUN device on our side. siw uses the kernel's TCP.
over_packets() { # FUNCTION ARGUMENT ...
    packet=(--packet 10.78.0.2/24)
    ours[v4]=10.78.0.2
    "$guest" ns sysctl -qw net.ipv4.ip_forward=1 || fail "no forwarding"
    "$guest" run "ip route replace 10.78.0.0/24 via 10.77.0.1" || fail "the guest takes no route"
    "$@"
}

# Runs FUNCTION with a connection that the kernel's TCP on our side has handed over to our TCP.
over_hand_off() { # FUNCTION ARGUMENT ...
    packet=(--hand-off)
    "$@"
    ! grep -qs "kernel's TCP" "$tmp/$port.err" || fail "it was not handed off: $(tool_says)"
}

# rping takes a disconnection as success, even in the middle, and exits with 0. But when the connection ends while siw still
# sends its Write, siw completes that Write with IBV_WC_LOC_QP_OP_ERR (2) and rping exits with 255. So it does if its thread
# for completions notes a Write (state 9) behind the end. The cases check that it ends and reports the end.
# Of ours nothing is left by then but what the kernel sends. An rping that has seen the end, and says that its test failed,
# now and then does not end itself, beside other work: it has noticed, and is killed.
rping_notices() {
    local rc=0
    if ! guest_sees 20 "[ -s /tmp/$port.rc ]" && rping_says | grep -q 'DISCONNECT EVENT.*wait for.*failed: -1'; then
        rping_dies
        return
    fi
    if rping_says | grep -qE 'cq completion failed status 2|wait for RDMA_READ_ADV state 9'; then rc=255; fi
    rping_ends 5 $rc
    rping_says | grep -q 'DISCONNECT EVENT.*wait for' || fail "the guest's rping noticed nothing: $(rping_says)"
}

our_client_dies() {
    rping_start -s -a "${theirs[v4]}"
    rping_listens
    tool_start -a "${theirs[v4]}" -c $endless
    rping_is_busy
    tool_dies
    rping_notices
}

our_server_dies() {
    tool_start --server -a "${ours[v4]}" -c $endless
    tool_listens
    rping_start -c -a "${ours[v4]}" -C $endless
    rping_is_busy
    tool_dies
    rping_notices
}

their_server_dies() {
    rping_start -s -a "${theirs[v6]}"
    rping_listens
    tool_start -a "${theirs[v6]}" -c $endless
    rping_is_busy
    rping_dies
    tool_complains
}

their_client_dies() {
    tool_start --server -a "${ours[v6]}" -c $endless
    tool_listens
    rping_start -c -a "${ours[v6]}" -C $endless
    rping_is_busy
    rping_dies
    tool_complains
}

alone() { # the guest with itself: when this fails, the fault is not ours
    rping_start -s -a "${theirs[v4]}"
    rping_listens
    "$guest" run "rping -c -V -a ${theirs[v4]} -p $port -C $few >/dev/null" || fail "rping: exit code $?"
    rping_ends 5 0
    rping_has_seen $few
}

guest_start --no-crc
try "guest with itself" alone
for family in v4 v6; do
    for rev in 1 2; do
        for crc in --no-crc --crc; do
            try "we call, IP$family, revision $rev, $crc, $few times" we_call $crc $rev $family $few 64
        done
    done
    try "they call, IP$family, revision 2, --no-crc, $few times" they_call --no-crc $family $few 64
done
try "they call, only we want the CRC, $few times" they_call --crc v4 $few 64
try "we call, shortest size, $few times" we_call --crc 2 v4 $few 23
try "we call, odd size, $few times" we_call --crc 2 v6 $few 1001
try "we call, longest size, 50 times" we_call --crc 2 v4 50 65535
try "they call, longest size, 50 times" they_call --no-crc v6 50 65535
try "we call over packets of our own, $few times" over_packets we_call --crc 2 v4 $few 64
try "we call over packets of our own, no CRC, $few times" over_packets we_call --no-crc 1 v4 $few 64
try "we call over packets of our own, longest size, 50 times" over_packets we_call --crc 2 v4 50 65535
try "they call over packets of our own, $few times" over_packets they_call --no-crc v4 $few 64
try "they call over packets of our own, longest size, 50 times" over_packets they_call --crc v4 50 65535
for family in v4 v6; do
    try "we call by hand-off, IP$family, $few times" over_hand_off we_call --crc 2 $family $few 64
    try "we call by hand-off, IP$family, no CRC, $few times" over_hand_off we_call --no-crc 1 $family $few 64
    try "they call by hand-off, IP$family, $few times" over_hand_off they_call --no-crc $family $few 64
done
try "we call by hand-off, longest size, 50 times" over_hand_off we_call --crc 2 v4 50 65535
try "they call by hand-off, longest size, 50 times" over_hand_off they_call --crc v4 50 65535
try "their server is killed, hand-off" over_hand_off their_server_dies
try "their client is killed, hand-off" over_hand_off their_client_dies
try "we call, $many times" we_call --crc 2 v4 $many 64
try "our client is killed" our_client_dies
try "our server is killed" our_server_dies
try "their server is killed" their_server_dies
try "their client is killed" their_client_dies
try "after the deaths we call, $few times" we_call --no-crc 2 v4 $few 64
try "after the deaths they call, $few times" they_call --no-crc v4 $few 64
check "the guest's kernel is well" kernel_is_well

guest_start --crc
for family in v4 v6; do
    try "they call, IP$family, revision 2, --crc, $few times" they_call --crc $family $few 64
done
try "they call, only they want the CRC, $few times" they_call --no-crc v6 $few 64
try "they call, longest size with CRC, 50 times" they_call --crc v4 50 65535
try "they call, $many times" they_call --crc v4 $many 64
check "the guest's kernel is well" kernel_is_well

echo "rping: $passed passed, $failed failed, $((SECONDS - began)) s"
[ "$failed" = 0 ]
