#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# http_web.sh - `rddp http` as those meet it who know the web: browsers, curl, wget, and servers that mean no good.
set -euo pipefail
# shellcheck source=tests/interop/lib/capture.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/interop/lib/capture.sh"
needs python3 curl
in_own_network "$@"
rddp=$RDDP_BUILD_DIR/rddp here=10.71.0.2 there=10.72.0.2 url=http://10.71.0.2
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward 2>/dev/null || cannot "no forwarding"
ip tuntap add dev probe mode tun 2>/dev/null || cannot "no TUN device can be made"
srv=$dir/srv got=$dir/got
mkdir "$srv" "$got"
head -c 3000000 /dev/urandom >"$srv/big"
echo hello >"$srv/small"

server=
serve() { # OPTION...
    : >"$dir/listening"
    "$rddp" http serve -q --packet $here/24 "$@" "$srv" >"$dir/listening" 2>"$dir/server" &
    server=$!
    started=("$server")
    until grep -q listening "$dir/listening"; do
        kill -0 "$server" 2>/dev/null || fail "serve $*: $(cat "$dir/server")"
        sleep 0.05
    done
}
stop() { # [SIGNAL]
    kill "${1:--TERM}" "$server"
    wait "$server" || [ "${1:-}" = -KILL ] || fail "the server ended badly: $(cat "$dir/server")"
    started=()
}
client() { # CODE WORD...
    local code=$1 is=0
    shift
    timeout 100 "$rddp" http --packet $there/24 "$@" >"$dir/said" 2>&1 || is=$?
    [ $is = "$code" ] || fail "http $*: exit code $is, not $code: $(cat "$dir/said")"
}
same() { cmp "$1" "$2" || fail "$1 and $2 differ"; }
is_empty() { [ -z "$(ls -A "$1")" ] || fail "$2: left behind: $(ls -A "$1")"; }

# --- what stays behind: nothing -------------------------------------------------------------------------------------

serve --writable
client 1 get -o "$got" "$url/none" "$url/none2"
client 1 get --no-option -o "$got" "$url/none" "$url/none2"
is_empty "$got" "files that are not there"
mkdir "$srv/tmp"
python3 - $here <<'END'
import socket, sys
s = socket.create_connection((sys.argv[1], 80), 20)
s.sendall(b"PUT /tmp/half HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n" + bytes(1000000))
s.sendall(b"")
s.settimeout(0.5)
try:
    s.recv(1)
except TimeoutError:
    pass
END
stop -KILL
if python3 -c 'import os, sys; os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR, 0o600)' "$srv" 2>/dev/null; then
    is_empty "$srv/tmp" "a server that was killed in the middle of a PUT"
else
    echo "no O_TMPFILE here"
fi
rmdir "$srv/tmp"

# --- what browsers, curl, wget and Python expect --------------------------------------------------------------------

mkdir "$srv/list"
for i in $(seq 300 -1 1); do : >"$srv/list/name $i"; done
: >"$srv/list/"$'\e[2Jevil'
: >"$srv/list/a<b>&"
mkdir "$srv/list/sub"
serve --writable
python3 "$RDDP_SOURCE_DIR/tests/interop/lib/http_web.py" $here "$srv" || fail "conditions, ranges, HTTP/1.0"
head -c 1000000 "$srv/big" >"$dir/part"
curl -sS -C - -o "$dir/part" "$url/big" || fail "curl -C"
same "$dir/part" "$srv/big"
! curl -sS -f -r 5000000- -o "$dir/part" "$url/big" 2>/dev/null || fail "curl -r behind the end"
curl -sS -z "$srv/big" -o "$dir/again" -w '%{http_code}' "$url/big" | grep 304 >/dev/null || fail "curl -z"
curl -sS --http1.0 "$url/list/" | grep 'name 300' >/dev/null || fail "a listing in HTTP/1.0"
if command -v wget >/dev/null; then
    mkdir "$dir/wget"
    head -c 1000000 "$srv/big" >"$dir/wget/big"
    (cd "$dir/wget" && wget -q -c "$url/big") || fail "wget -c"
    same "$dir/wget/big" "$srv/big"
    (cd "$dir/wget" && wget -q -c "$url/big") || fail "wget -c of what is whole"
    same "$dir/wget/big" "$srv/big"
    (cd "$dir/wget" && wget -q -N "$url/small" && wget -N "$url/small") >"$dir/said" 2>&1 || fail "wget -N: $(cat "$dir/said")"
    grep -qE '304|not modified' "$dir/said" || fail "wget -N: $(cat "$dir/said")"
    (cd "$dir/wget" && wget -q -r -np -nH "$url/list/") || fail "wget -r"
    [ "$(find "$dir/wget/list" -type f | wc -l)" -ge 302 ] || fail "wget -r: $(find "$dir/wget/list" | wc -l) names"
else
    echo "no wget here"
fi
stop

# --- a copy that was broken off goes on -----------------------------------------------------------------------------

head -c 20000000 /dev/urandom >"$srv/large"
head -c 20000000 /dev/urandom >"$dir/changed"
until [ "$(($(date +%s) - $(stat -c %Z "$srv/large")))" -gt 2 ]; do sleep 0.1; done
cutter=
cut_server() { # ADDRESS OCTETS CUTS TAG [CHANGED]
    python3 "$RDDP_SOURCE_DIR/tests/interop/lib/http_cut.py" "$1" 80 "$srv/large" "$4" "$2" "$3" ${5:+"$5"} >"$dir/cuts" &
    cutter=$!
    started=("$cutter")
    for _ in $(seq 100); do
        ! curl -sS -I -o /dev/null "http://$1/large" 2>/dev/null || return 0
        sleep 0.1
    done
    fail "no server that breaks off"
}
no_cutter() {
    kill "$cutter"
    wait "$cutter" 2>/dev/null || true
    started=()
}
cuts() { tr '\n' ' ' <"$dir/cuts"; }
ip addr add 10.74.0.1/24 dev lo
cut_server 10.74.0.1 9000000 1 '"v1"' # once: the same command goes on over the next connection
client 0 get -o "$got" http://10.74.0.1/large
same "$got/large" "$srv/large"
[ "$(cuts)" = "GET None GET 9000000 " ] || fail "asked for: $(cuts)"
no_cutter
rm "$got/large"
cut_server 10.74.0.1 9000000,end 2 '"v1"' # all has come but the trailer: none of it is asked for twice but the last octet
client 0 get -o "$got" http://10.74.0.1/large
same "$got/large" "$srv/large"
[ "$(cuts)" = "GET None GET 9000000 GET 19999999 " ] || fail "asked for: $(cuts)"
no_cutter
rm "$got/large"
cut_server 10.74.0.1 9000000 1 '"v1"' "$dir/changed" # the file is another one then
client 0 get -o "$got" http://10.74.0.1/large
same "$got/large" "$dir/changed"
no_cutter
rm "$got/large"
is_empty "$got" "a part of a file that has changed since"
cut_server 10.74.0.1 9000000 1 'W/"v1"' # a weak tag does not tell versions apart
client 0 get -o "$got" http://10.74.0.1/large
[ "$(cuts)" = "GET None GET None " ] || fail "asked for: $(cuts)"
no_cutter
rm "$got/large"
cut_server 10.74.0.1 100000 1 '"v1"' # too little to be kept
client 0 get -o "$got" http://10.74.0.1/large
[ "$(cuts)" = "GET None GET None " ] || fail "asked for: $(cuts)"
no_cutter
rm "$got/large"
is_empty "$got" "copies that went on"
# From a server that breaks off until the command gives up, to ours, which places the rest.
serve
tag=$(curl -sSI "$url/large" | tr -d '\r' | sed -n 's/^ETag: //p')
stop
ip addr add $here/32 dev lo
cut_server $here 17000000 3 "$tag"
client 1 get -o "$got" "$url/large"
[ "$(find "$got" -name '.large.rddp-*' -size +15M | wc -l)" = 1 ] || fail "nothing is kept: $(ls -lA "$got")"
no_cutter
ip addr del $here/32 dev lo
part=$(find "$got" -name '.large.rddp-*')
mv "$part" "$dir/part" # with its time, which says that it is stored
# A server that has not sent what lies here cannot say whether that is right, and the client says so. One that has sent it,
# to whomever and however far, gives the digest of the whole; it reads nothing for that.
resumes() { # CODE SAYS OPTION...
    local code=$1 says=$2
    shift 2
    cp -p "$dir/part" "$part"
    client "$code" get "$@" -o "$got" "$url/large"
    grep -qE "$says" "$dir/said" || fail "no '$says' in: $(cat "$dir/said")"
    [ "$code" != 0 ] || same "$got/large" "$srv/large"
    rm -f "$got/large"
    is_empty "$got" "a part that was gone on with"
}
range() { curl -sS "${summed[@]}" -r "$1" --raw -D "$dir/head" -o "$dir/body" "$url/large"; } # OCTETS
trailer() { tail -n 2 "$dir/body" | tr -d '\r' | sed -n 's/^Repr-Digest: //p'; }
summed=(-H 'TE: trailers' -H 'Want-Repr-Digest: xxh3-128=1')
serve
resumes 0 '^large: 20000000 octets, 3000000 placed, 17000000 kept, not verified$'
resumes 0 '^large: 20000000 octets, 0 placed, 17000000 kept, not verified$' --no-option
python3 - $here <<'END'
import socket, struct, sys
s = socket.create_connection((sys.argv[1], 80), 20)
s.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nWant-Repr-Digest: xxh3-128=1\r\n\r\n")
left = 18000000
while left > 0:
    left -= len(s.recv(65536))
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
END
for _ in $(seq 300); do # the server notices a reset now and then
    range 17000000-
    [ -z "$(trailer)" ] || break
    sleep 0.1
done
behind=$(trailer)
[ -n "$behind" ] || fail "no digest of what was sent before: $(cat "$dir/head")"
range 0-9
[ "$(trailer)" = "$behind" ] || fail "another digest of a part: $(trailer), not $behind"
range 0-
[ "$(trailer)" = "$behind" ] || fail "another digest of the whole: $(trailer), not $behind"
resumes 0 '^large: 20000000 octets, 3000000 placed, 17000000 kept, verified$'
resumes 0 '^large: 20000000 octets, 0 placed, 17000000 kept, verified$' --no-option
cp -p "$dir/part" "$dir/whole"
tail -c 100 "$dir/part" | dd of="$dir/part" bs=1 seek=9000000 conv=notrunc status=none # what lies here is changed
touch -r "$dir/whole" "$dir/part"
resumes 1 'another one'
touch "$srv/large" # another version
range 17000000-
[ -z "$(trailer)" ] || fail "the digest of a version that is gone: $(trailer)"
rm "$srv/large"
stop

# --- servers that mean no good --------------------------------------------------------------------------------------

ip addr add 10.73.0.1/24 dev lo
python3 "$RDDP_SOURCE_DIR/tests/interop/lib/http_liar.py" 10.73.0.1 8080 &
started=($!)
for _ in $(seq 100); do
    ! curl -sS -o /dev/null http://10.73.0.1:8080/good 2>/dev/null || break
    sleep 0.1
done
lies() { # CODE NAME
    client "$1" get -o "$got" "http://10.73.0.1:8080/$2"
    [ "$1" = 0 ] || is_empty "$got" "$2"
}
lies 0 good
rm "$got/good"
lies 4 endless-100
lies 1 partial
lies 1 no-content
lies 1 not-modified
for name in sum sum-in-head sum-of-parameters; do
    lies 0 $name
    grep -q "^$name: 5 octets, 0 placed, verified\$" "$dir/said" || fail "$name: not verified: $(cat "$dir/said")"
    rm "$got/$name"
done
for name in wrong-sum wrong-sum-in-{head,head-of-chunks,head-alone,trailer-alone,second-line}; do
    lies 1 $name
    grep -q 'other octets came' "$dir/said" || fail "$name: $(cat "$dir/said")"
done
client 1 put "$srv/small" "http://10.73.0.1:8080/put-sum"
grep -q 'the server has other octets' "$dir/said" || fail "put-sum: $(cat "$dir/said")"
client 1 put "$srv/big" "http://10.73.0.1:8080/early"
grep -q 'before it had the file' "$dir/said" || fail "a success without the file: $(cat "$dir/said")"
kill "${started[0]}"
wait "${started[0]}" 2>/dev/null || true
started=()
echo "http_web: all as it should be"
