# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""files.py - one file by what copies files: ours, rsync's daemon, scp, nginx and curl. A row measures a copy from page cache
to page cache over a place, and compares it."""
import filecmp
import os
import pwd
import resource
import shutil
import subprocess
import time

from rows import RDDP, Row

MIB = 1 << 20
OCTETS = int(os.environ.get("BENCH_FILE_MB", "512")) * MIB

NGINX = """daemon off; worker_processes 1; user {user}; pid {work}/nginx.pid; error_log stderr;
events {{ worker_connections 64; }}
http {{ access_log off; sendfile on; server {{ listen {port}; root {work}/source; }} }}
"""
RSYNCD = """use chroot = no
[source]
path = {work}/source
[sink]
path = {work}/sink
read only = no
uid = {user}
"""
SSHD = """Port {port}
HostKey {work}/key
AuthorizedKeysFile {work}/key.pub
PidFile none
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
"""


class Files:
    """A file of random octets, and the settings of the others, below /dev/shm where that is there."""

    def __init__(self):
        try:
            self.user = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:  # in containers users often have no name
            self.user = str(os.geteuid())
        self.has_scp = os.geteuid() == 0  # sshd may write below /run for root alone
        shm = "/dev/shm"
        self.work = os.path.join(shm if os.access(shm, os.W_OK) else "/tmp", "rddp-bench-%d" % os.getpid())
        self.source, self.sink = self.work + "/source/f", self.work + "/sink/f"

    def make(self):
        os.makedirs(self.work + "/source")
        os.makedirs(self.work + "/sink")
        with open(self.source, "wb") as file:
            for _ in range(OCTETS // MIB):
                file.write(os.urandom(MIB))
        if self.has_scp and shutil.which("ssh-keygen"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work + "/key"], check=True)

    def remove(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def write(self, name, text, port):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.format(work=self.work, port=port, user=self.user))
        return path

    def timed(self, place, server, client, ready=None):
        """One copy: octets a second, and processor seconds of both ends for 10^9 octets."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        listening = place.start(server, ready)
        try:
            begun = time.monotonic()
            place.run(client)
            seconds = time.monotonic() - begun
        finally:
            listening.terminate()
            listening.communicate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not filecmp.cmp(self.source, self.sink, shallow=False):
            raise RuntimeError("the copy differs")
        os.remove(self.sink)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {OCTETS: {"bytes_per_second": OCTETS / seconds, "cpu_seconds_per_gigabyte": cpu * 1e9 / OCTETS}}

    # --- who copies --------------------------------------------------------------------------------------------------

    def cp(self, place):
        port = place.free_port()
        return self.timed(place, [RDDP, "serve", "-q", "-a", place.address, "-p", port, self.work + "/sink"],
                          [RDDP, "cp", "-q", "-p", port, self.source, place.address + ":f"], "listening")

    def curl(self, place, port):
        return ["curl", "-sS", "-f", "-o", self.sink, "http://%s:%s/f" % (place.address, port)]

    def nginx(self, place):
        port = place.free_port()
        return self.timed(place, ["nginx", "-c", self.write("nginx.conf", NGINX, port)], self.curl(place, port))

    def rsync(self, place):
        port = place.free_port()
        server = ["rsync", "--daemon", "--no-detach", "--port", port, "--config", self.write("rsyncd", RSYNCD, port)]
        return self.timed(place, server, ["rsync", "-W", self.source, "rsync://%s:%s/sink/f" % (place.address, port)])

    def scp(self, place):
        port = place.free_port()
        os.makedirs("/run/sshd", exist_ok=True)
        server = [shutil.which("sshd"), "-D", "-f", self.write("sshd", SSHD, port)]
        quiet = [word for option in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
                 for word in ("-o", option)]
        return self.timed(place, server, ["scp", "-q", *quiet, "-i", self.work + "/key", "-P", port, self.source,
                                          "%s@%s:%s" % (self.user, place.address, self.sink)])

    def rows(self, place):
        def row(series, measure, needs=None):
            return Row("files", place, series, lambda: {series: measure(place)}, needs)

        return [
            row("rddp cp", self.cp), row("nginx, curl", self.nginx, "nginx"), row("rsync daemon", self.rsync, "rsync"),
        ] + ([row("scp", self.scp, "sshd")] if self.has_scp else [])
