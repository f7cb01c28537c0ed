#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bench.sh - one short round of `make bench` over loopback: figures of all wires, ratios to raw TCP of the same round, plots
# that an XML reader accepts, and the page for the documents. How fast anything is does not matter here.
# shellcheck disable=SC2154 # tmp is tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

command -v python3 >/dev/null || { echo "cannot run here: python3 is not installed"; exit 77; }
mkdir "$tmp/build"
export PYTHONDONTWRITEBYTECODE=1 BENCH_ROUNDS=2 BENCH_SECONDS=0.01 BENCH_FILE_MB=1
bench=(env RDDP_BUILD_DIR="$tmp/build/main" python3 "$RDDP_SOURCE_DIR/bench/run.py")
for what in "latency, loopback, iWARP" "asleep, loopback" "messages, loopback" "connections" "files, loopback, rddp cp"; do
    export BENCH_ONLY=$what
    expect 0 "$what" "${bench[@]}"
    cp "$tmp/build/bench.json" "$tmp/build/bench.html" "$tmp/"
    python3 - "$tmp" "$what" <<'PYTHON' || wrong "$what: figures or plots are wrong"
import json, re, statistics, sys, xml.dom.minidom
result = json.load(open(sys.argv[1] + "/bench.json"))
page = open(sys.argv[1] + "/bench.html").read()
assert len(result["rounds"]) == 2 and result["series"]
for series in result["series"]:
    assert series["points"] and all(len(values) == 2 and min(values) > 0 for point in series["points"]
                                    for what, values in point.items() if what != "x"), series
    assert series["series"] in page
drawings = re.findall(r"<svg.*?</svg>", page)
assert drawings
for drawing in drawings:
    xml.dom.minidom.parseString(drawing)
assert not re.search(r"(src|href)=", page), "the page asks for other files"
assert "asleep" not in sys.argv[2] or "both sides asleep" in page
if "latency" in sys.argv[2] or "asleep" in sys.argv[2]:
    ours, raw = (next(s for s in result["series"] if s["series"] == name)["points"][0]["p50_us"]
                 for name in ("iWARP Write", "raw TCP"))
    assert "%.2f" % statistics.median(a / b for a, b in zip(ours, raw)) in page, "the ratio is that of a round"
PYTHON
done
expect 0 "the page" python3 "$RDDP_SOURCE_DIR/bench/report.py" "$tmp/bench.json" --page
expect_text "the page" '# Measured'
expect 1 "a measurement that fails" env RDDP_TOOL="$(command -v false)" "${bench[@]}"
finish bench
