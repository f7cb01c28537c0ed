# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""preloaded.py - a program made for TCP, in Python, that is started with librspreload.so: descriptors that are copied
are the same socket, and a socket does not wait when ioctl(2) has said so."""
import os
import select
import socket
import threading

listener = socket.create_server(("127.0.0.1", 0))
answers = []
thread = threading.Thread(target=lambda: answers.append(listener.accept()[0]))
thread.start()
client = socket.create_connection(listener.getsockname())
thread.join()
server = answers[0]

copy = os.dup(client.fileno())
os.write(copy, b"one")
assert server.recv(3, socket.MSG_WAITALL) == b"one"

client.setblocking(False)  # by FIONBIO
try:
    client.recv(1)
    raise SystemExit("a socket that does not wait has read")
except BlockingIOError:
    pass

null = os.open("/dev/null", os.O_RDWR)
try:
    os.dup2(null + 100, copy)
    raise SystemExit("there is such a descriptor")
except OSError:
    pass
client.close()  # the copy is the socket still
os.write(copy, b"two")
assert server.recv(3, socket.MSG_WAITALL) == b"two"
os.dup2(null, copy, inheritable=False)  # dup3(): the last goes
assert select.select([server], [], [], 60)[0] and server.recv(1) == b""
print("copies and ioctl: right")
