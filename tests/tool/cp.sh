#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cp.sh - tests `rddp serve` and `rddp cp` over loopback: trees in both directions, refusals, broken transfers, hostile peers.
# In `A && B || bad`, bad reports whichever fails. tests/lib/cp.sh defines the names that this script does not.
# shellcheck disable=SC2015,SC2154
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/cp.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/cp.sh"

# --- what is copied --------------------------------------------------------------------------------------------------

make_tree() { # DIR
    mkdir -p "$1/empty dir" "$1/"$'new\nline' "$1/Größe/日本" && (
        cd "$1" || exit
        : >empty
        echo text >'with space'
        echo text >$'new\nline/tab\there'
        echo text >$'back\\slash'
        echo text >$'latin-\xe9'
        echo text >--dashes
        echo text >'Größe/日本/файл'
        echo text >"$(printf 'n%.0s' {1..255})"
        echo text >"$(printf 'ü%.0s' {1..127})"
        head -c 65 /dev/urandom >odd
        head -c 3000001 /dev/urandom >large
        deep=$(printf 'd/%.0s' {1..100})
        mkdir -p "$deep" && echo deep >"${deep}file"
        ln -s large link && ln -s ../large Größe/up && ln -s nowhere dangling && ln -s .. Größe/日本/dots
        for mode in 400 600 644 755 640 711; do echo $mode >mode-$mode && chmod $mode mode-$mode; done
        mkdir -m 700 private && echo text >private/file
        mkdir closed && echo text >closed/file && touch -d '1999-12-31 23:59:59.987654321' closed && chmod 500 closed
        mkdir many && for i in {1..600}; do echo "$i" >"many/$i"; done
        touch -d '1969-07-20 20:17:40.5' old
        touch -d '2038-01-19 03:14:08.000000001' new
        touch -d '2001-02-03 04:05:06.789' many 'empty dir'
    )
}

part "trees there and back"
make_tree tree || exit 1
mkdir shared
serve main shared
main=$port
copy -r tree 127.0.0.1:there
same tree shared/there
copy -r 127.0.0.1:there back
same tree back
copy -r tree/. 127.0.0.1:there/large-not
same tree shared/there/large-not
chmod 755 back/closed && rm -rf back/closed back/many && mkdir back/again
copy -r 127.0.0.1:there/. back/again
chmod -R u+w back/again/large-not && rm -rf back/again/large-not
[ "$(find back/again | wc -l)" = "$(find tree | wc -l)" ] || bad "the contents of a directory are not all there"
no_temporaries shared
no_temporaries back

part "where a copy goes, as with cp"
echo one >one && echo two >two
mkdir shared/dir
copy one 127.0.0.1:dir
copy two 127.0.0.1:dir/
copy one 127.0.0.1:
copy two 127.0.0.1:one
copy ./one 127.0.0.1:./dir//.//three
cmp one shared/dir/one && cmp two shared/dir/two && cmp two shared/one && cmp one shared/dir/three ||
    bad "not where it belongs"
copy 127.0.0.1:one . && cmp one two || bad "a pull does not replace a file"
copy -r tree 127.0.0.1:dir
[ -d shared/dir/tree/many ] || bad "a directory does not go into one that is there"

part "several sources"
mkdir several
timeout 30 "$tool" cp -q -p "$port" -r one tree/many 127.0.0.1:several 2>/dev/null && bad "several sources, and nowhere to go"
[ ! -e shared/several ] || bad "several sources make a directory"
mkdir shared/several && copy -r one tree/many tree/odd 127.0.0.1:several
cmp one shared/several/one && cmp tree/odd shared/several/odd && same tree/many shared/several/many
copy -r 127.0.0.1:several/one 127.0.0.1:several/many several
cmp one several/one && same tree/many several/many
timeout 30 "$tool" cp -q -p "$port" missing one 127.0.0.1:several/ 2>said
[ $? = 1 ] && [ "$(wc -l <said)" = 1 ] && grep -q missing said || bad "one of several is missing: $(cat said)"
timeout 30 "$tool" cp -q -p "$port" one 127.0.0.1:there 127.0.0.1:several 2>/dev/null
[ $? = 2 ] || bad "sources here and there: not exit code 2"
rm -rf several shared/several

part "other wires"
sctp="--wire sctp --udp-port $((20000 + RANDOM % 12000))"
for wire in --no-crc --markers "--no-crc --markers" "--mpa-rev 1" "--mpa-rev 1 --markers" --immediate --p2p \
    "--wire rdmatcp" "$sctp"; do
    mkdir wire
    read -ra words <<<"$wire"
    serve wire wire "${words[@]}"
    copy "${words[@]}" -r tree 127.0.0.1:
    same tree wire/tree
    copy "${words[@]}" -r 127.0.0.1:tree wire-back
    same tree wire-back
    stop "$pid"
    chmod -R u+w wire wire-back && rm -rf wire wire-back
done
port=$main

# --- what is refused -------------------------------------------------------------------------------------------------

part "names that are refused"
mkdir outside && echo secret >outside/secret
ln -s "$work/outside" shared/way-out && ln -s ../../outside shared/dir/way-out
ln -s "$work/outside/secret" shared/leak
long=$(printf 'x%.0s' {1..256})
deep=$(printf 'd/%.0s' {1..129})
refused 1 "'\.\.' is refused" one 127.0.0.1:../evil
refused 1 "'\.\.' is refused" one 127.0.0.1:dir/../../evil
refused 1 "'\.\.' is refused" 127.0.0.1:../outside/secret got
refused 1 "absolute paths are refused" one 127.0.0.1:/tmp/evil
refused 1 "absolute paths are refused" "127.0.0.1:$work/outside/secret" got
refused 1 "leads out of the shared directory" one 127.0.0.1:way-out/evil
refused 1 "leads out of the shared directory" one 127.0.0.1:dir/way-out/evil
refused 1 "leads out of the shared directory" 127.0.0.1:way-out/secret got
refused 1 "leads out of the shared directory" 127.0.0.1:leak got
refused 1 "leads out of the shared directory" -r 127.0.0.1:way-out got
refused 1 "name too long" one "127.0.0.1:$long"
refused 1 "name too long" "127.0.0.1:dir/$long" got
refused 1 "name too long" one "127.0.0.1:$(printf 'x/%.0s' {1..2100})y"
refused 1 "more than 128 directories deep" one "127.0.0.1:${deep}x"
refused 1 "no such file or directory" 127.0.0.1:missing got
refused 1 "no such file or directory" one 127.0.0.1:missing/one
refused 1 "no such file or directory" missing 127.0.0.1:
refused 1 "-r copies it" tree 127.0.0.1:tree2
refused 1 "-r copies it" 127.0.0.1:dir got
refused 1 "not a directory" one 127.0.0.1:one/two
refused 1 "no such file or directory" one 127.0.0.1:new/
refused 1 "not a directory" -r tree 127.0.0.1:one
mkdir shared/dir/one-dir shared/dir/one-dir/one
refused 1 "is a directory" one 127.0.0.1:dir/one-dir
mkfifo shared/pipe
refused 1 "neither a file" 127.0.0.1:pipe got
[ ! -e got ] || bad "something was got"
[ "$(ls -A outside)" = secret ] || bad "something was written outside"
[ ! -e shared/tree2 ] && [ ! -e shared/new ] || bad "something was written where it was refused"

part "links that lead out of what is copied"
mkdir links && echo text >links/inside
ln -s /etc links/absolute && ln -s ../outside links/up && ln -s inside links/ok
timeout 30 "$tool" cp -q -p "$port" -r links 127.0.0.1: 2>said
[ $? = 1 ] && [ "$(grep -c 'a symbolic link that leads out' said)" = 2 ] && [ "$(wc -l <said)" = 2 ] ||
    bad "links: $(cat said)"
[ "$(ls shared/links)" = $'inside\nok' ] && cmp links/inside shared/links/inside || bad "links: the rest is not there"

for way in push pull; do
    rm -rf skipped shared/skipped
    [ $way = push ] && set -- links 127.0.0.1:skipped || set -- 127.0.0.1:out skipped
    [ $way = push ] || { rm -rf shared/out && cp -a links shared/out; }
    timeout 30 "$tool" cp -p "$port" --links=skip -r "$@" >said 2>&1 || bad "links are not left out: $way: $(cat said)"
    grep -q '^1 file, 1 directory, 1 link, .*; 2 links left out; every file verified' said || bad "links left out: $way: $(cat said)"
    [ $way = push ] && to=shared/skipped || to=skipped
    [ "$(ls $to)" = $'inside\nok' ] || bad "links left out: $way: $(ls $to)"
done
mkdir -p linked/sub && ln -s "$work/one" linked/file && ln -s ../../tree/many linked/sub/many && ln -s file linked/ok && ln -s .. linked/sub/loop
timeout 30 "$tool" cp -q -p "$port" --links=follow -r linked 127.0.0.1: 2>said || bad "links that are followed: $(cat said)"
[ ! -L shared/linked/file ] && cmp one shared/linked/file && [ -L shared/linked/ok ] && [ -L shared/linked/sub/loop ] ||
    bad "links are not followed: $(ls -lR shared/linked | head -20)"
same tree/many shared/linked/sub/many
ln -s "$work/nowhere" linked/broken
refused 1 "linked/broken: no such file" --links=follow -r linked 127.0.0.1:
rm linked/broken && ln -s "$work" linked/round
timeout 30 "$tool" cp --links=follow -r 127.0.0.1:linked got 2>/dev/null
[ $? = 2 ] || bad "--links=follow from a server: not exit code 2"
rm -rf linked

part "files that cannot be read"
as=()
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
mkdir -m 777 unread unread/shared && echo text >unread/readable && echo text >unread/closed && chmod 000 unread/closed
chmod 755 unread
if [ ${#as[@]} = 0 ] || "${as[@]}" "$tool" --version >/dev/null 2>&1; then
    mkdir unread/shared/sub && cp unread/readable unread/shared/sub && echo x >unread/shared/sub/closed
    chmod 000 unread/shared/sub/closed
    refused 1 "closed: permission denied" unread/closed 127.0.0.1:never
    serve unread unread/shared
    refused 1 "closed: permission denied" -r 127.0.0.1:sub unread/shared/copy
    cmp unread/readable unread/shared/copy/readable || bad "the readable file is not there"
    [ ! -e unread/shared/copy/closed ] || bad "an unreadable file has a copy"
    chmod 555 unread/shared/sub
    refused 1 "permission denied" one 127.0.0.1:sub/new
    stop "$pid"
    port=$main
else
    echo "left out: the command cannot be run as another user"
fi
as=()

part "a server that only gives"
serve read-only --read-only shared
refused 1 "read-only" one 127.0.0.1:evil
[ ! -e shared/evil ] || bad "a read-only server took a file"
copy 127.0.0.1:dir/one got && cmp got shared/dir/one || bad "a read-only server does not give"
rm -f got
stop "$pid"
port=$main

part "a full disk"
cat >full.sh <<'END'
mount -t tmpfs -o size=4m none full || exit 77
: >full.log
"$1" serve -a 127.0.0.1 -p 0 full >full.log 2>&1 & pid=$!
for _ in {1..200}; do
    port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' full.log)
    [ -z "$port" ] || break
    sleep 0.02
done
for size in 6 100; do
    head -c ${size}M /dev/zero >zeros
    timeout 30 "$1" cp -q -p "$port" zeros 127.0.0.1:new 2>>full.said && echo "$size MB: taken" >>full.wrong
    [ -z "$(ls -A full)" ] || echo "$size MB: left behind: $(ls -lA full)" >>full.wrong
done
timeout 30 "$1" cp -q -p "$port" one 127.0.0.1:new || echo "a small one was not taken afterwards" >>full.wrong
kill $pid
wait
END
mkdir full
if unshare -rm true 2>/dev/null; then
    unshare -rm bash full.sh "$tool"
    code=$?
    [ $code = 0 ] || [ $code = 77 ] || bad "full disk: exit code $code"
    [ ! -s full.wrong ] || bad "full disk: $(cat full.wrong)"
    [ $code = 77 ] || [ "$(grep -c 'no space left on the device' full.said)" = 2 ] || bad "full disk: $(cat full.said)"
else
    echo "left out: no mount namespace to be had"
fi

part "exit codes"
port=1 refused 3 "cannot connect" one 127.0.0.1:x
"$tool" cp one two 2>/dev/null
[ $? = 2 ] || bad "two local names: not exit code 2"
"$tool" cp one 2>/dev/null
[ $? = 2 ] || bad "one name: not exit code 2"
"$tool" serve 2>/dev/null
[ $? = 2 ] || bad "serve without DIR: not exit code 2"
"$tool" serve -p 0 "$work/missing" 2>/dev/null
[ $? = 1 ] || bad "serve of nothing: not exit code 1"

# --- transfers that break --------------------------------------------------------------------------------------------

part "broken and resumed"
mib=128
head -c ${mib}M /dev/urandom >big
chmod 640 big && touch -d '2011-11-11 11:11:11.123456789' big

end_with_kill() { { kill -9 "$1" && wait "$1"; } 2>/dev/null; }

# Kills VICTIM with SIGKILL when the temporary file in DIR has a third of the size. Returns 0 if the final name does not exist
# then, and 1 if the copy was complete before, as may happen on a busy machine.
kill_in_the_middle() { # VICTIM DIR
    local size=0
    while kill -0 "$1" 2>/dev/null && [ ! -e "$2/big" ]; do
        size=$(stat -c %s "$2"/.big.rddp-* 2>/dev/null || echo 0)
        [ "$size" -lt $((mib * 1024 * 1024 / 3)) ] || break
    done
    end_with_kill "$1"
    [ -e "$2/big" ] || return 0
    cmp -s big "$2/big" || bad "a partial file has the final name"
    return 1
}

# Breaks off a copy of `big` into DIR: break_client kills the client, break_server kills the server that it started.
break_client() { # DIR ARGUMENT...
    local dir=$1
    shift
    for _ in {1..20}; do
        rm -f "$dir/big"
        "$tool" cp -p "$port" "$@" >/dev/null 2>&1 &
        client=$!
        disown
        ! kill_in_the_middle $client "$dir" || return
    done
    bad "rddp cp $* could not be broken off"
}

break_server() { # DIR ARGUMENT...
    local dir=$1
    shift
    for _ in {1..20}; do
        rm -f "$dir/big"
        serve victim shared
        timeout 60 "$tool" cp -q -p "$port" "$@" 2>said &
        client=$!
        if kill_in_the_middle "$pid" "$dir"; then
            wait $client
            [ $? = 1 ] && grep -q "the same command again goes on" said || bad "server killed: $(cat said)"
            return
        fi
        wait $client
        [ "$dir" = shared ] || rm -f shared/.big.rddp-*
    done
    bad "rddp cp $* could not be broken off"
}

# Runs the same command again and checks that it resumes in the middle.
resumes() { # ARGUMENT...
    local at
    timeout 60 "$tool" cp -p "$port" "$@" >out 2>said || bad "rddp cp $* does not go on: $(cat said)"
    at=$(sed -n "s/.*: resumed at \([0-9]*\)\.[0-9]* MB\$/\1/p" said)
    [ "${at:-0}" -ge $((mib / 4)) ] && [ "${at:-0}" -le $((mib * 105 / 100)) ] || bad "rddp cp $* starts again: $(cat said)"
}

break_client shared big 127.0.0.1:
resumes big 127.0.0.1:
cmp big shared/big || bad "push, client killed: it differs"
[ "$(stat -c '%a %y' big)" = "$(stat -c '%a %y' shared/big)" ] || bad "a resumed file has another mode or time"

mkdir down
break_client down 127.0.0.1:big down
resumes 127.0.0.1:big down
cmp big down/big || bad "pull, client killed: it differs"

break_server down 127.0.0.1:big down
port=$main
resumes 127.0.0.1:big down
cmp big down/big || bad "pull, server killed: it differs"

break_server shared big 127.0.0.1:
port=$main
resumes big 127.0.0.1:
cmp big shared/big || bad "push, server killed: it differs"

part "what is left is verified before it is used"
for how in "" --checksum; do
    # shellcheck disable=SC2086
    timeout 60 "$tool" cp --json -p "$port" $how big 127.0.0.1: >json 2>said || bad "again: $(cat said)"
    python3 -c "import json; o = json.load(open('json')); assert o['bytes'] == 0 and o['unchanged_bytes'] == $mib << 20, o" ||
        bad "a file that is there moves again: $how"
done
break_client shared big 127.0.0.1:
printf 'X%.0s' {1..16} | dd of="$(echo shared/.big.rddp-*)" bs=1 seek=1000000 conv=notrunc status=none
timeout 60 "$tool" cp -p "$port" big 127.0.0.1: >out 2>said || bad "a spoilt temporary: $(cat said)"
grep -q "started again" said || bad "a spoilt temporary was used: $(cat said)"
cmp big shared/big || bad "a spoilt temporary was used"
break_client shared big 127.0.0.1:
touch big
timeout 60 "$tool" cp -p "$port" big 127.0.0.1: >out 2>said || bad "another time: $(cat said)"
grep -q "resumed" said && bad "another file was resumed"
rm -f shared/.big.rddp-*
break_client shared big 127.0.0.1:
timeout 60 "$tool" cp --no-resume -p "$port" big 127.0.0.1: >out 2>said || bad "--no-resume: $(cat said)"
grep -q "resumed" said && bad "--no-resume resumes"
no_temporaries shared

# --- more than one ---------------------------------------------------------------------------------------------------

# Starts a copy of `big` and stops it when COUNT temporaries have a third of the size. Sets client; 1: it was too fast.
stop_in_the_middle() { # COUNT ARGUMENT...
    local count=$1 third=$((mib * 1024 * 1024 / 3)) state
    shift
    "$tool" cp -q -p "$port" "$@" big 127.0.0.1: 2>said &
    client=$!
    while kill -0 $client 2>/dev/null; do
        [ "$(find shared -name '.big.rddp-*' -size +${third}c | wc -l)" -lt "$count" ] || break
    done
    kill -STOP $client 2>/dev/null
    for _ in {1..100}; do
        read -r _ _ state _ <"/proc/$client/stat" && [ "$state" = T ] && break
        sleep 0.01
    done
    [ ! -e shared/big ] && [ "$(find shared -name '.big.rddp-*' | wc -l)" = "$count" ]
}

# Two senders of one file, both in the middle: the first is killed BEFORE or AFTER the second completes the file.
kill_one_of_two() { # BEFORE|AFTER
    local first second="" part
    for _ in {1..20}; do
        rm -f shared/big shared/.big.rddp-*
        if stop_in_the_middle 1; then
            first=$client part=$(echo shared/.big.rddp-*)
            if stop_in_the_middle 2 --no-resume; then second=$client; break; fi
            end_with_kill "$first"
        fi
        end_with_kill "$client"
    done
    [ -n "$second" ] || { bad "two senders could not be stopped"; return; }
    if [ "$1" = BEFORE ]; then
        end_with_kill "$first"
        for _ in {1..100}; do flock -n "$part" true && break; sleep 0.05; done
    fi
    kill -CONT "$second"
    wait "$second" || bad "the second sender: $(cat said)"
    cmp big shared/big || bad "the second sender: it differs"
    [ "$1" = BEFORE ] || end_with_kill "$first"
    for _ in {1..100}; do [ -n "$(find shared -name '.big.rddp-*')" ] || break; sleep 0.05; done
    no_temporaries shared
}

part "two senders, of which one is killed"
kill_one_of_two BEFORE
kill_one_of_two AFTER

part "two clients at once"
timeout 60 "$tool" cp -q -p "$port" big 127.0.0.1:first &
one=$!
timeout 60 "$tool" cp -q -p "$port" -r 127.0.0.1:there second &
two=$!
timeout 60 "$tool" cp -q -p "$port" --no-resume big 127.0.0.1:both &
three=$!
timeout 60 "$tool" cp -q -p "$port" --no-resume big 127.0.0.1:both &
wait $one && wait $two && wait $three && wait $! || bad "two at once: one failed"
cmp big shared/first && cmp big shared/both || bad "two at once: they differ"
same shared/there second
no_temporaries shared
rm -f shared/first shared/both

part "all places taken"
serve busy --clients 1 shared
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'MPA ID Req Frame\x40\x01\x00\x08rdc\x03\x00\x00\x00\x00' >&3
head -c 20 <&3 >/dev/null
timeout 30 "$tool" cp -q -p "$port" one 127.0.0.1:x 2>said
[ $? = 3 ] && grep -q "all places are taken" said || bad "a second client: $(cat said)"
exec 3>&-
for _ in {1..50}; do timeout 30 "$tool" cp -q -p "$port" one 127.0.0.1:x 2>/dev/null && break; sleep 0.05; done
cmp one shared/x || bad "a place does not become free"
stop "$pid"
serve fair --clients 2 --read-only shared
hold() { # ADDRESS...: takes a place from each
    : >held
    python3 "$here/hostile.py" hold "$port" "$@" >held 2>&1 &
    holder=$!
    pids+=("$holder")
    for _ in {1..500}; do [ -s held ] && break; sleep 0.02; done
    grep -q '^held$' held || bad "places cannot be held: $(tail -1 held)"
}
hold 127.0.0.8 127.0.0.9
timeout 30 "$tool" cp -q -p "$port" 127.0.0.1:x got 2>said
[ $? = 3 ] && grep -q "all places are taken" said || bad "two addresses with a place each: $(cat said)"
{ kill "$holder" && wait "$holder"; } 2>/dev/null
hold 127.0.0.9 # one of two places
copy 127.0.0.1:x got
{ kill "$holder" && wait "$holder"; } 2>/dev/null
hold 127.0.0.9 127.0.0.9 # both
copy 127.0.0.1:x got
grep -q '127.0.0.9:[0-9]*: ended, to serve another client' fair.log || bad "one address keeps all places: $(cat fair.log)"
{ kill "$holder" && wait "$holder"; } 2>/dev/null
stop "$pid"
port=$main

# --- hostile peers, other kernels ------------------------------------------------------------------------------------

part "peers that lie"
mkdir lied && mkdir lied/sub && echo text >lied/sub/file && ln -s "$work/outside" lied/way-out
mkdir lied/many && touch lied/many/"$(printf 'n%.0s' {1..200})"-{1..1000}
truncate -s 16M lied/big && head -c 512M /dev/zero >lied/huge && touch -d @1.000000002 lied/big lied/huge
serve lied lied
timeout 100 python3 "$here/hostile.py" client "$port" >hostile || bad "a client that lies: $(grep WRONG hostile)"
timeout 100 python3 "$here/hostile.py" fuzz "$port" 1 60 || bad "chance: exit code $?"
copy one 127.0.0.1:alive && cmp one lied/alive || bad "the server did not survive"
stop "$pid"
for case in $("$here/hostile.py" cases); do
    : >port
    timeout 60 python3 "$here/hostile.py" server "$case" >port 2>/dev/null &
    pids+=($!)
    for _ in {1..200}; do [ -s port ] && break; sleep 0.02; done
    port=$(cat port)
    mkdir -p liar/dst
    case $case in
    done | have) refused 4 "protocol error" --mpa-rev 1 one 127.0.0.1:x ;;
    push-*) refused 4 "protocol error" --mpa-rev 1 --checksum one 127.0.0.1:x ;;
    file-*) refused 4 "protocol error" --mpa-rev 1 127.0.0.1:x liar/dst ;;
    *) refused 4 "protocol error" --mpa-rev 1 -r 127.0.0.1:x liar/dst ;;
    esac
done
[ "$(ls -A outside)" = secret ] && [ ! -e liar/evil ] && [ ! -e evil ] && [ ! -e /tmp/rddp-evil ] ||
    bad "a liar wrote outside"

part "a kernel without openat2"
if command -v strace >/dev/null && strace -e trace=none true 2>/dev/null; then
    as=(strace -D -f -qq -o trace -e trace=openat2 -e "inject=openat2:error=ENOSYS")
    serve walk shared
    as=()
    copy one 127.0.0.1:dir/walked && cmp one shared/dir/walked || bad "without openat2: not where it belongs"
    copy -r 127.0.0.1:there walked
    same shared/there walked
    refused 1 "a symbolic link where none may be" one 127.0.0.1:way-out/evil
    refused 1 "a symbolic link where none may be" 127.0.0.1:leak got
    grep -q INJECTED trace || bad "without openat2: it was never asked for"
    stop "$pid"
else
    echo "left out: no strace, or it may not trace"
fi

kill -0 "${pids[0]}" || bad "the first server did not survive"
stop "${pids[0]}"
no_temporaries shared
finish
