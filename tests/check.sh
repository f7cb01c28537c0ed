#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# check.sh - scripts/check.sh runs a test that failed once more if what the tests said lets it, and never one that says why it
# must not be.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed='[  FAILED  ] it'
leak='==7==ERROR: LeakSanitizer: detected memory leaks
SUMMARY: AddressSanitizer: 64 byte(s) leaked in 1 allocation(s).'
overrun='==7==ERROR: AddressSanitizer: heap-buffer-overflow'
race='WARNING: ThreadSanitizer: data race (pid=7)'

# Each of the tests says its text and fails, but for the second time.
expect() { # CODE TEXT...
    local wanted=$1 n=0 code=0 text
    shift
    rm -rf "${folder:?}"/*
    for text in "$@"; do
        n=$((n + 1))
        echo "$text" >"$folder/$n.txt"
        echo "add_test(it$n sh -c \"if test -e $n.ran; then exit 0; fi; touch $n.ran; cat $n.txt; exit 1\")" \
            >>"$folder/CTestTestfile.cmake"
    done
    RDDP_UNSTEADY=$folder/unsteady "$RDDP_SOURCE_DIR/scripts/check.sh" "$folder" >"$folder/out" 2>&1 || code=$?
    [ "$((code != 0))" = "$wanted" ] || { cat "$folder/out"; echo "check: $code after $*"; exit 1; }
}
expect 0 "$failed"
expect 0 "$failed
$leak"
expect 1 "$leak"
expect 1 "$overrun"
expect 1 "$failed
$overrun"
expect 1 "$failed
$race"
expect 0 "$failed" "$failed"
expect 0 "$failed
$leak" "$failed"
expect 1 "$failed" "$leak" # what one of them left says nothing of the other
expect 1 "$leak" "$failed"
expect 1 "$failed" "$race"
expect 1 "$failed" "$failed" "$failed" "$failed"
