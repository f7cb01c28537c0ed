#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cross.sh aarch64|s390x - another machine: weaker order of memory, or the other order of octets. Builds the unit tests and the
# simulations for it and runs them under qemu-user. Its libraries are unpacked into the build and not installed.
#
#   RDDP_CROSS_ONLY  the tests whose name matches this regular expression
set -uo pipefail

machine=${1:?usage: cross.sh aarch64|s390x}
cannot() { echo "cross: cannot run here: $*"; exit 77; }
fail() { echo "cross: $machine: $*" >&2; exit 1; }
case $machine in
aarch64) arch=arm64 ;;
s390x) arch=s390x ;;
*) fail "no such machine" ;;
esac
triplet=$machine-linux-gnu
build=${RDDP_BUILD_DIR:?}/cross/$machine
system=$build/system

command -v "$triplet-gcc" >/dev/null || cannot "no $triplet-gcc (Debian: scripts/setup.sh cross)"
emulator=$(command -v "qemu-$machine-static" || command -v "qemu-$machine") || cannot "no qemu-$machine (Debian: scripts/setup.sh cross)"
command -v apt-get >/dev/null || cannot "no apt to get libraries for $machine from"
mkdir -p "$build"

# apt with lists and packages of its own, for which nothing is installed and the machine is another.
foreign() { # APT-GET-ARGUMENT...
    apt-get -qq -o APT::Architecture=$arch -o APT::Architectures=$arch -o Dir::State="$build/apt" \
        -o Dir::State::status=/dev/null -o Dir::Cache="$build/apt" -o Debug::NoLocking=1 -o APT::Sandbox::User= "$@"
}
fetch() {
    mkdir -p "$build/apt/lists/partial" "$build/apt/archives/partial" &&
        foreign update && foreign install -y --no-install-recommends --download-only \
        libc6-dev libcmocka-dev libjansson-dev libsodium-dev libxxhash-dev
}
if [ ! -e "$system/done" ]; then
    rm -rf "$system"
    mkdir -p "$system/lib" "$system/usr/lib"
    fetch >"$build/log" 2>&1 || cannot "apt has no libraries for $machine: $(tail -n 1 "$build/log")"
    for package in "$build"/apt/archives/*.deb; do
        case ${package##*/} in lib*|linux-libc-dev*) dpkg-deb -x "$package" "$system" || fail "cannot unpack $package" ;; esac
    done
    rm -rf "$build/apt"
    touch "$system/done"
fi

! command -v ninja >/dev/null || export CMAKE_GENERATOR=Ninja
configure() {
    PKG_CONFIG_LIBDIR=$system/usr/lib/$triplet/pkgconfig PKG_CONFIG_SYSROOT_DIR=$system \
        cmake -S "${RDDP_SOURCE_DIR:?}" -B "$build/build" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$machine" \
        -DCMAKE_C_COMPILER="$triplet-gcc" -DCMAKE_SYSROOT="$system" -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator;-L;$system" \
        -DCMAKE_C_COMPILER_LAUNCHER="$(command -v ccache)"
}
configure >"$build/log" 2>&1 || fail "cmake: $(tail -n 20 "$build/log")"
cmake --build "$build/build" -j "${JOBS:-2}" --target unit_tests sim_tests >"$build/log" 2>&1 ||
    fail "$(grep -E -A5 'error|undefined' "$build/log" | head -40)"
# qemu-user of Debian 12 knows no openat2(), without which the NFS server does not begin, and answers a fault in a mapped file
# otherwise than Linux.
left_out='unit\.(nfs_object.*|nfs_serve.*|nfs_view)$'
echo "cross: $machine: left out: $left_out, for what qemu-user lacks"
SIM_RUNS=${SIM_RUNS:-5} ctest --test-dir "$build/build" -j "${JOBS:-2}" --output-on-failure --no-tests=error --timeout 600 \
    -L 'unit|sim' -R "${RDDP_CROSS_ONLY:-.}" -E "$left_out" || fail "tests fail"
echo "cross: $machine: the unit tests and simulations pass"
