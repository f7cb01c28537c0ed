-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
-- sctpddp.lua - Wireshark shows the SCTP DDP/RDMA adaptation (sctp-ddp-rdma.txt): the header extension of each message, what
-- it releases, and what breaks rules R1 to R4.
--
--     tshark -X lua_script:wireshark/sctpddp.lua -o sctp.try_heuristic_first:TRUE -r CAPTURE -Y sctpddp
--
-- The capture has to hold INIT and INIT-ACK: the header has the length that its sender's indication says, and there is none
-- unless both ends indicated an adaptation.

local sctpddp = Proto("sctpddp", "SCTP DDP/RDMA adaptation")

local DDP, DDP_WITH_TAG, RDMA_ONLY, RDMA_AND_NEGOTIATION, RDMA_NEGOTIATION = 1, 2, 3, 4, 5
local indications = { "DDP", "DDP_WITH_TAG", "RDMA_ONLY", "RDMA_AND_NEGOTIATION", "RDMA_NEGOTIATION" }
local modes = { [0] = "NO_PLACEMENT_MODE", "DDP_MODE", "DDP_WITH_TAG_MODE", "RDMA_PLACEMENT_MODE" }
local messages = { "Hello", "Send", "Read Request", "Goodbye", "Error", "Placed" }

local f = {
    sender = ProtoField.uint32("sctpddp.sender", "The sender indicated", base.DEC, indications),
    mode = ProtoField.uint24("sctpddp.mode", "Placement Mode", base.HEX, modes),
    flags = ProtoField.uint8("sctpddp.flags", "Flags", base.HEX),
    ack = ProtoField.bool("sctpddp.flags.ack", "Acknowledgement Requested", 8, nil, 0x80),
    notify = ProtoField.bool("sctpddp.flags.notify", "Notification upon Completion", 8, nil, 0x40),
    release = ProtoField.bool("sctpddp.flags.release", "Release Tag upon Completion", 8, nil, 0x20),
    reserved = ProtoField.uint8("sctpddp.flags.reserved", "Reserved", base.HEX, nil, 0x1f),
    tag = ProtoField.uint32("sctpddp.tag", "Placement Tag", base.HEX),
    offset = ProtoField.uint64("sctpddp.offset", "Placement Offset", base.HEX),
    aws = ProtoField.uint32("sctpddp.aws", "Association Wide Sequence"),
    data = ProtoField.bytes("sctpddp.data", "Data"),
    length = ProtoField.uint32("sctpddp.length", "Octets of data"),
    version = ProtoField.uint8("sctpddp.neg.version", "Negotiation version"),
    message = ProtoField.uint8("sctpddp.neg.type", "Negotiation message", base.DEC, messages),
}
sctpddp.fields = f
local error, warn = expert.severity.ERROR, expert.severity.WARN
local e = {
    ProtoExpert.new("sctpddp.r1", "R1: NO_PLACEMENT_MODE from a peer that indicated RDMA_ONLY", expert.group.PROTOCOL, error),
    ProtoExpert.new("sctpddp.r2", "R2: DDP_MODE without DDP", expert.group.PROTOCOL, error),
    ProtoExpert.new("sctpddp.r3", "R3: DDP_WITH_TAG_MODE without DDP_WITH_TAG", expert.group.PROTOCOL, error),
    ProtoExpert.new("sctpddp.r4", "R4: RDMA_PLACEMENT_MODE without RDMA_ONLY or RDMA_AND_NEGOTIATION", expert.group.PROTOCOL, error),
    mode = ProtoExpert.new("sctpddp.mode.unknown", "Unknown Placement Mode", expert.group.PROTOCOL, error),
    short = ProtoExpert.new("sctpddp.short", "Shorter than the header extension", expert.group.MALFORMED, error),
    reserved = ProtoExpert.new("sctpddp.reserved", "Reserved flags are set", expert.group.PROTOCOL, warn),
    offset = ProtoExpert.new("sctpddp.offset.not_zero", "An offset without placement", expert.group.PROTOCOL, warn),
    release = ProtoExpert.new("sctpddp.released", "The tag is released when this completes", expert.group.SEQUENCE, expert.severity.CHAT),
}
sctpddp.experts = e

-- Which modes each indication may send, as a set of their numbers.
local may = {
    [DDP] = { [0] = true, [1] = true },
    [DDP_WITH_TAG] = { [0] = true, [2] = true },
    [RDMA_ONLY] = { [3] = true },
    [RDMA_AND_NEGOTIATION] = { [0] = true, [3] = true },
    [RDMA_NEGOTIATION] = { [0] = true },
}

-- What each direction's sender indicated, by addresses and SCTP ports.
local indicated = {}
local chunk_type, indication = Field.new("sctp.chunk_type"), Field.new("sctp.adaptation_layer_indication")

local function direction(pinfo, reverse)
    local from, to = tostring(pinfo.src) .. " " .. pinfo.src_port, tostring(pinfo.dst) .. " " .. pinfo.dst_port
    return reverse and to .. " " .. from or from .. " " .. to
end

function sctpddp.init()
    indicated = {}
end

local function dissect(buffer, pinfo, root)
    local sender = indicated[direction(pinfo)]
    if not sender or not indicated[direction(pinfo, true)] then
        return false
    end
    local head = sender <= DDP_WITH_TAG and 16 or 20
    local tree = root:add(sctpddp, buffer())
    tree:add(f.sender, sender):set_generated()
    if buffer:len() < head then
        tree:add_proto_expert_info(e.short)
        return true
    end
    local mode, flags = buffer(0, 3):uint(), buffer(3, 1):uint()
    local item = tree:add(f.mode, buffer(0, 3))
    if mode > 3 then
        item:add_proto_expert_info(e.mode)
    elseif not may[sender][mode] then
        item:add_proto_expert_info(e[mode + 1])
    end
    local bits = tree:add(f.flags, buffer(3, 1))
    for _, name in ipairs({ "ack", "notify", "release", "reserved" }) do
        bits:add(f[name], buffer(3, 1))
    end
    if bit.band(flags, 0x20) ~= 0 then
        bits:add_proto_expert_info(e.release)
    end
    if bit.band(flags, 0x1f) ~= 0 then
        bits:add_proto_expert_info(e.reserved)
    end
    tree:add(f.tag, buffer(4, 4))
    item = tree:add(f.offset, buffer(8, 8))
    if mode == 0 and buffer(8, 8):uint64() ~= UInt64(0) then
        item:add_proto_expert_info(e.offset)
    end
    if head == 20 then
        tree:add(f.aws, buffer(16, 4))
    end
    local length = buffer:len() - head
    tree:add(f.length, length):set_generated()
    if length > 0 then
        tree:add(f.data, buffer(head))
    end
    if mode == 0 and sender >= RDMA_AND_NEGOTIATION and length >= 8 then
        tree:add(f.version, buffer(head, 1))
        tree:add(f.message, buffer(head + 1, 1))
    end
    tree:append_text((": %s, %d octets"):format(modes[mode] or "unknown mode", length))
    pinfo.cols.protocol = "SCTPDDP"
    return true
end

-- Called with every frame when SCTP has been taken apart: an INIT or INIT-ACK says what its sender will send.
local remember = Proto("sctpddp_remember", "SCTP DDP/RDMA indications")
function remember.dissector(_, pinfo)
    local type, value = chunk_type(), indication()
    if not type or (type.value ~= 1 and type.value ~= 2) then
        return
    end
    value = value and tonumber(value.value)
    indicated[direction(pinfo)] = value and indications[value] and value or nil
end

register_postdissector(remember)
sctpddp:register_heuristic("sctp", dissect)
