# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# tool.sh - what the tests of the command share: a server in the background, and checks that say what went wrong.
# Sourced. Uses RDDP_TOOL; leaves nothing running and nothing in the file system.

rddp=${RDDP_TOOL:?the path of rddp}
[ -x "$rddp" ] || { echo "there is no $rddp" >&2; exit 1; }
# shellcheck source=tests/lib/folder.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/folder.sh"
tmp=$(mktemp -d)
failed=0 passed=0 server='' port=''

# Can this process act as other users? Root of a user namespace that a user has made cannot.
acts_as_others() { [ "$(id -u)" = 0 ] && [ "$(cat /proc/self/setgroups)" = allow ]; }

# Ends processes at once. The shell does not tell of it: the last line is the reason of a test that cannot run.
put_down() { # PID...
    kill -9 "$@"
    wait "$@"
} 2>/dev/null
cleanup() {
    trap - EXIT
    [ -z "$server" ] || put_down "$server"
    wait 2>/dev/null
    rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

pass() { passed=$((passed + 1)); }
wrong() { # TEXT
    failed=$((failed + 1))
    echo "FAIL  $*"
    sed 's/^/      | /' "$tmp/out" "$tmp/err" 2>/dev/null | head -n 20
}

# expect CODE NAME COMMAND...: its output is in $tmp/out and $tmp/err. Nothing here may take longer than
# $limit seconds, 150 unless it is set, on a machine that has other work.
expect() {
    local code=$1 name=$2 got
    shift 2
    timeout "${limit:-150}" "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    if [ $got = "$code" ]; then pass; else wrong "$name: exit code $got, not $code: $*"; fi
}

# expect_text NAME PATTERN [FILE]: the last command printed it.
expect_text() {
    if grep -qE -e "$2" "$tmp/${3:-out}"; then pass; else wrong "$1: no '$2' in its ${3:-out}"; fi
}

# One line on standard error, which begins with the name of the subcommand.
expect_one_line() { # NAME SUBCOMMAND
    if [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q "^rddp $2: " "$tmp/err"; then pass; else wrong "$1: not one line of rddp $2"; fi
}

# expect_json NAME EXPRESSION: the last command printed one JSON value, `v`, of which this Python expression is true.
expect_json() {
    if python3 -c 'import json, sys; v = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$tmp/out" "$2" \
        2>/dev/null; then pass; else wrong "$1: not so: $2"; fi
}

# start SUBCOMMAND OPTIONS...: a server on a free port; sets `server` and `port`.
start() {
    : >"$tmp/server.out" # the last server's first line must not be taken for this one's
    "$rddp" "$@" -p 0 >>"$tmp/server.out" 2>"$tmp/server.err" &
    server=$!
    for _ in {1..600}; do
        port=$(sed -n 's/^listening on [^ ]*:\([0-9]*\)\( .*\)\{0,1\}$/\1/p' "$tmp/server.out")
        [ -z "$port" ] || return 0
        sleep 0.05
    done
    wrong "rddp $*: does not listen: $(cat "$tmp/server.err")"
    exit 1
}

# eventually COMMAND...: waits until it succeeds, for a minute of this shell's own steps at most.
eventually() {
    for _ in {1..600}; do
        ! "$@" || return 0
        sleep 0.1
    done
    return 1
}

# comes_up NAME DIR PID: waits until the mount that this child of ours makes is there. False: it ended instead, and its
# complaint is in $tmp/mount.err. A container may have the device without the right to mount, and a user without a name
# may not mount either: then the test ends as one that cannot run.
is_mounted() { grep -qsF " ${1// /\\040} fuse.rddp " /proc/self/mounts; }
mounted_or_ended() { is_mounted "$1" || ! kill -0 "$2" 2>/dev/null; }
comes_up() {
    local why
    eventually mounted_or_ended "$2" "$3"
    ! is_mounted "$2" || return 0
    why=$(grep -E "^fusermount3: (mount failed: Operation not permitted|could not determine username)" "$tmp/mount.err") ||
        return 1
    echo "$1: cannot run here: $why"
    exit 77
}

# ends CODE NAME: the server ends by itself, within seconds.
ends() {
    local got
    for _ in {1..600}; do
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    ! kill -9 "$server" 2>/dev/null || wrong "$2: the server still runs"
    wait "$server" 2>/dev/null
    got=$?
    server=''
    cp "$tmp/server.out" "$tmp/out"
    cp "$tmp/server.err" "$tmp/err"
    if [ $got = "$1" ]; then pass; else wrong "$2: the server's exit code is $got, not $1"; fi
}

# stop NAME: a signal ends the server, and that is no failure.
stop() {
    kill "$server"
    ends 0 "$1"
}

finish() { # NAME
    echo "$1: $passed passed, $failed failed"
    [ $failed = 0 ] || exit 1
    exit 0
}
