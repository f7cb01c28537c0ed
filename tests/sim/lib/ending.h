/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ending.h - how a run ends: regularly or by a failure, and what both sides must then report. */
#ifndef TESTS_SIM_LIB_ENDING_H
#define TESTS_SIM_LIB_ENDING_H

#include "tests/sim/lib/sim.h"

#define FAULT_BIT(f) (1ULL << (f))

enum ending_flag {
    ENDS = 1 << 0,    /* it ends the connection; otherwise the applications continue until they are finished */
    REJECTS = 1 << 1, /* the responder rejects instead of accepting */
    BLINDS = 1 << 2,  /* this side polls no more completions */
    WANTS_CRC = 1 << 3,
    WANTS_READS = 1 << 4,
    WANTS_SENDS = 1 << 5,
    INVALIDATES = 1 << 6,
};

struct ending {
    const char *name;
    uint32_t weight;
    /* Makes it happen to s->struck_side. False: not possible now, try again. */
    bool (*strike)(struct sim *s);
    uint64_t here, there; /* bits of the faults that this side and the other side may end with */
    unsigned code;        /* of the Terminate, if one of them reports FAULT_TERMINATED */
    unsigned flags;       /* enum ending_flag */
};

enum { ANY_CODE = 0x10000 };

extern const struct ending endings[];
extern const uint32_t ending_count;

/* Returns the regular ending, after which everything has been done and seen. */
const struct ending *ending_in_order(void);

/* Both sides are over: checks that they ended as they should. */
void ending_judge(const struct sim *s);

/* Prints how often each ending and each fault on either side occurred, and fails if one never did. */
void ending_tally(const struct wire *wire);

#endif
