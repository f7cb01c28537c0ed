/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_path.c - opens names without following links or crossing mount points, and reads what tells objects apart. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nfs/server/object_in.h"

uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int open_name(int dir, const char *name, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(O_PATH | O_NOFOLLOW | O_CLOEXEC | flags),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

/* Kernels before 5.12 do not know RESOLVE_CACHED (EINVAL). */
int open_cached_name(int dir, const char *name)
{
    struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_CACHED,
    };
    long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));

    return fd >= 0 ? (int)fd : errno == EINVAL ? -EAGAIN : -errno;
}

uint64_t birth_of(int fd)
{
    struct statx sx;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) || !(sx.stx_mask & STATX_BTIME))
        return 0;
    return (uint64_t)sx.stx_btime.tv_sec * 1000000000 + sx.stx_btime.tv_nsec;
}
