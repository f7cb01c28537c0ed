/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs.h - what the files of `rddp nfs` share: options, the session with a server, and reading its directories. */
#ifndef RDDP_NFS_COMMAND_NFS_H
#define RDDP_NFS_COMMAND_NFS_H

#include <string.h>

#include "nfs/circle.h"
#include "nfs/client/nfs_client.h"
#include "nfs/nfs3_xdr.h"
#include "tools/cp/cp.h"

enum {
    NFS_DEPTH_MAX = 128,
    NFS_ID_NONE = UINT32_MAX, /* --uid or --gid was not given */
    /* The most names read from one directory: a server with more is taken for one that does not end */
    NFS_ENTRIES_MAX = 1 << 21,
    NFS_LIST_OCTETS = 64 << 10, /* octets of one READDIRPLUS */
    NFS_WAIT_MS = 100,          /* signals are noticed after at most this time */
};

struct nfs_options {
    bool recursive, all, detail, human, quiet, json, sync, parents, force;
    uint64_t port, mount_port;
    uint32_t credits, depth, uid, gid;
    struct rddp_wire_attr wire;
};

/* The mounted export of a server, and the path in it that the user gave. */
struct nfs_session {
    const struct nfs_options *options;
    struct nfs_client *client;
    struct rddp_stream_net *net; /* with --packet */
    struct cp_remote remote;
    const char *inside;   /* the part of remote.path below the export; "" is the export's root */
    char name[XFER_TEXT]; /* "host:/path", for messages */
};

/* Sets the attributes from the options, and the log function. */
void nfs_set_attr(struct nfs_client_attr *attr, const struct nfs_options *options);
/* Returns EXIT_CONNECT for an errno that means no connection, else the same as nfs_exit_code(). */
int nfs_connect_code(int error);
/* Parses "HOST:/PATH", finds and mounts the export, and connects. Returns 0, or an exit code after printing a
 * message. */
int nfs_session_open(struct nfs_session *s, const struct nfs_options *options, const char *text);
void nfs_session_close(struct nfs_session *s);
/* nfs_wait() for at most NFS_WAIT_MS. */
void nfs_session_wait(struct nfs_session *s);

/* Why an op failed, or what a negative errno of the client means, to end a message with. Static. */
const char *nfs_why(const struct nfs_op *op);
const char *nfs_errno_text(int error);
/* EXIT_PROTOCOL for a server that violates the protocol, else EXIT_FAILED. */
int nfs_exit_code(int error);

static inline struct nfs3_text nfs_text(const char *name)
{
    return (struct nfs3_text){name, (uint32_t)strlen(name)};
}

/* --- directories (read_dir.c) ------------------------------------------------------------------------------------- */

struct nfs_item {
    char name[XFER_NAME + 1];
    struct nfs3_fh fh;
    struct nfs3_attr attr;
};

/* Reads a directory with READDIRPLUS, block by block. */
struct nfs_list {
    struct nfs_client *client;
    struct nfs_op op;
    struct xdr_in left; /* entries of the current block not read yet */
    bool asked, end, dots;
    struct circle circle;
    const char *trouble; /* describes an error */
};

void nfs_list_open(struct nfs_list *l, struct nfs_client *client, const struct nfs3_fh *dir, bool dots);
/* Returns 1 for an entry; 0 at the end; or a negative errno. Skips "." and ".." unless `dots`. An invalid name (empty,
 * too long, with a slash or a NUL) is an error. */
int nfs_list_next(struct nfs_list *l, struct nfs_item *item);
void nfs_list_close(struct nfs_list *l);

/* --- subcommands: each returns an exit code ---------------------------------------------------------------------- */

int nfs_ls(const struct nfs_options *options, int argc, char **argv);
int nfs_stat(const struct nfs_options *options, int argc, char **argv);
int nfs_exports(const struct nfs_options *options, int argc, char **argv);
int nfs_df(const struct nfs_options *options, int argc, char **argv);
int nfs_mkdir(const struct nfs_options *options, int argc, char **argv);
int nfs_rm(const struct nfs_options *options, int argc, char **argv);
int nfs_cat(const struct nfs_options *options, int argc, char **argv);
int nfs_get(const struct nfs_options *options, int argc, char **argv);
int nfs_put(const struct nfs_options *options, int argc, char **argv);
int nfs_cp(const struct nfs_options *options, int argc, char **argv);

char *nfs_size_text(char text[SMALL_TEXT], uint64_t size, bool human); /* "1536", or "1.5K" */

/* Looks up the directory of the path inside the export, and copies its last name. Returns 0 or an exit code. */
int nfs_parent(struct nfs_session *s, struct nfs3_fh *dir, char name[XFER_NAME + 1]);
/* Writes "PATH/NAME", or "NAME" if `path` is "". Returns false if it is too long. */
bool nfs_join(char to[XFER_PATH + 1], const char *path, const char *name);
/* Prints "NAME/PATH: WHY"; `path` may be "". Returns `code`. */
int nfs_fail(const struct nfs_session *s, int code, const char *path, const char *why);

#endif
