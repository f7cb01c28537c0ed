#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# nfs_client.sh - tests our NFS clients, `rddp nfs` and `rddp mount`, against Linux's server, knfsd.
#
#   nfs_client.sh PATH/TO/rddp
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here. README.md lists the cases.
# RDDP_KERNEL_FULL=1 runs the long cases too. RDDP_KERNEL_ONLY=REGEX runs only the cases whose name matches.
set -u

test_name=nfs_client
rddp=$(realpath -e "${1:-}" 2>/dev/null)
if [ $# != 1 ] || [ ! -x "$rddp" ]; then
    echo "usage: nfs_client.sh PATH/TO/rddp" >&2
    exit 2
fi
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/peer.sh"

crc=--no-crc
declare -A host=([v4]=10.77.0.2 [v6]='[fd77::2]')
knfsd=${host[v4]}:/export
holder='' # a process whose mount namespace has our mounts: they end with it
hold_ends() { [ -z "$holder" ] || { kill -9 "$holder" && wait "$holder"; } }
undo+=(hold_ends)

# --- rddp nfs ------------------------------------------------------------------------------------------------------

nfs() { # ARGUMENT ...
    timeout "${seconds:-60}" "$guest" ns "$rddp" nfs --mount-port 20048 ${crc:+"$crc"} "$@"
}

must() { "$@" || fail "failed ($?): $*"; }

lists_many() { # COUNT
    must nfs ls "$knfsd/many" >"$tmp/names"
    [ "$(sort -u "$tmp/names" | wc -l) $(wc -l <"$tmp/names")" = "$1 $1" ] || fail "$(wc -l <"$tmp/names") names"
    [ "$(sort "$tmp/names" | tail -n 1)" = "f$(printf %05d $(($1 - 1)))" ] || fail "the last name"
    in_guest "mkdir /export/empty"
    [ -z "$(nfs ls "$knfsd/empty")" ] || fail "an empty folder has names"
    must nfs rm -r "$knfsd/empty"
}

whole_file() { # MIB [OPTION ...]: put, looked at by the server, and got back
    local n=$(($1 << 20))
    shift
    rm -rf "$tmp/big" "$tmp/back"
    "$tmp/bin/fsop" fill "$tmp/big" 0 $n 11
    seconds=600 must nfs -q "$@" put "$tmp/big" "$knfsd/big"
    in_guest "/tmp/bin/fsop check /export/big 0 $n 11 && [ \$(stat -c %s /export/big) = $n ]" 300 || fail "the server has another file"
    seconds=600 must nfs -q "$@" get "$knfsd/big" "$tmp/back"
    cmp "$tmp/big" "$tmp/back" || fail "what came back differs"
    seconds=600 nfs "$@" cat "$knfsd/big" | cmp - "$tmp/big" || fail "cat differs"
    rm "$tmp/big" "$tmp/back"
    must nfs rm "$knfsd/big"
}

same_trees() { # A B: names, contents, modes, times
    diff -r --no-dereference "$1" "$2" || fail "differs"
    [ "$(listing "$1")" = "$(listing "$2")" ] || fail "$(diff <(listing "$1") <(listing "$2") | head -n 4)"
}

listing() { (cd "$1" && find . -mindepth 1 ! -type l -printf '%P %y %m %Ts\n' | sort); }

sum_all='find . -type f -exec sh -c "for f; do sha256sum <\"\$f\"; done" sh {} + | sort' # names may have newlines

there_and_back() { # DIRECTORY: cp -r to the server and back
    local name=${1##*/} sums
    seconds=300 must nfs -q cp -r "$1" "$knfsd/"
    sums=$(in_guest "cd '/export/$name' && $sum_all" 120)
    [ "$sums" = "$(cd "$1" && eval "$sum_all")" ] || fail "the server has other files"
    seconds=300 must nfs -q cp -r "$knfsd/$name" "$tmp/back"
    same_trees "$1" "$tmp/back"
    rm -r "$tmp/back"
    seconds=300 must nfs rm -r "$knfsd/$name"
    in_guest "[ ! -e '/export/$name' ]" || fail "rm -r leaves it"
}

make_sizes() { # a folder with files of every size that could matter
    local n
    mkdir "$tmp/sizes"
    for n in 0 1 2 3 4 5 7 8 1000 3800 39{00..99..7} 4095 4096 4097 8191 8193 65535 65537 262143 262144 262145 1048577; do
        "$tmp/bin/fsop" fill "$tmp/sizes/s$n" 0 "$n" "$n"
    done
}

make_odd() { # strange names, links, modes, a sparse file
    local d=$tmp/odd
    mkdir -p "$d/-r/ two  words" "$d/deep/$(printf '%0200d' 1)/$(printf '%0200d' 2)/$(printf '%0200d' 3)"
    printf a >"$d/"$'new\nline'
    printf b >"$d/"$'\xff\xfe\x80 \t"\'\\*?'
    printf c >"$d/$(printf '%0255d' 9)"
    printf d >"$d/deep/$(printf '%0200d' 1)/$(printf '%0200d' 2)/$(printf '%0200d' 3)/leaf"
    printf e >"$d/-r/-"
    ln -s "$(printf '%04000d' 5)" "$d/long"
    ln -s nowhere "$d/dangling"
    ln -s deep "$d/folder"
    printf f >"$d/closed" && chmod 400 "$d/closed"
    mkfifo "$d/../fifo" 2>/dev/null
    truncate -s 3M "$d/sparse" && printf g >>"$d/sparse"
    touch -d '1999-12-31 23:59:59.5' "$d/closed"
}

refuses() { # EXIT-CODE PATTERN ARGUMENT ...
    local code=$1 pattern=$2 got
    shift 2
    nfs "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ $got = "$code" ] || fail "exit code $got, not $code: $*: $(head -n 2 "$tmp/err")"
    grep -qi "$pattern" "$tmp/err" || fail "no '$pattern' in: $(head -n 2 "$tmp/err")"
}

errors() {
    refuses 1 'no such file' cat "$knfsd/nothing"
    refuses 1 'no such file' ls "$knfsd/nothing"
    refuses 1 'directory' cat "$knfsd/many"
    in_guest "echo x >/export/secret; chmod 600 /export/secret; echo x >/export/full; chmod 777 /export"
    refuses 1 'permission denied' --uid 1000 --gid 1000 cat "$knfsd/secret"
    [ "$(nfs cat "$knfsd/secret")" = x ] || fail "root cannot read"
    refuses 1 'not a directory' ls "$knfsd/full/x"
    nfs ls "${host[v4]}:/not/exported" >/dev/null 2>"$tmp/err" && fail "what is not exported is listed"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
    in_guest "rm /export/secret /export/full"
}

small_ones() { # mkdir, stat, df, ls -l, rm
    must nfs mkdir "$knfsd/m"
    must nfs mkdir --parents "$knfsd/m/n/o"
    in_guest "cd /export/m/n/o && echo text >f && ln -s f l && chmod 640 f && chown 1212:3434 f"
    nfs ls -l "$knfsd/m/n/o" >"$tmp/out" || fail "ls -l: $?"
    grep -qE -e '-rw-r-----.* 1212 +3434 .* f$' "$tmp/out" || fail "ls -l: $(cat "$tmp/out")"
    grep -qE 'lrwxrwxrwx.* l( -> f)?$' "$tmp/out" || fail "ls -l: $(cat "$tmp/out")"
    [ "$(nfs cat "$knfsd/m/n/o/l")" = text ] || fail "cat through a link"
    must nfs stat "$knfsd/m/n/o/f" >"$tmp/out"
    must nfs df "$knfsd" >"$tmp/out"
    refuses 1 '' rm "$knfsd/m"
    must nfs rm -r "$knfsd/m"
    in_guest "[ ! -e /export/m ]" || fail "rm -r leaves it"
}

# siw may overlook data that arrive right behind its MPA Reply. A client without a time-out would sometimes hang then.
connects() { # TIMES SECONDS
    local i began=$SECONDS
    for ((i = 0; i < $1; i++)); do
        seconds=10 nfs ls "$knfsd" >/dev/null || fail "connection $i: exit code $?"
    done
    ((SECONDS - began <= $2)) || fail "$1 connections took $((SECONDS - began)) s"
}

# knfsd has room for the 64 calls that it granted. siw ends a connection that sends one more.
more_than_credits() {
    whole_file 16 --credits 256 --depth 64
}

# Restarts knfsd, which loses the data that were not committed.
knfsd_restart() { # COMMITS before the case
    knfsd_stop
    [ "$(knfsd_commits)" != "$1" ] || in_guest "find /export -maxdepth 1 -type f -exec truncate -s 0 {} +"
    sleep 1
    knfsd_start rw async no_root_squash
}
knfsd_commits() { in_guest "awk '\$1 == \"proc3\" { print \$NF }' /proc/net/rpc/nfsd"; }

restart_under_put() { # MIB: UNSTABLE data is lost with knfsd, and has to come again
    local n=$(($1 << 20)) pid rc i commits
    commits=$(knfsd_commits)
    rm -rf "$tmp/big" "$tmp/back"
    "$tmp/bin/fsop" fill "$tmp/big" 0 $n 11
    seconds=200 nfs -q put "$tmp/big" "$knfsd/big" 2>"$tmp/err" &
    pid=$!
    for ((i = 0; i < 300; i++)); do
        [ "$(in_guest "find /export -maxdepth 1 -type f -exec stat -c %s {} + | awk '{ n += \$1 } END { print n + 0 }'")" -lt $((n / 4)) ] || break
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill -0 $pid 2>/dev/null || fail "it was done before knfsd went"
    knfsd_restart "$commits"
    wait $pid
    rc=$?
    [ $rc = 0 ] || fail "exit code $rc: $(head -n 2 "$tmp/err")"
    in_guest "/tmp/bin/fsop check /export/big 0 $n 11 && rm /export/big" 120 || fail "the server has another file"
    rm "$tmp/big"
}

cut_under_get() { # MIB
    local n=$(($1 << 20)) pid i
    in_guest "/tmp/bin/fsop fill /export/big 0 $n 11" 120
    seconds=200 nfs -q get "$knfsd/big" "$tmp/back" 2>"$tmp/err" &
    pid=$!
    for ((i = 0; i < 3; i++)); do
        sleep 0.4
        "$guest" ns ss -K "dport = :20049" "dst 10.77.0.2" &>/dev/null || fail "ss cannot cut"
    done
    wait $pid || fail "exit code $?: $(head -n 2 "$tmp/err")"
    "$tmp/bin/fsop" check "$tmp/back" 0 $n 11 || fail "what came differs"
    rm "$tmp/back"
    must nfs rm "$knfsd/big"
}

family() { # v4|v6
    local knfsd=${host[$1]}:/export
    whole_file 3
    lists_many $names
}

readonly_client() {
    refuses 1 'read-only' put "$tmp/tree.tar" "$knfsd/new"
    refuses 1 'read-only' mkdir "$knfsd/new"
    refuses 1 'read-only' rm "$knfsd/ro/file"
    [ "$(nfs cat "$knfsd/ro/file")" = text ] || fail "it cannot be read"
}

squashed_client() {
    must nfs -q put "$tmp/bin/work.sh" "$knfsd/squashed"
    [ "$(in_guest 'stat -c %u:%g /export/squashed; rm /export/squashed')" = 65534:65534 ] || fail "root is not squashed"
}

# --- rddp mount ----------------------------------------------------------------------------------------------------

inside() { nsenter -t "$holder" --mount --net "$@"; }

mount_start() { # FAMILY [OPTION ...]
    local f=$1
    shift
    inside timeout 30 "$rddp" mount --mount-port 20048 -o allow_other "$@" "${host[$f]}:/export" "$tmp/mnt" >"$tmp/err" 2>&1 ||
        fail "exit code $?: $(head -n 2 "$tmp/err")"
    inside grep -q " $tmp/mnt fuse" /proc/mounts || fail "not mounted"
}

mount_stop() {
    inside umount "$tmp/mnt" || fail "umount: $?"
    wait_for 5 mount_gone || fail "rddp mount still runs: $("$guest" ns ss -tnp)"
}
mount_gone() { [ -z "$("$guest" ns ss -Htn state established 'dport = :20049')" ]; }

mwork() { # SECONDS CASE [ARGUMENT ...]
    local seconds=$1
    shift
    inside grep -q " $tmp/mnt fuse" /proc/mounts || fail "not mounted"
    inside timeout -k 5 "$seconds" sh "$tmp/bin/work.sh" "$tmp/mnt" "$@"
}

mount_big() { # MIB
    mwork 600 big "$1" || exit 1
    in_guest "/tmp/bin/fsop check /export/big 0 $(($1 << 20)) 11" 300 || fail "the server has another file"
    mount_stop
    mount_start v4 --no-crc
    inside "$tmp/bin/fsop" check "$tmp/mnt/big" 0 $(($1 << 20)) 11 || fail "after a new mount it differs"
    inside rm "$tmp/mnt/big"
}

mount_copy() {
    mwork 240 copy "$tmp/tree" || exit 1
    inside cp -a "$tmp/tree" "$tmp/mnt/" || fail "cp -a"
    in_guest "diff -r /tmp/tree /export/tree && rm -r /export/tree" 60 || fail "the server has another tree"
}

mount_restart() { # MIB: knfsd restarts under writes that are not committed
    local n=$(($1 << 20)) pid i commits
    commits=$(knfsd_commits)
    inside timeout 200 sh -c "'$tmp/bin/fsop' fill '$tmp/mnt/big' 0 $n 11 && sync '$tmp/mnt/big'" 2>"$tmp/err" &
    pid=$!
    for ((i = 0; i < 200; i++)); do
        [ "$(in_guest 'stat -c %s /export/big || echo 0' 2>/dev/null | tail -n 1)" -lt $((n / 4)) ] || break
        sleep 0.1
    done
    knfsd_restart "$commits"
    wait $pid || fail "exit code $?: $(head -n 2 "$tmp/err")"
    in_guest "/tmp/bin/fsop check /export/big 0 $n 11 && rm /export/big" 120 || fail "the server has another file"
}

mount_sees_others() {
    in_guest "echo first >/export/shared"
    [ "$(inside cat "$tmp/mnt/shared")" = first ] || fail "the first text is not seen"
    in_guest "echo second text >/export/shared"
    wait_for 10 inside grep -q second "$tmp/mnt/shared" || fail "the change is not seen"
    in_guest "rm /export/shared"
    wait_for 10 inside test ! -e "$tmp/mnt/shared" || fail "the removal is not seen"
}

# --- what is run -----------------------------------------------------------------------------------------------------

if [ "$full" = 1 ]; then
    big=1024 big_mount=256 lost=256 steps=1500 seeds="1 2 3 4"
    export RDDP_GUEST_MEM=4096 disk_mib=2500
else
    big=64 big_mount=32 lost=48 steps=250 seeds="1 2"
fi
names=10000

helpers_build
make_sizes
make_odd
boot --no-crc
knfsd_start rw sync no_root_squash || exit 1
in_guest "mkdir -p /export/many /export/ro/folder && /tmp/bin/fsop names /export/many f $names &&
    echo text >/export/ro/file && ln -s file /export/ro/link" 60 || exit 1
capture_start
check "ls of $names names" lists_many $names
check "MPA without CRC, revision 2" mpa_shows 10 10
check "mkdir, ls -l, stat, df, rm" small_ones
check "put, get and cat of $big MiB" whole_file $big
check "cp -r there and back: sizes around every threshold" there_and_back "$tmp/sizes"
check "cp -r there and back: strange names, links, modes" there_and_back "$tmp/odd"
check "cp -r there and back: a tree of sources" there_and_back "$tmp/tree"
check "what fails says so" errors
check "20 connections in a row" connects 20 30
check "more calls than knfsd grants" more_than_credits
check "IPv6" family v6
crc=
check "with the MPA CRC" whole_file 8
check "with the MPA CRC: the wire" mpa_shows 50 50
crc=--no-crc
check "knfsd restarts under put of $lost MiB" restart_under_put $lost
check "the connection is cut under get" cut_under_get 24

if "$rddp" help mount 2>/dev/null | grep -e --foreground >/dev/null && [ -c /dev/fuse ]; then
    mkdir "$tmp/mnt"
    "$guest" ns unshare --mount --propagation private sleep 100000 &
    holder=$!
    wait_for 10 grep -qx sleep "/proc/$holder/comm" # before that it is elsewhere
    check "mount: IPv4" mount_start v4 --no-crc
    check "mount: names: create, rename, link, unlink" mwork 60 tree
    check "mount: symbolic links" mwork 60 links
    check "mount: strange, long, deep, busy names" mwork 240 names
    check "mount: a folder of $names names, and one that changes" mwork 240 many $names
    check "mount: sizes around every threshold" mwork 240 sizes
    check "mount: holes, truncation, mappings, several writers" mwork 240 data
    # shellcheck disable=SC2086
    check "mount: chance, $steps steps for seeds $seeds" mwork 1200 fsx $steps $seeds
    check "mount: modes, owners, times, fifos" mwork 60 attributes
    check "mount: permissions of others" mwork 60 permissions
    check "mount: a tree copied, compared, worked on" mount_copy
    check "mount: $big_mount MiB written and read" mount_big $big_mount
    check "mount: what changes at the server" mount_sees_others
    check "mount: knfsd restarts under $lost MiB" mount_restart $lost
    check "mount: umount" mount_stop
    check "mount: IPv6, with the MPA CRC" mount_start v6
    check "mount: IPv6: a little of everything" mwork 60 short
    check "mount: IPv6: umount" mount_stop
else
    echo "left out: rddp mount (not built, or no /dev/fuse)"
fi

knfsd_stop
knfsd_start ro sync no_root_squash
check "read-only export" readonly_client
[ -z "$holder" ] || { check "mount: read-only export" mount_start v4 --no-crc && check "mount: nothing changes" mwork 60 readonly; mount_stop; }
knfsd_stop
knfsd_start rw sync root_squash
check "root squashed" squashed_client
check "the guest's kernel is well" kernel_is_well
finish
