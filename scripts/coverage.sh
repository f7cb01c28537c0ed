#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# coverage.sh - runs the tests of a build with RDDP_COVERAGE and reports which lines of the library they execute.
set -euo pipefail

cd "$RDDP_SOURCE_DIR"
find "$RDDP_BUILD_DIR" -name '*.gcda' -delete
ctest --test-dir "$RDDP_BUILD_DIR" --output-on-failure -j2 -L 'unit|suite|sim|tool|fuzz-replay'
gcovr --root . --filter '(base|core|wire|conn|tcp|sctp|loop|endpoint|stream|drive|api|http|tools)/' --exclude-unreachable-branches --exclude-throw-branches \
    --html-details "$RDDP_BUILD_DIR/coverage.html" --txt "$RDDP_BUILD_DIR/coverage.txt" "$RDDP_BUILD_DIR"
cat "$RDDP_BUILD_DIR/coverage.txt"
echo "coverage: $RDDP_BUILD_DIR/coverage.html"
