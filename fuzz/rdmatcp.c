/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdmatcp.c - RDMA/TCP segments of a peer. The Connection ID and the CRC, which hide the code behind them from a
 * fuzzer, are repaired before each is decoded.
 *
 * Input: an octet of the flags below, then the stream. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crcseg.h"
#include "fuzz/lib/unit.h"

enum { REPAIR_CRC = 1, REPAIR_ID = 2, OPTIONS = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void repair(const struct wire_state *agreed, unsigned options, uint8_t *p, size_t n)
{
    size_t octets;

    if (n < 12)
        return;
    if (agreed->id_known && options & REPAIR_ID)
        put64(p + 4, agreed->connection_id);
    octets = ((size_t)get16(p + 2) + 3) & ~(size_t)3;
    if (options & REPAIR_CRC && octets + 4 <= n && octets >= 12)
        put32le(p + octets, crcseg(0, p, octets));
}

/* Decodes one segment. Returns its length, or 0 at the end. */
static size_t one_unit(struct wire_state *agreed, unsigned options, uint8_t *p, size_t n)
{
    uint64_t begin = agreed->rx_pos;
    size_t need = 0;
    struct seg seg;
    int eaten;

    repair(agreed, options, p, n);
    eaten = wire_rdmatcp.decode(agreed, &seg, p, n, &need);
    if (eaten <= 0) {
        assert(agreed->rx_pos == begin);
        if (eaten == 0)
            assert(need > n && need <= WIRE_UNIT_MAX);
        else
            assert(-eaten >= FAULT_SEG_VERSION && -eaten <= FAULT_SEG_TOTAL);
        return 0;
    }
    assert((size_t)eaten <= n && seg.begin == begin && seg.end == begin + (size_t)eaten && agreed->rx_pos == seg.end);
    assert(seg.op < SEG_TERMINATE && seg.head == p && seg.control == p + seg.head_length);
    assert(seg.data == seg.control + seg.control_length && seg.data + seg.length <= p + eaten - 4);
    assert(agreed->id_known);
    unit_send_back(&wire_rdmatcp, agreed, &seg);
    return (size_t)eaten;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct wire_state agreed = {.crc = true};
    uint8_t *stream;
    size_t n, at = 0, eaten;

    if (length < OPTIONS)
        return 0;
    n = length - OPTIONS;
    stream = malloc(n ? n : 1);
    if (!stream)
        return 0;
    memcpy(stream, input + OPTIONS, n);
    while ((eaten = one_unit(&agreed, input[0], stream + at, n - at)))
        at += eaten;
    free(stream);
    return 0;
}
