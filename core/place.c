/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.c - a segment comes in. Every check of an operation stands before its first byte moves. */
#include "core/qp_inner.h"

#include <assert.h>
#include <string.h>

/* Part of a payload and where it goes. */
struct piece {
    uint8_t *at;
    uint32_t length;
};

enum fault note_seg(struct qp *qp, const struct seg *seg, enum fault fault, uint64_t got, uint64_t want)
{
    qp->note = (struct fault_note){
        .fault = fault,
        .op = seg->op,
        .key = seg->key,
        .offset = seg->offset,
        .got = got,
        .want = want,
        .length = seg->length,
        .msg = seg->msg,
        .read = seg->read,
    };
    return fault;
}

/* The application's own memory is not as it said: that is nothing the peer named. */
static enum fault note_local(struct qp *qp, const struct seg *seg, const struct rddp_sge *sge)
{
    note_seg(qp, seg, FAULT_LOCAL_KEY, 0, 0);
    qp->note.key = sge->lkey;
    qp->note.offset = sge->addr;
    qp->note.length = sge->length;
    return FAULT_LOCAL_KEY;
}

static void copy(const struct piece *piece, uint32_t pieces, const uint8_t *from)
{
    for (uint32_t i = 0; i < pieces; i++) {
        if (piece[i].at != from) /* see qp_locate() */
            memcpy(piece[i].at, from, piece[i].length);
        from += piece[i].length;
    }
}

/* Counts [from, to) as placed. Early segments leave an interval for the one that begins at 0: what comes in order then
 * always has room, and the message gets on. */
static bool count(struct ranges *got, uint32_t from, uint32_t to, bool in_order)
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

/* Is this where the message goes on? What was placed early may come once more when its turn is. */
static bool in_turn(const struct ranges *got, bool early, uint64_t offset)
{
    uint32_t prefix = ranges_prefix(got);

    return early ? offset <= prefix : offset == prefix;
}

/* --- Send ---------------------------------------------------------------------------------------------------- */

struct inbound *claim_receive(struct qp *qp)
{
    struct inbound *in = inbound_at(qp, qp->rx_claimed);

    if (!rq_take(qp->rq, &in->recv))
        return NULL;
    qp->rx_claimed++;
    in->got.count = 0;
    in->end = 0;
    in->reach = 0;
    in->flags = 0;
    in->status = RDDP_WC_SUCCESS;
    in->early = false;
    return in;
}

/* Finds or claims the receive for this message number. */
static enum fault find_receive(struct qp *qp, const struct seg *seg, bool in_order, struct inbound **in)
{
    uint32_t ahead = seg->msg - qp->rx_next, posted = qp->rx_claimed - qp->rx_next + rq_posted(qp->rq);

    if (ahead > INT32_MAX || (in_order && ahead))
        return note_seg(qp, seg, FAULT_MSN, seg->msg, qp->rx_next);
    if (ahead >= posted)
        return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    if (ahead >= qp->attr.window)
        return FAULT_NOT_NOW;
    while (qp->rx_claimed - qp->rx_next <= ahead)
        if (!claim_receive(qp))
            return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    *in = inbound_at(qp, seg->msg);
    return FAULT_NONE;
}

/* Do offset, length and L flag go together with the receive and with the segments before? */
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

/* Finds the memory for `length` octets from `offset` on. NULL, or the sge that is not to be written to. */
static const struct rddp_sge *scatter(const struct qp *qp, const struct recv *recv, uint32_t offset, uint32_t length,
                                      struct piece *piece, uint32_t *pieces)
{
    const struct rddp_sge *sge = recv->sge;

    for (*pieces = 0; length; sge++) {
        struct piece *p = &piece[*pieces];

        if (offset >= sge->length) {
            offset -= sge->length;
            continue;
        }
        p->length = sge->length - offset < length ? sge->length - offset : length;
        if (mr_check(qp->attr.mrs, qp->rq->pd, sge->lkey, sge->addr + offset, p->length, RDDP_ACCESS_LOCAL_WRITE,
                     &p->at, NULL))
            return sge;
        offset = 0;
        length -= p->length;
        ++*pieces;
    }
    return NULL;
}

static enum fault aim_message(struct qp *qp, const struct seg *seg, struct inbound *in, bool in_order,
                              struct piece *piece, uint32_t *pieces)
{
    enum fault fault = check_reach(qp, seg, in, in_order);
    const struct rddp_sge *bad;

    if (fault)
        return fault;
    bad = scatter(qp, &in->recv, (uint32_t)seg->offset, seg->length, piece, pieces);
    if (!bad)
        return FAULT_NONE;
    in->status = RDDP_WC_LOC_PROT_ERR;
    return note_local(qp, seg, bad);
}

enum fault place_message(struct qp *qp, const struct seg *seg, struct inbound *in, bool in_order)
{
    struct piece piece[QP_SGE_MAX];
    uint32_t pieces, offset = (uint32_t)seg->offset;
    enum fault fault = aim_message(qp, seg, in, in_order, piece, &pieces);

    if (fault)
        return fault;
    if (!count(&in->got, offset, offset + seg->length, in_order))
        return FAULT_NOT_NOW;
    copy(piece, pieces, seg->data);
    in->early |= !in_order;
    in->end = seg->end > in->end ? seg->end : in->end;
    in->reach = offset + seg->length > in->reach ? offset + seg->length : in->reach;
    if (seg->flags & SEG_LAST) {
        in->flags = seg->flags;
        in->length = in->reach;
        in->invalidate = seg->invalidate;
    }
    return FAULT_NONE;
}

static enum fault place_send(struct qp *qp, const struct seg *seg, bool in_order)
{
    struct inbound *in = NULL;
    enum fault fault = find_receive(qp, seg, in_order, &in);

    return fault ? fault : place_message(qp, seg, in, in_order);
}

/* --- RDMA Write ---------------------------------------------------------------------------------------------- */

/* STag and TO of an empty message are not looked at (RFC 5041 5.2, RFC 5040 5.1). */
static enum fault aim_write(struct qp *qp, const struct seg *seg, struct piece *piece)
{
    enum fault fault;

    piece->length = seg->length;
    if (!seg->length)
        return FAULT_NONE;
    fault = mr_check(qp->attr.mrs, qp->attr.pd, seg->key, seg->offset, seg->length, RDDP_ACCESS_REMOTE_WRITE,
                     &piece->at, NULL);
    return fault ? note_seg(qp, seg, fault, 0, 0) : FAULT_NONE;
}

enum fault place_write(struct qp *qp, const struct seg *seg, bool in_order)
{
    struct piece piece;
    enum fault fault = aim_write(qp, seg, &piece);

    (void)in_order;
    if (!fault)
        copy(&piece, seg->length != 0, seg->data);
    return fault;
}

/* --- RDMA Read ----------------------------------------------------------------------------------------------- */

/* The source is not looked at before delivery: what comes earlier in the stream may still change what is allowed
 * (RFC 5040 5.5). */
static enum fault place_read_request(struct qp *qp, const struct seg *seg, bool in_order)
{
    uint32_t ahead = seg->msg - qp->answer_head;
    struct peer_read *p = peer_read_at(qp, seg->msg);

    if (ahead > INT32_MAX)
        return note_seg(qp, seg, FAULT_MSN, seg->msg, qp->answer_head);
    if (seg->msg - qp->answer_tail >= qp->attr.ird)
        return note_seg(qp, seg, FAULT_READS, (uint64_t)(seg->msg - qp->answer_tail) + 1, qp->attr.ird);
    if (in_order && ahead)
        return note_seg(qp, seg, FAULT_MSN, seg->msg, qp->answer_head);
    if (seg->offset)
        return note_seg(qp, seg, FAULT_MO, seg->offset, 0);
    *p = (struct peer_read){.read = seg->read, .end = seg->end, .arrived = true};
    return FAULT_NONE;
}

enum fault queue_read_request(struct qp *qp, const struct seg *seg)
{
    return place_read_request(qp, seg, true);
}

/* Is this part of what `s` asked for, with the L flag exactly at its end? Then *at says which part. */
static bool answers(const struct seg *seg, const struct send *s, uint32_t *at)
{
    const struct rddp_sge *sink = sink_of(s);
    uint64_t offset = seg->offset - sink->addr; /* before the sink it wraps, and is too large */

    if (seg->key != sink->lkey || offset > s->length || seg->length > s->length - offset)
        return false;
    *at = (uint32_t)offset;
    return (seg->length == s->length - offset) == !!(seg->flags & SEG_LAST);
}

/* In order a response belongs to the oldest Read and goes on where it stopped (RFC 5040 5.2: answered in order). */
static enum fault find_read(struct qp *qp, const struct seg *seg, struct send **s, uint32_t *at)
{
    if (!reads_out(qp))
        return note_seg(qp, seg, FAULT_UNASKED, 0, 0);
    *s = read_out_at(qp, qp->read_tail);
    if (!answers(seg, *s, at) || !in_turn(&(*s)->got, (*s)->early, *at))
        return note_seg(qp, seg, FAULT_UNASKED, seg->offset, sink_of(*s)->addr + ranges_prefix(&(*s)->got));
    return FAULT_NONE;
}

/* Out of order any Read may be meant, but it must be the only one: of two with the same sink only the order tells
 * which. */
static enum fault find_read_early(struct qp *qp, const struct seg *seg, struct send **found, uint32_t *found_at)
{
    uint32_t at;

    *found = NULL;
    for (uint32_t i = qp->read_tail; i != qp->read_head; i++) {
        struct send *s = read_out_at(qp, i);

        if (!answers(seg, s, &at))
            continue;
        if (*found)
            return FAULT_NOT_NOW;
        *found = s;
        *found_at = at;
    }
    return *found ? FAULT_NONE : note_seg(qp, seg, FAULT_UNASKED, 0, 0);
}

static enum fault aim_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t at, struct piece *piece)
{
    const struct rddp_sge *sge = sink_of(s);

    piece->length = seg->length;
    if (!seg->length || !mr_check(qp->attr.mrs, qp->attr.pd, sge->lkey, sge->addr + at, seg->length,
                                  RDDP_ACCESS_LOCAL_WRITE, &piece->at, NULL))
        return FAULT_NONE;
    s->status = RDDP_WC_LOC_PROT_ERR;
    return note_local(qp, seg, sge);
}

enum fault place_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t at, bool in_order)
{
    struct piece sink;
    enum fault fault = aim_answer(qp, seg, s, at, &sink);

    if (fault)
        return fault;
    if (!count(&s->got, at, at + seg->length, in_order))
        return FAULT_NOT_NOW;
    copy(&sink, seg->length != 0, seg->data);
    s->early |= !in_order;
    s->rx_end = seg->end > s->rx_end ? seg->end : s->rx_end;
    s->answered |= seg->flags & SEG_LAST;
    return FAULT_NONE;
}

static enum fault place_read_response(struct qp *qp, const struct seg *seg, bool in_order)
{
    struct send *s = NULL;
    uint32_t at = 0;
    enum fault fault = in_order ? find_read(qp, seg, &s, &at) : find_read_early(qp, seg, &s, &at);

    return fault ? fault : place_answer(qp, seg, s, at, in_order);
}

/* --- all ----------------------------------------------------------------------------------------------------- */

static const struct {
    enum fault (*place)(struct qp *qp, const struct seg *seg, bool in_order);
    enum fault (*deliver)(struct qp *qp);
} operation[] = {
    [SEG_SEND] = {place_send, deliver_send},
    [SEG_WRITE] = {place_write, NULL}, /* the target's application never hears of it (RFC 5040 5.1) */
    [SEG_READ_REQ] = {place_read_request, deliver_read_request},
    [SEG_READ_RESP] = {place_read_response, deliver_read_response},
};

enum fault qp_place(struct qp *qp, const struct seg *seg)
{
    bool in_order = seg->begin == qp->rx_pos;
    enum fault fault;

    assert(qp->state != QP_IDLE && seg->op < SEG_TERMINATE && seg->begin < seg->end);
    if (qp->state == QP_ERROR || seg->begin < qp->rx_pos)
        return FAULT_NONE;
    if (qp->group)
        return group_place(qp, seg);
    fault = operation[seg->op].place(qp, seg, in_order);
    if (fault)
        return fault;
    qp->rx_octets += seg->length;
    if (!in_order)
        return FAULT_NONE;
    qp->rx_pos = seg->end;
    return operation[seg->op].deliver ? operation[seg->op].deliver(qp) : FAULT_NONE;
}

static enum fault aim(struct qp *qp, const struct seg *seg, struct piece *piece, uint32_t *pieces)
{
    struct inbound *in = NULL;
    struct send *s = NULL;
    enum fault fault;
    uint32_t at = 0;

    *pieces = 1;
    switch (seg->op) {
    case SEG_SEND:
        fault = find_receive(qp, seg, true, &in);
        return fault ? fault : aim_message(qp, seg, in, true, piece, pieces);
    case SEG_WRITE:
        return aim_write(qp, seg, piece);
    case SEG_READ_RESP:
        fault = find_read(qp, seg, &s, &at);
        return fault ? fault : aim_answer(qp, seg, s, at, piece);
    default:
        *pieces = 0;
        return FAULT_NONE;
    }
}

enum fault qp_locate(struct qp *qp, const struct seg *seg, uint8_t **at)
{
    struct piece piece[QP_SGE_MAX];
    uint32_t pieces;
    enum fault fault;

    *at = NULL;
    if (qp->state != QP_READY || qp->group || seg->begin != qp->rx_pos || !seg->length)
        return FAULT_NONE;
    fault = aim(qp, seg, piece, &pieces);
    if (!fault && pieces == 1)
        *at = piece[0].at;
    return fault;
}
