# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# objects.sh - what `make check` has compiled is not compiled again by tests that build the same files another way.
# Sourced. RDDP_LONG=1 compiles everything.

# reuse_objects SOURCE BUILD: BUILD is configured for SOURCE, a copy of RDDP_SOURCE_DIR. Copies the objects of each target
# that RDDP_BUILD_DIR compiled with the same flags.
reuse_objects() {
    local flags target
    [ -z "${RDDP_LONG:-}" ] || return 0
    for flags in "$2"/CMakeFiles/*.dir/flags.make; do
        target=${flags#"$2"/} target=${target%/flags.make}
        [ -d "$RDDP_BUILD_DIR/$target" ] || continue
        cmp -s <(sed "s,$1/,,g" "$flags") <(sed "s,$RDDP_SOURCE_DIR/,,g" "$RDDP_BUILD_DIR/$target/flags.make") || continue
        (cd "$RDDP_BUILD_DIR" && find "$target" -name '*.o' -print0 | tar --null -cf - -T -) | tar -C "$2" -m -xf -
    done
}
