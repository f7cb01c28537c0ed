#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# nfs_suites.sh - runs file system test programs of other projects on `rddp mount` of `rddp nfsd`: fio verifies the data that
# it reads, dbench simulates office work, and stress-ng does unusual operations on names, times, rights and directories.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

"$rddp" mount --help | grep -- --server-permissions >/dev/null || { echo "nfs_suites: built without libfuse3"; exit 77; }
[ -c /dev/fuse ] && { : <>/dev/fuse; } 2>/dev/null || { echo "nfs_suites: /dev/fuse cannot be used here"; exit 77; }
command -v fusermount3 >/dev/null || { echo "nfs_suites: no fusermount3"; exit 77; }
suites=()
for suite in fio dbench stress-ng; do
    if command -v $suite >/dev/null; then suites+=("$suite"); else echo "nfs_suites: WITHOUT $suite (a package of Debian)"; fi
done
[ ${#suites[@]} -gt 0 ] || exit 77
if [ "$(id -u)" = 0 ] && [ "${1:-}" != inside ] && unshare --mount true 2>/dev/null; then
    rm -rf "$tmp"
    exec unshare --mount "$0" inside
fi

store=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "$tmp")")
mnt=$tmp/mnt mounted=
mkdir "$store/export" "$mnt"
leave() {
    trap - EXIT
    [ -z "$mounted" ] || { fusermount3 -u -z "$mnt" 2>/dev/null; kill "$mounted" 2>/dev/null; wait "$mounted" 2>/dev/null; }
    if ! is_mounted "$mnt"; then
        rm -rf "$store"
        cleanup
    fi
}
trap leave EXIT

start nfsd --address 127.0.0.1 --no-tcp --squash none --state "$tmp/state" --rdma-port 0 --mount-port 0 "$store/export"
mount_port=$(sed -n 's/^mount .*mountport=\([0-9]*\).*/\1/p;T;q' "$tmp/server.out")
"$rddp" mount -f --port "$port" --mount-port "$mount_port" "127.0.0.1:$store/export" "$mnt" 2>"$tmp/mount.err" &
mounted=$!
comes_up nfs_suites "$mnt" "$mounted" || { wrong "no mount: $(cat "$tmp/mount.err")"; exit 1; }

run_suite() { # NAME SECONDS COMMAND...: in a directory of its own, which is empty afterwards
    mkdir "$mnt/$1" && cd "$mnt/$1" || exit 1
    timeout "$2" "${@:3}" >"$tmp/out" 2>"$tmp/err"
    local got=$?
    if [ $got = 0 ]; then pass; else wrong "$1: exit code $got: ${*:3}"; fi
    cd / && rm -rf "${mnt:?}/$1"
}

# These stressors test names, links, times, rights and reading of changing directories, and check their results. The list has
# no stressor for what NFS version 3 lacks: extended attributes, leases, O_TMPFILE. The long ones make thousands of names
# before they look at the time.
stressors=(chmod dentry fcntl filename getdent open rename seek utime)
seconds=1
if [ -n "${RDDP_LONG:-}" ]; then
    stressors+=(chdir chown dir dirdeep fstat hdd link mknod symlink sync-file touch)
    seconds=4
fi
for suite in "${suites[@]}"; do
    case $suite in
    fio)
        for how in "--rw=randrw --bs=4k --ioengine=psync" "--rw=randwrite --bsrange=512-102400 --bs_unaligned=1 --ioengine=psync" \
            "--rw=randrw --bs=4k --ioengine=mmap"; do
            # shellcheck disable=SC2086 # words
            run_suite fio 120 fio --name=verify --size=4m --numjobs=2 $how --verify=crc32c --verify_fatal=1 --do_verify=1 \
                --fsync=64 --end_fsync=1 --randseed=7 --output-format=terse
        done
        ;;
    dbench)
        run_suite dbench 60 dbench -D . -t 4 -c /usr/share/dbench/client.txt 2
        ;;
    stress-ng)
        for one in "${stressors[@]}"; do
            run_suite "stress-ng-$one" 60 stress-ng --temp-path . --verify --timeout $seconds --"$one" 1 --quiet
        done
        ;;
    esac
done
expect 0 "the server goes on" "$rddp" nfs --port "$port" --mount-port "$mount_port" ls "127.0.0.1:$store/export"
finish nfs_suites
