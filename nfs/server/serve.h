/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve.h - the procedures of NFS version 3 and MOUNT on the exports: arguments in, result out, no network. Threads may
 * call at once. */
#ifndef RDDP_NFS_SERVER_SERVE_H
#define RDDP_NFS_SERVER_SERVE_H

#include <stdatomic.h>

#include "nfs/mount3.h"
#include "nfs/server/object.h"

struct nfs_server {
    struct objects *objects;
    struct export *export;
    unsigned exports;
    uint8_t write_verifier[NFS3_VERIFIER]; /* of this run: a client that sees another sends its UNSTABLE data again */
    /* Times that written data did not get to the disk, 0 at first: nfs_serve() counts, and what clients see as verifier
     * changes with it. */
    _Atomic uint64_t losses;
};

struct nfs_request {
    struct nfs_server *server;
    const struct sockaddr *peer;
    const struct rpc_cred *cred;
    enum nfs3_proc proc;
    const union nfs3_args *args;
    /* Room for what the result points to: READ's data, READLINK's path, entries. nfs_room() says how much. A READ that
     * is asked for `now` needs no buffer if a view will do. */
    uint8_t *buffer;
    size_t capacity;
    bool now; /* a READ or WRITE that would wait for a disk is not to be done at all */
    /* Not NULL: READ's data may be those of a view. It is put here, and is the caller's to give back. */
    struct view **view;
    /* Not NULL: an object that is to be looked for is not looked for. That it would have to be is noted here. */
    bool *search;
    struct nfs3_result *result; /* zeroed by the caller */
};

size_t nfs_room(enum nfs3_proc proc, const union nfs3_args *args);

/* It can wait for a disk: better not in a thread that others wait for. A small READ is not slow, for it can be asked
 * for `now`. */
bool nfs_is_slow(enum nfs3_proc proc, const union nfs3_args *args);

/* False: it was asked for `now` and would have had to wait, or a search is needed; there is no result. Afterwards the
 * calling thread still is the caller, see identity_drop(). A thread that makes files leaves the umask of its process,
 * for modes are the client's; where unshare(2) is forbidden the process' own becomes 0. */
bool nfs_serve(const struct nfs_request *request);

/* MNT of `path`, an export or a directory below one. */
void mount_serve(struct nfs_server *server, const struct sockaddr *peer, const struct rpc_cred *cred,
                 const struct nfs3_text *path, struct mount3_result *result);

/* errno to the status that RFC 1813 names for it. */
enum nfs3_status nfs3_status_of(int error);

#endif
