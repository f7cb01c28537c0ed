# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""migrate.py FOLDER [CAPABILITY...] - QEMU moves a stopped machine to another QEMU over RDMA, and its memory is the same
there. The machine has no disk and no guest: random octets lie in its memory from the beginning."""
import json
import os
import socket
import subprocess
import sys
import time

AT, SIZE, PORT, SECONDS = 16 << 20, 8 << 20, 4444, 40
folder = sys.argv[1]
machine = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-M", "pc", "-m", "64", "-S"]


class Machine:
    """A QEMU, and its monitor."""

    def __init__(self, name, *options):
        ours, theirs = socket.socketpair()
        with open(f"{folder}/{name}.log", "wb") as log:
            self.process = subprocess.Popen(
                [*machine, "-chardev", f"socket,id=monitor,fd={theirs.fileno()}", "-mon", "chardev=monitor,mode=control",
                 *options], pass_fds=[theirs.fileno()], stdout=log, stderr=log)
        theirs.close()
        ours.settimeout(SECONDS)
        self.monitor = ours.makefile("rw", encoding="utf-8")
        self.answer()  # its greeting
        self("qmp_capabilities")

    def answer(self):
        """Returns its next message that is not an event."""
        while True:
            line = self.monitor.readline()
            if not line:
                sys.exit(f"QEMU has ended with {self.process.wait()}")
            message = json.loads(line)
            if "error" in message:
                sys.exit(f"QEMU says: {message['error']['desc']}")
            if "event" not in message:
                return message.get("return")

    def __call__(self, command, **arguments):
        self.monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.monitor.flush()
        return self.answer()


def set_capabilities(at):
    at("migrate-set-capabilities", capabilities=[{"capability": name, "state": True} for name in sys.argv[2:]])


def await_end(source):
    """Returns how the migration has ended."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        state = source("query-migrate").get("status")
        if state in ("completed", "failed", "cancelled"):
            return state
        time.sleep(0.02)
    return "not over"


octets = os.urandom(SIZE)
with open(f"{folder}/before", "wb") as file:
    file.write(octets)
target = Machine("target", "-incoming", "defer")
source = Machine("source", "-device", f"loader,file={folder}/before,addr={AT},force-raw=on")
try:
    set_capabilities(target)
    set_capabilities(source)
    target("migrate-incoming", uri=f"rdma:127.0.0.1:{PORT}")
    source("migrate", uri=f"rdma:127.0.0.1:{PORT}")
    if (state := await_end(source)) != "completed":
        sys.exit(f"the migration is {state}")
    target("pmemsave", val=AT, size=SIZE, filename=f"{folder}/after")
    with open(f"{folder}/after", "rb") as file:
        if file.read() != octets:
            sys.exit("the memory is not the same")
    print("the memory is the same")
finally:
    for one in (source, target):
        one.process.kill()
        one.process.wait()
    for log in ("source", "target"):
        with open(f"{folder}/{log}.log", encoding="utf-8", errors="replace") as file:
            sys.stderr.write(file.read())
