/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt.c - the options of a TCP header including the RDMA option, and sections split into segments.
 *
 * Input: an octet that selects, then an option block, or sections of 6 octets each. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "tcp/packet.h"
#include "wire/tcpopt_map.h"

enum { SECTIONS = 16, SECTION = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void take_apart(const uint8_t *p, size_t n, uint32_t payload)
{
    struct utcp_options seen;
    struct tcpopt o, again;
    uint8_t octets[TCPOPT_LONG];

    utcp_options_read(&seen, p, (uint32_t)n, TCPOPT_KIND);
    if (!seen.extra)
        return;
    assert(seen.extra >= p && seen.extra + seen.extra_length <= p + n);
    if (tcpopt_decode(&o, seen.extra, seen.extra_length, seen.extra_at, payload) != TCPOPT_GOOD)
        return;
    assert(!tcpopt_transfers(&o) || ((uint32_t)o.data_offset + o.data_length <= payload &&
                                     (uint64_t)o.buffer_offset + o.data_length <= 1ULL << 32));
    assert(tcpopt_encode(octets, &o) == octets + o.length);
    assert(tcpopt_decode(&again, octets, o.length, 20, payload) == TCPOPT_GOOD);
    assert(again.rid == o.rid && again.buffer_offset == o.buffer_offset && again.aligned == o.aligned);
    if (tcpopt_transfers(&o))
        assert(memcmp(octets, seen.extra, o.length) == 0);
}

static void cut(const uint8_t *p, size_t n, uint32_t space)
{
    struct tcpopt_section ring[SECTIONS];
    struct tcpopt_map m;
    uint64_t told = 0, data = 0;

    tcpopt_map_init(&m, ring, SECTIONS);
    m.fold = space & 1;
    for (; n >= SECTION; n -= SECTION, p += SECTION) {
        struct tcpopt_section s = {.message = p[0] & 1,
                                   .data = p[0] & 2,
                                   .has_total = p[0] & 4,
                                   .unsolicited = p[0] & 8,
                                   .rid = p[1],
                                   .buffer_offset = get16(p + 2),
                                   .total = p[0] & 4 ? 1 << 20 : 0};

        if (!tcpopt_map_add(&m, &s, get16(p + 4) + 1U))
            break;
        data += s.data ? get16(p + 4) + 1U : 0;
    }
    for (uint64_t position = 0; position < m.end;) {
        uint32_t length = tcpopt_map_cut(&m, position, (uint32_t)(m.end - position), space);
        struct tcpopt o;

        assert(length && length <= m.end - position);
        told += tcpopt_map_describe(&m, position, length, &o) ? o.data_length : 0;
        assert(length + o.length <= space);
        position += length;
        tcpopt_map_trim(&m, position);
    }
    assert(told == data);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    if (length < 2)
        return 0;
    if (input[0] & 1)
        take_apart(input + 2, length - 2 < UTCP_OPTIONS_MAX ? length - 2 : UTCP_OPTIONS_MAX, input[1] * 8U);
    else
        cut(input + 2, length - 2, 64U + input[1] * 16U + (input[0] >> 1 & 1));
    return 0;
}
