#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cp_again.sh - tests `rddp cp` onto existing files: unchanged files, dry runs, lists, holes, peers of another version.
# In `A && B || bad`, bad reports whichever fails. tests/lib/cp.sh defines the names that this script does not.
# shellcheck disable=SC2015,SC2154
set -uo pipefail
# shellcheck source=tests/lib/cp.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/cp.sh"

# Makes a copy and checks that the Python expression is true of its JSON output.
told() { # EXPRESSION ARGUMENT...
    local what=$1
    shift
    timeout 30 "$tool" cp --json -p "$port" "$@" >json 2>said || bad "rddp cp $*: exit code $?: $(cat said)"
    python3 -c 'import json, sys; o = json.load(open("json")); sys.exit(not eval(sys.argv[1]))' "$what" ||
        bad "rddp cp $*: not so: $what: $(cat json)"
}

mkdir -p shared tree/sub/many tree/empty
for i in {1..700}; do echo "$i" >"tree/sub/many/$i"; done
echo text >tree/file && : >tree/nothing && head -c 9M /dev/urandom >tree/large && ln -s file tree/link
chmod 640 tree/file && touch -d '2001-02-03 04:05:06.123456789' tree/sub/many/7
serve main shared
main=$pid

part "what has the same size and time does not move"
for way in push pull; do
    [ $way = push ] && set -- tree 127.0.0.1: || set -- 127.0.0.1:tree back
    [ $way = push ] && to=shared/tree from=tree || to=back from=shared/tree
    told "o['files'] == 703 and o['files_unchanged'] == 0 and o['verified']" -r "$@"
    [ $way = push ] || set -- 127.0.0.1:tree/. back
    told "o['files'] == 0 and o['files_unchanged'] == 703 and o['bytes'] == 0 and o['unchanged_bytes'] > 9000000" -r "$@"
    same tree $to
    # One file changes its size, one its time and one is removed. One changes only its mode, which needs no data.
    echo longer >$from/sub/many/1 && touch $from/sub/many/2 && rm $to/sub/many/3 && chmod 600 $from/sub/many/4
    told "o['files'] == 3 and o['files_unchanged'] == 700 and o['bytes'] < 20" -r "$@"
    same $from $to
    # Files with the same size and time but other octets: only --checksum notices them, in small and in large files.
    touch -r $to/sub/many/5 stamp && echo X >$to/sub/many/5 && touch -r stamp $to/sub/many/5
    touch -r $to/large stamp && printf XXXXXXXX | dd of=$to/large bs=8 seek=625000 conv=notrunc status=none && touch -r stamp $to/large
    told "o['files'] == 0 and o['files_unchanged'] == 703" -r "$@"
    told "o['dry_run'] and o['files'] == 2 and o['bytes'] > 9000000" -n --checksum -r "$@"
    told "o['files'] == 2 and o['files_unchanged'] == 701 and o['bytes'] > 9000000" --checksum -r "$@"
    same $from $to
    told "o['files'] == 703 and o['files_unchanged'] == 0" --no-resume -r "$@"
done
copy -r tree 127.0.0.1: && timeout 30 "$tool" cp -p "$port" -r tree 127.0.0.1: >said 2>&1
grep -qE '^0 files, 4 directories, 1 link, 0 B in [0-9.]+ s; 703 files unchanged$' said || bad "what is said of nothing: $(cat said)"

part "one file over another of the same size and time"
echo one >one && echo two >two && touch -r one two && cp -p one shared/one
copy two 127.0.0.1:one && cmp two shared/one || bad "a file that the user named is taken for another"
copy 127.0.0.1:one one && cmp two one || bad "a file that the user named is taken for another, in a pull"
rm shared/one

part "a dry run"
rm -rf shared/tree back
timeout 30 "$tool" cp -p "$port" -n -r tree 127.0.0.1: >said 2>&1 || bad "a dry run: exit code $?"
[ "$(grep -c '^tree/' said)" = 703 ] && grep -q '^tree/sub/many/5$' said && grep -q '^dry run: 703 files, .* to copy' said ||
    bad "a dry run says: $(tail -3 said)"
[ -z "$(ls -A shared)" ] || bad "a dry run made something: $(ls -A shared)"
copy -r tree 127.0.0.1: && touch tree/file
timeout 30 "$tool" cp -p "$port" -n -r tree 127.0.0.1: >said 2>&1
[ "$(grep -c '^tree/' said)" = 1 ] && grep -q '^tree/file$' said && grep -q '; 702 files unchanged$' said || bad "a dry run of one: $(cat said)"
[ shared/tree/file -ot tree/file ] || bad "a dry run copied"
timeout 30 "$tool" cp -p "$port" -n -r 127.0.0.1:tree new >said 2>&1 || bad "a dry pull: exit code $?"
[ "$(grep -c '^127.0.0.1:tree/' said)" = 703 ] && [ ! -e new ] || bad "a dry pull: $(tail -2 said), or something was made"
serve read-only --read-only shared
refused 1 "read-only" -n tree/file 127.0.0.1:
stop "$pid"
port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' main.log)

part "a list of what is there"
"$tool" cp -p "$port" --list 127.0.0.1:tree >said || bad "--list: exit code $?"
[ "$(sed 's/.* [0-9][0-9]:[0-9][0-9] //' said)" = $'empty/\nfile\nlarge\nlink -> file\nnothing\nsub/' ] || bad "--list: $(cat said)"
grep -qE '^-rw-r----- +5 [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} file$' said || bad "--list: $(cat said)"
grep -q '^l.* link -> file$' said && grep -qE '^drwx.* - .* sub/$' said || bad "--list: $(cat said)"
[ "$("$tool" cp -p "$port" --list -r 127.0.0.1: | wc -l)" = "$(find shared -mindepth 1 | wc -l)" ] || bad "--list -r: not all of it"
"$tool" cp -p "$port" --list 127.0.0.1:tree/sub/many/7 >said && grep -q '^-.* 2001-02-03 04:05 7$' said || bad "--list of a file: $(cat said)"
told "[e['path'] for e in o['entries']] == ['empty', 'file', 'large', 'link', 'nothing', 'sub'] and o['entries'][3]['target'] == 'file' and o['exit_code'] == 0" \
    --list 127.0.0.1:tree
refused 1 "no such file" --list 127.0.0.1:missing
refused 1 "'..' is refused" --list 127.0.0.1:..
"$tool" cp -p "$port" --list tree 2>/dev/null
[ $? = 2 ] || bad "--list of a local name: not exit code 2"

part "holes"
truncate -s 300M sparse && printf middle | dd of=sparse bs=1 seek=150000000 conv=notrunc status=none
truncate -s 2G hollow
if [ "$(du -k sparse | cut -f1)" -lt 1024 ]; then
    for how in push pull; do
        [ $how = push ] && set -- 127.0.0.1:sparse || set -- pulled
        [ $how = push ] && told "o['hole_bytes'] > 300000000 and o['bytes'] < 1000000" sparse "$1" || told "o['hole_bytes'] > 300000000" 127.0.0.1:sparse "$1"
        file=${1/127.0.0.1:/shared/}
        cmp sparse "$file" && [ "$(stat -c '%s %y' sparse)" = "$(stat -c '%s %y' "$file")" ] || bad "holes: $how: it differs"
        [ "$(du -k "$file" | cut -f1)" -lt 1024 ] || bad "holes: $how: they are not kept: $(du -k "$file")"
    done
    told "o['files_unchanged'] == 1" --checksum sparse 127.0.0.1:sparse
    # A file that is a single hole takes no disk blocks at the target.
    "$tool" cp -q -p "$port" hollow 127.0.0.1:hollow || bad "a file that is nothing but a hole"
    [ "$(stat -c '%s %b' shared/hollow)" = "2147483648 0" ] || bad "a hole at the end: $(stat -c '%s %b' shared/hollow)"
else
    echo "left out: this file system keeps no holes"
fi
# A file with holes is not refused for lack of space.
mkdir full
cat >full.sh <<'END'
mount -t tmpfs -o size=4m none full || exit 77
: >full.log
"$1" serve -a 127.0.0.1 -p 0 full >full.log 2>&1 & pid=$!
for _ in {1..200}; do
    port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' full.log)
    [ -z "$port" ] || break
    sleep 0.02
done
timeout 30 "$1" cp -q -p "$port" hollow 127.0.0.1: 2>>full.said || echo "refused" >>full.said
[ "$(stat -c %s full/hollow)" = 2147483648 ] || echo "not there" >>full.said
kill $pid
wait
END
if unshare -rm true 2>/dev/null; then
    unshare -rm bash full.sh "$tool"
    code=$?
    [ $code = 0 ] || [ $code = 77 ] || bad "a hole on a small disk: exit code $code"
    [ ! -s full.said ] || bad "a hole on a small disk: $(cat full.said)"
else
    echo "left out: no mount namespace to be had"
fi

part "an rddp of another version"
here=${RDDP_SOURCE_DIR:?}/tests/tool
: >port
timeout 30 python3 "$here/hostile.py" server old >port 2>/dev/null &
pids+=($!)
for _ in {1..200}; do [ -s port ] && break; sleep 0.02; done
timeout 30 "$tool" cp -q -p "$(cat port)" --mpa-rev 1 tree/file 127.0.0.1:x 2>said
[ $? = 4 ] && grep -q 'speaks version 2 of the copying protocol, this one version 3' said || bad "a server of an older version: $(cat said)"
python3 "$here/hostile.py" old "$port" || bad "a client of an older version is not refused in its own words"
grep -q 'refused: its rddp speaks version 2 of the copying protocol, this one version 3' main.log || bad "a client of an older version leaves no line: $(cat main.log)"

kill -0 "$main" || bad "the server did not survive"
stop "$main"
no_temporaries shared
finish
