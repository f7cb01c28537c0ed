/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tirpc_rpcbind.h - registers and finds programs over RDMA at rpcbind: the netids rdma and rdma6 (RFC 8166 9). */
#ifndef RDDP_RPC_TIRPC_RPCBIND_H
#define RDDP_RPC_TIRPC_RPCBIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rpc/rpc.h>

void rpcbind_set_port(struct sockaddr_storage *addr, uint16_t port);

/* Asks the rpcbind at `addr`, whose family selects the netid, for the port and stores it there. Returns RPC_SUCCESS,
 * RPC_PROGNOTREGISTERED, or RPC_RPCBFAILURE and sets errno. */
enum clnt_stat rpcbind_ask(uint32_t program, uint32_t version, struct sockaddr_storage *addr);

/* Register `addr` at the local rpcbind, and unregister it. Return false on failure. */
bool rpcbind_change(uint32_t program, uint32_t version, const struct sockaddr_storage *addr);
bool rpcbind_untell(uint32_t program, uint32_t version, const struct sockaddr_storage *addr);

#endif
