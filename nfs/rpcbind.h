/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcbind.h - asking a host's rpcbind for a port, and telling the local one of ours (RFC 1833). Each call waits. */
#ifndef RDDP_NFS_RPCBIND_H
#define RDDP_NFS_RPCBIND_H

#include <stdint.h>
#include <sys/socket.h>

/* The port where the host `addr` (its own port is not looked at) serves this over netid "tcp" or "tcp6". 0: it knows of
 * none; or a negative errno: -ECONNREFUSED without an rpcbind, -ETIMEDOUT, -EPROTO, -EINVAL for another netid. */
int rpcbind_getport(const struct sockaddr *addr, uint32_t program, uint32_t version, const char *netid, int timeout_ms);

/* Tells the local rpcbind, over its local socket, that we serve this at every address of the netid ("tcp", "tcp6",
 * "rdma", "rdma6"). 0, -EEXIST: somebody else does or it will not; -ENOENT, -ECONNREFUSED: it does not run ... */
int rpcbind_set(uint32_t program, uint32_t version, const char *netid, uint16_t port);
int rpcbind_unset(uint32_t program, uint32_t version, const char *netid);

#endif
