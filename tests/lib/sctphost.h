/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctphost.h - the host of one association of osctp: who gets a packet, and what it answers that belongs to none. */
#ifndef TESTS_LIB_SCTPHOST_H
#define TESTS_LIB_SCTPHOST_H

#include <stdbool.h>
#include <stdint.h>

#include "sctp/osctp.h"

struct sctphost {
    struct osctp *o;
    struct osctp_attr attr; /* of associations to come */
    struct osctp_sent *sent;
    const struct osctp_user *user;
    void *of;
    uint64_t key[2];
    bool begun, listening;
    uint32_t restarts; /* of the peer */
    uint8_t reply[OSCTP_ANSWER];
};

/* A packet arrives from this address. Returns the octets of the answer in `reply`; 0: the host has none. */
uint32_t sctphost_input(struct sctphost *h, uint64_t from, const uint8_t *p, uint32_t n, uint64_t now_us);

#endif
