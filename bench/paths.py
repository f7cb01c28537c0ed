#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""paths.py BUILD [LOSS...] - goodput over paths made by bench/relay.c: `rddp http serve` and `rddp cp` with --packet beside the
same with the kernel's TCP and CUBIC (nginx, or Python's server without it; rddp over the kernel). Prints a line each: round
trip in ms, loss in 100000 packets, who, the median in MB/s, all octets by all seconds in MB/s, processor seconds of both ends.
With losses the second counts: when they come decides over a single run. Needs root. ROUNDS=N rounds, 3 unless told, in each
of which all take their turn; TRIPS="1 20 100" round trips; ONLY=WORD those whose name has it."""
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

build, losses = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["0"]
rddp, relay = build + "/rddp", build + "/bench/relay"
ROUNDS = int(os.environ.get("ROUNDS", "3"))
TRIPS = [int(trip) for trip in os.environ.get("TRIPS", "1 20 100").split()]
ONLY = os.environ.get("ONLY", "")
NGINX = """daemon off; worker_processes 1; user root; pid %s/nginx.pid; error_log stderr notice;
events { worker_connections 64; } http { access_log off; sendfile on; server { listen 8000; root %s/srv; } }"""
A, B = "rddp-pa", "rddp-pb"
MEGABYTES = {("0", 1): 200, ("0", 20): 120, ("0", 100): 80}
directory = tempfile.mkdtemp(prefix="rddp-paths-")
started = []


def run(text, check=True):
    return subprocess.run(text, shell=True, check=check, capture_output=True, text=True)


def inside(space, text):
    return "ip netns exec %s %s" % (space, text)


def start(text, ready=None):
    out = open(directory + "/out%d" % len(started), "w+")
    process = subprocess.Popen(text.split(), stdout=out, stderr=subprocess.STDOUT)
    started.append(process)
    while ready and ready not in open(out.name).read():
        if process.poll() is not None:
            sys.exit(text + ": " + open(out.name).read())
        time.sleep(0.02)
    return process


def stop(process):
    process.terminate()
    process.wait()


def kernel_server():
    if not shutil.which("nginx"):
        return inside(B, "python3 -u -m http.server -b 10.80.2.1 -d %s/srv 8000" % directory), "Serving"
    with open(directory + "/nginx.conf", "w") as file:
        file.write(NGINX % (directory, directory))
    return inside(B, "nginx -c %s/nginx.conf" % directory), "start worker process"


def measure(server, client, path, megabytes):
    process = start(*server)
    time.sleep(0.3)
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = run(client, False)
    seconds = time.monotonic() - begun
    stop(process)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit("%s: exit code %d: %s" % (client, done.returncode, done.stderr))
    run("cmp %s %s/srv/f" % (path, directory))
    os.remove(path)
    return megabytes / seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_turn(rows, megabytes, trip, loss):
    results = {who: [] for who in rows if ONLY in who}
    for _ in range(ROUNDS):
        for who, result in results.items():
            result.append(measure(*rows[who], megabytes))
    for who, result in results.items():
        rates, cpu = zip(*result)
        print("%3d ms, loss %4s: %-12s %8.1f MB/s %8.1f %6.2f s" % (
            trip, loss, who, statistics.median(rates), statistics.harmonic_mean(rates), statistics.median(cpu)), flush=True)


try:
    for space, device, own in ((A, "pa", "10.80.1.1/24"), (B, "pb", "10.80.2.1/24")):
        run("ip netns del " + space, False)
        run("ip netns add " + space)
        for text in ("ip link set lo up", "ip tuntap add dev %s mode tun" % device, "ip addr add %s dev %s" % (own, device),
                     "ip link set %s up txqueuelen 20000" % device, "ip route add default dev %s congctl cubic" % device,
                     "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.tcp_no_metrics_save=1"):
            run(inside(space, text))
    os.mkdir(directory + "/srv")
    os.mkdir(directory + "/sink")
    for loss in losses:
        for trip in TRIPS:
            megabytes = MEGABYTES.get((loss, trip), 10 if int(loss) <= 100 else 1)
            with open(directory + "/srv/f", "wb") as file:
                file.write(os.urandom(1 << 20) * megabytes)
            path = start("%s %s pa %s pb %d %s" % (relay, A, B, trip * 500, loss), "ready")
            sink, got, f = directory + "/sink", directory + "/got", directory + "/srv/f"
            rows = {
                "http kernel": (kernel_server(),
                                inside(A, "curl -sS -f -o %s http://10.80.2.1:8000/f" % got), got),
                "http packet": ((inside(B, "%s http -q --packet 10.82.0.2/24 serve %s/srv" % (rddp, directory)), "listening"),
                                inside(A, "curl -sS -f -o %s http://10.82.0.2/f" % got), got),
                "cp kernel": ((inside(B, "%s serve -q -p 700 %s" % (rddp, sink)), "listening"),
                              inside(A, "%s cp -q -p 700 %s 10.80.2.1:f" % (rddp, f)), sink + "/f"),
                "cp packet": ((inside(B, "%s serve -q -p 700 --packet 10.82.0.2/24 %s" % (rddp, sink)), "listening"),
                              inside(A, "%s cp -q -p 700 --packet 10.81.0.2/24 %s 10.82.0.2:f" % (rddp, f)), sink + "/f"),
            }
            in_turn(rows, megabytes * 1.048576, trip, loss)
            stop(path)
finally:
    for process in started:
        if process.poll() is None:
            process.kill()
    for space in (A, B):
        run("ip netns del " + space, False)
    run("rm -rf " + directory)
