/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packets.c - see packets.h. */
#include "fuzz/lib/packets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 8, INLINE_MAX = 16, START = 0x1000 };

void packets_open(struct packets *p, uint32_t registered, unsigned access, enum qp_service service, uint32_t reads)
{
    const struct qp_attr attr = {.pd = &p->pd,
                                 .mrs = &p->mrs,
                                 .send_cq = &p->cq,
                                 .recv_cq = &p->cq,
                                 .send_depth = DEPTH,
                                 .recv_depth = DEPTH,
                                 .send_sge = PACKETS_SGES,
                                 .recv_sge = PACKETS_SGES,
                                 .inline_max = INLINE_MAX,
                                 .window = 1,
                                 .service = service,
                                 .ird = reads,
                                 .ord = reads};

    memset(p, 0, sizeof(*p));
    mr_table_init(&p->mrs, p->slot, PACKETS_SLOTS);
    cq_init(&p->cq, p->ring, PACKETS_CQE, PACKETS_CQE, NULL);
    p->mr = (struct mr){.pd = &p->pd, .base = p->memory, .start = START, .length = registered, .access = access};
    assert(mr_insert(&p->mrs, &p->mr, PACKETS_KEY));
    p->buffer = calloc(1, qp_size(&attr));
    assert(p->buffer);
    qp_init(&p->qp, &attr, p->buffer);
}

bool packets_poll(struct packets *p, struct rddp_wc *wc)
{
    if (!cq_poll(&p->cq, wc, 1))
        return false;
    p->completed++;
    assert(p->completed <= p->posted);
    return true;
}

void packets_close(struct packets *p)
{
    const struct fault_note note = {.fault = FAULT_OWNER};
    struct rddp_wc wc;

    qp_fail(&p->qp, &note);
    qp_settle(&p->qp);
    while (packets_poll(p, &wc))
        continue;
    assert(p->posted == p->completed);
    for (uint64_t i = p->mr.length; i < PACKETS_MEMORY; i++)
        assert(!p->memory[i]);
    qp_fini(&p->qp);
    free(p->buffer);
}
