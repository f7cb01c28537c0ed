/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* looped.h - two RC queue pairs of rddpe0 in one process, connected by hand over loopback, on one CQ with a channel. */
#ifndef RDDP_TESTS_VERBS_LOOPED_H
#define RDDP_TESTS_VERBS_LOOPED_H

#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct looped {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp[2];
};

/* Opens the device, and connects the queue pairs. The CQ has what IBV_WC_STANDARD_FLAGS and `wc_flags` say. */
void looped_open(struct looped *looped, uint64_t wc_flags);
void looped_close(struct looped *looped);

/* Post a request with one entry: a receive, and a request of the other kind, which is signalled. */
void looped_receive(struct ibv_qp *qp, uint64_t wr_id, uint64_t addr, uint32_t length, uint32_t lkey);
void looped_post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t remote, uint32_t rkey);

/* Waits for a completion. */
struct ibv_wc looped_completion(struct looped *looped);

#endif
