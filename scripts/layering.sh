#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# layering.sh [--self-test] - no arrow goes up or sideways. Three proofs:
#   1. what the files of each layer include, against the table below;
#   2. what its objects leave undefined: the pure layers use no socket, clock or heap, and no layer calls one that it must
#      not include;
#   3. the files of core, endpoint, tcp/io, stream, drive and api do not call each other in a ring within their folder.
# --self-test breaks each rule in a copy of the tree, and fails unless every breach is found.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

# What a layer may include: folders, single headers, and `host` for all system headers. A layer is a folder; a folder in it
# that has a line of its own is another layer.
pure="assert.h errno.h inttypes.h limits.h stdatomic.h stdbool.h stddef.h stdint.h string.h"
# What stands on the loop and below the public calls is one floor still.
above="base/ core/ wire/ conn/ loop/ endpoint/ tcp/io/ sctp/io/ drive/ rddp/ host"
declare -A may=(
    [base]="base/ $pure threads.h arm_acle.h arm_neon.h cpuid.h immintrin.h nmmintrin.h wmmintrin.h"
    [core]="base/ core/ rddp/wr.h $pure"
    [wire]="base/ wire/ core/seg.h core/fault.h $pure"
    [conn]="base/ core/ wire/ conn/ rddp/wr.h $pure"
    [tcp]="base/ tcp/ $pure"
    [sctp]="base/ sctp/ $pure"
    [roce]="base/ roce/ $pure"
    [loop]="base/ loop/ host"
    [endpoint]="$above endpoint/"
    [tcp/io]="$above tcp/"
    [sctp/io]="$above sctp/"
    [stream]="base/ wire/tcpopt.h wire/tcpopt_map.h tcp/ loop/ tcp/io/ stream/ rddp/ host"
    [drive]="$above drive/"
    [api]="$above drive/ api/"
    [rpc]="rpc/ rddp/ host"
    [nfs]="nfs/ rpc/ rddp/ host"
    [nfs/mount]="nfs/ tools/ nfs/mount/ rddp/ host"
    [nfs/command]="nfs/ tools/ nfs/command/ rddp/ host"
    [http]="tools/ rpc/clients.h http/ rddp/ host"
    [tools]="tools/ nfs/ nfs/mount/ nfs/command/ http/ rpc/clients.h rddp/ host"
    [examples]="examples/ rddp/ host"
    [include]="rddp/ host"
)
# The layers whose symbols a layer may use besides its own.
declare -A uses=([base]="" [core]="base" [wire]="base core/seg core/fault" [conn]="base core wire" [tcp]="base" [sctp]="base" [roce]="base" [loop]="base")
# The symbols that the pure layers may use of the C library, and those of libgcc for processor detection. base/ may also
# leave the processor to others, which a spinlock has to.
libc='mem[a-z]+|strlen|abort|__assert_fail|__mem[a-z]+_chk|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__cpu_model|__cpu_indicator_init'
declare -A also=([base]='|thrd_(yield|sleep)')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

layer_of() { # PATH -> the innermost layer that it lies in
    local layer=${1%/*}
    while [ -z "${may[$layer]:-}" ] && [[ $layer == */* ]]; do layer=${layer%/*}; done
    echo "$layer"
}

# Names are relative to the root, so a name is ours if it exists there; <net/if.h> is not.
allowed() { # LAYER FORM NAME
    local form=$2 name=$3 entry
    [[ $name != *..* ]] || return 1
    [ ! -e "$name" ] || form='"'
    for entry in ${may[$1]}; do
        case $form$entry in
        '<host') [[ $name == rddp/* ]] || return 0 ;;
        '<rddp/') [[ $name != rddp/* ]] || return 0 ;;
        '"rddp/'*) ;;
        '"'*/) [ "$(layer_of "$name")" != "${entry%/}" ] || return 0 ;;
        *) [ "$name" != "$entry" ] || return 0 ;;
        esac
    done
    return 1
}

check_includes() {
    local layer file line rest bad=0
    local -A is_allowed=() layers=()
    while IFS=: read -r file line rest; do
        layer=${layers["${file%/*}"]:-$(layer_of "$file")}
        layers["${file%/*}"]=$layer
        [ -z "${is_allowed["$layer $rest"]:-}" ] || continue
        if [[ $rest =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*([\"<])([^\">]+) ]] &&
            allowed "$layer" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"; then
            is_allowed["$layer $rest"]=1
            continue
        fi
        echo "$file:$line: $layer/ may not include this: $rest"
        bad=1
    done < <(for layer in "${!may[@]}"; do
        [[ $layer == */* ]] || [ ! -d "$layer" ] ||
            grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include\b' "$layer"
    done)
    return $bad
}

compile() { # FILE... -> $work/objects/FILE.o
    local file
    for file in "$@"; do
        mkdir -p "$work/objects/$(dirname "$file")"
        printf '%s\0' "$file"
    done | xargs -0 -r -P 2 -I{} "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE= -O2 -fPIC -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 \
        -I. -Iinclude -c {} -o "$work/objects/{}.o"
}

# NM-OPTION LAYER-OR-FILE...: prints the symbols of these objects, one a line.
symbols() {
    local option=$1 place
    shift
    for place in "$@"; do
        find "$work/objects" -path "$work/objects/$place.c.o"
        [ ! -d "$work/objects/$place" ] || find "$work/objects/$place" -maxdepth 1 -name '*.o'
    done | xargs -r nm -g "$option" -f posix | awk 'NF > 1 { print $1 }' | sort -u
}

check_symbols() {
    local layer symbol bad=0
    for layer in base core wire conn tcp sctp roce loop; do
        [ -d "$work/objects/$layer" ] || continue
        # shellcheck disable=SC2086
        symbols --defined-only $layer ${uses[$layer]} >"$work/own"
        symbols --undefined-only $layer | comm -23 - "$work/own" >"$work/foreign"
        if [ $layer = loop ]; then
            symbols --defined-only core wire conn tcp sctp endpoint tcp/io sctp/io stream drive api | comm -12 - "$work/foreign" >"$work/bad"
        else
            grep -vxE "$libc${also[$layer]:-}" "$work/foreign" >"$work/bad" || true
        fi
        while read -r symbol; do
            echo "$layer/ may not call this: $symbol ($(cd "$work/objects" && grep -rlwF "$symbol" "$layer" | tr '\n' ' '))"
            bad=1
        done <"$work/bad"
    done
    return $bad
}

# Each line of $work/calls is a file and one that it needs; tsort reports a ring if they cannot be ordered.
check_rings() {
    local layer bad=0
    for layer in core endpoint tcp/io stream drive api; do
        (cd "$work/objects" && find "$layer" -maxdepth 1 -name '*.o' -print0 | xargs -0 nm -A -g -f posix) |
            awk '{ sub(/\.c\.o:$/, "", $1) }
                 $3 == "U" { needs[++n] = $1 " " $2; next }
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

# Takes FILE's object from the build, if this runs as a test. RDDP_LONG=1 compiles everything here.
take_compiled() { # FILE
    local folder=${1%/*}
    local object=${RDDP_BUILD_DIR:-}/CMakeFiles/rddp_${folder//\//_}.dir/$1.o
    [ -z "${RDDP_LONG:-}" ] && [ -f "$object" ] && mkdir -p "$work/objects/${1%/*}" && cp "$object" "$work/objects/$1.o"
}

compile_all() {
    local files
    mapfile -t files < <(find base core wire conn tcp sctp roce loop endpoint tcp/io sctp/io stream drive api -maxdepth 1 -name '*.c' 2>/dev/null |
        while read -r file; do take_compiled "$file" || echo "$file"; done)
    compile "${files[@]}"
}

# WHAT CHECK FILE TEXT: plants the text; the check must fail and name WHAT.
planted=0
plant() {
    mkdir -p "$(dirname "$3")"
    printf '%b\n' "$4" >"$3"
    [ "$2" = check_includes ] || compile "$3"
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
    planted=$((planted + 1))
}

self_test() {
    local folder
    mkdir "$work/tree"
    for folder in "${!may[@]}"; do
        [ ! -d "$folder" ] || [[ $folder == */* ]] || cp -r "$folder" "$work/tree/"
    done
    cd "$work/tree"
    check_includes && compile_all && check_symbols && check_rings || return 1
    mkdir -p base core wire conn tcp sctp roce loop endpoint tcp/io sctp/io stream drive api include/rddp
    touch loop/planted.h core/planted.h wire/planted.h include/rddp/planted.h

    plant "base asks for the heap's header" check_includes base/planted.c '#include <stdlib.h>'
    plant "core includes loop" check_includes core/planted.c '#include "loop/planted.h"'
    plant "core includes loop, in brackets" check_includes core/planted.c '#include <loop/planted.h>'
    plant "core includes the public calls" check_includes core/planted.c '#include <rddp/planted.h>'
    plant "core goes by a detour" check_includes core/planted.c '#  include "core/../loop/planted.h"'
    plant "core hides it in a macro" check_includes core/planted.c '#include PLANTED'
    plant "wire includes more of core than the waist" check_includes wire/planted.c '#include "core/planted.h"'
    plant "conn asks for a clock" check_includes conn/planted.c '#include <time.h>'
    plant "loop includes wire" check_includes loop/planted.c '#include "wire/planted.h"'
    plant "a tool looks inside" check_includes tools/planted.c '#include "core/planted.h"'
    plant "an example looks inside" check_includes examples/planted.c '#include "core/planted.h"'

    plant "core calls malloc" check_symbols core/planted.c \
        'void *planted(unsigned long n);\nvoid *malloc(unsigned long n);\nvoid *planted(unsigned long n) { return malloc(n); }'
    plant "conn reads a clock" check_symbols conn/planted.c \
        'long time(long *);\nlong planted(void);\nlong planted(void) { return time(0); }'
    printf 'int below_is_above(void);\nint below_is_above(void) { return 1; }\n' >core/above.c
    compile core/above.c
    plant "wire calls core" check_symbols wire/planted.c \
        'int below_is_above(void);\nint planted(void);\nint planted(void) { return below_is_above(); }'
    plant "loop calls core" check_symbols loop/planted.c \
        'int below_is_above(void);\nint planted(void);\nint planted(void) { return below_is_above(); }'
    printf 'int planted(void);\nint above(void);\nint above(void) { return planted(); }\n' >core/above.c
    compile core/above.c
    plant "two files of core call each other" check_rings core/planted.c \
        'int above(void);\nint planted(void);\nint planted(void) { return above(); }'
    echo "layering: the tree is clean, and $planted of $planted planted breaches were caught"
}

case ${1:-} in
--self-test) self_test ;;
'') check_includes && compile_all && check_symbols && check_rings && echo "layering: clean" ;;
*) echo "usage: layering.sh [--self-test]" >&2 && exit 2 ;;
esac
