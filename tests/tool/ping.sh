#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# ping.sh - tests rddp ping with itself: its own protocol and rping's, both address families, wrong peers, killed processes.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

ipv6=true
grep -qs ' lo$' /proc/net/if_inet6 || ipv6=false

# --- our own protocol ----------------------------------------------------------------------------------------------

start ping --server -a 127.0.0.1
to=127.0.0.1:$port
expect 0 "default" "$rddp" ping -c 3 -i 0 "$to"
expect_text "default" '3 round trips, all verified'
expect_text "default" 'seq=3 time='
for options in --no-crc --markers "--markers --no-crc" "--mpa-rev 1" "--mpa-rev 1 --markers" --p2p "--first-delay 0"; do
    # shellcheck disable=SC2086
    expect 0 "$options" "$rddp" ping -q -c 3 -i 0 $options "$to"
    expect_text "$options" '3 round trips, all verified'
done
expect 0 "without CRC" "$rddp" ping -c 1 --no-crc "$to"
expect_text "the server wants the CRC all the same" 'CRC on'
for size in 0 1 64 1379 64K 1M; do
    expect 0 "size $size" "$rddp" ping -q -c 5 -i 0 -s $size "$to"
done
expect 0 "JSON" "$rddp" ping -c 5 -i 0 --json "$to"
expect_json "JSON" 'v["ok"] and v["verified"] and v["round_trips"] == 5 and v["size_octets"] == 64'
expect_json "JSON" '0 < v["rtt_us_min"] <= v["rtt_us_p50"] <= v["rtt_us_p99"] <= v["rtt_us_max"]'
if getent ahosts localhost >/dev/null; then # a root file system fresh from debootstrap has no /etc/hosts
    expect 0 "a name" "$rddp" ping -q -c 1 "localhost:$port"
fi

for _ in 1 2 3 4 5; do
    "$rddp" ping -q -c 200 -i 0 -s 10000 "$to" >>"$tmp/many" 2>&1 &
    clients[$!]=1
done
for client in "${!clients[@]}"; do
    if wait "$client"; then pass; else wrong "five clients at once: $(cat "$tmp/many")"; fi
done

# shellcheck disable=SC2317 # eventually calls it
says() { grep -q -e "$2" "$tmp/$1"; }
: >"$tmp/out"
"$rddp" ping -i 0.1 "$to" >"$tmp/out" 2>"$tmp/err" &
client=$!
eventually says out 'seq=2 ' || wrong "interrupted: no round trips"
kill -INT $client
wait $client
expect_text "interrupted: a summary" 'round trips, all verified'
stop "server"

if $ipv6; then
    start ping --server -a ::1 -1
    expect 0 "IPv6" "$rddp" ping -c 3 -i 0 "[::1]:$port"
    ends 0 "IPv6, once"
    expect_text "once" 'closed after 3 messages'
    start ping --server -1
    expect 0 "IPv4 on a server of any address" "$rddp" ping -c 3 -i 0 "127.0.0.1:$port"
    ends 0 "any address"
fi

start ping --server -a 127.0.0.1 -1 --immediate
expect 0 "immediate" "$rddp" ping -c 3 -i 0 --immediate "127.0.0.1:$port"
expect_text "immediate" 'CRC on, markers on'
ends 0 "immediate"
start ping --server -a 127.0.0.1 -1 --wire rdmatcp
expect 0 "rdmatcp" "$rddp" ping -c 3 -i 0 -s 100000 --wire rdmatcp "127.0.0.1:$port"
expect_text "rdmatcp" '100000 octets, rdmatcp, CRC on'
ends 0 "rdmatcp"
udp=$((20000 + RANDOM % 12000))
start ping --server -a 127.0.0.1 -1 --wire sctp --udp-port $udp
expect 0 "sctp" "$rddp" ping -c 3 -i 0 -s 100000 --wire sctp --udp-port $udp "127.0.0.1:$port"
expect_text "sctp" '100000 octets, SCTP, chunks of'
ends 0 "sctp"

# --- rping's -------------------------------------------------------------------------------------------------------

for address in 127.0.0.1 $($ipv6 && echo ::1); do
    for options in "-S 23" "-S 64" "-S 65535" "--markers" "--mpa-rev 1"; do
        start ping --rping --server -a "$address" -c 20
        # shellcheck disable=SC2086
        expect 0 "rping $address $options" "$rddp" ping --rping -V -c 20 -a "$address" -p "$port" $options
        expect_text "rping $address $options" '20 round trips, all verified'
        ends 0 "rping server $address $options"
        expect_text "rping server $address $options" 'closed after 20 iterations'
    done
done
start ping --rping --server -P -a 127.0.0.1
for i in 1 2 3; do
    expect 0 "persistent, client $i" "$rddp" ping --rping -v -V -c 2 "127.0.0.1:$port"
    expect_text "persistent, client $i" '^ping data: rdma-ping-1: BCDE[F-Z]{21}\[.\]\^_`abcdefghijklmnopqrs$'
done
stop "persistent"

# --- what is wrong shows -------------------------------------------------------------------------------------------

# A server that echoes messages is not an rping server: it never writes into the sink.
start ping --server -a 127.0.0.1
expect 1 "rping with a peer that does not write" "$rddp" ping --rping -V -c 3 "127.0.0.1:$port"
expect_text "rping with a peer that does not write" 'data mismatch' err
stop "no rping server"
# An rping server takes a message of 16 octets as an advertisement. Its Read of the invalid address ends the connection.
start ping --rping --server -a 127.0.0.1
expect 1 "a peer that reads nonsense" "$rddp" ping -c 3 -s 16 "127.0.0.1:$port"
expect_one_line "a peer that reads nonsense" ping
ends 1 "rping server with nonsense"
expect_one_line "rping server with nonsense" ping
start ping --rping --server -a 127.0.0.1 -c 10
expect 0 "a client that leaves early" "$rddp" ping --rping -c 9 "127.0.0.1:$port"
ends 1 "a client that leaves early"
expect_one_line "a client that leaves early" ping
start ping --rping --server -a 127.0.0.1 -S 100
expect 1 "a buffer larger than the server's" "$rddp" ping --rping -c 3 -S 101 "127.0.0.1:$port"
ends 1 "a buffer larger than the server's"

python3 - >"$tmp/fake" <<'END' &
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
c = s.accept()[0]
c.recv(4096)
c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20)
c.recv(4096)
END
fake=$!
until [ -s "$tmp/fake" ]; do sleep 0.05; done
expect 4 "a peer that is no MPA" "$rddp" ping -c 1 "127.0.0.1:$(cat "$tmp/fake")"
expect_one_line "a peer that is no MPA" ping
kill $fake 2>/dev/null

# --- no server, and deaths --------------------------------------------------------------------------------------

start ping --server -a 127.0.0.1
stop "to have a port without a server"
SECONDS=0
expect 3 "no listener" "$rddp" ping -c 1 "127.0.0.1:$port"
expect_one_line "no listener" ping
expect_text "no listener" "^rddp ping: cannot connect to 127.0.0.1:$port: connection refused$" err
if [ $SECONDS -le 2 ]; then pass; else wrong "no listener: that took $SECONDS s"; fi
expect 3 "no such host" "$rddp" ping -c 1 no-such-host.invalid
expect_one_line "no such host" ping
expect 3 "a foreign address" "$rddp" ping --server -a 192.0.2.1
expect_one_line "a foreign address" ping

# A client whose server is killed notices it at once, not when its patience ends.
for protocol in "-i 0.1" --rping; do
    # shellcheck disable=SC2086
    start ping ${protocol%-i*} --server -a 127.0.0.1
    : >"$tmp/out"
    (
        eventually says out 'seq=2 '
        date +%s >"$tmp/killed"
        kill -9 "$server"
    ) &
    # shellcheck disable=SC2086
    expect 1 "the server is killed ($protocol)" "$rddp" ping $protocol "127.0.0.1:$port"
    expect_one_line "the server is killed ($protocol)" ping
    wait "$server" 2>/dev/null
    took=$(($(date +%s) - $(cat "$tmp/killed")))
    if [ $took -le 10 ]; then pass; else wrong "the server is killed ($protocol): noticed after $took s"; fi
    server=''
done

# A killed client leaves a RST if there are octets that it did not read, else a FIN: the second server is stopped until
# its client has nothing to read.
for stopped in false true; do
    start ping --rping --server -a 127.0.0.1 -c 1000000
    : >"$tmp/killed"
    "$rddp" ping --rping "127.0.0.1:$port" >"$tmp/killed" 2>&1 &
    client=$!
    eventually says killed 'seq=2 ' || wrong "the client is killed: no round trips"
    if $stopped; then
        kill -STOP "$server"
        size=''
        until [ "${size:-}" = "$(wc -c <"$tmp/killed")" ]; do
            size=$(wc -c <"$tmp/killed")
            sleep 0.5
        done
    fi
    kill -9 $client
    wait $client 2>/dev/null
    ! $stopped || kill -CONT "$server" # while it looks for leaks at its end, this signal would hang it
    ends 1 "the client is killed"
    expect_one_line "the client is killed" ping
done

finish ping
