#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# setup.sh PURPOSE... - installs the Debian packages that a make target can use. Without root it prints the command to run,
# and fails only if something is missing that the target cannot do without. Packages that are installed are not touched.
set -euo pipefail

# What a purpose needs, then, behind the +, what lets it do more.
declare -A packages=(
    [build]="gcc libc6-dev make cmake + pkg-config libxxhash-dev libtirpc-dev rpcsvc-proto libsodium-dev libfuse3-dev
        libibverbs-dev librdmacm-dev ninja-build"
    [demo]="pkg-config libxxhash-dev libsodium-dev + python3"
    [check]="pkg-config libxxhash-dev libsodium-dev libcmocka-dev libjansson-dev python3 + g++ iproute2 netbase curl wget
        nftables strace tshark libusrsctp-dev rpcbind fuse3 libnfs-utils fio dbench stress-ng
        ibverbs-utils rdmacm-utils perftest libfabric-bin python3-pyverbs iperf3 netcat-openbsd"
    [interop]="clang libbpf-dev + openmpi-bin libopenmpi-dev qperf dapl2-utils ucx-utils valgrind
        g++ mpich libmpich-dev libgloo-dev libhiredis-dev librpma-dev"
    [fast]="gcc + valgrind"
    [cross]="gcc-aarch64-linux-gnu gcc-s390x-linux-gnu qemu-user-static +"
    [ci]="git ccache debootstrap + tgt libiscsi-bin qemu-utils qemu-block-extra ceph-mon ceph-osd ceph-common"
    [bench]="python3 + iproute2 valgrind iperf3 qperf ucx-utils libfabric-bin rsync curl liblwip-dev libnfs-dev
        nfs-ganesha-vfs"
    [fuzz]="clang libclang-rt-dev llvm +"
    [lint]="binutils clang clang-format cppcheck mandoc shellcheck python3 +"
    [coverage]="gcovr +"
)

needed=() more=()
for purpose in "$@"; do
    [ -n "${packages[$purpose]:-}" ] || { echo "setup: no such purpose: $purpose (${!packages[*]})" >&2; exit 2; }
    read -d '' -ra list <<<"${packages[$purpose]%% +*}" || true
    needed+=("${list[@]}")
    read -d '' -ra list <<<"${packages[$purpose]#* +}" || true
    more+=("${list[@]}")
done
[ $# -gt 0 ] || { echo "usage: setup.sh ${!packages[*]}" >&2; exit 2; }

present=
if command -v dpkg-query >/dev/null; then
    # dpkg-query fails if it does not know one of the names; its output about the others is still valid.
    present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${needed[@]}" "${more[@]}" 2>/dev/null || true)
fi
missing() { # PACKAGE...: those that are not installed
    local package
    for package; do
        grep -qx "installed $package" <<<"$present" || echo "$package"
    done
}
is_there() { # PACKAGE: what it is for is there, whoever has put it there
    case $1 in
    gcc | libc6-dev) command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null ;;
    make | cmake | pkg-config | clang | clang-format | cppcheck | mandoc | shellcheck | python3 | gcovr) command -v "$1" >/dev/null ;;
    *) return 1 ;;
    esac
}

# Fails if something is missing that is needed.
settle() {
    local package lacks=()
    for package in $(missing "${needed[@]}"); do
        is_there "$package" || lacks+=("$package")
    done
    [ ${#lacks[@]} -eq 0 ] || { echo "setup: cannot go on without: ${lacks[*]}" >&2; exit 1; }
    exit 0
}

if [ -z "$(command -v dpkg-query)" ]; then
    echo "setup: not a Debian system; install the equivalents of: ${needed[*]} ${more[*]}" >&2
    exit 0
fi
mapfile -t wanted < <(missing "${needed[@]}" "${more[@]}" | awk '!seen[$0]++')
[ ${#wanted[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "setup: to have everything, run this once:" >&2
    echo "    sudo apt-get install -y --no-install-recommends ${wanted[*]}" >&2
    settle
fi
echo "setup: installing ${wanted[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
quiet=(-qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
known() { # PACKAGE...: those that this release has
    local package
    for package; do
        if apt-cache show --no-all-versions "$package" >/dev/null 2>&1; then echo "$package"; else
            echo "setup: this release has no $package" >&2
        fi
    done
}
apt-get "${quiet[@]}" update || { echo "setup: apt-get update failed" >&2; settle; }
mapfile -t wanted < <(known "${wanted[@]}")
if ! apt-get "${quiet[@]}" install -y --no-install-recommends "${wanted[@]}" >/dev/null; then
    echo "setup: apt-get install failed" >&2
    settle
fi
