/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.h - opens files below a directory and never outside of it; finds the target of a copy; names temporaries. */
#ifndef TOOLS_XFER_PATH_H
#define TOOLS_XFER_PATH_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/xfer/xfer.h"

/* Opens `path` below `dir` ("" is `dir` itself) and never outside of it: by openat2() with RESOLVE_BENEATH and
 * RESOLVE_NO_MAGICLINKS, or, on kernels without it, by walking without following symbolic links. Returns a descriptor
 * or a negative errno (-EXDEV: the path leads out). */
int path_open(int dir, const char *path, int flags, mode_t mode);
/* The same, and follows no symbolic link at all (-ELOOP): so the path has as many directories above it as it names. */
int path_open_plain(int dir, const char *path, int flags);
/* Opens `name` in `dir` if it is a regular file; else returns -ELOOP or -ENXIO without opening it, which a pipe or a
 * device would notice. */
int path_open_file(int dir, const char *name, int flags);

/* The target of a copy: its top becomes `top` in the directory `base`; if that is "", its contents go into `base`. */
struct path_place {
    int base; /* O_PATH; the caller closes it */
    char top[XFER_NAME + 1];
};

/* Like cp: if `path` is a directory, copies into it as `name`; else the copy becomes `path`. `root` confines the path,
 * unless it is AT_FDCWD. `flags` are XFER_IS_DIR and XFER_INTO. `name` may be "". */
enum xfer_result path_place(int root, const char *path, const char *name, unsigned flags, struct path_place *place);

/* Writes the name of the temporary for the file `name` of a source with this size and time. It is the same each time,
 * so it identifies a transfer that can be resumed. */
struct path_stamp {
    uint64_t size;
    int64_t seconds;
    uint32_t nanoseconds;
};
void temp_name(char temp[XFER_NAME + 1], const char *name, const struct path_stamp *stamp);
/* Writes a random name, for directories where files cannot be locked. Returns false without random octets. */
bool temp_unique(char temp[XFER_NAME + 1], const char *name);
bool is_temp(const char *name);

/* Opens and locks the temporary, if it exists and only we can have made it. Returns a descriptor; -ENOENT; -EPERM if it
 * is not ours; or -EBUSY if another process has it locked for more than a second. */
int temp_find(int parent, const char *temp);
/* Creates the temporary, or empties an existing one; if that is in use or not ours, creates another and changes `temp`.
 * Returns a locked descriptor of an empty file, or a negative errno. */
int temp_make(int parent, char temp[XFER_NAME + 1], const char *name);
/* Whether `name` in `parent` is the open file `fd`. */
bool path_is(int parent, const char *name, int fd);
/* Removes the temporary, if only we can have made it and no process uses it. */
void temp_remove(int parent, const char *temp);

#endif
