-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
-- tcpopt.lua - Wireshark shows the TCP RDMA option (tcp-rdma-option.txt 3), the first of each segment.
--
--     tshark -X lua_script:wireshark/tcpopt.lua -r CAPTURE -Y tcpopt
--
-- The kind was never assigned for good; another can be set in the preferences.

local tcpopt = Proto("tcpopt", "TCP RDMA option")
tcpopt.prefs.kind = Pref.uint("Kind", 25, "The option kind: 25, or an experimental one (RFC 6994)")

local f = {
    length = ProtoField.uint8("tcpopt.length", "Length"),
    a = ProtoField.bool("tcpopt.a", "Message Aligned", 8, nil, 0x80),
    u = ProtoField.bool("tcpopt.u", "Unsolicited", 8, nil, 0x40),
    rid = ProtoField.uint64("tcpopt.rid", "RDMA ID", base.HEX),
    buffer_offset = ProtoField.uint32("tcpopt.buffer_offset", "Buffer Offset"),
    data_offset = ProtoField.uint16("tcpopt.data_offset", "Data Offset"),
    data_length = ProtoField.uint16("tcpopt.data_length", "Data Length"),
    total = ProtoField.uint32("tcpopt.total", "Total RDMA Length"),
    more = ProtoField.uint8("tcpopt.more", "More RDMA options (ignored)"),
}
tcpopt.fields = f
local e = {
    length = ProtoExpert.new("tcpopt.bad_length", "Illegal length", expert.group.MALFORMED, expert.severity.ERROR),
    place = ProtoExpert.new("tcpopt.misplaced", "Not on a boundary of 4 octets", expert.group.MALFORMED, expert.severity.ERROR),
    offset = ProtoExpert.new("tcpopt.past_payload", "Data behind the end of the segment", expert.group.MALFORMED, expert.severity.ERROR),
    wrap = ProtoExpert.new("tcpopt.wrap", "Buffer offset wraps", expert.group.MALFORMED, expert.severity.ERROR),
    total = ProtoExpert.new("tcpopt.past_total", "Data behind the total length", expert.group.MALFORMED, expert.severity.ERROR),
}
tcpopt.experts = e

local options_field, payload_field = Field.new("tcp.options"), Field.new("tcp.len")
local legal = { [2] = true, [4] = true, [16] = true, [20] = true }

-- Where options of the kind begin in the block, as RFC 9293 walks it.
local function find(block)
    local at, places = 0, {}
    while at < block:len() do
        local kind = block(at, 1):uint()
        if kind == 0 then
            break
        elseif kind == 1 then
            at = at + 1
        else
            local length = at + 1 < block:len() and block(at + 1, 1):uint() or 0
            if kind == tcpopt.prefs.kind then
                places[#places + 1] = at
            end
            if length < 2 or at + length > block:len() then
                break
            end
            at = at + length
        end
    end
    return places
end

local function add_transfer(tree, option, length, payload)
    local buffer_offset, data_offset, data_length = option(8, 4):uint(), option(12, 2):uint(), option(14, 2):uint()
    tree:add(f.rid, option(2, 6), UInt64(option(4, 4):uint(), bit.band(option(2, 2):uint(), 0x3fff)))
    tree:add(f.buffer_offset, option(8, 4))
    tree:add(f.data_offset, option(12, 2))
    tree:add(f.data_length, option(14, 2))
    if data_offset + data_length > payload then
        tree:add_proto_expert_info(e.offset)
    end
    if buffer_offset + data_length > 2 ^ 32 then
        tree:add_proto_expert_info(e.wrap)
    end
    if length == 20 then
        tree:add(f.total, option(16, 4))
        if buffer_offset + data_length > option(16, 4):uint() then
            tree:add_proto_expert_info(e.total)
        end
    end
end

function tcpopt.dissector(_, _, root)
    local options = options_field()
    if not options then
        return
    end
    local block = options.range
    local places = find(block)
    if #places == 0 then
        return
    end
    local at = places[1]
    local length = at + 1 < block:len() and block(at + 1, 1):uint() or 0
    local whole = legal[length] and at + length <= block:len()
    local option = whole and block(at, length) or block(at)
    local tree = root:add(tcpopt, option)
    if at + 1 < block:len() then
        tree:add(f.length, block(at + 1, 1))
    end
    if at % 4 ~= 0 then
        tree:add_proto_expert_info(e.place)
    end
    if not whole then
        tree:add_proto_expert_info(e.length)
        return
    end
    if length >= 4 then
        tree:add(f.a, option(2, 1))
    end
    if length >= 16 then
        tree:add(f.u, option(2, 1))
        add_transfer(tree, option, length, payload_field().value)
    end
    if #places > 1 then
        tree:add(f.more, #places - 1):set_generated()
    end
end

register_postdissector(tcpopt)
