#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bench.sh - compares rddp with raw TCP and its peers on loopback; doc/performance.md explains the output.
set -euo pipefail

command -v python3 >/dev/null || { echo "bench: python3 is not installed" >&2; exit 1; }
exec python3 "$(dirname "$0")/bench.py" "$@"
