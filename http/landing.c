/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* landing.c - a file without a name, mapped so that octets can be placed in it, until all of it is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "http/landing.h"
#include "tools/xfer/store.h"

enum { EVERYBODY_MODE = 0666, OWN_PATH = 32, DIGEST_STEP = 65536 };

/* A part with this time of its last change is stored. What is written to it later takes the time away, so that a part
 * is not gone on with whose last octets came to a process that was killed: no file system was asked about them. */
static const struct timespec stored = {.tv_sec = 946684800};

static void landing_unmap(struct landing *landing)
{
    if (landing->map)
        munmap(landing->map, landing->mapped);
    landing->map = NULL;
}

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

/* The way to a file without a name that any process may link. */
static void own_path(char path[OWN_PATH], int fd)
{
    snprintf(path, OWN_PATH, "/proc/self/fd/%d", fd);
}

/* A file without a name; or, where that cannot be made or be linked, a temporary: the same one for each file of this
 * name, so that what a killed process left is used again. */
static int landing_make(struct landing *landing)
{
    char path[OWN_PATH];
    int fd = openat(landing->parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        own_path(path, fd);
        if (!access(path, F_OK))
            return fd;
        close(fd);
    }
    temp_name(landing->temp, landing->name, &(struct path_stamp){0});
    return temp_make(landing->parent, landing->temp, landing->name);
}

int landing_open(struct landing *landing, int parent, const char *name, uint64_t space, uint64_t ahead)
{
    *landing = (struct landing){.parent = parent, .fd = -1};
    snprintf(landing->name, sizeof(landing->name), "%s", name);
    landing->fd = landing_make(landing);
    if (landing->fd < 0) {
        int error = landing->fd;
        close(parent);
        landing->fd = -1;
        return error;
    }
    int error = landing_make_space(landing, space, ahead);
    if (error)
        landing_drop(landing);
    return error;
}

int landing_resume(struct landing *landing, int parent, const char *name, const char *temp, uint64_t space)
{
    struct stat st;
    *landing = (struct landing){.parent = parent, .fd = temp_find(parent, temp)};
    int error = landing->fd < 0 ? landing->fd : fstat(landing->fd, &st) ? -errno : 0;
    if (landing->fd < 0) {
        close(parent);
        landing->fd = -1;
        return error;
    }
    snprintf(landing->name, sizeof(landing->name), "%s", name);
    snprintf(landing->temp, sizeof(landing->temp), "%s", temp);
    if (!error && (st.st_mtim.tv_sec != stored.tv_sec || st.st_mtim.tv_nsec))
        error = -ENOENT;
    if (!error && futimens(landing->fd, NULL))
        error = -errno;
    if (!error) {
        landing->position = landing->start = (uint64_t)st.st_size;
        error = landing_make_space(landing, space, space);
    }
    if (error)
        landing_drop(landing);
    return error;
}

int landing_restart(struct landing *landing)
{
    landing_unmap(landing);
    landing->lands = false;
    landing->position = landing->start = landing->placed = 0;
    return ftruncate(landing->fd, 0) ? -errno : 0;
}

bool landing_has(const struct landing *landing, const uint8_t *octets, size_t n, bool placed)
{
    return placed && landing->map && landing->position < landing->mapped &&
           octets == landing->map + landing->position && n <= landing->mapped - landing->position;
}

int landing_take(struct landing *landing, const uint8_t *octets, size_t n, bool placed)
{
    bool there = landing_has(landing, octets, n, placed);
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
    landing_unmap(landing);
    close(landing->fd);
    close(landing->parent);
    landing->fd = -1;
}

/* renameat(), but -EEXIST if `to` is there. */
static int rename_new(int parent, const char *from, const char *to)
{
    if (!renameat2(parent, from, parent, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (!faccessat(parent, to, F_OK, AT_SYMLINK_NOFOLLOW)) /* a file system that cannot do both in one step */
        return -EEXIST;
    return renameat(parent, from, parent, to) ? -errno : 0;
}

/* A link replaces no file: then the new file gets another name first, and is renamed. */
static int landing_publish(struct landing *landing, bool is_new)
{
    if (!landing->temp[0]) {
        char path[OWN_PATH];
        own_path(path, landing->fd);
        if (!linkat(AT_FDCWD, path, landing->parent, landing->name, AT_SYMLINK_FOLLOW))
            return 0;
        if (errno != EEXIST || is_new)
            return -errno;
        if (!temp_unique(landing->temp, landing->name))
            return -EIO;
        if (linkat(AT_FDCWD, path, landing->parent, landing->temp, AT_SYMLINK_FOLLOW))
            return -errno;
    }
    if (is_new)
        return rename_new(landing->parent, landing->temp, landing->name);
    return renameat(landing->parent, landing->temp, landing->parent, landing->name) ? -errno : 0;
}

int landing_finish(struct landing *landing, unsigned flags)
{
    mode_t mask = umask(0);
    umask(mask);
    bool was_mapped = landing->map != NULL;
    landing_unmap(landing);
    int error =
        (was_mapped && ftruncate(landing->fd, (off_t)landing->position)) || fchmod(landing->fd, EVERYBODY_MODE & ~mask)
            ? -errno
            : store_check(landing->fd, flags & LANDING_SYNC);
    if (!error)
        error = landing_publish(landing, flags & LANDING_NEW);
    if (error)
        landing_drop(landing);
    else
        landing_close(landing);
    return error;
}

/* The file as it can be read: the octets that were placed in the map, and those that were written. */
static int sum_file(const struct landing *landing, XXH3_state_t *sum)
{
    uint8_t octets[DIGEST_STEP];
    if (landing->map && landing->position <= landing->mapped) {
        XXH3_128bits_update(sum, landing->map, landing->position);
        return 0;
    }
    for (uint64_t at = 0; at < landing->position;) {
        uint64_t left = landing->position - at;
        ssize_t got = pread(landing->fd, octets, left < DIGEST_STEP ? (size_t)left : DIGEST_STEP, (off_t)at);
        if (got <= 0)
            return got ? -errno : -EIO;
        XXH3_128bits_update(sum, octets, (size_t)got);
        at += (uint64_t)got;
    }
    return 0;
}

int landing_digest(const struct landing *landing, uint8_t value[LANDING_DIGEST])
{
    XXH3_state_t *sum = XXH3_createState();
    XXH128_canonical_t canonical;
    if (!sum)
        return -ENOMEM;
    XXH3_128bits_reset(sum);
    int error = sum_file(landing, sum);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(sum));
    memcpy(value, canonical.digest, LANDING_DIGEST);
    XXH3_freeState(sum);
    return error;
}

int landing_keep(struct landing *landing, const char *temp)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, stored};
    char path[OWN_PATH];
    int error = 0;
    landing_unmap(landing);
    own_path(path, landing->fd);
    if (ftruncate(landing->fd, (off_t)landing->position))
        error = -errno;
    else
        error = store_check(landing->fd, true); /* nothing of it will be asked for again */
    if (!error && futimens(landing->fd, times))
        error = -errno;
    if (!error && !landing->temp[0])
        error = linkat(AT_FDCWD, path, landing->parent, temp, AT_SYMLINK_FOLLOW) ? -errno : 0;
    else if (!error && strcmp(landing->temp, temp))
        error = renameat(landing->parent, landing->temp, landing->parent, temp) ? -errno : 0;
    if (error)
        landing_drop(landing);
    else
        landing_close(landing);
    return error;
}

void landing_drop(struct landing *landing)
{
    if (landing->fd < 0)
        return;
    if (landing->temp[0])
        unlinkat(landing->parent, landing->temp, 0);
    landing_close(landing);
}
