# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# cp.sh - what the tests of `rddp serve` and `rddp cp` share: servers, copies that have to succeed or to fail, comparison.
# Sourced. Leaves nothing running and nothing in the file system.
# In `A && B || bad`, bad is for whichever fails.
# shellcheck disable=SC2015

tool=${RDDP_TOOL:-rddp}
failures=0
pids=()

# shellcheck source=tests/lib/folder.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/folder.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/rddp-cp-XXXXXX")
chmod 755 "$work"
cleanup() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    wait 2>/dev/null
    chmod -R u+rwx "$work" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1

bad() { # WHAT
    echo "FAILED: $1" >&2
    failures=$((failures + 1))
}

part() { echo "--- $SECONDS s: $1"; }

# Starts a server; $port and $pid are its. Its words go to the file NAME.log.
serve() { # NAME ARGUMENT...
    local name=$1
    shift
    : >"$name.log"
    "${as[@]}" "$tool" serve -a 127.0.0.1 -p 0 "$@" >"$name.log" 2>&1 &
    pid=$!
    pids+=("$pid")
    port=
    for _ in {1..200}; do
        port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' "$name.log")
        [ -z "$port" ] || return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.02
    done
    echo "no server: $(cat "$name.log")" >&2
    exit 1
}
as=()

stop() { # PID
    kill "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}

# A copy that has to succeed.
copy() {
    timeout 30 "$tool" cp -q -p "$port" "$@" || bad "rddp cp $*: exit code $?"
}

# One that has to fail with CODE, and to say why in one line on standard error, which PATTERN matches.
refused() { # CODE PATTERN ARGUMENT...
    local code=$1 pattern=$2 got
    shift 2
    timeout 30 "${as[@]}" "$tool" cp -q -p "$port" "$@" 2>said >/dev/null
    got=$?
    [ "$got" = "$code" ] || bad "rddp cp $*: exit code $got, not $code: $(cat said)"
    [ "$(wc -l <said)" = 1 ] || bad "rddp cp $*: not one line: $(cat said)"
    grep -qE -- "$pattern" said || bad "rddp cp $*: $(cat said)"
}

listing() { # DIR: name, kind, mode, time and target of everything in it, times of links apart
    (cd "$1" && find . -mindepth 1 -printf '%P\t%y\t%m\t%l\t%TY-%Tm-%Td %TH:%TM:%TS\0' | sort -z | tr '\0' '\n')
}

same() { # DIR DIR
    diff -r --no-dereference "$1" "$2" >difference || bad "$1 and $2 differ: $(head -5 difference)"
    diff <(listing "$1") <(listing "$2") >difference || bad "$1 and $2: modes or times differ: $(head -5 difference)"
}

no_temporaries() { # DIR
    [ -z "$(find "$1" -name '.*.rddp-*')" ] || bad "left behind in $1: $(find "$1" -name '.*.rddp-*')"
}

finish() {
    [ $failures = 0 ] || { echo "$failures failed" >&2; exit 1; }
    echo "all passed"
}
