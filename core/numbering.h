/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* numbering.h - how a wire numbers messages, and what their order means. */
#ifndef RDDP_CORE_NUMBERING_H
#define RDDP_CORE_NUMBERING_H

#include <stdbool.h>
#include <stdint.h>

#include <rddp/wr.h>

#include "core/fault.h"
#include "core/seg.h"

struct emit;
struct qp;
struct send;

/* The operations of one kind of numbering. Only qp.c calls them. They call the primitives (place.c, deliver.c, emit.c,
 * complete.c), which call neither them nor qp.c. check() and fill() run in the posting thread; all others in the thread
 * that holds the endpoint (see qp.h). */
struct numbering {
    /* Can the wire express this request of `length` octets? Returns 0; -EINVAL for a wrong argument; -EOPNOTSUPP if the
     * wire has no such message. Any thread may call, so it reads only fields of the queue pair that never change. */
    int (*check)(const struct qp *qp, const struct rddp_send_wr *wr, uint32_t length);

    /* Copies the fields of a posted request that only this kind uses. NULL: there are none. */
    void (*fill)(struct send *s, const struct rddp_send_wr *wr);

    /* Like qp_place(); seg->begin is not before rx_pos. */
    enum fault (*place)(struct qp *qp, const struct seg *seg);

    /* Like qp_take_whole(). NULL: nothing goes straight. */
    bool (*take_whole)(struct qp *qp, const struct seg *seg);

    /* Like qp_place_early(); seg->begin is behind rx_pos. */
    enum fault (*place_early)(struct qp *qp, const struct seg *seg);

    /* Like qp_locate(); seg->begin is rx_pos. NULL: no payload of this kind is read straight to its place. */
    enum fault (*locate)(struct qp *qp, const struct seg *seg, uint8_t **at);

    /* Like qp_claim_receive(); seg->begin is rx_pos. NULL: this kind is never asked. */
    enum fault (*claim)(struct qp *qp, const struct seg *seg);

    /* Like qp_advance(); `pos` is behind rx_pos. */
    enum fault (*advance)(struct qp *qp, uint64_t pos);

    /* Delivers what is due, first the message whose invalidation was pending. NULL: no message of this kind invalidates
     * keys. */
    enum fault (*resume)(struct qp *qp);

    /* Like qp_emit() for a request that is one segment, if it is that simple. NULL: emit() knows all. */
    bool (*emit_whole)(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max);

    /* Cuts and numbers the next segment of the message that qp->cut.source names. Returns false if the queue pair
     * failed. NULL: the transport asks for packets (packets.h). */
    bool (*emit)(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max);
};

extern const struct numbering numbering_queues;    /* queues.c */
extern const struct numbering numbering_sequence;  /* sequence.c */
extern const struct numbering numbering_packets;   /* packets.c */
extern const struct numbering numbering_datagrams; /* datagram.c */

#endif
