/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.h - an NFS version 3 client over RDMA: MOUNT over TCP, then as many calls under way as there are credits. One
 * thread at a time uses a client; nothing happens but inside its calls. It connects again by itself. */
#ifndef RDDP_NFS_CLIENT_H
#define RDDP_NFS_CLIENT_H

#include <signal.h>

#include <rddp/rddp.h>

#include "nfs/mount3.h"
#include "nfs/nfs3.h"
#include "nfs/rpcmsg.h"
#include "rpc/requester.h"

enum { NFS_CLIENT_TEXT = 256 };

struct nfs_client;

struct nfs_client_attr {
    const char *host, *path; /* the export, or a directory in it */
    int port;                /* 20049 */
    int mount_port;          /* of MOUNT over TCP; 0: ask the host's rpcbind, or 20048 if it has none */
    uint32_t credits;        /* calls under way, default 64 */
    int timeout_ms;          /* of a connection attempt and MOUNT: default 10000 */
    int call_timeout_ms;     /* of a call, with all its retransmissions; -1 (default): wait for the server, as `hard` */
    const volatile sig_atomic_t *stop; /* not NULL: when a signal set it, nfs_call() gives up with -EINTR */
    struct rpc_cred cred;              /* default: this process's */
    struct rddp_wire_attr wire;
    enum rddp_log_level log_level; /* of what the connection has to say: errors, or what $RDDP_LOG says */
    void (*log)(void *user, enum rddp_log_level level, const char *line); /* NULL: standard error */
    void *log_user;
};

/* A call. It and all it points to are the client's from nfs_start() until `done` was called. */
struct nfs_op {
    enum nfs3_proc proc;
    union nfs3_args args;
    void *buffer; /* READ: where `count` octets are placed; READLINK: room for NFS3_PATH_MAX. NULL for the others */
    void (*done)(struct nfs_op *op);
    void *user;
    const struct rpc_cred *cred; /* whose call this is; NULL: the client's */

    int error; /* 0: there is a result, whatever its status; or a negative errno: -ETIMEDOUT, -EIO (RPC refused), ... */
    const char *trouble;       /* `error` in words; static */
    struct nfs3_result result; /* what it points to lives until the next nfs_start() of this op, or nfs_forget() */

    struct nfs_op *next; /* from here on the client's */
    struct request request;
    uint64_t deadline_ms, again_ms;
    unsigned refusals, delay_ms;
    bool over;
    uint8_t *memory;
    size_t memory_size;
};

void nfs_client_attr_init(struct nfs_client_attr *attr);
/* Which export `path` lies in, by the host's own list: the octets of `path` that name it, 0 if none does, or a negative
 * errno and a line in `error`. */
int nfs_client_export(const struct nfs_client_attr *attr, const char *path, char *error);
/* The host's list of exports: `each` gets the path, and who may mount it, separated by spaces; "" for everybody. 0, or
 * a negative errno and a line in `error`. */
int nfs_client_exports(const struct nfs_client_attr *attr,
                       void (*each)(void *user, const char *path, const char *groups), void *user, char *error);
/* Mounts and connects. NULL and errno, and a line in `error` (NFS_CLIENT_TEXT octets). */
struct nfs_client *nfs_client_open(const struct nfs_client_attr *attr, char *error);
/* Tells the server (UMNT), ends all calls with -ECANCELED. */
void nfs_client_close(struct nfs_client *c);

const struct nfs3_fh *nfs_root(const struct nfs_client *c);
/* As FSINFO of the root says, and not above NFS3_IO_MAX. */
uint32_t nfs_read_max(const struct nfs_client *c);
uint32_t nfs_write_max(const struct nfs_client *c);

void nfs_start(struct nfs_client *c, struct nfs_op *op);
/* Does what there is to do, waiting at most `timeout_ms` (-1: for ever). How many calls were done. */
int nfs_wait(struct nfs_client *c, int timeout_ms);
int nfs_client_fd(const struct nfs_client *c);
/* Starts `op` and waits until it is done, whatever it has for `done`: 0, op->error, or the negative errno of its
 * status. */
int nfs_call(struct nfs_client *c, struct nfs_op *op);
/* Takes an op that is under way back: the server cannot reach its memory any more, and `done` is not called. */
void nfs_cancel(struct nfs_client *c, struct nfs_op *op);
/* Frees what the client keeps for an op that is not under way. */
void nfs_forget(struct nfs_op *op);

/* The negative errno that a status means to a program. */
int nfs3_errno(enum nfs3_status status);

/* Follows `path` from the root, name by name; symbolic links too, at most 40 and none that leads above the root, the
 * last one only if `follow`. 0 or a negative errno. */
int nfs_lookup(struct nfs_client *c, const char *path, bool follow, struct nfs3_fh *fh, struct nfs3_attr *attr);

void nfs_client_stats(const struct nfs_client *c, struct requester_stats *stats);

#endif
