/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inflight.h - packets under way between the ends of a simulated network, the next to arrive first. */
#ifndef RDDP_TESTS_LIB_INFLIGHT_H
#define RDDP_TESTS_LIB_INFLIGHT_H

#include <stdint.h>

struct inflight_packet {
    uint64_t at_us, number; /* number: set by inflight_push(); the order of those that arrive at once */
    uint32_t length, to;
    uint8_t *octets; /* owned */
};

/* All zero: empty. */
struct inflight {
    struct inflight_packet *heap;
    uint32_t count, space;
    uint64_t number;
};

void inflight_push(struct inflight *f, struct inflight_packet p);
struct inflight_packet inflight_pop(struct inflight *f); /* of one that is not empty */
uint64_t inflight_next_us(const struct inflight *f);     /* UINT64_MAX: it is empty */
void inflight_fini(struct inflight *f);

#endif
