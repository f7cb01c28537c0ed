/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount.h - what the files of `rddp mount` share. One thread does all: it takes requests of the kernel, starts calls of
 * the NFS client, and answers each request when its last call is done. */
#ifndef TOOLS_MOUNT_MOUNT_H
#define TOOLS_MOUNT_MOUNT_H

#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include "nfs/client/client.h"
#include "tools/lib/tool.h"
#include "tools/mount/dirty.h"
#include "tools/mount/inode.h"

struct mount_options {
    struct opt_list words; /* of -o */
    char *options;         /* the same, with commas */
    bool foreground, soft, server_permissions;
    uint16_t port, mount_port;
    uint32_t credits;
    uint64_t dirty_max; /* octets that are not committed */
    double timeout_s, attr_timeout_s;
    struct rddp_wire_attr wire;
    char *host, *path, *dir; /* dir is absolute */
};

struct mount {
    const struct mount_options *options;
    struct nfs_client *client;
    struct fuse_session *session;
    struct fuse_buf receive;
    struct inodes inodes;
    uint64_t clock;             /* counts calls and commits: which was first? */
    uint64_t changes;           /* ... of anything, made through this mount */
    uint64_t dirty_octets;      /* of all inodes */
    struct inode *dirty_first;  /* those that have some, each pinned */
    struct mount_call *blocked; /* writers above dirty_max */
    unsigned calls, owed;       /* under way; and those whose result nobody but the server waits for */
    struct mount_call *killed;  /* requests of processes that got a signal, perhaps one that ends them */
    unsigned open_files;
    bool initialised, closing, in_background;
    char device[SMALL_TEXT]; /* of the mount, as in /proc/self/mountinfo */
};

/* An open file: fi->fh. */
struct file {
    struct inode *inode; /* pinned */
    struct rpc_cred cred;
    uint32_t seen; /* errors of the inode that close() or fsync() have told */
};

enum { CALL_NAMES = 2 };

/* A request of the kernel, and the call that is made for it just now. */
struct mount_call {
    struct nfs_op op; /* first */
    struct mount *m;
    fuse_req_t req; /* NULL: the kernel does not wait for it */
    struct rpc_cred cred;
    void (*then)(struct mount_call *c);
    bool under_way;            /* with the client */
    struct dir *dir;           /* whose op it is that is under way */
    struct mount_call **queue; /* where it waits for something here */
    struct mount_call *next_killed;
    uint64_t started; /* m->clock */
    void (*after)(struct mount_call *c);
    struct inode *inode, *other, *target; /* pinned */
    struct nfs3_fh fh;
    char name[CALL_NAMES][NFS3_NAME_MAX + 1];
    char *text; /* target of a symbolic link */
    uint8_t *buffer;
    struct file *file;
    struct chunk *chunk;
    struct silly *silly;
    struct fuse_file_info fi;
    bool creates; /* the answer is fuse_reply_create() */
    bool hidden;  /* the target has a silly name now */
    mode_t mode;
    uint64_t offset;
    uint32_t size, got;
    int error;

    uint64_t wait_seq, wait_start, wait_end; /* for what of c->inode is dirty */
    bool wait_commit;
    struct mount_call *next;
};

/* The name under which a file that was unlinked here is kept for those who have it open. */
struct silly {
    struct nfs3_fh dir;
    struct rpc_cred cred;
    char name[40];
};

/* --- calls (call.c) -------------------------------------------------------------------------------------------- */

/* NULL: the request has been answered, there is no memory. With `req` NULL it is nobody's. */
struct mount_call *call_new(struct mount *m, fuse_req_t req);
/* Finds inodes that the kernel names, and keeps them. False: the request has been answered. */
bool call_inode(struct mount_call *c, fuse_ino_t ino);
bool call_other(struct mount_call *c, fuse_ino_t ino);
/* A copy of the name that lives with the call. False: too long, answered. */
bool call_name(struct mount_call *c, int which, const char *name);
struct nfs3_where call_where(const struct mount_call *c, const struct inode *dir, int which);
/* As who opened the file. */
void call_as_opener(struct mount_call *c, struct file *f);

/* `then` is called when the op is done. */
void call_start(struct mount_call *c, enum nfs3_proc proc, void (*then)(struct mount_call *c));
/* The positive errno of what is done, 0: fine. */
int call_error(const struct mount_call *c);

/* Answers and ends it. */
void call_reply_error(struct mount_call *c, int error); /* 0: success */
/* Ends it: whatever had to be said was. */
void call_end(struct mount_call *c);
/* Ends it with its error, if it has one. */
bool call_failed(struct mount_call *c);

/* Ends the requests of processes that are being killed: they would wait for a server that is gone, and nobody could end
 * them. */
void calls_kill(struct mount *m);

/* --- attributes and entries (attr.c) --------------------------------------------------------------------------- */

struct stat mount_stat(const struct inode *inode, const struct nfs3_attr *attr); /* inode may be NULL */
/* Whether attributes asked for at `since` may lack what was written and committed since. */
bool mount_is_stale(const struct inode *inode, uint64_t since);
void mount_told(struct inode *inode, const struct stat *st);
/* What the kernel has cached is from now on that of these attributes; NULL: unknown. */
void mount_stamp(struct inode *inode, const struct nfs3_post_attr *attr);
/* The same after a change that was made here, if it was known before. */
void mount_restamp(struct inode *inode, const struct nfs3_post_attr *attr);
bool mount_same_stamp(const struct inode *inode, const struct nfs3_attr *attr);

/* Answer with the attributes of c->inode; with the object of c->fh, whose attributes are asked for if there are none
 * or, with `fh` absent, after looking for the name. */
void call_reply_attr(struct mount_call *c, const struct nfs3_post_attr *attr);
void call_reply_made(struct mount_call *c, const struct nfs3_post_fh *fh, const struct nfs3_post_attr *attr);

/* --- what is written (sync.c) ---------------------------------------------------------------------------------- */

/* Takes data over; false: no memory. */
bool sync_write(struct mount *m, struct inode *inode, const struct rpc_cred *cred, uint64_t offset, const void *data,
                uint32_t length, bool through);
/* `then` is called, now or later, when what was written to c->inode so far is with the server in this range; is
 * committed, or has failed; when there is room for more. */
void when_written(struct mount_call *c, uint64_t start, uint64_t end, void (*then)(struct mount_call *c));
void when_committed(struct mount_call *c, void (*then)(struct mount_call *c));
void when_room(struct mount_call *c, void (*then)(struct mount_call *c));
/* Takes a call out of its queue. */
void sync_unqueue(struct mount_call *c);
/* The error that the users of this file have not been told yet, once. */
int handle_error(struct file *f);
/* A file has no handle any more: what is left is committed, and a silly name removed. */
void sync_closed(struct mount *m, struct inode *inode);
/* The client is closed: whatever is dirty is lost, and who waits is told. */
void sync_abandon(struct mount *m);

/* --- the operations -------------------------------------------------------------------------------------------- */

extern const struct fuse_lowlevel_ops mount_operations; /* ops.c */

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name); /* attr.c */
void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int set, struct fuse_file_info *fi);
void op_readlink(fuse_req_t req, fuse_ino_t ino);
void op_access(fuse_req_t req, fuse_ino_t ino, int mask);
void op_statfs(fuse_req_t req, fuse_ino_t ino);

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev); /* make.c */
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name); /* name.c */
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent, const char *newname,
               unsigned flags);
void silly_remove(struct mount *m, struct inode *inode);

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi); /* file.c */
void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset, struct fuse_file_info *fi);
void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
struct file *handle_open(struct mount_call *c, struct inode *inode); /* NULL: no memory */
void handle_close(struct mount *m, struct file *f);

void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi); /* dir.c */
void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

void dir_cancel(struct dir *d); /* what it fetches: as if that had failed with EINTR */

/* --- the mount itself (run.c) ---------------------------------------------------------------------------------- */

/* Mounts and serves until it is unmounted or a signal comes; calls `ready` when programs can use it. An exit code. */
int mount_run(const struct mount_options *options, void (*ready)(void));

#endif
