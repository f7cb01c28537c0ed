/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_view.c - views of files: files grow, are truncated and are removed while a view is open; limits on views; and
 * SIGBUS faults outside of views go to the earlier handler. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/server/view.h"

enum { KILLED = 1000, PAGES = 8 };

static size_t page;

/* Create a file in memory with `size` octets 'x'. */
static int file_of(size_t size)
{
    int fd = memfd_create("view", MFD_CLOEXEC);

    for (size_t i = 0; i < size; i++)
        if (write(fd, "x", 1) != 1)
            return -1;
    return fd;
}

static bool is_all(const uint8_t *at, size_t n, uint8_t octet)
{
    for (size_t i = 0; i < n; i++)
        if (((const volatile uint8_t *)at)[i] != octet)
            return false;
    return true;
}

/* Run `run` in a child without a core dump. Return its exit code, or KILLED plus the signal that ended it. */
static int in_child(int (*run)(void))
{
    const struct rlimit none = {0, 0};
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &none);
        alarm(10); /* a fault that no handler resolves repeats forever */
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        _exit(run());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : KILLED + WTERMSIG(status);
}

/* --- what is seen ----------------------------------------------------------------------------------------------- */

static void grows(void **state)
{
    int fd = file_of(page);
    struct view *view = view_open(fd, page);

    (void)state;
    assert_non_null(view);
    assert_true(view_is_good(view, page));
    assert_true(is_all(view_at(view, 0), page, 'x'));
    assert_true(view_is_resident(view, 0, page));
    assert_int_equal(ftruncate(fd, (off_t)(3 * page)), 0);
    assert_int_equal(pwrite(fd, "yz", 2, (off_t)page), 2);
    assert_true(view_is_good(view, 3 * page));
    assert_true(view_is_resident(view, page, 2));
    assert_memory_equal(view_at(view, page), "yz", 2);
    /* A hole is not resident. */
    assert_false(view_is_resident(view, page, page + 1));
    assert_false(view_is_resident(view, 2 * page, 1));
    view_put(view);
    close(fd);
}

/* A view is good up to the end of its mapping, less the last page, which never belongs to the file. */
static void space_to_grow(void **state)
{
    static const uint64_t row[] = {0, 1, VIEW_ROUND - 1, VIEW_ROUND, VIEW_ROUND + 1, (uint64_t)VIEW_ROUND * 3 / 2};

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        int fd = file_of(0);
        struct view *view;
        uint64_t end;

        assert_int_equal(ftruncate(fd, (off_t)row[i]), 0);
        view = view_open(fd, row[i]);
        assert_non_null(view);
        end = ((row[i] + page) / VIEW_ROUND + 1) * VIEW_ROUND;
        assert_true(view_is_good(view, row[i]));
        assert_true(view_is_good(view, end - page));
        assert_false(view_is_good(view, end - page + 1));
        assert_false(view_is_good(view, UINT64_MAX));
        view_put(view);
        close(fd);
    }
}

static int cut(void)
{
    int fd = file_of(PAGES * page);
    struct view *view = view_open(fd, PAGES * page), *other = view_open(fd, PAGES * page);

    if (!view || !other || !view_is_resident(view, 0, PAGES * page))
        return 1;
    if (ftruncate(fd, (off_t)(4 * page + 1)) || view_is_resident(view, 0, PAGES * page))
        return 2;
    if (!is_all(view_at(view, 0), 4 * page + 1, 'x') || !view_is_good(view, page))
        return 3;
    errno = EXDEV;
    if (!is_all(view_at(view, 4 * page + 1), 4 * page - 1, 0) || errno != EXDEV)
        return 4;
    /* The fault makes this view bad and leaves the other view good. */
    if (view_is_good(view, page) || !view_is_good(other, page))
        return 5;
    /* The faulted page of this view stays zero, and a new view shows the file's data. */
    if (pwrite(fd, "yyyy", 4, (off_t)(6 * page)) != 4 || !is_all(view_at(view, 6 * page), 4, 0))
        return 6;
    view_put(view);
    view = view_open(fd, PAGES * page);
    if (!view_is_good(view, page) || !is_all(view_at(view, 6 * page), 4, 'y') || !is_all(view_at(other, 0), page, 'x'))
        return 7;
    view_put(view);
    view_put(other);
    return 0;
}

static void is_cut(void **state)
{
    (void)state;
    assert_int_equal(in_child(cut), 0);
}

/* A view stays readable until its last user puts it, after unlink() of the file and close() of the descriptor. */
static void is_removed(void **state)
{
    char path[] = "/tmp/rddp-view.XXXXXX";
    int fd = mkstemp(path);
    struct view *view;
    uint8_t *data = memset(malloc(page), 'x', page);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, page), page);
    view = view_open(fd, page);
    assert_int_equal(unlink(path), 0);
    close(fd);
    free(data);
    if (!view)
        skip(); /* the file system does not support views */
    assert_ptr_equal(view_get(view), view);
    view_put(view);
    assert_true(is_all(view_at(view, 0), page, 'x'));
    view_put(view);
}

static void none_of_these(void **state)
{
    int fd = open("/proc/self/maps", O_RDONLY), pipes[2];

    (void)state;
    assert_null(view_open(fd, 100));
    close(fd);
    assert_null(view_open(-1, 100));
    assert_int_equal(pipe(pipes), 0);
    assert_null(view_open(pipes[0], 100));
    close(pipes[0]);
    close(pipes[1]);
    view_put(NULL);
}

/* The kernel does not tell a user which pages of another user's file are resident if the user may only read it.
 * view_is_resident() must return false then. */
static int foreign(void)
{
    char path[64];
    int fd = file_of(page), mine;
    struct view *view;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    mine = open(path, O_RDONLY);
    if (geteuid() || fchmod(fd, 0444) || setresuid(12345, 12345, 12345))
        return 77;
    view = view_open(mine, page);
    return !view ? 1 : view_is_resident(view, 0, page) ? 2 : 0;
}

static void not_told(void **state)
{
    int error = in_child(foreign);

    (void)state;
    if (error == 77) {
        print_message("SKIPPED: to be another user: not root\n");
        skip();
    }
    assert_int_equal(error, 0);
}

/* --- limits ----------------------------------------------------------------------------------------------------- */

static void how_many(void **state)
{
    static struct view *view[VIEWS_MAX + 1];
    int fd = file_of(page);

    (void)state;
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < VIEWS_MAX; i++) {
            view[i] = view_open(fd, page);
            assert_non_null(view[i]);
        }
        assert_null(view_open(fd, page));
        view_put(view[VIEWS_MAX / 2]);
        view[VIEWS_MAX / 2] = view_open(fd, page);
        assert_non_null(view[VIEWS_MAX / 2]);
        assert_null(view_open(fd, page));
        for (unsigned i = 0; i < VIEWS_MAX; i++)
            view_put(view[i]);
    }
    close(fd);
}

/* All views together span at most view_span_max() octets. */
static void how_much(void **state)
{
    uint64_t max = view_span_max(), half = max / VIEW_ROUND / 2 * VIEW_ROUND;
    struct view *first, *second;
    int fd = file_of(page);

    (void)state;
    if (!max)
        skip();
    assert_null(view_open(fd, max + 1));
    assert_null(view_open(fd, UINT64_MAX));
    first = view_open(fd, half - page - 1);
    assert_non_null(first);
    assert_null(view_open(fd, max - half + VIEW_ROUND));
    second = view_open(fd, half - page - 1);
    assert_non_null(second);
    assert_null(view_open(fd, 2 * VIEW_ROUND));
    view_put(first);
    view_put(second);
    first = view_open(fd, max - 2 * VIEW_ROUND);
    assert_non_null(first);
    view_put(first);
    close(fd);
}

/* --- the handler of before -------------------------------------------------------------------------------------- */

/* Fault outside of every view while a view is open. */
static int stray(void)
{
    int fd = file_of(page);
    struct view *view = view_open(fd, page);
    const volatile uint8_t *at = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0);

    return view && at != MAP_FAILED ? at[page] : 99;
}

static int sent(void)
{
    int fd = file_of(page);

    return view_open(fd, page) ? raise(SIGBUS) : 99;
}

static void seen(int signal)
{
    _exit(signal == SIGBUS ? 43 : 44);
}

static void seen_with_info(int signal, siginfo_t *info, void *context)
{
    _exit(signal == SIGBUS && info->si_code == BUS_ADRERR && context ? 45 : 46);
}

static int stray_and_handler(void)
{
    signal(SIGBUS, seen);
    return stray();
}

static int stray_and_action(void)
{
    struct sigaction action = {.sa_sigaction = seen_with_info, .sa_flags = SA_SIGINFO};

    sigaction(SIGBUS, &action, NULL);
    return stray();
}

static int stray_and_default(void)
{
    signal(SIGBUS, SIG_DFL);
    return stray();
}

static int stray_and_ignored(void)
{
    signal(SIGBUS, SIG_IGN);
    return stray();
}

static int sent_and_default(void)
{
    signal(SIGBUS, SIG_DFL);
    return sent();
}

static int sent_and_ignored(void)
{
    signal(SIGBUS, SIG_IGN);
    return sent() ? 1 : sent();
}

static void other_faults(void **state)
{
    (void)state;
    assert_int_equal(in_child(stray_and_default), KILLED + SIGBUS);
    assert_int_equal(in_child(stray_and_ignored), KILLED + SIGBUS);
    assert_int_equal(in_child(stray_and_handler), 43);
    assert_int_equal(in_child(stray_and_action), 45);
    assert_int_equal(in_child(sent_and_default), KILLED + SIGBUS);
    assert_int_equal(in_child(sent_and_ignored), 0);
}

int main(void)
{
    /* Tests that must be the first to open a view come first. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_faults),  cmocka_unit_test(is_cut),        cmocka_unit_test(not_told),
        cmocka_unit_test(grows),         cmocka_unit_test(space_to_grow), cmocka_unit_test(is_removed),
        cmocka_unit_test(none_of_these), cmocka_unit_test(how_many),      cmocka_unit_test(how_much),
    };

    page = (size_t)sysconf(_SC_PAGESIZE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
