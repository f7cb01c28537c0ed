#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# without.sh - a build can leave out transports and services: nothing of them is inside, the public calls stay and say so, and
# so does the command. All at once, with RDDP_LONG also with the tests that are left, of which the units run; and then each
# alone, which is built with RDDP_LONG.
set -euo pipefail
cd "${RDDP_SOURCE_DIR:?}"
root=$(mktemp -d)
here=$root/build
trap 'rm -rf "$root"' EXIT
fail() { echo "without: $*" >&2; exit 1; }
# Make compiles a whole target again when the flags of one of its files change; Ninja does not, and starts fewer processes.
! command -v ninja >/dev/null || export CMAKE_GENERATOR=Ninja

configure() { # PARTS [CMAKE-OPTION...]: all in one folder, where what two builds have in common is compiled once
    cmake -S . -B "$here" -DRDDP_WITHOUT="$1" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 "${@:2}" \
        --log-level=WARNING >"$root/log" 2>&1 || { tail -20 "$root/log"; fail "CMake makes no build without $1"; }
}

build() { # PARTS TARGET...
    cmake --build "$here" -j "$(nproc)" --target "${@:2}" >"$root/log" 2>&1 || {
        tail -20 "$root/log"
        fail "no build without $1"
    }
}

calls() { # LIBRARY: its public calls
    nm -D --defined-only -f posix "$1" | sed -n 's/^\(rddp_[a-z0-9_]*\)@.*/\1/p' | sort
}

parts='sctp;roce;rpc;nfs;http;verbs'
configure "$parts" -DRDDP_TESTS=OFF
build "$parts" all

symbols=$(nm "$here/librddp-inner.a")
! grep -E ' [Tt] (osctp|ksctp|assoc|sctpddp|roce_host|roce_pair|rcm|rc_pair|bth)_' <<<"$symbols" || fail "a transport that was left out is inside"
diff <(calls "$RDDP_BUILD_DIR/librddp.so") <(calls "$here/librddp.so") || fail "other public calls"

cat >"$root/program.c" <<'C'
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include <rddp/ib.h>
#include <rddp/rddp.h>

#define SAYS(call, error) ((call) == (error) || (fprintf(stderr, "%s\n", #call), 0))

int main(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *addr = (struct sockaddr *)&to;
    struct rddp_context *context = rddp_open(NULL);
    struct rddp_pd *pd = rddp_alloc_pd(context);
    struct rddp_event_channel *events = rddp_create_event_channel(context);
    struct rddp_conn_attr attr;
    struct rddp_qp_attr qp_attr;
    struct rddp_qp *qp;

    rddp_qp_attr_init(&qp_attr);
    qp_attr.send_cq = qp_attr.recv_cq = rddp_create_cq(context, 16, NULL, NULL);
    qp = rddp_create_qp(pd, &qp_attr);
    rddp_conn_attr_init(&attr);
    for (attr.wire.wire = RDDP_WIRE_SCTP; attr.wire.wire <= RDDP_WIRE_ROCE; attr.wire.wire++) {
        if (!SAYS(rddp_connect(qp, events, addr, sizeof(to), &attr), -EPROTONOSUPPORT) ||
            !SAYS(rddp_listen(events, addr, sizeof(to), 1, &attr.wire, NULL), NULL) || !SAYS(errno, EPROTONOSUPPORT))
            return 1;
    }
    qp_attr.type = RDDP_QPT_RC;
    return !SAYS(rddp_create_qp(pd, &qp_attr), NULL) || !SAYS(errno, EPROTONOSUPPORT) ||
           !SAYS(rddp_path_mtu(addr, sizeof(to)), -EPROTONOSUPPORT);
}
C
cc -Iinclude -Wall -Wextra -Werror "$root/program.c" -o "$root/program" -L"$here" -lrddp -Wl,-rpath,"$here"
"$root/program" 2>"$root/log" || { cat "$root/log"; fail "the public calls do not say EPROTONOSUPPORT"; }
grep -q 'has no SCTP: it was left out' "$root/log" && grep -q 'has no RoCE: it was left out' "$root/log" || fail "no line in the log"

if [ -x "$here/rddp" ]; then
    for command in nfs nfsd mount http run env; do
        code=0
        "$here/rddp" "$command" 2>"$root/log" || code=$?
        [ $code = 2 ] && grep -q "this build has no '$command'" "$root/log" || fail "rddp $command: code $code: $(cat "$root/log")"
    done
    for wire in sctp roce; do
        ! "$here/rddp" ping --wire $wire 127.0.0.1 2>"$root/log" || fail "rddp ping --wire $wire"
        grep -qi "this build of rddp has no $wire" "$root/log" || fail "rddp ping --wire $wire: $(cat "$root/log")"
    done
fi

if [ -n "${RDDP_LONG:-}" ]; then
    configure "$parts" -DRDDP_TESTS=ON
    build "$parts" all
    ctest --test-dir "$here" -L unit -j "$(nproc)" >"$root/log" 2>&1 || { tail -20 "$root/log"; fail "unit tests"; }
    grep -o '[0-9]* tests failed out of [0-9]*' "$root/log"
fi
for part in sctp roce rpc nfs http verbs; do
    configure "$part" -DRDDP_TESTS=ON
    [ -n "${RDDP_LONG:-}" ] || continue
    build "$part" product unit_tests
    echo "without $part: built"
done
echo "without: $parts were left out"
