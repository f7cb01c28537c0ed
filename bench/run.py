#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""run.py - measures rddp beside raw TCP and what else moves data on this machine; writes bench.json and bench.html beside
the build, and prints the ratios. Each round measures everything once, in turn, so that what slows the machine down for a
while slows all of it; what is compared is compared within a round. doc/performance.md explains the output.

BENCH_ROUNDS=N (5), BENCH_SECONDS=S of a run of `rddp perf` (0.2), BENCH_ONLY=PATTERN rows that have it in "plot, place,
series", BENCH_FILE_MB=N the file that is copied (512)."""
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

from files import Files
from places import CLIENT_CPU, SERVER_CPU, Busy, all_places
from report import table, write_html
from rows import RDDP, busy_rows, other_rows, our_rows, scale_rows, script_rows

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
ONLY = os.environ.get("BENCH_ONLY", "")
OUTPUT = os.path.dirname(os.path.abspath(os.environ.get("RDDP_BUILD_DIR", "build/main")))
FAULTS = (RuntimeError, ValueError, AttributeError, KeyError, OSError, subprocess.SubprocessError)


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return re.search(r"model name\s*:\s*(.*)", info.read()).group(1)
    except (OSError, AttributeError):
        return platform.machine()


def say(words):
    if sys.stderr.isatty():
        print("\r\033[K" + words, end="", file=sys.stderr, flush=True)


def stolen():
    """Time that the host took for others, and all time, in ticks of all processors."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    return ticks[7], sum(ticks)


class Series:
    """A row's figures of all rounds: points[x][what] is a list with one figure a round, None where there is none."""

    def __init__(self, row, name):
        self.row, self.plot, self.place, self.name, self.points = row, row.plot, row.place.name, name, {}
        self.trouble, self.loads, self.stolen = None, [], []

    def add(self, turn, points):
        for x, figures in points.items():
            for what, value in figures.items():
                values = self.points.setdefault(x, {}).setdefault(what, [])
                values += [None] * (turn - len(values)) + [value]

    def as_json(self):
        points = [{"x": x, **{what: rounded(values) for what, values in figures.items()}}
                  for x, figures in sorted(self.points.items())]
        pinned = [CLIENT_CPU, SERVER_CPU] if self.row.pinned and pin_works() else None
        return {"plot": self.plot, "place": self.place, "series": self.name, "footprint": self.row.footprint,
                "pinned": pinned, "load": rounded(self.loads), "stolen": rounded(self.stolen),
                "points": points, "trouble": self.trouble}


def rounded(values):
    return [value if value is None else float("%.4g" % value) for value in values]


def pin_works():
    return shutil.which("taskset") and SERVER_CPU != CLIENT_CPU


def measure(rows, rounds):
    """Returns the series. Each has, of each round, the load before it and the fraction of time that was stolen in it."""
    series = {}

    def of(row, name):
        return series.setdefault((row.plot, row.place.name, name), Series(row, name))

    for turn in range(rounds):
        for at, row in enumerate(rows):
            load, (theirs, ticks) = os.getloadavg()[0], stolen()
            say("round %d of %d, %d of %d: %s, %s, %s" % (
                turn + 1, rounds, at + 1, len(rows), row.plot, row.place.name, row.series))
            try:
                found = {} if row.trouble else row.measure()
                later, all_ticks = stolen()
                for name, points in found.items():
                    of(row, name).add(turn, points)
                    of(row, name).loads.append(load)
                    of(row, name).stolen.append((later - theirs) / max(1, all_ticks - ticks))
            except FAULTS as fault:
                row.trouble = "FAILED: %s" % fault
            if row.trouble:
                of(row, row.series).trouble = row.trouble
    say("")
    return list(series.values())


def is_made(place):
    try:
        place.make()
    except subprocess.CalledProcessError as fault:
        place.remove()
        print("left out: %s cannot be made here: %s" % (place.name, fault.stderr.decode().strip()))
        return False
    return True


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` runs
    if not os.access(RDDP, os.X_OK):
        sys.exit("bench: no %s: `make` builds it" % RDDP)
    places, files = all_places(), Files()
    about = {"version": subprocess.run([RDDP, "--version"], capture_output=True, text=True, check=False).stdout.strip(),
             "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "kernel": platform.release().split("-")[0],
             "processor": processor(), "processors": os.cpu_count()}
    try:
        files.make()
        places = [place for place in places if is_made(place)]
        rows = [row for place in places for row in our_rows(place) + other_rows(place) + files.rows(place)]
        rows += busy_rows(Busy()) + scale_rows(places[0]) + script_rows()
        rows = [row for row in rows if re.search(ONLY, "%s, %s, %s" % (row.plot, row.place.name, row.series))]
        series = measure(rows, ROUNDS)
    finally:
        files.remove()
        for place in places:
            place.remove()
    result = {**about, "rounds": ROUNDS, "series": [one.as_json() for one in series]}
    with open(OUTPUT + "/bench.json", "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
    write_html(result, OUTPUT + "/bench.html")
    print(table(result))
    print("all values: %s/bench.json; plots: %s/bench.html" % (OUTPUT, OUTPUT))
    return any(str(one.trouble).startswith("FAILED") for one in series)


sys.exit(main())
