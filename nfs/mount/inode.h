/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inode.h - the inodes of a mount that the kernel knows: maps inode numbers to file handles and back. An inode lives
 * while the kernel remembers it (lookups) or code here uses it (pins). */
#ifndef RDDP_NFS_MOUNT_INODE_H
#define RDDP_NFS_MOUNT_INODE_H

#include "nfs/nfs3.h"

enum { INODE_ROOT = 1 };

struct mount_call;
struct dirty;
struct silly;

/* Detects changes of a file's content. */
struct stamp {
    uint64_t size;
    struct nfs3_time mtime, ctime;
};

struct inode {
    uint64_t ino; /* never reused for another handle */
    struct nfs3_fh fh;
    uint64_t lookups;
    uint32_t pins;

    uint32_t opens;         /* open handles of the file */
    bool reported;          /* the kernel knows a size */
    bool cached;            /* the kernel's cached pages belong to `stamp` */
    uint64_t reported_size; /* the size that the kernel knows */
    struct nfs3_time reported_mtime;
    int32_t retry_pid; /* the process that was told to look the name up again */
    struct stamp stamp;
    uint64_t paused_until_ns;   /* data that the server has lost are not sent again before; 0: no pause */
    struct dirty *dirty;        /* NULL: nothing was written yet; freed with the inode */
    struct silly *silly;        /* the hidden name of an unlinked file until its last close; freed with the inode */
    struct mount_call *waiting; /* calls that wait for uncommitted data */
    struct inode *next_dirty;
    int error; /* of the last failed WRITE or COMMIT; `errors` counts them */
    uint32_t errors;

    struct inode *next_ino, *next_fh; /* in the hash tables */
};

struct inodes {
    struct inode **by_ino, **by_fh;
    size_t buckets, count; /* `buckets` is a power of two */
    uint64_t last_ino;
};

/* Returns false if there is no memory. The root inode is always present. */
bool inodes_init(struct inodes *t, const struct nfs3_fh *root);
void inodes_fini(struct inodes *t);

/* Finds or creates the inode of a handle, and pins it. NULL: no memory. */
struct inode *inodes_get(struct inodes *t, const struct nfs3_fh *fh);
/* Find an inode without pinning it. NULL: there is none. */
struct inode *inodes_find(const struct inodes *t, uint64_t ino);
struct inode *inodes_seek(const struct inodes *t, const struct nfs3_fh *fh);

void inode_pin(struct inode *inode);
void inode_unpin(struct inodes *t, struct inode *inode);
/* The kernel has forgotten `n` of its lookups. */
void inode_forget(struct inodes *t, struct inode *inode, uint64_t n);

#endif
