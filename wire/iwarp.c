/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.c - the iWARP wire: DDP and RDMAP in MPA's FPDUs. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/ddp.h"
#include "wire/mpa.h"
#include "wire/term.h"
#include "wire/wire.h"

static struct mpa_half tx_half(const struct wire_state *agreed)
{
    return (struct mpa_half){.pos = agreed->tx_pos, .markers = agreed->tx_markers, .crc = agreed->crc};
}

static struct mpa_half rx_half(const struct wire_state *agreed)
{
    return (struct mpa_half){.pos = agreed->rx_pos, .markers = agreed->rx_markers, .crc = agreed->crc};
}

__attribute__((flatten)) static int iwarp_decode(struct wire_state *agreed, struct seg *seg, uint8_t *p, size_t n,
                                                 size_t *need)
{
    struct mpa_half half = rx_half(agreed);
    struct span ulpdu;
    int eaten = mpa_decode(&half, p, n, &ulpdu, need);
    enum fault fault;

    if (eaten < 0)
        *seg = (struct seg){.begin = agreed->rx_pos, .end = agreed->rx_pos};
    if (eaten <= 0)
        return eaten;
    fault = ddp_decode(seg, ulpdu.at, ulpdu.length, agreed->version);
    seg->begin = agreed->rx_pos;
    seg->end = agreed->rx_pos + (unsigned)eaten;
    if (fault)
        return -(int)fault;
    agreed->rx_pos = seg->end;
    return eaten;
}

/* A marker shows where an FPDU begins. Without markers the link may guarantee it (`aligned`), and then only the CRC
 * tells an FPDU from a payload that looks like one. Without a CRC nothing does (mpa.txt 7.4, RFC 5044 6). */
static size_t iwarp_find(const struct wire_state *agreed, const uint8_t *p, size_t n, bool *sure)
{
    const struct mpa_half half = rx_half(agreed);

    *sure = agreed->rx_markers;
    if (!agreed->crc)
        return n;
    if (agreed->rx_markers)
        return mpa_find(&half, p, n);
    return agreed->aligned && agreed->rx_pos % 4 == 0 ? 0 : n;
}

static int iwarp_look(const struct wire_state *agreed, struct seg *seg, const uint8_t *p, size_t n)
{
    const struct mpa_half half = rx_half(agreed);
    uint8_t head[DDP_HEAD_MAX];
    uint32_t length;
    int octets = mpa_look(&half, p, n, head, sizeof(head), &length);
    enum fault fault;

    *seg = (struct seg){.begin = agreed->rx_pos, .end = agreed->rx_pos};
    if (octets <= 0)
        return octets;
    fault = ddp_decode(seg, head, length, agreed->version);
    seg->begin = agreed->rx_pos;
    seg->end = agreed->rx_pos + (unsigned)octets;
    seg->data = agreed->rx_markers ? NULL : p + MPA_LENGTH + seg->head_length;
    seg->head = NULL;
    return fault ? -(int)fault : octets;
}

/* With a CRC nothing may be placed before the whole FPDU is verified (RFC 5044 4.4). */
static uint32_t peek(const struct wire_state *agreed, struct seg *seg, const uint8_t *p, size_t n)
{
    const struct mpa_half half = rx_half(agreed);
    const uint8_t *ulpdu = p + MPA_LENGTH;
    enum seg_op op;

    if (agreed->crc || agreed->rx_markers || n < MPA_LENGTH + 1 || n < MPA_LENGTH + ddp_head_octets(ulpdu[0]) ||
        get16(p) > MPA_ULPDU_MAX)
        return 0;
    op = ddp_op(ulpdu, ddp_head_octets(ulpdu[0]));
    if ((op != SEG_SEND && op != SEG_WRITE && op != SEG_READ_RESP) || ddp_decode(seg, ulpdu, get16(p), agreed->version))
        return 0;
    seg->data = NULL;
    seg->begin = agreed->rx_pos;
    seg->end = agreed->rx_pos + mpa_fpdu_octets(&half, get16(p));
    return seg->length ? MPA_LENGTH + seg->head_length : 0;
}

static uint32_t iwarp_payload_max(const struct wire_state *agreed, bool tagged, uint32_t emss)
{
    return mpa_mulpdu(emss, agreed->tx_markers) - (tagged ? DDP_TAGGED_HEAD : DDP_UNTAGGED_HEAD);
}

static bool iwarp_interleaves(const struct wire_state *agreed)
{
    return agreed->tx_markers;
}

/* A marker may fall into the header, so it is a piece as the others are. */
__attribute__((noinline)) static size_t frame_with_markers(const struct wire_state *agreed, const struct seg *seg,
                                                           const struct span *span, unsigned spans, uint8_t *out)
{
    const struct mpa_half half = tx_half(agreed);
    struct span piece[1 + WIRE_SPANS_MAX];
    uint8_t head[DDP_HEAD_MAX];

    piece[0] = (struct span){.at = head, .length = (uint32_t)(ddp_encode(head, seg, agreed->version) - head)};
    for (unsigned i = 0; i < spans; i++)
        piece[1 + i] = span[i];
    return mpa_encode(&half, out, piece, 1 + spans);
}

__attribute__((flatten)) static size_t iwarp_frame(struct wire_state *agreed, const struct seg *seg,
                                                   const struct span *span, unsigned spans, uint8_t *out)
{
    uint8_t *ulpdu = out + MPA_LENGTH;
    size_t octets;

    assert(spans <= WIRE_SPANS_MAX);
    if (agreed->tx_markers)
        octets = frame_with_markers(agreed, seg, span, spans, out);
    else
        octets =
            mpa_complete(agreed->crc, out, (uint32_t)(ddp_encode(ulpdu, seg, agreed->version) - ulpdu), span, spans);
    agreed->tx_pos += octets;
    return octets;
}

static void iwarp_wrap(struct wire_state *agreed, const struct seg *seg, const struct span *span, unsigned spans,
                       uint8_t *head, size_t *head_length, uint8_t *tail, size_t *tail_length)
{
    struct mpa_half half = tx_half(agreed);
    uint32_t length = 0, crc = 0;

    assert(!agreed->tx_markers && spans <= WIRE_SPANS_MAX);
    *head_length = (size_t)(ddp_encode(head + MPA_LENGTH, seg, agreed->version) - head);
    for (unsigned i = 0; i < spans; i++)
        length += span[i].length;
    length += (uint32_t)*head_length - MPA_LENGTH;
    assert(length <= MPA_ULPDU_MAX);
    put16(head, (uint16_t)length);
    if (agreed->crc) {
        crc = crc32c(0, head, *head_length);
        for (unsigned i = 0; i < spans; i++)
            crc = crc32c(crc, span[i].at, span[i].length);
    }
    *tail_length = mpa_tail(&half, tail, length, crc);
    agreed->tx_pos += MPA_LENGTH + length + *tail_length;
}

/* Returns the segment that the fault is about, or NULL if its header is gone. A message may fail only when a later
 * segment, `seg`, completes it; the header of that segment must not be sent. The note holds a whole Read Request, so
 * its header is encoded again. */
static const struct seg *culprit(const struct wire_state *agreed, const struct fault_note *note, const struct seg *seg,
                                 struct seg *again, uint8_t *head)
{
    if (seg && seg->op == note->op && (seg_is_tagged(seg) || seg->msg == note->msg))
        return seg;
    if (note->op != SEG_READ_REQ)
        return NULL;
    *again = (struct seg){.op = SEG_READ_REQ, .flags = SEG_LAST, .msg = note->msg, .read = note->read, .head = head};
    again->head_length = (uint32_t)(ddp_encode(head, again, agreed->version) - head);
    return again;
}

static bool iwarp_terminate(const struct wire_state *agreed, const struct fault_note *note, const struct seg *seg,
                            struct seg *out, uint8_t *buffer)
{
    unsigned code = term_code(note->fault, note->op, agreed->rx_pos || agreed->tx_pos);
    uint8_t head[DDP_HEAD_MAX];
    struct seg again;

    if (code == TERM_SILENCE)
        return false;
    *out = (struct seg){.op = SEG_TERMINATE, .flags = SEG_LAST, .msg = 1, .data = buffer};
    out->length = (uint32_t)term_encode(buffer, code, culprit(agreed, note, seg, &again, head));
    return true;
}

static void iwarp_explain(const struct seg *seg, struct wire_blame *blame)
{
    assert(seg->op == SEG_TERMINATE);
    term_explain(seg->data, seg->length, seg->begin == 0, blame);
}

const struct wire wire_iwarp = {
    .name = "iwarp",
    .decode = iwarp_decode,
    .find = iwarp_find,
    .look = iwarp_look,
    .peek = peek,
    .payload_max = iwarp_payload_max,
    .interleaves = iwarp_interleaves,
    .frame = iwarp_frame,
    .wrap = iwarp_wrap,
    .terminate = iwarp_terminate,
    .explain = iwarp_explain,
};

_Static_assert((int)MPA_LENGTH + (int)DDP_HEAD_MAX <= (int)WIRE_HEAD_MAX, "a head fits");
_Static_assert((int)MPA_TAIL_MAX <= (int)WIRE_TAIL_MAX, "a tail fits");
_Static_assert(4 + 2 + (int)DDP_UNTAGGED_HEAD + (int)RDMAP_READ_HEAD <= (int)WIRE_TERM_MAX, "a Terminate fits");
