/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.h - files and directories of the exports, found by file handle: makes handles, opens the objects that they
 * name, and keeps these open in a cache. Thread-safe.
 *
 * A handle contains the number of the export and, where name_to_handle_at() is permitted, the kernel's own handle,
 * which survives renames and restarts. Elsewhere it contains inode number and birth time, and the object is found where
 * it was seen last, or by a search. A keyed MAC at the end of a handle prevents forgery; the key is kept in the state
 * directory. Nothing outside of its export is ever opened, no symbolic link is followed, and no mount point below an
 * export is crossed.
 *
 * An object is inside its export if the path that the kernel reports begins with that of the export. This is checked
 * when the object is opened, and again after every two seconds of use. A file (not a directory) that has several names,
 * or that was opened by its kernel handle before its name was looked up, is trusted to be inside: its handle was made
 * when it was seen there.
 *
 * A search for an object without a kernel handle takes at most a second, and one search runs at a time. An object that
 * was not found is not searched for again for a minute. In a tree that is too large for such a search, a handle is
 * stale after a restart until its name is looked up again.
 *
 * Functions that need the server's rights take them, and restore the identity that the thread had assumed. */
#ifndef RDDP_NFS_SERVER_OBJECT_H
#define RDDP_NFS_SERVER_OBJECT_H

#include <sys/stat.h>

#include "nfs/nfs3.h"
#include "nfs/server/export.h"
#include "nfs/server/view.h"

struct objects;

struct object {
    struct export *export;
    int fd;      /* O_PATH: for fstatat(AT_EMPTY_PATH), openat() and /proc/self/fd */
    mode_t type; /* its S_IFMT bits, which never change */
};

struct objects_attr {
    struct export *export; /* an array, borrowed */
    unsigned exports;
    const char *state;   /* directory of the handles' key; NULL: a random key for this run */
    unsigned open_max;   /* descriptors that may be kept open, default 4096; at most three quarters of RLIMIT_NOFILE */
    bool kernel_handles; /* use name_to_handle_at() where it is permitted; default true */
};

void objects_attr_init(struct objects_attr *attr);
/* Returns NULL, sets errno and writes a line to `message` (EXPORT_TEXT octets) on failure. */
struct objects *objects_open(const struct objects_attr *attr, char *message);
void objects_close(struct objects *objects);

/* Call once a second, in a thread that may block: closes objects of this export that are not in use, and descriptors
 * that hinder other processes. */
void objects_tend(struct objects *objects, const struct export *e);

/* Closes the objects of this export that have left the cache. The calls for other exports leave that to objects_tend()
 * or to this one, since it may wait for the disk. */
void objects_settle(struct objects *objects, const struct export *e);

/* Whether objects of this export have left the cache and are still open. */
bool objects_are_unsettled(const struct objects *objects, const struct export *e);
/* Whether any object is open. NULL: none. */
bool objects_are_open(const struct objects *objects);

/* Finds the object of a handle, to be returned with object_put(). NFS3ERR_BADHANDLE: the handle is not ours.
 * NFS3ERR_STALE: the object is gone, or is no longer inside its export. */
enum nfs3_status object_get(struct objects *objects, const struct nfs3_fh *fh, struct object **object);

/* The same, but does not search the export, which may take long: it then sets `*search` and returns NFS3ERR_JUKEBOX. */
enum nfs3_status object_find(struct objects *objects, const struct nfs3_fh *fh, bool *search, struct object **object);

/* The same for an object that is open, without waiting for a disk: NFS3ERR_JUKEBOX if it is not open, or if the kernel
 * would have to look for its path. */
enum nfs3_status object_cached(struct objects *objects, const struct nfs3_fh *fh, struct object **object);

/* Whether the handle was made by this server. */
bool object_is_ours(const struct objects *objects, const struct nfs3_fh *fh);
void object_put(struct objects *objects, struct object *object);

/* Returns a descriptor of a regular file for reading (O_RDONLY) or writing (O_RDWR), or a negative errno. The
 * descriptor belongs to the object, which closes it when it leaves the cache. It is opened with the server's rights;
 * object_may() tells whether the caller may use it. */
int object_file(struct objects *objects, struct object *object, int flags);
/* The same if it is open already; else -EAGAIN. */
int object_open_file(struct objects *objects, struct object *object, int flags);

/* Waits until descriptors of this object that left the cache earlier are closed: their close() may tell what is lost of
 * the data that were written through them. */
void object_settle(struct objects *objects, struct object *object);

/* Returns a view of the regular file `fd`, an object_file() of this object, if the `n` octets from `offset` are in
 * memory; to be returned with view_put(). `size` is the size of the file; offset + n must not exceed it. NULL: they are
 * not in memory, or no view can be made. The view stays valid when the object leaves the cache. */
struct view *object_view(struct objects *objects, struct object *object, int fd, uint64_t size, uint64_t offset,
                         size_t n);

/* Makes the handle of `name` in `dir` (`dir` itself if `name` is NULL or "."), and reads its attributes, with the
 * rights of the assumed identity. ".." of the root is the root. Returns 0 or a negative errno: -EXDEV for a mount
 * point, whose file system is not exported (clients get NFS3ERR_ACCES); -EINVAL if `name` is not a single name. Without
 * kernel handles, calling it for the new name after RENAME saves a search later. */
int object_name(struct objects *objects, struct object *dir, const char *name, struct nfs3_fh *fh, struct stat *st);
/* The same without waiting for a disk: -EAGAIN if the name is not in memory. */
int object_cached_name(struct objects *objects, struct object *dir, const char *name, struct nfs3_fh *fh,
                       struct stat *st);
/* Makes the handle of the export's root. Returns 0 or a negative errno. */
int object_root(struct objects *objects, struct export *export, struct nfs3_fh *fh);

int object_stat(const struct object *object, struct stat *st);

/* Whether `who` may use the object as `want` says (R_OK | W_OK | X_OK), by mode bits and ACL, as the kernel decides.
 * The thread has the identity `who` afterwards; NULL: uses and keeps the thread's identity. Returns 0 or a negative
 * errno. */
int object_may(struct object *object, const struct identity *who, int want);
/* Whether object_may() need not wait for the disk: it was called before. */
bool object_rights_are_read(const struct object *object);

/* A name in `dir` was removed or replaced: closes cached files of its export that have no name left. */
void object_forget(struct objects *objects, struct object *dir);

#endif
