#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# nfs_server.sh - tests our server with Linux's NFS client: over RDMA and TCP, with reconnects, squashed and read-only.
#
#   nfs_server.sh PATH/TO/rddp     the guest's client, our server on the host
#   nfs_server.sh --self           the guest's client and knfsd in the same guest: where this fails, the fault is not ours
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here. README.md lists the cases.
# RDDP_KERNEL_FULL=1 runs the long cases too. RDDP_KERNEL_ONLY=REGEX runs only the cases whose name matches.
# Shows MPA-11-01.
set -u

test_name=nfs_server
self=
if [ "${1:-}" = --self ]; then
    self=1
else
    rddp=$(realpath -e "${1:-}" 2>/dev/null)
fi
if [ $# != 1 ] || { [ ! "$self" ] && [ ! -x "$rddp" ]; }; then
    echo "usage: nfs_server.sh PATH/TO/rddp | --self" >&2
    exit 2
fi
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/peer.sh"

if [ "$self" ]; then
    declare -A host=([v4]=10.77.0.2 [v6]='[fd77::2]')
    export_dir=/export
else
    declare -A host=([v4]=10.77.0.1 [v6]='[fd77::1]')
    export_dir=$tmp/export
    mkdir -m 777 "$export_dir"
fi

# --- the server ----------------------------------------------------------------------------------------------------

server_listens() {
    local p
    for p in 20049 2049 20048; do
        [ -n "$("$guest" ns ss -Hltn "sport = :$p")" ] || return 1
    done
}

server_pid() { cat "$tmp/server.pid"; }
server_says() { tail -n 3 "$tmp/server.err"; }
server_ended() { [ -s "$tmp/server.rc" ]; }

server_start() { # SQUASH [OPTION ...]
    if [ "$self" ]; then
        local squash=$1 mode=rw
        shift
        case " $* " in *" --ro "*) mode=ro ;; esac
        case $squash in none) squash=no_root_squash ;; root) squash=root_squash ;; all) squash=all_squash ;; esac
        knfsd_start $mode sync $squash
        return
    fi
    rm -f "$tmp/server.rc"
    # Each case runs in its own subshell, so the subshell that waits for the server reports in files.
    (
        "$guest" ns "$rddp" nfsd --state "$tmp/state" --squash "$@" "$export_dir" &
        echo $! >"$tmp/server.pid"
        wait $!
        echo $? >"$tmp/server.rc"
    ) </dev/null >>"$tmp/server.out" 2>>"$tmp/server.err" &
    wait_for 10 server_listens || fail "our server does not listen: $(server_says)"
}

server_stop() {
    if [ "$self" ]; then
        knfsd_stop
        return
    fi
    ! server_ended || fail "our server has ended before: $(cat "$tmp/server.rc"), $(server_says)"
    kill "$(server_pid)"
    wait_for 5 server_ended || fail "our server still runs after a signal"
    [ "$(cat "$tmp/server.rc")" = 0 ] || fail "our server's exit code: $(cat "$tmp/server.rc"), $(server_says)"
}

server_kill() { # as suddenly as it goes
    if [ "$self" ]; then
        knfsd_stop
    else
        kill -9 "$(server_pid)"
        wait_for 5 server_ended || fail "our server does not die"
    fi
}

server_runs() { # the one that was started last
    [ "$self" ] || ! server_ended || fail "our server has ended: $(cat "$tmp/server.rc"), $(server_says)"
}

at_server() { # COMMAND ...: there where the files lie
    if [ "$self" ]; then in_guest "$(printf '%q ' "$@" | sed "s,$tmp/bin,/tmp/bin,g")" 120; else "$@"; fi
}

# --- mounts --------------------------------------------------------------------------------------------------------

mount_on() { # DIRECTORY rdma|tcp v4|v6 [OPTIONS]
    local options=vers=3,nolock,mountport=20048,port=2049 suffix=
    [ "$2" = tcp ] || options=vers=3,nolock,mountport=20048,port=20049
    [ "$3" = v4 ] || suffix=6
    in_guest "mount -t nfs -o $options,proto=$2$suffix,mountproto=tcp$suffix${4:+,$4} '${host[$3]}:$export_dir' $1" 30
}

umount_of() { in_guest "! grep -q ' $1 nfs ' /proc/mounts || umount $1" 30; }

mounted() { # DIRECTORY rdma|tcp: as the kernel says
    in_guest "grep ' $1 nfs .*proto=$2' /proc/mounts" >/dev/null || fail "not mounted over $2"
}

mount_case() { # DIRECTORY rdma|tcp FAMILY [OPTIONS]
    mount_on "$@" || fail "mount: exit code $?"
    mounted "$1" "$2"
}

work() { # DIRECTORY SECONDS CASE [ARGUMENT ...]
    local dir=$1 seconds=$2
    shift 2
    in_guest "grep -q ' $dir nfs ' /proc/mounts || { echo not mounted; exit 1; }; sh /tmp/bin/work.sh $dir $*" "$seconds"
}

# --- the cases -----------------------------------------------------------------------------------------------------

big_seen() { # MIB [HOW]: what the guest has written is there, whole
    work /mnt/a 600 big "$@" || exit 1
    at_server "$tmp/bin/fsop" check "$export_dir/big" 0 $(($1 << 20)) 11 || fail "the file is not what was written"
    at_server rm "$export_dir/big"
}

copies() { # the tree, seen from the server
    in_guest "cp -a /tmp/tree /mnt/a/" 120 || fail "cp"
    if [ "$self" ]; then in_guest "diff -r /tmp/tree /export/tree"; else diff -r "$tmp/tree" "$export_dir/tree"; fi || fail "differs"
    work /mnt/a 240 copy /mnt/a/tree || exit 1
    at_server rm -r "$export_dir/tree"
}

other_side() { # what the server's host changes the client sees, once it looks
    at_server sh -c "echo first >$export_dir/shared; mkdir $export_dir/sd"
    [ "$(in_guest 'cat /mnt/a/shared')" = first ] || fail "the first text is not seen"
    at_server sh -c "echo another text >$export_dir/shared; touch $export_dir/sd/new"
    wait_for 5 in_guest "grep -q another /mnt/a/shared" || fail "the change is not seen"
    wait_for 70 in_guest "ls /mnt/a/sd | grep -q new" || fail "the new name is not seen"
    at_server rm -r "$export_dir/shared"
    in_guest "exec 3</mnt/a/sd/new; rm /mnt/a/sd/new; rmdir /mnt/a/sd 2>/dev/null; exec 3<&-; rmdir /mnt/a/sd 2>/dev/null;
        [ ! -e /mnt/a/sd ]" || fail "the folder stays"
    at_server sh -c "mkdir $export_dir/gone && echo x >$export_dir/gone/f"
    [ "$(in_guest 'exec 3</mnt/a/gone/f; cat /mnt/a/gone/f')" = x ] || fail "the file is not seen"
    at_server rm -r "$export_dir/gone"
    wait_for 70 in_guest "! cat /mnt/a/gone/f" || fail "a removed file is still seen"
}

stale() { # a file that goes away at the server while it is open is stale, and no other file
    at_server sh -c "echo old >$export_dir/victim"
    in_guest "exec 3<>/mnt/a/victim; (sleep 4; cat <&3 >/tmp/stale.out 2>/tmp/stale.err) >/dev/null 2>&1 &"
    at_server sh -c "rm $export_dir/victim; echo new >$export_dir/victim"
    in_guest "echo 3 >/proc/sys/vm/drop_caches; sleep 5; grep -q Stale /tmp/stale.err && ! grep -q new /tmp/stale.out" ||
        fail "$(in_guest 'cat /tmp/stale.out /tmp/stale.err')"
    at_server rm "$export_dir/victim"
}

two_mounts() { # the same export twice, over RDMA and TCP: what one closes the other sees when it opens
    mount_case /mnt/b tcp v4 nosharecache || exit 1
    in_guest "for i in 1 2 3 4 5; do echo from-a\$i >/mnt/a/f\$i && [ \"\$(cat /mnt/b/f\$i)\" = from-a\$i ] || exit 1
            echo more >>/mnt/b/f\$i && [ \"\$(wc -l </mnt/a/f\$i)\" = 2 ] || exit 2; done
        (/tmp/bin/fsop fill /mnt/a/x 0 4000000 1 & /tmp/bin/fsop fill /mnt/b/y 0 4000000 2; wait)
        /tmp/bin/fsop check /mnt/b/x 0 4000000 1 && /tmp/bin/fsop check /mnt/a/y 0 4000000 2 && rm /mnt/a/* " 60 ||
        fail "exit code $?"
    umount_of /mnt/b
}

remounts() { # COUNT times
    in_guest "for i in \$(seq $1); do umount /mnt/a && mount -t nfs -o vers=3,nolock,proto=rdma,port=20049,mountproto=tcp,mountport=20048 \
        ${host[v4]}:$export_dir /mnt/a && echo \$i >/mnt/a/again && [ \"\$(cat /mnt/a/again)\" = \$i ] || exit; done; rm /mnt/a/again" 60
}

below() { # a folder of the export, and a folder that is not exported
    at_server mkdir -p "$export_dir/sub/dir"
    in_guest "mount -t nfs -o vers=3,nolock,proto=tcp,port=2049,mountproto=tcp,mountport=20048 ${host[v4]}:$export_dir/sub /mnt/b &&
        ls /mnt/b && umount /mnt/b" | grep -q dir || fail "no folder of the export can be mounted"
    in_guest "mount -t nfs -o vers=3,nolock,proto=tcp,port=2049,mountproto=tcp,mountport=20048,retry=0 ${host[v4]}:/etc /mnt/b" \
        >/dev/null && fail "what is not exported can be mounted"
    at_server rm -r "$export_dir/sub"
}

client_commits() { in_guest "sed -n '/ mounted on .mnt.a /,/^\$/p' /proc/self/mountstats | awk '\$1 == \"COMMIT:\" { print \$2 }'"; }

# A server that dies loses the UNSTABLE writes that were not committed. Its new verifier tells the client to resend them.
dies_while_written() { # MIB
    local i commits before
    before=$(client_commits)
    [ -n "$before" ] || fail "not mounted"
    in_guest "(/tmp/bin/fsop fill /mnt/a/big 0 $(($1 << 20)) 11; sync; echo \$? >/tmp/fill.rc) >/tmp/fill.err 2>&1 &"
    for ((i = 0; i < 200; i++)); do
        [ "$(at_server stat -c %s "$export_dir/big" 2>/dev/null || echo 0)" -lt $(($1 << 18)) ] || break
        sleep 0.1
    done
    server_kill
    commits=$(client_commits) # now that no COMMIT can be answered any more
    # When only the server process dies its kernel keeps the written octets. The truncate simulates a dead machine.
    [ "$commits" != "$before" ] || at_server truncate -s 0 "$export_dir/big"
    sleep 1
    server_start none --no-crc
    wait_for 180 in_guest "[ -s /tmp/fill.rc ]" || fail "the client still writes"
    [ "$(in_guest 'cat /tmp/fill.rc; rm /tmp/fill.rc')" = 0 ] || fail "the client: $(in_guest 'cat /tmp/fill.err')"
    at_server "$tmp/bin/fsop" check "$export_dir/big" 0 $(($1 << 20)) 11 || fail "the file is not what was written"
    in_guest "/tmp/bin/fsop forget /mnt/a/big && /tmp/bin/fsop check /mnt/a/big 0 $(($1 << 20)) 11; rm /mnt/a/big" 120
}

cut() { "$guest" ns ss -K "sport = :$1" "dst 10.77.0.2" &>/dev/null; }

# Cuts the connection while the client creates and removes names. The client repeats an unanswered call with the same XID, and
# the server must know that it has done the call.
cut_under_names() { # PORT CUTS COUNT
    local i
    in_guest "(sh /tmp/bin/work.sh /mnt/a once $3 >/tmp/once.out 2>&1; echo \$? >/tmp/once.rc) &"
    for ((i = 0; i < $2; i++)); do
        sleep 1
        cut "$1" || fail "ss cannot cut"
        ! in_guest "[ -s /tmp/once.rc ]" || break
        wait_for 60 connected "$1" || fail "the client does not come back"
    done
    ((i > 0)) || fail "it was done before the first cut"
    wait_for 180 in_guest "[ -s /tmp/once.rc ]" || fail "it hangs"
    [ "$(in_guest 'cat /tmp/once.rc; rm /tmp/once.rc')" = 0 ] || fail "$(in_guest 'cat /tmp/once.out')"
}

connected() { [ -n "$("$guest" ns ss -Htn state established "sport = :$1")" ]; }

cut_under_data() { # PORT MIB
    local i
    in_guest "(/tmp/bin/fsop fill /mnt/a/big 0 $(($2 << 20)) 11; sync; echo \$? >/tmp/fill.rc) >/tmp/fill.err 2>&1 &"
    for ((i = 0; i < 200; i++)); do
        [ "$(stat -c %s "$export_dir/big" 2>/dev/null || echo 0)" -lt $(($2 << 19)) ] || break
        sleep 0.1
    done
    cut "$1" || fail "ss cannot cut"
    wait_for 120 in_guest "[ -s /tmp/fill.rc ]" || fail "the client still writes"
    [ "$(in_guest 'cat /tmp/fill.rc; rm /tmp/fill.rc')" = 0 ] || fail "the client: $(in_guest 'cat /tmp/fill.err')"
    "$tmp/bin/fsop" check "$export_dir/big" 0 $(($2 << 20)) 11 || fail "the file is not what was written"
    (sleep 0.5; cut "$1") &
    in_guest "/tmp/bin/fsop forget /mnt/a/big && /tmp/bin/fsop check /mnt/a/big 0 $(($2 << 20)) 11; rm /mnt/a/big" 120
}

# An idle client disconnects after five minutes and connects again for its next call.
idle() { # PORT
    in_guest "ls /mnt/a >/dev/null"
    wait_for 400 gone "$1" || fail "the client stays"
    in_guest "echo back >/mnt/a/idle && grep -q back /mnt/a/idle && rm /mnt/a/idle" 60 || fail "it does not come back"
}
gone() { ! connected "$1"; }

squashed() { # root|all|none
    work /mnt/a 30 squash "$1" || exit 1
    at_server sh -c "rm -f $export_dir/sq.*"
}

readonly_export() {
    mount_case /mnt/a "$1" v4 || exit 1
    work /mnt/a 60 readonly || exit 1
    umount_of /mnt/a
}

prepare_ro() {
    at_server sh -c "chmod 777 $export_dir && mkdir -p $export_dir/ro/folder && echo text >$export_dir/ro/file && ln -s file $export_dir/ro/link"
}

restart() { # SQUASH [OPTION ...]: between cases, so a failure ends the test
    server_stop || exit 1
    server_start "$@" || exit 1
}

# --- what is run -----------------------------------------------------------------------------------------------------

if [ "$full" = 1 ]; then
    big=1024 big_tcp=1024 big_crc=1024 lost=1024 steps=1500 seeds="1 2 3 4 5 6 7 8" sizes=
else
    big=64 big_tcp=16 big_crc=16 lost=32 steps=250 seeds="1 2" sizes="1 1023 65537 1048577"
fi
names=10000

everything() { # the work on the mount at /mnt/a
    check "RDMA: names: create, rename, link, unlink" work /mnt/a 60 tree
    check "RDMA: symbolic links" work /mnt/a 60 links
    check "RDMA: strange, long, deep, busy names" work /mnt/a 240 names
    check "RDMA: a folder of $names names, and one that changes" work /mnt/a 240 many $names
    check "RDMA: sizes around every threshold" work /mnt/a 240 sizes
    check "RDMA: holes, truncation, mappings, several writers" work /mnt/a 240 data
    check "RDMA: chance, $steps steps for seeds $seeds" work /mnt/a 1200 fsx $steps "$seeds"
    check "RDMA: modes, owners, times, fifos" work /mnt/a 60 attributes
    check "RDMA: permissions of others" work /mnt/a 60 permissions
    check "RDMA: root is not squashed" squashed none
    check "RDMA: a tree copied, compared, worked on" copies
    check "RDMA: $big MiB written and read" big_seen $big
    check "RDMA: 4 MiB O_SYNC" big_seen 4 sync 65536
    check "RDMA: 8 MiB O_DIRECT" big_seen 8 direct
    check "RDMA: what changes at the server" other_side
    check "RDMA: a removed file is stale" stale
    check "RDMA: no reply was bad, no call failed" client_is_content /mnt/a
}

helpers_build
boot --no-crc
server_start none --no-crc || exit 1
at_server mkdir "$export_dir/many" && at_server "$tmp/bin/fsop" names "$export_dir/many" f $names || exit 1
capture_start
check "mount, IPv4, RDMA" mount_case /mnt/a rdma v4 || exit 1
[ "$self" ] || check "MPA without CRC, revision 2, room for Reads" mpa_shows 10 10
everything
at_server rm -r "$export_dir/many"
check "two mounts at once, RDMA and TCP" two_mounts
check "umount and mount, 5 times" remounts 5
check "a folder below, a folder outside" below
check "killed under UNSTABLE writes, $lost MiB, RDMA" dies_while_written $lost
if [ ! "$self" ]; then
    check "connection cut under names, RDMA" cut_under_names 20049 2 40
    check "connection cut under data, RDMA" cut_under_data 20049 24
fi
[ "$full" != 1 ] || [ "$self" ] || check "a client that was idle, RDMA" idle 20049
check "the server still runs" server_runs
umount_of /mnt/a

for mount in "rdma v6" "tcp v6" "tcp v4"; do
    # shellcheck disable=SC2086
    check "$mount: mount" mount_case /mnt/a $mount
    check "$mount: a little of everything" work /mnt/a 60 short
    [ "$mount" = "tcp v4" ] || umount_of /mnt/a
done
check "TCP: names" work /mnt/a 60 tree
check "TCP: strange, long, deep, busy names" work /mnt/a 240 names
check "TCP: sizes" work /mnt/a 240 sizes $sizes
check "TCP: holes, truncation, mappings, several writers" work /mnt/a 240 data
check "TCP: chance, $steps steps for seed 3" work /mnt/a 600 fsx $steps 3
[ "$full" != 1 ] || check "TCP: a tree copied, compared, worked on" copies
check "TCP: $big_tcp MiB written and read" big_seen $big_tcp
check "killed under UNSTABLE writes, $lost MiB, TCP" dies_while_written $lost
if [ ! "$self" ]; then
    check "connection cut under names, TCP" cut_under_names 2049 3 60
    check "connection cut under data, TCP" cut_under_data 2049 24
fi
umount_of /mnt/a

prepare_ro
for squash in root all; do
    restart $squash --no-crc
    mount_on /mnt/a rdma v4
    check "squash $squash, RDMA" squashed $squash
    umount_of /mnt/a
done
restart none --no-crc --ro
check "read-only export, RDMA" readonly_export rdma
check "read-only export, TCP" readonly_export tcp
check "the guest's kernel is well" kernel_is_well
server_stop

# Test a server that asks for the CRC, then a siw that asks for it.
if [ ! "$self" ]; then
    server_start none
    check "the server alone wants the CRC" mount_case /mnt/a rdma v4
    check "the server alone wants the CRC: the wire" mpa_shows 10 50
    check "the server alone wants the CRC: the work" work /mnt/a 60 short
    server_stop
    boot --crc
    server_start none --no-crc
    capture_start
fi
if [ ! "$self" ]; then
    check "CRC: mount, IPv6, RDMA" mount_case /mnt/a rdma v6
    check "CRC: the wire" mpa_shows 50 50
    check "CRC: a little of everything" work /mnt/a 60 short
    check "CRC: names" work /mnt/a 60 tree
    check "CRC: chance, $steps steps for seed 4" work /mnt/a 600 fsx $steps 4
    check "CRC: IPv6: $big_crc MiB written and read" big_seen $big_crc
    check "CRC: no reply was bad" client_is_content /mnt/a
    check "CRC: the guest's kernel is well" kernel_is_well
fi
finish
