/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.h - files below a directory and never outside of it; where a copy goes; temporaries. */
#ifndef TOOLS_XFER_PATH_H
#define TOOLS_XFER_PATH_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/xfer/xfer.h"

/* openat() of `path` ("" is the directory itself) that cannot leave `dir`: openat2() with RESOLVE_BENEATH and
 * RESOLVE_NO_MAGICLINKS, or where the kernel has none a walk that follows no symbolic link. An fd or a negative errno
 * (-EXDEV: it would lead out). */
int path_open(int dir, const char *path, int flags, mode_t mode);

/* Where a copy goes: its top is `top` in the directory `base`; "": its contents go right into `base`. */
struct path_place {
    int base; /* O_PATH; the caller closes it */
    char top[XFER_NAME + 1];
};

/* cp's rule: into `path` as `name` if that is a directory, else it is to become `path`. `root` confines it; AT_FDCWD:
 * it is not confined. `flags`: XFER_IS_DIR, XFER_INTO. `name` may be "". */
enum xfer_result path_place(int root, const char *path, const char *name, unsigned flags, struct path_place *place);

/* The name of the temporary for the file `name` of a source of that size and time: the same again the next time, so it
 * says which transfer may be resumed. */
struct path_stamp {
    uint64_t size;
    int64_t seconds;
    uint32_t nanoseconds;
};
void temp_name(char temp[XFER_NAME + 1], const char *name, const struct path_stamp *stamp);
/* One that nobody else has: for a directory where nothing can be locked. False: no random octets. */
bool temp_unique(char temp[XFER_NAME + 1], const char *name);
bool is_temp(const char *name);

/* Opens that temporary, locked, if it is there and ours alone: an fd, or -ENOENT, or -EBUSY if somebody has it locked
 * for a second and more. */
int temp_find(int parent, const char *temp);
/* Makes it, or takes what is left of an earlier one, or if it is in use makes another and changes `temp`. The fd is
 * locked, the file empty; or a negative errno. */
int temp_make(int parent, char temp[XFER_NAME + 1], const char *name);

#endif
