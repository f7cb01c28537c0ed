-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
-- rdmatcp.lua - Wireshark shows RDMA/TCP segments (rdma-tcp-segments.txt 3), wherever TCP has cut them.
--
--     tshark -X lua_script:wireshark/rdmatcp.lua -r CAPTURE -Y rdmatcp
--
-- A connection is recognised by its first segment; a port can be set in the preferences.

local rdmatcp = Proto("rdmatcp", "RDMA/TCP segment")
rdmatcp.prefs.port = Pref.uint("TCP port", 0, "Decode this port's octets as segments, whatever they look like (0: none)")

local types = { [0] = "Send", "RDMA Write", "RDMA Read Request", "RDMA Read Response" }
local status = { [0] = "Bad", "Good" }
local f = {
    version = ProtoField.uint8("rdmatcp.version", "Version"),
    res = ProtoField.uint8("rdmatcp.res", "Reserved", base.HEX, nil, 0xf0),
    begin = ProtoField.bool("rdmatcp.b", "Begin", 8, nil, 0x08),
    finish = ProtoField.bool("rdmatcp.e", "End", 8, nil, 0x04),
    type = ProtoField.uint8("rdmatcp.type", "Type", base.DEC, types, 0x03),
    length = ProtoField.uint16("rdmatcp.length", "Segment Length"),
    id = ProtoField.uint64("rdmatcp.id", "Connection ID", base.HEX),
    number = ProtoField.uint32("rdmatcp.number", "Message Number"),
    order = ProtoField.uint16("rdmatcp.order", "Order"),
    res2 = ProtoField.uint8("rdmatcp.res2", "Reserved", base.HEX),
    clen = ProtoField.uint8("rdmatcp.clen", "CLEN"),
    data_offset = ProtoField.uint32("rdmatcp.data_offset", "Data Offset"),
    buffer = ProtoField.uint32("rdmatcp.buffer", "RDMA Buffer ID", base.HEX),
    buffer_offset = ProtoField.uint32("rdmatcp.buffer_offset", "RDMA Buffer Offset", base.HEX),
    rdma_length = ProtoField.uint32("rdmatcp.rdma_length", "RDMA Length"),
    control = ProtoField.bytes("rdmatcp.control", "Control Data"),
    data = ProtoField.bytes("rdmatcp.data", "Payload Data"),
    data_length = ProtoField.uint32("rdmatcp.data_length", "Payload octets"),
    padding = ProtoField.bytes("rdmatcp.padding", "Padding"),
    crc = ProtoField.uint32("rdmatcp.crc", "CRC-32", base.HEX),
    crc_status = ProtoField.uint8("rdmatcp.crc.status", "CRC-32 status", base.DEC, status),
}
rdmatcp.fields = f
local e = {
    crc = ProtoExpert.new("rdmatcp.crc.bad", "Bad CRC-32", expert.group.CHECKSUM, expert.severity.ERROR),
    malformed = ProtoExpert.new("rdmatcp.malformed", "Lengths that cannot be", expert.group.MALFORMED, expert.severity.ERROR),
}
rdmatcp.experts = e

local SHORT_HEAD, LONG_HEAD = 24, 32

-- The generator is Ethernet's in a mirror, the bit order Ethernet's own: the register shifts right.
local crc_table = {}
for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
        c = bit.bxor(bit.rshift(c, 1), bit.band(c, 1) == 1 and 0x82608edb or 0)
    end
    crc_table[i] = c
end

local function crc32(octets)
    local c = 0xffffffff
    for i = 0, octets:len() - 1 do
        c = bit.bxor(bit.rshift(c, 8), crc_table[bit.band(bit.bxor(c, octets:get_index(i)), 0xff)])
    end
    return bit.bnot(c) % 0x100000000 -- not negative
end

local function head_octets(buffer)
    local t = bit.band(buffer(1, 1):uint(), 3)
    return (t == 1 or t == 2) and LONG_HEAD or SHORT_HEAD
end

local function unit_octets(buffer, _, at)
    return math.floor((buffer(at + 2, 2):uint() + 3) / 4) * 4 + 4
end

local function add_place(tree, buffer, head)
    if head == LONG_HEAD then
        tree:add(f.buffer, buffer(20, 4))
        tree:add(f.buffer_offset, buffer(24, 4))
        tree:add(f.rdma_length, buffer(28, 4))
    else
        tree:add(f.data_offset, buffer(20, 4))
    end
end

local function add_crc(tree, buffer, at)
    local good = crc32(buffer(0, at):bytes()) == buffer(at, 4):le_uint()
    tree:add_le(f.crc, buffer(at, 4))
    tree:add(f.crc_status, good and 1 or 0):set_generated()
    if not good then
        tree:add_proto_expert_info(e.crc)
    end
end

local function add_body(tree, buffer, head)
    local length, control = buffer(2, 2):uint(), 4 * buffer(19, 1):uint()
    local payload = length - head - control
    if length < head or payload < 0 then
        tree:add_proto_expert_info(e.malformed)
        return 0
    end
    add_place(tree, buffer, head)
    if control > 0 then
        tree:add(f.control, buffer(head, control))
    end
    if payload > 0 then
        tree:add(f.data, buffer(head + control, payload))
    end
    tree:add(f.data_length, payload):set_generated()
    local at = unit_octets(buffer, nil, 0) - 4
    if at > length then
        tree:add(f.padding, buffer(length, at - length))
    end
    add_crc(tree, buffer, at)
    return payload
end

local function dissect_segment(buffer, pinfo, root)
    local kind = bit.band(buffer(1, 1):uint(), 3)
    local tree = root:add(rdmatcp, buffer(), "RDMA/TCP segment, " .. types[kind])
    tree:add(f.version, buffer(0, 1))
    for _, field in ipairs({ f.res, f.begin, f.finish, f.type }) do
        tree:add(field, buffer(1, 1))
    end
    tree:add(f.length, buffer(2, 2))
    tree:add(f.id, buffer(4, 8))
    tree:add(f.number, buffer(12, 4))
    tree:add(f.order, buffer(16, 2))
    tree:add(f.res2, buffer(18, 1))
    tree:add(f.clen, buffer(19, 1))
    local payload = add_body(tree, buffer, head_octets(buffer))
    pinfo.cols.protocol = "RDMA/TCP"
    pinfo.cols.info:append(string.format(" [%s %u, %u octets]", types[kind], buffer(12, 4):uint(), payload))
    return buffer:len()
end

function rdmatcp.dissector(buffer, pinfo, root)
    dissect_tcp_pdus(buffer, root, SHORT_HEAD, unit_octets, dissect_segment)
    return buffer:len()
end

-- A stream that begins like a segment is one for good.
local function looks_like(buffer, pinfo, root)
    if buffer:len() < SHORT_HEAD or buffer(0, 1):uint() ~= 1 then
        return false
    end
    local head, length = head_octets(buffer), buffer(2, 2):uint()
    if length < head + 4 * buffer(19, 1):uint() or buffer(18, 1):uint() ~= 0 or
        bit.band(buffer(1, 1):uint(), 0x08) == 0 then
        return false
    end
    local whole = unit_octets(buffer, nil, 0)
    if whole <= buffer:len() and crc32(buffer(0, whole - 4):bytes()) ~= buffer(whole - 4, 4):le_uint() then
        return false
    end
    pinfo.conversation = rdmatcp
    rdmatcp.dissector(buffer, pinfo, root)
    return true
end
rdmatcp:register_heuristic("tcp", looks_like)

local port = 0
function rdmatcp.prefs_changed()
    local ports = DissectorTable.get("tcp.port")
    if port ~= 0 then
        ports:remove(port, rdmatcp)
    end
    port = rdmatcp.prefs.port
    if port ~= 0 then
        ports:add(port, rdmatcp)
    end
end
