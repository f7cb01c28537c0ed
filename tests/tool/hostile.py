#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""hostile.py client PORT | fuzz PORT SEED COUNT | old PORT | hold PORT ADDRESS... | server CASE | cases - attacks `rddp serve` or `rddp cp`.

It speaks just enough iWARP (RFC 5040, 5041, 5044) for Sends and RDMA Writes, and the protocol of doc/cp-protocol.md.
As a client it prints one line for each case, and exits with 1 if the server accepted one of them; as a server it plays
one case to one client.
"""
import itertools
import random
import socket
import struct
import sys
import time

MAGIC = 0x72646303
START, READY, ERROR, TOTAL, OFFER, HAVE, DIRECTORY, DIRECTORY_END, LINK, FILE, DATA, FILE_END, TROUBLE, DONE, END, \
    FINISH, SKIP, HOLE, ENTRY = range(1, 20)
PULL, RECURSIVE, IS_DIR, CHECKSUM, DRY_RUN, LIST, SAME = 1, 2, 8, 32, 128, 256, 512
MANY = 1000  # files in a directory `many` that the caller has made, with names of about 200 octets

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for octet in data:
        crc = crc >> 8 ^ TABLE[(crc ^ octet) & 0xFF]
    return struct.pack('<I', crc ^ 0xFFFFFFFF)


class Gone(Exception):
    """The peer has ended the connection."""


class Peer:
    """An iWARP connection after its start-up, with CRC and without markers, MPA revision 1."""

    def __init__(self, sock, passive, magic=MAGIC, private=None):
        self.sock, self.msn = sock, 0
        sock.settimeout(20)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = struct.pack('>IHH', magic, 0 if magic == MAGIC else 24, 0) if private is None else private
        if passive:
            self.frame(b'MPA ID Req Frame')
            flags = 0x40 if magic == MAGIC else 0x60
            sock.sendall(b'MPA ID Rep Frame' + struct.pack('>BBH', flags, 1, len(hello)) + hello)
        else:
            sock.sendall(b'MPA ID Req Frame' + struct.pack('>BBH', 0x40, 1, len(hello)) + hello)
            self.frame(b'MPA ID Rep Frame')

    def octets(self, n):
        data = b''
        while len(data) < n:
            try:
                more = self.sock.recv(n - len(data))
            except ConnectionError as error:
                raise Gone from error
            if not more:
                raise Gone
            data += more
        return data

    def frame(self, key):
        head = self.octets(20)
        assert head[:16] == key, head
        self.rejected = bool(head[16] & 0x20)
        self.private = self.octets(struct.unpack('>H', head[18:])[0])

    def fpdu(self, ulpdu):
        data = struct.pack('>H', len(ulpdu)) + ulpdu
        data += bytes(-len(data) % 4)
        try:
            self.sock.sendall(data + crc32c(data))
        except ConnectionError as error:
            raise Gone from error

    def send(self, payload):
        self.msn += 1
        self.fpdu(struct.pack('>BBIIII', 0x41, 0x43, 0, 0, self.msn, 0) + payload)

    def tagged(self, opcode, key, address, payload):
        self.fpdu(struct.pack('>BBIQ', 0xC1, 0x40 | opcode, key, address) + payload)

    def write(self, key, address, payload):
        self.tagged(0, key, address, payload)

    def ulpdu(self):
        length = struct.unpack('>H', self.octets(2))[0]
        ulpdu = self.octets(length)
        self.octets(-(length + 2) % 4 + 4)
        return ulpdu

    def receive(self):
        """Returns the payload of the next Send."""
        while True:
            ulpdu = self.ulpdu()
            if ulpdu[0] & 0xC0 == 0x40 and ulpdu[1] & 0x0F == 3:
                return ulpdu[18:]
            if ulpdu[1] & 0x0F == 7:
                raise Gone  # Terminate


def record(kind, body=b''):
    return struct.pack('>HH', kind, len(body) + 4) + body


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack('>H', len(value) + 1) + value + b'\0'


def message(*records, credits=0, released=0, ring=(0, 0), length=None):
    body = b''.join(records)
    return struct.pack('>IHHQQQ', len(body) + 32 if length is None else length, credits, 0, released, *ring) + body


def records(payload):
    """Yields (kind, body) for each record of a message."""
    at = 32
    while at < len(payload):
        kind, length = struct.unpack('>HH', payload[at:at + 4])
        yield kind, payload[at + 4:at + length]
        at += length


def start(flags, path, name=''):
    return record(START, struct.pack('>HI', flags, MAGIC) + text(path) + text(name))


def entry(kind, number, path, mode=0o644, size=0, offset=0, target='', flags=0, count=0):
    when = struct.pack('>qI', 1, 2)
    head = struct.pack('>I', number)
    if kind == OFFER:
        return record(kind, head + struct.pack('>Q', size) + when + text(path))
    if kind == DIRECTORY:
        return record(kind, head + text(path))
    if kind == DIRECTORY_END:
        return record(kind, head + struct.pack('>I', mode) + when + text(path))
    if kind == LINK:
        return record(kind, head + when + text(path) + text(target))
    if kind == SKIP:
        return record(kind, struct.pack('>H', flags) + head + struct.pack('>IQ', mode, size) + when + text(path))
    if kind == ENTRY:
        return record(kind, struct.pack('>HIQ', flags, mode, size) + when + text(path) + text(target))
    return record(kind, head + struct.pack('>IQQQ', mode, size, offset, count) + when + text(path))


def data(length):
    return record(DATA, struct.pack('>I', length))


def hole(octets):
    return record(HOLE, struct.pack('>Q', octets))


def file_end(number, result=0, digest=bytes(16)):
    return record(FILE_END, struct.pack('>HI', result, number) + digest)


# --- a client that lies -------------------------------------------------------------------------------------------

def connect(port):
    return Peer(socket.create_connection(('127.0.0.1', port)), passive=False)


def answer_to(peer, *sent):
    """Sends these messages and returns what happened: 'refused RESULT' (an ERROR), 'failed RESULT' (a DONE), 'taken',
    'cut off' or 'no answer'."""
    deadline = time.monotonic() + 10
    try:
        for payload in sent:
            peer.send(payload)
        while time.monotonic() < deadline:
            for kind, body in records(peer.receive()):
                if kind == ERROR:
                    return 'refused %d' % struct.unpack('>H', body[:2])
                if kind == DONE and body[:2] != b'\0\0':
                    return 'failed %d' % struct.unpack('>H', body[:2])
                if kind == DONE:
                    return 'taken'
    except Gone:
        return 'cut off'
    return 'no answer'


tops = itertools.count()


def push(port, *sent, name=None, flags=RECURSIVE | IS_DIR):
    name = 'top%d' % next(tops) if name is None else name
    return answer_to(connect(port), message(start(flags, '', name)), *sent)


def ring_of(peer):
    for kind, body in records(peer.receive()):
        if kind == READY:
            return struct.unpack('>HIQQ', body)[1:]
    raise Gone


def outside_ring(port, delta):
    """Writes across and behind the ends of the server's ring."""
    peer = connect(port)
    peer.send(message(start(0, '', 'ring')))
    key, address, size = ring_of(peer)
    peer.write(key, address + (size if delta > 0 else 0) + delta - 1, b'12')
    return answer_to(peer, message(entry(FILE, 1, '', size=0), file_end(1)))


def client_cases():
    deep = '/'.join(['d'] * 129)
    long = 'n' * 256
    yield 'START of ..', lambda p: push_start(p, '../x')
    yield 'START inside and out', lambda p: push_start(p, 'a/../../x')
    yield 'START of an absolute name', lambda p: push_start(p, '/tmp/x')
    yield 'START of a long name', lambda p: push_start(p, long)
    yield 'START of a deep path', lambda p: push_start(p, deep)
    yield 'START through a symbolic link', lambda p: push_start(p, 'way-out/x')
    yield 'START with a name of ..', lambda p: push(p, name='..')
    yield 'START with a path for a name', lambda p: push(p, name='a/b')
    yield 'pull of ..', lambda p: pull(p, '..')
    yield 'pull of an absolute name', lambda p: pull(p, '/etc/passwd')
    yield 'pull through a symbolic link', lambda p: pull(p, 'way-out/secret')
    yield 'pull with another magic number', lambda p: answer_to(connect(p), message(
        record(START, struct.pack('>HI', PULL, 1) + text('a') + text(''))))
    for path in ('../evil', '/evil', 'a/../../evil', 'a//evil', './evil', '.', '..', 'evil/', long, deep):
        for kind in (FILE, DIRECTORY, DIRECTORY_END, LINK, OFFER, SKIP):
            yield '%d of %.20s' % (kind, path), \
                lambda p, k=kind, f=path: push(p, message(entry(k, 1, f, target='t', size=1 << 24, flags=SAME)))
    yield 'FILE through a symbolic link', lambda p: push(p, message(entry(FILE, 1, 'way-out/evil')), name='')
    yield 'LINK out', lambda p: push(p, message(entry(LINK, 1, 'l', target='../evil')), name='')
    yield 'LINK down and out', lambda p: push(p, message(entry(LINK, 1, 'sub/l', target='../a/../../evil')), name='')
    yield 'LINK to an absolute name', lambda p: push(p, message(entry(LINK, 1, 'l', target='/etc')), name='')
    yield 'FILE over a directory', lambda p: push(p, message(entry(FILE, 1, 'sub')), name='')
    yield 'entries out of turn', lambda p: push(p, message(entry(DIRECTORY, 2, 'x')))
    yield 'two files at once', lambda p: push(p, message(entry(DIRECTORY, 1, ''), entry(FILE, 2, 'x', size=5),
                                                         entry(FILE, 3, 'y')))
    yield 'a wrong digest', lambda p: push(p, message(entry(FILE, 1, '', size=0), file_end(1, digest=b'x' * 16)))
    yield 'a file that ends early', lambda p: push(p, message(entry(FILE, 1, '', size=9), file_end(1)))
    yield 'a source that fails', lambda p: push(p, message(entry(FILE, 1, '', size=9), file_end(1, result=1)))
    yield 'a huge file', lambda p: push(p, message(entry(FILE, 1, '', size=1 << 63)))
    yield 'a huge file of data', lambda p: push(p, message(entry(FILE, 1, '', size=1 << 62, count=1 << 62)))
    yield 'an offset from nowhere', lambda p: push(p, message(entry(FILE, 1, '', size=9, offset=5)))
    yield 'an offset beyond the end', lambda p: push(p, message(entry(FILE, 1, '', size=9, offset=1 << 63)))
    yield 'offers of one entry', lambda p: push(p, *[message(entry(OFFER, 1, 'f', size=1 << 24))] * 2)
    # The caller has created the file `big` that these offers name, so the server keeps each of them open.
    yield 'offers too many', lambda p: push(
        p, *[message(entry(OFFER, i, 'big', size=1 << 24)) for i in range(1, 10)], name='',
        flags=RECURSIVE | IS_DIR | CHECKSUM)
    yield 'an unchanged file that is not there', lambda p: push(p, message(entry(SKIP, 1, 'nix', flags=SAME)))
    yield 'an unchanged file of another size', lambda p: push(
        p, message(entry(SKIP, 1, 'big', size=1, flags=SAME)), name='')
    yield 'a changed file without octets', lambda p: push(p, message(entry(SKIP, 1, 'big', size=1 << 24)), name='')
    yield 'an unchanged file inside another', lambda p: push(p, message(
        entry(FILE, 1, 'x', size=5), entry(SKIP, 2, 'big', flags=SAME)), name='')
    yield 'a FILE in a dry run', lambda p: push(p, message(entry(FILE, 1, 'x')), flags=RECURSIVE | IS_DIR | DRY_RUN)
    yield 'HOLE outside of a file', lambda p: push(p, message(hole(9)))
    yield 'HOLE of nothing', lambda p: push(p, message(entry(FILE, 1, '', size=9), hole(0)))
    yield 'HOLE beyond its file', lambda p: push(p, message(entry(FILE, 1, '', size=9), hole(10)))
    yield 'HOLE of 4 EiB', lambda p: push(p, message(
        entry(FILE, 1, '', size=1 << 62), hole(1 << 62), file_end(1)))
    yield 'HOLEs without end', lambda p: push(p, message(
        entry(FILE, 1, '', size=1 << 62), *[hole(1 << 50)] * 1000, file_end(1)))
    yield 'a line of a list in a push', lambda p: push(p, message(entry(ENTRY, 0, 'x', flags=FILE)))
    yield 'an entry that fails without a reason', lambda p: push(p, message(
        record(TROUBLE, struct.pack('>HI', 0, 1) + text('x'))))
    yield 'an entry that fails out of turn', lambda p: push(p, message(
        record(TROUBLE, struct.pack('>HI', 1, 7) + text('x'))))
    yield 'DATA without a ring part', lambda p: push(p, message(entry(FILE, 1, '', size=99), data(9)))
    yield 'DATA beyond its part', lambda p: push(p, message(entry(FILE, 1, '', size=999), data(99), ring=(0, 64)))
    yield 'DATA of 4 GiB', lambda p: push(p, message(entry(FILE, 1, '', size=1 << 40), data(0xFFFFFFFF), ring=(0, 64)))
    yield 'DATA of 2 MiB', lambda p: push(
        p, message(entry(FILE, 1, '', size=1 << 23), data(1 << 21), ring=(0, 1 << 21)))
    yield 'DATA of nothing', lambda p: push(p, message(entry(FILE, 1, '', size=99), data(0), ring=(0, 64)))
    yield 'DATA beyond its file', lambda p: push(p, message(entry(FILE, 1, '', size=9), data(64), ring=(0, 64)))
    yield 'DATA outside of a file', lambda p: push(p, message(data(64), ring=(0, 64)))
    yield 'a ring part unused', lambda p: push(
        p, message(entry(FILE, 1, '', size=99), ring=(0, 64)), message(record(END)))
    yield 'a ring part beyond the ring', lambda p: push(p, message(ring=(0, 1 << 40)))
    yield 'a ring part backwards', lambda p: push(p, message(ring=(64, 0)))
    yield 'a ring part out of turn', lambda p: push(p, message(ring=(64, 128)))
    yield 'credits for nothing', lambda p: push(p, message(credits=65535))
    yield 'a release of nothing', lambda p: push(p, message(released=1 << 50))
    yield 'a head too short', lambda p: push(p, b'\0' * 31)
    yield 'nothing at all', lambda p: push(p, b'')
    yield 'a length that lies', lambda p: push(p, message(length=1 << 31))
    yield 'a record of no type', lambda p: push(p, message(record(0)))
    yield 'a record of a later version', lambda p: push(p, message(record(999)))
    yield 'a record beyond its message', lambda p: push(p, message(struct.pack('>HH', END, 400)))
    yield 'a record of 3 octets', lambda p: push(p, message(struct.pack('>HH', END, 3)))
    yield 'a text without an end', lambda p: push(p, message(record(DIRECTORY, struct.pack('>IH', 1, 1) + b'x')))
    yield 'a text with two ends', lambda p: push(p, message(record(DIRECTORY, struct.pack('>IH', 1, 4) + b'a\0b\0')))
    yield 'a text beyond its record', lambda p: push(p, message(record(DIRECTORY, struct.pack('>IH', 1, 4000) + b'x')))
    yield 'a time with too many nanoseconds', lambda p: push(p, message(
        record(FILE, struct.pack('>IIQQQqI', 1, 0, 0, 0, 0, 0, 1000000000) + text(''))))
    yield 'a message too long', lambda p: push(p, bytes(20000))
    yield 'more messages than credits', lambda p: push(p, *[message() for _ in range(99)], message(record(0)))
    yield 'DONE from a source', lambda p: push(p, message(record(DONE, struct.pack('>HHI', 0, 0, 1) + text(''))))
    yield 'FINISH before END', lambda p: push(p, message(record(FINISH, bytes(8))))
    yield 'HAVE for nothing', lambda p: pull(p, 'sub', record(HAVE, bytes(30)))
    yield 'DONE for nothing', lambda p: pull(p, 'sub', record(DONE, struct.pack('>HHI', 0, 0, 77) + text('')))
    yield 'all is well, and no credit for an answer', no_credit
    yield 'patience', patience
    yield 'START again', lambda p: push(p, message(start(0, '', 'x')))
    yield 'a Write before the ring', lambda p: outside_ring(p, 0)
    yield 'a Write behind the ring', lambda p: outside_ring(p, 1)


def old_hello(port):
    """Checks that an rddp of an older version is refused in its own format: its magic number, and result 24."""
    peer = Peer(socket.create_connection(('127.0.0.1', port)), passive=False, magic=MAGIC - 1)
    told = struct.unpack('>IHH', peer.private) if peer.rejected else None
    return told != (MAGIC - 1, 24, 0)


def no_credit(port):
    """Reports everything as done without ever granting a credit."""
    peer = connect(port)
    peer.send(message(start(PULL | RECURSIVE, 'many')))
    time.sleep(0.3)
    done = [record(DONE, struct.pack('>HHI', 0, FILE, i + 1) + text('')) for i in range(MANY + 2)]
    for i in range(0, len(done), 800):
        peer.send(message(*done[i:i + 800]))
    peer.send(message(record(FINISH, bytes(8))))
    time.sleep(0.5)
    return 'left'


def patience(port):
    """Checks that a server that hashes for long still grants credits for keep-alives. On a busy machine it may finish
    hashing before this asks; then it tries again."""
    for _ in range(10):
        granted = granted_meanwhile(port)
        if granted >= 60:
            return 'granted %d' % granted
    return 'taken too late: %d credits' % granted


def granted_meanwhile(port):
    peer = connect(port)
    peer.send(message(start(RECURSIVE | IS_DIR | CHECKSUM, '')))
    ring_of(peer)
    peer.send(message(entry(OFFER, 1, 'huge', size=512 << 20)))
    granted = 0
    while granted < 60:
        for _ in range(16):
            peer.send(message(credits=0))
        payload = peer.receive()
        granted += struct.unpack('>H', payload[4:6])[0]
        if any(kind == HAVE for kind, _ in records(payload)):
            break
    return granted


def push_start(port, path):
    return answer_to(connect(port), message(start(0, path, 'x')))


def pull(port, path, more=b''):
    peer = connect(port)
    return answer_to(peer, message(start(PULL | RECURSIVE, path)), *([message(more)] if more else []))


def run_client(port):
    bad = 0
    for name, case in client_cases():
        began = time.monotonic()
        try:
            result = case(port)
        except (Gone, socket.timeout) as error:
            result = 'no answer (%s)' % type(error).__name__ if isinstance(error, socket.timeout) else 'cut off'
        wrong = result.startswith('taken') or result.startswith('no answer')
        bad += wrong
        print('%s: %s, %.1f s%s' % (name, result, time.monotonic() - began, '   WRONG' if wrong else ''), flush=True)
    return bad


# --- chance -------------------------------------------------------------------------------------------------------

def mutate(rng, payload):
    octets = bytearray(payload)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(octets))
        octets[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    if rng.random() < 0.2:
        octets = octets[:rng.randrange(len(octets) + 1)]
    if rng.random() < 0.5 and len(octets) >= 4:
        octets[:4] = struct.pack('>I', len(octets))
    return bytes(octets)


def run_fuzz(port, seed, count):
    """Sends valid pushes and pulls with randomly changed messages. The server must survive all of them."""
    rng = random.Random(seed)
    for _ in range(count):
        sent = rng.choice((
            [message(start(RECURSIVE | IS_DIR, '', 'fuzz')),
             message(entry(DIRECTORY, 1, ''), entry(OFFER, 2, 'x', size=1 << 24), entry(LINK, 2, 'l', target='x'),
                     entry(FILE, 3, 'x', size=100), data(100), file_end(3), entry(DIRECTORY_END, 4, ''), ring=(0, 128)),
             message(record(END), record(FINISH, bytes(8)))],
            [message(start(PULL | RECURSIVE, 'sub')),
             message(record(DONE, struct.pack('>HHI', 0, DIRECTORY, 1) + text('')), released=64, credits=1),
             message(record(HAVE, struct.pack('>HIQ', 0, 1, 5) + bytes(16)))],
            [message(start(RECURSIVE | IS_DIR, '', 'fuzz')),
             message(entry(DIRECTORY, 1, ''), entry(OFFER, 2, 'x'), entry(SKIP, 2, 'x', flags=SAME),
                     entry(FILE, 3, 'h', size=1 << 20), hole(1 << 20), file_end(3), entry(DIRECTORY_END, 4, '')),
             message(record(END), record(FINISH, bytes(8)))],
            [message(start(PULL | LIST | RECURSIVE, 'sub')), message(record(FINISH, bytes(8)))]))
        victim = rng.randrange(len(sent))
        try:
            peer = connect(port)
            peer.sock.settimeout(0.2)
            for i, payload in enumerate(sent):
                peer.send(mutate(rng, payload) if i == victim else payload)
            while True:
                peer.receive()
        except (Gone, OSError):
            pass
        peer.sock.close()
    return 0


# --- a server that lies -------------------------------------------------------------------------------------------

def ready(flags=IS_DIR, size=16 << 20):
    return record(READY, struct.pack('>HIQQ', flags, 1, 0, size))


WAIT = None  # for a message of the client

SERVER_CASES = {
    'climb': [message(ready(), entry(DIRECTORY, 1, ''), entry(DIRECTORY, 2, '../evil'))],
    'absolute': [message(ready(), entry(DIRECTORY, 1, ''), entry(FILE, 2, '/tmp/rddp-evil'))],
    'dotdot': [message(ready(), entry(FILE, 1, 'a/../../evil'))],
    'long': [message(ready(), entry(DIRECTORY, 1, 'n' * 300))],
    'nul': [message(ready(), record(DIRECTORY, struct.pack('>IH', 1, 4) + b'a\0b\0'))],
    'huge-ring': [message(ready(size=1 << 60))],
    'no-ring': [message(ready(size=0))],
    'ring-part': [message(ready()), message(ring=(0, 1 << 40))],
    'file-end': [message(ready(), file_end(1))],
    'turn': [message(ready(), entry(DIRECTORY, 7, ''))],
    'finish': [message(ready(), record(FINISH, bytes(8)))],
    'credits': [message(ready(), credits=60000)],
    'garbage': [message(b'\xff' * 100)],
    'short': [b'xyz'],
    'done': [message(ready(flags=0), record(DONE, struct.pack('>HHI', 0, FILE, 1) + text('')))],
    'have': [message(ready(flags=0), record(HAVE, struct.pack('>HIQ', 0, 1, 1 << 62) + bytes(16)))],
    'same': [message(ready(), entry(DIRECTORY, 1, ''), entry(SKIP, 2, 'x', size=1))],
    'hole': [message(ready(), entry(DIRECTORY, 1, ''), entry(FILE, 2, 'x', size=1), hole(1 << 40))],
    'push-same': [message(ready(flags=0)), WAIT, message(record(HAVE, struct.pack('>HIQ', SAME, 1, 0) + bytes(16)))],
    'file-end-at-once': [message(ready(flags=0), record(END))],
    'file-directory': [message(ready(), entry(DIRECTORY, 1, ''))],
    'file-other': [message(ready(flags=0), entry(FILE, 1, '.bashrc'))],
    'file-link': [message(ready(flags=0), entry(LINK, 1, '', target='x'))],
    'end-at-once': [message(ready(), record(END))],
    'end-early': [message(ready(), entry(DIRECTORY, 1, ''), record(END))],
    'second-top': [message(ready(), entry(DIRECTORY, 1, ''), entry(DIRECTORY_END, 2, ''), entry(DIRECTORY, 3, ''))],
    'elsewhere': [message(ready(), entry(DIRECTORY, 1, ''), entry(DIRECTORY, 2, 'a/b'))],
    'line': [message(ready(), entry(ENTRY, 0, '/etc', flags=FILE))],
}


def run_server(case):
    listener = socket.create_server(('127.0.0.1', 0))
    print(listener.getsockname()[1], flush=True)
    peer = Peer(listener.accept()[0], passive=True, magic=MAGIC - 1 if case == 'old' else MAGIC)
    try:
        peer.receive()
        for payload in SERVER_CASES.get(case, []):
            if payload is WAIT:
                peer.receive()
            else:
                peer.send(payload)
        while True:
            peer.receive()
    except (Gone, socket.timeout):
        pass
    return 0


def hold(port, addresses):
    """Takes a place from each address, asks for a list and says nothing more, until it is killed."""
    peers = []
    for address in addresses:
        peers.append(Peer(socket.create_connection(('127.0.0.1', port), source_address=(address, 0)), passive=False))
        peers[-1].send(message(start(PULL | LIST, '')))
        ring_of(peers[-1])
    print('held', flush=True)
    while True:
        time.sleep(1000)


def main():
    what = sys.argv[1]
    if what == 'client':
        return 1 if run_client(int(sys.argv[2])) else 0
    if what == 'fuzz':
        return run_fuzz(*(int(word) for word in sys.argv[2:5]))
    if what == 'hold':
        return hold(int(sys.argv[2]), sys.argv[3:])
    if what == 'old':
        return old_hello(int(sys.argv[2]))
    if what == 'server':
        return run_server(sys.argv[2])
    print('\n'.join(SERVER_CASES))
    return 0


if __name__ == '__main__':
    sys.exit(main())
