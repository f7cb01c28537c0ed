/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* manual.h - a context without a thread that is connected to one with a thread: for tests of what a post or a poll
 * drives. */
#ifndef RDDP_TESTS_SUITE_MANUAL_H
#define RDDP_TESTS_SUITE_MANUAL_H

#include "tests/suite/lib/pair.h"

enum { MANUAL_SIZE = 8, MANUAL_DEPTH = 1024 }; /* octets of each region; requests in a send queue */

struct manual_end {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_event_channel *events;
    struct rddp_cq *cq;
    struct rddp_cq *recv_cq; /* the same, unless the end was opened with one apart */
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    uint8_t memory[MANUAL_SIZE];
};

/* `here` has no thread; `there` has, and is written to. */
extern struct manual_end here, there;

/* Connect both, and close both: cmocka's set-up and tear-down of a test, whose state they leave alone. */
int manual_open(void **state);
int manual_open_apart(void **state);   /* each with a CQ of its own for receives */
int manual_open_patient(void **state); /* a Send waits for its receive, however long that takes */
int manual_close(void **state);

/* Posts a receive at one end, and a message for it at the other. */
void manual_send(struct manual_end *from, struct manual_end *to);

/* Waits for the next event, which must be of this type, and acknowledges it. */
struct rddp_event manual_event(struct manual_end *end, enum rddp_event_type type);

#endif
