#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# run.sh - tests rddp run, rddp env and rddp doctor: which libraries a program gets, its exit status, the private view of
# sysfs, and what is said if something is missing. The programs themselves are tested by verbs/matrix.sh.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

if ldd "$rddp" | grep -E 'lib[at]san' >/dev/null; then
    echo "run: programs of others do not load libraries that were made for a sanitizer"
    exit 77
fi
folder=$RDDP_BUILD_DIR/verbs-libraries
if [ ! -e "$folder/librdmacm.so.1" ]; then
    expect 1 "no libraries" "$rddp" run true
    expect_text "no libraries" 'install libibverbs-dev and librdmacm-dev' err
    finish run
fi

expect 0 "the program's status" "$rddp" run true
expect 7 "the program's status" "$rddp" run -- sh -c 'exit 7'
expect 127 "no such program" env PATH=/usr/bin:/bin "$rddp" run -- no-such-program # of a PATH that may be read
expect_one_line "no such program" run
expect 126 "no program" "$rddp" run -- /
expect 2 "no program named" "$rddp" run
expect 2 "wrong option" "$rddp" run --nonsense true
expect 0 "its options are its own" "$rddp" run sh -c 'echo "$0" "$@"' --stats -x
expect_text "its options are its own" '^--stats -x$'

# shellcheck disable=SC2016 # the program expands it
expect 0 "the path" env LD_LIBRARY_PATH=/elsewhere "$rddp" run -- sh -c 'echo "$LD_LIBRARY_PATH"'
expect_text "the path" "^$folder:/elsewhere\$"
expect 0 "env" env -u LD_LIBRARY_PATH "$rddp" env
expect_text "env" "^LD_LIBRARY_PATH='$folder'; export LD_LIBRARY_PATH\$"
# shellcheck disable=SC2016
expect 0 "env in a shell" sh -c 'eval "$("$1" env)" && echo "$LD_LIBRARY_PATH"' sh "$rddp"
expect_text "env in a shell" "^$folder"

expect 2 "no such device" "$rddp" run --device mlx5_0 true
# shellcheck disable=SC2016
expect 0 "one device" "$rddp" run --device rddp0 -- sh -c 'echo "$RDDP_DEVICE"'
expect_text "one device" '^rddp0$'

if "$rddp" run --sysfs true 2>/dev/null; then
    expect 0 "--sysfs" "$rddp" run --sysfs -- cat /sys/class/infiniband/rddp0/ports/1/state
    expect_text "--sysfs" '^4: ACTIVE$'
    expect 0 "--sysfs, the first GID" "$rddp" run --sysfs -- cat /sys/class/infiniband/rddpe0/ports/1/gid_attrs/types/0
    expect_text "--sysfs, the first GID" '^RoCE v2$'
    expect 0 "--sysfs, the GIDs" "$rddp" run --sysfs -- sh -c 'cat /sys/class/infiniband/rddpe0/ports/1/gids/*'
    expect_text "--sysfs, the GIDs" '^0000:0000:0000:0000:0000:ffff:7f00:0001$'
    expect 0 "--sysfs keeps the rest" "$rddp" run --sysfs -- cat /sys/class/net/lo/mtu /dev/null
    expect 0 "--sysfs and /dev" "$rddp" run --sysfs -- test -e /dev/infiniband/uverbs0
    if [ ! -e /sys/class/infiniband/rddp0 ]; then pass; else wrong "--sysfs changed the system"; fi
else
    echo "left out: --sysfs, since this user can make no namespaces here"
fi

expect 0 "doctor" "$rddp" doctor
expect_text "doctor" '^ok   devices: rddpe0 .*, rddp0 '
# Where no namespaces are allowed: in one that allows none below it.
# shellcheck disable=SC2016 # the inner shell expands it
forbid=(unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh)
if "${forbid[@]}" true 2>/dev/null; then
    expect 1 "--sysfs, no namespaces" "${forbid[@]}" "$rddp" run --sysfs -- true
    expect_text "--sysfs, no namespaces" 'allows no user namespaces' err
    expect 0 "doctor, no namespaces" "${forbid[@]}" "$rddp" doctor
    [ -e /sys/class/infiniband ] ||
        expect_text "doctor, no namespaces" '^note /sys/class/infiniband: not there, and programs that look cannot'
fi
expect 1 "doctor, no such program" "$rddp" doctor "$tmp/nothing"
expect_text "doctor, no such program" '^BAD '
expect 1 "doctor, a name that is not in PATH" env PATH="$tmp" "$rddp" doctor sh
expect_text "doctor, a name that is not in PATH" '^BAD  sh: is not in PATH'
cp /bin/true "$tmp/setuid" && chmod u+s "$tmp/setuid"
expect 1 "doctor, setuid" "$rddp" doctor "$tmp/setuid"
expect_text "doctor, setuid" 'the loader ignores LD_LIBRARY_PATH'
# A program that would show that it ran.
echo "int creat(const char *, unsigned); int main(void) { return creat(\"$tmp/has-run\", 384) < 0; }" >"$tmp/static.c"
if "${CC:-cc}" -static -o "$tmp/static" "$tmp/static.c" 2>/dev/null; then
    expect 1 "doctor, static" "$rddp" doctor "$tmp/static"
    expect_text "doctor, static" 'is linked statically'
    expect 1 "doctor, static, is not run" test -e "$tmp/has-run"
fi
rping=$(command -v rping)
if [ -n "$rping" ]; then
    expect 0 "doctor, rping" "$rddp" doctor "$rping"
    expect_text "doctor, rping" "^ok   .*rping: takes our libraries\$"
    mkdir -p "$tmp/folder/rping" # a folder of that name is no program
    expect 0 "doctor, rping by its name" env PATH="/nothing:$tmp/folder:$(dirname "$rping")" "$rddp" doctor rping
    expect_text "doctor, rping by its name" "^ok   .*rping: takes our libraries\$"
    "$rddp" run --stats rping -s -a 127.0.0.1 -p 27174 -C 3 >"$tmp/rping" 2>&1 &
    server=$!
    eventually "$rddp" run rping -c -a 127.0.0.1 -p 27174 -C 3 -V >/dev/null 2>&1
    wait "$server"
    server=''
    if grep -qE '^rddp: 1 connections, 0 failed; [1-9][0-9]* octets sent, [1-9][0-9]* received$' "$tmp/rping"; then pass; else
        wrong "--stats: $(cat "$tmp/rping")"
    fi
fi
finish run
