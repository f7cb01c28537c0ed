#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# mount_roce.sh - tests `rddp mount --wire roce` with `rddp nfsd --wire roce`: what is written through the mount lies in the
# export, and what lies there is read through the mount, octet by octet, also when the server was away meanwhile.
# shellcheck disable=SC2154 # rddp, tmp and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

"$rddp" mount --help | grep -- --server-permissions >/dev/null || { echo "mount_roce: built without libfuse3"; exit 77; }
[ -c /dev/fuse ] && { : <>/dev/fuse; } 2>/dev/null || { echo "mount_roce: /dev/fuse cannot be used here"; exit 77; }
command -v fusermount3 >/dev/null || { echo "mount_roce: no fusermount3"; exit 77; }
if [ "$(id -u)" = 0 ] && [ "${1:-}" != inside ] && unshare --mount true 2>/dev/null; then
    rm -rf "$tmp"
    exec unshare --mount "$0" inside
fi

export=$tmp/export mnt=$tmp/mnt mounted=''
mkdir "$export" "$mnt"
chmod 755 "$tmp" "$export"

leave() {
    trap - EXIT
    ! is_mounted "$mnt" || fusermount3 -u -z "$mnt" 2>/dev/null
    [ -z "$mounted" ] || put_down "$mounted"
    [ -z "$server" ] || put_down "$server"
    is_mounted "$mnt" || cleanup
}
trap leave EXIT

rdma_port=0 mount_port=0
serve() { # on the ports it had, if it had some
    start nfsd --wire roce --address 127.0.0.1 --no-tcp --squash none --state "$tmp/state" \
        --rdma-port $rdma_port --mount-port $mount_port "$export"
    eventually grep -q '^mount ' "$tmp/server.out" || wrong "the server does not say how to mount"
    rdma_port=$(sed -n 's/^mount .*proto=rdma,port=\([0-9]*\).*/\1/p;T;q' "$tmp/server.out")
    mount_port=$(sed -n 's/^mount .*mountport=\([0-9]*\).*/\1/p;T;q' "$tmp/server.out")
}
same() { # NAME FILE FILE: of two files
    if [ "$(sha256sum <"$2")" = "$(sha256sum <"$3")" ]; then pass; else wrong "$1: the octets differ"; fi
}

serve
head -c 20000003 /dev/urandom >"$tmp/there"
head -c 20000003 /dev/urandom >"$export/here"
mkdir "$tmp/tree" && for i in {1..200}; do echo "$i" >"$tmp/tree/$i"; done

expect 3 "a mount that speaks iWARP" "$rddp" mount -f --soft --timeout 1 --port "$rdma_port" --mount-port "$mount_port" \
    "127.0.0.1:$export" "$mnt"
"$rddp" mount -f --wire roce --port "$rdma_port" --mount-port "$mount_port" "127.0.0.1:$export" "$mnt" 2>"$tmp/mount.err" &
mounted=$!
comes_up mount "$mnt" $mounted || { cat "$tmp/mount.err"; wrong "no mount"; finish mount_roce; }

same "read" "$export/here" "$mnt/here"
expect 0 "write" cp "$tmp/there" "$mnt/there"
same "write" "$tmp/there" "$export/there"
expect 0 "a tree there" cp -r "$tmp/tree" "$mnt/tree"
if diff -r "$tmp/tree" "$export/tree" && diff -r "$mnt/tree" "$tmp/tree"; then pass; else wrong "another tree"; fi
expect 0 "direct" dd if="$tmp/there" of="$mnt/direct" bs=1M oflag=direct status=none
same "direct" "$tmp/there" "$export/direct"

cp "$tmp/there" "$mnt/again" 2>"$tmp/cp.err" &
writer=$!
eventually test -s "$export/again" || wrong "nothing is written"
kill -9 "$server"
wait "$server" 2>/dev/null
server=
serve
if wait $writer; then pass; else wrong "a server that restarts: $(cat "$tmp/cp.err")"; fi
same "a server that restarts" "$tmp/there" "$export/again"

expect 0 "unmount" fusermount3 -u "$mnt"
if wait $mounted; then pass; else wrong "the mount ends badly: $(cat "$tmp/mount.err")"; fi
mounted=
stop "the server"

finish mount_roce
