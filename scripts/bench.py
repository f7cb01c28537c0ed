#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""bench.py - compares rddp with raw TCP and its peers on loopback; prints a table, and writes all values as JSON.

Each round measures everything once, so that a temporary slowdown of the machine affects everything. rddp is
compared with raw TCP measured at the same time (`rddp perf --tcp-ref`). Medians are printed.
"""
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
SECONDS = os.environ.get("BENCH_SECONDS", "0.5")
BUILD = os.environ.get("RDDP_BUILD_DIR", "build/main")
RDDP = os.environ.get("RDDP_TOOL", os.path.join(BUILD, "rddp"))
OUTPUT = os.path.join(os.path.dirname(os.path.abspath(BUILD)), "bench.json")
PATIENCE_S = 120

MIB = 1 << 20

# Name, arguments of `rddp perf`, octets of a message, and the target: the least fraction of raw TCP's bandwidth, or the
# largest multiple of its latency. None: measured without a target.
BANDWIDTH = [
    ("write, no CRC", ["--no-crc", "write"], MIB, 0.85),
    ("write, CRC", ["--crc", "write"], MIB, 0.70),
    ("write, CRC and markers", ["--crc", "--markers", "write"], MIB, 0.60),
    ("write, RDMA/TCP segments", ["--wire", "rdmatcp", "write"], MIB, 0.70),
    ("write, SCTP", ["--wire", "sctp", "write"], MIB, None),
    ("read, SCTP", ["--wire", "sctp", "read"], MIB, None),
    ("write, usrsctp", ["--wire", "sctp", "--sctp", "usrsctp", "write"], MIB, None),
    ("read, usrsctp", ["--wire", "sctp", "--sctp", "usrsctp", "read"], MIB, None),
    ("send, CRC", ["--crc", "send"], MIB, None),
    ("read, CRC", ["--crc", "read"], MIB, None),
]
LATENCY = [
    ("write, CRC", ["--crc", "write"], 8, 1.25),
    ("send, CRC", ["--crc", "send"], 8, 1.25),
    ("write, CRC", ["--crc", "write"], 4096, 1.25),
    ("send, CRC", ["--crc", "send"], 4096, 1.25),
]


def fail(what):
    sys.exit("bench: " + what)


# --- rddp ------------------------------------------------------------------------------------------------------------


class Row:
    """One measurement, repeated: values of rddp, with raw TCP's measured at the same time, or values of a peer."""

    def __init__(self, kind, what, size, measure, target=None):
        self.kind, self.what, self.size, self.measure, self.target = kind, what, size, measure, target
        self.values, self.raw, self.trouble = [], [], None

    def ratios(self):
        return [value / raw for value, raw in zip(self.values, self.raw)]

    def is_met(self):
        if self.target is None or not self.raw:
            return None
        ratio = statistics.median(self.ratios())
        return ratio >= self.target if self.kind == "bandwidth" else ratio <= self.target


def rddp_perf(kind, size, arguments):
    """Returns octets a second, or half a round trip in microseconds: rddp's, and raw TCP's just before."""
    flag = "--bw" if kind == "bandwidth" else "--lat"
    command = [RDDP, "perf", "--loopback", "--json", "--tcp-ref", "-r", "1", "-t", SECONDS, flag, "-s", str(size)]
    run = subprocess.run(command + arguments, capture_output=True, text=True, timeout=PATIENCE_S)
    if run.returncode:
        raise RuntimeError(run.stderr.strip() or "exit code %d" % run.returncode)
    result = json.loads(run.stdout)["results"][0]
    if not result["verified"]:
        raise RuntimeError("not verified")
    if kind == "bandwidth":
        return result["bytes_per_second"], result["raw_bytes_per_second"]
    return result["lat_us_p50"], result["raw_lat_us_p50"]


def rddp_rows(kind, table):
    return [Row(kind, "rddp " + what, size, lambda k=kind, s=size, a=arguments: rddp_perf(k, s, a), target)
            for what, arguments, size, target in table]


# --- peers -----------------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def client_and_server(server, client):
    """Returns the client's output. The server gets 0.5 s to listen, and is terminated after the client."""
    listening = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        run = subprocess.run(client, capture_output=True, text=True, timeout=PATIENCE_S)
    finally:
        listening.terminate()
        listening.wait()
    if run.returncode:
        raise RuntimeError((run.stderr or run.stdout).strip() or "exit code %d" % run.returncode)
    return run.stdout


def iperf3():
    port = free_port()
    out = client_and_server(["iperf3", "-s", "-B", "127.0.0.1", "-p", port],
                            ["iperf3", "-c", "127.0.0.1", "-p", port, "-l", "1M", "-t", "1", "-J"])
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8


def qperf(test, size):
    port = free_port()
    out = client_and_server(["qperf", "-lp", port],
                            ["qperf", "-lp", port, "127.0.0.1", "-t", "1", "-m", str(size), "-uu", test])
    value, unit = re.search(r"=\s+([\d.]+) (bytes/sec|ns)", out).groups()
    return float(value) / (1000 if unit == "ns" else 1)


def fabric(program, arguments, size, count, column):
    """Returns a column of the line of figures that fi_pingpong and the programs of fabtests print."""
    port = free_port()
    command = [program, "-p", "tcp", *arguments, "-S", str(size), "-I", str(count)]
    out = client_and_server(command + ["-B", port], command + ["-P", port, "127.0.0.1"])
    head, line = [text.split() for text in out.strip().splitlines()[-2:]]
    return float(line[head.index(column)])


def peer_rows():
    rows = []

    def add(program, kind, what, size, measure):
        row = Row(kind, what, size, measure)
        if not shutil.which(program):
            row.trouble = "left out: %s is not installed" % program
        rows.append(row)

    add("fi_rma_bw", "bandwidth", "libfabric tcp, fi_rma_bw", MIB,
        lambda: 1e6 * fabric("fi_rma_bw", ["-e", "msg", "-o", "writedata", "-W", "16"], MIB, 2000, "MB/sec"))
    add("qperf", "bandwidth", "qperf tcp_bw", MIB, lambda: qperf("tcp_bw", MIB))
    add("iperf3", "bandwidth", "iperf3 -l 1M", MIB, iperf3)
    # fi_msg_pingpong belongs to fabtests; fi_pingpong comes with libfabric.
    pingpong = next(filter(shutil.which, ["fi_msg_pingpong", "fi_pingpong"]), "fi_msg_pingpong")
    for size in 8, 4096:
        arguments = ["-e", "msg"] if pingpong == "fi_pingpong" else []
        add(pingpong, "latency", "libfabric tcp, " + pingpong, size,
            lambda s=size, a=arguments: fabric(pingpong, a, s, 20000, "usec/xfer"))
        add("qperf", "latency", "qperf tcp_lat", size, lambda s=size: qperf("tcp_lat", s))
    return rows


# --- table and JSON --------------------------------------------------------------------------------------------------


def size_text(size):
    return "%d %s" % (size, "octets") if size < 1024 else "%d KiB" % (size >> 10) if size < MIB else "1 MiB"


def value_text(kind, value):
    return "%.2f GB/s" % (value / 1e9) if kind == "bandwidth" else "%.2f us" % value


def print_row(row):
    start = "%-30s %-8s" % (row.what, size_text(row.size))
    if row.trouble:
        print("%s %s" % (start, row.trouble))
        return
    line = "%s %11s" % (start, value_text(row.kind, statistics.median(row.values)))
    if row.raw:
        ratios = row.ratios()
        line += " %11s  %.2f (%.2f..%.2f)" % (value_text(row.kind, statistics.median(row.raw)),
                                              statistics.median(ratios), min(ratios), max(ratios))
    if row.is_met() is not None:
        line += "  %s %.2f: %s" % (">=" if row.kind == "bandwidth" else "<=", row.target,
                                   "met" if row.is_met() else "not met")
    print(line)


def print_table(rows):
    for kind, title in ("bandwidth", "bandwidth"), ("latency", "latency, half a round trip"):
        print("\n%-39s %11s %11s  %-17s  %s" % (title, "median", "raw TCP", "ratio (min..max)", "target"))
        for row in rows:
            if row.kind == kind:
                print_row(row)
    print("\nGB/s: 10^9 octets a second. Ratio: rddp / raw TCP just before it, the median of %d round%s."
          % (ROUNDS, "s"[:ROUNDS != 1]))


def processor():
    try:
        with open("/proc/cpuinfo") as info:
            return re.search(r"model name\s*:\s*(.*)", info.read()).group(1)
    except (OSError, AttributeError):
        return platform.machine()


def version():
    return subprocess.run([RDDP, "--version"], capture_output=True, text=True).stdout.strip()


def write_json(rows, machine):
    rows = [{
        "what": row.what, "kind": row.kind, "size_octets": row.size,
        "unit": "bytes_per_second" if row.kind == "bandwidth" else "microseconds_half_round_trip",
        "values": row.values, "median": statistics.median(row.values) if row.values else None,
        "raw_tcp_values": row.raw, "ratios_to_raw": row.ratios(),
        "ratio_to_raw": statistics.median(row.ratios()) if row.raw else None,
        "target": row.target, "met": row.is_met(), "trouble": row.trouble,
    } for row in rows]
    with open(OUTPUT, "w") as out:
        about = {"program": "bench", "version": version(), "rounds": ROUNDS}
        json.dump({**about, **machine, "results": rows}, out, indent=2)
        out.write("\n")
    print("all values: " + OUTPUT)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` runs
    if not os.access(RDDP, os.X_OK):
        fail("no %s: `make` builds it" % RDDP)
    machine = {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "kernel": platform.release(),
               "processor": processor(), "processors": os.cpu_count(), "load_before": os.getloadavg()[0]}
    print("%(processors)d x %(processor)s, Linux %(kernel)s, load %(load_before).1f" % machine)
    if machine["load_before"] > 0.5:
        print("the machine is busy: other programs affect the figures")
    rows = rddp_rows("bandwidth", BANDWIDTH) + rddp_rows("latency", LATENCY) + peer_rows()
    for _ in range(ROUNDS):
        for row in rows:
            if row.trouble:
                continue
            try:
                value = row.measure()
            except (RuntimeError, ValueError, AttributeError, subprocess.TimeoutExpired) as trouble:
                kind = "left out" if "without usrsctp" in str(trouble) else "FAILED"
                row.trouble = "%s: %s" % (kind, trouble)
                continue
            value, *raw = value if isinstance(value, tuple) else (value,)
            row.values.append(value)
            row.raw += raw
            time.sleep(0.2)
    print_table(rows)
    write_json(rows, machine)
    if any(row.trouble and row.trouble.startswith("FAILED") for row in rows):
        fail("a measurement failed")


main()
