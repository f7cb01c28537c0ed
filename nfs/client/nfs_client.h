/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_client.h - an NFS version 3 client over RDMA: MOUNT over TCP, then calls in parallel, as many as there are
 * credits. One thread at a time may use a client, and all work is done inside these calls. The client reconnects when
 * the connection is lost. */
#ifndef RDDP_NFS_CLIENT_H
#define RDDP_NFS_CLIENT_H

#include <signal.h>

#include <rddp/rddp.h>
#include <rddp/stream.h>

#include "nfs/mount3.h"
#include "nfs/nfs3.h"
#include "nfs/rpcmsg.h"
#include "rpc/requester.h"

enum { NFS_CLIENT_TEXT = 256 };

struct nfs_client;

struct nfs_client_attr {
    const char *host, *path; /* the path of the export, or of a directory in it */
    int port;                /* default 20049 */
    int mount_port;          /* for MOUNT over TCP; default 0: ask the host's rpcbind, else use 20048 */
    uint32_t credits;        /* parallel calls; default 64 */
    int timeout_ms;          /* for connecting and for MOUNT; default 10000 */
    int call_timeout_ms;     /* for one call with its retransmissions; default -1: wait for the server without limit */
    const volatile sig_atomic_t *stop; /* NULL, or a flag set by a signal handler: nfs_call() then returns -EINTR */
    struct rpc_cred cred;              /* default: the credential of this process */
    struct rddp_wire_attr wire;
    struct rddp_stream_net *net;   /* borrowed: speak over a TCP of our own behind it, and not over RDMA; NULL: RDMA */
    struct sockaddr_storage own;   /* our address behind it; port 0 */
    enum rddp_log_level log_level; /* default: errors only, or the level in $RDDP_LOG */
    void (*log)(void *user, enum rddp_log_level level, const char *line); /* NULL: standard error */
    void *log_user;
};

/* A call. The op and all memory that it points to belong to the client from nfs_start() until `done` is called. */
struct nfs_op {
    enum nfs3_proc proc;
    union nfs3_args args;
    void *buffer; /* READ: receives the data, `count` octets; READLINK: NFS3_PATH_MAX octets; NULL for others */
    void (*done)(struct nfs_op *op);
    void *user;
    const struct rpc_cred *cred; /* the caller's credential; NULL: the client's */
    int timeout_ms;              /* 0: the client's call_timeout_ms */

    int error; /* 0: there is a result, whatever its status; else a negative errno: -ETIMEDOUT, -EIO (RPC refused), ...
                */
    const char *trouble;       /* describes `error`; static text */
    struct nfs3_result result; /* what it points to lives until the op's next nfs_start() or nfs_forget() */

    struct nfs_op *next; /* from here on private to the client */
    struct request request;
    uint64_t deadline_ms, again_ms;
    unsigned refusals, delay_ms;
    bool over;
    uint8_t *memory, *record; /* record: a reply that came over our own TCP */
    size_t memory_size;
};

void nfs_client_attr_init(struct nfs_client_attr *attr);
/* Returns how many octets of `path` name the export that it lies in, by the host's list of exports; 0 if it lies in
 * none; or a negative errno and a line in `message` (NFS_CLIENT_TEXT octets). */
int nfs_client_export(const struct nfs_client_attr *attr, const char *path, char *message);
/* Calls `each` for each export of the host with its path and the groups that may mount it, separated by spaces ("":
 * everybody). Returns 0, or a negative errno and a line in `message` (NFS_CLIENT_TEXT octets). */
int nfs_client_exports(const struct nfs_client_attr *attr,
                       void (*each)(void *user, const char *path, const char *groups), void *user, char *message);
/* Mounts the path and connects. Returns NULL, sets errno and writes a line to `message` (NFS_CLIENT_TEXT octets) on
 * failure. */
struct nfs_client *nfs_client_open(const struct nfs_client_attr *attr, char *message);
/* Ends all calls with -ECANCELED, and the connection: its net may be closed then, and the client be closed only. */
void nfs_client_disconnect(struct nfs_client *c);
/* The same, if need be, and unmounts (UMNT), which takes some time when the server is away. */
void nfs_client_close(struct nfs_client *c);

const struct nfs3_fh *nfs_root(const struct nfs_client *c);
/* Largest READ and WRITE in octets, as FSINFO of the root says, and at most NFS3_IO_MAX. */
uint32_t nfs_read_max(const struct nfs_client *c);
uint32_t nfs_write_max(const struct nfs_client *c);

void nfs_start(struct nfs_client *c, struct nfs_op *op);
/* Works until calls were done or `timeout_ms` have passed (-1: no limit). Returns the number of calls that were
 * done. */
int nfs_wait(struct nfs_client *c, int timeout_ms);
int nfs_client_fd(const struct nfs_client *c);
/* Starts `op` and waits until it is done, without calling `done`. Returns 0, op->error, or the negative errno of its
 * status. */
int nfs_call(struct nfs_client *c, struct nfs_op *op);
/* Cancels an op. When this returns, the server cannot reach its memory; `done` is not called. */
void nfs_cancel(struct nfs_client *c, struct nfs_op *op);
/* Frees the memory that the client keeps for an op which is not under way. */
void nfs_forget(struct nfs_op *op);

/* Maps a status to a negative errno; 0 for NFS3_OK. */
int nfs3_errno(enum nfs3_status status);

/* Resolves `path` from the root, one name at a time. Symbolic links are followed, at most 40, and none may lead above
 * the root; the last one only if `follow`. Returns 0 or a negative errno. */
int nfs_lookup(struct nfs_client *c, const char *path, bool follow, struct nfs3_fh *fh, struct nfs3_attr *attr);

/* Octets of READs that were placed in the caller's buffer as their packets arrived; over RDMA this is not counted. */
uint64_t nfs_client_placed(const struct nfs_client *c);

void nfs_client_stats(const struct nfs_client *c, struct requester_stats *stats);

#endif
