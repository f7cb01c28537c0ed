/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* work.h - what an application might request next: anything allowed, at random. */
#ifndef TESTS_SIM_LIB_WORK_H
#define TESTS_SIM_LIB_WORK_H

#include "tests/sim/lib/model.h"

struct work_attr {
    uint32_t budget;   /* requests of each end */
    uint32_t size_max; /* octets of one, at most */
    uint32_t pieces;   /* sges of one, at most */
    bool sends, writes, reads, invalidates, hot;
};

/* Posts one receive or request. Returns false if that was not possible. */
bool work_step(struct party *p, const struct work_attr *work);

/* The application writes to its hot region, whoever is reading it. */
void work_stir(struct party *p);

/* Makes a request of this kind from one piece of our memory, not posted yet. NULL: no piece is free. */
struct request *work_request(struct party *p, enum rddp_wr_opcode opcode, uint32_t length);

/* Posts a receive of about `capacity` octets, if there is room. */
bool work_receive(struct party *p, uint32_t capacity, uint32_t pieces);

#endif
