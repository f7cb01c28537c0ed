-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
-- rfc7306.lua - Wireshark shows immediate data and atomics of RDMAP (RFC 7306), which its own dissector of iWARP does not
-- know.
--
--     tshark -X lua_script:wireshark/rfc7306.lua -r CAPTURE -Y rfc7306
--
-- Wireshark finds the FPDUs and takes the markers out; this looks at its RDMAP headers and adds what follows them.

local rfc7306 = Proto("rfc7306", "RDMA Protocol Extensions")

local IMMEDIATE, IMMEDIATE_SE, ATOMIC_REQUEST, ATOMIC_RESPONSE = 8, 9, 10, 11
local names = {
    [IMMEDIATE] = "Immediate Data",
    [IMMEDIATE_SE] = "Immediate Data with Solicited Event",
    [ATOMIC_REQUEST] = "Atomic Request",
    [ATOMIC_RESPONSE] = "Atomic Response",
}
local octets = { [IMMEDIATE] = 8, [IMMEDIATE_SE] = 8, [ATOMIC_REQUEST] = 52, [ATOMIC_RESPONSE] = 12 }
local atomics = { [0] = "FetchAdd", [2] = "CmpSwap" }
local f = {
    opcode = ProtoField.uint8("rfc7306.opcode", "OpCode", base.DEC, names),
    queue = ProtoField.uint32("rfc7306.qn", "Queue Number"),
    number = ProtoField.uint32("rfc7306.msn", "Message Sequence Number"),
    immediate = ProtoField.bytes("rfc7306.immediate", "Immediate Data"),
    atomic = ProtoField.uint32("rfc7306.atomic", "Atomic Operation Code", base.DEC, atomics, 0x0f),
    request = ProtoField.uint32("rfc7306.request", "Request Identifier", base.HEX),
    stag = ProtoField.uint32("rfc7306.stag", "Remote STag", base.HEX),
    offset = ProtoField.uint64("rfc7306.to", "Remote Tagged Offset", base.HEX),
    data = ProtoField.uint64("rfc7306.data", "Add or Swap Data", base.HEX),
    mask = ProtoField.uint64("rfc7306.mask", "Add or Swap Mask", base.HEX),
    compare = ProtoField.uint64("rfc7306.compare", "Compare Data", base.HEX),
    compare_mask = ProtoField.uint64("rfc7306.compare_mask", "Compare Mask", base.HEX),
    original = ProtoField.uint64("rfc7306.original", "Original Remote Data Value", base.HEX),
}
rfc7306.fields = f
local e = {
    short = ProtoExpert.new("rfc7306.short", "Not the octets that the message has", expert.group.MALFORMED, expert.severity.ERROR),
    queue = ProtoExpert.new("rfc7306.queue", "Not the queue of the message", expert.group.PROTOCOL, expert.severity.ERROR),
    atomic = ProtoExpert.new("rfc7306.unknown", "No atomic operation", expert.group.PROTOCOL, expert.severity.ERROR),
}
rfc7306.experts = e

-- Immediate data goes where Sends go, an atomic request where Read Requests go (sections 5.3 and 6.2).
local queues = { [IMMEDIATE] = 0, [IMMEDIATE_SE] = 0, [ATOMIC_REQUEST] = 1, [ATOMIC_RESPONSE] = 3 }

local opcode_of = Field.new("iwarp_rdma.opcode")
local length_of = Field.new("iwarp_mpa.ulpdulength")

local function add_request(tree, range)
    tree:add(f.atomic, range(0, 4))
    if not atomics[bit.band(range(3, 1):uint(), 0x0f)] then
        tree:add_proto_expert_info(e.atomic)
    end
    tree:add(f.request, range(4, 4))
    tree:add(f.stag, range(8, 4))
    tree:add(f.offset, range(12, 8))
    tree:add(f.data, range(20, 8))
    tree:add(f.mask, range(28, 8))
    tree:add(f.compare, range(36, 8))
    tree:add(f.compare_mask, range(44, 8))
end

-- `at` is RDMAP's control octet in the FPDU; DDP's header began one octet before it (RFC 5041 figure 3).
local function add_message(root, buffer, at, opcode, ulpdu)
    local head = buffer(at + 1, 16)
    local tree = root:add(rfc7306, buffer(at, 17), "RDMA Protocol Extensions, " .. names[opcode])
    tree:add(f.opcode, opcode):set_generated()
    tree:add(f.queue, head(4, 4))
    tree:add(f.number, head(8, 4))
    if head(4, 4):uint() ~= queues[opcode] then
        tree:add_proto_expert_info(e.queue)
    end
    if ulpdu ~= 18 + octets[opcode] or at + 17 + octets[opcode] > buffer:len() then
        tree:add_proto_expert_info(e.short)
        return
    end
    local body = buffer(at + 17, octets[opcode])
    if opcode == ATOMIC_REQUEST then
        add_request(tree, body)
    elseif opcode == ATOMIC_RESPONSE then
        tree:add(f.request, body(0, 4))
        tree:add(f.original, body(4, 8))
    else
        tree:add(f.immediate, body)
    end
end

function rfc7306.dissector(_, pinfo, root)
    local lengths = { length_of() }
    for i, found in ipairs({ opcode_of() }) do
        if names[found.value] then
            add_message(root, found.source, found.offset, found.value, lengths[i] and lengths[i].value)
            pinfo.cols.info:append(" [" .. names[found.value] .. "]")
        end
    end
end
register_postdissector(rfc7306)
