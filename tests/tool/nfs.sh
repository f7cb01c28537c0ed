#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# nfs.sh - tests `rddp nfs` with `rddp nfsd`: trees in both directions, listings, wires, errors, and a server that dies.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

cd "$tmp" || exit 1
chmod 755 "$tmp"
export LC_ALL=C
shared=$tmp/shared
mkdir "$shared"
rdma_port=0 mount_port=0

serve() { # OPTION...: sets rdma_port and mount_port
    start nfsd --rdma-port 0 --mount-port 0 --state "$tmp/state" --squash none "$@" "$shared"
    mount_port=$(sed -n '2s/.*mountport=\([0-9]*\).*/\1/p' "$tmp/server.out")
    rdma_port=$(sed -n '2s/.*proto=rdma,port=\([0-9]*\).*/\1/p' "$tmp/server.out")
}
# Starts the server on the same ports again. The ports may take a moment to become free.
again() {
    for _ in {1..100}; do
        : >"$tmp/server.out"
        "$rddp" nfsd -a 127.0.0.1 -p 0 --rdma-port "$rdma_port" --mount-port "$mount_port" --state "$tmp/state" \
            --squash none "$shared" >"$tmp/server.out" 2>"$tmp/server.err" &
        server=$!
        for _ in {1..100}; do
            ! grep -q '^listening' "$tmp/server.out" || return 0
            kill -0 "$server" 2>/dev/null || break
            sleep 0.02
        done
    done
    wrong "nfsd does not come again: $(cat "$tmp/server.err")"
}
nfs() { "$rddp" nfs --port "$rdma_port" --mount-port "$mount_port" "$@"; }
export -f nfs
ok() { # NAME WORD...
    export rddp rdma_port mount_port
    expect 0 "$1" bash -c 'nfs "$@"' _ "${@:2}"
}
refused() { # CODE NAME PATTERN WORD...: one line says why
    export rddp rdma_port mount_port
    expect "$1" "$2" bash -c 'nfs "$@"' _ "${@:4}"
    expect_one_line "$2" nfs
    expect_text "$2" "$3" err
}
at=127.0.0.1:$shared

make_tree() { # DIR
    mkdir -p "$1/empty dir" "$1/Größe/日本" && (
        cd "$1" || exit
        : >empty
        echo text >'with space'
        echo text >$'back\\slash'
        echo text >$'latin-\xe9'
        echo text >$'new\nline'
        echo text >--dashes
        echo text >'Größe/日本/файл'
        echo text >"$(printf 'n%.0s' {1..255})"
        head -c 65 /dev/urandom >odd
        head -c 5000001 /dev/urandom >large
        deep=$(printf 'd/%.0s' {1..60})
        mkdir -p "$deep" && echo deep >"${deep}file"
        ln -s large link && ln -s ../large Größe/up && ln -s nowhere dangling && ln -s /etc absolute
        ln -s "$(printf 'long/%.0s' {1..700})" long-link
        for mode in 400 600 644 755 640 711; do echo $mode >mode-$mode && chmod $mode mode-$mode; done
        mkdir -m 700 private && echo text >private/file
        mkdir closed && echo text >closed/file && touch -d '1999-12-31 23:59:59.987654321' closed && chmod 500 closed
        mkdir many && for i in {1..1500}; do echo "$i" >"many/$i"; done
        touch -d '2038-01-19 03:14:08.000000001' new
        touch -d '2001-02-03 04:05:06.789' many 'empty dir'
    )
}
listing() { # DIR: name, kind, mode, target and time of everything in it; times of links apart
    (cd "$1" && find . -mindepth 1 -type l -printf '%P\t%y\t%l\0' -o -mindepth 1 -printf '%P\t%y\t%m\t%TY-%Tm-%Td %TH:%TM:%TS\0' |
        sort -z | tr '\0' '\n')
}
same() { # DIR DIR
    if diff -r --no-dereference "$1" "$2" >"$tmp/err" && diff <(listing "$1") <(listing "$2") >"$tmp/err"; then pass; else
        wrong "$1 and $2 differ"
    fi
}

# --- trees ---------------------------------------------------------------------------------------------------------

make_tree tree || exit 1
serve --address 127.0.0.1
ok "a tree there" -q cp -r tree "$at/there"
same tree "$shared/there"
ok "and back" --json cp -r "$at/there" back
expect_json "a tree as JSON" 'v["exit_code"] == 0 and v["failed"] == 0 and v["direction"] == "pull" and v["links"] == 5'
same tree back
chmod u+w back/closed # nothing is replaced in there otherwise, unless by root
ok "over what is there" -q cp -r "$at/there/." back
same tree back
ok "one call at a time" -q --depth 1 --credits 1 cp -r "$at/there" slow
same tree slow
chmod -R u+w slow && rm -rf slow

# --- where a copy goes ----------------------------------------------------------------------------------------------

echo one >one && echo two >two && mkdir "$shared/dir"
ok "into a directory" -q put one "$at/dir"
ok "into a directory with a slash" -q put two "$at/dir/"
ok "to a new name" -q cp ./one "$at/dir//./three"
ok "over a file" -q put two "$at/dir/one"
if cmp -s two "$shared/dir/one" && cmp -s two "$shared/dir/two" && cmp -s one "$shared/dir/three"; then pass; else wrong "not where it belongs"; fi
ok "to here" -q get "$at/dir/three"
if cmp -s one three; then pass; else wrong "get: not here"; fi
ok "through a link" -q get "$at/there/Größe/up" up
if cmp -s up tree/large; then pass; else wrong "get: other octets"; fi
ln -s one hard-place
ok "over a link" -q get "$at/dir/two" hard-place
if [ ! -L hard-place ] && cmp -s two hard-place && [ "$(cat one)" = one ]; then pass; else wrong "a link was followed"; fi
ok "cat" cat "$at/there/large" "$at/dir/two"
if cmp -s "$tmp/out" <(cat tree/large two); then pass; else wrong "cat: other octets"; fi

# --- listings --------------------------------------------------------------------------------------------------------

# rddp prints names with control characters in another form.
ok "ls" ls "$at/there/many"
if cmp -s "$tmp/out" <(ls tree/many); then pass; else wrong "ls: other names"; fi
ok "ls -a" ls -a "$at/there/many"
if cmp -s "$tmp/out" <(ls -a tree/many); then pass; else wrong "ls -a: other names"; fi
ok "ls -l" ls -l "$at/there"
fields() { awk '{ print $1, $2, $3, $4, $5 }'; }
if diff <(fields <"$tmp/out" | grep -v '^d') <(ls -lq "$shared/there" | fields | grep -v '^d\|^total') >"$tmp/err"; then pass; else wrong "ls -l: other than ls"; fi
expect_text "ls -l" '-> ?large$'
expect_text "ls -l" 'new\\nline$'
ok "ls -R" ls -R "$at/there/d/d"
expect_text "ls -R" '/there/d/d/d/d/d:$'
ok "ls of a file" ls "$at/dir/one"
ok "stat" stat "$at/there/link"
expect_text "stat" ' type: symbolic link$'
expect_text "stat" ' -> large$'
ok "exports" exports 127.0.0.1
expect_text "exports" "^$shared\$"
ok "df" df -H "$at"
expect_text "df" 'available'
ok "mkdir" mkdir "$at/made"
refused 1 "mkdir again" 'it already exists$' mkdir "$at/made"
ok "mkdir --parents" mkdir --parents "$at/made/a/b/c" "$at/made"
ok "rm" rm "$at/dir/three"
refused 1 "rm of a directory" '-r removes it' rm "$at/made"
chmod u+w "$shared/there/closed"
ok "rm -r" rm -r "$at/made" "$at/there"
ok "rm -f" rm -f "$at/made"
if [ "$(ls -A "$shared")" = dir ]; then pass; else wrong "rm -r: left behind: $(ls -A "$shared")"; fi

# --- what is refused ---------------------------------------------------------------------------------------------------

ln -s "$tmp/one" "$shared/out" && ln -s ../one "$shared/up" && ln -s loop "$shared/loop" && mkfifo "$shared/pipe"
refused 1 "a link out" 'leads out of the export' get "$at/out" got
refused 1 "a link above" 'leads out of the export' cat "$at/up"
refused 1 "a loop" 'too many levels' ls "$at/loop"
refused 1 "nothing" 'no such file' get "$at/nothing" got
refused 1 "no parent" 'no such file' put one "$at/nothing/one"
refused 1 "a directory" '-r copies it' cp "$at/dir" got
refused 1 "a local directory" '-r copies it' cp tree "$at/got"
refused 1 "not a directory" 'not a directory' put one "$at/dir/one/two"
refused 1 "a long name" 'too long' put one "$at/$(printf 'x%.0s' {1..256})"
refused 1 "a pipe" 'neither a file' get "$at/pipe" got
refused 1 "no export" ': /' ls 127.0.0.1:/
refused 2 "two local names" 'one of SRC and DST' cp one two
refused 2 "no such verb" 'not one of ls' look "$at"
refused 3 "no NFS" 'no RDMA connection' --port 1 ls "$at"
refused 3 "no MOUNT" 'MOUNT' --mount-port 1 ls "$at"
refused 3 "no host" 'no such host' ls no.such.host.invalid:/x
refused 3 "no exports" 'MOUNT' --mount-port 1 exports 127.0.0.1
if [ ! -e got ] && [ ! -e "$shared/got" ]; then pass; else wrong "something was copied"; fi
if acts_as_others; then
    mkdir -m 700 "$shared/mine" && echo secret >"$shared/mine/file" && chmod 600 "$shared/mine/file"
    refused 1 "another user" 'permission denied' --uid 65534 --gid 65534 cat "$at/mine/file"
    chmod 777 "$shared/dir"
    ok "as another user" -q --uid 65534 --gid 65533 put one "$at/dir/theirs"
    if [ "$(stat -c %u:%g "$shared/dir/theirs")" = 65534:65533 ]; then pass; else wrong "--uid, --gid: another owner"; fi
fi
kill "$server" && wait "$server"
serve --address 127.0.0.1 --ro
refused 1 "read-only" 'read-only' put one "$at/dir/new"
kill "$server" && wait "$server"

# --- other wires, IPv6 -------------------------------------------------------------------------------------------------

head -c 3000001 /dev/urandom >data
sctp="--wire sctp --udp-port $((20000 + RANDOM % 12000))"
for wire in --no-crc --markers "--mpa-rev 2 --p2p" "--wire rdmatcp" "$sctp"; do
    read -ra words <<<"$wire"
    serve --address 127.0.0.1 "${words[@]}"
    ok "$wire: put" -q "${words[@]}" put data "$at/dir/wire"
    ok "$wire: get" -q "${words[@]}" get "$at/dir/wire" wire
    if cmp -s data wire; then pass; else wrong "$wire: other octets"; fi
    kill "$server" && wait "$server"
    rm wire
done
serve --address ::1
ok "IPv6: put" -q put data "[::1]:$shared/dir/six"
ok "IPv6: get" -q get "[::1]:$shared/dir/six" six
if cmp -s data six; then pass; else wrong "IPv6: other octets"; fi
kill "$server" && wait "$server"

# The client soon reports a server that speaks another wire.
for pair in "|--wire rdmatcp|--wire rdmatcp" "|--immediate|--immediate" "--wire rdmatcp||iWARP" "--wire rdmatcp|--immediate|--immediate"; do
    IFS='|' read -r there here guess <<<"$pair"
    read -ra words <<<"$there"
    serve --address 127.0.0.1 "${words[@]}"
    read -ra words <<<"$here"
    began=$SECONDS
    refused 3 "nfsd $there, nfs $here" "no RDMA connection.*does it speak .*$guess\?$" "${words[@]}" ls "$at"
    if ! grep -q 'timed out' "$tmp/err"; then pass; else wrong "nfsd $there, nfs $here: only after $((SECONDS - began)) s"; fi
    kill "$server" && wait "$server"
    if grep -qE '^rddp nfsd: 127.0.0.1:[0-9]+: .*(MPA start-up frame|segment)' "$tmp/server.err"; then pass; else
        wrong "nfsd $there, nfs $here: the server has no line"
    fi
done

# --- a server that dies --------------------------------------------------------------------------------------------------

serve --address 127.0.0.1
mib=160
head -c ${mib}M /dev/urandom >big

# Waits until the file of PATTERN has a third of the size, kills the server with SIGKILL and restarts it. Returns 1 if the
# copy was complete before.
kill_server() { # PATTERN PID
    local size
    # shellcheck disable=SC2086 # the pattern is to be expanded
    while size=$(stat -c %s $1 2>/dev/null); [ "${size:-0}" -lt $((mib * 1024 * 1024 / 3)) ]; do
        kill -0 "$2" 2>/dev/null || return 1
    done
    kill -9 "$server"
    { wait "$server"; } 2>/dev/null
    again
}
for _ in {1..10}; do
    rm -f "$shared/dir/big"
    nfs --json put big "$at/dir/big" >"$tmp/out" 2>"$tmp/err" &
    client=$!
    kill_server "$shared/dir/.big.rddp-*" $client
    wait $client
    code=$?
    if [ $code = 0 ] && cmp -s big "$shared/dir/big"; then pass; else wrong "put over a restart: exit code $code"; fi
    ! grep -q '"server_restarts": 0' "$tmp/out" || continue
    break
done
expect_json "put over a restart" 'v["server_restarts"] >= 1 and v["bytes"] > '$((mib * 1024 * 1024))
nfs -q get "$at/dir/big" big2 2>"$tmp/err" &
client=$!
kill_server '.big2.rddp-*' $client
wait $client
code=$?
if [ $code = 0 ] && cmp -s big big2; then pass; else wrong "get over a restart: exit code $code"; fi

# --- interrupted -----------------------------------------------------------------------------------------------------------

# Runs `rddp nfs WORDS` and sends it SIGNAL when the file of PATTERN has a quarter of the size. Sets $code to its exit code.
interrupt() { # PATTERN SIGNAL WORDS...
    local pattern=$1 signal=$2 size
    shift 2
    "$rddp" nfs --port "$rdma_port" --mount-port "$mount_port" -q --depth 1 "$@" 2>"$tmp/err" &
    client=$!
    # shellcheck disable=SC2086 # the pattern is to be expanded
    while size=$(stat -c %s $pattern 2>/dev/null); [ "${size:-0}" -lt $((mib * 1024 * 1024 / 4)) ]; do
        kill -0 $client 2>/dev/null || break
    done
    kill "-$signal" $client 2>/dev/null
    { wait $client; } 2>/dev/null
    code=$?
}

# An interrupted `get` of a large file is resumed by the same command.
for _ in {1..10}; do
    rm -f big2 .big2.rddp-*
    interrupt '.big2.rddp-*' INT get "$at/dir/big" big2
    [ -e big2 ] || break
done
if [ $code = 130 ] && [ ! -e big2 ]; then pass; else wrong "get, interrupted: exit code $code"; fi
ok "get goes on" get "$at/dir/big" big2
if grep -qE '^big2: resumed at [0-9.]+ MB$' "$tmp/err"; then pass; else wrong "get does not go on"; fi
if cmp -s big big2 && [ -z "$(find . -maxdepth 1 -name '.big2*')" ]; then pass; else wrong "get that went on: other octets"; fi
# A part that the disk did not take is not kept: none of its octets would be asked for again.
if ${CC:-cc} -shared -fPIC -x c -o full.so - <<<'#include <errno.h>
int fsync(int fd) { errno = ENOSPC; return fd < 0 ? fd : -1; }' 2>/dev/null; then
    for _ in {1..10}; do
        rm -f big2
        LD_PRELOAD=$tmp/full.so ASAN_OPTIONS=verify_asan_link_order=0 interrupt '.big2.rddp-*' INT get "$at/dir/big" big2
        [ -e big2 ] || break
    done
    if [ $code = 130 ] && [ -z "$(find . -maxdepth 1 -name '.big2*')" ]; then pass; else wrong "get, interrupted on a full disk: a part is kept"; fi
    # Nor is one gone on with that has all octets, of a command that was killed while the disk was asked about them.
    ${CC:-cc} -shared -fPIC -x c -o end.so - <<<'#include <signal.h>
int fsync(int fd) { return raise(SIGKILL) + fd; }'
    rm -f big2
    { LD_PRELOAD=$tmp/end.so ASAN_OPTIONS=verify_asan_link_order=0 nfs -q --sync get "$at/dir/big" big2 2>"$tmp/err"; } 2>/dev/null
    code=$?
    if [ $code = 137 ] && [ -n "$(find . -maxdepth 1 -name '.big2*')" ]; then pass; else wrong "get, killed at its end: exit code $code"; fi
    ok "get after it was killed at its end" --json get "$at/dir/big" big2
    if cmp -s big big2; then pass; else wrong "get after it was killed at its end: other octets"; fi
    expect_json "get after it was killed at its end" 'v["resumed_bytes"] == 0'
else
    echo "left out: no compiler"
fi
# A part left by a killed `get` has holes where READs were under way, so it is not resumed.
rm -f big2 && interrupt '.big2.rddp-*' KILL get "$at/dir/big" big2
ok "get after a kill" --json get "$at/dir/big" big2
if cmp -s big big2; then pass; else wrong "get after a kill: other octets"; fi
expect_json "get after a kill" 'v["resumed_bytes"] == 0'
# A part of a file that has changed since is not resumed either.
for _ in {1..10}; do
    rm -f big2 .big2.rddp-*
    interrupt '.big2.rddp-*' INT get "$at/dir/big" big2
    [ -e big2 ] || break
done
touch "$shared/dir/big"
ok "get of a file that changed" --json get "$at/dir/big" big2
expect_json "get of a file that changed" 'v["resumed_bytes"] == 0'
rm -f .big2.rddp-*
# However the command ends, no partial file has the final name at the server. After SIGINT the command removes the part.
for signal in INT KILL; do
    for _ in {1..10}; do
        rm -f "$shared"/dir/{,.}big.part* "$shared"/dir/.big.part.rddp-*
        interrupt "$shared/dir/.big.part.rddp-*" $signal put big "$at/dir/big.part"
        [ -e "$shared/dir/big.part" ] || break
    done
    if [ ! -e "$shared/dir/big.part" ]; then pass; else wrong "put, $signal: a part has the name, or it was never interrupted"; fi
    if [ $signal = KILL ] || [ -z "$(find "$shared/dir" -name '.big.part*')" ]; then pass; else wrong "put, interrupted: left behind"; fi
done
rm -f "$shared"/dir/.big.part.rddp-*
echo old >"$shared/dir/old" && ok "put over what is there" -q put one "$at/dir/old"
if cmp -s one "$shared/dir/old"; then pass; else wrong "put over what is there: other octets"; fi
# SIGINT ends the command even while the server hangs.
"$rddp" nfs --port "$rdma_port" --mount-port "$mount_port" -q get "$at/dir/big" big3 2>"$tmp/err" &
client=$!
for _ in {1..500}; do
    temp=$(echo .big3.rddp-*)
    [ ! -e "$temp" ] || break
    kill -0 $client 2>/dev/null || break
    sleep 0.01
done
kill -STOP "$server"
kill -INT $client
wait $client
code=$?
kill -CONT "$server"
if [ $code = 130 ] || [ -e big3 ]; then pass; else wrong "interrupted while the server hangs: exit code $code"; fi
rm -f .big3.rddp-*
stop "stop"
chmod -R u+w . 2>/dev/null
finish nfs
