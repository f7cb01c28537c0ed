#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# exports.sh - checks that our libibverbs.so.1 and librdmacm.so.1 export every symbol, under every version, that those of
# Debian export, and beyond them nothing but what other releases of rdma-core have, that our librspreload.so interposes what
# Debian's does, and that they are built as a drop-in has to be: never unloaded, and with no library of rdma-core below.
set -euo pipefail
export LC_ALL=C

ours=${RDDP_BUILD_DIR:?}/verbs-libraries
theirs=/usr/lib/$(${CC:-cc} -print-multiarch)
[ -e "$theirs/libibverbs.so.1" ] && [ -e "$theirs/librdmacm.so.1" ] ||
    { echo "there is nothing to compare with in $theirs (Debian: libibverbs1 librdmacm1)"; exit 77; }
bad=0

# NAME@VERSION, and whether it is code or data. Which version is the default matters to who links with the library alone.
exported() { # LIBRARY
    nm -D --defined-only "$1" | awk '$2 != "A" { sub("@@", "@", $3); print $3, $2 ~ /[BDR]/ ? "data" : "code" }' | sort
}
# Of ours for librdmacm.so.1, of drivers, and of releases after 44.
others='@(RDDP_VERBS|IBVERBS_PRIVATE_[0-9]+|IBVERBS_1\.1[5-8]|RDMACM_1\.[45]) '

for library in libibverbs.so.1 librdmacm.so.1; do
    missing=$(comm -23 <(exported "$theirs/$library") <(exported "$ours/$library"))
    more=$(comm -13 <(exported "$theirs/$library") <(exported "$ours/$library") | grep -Ev "$others" || true)
    [ -z "$missing$more" ] ||
        { printf '%s lacks, or has beyond those of Debian:\n%s\n%s\n' "$library" "$missing" "$more"; bad=1; }
    readelf -d "$ours/$library" | grep 'FLAGS_1.*NODELETE' >/dev/null || { echo "$library can be unloaded"; bad=1; }
    readelf -d "$ours/$library" | grep "SONAME.*\[$library\]" >/dev/null || { echo "$library has another name"; bad=1; }
    echo "$library: $(exported "$theirs/$library" | wc -l) symbols and versions"
done

# What is preloaded interposes all that Debian's does, but the sets that it has since rdma-core 65, and may interpose more.
preload=$ours/librspreload.so
if [ -e "$theirs/rsocket/librspreload.so" ]; then
    missing=$(comm -23 <(exported "$theirs/rsocket/librspreload.so" | grep -v '^epoll_') <(exported "$preload"))
    [ -z "$missing" ] || { printf 'librspreload.so does not interpose:\n%s\n' "$missing"; bad=1; }
    echo "librspreload.so: $(exported "$theirs/rsocket/librspreload.so" | wc -l) calls"
fi
! readelf -d "$preload" | grep 'NEEDED.*librddp' || { echo "librspreload.so needs more than librdmacm.so.1"; bad=1; }
exit $bad
