/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_land.c - a body over a stream whose peer, or a box on the path, marks octets for the wrong place in the file, or
 * for a file that is already closed: the file has what was sent, and nothing is read from where it was. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The tool is a program: what is to be tested of it comes in by its source. */
#include "http/io.c"
#include "http/landing.c"
#include "tools/xfer/store.c"

#include "tests/lib/marked.h"
#include "tests/lib/rng.h"

bool temp_unique(char temp[XFER_NAME + 1], const char *name)
{
    return snprintf(temp, XFER_NAME + 1, ".%s.part", name) > 0;
}

void temp_name(char temp[XFER_NAME + 1], const char *name, const struct path_stamp *stamp)
{
    (void)name;
    (void)stamp;
    strcpy(temp, ".part");
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

enum { PART = 1000, PARTS = 12, LENGTH = PART * PARTS, HEAD = 200, RID = 3, ROUNDS = 300 };

static uint8_t octets[LENGTH + HEAD];
static char dir[] = "/tmp/rddp-land-XXXXXX";
static struct rddp_stream *s;
static struct http_in in;
static struct http_out out;
static struct landing landing;

static int land_set_up(void **state)
{
    struct rng r = {11};

    (void)state;
    rng_fill(&r, octets, sizeof(octets));
    s = marked_open();
    strcpy(dir + sizeof(dir) - 7, "XXXXXX");
    if (!mkdtemp(dir) || !http_io_open(&in, &out, s) ||
        landing_open(&landing, open(dir, O_RDONLY | O_DIRECTORY), "f", LENGTH, LENGTH) || !landing.map)
        return -1;
    landing.lands = !rddp_stream_expect(s, RID, landing.map, landing.mapped);
    return !landing.lands;
}

static int land_tear_down(void **state)
{
    (void)state;
    landing_drop(&landing);
    free(in.scratch);
    free(out.ring);
    marked_close(s);
    unlinkat(AT_FDCWD, dir, AT_REMOVEDIR);
    return 0;
}

/* Part `i` of the stream is marked for part `to` of the file; below 0: not at all. */
static void bring(uint32_t i, int to)
{
    struct tcpopt o = marked_option(RID, (uint32_t)to * PART, PART);

    marked_segment(s, (uint64_t)i * PART, octets + (size_t)i * PART, PART, to < 0 ? NULL : &o);
}

static void take_body(void)
{
    while (landing.position < LENGTH && http_in_look(&in) > 0) {
        size_t left = LENGTH - landing.position, n = in.left < left ? in.left : left;
        int error = http_in_land(&in, &landing, RID, n);

        assert_true(!error || error == -EAGAIN);
        if (!error)
            http_in_took(&in, n);
    }
}

/* The file is closed and looked at. */
static void finish_file(void)
{
    char name[sizeof(dir) + 8];
    uint8_t got[LENGTH + 1];
    int fd;

    assert_int_equal(landing.position, LENGTH);
    http_in_forget(&in, RID);
    assert_int_equal(landing_finish(&landing, false), 0);
    snprintf(name, sizeof(name), "%s/f", dir);
    fd = open(name, O_RDONLY);
    assert_int_equal(read(fd, got, sizeof(got)), LENGTH);
    close(fd);
    unlink(name);
    assert_memory_equal(got, octets, LENGTH);
}

/* What follows the body was marked for the file, too, and is read when the file is no longer mapped. */
static void head_in_the_file(void **state)
{
    struct tcpopt o = marked_option(RID, 5 * PART, HEAD);

    (void)state;
    marked_segment(s, LENGTH, octets + LENGTH, HEAD, &o);
    for (uint32_t i = 0; i < PARTS; i++)
        bring(i, (int)i);
    take_body();
    finish_file();
    assert_int_equal(http_in_look(&in), 1);
    assert_false(in.placed);
    assert_int_equal(in.left, HEAD);
    assert_memory_equal(in.at, octets + LENGTH, HEAD);
}

/* The same, but body and head are one record: the rest of it is in hand when the file goes. */
static void record_in_hand(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PARTS; i++)
        bring(i, (int)i);
    assert_int_equal(http_in_look(&in), 1);
    http_in_took(&in, LENGTH - HEAD);
    http_in_forget(&in, RID);
    munmap(landing.map, landing.mapped);
    landing.map = NULL;
    assert_int_equal(http_in_look(&in), 1);
    assert_int_equal(in.left, HEAD);
    assert_memory_equal(in.at, octets + LENGTH - HEAD, HEAD);
}

/* Segments lose their option, or have that of another: each file is what was sent. */
static void wrong_marks(void **state)
{
    static const int8_t rows[][PARTS] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},          /* all is right */
        {0, 1, 2, -1, -1, 5, 6, 7, -1, 9, 10, 11},       /* some have lost it */
        {0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},           /* one was copied, and all behind are off */
        {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},          /* no place is right */
        {-1, -1, -1, -1, 0, 0, 1, 2, -1, 9, 3, 4},       /* places that were written to */
        {5, -1, -1, -1, -1, -1, 5, 6, 7, 8, 9, 10},      /* a place that will be */
        {-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0},          /* a place in front, read later */
        {0, 1, 2, 3, 11, 10, 9, 8, 4, 5, 6, 7},          /* two halves change places */
        {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0}, /* none but the last, which is not the first */
    };

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
        for (uint32_t step = 1; step <= PARTS; step += PARTS - 1) { /* read after each, or after all */
            if (row || step > 1)
                assert_int_equal(land_set_up(state), 0);
            for (uint32_t i = 0; i < PARTS; i++) {
                bring(i, rows[row][i]);
                if (step == 1)
                    take_body();
            }
            take_body();
            finish_file();
            if (row + 1 < sizeof(rows) / sizeof(rows[0]) || step == 1)
                land_tear_down(state);
        }
}

/* Any marks: no octet of the file is told twice or left out, and each that counts as placed was placed. */
static void any_marks(void **state)
{
    struct rng r = {23};

    for (int round = 0; round < ROUNDS; round++) {
        if (round)
            assert_int_equal(land_set_up(state), 0);
        for (uint32_t i = 0; i < PARTS; i++) {
            uint32_t kind = rng_below(&r, 4);

            bring(i, kind < 2 ? (int)i : kind == 2 ? -1 : (int)rng_below(&r, PARTS));
            if (!rng_below(&r, 3))
                take_body();
        }
        take_body();
        assert_true(landing.placed <= LENGTH);
        finish_file();
        if (round + 1 < ROUNDS)
            land_tear_down(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(head_in_the_file, land_set_up, land_tear_down),
        cmocka_unit_test_setup_teardown(record_in_hand, land_set_up, land_tear_down),
        cmocka_unit_test_setup_teardown(wrong_marks, land_set_up, land_tear_down),
        cmocka_unit_test_setup_teardown(any_marks, land_set_up, land_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
