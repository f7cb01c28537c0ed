/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* export.h - a directory that is given to clients: who may come, what they may do, and as whom. */
#ifndef RDDP_NFS_SERVER_EXPORT_H
#define RDDP_NFS_SERVER_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "nfs/rpcmsg.h"
#include "nfs/server/clients.h"

enum squash { SQUASH_ROOT, SQUASH_ALL, SQUASH_NONE };
enum { EXPORT_TEXT = CLIENTS_TEXT };

struct export_attr {
    bool read_only;
    bool async; /* reply before it is on the disk, as exports(5) has it; never for COMMIT and stable WRITEs */
    enum squash squash;
    uid_t anon_uid; /* 65534 */
    gid_t anon_gid;
    const char *const *clients; /* addresses and prefixes, "10.0.0.0/8", "fd77::1"; NULL at the end. NULL: everybody */
};

struct export
{
    char *path; /* absolute, without links: what MNT asks for */
    int root;   /* O_PATH */
    dev_t dev;
    bool in_memory;          /* no disk is below it: data are written without waiting for one */
    uint32_t id;             /* in file handles: made of the path, so that it outlives a restart */
    struct export_attr attr; /* its `clients` are NULL */
    struct clients clients;  /* they are here, parsed */
};

void export_attr_init(struct export_attr *attr);

/* 0, or a negative errno and a line about it in `error` (EXPORT_TEXT octets). */
int export_open(struct export *e, const char *path, const struct export_attr *attr, char *error);
void export_close(struct export *e);
bool export_allows(const struct export *e, const struct sockaddr *peer);

/* Who touches the disk. */
struct identity {
    uid_t uid;
    gid_t gid;
    unsigned groups;
    gid_t group[RPC_GROUPS_MAX];
};

/* The caller as this export sees him: AUTH_NONE and squashed ones are the anonymous user. */
void export_identity(const struct export *e, const struct rpc_cred *cred, struct identity *identity);

/* Whether this process may take on other identities. One of user 0 that may not would do everything as root. */
bool identity_can_change(void);

/* The calling thread's file system identity until the next call; a thread that already has it pays nothing. A process
 * that may not change it (no CAP_SETUID and CAP_SETGID) stays who it is. -EPERM: this system does not have such a user
 * (in a user namespace): the call must not be served. The thread is nobody then, or the server if nobody is not there
 * either. */
int identity_assume(const struct identity *identity);
/* The thread is the server's own user again. */
void identity_drop(void);
/* The same for a while: true, and who it was, if identity_assume(was) shall follow. */
bool identity_pause(struct identity *was);

#endif
