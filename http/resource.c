/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resource.c - opens what is to be read, and tells its versions apart. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "http/resource.h"
#include "tools/xfer/path.h"

#define SECOND_NS INT64_C(1000000000)
/* Two changes closer together than this can bear one time stamp: on most file systems, and on those with whole or even
 * seconds. */
#define FINE_NS INT64_C(50000000)
#define COARSE_NS (2 * SECOND_NS)

/* Nothing but a file or a directory is opened to be read: opening may have effects. */
int http_source_open(int root, const char *path, struct stat *st)
{
    int look = path_open(root, path, O_PATH, 0);
    if (look < 0)
        return look;
    int error = fstat(look, st) ? -errno : !S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) ? -EACCES : 0;
    close(look);
    if (error)
        return error;
    int fd = path_open(root, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd >= 0 && fstat(fd, st)) {
        error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

/* A change of the content changes the time of the last change of the inode, which no program can set. One trap is left:
 * through a shared map only the first write to a page does, until that page is stored. */
void http_source_version(struct http_version *version, const struct stat *st)
{
    struct timespec now;
    *version = (struct http_version){.exists = st != NULL};
    if (!st)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age_ns = (now.tv_sec - st->st_ctim.tv_sec) * SECOND_NS + now.tv_nsec - st->st_ctim.tv_nsec;
    bool may_change = age_ns < (st->st_ctim.tv_nsec ? FINE_NS : COARSE_NS);
    snprintf(version->tag, sizeof(version->tag), "%s\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%lx\"",
             may_change ? "W/" : "", (uint64_t)st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_ctim.tv_sec,
             st->st_ctim.tv_nsec);
    /* A time that is still to come would be no Last-Modified (RFC 9110, 8.8.2.1). */
    version->modified = st->st_mtim.tv_sec < now.tv_sec ? st->st_mtim.tv_sec : now.tv_sec;
}
