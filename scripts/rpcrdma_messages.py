#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rpcrdma_messages.py CAPTURE [PORT] - prints the RPC-over-RDMA messages of a capture of iWARP over TCP (no markers), one a line:
C from the client or S from the server, and the octets in hex. PORT is the server's, default 20049."""
import struct
import sys


def packets(path):
    data = open(path, "rb").read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    link = struct.unpack(order + "I", data[20:24])[0]
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + length][{1: 14, 113: 16, 101: 0}[link]:]
        at += 16 + length


def segments(path):
    """Yields (flow, sequence number, is SYN, payload) for each TCP segment."""
    for ip in packets(path):
        if len(ip) < 20 or ip[0] >> 4 not in (4, 6):
            continue
        if ip[0] >> 4 == 4:
            if ip[9] != 6:
                continue
            tcp, ends = ip[(ip[0] & 15) * 4:struct.unpack(">H", ip[2:4])[0]], ip[12:20]
        else:
            if ip[6] != 6:
                continue
            tcp, ends = ip[40:40 + struct.unpack(">H", ip[4:6])[0]], ip[8:40]
        source, sink, sequence = struct.unpack(">HHI", tcp[:8])
        half = len(ends) // 2
        yield (ends[:half], source, ends[half:], sink), sequence, tcp[13] & 2, tcp[(tcp[12] >> 4) * 4:]


def streams(path, port):
    """Yields the octets of each direction of each connection, up to the first gap in the capture."""
    start, pieces, order = {}, {}, []
    for flow, sequence, syn, payload in segments(path):
        if port not in (flow[1], flow[3]):
            continue
        if syn:
            start[flow] = (sequence + 1) & 0xffffffff
            pieces[flow] = {}
            order.append((flow, pieces[flow], start[flow]))
        elif flow in start and payload:
            pieces[flow].setdefault((sequence - start[flow]) & 0xffffffff, payload)
    for flow, found, _ in order:
        stream = b""
        for at in sorted(found):
            if at > len(stream):
                break
            stream = stream[:at] + found[at] if at + len(found[at]) > len(stream) else stream
        yield flow, stream


def messages(stream):
    """Yields the untagged messages of queue 0, joined from their FPDUs."""
    if not stream.startswith(b"MPA ID Re"):
        return
    at = 20 + struct.unpack(">H", stream[18:20])[0]
    message = b""
    while at + 2 <= len(stream):
        length = struct.unpack(">H", stream[at:at + 2])[0]
        unit = stream[at + 2:at + 2 + length]
        at += 2 + length + (-(2 + length) % 4) + 4
        if len(unit) < length or length < 18 or unit[0] & 0x80 or struct.unpack(">I", unit[6:10])[0] != 0:
            continue
        if unit[1] & 15 not in (3, 4, 5, 6):
            continue
        message += unit[18:]
        if unit[0] & 0x40:
            yield message
            message = b""


def main():
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 20049
    for flow, stream in streams(sys.argv[1], port):
        for message in messages(stream):
            print("S" if flow[1] == port else "C", message.hex())


main()
