/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ending.h - how a run ends: well, or by one of the things that go wrong, and what both sides must then say. */
#ifndef TESTS_SIM_LIB_ENDING_H
#define TESTS_SIM_LIB_ENDING_H

#include "tests/sim/lib/sim.h"

#define FAULT_BIT(f) (1ULL << (f))

enum ending_flag {
    ENDS = 1 << 0,    /* the connection is ended by it; else the applications go on until there is no more to do */
    REJECTS = 1 << 1, /* the responder does, instead of accepting */
    BLINDS = 1 << 2,  /* this side looks at no completion any more */
    WANTS_CRC = 1 << 3,
    WANTS_READS = 1 << 4,
    WANTS_SENDS = 1 << 5,
    INVALIDATES = 1 << 6,
};

struct ending {
    const char *name;
    uint32_t weight;
    /* Makes it happen to s->struck_side. False: not now, try again. */
    bool (*strike)(struct sim *s);
    uint64_t here, there; /* the faults that this side and the other may end with */
    unsigned code;        /* of the Terminate, if one of them says FAULT_TERMINATED */
    unsigned flags;       /* enum ending_flag */
};

enum { ANY_CODE = 0x10000 };

extern const struct ending endings[];
extern const uint32_t ending_count;

/* The one at the end of which everything has been done and seen. */
const struct ending *ending_in_order(void);

/* Both sides are over: did they end as they should? */
void ending_judge(const struct sim *s);

/* How often each ending, and each fault on either side, was seen; prints them, and fails if one never was. */
void ending_tally(const struct wire *wire);

#endif
