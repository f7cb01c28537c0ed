#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# layering.sh [--self-test] - no arrow goes up or sideways. Four proofs:
#   1. what the files of each layer include, against the table below;
#   2. what its objects leave undefined: the pure layers use no socket, clock or heap, and no layer calls one that it must
#      not include, although it declares the function itself;
#   3. the pure layers above base have no assembler and no built-in of a processor: that could be a system call or a clock;
#   4. the files of a folder do not call each other in a ring.
# A function that is called by its address, in a table that a layer above fills in, is no arrow.
# --self-test breaks each rule in a copy of the tree, and fails unless every breach is found.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

# What a layer may include: folders, single headers, and `host` for all system headers. A layer is a folder; a folder in it
# that has a line of its own is another layer.
pure="assert.h errno.h inttypes.h limits.h stdatomic.h stdbool.h stddef.h stdint.h string.h"
declare -A may=(
    [base]="base/ $pure threads.h arm_acle.h arm_neon.h cpuid.h immintrin.h nmmintrin.h wmmintrin.h"
    [core]="base/ core/ rddp/wr.h $pure"
    [wire]="base/ wire/ core/seg.h core/fault.h $pure"
    [conn]="base/ core/ wire/ roce/ conn/ rddp/wr.h $pure"
    [tcp]="base/ tcp/ $pure"
    [sctp]="base/ sctp/ $pure"
    [roce]="base/ roce/ $pure"
    [loop]="base/ loop/ host"
    [endpoint]="base/ core/ wire/ conn/ loop/ tcp/io/packet_port.h sctp/io/sctp.h endpoint/ rddp/ host"
    [tcp/io]="base/ core/ wire/ conn/ tcp/ loop/ endpoint/ tcp/io/ rddp/ host"
    [sctp/io]="base/ core/ wire/ conn/ sctp/ loop/ endpoint/ sctp/io/ rddp/ host"
    [roce/io]="base/ core/ wire/ conn/ roce/ loop/ endpoint/ roce/io/ rddp/ host"
    [stream]="base/ wire/tcpopt.h wire/tcpopt_map.h tcp/ loop/ tcp/io/tun.h tcp/io/tun_packet.h tcp/io/tun_setup.h tcp/io/packet_name.h stream/ rddp/ host"
    [drive]="base/ core/ wire/ conn/ loop/ endpoint/ tcp/io/ sctp/io/ roce/io/ drive/ rddp/ host"
    [api]="base/ core/ wire/ conn/ loop/ endpoint/ tcp/io/ sctp/io/ roce/io/ drive/ api/ rddp/ host"
    [rpc]="rpc/ rddp/ host"
    [verbs]="verbs/ rddp/ host"
    [verbs/cm]="verbs/ verbs/cm/ rddp/ host"
    [verbs/rsock]="verbs/rsock/ host"
    [verbs/preload]="verbs/preload/ host"
    [nfs]="nfs/ rpc/ rddp/ host"
    [nfs/server]="nfs/ nfs/server/ rpc/ rddp/ host"
    [nfs/client]="nfs/ nfs/client/ rpc/ rddp/ host"
    [nfs/mount]="nfs/ nfs/client/ tools/lib/ nfs/mount/ rddp/ host"
    [nfs/command]="nfs/ nfs/client/ tools/lib/ tools/xfer/ tools/cp/ nfs/command/ rddp/ host"
    [http]="tools/lib/ tools/xfer/ rpc/eviction.h rpc/clients.h http/ rddp/ host"
    [tools/lib]="tools/lib/ rddp/ host"
    [tools/xfer]="tools/lib/ tools/xfer/ rddp/ host"
    [tools/cp]="tools/lib/ tools/xfer/ tools/cp/ rddp/ host"
    [tools/perf]="tools/lib/ tools/perf/ rpc/eviction.h rddp/ host"
    [tools/ping]="tools/lib/ tools/ping/ rpc/eviction.h rddp/ host"
    [tools/serve]="tools/lib/ tools/xfer/ tools/serve/ rpc/clients.h rddp/ host"
    [tools/verbs]="tools/lib/ tools/verbs/ rddp/ host"
    [tools]="tools/ tools/lib/ tools/xfer/ tools/cp/ tools/perf/ tools/ping/ tools/serve/ tools/verbs/
        rpc/eviction.h rpc/clients.h nfs/ nfs/server/ nfs/mount/ nfs/command/ http/ rddp/ host"
    [examples]="examples/ rddp/ host"
    [include]="rddp/ host"
)
# The layers of the library whose symbols are checked: those without a host, then those with one.
pure_layers="base core wire conn tcp sctp roce"
host_layers="loop endpoint tcp/io sctp/io roce/io stream drive api"
# The folders above the public calls. No folder is in none of the three lists.
upper_folders="rpc verbs verbs/cm verbs/rsock verbs/preload http nfs nfs/server nfs/client nfs/mount nfs/command
    tools tools/lib tools/xfer tools/cp tools/perf tools/ping tools/serve tools/verbs"
# The symbols that the pure layers may use of the C library, and those of libgcc for processor detection. base/ may also
# leave the processor to others, which a spinlock has to.
libc='mem[a-z]+|strlen|abort|__assert_fail|__mem[a-z]+_chk|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__cpu_model|__cpu_indicator_init'
# Those that look at a clock, which of the library loop/ alone does.
clock='clock_gettime|gettimeofday|time|timespec_get'
declare -A also=([base]='|thrd_(yield|sleep)')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/names"

at='' # the only file to look at, with its layer, in a tree that is clean but for it; empty: all of them

layer_of() { # PATH: leaves the innermost layer that it lies in, in `innermost`
    innermost=${1%/*}
    while [ -z "${may[$innermost]:-}" ] && [[ $innermost == */* ]]; do innermost=${innermost%/*}; done
}

checked() { # the layers to look at
    local innermost="$pure_layers $host_layers $upper_folders"
    [ -z "$at" ] || layer_of "$at"
    echo "$innermost"
}

# Names are relative to the root, so a name is ours if it exists there; <net/if.h> is not.
allowed() { # LAYER FORM NAME
    local form=$2 name=$3 entry innermost
    layer_of "$name"
    [[ $name != *..* && ($name == *.h || $2 == '<') ]] || return 1
    [ ! -e "$name" ] || form='"'
    for entry in ${may[$1]}; do
        case $form$entry in
        '<host') [[ $name == rddp/* ]] || return 0 ;;
        '<rddp/') [[ $name != rddp/* ]] || return 0 ;;
        '"rddp/'*) ;;
        '"'*/) [ "$innermost" != "${entry%/}" ] || return 0 ;;
        *) [ "$name" != "$entry" ] || return 0 ;;
        esac
    done
    return 1
}

# A directive that includes: also one that stands behind a comment, is written with a digraph, or is #import.
check_includes() {
    local layer file line rest bad=0 places innermost
    mapfile -t places < <(for layer in "${!may[@]}"; do [[ $layer == */* || ! -d $layer ]] || echo "$layer"; done)
    [ -z "$at" ] || places=("$at")
    local directive='^([^"]*\*/)?[[:space:]]*(#|%:)([[:space:]]|/\*.*\*/)*(include|import|embed)'
    local -A is_allowed=()
    while IFS=: read -r file line rest; do
        layer_of "$file"
        layer=$innermost
        [ -z "${is_allowed["$layer $rest"]:-}" ] || continue
        if [[ $rest =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*([\"<])([^\">]+) ]] &&
            allowed "$layer" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"; then
            is_allowed["$layer $rest"]=1
            continue
        fi
        echo "$file:$line: $layer/ may not include this: $rest"
        bad=1
    done < <(grep -rnHE --include='*.[ch]' "$directive" "${places[@]}")
    return $bad
}

# What the binding to libtirpc and nfs/mount/ need, asked for once. Without libfuse3 the files of the latter are empty.
read -ra library_flags <<<"$(pkg-config --silence-errors --cflags libtirpc) $(pkg-config --silence-errors --exists fuse3 && echo "-DRDDP_FUSE $(pkg-config --cflags fuse3)")"
compile() { # FILE... -> $work/objects/FILE.o
    local file compiler=("${CC:-cc}")
    [ -z "${CMAKE_C_COMPILER_LAUNCHER:-}" ] || compiler=("$CMAKE_C_COMPILER_LAUNCHER" "${CC:-cc}")
    for file in "$@"; do
        forget "${file%/*}"
        [ -d "$work/objects/${file%/*}" ] || mkdir -p "$work/objects/${file%/*}"
        printf '%s\0' "$file"
    done | xargs -0 -r -P 2 -I{} "${compiler[@]}" -std=gnu11 -D_GNU_SOURCE= -O2 -fPIC -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 \
        -DRDDP_VERSION='"0"' -DRDDP_VERBS_FOLDER='"rddp"' -I. -Iinclude "${library_flags[@]}" -c {} -o "$work/objects/{}.o"
}

# NM-OPTION LAYER/-OR-FILE...: prints the symbols of these objects, one a line. Those of a place are read once.
symbols() {
    local option=$1 place names=()
    shift
    for place in "$@"; do
        names+=("$work/names/$option ${place//\//:}")
        [ ! -f "${names[-1]}" ] || continue
        case $place in
        */) find "$work/objects/$place" -maxdepth 1 -name '*.o' 2>/dev/null || true ;;
        *) [ ! -f "$work/objects/$place.c.o" ] || echo "$work/objects/$place.c.o" ;;
        esac | xargs -r nm -g "$option" -f posix | awk 'NF > 1 { print $1 }' >"${names[-1]}"
    done
    cat /dev/null "${names[@]}" | sort -u
}
forget() { # FOLDER: its objects have changed
    rm -f "$work/names/"*" ${1//\//:}:"*
}

# The layers and files whose symbols a layer may use: what it may include.
used_by() { # LAYER
    local entry
    for entry in ${may[$1]}; do
        case $entry in
        rddp/* | host) ;;
        */) echo "$entry" ;;
        */*.h) echo "${entry%.h}" ;;
        esac
    done
}

check_symbols() {
    local layer symbol bad=0
    # The names of verbs/ are those of libibverbs, librdmacm and the C library, which a host layer may call.
    # shellcheck disable=SC2046,SC2086
    symbols --defined-only $(printf '%s/\n' $pure_layers $host_layers $upper_folders | grep -v '^verbs') |
        grep -vx main >"$work/product"
    # shellcheck disable=SC2046
    for layer in $(checked); do
        [ -d "$work/objects/$layer" ] || continue
        symbols --defined-only $(used_by "$layer") >"$work/own"
        symbols --undefined-only "$layer/" | comm -23 - "$work/own" >"$work/foreign"
        if [[ " $(echo $upper_folders) " == *" $layer "* ]]; then
            comm -12 "$work/product" "$work/foreign" | grep -v '^rddp_' >"$work/bad" || true
        elif [[ " $host_layers " == *" $layer "* ]]; then
            comm -12 "$work/product" "$work/foreign" >"$work/bad"
            [ "$layer" = loop ] || grep -xE "$clock" "$work/foreign" >>"$work/bad" || true
        else
            grep -vxE "$libc${also[$layer]:-}" "$work/foreign" >"$work/bad" || true
        fi
        while read -r symbol; do
            echo "$layer/ may not call this: $symbol ($(cd "$work/objects" && grep -RlwF "$symbol" "$layer" | tr '\n' ' '))"
            bad=1
        done <"$work/bad"
    done
    return $bad
}

check_instructions() {
    local layer bad=0
    for layer in $pure_layers; do
        [[ $layer != base && -d $layer ]] || continue
        grep -nEH '\b(__)?asm(__)?\b|\b__builtin_(ia32|arm|aarch64|readcyclecounter|readsteadycounter|thread_pointer)' "$layer"/*.[ch] && bad=1
    done
    return $bad
}

# Each line of $work/calls is a file and one that it needs; tsort reports a ring if they cannot be ordered.
check_rings() {
    local layer bad=0
    for layer in $(checked); do
        [ -d "$work/objects/$layer" ] || continue
        (cd "$work/objects" && find "$layer" -maxdepth 1 -name "*.o" -print0 | xargs -0 nm -A -g -f posix) |
            awk '{ sub(/\.c\.o:$/, "", $1) }
                 $3 ~ /^[Uvw]$/ { needs[++n] = $1 " " $2; next }
                 { owner[$2] = $1 }
                 END {
                     for (i = 1; i <= n; i++) {
                         split(needs[i], need)
                         if (need[2] in owner)
                             print need[1], owner[need[2]]
                     }
                 }' >"$work/calls"
        tsort "$work/calls" >/dev/null 2>"$work/ring" && continue
        echo "$layer/ calls in a ring: $(sed -n 's/^tsort: \([^ ]*\)$/\1/p' "$work/ring" | tr '\n' ' ')"
        bad=1
    done
    return $bad
}

compiled_in() { # FOLDER -> where the build has its objects
    local build=${RDDP_BUILD_DIR:-/}
    case $1 in
    nfs/mount | nfs/command | tools* | http) echo "$build/CMakeFiles/rddp_tool.dir/$1" ;;
    nfs*) echo "$build/CMakeFiles/rddp_nfs.dir/$1" ;;
    verbs) echo "$build/verbs/CMakeFiles/rddp_ibverbs.dir" ;;
    verbs/cm) echo "$build/verbs/CMakeFiles/rddp_rdmacm.dir/cm" ;;
    *) echo "$build/CMakeFiles/rddp_${1//\//_}.dir/$1" ;;
    esac
}

# Whether the headers that a file needs are installed; without them it is not built either.
is_buildable() { # FILE
    case $1 in
    rpc/tirpc_*) pkg-config --exists libtirpc ;;
    verbs/*) [ -f /usr/include/infiniband/verbs.h ] && [ -f /usr/include/rdma/rdma_cma.h ] ;;
    *) true ;;
    esac
}

# Takes the objects of the build, if this runs as a test, and compiles the rest.
compile_all() {
    local folder file from there rest=()
    for folder in $pure_layers $host_layers $upper_folders; do
        from=$(compiled_in "$folder")
        there=()
        for file in "$folder"/*.c; do
            if [ -f "$from/${file##*/}.o" ]; then
                there+=("$from/${file##*/}.o")
            elif [ -f "$file" ] && is_buildable "$file"; then
                rest+=("$file")
            fi
        done
        mkdir -p "$work/objects/$folder"
        [ ${#there[@]} = 0 ] || ln -s -t "$work/objects/$folder" "${there[@]}"
    done
    compile "${rest[@]}"
}

# Each folder of the product is in one of the lists.
check_folders() {
    local layer folder bad=0
    for layer in "${!may[@]}"; do
        [[ $layer == */* || $layer == examples || $layer == include || ! -d $layer ]] ||
            find "$layer" -name '*.c' -printf '%h\n'
    done | sort -u >"$work/folders"
    while read -r folder; do
        [[ " $(echo $pure_layers $host_layers $upper_folders) " != *" $folder "* ]] || continue
        echo "$folder/ is in no list of layering.sh"
        bad=1
    done <"$work/folders"
    return $bad
}

# WHAT CHECK FILE TEXT: plants the text; the check must fail and name WHAT.
planted=0
plant() {
    mkdir -p "$(dirname "$3")"
    printf '%b\n' "$4" >"$3"
    [[ $2 == check_includes || $2 == check_folders || $2 == check_instructions ]] || compile "$3"
    at=$3
    if "$2" >"$work/said"; then
        echo "layering: not caught: $1" >&2
        exit 1
    fi
    if [ "$(wc -l <"$work/said")" != 1 ] || ! grep -q planted "$work/said"; then
        echo "layering: caught, but with another complaint: $1" >&2
        cat "$work/said" >&2
        exit 1
    fi
    rm -f "$3" "$work/objects/$3.o"
    forget "${3%/*}"
    planted=$((planted + 1))
}

self_test() {
    local folder
    mkdir "$work/tree"
    for folder in "${!may[@]}"; do
        [ ! -d "$folder" ] || [[ $folder == */* ]] || cp -r "$folder" "$work/tree/"
    done
    cd "$work/tree"
    check_folders && check_includes && check_instructions && compile_all && check_symbols && check_rings || return 1
    # shellcheck disable=SC2086
    mkdir -p $pure_layers $host_layers $upper_folders include/rddp
    touch verbs/cm/planted.h nfs/server/planted.h tools/perf/planted.h core/planted.inc loop/planted.h tcp/io/planted.h core/planted.h wire/planted.h include/rddp/planted.h

    plant "base asks for the heap's header" check_includes base/planted.c '#include <stdlib.h>'
    plant "core includes loop" check_includes core/planted.c '#include "loop/planted.h"'
    plant "core includes loop, in brackets" check_includes core/planted.c '#include <loop/planted.h>'
    plant "core includes the public calls" check_includes core/planted.c '#include <rddp/planted.h>'
    plant "core goes by a detour" check_includes core/planted.c '#  include "core/../loop/planted.h"'
    plant "core hides it in a macro" check_includes core/planted.c '#include PLANTED'
    plant "core imports loop" check_includes core/planted.c '#import "loop/planted.h"'
    plant "core includes loop behind a comment" check_includes core/planted.c '/* so */ #include "loop/planted.h"'
    plant "core includes loop, with a comment between" check_includes core/planted.c '#/* so */include "loop/planted.h"'
    plant "core includes loop by a digraph" check_includes core/planted.c '%:include "loop/planted.h"'
    plant "core includes what is no header" check_includes core/planted.c '#include "core/planted.inc"'
    plant "wire includes more of core than the waist" check_includes wire/planted.c '#include "core/planted.h"'
    plant "conn asks for a clock" check_includes conn/planted.c '#include <time.h>'
    plant "an engine includes its sockets" check_includes tcp/planted.c '#include "tcp/io/planted.h"'
    plant "loop includes wire" check_includes loop/planted.c '#include "wire/planted.h"'
    plant "the NFS client includes the server" check_includes nfs/client/planted.c '#include "nfs/server/planted.h"'
    plant "one command includes another" check_includes tools/ping/planted.c '#include "tools/perf/planted.h"'
    plant "a tool looks inside" check_includes tools/planted.c '#include "core/planted.h"'
    plant "verbs looks inside" check_includes verbs/planted.c '#include "core/planted.h"'
    plant "libibverbs includes librdmacm" check_includes verbs/planted.c '#include "verbs/cm/planted.h"'
    plant "rsockets look behind verbs" check_includes verbs/rsock/planted.c '#include "verbs/cm/planted.h"'
    plant "rsockets call rddp" check_includes verbs/rsock/planted.c '#include <rddp/planted.h>'
    plant "an example looks inside" check_includes examples/planted.c '#include "core/planted.h"'

    plant "core calls malloc" check_symbols core/planted.c \
        'void *planted(unsigned long n);\nvoid *malloc(unsigned long n);\nvoid *planted(unsigned long n) { return malloc(n); }'
    plant "conn reads a clock" check_symbols conn/planted.c \
        'long time(long *);\nlong planted(void);\nlong planted(void) { return time(0); }'
    plant "endpoint reads a clock" check_symbols endpoint/planted.c \
        'long time(long *);\nlong planted(void);\nlong planted(void) { return time(0); }'
    printf 'int below_is_above(void);\nint below_is_above(void) { return 1; }\n' >core/above.c
    compile core/above.c
    plant "wire calls core" check_symbols wire/planted.c \
        'int below_is_above(void);\nint planted(void);\nint planted(void) { return below_is_above(); }'
    plant "loop calls core" check_symbols loop/planted.c \
        'int below_is_above(void);\nint planted(void);\nint planted(void) { return below_is_above(); }'
    plant "the NFS server calls core" check_symbols nfs/server/planted.c \
        'int below_is_above(void);\nint planted(void);\nint planted(void) { return below_is_above(); }'
    plant "a tool calls core" check_symbols tools/planted.c \
        'int below_is_above(void);\nint planted(void);\nint planted(void) { return below_is_above(); }'
    plant "core calls the kernel" check_instructions core/planted.c \
        'static void planted(void)\n{\n    __asm__ volatile("syscall"); /* planted */\n}'
    plant "conn reads the time stamp counter" check_instructions conn/planted.c '#define planted() __builtin_ia32_rdtsc()'
    printf 'int planted(void);\nint above(void);\nint above(void) { return planted(); }\n' >core/above.c
    compile core/above.c
    plant "two files of core call each other" check_rings core/planted.c \
        'int above(void);\nint planted(void);\nint planted(void) { return above(); }'
    plant "two files of core call each other, one by a weak symbol" check_rings core/planted.c \
        'int above(void) __attribute__((weak));\nint planted(void);\nint planted(void) { return above ? above() : 0; }'
    rm "$work/objects/core/above.c.o"
    forget core
    printf 'int planted(void);\nint above(void);\nint above(void) { return planted(); }\n' >tools/lib/above.c
    compile tools/lib/above.c
    plant "two files of tools/lib call each other" check_rings tools/lib/planted.c \
        'int above(void);\nint planted(void);\nint planted(void) { return above(); }'
    plant "a folder that nothing names" check_folders tools/planted/planted.c ''
    echo "layering: the tree is clean, and $planted of $planted planted breaches were caught"
}

case ${1:-} in
--self-test) self_test ;;
'') check_folders && check_includes && check_instructions && compile_all && check_symbols && check_rings && echo "layering: clean" ;;
*) echo "usage: layering.sh [--self-test]" >&2 && exit 2 ;;
esac
