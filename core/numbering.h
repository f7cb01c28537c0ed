/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* numbering.h - how a wire numbers messages, and what their order means: a policy above the primitives. */
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

/* One for each kind. qp.c alone calls them, nothing calls qp.c, and they call the primitives (place.c, deliver.c,
 * emit.c, complete.c), which call none of them. All but check and fill: for whoever places and emits, see qp.h. */
struct numbering {
    /* Can the wire say this request of `length` octets? 0 or -EINVAL. From any thread, so of the queue pair only what
     * never changes counts. */
    int (*check)(const struct qp *qp, const struct rddp_send_wr *wr, uint32_t length);

    /* The request is posted: what only this kind keeps of it. NULL: nothing. */
    void (*fill)(struct send *s, const struct rddp_send_wr *wr);

    /* As qp_place(); seg->begin is not before rx_pos. */
    enum fault (*place)(struct qp *qp, const struct seg *seg);

    /* As qp_place_early(); seg->begin is behind rx_pos. */
    enum fault (*place_early)(struct qp *qp, const struct seg *seg);

    /* As qp_locate(); seg->begin is rx_pos. NULL: nothing of this kind can be read to its place. */
    enum fault (*locate)(struct qp *qp, const struct seg *seg, uint8_t **at);

    /* As qp_advance(); `pos` is behind rx_pos. */
    enum fault (*advance)(struct qp *qp, uint64_t pos);

    /* Delivers what is due, the message that was withheld first. NULL: no message of this kind takes keys away. */
    enum fault (*resume)(struct qp *qp);

    /* Cuts the next segment of what qp->emitting says, and numbers it. False: the queue pair failed. */
    bool (*emit)(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max);
};

extern const struct numbering numbering_queues;   /* queues.c */
extern const struct numbering numbering_sequence; /* sequence.c */

#endif
