#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cp_told.sh - tests the output of `rddp cp` and `rddp serve`: plausible figures, wrong wires, failures, interruptions.
# In `A && B || bad`, bad reports whichever fails. tests/lib/cp.sh defines the names that this script does not.
# shellcheck disable=SC2015,SC2154
set -uo pipefail
# shellcheck source=tests/lib/cp.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/cp.sh"

echo text >one && mkdir -p shared/dir && echo text >shared/dir/one
serve main shared
main=$pid

part "what is said of a copy"
timeout 30 "$tool" cp -p "$port" one 127.0.0.1:small >said 2>&1 || bad "one small file: exit code $?"
[ "$(wc -l <said)" = 1 ] && grep -qE '^1 file, [0-9]+ B in [0-9.]+ s; every file verified$' said || bad "one small file: $(cat said)"
head -c 400M /dev/zero >cheap && touch -d @77 cheap
timeout 30 "$tool" cp -p "$port" cheap 127.0.0.1:cheap >said 2>&1 || bad "a large file: exit code $?"
grep -qE '^1 file, 419.43 MB in [0-9.]+ s: [0-9.]+ [GM]B/s; every file verified; CPU [0-9.]+ s/GB here, [0-9.]+ s/GB at the server$' said ||
    bad "a large file: $(cat said)"
rm -f cheap shared/cheap
: >open.log
"$tool" serve -p 0 shared >open.log 2>&1 &
pid=$! pids+=($!)
for _ in {1..200}; do grep -q '^listening' open.log && break; sleep 0.02; done
grep -q 'every host that can reach this machine may read and write shared' open.log || bad "a server for everybody does not say so"
open=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' open.log)
timeout 30 "$tool" cp -q -p "$open" one 127.0.0.1:small || bad "a server for everybody"
grep -q '^127\.0\.0\.1:' open.log && ! grep -q ffff open.log || bad "an IPv4 address is not written as one: $(cat open.log)"
# Both ends report at once a wire that the other end does not speak.
for wire in "--wire rdmatcp" --immediate; do
    # shellcheck disable=SC2086
    timeout 8 "$tool" cp -q -p "$open" $wire one 127.0.0.1:small 2>said
    code=$?
    [ $code = 3 ] || [ $code = 4 ] || bad "$wire against iWARP: exit code $code"
    grep -qE "does it speak .*$wire" said || bad "$wire against iWARP: $(cat said)"
    [ "$(wc -l <said)" = 1 ] || bad "$wire against iWARP: not one line: $(cat said)"
done
grep -q 'rddp serve: 127.0.0.1:[0-9]*: not an MPA start-up frame' open.log || bad "a wrong wire leaves no line: $(cat open.log)"
for i in {1..40}; do printf 'this is no start-up frame at all' >"/dev/tcp/127.0.0.1/$open" && : "$i"; done
for _ in {1..100}; do [ "$(grep -c 'not an MPA' open.log)" -lt 7 ] || break; sleep 0.02; done
[ "$(grep -c 'not an MPA' open.log)" -le 24 ] || bad "a peer can fill the log: $(wc -l <open.log) lines"
stop "$pid"

part "JSON and the line of progress"
mkdir -p tree/many/sub links && touch tree/many/{1..600} tree/many/sub/empty && ln -s many tree/link
head -c 3000001 /dev/zero >tree/large && ln -s /etc/passwd links/out && ln -s ../.. links/up
timeout 30 "$tool" cp --json -p "$port" -r tree 127.0.0.1:json-tree >json || bad "--json: exit code $?"
python3 - <<'END' || bad "--json: $(cat json)"
import json
o = json.load(open('json'))
assert o['verified'] is True and o['direction'] == 'push' and o['failed'] == 0 and o['errors'] == []
assert o['files'] == 602 and o['directories'] == 3 and o['links'] == 1 and o['bytes'] == 3000001
assert abs(o['bytes_per_second'] - o['bytes'] / o['seconds']) < 0.01 * o['bytes_per_second']
assert o['cpu_seconds_per_gb_client'] is None and o['cpu_seconds_per_gb_server'] is None # of so little it means nothing
END
timeout 30 "$tool" cp --json -p "$port" -r links 127.0.0.1:json-links >json 2>/dev/null
[ $? = 1 ] || bad "--json of a failure: not exit code 1"
python3 -c "
import json
o = json.load(open('json'))
assert not o['verified'] and o['failed'] == 2 == len(o['errors'])" ||
    bad "--json of a failure: $(cat json)"
if command -v script >/dev/null; then
    shown=no
    head -c 200M /dev/zero >long
    for _ in {1..5}; do # a server that stops in the middle makes the copy long enough for a line, however fast the machine
        script -qec "$tool cp -p $port --no-resume --markers long 127.0.0.1:shown" terminal >/dev/null &
        pid=$!
        while kill -0 $pid && [ -z "$(find shared -name '.shown.rddp-*' -size +10M)" ]; do :; done 2>/dev/null
        kill -STOP "$main"
        sleep 1
        kill -CONT "$main"
        wait $pid || bad "on a terminal: exit code $?"
        grep -qE '[0-9]+%.* [GM]B/s.*/1 file .*ETA [0-9]+:[0-9]{2}' terminal && shown=yes && break
        rm -f shared/shown
    done
    rm -f long shared/shown
    [ $shown = yes ] || bad "no line of progress: $(cat -v terminal)"
fi
[ -z "$(timeout 30 "$tool" cp -q -p "$port" one 127.0.0.1:y 2>&1)" ] || bad "--quiet is not"

part "who may come"
: >allow.log
"$tool" serve -p 0 --allow 10.0.0.0/8 --allow fd77::1 shared >allow.log 2>&1 &
pid=$! pids+=($!)
for _ in {1..200}; do grep -q '^listening' allow.log && break; sleep 0.02; done
allowed=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' allow.log)
timeout 30 "$tool" cp -q -p "$allowed" one 127.0.0.1:small 2>said
[ $? = 3 ] && grep -q 'the server says: permission denied' said || bad "a client that is not allowed: $(cat said)"
grep -q '^rddp serve: 127.0.0.1:[0-9]*: refused: no --allow has its address$' allow.log || bad "a client that is not allowed leaves no line: $(cat allow.log)"
grep -q 'every host' allow.log && bad "a server that is not for everybody says it is"
stop "$pid"
serve few --allow 10.0.0.0/8 --allow 127.0.0.0/8 shared
copy one 127.0.0.1:small
stop "$pid"
"$tool" serve -p 0 --allow nonsense shared 2>said
[ $? = 2 ] && grep -q "'nonsense' is not an IPv4 or IPv6 address" said || bad "--allow nonsense: $(cat said)"
port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' main.log)

part "a partition"
head -c 200M /dev/zero >slow
# A stopped server looks to the client like a server behind a broken line.
"$tool" cp -p "$port" --markers slow 127.0.0.1:slow >out 2>said &
pid=$!
for _ in {1..500}; do compgen -G 'shared/.slow.rddp-*' >/dev/null && break; sleep 0.01; done
kill -STOP "$main"
for _ in {1..150}; do grep -q stalled said || ! kill -0 $pid 2>/dev/null && break; sleep 0.1; done
kill -CONT "$main"
wait $pid || bad "a partition that ends: exit code $?: $(cat said)"
grep -qE '^[0-9.]+ [kM]?B  .*  stalled$' said || [ "$(wc -l <said)" = 0 ] || bad "a partition is not told: $(cat said)"
cmp slow shared/slow || bad "a partition: other octets"
rm -f slow shared/slow

part "interrupted"
head -c 200M /dev/zero >forever
for _ in {1..10}; do # the server stops in the middle, unless the copy is faster
    "$tool" cp -q -p "$port" --markers forever 127.0.0.1:forever 2>said &
    pid=$!
    for _ in {1..500}; do compgen -G 'shared/.forever.rddp-*' >/dev/null && break; sleep 0.01; done
    kill -STOP "$main"
    kill -INT $pid
    wait $pid
    code=$?
    kill -CONT "$main"
    [ $code = 0 ] || break
    rm -f shared/forever
done
[ $code = 130 ] && grep -q 'interrupted' said || bad "interrupted: $(cat said)"
[ ! -e shared/forever ] || bad "interrupted: a partial file has the final name"
rm -f forever
for _ in {1..100}; do compgen -G 'shared/.forever.rddp-*' >/dev/null || break; rm -f shared/.forever.rddp-*; sleep 0.05; done

part "a file system that does not answer"
if ${CC:-cc} -shared -fPIC -x c -o stuck.so - <<<'#include <unistd.h>
int fsync(int fd) { for (;;) pause(); return fd; }' 2>/dev/null; then
    as=(env LD_PRELOAD="$work/stuck.so" ASAN_OPTIONS=verify_asan_link_order=0)
    serve stuck --sync shared
    as=()
    "$tool" cp -q -p "$port" one 127.0.0.1:stuck 2>/dev/null &
    client=$!
    for _ in {1..500}; do compgen -G 'shared/.stuck.rddp-*' >/dev/null && break; sleep 0.01; done
    began=$SECONDS
    kill "$pid"
    wait "$pid"
    [ $? = 1 ] && grep -q 'its file system does not answer: 1 copy given up' stuck.log || bad "a stuck server ends: $(cat stuck.log)"
    [ $((SECONDS - began)) -lt 60 ] || bad "a stuck server ends after $((SECONDS - began)) s"
    wait $client
    [ $? = 1 ] && [ ! -e shared/stuck ] || bad "a copy that was given up has its name"
    rm -f shared/.stuck.rddp-*
    port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' main.log)
else
    echo "left out: no compiler"
fi

part "failures name the end, and once"
mkdir -p deep/a/b/c && touch deep/a/b/c/{1,2,3} deep/a/{4,5} deep/ok && mkdir -p shared/deep && echo "in the way" >shared/deep/a
timeout 30 "$tool" cp -q -r -p "$port" deep 127.0.0.1: 2>said
[ $? = 1 ] || bad "a file where a directory belongs: not exit code 1"
[ "$(wc -l <said)" = 1 ] && grep -q '^rddp cp: at the server, deep/a: not a directory$' said || bad "a file where a directory belongs: $(cat said)"
[ -e shared/deep/ok ] || bad "a file where a directory belongs: the others were not copied"
mkdir pulled && echo "in the way" >pulled/deep
timeout 30 "$tool" cp -q -r -p "$port" 127.0.0.1:dir pulled/deep 2>said && bad "a directory onto a file"
grep -q 'at the server' said && bad "the server is blamed for what is wrong here: $(cat said)"
rm -rf deep shared/deep pulled

stop "$main"
no_temporaries shared
finish
