# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""places.py - where two programs measure: loopback, or two network namespaces with a veth pair of an MTU between them.
Each end has a processor of its own where there are two, whatever the program."""
import contextlib
import os
import shutil
import socket
import subprocess
import time

PATIENCE_S = 120
CLIENT_CPU, SERVER_CPU = 0, os.cpu_count() - 1


def pinned(cpu):
    return ["taskset", "-c", str(cpu)] if shutil.which("taskset") else []


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Place:
    """Loopback. start() and run() are all that a measurement asks for."""

    name, address, mtu = "loopback", "127.0.0.1", 65536

    def inside(self, _end):
        return []

    def make(self):
        pass

    def remove(self):
        pass

    def free_port(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return str(probe.getsockname()[1])

    def start(self, server, ready=None):
        """Starts a server. It has said `ready`, or had half a second, when this returns."""
        out = subprocess.PIPE if ready else subprocess.DEVNULL
        server = subprocess.Popen([*self.inside("b"), *pinned(SERVER_CPU), *server], text=True,
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        if not ready:
            time.sleep(0.5)
        elif not any(ready in line for line in server.stdout):
            raise RuntimeError("a server ended with %d" % server.wait())
        return server

    def run(self, client):
        """Returns what a client prints."""
        done = subprocess.run([*self.inside("a"), *pinned(CLIENT_CPU), *client], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        if done.returncode:
            raise RuntimeError((done.stderr or done.stdout).strip() or "exit code %d" % done.returncode)
        return done.stdout

    def both(self, server, client, ready=None):
        listening = self.start(server, ready)
        try:
            return self.run(client)
        finally:
            listening.terminate()
            listening.communicate()


class Veth(Place):
    """Two namespaces with the process's number in their names, so that two runs are not in each other's way."""

    address = "10.91.0.2"

    def __init__(self, mtu):
        self.mtu, self.name = mtu, "veth %d" % mtu
        self.spaces = {end: "rddp-bench-%d-%d%s" % (os.getpid(), mtu, end) for end in "ab"}

    def inside(self, end):
        return ["ip", "netns", "exec", self.spaces[end]]

    def make(self):
        for space in self.spaces.values():
            ip("netns", "add", space)
        a, b = self.spaces["a"], self.spaces["b"]
        ip("link", "add", "wire", "mtu", str(self.mtu), "netns", a, "type", "veth",
           "peer", "name", "wire", "mtu", str(self.mtu), "netns", b)
        for space, own in (a, "10.91.0.1/24"), (b, self.address + "/24"):
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "addr", "add", own, "dev", "wire")
            ip("-n", space, "link", "set", "wire", "up")

    def remove(self):
        for space in self.spaces.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)

    def free_port(self):
        return "18600"


@contextlib.contextmanager
def neighbour():
    """A process that computes, on any processor. Gives a function: what it has had of one since it began."""
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    begun = time.monotonic()

    def share():
        with open("/proc/%d/stat" % process.pid, encoding="ascii") as stat:
            words = stat.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - begun)
    try:
        yield share
    finally:
        process.kill()
        process.wait()


class Busy(Place):
    name = "loopback, beside a neighbour that computes"


def all_places():
    """Loopback always; the others where namespaces can be made."""
    may = os.geteuid() == 0 and shutil.which("ip")
    return [Place()] + ([Veth(1500), Veth(9000)] if may else [])
