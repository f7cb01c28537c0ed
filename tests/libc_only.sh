#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libc_only.sh - librddp.so needs the C library and nothing else, and pkg-config gives a program rddp's own flags alone.
set -euo pipefail
name=$(basename "$0" .sh)
fail() { echo "$name: $*" >&2; exit 1; }
cannot() { echo "$name: cannot run here: $*"; exit 77; }
build=${RDDP_BUILD_DIR:?}
for tool in readelf pkg-config; do command -v $tool >/dev/null || cannot "$tool is missing"; done
! grep -q '^RDDP_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" || cannot "sanitizers need libraries of their own"

needed=$(readelf -d "$build/librddp.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
[ -n "$needed" ] || fail "readelf shows no library at all"
foreign=$(grep -vE '^(libc\.so\.6|ld-linux[-a-z0-9_]*\.so\.[0-9]+|ld64\.so\.1)$' <<<"$needed" || true)
[ -z "$foreign" ] || fail "librddp.so needs ${foreign//$'\n'/, }"

export PKG_CONFIG_PATH=$build
flags() { # EXPECTED OPTION...: what pkg-config prints, as a pattern
    local expected=$1 said
    shift
    said=$(pkg-config "$@" rddp | sed 's/ *$//')
    [[ $said =~ ^$expected$ ]] || fail "pkg-config $*: $said"
}
flags '(-I[^ ]*)?' --cflags
flags '(-L[^ ]* )?-lrddp' --libs
flags '(-L[^ ]* )?-lrddp -pthread' --static --libs
flags '' --print-requires-private
echo "$name: needs ${needed//$'\n'/, }"
