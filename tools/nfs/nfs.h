/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs.h - what the files of `rddp nfs` share: the options, the session with a server, and its directories. */
#ifndef TOOLS_NFS_NFS_H
#define TOOLS_NFS_NFS_H

#include <string.h>

#include "nfs/client/client.h"
#include "nfs/nfs3_xdr.h"
#include "tools/cp/cp.h"

enum {
    NFS_DEPTH_MAX = 128,
    NFS_ID_NONE = UINT32_MAX,   /* --uid, --gid: not given */
    NFS_ENTRIES_MAX = 1 << 21,  /* names of one directory that we read: a server that has more does not end */
    NFS_LIST_OCTETS = 64 << 10, /* of one READDIRPLUS */
    NFS_WAIT_MS = 100,          /* so long a wait does not see a signal */
};

struct nfs_options {
    bool recursive, all, detail, human, quiet, json, sync, parents, force;
    uint64_t port, mount_port;
    uint32_t credits, depth, uid, gid;
    struct rddp_wire_attr wire;
};

/* A server's export, and the path below it that the user meant. */
struct nfs_session {
    const struct nfs_options *options;
    struct nfs_client *client;
    struct cp_remote remote;
    const char *inside;   /* of remote.path: what follows the export; "" is its root */
    char name[XFER_TEXT]; /* "host:/path" as messages have it */
};

/* Fills in what the options say, and who hears of lines. */
void nfs_set_attr(struct nfs_client_attr *attr, const struct nfs_options *options);
/* EXIT_CONNECT for an errno that means no connection, else as nfs_exit_code(). */
int nfs_connect_code(int error);
/* Parses "HOST:/PATH", finds the export, mounts it and connects. 0 or an exit code; a line has been said. */
int nfs_session_open(struct nfs_session *s, const struct nfs_options *options, const char *text);
void nfs_session_close(struct nfs_session *s);
/* One nfs_wait() that ends soon. */
void nfs_session_wait(struct nfs_session *s);

/* What an op failed of, as the end of a line, and of a negative errno that a call of the client returned. */
const char *nfs_why(const struct nfs_op *op);
const char *nfs_errno_text(int error);
/* EXIT_PROTOCOL for a server that breaks the rules, else EXIT_FAILED. */
int nfs_exit_code(int error);

static inline struct nfs3_text nfs_text(const char *name)
{
    return (struct nfs3_text){name, (uint32_t)strlen(name)};
}

/* --- directories (list.c) ---------------------------------------------------------------------------------------- */

struct nfs_item {
    char name[XFER_NAME + 1];
    struct nfs3_fh fh;
    struct nfs3_attr attr;
};

/* A directory while it is read: READDIRPLUS after READDIRPLUS. */
struct nfs_list {
    struct nfs_client *client;
    struct nfs_op op;
    struct xdr_in left; /* entries of the last answer */
    bool asked, end, dots;
    uint64_t entries, mark, mark_at; /* against cookies that come again (Brent) */
    const char *trouble;             /* after an error: why */
};

void nfs_list_open(struct nfs_list *l, struct nfs_client *client, const struct nfs3_fh *dir, bool dots);
/* 1: an entry; 0: that was all; or a negative errno. "." and ".." are left out unless `dots`; a name that is none
 * (empty, with a slash or a NUL, too long) is an error. */
int nfs_list_next(struct nfs_list *l, struct nfs_item *item);
void nfs_list_close(struct nfs_list *l);

/* --- subcommands of their own: each returns an exit code ---------------------------------------------------------- */

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

char *nfs_mode_text(char text[SMALL_TEXT], const struct nfs3_attr *attr); /* "drwxr-xr-x" */
char *nfs_size_text(char text[SMALL_TEXT], uint64_t size, bool human);    /* "1536", or "1.5K" */

/* Splits the path inside into its directory, looked up, and its last name. 0 or an exit code. */
int nfs_parent(struct nfs_session *s, struct nfs3_fh *dir, char name[XFER_NAME + 1]);
/* "PATH/NAME", or "NAME" below "". False: too long. */
bool nfs_join(char to[XFER_PATH + 1], const char *path, const char *name);
/* The line "NAME/PATH: WHY", `path` may be "". Returns `code`. */
int nfs_fail(const struct nfs_session *s, int code, const char *path, const char *why);

#endif
