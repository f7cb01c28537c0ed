#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# matrix.sh [GROUP...] - runs programs made for verbs, as Debian ships them, over libibverbs.so.1 and librdmacm.so.1 of this
# build: no device, no kernel module, both ends in a network namespace of an ordinary user, 64 KiB of lockable memory. Prints
# a line for each: NAME DEVICE PASS, NAME DEVICE FAIL and why, or "left out". The device is RDDP_DEVICE: rddp0 by default, or
# rddpe0. GROUP: rdmacm, perftest, options, fabric, mpi, dapl, fio, qperf, python, qemu, iser, rpma; rsocket of rddp0 alone;
# pingpong, datagram, unaided, ucx, gloo, ceph of rddpe0 alone. All by default.
set -u
export RDDP_DEVICE=${RDDP_DEVICE:-rddp0}
here=${RDDP_SOURCE_DIR:?}/tests/verbs
libraries=${RDDP_BUILD_DIR:?}/verbs-libraries
[ -e "$libraries/libibverbs.so.1" ] || { echo "this build has no libibverbs.so.1: its headers were missing"; exit 77; }
if [ -z "${RDDP_MATRIX_INSIDE:-}" ]; then
    unshare -Urn true 2>/dev/null || { echo "no user namespaces: unshare -Urn fails here"; exit 77; }
    RDDP_MATRIX_INSIDE=1 exec unshare -Urn "$0" "$@"
fi
ulimit -l 64
# shellcheck source=tests/verbs/lib/pair.sh disable=SC1091
source "$here/lib/pair.sh"
# shellcheck source=tests/verbs/lib/ceph.sh disable=SC1091
source "$here/lib/ceph.sh"

# Libraries for fabrics use no loopback interface: one end of a TUN device that is not opened has an address of this host.
ip link set lo up
outside=
if ip tuntap add dev rddp-matrix mode tun 2>/dev/null && ip address add 10.99.0.1/24 dev rddp-matrix; then
    ip address add fd99::1/64 dev rddp-matrix nodad 2>/dev/null # getaddrinfo() finds ::1 only on a host with another address
    ip link set rddp-matrix up
    outside=10.99.0.1
fi

group_rdmacm() {
    local transport=iWARP
    [ $device = rddp0 ] || transport=InfiniBand
    alone ibv_devices ibv_devices
    says "$device"
    alone ibv_devinfo ibv_devinfo -v
    says "transport:.*$transport"
    endless_alone ibv_asyncwatch "$device: async event FD" ibv_asyncwatch
    for address in 127.0.0.1 $(grep -qs rddp-matrix /proc/net/if_inet6 && echo ::1); do
        pair "rping -V $address" "rping -s -a $address -V -C 20 -S 1000" "rping -c -a $address -V -C 20 -S 1000"
    done
    pair "rping -V 60000" "rping -s -a 127.0.0.1 -V -C 20 -S 60000" "rping -c -a 127.0.0.1 -V -C 20 -S 60000"
    pair "rping -q" "rping -s -q -a 127.0.0.1 -V -C 20 -S 100" "rping -c -q -a 127.0.0.1 -V -C 20 -S 100"
    pair "ucmatose" "ucmatose -c 5 -C 20 -S 5000" "ucmatose -c 5 -C 20 -S 5000 -s 127.0.0.1"
    pair "ucmatose -m" "ucmatose -m" "ucmatose -m -s 127.0.0.1"
    if cmtime -h 2>&1 | grep num_threads >/dev/null; then
        left_out "cmtime" "that of rdma-core 56 takes the port of TCP, too, which is taken"
    else
        endless "cmtime" "cmtime" "cmtime -s 127.0.0.1 -c 50"
    fi
    pair "rdma_server" "rdma_server" "rdma_client -s 127.0.0.1"
    pair "rdma_xserver" "rdma_xserver -c r" "rdma_xclient -c r -s 127.0.0.1"
}

# Queue pair numbers that the programs tell each other by themselves. Each checks what arrives with -c.
group_pingpong() {
    local kind option
    for kind in rc uc ud srq; do
        for option in "" "-e" "-c" "-c -e"; do
            pair "ibv_${kind}_pingpong $option" "ibv_${kind}_pingpong -g 0 $option" "ibv_${kind}_pingpong -g 0 $option 127.0.0.1"
        done
    done
    for option in "-N" "-N -e" "-t" "-c -t" "-c -j" "-c -j -s 100000 -n 200" "-j -N" "-c -m 256 -s 3000" "-c -s 100000 -n 200" "-c -N -s 60000 -n 200"; do
        pair "ibv_rc_pingpong $option" "ibv_rc_pingpong -g 0 $option" "ibv_rc_pingpong -g 0 $option 127.0.0.1"
    done
    for option in "-o -c" "-O -c" "-o -P -c" "-O -P -c" "-o -c -s 100000 -n 200"; do
        pair "ibv_rc_pingpong $option" "ibv_rc_pingpong -g 0 $option" "ibv_rc_pingpong -g 0 $option 127.0.0.1"
    done
    pair "ibv_srq_pingpong -o" "ibv_srq_pingpong -g 0 -o" "ibv_srq_pingpong -g 0 -o 127.0.0.1"
    ! grep -qs rddp-matrix /proc/net/if_inet6 ||
        pair "ibv_rc_pingpong -g 3 (IPv6)" "ibv_rc_pingpong -g 3 -c" "ibv_rc_pingpong -g 3 -c 127.0.0.1"
}

group_datagram() {
    local udp_port=7174
    pair "udaddy" "udaddy" "udaddy -s 127.0.0.1"
    pair "udaddy -c 5" "udaddy -c 5 -C 20 -S 1000" "udaddy -c 5 -C 20 -S 1000 -s 127.0.0.1"
    udpong "-C 2000 -S 100" "-C 1000 -S 1500" "-T e -C 50 -S 1500" "-T a -C 1000 -S 64" "-T a -T e -C 50 -S 64" \
        "-T b -C 1000 -S 64" "-T b -T e -C 50 -S 2000" "-T n -B 16384 -C 1000 -S 1000" "-T s -C 200 -S 100"
}

# udpong OPTIONS...: its server runs until it is killed. A client that ends early has no result. After an answer that comes
# later than 1 ms the client of -T e repeats that one instead of its question, and never ends: it has few turns, and more
# chances, since of attempts with 200 turns beside eight processes that compute every other one ended so.
udpong() {
    local options address why tries most usual=$seconds seconds
    for options; do
        if [[ $options == *"-T e"* ]]; then most=8 seconds=20; else most=1 seconds=$usual; fi
        for address in 127.0.0.1 $(grep -qs rddp-matrix /proc/net/if_inet6 && echo ::1); do
            tries=$most
            is_missing "udpong $options $address" udpong && continue
            while
                try_endless "udpong -b $address $options" "udpong -s $address $options"
                [[ $why == *"ends with 124" ]] && ((--tries))
            do :; done
            [ -n "$why" ] || grep -qE '^custom .*[1-9].*s' "$tmp/client" || why="the client has no result"
            [ -n "$why" ] || ! grep -qE '^r(send|recv|connect)|poll:' "$tmp/client" "$tmp/server" || why="a call failed"
            verdict "udpong $options $address" "$why"
        done
    done
}

# perftest as it is run over network cards, without rdma_cm.
group_unaided() {
    local test
    unaided "" ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw ib_write_lat ib_read_lat ib_send_lat ib_atomic_lat
    unaided "-b" ib_write_bw ib_send_bw ib_read_bw ib_atomic_bw
    unaided "-q 4" ib_write_bw ib_send_bw ib_read_bw ib_atomic_bw
    unaided "-e" ib_read_bw ib_send_lat ib_read_lat
    unaided "-I 64 -s 32" ib_write_bw ib_send_bw ib_write_lat ib_send_lat
    unaided "--use-srq" ib_send_bw ib_send_lat
    unaided "-c UD -s 1024" ib_send_bw ib_send_lat
    unaided "-c UC -s 1024" ib_write_bw ib_write_lat ib_send_lat
    unaided "--odp" ib_write_bw ib_send_bw ib_read_bw ib_write_lat ib_send_lat ib_read_lat
    unaided "--odp --use-srq" ib_send_bw
    unaided "--odp -c UD -s 1024" ib_send_bw ib_send_lat
}

# unaided OPTIONS TEST...
unaided() {
    local options=$1 test
    shift
    for test; do pair "$test $options" "$test -F -n 300 $options" "$test -F -n 300 $options 127.0.0.1"; done
}

# UCX asks /sys and /dev for devices: `rddp run` shows them.
group_ucx() {
    local transport test option='' run="${RDDP_TOOL:?} run --sysfs -- env UCX_NET_DEVICES=rddpe0:1"
    is_missing ucx_info ucx_info && return
    ! ucx_perftest -h 2>&1 | grep 'MPI mode' >/dev/null || option="-P 0" # or it expects mpirun to begin both ends
    for transport in rc ud; do
        # shellcheck disable=SC2086 # a command and its options
        alone "ucx_info ${transport}_verbs" $run UCX_TLS=$transport ucx_info -d
        says "Transport: ${transport}_verbs"
        for test in tag_lat tag_bw ucp_put_lat ucp_get ucp_am_lat; do
            pair "ucx_perftest $transport $test" "$run UCX_TLS=$transport,self ucx_perftest $option -t $test -n 500" \
                "$run UCX_TLS=$transport,self ucx_perftest 127.0.0.1 $option -t $test -n 500"
        done
    done
    can_mpi || return
    for transport in rc ud; do
        # shellcheck disable=SC2086
        alone "mpirun pml ucx, $transport" $run UCX_TLS=$transport,self mpirun --allow-run-as-root --oversubscribe -np 4 \
            --mca pml ucx --mca osc ucx "$tmp/mpi"
        says "4 ranks: ring and all-to-all right"
    done
    command -v mpicc.mpich >/dev/null || { left_out mpiexec "mpicc.mpich is not installed"; return; }
    mpicc.mpich -O1 -o "$tmp/mpich" "$here/mpi/mpi.c" || { left_out mpiexec "mpicc.mpich makes no program"; return; }
    for transport in rc ud; do
        # shellcheck disable=SC2086
        alone "mpiexec.hydra, $transport" $run UCX_TLS=$transport,self mpiexec.hydra -n 4 "$tmp/mpich"
        says "4 ranks: ring and all-to-all right"
    done
}

# Gloo, which PyTorch brings: its ranks find each other by files.
group_gloo() {
    local rank ranks=() why=''
    echo '#include <gloo/transport/ibverbs/device.h>' | g++ -std=c++17 -E -x c++ - >/dev/null 2>&1 ||
        { left_out gloo "g++ or libgloo-dev is not installed"; return; }
    g++ -O1 -std=c++17 -o "$tmp/sum" "$here/gloo/sum.cc" -lgloo -lhiredis -libverbs -lpthread ||
        { left_out gloo "g++ makes no program"; return; }
    mkdir "$tmp/ranks"
    for rank in 0 1 2 3; do
        (bounded "$tmp/sum" $rank 4 "$tmp/ranks" $device) >"$tmp/rank$rank" 2>&1 &
        ranks+=($!)
    done
    for rank in 0 1 2 3; do
        wait "${ranks[rank]}" && grep -q "every sum is right" "$tmp/rank$rank" || why+="rank $rank: $(tail -n 3 "$tmp/rank$rank") "
    done
    verdict "gloo, 4 ranks" "$why"
}

# Ceph's messengers tell each other queue pair numbers over TCP.
group_ceph() {
    local program daemons=() why='' run="${RDDP_TOOL:?} run --sysfs --stats --"
    for program in ceph-mon ceph-osd ceph rados; do is_missing ceph $program && return; done
    [ -n "$outside" ] || { left_out ceph "no TUN device, and Ceph uses no loopback address"; return; }
    mkdir -p "$tmp/ceph/mon" "$tmp/ceph/osd"
    ceph_monitor
    verdict "ceph-mon" "$why"
    ceph_osd
    ceph_step ceph osd pool create matrix 8 8
    verdict "ceph-osd" "$why"
    head -c 8M /dev/urandom >"$tmp/random"
    ceph_step rados -p matrix put object "$tmp/random"
    ceph_step rados -p matrix get object "$tmp/back"
    [ -n "$why" ] || grep -qE 'octets sent, [0-9]{7,} received' "$tmp/client" || why="the data took another way"
    verdict "rados put, get" "$why"
    compare "rados put, get: data" rados "$tmp/random" "$tmp/back"
    ceph_stop
}

group_rsocket() {
    local option
    for option in "-S 64 -I 200 -C 10" "-S 4096 -I 5000 -C 3" "-S 100000 -I 5 -C 10 -T b" "-S 3000 -I 50 -C 10 -T n" \
        "-S 3000 -I 50 -C 10 -T a" "-S 40000 -B 4096 -I 5 -C 10" "-S all -I 2 -C 3" "-S 64 -I 50 -C 5 -T r"; do
        pair "rstream $option" "rstream -T v $option" "rstream -T v $option -s 127.0.0.1"
    done
    ! grep -qs rddp-matrix /proc/net/if_inet6 ||
        pair "rstream -f ipv6" "rstream -T v -b ::1 -S 500 -I 20 -C 10" "rstream -T v -f ipv6 -s ::1 -S 500 -I 20 -C 10"
    pair "riostream" "riostream -T v -S 4096 -I 5 -C 10" "riostream -T v -S 4096 -I 5 -C 10 -s 127.0.0.1"
    pair "riostream, 3000 turns" "riostream -S 64 -I 3000 -C 1" "riostream -S 64 -I 3000 -C 1 -s 127.0.0.1"
    pair "riostream -T b" "riostream -T v -T b -S 100000 -I 5 -C 4" "riostream -T v -T b -S 100000 -I 5 -C 4 -s 127.0.0.1"
    head -c 3000000 /dev/urandom >"$tmp/data"
    endless "rcopy" "rcopy" "rcopy $tmp/data 127.0.0.1:$tmp/copy"
    compare "rcopy, the copy" rcopy "$tmp/data" "$tmp/copy"

    # Programs made for TCP.
    preload="$libraries/librspreload.so"
    pair "rstream -T s, preloaded" "rstream -T s -T v -S 3000 -I 20 -C 10" "rstream -T s -T v -S 3000 -I 20 -C 10 -s 127.0.0.1"
    pair "iperf3, preloaded" "iperf3 -s -1" "iperf3 -c 127.0.0.1 -n 20M"
    pair "iperf3 -R -P 4, preloaded" "iperf3 -s -1" "iperf3 -c 127.0.0.1 -R -P 4 -n 5M"
    pair "nc -N, preloaded" "nc -l -N 127.0.0.1 7777" "nc -N 127.0.0.1 7777" "$tmp/data"
    compare "nc -N, the copy" nc "$tmp/data" "$tmp/server"
    alone "python, preloaded" /usr/bin/python3 "$here/lib/preloaded.py"
    says "copies and ioctl: right"
    preload=
}

# -F: perftest measures the clock of the processor at its start, and ends with 1 where others use the processor meanwhile
# ("Can't produce a report"); with it, it goes on without.
group_perftest() {
    local test
    for test in ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw; do
        pair "$test" "$test -F -R -n 500" "$test -F -R -n 500 127.0.0.1"
    done
    for test in ib_write_lat ib_read_lat ib_send_lat ib_atomic_lat; do
        pair "$test" "$test -F -R -n 500" "$test -F -R -n 500 127.0.0.1"
    done
}

# perftest OPTION... TEST...: each test with these options, which begin with a dash.
perftest() {
    local options=''
    while [ "${1#-}" != "$1" ]; do options+=" $1"; shift; done
    for test; do pair "$test$options" "$test -F -R$options" "$test -F -R$options 127.0.0.1"; done
}

# perftest measures the clock of the processor before each size, which takes most of the time of -a: one test has it, and
# with RDDP_LONG all. ib_send_bw -e is left out: its sender waits for an event also when nothing is outstanding and only a
# credit of the receiver is missing, which makes no event. Where completions do not wait for the peer, as over iWARP, both
# ends then wait for each other.
group_options() {
    local test all=${RDDP_LONG:+ib_send_bw ib_read_bw ib_write_lat ib_send_lat ib_read_lat}

    # shellcheck disable=SC2086 # a list
    perftest -a -n20 ib_write_bw $all
    perftest -b -n200 ib_write_bw ib_send_bw ib_read_bw ib_atomic_bw
    perftest -q4 -n200 ib_write_bw ib_send_bw ib_read_bw ib_atomic_bw
    perftest -e -n200 ib_read_bw ib_atomic_bw ib_send_lat ib_read_lat ib_atomic_lat
    perftest -I64 -s32 -n200 ib_write_bw ib_send_bw ib_write_lat ib_send_lat
    perftest --use-srq -n200 ib_send_bw ib_send_lat
    perftest --odp -n200 ib_write_bw ib_send_bw ib_read_bw ib_write_lat ib_send_lat ib_read_lat
}

group_qperf() {
    local test
    for test in rc_bw rc_bi_bw rc_lat rc_rdma_write_bw rc_rdma_read_bw rc_rdma_write_lat rc_rdma_write_poll_lat \
        rc_rdma_read_lat rc_compare_swap_mr rc_fetch_add_mr; do
        endless "qperf $test" "qperf -lp 19765" "qperf -lp 19765 -cm 1 -t 1 127.0.0.1 $test"
    done
}

# rxm NAME SERVER CLIENT: libfabric's layer for messages closes the endpoint of a peer that left, and only then takes what
# its completion queue holds: it posts each receive again, to memory that it has freed (mended by its commit 697688386, in
# 2026). An end that finds the peer's last message and its leaving together may die of that when its tests are over, and has
# two more chances.
rxm() {
    local why tries=3
    is_missing "$1" "${2%% *}" && return
    while
        try_pair "$2" "$3"
        [ -n "$why" ] && grep -qsa "terminated with signal 11" "$tmp/server" "$tmp/client" &&
            grep -qsa "^1m .*=10 " "$tmp/server" && grep -qsa "^1m .*=10 " "$tmp/client" && ((--tries))
    do :; done
    verdict "$1" "$why"
}

group_fabric() {
    [ -n "$outside" ] || { left_out fi_pingpong "no TUN device, and libfabric uses no loopback address"; return; }
    pair "fi_pingpong msg" "fi_pingpong -p verbs -e msg -c" "fi_pingpong -p verbs -e msg -c $outside"
    [ $device = rddp0 ] || pair "fi_pingpong dgram" "fi_pingpong -p verbs -e dgram -c" "fi_pingpong -p verbs -e dgram -c $outside"
    rxm "fi_pingpong rxm" "fi_pingpong -p verbs;ofi_rxm -e rdm -c" "fi_pingpong -p verbs;ofi_rxm -e rdm -c $outside"
}

# can_mpi: makes the program.
can_mpi() {
    command -v mpicc >/dev/null || { left_out mpirun "mpicc is not installed"; return 1; }
    mpicc -O1 -o "$tmp/mpi" "$here/mpi/mpi.c" || { left_out mpirun "mpicc makes no program"; return 1; }
}

group_mpi() {
    [ -n "$outside" ] || { left_out mpirun "no TUN device, and libfabric uses no loopback address"; return; }
    can_mpi || return
    alone "mpirun ring" mpirun --allow-run-as-root --oversubscribe -np 4 --mca pml cm --mca mtl ofi \
        --mca mtl_ofi_provider_include "verbs;ofi_rxm" "$tmp/mpi"
    says "4 ranks: ring and all-to-all right"
}

# uDAPL's tests end with 0 whatever they found: what they print counts.
dapl() { # NAME PATTERN PROGRAM OPTION...
    local why=''
    is_missing "$1" "$3" && return
    try_pair "${*:3}" "${*:3} -h $outside"
    [ -n "$why" ] || grep -q "$2" "$tmp/client" || why="the client does not print '$2'"
    verdict "$1" "$why"
}

group_dapl() {
    [ -n "$outside" ] || { left_out dtest "no TUN device, and uDAPL uses no loopback address"; return; }
    local -x DAT_OVERRIDE=$tmp/dat.conf
    echo 'rddp u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "rddp-matrix 0" ""' >"$DAT_OVERRIDE"
    # Its listener of uDAPL comes first, and is a socket over rddp0; the client needs the one where it tells its port.
    tcp_port=15828 dapl dtest "Test Complete. PASSED" dtest -P rddp -b 4096 -B 20
    tcp_port=15828 dapl "dtest -W -D" "Test Complete. PASSED" dtest -P rddp -W -D -b 4096 -B 20
    dapl dtestsrq "SRQ Test Complete" dtestsrq -P rddp
    dapl dtestcm "Connections:" dtestcm -P rddp -c 50
    endless dapltest "dapltest -T S -D rddp" \
        "dapltest -T T -s $outside -D rddp -i 20 -t 2 -w 2 -V client SR 256 1 server SR 256 1 client RR 4096 1 server RW 2048 1"
}

group_fio() {
    local verb
    for verb in write read send; do
        pair "fio $verb" \
            "fio --name=server --ioengine=rdma --port=7000 --bs=64k --size=16m --rw=read --iodepth=16" \
            "fio --name=client --ioengine=rdma --hostname=127.0.0.1 --port=7000 --verb=$verb --bs=64k --size=16m --rw=write --iodepth=16"
    done
}

group_python() {
    # Debian's Python, whatever else is in the PATH
    LD_LIBRARY_PATH=$libraries /usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null || { left_out pyverbs "python3-pyverbs is not installed"; return; }
    alone pyverbs /usr/bin/python3 "$here/lib/device.py"
    says "$device: opened, asked, one region"
    own_tests_of_rdma_core
}

# What they skip needs XRC, multicast, raw packets, device contexts that are shared, or adapters of one maker; of rddp0 also
# queue pairs that are connected by hand.
own_tests_of_rdma_core() {
    local folder=/usr/share/doc/rdma-core/tests least=100 ran skipped why=''
    [ $device = rddpe0 ] || least=30
    [ -e $folder/run_tests.py ] || { left_out "rdma-core's tests" "no $folder/run_tests.py"; return; }
    # Those of rdma_cm want the address of an interface that has one of Ethernet, too.
    if ip link add eth-matrix type veth peer name eth-peer 2>/dev/null; then
        ip address add 10.98.0.1/24 dev eth-matrix
        ip link set eth-peer up && ip link set eth-matrix up
    fi
    # Those of rdma-core 56 ask rdma(8) first, which fails on a kernel without RDMA, and look into /sys if it names no device.
    mkdir "$tmp/bin" && printf '#!/bin/sh\necho "[]"\n' >"$tmp/bin/rdma" && chmod +x "$tmp/bin/rdma"
    local -x PATH=$tmp/bin:$PATH
    cp -r $folder "$tmp/tests" && find "$tmp/tests" -name '*.gz' -exec gunzip {} +
    alone "rdma-core's tests" "${RDDP_TOOL:?}" run --sysfs -- /usr/bin/python3 "$tmp/tests/run_tests.py" -v --dev $device
    [ "$code" = 0 ] || why="ends with $code"
    ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$tmp/client")
    skipped=$(sed -n 's/^OK (skipped=\([0-9]*\)).*/\1/p' "$tmp/client")
    [ -n "$why" ] || ((${ran:-0} - ${skipped:-0} >= least)) || why="$ran ran, $skipped of them were skipped"
    verdict "rdma-core's tests" "$why"
}

group_qemu() {
    local capability
    is_missing "qemu" qemu-system-x86_64 && return
    for capability in '' rdma-pin-all; do
        # shellcheck disable=SC2086 # none, or one
        alone "qemu $capability" /usr/bin/python3 "$here/lib/migrate.py" "$tmp" $capability
        says "the memory is the same"
    done
}

# iser NAME PATTERN COMMAND [INPUT]: an initiator of the target that is running. libiscsi cancels its thread for events,
# and frees what that reads without waiting for it: a segmentation fault of a program that connects often, now and then
# beside other work, gets another chance.
iser() {
    local why='' tries=3
    is_missing "$1" "${3%% *}" && return
    while ((tries--)); do
        why=''
        run_client "$3" "${4:-}" || why="ends with $?"
        [ "$why" = "ends with 139" ] || break
    done
    [ -n "$why" ] || [ -z "$2" ] || grep -qE "$2" "$tmp/client" || why="does not print '$2'"
    verdict "$1" "$why"
}

# tgtadm offers $tmp/disk to one initiator of libiscsi, and to QEMU.
offer_disk() { # TARGET INITIATOR
    local admin="tgtadm --lld iser --tid 1 --mode"
    for _ in {1..100}; do
        ! $admin target --op new -T "$1" 2>/dev/null || break
        sleep 0.1
    done
    $admin logicalunit --op new --lun 1 -b "$tmp/disk" && $admin target --op bind -I ALL &&
        $admin target --op bind -Q "$2" && $admin target --op bind -Q iqn.2008-11.org.linux-kvm
}

# SCSI over iSER: data by RDMA Read and Write of the target. libiscsi's data are of half a MiB at most.
group_iser() {
    local -x TGT_IPC_SOCKET=$tmp/tgtd
    local why='' target=iqn.2026-11.example:disk initiator=iqn.2026-11.example:client url
    url=iser://127.0.0.1:3261/$target/1
    is_missing iser tgtd && return
    truncate -s 1M "$tmp/disk" && head -c 256K /dev/urandom >"$tmp/random"
    start_server "tgtd -f -C 0 --iscsi portal=127.0.0.1:3260 --iser port=3261,pool_sz_mb=64" || why="tgtd does not listen"
    [ -n "$why" ] || offer_disk $target $initiator >"$tmp/client" 2>&1 || why="tgtadm ends with $?"
    verdict "tgtd" "$why"
    iser iscsi-inq "Product:VIRTUAL-DISK" "iscsi-inq -i $initiator $url"
    iser iscsi-test-cu "asserts +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]* +0 " \
        "iscsi-test-cu -i $initiator --dataloss -t SCSI.Read10 -t SCSI.Read16 -t SCSI.Write10 -t SCSI.Write16 $url"
    printf '%s\n' "write -s $tmp/random 512k 256k" flush >"$tmp/commands"
    iser qemu-io "wrote 262144/262144" "qemu-io -f raw $url" "$tmp/commands"
    tail -c +$((512 * 1024 + 1)) "$tmp/disk" | head -c 256K >"$tmp/written"
    compare "qemu-io, there" qemu-io "$tmp/random" "$tmp/written"
    iser "qemu-img dd" "" "qemu-img dd -f raw -O raw bs=128k if=$url of=$tmp/back"
    compare "qemu-img dd, back" qemu-img "$tmp/disk" "$tmp/back"
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=''
}

# It asks for the device of the address that it listens at, and a loopback address has none, as with Linux.
group_rpma() {
    local receives
    echo '#include <librpma.h>' | cc -E -x c - >/dev/null 2>&1 ||
        { left_out librpma "cc or librpma-dev is not installed"; return; }
    [ -n "$outside" ] || { left_out librpma "no TUN device, and librpma takes no loopback address"; return; }
    cc -std=c11 -o "$tmp/keep" "$here/rpma/keep.c" -lrpma -libverbs >"$tmp/server" 2>&1 ||
        { verdict librpma "keep.c does not compile"; return; }
    for receives in "" srq; do
        pair "librpma $receives" "$tmp/keep server $outside $receives" "$tmp/keep client $outside"
    done
}

if [ $# = 0 ]; then
    set -- rdmacm perftest options fabric mpi dapl fio qperf python qemu iser rpma
    if [ $device = rddp0 ]; then set -- "$@" rsocket; else set -- "$@" pingpong datagram unaided ucx gloo ceph; fi
fi
for group; do "group_$group"; done
finish_matrix "$*"
