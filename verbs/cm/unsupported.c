/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unsupported.c - the calls of librdmacm that rddp0 has nothing for: each fails as rdma_cm fails for iWARP. */
#include "verbs/unsupported.h"

/* clang-format off */
ANSWER_MINUS_ONE(rdma_join_multicast)
ANSWER_MINUS_ONE(rdma_join_multicast_ex)
ANSWER_MINUS_ONE(rdma_leave_multicast)
ANSWER_MINUS_ONE(rdma_get_remote_ece)
ANSWER_MINUS_ONE(rdma_set_local_ece)
ANSWER_MINUS_ONE(rdma_reject_ece)
/* clang-format on */
