#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# nfs_tshark.sh - tshark dissects the NFS traffic of `rddp nfs` and `rddp nfsd` in a network of its own. It must see a call
# and a reply of every procedure that `rddp nfs` uses, and no malformed packet.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
rddp=${RDDP_TOOL:?the path of rddp}
"$rddp" help nfsd >/dev/null 2>&1 || cannot "this rddp has no nfsd"
in_own_network "$@"

ip link set lo up
start_capture "$dir/pcap"
mkdir "$dir/export" "$dir/tree"
"$rddp" nfsd -a 127.0.0.1 --no-tcp --squash none --state "$dir/state" "$dir/export" >"$dir/out" 2>"$dir/err" &
server=$!
started+=("$server")
for _ in $(seq 100); do
    ! { : <>/dev/tcp/127.0.0.1/20048; } 2>/dev/null || break
    kill -0 $server 2>/dev/null || fail "the server ended: $(cat "$dir/err")"
    sleep 0.05
done

# The client makes one call at a time, because tshark shows only the first of several messages in a packet.
nfs() { timeout 60 "$rddp" nfs --credits 1 --mount-port 20048 "$@" >"$dir/out" || fail "rddp nfs $*: $?"; }
for n in 0 1 3 4 100 3900 4096 5000 70000 1500000; do head -c $n /dev/urandom >"$dir/tree/f$n"; done
for n in $(seq 200); do : >"$dir/tree/empty-with-a-long-name-$n"; done
ln -s "$(printf '%03000d' 0)" "$dir/tree/long"
ln -s f1 "$dir/tree/short"
mkdir "$dir/tree/sub"
remote=127.0.0.1:$dir/export
nfs -q cp -r "$dir/tree" "$remote/"
nfs -q cp -r "$remote/tree" "$dir/back"
diff -r --no-dereference "$dir/tree" "$dir/back" || fail "what came back differs"
nfs ls -l "$remote/tree"
nfs df "$remote"
nfs rm -r "$remote/tree"
! timeout 60 "$rddp" nfs --mount-port 20048 cat "$remote/nothing" >/dev/null 2>&1 || fail "there was nothing to read"
stop_capture

# The reserved port from which the client calls MOUNT may belong to another protocol.
dissect() { tshark -r "$dir/pcap" -d tcp.port==20048,rpc -Y "$@" 2>/dev/null; }
count() { dissect "$1" | wc -l; }
# tshark does not insert the octets of Write chunks into replies, so it sees READ and READLINK replies as too short.
bad=$(dissect '_ws.malformed && !(rpcordma.writes_count > 0 && nfs.procedure_v3 in {5, 6})' | head -n 3)
[ -z "$bad" ] || fail "malformed: $bad"
# Count the messages of each XID: every call must have its reply.
dissect rpcordma -T fields -e rpcordma.xid | sort | uniq -c >"$dir/xids"
odd=$(awk '$1 != 2' "$dir/xids" | head -n 3)
[ -z "$odd" ] || fail "not one call and one reply: $odd"
messages=$(awk '{ n += $1 } END { print n }' "$dir/xids")
((messages >= 500)) || fail "only $messages messages seen"
dissect 'rpcordma && nfs' -T fields -E occurrence=f -e nfs.procedure_v3 -e rpc.msgtyp | sort -u >"$dir/kinds"
for procedure in 1 2 3 5 6 7 8 9 10 12 13 17 18 19 21; do # what the tool makes use of, GETATTR to COMMIT
    for type in 0 1; do
        grep -qx "$procedure"$'\t'"$type" "$dir/kinds" || fail "procedure $procedure: no message of type $type"
    done
done
reads=$(count 'rpcordma.reads_count > 0')
writes=$(count 'rpcordma.writes_count > 0')
replies=$(count 'rpcordma.reply_count > 0')
((reads >= 5 && writes >= 5 && replies >= 1)) || fail "$reads with Read, $writes with Write, $replies with Reply chunks"
wrong=$(count 'rpcordma.version != 1 || rpcordma.flow_control == 0')
[ "$wrong" = 0 ] || fail "$wrong of another version or without credits"
echo "nfs_tshark: $messages messages, none malformed; $reads with Read, $writes with Write, $replies with Reply chunks"
