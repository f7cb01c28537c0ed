/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* record.c - record marking: messages cut at any octet, and each limit one below, at, and one above. */
#include "nfs/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 100 };

static struct record_rx rx;

static int set_up(void **state)
{
    (void)state;
    record_init(&rx, MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    record_fini(&rx);
    return 0;
}

static size_t fragment(uint8_t *to, const char *text, bool last)
{
    size_t n = strlen(text);

    record_mark(to, n);
    if (!last)
        to[0] &= 0x7f;
    memcpy(to + RECORD_MARK, text, n);
    return RECORD_MARK + n;
}

static void check_taken(const char *text)
{
    size_t length;
    uint8_t *data = record_take(&rx, &length);

    assert_int_equal(length, strlen(text));
    assert_memory_equal(data, text, length);
    free(data);
    assert_false(record_is_open(&rx));
}

static int eat_mark(uint32_t word)
{
    uint8_t mark[] = {(uint8_t)(word >> 24), (uint8_t)(word >> 16), (uint8_t)(word >> 8), (uint8_t)word};
    size_t eaten;
    int error = record_eat(&rx, mark, sizeof(mark), &eaten);

    assert_int_equal(eaten, 4);
    return error;
}

static void mark_of_a_message(void **state)
{
    static const uint8_t expected[] = {0x80, 0x10, 0x00, 0x2c};
    uint8_t mark[RECORD_MARK];

    (void)state;
    record_mark(mark, 0x10002c);
    assert_memory_equal(mark, expected, sizeof(mark));
}

/* Two messages, the first in three fragments, arrive in pieces of every size. */
static void every_cut(void **state)
{
    uint8_t stream[64];
    size_t n = fragment(stream, "ab", false);

    (void)state;
    n += fragment(stream + n, "c", false);
    n += fragment(stream + n, "defgh", true);
    n += fragment(stream + n, "next", true);
    for (size_t step = 1; step <= n; step++) {
        unsigned whole = 0;

        for (size_t at = 0, eaten; at < n; at += eaten) {
            size_t part = n - at < step ? n - at : step;
            int error = record_eat(&rx, stream + at, part, &eaten);

            assert_in_range(eaten, 1, part);
            assert_true(error == 1 || (error == 0 && eaten == part && record_is_open(&rx)));
            if (error == 1)
                check_taken(whole++ ? "next" : "abcdefgh");
        }
        assert_int_equal(whole, 2);
    }
}

/* The caller may read the octets after a mark directly into the message. */
static void read_into_place(void **state)
{
    uint8_t *at;

    (void)state;
    assert_int_equal(record_space(&rx, &at), 0);
    assert_int_equal(eat_mark(3), 0);
    assert_int_equal(record_space(&rx, &at), 3);
    memcpy(at, "abc", 3);
    assert_int_equal(record_put(&rx, 3), 0);
    assert_int_equal(record_space(&rx, &at), 0);
    assert_int_equal(eat_mark(RECORD_LAST | 2), 0);
    assert_int_equal(record_space(&rx, &at), 2);
    *at = 'd';
    assert_int_equal(record_put(&rx, 1), 0);
    assert_int_equal(record_space(&rx, &at), 1);
    *at = 'e';
    assert_int_equal(record_put(&rx, 1), 1);
    check_taken("abcde");
}

static void an_empty_message(void **state)
{
    (void)state;
    assert_int_equal(eat_mark(RECORD_LAST), 1);
    check_taken("");
    assert_int_equal(eat_mark(1), 0);
    assert_int_equal(eat_mark(0x61000000), 0); /* the message's octet, and three octets of another mark */
    assert_true(record_is_open(&rx));
}

static void empty_fragments(void **state)
{
    (void)state;
    assert_int_equal(eat_mark(0), -EBADMSG);
}

static void the_longest_message(void **state)
{
    uint8_t *at;

    (void)state;
    for (uint32_t n = MAX - 1; n <= MAX + 1; n++) {
        record_fini(&rx);
        assert_int_equal(eat_mark(RECORD_LAST | n), n <= MAX ? 0 : -EMSGSIZE);
        /* Repeat this with two fragments. The second mark is refused if the message becomes too long. */
        record_fini(&rx);
        assert_int_equal(eat_mark(MAX - 10), 0);
        record_put(&rx, (uint32_t)record_space(&rx, &at));
        assert_int_equal(eat_mark(RECORD_LAST | (n - MAX + 10)), n <= MAX ? 0 : -EMSGSIZE);
    }
    record_fini(&rx);
    assert_int_equal(eat_mark(0x7fffffff), -EMSGSIZE);
    record_fini(&rx);
    assert_int_equal(eat_mark(0xffffffff), -EMSGSIZE);
}

static void fragments_without_end(void **state)
{
    static const uint8_t one[] = {0, 0, 0, 1, 'x'}, last[] = {0x80, 0, 0, 0};
    size_t eaten;

    (void)state;
    for (unsigned n = RECORD_FRAGMENTS - 1; n <= RECORD_FRAGMENTS + 1; n++) {
        record_fini(&rx);
        record_init(&rx, 2 * RECORD_FRAGMENTS);
        for (unsigned i = 0; i < n - 1; i++)
            assert_int_equal(record_eat(&rx, one, sizeof(one), &eaten), 0);
        assert_int_equal(record_eat(&rx, last, sizeof(last), &eaten), n <= RECORD_FRAGMENTS ? 1 : -EBADMSG);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mark_of_a_message), TEST(every_cut),           TEST(read_into_place),       TEST(an_empty_message),
        TEST(empty_fragments),   TEST(the_longest_message), TEST(fragments_without_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
