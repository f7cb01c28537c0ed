/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve.h - the procedures of NFS version 3 and MOUNT on the exports: takes arguments and gives results, without
 * network. Thread-safe. */
#ifndef RDDP_NFS_SERVER_SERVE_H
#define RDDP_NFS_SERVER_SERVE_H

#include "nfs/mount3.h"
#include "nfs/server/object.h"

struct nfs_server {
    struct objects *objects;
    struct export *export;
    unsigned exports;
    uint8_t write_verifier[NFS3_VERIFIER]; /* of this run: a client that sees a new verifier sends its UNSTABLE data
                                              again */
};

struct nfs_request {
    struct nfs_server *server;
    const struct sockaddr *peer;
    const struct rpc_cred *cred;
    enum nfs3_proc proc;
    const union nfs3_args *args;
    /* A buffer for what the result points to: READ's data, READLINK's path, directory entries. nfs_result_size()
     * returns the size it needs. A READ with `now` needs no buffer if a view is enough. */
    uint8_t *buffer;
    size_t capacity;
    bool now;    /* do not execute a READ or WRITE that would block on the disk */
    bool cached; /* with `now`: nor anything else that could; the export is `local` */
    /* Not NULL: READ may return its data in a view, which is stored here and which the caller must return with
     * view_put(). */
    struct view **view;
    /* Not NULL: do not search for objects; set this if a search is needed. */
    bool *search;
    struct nfs3_result *result; /* set to zero by the caller */
};

size_t nfs_result_size(enum nfs3_proc proc, const union nfs3_args *args);

/* Whether the procedure changes or lists something, so that it should run in a worker. What is not slow can be tried
 * with `now`, and with `cached`. */
bool nfs_is_slow(enum nfs3_proc proc, const union nfs3_args *args);

/* The export that the first handle of the arguments names; NULL if there is none: the call then ends without looking at
 * a file system. */
struct export *nfs_export_of(const struct nfs_server *server, enum nfs3_proc proc, const union nfs3_args *args);
/* The same for the path of MNT. */
struct export *mount_export_of(const struct nfs_server *server, const struct nfs3_text *path);

/* Executes a call. Returns false without a result if it would block although `now` is set, or if a search is needed.
 * The calling thread keeps the caller's identity; see identity_drop(). A thread that creates files leaves the process's
 * umask, since modes are the client's; where unshare(2) is forbidden, the process's own umask becomes 0. */
bool nfs_serve(const struct nfs_request *request);

/* Executes MNT for `path`, an export or a directory in one. */
void mount_serve(struct nfs_server *server, const struct sockaddr *peer, const struct rpc_cred *cred,
                 const struct nfs3_text *path, struct mount3_result *result);

/* Maps an errno to the status that RFC 1813 has for it. */
enum nfs3_status nfs3_status_of(int error);

#endif
