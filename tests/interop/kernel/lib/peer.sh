# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2034
# peer.sh - has the functions that the tests share: guest, result lines, helpers in the guest, knfsd, mounts, captures.
# A script sources it with the name of the test in `test_name`. It leaves no guest, process, mount or file behind.

lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
guest=$(dirname "$lib")/guest
export RDDP_GUEST_NS=${RDDP_GUEST_NS:-rddp-$test_name-$$}
export RDDP_GUEST_MEM=${RDDP_GUEST_MEM:-1536}
full=${RDDP_KERNEL_FULL:-0} # 1: the long runs
only=${RDDP_KERNEL_ONLY:-}  # an extended regular expression: only the cases whose name it matches
tmp=$(mktemp -d)
chmod 755 "$tmp"

passed=0 failed=0 began=$SECONDS
undo=() # functions to call at the end

cleanup() {
    trap - EXIT
    local f
    for f in "${undo[@]}"; do "$f" >/dev/null 2>&1; done
    "$guest" down
    rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

check() { # NAME FUNCTION [ARGUMENT ...]: when the case fails, it prints why
    local name=$1 start=${EPOCHREALTIME/./} why
    shift
    [ -z "$only" ] || [[ $name =~ $only ]] || return 0
    if why=$("$@" 2>&1); then
        passed=$((passed + 1))
        printf 'ok    %-66s %6d ms\n' "$name" $(((${EPOCHREALTIME/./} - start) / 1000))
    else
        failed=$((failed + 1))
        printf 'FAIL  %s: %s\n' "$name" "$(head -n 12 <<<"${why:-no reason given}")"
        guest_lives
        false
    fi
}

# Nothing can be said of the other cases when the guest's kernel has a thread less: each would wait until its limit.
guest_lives() {
    local log
    log=$(in_guest "dmesg | grep -A 8 -m 1 -E 'kernel BUG at|Oops:'" 10 2>/dev/null) || return 0
    printf '%s\n%s: the guest is dead, %d passed, %d failed, the others were not run\n' "$log" "$test_name" "$passed" "$failed"
    exit 1
}

fail() { # REASON: the end of a case, which has a subshell to itself
    echo "$*"
    exit 1
}

in_guest() { "$guest" run "$@"; }

wait_for() { # SECONDS COMMAND ...
    local i limit=$1
    shift
    for ((i = 0; i < limit * 10; i++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    return 1
}

# --- helpers -------------------------------------------------------------------------------------------------------

helpers_build() { # static, so that they run in the guest too
    local flags=(-std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -O2 -Wall -Wextra -static)
    mkdir -p "$tmp/bin"
    "${CC:-gcc}" "${flags[@]}" -o "$tmp/bin/fsop" "$lib"/fsop*.c && "${CC:-gcc}" "${flags[@]}" -o "$tmp/bin/fsx" "$lib/fsx.c" &&
        cp "$lib/work.sh" "$tmp/bin/" || { echo "$test_name: skipped: no static programs can be built"; exit 77; }
    # The tests copy this tree of real files, which are sources of this project.
    tar -C "$lib/../../../.." -cf "$tmp/tree.tar" base wire conn Makefile CMakeLists.txt 2>/dev/null
    mkdir "$tmp/tree" && tar -C "$tmp/tree" -xf "$tmp/tree.tar"
    ln -s base/bytes.h "$tmp/tree/link" && ln "$tmp/tree/CMakeLists.txt" "$tmp/tree/hard"
    chmod 751 "$tmp/tree/conn"
    tar -C "$tmp" -cf "$tmp/tree.tar" tree
}

boot() { # --crc or --no-crc
    local option=()
    [ "$1" != --crc ] || option=(--crc)
    "$guest" up "${option[@]}" || exit
    in_guest "mkdir -p /tmp/bin /mnt/a /mnt/b"
    local f
    for f in bin/fsop bin/fsx bin/work.sh tree.tar; do "$guest" put "$tmp/$f" "/tmp/$f" || exit 1; done
    in_guest "tar -C /tmp -xf /tmp/tree.tar"
}

# --- knfsd: a disk of its own, because the cookies of a tmpfs directory change when a name goes away ----------------

knfsd_start() { # EXPORT-OPTION ...
    in_guest "
        if ! grep -q ' /export ' /proc/mounts; then
            modprobe -a loop ext4 && truncate -s ${disk_mib:-900}M /tmp/disk && mke2fs -F -b 4096 -I 256 -i 8192 /tmp/disk >/dev/null &&
                losetup /dev/loop0 /tmp/disk && mount -t ext4 /dev/loop0 /export && chmod 777 /export || exit
            rmdir /export/lost+found
            pidof rpcbind >/dev/null || rpcbind -w
            mkdir -p /proc/fs/nfsd; mount -t nfsd nfsd /proc/fs/nfsd; echo 10 >/proc/fs/nfsd/nfsv4gracetime
        fi
        echo '/export *(insecure,no_subtree_check,fsid=1$(printf ',%s' "$@"))' >/etc/exports
        exportfs -ra && rpc.nfsd 4 && { pidof rpc.mountd >/dev/null || rpc.mountd --port 20048; } &&
            { grep -q 'rdma 20049' /proc/fs/nfsd/portlist || echo rdma 20049 >/proc/fs/nfsd/portlist; }"
}

knfsd_stop() { in_guest "rpc.nfsd 0; exportfs -ua; exportfs -f"; }

# --- what the end must look like -----------------------------------------------------------------------------------

kernel_is_well() {
    local log
    log=$(in_guest dmesg) || fail "the guest does not answer: $log"
    log=$(grep -B 4 -A 1 -E 'BUG|Oops|WARNING|Call Trace|general protection|refcount_t|lockup|blocked for more' <<<"$log")
    [ -z "$log" ] || fail "$log"
}

# Checks the client's own counters. The 20th figure of "xprt: rdma" is the number of replies that the client could not parse.
client_is_content() { # DIRECTORY
    local line
    line=$(in_guest "sed -n '/ mounted on ${1//\//\\/} /,/^\$/p' /proc/self/mountstats" | grep -m 1 'xprt:.*rdma') ||
        fail "no RDMA transport at $1"
    # shellcheck disable=SC2086
    set -- $line
    shift 2
    [ "${20}" = 0 ] || fail "${20} bad replies: $line"
}

# --- the wire ------------------------------------------------------------------------------------------------------

capture_start() { # the MPA frames: their first four octets are those of Request and Reply
    : >"$tmp/tcpdump.err"
    "$guest" ns tcpdump -Z root -U --immediate-mode -i tap0 -w "$tmp/wire.pcap" \
        'tcp[(tcp[12] & 0xf0) >> 2 : 4] = 0x4d504120 or
         (ip6[6] = 6 and ip6[40 + ((ip6[52] & 0xf0) >> 2) : 4] = 0x4d504120)' 2>"$tmp/tcpdump.err" &
    wait_for 10 grep -qs listening "$tmp/tcpdump.err" || { cat "$tmp/tcpdump.err" >&2; exit 1; }
}

# Prints flags, revision, length of private data, IRD and ORD with their flags of the last Request and Reply, in hexadecimal.
mpa_frames() {
    "$guest" ns tcpdump -nr "$tmp/wire.pcap" -x 2>/dev/null | sed -n 's/^\s*0x[0-9a-f]*: //p' | tr -d ' \n' |
        grep -oE '4d504120494420526[57][a-f0-9]{2}204672616d65.{16}' | tail -n 2 | sed 's/.*204672616d65//' | xargs
}

mpa_shows() { # REQUEST-FLAGS REPLY-FLAGS: revision 2 both, and a Reply that grants an RDMA Read
    local frames
    frames=$(mpa_frames)
    [[ $frames =~ ^${1}02....\ *${2}02 || $frames =~ ^${1}02.*\ ${2}02 ]] || fail "MPA frames: $frames, not $1 and $2"
    [ $((0x${frames: -4} & 0x3fff)) -ge 1 ] || fail "our Reply offers no RDMA Read: $frames"
}

finish() {
    echo "$test_name: $passed passed, $failed failed, $((SECONDS - began)) s"
    [ "$failed" = 0 ]
    exit
}
