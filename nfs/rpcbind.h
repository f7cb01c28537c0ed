/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcbind.h - asks a host's rpcbind for a port, and registers our own port (RFC 1833). Each call waits for the
 * answer. */
#ifndef RDDP_NFS_RPCBIND_H
#define RDDP_NFS_RPCBIND_H

#include <stdint.h>
#include <sys/socket.h>

/* Returns the port at which the host `addr` serves the program over netid "tcp" or "tcp6"; the port in `addr` is
 * ignored. 0: rpcbind does not know the program. Negative errno: -ECONNREFUSED without an rpcbind, -ETIMEDOUT, -EPROTO,
 * -EINVAL for another netid. */
int rpcbind_getport(const struct sockaddr *addr, uint32_t program, uint32_t version, const char *netid, int timeout_ms);

/* rpcbind_set() registers the program at the local rpcbind, over its local socket, for all addresses of the netid
 * ("tcp", "tcp6", "rdma", "rdma6"); rpcbind_unset() removes it. They return 0; -EEXIST if another program is registered
 * or rpcbind refuses; or another negative errno, such as -ENOENT or -ECONNREFUSED if rpcbind does not run. */
int rpcbind_set(uint32_t program, uint32_t version, const char *netid, uint16_t port);
int rpcbind_unset(uint32_t program, uint32_t version, const char *netid);

#endif
