/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inode.h - the inodes that the kernel knows of a mount: its numbers to handles of the server, and back. An inode
 * lives while the kernel remembers it (its lookups) or somebody here works with it (its pins). */
#ifndef TOOLS_MOUNT_INODE_H
#define TOOLS_MOUNT_INODE_H

#include "nfs/nfs3.h"

enum { INODE_ROOT = 1 };

struct mount_call;
struct dirty;
struct silly;

/* By what a change of a file's content is recognized. */
struct stamp {
    uint64_t size;
    struct nfs3_time mtime, ctime;
};

struct inode {
    uint64_t ino; /* never used again for another handle */
    struct nfs3_fh fh;
    uint64_t lookups;
    uint32_t pins;

    uint32_t opens;     /* handles of the file */
    bool told;          /* the kernel was told a size */
    bool cached;        /* what the kernel has cached was read when the file looked like `stamp` */
    uint64_t told_size; /* what the kernel takes for the size */
    struct nfs3_time told_mtime;
    int32_t retry_pid; /* who was told to look up again */
    struct stamp stamp;
    struct dirty *dirty;        /* one block of memory, freed with the inode; NULL: nothing was written yet */
    struct silly *silly;        /* another: the name under which an unlinked file waits for its last close */
    struct mount_call *waiting; /* for what is dirty */
    struct inode *next_dirty;
    int error; /* of the last WRITE or COMMIT that failed, and how many have */
    uint32_t errors;

    struct inode *next_ino, *next_fh; /* of the table */
};

struct inodes {
    struct inode **by_ino, **by_fh;
    size_t buckets, count; /* a power of two */
    uint64_t last_ino;
};

/* False: no memory. The root is there, and stays. */
bool inodes_init(struct inodes *t, const struct nfs3_fh *root);
void inodes_fini(struct inodes *t);

/* The inode of a handle, made if there is none, and pinned. NULL: no memory. */
struct inode *inodes_get(struct inodes *t, const struct nfs3_fh *fh);
/* NULL: there is none. Neither pins. */
struct inode *inodes_find(const struct inodes *t, uint64_t ino);
struct inode *inodes_seek(const struct inodes *t, const struct nfs3_fh *fh);

void inode_pin(struct inode *inode);
void inode_unpin(struct inodes *t, struct inode *inode);
/* The kernel forgets `n` of its lookups. */
void inode_forget(struct inodes *t, struct inode *inode, uint64_t n);

#endif
