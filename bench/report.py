#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""report.py BENCH.JSON [--page] - the ratios of a run as text, or with --page as tables for a document; run.py makes of
the same a page with plots, which needs no other file and no network."""
import html
import json
import statistics
import sys

import plot

MIB = 1 << 20
CPU = "seconds for 10^9 octets"
# Plot: title, label of x, how a value of x is written, curves: figure, label, dashes. Figures are printed as they are.
LINES = [
    ("bandwidth", "Bandwidth over size", "octets of a message", plot.octets,
     [("bytes_per_second", "octets a second", "")]),
    ("latency", "Half a round trip over size; dashed: p99", "octets of a message", plot.octets,
     [("p50_us", "microseconds", ""), ("p99_us", "p99", "4 3")]),
    ("asleep", "The same, both sides asleep until something comes", "octets of a message", plot.octets,
     [("p50_us", "microseconds", ""), ("p99_us", "p99", "4 3")]),
    ("messages", "Writes of 8 octets over requests under way", "window", str,
     [("messages_per_second", "messages a second", "")]),
    ("losses", "Files over packets lost (0.01 stands for none)", "of 100 packets", lambda loss: "%g" % loss,
     [("bytes_per_second", "octets a second", "")]),
    ("connections", "Memory of an idle connection, one end", "connections", str,
     [("octets_per_connection", "octets", "")]),
]
# Title, plot, the point where it is read (None: each has one), figure, label.
BARS = [
    ("Processor time of both ends, messages of 1 MiB", "bandwidth", MIB, "cpu_seconds_per_gigabyte", CPU),
    ("A file, from page cache to page cache", "files", None, "bytes_per_second", "octets a second"),
    ("Processor time of both ends for a file", "files", None, "cpu_seconds_per_gigabyte", CPU),
    ("READ of 1 MiB, eight under way", "nfs read", None, "bytes_per_second", "octets a second"),
    ("WRITE of 1 MiB, eight under way", "nfs write", None, "bytes_per_second", "octets a second"),
    ("GETATTR, 32 under way", "nfs getattr", None, "calls_per_second", "calls a second"),
]
RATIOS = [("bandwidth", MIB, "bytes_per_second"), ("bandwidth", 65536, "bytes_per_second"), ("latency", 8, "p50_us"),
          ("latency", 8, "p99_us"), ("latency", 4096, "p50_us"), ("asleep", 8, "p50_us")]
STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;max-width:1360px;margin:2em auto;padding:0 1em}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:1.5em}
figure{margin:0}figcaption{font-weight:600}
svg{width:100%;height:auto}svg text{font-size:11px;fill:currentColor}.grid{stroke:currentColor;opacity:.15}
.key{display:flex;flex-wrap:wrap;gap:.1em 1em;font-size:13px}
.key i{display:inline-block;width:1.6em;height:3px;margin:0 .4em .25em 0}
table{border-collapse:collapse;font-size:13px}td,th{padding:.15em .7em;text-align:right}
td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}
tr:nth-child(even){background:color-mix(in srgb,currentColor 6%,transparent)}.wide{overflow-x:auto}
"""
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


def colours(result):
    """A series has one colour in all plots of a place, and a program that measures twice has one, too."""
    names = dict.fromkeys(one["series"] for one in result["series"] if one["series"] != "raw TCP")
    kinds = list(dict.fromkeys(map(kind_of, names)))
    colour = {kind: plot.COLOURS[at % len(plot.COLOURS)] for at, kind in enumerate(kinds)}
    return {"raw TCP": plot.RAW, **{name: colour[kind_of(name)] for name in names}}


def kind_of(name):
    first = name.split()[0]
    return first if first in ("qperf", "UCX", "libfabric") else name


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


def heads():
    return ["place", "what"] + ["%s%s, %s" % (kind + " " if kind == "asleep" else "", WORDS[what], plot.octets(x))
                                for kind, x, what in RATIOS]


def cells(row):
    place, name, values = row
    return [place, name] + ["" if value is None else "%.2f" % value for value in values]


def troubles(result):
    return ["%s, %s, %s: %s" % (one["plot"], one["place"], one["series"], one["trouble"])
            for one in result["series"] if one["trouble"]]


def table(result):
    rows = [heads()] + [cells(row) for row in ratios(result)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    text = ["Of raw TCP's in the same round, medians of %d; of a rate more is better, of p50 and p99 less"
            % len(result["rounds"])]
    text += ["  ".join(cell.ljust(width) if at < 2 else cell.rjust(width)
                       for at, (cell, width) in enumerate(zip(row, widths))) for row in rows]
    return "\n".join(text + troubles(result))


def machine(result):
    loads, stolen = ([turn[what] for turn in result["rounds"]] for what in ("load", "stolen"))
    return ("%s, %s; %d x %s, Linux %s; %d rounds, load before a round %.1f to %.1f, %.1f to %.1f %% of the time stolen") % (
        result["version"], result["date"][:10], result["processors"], result["processor"], result["kernel"], len(loads),
        min(loads), max(loads), 100 * min(stolen), 100 * max(stolen))


# --- plots -----------------------------------------------------------------------------------------------------------


def figure(title, drawing, key=""):
    return "<figure><figcaption>%s</figcaption>%s%s</figure>" % (html.escape(title), drawing, key)


def key_of(names, colour):
    return '<div class="key">%s</div>' % "".join(
        '<span><i style="background:%s"></i>%s</span>' % (colour[name], html.escape(name)) for name in names)


def line_figures(result, place, colour):
    for name, title, x_label, x_text, figures in LINES:
        curves = [(one["series"], colour[one["series"]], dashes, points)
                  for what, _, dashes in figures for one in of(result, name, place) if (points := curve(one, what))]
        if curves:
            drawing = plot.lines(curves, x_label, figures[0][1], x_text)
            yield figure(title, drawing, key_of(dict.fromkeys(curve_name for curve_name, *_ in curves), colour))


def bar_figures(result, place, colour):
    for title, name, x, what, label in BARS:
        values = [(one["series"], colour[one["series"]], y) for one in of(result, name, place)
                  for at, y in curve(one, what) if x in (None, at)]
        if values:
            yield figure(title, plot.bars(values, label))


def html_row(tag, words):
    return "<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, html.escape(word), tag) for word in words)


def html_table(rows):
    body = html_row("th", rows[0]) + "".join(html_row("td", row) for row in rows[1:])
    return '<div class="wide"><table>%s</table></div>' % body


def write_html(result, path):
    colour = colours(result)
    parts = ['<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
             "<title>rddp, measured</title><style>%s</style>" % STYLE,
             "<h1>rddp, measured</h1><p>%s</p>" % html.escape(machine(result))]
    for place in places(result):
        drawings = [*line_figures(result, place, colour), *bar_figures(result, place, colour)]
        parts.append('<h2>%s</h2><div class="plots">%s</div>' % (html.escape(place), "".join(drawings)))
    parts += ["<h2>Of raw TCP's in the same round</h2><p>Medians. rate: more is better; p50 and p99: less is.</p>",
              html_table([heads()] + [cells(row) for row in ratios(result)])]
    parts += ["<p>%s</p>" % html.escape(trouble) for trouble in troubles(result)]
    with open(path, "w", encoding="utf-8") as out:
        out.write("".join(parts) + "</html>\n")


# --- the page of the documents ---------------------------------------------------------------------------------------

PAGE = """# Measured

`make bench` and `bench/report.py build/bench.json --page` made this page; [performance.md](performance.md) says how it
measures. %s.

Of raw TCP's in the same round, medians. Of a rate more is better, of p50 and p99 less.
"""


def markdown(rows, left):
    line = "|---" * left + "|---:" * (len(rows[0]) - left) + "|"
    head, *rest = ["| " + " | ".join(row) + " |" for row in rows]
    return [head, line, *rest]


def page(result):
    lines = [PAGE % machine(result), *markdown([heads()] + [cells(row) for row in ratios(result)], 2)]
    for title, name, x, what, label in BARS:
        rows = [[place, one["series"], plot.si(y)] for place in places(result) for one in of(result, name, place)
                for at, y in curve(one, what) if x in (None, at)]
        if rows:
            lines += ["", "%s, %s:" % (title, label), "", *markdown([["place", "what", ""]] + rows, 2)]
    return "\n".join(lines)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    print(page(result) if "--page" in sys.argv else table(result))


if __name__ == "__main__":
    main()
