# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""page.py - doc/measured.md from a run of the bench. What it says follows from the run alone."""
import textwrap

import plot
from result import cells, curve, heads, machine, median, figures_at, of, places, ratios, troubles

HEAD = """# Measured

`bench/report.py --publish` made this page of `bench/report.json`, a run of `make bench` in parts; `make lint` fails if
they differ. `bench/report.html` shows the same as plots. [performance.md](performance.md) says how it is measured and
what to expect on another machine.

%s

## Of raw TCP's in the same round

Medians of the quotients of each round. Of a rate more is better, of p50 and p99 less. Ours and raw TCP walk through the
same 16 MiB at both ends; iperf3, qperf, UCX and libfabric move one buffer again and again, which a cache may hold.
"""
# Title, words, plot, columns (None: each x there is): figure, how it is written.
GIGA, MILLION, CPU, US, PLAIN, SHARE = (1e9, "%.2f"), (1e6, "%.2f"), (1, "%.2f"), (1, "%.1f"), (1, "%.0f"), (1, "%.3f")
TABLES = [
    ("Bandwidth, GB/s", "", "bandwidth", "bytes_per_second", GIGA, plot.octets),
    ("Processor time of both ends, seconds for 10^9 octets", "", "bandwidth", "cpu_seconds_per_gigabyte", CPU, plot.octets),
    ("Half a round trip, both ends polling: median, us", "", "latency", "p50_us", US, plot.octets),
    ("The same, p99, us", "", "latency", "p99_us", US, plot.octets),
    ("Half a round trip, both ends asleep until something comes: median, us", "", "asleep", "p50_us", US, plot.octets),
    ("Writes of 8 octets over requests under way, million/s", "", "messages", "messages_per_second", MILLION, str),
    ("What a neighbour gets of a processor beside Writes of all sizes",
     "A process that computes, on whichever processor is free; raw TCP takes its turns in the same time.", "bandwidth",
     "neighbour", SHARE, None),
    ("... beside round trips, both ends polling", "", "latency", "neighbour", SHARE, None),
    ("... beside round trips, both ends asleep", "", "asleep", "neighbour", SHARE, None),
    ("An idle connection, octets of the heap at one end", "Queues of one request each; over the number of connections.",
     "connections", "octets_per_connection", PLAIN, str),
    ("Connections that come in a second", "", "connections", "connects_per_second", PLAIN, str),
    ("Writes of 8 octets beside idle connections, of the same alone", "", "connections", "write_8_per_second", SHARE, str),
    ("Writes of 64 KiB beside idle connections, of the same alone", "", "connections", "write_64k_bytes_per_second", SHARE,
     str),
    ("Cache lines that loops pass to each other, a message",
     "Counted by `bench/loops.py` for loops with a processor each: [scaling.md](scaling.md).", "loops", "lines", SHARE, str),
    ("Writes of 8 octets by one and two workers, a processor each, both ends in one process, million/s", "", "loops",
     "workers_per_second", MILLION, str),
    ("A cache line that moves from one of two processors to the other, ns", "", "loops", "line_ns", (1, "%.1f"), None),
    ("Files over packets lost of 100 (0.01 stands for none), MB/s", "", "losses", "bytes_per_second", (1e6, "%.1f"),
     lambda loss: "%g" % loss),
    ("A file from page cache to page cache, GB/s", "", "files", "bytes_per_second", GIGA, plot.octets),
    ("NFS: READ of 1 MiB, eight under way, GB/s", "", "nfs read", "bytes_per_second", GIGA, None),
    ("NFS: WRITE of 1 MiB, eight under way, GB/s", "", "nfs write", "bytes_per_second", GIGA, None),
    ("NFS: GETATTR, 32 under way, calls a second", "", "nfs getattr", "calls_per_second", PLAIN, None),
]


def markdown(rows, left):
    line = "|---" * left + "|---:" * (len(rows[0]) - left) + "|"
    head, *rest = ["| " + " | ".join(row) + " |" for row in rows]
    return [head, line, *rest]


def value_at(series, x, figure, unit):
    value = median(figures_at(series, x, figure))
    return "" if value is None else unit[1] % (value / unit[0])


def table(result, title, words, name, figure, unit, x_text):
    series = [one for place in places(result) for one in of(result, name, place) if curve(one, figure) or
              any(figure in point for point in one["points"])]
    columns = sorted({point["x"] for one in series for point in one["points"] if figure in point})
    if not series:
        return []
    rows = [["place", "what"] + [x_text(x) if x_text else "" for x in columns]]
    rows += [[one["place"], one["series"]] + [value_at(one, x, figure, unit) for x in columns] for one in series]
    return ["", "## " + title, "", *([words, ""] if words else []), *markdown(rows, 2)]


def text(result):
    lines = [HEAD % textwrap.fill(machine(result) + ".", 118), *markdown([heads()] + [cells(row) for row in ratios(result)], 2)]
    for one in TABLES:
        lines += table(result, *one)
    if troubles(result):
        lines += ["", "## Not measured", "", *("- " + trouble for trouble in troubles(result))]
    return "\n".join(lines) + "\n"
