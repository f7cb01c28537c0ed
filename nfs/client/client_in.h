/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client_in.h - the inside of a client, for nfs_client.c, client_op.c, client_mount.c and client_error.c. */
#ifndef RDDP_NFS_CLIENT_IN_H
#define RDDP_NFS_CLIENT_IN_H

#include "nfs/client/nfs_client.h"
#include "nfs/client/client_stream.h"
#include "nfs/tcp_call.h"

enum {
    JUKEBOX_MIN_MS = 100, /* the first delay after NFS3ERR_JUKEBOX ("try again later"); it doubles each time */
    JUKEBOX_MAX_MS = 5000,
    STOP_LOOK_MS = 100,
    UMNT_MS = 2000,
};

struct nfs_client {
    struct nfs_client_attr attr;
    char *path; /* the path that was mounted */
    struct sockaddr_storage addr;
    socklen_t addr_length;
    uint16_t mount_port;
    bool mounted;
    struct requester *requester; /* over RDMA; or */
    struct packet_caller *packet;
    struct nfs3_fh root;
    uint32_t read_max, write_max;
    struct nfs_op *active;  /* sent to the requester */
    struct nfs_op *waiting; /* for their again_ms */
    struct nfs_op *over;    /* their `done` is still to be called */
};

/* --- client_op.c: one op as a request --- */

/* Builds the request of the op, with a new XID. Returns false and sets op->error on failure. */
bool op_encode(struct nfs_client *c, struct nfs_op *op);
enum op_verdict { OP_DONE, OP_AGAIN };
/* Evaluates an ended request and sets the op's error or result. OP_AGAIN: encode it again after op->delay_ms. */
enum op_verdict op_decode(struct nfs_op *op);

/* --- client_mount.c --- */

/* Mounts, and sets root, addr and mount_port. Returns 0, or a negative errno and a line in `message`. */
int client_mount(struct nfs_client *c, char *message);
void client_unmount(struct nfs_client *c);

/* --- client_error.c --- */

/* Writes the message "HOST: WHAT: WHY" to `message` and returns `error`. */
int client_fail(const struct nfs_client_attr *attr, char *message, int error, const char *what, const char *why);

#endif
