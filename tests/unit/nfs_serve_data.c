/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve_data.c - test READ, WRITE, COMMIT and READLINK: the end of a file, the largest offsets, a full disk, and
 * the reply if data does not reach the disk. */
#include "nfs_serve.h"

#include "nfs/server/object_in.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { SLOW_NS = 300000000, SECOND_NS = 1000000000 };

/* fsync() and fdatasync() replace the C library's functions. They count their calls and fail if sync_error is set. So
 * does close() of what was opened for writing, if close_error is set: the descriptor is closed all the same. */
static unsigned syncs, data_syncs;
static int sync_error, close_error;

/* Such a close() may take as long as a server in the net wants, while others go on. */
static struct slow_close {
    bool slow, entered, answered;
    pthread_mutex_t lock;
    pthread_cond_t change;
} slow_close = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* Returns when the COMMIT beside it is answered, or when it seems to wait for this close(). */
static void close_slowly(struct slow_close *c)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SLOW_NS;
    if (until.tv_nsec >= SECOND_NS) {
        until.tv_nsec -= SECOND_NS;
        until.tv_sec++;
    }
    pthread_mutex_lock(&c->lock);
    c->entered = true;
    pthread_cond_broadcast(&c->change);
    while (!c->answered && !pthread_cond_timedwait(&c->change, &c->lock, &until))
        ;
    pthread_mutex_unlock(&c->lock);
}

int close(int fd)
{
    bool writes = close_error && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int got;

    if (writes && slow_close.slow)
        close_slowly(&slow_close);
    got = (int)syscall(SYS_close, fd);
    if (!writes)
        return got;
    errno = close_error;
    return -1;
}

int fsync(int fd)
{
    syncs++;
    errno = sync_error;
    return sync_error ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    data_syncs++;
    errno = sync_error;
    return sync_error ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* preadv2() with flags finds this number of a file's octets in memory; -1: the file system refuses the flags. */
static ssize_t cached = INT64_MAX;

ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    ssize_t there = cached < at ? 0 : cached - at;

    if (n != 1 || (flags && there < 1 && cached < INT64_MAX)) {
        errno = n != 1 ? EINVAL : cached < 0 ? EOPNOTSUPP : EAGAIN;
        return -1;
    }
    return pread(fd, iov->iov_base, flags && (size_t)there < iov->iov_len ? (size_t)there : iov->iov_len, at);
}

/* A READ that may not wait serves all the data, or serves nothing and leaves the result empty. */
static void reads_now(void **state)
{
    static const struct {
        ssize_t cached;
        bool served;
    } row[] = {{-1, false}, {0, false}, {9, false}, {10, true}, {INT64_MAX, true}};
    static const struct nfs3_result none;
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "0123456789", 0600);

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        b->now = true;
        cached = row[i].cached;
        get(b, &fh, 0, 10);
        assert_int_equal(b->served, row[i].served);
        if (row[i].served)
            assert_memory_equal(b->result.read.data, "0123456789", 10);
        else
            assert_memory_equal(&b->result, &none, sizeof(none));
        b->now = false;
        assert_int_equal(get(b, &fh, 0, 10), NFS3_OK);
        assert_int_equal(b->result.read.count, 10);
    }
    cached = INT64_MAX;
}

static void reads(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "0123456789", 0600), empty = file(b, "e", "", 0600);
    static const struct {
        uint64_t offset;
        uint32_t count, got;
        bool eof;
    } row[] = {
        {0, 10, 10, true},
        {0, 9, 9, false},
        {0, 11, 10, true},
        {9, 1, 1, true},
        {8, 1, 1, false},
        {10, 1, 0, true},
        {10, 0, 0, true},
        {9, 0, 0, false},
        {0, 0, 0, false},
        {11, 5, 0, true},
        {3, UINT32_MAX, 7, true},
        {INT64_MAX, 1, 0, true},
        {INT64_MAX - 1, 100, 0, true},
        {(uint64_t)INT64_MAX + 1, 1, 0, true},
        {UINT64_MAX, 1, 0, true},
        {UINT64_MAX, UINT32_MAX, 0, true},
        {UINT64_MAX - 4, 5, 0, true},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        assert_int_equal(get(b, &fh, row[i].offset, row[i].count), NFS3_OK);
        assert_int_equal(b->result.read.count, row[i].got);
        assert_int_equal(b->result.read.eof, row[i].eof);
        assert_memory_equal(b->result.read.data, &"0123456789"[row[i].got ? row[i].offset : 0], row[i].got);
        assert_int_equal(b->result.attr.attr.size, 10);
    }
    assert_int_equal(get(b, &empty, 0, 0), NFS3_OK);
    assert_true(b->result.read.eof);
    b->space = 4; /* the transport has room for fewer octets */
    assert_int_equal(get(b, &fh, 0, 10), NFS3_OK);
    assert_int_equal(b->result.read.count, 4);
    assert_false(b->result.read.eof);
}

static void large_read(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "", 0600);

    assert_int_equal(truncate(local(b, "f"), NFS3_IO_MAX + 1), 0);
    assert_int_equal(get(b, &fh, 0, NFS3_IO_MAX + 1), NFS3_OK);
    assert_int_equal(b->result.read.count, NFS3_IO_MAX);
    assert_false(b->result.read.eof);
    assert_int_equal(get(b, &fh, 1, NFS3_IO_MAX), NFS3_OK);
    assert_int_equal(b->result.read.count, NFS3_IO_MAX);
    assert_true(b->result.read.eof);
}

/* READ, WRITE and COMMIT refuse an object that is not a regular file; READLINK refuses all but a link. */
static void wrong_types(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh, f = file(b, "f", "", 0600);
    const char *name[] = {"d", "l", "p"};

    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    assert_int_equal(symlink("f", local(b, "l")), 0);
    assert_int_equal(mkfifo(local(b, "p"), 0600), 0);
    for (unsigned i = 0; i < 3; i++) {
        fh = lookup(b, name[i]);
        assert_int_equal(get(b, &fh, 0, 1), NFS3ERR_INVAL);
        assert_true(b->result.attr.present);
        assert_int_equal(put(b, &fh, 0, "x", 1, NFS3_UNSTABLE), NFS3ERR_INVAL);
        assert_true(b->result.wcc.had && b->result.wcc.after.present);
        assert_int_equal(simple(b, NFS3_COMMIT, &fh), NFS3ERR_INVAL);
        if (i != 1)
            assert_int_equal(simple(b, NFS3_READLINK, &fh), NFS3ERR_INVAL);
    }
    assert_int_equal(simple(b, NFS3_READLINK, &f), NFS3ERR_INVAL);
}

static void writes(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "0123456789", 0600);
    union nfs3_args args = {.write = {.fh = fh, .count = 3, .data = "abc", .length = 2}};
    struct nfs3_time mtime;
    struct stat st;

    assert_int_equal(put(b, &fh, 8, "abcd", 4, NFS3_UNSTABLE), NFS3_OK);
    assert_int_equal(b->result.write.count, 4);
    assert_int_equal(b->result.write.committed, NFS3_UNSTABLE);
    assert_memory_equal(b->result.write.verifier, "verified", 8);
    assert_int_equal(b->result.wcc.size, 10);
    assert_int_equal(b->result.wcc.after.attr.size, 12);
    assert_int_equal(get(b, &fh, 0, 100), NFS3_OK);
    assert_memory_equal(b->result.read.data, "01234567abcd", 12);
    /* A WRITE of zero octets changes nothing. */
    mtime = b->result.attr.attr.mtime;
    assert_int_equal(put(b, &fh, 100, "", 0, NFS3_FILE_SYNC), NFS3_OK);
    assert_int_equal(b->result.wcc.after.attr.size, 12);
    assert_memory_equal(&b->result.wcc.after.attr.mtime, &mtime, sizeof(mtime));
    /* A WRITE far beyond the end of the file makes a hole. */
    assert_int_equal(put(b, &fh, 1ULL << 40, "z", 1, NFS3_UNSTABLE), NFS3_OK);
    assert_int_equal(get(b, &fh, (1ULL << 40) - 2, 100), NFS3_OK);
    assert_int_equal(b->result.read.count, 3);
    assert_true(b->result.read.eof);
    assert_memory_equal(b->result.read.data, "\0\0z", 3);
    assert_int_equal(stat(local(b, "f"), &st), 0);
    assert_true(st.st_blocks * 512 < 1 << 20);
    assert_int_equal(b->result.attr.attr.used, st.st_blocks * 512);
    assert_int_equal(call(b, NFS3_WRITE, &args), NFS3ERR_INVAL);
    args.write.length = 4;
    assert_int_equal(call(b, NFS3_WRITE, &args), NFS3ERR_INVAL);
}

static void far_writes(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "0123456789", 0600);
    static const uint64_t far[] = {INT64_MAX,  INT64_MAX - 1,  (uint64_t)INT64_MAX + 1,
                                   UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2};

    for (size_t i = 0; i < sizeof(far) / sizeof(*far); i++) {
        union nfs3_args args = {.range = {fh, far[i], UINT32_MAX}};

        assert_int_equal(put(b, &fh, far[i], "abc", 3, NFS3_FILE_SYNC), NFS3ERR_FBIG);
        assert_int_equal(b->result.wcc.after.attr.size, 10);
        assert_int_equal(call(b, NFS3_COMMIT, &args), NFS3_OK);
    }
    assert_int_equal(get(b, &fh, 0, 100), NFS3_OK);
    assert_memory_equal(b->result.read.data, "0123456789", 10);
}

/* The server syncs as much as the requested level needs, and reports this level. */
static void levels(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "", 0600);

    syncs = data_syncs = 0;
    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_UNSTABLE), NFS3_OK);
    assert_int_equal(syncs + data_syncs, 0);
    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_DATA_SYNC), NFS3_OK);
    assert_int_equal(b->result.write.committed, NFS3_DATA_SYNC);
    assert_int_equal(data_syncs, 1);
    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_FILE_SYNC), NFS3_OK);
    assert_int_equal(b->result.write.committed, NFS3_FILE_SYNC);
    assert_int_equal(syncs, 1);
    assert_int_equal(simple(b, NFS3_COMMIT, &fh), NFS3_OK);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    assert_memory_equal(b->result.write.verifier, "verified", 8);
    assert_int_equal(syncs, 2);
}

/* If a sync fails, the COMMIT or WRITE that needs it fails, and the verifier in later replies changes. */
static void lost_data(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "", 0600), other = file(b, "g", "", 0600);
    uint8_t verifier[NFS3_VERIFIER];

    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_UNSTABLE), NFS3_OK);
    sync_error = EIO;
    assert_int_equal(simple(b, NFS3_COMMIT, &fh), NFS3ERR_IO);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    sync_error = 0;
    assert_int_equal(simple(b, NFS3_COMMIT, &other), NFS3_OK);
    assert_memory_not_equal(b->result.write.verifier, "verified", 8);
    memcpy(verifier, b->result.write.verifier, sizeof(verifier));
    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_UNSTABLE), NFS3_OK);
    assert_memory_equal(b->result.write.verifier, verifier, 8);
    sync_error = EIO;
    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_FILE_SYNC), NFS3ERR_IO);
    sync_error = ENOSPC;
    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_DATA_SYNC), NFS3ERR_NOSPC);
    sync_error = 0;
    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_UNSTABLE), NFS3_OK);
    assert_memory_not_equal(b->result.write.verifier, verifier, 8);
    assert_memory_not_equal(b->result.write.verifier, "verified", 8);
}

/* Some file systems store what was written at close(), and say there what they have lost. The server closes a file that
 * is not written to for a while, and one that it has no space for: a COMMIT after that must not be answered with the
 * old verifier.
 */
static void lost_at_close(void **state)
{
    struct bed *b = *state;
    struct objects *objects = b->server.objects;
    struct nfs3_fh fh = file(b, "f", "", 0600);
    uint8_t verifier[NFS3_VERIFIER];

    for (int tends = 0; tends < 2; tends++) {
        for (int fails = 0; fails < 2; fails++) {
            assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_UNSTABLE), NFS3_OK);
            memcpy(verifier, b->result.write.verifier, sizeof(verifier));
            close_error = fails ? ENOSPC : 0;
            cache_tend(&objects->cache, &objects->place->closing,
                       now_ms() + 1 + (tends ? CACHE_WRITER_MS : CACHE_IDLE_MS));
            close_error = 0;
            assert_int_equal(simple(b, NFS3_COMMIT, &fh), NFS3_OK);
            assert_int_equal(memcmp(b->result.write.verifier, verifier, sizeof(verifier)) != 0, fails);
        }
    }
}

static void *evict_all(void *user)
{
    struct objects *objects = user;

    cache_tend(&objects->cache, &objects->place->closing, now_ms() + 1 + CACHE_IDLE_MS);
    return NULL;
}

/* The same while another thread is still closing the file, and this one has opened it once more. */
static void lost_at_slow_close(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "", 0600);
    uint8_t verifier[NFS3_VERIFIER];
    struct slow_close *c = &slow_close;
    enum nfs3_status status;
    pthread_t other;

    assert_int_equal(put(b, &fh, 0, "abc", 3, NFS3_UNSTABLE), NFS3_OK);
    memcpy(verifier, b->result.write.verifier, sizeof(verifier));
    close_error = ENOSPC;
    c->slow = true;
    assert_int_equal(pthread_create(&other, NULL, evict_all, b->server.objects), 0);
    pthread_mutex_lock(&c->lock);
    while (!c->entered)
        pthread_cond_wait(&c->change, &c->lock);
    pthread_mutex_unlock(&c->lock);
    status = simple(b, NFS3_COMMIT, &fh);
    pthread_mutex_lock(&c->lock);
    c->answered = true;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    pthread_join(other, NULL);
    close_error = 0;
    c->slow = false;
    assert_int_equal(status, NFS3_OK);
    assert_memory_not_equal(b->result.write.verifier, verifier, sizeof(verifier));
}

/* The server syncs changed names before it replies (RFC 1813 4.7), unless the export is async. */
static void stable_names(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_sattr mode = {.set_mode = true, .mode = 0700};
    union nfs3_args args;
    struct nfs3_fh dir, fh;

    syncs = 0;
    assert_int_equal(by_name(b, NFS3_MKDIR, &b->root, "d"), NFS3_OK);
    assert_int_equal(by_name(b, NFS3_CREATE, &b->root, "x"), NFS3_OK);
    assert_int_equal(syncs, 0);
    attr.async = false;
    bed_again(b, &attr);
    dir = lookup(b, "d");
    for (enum nfs3_proc proc = NFS3_CREATE; proc <= NFS3_MKNOD; proc++) {
        static const char *const name[] = {"f", "e", "l", "p"};

        syncs = 0;
        assert_int_equal(by_name(b, proc, &b->root, name[proc - NFS3_CREATE]), NFS3_OK);
        assert_int_equal(syncs, proc == NFS3_CREATE ? 2 : 1);
    }
    syncs = 0;
    assert_int_equal(by_name(b, NFS3_CREATE, &b->root, "f"), NFS3ERR_EXIST);
    assert_int_equal(syncs, 0);
    /* CREATE of a file that exists may cut it: the file and the directory. */
    args =
        (union nfs3_args){.make = {.where = where(&b->root, "f"), .how = NFS3_UNCHECKED, .attr = {.set_size = true}}};
    assert_int_equal(call(b, NFS3_CREATE, &args), NFS3_OK);
    assert_int_equal(syncs, 2);
    syncs = 0;
    fh = lookup(b, "f");
    assert_int_equal(hard_link(b, &fh, &dir, "g"), NFS3_OK);
    assert_int_equal(syncs, 1);
    assert_int_equal(move(b, &b->root, "f", &dir, "h"), NFS3_OK);
    assert_int_equal(syncs, 3);
    assert_int_equal(move(b, &dir, "h", &dir, "i"), NFS3_OK);
    assert_int_equal(syncs, 4);
    assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, "p"), NFS3_OK);
    assert_int_equal(by_name(b, NFS3_RMDIR, &b->root, "e"), NFS3_OK);
    assert_int_equal(syncs, 6);
    assert_int_equal(set(b, &dir, &mode), NFS3_OK);
    assert_int_equal(set(b, &fh, &mode), NFS3_OK);
    assert_int_equal(syncs, 8);
    sync_error = EIO;
    assert_int_equal(by_name(b, NFS3_MKDIR, &b->root, "q"), NFS3ERR_IO);
    sync_error = 0;
}

static void links(void **state)
{
    struct bed *b = *state;
    union nfs3_args args = {.make = {.where = where(&b->root, "l")}};
    char target[NFS3_PATH_MAX];
    struct nfs3_fh fh;

    memset(target, 0xff, sizeof(target)); /* 0xff is never valid in UTF-8 */
    args.make.target = (struct nfs3_text){target, 4095};
    assert_int_equal(call(b, NFS3_SYMLINK, &args), NFS3_OK);
    assert_int_equal(b->result.attr.attr.type, NFS3_LNK);
    assert_true(b->result.made.present);
    fh = b->result.made.fh;
    assert_int_equal(simple(b, NFS3_READLINK, &fh), NFS3_OK);
    assert_int_equal(b->result.target.length, 4095);
    assert_memory_equal(b->result.target.at, target, 4095);
    args.make.where = where(&b->root, "m");
    args.make.target.length = 4096;
    assert_int_equal(call(b, NFS3_SYMLINK, &args), NFS3ERR_NAMETOOLONG);
    args.make.target.length = 0;
    assert_int_equal(call(b, NFS3_SYMLINK, &args), NFS3ERR_INVAL);
    args.make.target = (struct nfs3_text){"a\0b", 3};
    assert_int_equal(call(b, NFS3_SYMLINK, &args), NFS3ERR_INVAL);
    args.make.target = text("../../etc/passwd");
    assert_int_equal(call(b, NFS3_SYMLINK, &args), NFS3_OK);
    fh = b->result.made.fh;
    assert_int_equal(simple(b, NFS3_READLINK, &fh), NFS3_OK);
    assert_memory_equal(b->result.target.at, "../../etc/passwd", 16);
}

/* The WRITE that fills the disk reports how many octets were written; the next WRITE fails with NFS3ERR_NOSPC. */
static void full(void **state)
{
    enum { DISK = 1 << 20 };
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    uint8_t *data;
    struct nfs3_fh fh;
    uint64_t at = 0;

    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", b->dir, "tmpfs", 0, "size=1m,nr_inodes=8")) {
        print_message("SKIPPED: a full disk: a mount namespace of our own: %s\n", strerror(errno));
        skip();
    }
    data = calloc(1, NFS3_IO_MAX);
    bed_again(b, &attr);
    fh = file(b, "f", "", 0600);
    assert_int_equal(put(b, &fh, 100, data, NFS3_IO_MAX, NFS3_FILE_SYNC), NFS3_OK);
    assert_in_range(b->result.write.count, DISK - 4096, DISK - 1);
    at = 100 + b->result.write.count;
    assert_int_equal(b->result.wcc.after.attr.size, at);
    assert_int_equal(put(b, &fh, at, data, 4096, NFS3_UNSTABLE), NFS3ERR_NOSPC);
    assert_int_equal(b->result.wcc.after.attr.size, at);
    assert_int_equal(simple(b, NFS3_FSSTAT, &b->root), NFS3_OK);
    assert_int_equal(b->result.fsstat.total_bytes, DISK);
    assert_int_equal(b->result.fsstat.available_bytes, 0);
    for (unsigned i = 0; i < 8; i++) {
        char name[] = {(char)('m' + i), 0};

        if (by_name(b, NFS3_MKDIR, &b->root, name) != NFS3_OK)
            break;
    }
    assert_int_equal(b->result.status, NFS3ERR_NOSPC);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    bed_close(b);
    assert_int_equal(umount2(b->dir, MNT_DETACH), 0);
    bed_open(b, &attr);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bed_test(reads),
        bed_test(reads_now),
        bed_test(large_read),
        bed_test(wrong_types),
        bed_test(writes),
        bed_test(far_writes),
        bed_test(levels),
        bed_test(lost_data),
        bed_test(stable_names),
        bed_test(links),
        bed_test(full),
        bed_test(lost_at_close),
        bed_test(lost_at_slow_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
