# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # tmp, outside, device and run are the caller's
# ceph.sh - a cluster of Ceph in $tmp/ceph: a monitor and one OSD in memory, whose messengers use RDMA alone. Sourced.

ceph_configuration() { # ID
    cat <<END
[global]
fsid = $1
mon host = v1:$outside:6789
public addr = $outside
ms type = async+rdma
ms async rdma device name = $device
ms async rdma buffer size = 65536
ms async rdma send buffers = 256
ms async rdma receive buffers = 1024
ms async rdma receive queue len = 256
ms bind msgr2 = false
osd pool default size = 1
mon allow pool size one = true
mon data avail crit = 1
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 268435456
mon data = $tmp/ceph/mon
osd data = $tmp/ceph/osd
keyring = $tmp/ceph/keyring
run dir = $tmp/ceph
log file = $tmp/ceph/\$name.log
END
}

# ceph_step COMMAND...: leaves in `why` which one failed first.
ceph_step() {
    [ -n "$why" ] || (bounded $run "$@" -c "$tmp/ceph/conf") >"$tmp/client" 2>&1 || why="$1 $2 ends with $?"
}

# ceph_start COMMAND...: until ceph_stop.
ceph_start() {
    (bounded $run "$@" -f -c "$tmp/ceph/conf") >>"$tmp/server" 2>&1 &
    daemons+=($!)
}

ceph_stop() {
    kill "${daemons[@]}" 2>/dev/null
    wait "${daemons[@]}" 2>/dev/null
    daemons=()
}

ceph_monitor() {
    local id name
    id=$(cat /proc/sys/kernel/random/uuid)
    ceph_configuration "$id" >"$tmp/ceph/conf"
    monmaptool --create --fsid "$id" --addv a "[v1:$outside:6789]" "$tmp/ceph/map" >/dev/null || why="monmaptool ends with $?"
    ceph-authtool --create-keyring "$tmp/ceph/keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null || why="ceph-authtool ends with $?"
    for name in client.admin osd.0; do
        ceph-authtool "$tmp/ceph/keyring" --gen-key -n $name --cap mon 'allow *' --cap osd 'allow *' >/dev/null || why="ceph-authtool ends with $?"
    done
    ceph_step ceph-mon --mkfs -i a --monmap "$tmp/ceph/map" --keyring "$tmp/ceph/keyring"
    ceph_start ceph-mon -i a
}

ceph_osd() {
    local id
    id=$(cat /proc/sys/kernel/random/uuid)
    ceph_step ceph osd new "$id" 0
    ceph_step ceph-osd -i 0 --mkfs --osd-uuid "$id"
    ceph_start ceph-osd -i 0
}
