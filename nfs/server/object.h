/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.h - files and directories of the exports by file handle: making handles, finding what they name, and keeping
 * what was found open. Threads may use it at once.
 *
 * A handle says export, and the kernel's own handle (name_to_handle_at) where that is permitted: it outlives renames
 * and restarts. Elsewhere it says inode and birth, and the object is found by what was seen of it, or by looking for
 * it. It ends with a keyed MAC, so that a peer cannot make one up; the key lives in the state directory. Nothing
 * outside of its export is ever opened, no symbolic link is followed, and no mount point below an export is crossed.
 *
 * Inside means: the path that the kernel tells begins with that of the export, checked when an object is opened and
 * every two seconds of use. A file (no directory) that has several names, or that was opened by its kernel handle
 * before anybody looked up its name, is believed to be inside: its handle was made when it was seen there.
 *
 * Looking for an object without kernel handles takes a second at most, one search at a time; what was not found is not
 * looked for again for a minute. In a tree that is too large for that, a handle is stale after a restart until its
 * name is looked up again.
 *
 * Calls that need the server's rights take them, and give back the identity that the thread had assumed. */
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
    mode_t type; /* S_IFMT of it: that never changes */
};

struct objects_attr {
    struct export *export; /* an array, borrowed */
    unsigned exports;
    const char *state;   /* directory of the key of handles; NULL: a key of this run alone */
    unsigned open_max;   /* descriptors kept, default 4096, never more than three quarters of RLIMIT_NOFILE */
    bool kernel_handles; /* default yes: use name_to_handle_at() where it is permitted */
};

void objects_attr_init(struct objects_attr *attr);
/* NULL and errno, and a line in `error` (EXPORT_TEXT octets). */
struct objects *objects_open(const struct objects_attr *attr, char *error);
void objects_close(struct objects *objects);

/* Once a second, in a thread that may wait: closes what nobody uses and what somebody else could miss. Whether anything
 * is still open. */
bool objects_tend(struct objects *objects);

/* The object of a handle, to be given back with object_put(). NFS3ERR_BADHANDLE: not one of ours; NFS3ERR_STALE: what
 * it named is gone, or is not inside its export any more. */
enum nfs3_status object_get(struct objects *objects, const struct nfs3_fh *fh, struct object **object);

/* The same without looking for it where that may take long: then `*search` is true, and NFS3ERR_JUKEBOX. */
enum nfs3_status object_find(struct objects *objects, const struct nfs3_fh *fh, bool *search, struct object **object);
void object_put(struct objects *objects, struct object *object);

/* A descriptor of a regular file to read (O_RDONLY) or write (O_RDWR), kept with the object until it leaves the cache;
 * not to be closed. It is opened with the rights of the server; whether the caller may is asked with object_may().
 * -errno. */
int object_file(struct objects *objects, struct object *object, int flags);

/* A view of the regular file `fd`, an object_file() of this object, that has `n` octets from `offset` in memory, to be
 * given back with view_put(); `size`: the file's, offset + n is not beyond it. NULL: they are not there, or there is no
 * view. It outlives the object's leaving the cache. */
struct view *object_view(struct objects *objects, struct object *object, int fd, uint64_t size, uint64_t offset,
                         size_t n);

/* The handle of `name` in `dir` (itself if NULL or "."), as seen now with the rights of the assumed identity; its
 * attributes too. ".." of the root is the root. -errno; -EXDEV: a mount point, whose file system is not exported (to a
 * client NFS3ERR_ACCES), -EINVAL: no single name. To call it for a name just made by RENAME saves a search where there
 * are no kernel handles. */
int object_name(struct objects *objects, struct object *dir, const char *name, struct nfs3_fh *fh, struct stat *st);
/* The handle of the export's root. -errno. */
int object_root(struct objects *objects, struct export *export, struct nfs3_fh *fh);

int object_stat(const struct object *object, struct stat *st);

/* What of `want` (R_OK | W_OK | X_OK) the identity may do, by mode bits and ACL as the kernel sees it for the thread's
 * assumed identity: the thread is `who` afterwards, who it was if NULL. 0 or -errno. */
int object_may(const struct object *object, const struct identity *who, int want);

/* A name was removed or given to something else: what was known by it is forgotten, and a file without any name left is
 * not held open longer. */
void object_forget(struct objects *objects, struct object *dir, const char *name);

#endif
