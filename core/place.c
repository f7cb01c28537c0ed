/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.c - copies a payload to its place, for every kind of numbering. All checks come before the first octet is
 * moved; only that memory registered on demand is not there is found out as it is written to. */
#include "core/qp_inner.h"

#include <assert.h>
#include <string.h>

#include "base/once.h"

/* Part of a payload's destination. */
struct piece {
    uint8_t *at;
    uint32_t length;
    struct mr *mr;
    const struct rddp_sge *sge; /* that it is of; not of a Write's */
};

/* The application's sge is wrong; the note names it instead of anything the peer sent. */
static enum fault note_local(struct qp *qp, const struct seg *seg, const struct rddp_sge *sge)
{
    note_seg(qp, seg, FAULT_LOCAL_KEY, 0, 0);
    qp->note.key = sge->lkey;
    qp->note.offset = sge->addr;
    qp->note.length = sge->length;
    return FAULT_LOCAL_KEY;
}

/* Copies to memory that may have been registered on demand; false: it is not there. */
static inline bool copy_to(const struct qp *qp, const struct mr *mr, uint8_t *at, const uint8_t *from, uint32_t length)
{
    if (mr_is_on_demand(mr))
        return qp->attr.mrs->copier->store(at, from, length);
    copy_once(at, from, length);
    return true;
}

/* Nothing is left to copy if the payload was taken early, or read to its place (qp_locate()). */
static inline bool place_piece(const struct qp *qp, const struct seg *seg, const struct piece *piece,
                               const uint8_t *from)
{
    if (!piece->length || piece->at == from || seg->flags & SEG_PLACED)
        return true;
    return copy_to(qp, piece->mr, piece->at, from, piece->length);
}

/* Returns NULL, or the sge whose memory is not there. */
static const struct rddp_sge *place_copy(const struct qp *qp, const struct seg *seg, const struct piece *piece,
                                         uint32_t pieces)
{
    const uint8_t *from = seg->data;

    for (uint32_t i = 0; i < pieces && from; i++) { /* NULL: the payload was taken early */
        if (!place_piece(qp, seg, &piece[i], from))
            return piece[i].sge;
        from += piece[i].length;
    }
    return NULL;
}

/* May the payload be read to its place by others than the copier? */
static bool is_for_all(const struct piece *piece)
{
    return piece->length && !mr_is_on_demand(piece->mr);
}

/* Counts [from, to) as placed. Early segments leave one interval free for the one that begins at 0, so that segments in
 * order always have room and the message makes progress. */
static bool count_placed(struct ranges *got, uint32_t from, uint32_t to, bool in_order)
{
    struct ranges with;

    if (in_order)
        return ranges_add(got, from, to);
    with = *got;
    if (!ranges_add(&with, from, to) || (with.count == RANGES_MAX && with.range[0].from))
        return false;
    *got = with;
    return true;
}

/* --- Send ---------------------------------------------------------------------------------------------------- */

struct inbound *place_claim(struct qp *qp)
{
    struct inbound *in = inbound_at(qp, qp->arriving.claimed);

    if (!rq_take(qp->rq, &in->recv))
        return NULL;
    qp->arriving.claimed++;
    in->got.count = 0;
    in->end = 0;
    in->reach = 0;
    in->flags = 0;
    in->status = RDDP_WC_SUCCESS;
    in->early = false;
    in->op = SEG_SEND;
    in->control_length = 0;
    return in;
}

/* Do offset, length and L flag fit the receive and the segments before? */
static enum fault check_reach(struct qp *qp, const struct seg *seg, struct inbound *in, bool in_order)
{
    uint32_t capacity = in->recv.capacity, reach;

    if (in_order && !in_turn(&in->got, in->early, seg->offset))
        return note_seg(qp, seg, FAULT_MO, seg->offset, ranges_prefix(&in->got));
    if (seg->offset > capacity)
        return note_seg(qp, seg, FAULT_MO, seg->offset, capacity);
    if (seg->length > capacity - seg->offset) {
        in->status = RDDP_WC_LOC_LEN_ERR;
        return note_seg(qp, seg, FAULT_TOO_LONG, seg->offset + seg->length, capacity);
    }
    /* "The DDP Segment with the L bit set has the highest MO" (RFC 5041 4.1). */
    reach = (uint32_t)seg->offset + seg->length;
    if (in->flags & SEG_LAST ? reach > in->length || (seg->flags & SEG_LAST && reach != in->length)
                             : seg->flags & SEG_LAST && reach < in->reach)
        return note_seg(qp, seg, FAULT_MO, reach, in->flags & SEG_LAST ? in->length : in->reach);
    return FAULT_NONE;
}

/* Finds the memory for `length` octets from `offset` on, in a list of sges that is at least so long. Returns NULL, or
 * the sge that must not be written to. */
static const struct rddp_sge *scatter_over(const struct qp *qp, const struct pd *pd, const struct rddp_sge *sge,
                                           uint32_t offset, uint32_t length, struct piece *piece, uint32_t *pieces)
{
    for (*pieces = 0; length; sge++) {
        struct piece *p = &piece[*pieces];

        if (offset >= sge->length) {
            offset -= sge->length;
            continue;
        }
        p->length = sge->length - offset < length ? sge->length - offset : length;
        p->sge = sge;
        if (mr_check(qp->attr.mrs, pd, sge->lkey, sge->addr + offset, p->length, RDDP_ACCESS_LOCAL_WRITE, &p->at,
                     &p->mr))
            return sge;
        offset = 0;
        length -= p->length;
        ++*pieces;
    }
    return NULL;
}

static const struct rddp_sge *scatter(const struct qp *qp, const struct recv *recv, uint32_t offset, uint32_t length,
                                      struct piece *piece, uint32_t *pieces)
{
    return scatter_over(qp, qp->rq->pd, recv->sge, offset, length, piece, pieces);
}

static enum fault blame_receive(struct qp *qp, const struct seg *seg, struct inbound *in, const struct rddp_sge *bad)
{
    in->status = RDDP_WC_LOC_PROT_ERR;
    return note_local(qp, seg, bad);
}

static enum fault locate_message(struct qp *qp, const struct seg *seg, struct inbound *in, bool in_order,
                                 struct piece *piece, uint32_t *pieces)
{
    enum fault fault = check_reach(qp, seg, in, in_order);
    const struct rddp_sge *bad;

    if (fault)
        return fault;
    bad = scatter(qp, &in->recv, (uint32_t)seg->offset, seg->length, piece, pieces);
    return bad ? blame_receive(qp, seg, in, bad) : FAULT_NONE;
}

enum fault place_message(struct qp *qp, const struct seg *seg, struct inbound *in, bool in_order)
{
    struct piece piece[QP_SGE_MAX];
    uint32_t pieces, offset = (uint32_t)seg->offset;
    enum fault fault = locate_message(qp, seg, in, in_order, piece, &pieces);
    const struct rddp_sge *bad;

    if (fault)
        return fault;
    if (!count_placed(&in->got, offset, offset + seg->length, in_order))
        return FAULT_NOT_NOW;
    in->early |= !in_order;
    bad = place_copy(qp, seg, piece, pieces);
    if (bad)
        return blame_receive(qp, seg, in, bad);
    in->end = seg->end > in->end ? seg->end : in->end;
    in->reach = offset + seg->length > in->reach ? offset + seg->length : in->reach;
    if (seg->flags & SEG_LAST) {
        in->flags = seg->flags;
        in->length = in->reach;
        in->invalidate = seg->invalidate;
    }
    return FAULT_NONE;
}

/* Completes a receive without placing anything: the message's `length` octets are elsewhere and end at stream position
 * `end`. */
void place_elsewhere(struct inbound *in, uint64_t end, uint32_t length, unsigned flags)
{
    in->end = end;
    in->length = length;
    ranges_add(&in->got, 0, length);
    in->flags = flags;
}

enum fault place_datagram(struct qp *qp, const struct seg *seg, struct inbound *in)
{
    const struct seg front = {.data = seg->head};
    uint32_t capacity = in->recv.capacity, whole = seg->head_length + seg->length, fronts, pieces;
    struct piece at_front[QP_SGE_MAX], piece[QP_SGE_MAX];
    const struct rddp_sge *bad;

    if (whole > capacity) {
        in->status = RDDP_WC_LOC_LEN_ERR;
        return note_seg(qp, seg, FAULT_TOO_LONG, whole, capacity);
    }
    bad = scatter(qp, &in->recv, 0, seg->head_length, at_front, &fronts);
    if (!bad)
        bad = scatter(qp, &in->recv, seg->head_length, seg->length, piece, &pieces);
    if (!bad)
        bad = place_copy(qp, &front, at_front, fronts);
    if (!bad)
        bad = place_copy(qp, seg, piece, pieces);
    if (bad)
        return blame_receive(qp, seg, in, bad);
    place_elsewhere(in, seg->end, whole, seg->flags);
    return FAULT_NONE;
}

/* --- RDMA Write ---------------------------------------------------------------------------------------------- */

/* STag and TO of an empty message are not checked (RFC 5041 5.2, RFC 5040 5.1). */
static enum fault locate_write(struct qp *qp, const struct seg *seg, struct piece *piece)
{
    enum fault fault;

    piece->length = seg->length;
    if (!seg->length)
        return FAULT_NONE;
    fault = find_remote(qp, seg->key, seg->offset, seg->length, RDDP_ACCESS_REMOTE_WRITE, &piece->at, &piece->mr);
    return fault ? note_seg(qp, seg, fault, 0, 0) : FAULT_NONE;
}

enum fault place_write(struct qp *qp, const struct seg *seg)
{
    struct piece piece;
    enum fault fault = locate_write(qp, seg, &piece);

    if (!fault && !place_piece(qp, seg, &piece, seg->data))
        return note_seg(qp, seg, FAULT_ABSENT, 0, 0);
    return fault;
}

/* --- RDMA Read ----------------------------------------------------------------------------------------------- */

/* The source is not checked before delivery: messages earlier in the stream may still change the rights (RFC 5040
 * 5.5). */
enum fault place_read_request(struct qp *qp, const struct seg *seg, uint32_t at)
{
    if (at - qp->answers.tail >= qp->attr.ird)
        return note_seg(qp, seg, FAULT_READS, (uint64_t)(at - qp->answers.tail) + 1, qp->attr.ird);
    if (seg->offset)
        return note_seg(qp, seg, FAULT_MO, seg->offset, 0);
    *peer_read_at(qp, at) =
        (struct peer_read){.op = (uint8_t)seg->op, .end = seg->end, .number = seg->msg, .arrived = true};
    if (seg->op == SEG_ATOMIC_REQ)
        peer_read_at(qp, at)->atomic = seg->atomic;
    else
        peer_read_at(qp, at)->read = seg->read;
    return FAULT_NONE;
}

static enum fault blame_sink(struct qp *qp, const struct seg *seg, struct send *s, const struct rddp_sge *bad)
{
    s->status = RDDP_WC_LOC_PROT_ERR;
    return note_local(qp, seg, bad);
}

static enum fault locate_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t at, struct piece *piece,
                                uint32_t *pieces)
{
    const struct rddp_sge *bad = scatter_over(qp, qp->attr.pd, s->sge, at, seg->length, piece, pieces);

    return bad ? blame_sink(qp, seg, s, bad) : FAULT_NONE;
}

enum fault place_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t at, bool in_order)
{
    struct piece sink[QP_SGE_MAX];
    uint32_t pieces;
    enum fault fault = locate_answer(qp, seg, s, at, sink, &pieces);
    const struct rddp_sge *bad;

    if (fault)
        return fault;
    if (!count_placed(&s->got, at, at + seg->length, in_order))
        return FAULT_NOT_NOW;
    s->early |= !in_order;
    bad = place_copy(qp, seg, sink, pieces);
    if (bad)
        return blame_sink(qp, seg, s, bad);
    s->rx_end = seg->end > s->rx_end ? seg->end : s->rx_end;
    s->answered |= seg->flags & SEG_LAST;
    return FAULT_NONE;
}

/* Stores the old value of the word in this machine's byte order. */
enum fault place_atomic_answer(struct qp *qp, const struct seg *seg, struct send *s, bool in_order)
{
    struct mr *mr;
    uint8_t *at;

    if (mr_check(qp->attr.mrs, qp->attr.pd, s->sge->lkey, s->sge->addr, ATOMIC_OCTETS, RDDP_ACCESS_LOCAL_WRITE, &at,
                 &mr) ||
        !copy_to(qp, mr, at, (const uint8_t *)&seg->atomic.data, ATOMIC_OCTETS))
        return blame_sink(qp, seg, s, s->sge);
    ranges_add(&s->got, 0, ATOMIC_OCTETS);
    s->early |= !in_order;
    s->rx_end = seg->end;
    s->answered = true;
    return FAULT_NONE;
}

/* --- behind a gap ---------------------------------------------------------------------------------------------- */

/* Whether memory on demand is there cannot be known without the payload: it waits for its turn. */
static enum fault copy_ahead(const struct qp *qp, const struct seg *seg, const struct piece *piece, uint32_t pieces)
{
    for (uint32_t i = 0, at = 0; i < pieces; at += piece[i++].length)
        if (seg->data ? !place_piece(qp, seg, &piece[i], seg->data + at) : !is_for_all(&piece[i]))
            return FAULT_NOT_NOW;
    return FAULT_NONE;
}

enum fault place_ahead_message(struct qp *qp, const struct seg *seg, const struct inbound *in)
{
    uint32_t capacity = in->recv.capacity, pieces;
    struct piece piece[QP_SGE_MAX];

    if (seg->offset > capacity || seg->length > capacity - seg->offset ||
        scatter(qp, &in->recv, (uint32_t)seg->offset, seg->length, piece, &pieces))
        return FAULT_NOT_NOW;
    return copy_ahead(qp, seg, piece, pieces);
}

enum fault place_ahead_write(struct qp *qp, const struct seg *seg)
{
    struct piece piece;
    enum fault fault = locate_write(qp, seg, &piece);

    return fault || !seg->length ? fault : copy_ahead(qp, seg, &piece, 1);
}

enum fault place_ahead_answer(struct qp *qp, const struct seg *seg, const struct send *s, uint32_t at)
{
    struct piece sink[QP_SGE_MAX];
    uint32_t pieces;

    if (scatter_over(qp, qp->attr.pd, s->sge, at, seg->length, sink, &pieces))
        return FAULT_NOT_NOW;
    return copy_ahead(qp, seg, sink, pieces);
}

/* --- where would it be placed? -------------------------------------------------------------------------------- */

enum fault place_where_message(struct qp *qp, const struct seg *seg, struct inbound *in, uint8_t **at)
{
    struct piece piece[QP_SGE_MAX];
    uint32_t pieces;
    enum fault fault = locate_message(qp, seg, in, true, piece, &pieces);

    *at = !fault && pieces == 1 && is_for_all(piece) ? piece[0].at : NULL;
    return fault;
}

enum fault place_where_write(struct qp *qp, const struct seg *seg, uint8_t **at)
{
    struct piece piece = {0};
    enum fault fault = locate_write(qp, seg, &piece);

    *at = !fault && is_for_all(&piece) ? piece.at : NULL;
    return fault;
}

enum fault place_where_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t offset, uint8_t **at)
{
    struct piece piece[QP_SGE_MAX];
    uint32_t pieces;
    enum fault fault = locate_answer(qp, seg, s, offset, piece, &pieces);

    *at = !fault && pieces == 1 && is_for_all(piece) ? piece[0].at : NULL;
    return fault;
}
