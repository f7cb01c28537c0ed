/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* export.h - a directory that clients may use: which clients, with which rights, and with which identity. */
#ifndef RDDP_NFS_SERVER_EXPORT_H
#define RDDP_NFS_SERVER_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "nfs/rpcmsg.h"
#include "rpc/clients.h"

enum squash { SQUASH_ROOT, SQUASH_ALL, SQUASH_NONE };
enum { EXPORT_TEXT = CLIENTS_TEXT };

struct export_attr {
    bool read_only;
    bool async; /* reply before changes are on the disk, as in exports(5); never for COMMIT and stable WRITEs */
    enum squash squash;
    uid_t anon_uid; /* default 65534 */
    gid_t anon_gid;
    const char *const
        *clients; /* addresses and prefixes, such as "10.0.0.0/8" and "fd77::1", ending with NULL. NULL: everybody */
};

struct export
{
    char *path; /* absolute, without symbolic links: the path that MNT asks for */
    int root;   /* O_PATH */
    dev_t dev;
    bool in_memory;          /* the file system has no disk, so that writing does not block */
    uint32_t id;             /* in file handles; a hash of the path, so that it survives a restart */
    struct export_attr attr; /* with `clients` set to NULL */
    struct clients clients;  /* parsed from attr.clients */
};

void export_attr_init(struct export_attr *attr);

/* Opens the export. Returns 0, or a negative errno and a line in `message` (EXPORT_TEXT octets). */
int export_open(struct export *e, const char *path, const struct export_attr *attr, char *message);
void export_close(struct export *e);
bool export_allows(const struct export *e, const struct sockaddr *peer);

/* The identity with which the file system is accessed. */
struct identity {
    uid_t uid;
    gid_t gid;
    unsigned groups;
    gid_t group[RPC_GROUPS_MAX];
};

/* The caller's identity in this export. AUTH_NONE and squashed callers become the anonymous user. */
void export_identity(const struct export *e, const struct rpc_cred *cred, struct identity *identity);

/* Whether this process may change its file system identity. A process with user ID 0 that may not would execute all
 * calls as root. */
bool identity_can_change(void);

/* Sets the calling thread's file system identity until the next call; it costs nothing if the thread has that identity
 * already. In a process without CAP_SETUID and CAP_SETGID it does nothing. Returns 0; or -EPERM if the user does not
 * exist in this user namespace: the call must then not be served, and the thread has become nobody, or the server's own
 * user if there is no nobody. */
int identity_assume(const struct identity *identity);
/* Gives the thread the server's own identity again. */
void identity_drop(void);
/* The same, temporarily. Returns true and stores the identity in `was` if identity_assume(was) must restore it. */
bool identity_pause(struct identity *was);

#endif
