/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* binding.h - what store.x may transfer by RDMA; client and server share it. */
#ifndef RDDP_EXAMPLES_RPC_BINDING_H
#define RDDP_EXAMPLES_RPC_BINDING_H

#include <rddp/rpc.h>

extern const struct rddp_rpc_binding store_binding;

#endif
