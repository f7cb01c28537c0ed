#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# mount.sh - tests rddp mount with our server: programs use the mount as a directory, two mounts see each other's changes, the
# server restarts and goes away, and the mount ends in every way.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

"$rddp" mount --help | grep -- --server-permissions >/dev/null || { echo "mount: built without libfuse3"; exit 77; }
[ -c /dev/fuse ] && { : <>/dev/fuse; } 2>/dev/null || { echo "mount: /dev/fuse cannot be used here"; exit 77; }
command -v fusermount3 >/dev/null || { echo "mount: no fusermount3"; exit 77; }
# Without our own namespace, another process's new mount namespace would copy our mounts and keep their processes alive.
if [ "$(id -u)" = 0 ] && [ "${1:-}" != inside ] && unshare --mount true 2>/dev/null; then
    rm -rf "$tmp"
    exec unshare --mount "$0" inside
fi

# Use /dev/shm if possible, because it does not wait for a disk.
store=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "$tmp")")
export=$store/export mnt="$tmp/m n,t" second=$tmp/second
mkdir "$export" "$mnt" "$second"
chmod 755 "$tmp" "$store" "$export"
mounts=() # process ids

unmount() { # DIR
    for _ in 1 2 3; do
        is_mounted "$1" || return 0
        fusermount3 -u -z "$1" 2>/dev/null
    done
    ! is_mounted "$1"
}
leave() {
    trap - EXIT
    [ ${#mounts[@]} = 0 ] || put_down "${mounts[@]}"
    [ -z "$server" ] || put_down "$server"
    # Do not remove files through a mount that still exists.
    if unmount "$mnt" && unmount "$second" && unmount "$tmp/small"; then
        ! grep -qsF " $tmp/disk tmpfs " /proc/self/mounts || umount -l "$tmp/disk"
        rm -rf "$store"
        cleanup
    fi
}
trap leave EXIT

until_true() { # COMMAND...: within ten seconds
    for _ in {1..200}; do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.05
    done
    return 1
}
ended() { ! kill -0 "$1" 2>/dev/null; }

rdma_port=0 mount_port=0
serve() { # OPTION... DIR: on the ports it had, if it had some
    start nfsd --address 127.0.0.1 --no-tcp --squash none --state "$tmp/state" \
        --rdma-port $rdma_port --mount-port $mount_port "$@"
    until_true grep -q '^mount ' "$tmp/server.out"
    rdma_port=$(sed -n 's/^mount .*proto=rdma,port=\([0-9]*\).*/\1/p;T;q' "$tmp/server.out")
    mount_port=$(sed -n 's/^mount .*mountport=\([0-9]*\).*/\1/p;T;q' "$tmp/server.out")
}
crash() {
    kill -9 "$server"
    wait "$server" 2>/dev/null
    server=
}
mount_on() { # DIR OPTION...: in the foreground, as a child of ours; sets `mounted`
    "$rddp" mount -f --port "$rdma_port" --mount-port "$mount_port" "${@:2}" "127.0.0.1:$export" "$1" 2>"$tmp/mount.err" &
    mounted=$!
    mounts+=("$mounted")
    comes_up mount "$1" "$mounted" && return
    cat "$tmp/mount.err"
    wrong "no mount on $1"
    exit 1
}
gone() { # NAME PID: the mount's process ends by itself, and well
    local code
    if until_true ended "$2"; then
        wait "$2"
        code=$?
        if [ $code = 0 ]; then pass; else wrong "$1: the mount ends with $code: $(cat "$tmp/mount.err")"; fi
    else
        wrong "$1: the mount does not end"
    fi
}
try() { # NAME SCRIPT: of bash, in the mount
    if (cd "$mnt" && timeout 60 bash -euo pipefail -c "$2") >"$tmp/out" 2>"$tmp/err"; then pass; else wrong "$1"; fi
}
python() { # NAME SCRIPT
    if (cd "$mnt" && timeout 60 python3 -c "import os, mmap, time
$2") >"$tmp/out" 2>"$tmp/err"; then pass; else wrong "$1"; fi
}

serve "$export"

# --- what is wrong is said -----------------------------------------------------------------------------------------

to=(--port "$rdma_port" --mount-port "$mount_port")
for words in "nowhere" "127.0.0.1:relative" ":/x" "127.0.0.1:$export"; do
    expect 2 "usage: $words" "$rddp" mount "$words"
done
expect 2 "an option of the mount that there is not" "$rddp" mount "${to[@]}" -o ro,fd=3 "127.0.0.1:$export" "$mnt"
expect 1 "no such directory" "$rddp" mount "${to[@]}" "127.0.0.1:$export" "$tmp/none"
expect_one_line "no such directory" mount
expect 1 "a file" "$rddp" mount "${to[@]}" "127.0.0.1:$export" /dev/null
expect 1 "not exported" "$rddp" mount "${to[@]}" "127.0.0.1:/nothing" "$mnt"
expect_one_line "not exported" mount
expect 3 "no server" "$rddp" mount --port 1 --mount-port 1 "127.0.0.1:$export" "$mnt"
expect_one_line "no server" mount
if ! is_mounted "$mnt"; then pass; else wrong "something was mounted after all"; fi

# --- names ---------------------------------------------------------------------------------------------------------

others=()
[ "$(id -u)" != 0 ] || others=(-o allow_other)
mount_on "$mnt" "${others[@]}"
main=$mounted
try "files, links, directories" 'mkdir d; echo hello >d/a; mv d/a d/b; ln d/b d/c; ln -s b d/s; mkfifo d/p
    [ "$(cat d/c d/s)" = "$(printf "hello\nhello")" ]; [ "$(stat -c %h d/b)" = 2 ]; [ "$(readlink d/s)" = b ]; [ -p d/p ]
    rm d/b; [ "$(stat -c %h d/c)" = 1 ]; ! rmdir d; ! mkdir d; rm -r d; [ ! -e d ]'
try "over another" 'echo a >a; echo b >b; mv a b; [ "$(cat b)" = a ]; [ ! -e a ]; mkdir d e; touch e/x; ! mv -T d e; mv -T e d; [ -e d/x ]
    rm -r b d'
try "long names" 'n=$(printf "%255s" | tr " " n); echo x >$n; [ "$(ls)" = $n ]; rm $n; ! touch ${n}n
    t=$(printf "%4000s" | tr " " t); ln -s $t l; [ "$(readlink l)" = $t ]; rm l'
try "2000 names" 'mkdir n; cd n; for ((i = 0; i < 2000; i++)); do echo $i >f$i; done; [ "$(ls | wc -l)" = 2000 ]
    ls -l >/dev/null; cat f* | sort -n | cmp - <(seq 0 1999); [ "$(find . -type f -size -6c | wc -l)" = 2000 ]'
try "fewer names" 'cd n; rm f1*; [ "$(ls | wc -l)" = 889 ]; cd ..; rm -r n; [ -z "$(ls -A)" ]'
try "exclusive" 'set -C; umask 027; echo a >x; [ "$(stat -c %a x)" = 640 ]; ! echo b >x; [ "$(cat x)" = a ]; rm x'
try "mode, times, size" 'touch -d @1000000000.5 t; [ "$(stat -c %.1Y t)" = 1000000000.5 ]; chmod 4751 t; [ "$(stat -c %a t)" = 4751 ]
    touch t; [ "$(stat -c %Y t)" -gt 1700000000 ]; rm t'
try "free space" '[ "$(stat -f -c %b .)" -gt 0 ]; [ "$(stat -f -c %l .)" = 255 ]'

# --- data ----------------------------------------------------------------------------------------------------------

head -c 64M /dev/urandom >"$store/64M"
export FILE=$store/64M EXPORT=$export
try "64 MiB" 'cp "$FILE" f; cmp f "$FILE"; cmp "$EXPORT/f" "$FILE"; dd if=f iflag=direct bs=1M status=none | cmp - "$FILE"'
try "truncated" 'truncate -s 1000 f; cmp f <(head -c 1000 "$FILE"); truncate -s 70000 f; [ "$(stat -c %s f)" = 70000 ]
    cmp f <(head -c 1000 "$FILE"; head -c 69000 /dev/zero); : >f; [ ! -s f ]'
try "appended" 'for i in {1..100}; do echo $i >>a; done; cmp a <(seq 100)'
try "sparse" 'dd if=/dev/zero of=s bs=1 count=1 seek=5000000000 status=none; [ "$(stat -c %s s)" = 5000000001 ]
    [ "$(dd if=s bs=1M skip=2000 count=1 status=none | tr -d "\0" | wc -c)" = 0 ]; rm s'
try "many writers" 'for i in {1..8}; do for j in {1..100}; do printf "%01000d" $i; done >w$i & done; wait
    for i in {1..8}; do [ "$(stat -c %s w$i)" = 100000 ]; [ "$(tr -d 0 <w$i | uniq | head -c 3)" = $i$i$i ]; done'
try "through to the disk" 'dd if="$FILE" of=o bs=10000 count=30 oflag=sync status=none; cmp "$EXPORT/o" <(head -c 300000 "$FILE")
    dd if="$FILE" of=o bs=64k count=9 oflag=direct conv=notrunc status=none; cmp "$EXPORT/o" <(head -c 589824 "$FILE"); rm o'
python "small writes" 'f = open("g", "wb", buffering=0)
for i in range(5000): f.write(b"%07d\n" % i)
assert os.fstat(f.fileno()).st_size == 40000
assert open("g").read() == "".join("%07d\n" % i for i in range(5000))
os.fsync(f.fileno())
assert os.stat(os.environ["EXPORT"] + "/g").st_size == 40000'
python "a hole in what is on its way" 'f = os.open("h", os.O_RDWR | os.O_CREAT)
for i in range(200):
    os.ftruncate(f, 1000)
    os.pwrite(f, b"x", 300000)
    assert os.pread(f, 200000, 50000) == bytes(200000), i'
python "mapped" 'f = os.open("m", os.O_RDWR | os.O_CREAT); os.ftruncate(f, 1 << 20)
m = mmap.mmap(f, 1 << 20); m[100:105] = b"hello"; m[1000000:1000003] = b"end"; m.flush()
assert os.pread(f, 5, 100) == b"hello"
os.pwrite(f, b"HELLO", 100); assert m[100:105] == b"HELLO"; m.close(); os.close(f)
assert open(os.environ["EXPORT"] + "/m", "rb").read()[1000000:1000003] == b"end"'
if cc -O1 -o "$tmp/fsx" "$RDDP_SOURCE_DIR/tests/interop/kernel/lib/fsx.c" 2>/dev/null; then
    for seed in 1 2; do
        if timeout 60 "$tmp/fsx" "$mnt/fsx" $seed 1500 >"$tmp/out" 2>"$tmp/err"; then pass; else wrong "fsx $seed"; fi
    done
fi

# --- open and without a name ---------------------------------------------------------------------------------------

closed='f.close(); assert not [x for x in os.listdir(".") if x.startswith(".nfs")], os.listdir(".")'
python "unlinked while open" 'f = open("u", "w+"); f.write("x" * 100000); f.flush(); os.unlink("u")
assert not os.path.exists("u"); f.seek(0); assert f.read() == "x" * 100000; f.write("more"); f.flush()
assert [x for x in os.listdir(".") if x.startswith(".nfs")]; '"$closed"
python "replaced while open" 'open("v", "w").write("new"); f = open("u", "w+"); f.write("old"); f.flush(); os.rename("v", "u")
f.seek(0); assert f.read() == "old"; assert open("u").read() == "new"; os.unlink("u"); '"$closed"
python "a directory removed after the close of what was unlinked in it" 'for i in range(300):
    os.mkdir("d"); f = open("d/u", "w"); f.write("x"); os.unlink("d/u"); f.close(); os.rmdir("d")'
python "a directory replaced after the close of what was unlinked in it" 'for i in range(300):
    os.mkdir("d"); os.mkdir("e"); f = open("d/u", "w"); os.unlink("d/u"); f.close(); os.rename("e", "d"); os.rmdir("d")'

# --- trees and users -----------------------------------------------------------------------------------------------

mkdir "$store/tree"
for folder in base core wire conn loop tcp api include nfs rpc tools tests doc; do
    cp -a "$RDDP_SOURCE_DIR/$folder" "$store/tree"
done
export TREE=$store/tree
try "the source's tree" 'cp -a "$TREE" tree; diff -r "$TREE" tree; list() { (cd "$1"; find . ! -type d -printf "%p %m %T@ %s %l\n" | sort); }
    cmp <(list "$TREE") <(list tree); rm -r tree'
if acts_as_others && command -v setpriv >/dev/null; then
    as="setpriv --reuid 65534 --regid 65534 --clear-groups"
    try "another user" "install -m 600 /dev/null mine; install -m 644 /dev/null shown; mkdir -m 755 closed; mkdir -m 1777 open
        ! $as cat mine; $as cat shown; ! $as tee shown </dev/null; ! $as touch closed/x; ! $as rm -f shown; ! $as chmod 666 shown
        $as touch open/x; [ \"\$(stat -c %u:%g open/x)\" = 65534:65534 ]; ! $as chown 0 open/x; rm -r mine shown closed open"
    try "a group" "install -g 1234 -m 640 /dev/null grouped; ! $as cat grouped
        setpriv --reuid 65534 --regid 65534 --groups 77,1234 cat grouped; rm grouped"
    # A write by another user clears SUID and SGID, and the server does this.
    try "SUID and SGID are cleared by a write" "echo x >suid; chmod 6777 suid; stat suid >/dev/null
        setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'echo y >>suid'; [ \"\$(stat -c %a suid)\" = 777 ]; rm suid"
fi

# --- two mounts ----------------------------------------------------------------------------------------------------

mount_on "$second"
other=$mounted
export SECOND=$second
try "close to open" 'for i in {1..40}; do printf "%0${i}d" $i >c; [ "$(cat "$SECOND/c")" = "$(printf "%0${i}d" $i)" ]; done
    for i in {1..40}; do printf %03d $i >c; [ "$(cat "$SECOND/c")" = $(printf %03d $i) ]; done'
try "appended in turn" 'rm -f t; for i in {1..30}; do echo $i >>t; echo $i >>"$SECOND/t"; done; [ "$(wc -l <t)" = 60 ]'
try "gone" 'cat "$SECOND/t" >/dev/null; rm t; sleep 1.1; [ ! -e "$SECOND/t" ]'
kill "$other"
gone "SIGTERM" "$other"
if ! is_mounted "$second"; then pass; else wrong "SIGTERM leaves the mount"; fi

# --- a server that restarts ----------------------------------------------------------------------------------------

cp "$store/64M" "$mnt/restarted" 2>"$tmp/cp.err" &
writer=$!
for _ in 1 2 3; do
    until_true test -s "$export/restarted"
    crash
    serve "$export"
done
if wait $writer && cmp "$store/64M" "$export/restarted" && cmp "$store/64M" "$mnt/restarted"; then pass; else
    wrong "restarts: $(cat "$tmp/cp.err")"
fi
try "after the restarts" 'ls -l; rm -f *; [ -z "$(ls)" ]'

# --- in the background, and a server that is gone ------------------------------------------------------------------

fusermount3 -u "$mnt"
gone "fusermount3 -u" "$main"
expect 0 "into the background" "$rddp" mount --port "$rdma_port" --mount-port "$mount_port" "127.0.0.1:$export" "$mnt"
try "in the background" 'echo there >x; [ "$(cat x)" = there ]'
expect 0 "unmount" fusermount3 -u "$mnt"
mount_on "$mnt" -o ro
try "read only" '[ "$(cat x)" = there ]; ! touch x; ! rm -f x'
kill "$mounted"
gone "SIGTERM, read only" "$mounted"

mount_on "$mnt" --soft --timeout 1
try "soft" 'cat x'
crash
expect 1 "soft, without a server" env LC_ALL=C stat "$mnt/nothing" # from outside: a shell in there looks around
expect_text "soft, without a server" "Input/output error" err
expect 0 "unmount without a server" fusermount3 -u "$mnt"
gone "soft, without a server" "$mounted"

serve "$export"
mount_on "$mnt"
try "hard" 'cat x'
crash
# The file does not exist, and only the server can tell.
python3 -c 'import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *a: None)
try: os.stat(sys.argv[1])
except FileNotFoundError: sys.exit(0)
sys.exit(1)' "$mnt/y" &
waiting=$!
cat "$mnt/x" &
killed=$!
asks() { grep -q wait_answer "/proc/$1/wchan"; }
if until_true asks $waiting && until_true asks $killed; then pass; else wrong "no call waits for the server"; fi
kill -USR1 $waiting
kill $killed
if until_true ended $killed; then pass; else wrong "who waits for the server cannot be killed"; fi
expect 0 "detached without a server" fusermount3 -u -z "$mnt"
if ! ended $waiting; then pass; else wrong "a signal ends an operation"; fi
serve "$export"
if until_true ended $waiting && wait $waiting; then pass; else wrong "not what the server says that is back"; fi
gone "detached" "$mounted"

# --- how much a directory costs ------------------------------------------------------------------------------------

# calls_of AT_MOST NAME SCRIPT... checks how many calls a mount makes that runs only SCRIPT and is then unmounted.
calls_of() {
    local calls
    serve "$export"
    mount_on "$mnt"
    try "$2" "$3"
    fusermount3 -u "$mnt"
    gone "$2" "$mounted"
    stop "$2"
    calls=$(sed -n 's/^\([0-9]*\) calls.*/\1/p' "$tmp/server.out")
    if [ "${calls:-0}" -gt 0 ] && [ "$calls" -le "$1" ]; then pass; else wrong "$2: $calls calls, not $1 at most"; fi
}
stop "the server"
mkdir "$export/many" "$export/changing"
(cd "$export/many" && touch {1..1000})
(cd "$export/changing" && touch {1..300})
calls_of 40 "a walk" '[ "$(find many -type f -size 0 | wc -l)" = 1000 ]'
# A rename makes up to four calls, including the lookups of both names. The directory entries read so far stay cached.
calls_of 1200 "names that change while they are read" 'python3 -c "
import os
for i, entry in enumerate(os.scandir(\"changing\")):
    if entry.name.isdigit():
        os.rename(\"changing/\" + entry.name, \"changing/new\" + entry.name)
"'

# --- a disk that is full -------------------------------------------------------------------------------------------

if [ "$(id -u)" = 0 ] && mkdir "$tmp/disk" "$tmp/small" && mount -t tmpfs -o size=4m,mode=755 small "$tmp/disk" 2>/dev/null; then
    serve "$tmp/disk"
    export=$tmp/disk
    mount_on "$tmp/small"
    if ! head -c 8M "$store/64M" 2>/dev/null >"$tmp/small/f"; then pass; else wrong "a full disk: head says nothing"; fi
    if ! cp "$store/64M" "$tmp/small/g" 2>/dev/null; then pass; else wrong "a full disk: cp says nothing"; fi
    rm -f "$tmp/small/f" "$tmp/small/g"
    if echo x >"$tmp/small/h" && [ "$(cat "$tmp/small/h")" = x ]; then pass; else wrong "no room after removing"; fi
    fusermount3 -u "$tmp/small"
    gone "a full disk" "$mounted"
    stop "the server of a full disk"
fi

finish mount
