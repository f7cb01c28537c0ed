#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cxx.sh - a C++11 program takes the header without a word, links with the library and runs.
set -euo pipefail

cxx=$(command -v "${CXX:-c++}" || command -v g++ || command -v clang++) || { echo "cxx: no C++ compiler"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$cxx" -std=c++11 -Wall -Wextra -pedantic -Werror -I"$RDDP_SOURCE_DIR/include" "$RDDP_SOURCE_DIR/tests/cxx.cpp" -o "$dir/cxx" \
    -L"$RDDP_BUILD_DIR" -Wl,-rpath,"$RDDP_BUILD_DIR" -lrddp
"$dir/cxx"
echo "cxx: compiled, linked and run"
