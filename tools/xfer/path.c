/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.c - opens files below a directory and never outside of it, and finds the target of a copy. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/xfer/path.h"

enum { TRIES = 100 }; /* attempts when openat2() returns EAGAIN because of concurrent renames */

static int openat2_beneath(int dir, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags,
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static bool has_openat2;

/* A sandbox may refuse the call with EPERM; an older kernel returns ENOSYS. */
static void find_openat2(void)
{
    int fd = openat2_beneath(AT_FDCWD, ".", O_PATH | O_CLOEXEC, 0, 0);
    has_openat2 = fd >= 0 || (errno != ENOSYS && errno != EPERM);
    if (fd >= 0)
        close(fd);
}

static int open_step(int dir, const char *name, int flags, mode_t mode)
{
    struct stat st;
    int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd >= 0)
        return fd;
    /* With O_DIRECTORY, Linux returns ENOTDIR for a symbolic link. */
    int error = errno;
    if (error == ENOTDIR && !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode))
        error = ELOOP;
    return -error;
}

/* Opens the path name by name and follows no symbolic link. */
static int open_walking(int dir, const char *path, int flags, mode_t mode)
{
    char name[XFER_NAME + 1];
    int at = dir, fd = -EINVAL;
    for (bool last = false; !last;) {
        size_t n = strcspn(path, "/");
        last = !path[n];
        fd = n > XFER_NAME ? -ENAMETOOLONG : -EXDEV;
        if (n <= XFER_NAME) {
            memcpy(name, path, n);
            name[n] = 0;
            if (strcmp(name, ".."))
                fd = open_step(at, name, last ? flags : O_PATH | O_DIRECTORY, mode);
        }
        if (at != dir)
            close(at);
        if (fd < 0)
            return fd;
        at = fd;
        path += n + !last;
    }
    return fd;
}

static int open_beneath(int dir, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_openat2);
    if (!*path)
        path = ".";
    if (*path == '/')
        return -EXDEV;
    if (!has_openat2)
        return open_walking(dir, path, flags, mode);
    for (int i = 0; i < TRIES; i++) {
        int fd = openat2_beneath(dir, path, flags | O_CLOEXEC, mode, resolve);
        if (fd >= 0)
            return fd;
        if (errno != EAGAIN)
            return -errno;
    }
    return -EAGAIN;
}

int path_open(int dir, const char *path, int flags, mode_t mode)
{
    return open_beneath(dir, path, flags, mode, 0);
}

int path_open_plain(int dir, const char *path, int flags)
{
    return open_beneath(dir, path, flags, 0, RESOLVE_NO_SYMLINKS);
}

int path_open_file(int dir, const char *name, int flags)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISLNK(st.st_mode) ? -ELOOP : -ENXIO;
    int fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return -ENXIO;
}

bool path_is(int parent, const char *name, int fd)
{
    struct stat opened, named;
    return !fstat(fd, &opened) && !fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static int open_directory(int root, const char *path)
{
    if (root != AT_FDCWD)
        return path_open(root, path, O_PATH | O_DIRECTORY, 0);
    int fd = open(*path ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fd;
}

enum xfer_result path_place(int root, const char *path, const char *name, unsigned flags, struct path_place *place)
{
    place->base = open_directory(root, path);
    if (place->base >= 0) {
        memcpy(place->top, name, strlen(name) + 1);
        return XFER_OK;
    }
    bool may_become = place->base == -ENOENT || (place->base == -ENOTDIR && !(flags & (XFER_IS_DIR | XFER_INTO)));
    if (!may_become || ((flags & XFER_INTO) && !(flags & XFER_IS_DIR)))
        return xfer_result_of(-place->base);

    char parent[XFER_PATH + 1];
    const char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (!xfer_name_ok(last))
        return strlen(last) > XFER_NAME ? XFER_TOO_LONG : XFER_NOT_FOUND;
    if (n > XFER_PATH)
        return XFER_TOO_LONG;
    memcpy(parent, path, n);
    parent[n] = 0;
    place->base = open_directory(root, slash == path ? "/" : parent);
    if (place->base < 0)
        return xfer_result_of(-place->base);
    memcpy(place->top, last, strlen(last) + 1);
    return XFER_OK;
}
