/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer_file.c - a received file gets its name when all of it has come, is right, and is stored; otherwise there is no
 * file, or still the old one. */
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

/* A file system that reports a full disk at close() or fsync(), as network file systems do. */
static int close_error, fsync_error;

static int test_close(int fd)
{
    int got = close(fd);

    if (!close_error)
        return got;
    errno = close_error;
    return -1;
}

static int test_fsync(int fd)
{
    (void)fd;
    errno = fsync_error;
    return fsync_error ? -1 : 0;
}

/* The tool is a program: what is to be tested of it comes in by its source. */
#define close test_close
#define fsync test_fsync
#include "tools/xfer/store.c"
#undef close
#undef fsync
#include "tools/xfer/digest.c"
#include "tools/xfer/file.c"
#include "tools/xfer/hole.c"
#include "tools/xfer/path.c"
#include "tools/xfer/temp.c"
#include "tools/xfer/text.c"

static char folder[] = "/tmp/rddp-xfer-XXXXXX";
static int parent = -1;

static int open_folder(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    close_error = fsync_error = 0;
    if (!mkdtemp(folder))
        return -1;
    parent = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return parent < 0 ? -1 : 0;
}

static int close_folder(void **state)
{
    (void)state;
    unlinkat(parent, "f", 0);
    close(parent);
    return rmdir(folder); /* fails if something was left behind */
}

static void hash(const char *text, uint8_t value[XFER_DIGEST])
{
    struct file_digest digest;

    assert_true(digest_open(&digest));
    digest_octets(&digest, (const uint8_t *)text, strlen(text));
    digest_value(&digest, value);
    digest_close(&digest);
}

/* Receives `text` as the file "f". */
static enum xfer_result receive_file(const char *text, bool sync)
{
    const struct file_new new = {.name = "f", .stamp = {.size = strlen(text), .seconds = 7}, .mode = 0644};
    struct file_in file;
    uint8_t digest[XFER_DIGEST];

    hash(text, digest);
    assert_int_equal(file_open(&file, parent, &new, NULL), XFER_OK);
    file.sync = sync;
    assert_int_equal(file_write(&file, (const uint8_t *)text, strlen(text)), XFER_OK);
    return file_finish(&file, digest);
}

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

static void assert_file_is(const char *text)
{
    char got[64] = "";
    int fd = openat(parent, "f", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_true(read(fd, got, sizeof(got) - 1) >= 0);
    close(fd);
    assert_string_equal(got, text);
    assert_int_equal(names_in_folder(), 1);
}

static void publishes_what_is_stored(void **state)
{
    (void)state;
    assert_int_equal(receive_file("first", false), XFER_OK);
    assert_file_is("first");
    close_error = ENOSPC;
    assert_int_equal(receive_file("second", false), XFER_FULL);
    assert_file_is("first");
    assert_int_equal(receive_file("third", true), XFER_FULL);
    assert_file_is("first");
    close_error = 0;
    fsync_error = EIO;
    assert_int_equal(receive_file("fourth", true), XFER_IO);
    assert_file_is("first");
    assert_int_equal(receive_file("fifth", false), XFER_OK);
    assert_file_is("fifth");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(publishes_what_is_stored, open_folder, close_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
