#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# fstab.sh - tests that mount(8) mounts with rddp under the name mount.rddp, by command and by a line of fstab.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

"$rddp" mount --help | grep -- --server-permissions >/dev/null || { echo "fstab: built without libfuse3"; exit 77; }
[ -c /dev/fuse ] && { : <>/dev/fuse; } 2>/dev/null || { echo "fstab: /dev/fuse cannot be used here"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "fstab: mount(8) calls no helper for who is not root"; exit 77; }
if [ "${1:-}" != inside ]; then
    unshare --mount true 2>/dev/null || { echo "fstab: no mount namespace to be had"; exit 77; }
    rm -rf "$tmp"
    exec unshare --mount "$0" inside
fi

mkdir "$tmp/sbin" "$tmp/export" "$tmp/mnt"
ln -s "$rddp" "$tmp/sbin/mount.rddp"
ln -s "$rddp" "$tmp/sbin/mount.fuse.rddp"
echo text >"$tmp/export/file"
leave() {
    trap - EXIT
    umount -l "$tmp/mnt" 2>/dev/null
    cleanup
}
trap leave EXIT
# mount(8) looks for its helpers only in /sbin, so an overlay adds our helper to /sbin in this namespace.
mount -t overlay overlay -o "lowerdir=$tmp/sbin:$(readlink -f /sbin)" "$(readlink -f /sbin)" 2>/dev/null ||
    { echo "fstab: no overlay to be had"; exit 77; }

start nfsd --address 127.0.0.1 --no-tcp --squash none --state "$tmp/state" --rdma-port 0 --mount-port 0 "$tmp/export"
for _ in {1..100}; do grep -q '^mount ' "$tmp/server.out" && break; sleep 0.05; done
rdma=$(sed -n 's/^mount .*proto=rdma,port=\([0-9]*\).*/\1/p' "$tmp/server.out")
mountd=$(sed -n 's/^mount .*mountport=\([0-9]*\).*/\1/p' "$tmp/server.out")
[ -n "$rdma" ] && [ -n "$mountd" ] || { wrong "no ports in: $(cat "$tmp/server.out")"; finish fstab; }
from=127.0.0.1:$tmp/export
ports=port=$rdma,mount-port=$mountd

expect 0 "mount -t rddp" mount -t rddp "$from" "$tmp/mnt" -o "$ports,soft,timeout=5"
expect 0 "what is there" cat "$tmp/mnt/file"
expect 0 "it can be written" touch "$tmp/mnt/new"
expect 0 "remount" mount -o remount,ro,nosuid "$tmp/mnt"
expect 1 "remounted ro" touch "$tmp/mnt/no"
expect 0 "remounted as asked for" grep -E " $tmp/mnt fuse.rddp ro,.*nosuid" /proc/self/mounts
expect 0 "remount" mount -o remount,rw "$tmp/mnt"
expect 0 "remounted rw" touch "$tmp/mnt/new"
expect 0 "umount" umount "$tmp/mnt"

echo "$from $tmp/mnt rddp defaults,ro,nosuid,_netdev,nofail,x-systemd.automount,comment=ours,$ports 0 0" >"$tmp/fstab"
expect 0 "mount -a" mount -a -T "$tmp/fstab"
expect 0 "what is there" cat "$tmp/mnt/file"
expect 1 "ro" touch "$tmp/mnt/other"
expect 0 "mounted as asked for" grep -E " $tmp/mnt fuse.rddp ro,.*nosuid" /proc/self/mounts
expect 0 "umount" umount "$tmp/mnt"

expect 1 "an unknown word" mount -t rddp "$from" "$tmp/mnt" -o "$ports,such=nonsense"
expect_text "an unknown word" "unknown option 'such=nonsense'" err
expect 32 "no server" mount -t rddp "$from" "$tmp/mnt" -o "port=1,mount-port=$mountd,timeout=1"
expect 1 "no directory" "$tmp/sbin/mount.rddp" "$from"
expect_text "no directory" "^mount.rddp: usage: mount.rddp HOST:/PATH DIR" err
expect 0 "only to look" "$tmp/sbin/mount.rddp" -f "$from" "$tmp/mnt"
stop "stop"
finish fstab
