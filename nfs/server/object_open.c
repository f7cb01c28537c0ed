/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_open.c - opens the object of a handle, and checks that it is still inside its export. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nfs/server/object_in.h"

enum { CLIMB_MAX = 1 << 14 };

union kernel_fh {
    struct file_handle head;
    uint8_t buffer[sizeof(struct file_handle) + HANDLE_KERNEL_MAX];
};

bool kernel_handle(const struct object_place *place, int fd, struct handle *h)
{
    union kernel_fh fh = {.head.handle_bytes = HANDLE_KERNEL_MAX};
    int mount;

    if (place->mount < 0 || name_to_handle_at(fd, "", &fh.head, &mount, AT_EMPTY_PATH))
        return false;
    *h = (struct handle){.kind = HANDLE_KERNEL, .export = place->export->id, .type = fh.head.handle_type};
    h->count = (uint8_t)fh.head.handle_bytes;
    memcpy(h->kernel, fh.buffer + sizeof(struct file_handle), h->count);
    return true;
}

static int open_kernel(const struct object_place *place, const struct handle *h)
{
    union kernel_fh fh = {.head = {.handle_bytes = h->count, .handle_type = h->type}};
    int fd = -1;

    if (place->mount < 0)
        return -ESTALE;
    memcpy(fh.buffer + sizeof(struct file_handle), h->kernel, h->count);
    /* Linux returns ENOMEM when a directory on the path is changed at the same time. This passes quickly, unless
     * whoever changes it has no processor: try again, in the end with pauses. A client would wait for seconds. */
    for (int i = 0; i < OPEN_TRIES; i++) {
        fd = open_by_handle_at(place->mount, &fh.head, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 || errno != ENOMEM)
            return fd < 0 ? -errno : fd;
        if (i < OPEN_TRIES / 2)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = OPEN_PAUSE_NS}, NULL);
    }
    return -ENOMEM;
}

int open_handle(struct objects *objects, struct object_place *place, const struct handle *h, bool *search)
{
    return h->kind == HANDLE_KERNEL ? open_kernel(place, h) : search_inode(objects, place, h, search);
}

/* The path of `fd` as the kernel sees it now. Returns false if there is none. */
static bool object_open_path_of(int fd, char path[PATH_MAX])
{
    char link[32];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, PATH_MAX);
    if (n <= 0 || n >= PATH_MAX || *path != '/')
        return false;
    path[n] = 0;
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && !strcmp(text + n - m, end);
}

/* Whether the export's root is an ancestor of a directory. For paths that are longer than PATH_MAX. */
static bool climbs_to(const struct object_place *place, int from)
{
    struct stat st;
    bool found = false;
    unsigned steps = 0;
    int fd = openat(from, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (ino_t below = 0; fd >= 0 && !fstat(fd, &st) && st.st_dev == place->export->dev; below = st.st_ino) {
        int up;

        found = st.st_ino == place->inode;
        if (found || st.st_ino == below || ++steps > CLIMB_MAX)
            break;
        up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = up;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* A directory has exactly one path, and the kernel knows it. For a file the kernel may tell no path ("/", if it was
 * opened by handle), a removed one while others exist ("(deleted)"), or any one of several names. The handle is then
 * trusted, since it was made when the file was seen inside the export. */
bool inside_by_path(const struct object_place *place, int fd, const struct stat *st, bool *known)
{
    char root[PATH_MAX], path[PATH_MAX];
    bool dir = S_ISDIR(st->st_mode);
    size_t n;

    *known = true;
    if (st->st_dev != place->export->dev || !st->st_nlink)
        return false;
    if (st->st_ino == place->inode)
        return true;
    if (!object_open_path_of(place->export->root, root) || !object_open_path_of(fd, path)) {
        *known = !dir;
        return !dir;
    }
    n = strlen(root);
    if (n == 1 || (!strncmp(path, root, n) && path[n] == '/'))
        return true;
    return !dir && (st->st_nlink > 1 || !path[1] || ends_with(path, " (deleted)"));
}

bool inside_export(const struct object_place *place, int fd, const struct stat *st)
{
    bool known, inside = inside_by_path(place, fd, st, &known);

    return known ? inside : climbs_to(place, fd);
}
