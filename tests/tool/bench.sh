#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bench.sh - one short round of `make bench` over loopback: figures of all wires, ratios to raw TCP of the same round, plots
# that an XML reader accepts, and the page of the tree, which follows from its JSON. How fast anything is does not matter here.
# shellcheck disable=SC2154 # tmp is tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

command -v python3 >/dev/null || { echo "cannot run here: python3 is not installed"; exit 77; }
mkdir "$tmp/build"
export PYTHONDONTWRITEBYTECODE=1 BENCH_ROUNDS=2 BENCH_SECONDS=0.01 BENCH_FILE_MB=1
bench=(env RDDP_BUILD_DIR="$tmp/build/main" python3 "$RDDP_SOURCE_DIR/bench/run.py")
rows=("latency, loopback, iWARP" "asleep, loopback" "messages, loopback" "files, loopback, rddp cp")
if ldd "$rddp" | grep -E 'lib[at]san' >/dev/null; then
    echo "left out: connections, whose memory the heap of a sanitizer does not count"
else
    rows+=("connections")
fi
for what in "${rows[@]}"; do
    export BENCH_ONLY=$what
    expect 0 "$what" "${bench[@]}"
    cp "$tmp/build/bench.json" "$tmp/build/bench.html" "$tmp/"
    python3 - "$tmp" "$what" <<'PYTHON' || wrong "$what: figures or plots are wrong"
import json, re, statistics, sys, xml.dom.minidom
result = json.load(open(sys.argv[1] + "/bench.json"))
page = open(sys.argv[1] + "/bench.html").read()
assert result["rounds"] == 2 and result["series"]
for series in result["series"]:
    assert len(series["load"]) == len(series["stolen"]) == 2 and series["footprint"] is not None
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
expect 0 "the table" python3 "$RDDP_SOURCE_DIR/bench/report.py" "$tmp/bench.json"
expect_text "the table" "Of raw TCP's"
# What is published follows from the run alone: a figure or a word that was changed by hand is noticed.
mkdir "$tmp/tree" "$tmp/tree/doc"
cp -r "$RDDP_SOURCE_DIR/bench" "$tmp/tree/bench"
report=(python3 "$tmp/tree/bench/report.py")
expect 0 "publish" "${report[@]}" --publish "$tmp/bench.json"
expect 0 "check" "${report[@]}" --check
grep -q '^# Measured' "$tmp/tree/doc/measured.md" || wrong "no page"
for file in doc/measured.md bench/report.html; do
    cp "$tmp/tree/$file" "$tmp/kept"
    sed -i '$s/$/ /' "$tmp/tree/$file"
    expect 1 "check, $file changed" "${report[@]}" --check
    expect_text "check, $file changed" "$file"
    cp "$tmp/kept" "$tmp/tree/$file"
done
expect 0 "join" "${report[@]}" --join "$tmp/joined.json" "$tmp/bench.json" "$tmp/bench.json"
cmp -s <(python3 -m json.tool "$tmp/joined.json") <(python3 -m json.tool "$tmp/bench.json") || wrong "join: not the same"
# In containers users often have no name. The source of the copies is made all the same; ssh-keygen, for one, refuses.
as=(env PATH="/usr/bin:/bin:$PATH" PYTHONPATH="$tmp/tree/bench")
[ "$(id -u)" != 0 ] || as+=(setpriv --reuid 54321 --regid 54321 --clear-groups)
chmod -R a+rX "$tmp" "$tmp/tree"
if "${as[@]}" python3 -c '' 2>/dev/null; then
    expect 0 "a user without a name" "${as[@]}" python3 -c \
        "from files import Files; files = Files(); files.make(); files.remove()"
else
    echo "left out: a user without a name, who cannot run python3"
fi
expect 1 "a measurement that fails" env RDDP_TOOL="$(command -v false)" "${bench[@]}"
finish bench
