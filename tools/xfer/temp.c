/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* temp.c - temporaries: hidden files ".name.rddp-0123456789abcdef" that hold a file until it is complete and
 * verified. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "tools/xfer/path.h"

enum {
    TAG = 16,                      /* hex digits */
    SUFFIX = 6 + TAG,              /* ".rddp-" and the tag */
    KEEP = XFER_NAME - 1 - SUFFIX, /* octets of the name that fit */
    WAIT_MS = 1000,                /* for a process that was just killed to release its lock */
    STEP_MS = 20,
};

static void name_with_tag(char temp[XFER_NAME + 1], const char *name, uint64_t tag)
{
    size_t n = strlen(name);
    if (n > KEEP) {
        n = KEEP;
        while (n && ((unsigned char)name[n] & 0xc0) == 0x80) /* do not cut a UTF-8 character */
            n--;
    }
    snprintf(temp, XFER_NAME + 1, ".%.*s.rddp-%016" PRIx64, (int)n, name, tag);
}

void temp_name(char temp[XFER_NAME + 1], const char *name, const struct path_stamp *stamp)
{
    XXH64_hash_t tag = XXH3_64bits(name, strlen(name));
    tag = XXH3_64bits_withSeed(&stamp->size, sizeof(stamp->size), tag);
    tag = XXH3_64bits_withSeed(&stamp->seconds, sizeof(stamp->seconds), tag);
    tag = XXH3_64bits_withSeed(&stamp->nanoseconds, sizeof(stamp->nanoseconds), tag);
    name_with_tag(temp, name, tag);
}

bool temp_unique(char temp[XFER_NAME + 1], const char *name)
{
    uint64_t tag;
    if (getrandom(&tag, sizeof(tag), 0) != sizeof(tag))
        return false;
    name_with_tag(temp, name, tag);
    return true;
}

bool is_temp(const char *name)
{
    size_t n = strlen(name);
    if (name[0] != '.' || n < 1 + SUFFIX || memcmp(name + n - SUFFIX, ".rddp-", 6))
        return false;
    for (const char *p = name + n - TAG; *p; p++) {
        if (!isxdigit((unsigned char)*p))
            return false;
    }
    return true;
}

/* Whether it is a regular file of ours with a single name, so that no other user can make us write through a link. */
static bool temp_is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

/* Opens and locks an existing temporary, or with `create` a new one. Returns -EPERM if it is not ours; it is not opened
 * then, since it could be a pipe. The name must still belong to the locked file: its former owner may have renamed the
 * file meanwhile. */
static int open_locked(int parent, const char *temp, bool create)
{
    struct stat st;
    int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    if (fstatat(parent, temp, &st, AT_SYMLINK_NOFOLLOW)) {
        if (errno != ENOENT || !create)
            return -errno;
        flags |= O_CREAT | O_EXCL;
    } else if (!temp_is_ours(&st)) {
        return -EPERM;
    }
    int fd = openat(parent, temp, flags, 0600);
    if (fd < 0)
        return -errno;
    if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && temp_is_ours(&st) && path_is(parent, temp, fd))
        return fd;
    close(fd);
    return -EBUSY;
}

int temp_find(int parent, const char *temp)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    int fd = open_locked(parent, temp, false);
    for (int ms = 0; fd == -EBUSY && ms < WAIT_MS; ms += STEP_MS) {
        nanosleep(&step, NULL);
        fd = open_locked(parent, temp, false);
    }
    return fd;
}

void temp_remove(int parent, const char *temp)
{
    int fd = open_locked(parent, temp, false);
    if (fd < 0)
        return;
    unlinkat(parent, temp, 0);
    close(fd);
}

int temp_make(int parent, char temp[XFER_NAME + 1], const char *name)
{
    int fd = open_locked(parent, temp, true);
    if (fd < 0) {
        /* Others may use it, or own it: they must not keep us from the file. */
        if (!temp_unique(temp, name))
            return -EIO;
        fd = open_locked(parent, temp, true);
    }
    struct stat st;
    if (fd >= 0 && !fstat(fd, &st) && st.st_size && ftruncate(fd, 0)) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}
