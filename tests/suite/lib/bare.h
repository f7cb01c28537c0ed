/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bare.h - a peer that is a bare socket, connected over RDMA/TCP segments with a queue pair of one side of a pair. */
#ifndef RDDP_TESTS_SUITE_BARE_H
#define RDDP_TESTS_SUITE_BARE_H

#include "tests/suite/lib/pair.h"

/* Both return the socket and, in *qp, the queue pair, which the caller destroys. bare_dial(): the peer connects to the
 * server. bare_answer(): the client connects to the peer. */
int bare_dial(struct pair *pair, struct rddp_qp **qp, bool rdma_control);
int bare_answer(struct pair *pair, struct rddp_qp **qp);

#endif
