/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount.h - what the files of `rddp mount` share. One thread does everything: it takes requests from the kernel, starts
 * NFS calls, and answers a request when its last call is done. */
#ifndef RDDP_NFS_MOUNT_MOUNT_H
#define RDDP_NFS_MOUNT_MOUNT_H

#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include "nfs/client/nfs_client.h"
#include "tools/lib/tool.h"
#include "nfs/mount/dirty.h"
#include "nfs/mount/inode.h"

struct mount_options {
    struct opt_list words; /* the arguments of -o */
    char *options;         /* the same, joined with commas */
    bool foreground, soft, server_permissions;
    uint16_t port, mount_port;
    uint32_t credits;
    uint64_t dirty_max; /* limit for data that are not committed, in octets */
    double timeout_s, attr_timeout_s;
    struct rddp_wire_attr wire;
    char *host, *path, *dir; /* dir is absolute */
};

struct mount {
    const struct mount_options *options;
    struct nfs_client *client;
    struct rddp_stream_net *net; /* with --packet; otherwise NULL */
    struct fuse_session *session;
    struct fuse_buf receive;
    struct inodes inodes;
    uint64_t clock;              /* a counter of calls and commits, to tell which came first */
    uint64_t changes;            /* a counter of changes made through this mount */
    uint64_t dirty_octets;       /* uncommitted octets of all inodes */
    struct inode *dirty_first;   /* inodes with uncommitted data, each pinned */
    struct mount_call *blocked;  /* writers that wait because dirty_max is exceeded */
    struct silly *leaving;       /* names that are about to be removed */
    struct mount_call *behind;   /* calls that wait until these are gone */
    unsigned calls, owed;        /* calls under way; calls that the kernel does not wait for */
    struct mount_call *killed;   /* interrupted requests: their process got a signal, perhaps a deadly one */
    struct opened *files, *dirs; /* what is open */
    bool initialised, closing, in_background;
    char device[SMALL_TEXT]; /* device number of the mount, as in /proc/self/mountinfo */
};

/* In a list of what is open. */
struct opened {
    struct opened *next, **at;
    void *of;
};

/* An open file; fi->fh points to it. */
struct file {
    struct opened opened;
    struct inode *inode; /* pinned while it is open */
    struct rpc_cred cred;
    uint32_t seen;  /* how many errors of the inode close() or fsync() have reported */
    uint32_t users; /* calls for it, and one while it is open */
};

enum { CALL_NAMES = 2 };

/* What a call waits for: data of its inode up to `seq`, or names that were about to be removed at `seq`. */
struct mount_wait {
    struct mount_call **queue; /* the list of waiting calls that it is in; NULL: it does not wait */
    uint64_t seq, start, end;
    bool commit; /* until they are committed, not only sent */
};

/* A directory whose op is under way instead of that of the call; NULL: none. */
struct dir_reader {
    struct dir *dir;
    void (*cancel)(struct dir *d); /* ends that op as if it had failed with EINTR */
};

/* A request of the kernel, and the NFS call that is currently made for it. */
struct mount_call {
    struct nfs_op op; /* the first member */
    struct mount *m;
    fuse_req_t req; /* NULL: the kernel does not wait for it */
    struct rpc_cred cred;
    void (*then)(struct mount_call *c);
    bool under_way; /* the client has the op */
    struct dir_reader reader;
    struct mount_call *next_killed;
    uint64_t started; /* value of m->clock */
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
    bool creates; /* answer with fuse_reply_create() */
    bool hidden;  /* the target was renamed to a silly name */
    mode_t mode;
    uint64_t offset;
    uint32_t size, got;
    int error;

    struct mount_wait wait;
    struct mount_call *next;
};

/* The hidden name of a file that was unlinked here while it is open. */
struct silly {
    struct nfs3_fh dir;
    struct rpc_cred cred;
    char name[40];
    uint64_t since; /* value of m->clock when it was about to be removed; 0: the file is open */
    struct silly *next;
};

/* --- calls (mount_call.c) ----------------------------------------------------------------------------------------- */

/* Returns NULL after answering the request if there is no memory. `req` may be NULL for a call of our own. */
struct mount_call *call_new(struct mount *m, fuse_req_t req);
/* Find and pin an inode by its number. Return false after answering the request if there is none. */
bool call_inode(struct mount_call *c, fuse_ino_t ino);
bool call_other(struct mount_call *c, fuse_ino_t ino);
/* Copies a name into the call. Returns false after answering the request if it is too long. */
bool call_name(struct mount_call *c, int which, const char *name);
struct nfs3_where call_where(const struct mount_call *c, const struct inode *dir, int which);
/* Makes the call with the credential of the file's opener. */
void call_as_opener(struct mount_call *c, struct file *f);

/* Starts the op; `then` is called when it is done. */
void call_start(struct mount_call *c, enum nfs3_proc proc, void (*then)(struct mount_call *c));
/* The positive errno of the op; 0: no error. */
int call_error(const struct mount_call *c);

/* Calls `then` at once and returns false unless the call `waits`; then puts it into the queue and returns true. */
bool call_waits(struct mount_call *c, struct mount_call **queue, bool (*waits)(const struct mount_call *c),
                void (*then)(struct mount_call *c));
/* Goes on with the calls of a queue that wait no more, in their order. */
void calls_serve(struct mount_call **queue, bool (*waits)(const struct mount_call *c));

/* Answer the request and end the call. */
void call_reply_error(struct mount_call *c, int error); /* 0: success */
/* Ends a call that was answered. */
void call_end(struct mount_call *c);
/* If the op failed, answers with its error, ends the call and returns true. */
bool call_failed(struct mount_call *c);

/* Ends the requests of processes that are being killed: otherwise these could not exit while the server does not
 * answer. */
void calls_kill(struct mount *m);

/* --- attributes and entries (stamp.c, attributes.c) --------------------------------------------------------------- */

struct stat mount_stat(const struct inode *inode, const struct nfs3_attr *attr); /* inode may be NULL */
/* Whether attributes requested at `since` may lack data that were committed later. */
bool mount_is_stale(const struct inode *inode, uint64_t since);
void mount_reported(struct inode *inode, const struct stat *st);
/* Notes that the kernel's cached pages belong to these attributes; NULL: to unknown ones. */
void mount_stamp(struct inode *inode, const struct nfs3_post_attr *attr);
/* The same after a change by this mount, if the attributes before it were those noted. */
void mount_restamp(struct inode *inode, const struct nfs3_post_attr *attr);
bool mount_same_stamp(const struct inode *inode, const struct nfs3_attr *attr);

/* Answers with a new object. If the server did not return its attributes, they are requested; without a handle the name
 * is looked up. */
void call_reply_made(struct mount_call *c, const struct nfs3_post_fh *fh, const struct nfs3_post_attr *attr);

/* --- what is written (sync.c) ---------------------------------------------------------------------------------- */

/* Copies written data. Returns false if there is no memory. */
bool sync_write(struct mount *m, struct inode *inode, const struct rpc_cred *cred, uint64_t offset, const void *data,
                uint32_t length, bool through);
/* Call `then`, now or later, when the data written to c->inode so far have been sent in this range; have been
 * committed, or have failed; when there is room for more. */
void when_written(struct mount_call *c, uint64_t start, uint64_t end, void (*then)(struct mount_call *c));
void when_committed(struct mount_call *c, void (*then)(struct mount_call *c));
void when_space(struct mount_call *c, void (*then)(struct mount_call *c));
/* Returns an error that was not yet reported to the users of this file, and marks it reported. */
int handle_error(struct file *f);
/* The last handle of a file was closed: commits the rest, and removes a silly name. */
void sync_closed(struct mount *m, struct inode *inode);
/* The client was closed: drops uncommitted data, and answers all waiting calls. */
void sync_abandon(struct mount *m);
/* Call it now and then: sends data that wait for the end of a pause. */
void sync_resume(struct mount *m);

/* --- the operations -------------------------------------------------------------------------------------------- */

extern const struct fuse_lowlevel_ops mount_operations; /* ops.c */

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name); /* attributes.c */
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
/* The last handle of a file with a silly name was closed: the name is about to be removed; removes it. */
void silly_leave(struct mount *m, struct inode *inode);
void silly_remove(struct mount *m, struct inode *inode);
/* Calls `then` when the silly names are gone that are about to be removed now. close() does not wait for that: whoever
 * lists a directory or removes it afterwards must not meet them. */
void when_gone(struct mount_call *c, void (*then)(struct mount_call *c));

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi); /* open_file.c */
void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset, struct fuse_file_info *fi);
void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
struct file *handle_open(struct mount_call *c, struct inode *inode); /* NULL: no memory */
void handle_close(struct mount *m, struct file *f);
/* Closes what is still open: the kernel says nothing of it any more. */
void handles_close(struct mount *m);

void opened_add(struct opened **list, struct opened *h, void *of); /* opened.c */
void opened_remove(struct opened *h);
void handle_leave(struct file *f); /* a call for the file has ended, or it was closed */

void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi); /* dir.c */
void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void dirs_close(struct mount *m); /* those that are still open, after the client was closed */

/* --- the mount itself (mount_run.c) ------------------------------------------------------------------------------- */

/* Mounts and serves until the unmount or a signal. Calls `ready` when programs can use the mount. Returns an exit
 * code. */
int mount_run(const struct mount_options *options, void (*ready)(void));

#endif
