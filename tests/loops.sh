#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# loops.sh - loops that have CQs of their own pass no cache line to each other, whoever posts and polls: bench/loops.py counts
# it. With one CQ for all they must, which shows that it counts.
set -euo pipefail

cannot() { echo "loops: cannot run here: $1"; exit 77; }
[ -x "${RDDP_BUILD_DIR:?}/bench/loops" ] || cannot "this build has no benchmarks"
command -v valgrind >/dev/null || cannot "no valgrind"
[ -r /proc/self/syscall ] || cannot "no /proc/self/syscall"
command -v python3 >/dev/null || cannot "no python3"
grep -q '^RDDP_SANITIZE:STRING=$' "$RDDP_BUILD_DIR/CMakeCache.txt" || cannot "a build with sanitizers"

BENCH_SECONDS=0.01 PYTHONDONTWRITEBYTECODE=1 python3 "${RDDP_SOURCE_DIR:?}/bench/loops.py" "$RDDP_BUILD_DIR" 3 |
    python3 -c '
import json, sys
bad = 0
for row in json.load(sys.stdin):
    moves = row["loops"][0]["moves"]
    wrong = moves > 0 if row["cqs"] == "own" else moves < 1 / row["list"]
    print("3 loops, %s CQ, lists of %2d: %.3f lines a message%s" % (row["cqs"], row["list"], moves, "  WRONG" if wrong else ""))
    bad += wrong
sys.exit(bad > 0)'
