#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# units.sh - tests the systemd units of `rddp serve` and `rddp http`: they are valid and confined, and each server does its
# work with the user, the capabilities and the system calls that its unit leaves it. Needs root, strace and systemd-analyze.
set -uo pipefail
cannot() { echo "units: $*"; exit 77; }
for command in systemd-analyze strace setpriv python3 curl; do
    command -v $command >/dev/null || cannot "no $command"
done
[ "$(id -u)" = 0 ] || cannot "not root"
if [ -z "${IN_OWN_NETWORK:-}" ]; then
    unshare -n true 2>/dev/null || cannot "no network namespace"
    IN_OWN_NETWORK=1 exec unshare -n "$0"
fi
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"
build=${RDDP_BUILD_DIR:?}
ip link set lo up
unprivileged=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)
chmod 755 "$tmp"
mkdir -m 777 "$tmp/files" "$tmp/run"
cp "$rddp" "$build"/librddp.so.0 "$tmp/run/"
chmod 755 "$tmp/run/"*
export LD_LIBRARY_PATH=$tmp/run
export ASAN_OPTIONS=detect_leaks=0 # LeakSanitizer cannot run under strace
"${unprivileged[@]}" strace -o "$tmp/run/trace" true 2>/dev/null || cannot "strace may not trace"

EXPOSED=20 # tenths; without any confinement it is 96
for server in serve http; do
    unit=$build/rddp-$server.service
    sed "s|^ExecStart=[^ ]*|ExecStart=$rddp|" "$unit" >"$tmp/rddp-$server.service"
    expect 0 "$server: valid" systemd-analyze verify --man=no "$tmp/rddp-$server.service"
    [ ! -s "$tmp/err" ] || wrong "$server: valid, with complaints"
    systemd-analyze security --help | grep -- --offline >/dev/null || continue
    expect 0 "$server: confined" systemd-analyze security --offline=true --threshold=$EXPOSED --no-pager "$tmp/rddp-$server.service"
done

# Prints the system calls that a unit allows: the groups after = without those after =~.
cat >"$tmp/allowed.py" <<'END'
import re
import subprocess
import sys

def calls(group):
    lines = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True).stdout
    for word in (line.strip() for line in lines.splitlines()[1:]):
        if word.startswith("@"):
            yield from calls(word)
        elif word and not word.startswith("#"):
            yield word

allowed = set()
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("SystemCallFilter=~"):
        for group in line.split("~")[1].split():
            allowed -= set(calls(group))
    elif line.startswith("SystemCallFilter="):
        for group in line.split("=")[1].split():
            allowed |= set(calls(group))
allowed |= set(calls("@default"))
with open(sys.argv[2], encoding="utf-8", errors="replace") as trace:
    used = set(re.findall(r"^(?:\d+ +)?(\w+)\(", trace.read(), re.M))
if len(used) < 20:
    sys.exit("nothing was traced")
# Raising the limit of descriptors and the like may fail: the unit has set it.
spared = {"prlimit64", "setrlimit", "sched_setaffinity"}
foreign = sorted(used - allowed - spared - {"execve"})
sys.exit("not allowed by the unit: " + " ".join(foreign) if foreign else 0)
END
cat >"$tmp/notified.py" <<'END'
import os
import socket
import sys

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
s.settimeout(60)
while True:
    print(s.recv(100).decode(), flush=True)
END

# start_as CAPABILITIES SUBCOMMAND...: the server as its unit starts it; sets `server`. $tmp/said is what it notified.
start_as() {
    local capabilities=$1
    shift
    rm -f "$tmp/run/notify"
    python3 "$tmp/notified.py" "$tmp/run/notify" >"$tmp/said" 2>/dev/null &
    listener=$!
    eventually test -S "$tmp/run/notify"
    : >"$tmp/server.out"
    NOTIFY_SOCKET=$tmp/run/notify setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set "$capabilities" \
        --inh-caps "$capabilities" --ambient-caps "$capabilities" strace -f -qq -o "$tmp/run/trace" "$tmp/run/rddp" "$@" \
        >"$tmp/server.out" 2>"$tmp/server.err" &
    server=$!
    eventually grep -q '^READY=1$' "$tmp/said" || wrong "$2: it does not say that it is ready: $(cat "$tmp/server.err")"
}
stop_as() { # NAME
    pkill -TERM -P "$server"
    ends 0 "$1"
    eventually grep -q '^STOPPING=1$' "$tmp/said" || wrong "$1: it does not say that it ends"
    kill "$listener"
    expect 0 "$1: system calls" python3 "$tmp/allowed.py" "$build/rddp-$1.service" "$tmp/run/trace"
}

head -c 9000000 /dev/urandom >"$tmp/large"
start_as -all serve -a 127.0.0.1 -p 18516 "$tmp/files"
expect 0 "push" "$rddp" cp -q "$tmp/large" 127.0.0.1:
expect 0 "again, compared" "$rddp" cp -q --checksum "$tmp/large" 127.0.0.1:
expect 0 "pull" "$rddp" cp -q -r 127.0.0.1:. "$tmp/back/"
cmp -s "$tmp/large" "$tmp/files/large" || wrong "serve: another file"
stop_as serve

if ip tuntap add dev probe mode tun 2>/dev/null; then
    start_as -all,+net_admin http --packet 10.79.0.2/24 --writable serve "$tmp/files"
    expect 0 "put" curl -sSf -T "$tmp/large" http://10.79.0.2/put
    expect 0 "get" curl -sSf -o "$tmp/got" http://10.79.0.2/put
    cmp -s "$tmp/large" "$tmp/got" || wrong "http: another file"
    stop_as http
else
    echo "left out: no TUN device can be made"
fi
finish units
