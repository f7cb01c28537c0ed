#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# roce_nfs.sh - tests NFS version 3 over RoCE with a real kernel's rxe, over IPv4 and IPv6: Linux's client on `rddp nfsd`,
# `rddp nfs` and `rddp mount` on knfsd; what chance does to a file (fsx); and a server that is killed, at either end.
#
#   roce_nfs.sh PATH/TO/rddp
#
# It prints one line per case. Exit code: 0 all passed, 1 not all, 77 it cannot run here. README.md lists the cases.
# RDDP_KERNEL_FULL=1 runs the long cases too. RDDP_KERNEL_ONLY=REGEX runs only the cases whose name matches.
set -u

rddp=$(realpath -e "${1:-}" 2>/dev/null)
if [ $# != 1 ] || [ ! -x "$rddp" ]; then
    echo "usage: roce_nfs.sh PATH/TO/rddp" >&2
    exit 2
fi
# shellcheck disable=SC2034 # lib/peer.sh wants it
test_name=roce_nfs
# shellcheck source=tests/interop/kernel/lib/peer.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/peer.sh"

declare -A ours=([v4]=10.77.0.1 [v6]='[fd77::1]') theirs=([v4]=10.77.0.2 [v6]='[fd77::2]')
export_dir=$tmp/export
holder='' # a process whose mount namespace has our mount: it ends with it
hold_ends() { [ -z "$holder" ] || { kill -9 "$holder" && wait "$holder"; } }
undo+=(hold_ends)

# --- our server ----------------------------------------------------------------------------------------------------

server_ended() { [ -s "$tmp/server.rc" ]; }
server_says() { tail -n 3 "$tmp/server.err"; }

server_start() {
    rm -f "$tmp/server.rc"
    : >"$tmp/server.err"
    # Each case runs in its own subshell, so the subshell that waits for the server reports in files.
    (
        "$guest" ns "$rddp" nfsd --wire roce --state "$tmp/state" --squash none "$export_dir" &
        echo $! >"$tmp/server.pid"
        wait $!
        echo $? >"$tmp/server.rc"
    ) </dev/null >"$tmp/server.out" 2>>"$tmp/server.err" &
    wait_for 10 grep -qs listening "$tmp/server.out" "$tmp/server.err" || fail "our server does not listen: $(server_says)"
}

server_stop() {
    ! server_ended || fail "our server has ended before: $(cat "$tmp/server.rc"), $(server_says)"
    kill "$(cat "$tmp/server.pid")"
    wait_for 10 server_ended || fail "our server still runs after a signal"
    [ "$(cat "$tmp/server.rc")" = 0 ] || fail "our server's exit code: $(cat "$tmp/server.rc"), $(server_says)"
}

linux_mounts() { # v4|v6
    local six=''
    [ "$1" = v4 ] || six=6
    in_guest "mount -t nfs -o vers=3,nolock,proto=rdma$six,port=20049,mountproto=tcp$six,mountport=20048 \
        '${ours[$1]}:$export_dir' /mnt/a" 60 || fail "mount: exit code $?, $(server_says)"
    in_guest "grep ' /mnt/a nfs .*proto=rdma' /proc/mounts" >/dev/null || fail "not mounted over RDMA"
}

linux_umounts() { in_guest "! grep -q ' /mnt/a nfs ' /proc/mounts || umount /mnt/a" 60 || fail "umount"; }

work() { # SECONDS CASE [ARGUMENT ...]
    local seconds=$1
    shift
    in_guest "grep -q ' /mnt/a nfs ' /proc/mounts || { echo not mounted; exit 1; }; sh /tmp/bin/work.sh /mnt/a $*" "$seconds"
}

linux_works() { # MIB: what the guest has written and read again is there, whole
    work 1500 big "$1" || exit 1
    "$tmp/bin/fsop" check "$export_dir/big" 0 $(($1 << 20)) 11 || fail "the file is not what was written"
    rm "$export_dir/big"
    (client_is_content /mnt/a) || exit
}

client_commits() { in_guest "sed -n '/ mounted on .mnt.a /,/^\$/p' /proc/self/mountstats | awk '\$1 == \"COMMIT:\" { print \$2 }'"; }

# Our server is killed and started again while the guest writes. The guest's requests have no answer from then on: rxe
# gives the connection up, and the client connects again. What was not committed it sends again.
our_server_dies() { # MIB
    local i commits before n=$(($1 << 20))
    before=$(client_commits)
    in_guest "(/tmp/bin/fsop fill /mnt/a/big 0 $n 11; sync; echo \$? >/tmp/fill.rc) >/tmp/fill.err 2>&1 &"
    for ((i = 0; i < 600; i++)); do
        [ "$(stat -c %s "$export_dir/big" 2>/dev/null || echo 0)" -lt $((n / 4)) ] || break
        sleep 0.1
    done
    kill -9 "$(cat "$tmp/server.pid")"
    wait_for 5 server_ended || fail "our server does not die"
    commits=$(client_commits)
    # When only the process dies its kernel keeps the written octets. The truncate simulates a dead machine.
    [ "$commits" != "$before" ] || truncate -s 0 "$export_dir/big"
    in_guest "[ ! -s /tmp/fill.rc ]" || fail "it was done before our server died"
    server_start
    wait_for 240 in_guest "[ -s /tmp/fill.rc ]" || fail "the client still writes"
    [ "$(in_guest 'cat /tmp/fill.rc; rm /tmp/fill.rc')" = 0 ] || fail "the client: $(in_guest 'cat /tmp/fill.err')"
    "$tmp/bin/fsop" check "$export_dir/big" 0 $n 11 || fail "the file is not what was written"
    in_guest "/tmp/bin/fsop forget /mnt/a/big && /tmp/bin/fsop check /mnt/a/big 0 $n 11; rm /mnt/a/big" 300
}

# --- knfsd ---------------------------------------------------------------------------------------------------------

nfs() { timeout "${seconds:-60}" "$guest" ns "$rddp" nfs --wire roce --mount-port 20048 "$@"; }

we_copy() { # v4|v6 MIB: put, looked at by the server, and got back
    local n=$(($2 << 20)) remote=${theirs[$1]}:/export/big
    rm -rf "$tmp/big" "$tmp/back"
    "$tmp/bin/fsop" fill "$tmp/big" 0 $n 11
    seconds=1200 nfs -q put "$tmp/big" "$remote" || fail "put: exit code $?"
    in_guest "/tmp/bin/fsop check /export/big 0 $n 11 && [ \$(stat -c %s /export/big) = $n ]" 300 || fail "the server has another file"
    seconds=1200 nfs -q get "$remote" "$tmp/back" || fail "get: exit code $?"
    cmp "$tmp/big" "$tmp/back" || fail "what came back differs"
    rm "$tmp/big" "$tmp/back"
    nfs rm "$remote" || fail "rm"
}

# knfsd is ended and started again while we write: all connections end, and a new one is made.
their_server_dies() { # v4|v6 MIB
    local n=$(($2 << 20)) pid code i
    "$tmp/bin/fsop" fill "$tmp/big" 0 $n 11
    seconds=300 nfs -q put "$tmp/big" "${theirs[$1]}:/export/big" 2>"$tmp/err" &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(in_guest "find /export -maxdepth 1 -type f -exec stat -c %s {} + | awk '{ n += \$1 } END { print n + 0 }'")" -lt $((n / 4)) ] || break
        sleep 0.1
    done
    knfsd_stop
    kill -0 $pid 2>/dev/null
    code=$?
    sleep 1
    knfsd_start rw sync no_root_squash
    [ $code = 0 ] || fail "it was done before knfsd went"
    wait $pid
    code=$?
    [ $code = 0 ] || fail "exit code $code: $(head -n 2 "$tmp/err")"
    in_guest "/tmp/bin/fsop check /export/big 0 $n 11 && rm /export/big" 120 || fail "the server has another file"
    rm "$tmp/big"
}

inside() { nsenter -t "$holder" --mount --net "$@"; }

mount_works() { # v4|v6 STEPS SEED...: chance, on a mount of ours
    local family=$1 code
    shift
    inside timeout 30 "$rddp" mount --wire roce --mount-port 20048 "${theirs[$family]}:/export" "$tmp/mnt" >"$tmp/err" 2>&1 ||
        fail "exit code $?: $(head -n 2 "$tmp/err")"
    inside timeout -k 5 600 sh "$tmp/bin/work.sh" "$tmp/mnt" fsx "$@"
    code=$?
    inside umount "$tmp/mnt" || fail "umount"
    return $code
}

# --- what is run ---------------------------------------------------------------------------------------------------

if [ "$full" = 1 ]; then
    big=1024 lost=256 steps=1500 seeds="1 2 3 4"
    export RDDP_GUEST_MEM=4096
    disk_mib=2500
else
    big=16 lost=24 steps=150 seeds="1"
    disk_mib=500
fi

helpers_build
boot --no-crc
in_guest "modprobe -a crc32_generic rdma_rxe && rdma link del siw0 && rdma link add rxe0 type rxe netdev eth0" ||
    { echo "roce_nfs: skipped: the guest has no rxe"; exit 77; }
wait_for 5 in_guest "grep -q ffff:0a4d:0002 /sys/class/infiniband/rxe0/ports/1/gids/1"
mkdir -m 777 "$export_dir"

server_start || exit 1
for family in v4 v6; do
    check "IP$family: Linux mounts rddp nfsd" linux_mounts $family
    [ $family = v6 ] || check "IP$family: Linux writes and reads $big MiB" linux_works $big
    [ $family = v4 ] || check "IP$family: Linux writes and reads 8 MiB" linux_works 8
    check "IP$family: Linux: chance, $steps steps for seeds $seeds" work 1200 fsx $steps "$seeds"
    # A minute each: the client waits half of it until it asks for something again, and rxe's time-out is 15 s.
    [ "$family$full" = v60 ] || check "IP$family: our server is killed under $lost MiB" our_server_dies $lost
    linux_umounts
done
check "our server ends" server_stop

if knfsd_start rw sync no_root_squash; then
    check "IPv4: we put and get $big MiB" we_copy v4 $big
    check "IPv6: we put and get 8 MiB" we_copy v6 8
    for family in v4 v6; do
        check "IP$family: knfsd restarts under 160 MiB" their_server_dies $family 160
    done
    if "$rddp" help mount 2>/dev/null | grep -e --foreground >/dev/null && [ -c /dev/fuse ]; then
        mkdir "$tmp/mnt"
        "$guest" ns unshare --mount --propagation private sleep 100000 &
        holder=$!
        wait_for 10 grep -qx sleep "/proc/$holder/comm" # before that it is elsewhere
        for family in v4 v6; do
            # shellcheck disable=SC2086
            check "IP$family: rddp mount: chance, $steps steps for seeds $seeds" mount_works $family $steps $seeds
        done
    else
        echo "left out: rddp mount (not built, or no /dev/fuse)"
    fi
    knfsd_stop
else
    check "knfsd starts" false
fi
check "the guest's kernel is well" kernel_is_well
finish
