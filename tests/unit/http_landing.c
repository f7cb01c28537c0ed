/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_landing.c - the space that a file takes on the disk follows the octets that come, whatever was said about its
 * length; it has a name when all of it is stored, and not before; no file is replaced that was not to be. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A file system that cannot make files without a name, and one that says at close() that it is full. */
static bool no_tmpfile;
static int close_error;

static int test_openat(int parent, const char *name, int flags, mode_t mode)
{
    if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return openat(parent, name, flags, mode);
}

static int test_close(int fd)
{
    int got = close(fd);

    if (!close_error)
        return got;
    errno = close_error;
    return -1;
}

/* The tool is a program: what is to be tested of it comes in by its source. */
#define openat test_openat
#define close test_close
#include "http/landing.c"
#include "tools/xfer/store.c"
#undef openat
#undef close

bool temp_unique(char temp[XFER_NAME + 1], const char *name)
{
    return snprintf(temp, XFER_NAME + 1, ".%s.part", name) > 0;
}

void temp_name(char temp[XFER_NAME + 1], const char *name, const struct path_stamp *stamp)
{
    (void)name;
    (void)stamp;
    strcpy(temp, ".same");
}

int temp_find(int parent, const char *temp)
{
    int fd = openat(parent, temp, O_RDWR | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int temp_make(int parent, char temp[XFER_NAME + 1], const char *name)
{
    int fd = openat(parent, temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

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
    assert_int_equal(landing_finish(&landing, 0), 0);
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
    assert_int_equal(landing_finish(&landing, 0), 0);
    snprintf(path, sizeof(path), "%s/file", dir);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

static char folder[] = "/tmp/rddp-landing-XXXXXX";

static unsigned names_in_folder(void)
{
    DIR *names = opendir(folder);
    unsigned n = 0;

    assert_non_null(names);
    for (const struct dirent *entry; (entry = readdir(names));)
        n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(names);
    return n;
}

/* Writes `text` as the file "f"; what landing_finish() says. */
static int write_file(const char *text, unsigned flags)
{
    struct landing landing;

    assert_int_equal(landing_open(&landing, open(folder, O_RDONLY | O_DIRECTORY), "f", 0, 0), 0);
    assert_int_equal(landing_take(&landing, (const uint8_t *)text, strlen(text), false), 0);
    return landing_finish(&landing, flags);
}

static void assert_file_is(const char *text)
{
    char path[64], got[64] = "";
    int fd;

    snprintf(path, sizeof(path), "%s/f", folder);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, got, sizeof(got) - 1) >= 0);
    close(fd);
    assert_string_equal(got, text);
    assert_int_equal(names_in_folder(), 1);
}

static void begin_folder(bool without_tmpfile)
{
    no_tmpfile = without_tmpfile;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void end_folder(void)
{
    char path[64];

    no_tmpfile = false;
    snprintf(path, sizeof(path), "%s/f", folder);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

/* What a killed process leaves: nothing, or one temporary that the next one takes. */
static void leaves_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct landing landing, next;

        begin_folder(i);
        assert_int_equal(landing_open(&landing, open(folder, O_RDONLY | O_DIRECTORY), "f", 0, 0), 0);
        assert_int_equal(landing_take(&landing, (const uint8_t *)"abc", 3, false), 0);
        if (!i && landing.temp[0])
            print_message("/tmp has no O_TMPFILE\n");
        assert_int_equal(names_in_folder(), landing.temp[0] != 0);
        close(landing.fd);
        close(landing.parent);
        assert_int_equal(landing_open(&next, open(folder, O_RDONLY | O_DIRECTORY), "f", 0, 0), 0);
        assert_int_equal(names_in_folder(), next.temp[0] != 0);
        landing_drop(&next);
        assert_int_equal(names_in_folder(), 0);
        end_folder();
    }
}

/* RFC 9110, section 13.1.2: a file that has come meanwhile stays. */
static void replaces_or_not(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin_folder(i);
        assert_int_equal(write_file("first", LANDING_NEW), 0);
        assert_file_is("first");
        assert_int_equal(write_file("second", LANDING_NEW), -EEXIST);
        assert_file_is("first");
        assert_int_equal(write_file("third", LANDING_SYNC), 0);
        assert_file_is("third");
        end_folder();
    }
}

/* What could not be stored takes nothing's place. */
static void hears_of_close(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin_folder(i);
        assert_int_equal(write_file("first", 0), 0);
        close_error = ENOSPC;
        assert_int_equal(write_file("second", 0), -ENOSPC);
        close_error = 0;
        assert_file_is("first");
        end_folder();
    }
}

/* What was broken off is kept to be gone on with, and nothing of it is asked for again: so it is kept only if it is
 * stored. */
static void keeps_what_is_stored(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct landing landing;

        begin_folder(i & 1);
        assert_int_equal(landing_open(&landing, open(folder, O_RDONLY | O_DIRECTORY), "f", 0, 0), 0);
        assert_int_equal(landing_take(&landing, (const uint8_t *)"abc", 3, false), 0);
        close_error = i & 2 ? ENOSPC : 0;
        assert_int_equal(landing_keep(&landing, "f"), -close_error);
        assert_int_equal(names_in_folder(), !close_error);
        close_error = 0;
        end_folder();
    }
}

/* A process that goes on with a part can be killed: of what it has written nothing is known to be stored. */
static void goes_on_with_what_is_stored(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct landing landing;

        begin_folder(i);
        assert_int_equal(landing_open(&landing, open(folder, O_RDONLY | O_DIRECTORY), "f", 0, 0), 0);
        assert_int_equal(landing_take(&landing, (const uint8_t *)"abc", 3, false), 0);
        assert_int_equal(landing_keep(&landing, "part"), 0);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(landing_resume(&landing, open(folder, O_RDONLY | O_DIRECTORY), "f", "part", 0), 0);
            assert_int_equal(landing.start, 3);
            if (!again)
                assert_int_equal(landing_keep(&landing, "part"), 0);
        }
        assert_int_equal(landing_take(&landing, (const uint8_t *)"def", 3, false), 0);
        landing_close(&landing); /* as the kernel does it */
        assert_int_equal(landing_resume(&landing, open(folder, O_RDONLY | O_DIRECTORY), "f", "part", 0), -ENOENT);
        assert_int_equal(names_in_folder(), 0);
        end_folder();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_comes),
        cmocka_unit_test(little),
        cmocka_unit_test(leaves_nothing),
        cmocka_unit_test(replaces_or_not),
        cmocka_unit_test(hears_of_close),
        cmocka_unit_test(keeps_what_is_stored),
        cmocka_unit_test(goes_on_with_what_is_stored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
