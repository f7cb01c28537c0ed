#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# demo.sh - shows what rddp does on a machine without RDMA: copies a tree and a large file over loopback in several
# ways, and by plain TCP, compares every octet, and prints how long it took. Needs no root and leaves nothing behind.
set -euo pipefail

rddp=${RDDP_TOOL:-build/main/rddp}
host=127.0.0.1
big_octets=$((1 << 30))
room=   # of everything the demo makes
server= # process and port of the server that runs now
port=
bad=0

finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$room" ] || { chmod -R u+rwX "$room" 2>/dev/null || true; rm -rf "$room"; }
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

fail() { echo "demo: $*" >&2; exit 1; }

# --- where ---------------------------------------------------------------------------------------------------------

say_host() {
    local devices modules
    devices=$(find /sys/class/infiniband -mindepth 1 -printf ' %f' 2>/dev/null || true)
    modules=$(awk '/^(ib_|rdma|siw |iw_|mlx[45]_ib|irdma)/ { printf " %s", $1 }' /proc/modules 2>/dev/null || true)
    echo "host: $(uname -sr), $(nproc) processors; RDMA devices:${devices:- none};" \
        "RDMA kernel modules:${modules:- none}; uid $(id -u)"
}

free_kib() { df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }

# Use memory if there is room for two copies of everything, so that the network is measured and not a disk.
make_room() {
    local memory
    memory=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
    if [ -w /dev/shm ] && [ "$(free_kib /dev/shm)" -gt 2621440 ] && [ "${memory:-0}" -gt 3670016 ]; then
        room=$(mktemp -d /dev/shm/rddp-demo.XXXXXX)
        echo "files: in memory (/dev/shm)"
    else
        room=$(mktemp -d "${TMPDIR:-/tmp}/rddp-demo.XXXXXX")
        [ "$(free_kib "$room")" -gt 2621440 ] || fail "no 2.5 GiB free in ${TMPDIR:-/tmp}"
        echo "files: on disk (${TMPDIR:-/tmp})"
    fi
    mkdir "$room/served"
}

# The headers of this system, or our own sources; then names and file types that copying programs often get wrong.
make_tree() {
    local tree=$room/tree odd
    mkdir "$tree"
    if [ -d /usr/include ] && [ "$(find /usr/include -type f | wc -l)" -gt 1000 ]; then
        cp -r /usr/include "$tree/files"
    else
        (cd "$(dirname "$0")/.." && tar cf - --exclude=./build --exclude=./.git .) | tar xf - -C "$tree"
    fi
    find "$tree" -type l -delete
    odd=$tree/odd
    mkdir -p "$odd/empty directory" "$odd/a/b/c/d/e/f/g/h/i/j"
    : >"$odd/empty file"
    echo newline >"$odd/"$'new\nline'
    echo utf8 >"$odd/Grüße ☃"
    echo not utf8 >"$odd/"$'\xff\xfe'
    echo dash >"$odd/-r"
    echo quotes >"$odd/'\"\$(id)\\"
    echo hidden >"$odd/.hidden"
    echo deep >"$odd/a/b/c/d/e/f/g/h/i/j/k"
    echo long >"$odd/$(printf 'n%.0s' {1..200})"
    head -c 1000001 /dev/urandom >"$odd/script"
    chmod 750 "$odd/script"
    chmod 400 "$odd/.hidden"
    ln -s ../script "$odd/a/link"
    ln -s a "$odd/link to a directory"
    touch -d '2001-02-03 04:05:06.123456789' "$odd/-r" "$odd/a"
}

# --- how -----------------------------------------------------------------------------------------------------------

start_server() { # COMMAND...: start a server whose first line says where it listens
    : >"$room/says"
    "$rddp" "$@" >>"$room/says" 2>"$room/errors" &
    server=$!
    for _ in $(seq 100); do
        port=$(sed -n '1s/^listening on [^ ]*:\([0-9]*\).*/\1/p' "$room/says")
        [ -z "$port" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    fail "rddp $1 failed to start: $(cat "$room/errors")"
}

stop_server() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}

number() { awk "BEGIN { printf \"%.2f\", $1 }"; } # of an expression

row() { printf '%-50s %8s %7s %9s  %s\n' "$@"; }

# Prints a row of figures, and whether the checks hold.
verdict() { # WHAT SECONDS OCTETS CPU_PER_GB CHECK...
    local what=$1 seconds=$2 octets=$3 cpu=$4 word
    shift 4
    if "$@" >"$room/differences" 2>&1; then
        word="yes (${1/same_trees/names, modes, times, diff -r})"
    else
        word="NO: $(head -c 200 "$room/differences" | tr '\n' ' ')"
        bad=1
    fi
    case $cpu in # too little was moved for a figure
    *null* | *None*) cpu=- ;;
    *) cpu=$(number "$cpu") ;;
    esac
    row "$what" "$(number "$seconds") s" "$(number "$octets / $seconds / 1e9")" "$cpu" "$word"
}

member() { # NAME: of the JSON object that rddp printed
    sed -n "s/^  \"$1\": \(.*[^,]\),\{0,1\}$/\1/p" "$room/json"
}

# copy WHAT SERVE-OPTIONS CP-OPTIONS SRC DST CHECK...: uses its own server, since the options are for both ends.
copy() {
    local what=$1 there=$2 here=$3 source=$4 destination=$5 options
    shift 5
    read -ra options <<<"$there"
    start_server serve -q -a $host -p 0 "${options[@]}" "$room/served"
    read -ra options <<<"$here"
    # Unknown figures are null, which awk treats as 0.
    if "$rddp" cp --json -p "$port" "${options[@]}" "$source" "$destination" >"$room/json" 2>"$room/errors"; then
        verdict "$what" "$(member seconds)" "$(member bytes)" \
            "$(member cpu_seconds_per_gb_client) + $(member cpu_seconds_per_gb_server)" "$@"
    else
        row "$what" - - - "NO: $(head -1 "$room/errors")"
        bad=1
    fi
    stop_server
}

server_cpu() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / hz }' "/proc/$server/stat"; }

# nfs WHAT put|get SRC DST CHECK...: uses the served directory as an NFS export, without a mount.
nfs() {
    local what=$1 verb=$2 source=$3 destination=$4 rdma mount
    shift 4
    start_server nfsd -a $host -p 0 --rdma-port 0 --mount-port 0 --squash none --state "$room/state" "$room/served"
    read -r rdma mount < <(sed -n 's/.*proto=rdma,port=\([0-9]*\),.*mountport=\([0-9]*\) .*/\1 \2/p' "$room/says")
    if "$rddp" nfs "$verb" --json -p "$rdma" --mount-port "$mount" "$source" "$destination" >"$room/json" 2>"$room/errors"; then
        verdict "$what" "$(member seconds)" "$(member bytes)" \
            "($(member cpu_seconds) + $(server_cpu)) / $(member bytes) * 1e9" "$@"
    else
        row "$what" - - - "NO: $(head -1 "$room/errors")"
        bad=1
    fi
    stop_server
}

# Sends the same file like an ordinary program: sendfile() at one end, recv() and write() at the other, no checksum.
tcp_copy() { # SRC DST: prints seconds, octets, CPU seconds for 10^9 octets
    python3 - "$1" "$2" <<'END'
import os, resource, socket, sys, time

listener = socket.create_server(("127.0.0.1", 0))
begin = time.monotonic()
child = os.fork()
if child == 0:
    out = socket.create_connection(listener.getsockname())
    listener.close()
    with open(sys.argv[1], "rb") as source:
        at = 0
        while sent := os.sendfile(out.fileno(), source.fileno(), at, 1 << 30):
            at += sent
    out.shutdown(socket.SHUT_WR)
    os._exit(0 if out.recv(1) == b"k" else 1)
peer, _ = listener.accept()
octets, room = 0, memoryview(bytearray(1 << 20))
with open(sys.argv[2], "wb", buffering=0) as sink:
    while n := peer.recv_into(room):
        sink.write(room[:n])
        octets += n
peer.send(b"k")
if os.waitpid(child, 0)[1]:
    sys.exit("the sender failed")
seconds = time.monotonic() - begin
cpu = sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
print(seconds, octets, cpu / octets * 1e9)
END
}

plain_tcp() {
    local what="1 GiB as plain TCP, sendfile() to recv()" seconds octets cpu
    if ! command -v python3 >/dev/null; then
        row "$what" - - - "left out: no python3"
        return
    fi
    read -r seconds octets cpu < <(tcp_copy "$room/big" "$room/back") || fail "the plain TCP copy failed"
    verdict "$what" "$seconds" "$octets" "$cpu" cmp "$room/big" "$room/back"
    rm -f "$room/back"
}

# packets WHAT OPTIONS: receives 64 MiB over the library's own TCP at both ends, in a separate network. One packet in a
# hundred is lost; the last column shows what waited for it.
packets() {
    local what=$1 extra=$2 new=(unshare --net --pid --fork --kill-child)
    [ "$(id -u)" = 0 ] || new+=(--map-root-user)
    # shellcheck disable=SC2016 # it is for the inner shell
    if ! "${new[@]}" bash -c '
        set -e
        echo 1 >/proc/sys/net/ipv4/ip_forward
        read -ra options <<<"$1"
        : >"$3/says"
        "$2" serve -q --packet 10.71.0.2/24 --packet-lose 1000 "${options[@]}" "$3/served" >"$3/says" 2>"$3/errors" &
        until grep -q listening "$3/says"; do kill -0 $!; sleep 0.05; done
        "$2" cp --json --packet 10.72.0.2/24 "${options[@]}" 10.71.0.2:part "$3/back" >"$3/json" 2>"$3/errors"
        ' packets "$extra" "$rddp" "$room" 2>>"$room/errors"; then
        row "$what" - - - "left out: $(head -1 "$room/errors")"
        return
    fi
    verdict "$what" "$(member seconds)" "$(member bytes)" \
        "$(member cpu_seconds_per_gb_client) + $(member cpu_seconds_per_gb_server)" cmp "$room/served/part" "$room/back"
    echo "    placed before its turn: $(number "$(member placed_early_bytes) / 1e6") MB;" \
        "waited at most: $(number "$(member kept_bytes_max) / 1e3") KB"
    rm -f "$room/back"
}

# Lists type, mode, size, time and target of all files, and then their contents.
listing() {
    (cd "$1" && find . \( -type d -printf '%y %m - %T@ %P\0' -o -printf '%y %m %s %T@ %l %P\0' \)) |
        LC_ALL=C sort -z | tr '\0' '\n'
}
same_trees() { # THERE HERE
    diff <(listing "$1") <(listing "$2") && diff -r --no-dereference "$1" "$2"
}

# --- what ----------------------------------------------------------------------------------------------------------

say_host
make_room
make_tree
head -c $big_octets /dev/urandom >"$room/big"
cp "$room/big" "$room/back" # otherwise the first row alone would pay for memory that was not used before
rm "$room/back"
files=$(find "$room/tree" -type f -printf x | wc -c)
big=$room/served/big

echo
row what time GB/s "CPU s/GB" verified
tree=$room/tree
copy "tree of $files files there, by RDMA Write" "" "-r" "$tree" $host:tree same_trees "$tree" "$room/served/tree"
copy "and back, by RDMA Read" "" "-r" $host:tree "$room/again" same_trees "$tree" "$room/again"
rm -rf "$room/again" "$room/served/tree"
copy "1 GiB there, CRC" "" "" "$room/big" $host:big cmp "$room/big" "$big"
rm -f "$big"
copy "1 GiB there, CRC and markers" "--markers" "--markers" "$room/big" $host:big cmp "$room/big" "$big"
rm -f "$big"
copy "1 GiB there, no CRC" "--no-crc" "--no-crc" "$room/big" $host:big cmp "$room/big" "$big"
rm -f "$big"
copy "1 GiB there, RDMA/TCP segments" "--wire rdmatcp" "--wire rdmatcp" "$room/big" $host:big cmp "$room/big" "$big"
rm -f "$big"
copy "1 GiB there, SCTP" "--wire sctp" "--wire sctp" "$room/big" $host:big cmp "$room/big" "$big"
rm -f "$big"
nfs "1 GiB there, NFS over RDMA, CRC" put "$room/big" "$host:$big" cmp "$room/big" "$big"
rm -f "$big"
ln "$room/big" "$big" # a link instead of a third copy
nfs "1 GiB back, NFS over RDMA, CRC" get "$host:$big" "$room/back" cmp "$room/big" "$room/back"
rm -f "$room/back"
copy "1 GiB back, CRC" "" "" $host:big "$room/back" cmp "$room/big" "$room/back"
rm -f "$big" "$room/back"
head -c $((64 << 20)) "$room/big" >"$room/served/part"
packets "64 MiB, 1 % of packets lost, placed at once" --aligned
packets "64 MiB, 1 % of packets lost, placed in order" ""
rm -f "$room/served/part"
plain_tcp
echo "GB/s: 10^9 octets a second. CPU: processor seconds of both sides for 10^9 octets."
echo "rddp cp hashes what it moves and compares at both ends; plain TCP does not."

echo
start_server ping --server -a $host -p 0
"$rddp" ping -q -c 1000 -i 0 -p "$port" $host || bad=1
stop_server
"$rddp" perf --loopback --bw -t 0.3 write || bad=1

[ $bad = 0 ] || fail "a check failed"
