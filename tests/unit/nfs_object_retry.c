/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_object_retry.c - test that the server tries OPEN_TRIES times to open a handle if the kernel fails. */
#define _GNU_SOURCE
#include "tests/unit/nfs_object.h"

#include <sys/syscall.h>

#include "nfs/server/object_in.h"

static int failures, tries;

/* This function replaces the C library's function and fails `failures` times. */
int open_by_handle_at(int mount, struct file_handle *handle, int flags)
{
    tries++;
    if (failures) {
        failures--;
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_open_by_handle_at, mount, handle, flags);
}

static void test_retry(void **state)
{
    struct nfs3_fh fh;

    (void)state;
    if (objects->place->mount < 0)
        skip(); /* the process may not use kernel handles */
    make_file("in/file", "x");
    fh = look("file");
    for (int n = 0; n <= OPEN_TRIES; n++) {
        restart();
        tries = 0;
        failures = n;
        expect_status(&fh, n < OPEN_TRIES ? NFS3_OK : NFS3ERR_JUKEBOX);
        assert_int_equal(tries, n < OPEN_TRIES ? n + 1 : OPEN_TRIES);
        failures = 0;
    }
    expect_is(&fh, "in/file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_retry, setup, teardown)};

    kernel = true;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
