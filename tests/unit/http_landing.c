/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_landing.c - the space that a file takes on the disk follows the octets that come, whatever was said about its
 * length. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The tool is a program: what is to be tested of it comes in by its source. */
#include "http/landing.c"

bool temp_unique(char temp[XFER_NAME + 1], const char *name)
{
    return snprintf(temp, XFER_NAME + 1, ".%s.part", name) > 0;
}

int temp_make(int parent, char temp[XFER_NAME + 1], const char *name)
{
    int fd = openat(parent, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    (void)name;
    return fd < 0 ? -errno : fd;
}

enum { AHEAD = 1 << 20, SPACE = 64 << 20, BLOCK = 512, STEP = 100000 };

static uint64_t used(const struct landing *landing)
{
    struct stat st;

    assert_int_equal(fstat(landing->fd, &st), 0);
    return (uint64_t)st.st_blocks * BLOCK;
}

/* A large body is announced; then all of it comes, placed where there is space for it. */
static void takes_what_comes(void **state)
{
    char dir[] = "/tmp/rddp-landing-XXXXXX", path[64];
    struct landing landing;
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(landing_open(&landing, open(dir, O_RDONLY | O_DIRECTORY), "file", SPACE, AHEAD), 0);
    if (!landing.map) { /* a file system without fallocate() */
        landing_drop(&landing);
        rmdir(dir);
        skip();
    }
    assert_true(used(&landing) <= 2 * AHEAD);
    assert_false(landing_grow(&landing));
    while (landing.position < SPACE) {
        size_t n = SPACE - landing.position < STEP ? (size_t)(SPACE - landing.position) : STEP;

        assert_true(landing.reserved >= landing.position + n);
        memset(landing.map + landing.position, (int)(landing.position % 251), n);
        assert_int_equal(landing_take(&landing, landing.map + landing.position, n, true), 0);
        landing_grow(&landing);
        assert_true(used(&landing) <= landing.position + 2 * AHEAD);
    }
    assert_true(landing.placed == SPACE);
    assert_int_equal(landing_finish(&landing, false), 0);
    snprintf(path, sizeof(path), "%s/file", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size == SPACE);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

/* A file that is no longer than what is reserved ahead. */
static void little(void **state)
{
    char dir[] = "/tmp/rddp-landing-XXXXXX", path[64];
    struct landing landing;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(landing_open(&landing, open(dir, O_RDONLY | O_DIRECTORY), "file", STEP, AHEAD), 0);
    assert_false(landing_grow(&landing));
    assert_int_equal(landing_take(&landing, (const uint8_t *)"abc", 3, false), 0);
    assert_int_equal(landing_finish(&landing, false), 0);
    snprintf(path, sizeof(path), "%s/file", dir);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_what_comes), cmocka_unit_test(little)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
