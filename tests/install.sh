#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# install.sh - what `make install` leaves is enough for a stranger: header, pkg-config, shared and static library, command.
set -euo pipefail

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

DESTDIR=$root cmake --install "$RDDP_BUILD_DIR" >/dev/null
pc=$(find "$root" -name rddp.pc)
[ -n "$pc" ] || fail "no rddp.pc"
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=${pc%/*}
libdir=$(dirname "${pc%/*}")
read -ra cflags < <(pkg-config --cflags rddp)
read -ra libs < <(pkg-config --libs rddp)
read -ra static < <(pkg-config --static --libs-only-l --libs-only-other rddp)

[ "$(readlink -f "$libdir/librddp.so.0")" = "$(readlink -f "$libdir/librddp.so")" ] || fail "librddp.so.0 is not librddp.so"
readelf -d "$libdir/librddp.so" | grep -q 'SONAME.*librddp\.so\.0\]' || fail "the soname is not librddp.so.0"

# Each header stands alone and asks for no GNU dialect.
for header in "$RDDP_SOURCE_DIR"/include/rddp/*.h; do
    line="#include <rddp/$(basename "$header")>"
    cc "${cflags[@]}" -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c - <<<"$line" || fail "not C11: $header"
done

program=$root/program
printf '#include <rddp/rddp.h>\nint main(void) { return rddp_open == 0; }\n' >"$program.c"
cc "${cflags[@]}" "$program.c" -o "$program" "${libs[@]}"
LD_LIBRARY_PATH=$libdir "$program" || fail "the program with the shared library does not run"
mkdir "$root/only"
cp "$libdir/librddp.a" "$root/only/"
cc "${cflags[@]}" "$program.c" -o "$program" -L"$root/only" "${static[@]}" || fail "does not link with librddp.a"
! readelf -d "$program" | grep -q librddp || fail "the static program wants the shared library"
"$program" || fail "the program with the static library does not run"

command=$(find "$root" -path '*/bin/rddp')
[ -n "$command" ] || fail "no command"
LD_LIBRARY_PATH=$libdir "$command" --version >/dev/null || fail "rddp --version fails"
echo "install: header, library, pkg-config and command are complete"
