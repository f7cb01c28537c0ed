#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# setup.sh PURPOSE... - installs the Debian packages that a make target needs. Without root it prints the command to
# run. Packages that are installed are not touched.
set -euo pipefail

declare -A packages=(
    [build]="gcc libc6-dev make cmake pkg-config libxxhash-dev libtirpc-dev rpcsvc-proto libsodium-dev libfuse3-dev libusrsctp-dev"
    [check]="g++ libcmocka-dev libjansson-dev libibverbs-dev python3 iproute2 strace tshark rpcbind fuse3 libnfs-utils fio dbench stress-ng"
    [interop]="clang libbpf-dev nftables"
    [bench]="liblwip-dev"
    [fuzz]="clang libclang-rt-14-dev llvm"
    [lint]="binutils clang-format cppcheck mandoc shellcheck python3"
    [coverage]="gcovr"
)

wanted=()
for purpose in "$@"; do
    [ -n "${packages[$purpose]:-}" ] || { echo "setup: no such purpose: $purpose (${!packages[*]})" >&2; exit 2; }
    read -ra list <<<"${packages[$purpose]}"
    wanted+=("${list[@]}")
done
[ ${#wanted[@]} -gt 0 ] || { echo "usage: setup.sh ${!packages[*]}" >&2; exit 2; }

if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; install the equivalents of: ${wanted[*]}" >&2
    exit 0
fi
# dpkg-query fails if it does not know one of the names; its output about the others is still valid.
present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for package in "${wanted[@]}"; do
    grep -qx "installed $package" <<<"$present" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "setup: packages are missing; run this once:" >&2
    echo "    sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
fi
echo "setup: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
quiet=(-qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
apt-get "${quiet[@]}" update
apt-get "${quiet[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
