/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* export.h - a directory that clients may use: which clients, with which rights, and with which identity. */
#ifndef RDDP_NFS_SERVER_EXPORT_H
#define RDDP_NFS_SERVER_EXPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "nfs/rpcmsg.h"
#include "rpc/clients.h"

enum squash { SQUASH_ROOT, SQUASH_ALL, SQUASH_NONE };
enum { EXPORT_TEXT = CLIENTS_TEXT, EXPORT_SYNCS = 16 };

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
    bool in_memory;          /* the file system has no disk, so that nothing waits for one */
    bool local;              /* what the kernel has in memory of it is used without waiting: file_system.h */
    uint32_t id;             /* in file handles; a hash of the path, so that it survives a restart */
    struct export_attr attr; /* with `clients` set to NULL */
    struct clients clients;  /* parsed from attr.clients */
    /* Guard a sync together with the change of the verifier, for the files that share one: export_sync(). */
    pthread_mutex_t sync[EXPORT_SYNCS];
    /* How often written data did not reach the disk: added to the write verifier that clients of this export see, so
     * that they send their data again. */
    _Atomic uint64_t losses;
};

void export_attr_init(struct export_attr *attr);

/* Opens the export. Returns 0, or a negative errno and a line in `message` (EXPORT_TEXT octets). */
int export_open(struct export *e, const char *path, const struct export_attr *attr, char *message);
void export_close(struct export *e);
bool export_allows(const struct export *e, const struct sockaddr *peer);

/* Guards a sync of this object, or the last close() of what was written to it, together with the count of losses. */
pthread_mutex_t *export_sync(struct export *e, const void *object);
/* Closes a file of the export. Some file systems store what was written at close(), and say there what they have lost:
 * then the clients are told so as after a sync that fails. */
void export_close_file(struct export *e, int fd);

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
/* Is the process in a user namespace of one user? What it may do there that user may do outside. */
bool identity_is_alone(void);

/* Sets the calling thread's file system identity until the next call; it costs nothing if the thread has that identity
 * already. In a process without CAP_SETUID and CAP_SETGID it does nothing. Returns 0; or -EPERM if the user does not
 * exist in this user namespace: the call must then not be served, and the thread has become the overflow user (65534),
 * or the server's own user if there is no such user. */
int identity_assume(const struct identity *identity);
/* Gives the thread the server's own identity again. */
void identity_drop(void);
/* The same, temporarily. Returns true and stores the identity in `was` if identity_assume(was) must restore it. */
bool identity_pause(struct identity *was);

#endif
