/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adopt.c - imports the state of a connection from another TCP: received data and path estimates. */
#include "tcp/inner.h"

void utcp_adopt_received(struct utcp *t, uint32_t octets, uint64_t rtt_us, uint64_t now_us)
{
    t->rx.next += octets;
    t->rx.acked = t->rx.next;
    t->rx.edge = utcp_max(t->rx.edge, t->rx.next);
    t->rx.kept = octets;
    t->rx.adopted = t->rx.next;
    if (rtt_us)
        utcp_rtt_sample(&t->rtt, rtt_us, now_us);
}

void utcp_settle(struct utcp *t)
{
    t->rx.adopted = 0;
}
