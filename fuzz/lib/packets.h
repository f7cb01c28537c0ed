/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packets.h - what a queue pair of RoCE under test belongs to: memory, of which the front is a region, and a CQ. */
#ifndef FUZZ_LIB_PACKETS_H
#define FUZZ_LIB_PACKETS_H

#include "core/qp.h"

enum {
    PACKETS_MEMORY = 8192,
    PACKETS_SLOTS = 4,
    PACKETS_CQE = 64,
    PACKETS_SGES = 3,
    PACKETS_KEY = 0x101,
};

struct packets {
    struct pd pd;
    struct mr_table mrs;
    struct mr_slot slot[PACKETS_SLOTS + 1];
    struct mr mr;
    struct cq cq;
    struct cq_entry ring[PACKETS_CQE];
    struct qp qp;
    void *buffer; /* of the queue pair */
    uint8_t memory[PACKETS_MEMORY];
    uint32_t posted, completed;
};

/* Begins with the first `registered` octets as a region, and a queue pair of this service with `reads` for IRD and ORD.
 */
void packets_open(struct packets *p, uint32_t registered, unsigned access, enum qp_service service, uint32_t reads);
/* Fails the queue pair: each request has completed once then, and the memory behind the region is still zeros. */
void packets_close(struct packets *p);
/* Takes a completion. Returns false if there is none. */
bool packets_poll(struct packets *p, struct rddp_wc *wc);

#endif
