#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# http.sh - tests `rddp http`. With rddp at both ends, bodies are placed directly. With curl, Python's server and nginx over
# the kernel's TCP, which has no RDMA option, no data are lost. A hostile client is refused. tshark checks the options.
# TCPOPT-3.1.7-01
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3 curl
in_own_network "$@"
rddp=$RDDP_BUILD_DIR/rddp here=10.71.0.2 there=10.72.0.2
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward 2>/dev/null || cannot "no forwarding"
ip tuntap add dev probe mode tun 2>/dev/null || cannot "no TUN device can be made"

srv=$dir/srv got=$dir/got
mkdir "$srv" "$srv/sub" "$got" "$dir/outside"
echo 'secret octets' | tee "$dir/secret" >"$dir/outside/secret"
ln -s ../secret "$srv/out"
ln -s ../outside "$srv/out-dir"
mkfifo "$srv/pipe"
head -c 5000000 /dev/urandom >"$srv/big"
head -c 100000 /dev/urandom >"$srv/middle"
head -c 20000 /dev/urandom >"$srv/a b%c<d>&.x"
echo hello >"$srv/small"
: >"$srv/empty"
awkward='a%20b%25c%3Cd%3E%26.x'

server=
serve() { # OPTION... DIR
    : >"$dir/listening"
    "$rddp" http serve -q --packet $here/24 "$@" >"$dir/listening" 2>"$dir/server" &
    server=$!
    started=("$server")
    until grep -q listening "$dir/listening"; do
        kill -0 "$server" 2>/dev/null || fail "serve $*: $(cat "$dir/server")"
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
    timeout 100 "$rddp" http --packet $there/24 "$@" >"$dir/said" 2>&1 || is=$?
    [ $is = "$code" ] || fail "http $*: exit code $is, not $code: $(cat "$dir/said")"
}
same() { cmp "$1" "$2" || fail "$1 and $2 differ"; }
says() { grep -qE -e "$1" "$dir/said" || fail "no '$1' in: $(cat "$dir/said")"; }
url=http://$here

# --- ourselves at both ends -----------------------------------------------------------------------------------------

fetch() { # WHAT OPTION...: every file, and one that is not there between them
    local what=$1
    shift
    rm -f "$got"/*
    client 1 get -o "$got" "$@" "$url/big" "$url/small" "$url/none" "$url/empty" "$url/$awkward" "$url/middle" "$url/"
    says 'none: 404 Not Found'
    for file in big small empty middle 'a b%c<d>&.x'; do same "$srv/$file" "$got/$file"; done
    grep -q "href=\"./$awkward\"" "$got/index.html" || fail "the listing: $(cat "$got/index.html")"
    echo "$what: $(tail -1 "$dir/said")"
}
serve "$srv"
fetch placed # TCPOPT-5.2.1-02: each file where its request wanted it
says '^big: 5000000 octets, 5000000 placed, verified$'
says '^middle: 100000 octets, 100000 placed, verified$'
says '^empty: 0 octets, 0 placed, verified$'
says '^index.html: [0-9]* octets, [1-9][0-9]* placed, not verified$' # TCPOPT-5.2.2-02: of unknown length, the form of 16 octets
fetch "with losses" --packet-lose 2000
says '^big: 5000000 octets, 5000000 placed, verified$'
fetch "without the option" --no-option
says '^6 files, 1 failed, [0-9]* octets, 0 placed'
fetch "one by one" --depth 1
client 1 put "$srv/small" "$url/new"
says '403 Forbidden'
[ ! -e "$srv/new" ] || fail "a file was made in what is read-only"
client 0 get -o "$dir/one" "$url/small"
same "$dir/one" "$srv/small"
stop
serve --no-option "$srv"
fetch "the server has none"
stop

put() { # WHAT OPTION...
    local what=$1
    shift
    rm -f "$srv/sub"/*
    client 0 put "$@" "$srv/big" "$srv/a b%c<d>&.x" "$srv/empty" "$srv/middle" "$url/sub/"
    for file in big middle empty 'a b%c<d>&.x'; do same "$srv/$file" "$srv/sub/$file"; done
    echo "$what: $(tail -1 "$dir/said"); $(grep -c 'placed in the file' "$dir/listening" || true) placed"
}
: >"$dir/listening"
"$rddp" http serve --writable --packet $here/24 --limit 6M "$srv" >"$dir/listening" 2>"$dir/server" &
server=$!
started=("$server")
until grep -q listening "$dir/listening"; do sleep 0.05; done
grep -q 'can write' "$dir/server" || fail "no warning: $(cat "$dir/server")"
put "put"
says '^/sub/big: 5000000 octets, verified$'
grep -qE 'PUT /sub/big: 201, 5000000 octets, [1-9][0-9]+ placed in the file' "$dir/listening" || fail "nothing was placed: $(cat "$dir/listening")"
put "put, with losses" --packet-lose 2000
put "put, without the option" --no-option
client 0 put - "$url/sub/piped" <"$srv/big"
cat "$srv/middle" | timeout 60 "$rddp" http --packet $there/24 -q put - "$url/sub/piped" || fail "put from a pipe"
same "$srv/middle" "$srv/sub/piped"
head -c 7000000 /dev/zero >"$dir/large"
client 1 put "$dir/large" "$srv/small" "$url/sub/"
says '413 Content Too Large'
same "$srv/small" "$srv/sub/small"
stop
# More than has room on the disk when the head has come: most of what follows is placed, too.
: >"$dir/listening"
"$rddp" http serve --writable --packet $here/24 "$srv" >"$dir/listening" 2>"$dir/server" &
server=$!
started=("$server")
until grep -q listening "$dir/listening"; do sleep 0.05; done
head -c 60000000 /dev/urandom >"$dir/long"
client 0 put "$dir/long" "$url/sub/"
same "$dir/long" "$srv/sub/long"
grep -qE 'PUT /sub/long: 201, 60000000 octets, [2-6][0-9]{7} placed in the file' "$dir/listening" || fail "little was placed: $(cat "$dir/listening")"
rm "$dir/long" "$srv/sub/long"
stop

# --- curl, over the kernel's TCP ------------------------------------------------------------------------------------

serve --writable --limit 1M --timeout 2 "$srv"
cd "$dir"
curl -sS "$url/big" "$url/small" "$url/$awkward" -o c1 -o c2 -o c3
same c1 "$srv/big"
same c2 "$srv/small"
same c3 "$srv/a b%c<d>&.x"
curl -sSI "$url/big" | grep 'Content-Length: 5000000' >/dev/null || fail "HEAD"
curl -sSL "$url/sub" | grep 'href="./big"' >/dev/null || fail "a directory without a slash"
curl -sS --http1.0 "$url/small" | cmp - "$srv/small" || fail "HTTP/1.0"
summed=(-H 'TE: trailers' -H 'Want-Repr-Digest: xxh3-128=1')
curl -sS --raw "${summed[@]}" "$url/small" | tr -d '\r' | tail -n 2 | head -n 1 >said
[ "$(cat said)" = 'Repr-Digest: xxh3-128=:a7qGx+Bp9W1aELQ18cjknA==:' ] || fail "another digest: $(cat said)"
curl -sS "${summed[@]}" "$url/big" "$url/empty" -o c1 -o c2
same c1 "$srv/big"
same c2 "$srv/empty"
curl -sS -D said -H 'Want-Repr-Digest: xxh3-128=1' "$url/small" -o c1
! grep -i digest said || fail "a trailer for a client that takes none"
truncate -s 64M "$srv/changes" # more than the server reads ahead
python3 - $here "$srv/changes" <<'END' || fail "a digest of a file that was changed meanwhile"
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
s.connect((sys.argv[1], 80))
s.sendall(b"GET /changes HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nWant-Repr-Digest: xxh3-128=1\r\nConnection: close\r\n\r\n")
s.recv(1000)
with open(sys.argv[2], "r+b") as file:
    file.write(b"x")
end = b""
while part := s.recv(1 << 20):
    end = (end + part)[-100:]
assert end.endswith(b"\r\n0\r\n\r\n"), end
END
rm "$srv/changes"
head -c 900000 "$srv/big" >part
[ "$(curl -sS -o said -w '%{http_code}' -T part "$url/curl")" = 201 ] || fail "curl's PUT: $(cat said)"
same part "$srv/curl"
[ "$(curl -sS -o said -w '%{http_code}' -T - "$url/curl" <"$srv/middle")" = 204 ] || fail "curl's PUT in chunks: $(cat said)"
same "$srv/middle" "$srv/curl"
[ "$(curl -sS -o said -w '%{http_code}' -T "$srv/big" "$url/curl")" = 413 ] || fail "curl's large PUT: $(cat said)"
same "$srv/middle" "$srv/curl"
timeout 120 python3 "$RDDP_SOURCE_DIR/tests/interop/lib/http_peer.py" $here 80 "$srv" || fail "a peer that means no good"
curl -sS "$url/big" | cmp - "$srv/big" || fail "behind all that"
stop
ip addr add 10.75.0.1/32 dev lo
serve --clients 4 --writable "$srv"
timeout 180 python3 - $here <<'END' || fail "clients without a place"
import socket, struct, sys, time
def connect():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(20) # less than the server's 60
    s.connect((sys.argv[1], 80))
    return s
def get(s, name, close=True):
    s.sendall(b"GET /" + name + b" HTTP/1.1\r\nHost: a\r\n" + (b"Connection: close\r\n" if close else b"") + b"\r\n")
def rest(s):
    got = b""
    while part := s.recv(65536):
        got += part
    return got
# Clients that have gone, by a reset and by a FIN that the answer meets with one, leave their places at once.
for i in range(8):
    s = connect()
    get(s, b"big", close=False)
    if i % 2:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
s = connect()
get(s, b"small")
assert rest(s).endswith(b"hello\n")
# Silent clients hold all places: the longest silent one gives way to each newcomer.
silent = [connect() for _ in range(4)]
for _ in range(2):
    s = connect()
    get(s, b"small")
    assert rest(s).endswith(b"hello\n")
gone = 0
for s in silent:
    s.settimeout(0.1)
    try:
        gone += s.recv(1) == b""
    except ConnectionResetError:
        gone += 1
    except TimeoutError:
        pass
assert 1 <= gone <= 2, gone
for s in silent:
    s.close()
# So does one with the beginning of a request, though an octet of it comes now and then.
half = [connect() for _ in range(4)]
late = connect()
get(late, b"small")
late.setblocking(False)
got, end = b"", time.monotonic() + 10 # less than the time that a head may take
while not got.endswith(b"hello\n"):
    assert time.monotonic() < end, "no place for a whole request beside four that begin"
    for s in half:
        try:
            s.sendall(b"G")
        except OSError:
            pass
    time.sleep(0.2)
    try:
        got += late.recv(65536)
    except BlockingIOError:
        pass
for s in half:
    s.close()
# Clients that are served keep their places, however slowly they read.
slow = [connect() for _ in range(4)]
for s in slow:
    get(s, b"big")
    s.recv(1)
late = connect()
get(late, b"small")
late.settimeout(2)
try:
    assert not late.recv(1), "an answer, though all places are taken"
except TimeoutError:
    pass
came, reads = dict.fromkeys(slow, 0), list(slow)
while reads: # in turn: on a busy machine one after the other would stop the last of them for too long
    for s in list(reads):
        part = s.recv(65536)
        came[s] += len(part)
        if not part:
            reads.remove(s)
assert all(n > 5000000 for n in came.values()), came.values()
late.settimeout(20)
assert rest(late).endswith(b"hello\n")
# But not if nothing moves: two that stop in the middle of a PUT, and two that stop reading.
still = [connect() for _ in range(4)]
for i, s in enumerate(still):
    if i % 2:
        s.sendall(b"PUT /still%d HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc" % i)
    else:
        get(s, b"big")
        s.recv(1)
late = connect()
get(late, b"small")
late.settimeout(45) # less than the server's 60
assert rest(late).endswith(b"hello\n")
for s in still:
    s.close()
# And no address keeps all places from another: of four that read slowly, one gives way, and one alone.
slow = [connect() for _ in range(4)]
for s in slow:
    get(s, b"big")
    s.recv(1)
other = socket.socket()
other.settimeout(20)
other.bind(("10.75.0.1", 0))
other.connect((sys.argv[1], 80))
get(other, b"small")
assert rest(other).endswith(b"hello\n")
whole = 0
for s in slow:
    try:
        whole += len(rest(s)) > 5000000
    except ConnectionResetError:
        pass
assert whole == 3, whole
END
stop
# The limit of the size of files is an answer, not the end of the server.
ulimit -S -f 100 # KiB
serve --writable "$srv"
ulimit -S -f unlimited
[ "$(curl -sS -o said -w '%{http_code}' -T part "$url/beyond")" = 507 ] || fail "beyond the limit of the size of files: $(cat said)"
client 1 put "$srv/middle" "$srv/big" "$url/sub/"
says '507 Insufficient Storage'
curl -sS "$url/small" | cmp - "$srv/small" || fail "behind the limit of the size of files"
[ -z "$(find "$srv" -name '*beyond*')" ] || fail "left behind: $(ls -A "$srv")"
stop
serve --allow 10.99.0.0/16 "$srv"
! curl -sS "$url/small" >"$dir/said" 2>&1 || fail "an address that --allow does not have"
stop
grep -q ': refused: ' "$dir/server" || fail "no line about it"

# --- our client, and servers of others ------------------------------------------------------------------------------

# The servers can listen on this address only when the interface has it.
ip addr add 10.73.0.1/24 dev lo
elsewhere() { # NAME URL
    rm -f "$got"/*
    for _ in $(seq 100); do
        ! curl -sS -o /dev/null "$2/small" 2>/dev/null || break
        sleep 0.1
    done
    client 1 get -o "$got" "$2/big" "$2/small" "$2/none" "$2/empty" "$2/$awkward" "$2/middle"
    for file in big small empty middle 'a b%c<d>&.x'; do same "$srv/$file" "$got/$file"; done
    says '^5 files, 1 failed, [0-9]* octets, 0 placed'
    echo "$1: $(tail -1 "$dir/said")"
}
for protocol in HTTP/1.0 HTTP/1.1; do
    python3 - "$srv" $protocol >"$dir/python" 2>&1 <<'END' &
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
http.server.SimpleHTTPRequestHandler.protocol_version = sys.argv[2]
http.server.ThreadingHTTPServer(("10.73.0.1", 8000), handler).serve_forever()
END
    started=($!)
    elsewhere "Python, $protocol" http://10.73.0.1:8000
    kill "${started[0]}"
    wait "${started[0]}" || true
    started=()
done
if command -v nginx >/dev/null; then
    cat >"$dir/nginx.conf" <<END
daemon off; pid $dir/nginx.pid; error_log stderr; worker_processes 1; user root;
events { worker_connections 64; }
http { access_log off; client_body_temp_path $dir; proxy_temp_path $dir; fastcgi_temp_path $dir; uwsgi_temp_path $dir;
    scgi_temp_path $dir; keepalive_requests 4; server { listen 10.73.0.1:8001; root $srv; } }
END
    nginx -c "$dir/nginx.conf" 2>"$dir/nginx" &
    started=($!)
    elsewhere nginx http://10.73.0.1:8001
    kill "${started[0]}"
    wait "${started[0]}" || true
    started=()
else
    echo "no nginx here"
fi
client 3 get http://10.73.0.1:8009/x
client 2 get ftp://10.73.0.1/x

# --- the options on the wire ----------------------------------------------------------------------------------------

ip tuntap add dev ours mode tun vnet_hdr
ip link set ours up
start_capture "$dir/pcap" ours
serve --writable --packet-device ours "$srv"
client 0 get -o "$got" "$url/middle" "$url/a%20b%25c%3Cd%3E&.x" "$url/"
client 0 put "$srv/middle" "$srv/a b%c<d>&.x" "$url/sub/"
stop
stop_capture
tshark -r "$dir/pcap" -Y 'tcp.len > 0 && tcp.option_kind == 25' -T fields -e tcp.stream -e tcp.srcport -e tcp.options 2>/dev/null >"$dir/options"
python3 - "$dir/options" <<'END' || fail "options that should not be: $(head -3 "$dir/options")"
import collections
import sys

seen = collections.defaultdict(lambda: collections.defaultdict(set))
for line in open(sys.argv[1]):
    stream, port, options = line.split()
    octets = bytes.fromhex(options.replace(":", ""))
    at = 0
    while at < len(octets) and octets[at] != 25:
        at += 1 if octets[at] < 2 else octets[at + 1]
    length = octets[at + 1]
    if length >= 16:
        word = int.from_bytes(octets[at + 2:at + 8], "big")
        seen[stream, port == "80"][word & (1 << 46) - 1].add((length, word >> 46 & 1))
# The first requests are three HEADs, or one HEAD and the requests pipelined behind it. The data of a GET carry the index of
# the request, U is 0, and a listing has no total.
gets, puts = seen["0", True], seen["1", False]
print("GET:", dict(gets), "PUT:", dict(puts))
# TCPOPT-5.2.1-01 TCPOPT-5.2.2-01
assert len(gets) == 3 and all(0 < rid < 6 for rid in gets)
assert sorted(next(iter(forms)) for forms in gets.values()) == [(16, 0), (20, 0), (20, 0)], gets
assert all(len(forms) == 1 for forms in gets.values())
# TCPOPT-5.2.3-01
assert dict(puts) == {0: {(20, 1)}, 1: {(20, 1)}}, puts
assert not seen["0", False] and not seen["1", True]
END
echo "http: all as it should be"
