/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd.h - the NFS server: RDMA and TCP at one side, serve.h at the other, and threads for what can wait. Every
 * listener answers NFS and MOUNT; but without a TCP port of its own NFS is answered over RDMA alone. */
#ifndef RDDP_NFS_SERVER_NFSD_H
#define RDDP_NFS_SERVER_NFSD_H

#include <rddp/rddp.h>

#include "nfs/server/serve.h"

struct nfsd;

struct nfsd_attr {
    const char *address;      /* NULL: every IPv4 and IPv6 address */
    int rdma_port, tcp_port;  /* default 20049 and 2049; 0: any; -1: not at all */
    int mount_port;           /* MOUNT over TCP, default 20048; -1: the port of NFS alone */
    unsigned workers;         /* threads for slow procedures, default 4 */
    unsigned connections_max; /* of RDMA and of TCP, default 256: for the next one the longest idle one gives way */
    unsigned address_max;     /* of one address: default half of them */
    uint32_t rest_ms;         /* who was idle for less time gives way to nobody: default 1000 */
    uint64_t memory_max;      /* octets that calls in work may hold, default 512 MiB: more wait unread */
    uint32_t record_max;      /* octets of a call over TCP, default 1 MiB + 64 KiB */
    unsigned calls_max;       /* of a TCP connection at once, default 64: more wait unread */
    uint32_t credits;         /* of an RDMA connection, default 64 */
    uint32_t idle_ms;         /* a peer stops within a call, or takes no reply: default 30000 */
    struct rddp_wire_attr wire;
    enum rddp_log_level log_level; /* of what RDMA connections have to say: as of rddp_context_attr_init() */
    struct nfs_server *server;     /* borrowed */
    void (*log)(void *user, const char *line); /* what an administrator should know; NULL: nobody wants to */
    void *user;
};

struct nfsd_stats {
    uint64_t calls, errors, replayed, read_octets, written_octets;
    uint32_t rdma_connections, tcp_connections;
};

void nfsd_attr_init(struct nfsd_attr *attr);
/* NULL and errno, and a line in `error` (EXPORT_TEXT octets). */
struct nfsd *nfsd_open(const struct nfsd_attr *attr, char *error);
/* The ports that are listened at; -1 for none. */
int nfsd_rdma_port(const struct nfsd *d);
int nfsd_tcp_port(const struct nfsd *d);
int nfsd_mount_port(const struct nfsd *d);
/* Serves until nfsd_stop() (async-signal-safe). 0 or a negative errno. */
int nfsd_run(struct nfsd *d);
void nfsd_stop(struct nfsd *d);
/* From any thread. `errors`: calls that RPC refused, whatever NFS would have said. */
void nfsd_stats(struct nfsd *d, struct nfsd_stats *stats);
/* nfsd_run() must have returned. */
void nfsd_close(struct nfsd *d);

#endif
