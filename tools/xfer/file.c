/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file.c - one received file: written to a temporary, hashed on the way, and renamed when it is verified. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tools/xfer/file.h"
#include "tools/xfer/hole.h"
#include "tools/xfer/store.h"

enum {
    PIECE = 1 << 17, /* octets hashed and written at once: still in the cache for the second step */
    SYNC_STEP = 1 << 25,
    MODE_BITS = 0777, /* set-id bits of another machine are not accepted */
};

/* --- existing parts ------------------------------------------------------------------------------------------ */

static bool has_stamp(const struct stat *st, const struct path_stamp *stamp)
{
    return S_ISREG(st->st_mode) && (uint64_t)st->st_size == stamp->size && st->st_mtim.tv_sec == stamp->seconds &&
           (uint32_t)st->st_mtim.tv_nsec == stamp->nanoseconds;
}

bool file_is(int parent, const char *name, const struct path_stamp *stamp)
{
    struct stat st;
    return !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) && has_stamp(&st, stamp);
}

static int open_whole(int parent, const char *name, const struct path_stamp *stamp)
{
    struct stat st;
    int fd = path_open_file(parent, name, O_RDONLY);
    if (fd >= 0 && (fstat(fd, &st) || !has_stamp(&st, stamp))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool part_find(struct file_part *part, int parent, const char *name, const struct path_stamp *stamp)
{
    struct stat st = {0};
    char temp[XFER_NAME + 1];
    *part = (struct file_part){.fd = open_whole(parent, name, stamp), .length = stamp->size};
    part->parent = fcntl(parent, F_DUPFD_CLOEXEC, 0);
    part->whole = part->fd >= 0;
    if (!part->whole) {
        temp_name(temp, name, stamp);
        part->fd = temp_find(parent, temp);
        if (part->fd >= 0 && !fstat(part->fd, &st))
            part->length = (uint64_t)st.st_size;
    }
    bool found = part->fd >= 0 && part->parent >= 0 && part->length && part->length <= stamp->size;
    if (!found || !digest_open(&part->digest)) {
        part_drop(part);
        return false;
    }
    return true;
}

int part_hash(struct file_part *part, uint8_t buffer[PART_BUFFER])
{
    if (part->hashed >= part->data_end) {
        uint64_t hole = hole_at(part->fd, part->hashed, part->length, &part->data_end);
        digest_zeros(&part->digest, hole);
        part->hashed += hole;
        if (hole)
            return part->hashed < part->length;
    }
    uint64_t left = part->data_end - part->hashed;
    ssize_t n = pread(part->fd, buffer, left < PART_BUFFER ? (size_t)left : PART_BUFFER, (off_t)part->hashed);
    if (n < 0 && errno == EINTR)
        return 1;
    if (n <= 0)
        return n ? -errno : -EIO;
    digest_octets(&part->digest, buffer, (size_t)n);
    part->hashed += (uint64_t)n;
    return part->hashed < part->length;
}

void part_drop(struct file_part *part)
{
    if (part->fd >= 0)
        close(part->fd);
    if (part->parent >= 0)
        close(part->parent);
    digest_close(&part->digest);
    *part = (struct file_part){.parent = -1, .fd = -1};
}

/* --- received data ------------------------------------------------------------------------------------------- */

/* Whether a large file cannot fit: better to fail before most of it has been received. */
static bool lacks_space(const struct file_in *file, uint64_t data)
{
    struct statvfs fs;
    return data >= XFER_RESUMABLE && !fstatvfs(file->fd, &fs) && fs.f_frsize && fs.f_blocks &&
           data / fs.f_frsize > fs.f_bavail;
}

/* Whether there can be a file of this size: better to learn it before most of it has been received. A hole punched
 * beyond the end changes nothing, but is refused behind the largest size of the file system. */
static bool fits_file_system(const struct file_in *file)
{
    const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    uint64_t size = file->stamp.size;
    struct rlimit limit;
    if (size < XFER_RESUMABLE)
        return true;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur)
        return false;
    return !fallocate(file->fd, punch, (off_t)size - 1, 1) || errno != EFBIG;
}

static enum xfer_result start_new(struct file_in *file, int parent)
{
    struct stat st;
    file->parent = fcntl(parent, F_DUPFD_CLOEXEC, 0);
    if (file->parent < 0)
        return xfer_result_of(errno);
    if (!fstatat(file->parent, file->name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
        return XFER_IS_DIRECTORY;
    temp_name(file->temp, file->name, &file->stamp);
    file->fd = temp_make(file->parent, file->temp, file->name);
    if (file->fd < 0)
        return xfer_result_of(-file->fd);
    if (!fits_file_system(file))
        return XFER_TOO_BIG;
    return digest_open(&file->digest) ? XFER_OK : XFER_NO_MEMORY;
}

static void file_go_on(struct file_in *file, struct file_part *part)
{
    temp_name(file->temp, file->name, &file->stamp);
    file->parent = part->parent;
    file->fd = part->fd;
    file->digest = part->digest;
    file->offset = part->length;
    file->whole = part->whole;
    *part = (struct file_part){.parent = -1, .fd = -1};
}

enum xfer_result file_open(struct file_in *file, int parent, const struct file_new *new, struct file_part *part)
{
    enum xfer_result result = XFER_OK;
    *file = (struct file_in){.parent = -1, .fd = -1, .stamp = new->stamp, .mode = new->mode &MODE_BITS};
    snprintf(file->name, sizeof(file->name), "%s", new->name);
    if (new->stamp.size > INT64_MAX)
        result = XFER_TOO_BIG;
    else if (part)
        file_go_on(file, part);
    else
        result = start_new(file, parent);
    if (!result && lacks_space(file, new->data))
        result = XFER_FULL;
    /* A part that can be resumed later is kept although the rest does not fit now. */
    if (result)
        file_drop(file, part && file->fd >= 0);
    return result;
}

enum xfer_result file_write(struct file_in *file, const uint8_t *p, size_t n)
{
    if (file->whole || n > file->stamp.size - file->offset)
        return XFER_PROTOCOL;
    while (n) {
        size_t piece = n < PIECE ? n : PIECE;
        digest_octets(&file->digest, p, piece);
        for (size_t done = 0; done < piece;) {
            ssize_t wrote = pwrite(file->fd, p + done, piece - done, (off_t)(file->offset + done));
            if (wrote < 0 && errno != EINTR)
                return xfer_result_of(errno);
            done += wrote > 0 ? (size_t)wrote : 0;
        }
        p += piece;
        n -= piece;
        file->offset += piece;
        /* Sync in steps: nothing is sent to the peer while the disk is busy. */
        if (file->sync && file->offset % SYNC_STEP < piece && fdatasync(file->fd))
            return xfer_result_of(errno);
    }
    return XFER_OK;
}

enum xfer_result file_hole(struct file_in *file, uint64_t n)
{
    if (file->whole || !n || n > file->stamp.size - file->offset)
        return XFER_PROTOCOL;
    digest_zeros(&file->digest, n);
    file->offset += n;
    return XFER_OK;
}

/* A hole at the end was not written, so the size must be set. */
static bool set_size(const struct file_in *file)
{
    struct stat st;
    return !fstat(file->fd, &st) &&
           ((uint64_t)st.st_size == file->stamp.size || !ftruncate(file->fd, (off_t)file->stamp.size));
}

static bool set_mode(const struct file_in *file)
{
    struct stat st;
    return !fstat(file->fd, &st) && ((st.st_mode & 07777) == file->mode || !fchmod(file->fd, file->mode));
}

static enum xfer_result file_settle(const struct file_in *file)
{
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = (time_t)file->stamp.seconds, .tv_nsec = (long)file->stamp.nanoseconds},
    };
    /* Another client may have taken the name away. */
    if (!path_is(file->parent, file->whole ? file->name : file->temp, file->fd))
        return XFER_CHANGED;
    if (!set_mode(file))
        return xfer_result_of(errno);
    if (file->whole)
        return XFER_OK;
    if (!set_size(file) || futimens(file->fd, times))
        return xfer_result_of(errno);
    int error = store_check(file->fd, file->sync);
    if (!error && renameat(file->parent, file->temp, file->parent, file->name))
        error = -errno;
    return error ? xfer_result_of(-error) : XFER_OK;
}

enum xfer_result file_finish(struct file_in *file, const uint8_t digest[XFER_DIGEST])
{
    uint8_t mine[XFER_DIGEST];
    enum xfer_result result = XFER_MISMATCH;
    digest_value(&file->digest, mine);
    if (file->offset == file->stamp.size && !memcmp(mine, digest, XFER_DIGEST))
        result = file_settle(file);
    file->whole = file->whole || !result; /* it has its name now, so there is no temporary to remove */
    file_drop(file, false);
    return result;
}

void file_drop(struct file_in *file, bool keep)
{
    if (file->fd >= 0) {
        char found[XFER_NAME + 1]; /* where the next transfer will look for a part */
        temp_name(found, file->name, &file->stamp);
        bool is_found = !strcmp(found, file->temp);
        /* Removed while it is locked, so that no other process can have started to use it. */
        if (!file->whole && !(keep && is_found))
            unlinkat(file->parent, file->temp, 0);
        close(file->fd);
        /* With two senders of one file, the one that ends last removes the part that is not needed any more. */
        if ((keep || !is_found) && file_is(file->parent, file->name, &file->stamp))
            temp_remove(file->parent, found);
    }
    if (file->parent >= 0)
        close(file->parent);
    digest_close(&file->digest);
    *file = (struct file_in){.fd = -1, .parent = -1};
}
