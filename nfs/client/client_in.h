/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client_in.h - a client from within, for client.c, client_op.c and client_mount.c. */
#ifndef RDDP_NFS_CLIENT_IN_H
#define RDDP_NFS_CLIENT_IN_H

#include "nfs/client/client.h"
#include "nfs/tcp_call.h"

enum {
    JUKEBOX_MIN_MS = 100, /* the first pause after "try again later"; it doubles */
    JUKEBOX_MAX_MS = 5000,
    STOP_LOOK_MS = 100,
    UMNT_MS = 2000,
};

struct nfs_client {
    struct nfs_client_attr attr;
    char *path; /* what was mounted */
    struct sockaddr_storage addr;
    socklen_t addr_length;
    uint16_t mount_port;
    bool mounted;
    struct requester *requester;
    struct nfs3_fh root;
    uint32_t read_max, write_max;
    struct nfs_op *active;  /* the requester's */
    struct nfs_op *waiting; /* until their again_ms */
    struct nfs_op *over;    /* their `done` is to be called */
};

/* --- client_op.c: one op as a request --- */

/* Makes the request of the op, with an XID of its own. False: op->error says why not. */
bool op_encode(struct nfs_client *c, struct nfs_op *op);
enum op_verdict { OP_DONE, OP_AGAIN };
/* Judges an ended request: sets error or result. OP_AGAIN: it is to be encoded again, after op->delay_ms. */
enum op_verdict op_decode(struct nfs_op *op);

/* --- client_mount.c --- */

/* Sets root, addr and mount_port. 0, or a negative errno and a line in `error`. */
int client_mount(struct nfs_client *c, char *error);
void client_unmount(struct nfs_client *c);

/* The line about a failure: "HOST: WHAT: WHY". Returns `rc`. */
int client_fail(const struct nfs_client_attr *attr, char *error, int rc, const char *what, const char *why);

#endif
