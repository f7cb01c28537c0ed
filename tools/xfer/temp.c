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

/* Whether it is a regular file of ours with a single name, so that nobody can make us write through a link. */
static bool temp_is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

/* Whether the name still belongs to the locked file: its former owner may have renamed the file meanwhile. */
static bool is_still(int parent, const char *temp, int fd)
{
    struct stat opened, named;
    return !fstat(fd, &opened) && !fstatat(parent, temp, &named, AT_SYMLINK_NOFOLLOW) && temp_is_ours(&opened) &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static int open_locked(int parent, const char *temp, int flags)
{
    int fd = openat(parent, temp, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -errno;
    if (!flock(fd, LOCK_EX | LOCK_NB) && is_still(parent, temp, fd))
        return fd;
    close(fd);
    return -EBUSY;
}

int temp_find(int parent, const char *temp)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    int fd = open_locked(parent, temp, 0);
    for (int ms = 0; fd == -EBUSY && ms < WAIT_MS; ms += STEP_MS) {
        nanosleep(&step, NULL);
        fd = open_locked(parent, temp, 0);
    }
    return fd;
}

void temp_remove(int parent, const char *temp)
{
    int fd = open_locked(parent, temp, 0);
    if (fd < 0)
        return;
    unlinkat(parent, temp, 0);
    close(fd);
}

int temp_make(int parent, char temp[XFER_NAME + 1], const char *name)
{
    int fd = open_locked(parent, temp, O_CREAT);
    if (fd == -EBUSY || fd == -ELOOP || fd == -EISDIR || fd == -ENXIO) {
        if (!temp_unique(temp, name))
            return -EIO;
        fd = open_locked(parent, temp, O_CREAT | O_EXCL);
    }
    struct stat st;
    if (fd >= 0 && !fstat(fd, &st) && st.st_size && ftruncate(fd, 0)) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}
