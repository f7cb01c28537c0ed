/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd.h - the NFS server: RDMA and TCP at one side, serve.h at the other, and threads for what can wait. */
#ifndef RDDP_NFS_SERVER_NFSD_H
#define RDDP_NFS_SERVER_NFSD_H

#include <rddp/rddp.h>

#include "nfs/server/serve.h"

struct nfsd;

struct nfsd_attr {
    const char *address;      /* NULL: every IPv4 and IPv6 address */
    int rdma_port, tcp_port;  /* default 20049 and 2049; 0: any; -1: not at all */
    int mount_port;           /* MOUNT over TCP, default 20048 */
    unsigned workers;         /* threads for slow procedures, default 4 */
    unsigned connections_max; /* of RDMA and of TCP, default 256 */
    uint64_t memory_max;      /* octets that calls in work may hold, default 512 MiB: more wait unread */
    struct rddp_wire_attr wire;
    enum rddp_log_level log_level;
    struct nfs_server *server; /* borrowed */
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
void nfsd_stats(struct nfsd *d, struct nfsd_stats *stats);
void nfsd_close(struct nfsd *d);

#endif
