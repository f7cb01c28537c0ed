#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""losses.py BUILD [LOSS...] - Writes over RoCE, and over iWARP on the kernel's TCP with CUBIC, over paths made by
bench/relay.c. Prints a line each: round trip in ms, packets lost of 100000 each way, wire, the median of the rounds in MB/s,
what that is of the same wire's median without loss in 1 ms, the least and the greatest, and packets sent again and time-outs
of RoCE. Needs root. ROUNDS=N rounds, 3 unless told, in each of which all take their turn; TRIPS="1 20" round trips in ms;
SECONDS=N of a run, about; SIZE=64K of a Write; MTU=1500 of the path; WIRES="roce iwarp".

losses.py BUILD shared [MBIT...] - both at once through one queue of 10 ms, a path of QUEUE_TRIP="20" ms: what RoCE gets of
all that arrives while both send."""
import json
import os
import statistics
import subprocess
import sys
import time

build, losses = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["0", "100", "1000", "5000"]
rddp, relay = build + "/rddp", build + "/bench/relay"
ROUNDS = int(os.environ.get("ROUNDS", "3"))
TRIPS = os.environ.get("TRIPS", "1 20").split()
WIRES = os.environ.get("WIRES", "roce iwarp").split()
SECONDS, SIZE, MTU = (os.environ.get(name, value) for name, value in (("SECONDS", "2"), ("SIZE", "64K"), ("MTU", "1500")))
A, B = "rddp-la-%d" % os.getpid(), "rddp-lb-%d" % os.getpid()
started = []


def run(text, check=True):
    return subprocess.run(text.split(), check=check, capture_output=True, text=True)


def start(text, ready):
    process = subprocess.Popen(text.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    started.append(process)
    line = process.stdout.readline()
    if ready not in line:
        sys.exit(text + ": " + line + process.stdout.read())
    return process


def stop(process):
    process.terminate()
    process.communicate()
    started.remove(process)


def measure(wire):
    server = start("ip netns exec %s %s perf --server --once --wire %s -a 10.80.2.1 -s 1M" % (B, rddp, wire), "listening")
    done = run("ip netns exec %s %s perf --wire %s --json --bw -s %s -w 64 -t %s 10.80.2.1 write" % (
        A, rddp, wire, SIZE, SECONDS), False)
    stop(server)
    if done.returncode:
        print("%s: exit code %d: %s" % (wire, done.returncode, done.stderr.strip()), flush=True)
        return 0, {}
    value = json.loads(done.stdout)
    return value["results"][0]["bytes_per_second"] / 1e6, value.get("roce", {})


def path(loss, trip, base):
    between = start("%s %s la %s lb %d %s" % (relay, A, B, int(trip) * 500, loss), "ready")
    results = {wire: [] for wire in WIRES}
    for _ in range(ROUNDS):
        for wire, result in results.items():
            result.append(measure(wire))
    stop(between)
    for wire, result in results.items():
        rates = [rate for rate, _ in result]
        middle = statistics.median(rates)
        if (loss, trip) == ("0", "1"):
            base[wire] = middle
        print("%3s ms, loss %5s: %-6s %8.2f MB/s %6s  %8.2f to %8.2f" % (
            trip, loss, wire, middle, "%.3f" % (middle / base[wire]) if wire in base else "", min(rates), max(rates)),
            *("%s %d" % (name, sum(counted.get(name, 0) for _, counted in result))
              for name in ("resent", "timeouts", "naks", "undone") if wire == "roce"), flush=True)


def tcp_octets():
    shown = run("ip netns exec %s ss -tinH" % B).stdout
    return sum(int(word[15:]) for word in shown.split() if word.startswith("bytes_received:"))


def shared(mbit, trip):
    """CUBIC sends all the time, RoCE for a while: what each gets while both do."""
    between = start("%s %s la %s lb %d 0 %s 10000" % (relay, A, B, int(trip) * 500, mbit), "ready")
    server = start("ip netns exec %s %s perf --server --wire iwarp -a 10.80.2.1 -p 18518 -s 1M" % (B, rddp), "listening")
    cubic = subprocess.Popen(("ip netns exec %s %s perf --wire iwarp --bw -s 64K -w 64 -t 600 10.80.2.1:18518 write" % (
        A, rddp)).split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started.append(cubic)
    time.sleep(5)
    for _ in range(ROUNDS):
        before, begun = tcp_octets(), time.monotonic()
        roce, counted = measure("roce")
        other = (tcp_octets() - before) / (time.monotonic() - begun) / 1e6
        print("%s Mbit/s, %s ms, queue 10 ms: RoCE %.2f MB/s, CUBIC %.2f MB/s, RoCE has %.1f %%, resent %d, timeouts %d" % (
            mbit, trip, roce, other, 100 * roce / (roce + other), counted.get("resent", 0), counted.get("timeouts", 0)),
            flush=True)
    cubic.kill()
    cubic.wait()
    started.remove(cubic)
    stop(server)
    stop(between)


try:
    for space, device, own in ((A, "la", "10.80.1.1/24"), (B, "lb", "10.80.2.1/24")):
        run("ip netns add " + space)
        for text in ("ip link set lo up", "ip tuntap add dev %s mode tun" % device, "ip addr add %s dev %s" % (own, device),
                     "ip link set %s up mtu %s txqueuelen 20000" % (device, MTU),
                     "ip route add default dev %s congctl cubic" % device,
                     "sysctl -qw net.ipv4.tcp_no_metrics_save=1"):
            run("ip netns exec %s %s" % (space, text))
    based = {}
    if losses[0] == "shared":
        for rate in losses[1:] or ["50", "200"]:
            shared(rate, os.environ.get("QUEUE_TRIP", "20"))
        losses = []
    for one in losses:
        for time_ms in TRIPS:
            path(one, time_ms, based)
finally:
    for process in started:
        process.kill()
    time.sleep(0.2)
    for space in (A, B):
        run("ip netns del " + space, False)
