#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""nfs.py - compares this NFS client and server with libnfs and NFS-Ganesha over TCP: medians and ratios.

The file is in the page cache (its own tmpfs, with large pages where the kernel supports them, as in ext4 and XFS).
All programs run on loopback in a separate network namespace. Each round measures everything once, so that a
temporary slowdown affects everything. Processor time is that of client and server together.
"""
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
MEGABYTES = int(os.environ.get("BENCH_MB", "1024"))
KINDS = os.environ.get("BENCH_KIND", "read write getattr").split()
CALLS = int(os.environ.get("BENCH_CALLS", "200000"))
BUILD = os.path.abspath(os.environ.get("RDDP_BUILD_DIR", "build/main"))
RDDP = os.environ.get("RDDP_TOOL", os.path.join(BUILD, "rddp"))
OURS, LIBNFS = (os.path.join(BUILD, "bench", name) for name in ("nfs", "libnfs"))
GANESHA = shutil.which("ganesha.nfsd")
MIB = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")

GANESHA_CONF = """
NFS_CORE_PARAM {{ Protocols = 3; NFS_Port = 12049; MNT_Port = 12048; Enable_NLM = false; Enable_RQUOTA = false; }}
EXPORT {{ Export_Id = 1; Path = {path}; Pseudo = /bench; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
    Protocols = 3; Transports = TCP; FSAL {{ Name = VFS; }} }}
LOG {{ Default_Log_Level = WARN; }}
"""


def fail(what):
    sys.exit("nfs: " + what)


def inside():
    """Runs this program again in new namespaces; its processes end when it ends."""
    if os.environ.get("RDDP_BENCH_INSIDE"):
        return
    new = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run(new + ["true"], check=False).returncode:
        fail("cannot create namespaces: run as root")
    os.environ["RDDP_BENCH_INSIDE"] = "yes"
    sys.exit(subprocess.run(new + [sys.executable, os.path.abspath(__file__)], check=False).returncode)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Server:
    def __init__(self, name, process, port, mount_port, rdma_port=None):
        self.name, self.process, self.port = name, process, port
        self.mount_port, self.rdma_port = mount_port, rdma_port


def await_port(port, process, seconds=20):
    for _ in range(seconds * 10):
        if process.poll() is not None:
            fail(f"{process.args[0]} has ended")
        text = open("/proc/net/tcp", encoding="ascii").read() + open("/proc/net/tcp6", encoding="ascii").read()
        if re.search(rf":{port:04X} 0+:0000 0A", text):
            return
        time.sleep(0.1)
    fail(f"{process.args[0]} does not start to listen")


def start_ours(export, work, crc):
    """The CRC is used if either end asks for it, so one server asks for it and the other does not."""
    port = 20000 if crc else 21000
    ports = ["--rdma-port", str(port + 49), "--mount-port", str(port + 48), "--port", str(port + 47)]
    args = [RDDP, "nfsd", "--squash", "none", "--state", work, "--quiet", *([] if crc else ["--no-crc"]), *ports, export]
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL)
    await_port(port + 49, process)
    await_port(port + 48, process)
    return Server("rddp", process, port + 47, port + 48, port + 49)


def start_ganesha(export, work):
    conf = os.path.join(work, "ganesha.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write(GANESHA_CONF.format(path=export))
    os.makedirs("/run/rpcbind", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    os.makedirs("/run/ganesha")
    os.makedirs("/var/run/ganesha", exist_ok=True)
    subprocess.Popen(["rpcbind", "-f", "-w"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    args = [GANESHA, "-F", "-f", conf, "-L", os.path.join(work, "ganesha.log"), "-p", os.path.join(work, "ganesha.pid")]
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await_port(12049, process)
    await_port(12048, process)
    return Server("Ganesha", process, 12049, 12048)


class Row:
    def __init__(self, what, kind, program, server, crc=True, export="/"):
        self.what, self.kind, self.program, self.server, self.crc, self.export = what, kind, program, server, crc, export
        self.rate, self.cpu = [], []

    def measure(self):
        total = CALLS if self.kind == "getattr" else MEGABYTES * MIB
        depth = 32 if self.kind == "getattr" else 8
        port = self.server.rdma_port if self.program == OURS else self.server.port
        args = [self.program, self.kind, "127.0.0.1", str(port), str(self.server.mount_port), self.export, "/file",
                str(total), str(MIB), str(depth)] + ([] if self.crc else ["nocrc"])
        before = cpu_s(self.server.process.pid)
        done = subprocess.run(args, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            fail(f"{self.what} {self.kind}: {done.stderr.strip()}")
        figures = json.loads(done.stdout)
        cpu = figures["cpu_seconds"] + cpu_s(self.server.process.pid) - before
        units = total / (1000 if self.kind == "getattr" else 1e9)
        self.rate.append(units / figures["seconds"])
        self.cpu.append(cpu / units)


class Perf:
    def __init__(self, what, crc):
        self.what, self.kind, self.crc = what, "write", crc
        self.rate, self.cpu = [], []

    def measure(self):
        args = [RDDP, "perf", "--loopback", "--bw", "-s", "1M", "--json", *([] if self.crc else ["--no-crc"]), "write"]
        row = json.loads(subprocess.run(args, capture_output=True, text=True, timeout=60, check=True).stdout)
        row = row["results"][0]
        self.rate.append(row["bytes_per_second"] / 1e9)
        self.cpu.append(0)


def ratio(row, other, part="rate"):
    return statistics.median(a / b for a, b in zip(getattr(row, part), getattr(other, part)))


def report(rows, perf):
    print(f"{'':34}{'GB/s (or 1000 calls/s)':>24}{'CPU s/GB (s/1000 calls)':>25}")
    for row in rows:
        print(f"{row.what + ', ' + row.kind:34}{statistics.median(row.rate):>24.3g}{statistics.median(row.cpu):>25.3g}")
    print("\nmedians of the ratios within a round")
    for row in rows:
        if row.program != OURS or row.kind == "getattr":
            continue
        print(f"{row.what}, {row.kind}: {ratio(row, perf[row.crc]):.2f} of `rddp perf` write", end="")
        for other in rows:
            if other.program == LIBNFS and other.kind == row.kind:
                print(f"; against {other.what}: {ratio(row, other):.2f} times as fast, "
                      f"{1 / ratio(row, other, 'cpu'):.2f} times less processor time", end="")
        print()


def main():
    inside()
    for need in (RDDP, OURS):
        if not os.access(need, os.X_OK):
            fail(f"{need} is not built")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    work = tempfile.mkdtemp()
    mount = ["mount", "-t", "tmpfs", "none", work]
    if subprocess.run(mount + ["-o", "huge=always"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("tmpfs has no large pages here")
        subprocess.run(mount, check=True)
    export = os.path.join(work, "export")
    os.mkdir(export)
    with open(os.path.join(export, "file"), "wb") as f:
        block = bytes((i * 31 + (i >> 8)) & 255 for i in range(MIB))
        for _ in range(MEGABYTES):
            f.write(block)
    plain = start_ours(export, work, False)
    servers = [start_ours(export, work, True)]
    if GANESHA and os.access(LIBNFS, os.X_OK):
        servers.append(start_ganesha(export, work))
    else:
        print("NFS-Ganesha or libnfs is missing (nfs-ganesha-vfs, libnfs-dev): measured without it")
    perf = {True: Perf("rddp perf, CRC", True), False: Perf("rddp perf, no CRC", False)}
    rows = []
    for kind in KINDS:
        rows.append(Row("rddp over RDMA, CRC", kind, OURS, servers[0], True, export))
        rows.append(Row("rddp over RDMA, no CRC", kind, OURS, plain, False, export))
        if os.access(LIBNFS, os.X_OK):
            rows += [Row(f"libnfs, {s.name} over TCP", kind, LIBNFS, s, True, export) for s in servers]
    try:
        for n in range(ROUNDS):
            print(f"\rround {n + 1} of {ROUNDS}", end="", file=sys.stderr, flush=True)
            for row in list(perf.values()) + rows:
                row.measure()
        print("\r", end="", file=sys.stderr)
        report(rows, perf)
    finally:
        servers.append(plain)
        for server in servers:
            server.process.send_signal(signal.SIGTERM)
        for server in servers:
            try:
                server.process.wait(10)
            except subprocess.TimeoutExpired:
                server.process.kill()
        subprocess.run(["umount", "-l", work], check=False)
        os.rmdir(work)


main()
