#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# install.sh - what `make install` leaves, from a tree in which nothing was built, is enough for a stranger: headers,
# pkg-config, shared and static libraries, a command that starts where it lies, manual pages,
# documents, examples, units.
set -euo pipefail

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

# The files of the tree as a clone would have them; where it is no clone, all but what was built in it.
mkdir "$root/tree"
if git -C "${RDDP_SOURCE_DIR:?}" rev-parse >/dev/null 2>&1; then
    (cd "$RDDP_SOURCE_DIR" && git ls-files -co --exclude-standard | while read -r f; do [ ! -f "$f" ] || echo "$f"; done |
        tar -cf - -T -)
else
    tar -C "$RDDP_SOURCE_DIR" --exclude=./build -cf - .
fi | tar -C "$root/tree" -xf -
prefix=$root/opt/rddp
unset DESTDIR MAKEFLAGS MAKELEVEL
make -C "$root/tree" install PREFIX="$prefix" >"$root/log" 2>&1 || { tail -40 "$root/log"; fail "make install fails"; }

# A compiler of 32 bits is refused before anything is compiled. That needs no library for it.
if cc -m32 -c -x c -o "$root/narrow.o" - <<<'' 2>/dev/null; then
    ! cmake -S "$root/tree" -B "$root/narrow" -DCMAKE_C_FLAGS=-m32 -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
        >"$root/log" 2>&1 || fail "cmake goes on with a compiler of 32 bits"
    grep -q 'needs a machine of 64 bits' "$root/log" || { tail "$root/log"; fail "cmake does not say what it needs"; }
fi

pc=$(find "$prefix" -name rddp.pc)
[ -n "$pc" ] || fail "no rddp.pc"
export PKG_CONFIG_PATH=${pc%/*}
libdir=$(dirname "${pc%/*}")
read -ra cflags < <(pkg-config --cflags rddp)
read -ra libs < <(pkg-config --libs rddp)
read -ra static < <(pkg-config --static --libs-only-l --libs-only-other rddp)

[ "$(readlink -f "$libdir/librddp.so.0")" = "$(readlink -f "$libdir/librddp.so")" ] || fail "librddp.so.0 is not librddp.so"
readelf -d "$libdir/librddp.so" | grep 'SONAME.*librddp\.so\.0\]' >/dev/null || fail "the soname is not librddp.so.0"

# Each header stands alone and asks for no GNU dialect.
for header in "$RDDP_SOURCE_DIR"/include/rddp/*.h; do
    line="#include <rddp/$(basename "$header")>"
    cc "${cflags[@]}" -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c - <<<"$line" || fail "not C11: $header"
done

# A program may have functions of the same names as those inside the library.
program=$root/program
cat >"$program.c" <<'C'
#include <rddp/rddp.h>
int crc32c(void);
int tcp_connect(void);
int crc32c(void) { return 0; }
int tcp_connect(void) { return 0; }
int main(void)
{
    struct rddp_context *context = rddp_open(NULL);

    return !context || rddp_close(context) || crc32c() || tcp_connect();
}
C
cc "${cflags[@]}" "$program.c" -o "$program" "${libs[@]}"
LD_LIBRARY_PATH=$libdir "$program" || fail "the program with the shared library does not run"
mkdir "$root/only"
cp "$libdir/librddp.a" "$root/only/"
cc "${cflags[@]}" "$program.c" -o "$program" -L"$root/only" "${static[@]}" || fail "does not link with librddp.a"
! readelf -d "$program" | grep librddp >/dev/null || fail "the static program wants the shared library"
"$program" || fail "the program with the static library does not run"

# The command, and the library beside the library, start without a word about where their libraries are.
command=$prefix/bin/rddp
unset LD_LIBRARY_PATH
[ -x "$command" ] || fail "no command"
"$command" --version >/dev/null || fail "rddp --version fails"
mv "$prefix" "$root/moved"
"$root/moved/bin/rddp" --version >/dev/null || fail "rddp does not start where it was moved to"
mv "$root/moved" "$prefix"
if [ -e "$libdir/librddp-rpc.so" ]; then
    ! ldd "$libdir/librddp-rpc.so" | grep "not found" || fail "librddp-rpc.so does not find librddp.so"
fi

if [ -d "$libdir/rddp" ]; then
    ! LD_LIBRARY_PATH='' ldd "$libdir/rddp/librdmacm.so.1" | grep "not found" || fail "librdmacm.so.1 does not find its libraries"
    ldd "$libdir/rddp/librdmacm.so.1" | grep "$libdir/rddp/libibverbs.so.1" >/dev/null || fail "librdmacm.so.1 finds another libibverbs.so.1"
    ldd "$libdir/rddp/librspreload.so" | grep "$libdir/rddp/librdmacm.so.1" >/dev/null || fail "librspreload.so finds another librdmacm.so.1"
fi

"$prefix/sbin/mount.rddp" -f host:/ "$root" -o defaults,_netdev,ro,port=20050 || fail "mount.rddp is not there, or no helper of mount(8)"
[ "$(readlink -f "$prefix/sbin/mount.fuse.rddp")" = "$(readlink -f "$prefix/sbin/mount.rddp")" ] || fail "mount.fuse.rddp is not there"

# Every public call has a page by its own name.
man=$prefix/share/man
for call in $(nm -D --defined-only -f posix "$libdir"/librddp*.so | sed -n 's/^\(rddp_[a-z0-9_]*\|clnt_rdma_[a-z_]*\|svc_rdma_[a-z_]*\)@.*/\1/p'); do
    page=$man/man3/$call.3
    [ -f "$page" ] || fail "no manual page $call(3)"
    target=$(sed -n '1s/^\.so //p' "$page")
    [ -z "$target" ] || [ -f "$man/$target" ] || fail "$call(3) leads to $target, which is not there"
done
for page in man1/rddp.1 man1/rddp-cp.1 man7/rddp.7; do
    [ -f "$man/$page" ] || fail "no manual page $page"
done

documents=$prefix/share/doc/rddp
[ -f "$documents/README.md" ] && [ -f "$documents/nfs.md" ] || fail "no documents"
for example in "$documents"/examples/*.c; do
    cc "${cflags[@]}" "$example" -o "$root/example" "${libs[@]}" -Wl,-rpath,"$libdir" || fail "$example does not build"
    code=0
    "$root/example" >"$root/log" 2>&1 || code=$?
    case $code in
    0) ;;
    77) echo "left out: ${example##*/}: $(tail -n 1 "$root/log")" ;;
    *) fail "$example fails: $(tail -n 3 "$root/log")" ;;
    esac
done
for unit in "$prefix"/lib/systemd/system/*.service; do
    started=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
    [ -x "$started" ] || fail "${unit##*/} starts '$started', which is not there"
done
echo "install: headers, libraries, pkg-config, command, manual pages, documents, examples and units are complete"
