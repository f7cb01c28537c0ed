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
/* Of rdma-core 57 to 65. */
ANSWER_MINUS_ONE(rdma_query_addrinfo)
ANSWER_MINUS_ONE(rdma_resolve_addrinfo)
ANSWER_MINUS_ONE(rdma_write_cm_event)
ANSWER_MINUS_ONE(repoll_create)
ANSWER_MINUS_ONE(repoll_ctl)
ANSWER_MINUS_ONE(repoll_wait)
/* clang-format on */
