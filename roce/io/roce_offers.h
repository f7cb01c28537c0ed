/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_offers.h - requests of ours for listeners on this host, which wait while the queue of their listener is full:
 * the system keeps about ten datagrams for each. A listener that does not keep up delays no request for another one.
 *
 * All of it is guarded by the lock of the loop. */
#ifndef RDDP_ROCE_IO_ROCE_OFFERS_H
#define RDDP_ROCE_IO_ROCE_OFFERS_H

#include "roce/io/roce_passing.h"
#include "roce/io/roce_port.h"

enum {
    OFFERS_MAX = 16384, /* requests that wait; more are lost, and sent again by their timers */
    OFFER_OCTETS = 512, /* of a request, at most */
};

struct offer_queue;

struct roce_offers {
    struct offer_queue *queues; /* owned; one for each listener whose queue is full */
    uint32_t waiting;           /* requests in all of them */
};

/* Forgets those that wait. */
void roce_offers_fini(struct roce_offers *offers);

/* Offers a request to the listener that is there for run->to: now, or by roce_offers_again(), in the order of these
 * calls. `id` is that of the request: one that waits already is not kept twice. Returns false if nothing listens
 * there. */
bool roce_offers_put(struct roce_offers *offers, struct roce_passing *passing, uint64_t service, uint32_t id,
                     const struct roce_run *run);

/* Offers those that wait again. */
void roce_offers_again(struct roce_offers *offers, struct roce_passing *passing);

#endif
