/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_cache.c - test the cache of open objects alone: when it gives them up, and for which others. */
#include <setjmp.h>
#include <stdarg.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/server/object_in.h"

static struct closing closing, other;

static struct kept *make(uint8_t number)
{
    struct kept *k = calloc(1, sizeof(*k));

    assert_non_null(k);
    k->closing = &closing;
    k->object.fd = open("/", O_PATH);
    k->reader = k->writer = -1;
    k->fh.length = HANDLE_MAC;
    memset(k->fh.data, number, HANDLE_MAC);
    return k;
}

static void test_idle(void **state)
{
    struct nfs3_fh one = {.length = HANDLE_MAC}, two = one;
    struct cache c;
    struct kept *k;

    (void)state;
    memset(one.data, 1, HANDLE_MAC);
    memset(two.data, 2, HANDLE_MAC);
    assert_int_equal(cache_init(&c, 100), 0);
    cache_put(&c, cache_add(&c, make(1)), 5000);
    cache_put(&c, cache_add(&c, make(2)), 10000);
    k = cache_get(&c, &two);
    assert_non_null(k);
    cache_tend(&c, &closing, 5000 + CACHE_IDLE_MS - 1);
    assert_int_equal(c.fds, 2);
    cache_tend(&c, &other, 5000 + CACHE_IDLE_MS); /* of another export */
    assert_int_equal(c.fds, 2);
    cache_tend(&c, &closing, 5000 + CACHE_IDLE_MS);
    assert_null(cache_get(&c, &one));
    assert_int_equal(c.fds, 1);
    /* The cache keeps an object in use. The time may be less than in an earlier call from another thread. */
    cache_tend(&c, &closing, 5000 + 10 * CACHE_IDLE_MS);
    cache_put(&c, k, 10000);
    cache_tend(&c, &closing, 9000);
    assert_int_equal(c.fds, 1);
    cache_tend(&c, &closing, 10000 + CACHE_IDLE_MS);
    assert_int_equal(c.fds, 0);
    cache_fini(&c);
}

/* An export whose descriptors are not closed, since its file system is silent, gives up CACHE_CLOSING_MAX of them, and
 * then those of others go instead. */
static void test_unclosed(void **state)
{
    struct cache c;

    (void)state;
    closing = other = (struct closing){0};
    for (int more = -1; more <= 1; more++) {
        assert_int_equal(cache_init(&c, 2), 0);
        cache_put(&c, cache_add(&c, make(1)), 1);
        for (uint8_t number = 2; number < 4; number++) {
            struct kept *k = make(number);

            k->closing = &other;
            cache_put(&c, cache_add(&c, k), number);
            closing.fds = (unsigned)(CACHE_CLOSING_MAX + more);
        }
        assert_int_equal(closing.objects, more < 0);
        assert_int_equal(other.objects, more >= 0);
        cache_close(&c, &closing);
        cache_close(&c, &other);
        closing = other = (struct closing){0};
        cache_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_idle), cmocka_unit_test(test_unclosed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
