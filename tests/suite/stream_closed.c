/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_closed.c - a program closes all descriptors beside a context and a network of streams, and opens files of its
 * own at their numbers: the streams fail, and none of the files is written, read or closed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <rddp/rddp.h>

#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/stream_path.h"

enum { FILES = 64, CHILD_S = 30 };

/* Fills all numbers up to those that the library had. */
static void open_files(int file[FILES])
{
    for (int i = 0; i < FILES; i++) {
        file[i] = memfd_create("file of the program", 0);
        if (file[i] < 0 || write(file[i], "mine", 4) != 4)
            _exit(3);
    }
}

static bool are_whole(const int file[FILES])
{
    struct stat about;

    for (int i = 0; i < FILES; i++)
        if (fstat(file[i], &about) || about.st_size != 4 || lseek(file[i], 0, SEEK_CUR) != 4)
            return false;
    return true;
}

/* Before the path was opened there was a context (`first`), or there is one since. */
static void close_all(bool first)
{
    const struct stream_path_attr attr = {.v6 = false};
    struct rddp_context *context = first ? rddp_open(NULL) : NULL;
    struct stream_path p;
    int file[FILES];

    stream_path_open(&p, &attr);
    if (!first)
        context = rddp_open(NULL);
    if (!context || rddp_stream_write(p.end[0], "octets", 6, 0, NULL))
        _exit(4);
    closefrom(STDERR_FILENO + 1);
    open_files(file);
    (void)rddp_stream_write(p.end[0], "more", 4, 0, NULL);
    for (int end = 0; end < 2; end++)
        if (rddp_stream_progress(p.net[end], 0) != -ENODEV)
            _exit(5);
    if (!are_whole(file))
        _exit(6);
    stream_path_close(&p);
    if (rddp_close(context))
        _exit(7);
    _exit(are_whole(file) ? 0 : 8);
}

static void run(bool first)
{
    pid_t child = fork_apart(CHILD_S);
    int status;

    if (!child)
        close_all(first);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void context_before(void **state)
{
    (void)state;
    run(true);
}

static void context_since(void **state)
{
    (void)state;
    run(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_before),
        cmocka_unit_test(context_since),
    };

    if (!network_own()) {
        print_message("cannot run here: no network namespace, or no TUN device\n");
        return 77;
    }
    return cmocka_run_group_tests_name("stream_closed", tests, NULL, NULL);
}
