/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.c - FPDUs of a peer. The CRC, which hides the code behind it from a fuzzer, is repaired before each is
 * decoded.
 *
 * Input: an octet of the flags below, two octets of phase, then the stream. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "fuzz/lib/unit.h"
#include "wire/mpa.h"

enum {
    WITH_CRC = 1,
    WITH_MARKERS = 2,
    VERSION_0 = 4,
    REPAIR_CRC = 8,
    REPAIR_MARKERS = 16, /* set markers as a sender would; otherwise nearly all streams end at the first one */
    NEAR_2_32 = 32,      /* the phase leads up to position 2^32 */
    OPTIONS = 3,
};

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

/* Writes markers and CRC into the FPDU at `p`, if it is complete. */
static void repair(const struct wire_state *agreed, unsigned options, uint8_t *p, size_t n)
{
    struct mpa_half half = {.pos = agreed->rx_pos, .markers = agreed->rx_markers, .crc = agreed->crc};
    size_t lead = half.markers && half.pos % MPA_INTERVAL == 0 ? MPA_MARKER : 0;
    uint32_t ulpdu = n >= lead + MPA_LENGTH ? get16(p + lead) : MPA_ULPDU_MAX + 1;
    size_t octets = mpa_fpdu_octets(&half, ulpdu);

    if (ulpdu > MPA_ULPDU_MAX || octets > n)
        return;
    if (half.markers && options & REPAIR_MARKERS)
        for (size_t at = (size_t)(mpa_next_marker(half.pos) - half.pos); at < octets; at += MPA_INTERVAL)
            put16(p + at + 2, (uint16_t)(at ? at - lead : 0));
    if (half.crc && options & REPAIR_CRC)
        put32le(p + octets - MPA_CRC, crc32c(0, p, octets - MPA_CRC));
}

/* Checks that a Terminate for a fault of the decoder can be encoded and understood. */
static void complain(const struct wire_state *agreed, enum fault fault, const struct seg *seg)
{
    struct fault_note note = {.fault = fault, .op = seg->op, .msg = seg->msg, .read = seg->read};
    uint8_t buffer[WIRE_TERM_MAX];
    struct wire_blame blame;
    struct seg term;

    assert(fault > FAULT_NONE && fault < FAULTS && seg->op < SEG_OPS);
    if (!wire_iwarp.terminate(agreed, &note, seg, &term, buffer))
        return;
    assert(term.length >= 4 && term.length <= WIRE_TERM_MAX);
    term.begin = 1024;
    wire_iwarp.explain(&term, &blame);
    assert(blame.text && blame.code == get16(buffer));
}

/* Decodes one FPDU. Returns its length, or 0 at the end. */
static size_t one_unit(struct wire_state *agreed, unsigned options, uint8_t *p, size_t n)
{
    uint64_t begin = agreed->rx_pos;
    size_t need = 0;
    struct wire_blame blame;
    struct seg seg;
    int eaten;

    repair(agreed, options, p, n);
    eaten = wire_iwarp.decode(agreed, &seg, p, n, &need);
    if (eaten <= 0) {
        assert(agreed->rx_pos == begin);
        if (eaten == 0)
            assert(need > n && need <= WIRE_UNIT_MAX);
        else
            complain(agreed, fault_of(eaten), &seg);
        return 0;
    }
    assert((size_t)eaten <= n && seg.begin == begin && seg.end == begin + (size_t)eaten && agreed->rx_pos == seg.end);
    assert(seg.op < SEG_OPS && seg.head >= p && seg.data == seg.head + seg.head_length);
    assert(seg.data + seg.length <= p + eaten - MPA_CRC);
    if (seg.op == SEG_TERMINATE) {
        wire_iwarp.explain(&seg, &blame);
        assert(blame.text && blame.op <= SEG_OPS);
    }
    unit_send_back(&wire_iwarp, agreed, &seg);
    return (size_t)eaten;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct wire_state agreed = {0};
    uint8_t *stream;
    size_t n, at = 0, eaten;

    if (length < OPTIONS)
        return 0;
    n = length - OPTIONS;
    stream = malloc(n ? n : 1);
    if (!stream)
        return 0;
    memcpy(stream, input + OPTIONS, n);
    agreed.crc = input[0] & WITH_CRC;
    agreed.rx_markers = input[0] & WITH_MARKERS;
    agreed.version = input[0] & VERSION_0 ? 0 : 1;
    agreed.rx_pos = get16(input + 1) * 4ULL;
    if (input[0] & NEAR_2_32)
        agreed.rx_pos = (1ULL << 32) - agreed.rx_pos;
    while ((eaten = one_unit(&agreed, input[0], stream + at, n - at)))
        at += eaten;
    free(stream);
    return 0;
}
