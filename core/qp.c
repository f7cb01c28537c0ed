/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c - the queues of one endpoint: their memory, posting, and the calls to the numbering for arriving and leaving
 * segments. */
#include "core/datagram.h"
#include "core/mw.h"
#include "core/qp_inner.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
    SEND_FLAGS = RDDP_SEND_FENCE | RDDP_SEND_SIGNALED | RDDP_SEND_SOLICITED | RDDP_SEND_INLINE | RDDP_SEND_ORDER |
                 RDDP_SEND_MASKED,
};

enum { CACHE_LINE = 64 };

/* --- memory ------------------------------------------------------------------------------------------------- */

/* The offsets, in octets, of the parts of a queue pair's memory. */
struct layout {
    size_t sq, sq_sge, sq_inline, sq_to, read_at, own_rq, inbound, inbound_sge, peer_read, end;
};

static size_t qp_part(size_t *end, size_t count, size_t each)
{
    size_t begin = *end;

    *end += size_align(count * each);
    return begin;
}

/* Receives in progress keep a copy of their sges, from whichever queue they come. */
static uint32_t recv_sge(const struct qp_attr *attr)
{
    return attr->srq ? attr->srq->sge_max : attr->recv_sge;
}

static struct layout qp_lay_out(const struct qp_attr *attr)
{
    size_t sends = ring_slots(attr->send_depth), window = ring_slots(attr->window), end = 0;
    struct layout l;

    l.sq = qp_part(&end, sends, sizeof(struct send));
    l.sq_sge = qp_part(&end, sends * attr->send_sge, sizeof(struct rddp_sge));
    l.sq_inline = qp_part(&end, sends, size_align(attr->inline_max));
    l.sq_to = qp_part(&end, attr->service == QP_DATAGRAMS ? sends : 0, sizeof(struct destination));
    l.read_at = qp_part(&end, ring_slots(attr->ord), sizeof(uint32_t));
    l.own_rq = qp_part(&end, 1, attr->srq ? 0 : rq_size(attr->recv_depth, attr->recv_sge));
    l.inbound = qp_part(&end, window, sizeof(struct inbound));
    l.inbound_sge = qp_part(&end, window * recv_sge(attr), sizeof(struct rddp_sge));
    l.peer_read = qp_part(&end, ring_slots(attr->ird), sizeof(struct peer_read));
    l.end = end;
    return l;
}

size_t qp_size(const struct qp_attr *attr)
{
    if (attr->send_depth > QP_DEPTH_MAX || attr->recv_depth > QP_DEPTH_MAX || attr->send_sge > QP_SGE_MAX ||
        attr->recv_sge > QP_SGE_MAX || attr->inline_max > QP_INLINE_MAX || attr->ird > QP_READS_MAX ||
        attr->ord > QP_READS_MAX || attr->window > QP_WINDOW_MAX || !attr->window)
        return 0;
    return qp_lay_out(attr).end;
}

/* --- life ---------------------------------------------------------------------------------------------------- */

static void init_rings(struct qp *qp, uint8_t *buffer)
{
    const struct qp_attr *attr = &qp->attr;
    const struct layout l = qp_lay_out(attr);

    qp->sq.ring = (struct send *)(buffer + l.sq);
    qp->sq.mask = ring_slots(attr->send_depth) - 1;
    for (uint32_t i = 0; i <= qp->sq.mask; i++) {
        qp->sq.ring[i].sge = (struct rddp_sge *)(buffer + l.sq_sge) + (size_t)i * attr->send_sge;
        qp->sq.ring[i].inlined = buffer + l.sq_inline + i * size_align(attr->inline_max);
        if (attr->service == QP_DATAGRAMS)
            qp->sq.ring[i].to = (struct destination *)(buffer + l.sq_to) + i;
    }
    qp->reads.at = (uint32_t *)(buffer + l.read_at);
    qp->reads.mask = ring_slots(attr->ord) - 1;
    qp->arriving.ring = (struct inbound *)(buffer + l.inbound);
    qp->arriving.mask = ring_slots(attr->window) - 1;
    for (uint32_t i = 0; i <= qp->arriving.mask; i++)
        qp->arriving.ring[i].recv.sge = (struct rddp_sge *)(buffer + l.inbound_sge) + (size_t)i * recv_sge(attr);
    qp->answers.ring = (struct peer_read *)(buffer + l.peer_read);
    qp->answers.mask = ring_slots(attr->ird) - 1;
    if (!attr->srq)
        rq_init(&qp->own_rq, attr->pd, attr->recv_depth, attr->recv_sge, buffer + l.own_rq);
}

static void qp_begin(struct qp *qp, const struct qp_attr *attr, void *buffer)
{
    *qp = (struct qp){
        .attr = *attr,
        .numbering = &numbering_queues,
        .rq = attr->srq ? attr->srq : &qp->own_rq,
        .arriving = {.claimed = 1, .next = 1},
        .answers = {.head = 1, .tail = 1},
        .tx_send_msg = 1,
        .tx_read_msg = 1,
        .tx_atomic_msg = 1,
        .rx_atomic_msg = 1,
        .user = atomic_fetch_add(&attr->mrs->users, 1) + 1,
    };
    init_rings(qp, buffer);
}

void qp_init(struct qp *qp, const struct qp_attr *attr, void *buffer)
{
    assert(qp_size(attr));
    qp_begin(qp, attr, buffer);
    attr->pd->users++;
    attr->send_cq->users++;
    attr->recv_cq->users++;
    if (attr->srq)
        attr->srq->users++;
}

/* What outlives the queue pair: places of an SRQ in which messages were arriving, and the region of a bind that waits.
 */
static void give_all_back(struct qp *qp)
{
    mw_part_from(&qp->joined);
    atomic_fetch_sub(&qp->rq->taken, qp->arriving.claimed - qp->arriving.next);
}

void qp_reset(struct qp *qp, const struct qp_attr *attr, void *buffer)
{
    give_all_back(qp);
    memset(buffer, 0, qp_size(attr));
    qp_begin(qp, attr, buffer);
}

void qp_fini(struct qp *qp)
{
    give_all_back(qp);
    qp->attr.pd->users--;
    qp->attr.send_cq->users--;
    qp->attr.recv_cq->users--;
    if (qp->attr.srq)
        qp->attr.srq->users--;
}

void qp_leave(struct qp *qp)
{
    if (!qp->attr.srq)
        rq_leave(&qp->own_rq);
    qp->rq->taken += qp->arriving.claimed - qp->arriving.next;
    qp->sq.taken = qp->sq.head - qp->sq.tail;
}

void qp_connect(struct qp *qp, uint32_t ird, uint32_t ord, uint64_t rx_pos)
{
    assert(qp->state != QP_READY);
    assert(ird <= qp->attr.ird && ord <= qp->attr.ord);
    qp->attr.ird = ird;
    qp->attr.ord = ord;
    qp->rx_pos = rx_pos;
    if (qp->state == QP_IDLE)
        qp->state = QP_READY;
}

static size_t widen_ring(uint32_t window)
{
    return size_align(ring_slots(window) * sizeof(struct inbound));
}

size_t qp_widen_size(const struct qp *qp, uint32_t window)
{
    return widen_ring(window) + ring_slots(window) * qp->rq->sge_max * sizeof(struct rddp_sge);
}

void qp_widen(struct qp *qp, uint32_t window, void *buffer)
{
    struct rddp_sge *sge = (struct rddp_sge *)((uint8_t *)buffer + widen_ring(window));

    assert(!qp->rx_pos && qp->arriving.claimed == qp->arriving.next && window && window <= QP_WINDOW_MAX);
    qp->arriving.ring = buffer;
    qp->arriving.mask = ring_slots(window) - 1;
    qp->attr.window = window;
    for (uint32_t i = 0; i <= qp->arriving.mask; i++)
        qp->arriving.ring[i].recv.sge = sge + (size_t)i * qp->rq->sge_max;
}

void qp_skip_receive(struct qp *qp)
{
    assert(qp->arriving.claimed == qp->arriving.next);
    qp->arriving.claimed++;
    qp->arriving.next++;
}

/* --- posting ------------------------------------------------------------------------------------------------- */

static void copy_inline(uint8_t *to, const struct rddp_sge *sge, uint32_t sges)
{
    for (uint32_t i = 0; i < sges; i++)
        to = put_bytes(to, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
}

static bool is_opcode(enum rddp_wr_opcode opcode)
{
    switch (opcode) {
    case RDDP_WR_RDMA_WRITE:
    case RDDP_WR_RDMA_WRITE_WITH_IMM:
    case RDDP_WR_SEND:
    case RDDP_WR_SEND_WITH_IMM:
    case RDDP_WR_RDMA_READ:
    case RDDP_WR_ATOMIC_CMP_AND_SWP:
    case RDDP_WR_ATOMIC_FETCH_AND_ADD:
    case RDDP_WR_LOCAL_INV:
    case RDDP_WR_BIND_MW:
    case RDDP_WR_SEND_WITH_INV:
        return true;
    }
    return false;
}

/* Returns 0 and the octets of the message, -EINVAL, or the result of the wire's check. */
static int check_send(const struct qp *qp, const struct rddp_send_wr *wr, uint32_t *length)
{
    bool is_inline = wr->send_flags & RDDP_SEND_INLINE;

    if (!is_opcode(wr->opcode) || wr->send_flags & ~(unsigned)SEND_FLAGS)
        return -EINVAL;
    if ((wr->opcode == RDDP_WR_RDMA_READ || wr->opcode == RDDP_WR_BIND_MW) && is_inline)
        return -EINVAL;
    if (wr->opcode == RDDP_WR_BIND_MW && !wr->bind)
        return -EINVAL;
    if (sges_check(wr->sg_list, wr->num_sge, qp->attr.send_sge, length))
        return -EINVAL;
    if (is_inline && *length > qp->attr.inline_max)
        return -EINVAL;
    if (is_atomic(wr->opcode) ? is_inline || wr->num_sge != 1 || *length != ATOMIC_OCTETS
                              : wr->send_flags & RDDP_SEND_MASKED)
        return -EINVAL;
    if (qp->unsupported >> wr->opcode & 1)
        return -EOPNOTSUPP;
    if (qp->send_max && *length > qp->send_max && (wr->opcode == RDDP_WR_SEND || wr->opcode == RDDP_WR_SEND_WITH_INV))
        return -EINVAL;
    return qp->numbering->check(qp, wr, *length);
}

/* Without masks all bits are compared and swapped, and one field is added (RFC 7306 5.1). */
static struct seg_atomic atomic_of(const struct rddp_send_wr *wr)
{
    bool masked = wr->send_flags & RDDP_SEND_MASKED;
    struct seg_atomic a = {.op = SEG_FETCH_ADD, .key = wr->rkey, .offset = wr->remote_addr, .compare_mask = UINT64_MAX};

    if (wr->opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD) {
        a.data = wr->compare_add;
        a.mask = masked ? wr->compare_add_mask : 0;
        return a;
    }
    a.op = SEG_CMP_SWAP;
    a.data = wr->swap;
    a.mask = masked ? wr->swap_mask : UINT64_MAX;
    a.compare = wr->compare_add;
    a.compare_mask = masked ? wr->compare_add_mask : UINT64_MAX;
    return a;
}

static void qp_fill_send(const struct qp *qp, struct send *s, const struct rddp_send_wr *wr, uint32_t length)
{
    bool sends_none = is_local(wr->opcode), is_inline = wr->send_flags & RDDP_SEND_INLINE;
    bool is_tagged = is_write(wr->opcode) || wr->opcode == RDDP_WR_RDMA_READ || wr->opcode == RDDP_WR_BIND_MW;

    s->wr_id = wr->wr_id;
    s->opcode = wr->opcode;
    s->flags = wr->send_flags;
    s->remote_offset = wr->remote_addr;
    s->remote_key = is_tagged ? wr->rkey : wr->invalidate_rkey;
    s->length = sends_none ? 0 : length;
    s->sges = sends_none || is_inline ? 0 : (uint32_t)wr->num_sge;
    s->state = SEND_POSTED;
    s->status = RDDP_WC_SUCCESS;
    s->got.count = 0;
    s->answered = s->early = s->begun = false;
    s->end = UINT64_MAX;
    s->rx_end = s->retired = 0;
    s->immediate = get32((const uint8_t *)&wr->imm_data);
    if (is_atomic(wr->opcode))
        s->atomic = atomic_of(wr);
    if (wr->opcode == RDDP_WR_BIND_MW)
        s->bind = *wr->bind;
    if (qp->numbering->fill)
        qp->numbering->fill(s, wr);
    for (uint32_t i = 0; i < s->sges; i++)
        s->sge[i] = wr->sg_list[i];
    if (is_inline)
        copy_inline(s->inlined, wr->sg_list, (uint32_t)wr->num_sge);
}

static uint32_t free_places(const struct qp *qp)
{
    return qp->attr.send_depth - atomic_load_explicit(&qp->sq.taken, memory_order_acquire);
}

int qp_post_sends(struct qp *qp, struct rddp_send_wr **wr)
{
    uint32_t length, head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed), space = free_places(qp), n = 0;
    int error = 0;

    if (space == qp->attr.send_depth)
        atomic_store_explicit(&qp->sq.first, head, memory_order_relaxed);
    for (; *wr && !(error = check_send(qp, *wr, &length)); *wr = (*wr)->next) {
        if (n == space && n == (space = free_places(qp))) {
            error = -ENOMEM;
            break;
        }
        qp_fill_send(qp, sq_at(qp, head + n++), *wr, length);
    }
    if (n) {
        atomic_fetch_add_explicit(&qp->sq.taken, n, memory_order_relaxed);
        atomic_store_explicit(&qp->sq.head, head + n, memory_order_release);
    }
    return error;
}

uint32_t qp_longest_of(const struct qp *qp, uint32_t requests)
{
    uint32_t longest = 0;

    for (uint32_t i = qp->sq.head - requests; i != qp->sq.head; i++)
        if (sq_at(qp, i)->length > longest)
            longest = sq_at(qp, i)->length;
    return longest;
}

int qp_post_send(struct qp *qp, const struct rddp_send_wr *wr)
{
    struct rddp_send_wr alone = *wr, *at = &alone;

    alone.next = NULL;
    return qp_post_sends(qp, &at);
}

int qp_post_recv(struct qp *qp, const struct rddp_recv_wr *wr)
{
    return qp->attr.srq ? -EINVAL : rq_post(&qp->own_rq, wr);
}

/* --- arriving ------------------------------------------------------------------------------------------------ */

enum fault qp_place(struct qp *qp, const struct seg *seg)
{
    assert(qp->state != QP_IDLE && seg->op < SEG_TERMINATE && seg->begin < seg->end);
    if (qp->state == QP_ERROR || seg->begin < qp->rx_pos)
        return FAULT_NONE;
    return qp->invalidating ? FAULT_NOT_NOW : qp->numbering->place(qp, seg);
}

bool qp_takes_whole(const struct qp *qp)
{
    return qp->state == QP_READY && qp->numbering->take_whole && !qp_waits(qp) && !qp_has_local(qp);
}

bool qp_take_whole(struct qp *qp, const struct seg *seg)
{
    return seg->begin == qp->rx_pos && qp->numbering->take_whole(qp, seg);
}

enum fault qp_place_early(struct qp *qp, const struct seg *seg)
{
    assert(seg->op < SEG_TERMINATE && seg->begin < seg->end);
    if (qp->state != QP_READY || seg->begin <= qp->rx_pos)
        return FAULT_NOT_NOW;
    return qp->numbering->place_early(qp, seg) ? FAULT_NOT_NOW : FAULT_NONE;
}

enum fault qp_locate(struct qp *qp, const struct seg *seg, uint8_t **at)
{
    *at = NULL;
    if (qp->state != QP_READY || !qp->numbering->locate || seg->begin != qp->rx_pos || !seg->length || qp->invalidating)
        return FAULT_NONE;
    return qp->numbering->locate(qp, seg, at);
}

enum fault qp_claim_receive(struct qp *qp, const struct seg *seg)
{
    if (qp->state != QP_READY || !qp->numbering->claim || seg->begin != qp->rx_pos || qp->invalidating)
        return FAULT_NONE;
    return qp->numbering->claim(qp, seg);
}

enum fault qp_advance(struct qp *qp, uint64_t pos)
{
    if (qp->state == QP_ERROR || pos <= qp->rx_pos)
        return FAULT_NONE;
    return qp->numbering->advance(qp, pos);
}

/* --- what sends nothing -------------------------------------------------------------------------------------- */

void qp_do_local(struct qp *qp)
{
    if (qp->state == QP_READY)
        (void)emit_all_local(qp);
}

/* --- waiting until others have left -------------------------------------------------------------------------- */

enum fault qp_resume(struct qp *qp)
{
    enum fault fault = FAULT_NONE;

    if (qp->state == QP_READY && qp->binding && !emit_all_local(qp))
        return FAULT_NONE; /* the queue pair has failed */
    if (qp->state == QP_READY && qp->invalidating)
        fault = qp->numbering->resume(qp);
    return fault ? fault : sq_retire(qp);
}

/* --- leaving ------------------------------------------------------------------------------------------------- */

bool qp_has_output(const struct qp *qp)
{
    return qp->state == QP_READY && emit_is_due(qp);
}

bool qp_emit(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max)
{
    if (qp->state != QP_READY)
        return false;
    if (qp->numbering->emit_whole && qp->numbering->emit_whole(qp, e, tagged_max, untagged_max))
        return true;
    if (!emit_choose(qp))
        return false;
    e->seg = (struct seg){.op = SEG_SEND};
    e->spans = 0;
    e->volatile_data = e->may_change = false;
    return qp->numbering->emit(qp, e, tagged_max, untagged_max);
}

void qp_queued(struct qp *qp, uint64_t end)
{
    /* A request is complete when its last segment has left; each segment overwrites the position of the one before. */
    if (qp->cut.last == EMIT_SEND)
        sq_at(qp, qp->cut.source == EMIT_NOTHING ? qp->sq.next - 1 : qp->sq.next)->end = end;
}

/* The next request is posted to a place that was last used a whole ring ago, and a long ring has left the cache. */
static void fetch_next_place(const struct qp *qp)
{
    const struct send *next = sq_at(qp, atomic_load_explicit(&qp->sq.head, memory_order_relaxed));
    const uint8_t *place = (const uint8_t *)next;

    for (size_t i = 0; i < offsetof(struct send, got); i += CACHE_LINE)
        __builtin_prefetch(place + i, 1);
    __builtin_prefetch(qp->sq.ring[0].sge + (size_t)(next - qp->sq.ring) * qp->attr.send_sge, 1);
}

void qp_sent(struct qp *qp, uint64_t pos)
{
    qp->tx_pos = pos;
    sq_retire(qp);
    fetch_next_place(qp);
}
