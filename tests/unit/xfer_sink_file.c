/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer_sink_file.c - how a sink writes one file: each octet once, under the name of a temporary that is its own. */
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>

#include "tests/unit/xfer_sink.h"

static void covers_each_octet_once(void **state)
{
    struct xfer_record file = {.type = XFER_FILE, .id = 1, .size = 100, .path = "f"};
    struct xfer_record end = {.type = XFER_FILE_END, .id = 1};
    static const uint8_t data[101] = {1};

    (void)state;
    octets = data;
    for (uint32_t n = 99; n <= 101; n++) {
        begin(ORDER_ANY);
        digest_of_file(data, n, 0, end.digest);
        assert_int_equal(tell(file), XFER_OK);
        assert_int_equal(tell((struct xfer_record){.type = XFER_DATA_HERE, .length = n}), n > 100 ? XFER_PROTOCOL : 0);
        assert_int_equal(tell(end), n > 100 ? XFER_PROTOCOL : n < 100 ? XFER_MISMATCH : XFER_OK);
        assert_int_equal(exists("copy/f"), n == 100);
        unlinkat(base, "copy/f", 0);
    }
    for (uint64_t n = 98; n <= 100; n++) {
        begin(ORDER_ANY);
        digest_of_file(data, 1, n, end.digest);
        assert_int_equal(tell(file), XFER_OK);
        assert_int_equal(tell((struct xfer_record){.type = XFER_DATA_HERE, .length = 1}), XFER_OK);
        assert_int_equal(tell((struct xfer_record){.type = XFER_HOLE_HERE, .size = n}), n > 99 ? XFER_PROTOCOL : 0);
        assert_int_equal(tell(end), n > 99 ? XFER_PROTOCOL : n < 99 ? XFER_MISMATCH : XFER_OK);
        assert_int_equal(exists("copy/f"), n == 99);
        unlinkat(base, "copy/f", 0);
    }
}

/* A file system, or a limit of the process, that has no files of this size. */
static void refuses_size_at_once(void **state)
{
    const uint64_t most = XFER_RESUMABLE;
    struct rlimit limit, before;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (uint64_t size = most - 1; size <= most + 1; size++) {
        begin(ORDER_ANY);
        assert_int_equal(tell((struct xfer_record){.type = XFER_FILE, .id = 1, .size = size, .path = "f"}),
                         size > most ? XFER_TOO_BIG : XFER_OK);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    /* The largest file of ext4 has 16 TiB, that of tmpfs 8 EiB. */
    for (int bit = 40; bit < 63; bit++) {
        const uint64_t size = UINT64_C(1) << bit;
        int fd = openat(base, "other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        bool possible = !ftruncate(fd, (off_t)size);

        close(fd);
        begin(ORDER_ANY);
        assert_int_equal(tell((struct xfer_record){.type = XFER_FILE, .id = 1, .size = size, .path = "f"}),
                         possible ? XFER_OK : XFER_TOO_BIG);
    }
    begin(ORDER_ANY);
    assert_int_equal(tell((struct xfer_record){.type = XFER_FILE, .id = 1, .size = UINT64_MAX, .path = "f"}),
                     XFER_TOO_BIG);
}

/* Whether the file was opened meanwhile. */
static bool was_opened(int watch)
{
    struct inotify_event event;
    bool opened = false;

    while (read(watch, &event, sizeof(event)) == sizeof(event))
        opened = opened || event.mask & IN_OPEN;
    return opened;
}

/* A process that waits to write to a pipe must not find a reader. */
static void opens_no_pipe(void **state)
{
    const struct path_stamp stamp = {.size = XFER_RESUMABLE, .seconds = TIME};
    char temp[XFER_NAME + 1], path[sizeof(top) + XFER_NAME + 16];
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    (void)state;
    temp_name(temp, "f", &stamp);
    for (int is_temp_name = 0; is_temp_name < 2; is_temp_name++) {
        snprintf(path, sizeof(path), "%s/copy/%s", top, is_temp_name ? temp : "f");
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
        begin(ORDER_ANY);
        sink.checksum = true;
        tell_offer("f", stamp.size);
        assert_int_equal(said.type, XFER_HAVE);
        assert_int_equal(said.offset, 0);
        assert_false(was_opened(watch));
        assert_int_equal(tell_file("f", "x", 1, stamp.size - 1), XFER_OK);
        assert_false(was_opened(watch));
        assert_int_equal(unlinkat(base, "copy/f", 0), 0);
    }
    close(watch);
}

/* A temporary that is not ours may stay where it is, but must keep no user from the file. Ours has one name. */
static void goes_round_foreign_temporaries(void **state)
{
    const struct path_stamp stamp = {.size = 3, .seconds = TIME};
    char temp[XFER_NAME + 1], path[XFER_NAME + 8];

    (void)state;
    temp_name(temp, "f", &stamp);
    snprintf(path, sizeof(path), "copy/%s", temp);
    close(openat(base, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(linkat(base, path, base, "other", 0), 0);
    begin(ORDER_ANY);
    tell_offer("f", 3);
    assert_int_equal(tell_file("f", "abc", 3, 0), XFER_OK);
    assert_true(exists(path));
    begin(ORDER_ANY); /* nor may a client name one itself */
    assert_int_equal(tell_file(temp, "abc", 3, 0), XFER_BAD_NAME);
    assert_int_equal(tell_link(temp, "x"), XFER_BAD_NAME);
    assert_int_equal(tell_directory(temp), XFER_BAD_NAME);
}

/* What has the name of the temporary at the end must be what was received. */
static void publishes_what_it_received(void **state)
{
    const struct path_stamp stamp = {.size = 3, .seconds = TIME};
    char temp[XFER_NAME + 1], path[XFER_NAME + 8];
    struct xfer_record end = {.type = XFER_FILE_END, .id = 1};

    (void)state;
    temp_name(temp, "f", &stamp);
    snprintf(path, sizeof(path), "copy/%s", temp);
    begin(ORDER_ANY);
    assert_int_equal(tell((struct xfer_record){.type = XFER_FILE, .id = 1, .size = 3, .seconds = TIME, .path = "f"}),
                     XFER_OK);
    octets = (const uint8_t *)"abc";
    assert_int_equal(tell((struct xfer_record){.type = XFER_DATA_HERE, .length = 3}), XFER_OK);
    close(openat(base, "other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(renameat(base, "other", base, path), 0);
    digest_of_file("abc", 3, 0, end.digest);
    assert_int_equal(tell(end), XFER_CHANGED);
    assert_false(exists("copy/f"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(covers_each_octet_once, make_top, remove_top),
        cmocka_unit_test_setup_teardown(refuses_size_at_once, make_top, remove_top),
        cmocka_unit_test_setup_teardown(opens_no_pipe, make_top, remove_top),
        cmocka_unit_test_setup_teardown(goes_round_foreign_temporaries, make_top, remove_top),
        cmocka_unit_test_setup_teardown(publishes_what_it_received, make_top, remove_top),
    };

    init_sink();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
