#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# usage.sh - tests help, wrong usage and completion, and that the manual page of each subcommand has all of its options.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

refuse() { # ARGUMENT ...: exit code 2, nothing on standard output
    expect 2 "wrong usage" "$rddp" "$@"
    if [ -s "$tmp/err" ] && [ ! -s "$tmp/out" ]; then pass; else wrong "wrong usage: $*: says it in the wrong place"; fi
}

HELP_LINES=30
transported=0
options_of() { # SUBCOMMAND
    { "$rddp" "$1" --help; "$rddp" "$1" --help-transport; } 2>/dev/null | sed -n 's/^  .\{4\}\(--[a-z0-9-]*\).*/\1/p'
}

for word in --help -h help; do
    expect 0 "$word" "$rddp" "$word"
    expect_text "$word" '^  ping +[a-z]'
done
expect 0 "version" "$rddp" --version
expect_text "version" '^rddp [0-9]+\.[0-9]+\.[0-9]+$'

mapfile -t commands < <("$rddp" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for command in "${commands[@]}"; do
    expect 0 "help $command" "$rddp" help "$command"
    cp "$tmp/out" "$tmp/help"
    expect 0 "$command --help" "$rddp" "$command" --help
    if cmp -s "$tmp/out" "$tmp/help"; then pass; else wrong "help $command is not $command --help"; fi
    expect_text "$command --help" "^usage: rddp $command"
    refuse "$command" --no-such-option
    [ "$command" != help ] || continue
    [ "$(wc -l <"$tmp/help")" -le $HELP_LINES ] || wrong "$command --help: $(wc -l <"$tmp/help") lines"
    if grep -qe --help-transport "$tmp/help"; then
        expect 0 "$command --help-transport" "$rddp" "$command" --help-transport
        expect_text "$command --help-transport" '^ +--packet ADDR'
        transported=$((transported + 1))
    fi
    for hidden in first-delay packet-lose packet-checksums; do
        if ! grep -qe "--$hidden" "$tmp/out" "$tmp/help"; then pass; else wrong "$command: it shows --$hidden"; fi
    done
    page=$RDDP_SOURCE_DIR/doc/man/rddp-$command.1
    [ -f "$page" ] || { wrong "there is no page rddp-$command.1"; continue; }
    while read -r option; do
        if grep -qF -e "$option" <(sed 's/\\-/-/g' "$page" "${page%-*}-transport.7"); then pass; else wrong "$page does not explain $option"; fi
    done < <(options_of "$command")
done
wanted=8
"$rddp" mount --help | grep -- --server-permissions >/dev/null || wanted=7 # built without libfuse3
if [ $transported -ge $wanted ]; then pass; else wrong "only $transported subcommands choose a transport"; fi
if [ ${#commands[@]} -ge 3 ]; then pass; else wrong "only ${#commands[@]} subcommands"; fi

refuse
refuse no-such-command
refuse help no-such-command
refuse ping
refuse ping -c
refuse ping -c 0 host
refuse ping -c 1x host
refuse ping -c -1 host
refuse ping -c 99999999999999999999 host
refuse ping -s 2M host
refuse ping -s 1Q host
refuse ping -s 99999999999999999999G host
refuse ping -i x host
refuse ping -i nan host
refuse ping -p 65536 host
refuse ping one two
refuse ping --server one
refuse ping --server --json
refuse ping --wire carrier-pigeon host
refuse ping --mpa-rev 3 host
refuse ping --crc host
refuse ping --no-markers host
refuse ping --mtu 1500 host
refuse ping --wire sctp --mtu 575 host
refuse ping --wire sctp --mtu 64001 host
refuse ping --packet 10.9.0.2/24 --mtu 1279 host
refuse ping --packet 10.9.0.2/24 --mtu 65536 host
refuse perf --thread host
refuse ping --rping -S 22 host
refuse ping host:
refuse ping host:port
refuse ping host:65536
refuse ping '[::1'
refuse ping '[::1]x'
refuse ping -V host
refuse perf
refuse perf --loopback --server
refuse perf --loopback no-such-test
refuse perf --loopback -s 0
refuse perf --loopback -s 8:4
refuse perf --loopback -s 1G
refuse perf --loopback -s ,
refuse perf --loopback -n 5 -t 1
refuse perf --loopback -n 0
refuse perf --server write
expect_one_line "wrong usage" perf
refuse http
refuse http serve
refuse http serve DIR
refuse nfs --hand-off ls host:/x
refuse nfs --packet 10.9.0 ls host:/x
refuse nfs --packet-lose 5 ls host:/x
refuse nfsd --hand-off .
refuse http --packet 10.9.0.2/24 serve
refuse http --packet 10.9.0.2/24 fetch http://host/x
refuse http --packet 10.9.0.2/24 get host/x
refuse http --packet 10.9.0.2/24 get http://user@host/x
refuse http --packet 10.9.0.2/24 get http://one/x http://two/x
refuse http --packet 10.9.0.2/24 get 'http://host/a b'
refuse http --packet 10.9.0.2/24 get http://host/../x
refuse http --packet 10.9.0.2/24 put FILE
refuse http --packet 10.9.0.2/24 put FILE FILE http://host/x
refuse http --packet 10.9.0.2/24 --depth 65 get http://host/x
refuse ping --wire sctp --own-address 127.0.0.1 127.0.0.1
refuse ping --wire sctp --udp-port 0 127.0.0.1
refuse ping --wire sctp --sctp usrsctp 127.0.0.1
refuse ping --wire sctp --sctp kernel --own-address localhost 127.0.0.1
refuse ping --wire sctp --sctp neither 127.0.0.1

# If the kernel has no SCTP, or no SCTP over UDP, the command reports it.
expect 3 "kernel SCTP" "$rddp" ping --wire sctp --sctp kernel 127.0.0.1:1
if grep -qE 'this kernel has .*(modprobe sctp|net.sctp.udp_port)|refused' "$tmp/err"; then pass; else wrong "kernel SCTP: $(cat "$tmp/err")"; fi

# --- completion ----------------------------------------------------------------------------------------------------

complete_words() { # WORD ...: what is offered for the last one
    bash -c 'source "$1/packaging/completion/rddp"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _rddp; echo "${COMPREPLY[*]}"' _ "$RDDP_SOURCE_DIR" "$rddp" "$@"
}
offers() { # EXPECTED WORD ...
    local expected=$1 got
    shift
    got=$(complete_words "$@")
    if [ "$got" = "$expected" ]; then pass; else wrong "completion of '$*': '$got', not '$expected'"; fi
}
offers "ping" pin
offers "--version" --v
offers "ping" help pi
offers "--markers --mpa-rev --mtu" ping --m
offers "--server --size --stable --sctp" perf --s
offers "1 2" ping --mpa-rev ""
offers "iwarp" perf --wire i
offers "own" perf --sctp o
offers "write write-imm" perf --loopback w
offers "send swap" perf somehost s
offers "ls stat df cat rm mkdir get put cp exports" nfs ""
offers "get" nfs -r g
offers "serve get put" http ""
offers "" ping -c ""
offers "" perf --size ""
for command in "${commands[@]}"; do
    [ "$command" != help ] || continue
    missing=$(comm -23 <(options_of "$command" | sort -u) <(complete_words "$command" -- | tr ' ' '\n' | sort -u))
    if [ -z "$missing" ]; then pass; else wrong "completion of $command: without $missing"; fi
done

finish usage
