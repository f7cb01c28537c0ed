/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve_view.c - READ with views of the page cache: which READs get a view, for which callers, and how a view
 * changes with its file. Also WRITE to files in memory. */
#include "nfs_serve.h"

#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/vfs.h>
#include <sys/wait.h>

/* Mount a tmpfs on the export, or skip the test. */
static int in_memory(struct bed *b, const struct export_attr *attr)
{
    identity_drop();
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", b->dir, "tmpfs", 0, "size=64m,mode=0777")) {
        print_message("SKIPPED: a tmpfs: a mount namespace of our own: %s\n", strerror(errno));
        skip();
    }
    bed_again(b, attr);
    return 0;
}

static void out_of_memory(struct bed *b, const struct export_attr *attr)
{
    bed_close(b);
    assert_int_equal(umount2(b->dir, MNT_DETACH), 0);
    bed_open(b, attr);
}

/* A READ of a file in memory gets a view, with `now` and without. */
static void reads_of_views(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_fh fh;
    struct stat st;

    in_memory(b, &attr);
    fh = file(b, "f", "0123456789", 0600);
    b->views = true;
    for (unsigned i = 0; i < 2; i++) {
        b->now = i;
        assert_int_equal(get(b, &fh, 2, 5), NFS3_OK);
        assert_true(b->view && b->served && !b->result.read.eof);
        assert_int_equal(b->result.read.count, 5);
        assert_memory_equal(b->result.read.data, "23456", 5);
        assert_ptr_not_equal(b->result.read.data, b->buffer);
        assert_int_equal(get(b, &fh, 9, 5), NFS3_OK);
        assert_true(b->view && b->result.read.eof);
        assert_int_equal(b->result.read.count, 1);
        assert_int_equal(b->result.attr.attr.size, 10);
    }
    b->now = false;
    /* A READ of no octets, and a READ at or after the end of the file, get no view. */
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(get(b, &fh, i ? 10 : 0, i), NFS3_OK);
        assert_null(b->view);
    }
    assert_int_equal(get(b, &fh, UINT64_MAX, UINT32_MAX), NFS3_OK);
    assert_null(b->view);
    /* A READ of a hole gets no view and does not fill the hole. */
    assert_int_equal(truncate(local(b, "f"), NFS3_IO_MAX), 0);
    assert_int_equal(get(b, &fh, 0, NFS3_IO_MAX), NFS3_OK);
    assert_null(b->view);
    assert_int_equal(b->result.read.count, NFS3_IO_MAX);
    assert_int_equal(stat(local(b, "f"), &st), 0);
    assert_true(st.st_blocks * 512 <= 65536);
    out_of_memory(b, &attr);
}

/* A view stays readable while it is held, after RENAME and REMOVE of its file. */
static void views_that_stay(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_fh fh;
    struct view *kept;
    const char *data;

    in_memory(b, &attr);
    b->views = true;
    fh = file(b, "f", "0123456789", 0600);
    assert_int_equal(get(b, &fh, 0, 10), NFS3_OK);
    assert_non_null(b->view);
    kept = b->view;
    data = b->result.read.data;
    b->view = NULL;
    assert_int_equal(move(b, &b->root, "f", &b->root, "g"), NFS3_OK);
    assert_int_equal(get(b, &fh, 5, 5), NFS3_OK);
    assert_ptr_equal(b->view, kept);
    assert_int_equal(put(b, &fh, 9, "ab", 2, NFS3_UNSTABLE), NFS3_OK);
    assert_int_equal(get(b, &fh, 0, 100), NFS3_OK);
    assert_memory_equal(b->result.read.data, "012345678ab", 11);
    assert_ptr_equal(b->view, kept);
    assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, "g"), NFS3_OK);
    assert_int_equal(get(b, &fh, 0, 10), NFS3ERR_STALE);
    assert_null(b->view);
    assert_memory_equal(data, "012345678a", 10);
    view_put(kept);
    out_of_memory(b, &attr);
}

static void cut(struct bed *b)
{
    enum { SIZE = 65536 };
    struct nfs3_sattr size = {.set_size = true, .size = 10};
    static char data[SIZE + 1];
    const volatile char *there;
    struct nfs3_fh fh;
    struct view *kept;

    b->views = true;
    memset(data, 'x', SIZE);
    fh = file(b, "f", data, 0600);
    assert_int_equal(get(b, &fh, 0, SIZE), NFS3_OK);
    assert_non_null(b->view);
    kept = b->view;
    there = b->result.read.data;
    b->view = NULL;
    assert_int_equal(set(b, &fh, &size), NFS3_OK);
    assert_int_equal(there[9], 'x');
    assert_int_equal(there[SIZE - 1], 0);
    assert_false(view_is_good(kept, SIZE));
    assert_int_equal(put(b, &fh, 10, data, SIZE - 10, NFS3_UNSTABLE), NFS3_OK);
    assert_int_equal(get(b, &fh, 0, SIZE), NFS3_OK);
    assert_true(b->view && b->view != kept);
    assert_memory_equal(b->result.read.data, data, SIZE);
    view_put(kept);
}

/* A held view shows zeros after its file was truncated, and the next READ gets a new view. The test runs in a child,
 * because cmocka installs its own SIGBUS handler in every test, and the server installs its handler with the first
 * view. */
static void views_that_are_cut(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    pid_t child;
    int status;

    in_memory(b, &attr);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGBUS, SIG_DFL);
        cut(b);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    out_of_memory(b, &attr);
}

/* A READ of data that is only on the disk gets no view and brings the data into memory. The READ after it gets a view.
 * */
static void views_of_a_disk(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh;
    struct statfs fs;
    int fd;

    if (statfs(b->dir, &fs) || fs.f_type != EXT4_SUPER_MAGIC) {
        print_message("SKIPPED: a view of a disk: %s is not on ext4\n", b->dir);
        skip();
    }
    fh = file(b, "f", "0123456789", 0600);
    fd = open(local(b, "f"), O_RDONLY);
    assert_int_equal(fsync(fd) | posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
    b->views = b->now = true;
    get(b, &fh, 0, 10);
    assert_false(b->served && b->view);
    b->now = false;
    assert_int_equal(get(b, &fh, 0, 10), NFS3_OK);
    assert_memory_equal(b->result.read.data, "0123456789", 10);
    assert_int_equal(get(b, &fh, 0, 10), NFS3_OK);
    assert_memory_equal(b->result.read.data, "0123456789", 10);
    assert_non_null(b->view);
}

/* A view needs the same rights as any READ. The server can find out what is in memory for a caller that may not. */
static void rights_of_views(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_fh open, closed;

    in_memory(b, &attr);
    b->views = true;
    open = file(b, "open", "0123456789", 0644);
    closed = file(b, "closed", "0123456789", 0600);
    assert_int_equal(get(b, &closed, 0, 10), NFS3_OK);
    assert_non_null(b->view);
    become(b, ALICE);
    assert_int_equal(get(b, &closed, 0, 10), identity_can_change() ? NFS3ERR_ACCES : NFS3_OK);
    assert_true(!identity_can_change() || !b->view);
    assert_int_equal(get(b, &open, 0, 10), NFS3_OK);
    assert_non_null(b->view);
    out_of_memory(b, &attr);
}

/* With `now` the server executes an unstable WRITE to a file in memory and does nothing for any other WRITE. */
static void writes_now(void **state)
{
    static const struct nfs3_result none;
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_fh fh;
    struct statfs fs;

    assert_int_equal(statfs(b->dir, &fs), 0);
    if (fs.f_type == EXT4_SUPER_MAGIC) {
        fh = file(b, "disk", "0123456789", 0600);
        b->now = true;
        put(b, &fh, 0, "abc", 3, NFS3_UNSTABLE);
        assert_false(b->served);
        assert_memory_equal(&b->result, &none, sizeof(none));
        b->now = false;
        assert_int_equal(get(b, &fh, 0, 10), NFS3_OK);
        assert_memory_equal(b->result.read.data, "0123456789", 10);
    }
    in_memory(b, &attr);
    fh = file(b, "f", "0123456789", 0600);
    b->now = true;
    for (unsigned stable = NFS3_UNSTABLE; stable <= NFS3_FILE_SYNC; stable++) {
        put(b, &fh, stable, "xyz", 3, stable);
        assert_int_equal(b->served, stable == NFS3_UNSTABLE);
    }
    put(b, &fh, UINT64_MAX, "xyz", 3, NFS3_UNSTABLE);
    assert_true(b->served && b->result.status == NFS3ERR_FBIG);
    b->now = false;
    assert_int_equal(get(b, &fh, 0, 10), NFS3_OK);
    assert_memory_equal(b->result.read.data, "xyz3456789", 10);
    out_of_memory(b, &attr);
}

int main(void)
{
    /* The test that needs the SIGBUS handler must be the first to open a view. */
    const struct CMUnitTest tests[] = {
        bed_test(views_that_are_cut), bed_test(reads_of_views),  bed_test(views_that_stay),
        bed_test(views_of_a_disk),    bed_test(rights_of_views), bed_test(writes_now),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
