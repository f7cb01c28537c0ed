#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bench.sh - measures rddp beside raw TCP and its peers on loopback; doc/performance.md says how to read it.
set -euo pipefail

command -v python3 >/dev/null || { echo "bench: no python3" >&2; exit 1; }
exec python3 "$(dirname "$0")/bench.py" "$@"
