/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd.h - the NFS server: RDMA and TCP listeners, the procedures of serve.h, and threads for calls that can block.
 * Each listener serves NFS and MOUNT, except that without a TCP port for NFS, NFS is served over RDMA only. */
#ifndef RDDP_NFS_SERVER_NFSD_H
#define RDDP_NFS_SERVER_NFSD_H

#include <rddp/rddp.h>
#include <rddp/stream.h>

#include "nfs/server/serve.h"

struct nfsd;

struct nfsd_attr {
    const char *address;     /* NULL: every IPv4 and IPv6 address */
    int rdma_port, tcp_port; /* default 20049 and 2049; 0: any free port; -1: do not listen */
    int mount_port;          /* for MOUNT over TCP, default 20048; -1: only the ports of NFS */
    unsigned workers;        /* threads of each export for what may wait for its disk, default 4 */
    /* For RDMA and for TCP, default 256. To accept one more, one is closed: eviction_find_fair() in rpc/eviction.h. */
    unsigned connections_max;
    unsigned address_max; /* connections from one address; default: half of connections_max */
    uint32_t rest_ms;     /* one that is idle for less time is closed only to share the places: default 1000 */
    uint64_t memory_max;  /* octets that calls may hold; default 512 MiB; further calls wait */
    uint32_t record_max;  /* octets of a call over TCP; default 1 MiB + 64 KiB */
    unsigned calls_max;   /* parallel calls of a TCP connection; default 64; further calls are not read */
    uint32_t credits;     /* of an RDMA connection; default 64 */
    uint32_t idle_ms;     /* disconnect a peer that stops within a call, or takes no reply: default 30000 */
    struct rddp_wire_attr wire;
    struct rddp_stream_net *net; /* borrowed: NFS and MOUNT are served behind it, too, on the same ports; NULL: none */
    enum rddp_log_level log_level;             /* for RDMA connections; default: as set by rddp_context_attr_init() */
    struct nfs_server *server;                 /* borrowed */
    void (*log)(void *user, const char *line); /* takes lines for the administrator; NULL: they are dropped */
    void *user;
};

struct nfsd_stats {
    uint64_t calls, errors, replayed, read_octets, written_octets;
    uint64_t placed_octets; /* of WRITEs that were placed as their packets arrived, over a TCP of ours */
    uint32_t rdma_connections, tcp_connections;
};

void nfsd_attr_init(struct nfsd_attr *attr);
/* Returns NULL, sets errno and writes a line to `message` (EXPORT_TEXT octets) on failure. */
struct nfsd *nfsd_open(const struct nfsd_attr *attr, char *message);
/* The ports that the server listens on; -1: none. */
int nfsd_rdma_port(const struct nfsd *d);
int nfsd_tcp_port(const struct nfsd *d);
int nfsd_mount_port(const struct nfsd *d);
/* Serves until nfsd_stop() is called, which is async-signal-safe. Returns 0 or a negative errno. */
int nfsd_run(struct nfsd *d);
void nfsd_stop(struct nfsd *d);
/* Thread-safe. `errors` counts the calls that RPC refused, not NFS statuses. */
void nfsd_stats(struct nfsd *d, struct nfsd_stats *stats);
/* Finishes the calls that have begun, and frees the server; nfsd_run() must have returned. Returns false, and frees
 * nothing, if a file system has not answered for seconds: its threads use the server and its exports, so that the
 * process can only end, with _exit(2). */
bool nfsd_close(struct nfsd *d);

#endif
