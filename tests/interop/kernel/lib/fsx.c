/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fsx.c - does random operations on one file and compares each read with a copy of the file in memory.
 *
 *   fsx FILE SEED STEPS [SIZE]
 *
 * The operations are writes, reads, mapped writes and reads, truncation, appending, fsync, and closing and opening the
 * file again, of any length at any place below SIZE (default 256 KiB). A failure prints the seed, the step and the
 * steps before it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HISTORY = 24, PAGE = 4096 };

struct fsx {
    const char *path;
    int fd;
    uint64_t seed, chance;
    size_t size, size_max; /* current and maximum size of the file */
    uint8_t *model, *buffer;
    unsigned step;
    struct {
        unsigned step;
        const char *name;
        size_t offset, length;
    } history[HISTORY];
};

static void fail(const struct fsx *x, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
static void fail(const struct fsx *x, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "fsx seed %llu step %u: ", (unsigned long long)x->seed, x->step);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, " (errno %s)\n", strerror(errno));
    for (unsigned i = x->step < HISTORY ? 0 : x->step - HISTORY + 1; i <= x->step; i++)
        fprintf(stderr, "  %u %s at %zu of %zu\n", x->history[i % HISTORY].step, x->history[i % HISTORY].name,
                x->history[i % HISTORY].offset, x->history[i % HISTORY].length);
    exit(1);
}

static size_t chance(struct fsx *x, size_t below)
{
    x->chance ^= x->chance << 13;
    x->chance ^= x->chance >> 7;
    x->chance ^= x->chance << 17;
    return below ? (size_t)(x->chance % below) : 0;
}

static void note(struct fsx *x, const char *name, size_t offset, size_t length)
{
    unsigned i = x->step % HISTORY;
    x->history[i].step = x->step;
    x->history[i].name = name;
    x->history[i].offset = offset;
    x->history[i].length = length;
}

static void compare(struct fsx *x, const uint8_t *got, size_t offset, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (got[i] != x->model[offset + i])
            fail(x, "octet %zu is %02x, not %02x", offset + i, got[i], x->model[offset + i]);
    }
}

/* Returns n, or often a value at or near the page boundary below n. */
static size_t edge(struct fsx *x, size_t n)
{
    switch (chance(x, 4)) {
    case 0:
        return n / PAGE * PAGE;
    case 1:
        return n / PAGE * PAGE + (n > PAGE ? chance(x, 3) : 0);
    default:
        return n;
    }
}

static void grow(struct fsx *x, size_t size)
{
    if (size > x->size) {
        memset(x->model + x->size, 0, size - x->size);
        x->size = size;
    }
}

static void fill(struct fsx *x, uint8_t *to, size_t n)
{
    uint8_t c = (uint8_t)(x->step * 7 + 1);
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(c + i + (i >> 8));
}

static void step_write(struct fsx *x)
{
    size_t offset = edge(x, chance(x, x->size_max)), n = edge(x, 1 + chance(x, x->size_max - offset));
    if (chance(x, 2))
        n %= 2 * PAGE;
    note(x, "write", offset, n);
    fill(x, x->buffer, n);
    if (pwrite(x->fd, x->buffer, n, (off_t)offset) != (ssize_t)n)
        fail(x, "write");
    if (n) {
        grow(x, offset + n);
        memcpy(x->model + offset, x->buffer, n);
    }
}

static void step_append(struct fsx *x)
{
    size_t n = chance(x, x->size_max - x->size + 1) % (3 * PAGE);
    note(x, "append", x->size, n);
    int fd = open(x->path, O_WRONLY | O_APPEND);
    fill(x, x->buffer, n);
    if (fd < 0 || write(fd, x->buffer, n) != (ssize_t)n || close(fd))
        fail(x, "append");
    size_t end = x->size;
    grow(x, end + n);
    memcpy(x->model + end, x->buffer, n);
}

static void step_read(struct fsx *x)
{
    size_t offset = edge(x, chance(x, x->size_max)), n = edge(x, chance(x, x->size_max));
    size_t left = x->size > offset ? x->size - offset : 0, want = n < left ? n : left;
    note(x, "read", offset, n);
    ssize_t got = pread(x->fd, x->buffer, n, (off_t)offset);
    if (got != (ssize_t)want)
        fail(x, "read gives %zd, not %zu", got, want);
    compare(x, x->buffer, offset, want);
}

static void step_truncate(struct fsx *x)
{
    size_t size = edge(x, chance(x, x->size_max));
    note(x, "truncate", size, x->size);
    if (chance(x, 2) ? ftruncate(x->fd, (off_t)size) : truncate(x->path, (off_t)size))
        fail(x, "truncate");
    if (size > x->size)
        grow(x, size);
    x->size = size;
}

static void step_map(struct fsx *x, int writes)
{
    if (!x->size)
        return;
    size_t offset = chance(x, x->size), n = 1 + chance(x, x->size - offset), page = offset / PAGE * PAGE;
    note(x, writes ? "mapped write" : "mapped read", offset, n);
    uint8_t *map =
        mmap(NULL, offset - page + n, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, x->fd, (off_t)page);
    if (map == MAP_FAILED)
        fail(x, "mmap");
    if (writes) {
        fill(x, map + (offset - page), n);
        memcpy(x->model + offset, map + (offset - page), n);
        if (chance(x, 2) && msync(map, offset - page + n, MS_SYNC))
            fail(x, "msync");
    } else {
        compare(x, map + (offset - page), offset, n);
    }
    if (munmap(map, offset - page + n))
        fail(x, "munmap");
}

static void step_size(struct fsx *x)
{
    struct stat st;
    note(x, "fstat", 0, x->size);
    if (fstat(x->fd, &st) || (size_t)st.st_size != x->size)
        fail(x, "the size is %lld", (long long)st.st_size);
}

static void step_again(struct fsx *x)
{
    note(x, "close and open", 0, 0);
    if (close(x->fd))
        fail(x, "close");
    x->fd = open(x->path, O_RDWR);
    if (x->fd < 0)
        fail(x, "open");
}

static void step_sync(struct fsx *x)
{
    note(x, "fsync", 0, 0);
    if (fsync(x->fd))
        fail(x, "fsync");
    /* Drop the cached pages so that the client must read them from the server. */
    if (chance(x, 2))
        posix_fadvise(x->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void one_step(struct fsx *x)
{
    switch (chance(x, 16)) {
    case 0:
        step_truncate(x);
        break;
    case 1:
        step_again(x);
        break;
    case 2:
        step_sync(x);
        break;
    case 3:
        step_size(x);
        break;
    case 4:
    case 5:
        step_append(x);
        break;
    case 6:
    case 7:
        step_map(x, 1);
        break;
    case 8:
        step_map(x, 0);
        break;
    case 9:
    case 10:
    case 11:
    case 12:
        step_write(x);
        break;
    default:
        step_read(x);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: fsx FILE SEED STEPS [SIZE]\n");
        return 2;
    }
    struct fsx x = {.path = argv[1], .seed = strtoull(argv[2], NULL, 0), .size_max = 256 << 10};
    unsigned steps = (unsigned)strtoul(argv[3], NULL, 0);
    if (argc > 4)
        x.size_max = strtoull(argv[4], NULL, 0);
    x.chance = x.seed * 0x9e3779b97f4a7c15 + 1;
    x.model = calloc(2, x.size_max);
    x.buffer = malloc(2 * x.size_max);
    x.fd = open(x.path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (!x.model || !x.buffer || x.fd < 0)
        fail(&x, "start");
    for (; x.step < steps; x.step++) {
        note(&x, "nothing", 0, 0);
        one_step(&x);
    }
    note(&x, "last read", 0, x.size);
    step_again(&x);
    if (pread(x.fd, x.buffer, x.size_max, 0) != (ssize_t)x.size)
        fail(&x, "the last read is short");
    compare(&x, x.buffer, 0, x.size);
    if (close(x.fd))
        fail(&x, "close");
    free(x.model);
    free(x.buffer);
    return 0;
}
