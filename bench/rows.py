# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rows.py - what is measured: each row is a line of a plot, and one call measures all of its points once."""
import json
import os
import re
import resource
import shutil
import subprocess
import sys

from loops import scale
from places import neighbour

RDDP = os.environ.get("RDDP_TOOL", os.path.join(os.environ.get("RDDP_BUILD_DIR", "build/main"), "rddp"))
SECONDS = os.environ.get("BENCH_SECONDS", "0.2")
UDP_HEAD = 28
BANDWIDTH_SIZES = [64, 4096, 65536, 1 << 20, 8 << 20]
LATENCY_SIZES = [8, 1024, 4096, 65536]
WINDOWS = [1, 4, 16, 64, 256]
CONNECTIONS = [1, 100, 10000]
WALK = 16 << 20  # octets that messages walk through at each end: more than what is near a processor holds
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(RDDP)), "bench")
RAW = "raw TCP"
LOOPS = [1, 2, 4, 8, 16]
MEASURED = {"two_own": "two loops, a CQ for each", "two_one_cq": "two loops, one CQ", "two_one_loop": "one loop",
            "two_apart": "two contexts"}
CQS = {"own": "a CQ for each loop", "one": "one CQ for all"}
WALKS = "walks through 16 MiB"
ONE = "one message, again and again"
WIRES = [("iWARP", "iwarp"), ("RDMA/TCP segments", "rdmatcp"), ("SCTP over UDP", "sctp"), ("RoCE version 2", "roce")]


class Row:
    """`measure` returns {series: {x: {what: figure}}}, of itself and of what it measured beside itself. `footprint` says
    which memory the octets come from and go to at each end, `pinned` whether client and server have a processor each."""

    def __init__(self, plot, place, series, measure, needs=None, footprint="", pinned=True):
        self.plot, self.place, self.series, self.measure = plot, place, series, measure
        self.footprint, self.pinned = footprint, pinned
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
    for result in perf(place, ["--bw", "--walk", str(WALK), "-s", sizes(BANDWIDTH_SIZES), *arguments]):
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


def connections(wire):
    """As many as a process may have descriptors for."""
    points, limit = {}, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for count in CONNECTIONS:
        if limit != resource.RLIM_INFINITY and count + 100 > limit:
            continue
        result = json.loads(run_program(["connections", str(count), wire, "5", str(float(SECONDS) / 2)]))
        points[count] = {"octets_per_connection": max(result["client_octets"], result["server_octets"]),
                         **({"connects_per_second": result["connects_per_second"]} if count > 1 else {}),
                         **{kind: result["ratio_" + kind] for kind in ("write_8_per_second", "write_64k_bytes_per_second")}}
    return points


def run_program(words):
    done = subprocess.run([os.path.join(PROGRAMS, words[0]), *words[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or "exit code %d" % done.returncode)
    return done.stdout


def our_rows(place):
    rows = []

    def add(plot, measure, series, arguments):
        def both():
            ours, raw = measure(place, arguments)
            return {series: ours, RAW: raw} if raw else {series: ours}
        rows.append(Row(plot, place, series, both, footprint=WALKS if plot == "bandwidth" else ONE))

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
    return rows


def beside_neighbour(place, plot, measure, series, arguments):
    """With a process that computes all the time, on whichever processor it gets, and what it gets of one."""
    def both():
        with neighbour() as share:
            ours, raw = measure(place, arguments)
            got = share()
        ours[1 << 20 if plot == "bandwidth" else 8]["neighbour"] = got
        return {series: ours, RAW: raw} if raw else {series: ours}
    return Row(plot, place, series, both, footprint=WALKS if plot == "bandwidth" else ONE)


def busy_rows(place):
    return [beside_neighbour(place, "bandwidth", bandwidth, "iWARP Write", ["--tcp-ref", "write"]),
            beside_neighbour(place, "latency", latency, "iWARP Write", ["--tcp-ref", "write"]),
            beside_neighbour(place, "latency", latency, "iWARP Send", ["send"]),
            beside_neighbour(place, "asleep", latency, "iWARP Write", ["--events", "--tcp-ref", "write"]),
            beside_neighbour(place, "asleep", latency, "iWARP Send", ["--events", "send"])]


def lists(row):
    return "lists of %d" % row["list"] if row["list"] > 1 else "one at a time"


def scale_rows(place):
    """What many connections cost, and what loops pass to each other; that is counted, so once is enough."""
    rows = [Row("connections", place, name, lambda name=name, wire=wire: {name: connections(wire)})
            for name, wire in (WIRES[0], WIRES[-1])]
    counted = []

    def loops():
        if not counted:
            counted.extend(scale(os.path.join(PROGRAMS, "loops"), LOOPS))
        found = {"%s, %s" % (CQS[row["cqs"]], lists(row)): {
            point["loops"]: {"lines": point["moves"], "messages_per_second": point["messages_per_second"]}
            for point in row["loops"]} for row in counted}
        found["a line"] = {2: {"line_ns": counted[0]["measured"]["line_ns"]}}
        for row in {row["list"]: row for row in counted}.values():
            took = row["measured"]
            for what, name in MEASURED.items():
                found["%s, %s" % (name, lists(row))] = {
                    1: {"workers_per_second": took["one_worker"]}, 2: {"workers_per_second": took[what]}}
        return found
    return rows + [Row("loops", place, "loops", loops, "valgrind", pinned=False)]


# --- others ----------------------------------------------------------------------------------------------------------


def iperf3(place):
    port, points = place.free_port(), {}
    server = place.start(["iperf3", "-s", "-p", port])
    try:
        for size in BANDWIDTH_SIZES[1:-1]:  # it takes blocks of up to 1 MiB
            out = place.run(["iperf3", "-c", place.address, "-p", port, "-l", str(size), "-t", "1", "-J"])
            result = json.loads(out)["end"]
            rate, cpu_s = result["sum_received"]["bits_per_second"] / 8, result["cpu_utilization_percent"]
            points[size] = {"bytes_per_second": rate, "cpu_seconds_per_gigabyte":
                            (cpu_s["host_total"] + cpu_s["remote_total"]) / 100 * 1e9 / rate}
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


def udp_bandwidth(place):
    """Packets as large as RoCE's, in the same batches, with no transport: 64 of them or 64 KiB a call."""
    port = place.free_port()
    out = place.both([os.path.join(PROGRAMS, "udp"), "sink", place.address, port],
                     [os.path.join(PROGRAMS, "udp"), "source", place.address, port, str(place.mtu), SECONDS, str(WALK)], "ready")
    return {65536: json.loads(out)}


def udp_latency(place):
    points = {}
    for size in LATENCY_SIZES:
        if size + UDP_HEAD <= place.mtu:
            port = place.free_port()
            out = place.both([os.path.join(PROGRAMS, "udp"), "echo", place.address, port],
                             [os.path.join(PROGRAMS, "udp"), "ping", place.address, port, str(size), SECONDS], "ready")
            points[size] = json.loads(out)
    return points


def other_rows(place):
    def row(plot, series, measure, needs=None, footprint=ONE):
        return Row(plot, place, series, lambda: {series: measure()}, needs, footprint)

    return [
        row("bandwidth", "raw UDP in batches", lambda: udp_bandwidth(place), footprint="sender " + WALKS),
        row("latency", "raw UDP", lambda: udp_latency(place)),
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


def write_losses(trip):
    """Writes of 64 KiB, with the same losses each way."""
    series = {}
    for loss, wire, rate in re.findall(r"loss +(\d+): (\w+) +([\d.]+) MB/s", script(
            "losses.py", [os.path.dirname(os.path.abspath(RDDP)), "0", "100", "1000"], TRIPS=str(trip), SECONDS="1")):
        name = {"roce": "RoCE version 2 Write", "iwarp": "iWARP Write over CUBIC"}[wire]
        if float(rate):
            series.setdefault(name, {})[max(int(loss), 10) / 1000] = {"bytes_per_second": float(rate) * 1e6}
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
    return ([Row("losses", place, place.name, lambda trip=trip: losses(trip), pinned=False) for trip, place in paths] +
            [Row("losses", place, place.name + ", Writes", lambda trip=trip: write_losses(trip), footprint=ONE, pinned=False)
             for trip, place in paths] +
            [Row("nfs " + kind, server, kind, lambda kind=kind: nfs(kind), footprint="a file in a tmpfs", pinned=False)
             for kind in ("read", "write", "getattr")])
