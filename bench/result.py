# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""result.py - what a run of the bench says: medians, and ratios to raw TCP of the same round."""
import statistics

import plot

MIB = 1 << 20
RATIOS = [("bandwidth", MIB, "bytes_per_second"), ("bandwidth", 65536, "bytes_per_second"), ("latency", 8, "p50_us"),
          ("latency", 8, "p99_us"), ("latency", 4096, "p50_us"), ("asleep", 8, "p50_us")]
WORDS = {"bytes_per_second": "rate", "p50_us": "p50", "p99_us": "p99"}


def median(values):
    there = [value for value in values or [] if value is not None]
    return statistics.median(there) if there else None


def curve(series, figure):
    pairs = [(point["x"], median(point.get(figure))) for point in series["points"]]
    return [(x, y) for x, y in pairs if y]


def of(result, name, place):
    return [series for series in result["series"] if series["plot"] == name and series["place"] == place]


def places(result):
    return list(dict.fromkeys(series["place"] for series in result["series"]))


def figures_at(series, x, what):
    return next((point.get(what) for point in series["points"] if point["x"] == x), None) or []


def ratio(series, raw, x, what):
    """The median of the quotients of a round, or None."""
    return median([a / b for a, b in zip(figures_at(series, x, what), figures_at(raw, x, what)) if a and b])


def ratios(result):
    """Yields a place, a name, and the quotients with raw TCP's, in the order of RATIOS."""
    for place in places(result):
        here = {(one["series"], one["plot"]): one for one in result["series"] if one["place"] == place}
        for name in dict.fromkeys(name for name, kind in here if ("raw TCP", kind) in here and name != "raw TCP"):
            yield place, name, [
                ratio(here[name, kind], here["raw TCP", kind], x, what) if (name, kind) in here else None
                for kind, x, what in RATIOS]


def troubles(result):
    return ["%s, %s, %s: %s" % (one["plot"], one["place"], one["series"], one["trouble"])
            for one in result["series"] if one["trouble"]]


def heads():
    return ["place", "what"] + ["%s%s, %s" % (kind + " " if kind == "asleep" else "", WORDS[what], plot.octets(x))
                                for kind, x, what in RATIOS]


def cells(row):
    place, name, values = row
    return [place, name] + ["" if value is None else "%.2f" % value for value in values]


def rounds(result):
    """Of parts that were joined some may have had fewer."""
    counts = sorted({len(one["load"]) for one in result["series"] if one["load"]}) or [0]
    return "%d to %d rounds" % (counts[0], counts[-1]) if counts[1:] else "%d round%s" % (counts[0], "s" * (counts[0] != 1))


def machine(result):
    loads, stolen = ([value for one in result["series"] for value in one[what]] or [0] for what in ("load", "stolen"))
    return ("%s, %s; %d x %s, Linux %s; %s; load before a row %.1f to %.1f, median %.1f; "
            "%.1f to %.1f %% of its time stolen, median %.1f") % (
        result["version"], result["date"][:10], result["processors"], result["processor"], result["kernel"],
        rounds(result), min(loads), max(loads), median(loads), 100 * min(stolen), 100 * max(stolen), 100 * median(stolen))
