/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file.c - one received file: written to a temporary, hashed on the way, and renamed when it is verified. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tools/xfer/file.h"
#include "tools/xfer/hole.h"

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
    int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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
    part->whole = part->fd >= 0;
    if (!part->whole) {
        temp_name(temp, name, stamp);
        part->fd = temp_find(parent, temp);
        if (part->fd >= 0 && !fstat(part->fd, &st))
            part->length = (uint64_t)st.st_size;
    }
    part->digest = part->fd >= 0 ? XXH3_createState() : NULL;
    if (!part->digest || !part->length || part->length > stamp->size) {
        part_drop(part);
        return false;
    }
    XXH3_128bits_reset(part->digest);
    return true;
}

int part_hash(struct file_part *part, uint8_t buffer[PART_BUFFER])
{
    if (part->hashed >= part->data_end) {
        uint64_t hole = hole_at(part->fd, part->hashed, part->length, &part->data_end);
        hole = hole < XFER_HOLE ? hole : XFER_HOLE;
        hole_hash(part->digest, hole);
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
    XXH3_128bits_update(part->digest, buffer, (size_t)n);
    part->hashed += (uint64_t)n;
    return part->hashed < part->length;
}

static void digest_of(const XXH3_state_t *state, uint8_t digest[XFER_DIGEST])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    memcpy(digest, canonical.digest, XFER_DIGEST);
}

void part_digest(const struct file_part *part, uint8_t digest[XFER_DIGEST])
{
    digest_of(part->digest, digest);
}

void part_drop(struct file_part *part)
{
    if (part->fd >= 0)
        close(part->fd);
    XXH3_freeState(part->digest);
    *part = (struct file_part){.fd = -1};
}

/* --- received data ------------------------------------------------------------------------------------------- */

/* Whether a large file cannot fit: better to fail before most of it has been received. */
static bool lacks_space(const struct file_in *file, uint64_t data)
{
    struct statvfs fs;
    return data >= XFER_RESUMABLE && !fstatvfs(file->fd, &fs) && fs.f_frsize && fs.f_blocks &&
           data / fs.f_frsize > fs.f_bavail;
}

static enum xfer_result start_new(struct file_in *file)
{
    struct stat st;
    if (!fstatat(file->parent, file->name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
        return XFER_IS_DIRECTORY;
    temp_name(file->temp, file->name, &file->stamp);
    file->fd = temp_make(file->parent, file->temp, file->name);
    if (file->fd < 0)
        return xfer_result_of(-file->fd);
    file->digest = XXH3_createState();
    if (!file->digest)
        return XFER_NO_MEMORY;
    XXH3_128bits_reset(file->digest);
    return XFER_OK;
}

static void file_go_on(struct file_in *file, struct file_part *part)
{
    temp_name(file->temp, file->name, &file->stamp);
    file->fd = part->fd;
    file->digest = part->digest;
    file->offset = part->length;
    file->whole = part->whole;
    part->fd = -1;
    part->digest = NULL;
}

enum xfer_result file_open(struct file_in *file, int parent, const struct file_new *new, struct file_part *part)
{
    enum xfer_result result = XFER_OK;
    *file = (struct file_in){.fd = -1, .stamp = new->stamp, .mode = new->mode &MODE_BITS};
    snprintf(file->name, sizeof(file->name), "%s", new->name);
    file->parent = fcntl(parent, F_DUPFD_CLOEXEC, 0);
    if (file->parent < 0)
        result = xfer_result_of(errno);
    else if (new->stamp.size > INT64_MAX)
        result = XFER_TOO_BIG;
    else if (part)
        file_go_on(file, part);
    else
        result = start_new(file);
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
        XXH3_128bits_update(file->digest, p, piece);
        for (size_t done = 0; done < piece;) {
            ssize_t wrote = pwrite(file->fd, p + done, piece - done, (off_t)(file->offset + done));
            if (wrote < 0 && errno != EINTR)
                return xfer_result_of(errno);
            done += wrote > 0 ? (size_t)wrote : 0;
        }
        p += piece;
        n -= piece;
        file->offset += piece;
        /* Sync in steps: the peer hears nothing from us while the disk is busy. */
        if (file->sync && file->offset % SYNC_STEP < piece && fdatasync(file->fd))
            return xfer_result_of(errno);
    }
    return XFER_OK;
}

enum xfer_result file_hole(struct file_in *file, uint64_t n)
{
    if (file->whole || !n || n > XFER_HOLE || n > file->stamp.size - file->offset)
        return XFER_PROTOCOL;
    hole_hash(file->digest, n);
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
    bool settled = set_mode(file);
    if (!file->whole)
        settled = settled && set_size(file) && !futimens(file->fd, times) && !(file->sync && fsync(file->fd)) &&
                  !renameat(file->parent, file->temp, file->parent, file->name);
    return settled ? XFER_OK : xfer_result_of(errno);
}

enum xfer_result file_finish(struct file_in *file, const uint8_t digest[XFER_DIGEST])
{
    uint8_t mine[XFER_DIGEST];
    enum xfer_result result = XFER_MISMATCH;
    digest_of(file->digest, mine);
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
        /* Removed while it is locked, so that nobody else can have started to use it. */
        if (!file->whole && !(keep && is_found))
            unlinkat(file->parent, file->temp, 0);
        close(file->fd);
        /* With two senders of one file, whoever ends last removes the part that nobody needs any more. */
        if ((keep || !is_found) && file_is(file->parent, file->name, &file->stamp))
            temp_remove(file->parent, found);
    }
    if (file->parent >= 0)
        close(file->parent);
    XXH3_freeState(file->digest);
    *file = (struct file_in){.fd = -1, .parent = -1};
}
