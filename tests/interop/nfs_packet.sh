#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# nfs_packet.sh - tests NFS version 3 over our TCP: both ends place the data of READs and WRITEs, also with losses. libnfs
# over the kernel's TCP, which has no RDMA option, reads and writes the same files. tshark checks the options.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3
in_own_network "$@"
rddp=$RDDP_BUILD_DIR/rddp here=10.71.0.2 there=10.72.0.2
[ "$(cat /proc/self/setgroups 2>/dev/null || echo allow)" = allow ] || cannot "the server cannot be other users here"
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward 2>/dev/null || cannot "no forwarding"
ip tuntap add dev probe mode tun 2>/dev/null || cannot "no TUN device can be made"

export=$dir/export
chmod 755 "$dir"
mkdir -p "$export/d" "$dir/got"
head -c 9000001 /dev/urandom >"$export/big"
head -c 100003 /dev/urandom >"$export/d/middle"
echo hello >"$export/small"
: >"$export/empty"
head -c 5000 /dev/urandom >"$export/secret"
chmod 600 "$export/secret"

serve() { # OPTION...
    : >"$dir/listening" # what the last one said must not be taken for this one's
    "$rddp" nfsd --squash none --async --state "$dir/state" --packet $here/24 "$@" "$export" >"$dir/listening" 2>"$dir/server" &
    server=$!
    started=("$server")
    until grep -q listening "$dir/listening"; do
        kill -0 "$server" 2>/dev/null || fail "nfsd $*: $(cat "$dir/server")"
        sleep 0.05
    done
}
stop() {
    kill "$server"
    wait "$server" || fail "the server ended badly: $(cat "$dir/server")"
    started=()
}
client() { # CODE WORD...
    local code=$1 is=0
    shift
    timeout 100 "$rddp" nfs --packet $there/24 "$@" >"$dir/said" 2>&1 || is=$?
    [ $is = "$code" ] || fail "nfs $*: exit code $is, not $code: $(cat "$dir/said")"
}
both_ways() { # WHAT OPTION...
    local what=$1
    shift
    rm -rf "$dir/got" "$export/back"
    client 0 cp -r "$@" "$here:$export" "$dir/got"
    for file in big small empty d/middle secret; do cmp "$export/$file" "$dir/got/$file" || fail "$what: $file differs"; done
    got=$(cat "$dir/said")
    client 0 cp -r "$@" "$dir/got" "$here:$export/back"
    for file in big small empty d/middle secret; do cmp "$export/$file" "$export/back/$file" || fail "$what: $file differs there"; done
    rm -rf "$export/back"
    echo "$what: $got; $(cat "$dir/said")"
}

# TCPOPT-5.1.2-03: all that is read is placed, so that the buffer was there before the call left.
serve
both_ways "in place"
grep -q '; 9.11 MB placed; 4 files verified' <<<"$got" || fail "not all was placed and verified: $got"
grep -q '; 4 files verified' "$dir/said" || fail "not all was verified: $(cat "$dir/said")"
# An octet that is not what the server has, whoever changed it, is noticed before the file gets its name, here and there.
if ${CC:-cc} -shared -fPIC -x c -o "$dir/flip.so" - <<<'#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
ssize_t pwrite64(int fd, const void *p, size_t n, off_t at) {
    ssize_t (*real)(int, const void *, size_t, off_t) = (void *)dlsym(RTLD_NEXT, "pwrite64");
    if (n > 100000) ((char *)p)[n / 2] ^= 1;
    return real(fd, p, n, at);
}
ssize_t pread64(int fd, void *p, size_t n, off_t at) {
    ssize_t (*real)(int, void *, size_t, off_t) = (void *)dlsym(RTLD_NEXT, "pread64"), got = real(fd, p, n, at);
    if (n > 100000 && got > 0) ((char *)p)[got / 2] ^= 1;
    return got;
}
ssize_t pwrite(int fd, const void *p, size_t n, off_t at) { return pwrite64(fd, p, n, at); }
ssize_t pread(int fd, void *p, size_t n, off_t at) { return pread64(fd, p, n, at); }'; then
    flipped() { LD_PRELOAD=$dir/flip.so ASAN_OPTIONS=verify_asan_link_order=0 client "$@"; }
    flipped 1 get "$here:$export/big" "$dir/wrong"
    grep -q 'big: the server has other octets' "$dir/said" || fail "what was got is wrong: $(cat "$dir/said")"
    flipped 1 put "$export/big" "$here:$export/wrong"
    grep -q 'big: the server has other octets' "$dir/said" || fail "what was put is wrong: $(cat "$dir/said")"
    [ ! -e "$dir/wrong" ] || fail "a wrong file got its name"
    [ ! -e "$export/wrong" ] || fail "a wrong file got its name there"
    [ "$(find "$dir" "$export" -name '.*.rddp-*' | wc -l)" = 0 ] || fail "a wrong file was left behind"
fi
${CC:-cc} -shared -fPIC -x c -o "$dir/end.so" - <<<'#include <signal.h>
int renameat(int from, const char *old, int to, const char *new) { return raise(SIGKILL); }' || rm -f "$dir/end.so"
both_ways "with losses" --packet-lose 1000
grep -q '; 9.11 MB placed' <<<"$got" || fail "not all was placed: $got"
stop
# The client wrote three copies, 27.3 MB. The server places only the WRITEs for which it has offered a buffer.
placed=$(sed -n 's/.* \([0-9]*\) placed$/\1/p' "$dir/listening")
[ "${placed:-0}" -gt 9000000 ] || fail "of what was written only ${placed:-nothing} was placed: $(cat "$dir/listening")"
tail -1 "$dir/listening"

serve --connections 4
if command -v nfs-cp >/dev/null; then
    rm -rf "$dir/got"
    mkdir "$dir/got"
    at="nfs://$here$export" ports="nfsport=2049&mountport=20048"
    timeout 60 nfs-cp "$at/big?$ports" "$dir/got/big" >"$dir/said" 2>&1 || fail "libnfs reads: $(cat "$dir/said")"
    cmp "$export/big" "$dir/got/big" || fail "libnfs read other octets"
    timeout 60 nfs-cp "$dir/got/big" "$at/libnfs?$ports" >"$dir/said" 2>&1 || fail "libnfs writes: $(cat "$dir/said")"
    cmp "$export/big" "$export/libnfs" || fail "libnfs wrote other octets"
    echo "libnfs: both ways"
else
    echo "no libnfs here"
fi
# A peer that sends half a record and a peer that leaves in the middle do not delay other clients.
python3 - $here <<'END'
import socket, struct, sys
for octets in (b"", b"\x80\0\0", struct.pack(">I", 1 << 31 | 400) + b"half", struct.pack(">I", 0xffffffff), struct.pack(">I", 0)):
    s = socket.create_connection((sys.argv[1], 2049), 10)
    s.sendall(octets)
    s.close()
END
both_ways "behind those"

# A server that does not answer calls of programs that it does not know: it is asked once, and the copy goes on.
ip addr add 10.75.0.1/32 dev lo
for how in drops refuses; do
    : >"$dir/digests" # what the last one said must not be taken for this one's
    python3 "$RDDP_SOURCE_DIR/tests/interop/lib/nfs_proxy.py" 10.75.0.1 $here $how >"$dir/digests" &
    proxy=$!
    started+=("$proxy")
    until grep -q listening "$dir/digests"; do
        kill -0 "$proxy" || fail "no proxy"
        sleep 0.05
    done
    client 0 get --port 2050 "10.75.0.1:$export/big" "$dir/got/$how"
    cmp "$export/big" "$dir/got/$how" || fail "$how: other octets"
    grep -q '; not verified: the server has no digests' "$dir/said" || fail "$how: $(cat "$dir/said")"
    [ "$(grep -c digest "$dir/digests")" = 1 ] || fail "$how: asked $(grep -c digest "$dir/digests") times"
    client 0 cp --port 2050 -r "$dir/got" "10.75.0.1:$export/back"
    cmp "$export/big" "$export/back/$how" || fail "$how: other octets there"
    grep -q '; not verified: the server has no digests' "$dir/said" || fail "$how: $(cat "$dir/said")"
    rm -r "$export/back"
    # What it has to answer before would count as its silence: the question comes before any octets.
    client 0 cp -r --port 2050 "10.75.0.1:$export" "$dir/tree"
    rm -r "$dir/tree"
    [ "$(grep -c digest "$dir/digests")" = 3 ] || fail "$how: not asked once a copy: $(cat "$dir/digests")"
    ! grep digest "$dir/digests" | grep -v ' 0$' || fail "$how: asked with other calls under way"
    # Killed as the file is to get its name: all of it is there already, and was compared with nothing.
    if [ -e "$dir/end.so" ]; then
        LD_PRELOAD=$dir/end.so ASAN_OPTIONS=verify_asan_link_order=0 client 137 get --port 2050 "10.75.0.1:$export/big" "$dir/all"
        client 0 get --port 2050 "10.75.0.1:$export/big" "$dir/all"
        grep -q ' 0 B in .*; 9.00 MB were there already; not verified' "$dir/said" || fail "$how: $(cat "$dir/said")"
        cmp "$export/big" "$dir/all" || fail "$how: what was there is another file"
        rm "$dir/all"
    fi
    kill "$proxy"
    wait "$proxy" || true
done
stop

# --- a mount --------------------------------------------------------------------------------------------------------

mnt=$dir/mnt
unmount() { ! grep -qsF " $mnt fuse.rddp " /proc/self/mounts || fusermount3 -u -z "$mnt"; }
trap 'unmount; cleanup' EXIT
mkdir "$mnt"
if "$rddp" mount --help | grep -- --packet >/dev/null && { : <>/dev/fuse; } 2>/dev/null && command -v fusermount3 >/dev/null && [ "$(id -u)" = 0 ]; then
    serve
    timeout 60 "$rddp" mount --packet $there/24 --packet-lose 500 "$here:$export" "$mnt" >"$dir/said" 2>&1 || fail "mount: $(cat "$dir/said")"
    for file in big small empty d/middle secret; do cmp "$export/$file" "$mnt/$file" || fail "mount: $file differs"; done
    mkdir "$mnt/back"
    cp "$export/big" "$mnt/back/big"
    cmp "$export/big" "$export/back/big" || fail "mount: what was written differs there"
    [ "$(cd "$mnt" && find . -type f | sort)" = "$(cd "$export" && find . -type f | sort)" ] || fail "mount: other names"
    stop
    placed=$(sed -n 's/.* \([0-9]*\) placed$/\1/p' "$dir/listening")
    [ "${placed:-0}" -gt 1000000 ] || fail "mount: of what was written only ${placed:-nothing} was placed"
    echo "mount: $(tail -1 "$dir/listening")"
    # The server was away: whoever waits goes on.
    cp "$export/d/middle" "$export/new"
    timeout 100 cmp "$export/d/middle" "$mnt/new" &
    waiting=$!
    serve
    wait $waiting || fail "mount: not served by the new server"
    fusermount3 -u "$mnt"
    # Its process ends when all is written.
    while ip -o addr | grep 'inet 10\.72\.0\.' >/dev/null; do sleep 0.1; done
    rm -r "$export/back" "$export/new"
    stop
else
    echo "no mount: no FUSE here"
fi

# --- the options on the wire ----------------------------------------------------------------------------------------

ip tuntap add dev ours mode tun vnet_hdr
ip link set ours up
start_capture "$dir/pcap" ours 'tcp port 2049'
serve --packet-device ours
client 0 get "$here:$export/d/middle" "$dir/got/middle"
client 0 put "$dir/got/middle" "$here:$export/d/new"
client 1 --uid 12345 --gid 12345 get "$here:$export/secret" "$dir/got/refused"
echo "refused: $(cat "$dir/said")"
stop
stop_capture
tshark -r "$dir/pcap" --disable-protocol rpc -Y 'tcp.len > 0 && tcp.option_kind == 25' -T fields -e tcp.dstport -e tcp.options -e tcp.payload 2>/dev/null >"$dir/options"
python3 - "$dir/options" <<'END' || fail "options that should not be"
import collections
import struct
import sys

READ, WRITE = 6, 7
calls, seen = {}, collections.Counter()
for line in open(sys.argv[1]):
    port, options, payload = line.rstrip("\n").split("\t")
    octets, payload = bytes.fromhex(options.replace(":", "")), bytes.fromhex(payload.replace(":", ""))
    at = 0
    while octets[at] != 25:
        at += 1 if octets[at] < 2 else octets[at + 1]
    word = int.from_bytes(octets[at + 2:at + 8], "big")
    aligned, unsolicited, rid = octets[at + 2] >> 7, word >> 46 & 1, word & (1 << 46) - 1
    if aligned:  # TCPOPT-5.1.4-01: the mark of a record, and behind it a call or its reply
        mark, xid, direction = struct.unpack(">III", payload[:12])
        assert mark >> 31 and mark & 0x7fffffff < 1 << 21 and direction == (port != "2049")
        if port == "2049":
            calls[xid] = struct.unpack(">I", payload[24:28])[0]
        assert xid in calls
        seen["aligned"] += 1
    if octets[at + 1] < 16:
        continue
    offset, data_offset, length, total = struct.unpack(">IHHI", octets[at + 8:at + 20])
    # TCPOPT-5.1.1-02 TCPOPT-5.1.1-04 TCPOPT-5.1.1-05 TCPOPT-3.1.7-05: the XID of the call, and nothing above it.
    assert octets[at + 1] == 20 and rid >> 32 == 0 and calls[rid] == (WRITE if port == "2049" else READ)
    assert unsolicited == (port == "2049")  # TCPOPT-5.1.2-01 TCPOPT-5.1.3-01
    if aligned:
        assert rid == xid
    seen["write" if port == "2049" else "read" if total else "refused"] += 1
    if not total:  # TCPOPT-5.1.2-02
        assert length == 0 and offset == 0
print(dict(seen))
assert seen["read"] > 60 and seen["write"] > 60 and seen["refused"] > 0 and seen["aligned"] > 10
END
echo "nfs_packet: all as it should be"
