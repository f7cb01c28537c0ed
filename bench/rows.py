# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rows.py - what is measured: each row is a line of a plot, and one call measures all of its points once."""
import json
import os
import re
import shutil
import subprocess
import sys

RDDP = os.environ.get("RDDP_TOOL", os.path.join(os.environ.get("RDDP_BUILD_DIR", "build/main"), "rddp"))
SECONDS = os.environ.get("BENCH_SECONDS", "0.2")
BANDWIDTH_SIZES = [64, 4096, 65536, 1 << 20, 8 << 20]
LATENCY_SIZES = [8, 1024, 4096, 65536]
WINDOWS = [1, 4, 16, 64, 256]
CONNECTIONS = [10, 100, 1000]
RAW = "raw TCP"
WIRES = [("iWARP", "iwarp"), ("RDMA/TCP segments", "rdmatcp"), ("SCTP over UDP", "sctp"), ("RoCE version 2", "roce")]


class Row:
    """`measure` returns {series: {x: {what: figure}}}, of itself and of what it measured beside itself."""

    def __init__(self, plot, place, series, measure, needs=None):
        self.plot, self.place, self.series, self.measure = plot, place, series, measure
        self.trouble = "left out: %s is not installed" % needs if needs and not shutil.which(needs) else None


# --- rddp ------------------------------------------------------------------------------------------------------------


def perf(place, arguments):
    port = place.free_port()
    server = [RDDP, "perf", "--server", "--once", "-a", place.address, "-p", port, *transport(arguments)]
    client = [RDDP, "perf", "--json", "-r", "1", "-t", SECONDS, *arguments, place.address + ":" + port]
    operation = client.pop(client.index(arguments[-1]))
    results = json.loads(place.both(server, client + [operation], ready="listening"))["results"]
    if not all(result["verified"] for result in results):
        raise RuntimeError("not verified")
    return results


def transport(arguments):
    """What both ends must be told alike."""
    return [word for at, word in enumerate(arguments) if word == "--wire" or at and arguments[at - 1] == "--wire"]


def sizes(values):
    return ",".join(str(value) for value in values)


def cpu(result, prefix=""):
    ends = [result.get(prefix + end + "_cpu_seconds_per_gigabyte") for end in ("client", "server")]
    return None if None in ends else sum(ends)


def bandwidth(place, arguments):
    ours, raw = {}, {}
    for result in perf(place, ["--bw", "-s", sizes(BANDWIDTH_SIZES), *arguments]):
        at = result["size_octets"]
        ours[at] = {"bytes_per_second": result["bytes_per_second"], "cpu_seconds_per_gigabyte": cpu(result)}
        if "raw_bytes_per_second" in result:
            raw[at] = {"bytes_per_second": result["raw_bytes_per_second"],
                       "cpu_seconds_per_gigabyte": cpu(result, "raw_")}
    return ours, raw


def latency(place, arguments):
    ours, raw = {}, {}
    for result in perf(place, ["--lat", "-s", sizes(LATENCY_SIZES), *arguments]):
        at = result["size_octets"]
        ours[at] = {"p50_us": result["lat_us_p50"], "p99_us": result["lat_us_p99"]}
        if "raw_lat_us_p50" in result:
            raw[at] = {"p50_us": result["raw_lat_us_p50"], "p99_us": result["raw_lat_us_p99"]}
    return ours, raw


def messages(place, arguments):
    return {window: {"messages_per_second": perf(place, ["--bw", "-s", "8", "-w", str(window), *arguments])[0]
                     ["bytes_per_second"] / 8} for window in WINDOWS}, {}


def idle(place, arguments):
    points = {}
    for count in CONNECTIONS:
        port = place.free_port()
        server = [RDDP, "perf", "--server", "--once", "--idle", str(count), "-a", place.address, "-p", port, *arguments]
        client = [RDDP, "perf", "--json", "--idle", str(count), *arguments, place.address + ":" + port]
        result = json.loads(place.both(server, client, ready="listening"))
        points[count] = {"octets_per_connection": result["client_octets_per_connection"]}
    return points, {}


def our_rows(place):
    rows = []

    def add(plot, measure, series, arguments):
        def both():
            ours, raw = measure(place, arguments)
            return {series: ours, RAW: raw} if raw else {series: ours}
        rows.append(Row(plot, place, series, both))

    add("bandwidth", bandwidth, "iWARP Write", ["--wire", "iwarp", "--tcp-ref", "write"])
    add("bandwidth", bandwidth, "iWARP Write, no CRC", ["--wire", "iwarp", "--no-crc", "write"])
    add("bandwidth", bandwidth, "iWARP Read", ["--wire", "iwarp", "read"])
    for name, wire in WIRES[1:]:
        add("bandwidth", bandwidth, name + " Write", ["--wire", wire, "write"])
    add("latency", latency, "iWARP Write", ["--wire", "iwarp", "--tcp-ref", "write"])
    add("latency", latency, "iWARP Send", ["--wire", "iwarp", "send"])
    add("asleep", latency, "iWARP Write", ["--wire", "iwarp", "--events", "--tcp-ref", "write"])
    add("asleep", latency, "iWARP Send", ["--wire", "iwarp", "--events", "send"])
    for name, wire in WIRES[1:]:
        add("latency", latency, name + " Write", ["--wire", wire, "write"])
    for name, wire in WIRES:
        add("messages", messages, name + " Write", ["--wire", wire, "write"])
    if place.name == "loopback":
        add("connections", idle, "iWARP", ["--wire", "iwarp"])
    return rows


# --- others ----------------------------------------------------------------------------------------------------------


def iperf3(place):
    port, points = place.free_port(), {}
    server = place.start(["iperf3", "-s", "-p", port])
    try:
        for size in BANDWIDTH_SIZES[1:-1]:  # it takes blocks of up to 1 MiB
            out = place.run(["iperf3", "-c", place.address, "-p", port, "-l", str(size), "-t", "1", "-J"])
            points[size] = {"bytes_per_second": json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8}
    finally:
        server.terminate()
        server.communicate()
    return points


def qperf(place, test, what, values):
    port, points = place.free_port(), {}
    server = place.start(["qperf", "-lp", port])
    try:
        for size in values:
            out = place.run(["qperf", "-lp", port, place.address, "-t", "1", "-m", str(size), "-uu", test])
            value, unit = re.search(r"=\s+([\d.]+) (bytes/sec|ns)", out).groups()
            points[size] = {what: float(value) / (1000 if unit == "ns" else 1)}
    finally:
        server.terminate()
        server.communicate()
    return points


def fabric(place):
    """fi_pingpong prints the mean."""
    points = {}
    for size in LATENCY_SIZES:
        port = place.free_port()
        command = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-S", str(size), "-I", "5000"]
        out = place.both([*command, "-B", port], [*command, "-P", port, place.address])
        head, line = [text.split() for text in out.strip().splitlines()[-2:]]
        points[size] = {"p50_us": float(line[head.index("usec/xfer")])}
    return points


def ucx(place, test, values, read):
    """Over TCP alone. The last line is: iterations, the median, mean and mean of all in us, bandwidth twice, rate twice."""
    points = {}
    command = ["env", "UCX_TLS=tcp", "UCX_WARN_UNUSED_ENV_VARS=n", "ucx_perftest", "-f", "-t", test, "-w", "100"]
    for size in values:
        port, count = place.free_port(), max(200, min(20000, (256 << 20) // size))
        both = [*command, "-p", port, "-s", str(size)]
        out = place.both(both, [*both, "-n", str(count), place.address])
        points[size] = read([float(word) for word in out.strip().splitlines()[-1].split()])
    return points


def other_rows(place):
    def row(plot, series, measure, needs):
        return Row(plot, place, series, lambda: {series: measure()}, needs)

    return [
        row("bandwidth", "iperf3", lambda: iperf3(place), "iperf3"),
        row("bandwidth", "qperf tcp_bw", lambda: qperf(place, "tcp_bw", "bytes_per_second", BANDWIDTH_SIZES), "qperf"),
        row("bandwidth", "UCX put over TCP", lambda: ucx(
            place, "ucp_put_bw", BANDWIDTH_SIZES, lambda figures: {"bytes_per_second": figures[5] * (1 << 20)}),
            "ucx_perftest"),
        row("latency", "qperf tcp_lat (mean)", lambda: qperf(place, "tcp_lat", "p50_us", LATENCY_SIZES), "qperf"),
        row("latency", "libfabric tcp (mean)", lambda: fabric(place), "fi_pingpong"),
        row("latency", "UCX tag over TCP", lambda: ucx(
            place, "tag_lat", LATENCY_SIZES, lambda figures: {"p50_us": figures[1]}), "ucx_perftest"),
    ]


# --- programs that make a place of their own -------------------------------------------------------------------------


class Elsewhere:
    """The name of a place that a script makes itself."""

    def __init__(self, name):
        self.name = name


def script(name, words, **environment):
    """Returns what a script prints that measures everything once."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    environment = {**os.environ, "BENCH_ROUNDS": "1", "ROUNDS": "1", **environment}
    done = subprocess.run([sys.executable, path, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip())
    return done.stdout


def losses(trip):
    """A path that loses 0, 0.1 and 1 of 100 packets; 0.01 stands for none, since a logarithmic axis has no zero."""
    series = {}
    for loss, who, rate in re.findall(r"loss +(\d+): (\w+ \w+) +([\d.]+) MB/s", script(
            "paths.py", [os.path.dirname(os.path.abspath(RDDP)), "0", "100", "1000"], TRIPS=str(trip))):
        series.setdefault(who, {})[max(int(loss), 10) / 1000] = {"bytes_per_second": float(rate) * 1e6}
    return series


def nfs(kind):
    """READ and WRITE of 1 MiB, eight under way, or GETATTR, 32 under way."""
    series = {}
    printed = script("nfs.py", [], BENCH_KIND=kind)
    for who, rate, cpu_s in re.findall(r"(?m)^(.*), %s +([\d.e+]+) +([\d.e+-]+)$" % kind, printed):
        series[who] = {0: {"calls_per_second": float(rate) * 1000} if kind == "getattr" else
                       {"bytes_per_second": float(rate) * 1e9, "cpu_seconds_per_gigabyte": float(cpu_s)}}
    return series


def script_rows():
    if os.geteuid() != 0:
        return []
    paths, server = [(trip, Elsewhere("a path of %d ms" % trip)) for trip in (1, 20)], Elsewhere("NFS")
    return ([Row("losses", place, place.name, lambda trip=trip: losses(trip)) for trip, place in paths] +
            [Row("nfs " + kind, server, kind, lambda kind=kind: nfs(kind)) for kind in ("read", "write", "getattr")])
