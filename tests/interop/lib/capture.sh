# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# capture.sh - gives each test with tshark its own network and folder, and captures the loopback traffic in a file.
# A script sources it. Network, folder and processes are removed when the script ends, also after a failure.

name=$(basename "$0" .sh)
cannot() { echo "$name: cannot run here: $*"; exit 77; }
fail() { echo "$name: $*" >&2; exit 1; }

needs() { # TOOL...
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || cannot "no $tool"
    done
}

# in_own_network "$@" runs the script again in a network namespace of its own, in which the script is root. Sets `dir`.
in_own_network() {
    local new=(unshare --net --pid --fork --kill-child)
    if [ "${1:-}" != inside ]; then
        [ "$(id -u)" = 0 ] || new+=(--map-root-user)
        "${new[@]}" true 2>/dev/null || cannot "no network namespace"
        exec "${new[@]}" "$0" inside
    fi
    dir=$(mktemp -d)
    trap cleanup EXIT
    trap 'exit 1' INT TERM
    export HOME=$dir # no preferences but ours
    unset XDG_CONFIG_HOME
}

started=() dumpcap='' # what runs in the background
cleanup() {
    [ -z "$dumpcap" ] || started+=("$dumpcap")
    [ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true
    rm -rf "$dir"
}

# For root, tshark 4.4 loads no script of Lua, whatever its options say: it runs as another user, as far as it can see.
another_user=()
[ "$(id -u)" != 0 ] || ! unshare --map-user=1000 --map-group=1000 true 2>/dev/null ||
    another_user=(unshare --map-user=1000 --map-group=1000)

# Two processors can deliver loopback packets out of order.
tshark() { "${another_user[@]}" "$(type -P tshark)" -o tcp.reassemble_out_of_order:TRUE "$@"; }

# What tshark thinks of a packet. A peer that got no answer for a while, because this machine was busy, sends a segment
# again; it has to be told that it came twice (RFC 2883), and looks like a duplicate acknowledgement then.
# shellcheck disable=SC2034 # for the scripts
strange="tcp.analysis.flags && !tcp.analysis.window_update && !tcp.analysis.window_full && !(tcp.analysis.duplicate_ack && tcp.options.sack.dsack_le)"
# shellcheck disable=SC2034
broken="tcp.checksum.status == 0 || ip.checksum.status == 0 || _ws.malformed"

start_capture() { # FILE [DEVICE [FILTER]]
    : >"$dir/dumpcap" # what the one before said must not be taken for this one's
    dumpcap -q -i "${2:-lo}" -s 0 -B 64 -w "$1" -f "${3:-tcp}" 2>"$dir/dumpcap" &
    dumpcap=$!
    for _ in $(seq 100); do
        ! grep -q '^File:' "$dir/dumpcap" || return 0
        kill -0 $dumpcap 2>/dev/null || cannot "dumpcap: $(cat "$dir/dumpcap")"
        sleep 0.1
    done
    fail "dumpcap does not begin"
}

# Every packet has been sent by now, but some may still wait in dumpcap's ring.
stop_capture() {
    sleep 1
    kill -INT "$dumpcap"
    wait "$dumpcap" || fail "dumpcap: $(cat "$dir/dumpcap")"
    dumpcap=
    grep -q ': [0-9]*/0 (' "$dir/dumpcap" || fail "dumpcap lost packets: $(cat "$dir/dumpcap")"
}

needs tshark dumpcap ip unshare
