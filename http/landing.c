/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* landing.c - a temporary file, mapped so that octets can be placed in it, until all of it is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/landing.h"

enum { EVERYBODY_MODE = 0666 };

/* Without blocks of its own a mapped page could meet a full disk, and that is a signal: such a file is not mapped. */
static int landing_make_space(struct landing *landing, uint64_t space, uint64_t ahead)
{
    uint64_t first = space < ahead ? space : ahead;
    if (!space)
        return 0;
    if (fallocate(landing->fd, 0, 0, (off_t)first))
        return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
    void *map = mmap(NULL, space, PROT_READ | PROT_WRITE, MAP_SHARED, landing->fd, 0);
    if (map == MAP_FAILED)
        return 0;
    landing->map = map;
    landing->mapped = space;
    landing->reserved = first;
    landing->ahead = ahead;
    return 0;
}

bool landing_grow(struct landing *landing)
{
    uint64_t to = landing->position + landing->ahead;
    if (to > landing->mapped)
        to = landing->mapped;
    if (!landing->map || to <= landing->reserved ||
        (to < landing->mapped && to - landing->reserved < landing->ahead / 2))
        return false;
    if (fallocate(landing->fd, 0, (off_t)landing->reserved, (off_t)(to - landing->reserved)))
        return false; /* the rest is written, and meets the full disk there */
    landing->reserved = to;
    return true;
}

int landing_open(struct landing *landing, int parent, const char *name, uint64_t space, uint64_t ahead)
{
    *landing = (struct landing){.parent = parent, .fd = -1};
    snprintf(landing->name, sizeof(landing->name), "%s", name);
    int error = temp_unique(landing->temp, name) ? 0 : -EIO;
    if (!error) {
        landing->fd = temp_make(parent, landing->temp, name);
        error = landing->fd < 0 ? landing->fd : landing_make_space(landing, space, ahead);
    }
    if (!error)
        return 0;
    if (landing->fd >= 0)
        landing_drop(landing);
    else
        close(parent);
    landing->fd = -1;
    return error;
}

int landing_take(struct landing *landing, const uint8_t *octets, size_t n, bool placed)
{
    bool there = placed && landing->map && landing->position < landing->mapped &&
                 octets == landing->map + landing->position && n <= landing->mapped - landing->position;
    for (size_t done = 0; done < n && !there;) {
        ssize_t wrote = pwrite(landing->fd, octets + done, n - done, (off_t)(landing->position + done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote ? -errno : -EIO;
        done += (size_t)wrote;
    }
    landing->position += n;
    landing->placed += there ? n : 0;
    return 0;
}

static void landing_close(struct landing *landing)
{
    if (landing->map)
        munmap(landing->map, landing->mapped);
    close(landing->fd);
    close(landing->parent);
    landing->map = NULL;
    landing->fd = -1;
}

int landing_finish(struct landing *landing, bool sync)
{
    mode_t mask = umask(0);
    umask(mask);
    int error = 0;
    if ((landing->map && ftruncate(landing->fd, (off_t)landing->position)) ||
        fchmod(landing->fd, EVERYBODY_MODE & ~mask) || (sync && fsync(landing->fd)) ||
        renameat(landing->parent, landing->temp, landing->parent, landing->name)) {
        error = -errno;
        unlinkat(landing->parent, landing->temp, 0);
    }
    landing_close(landing);
    return error;
}

void landing_drop(struct landing *landing)
{
    if (landing->fd < 0)
        return;
    unlinkat(landing->parent, landing->temp, 0);
    landing_close(landing);
}
