#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# nfsd.sh - tests rddp nfsd: its output, MOUNT calls from Python, libnfs as another client, restarts, signals, errors.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

dir=$tmp/export
mkdir -p "$dir/sub"
chmod 755 "$dir" "$dir/sub"
echo hello >"$dir/a"
free=(--rdma-port 0 --mount-port 0 --state "$tmp/state")

# call.py makes one call over TCP. "mnt PATH" prints the file handle or the status, "export" prints one line per export, and
# "getattr FH" prints type and status.
cat >"$tmp/call.py" <<'END'
import socket, struct, sys
port, what, *rest = sys.argv[1:]
words = lambda *w: struct.pack(">%dI" % len(w), *w)
def text(s): return words(len(s)) + s + bytes(-len(s) % 4)
program, procedure, args = {
    "mnt": (100005, 1, lambda: text(rest[0].encode())),
    "export": (100005, 5, bytes),
    "getattr": (100003, 1, lambda: text(bytes.fromhex(rest[0]))),
}[what]
call = words(77, 0, 2, program, 3, procedure, 0, 0, 0, 0) + args()
with socket.create_connection(("127.0.0.1", int(port)), 10) as s:
    s.sendall(words(0x80000000 | len(call)) + call)
    stream = s.makefile("rb")
    mark, = struct.unpack(">I", stream.read(4))
    reply = stream.read(mark & 0x7fffffff)
head, body = struct.unpack(">6I", reply[:24]), reply[24:]
assert mark >> 31 and head == (77, 1, 0, 0, 0, 0), head
def take(form="I"):
    global body
    n = struct.calcsize(">" + form)
    value, body = struct.unpack(">" + form, body[:n])[0], body[n:]
    return value
def take_text():
    n = take()
    return take("%ds" % n), take("%ds" % (-n % 4))
if what == "export":
    while take():
        line = take_text()[0].decode()
        while take():
            line += " " + take_text()[0].decode()
        print(line)
else:
    status = take()
    print("status", status) if status else print(take_text()[0].hex() if what == "mnt" else "type %d" % take())
assert status == 0 if what != "export" else not body
END
call() { expect "$1" "$2" python3 "$tmp/call.py" "${@:3}"; }

serve() { # OPTION...: sets port, mount_port and rdma_port
    start nfsd "${free[@]}" "$@" "$dir"
    # nfsd prints the lines with one write, so all of them are there now.
    mount_port=$(sed -n '2s/.*mountport=\([0-9]*\).*/\1/p' "$tmp/server.out")
    rdma_port=$(sed -n '2s/.*proto=rdma,port=\([0-9]*\).*/\1/p' "$tmp/server.out")
}

# --- what is printed, and MOUNT ------------------------------------------------------------------------------------

serve --address 127.0.0.1 --allow 10.0.0.0/8 --allow 127.0.0.0/8
cp "$tmp/server.out" "$tmp/out"
for proto in "rdma,port=$rdma_port" "tcp,port=$port"; do
    expect_text "mount line" "^mount -t nfs -o vers=3,proto=$proto,nolock,mountproto=tcp,mountport=$mount_port 127.0.0.1:$dir /mnt\$"
done
expect_text "all ports" "^listening on 127.0.0.1:$port \(TCP\), 127.0.0.1:$rdma_port \(RDMA\), 127.0.0.1:$mount_port \(MOUNT\)\$"
[ ! -s "$tmp/server.err" ] && pass || wrong "a warning for one who said --address and --allow: $(cat "$tmp/server.err")"
call 0 "MNT" "$mount_port" mnt "$dir"
handle=$(cat "$tmp/out")
call 0 "MNT at the port of NFS" "$port" mnt "$dir"
expect_text "MNT at the port of NFS" "^$handle\$"
call 0 "MNT of a directory below" "$mount_port" mnt "$dir/sub"
call 1 "MNT of something else" "$mount_port" mnt /
call 1 "MNT out of the export" "$mount_port" mnt "$dir/.."
call 0 "GETATTR" "$port" getattr "$handle"
expect_text "GETATTR" '^type 2$'
call 0 "EXPORT" "$mount_port" export
expect_text "EXPORT" "^$dir 10.0.0.0/8 127.0.0.0/8\$"

# --- ports that are taken --------------------------------------------------------------------------------------------

taken() { # NAME OPTION...
    expect 3 "$1" "$rddp" nfsd --address 127.0.0.1 "${@:2}" "$dir"
    expect_one_line "$1" nfsd
    expect_text "$1" 'in use$' err
}
taken "port taken" "${free[@]}" -p "$port"
taken "port of RDMA taken" -p 0 --mount-port 0 --state "$tmp/state" --rdma-port "$rdma_port"
taken "port of MOUNT taken" -p 0 --rdma-port 0 --state "$tmp/state" --mount-port "$mount_port"

# --- the same handles after a restart ----------------------------------------------------------------------------------

stop "SIGTERM"
expect_text "SIGTERM" '^[0-9]+ calls, '
serve
call 0 "GETATTR after a restart" "$port" getattr "$handle"
expect_text "GETATTR after a restart" '^type 2$'
call 1 "GETATTR with a forged handle" "$port" getattr "${handle%?}$((0x${handle: -1} ^ 1))"
kill -INT "$server"
ends 0 "SIGINT"

# --- who may come ------------------------------------------------------------------------------------------------------

serve --allow 10.0.0.0/8
call 1 "MNT by a stranger" "$mount_port" mnt "$dir"
expect_text "MNT by a stranger" '^status 13$'
call 1 "GETATTR by a stranger" "$port" getattr "$handle"
expect 1 "RDMA by a stranger" "$rddp" nfs --port "$rdma_port" --mount-port "$mount_port" ls "127.0.0.1:$dir"
stop "stop"
expect_text "a stranger is named, as IPv4" '^rddp nfsd: refused 127\.0\.0\.1: no export allows this address$' err

for option in '' --ro "--address 127.0.0.1" "--allow 127.0.0.1"; do
    # shellcheck disable=SC2086 # one word or two
    serve $option
    stop "stop after '$option'"
    if [ -z "$option" ]; then
        expect_one_line "everybody may write" nfsd
        expect_text "everybody may write" '^rddp nfsd: every host .* --allow, --address and --ro$' err
    elif [ -s "$tmp/err" ]; then wrong "$option: a warning"; else pass; fi
done


serve --no-tcp
[ "$port" = "$rdma_port" ] && pass || wrong "--no-tcp: it listens at $port, not $rdma_port"
cp "$tmp/server.out" "$tmp/out"
if grep -q ,proto=tcp, "$tmp/out"; then wrong "--no-tcp: a line for TCP"; else pass; fi
call 0 "MNT without NFS over TCP" "$mount_port" mnt "$dir"
call 1 "NFS at the port of MOUNT" "$mount_port" getattr "$handle"
stop "stop after --no-tcp"

# --- libnfs ------------------------------------------------------------------------------------------------------------

if command -v nfs-ls >/dev/null && command -v nfs-cp >/dev/null && command -v nfs-cat >/dev/null; then
    serve --squash none
    url() { echo "nfs://127.0.0.1$dir$1?nfsport=$port&mountport=$mount_port"; }
    expect 0 "nfs-ls" nfs-ls "$(url '')"
    expect_text "nfs-ls" ' 6 a$'
    expect_text "nfs-ls" '^d.* sub$'
    head -c 5000001 /dev/urandom >"$tmp/data"
    expect 0 "nfs-cp there" nfs-cp "$tmp/data" "$(url /sub/data)"
    cmp "$tmp/data" "$dir/sub/data" && pass || wrong "nfs-cp there: other octets"
    expect 0 "nfs-cat" nfs-cat "$(url /sub/data)"
    cmp -s "$tmp/data" "$tmp/out" && pass || wrong "nfs-cat: other octets"
    expect 10 "nfs-cat of nothing" nfs-cat "$(url /nothing)"
    stop "stop after libnfs"
    serve --ro --squash none
    timeout 30 nfs-cp "$tmp/data" "$(url /new)" >"$tmp/out" 2>&1
    [ ! -e "$dir/new" ] && pass || wrong "--ro: a file was made"
    expect 0 "nfs-ls of what is read-only" nfs-ls "$(url '')"
    stop "stop after --ro"
else
    echo "nfsd: WITHOUT libnfs: no client of another make was tried (Debian: libnfs-utils)"
fi

# --- rddp's own client over RDMA -----------------------------------------------------------------------------------------

serve --squash none
own() { "$rddp" nfs -q --port "$rdma_port" --mount-port "$mount_port" "$@"; }
head -c 3000001 /dev/urandom >"$tmp/data"
export -f own
export rddp rdma_port mount_port
expect 0 "rddp nfs put" bash -c 'own put "$@"' _ "$tmp/data" "127.0.0.1:$dir/sub/mine"
cmp "$tmp/data" "$dir/sub/mine" && pass || wrong "rddp nfs put: other octets"
expect 0 "rddp nfs get" bash -c 'own get "$@"' _ "127.0.0.1:$dir/sub/mine" "$tmp/back"
cmp "$tmp/data" "$tmp/back" && pass || wrong "rddp nfs get: other octets"
# A program written over NFS can be run in the exported directory soon afterwards.
expect 0 "a program is written" bash -c 'own put "$@"' _ "$(type -P true)" "127.0.0.1:$dir/sub/program"
chmod 755 "$dir/sub/program"
for _ in {1..100}; do
    ! "$dir/sub/program" 2>/dev/null || break
    sleep 0.1
done
expect 0 "a program that was written is run" "$dir/sub/program"
stop "stop after rddp nfs"

# When a file exceeds the file size limit of the server's user, the client gets an error and the server goes on.
unlimited=$rddp
printf '#!/bin/sh\nulimit -f 1000\nexec "%s" "$@"\n' "$rddp" >"$tmp/limited"
chmod 755 "$tmp/limited"
rddp=$tmp/limited
serve --squash none
rddp=$unlimited
expect 1 "a file that is too large" bash -c 'own put "$@"' _ "$tmp/data" "127.0.0.1:$dir/sub/large"
expect_text "a file that is too large" 'the file would be too large' err
expect 0 "the server goes on" bash -c 'own ls "$@"' _ "127.0.0.1:$dir/sub"
stop "stop after a file that is too large"

# --- rpcbind, in a network and a /run of its own -----------------------------------------------------------------------

cat >"$tmp/rpcbind.sh" <<'END'
PATH=$PATH:/usr/sbin:/sbin
ip link set lo up && mount -t tmpfs tmpfs /run && mkdir -p /run/rpcbind || exit 1
known() { rpcinfo 2>/dev/null | awk '$1 == 100003 || $1 == 100005 { print $1, $3, $4 }' | sort | tr '\n' ';'; }
until_known() {
    for _ in {1..100}; do
        [ "$(known)" != "$1" ] || return 0
        sleep 0.05
    done
    echo "rpcbind knows: $(known)"
    exit 1
}
"$1" nfsd --rpcbind --state "$2" -p 0 --rdma-port 0 --mount-port 0 "$3" 2>&1 && exit 1
rpcbind -f -i &
for _ in {1..100}; do
    ! rpcinfo >/dev/null 2>&1 || break
    sleep 0.05
done
"$1" nfsd --rpcbind --quiet --state "$2" "$3" &
server=$!
all='100003 rdma 0.0.0.0.78.81;100003 rdma6 ::.78.81;100003 tcp 0.0.0.0.8.1;100003 tcp6 ::.8.1;'
all+='100005 tcp 0.0.0.0.78.80;100005 tcp6 ::.78.80;'
until_known "$all"
"$1" nfsd --rpcbind --state "$2" -p 0 --rdma-port 0 --mount-port 0 "$3" 2>&1 && exit 1
until_known "$all"
! command -v nfs-ls >/dev/null || nfs-ls "nfs://127.0.0.1$3" || exit 1
"$1" nfs ls "127.0.0.1:$3" || exit 1
kill "$server"
wait "$server" || exit 1
until_known ''
END
namespaces=(unshare --net --pid --fork --kill-child --mount-proc)
if acts_as_others && [ -s /etc/services ] && PATH=$PATH:/usr/sbin command -v rpcbind rpcinfo >/dev/null &&
    "${namespaces[@]}" true 2>/dev/null; then
    expect 0 "--rpcbind" "${namespaces[@]}" bash "$tmp/rpcbind.sh" "$rddp" "$tmp/state" "$dir"
    expect_text "--rpcbind without one" '^rddp nfsd: cannot register at rpcbind: '
    expect_text "--rpcbind with another" '^rddp nfsd: rpcbind has another NFS registered over tcp$'
    expect_text "rddp nfs finds the port of MOUNT" '^a$'
else
    echo "left out: rpcbind, which wants to be root, to act as others, and to have namespaces and /etc/services"
fi

# --- a service manager -------------------------------------------------------------------------------------------------

cat >"$tmp/manager.py" <<'END'
import os, signal, socket, subprocess, sys
name, *command = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0" + name[1:] if name[0] == "@" else name)
s.settimeout(10)
child = subprocess.Popen(command, env=dict(os.environ, NOTIFY_SOCKET=name))
try:
    assert s.recv(100) == b"READY=1"
    child.send_signal(signal.SIGTERM)
    assert s.recv(100) == b"STOPPING=1"
    assert child.wait(10) == 0
finally:
    child.kill()
END
for name in "$tmp/notify" "@rddp-nfsd-$$"; do
    expect 0 "service manager at $name" python3 "$tmp/manager.py" "$name" "$rddp" nfsd "${free[@]}" -p 0 --quiet "$dir"
    [ ! -s "$tmp/out" ] && pass || wrong "--quiet prints"
done

# --- errors ------------------------------------------------------------------------------------------------------------

refuse() { # CODE NAME ARGUMENT...
    expect "$1" "$2" "$rddp" nfsd "${@:3}"
    expect_one_line "$2" nfsd
}
refuse 1 "no such DIR" "${free[@]}" -p 0 "$tmp/nothing"
refuse 1 "DIR is a file" "${free[@]}" -p 0 "$dir/a"
refuse 1 "state in a file" -p 0 --state "$dir/a/state" "$dir"
refuse 1 "a network that is none" "${free[@]}" -p 0 --allow 10.0.0.0/33 "$dir"
refuse 2 "no DIR" -p 0
refuse 2 "no such squash" --squash some "$dir"
refuse 2 "port" -p 65536 "$dir"
refuse 2 "workers" --workers 0 "$dir"
refuse 3 "no such address" "${free[@]}" -p 0 --address no.such.host.invalid "$dir"
if acts_as_others && setpriv --bounding-set -setuid true 2>/dev/null; then
    expect 1 "root that cannot be anybody else" setpriv --bounding-set -setuid "$rddp" nfsd "${free[@]}" -p 0 "$dir"
    expect_one_line "root that cannot be anybody else" nfsd
fi

finish nfsd
