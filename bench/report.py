#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""report.py BENCH.JSON - the ratios of a run as text; run.py makes of the same a page with plots, which needs no other file
and no network.

report.py --join OUT BENCH.JSON... makes one of several runs that measured different rows on one machine.
report.py --publish BENCH.JSON writes bench/report.json, and from that bench/report.html and doc/measured.md.
report.py --check fails unless those two are what follows from bench/report.json."""
import html
import json
import os
import sys

import page
import plot
from result import MIB, cells, curve, heads, machine, median, of, places, ratios, rounds, troubles

HERE = os.path.dirname(os.path.abspath(__file__))
PUBLISHED = HERE + "/report.json"

CPU = "seconds for 10^9 octets"
# Plot: title, label of x, how a value of x is written, curves: figure, label, dashes. Figures are printed as they are.
LINES = [
    ("bandwidth", "Bandwidth over size", "octets of a message", plot.octets,
     [("bytes_per_second", "octets a second", "")]),
    ("latency", "Half a round trip over size; dashed: p99", "octets of a message", plot.octets,
     [("p50_us", "microseconds", ""), ("p99_us", "p99", "4 3")]),
    ("asleep", "The same, both sides asleep until something comes", "octets of a message", plot.octets,
     [("p50_us", "microseconds", ""), ("p99_us", "p99", "4 3")]),
    ("bandwidth", "Processor time of both ends over size", "octets of a message", plot.octets,
     [("cpu_seconds_per_gigabyte", CPU, "")]),
    ("messages", "Writes of 8 octets over requests under way", "window", str,
     [("messages_per_second", "messages a second", "")]),
    ("losses", "Files over packets lost (0.01 stands for none)", "of 100 packets", lambda loss: "%g" % loss,
     [("bytes_per_second", "octets a second", "")]),
    ("connections", "Memory of an idle connection, queues of one request", "connections", str,
     [("octets_per_connection", "octets of the heap at one end", "")]),
    ("connections", "Connections that come in a second", "connections", str, [("connects_per_second", "a second", "")]),
    ("connections", "One that works beside idle ones, of the same alone; dashed: 64 KiB", "idle connections", str,
     [("write_8_per_second", "share, Writes of 8 octets", ""), ("write_64k_bytes_per_second", "64 KiB", "4 3")]),
    ("loops", "Loops with a processor each: what the cache lines that they share allow", "loops", str,
     [("messages_per_second", "Writes of 8 octets a second, computed", "")]),
]
# Title, plot, the point where it is read (None: each has one), figure, label.
BARS = [
    ("Processor time of both ends, messages of 1 MiB", "bandwidth", MIB, "cpu_seconds_per_gigabyte", CPU),
    ("What a neighbour that computes gets of a processor beside Writes", "bandwidth", MIB, "neighbour", "share"),
    ("... beside round trips", "latency", 8, "neighbour", "share"),
    ("... beside round trips of two that sleep", "asleep", 8, "neighbour", "share"),
    ("A file, from page cache to page cache", "files", None, "bytes_per_second", "octets a second"),
    ("Processor time of both ends for a file", "files", None, "cpu_seconds_per_gigabyte", CPU),
    ("READ of 1 MiB, eight under way", "nfs read", None, "bytes_per_second", "octets a second"),
    ("WRITE of 1 MiB, eight under way", "nfs write", None, "bytes_per_second", "octets a second"),
    ("GETATTR, 32 under way", "nfs getattr", None, "calls_per_second", "calls a second"),
]
STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;max-width:1360px;margin:2em auto;padding:0 1em}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(400px,100%),1fr));gap:1.5em}
figure{margin:0}figcaption{font-weight:600}
svg{width:100%;height:auto}svg text{font-size:11px;fill:currentColor}.grid{stroke:currentColor;opacity:.15}
.key{display:flex;flex-wrap:wrap;gap:.1em 1em;font-size:13px}
.key i{display:inline-block;width:1.6em;height:3px;margin:0 .4em .25em 0}
table{border-collapse:collapse;font-size:13px}td,th{padding:.15em .7em;text-align:right}
td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}
tr:nth-child(even){background:color-mix(in srgb,currentColor 6%,transparent)}.wide{overflow-x:auto}
"""
WIRES = ["bandwidth", "latency", "asleep", "messages"]


def colours(result, name):
    """A series has one colour in all plots of wires, and a program that measures twice has one, too."""
    plots = WIRES if name in WIRES else [name]
    names = dict.fromkeys(one["series"] for one in result["series"] if one["plot"] in plots and one["series"] != "raw TCP")
    kinds = list(dict.fromkeys(map(kind_of, names)))
    colour = {kind: plot.COLOURS[at % len(plot.COLOURS)] for at, kind in enumerate(kinds)}
    return {"raw TCP": plot.RAW, **{name: colour[kind_of(name)] for name in names}}


def kind_of(name):
    first = name.split()[0]
    return first if first in ("qperf", "UCX", "libfabric", "raw") else name


def table(result):
    rows = [heads()] + [cells(row) for row in ratios(result)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    text = ["Of raw TCP's in the same round, medians of %s; of a rate more is better, of p50 and p99 less" % rounds(result)]
    text += ["  ".join(cell.ljust(width) if at < 2 else cell.rjust(width)
                       for at, (cell, width) in enumerate(zip(row, widths))) for row in rows]
    return "\n".join(text + troubles(result))


# --- plots -----------------------------------------------------------------------------------------------------------


def figure(title, drawing, key=""):
    return "<figure><figcaption>%s</figcaption>%s%s</figure>" % (html.escape(title), drawing, key)


def key_of(names, colour):
    return '<div class="key">%s</div>' % "".join(
        '<span><i style="background:%s"></i>%s</span>' % (colour[name], html.escape(name)) for name in names)


def line_figures(result, place):
    for name, title, x_label, x_text, figures in LINES:
        colour = colours(result, name)
        curves = [(one["series"], colour[one["series"]], dashes, points)
                  for what, _, dashes in figures for one in of(result, name, place) if (points := curve(one, what))]
        if curves:
            drawing = plot.lines(curves, x_label, figures[0][1], x_text)
            yield figure(title, drawing, key_of(dict.fromkeys(curve_name for curve_name, *_ in curves), colour))


def bar_figures(result, place):
    for title, name, x, what, label in BARS:
        colour = colours(result, name)
        values = [(one["series"], colour[one["series"]], y) for one in of(result, name, place)
                  for at, y in curve(one, what) if x in (None, at)]
        if values:
            yield figure(title, plot.bars(values, label))


def html_row(tag, words):
    return "<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, html.escape(word), tag) for word in words)


def html_table(rows):
    body = html_row("th", rows[0]) + "".join(html_row("td", row) for row in rows[1:])
    return '<div class="wide"><table>%s</table></div>' % body


def conditions(result):
    """What each row was measured with: the same for all points of it."""
    rows = [["place", "what", "plot", "memory", "processors of client and server", "load", "stolen, %"]]
    for one in result["series"]:
        if one["points"]:
            rows.append([one["place"], one["series"], one["plot"], one["footprint"],
                         "%d, %d" % tuple(one["pinned"]) if one["pinned"] else "not bound", "%.1f" % median(one["load"]),
                         "%.1f" % (100 * median(one["stolen"]))])
    return rows


def html_of(result):
    parts = ['<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
             "<title>rddp, measured</title><style>%s</style>" % STYLE,
             "<h1>rddp, measured</h1><p>%s</p>" % html.escape(machine(result))]
    for place in places(result):
        drawings = [*line_figures(result, place), *bar_figures(result, place)]
        parts.append('<h2>%s</h2><div class="plots">%s</div>' % (html.escape(place), "".join(drawings)))
    parts += ["<h2>Of raw TCP's in the same round</h2><p>Medians. rate: more is better; p50 and p99: less is.</p>",
              html_table([heads()] + [cells(row) for row in ratios(result)])]
    parts += ["<p>%s</p>" % html.escape(trouble) for trouble in troubles(result)]
    parts += ["<details><summary>How each row was measured</summary>", html_table(conditions(result)), "</details>"]
    return "".join(parts) + "</html>\n"


def write_html(result, path):
    with open(path, "w", encoding="utf-8") as out:
        out.write(html_of(result))


# --- the published run -----------------------------------------------------------------------------------------------


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def published(result):
    """The files of the tree that follow from a result."""
    return {HERE + "/report.html": html_of(result), os.path.dirname(HERE) + "/doc/measured.md": page.text(result)}


def publish(result):
    with open(PUBLISHED, "w", encoding="utf-8") as out:
        json.dump(result, out, separators=(",", ":"))
        out.write("\n")
    for path, text in published(result).items():
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)


def check():
    """The names of files that were edited by hand, or made from another run."""
    wrong = []
    for path, text in published(load(PUBLISHED)).items():
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                wrong.append(os.path.relpath(path))
    return wrong


def joined(results):
    """Where rows were measured twice, the later ones count."""
    series = {(one["plot"], one["place"], one["series"]): one for result in results for one in result["series"]}
    if len({(result["version"], result["kernel"], result["processor"]) for result in results}) > 1:
        sys.exit("report: these runs are of different machines or versions")
    return {**results[-1], "rounds": min(result["rounds"] for result in results), "series": list(series.values())}


def main(words):
    if words == ["--check"]:
        wrong = check()
        for name in wrong:
            print("%s does not follow from bench/report.json: bench/report.py --publish bench/report.json" % name)
        return bool(wrong)
    if words[:1] == ["--join"] and len(words) > 2:
        with open(words[1], "w", encoding="utf-8") as out:
            json.dump(joined([load(path) for path in words[2:]]), out, indent=1)
    elif words[:1] == ["--publish"] and len(words) == 2:
        publish(load(words[1]))
    elif len(words) == 1:
        print(table(load(words[0])))
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
