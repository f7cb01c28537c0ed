/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.c - the wire of iWARP: DDP and RDMAP in MPA's FPDUs. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/ddp.h"
#include "wire/mpa.h"
#include "wire/term.h"
#include "wire/wire.h"

static struct mpa_half tx_half(const struct wire_state *w)
{
    return (struct mpa_half){.pos = w->tx_pos, .markers = w->tx_markers, .crc = w->crc};
}

static struct mpa_half rx_half(const struct wire_state *w)
{
    return (struct mpa_half){.pos = w->rx_pos, .markers = w->rx_markers, .crc = w->crc};
}

static int decode(struct wire_state *w, struct seg *seg, uint8_t *p, size_t n, size_t *need)
{
    struct mpa_half half = rx_half(w);
    struct span ulpdu;
    int eaten = mpa_decode(&half, p, n, &ulpdu, need);
    enum fault fault;

    if (eaten < 0)
        *seg = (struct seg){.begin = w->rx_pos, .end = w->rx_pos};
    if (eaten <= 0)
        return eaten;
    fault = ddp_decode(seg, ulpdu.at, ulpdu.length, w->version);
    seg->begin = w->rx_pos;
    seg->end = w->rx_pos + (unsigned)eaten;
    if (fault)
        return -(int)fault;
    w->rx_pos = seg->end;
    return eaten;
}

/* A marker says it; or an agreement, and then the CRC is all that parts an FPDU from a payload that looks like one.
 * Without a CRC nothing does (mpa.txt 7.4, RFC 5044 6). */
static size_t find(const struct wire_state *w, const uint8_t *p, size_t n, bool *sure)
{
    const struct mpa_half half = rx_half(w);

    *sure = w->rx_markers;
    if (!w->crc)
        return n;
    if (w->rx_markers)
        return mpa_find(&half, p, n);
    return w->aligned && w->rx_pos % 4 == 0 ? 0 : n;
}

static int look(const struct wire_state *w, struct seg *seg, const uint8_t *p, size_t n)
{
    const struct mpa_half half = rx_half(w);
    uint8_t head[DDP_HEAD_MAX];
    uint32_t length;
    int octets = mpa_look(&half, p, n, head, sizeof(head), &length);
    enum fault fault;

    *seg = (struct seg){.begin = w->rx_pos, .end = w->rx_pos};
    if (octets <= 0)
        return octets;
    fault = ddp_decode(seg, head, length, w->version);
    seg->begin = w->rx_pos;
    seg->end = w->rx_pos + (unsigned)octets;
    seg->data = w->rx_markers ? NULL : p + MPA_LENGTH + seg->head_length;
    seg->head = NULL;
    return fault ? -(int)fault : octets;
}

/* A CRC is to be right before anything is placed (RFC 5044 4.4). */
static uint32_t open(const struct wire_state *w, struct seg *seg, const uint8_t *p, size_t n)
{
    const struct mpa_half half = rx_half(w);
    const uint8_t *ulpdu = p + MPA_LENGTH;
    enum seg_op op;

    if (w->crc || w->rx_markers || n < MPA_LENGTH + 1 || n < MPA_LENGTH + ddp_head_octets(ulpdu[0]) ||
        get16(p) > MPA_ULPDU_MAX)
        return 0;
    op = ddp_op(ulpdu, ddp_head_octets(ulpdu[0]));
    if ((op != SEG_SEND && op != SEG_WRITE && op != SEG_READ_RESP) || ddp_decode(seg, ulpdu, get16(p), w->version))
        return 0;
    seg->data = NULL;
    seg->begin = w->rx_pos;
    seg->end = w->rx_pos + mpa_fpdu_octets(&half, get16(p));
    return seg->length ? MPA_LENGTH + seg->head_length : 0;
}

static uint32_t payload_max(const struct wire_state *w, bool tagged, uint32_t emss)
{
    return mpa_mulpdu(emss, w->tx_markers) - (tagged ? DDP_TAGGED_HEAD : DDP_UNTAGGED_HEAD);
}

static bool interleaves(const struct wire_state *w)
{
    return w->tx_markers;
}

/* A Terminate brings its own payload; every other segment's is in the spans. */
static unsigned payload(const struct seg *seg, const struct span *span, unsigned spans, struct span *piece)
{
    if (seg->op == SEG_TERMINATE) {
        *piece = (struct span){.at = seg->data, .length = seg->length};
        return 1;
    }
    assert(spans <= WIRE_SPANS_MAX);
    for (unsigned i = 0; i < spans; i++)
        piece[i] = span[i];
    return spans;
}

static size_t frame(struct wire_state *w, const struct seg *seg, const struct span *span, unsigned spans, uint8_t *out)
{
    struct mpa_half half = tx_half(w);
    struct span piece[1 + WIRE_SPANS_MAX];
    uint8_t head[DDP_HEAD_MAX];
    size_t octets;

    piece[0] = (struct span){.at = head, .length = (uint32_t)(ddp_encode(head, seg, w->version) - head)};
    octets = mpa_encode(&half, out, piece, 1 + payload(seg, span, spans, piece + 1));
    w->tx_pos += octets;
    return octets;
}

static void wrap(struct wire_state *w, const struct seg *seg, const struct span *span, unsigned spans, uint8_t *head,
                 size_t *head_length, uint8_t *tail, size_t *tail_length)
{
    struct mpa_half half = tx_half(w);
    struct span piece[WIRE_SPANS_MAX];
    unsigned pieces = payload(seg, span, spans, piece);
    uint32_t length = 0, crc = 0;

    assert(!w->tx_markers);
    *head_length = (size_t)(ddp_encode(head + MPA_LENGTH, seg, w->version) - head);
    for (unsigned i = 0; i < pieces; i++)
        length += piece[i].length;
    length += (uint32_t)*head_length - MPA_LENGTH;
    assert(length <= MPA_ULPDU_MAX);
    put16(head, (uint16_t)length);
    if (w->crc) {
        crc = crc32c(0, head, *head_length);
        for (unsigned i = 0; i < pieces; i++)
            crc = crc32c(crc, piece[i].at, piece[i].length);
    }
    *tail_length = mpa_tail(&half, tail, length, crc);
    w->tx_pos += MPA_LENGTH + length + *tail_length;
}

/* The segment that the fault is about. A message may fail when a later segment completes it, and that one's header is
 * not to be shown. Of a Read Request the note has all there is, so its header is written anew. NULL: there is nothing
 * to show. */
static const struct seg *culprit(const struct wire_state *w, const struct fault_note *note, const struct seg *seg,
                                 struct seg *again, uint8_t *head)
{
    if (seg && seg->op == note->op && (seg_is_tagged(seg) || seg->msg == note->msg))
        return seg;
    if (note->op != SEG_READ_REQ)
        return NULL;
    *again = (struct seg){.op = SEG_READ_REQ, .flags = SEG_LAST, .msg = note->msg, .read = note->read, .head = head};
    again->head_length = (uint32_t)(ddp_encode(head, again, w->version) - head);
    return again;
}

static bool terminate(const struct wire_state *w, const struct fault_note *note, const struct seg *seg, struct seg *out,
                      uint8_t *room)
{
    unsigned code = term_code(note->fault, note->op, w->rx_pos || w->tx_pos);
    uint8_t head[DDP_HEAD_MAX];
    struct seg again;

    if (code == TERM_SILENCE)
        return false;
    *out = (struct seg){.op = SEG_TERMINATE, .flags = SEG_LAST, .msg = 1, .data = room};
    out->length = (uint32_t)term_encode(room, code, culprit(w, note, seg, &again, head));
    return true;
}

static void explain(const struct seg *seg, struct wire_blame *blame)
{
    assert(seg->op == SEG_TERMINATE);
    term_explain(seg->data, seg->length, seg->begin == 0, blame);
}

const struct wire wire_iwarp = {
    .name = "iwarp",
    .decode = decode,
    .find = find,
    .look = look,
    .open = open,
    .payload_max = payload_max,
    .interleaves = interleaves,
    .frame = frame,
    .wrap = wrap,
    .terminate = terminate,
    .explain = explain,
};

_Static_assert((int)MPA_LENGTH + (int)DDP_HEAD_MAX <= (int)WIRE_HEAD_MAX, "a head fits");
_Static_assert((int)MPA_TAIL_MAX <= (int)WIRE_TAIL_MAX, "a tail fits");
_Static_assert(4 + 2 + (int)DDP_UNTAGGED_HEAD + (int)RDMAP_READ_HEAD <= (int)WIRE_TERM_MAX, "a Terminate fits");
