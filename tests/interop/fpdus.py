#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fpdus.py CAPTURE - prints one line for each message that tshark finds in a capture of talk, in talk's format.

tshark reads the capture twice, because tshark 4.0 expects markers in both directions if one side has asked for them:
the direction without markers is read from a copy of the capture in which neither side asks. With markers it also
expects each TCP segment to be one FPDU; talk sends them so.
"""
import collections
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zlib

TSHARK = ["tshark", "-T", "pdml", "-J", "tcp iwarp_mpa iwarp_ddp_rdmap data",
          # One of our ports may by chance belong to another protocol, such as 44321.
          "-o", "tcp.try_heuristic_first:TRUE",
          # Two processors can deliver loopback packets out of order.
          "-o", "tcp.reassemble_out_of_order:TRUE",
          "-o", "iwarp_ddp_rdmap.reassemble_iwarp_rdma_send:FALSE",
          # These dissectors would take our payload for their protocol.
          "--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct"]
OPCODES = ["write", "read-request", "read-response", "send", "send-inv", "send-se", "send-se-inv", "terminate"]
HEADS = {"write": 14, "read-response": 14, "read-request": 46}  # 18 the others


def frames(path, which):
    """Yields tshark's dissection of each frame that matches its display filter `which`."""
    with tempfile.TemporaryFile() as errors:
        tshark = subprocess.Popen(TSHARK + ["-r", path, "-Y", which], stdout=subprocess.PIPE, stderr=errors)
        wrong = ""
        try:
            for _, element in ElementTree.iterparse(tshark.stdout):
                if element.tag == "packet":
                    yield element
                    element.clear()
        except ElementTree.ParseError as error:
            wrong = str(error)
        if tshark.wait() or wrong:
            errors.seek(0)
            sys.exit("fpdus: tshark: %s\n%s" % (wrong, errors.read().decode()))


class Unit:
    """One Request, Reply or FPDU: the fields that tshark names, and its payload."""

    def __init__(self, mpa):
        self.octets = int(mpa.get("size"))
        self.begin = int(mpa.get("pos"))
        self.fields = {}
        self.crc = ""
        self.markers = []  # (offset in the FPDU, where it points)
        self.payload = b""
        self.raw = b""  # all of it, markers too
        self.add(mpa)

    def add(self, element):
        for field in element.iter("field"):
            name = field.get("name")
            self.fields[name] = field
            if name == "iwarp_mpa.crc_check":
                self.crc = "good" if "(Good CRC32)" in field.get("showname") else "bad"
            elif name == "iwarp_mpa.crc":
                self.crc = "none" if not int(field.get("show"), 0) else "not-zero"
            elif name == "iwarp_mpa.marker_fpduptr":
                self.markers.append((int(field.get("pos")) - 2 - self.begin, int(field.get("show"))))
            elif name == "data.data":
                self.payload = bytes.fromhex(field.get("value"))

    def number(self, name):
        shown = self.fields[name].get("show")  # of a flag since tshark 4.4: a word
        return int({"False": "0", "True": "1"}.get(shown, shown), 0)

    def digits(self, name):
        return self.fields[name].get("value") if name in self.fields else ""

    def whole(self, name):
        return self.fields[name].get("unmaskedvalue") if name in self.fields else ""

    def is_start(self):
        return "iwarp_mpa.fpdu" not in self.fields

    def what(self):
        return OPCODES[self.number("iwarp_rdma.opcode")]

    def offset(self):
        tagged = self.number("iwarp_ddp.tagged_flag")
        return self.number("iwarp_ddp.tagged_offset" if tagged else "iwarp_ddp.mo")

    def data(self):
        """Returns the payload. Removes the markers again, because tshark leaves 4 octets too many between two of them."""
        head = HEADS.get(self.what(), 18)
        if self.what() == "terminate":
            return b""
        if not self.markers:
            return self.payload
        octets = bytearray(self.raw)
        for offset, _ in reversed(self.markers):
            del octets[offset:offset + 4]
        return bytes(octets[2 + head:2 + self.number("iwarp_mpa.ulpdulength")])


def units(frame):
    """Yields the units of a frame. The dissections of an FPDU's contents follow it as siblings."""
    found = []

    def walk(element):
        for child in element:
            if child.get("name") == "iwarp_mpa":
                found.append(Unit(child))
            elif found and child.get("name") in ("iwarp_ddp_rdmap", "data"):
                found[-1].add(child)
            else:
                walk(child)

    walk(frame)
    if found and found[-1].markers:
        segments = {field.get("name"): field.get("value") for field in frame.iter("field")}
        found[-1].raw = bytes.fromhex(segments.get("tcp.reassembled.data") or segments["tcp.payload"])
    return found


# --- lines -----------------------------------------------------------------------------------------------------


def start_line(unit):
    """tshark 4.6 shows revision 2's flag, IRD and ORD apart from the octets that they stand in."""
    enhanced = unit.whole("iwarp_mpa.enhanced.ird") + unit.whole("iwarp_mpa.enhanced.ord")
    flag = 0x10 if enhanced else 0
    return "%s markers=%d crc=%d reject=%d res=0x%02x rev=%d private=%s" % (
        "reply" if "iwarp_mpa.rep" in unit.fields else "request", unit.number("iwarp_mpa.marker_flag"),
        unit.number("iwarp_mpa.crc_flag"), unit.number("iwarp_mpa.rej_flag"), unit.number("iwarp_mpa.res") | flag,
        unit.number("iwarp_mpa.rev"), enhanced + unit.digits("iwarp_mpa.privatedata"))


def terminate_line(unit):
    name = {field.split("_")[2]: field for field in unit.fields if field.startswith("iwarp_rdma.term_e")}
    return " layer=%d type=%d code=0x%02x mdr=%d%d%d segment=0x%s copied=%s" % (
        unit.number("iwarp_rdma.term_layer"), unit.number(name["etype"]), unit.number(name["errcode"]),
        unit.number("iwarp_rdma.term_hdrct_m"), unit.number("iwarp_rdma.hdrct_d"), unit.number("iwarp_rdma.hdrct_r"),
        unit.digits("iwarp_rdma.term_ddp_seg_len"),
        unit.digits("iwarp_rdma.term_ddp_h") + unit.digits("iwarp_rdma.term_rdma_h"))


def head_line(unit):
    """Returns the headers of a message's first segment as text."""
    what = unit.what()
    if unit.number("iwarp_ddp.tagged_flag"):
        return "%s stag=0x%08x to=0x%016x" % (what, unit.number("iwarp_ddp.stag"), unit.offset())
    line = "%s qn=%d msn=%d" % (what, unit.number("iwarp_ddp.qn"), unit.number("iwarp_ddp.msn"))
    if what == "read-request":
        return line + " sinkstag=0x%08x sinkto=0x%016x size=%d srcstag=0x%08x srcto=0x%016x" % tuple(
            unit.number("iwarp_rdma." + name) for name in ("sinkstag", "sinkto", "rdmardsz", "srcstag", "srcto"))
    if what == "terminate":
        return line + terminate_line(unit)
    return line + " inval=0x%08x" % (unit.number("iwarp_rdma.inval_stag") if what.endswith("-inv") else 0)


class Direction:
    """The messages of one side as lines. A line is complete when its message is, and names whatever is wrong."""

    def __init__(self):
        self.lines = []
        self.message = []
        self.wrong = []
        self.octets = 0
        self.tcp_octets = 0
        self.segment_begins = set()
        self.fpdu_begins = []
        self.longest = 0
        self.first_fpdu = 0

    def check_framing(self, unit):
        ulpdu = unit.number("iwarp_mpa.ulpdulength")
        if unit.octets != (2 + ulpdu + 3) // 4 * 4 + 4 + 4 * len(unit.markers):
            self.wrong.append("framing")
        lead = 4 if unit.markers and unit.markers[0][0] == 0 else 0
        for offset, pointer in unit.markers:
            if (self.octets - self.first_fpdu + offset) % 512 or pointer != (offset - lead if offset else 0):
                self.wrong.append("marker")

    def check_headers(self, unit):
        """Checks that each segment repeats its message's headers and continues where the last one ended."""
        if unit.number("iwarp_ddp.dv") != 1 or unit.number("iwarp_rdma.version") != 1:
            self.wrong.append("version")
        if unit.number("iwarp_ddp.rsvd") or unit.number("iwarp_rdma.rsv"):
            self.wrong.append("reserved")
        if not self.message:
            if not unit.number("iwarp_ddp.tagged_flag") and unit.offset():
                self.wrong.append("offset")
            return
        first, last = self.message[0], self.message[-1]
        for name in ("iwarp_rdma.opcode", "iwarp_ddp.stag", "iwarp_ddp.qn", "iwarp_ddp.msn", "iwarp_rdma.inval_stag"):
            if first.digits(name) != unit.digits(name):
                self.wrong.append(name)
        if unit.offset() != last.offset() + len(last.data()):
            self.wrong.append("offset")

    def take(self, unit):
        try:
            if unit.is_start():
                self.lines.append(start_line(unit))
                self.first_fpdu = unit.octets
            else:
                self.take_fpdu(unit)
        except (KeyError, IndexError) as missing:
            self.lines.append("not an FPDU: %s" % missing)
        self.octets += unit.octets

    def take_fpdu(self, unit):
        self.fpdu_begins.append(self.octets)
        self.longest = max(self.longest, unit.octets)
        self.check_framing(unit)
        self.check_headers(unit)
        self.message.append(unit)
        if unit.number("iwarp_ddp.last_flag"):
            self.end_message()

    def end_message(self):
        data = b"".join(unit.data() for unit in self.message)
        self.lines.append("%s len=%d sum=%08x fpdus=%d crc=%s markers=%d" % (
            head_line(self.message[0]), len(data), zlib.adler32(data), len(self.message),
            "/".join(sorted({unit.crc for unit in self.message})), sum(len(unit.markers) for unit in self.message)))
        if self.wrong:
            self.lines[-1] += " WRONG: " + ", ".join(self.wrong)
        self.message, self.wrong = [], []

    def end(self):
        if self.message:
            self.lines.append("a message without its end")
        self.lines.append("total octets=%d" % self.tcp_octets)
        if self.octets != self.tcp_octets:
            self.lines.append("only %d of them dissected" % self.octets)

    def aligned(self):
        return sum(begin in self.segment_begins for begin in self.fpdu_begins)


def dissect(path, which="tcp"):
    """Returns the directions of a capture by (stream, '>' from the side that connected or '<')."""
    directions = collections.defaultdict(Direction)
    clients = {}
    for frame in frames(path, which):
        tcp = {field.get("name"): field.get("show") for field in frame.iter("field")
               if field.get("name", "").startswith("tcp.")}
        stream, port = int(tcp["tcp.stream"]), tcp["tcp.srcport"]
        direction = directions[stream, ">" if clients.setdefault(stream, port) == port else "<"]
        if int(tcp["tcp.len"]):
            begin = int(tcp["tcp.seq"]) - 1
            direction.tcp_octets = max(direction.tcp_octets, begin + int(tcp["tcp.len"]))
            direction.segment_begins.add(begin)
        for unit in units(frame):
            direction.take(unit)
    for direction in directions.values():
        direction.end()
    return directions


def without_markers(path, copy):
    """Writes a copy of the capture in which the M bits of all Requests and Replies are 0."""
    with open(path, "rb") as capture:
        octets = bytearray(capture.read())
    for start in re.finditer(rb"MPA ID Re[qp] Frame", bytes(octets)):
        octets[start.end()] &= 0x7f
    copy.write(octets)
    copy.flush()


def asks(direction):
    return "markers=1" in direction.lines[0]


def main():
    seen = dissect(sys.argv[1])
    if not seen:
        sys.exit("fpdus: nothing in %s" % sys.argv[1])
    # Find the directions without markers whose opposite direction has markers.
    strange = [(stream, arrow) for stream, arrow in seen
               if asks(seen[stream, arrow]) and not asks(seen[stream, "<" if arrow == ">" else ">"])]
    with tempfile.NamedTemporaryFile() as copy:
        without_markers(sys.argv[1], copy)
        again = dissect(copy.name, " or ".join("tcp.stream == %d" % stream for stream, _ in strange)) if strange else {}
    for which in strange:
        again[which].lines[0] = seen[which].lines[0]
        seen[which] = again[which]
    for (stream, arrow), direction in sorted(seen.items()):
        for line in direction.lines:
            print(stream, arrow, line)
    print("# %d FPDUs of up to %d octets in %d TCP segments; %d begin one" % (
        sum(len(direction.fpdu_begins) for direction in seen.values()),
        max(direction.longest for direction in seen.values()),
        sum(len(direction.segment_begins) for direction in seen.values()),
        sum(direction.aligned() for direction in seen.values())))


main()
