/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fsop_data.c - tests file data: writes and compares patterns, and tests holes, mappings and concurrent writers. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsop.h"

enum { CHUNK = 1 << 20, RECORD = 61, BLOCK = 12296 };

static uint8_t *aligned(size_t n)
{
    void *p;
    if (posix_memalign(&p, 4096, n))
        die("no memory");
    return p;
}

static int flags_of(const char *word)
{
    if (!strcmp(word, "sync"))
        return O_SYNC;
    if (!strcmp(word, "direct"))
        return O_DIRECT;
    if (strcmp(word, "plain"))
        die("plain, sync or direct, not %s", word);
    return 0;
}

/* FILE OFFSET LENGTH SEED [plain|sync|direct [CHUNK]] */
int op_fill(int argc, char **argv)
{
    if (argc < 4)
        die("fill FILE OFFSET LENGTH SEED [plain|sync|direct [CHUNK]]");
    uint64_t offset = number(argv[1]), end = offset + number(argv[2]), seed = number(argv[3]);
    size_t chunk = argc > 5 ? number(argv[5]) : CHUNK;
    int fd = open_or_die(argv[0], O_RDWR | O_CREAT | flags_of(argc > 4 ? argv[4] : "plain"));
    uint8_t *data = aligned(chunk);
    while (offset < end) {
        size_t n = end - offset < chunk ? (size_t)(end - offset) : chunk;
        pattern(seed, offset, data, n);
        write_all(fd, data, n, (off_t)offset);
        offset += n;
    }
    if (close(fd))
        die_errno("close");
    free(data);
    return 0;
}

/* FILE OFFSET LENGTH SEED [plain|direct] */
int op_check(int argc, char **argv)
{
    if (argc < 4)
        die("check FILE OFFSET LENGTH SEED [plain|direct]");
    uint64_t offset = number(argv[1]), end = offset + number(argv[2]), seed = number(argv[3]);
    int fd = open_or_die(argv[0], O_RDONLY | flags_of(argc > 4 ? argv[4] : "plain"));
    uint8_t *data = aligned(CHUNK), *want = aligned(CHUNK);
    while (offset < end) {
        size_t n = end - offset < CHUNK ? (size_t)(end - offset) : CHUNK;
        pattern(seed, offset, want, n);
        size_t got = read_all(fd, data, n, (off_t)offset);
        if (got != n)
            die("%s ends at %llu", argv[0], (unsigned long long)(offset + got));
        for (size_t i = 0; i < n; i++) {
            if (data[i] != want[i])
                die("%s: octet %llu is %02x, not %02x", argv[0], (unsigned long long)(offset + i), data[i], want[i]);
        }
        offset += n;
    }
    close(fd);
    free(data);
    free(want);
    return 0;
}

/* FILE...: drops the cached pages of the files. */
int op_forget(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        int fd = open_or_die(argv[i], O_RDONLY);
        if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) || close(fd))
            die_errno("forget %s", argv[i]);
    }
    return 0;
}

static void zeros(int fd, off_t from, off_t to)
{
    uint8_t *data = aligned(CHUNK);
    while (from < to) {
        size_t n = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
        if (read_all(fd, data, n, from) != n)
            die("the file ends before %lld", (long long)to);
        for (size_t i = 0; i < n; i++) {
            if (data[i])
                die("a hole has %02x at %lld", data[i], (long long)from + (long long)i);
        }
        from += (off_t)n;
    }
    free(data);
}

/* FILE: writes a few octets into a sparse file of 6 GiB and checks the holes, also after truncate. */
int op_sparse(int argc, char **argv)
{
    static const off_t islands[] = {5, 1 << 20, (off_t)1 << 31, ((off_t)3 << 31) - 7};
    struct stat st;
    if (argc != 1)
        die("sparse FILE");
    int fd = open_or_die(argv[0], O_RDWR | O_CREAT | O_TRUNC);
    for (int i = 0; i < 4; i++)
        write_all(fd, "island", 6, islands[i]);
    if (fsync(fd) || close(fd) || stat(argv[0], &st))
        die_errno("sparse");
    if (st.st_size != islands[3] + 6)
        die("the size is %lld", (long long)st.st_size);
    if (st.st_blocks < 8 || st.st_blocks > 2048)
        die("%lld blocks for four islands", (long long)st.st_blocks);
    fd = open_or_die(argv[0], O_RDWR);
    for (int i = 0; i < 4; i++) {
        char text[6];
        if (read_all(fd, text, 6, islands[i]) != 6 || memcmp(text, "island", 6))
            die("no island at %lld", (long long)islands[i]);
        zeros(fd, i ? islands[i] - (1 << 18) : 0, islands[i]);
    }
    /* Shrink the file into the middle of a written range and grow it again: the octets cut off must read as zeros. */
    if (ftruncate(fd, islands[1] + 3) || ftruncate(fd, islands[1] + 10000))
        die_errno("ftruncate");
    zeros(fd, islands[1] + 3, islands[1] + 10000);
    if (close(fd) || stat(argv[0], &st) || st.st_size != islands[1] + 10000)
        die_errno("size after truncate");
    return 0;
}

/* FILE: checks that writes through a shared mapping reach the file, and that the mapping shows other writes. */
int op_mmap(int argc, char **argv)
{
    enum { LENGTH = 1 << 20 };
    if (argc != 1)
        die("mmap FILE");
    uint8_t *want = aligned(LENGTH), *got = aligned(LENGTH);
    pattern(7, 0, want, LENGTH);
    int fd = open_or_die(argv[0], O_RDWR | O_CREAT | O_TRUNC);
    if (ftruncate(fd, LENGTH))
        die_errno("ftruncate");
    uint8_t *map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        die_errno("mmap");
    memcpy(map, want, LENGTH);
    if (msync(map, LENGTH, MS_SYNC))
        die_errno("msync");
    int other = open_or_die(argv[0], O_RDWR);
    if (read_all(other, got, LENGTH, 0) != LENGTH || memcmp(got, want, LENGTH))
        die("read() does not see what the mapping wrote");
    write_all(other, "through the file", 16, 500000);
    if (fsync(other) || memcmp(map + 500000, "through the file", 16))
        die("the mapping does not see what write() wrote");
    if (munmap(map, LENGTH) || close(fd) || close(other))
        die_errno("munmap");
    free(want);
    free(got);
    return 0;
}

struct ranges {
    const char *path;
    int writers, blocks;
};

static int write_ranges(int self, void *user)
{
    const struct ranges *r = user;
    uint8_t *data = aligned(BLOCK);
    int fd = open_or_die(r->path, O_WRONLY);
    for (int i = self; i < r->blocks; i += r->writers) {
        pattern(9, (uint64_t)i * BLOCK, data, BLOCK);
        write_all(fd, data, BLOCK, (off_t)i * BLOCK);
    }
    free(data);
    return close(fd) ? 1 : 0;
}

/* FILE WRITERS BLOCKS: processes write their own blocks of one file concurrently; no block ends at a page boundary. */
int op_ranges(int argc, char **argv)
{
    if (argc != 3)
        die("ranges FILE WRITERS BLOCKS");
    struct ranges r = {argv[0], (int)number(argv[1]), (int)number(argv[2])};
    close(open_or_die(r.path, O_WRONLY | O_CREAT | O_TRUNC));
    if (in_processes(r.writers, write_ranges, &r) != r.writers)
        die("a writer failed");
    char length[32];
    snprintf(length, sizeof(length), "%lld", (long long)r.blocks * BLOCK);
    char zero[] = "0", seed[] = "9";
    char *check[] = {argv[0], zero, length, seed};
    return op_check(4, check);
}

struct append {
    const char *path;
    int count;
};

static int append_records(int self, void *user)
{
    const struct append *a = user;
    char record[2 * RECORD];
    int fd = open_or_die(a->path, O_WRONLY | O_APPEND);
    for (int i = 0; i < a->count; i++) {
        snprintf(record, sizeof(record), "%04d %08d %046d\n", self, i, i);
        if (write(fd, record, RECORD) != RECORD)
            die_errno("append");
    }
    return close(fd) ? 1 : 0;
}

/* FILE WRITERS COUNT: processes of one host append with O_APPEND; op_records() finds lost and torn records. */
int op_append(int argc, char **argv)
{
    if (argc != 3)
        die("append FILE WRITERS COUNT");
    struct append a = {argv[0], (int)number(argv[2])};
    int writers = (int)number(argv[1]);
    close(open_or_die(a.path, O_WRONLY | O_CREAT | O_TRUNC));
    if (in_processes(writers, append_records, &a) != writers)
        die("a writer failed");
    return op_records(argc, argv);
}

/* FILE WRITERS COUNT: checks that every record of every writer is there, and that each writer's are in order. */
int op_records(int argc, char **argv)
{
    if (argc != 3)
        die("records FILE WRITERS COUNT");
    int writers = (int)number(argv[1]), count = (int)number(argv[2]), who, i;
    int *next = calloc((size_t)writers, sizeof(int));
    char record[RECORD + 1] = "", want[2 * RECORD];
    int fd = open_or_die(argv[0], O_RDONLY);
    for (off_t at = 0; at < (off_t)writers * count * RECORD; at += RECORD) {
        if (!next || read_all(fd, record, RECORD, at) != RECORD)
            die("ends at record %lld", (long long)at / RECORD);
        if (sscanf(record, "%d %d", &who, &i) != 2 || who < 0 || who >= writers)
            die("record %lld is '%s'", (long long)at / RECORD, record);
        snprintf(want, sizeof(want), "%04d %08d %046d\n", who, i, i);
        if (strcmp(record, want) || i != next[who]++)
            die("record %lld is '%s'", (long long)at / RECORD, record);
    }
    if (read_all(fd, record, 1, (off_t)writers * count * RECORD))
        die("more than was written");
    free(next);
    close(fd);
    return 0;
}
