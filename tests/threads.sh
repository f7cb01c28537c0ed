#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# threads.sh - ThreadSanitizer runs the units with threads alone: do all that start one have the label, and no others?
set -euo pipefail
cd "${RDDP_BUILD_DIR:?}"

calls() { # PROGRAM REGEX: does it need a function of that name from a shared library?
    nm -D "$1" | grep -E " U ($2)" >/dev/null
}

if calls tests/unit/spin '__[at]san_'; then
    echo "threads: a sanitizer starts threads in every program of this build"
    exit 77
fi
labelled=$(ctest -N -L threads | sed -n 's/.*: unit\.//p' | sort)
starting=$(for program in tests/unit/*; do
    [ ! -f "$program" ] || [ ! -x "$program" ] || ! calls "$program" pthread_create || basename "$program"
done | sort)
diff <(echo "$labelled") <(echo "$starting") || {
    echo "threads: these have the label (<) or start threads (>), but not both: see tests/CMakeLists.txt"
    exit 1
}
echo "threads: $(wc -l <<<"$starting") units start threads, and all of them have the label"
