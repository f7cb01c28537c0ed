# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # libraries is the caller's
# pair.sh - two ends of one program, each bounded in time, and a line about how they ended. Sourced in a network namespace of
# its own, where every listening socket is ours.

# Where both ends of a ping-pong look at memory, or at an empty queue, each turn takes the slices of all that wait for the
# processor: a minute is not enough beside eight that compute.
: "${seconds:=240}"
device=$RDDP_DEVICE udp_port='' tcp_port='' passed=0 failed=0 left=0
tmp=$(mktemp -d)
server='' code='' preload=''

cleanup() {
    trap - EXIT
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

# bounded COMMAND...: as a program of verbs is started with our libraries. Its end is that of all its processes.
bounded() {
    LD_LIBRARY_PATH=$libraries exec timeout -k 2 "$seconds" ${preload:+env LD_PRELOAD="$preload"} "$@"
}

verdict() { # NAME FAILURE-OR-NOTHING
    if [ -z "$2" ]; then
        passed=$((passed + 1))
        printf '%-24s %s PASS\n' "$1" $device
    else
        failed=$((failed + 1))
        printf '%-24s %s FAIL: %s\n' "$1" $device "$2"
        tail -n 30 "$tmp/server" "$tmp/client" 2>/dev/null | sed 's/^/      | /'
    fi
}

left_out() { # NAME REASON
    left=$((left + 1))
    printf '%-24s %s left out: %s\n' "$1" $device "$2"
}

is_missing() { # NAME PROGRAM
    ! command -v "$2" >/dev/null || return 1
    left_out "$1" "$2 is not installed"
}

# A server that forks leaves its children a moment to end, and they have its socket.
is_quiet() {
    for _ in {1..400}; do
        [ -n "$(ss -Hltn)" ] || return 0
        sleep 0.05
    done
    return 1
}

# At a port of ours, or of the program's own if that comes later.
listens() {
    for _ in {1..400}; do
        [ -z "$(ss -Hltn ${udp_port:+-u sport = :$udp_port}${tcp_port:+sport = :$tcp_port})" ] || return 0
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}

start_server() { # COMMAND
    : >"$tmp/client"
    is_quiet || return 1
    # shellcheck disable=SC2086 # a command and its options
    (bounded $1) >"$tmp/server" 2>&1 &
    server=$!
    listens
}

run_client() { # COMMAND [INPUT]
    # shellcheck disable=SC2086
    (bounded $1) >"$tmp/client" 2>&1 <"${2:-/dev/null}"
}

# try_pair SERVER CLIENT [INPUT]: leaves what failed in `why`.
try_pair() {
    local client=0
    why=''
    start_server "$1" || why="the server does not listen"
    [ -n "$why" ] || run_client "$2" "${3:-}" || client=$?
    [ $client = 0 ] || kill "$server" 2>/dev/null
    wait "$server" || why=${why:-"the server ends with $?"}
    [ $client = 0 ] || why="the client ends with $client"
    server=''
}

# pair NAME SERVER CLIENT [INPUT]: passes if both end with 0.
pair() {
    local why
    is_missing "$1" "${2%% *}" && return
    try_pair "${@:2}"
    verdict "$1" "$why"
}

# try_endless SERVER CLIENT: leaves what failed in `why`, and kills the server.
try_endless() {
    why=''
    start_server "$1" || why="the server does not listen"
    [ -n "$why" ] || run_client "$2" || why="the client ends with $?"
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=''
}

# endless NAME SERVER CLIENT: the server runs until it is killed.
endless() {
    local why
    is_missing "$1" "${2%% *}" && return
    try_endless "$2" "$3"
    verdict "$1" "$why"
}

# compare NAME PROGRAM FILE COPY: passes if the copy that a program made is the same.
compare() {
    is_missing "$1" "$2" && return
    [ -s "$4" ] || { verdict "$1" "there is no copy"; return; }
    verdict "$1" "$(cmp "$3" "$4" 2>&1)"
}

# alone NAME COMMAND...: one program. `says` follows, and gives the verdict.
alone() {
    name=$1 code=''
    shift
    is_missing "$name" "$1" && { code=missing; return; }
    : >"$tmp/server"
    (bounded "$@") >"$tmp/client" 2>&1
    code=$?
}

says() { # PATTERN
    case $code in
    missing) ;;
    0) if grep -qE "$1" "$tmp/client"; then verdict "$name" ''; else verdict "$name" "does not print '$1'"; fi ;;
    *) verdict "$name" "ends with $code" ;;
    esac
}

# endless_alone NAME PATTERN COMMAND...: runs until it is killed, which is as soon as it has printed the pattern.
endless_alone() {
    local why="does not print '$2'"
    is_missing "$1" "$3" && return
    : >"$tmp/client"
    (bounded stdbuf -oL "${@:3}") >"$tmp/server" 2>&1 &
    server=$!
    for _ in {1..400}; do
        ! grep -qE "$2" "$tmp/server" || { why=''; break; }
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=''
    verdict "$1" "$why"
}

finish_matrix() { # GROUPS
    echo "$1: $passed passed, $failed failed, $left left out"
    [ $failed = 0 ] || exit 1
    [ $passed != 0 ] || { echo "none of the programs is installed"; exit 77; }
    exit 0
}
