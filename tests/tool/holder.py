#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""holder.py ping PORT N ADDRESS | rping PORT | perf-CASE PORT - a client that wants a server for itself.

Most cases print `held` when they have what they want, and keep it until they are killed; the others print what the
server did.
"""
import socket
import struct
import sys
import time

from hostile import Gone, Peer

HELLO, WELCOME, START, READY = 1, 2, 3, 4
TCP, MEMORY = 9, 10
LATENCY = 1
MIB = 1 << 20


def connect(port, address='127.0.0.1', private=b''):
    return Peer(socket.create_connection(('127.0.0.1', port), source_address=(address, 0)), passive=False,
                private=private)


def keep(*_):
    print('held', flush=True)
    while True:
        time.sleep(1000)


def ping(port, count, address):
    keep([connect(port, address) for _ in range(count)])


def rping(port):
    """Advertises a source, and answers the server's Read of it with what moves a terminal's cursor."""
    text = b'\x1b]0;owned\x07\x1b[2J\n'
    peer = connect(port)
    peer.send(struct.pack('>QII', 0x1000, 0x77, len(text)))
    key, address = struct.unpack('>IQ', peer.ulpdu()[18:30])
    peer.tagged(2, key, address, text)
    peer.receive()


def control(kind, size=0, count=0, test=0):
    return struct.pack('>IIIIQQQQ', 0x72706631, kind << 16 | test, 0, 0, size, count, 0, 0).ljust(64, b'\0')


def answer(peer):
    """Returns type, value and size of the next control message."""
    _, kind, _, value, size = struct.unpack('>IIIIQ', peer.receive()[:24])
    return kind >> 16, value, size


def greeted(port, size=64):
    peer = connect(port)
    peer.send(control(HELLO, size))
    return peer, answer(peer)


def perf_size(port, size):
    print(*greeted(port, size)[1], flush=True)


def perf_idle(port):
    """Opens idle connections without a client, and then beside one, until the server takes no more."""
    alone = connect(port, private=b'rddp perf idle')
    peer, _ = greeted(port)
    idle = []
    while len(idle) < 1000:
        idle.append(connect(port, private=b'rddp perf idle'))
        if idle[-1].rejected:
            break
        peer.send(control(MEMORY))
        answer(peer)
    stranger = connect(port, '127.0.0.9', b'rddp perf idle')
    print('alone', alone.rejected, 'beside', len(idle) - 1, 'stranger', stranger.rejected, flush=True)


def perf_tcp(port):
    """Asks for raw TCP and never reads what comes back."""
    peer, _ = greeted(port)
    peer.send(control(TCP, MIB, 1000000, LATENCY))
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.connect(('127.0.0.1', answer(peer)[1]))
    stream.settimeout(1)
    try:
        while True:
            stream.sendall(b'x' * 65536)
    except TimeoutError:
        pass
    keep(peer, stream)


def perf_stay(port):
    """Asks for nothing that is a test, again and again."""
    peer, _ = greeted(port)
    print('held', flush=True)
    try:
        while True:
            peer.send(control(MEMORY))
            answer(peer)
            time.sleep(0.1)
    except Gone:
        pass


CASES = {'ping': ping, 'rping': rping, 'perf-size': perf_size, 'perf-idle': perf_idle, 'perf-tcp': perf_tcp,
         'perf-stay': perf_stay}
CASES[sys.argv[1]](int(sys.argv[2]), *(int(word) if word.isdigit() else word for word in sys.argv[3:]))
