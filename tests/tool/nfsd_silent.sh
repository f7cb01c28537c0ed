#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# nfsd_silent.sh - tests rddp nfsd with an export on a file system that stops answering: a rddp mount whose server is stopped.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

"$rddp" mount --help | grep -- --server-permissions >/dev/null || { echo "nfsd_silent: built without libfuse3"; exit 77; }
[ -c /dev/fuse ] && { : <>/dev/fuse; } 2>/dev/null || { echo "nfsd_silent: /dev/fuse cannot be used here"; exit 77; }
command -v fusermount3 >/dev/null || { echo "nfsd_silent: no fusermount3"; exit 77; }
# As root, another user than the mount's owner looks at it: that needs no allow_other for root itself.
if [ "$(id -u)" = 0 ] && [ "${1:-}" != inside ] && unshare --mount true 2>/dev/null; then
    rm -rf "$tmp"
    exec unshare --mount "$0" inside
fi

back='' mount=''
leave() {
    trap - EXIT
    for pid in $back $mount $server; do put_down "$pid"; done
    fusermount3 -u -z "$tmp/silent" 2>/dev/null
    ! is_mounted "$tmp/silent" || { umount -l "$tmp/silent" || exit 1; }
    cleanup
}
trap leave EXIT

mkdir "$tmp/back" "$tmp/silent" "$tmp/good"
chmod 755 "$tmp" "$tmp/back" "$tmp/good"
echo here >"$tmp/back/f"
echo there >"$tmp/good/f"
free=(--address 127.0.0.1 --rdma-port 0 --mount-port 0 --squash none)

start nfsd "${free[@]}" --state "$tmp/state1" "$tmp/back"
back=$server server=''
eventually grep -q '^mount ' "$tmp/server.out"
back_port=$(sed -n 's/.*(TCP), [^ ]*:\([0-9]*\) (RDMA), [^ ]*:\([0-9]*\) .*/--port \1 --mount-port \2/p' "$tmp/server.out")
# shellcheck disable=SC2086 # two options and their values
"$rddp" mount -f $back_port "127.0.0.1:$tmp/back" "$tmp/silent" 2>"$tmp/mount.err" &
mount=$!
comes_up nfsd_silent "$tmp/silent" "$mount" || { wrong "no mount: $(cat "$tmp/mount.err")"; exit 1; }

start nfsd "${free[@]}" --state "$tmp/state2" "$tmp/silent" "$tmp/good"
eventually grep -q '^mount ' "$tmp/server.out"
rdma_port=$(sed -n '2s/.*proto=rdma,port=\([0-9]*\).*/\1/p' "$tmp/server.out")
mount_port=$(sed -n '2s/.*mountport=\([0-9]*\).*/\1/p' "$tmp/server.out")
ports=(--port "$rdma_port" --mount-port "$mount_port")

expect 0 "a file of the mount" "$rddp" nfs "${ports[@]}" cat "127.0.0.1:$tmp/silent/f"
expect_text "a file of the mount" '^here$'

# The export's file system is silent from here on: more calls wait than it has threads.
kill -STOP "$back"
stuck=()
for _ in {1..6}; do
    timeout 60 "$rddp" nfs "${ports[@]}" ls "127.0.0.1:$tmp/silent" >/dev/null 2>&1 &
    stuck+=($!)
done
waits() { grep -qs 'fuse\|request_wait' /proc/"$server"/task/*/wchan; }
eventually waits || echo "nfsd_silent: cannot see whether a thread waits"
for _ in {1..5}; do
    expect 0 "the other export" "$rddp" nfs "${ports[@]}" cat "127.0.0.1:$tmp/good/f"
    expect_text "the other export" '^there$'
done
expect 0 "a write to the other export" "$rddp" nfs "${ports[@]}" put "$tmp/back/f" "127.0.0.1:$tmp/good/g"

kill -TERM "$server"
ends 0 "the server, while calls wait for a file system"
expect_text "the server says why" 'still wait for the file system' server.err
server=''
kill "${stuck[@]}" 2>/dev/null
kill -CONT "$back"

echo "nfsd_silent: $passed passed, $failed failed"
[ $failed = 0 ]
