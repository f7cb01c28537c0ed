/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* note.c - fills in qp->note, from which the line about a fault is written. */
#include "core/qp_inner.h"

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

struct fault_note note_read(const struct peer_read *p, uint32_t msn, enum fault fault)
{
    struct fault_note note = {.fault = fault, .op = (enum seg_op)p->op, .msg = msn};

    if (p->op == SEG_ATOMIC_REQ) {
        note.key = p->atomic.key;
        note.offset = p->atomic.offset;
        note.length = ATOMIC_OCTETS;
    } else {
        note.key = p->read.source_key;
        note.offset = p->read.source_offset;
        note.length = p->read.length;
        note.read = p->read;
    }
    return note;
}

enum fault note_message(struct qp *qp, enum fault fault, uint64_t got, uint64_t want)
{
    const struct inbound *in = inbound_at(qp, qp->arriving.next);
    const struct seg seg = {.op = SEG_SEND, .msg = qp->arriving.next, .key = in->invalidate, .length = in->length};

    return note_seg(qp, &seg, fault, got, want);
}

enum fault note_response(struct qp *qp, uint64_t got, uint64_t want)
{
    const struct rddp_sge *sink = sink_of(read_out_at(qp, qp->reads.tail));
    const struct seg seg = {.op = SEG_READ_RESP, .key = sink->lkey, .offset = sink->addr, .length = sink->length};

    return note_seg(qp, &seg, FAULT_UNASKED, got, want);
}
