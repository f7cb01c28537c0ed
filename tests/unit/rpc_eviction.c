/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_place.c - the connection that gives way when there is no place for another: each limit one below, at, and above.
 * */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "rpc/eviction.h"

enum { MAX = 8, ADDRESS_MAX = 4, REST_MS = 1000 };

static const struct place_limits limits = {MAX, ADDRESS_MAX, REST_MS};
static struct sockaddr_storage peer[MAX + 1];
static struct rpc_place place[MAX + 1];

static struct sockaddr_storage address(unsigned i, bool v6)
{
    struct sockaddr_storage a = {.ss_family = v6 ? AF_INET6 : AF_INET};

    if (v6)
        ((struct sockaddr_in6 *)(void *)&a)->sin6_addr.s6_addr[15] = (uint8_t)i;
    else
        ((struct sockaddr_in *)(void *)&a)->sin_addr.s_addr = htonl(i);
    /* The port is arbitrary. */
    ((struct sockaddr_in *)(void *)&a)->sin_port = htons((uint16_t)(1000 + i * 7));
    return a;
}

/* Connection `i` comes from address `from` and has been idle for `idle_ms`. */
static void set(unsigned i, unsigned from, bool v6, uint64_t idle_ms)
{
    peer[i] = address(from, v6);
    place[i] = (struct rpc_place){.peer = &peer[i], .idle_ms = idle_ms};
}

static int find(unsigned n, unsigned from, bool v6)
{
    struct sockaddr_storage newcomer = address(from, v6);

    return place_find(place, n, &limits, &newcomer);
}

/* Connections from different addresses, up to the limit of all connections. */
static void limit_of_all(void **state)
{
    (void)state;
    for (int v6 = 0; v6 < 2; v6++) {
        for (unsigned i = 0; i < MAX; i++)
            set(i, 100 + i, v6, REST_MS + 10 * (i ^ 3));
        assert_int_equal(find(0, 1, v6), PLACE_FREE);
        assert_int_equal(find(MAX - 1, 1, v6), PLACE_FREE);
        assert_int_equal(find(MAX, 1, v6), 4); /* 4 ^ 3 is 7, the longest idle time */
        place[4].is_busy = true;
        assert_int_equal(find(MAX, 1, v6), 5);
    }
}

/* A connection that was idle for less than REST_MS stays, and so does a busy connection. */
static void nobody_can(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MAX; i++) {
        set(i, 100 + i, false, i % 2 ? REST_MS - 1 : 1 << 20);
        place[i].is_busy = i % 2 == 0;
    }
    assert_int_equal(find(MAX, 1, false), PLACE_NONE);
    place[3].idle_ms = REST_MS;
    assert_int_equal(find(MAX, 1, false), 3);
}

/* A newcomer from an address at its limit replaces a connection of the same address, even when there is room. */
static void limit_of_an_address(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ADDRESS_MAX; i++)
        set(i, 7, true, REST_MS + i);
    set(ADDRESS_MAX, 8, true, 1 << 20);
    assert_int_equal(find(ADDRESS_MAX - 1, 7, true), PLACE_FREE);
    assert_int_equal(find(ADDRESS_MAX + 1, 7, true), ADDRESS_MAX - 1);
    assert_int_equal(find(ADDRESS_MAX + 1, 8, true), PLACE_FREE);
    for (unsigned i = 0; i < ADDRESS_MAX; i++)
        place[i].is_busy = true;
    assert_int_equal(find(ADDRESS_MAX + 1, 7, true), PLACE_NONE);
}

/* When all places are taken, the address with the most connections gives way, however long others have been idle. */
static void who_has_most(void **state)
{
    static const unsigned from[MAX] = {1, 2, 2, 3, 3, 3, 4, 5};

    (void)state;
    for (unsigned i = 0; i < MAX; i++)
        set(i, from[i], false, i < 3 ? (1 << 20) - i : REST_MS + i);
    assert_int_equal(find(MAX, 9, false), 5);
    place[5].is_busy = place[4].is_busy = place[3].is_busy = true;
    assert_int_equal(find(MAX, 9, false), 1);
    /* A newcomer with an IPv6 address gets a free place. */
    assert_int_equal(find(3, 2, true), PLACE_FREE);
}

/* The octets of an IPv4 address lie where an IPv6 address has its flow label. */
static void families(void **state)
{
    struct sockaddr_storage v4 = address(7, false), v6 = address(0, true);

    (void)state;
    ((struct sockaddr_in6 *)(void *)&v6)->sin6_flowinfo = htonl(7);
    assert_false(place_same_address(&v4, &v6));
    assert_false(place_same_address(&v6, &v4));
    assert_true(place_same_address(&v4, &v4) && place_same_address(&v6, &v6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limit_of_all), cmocka_unit_test(nobody_can), cmocka_unit_test(limit_of_an_address),
        cmocka_unit_test(who_has_most), cmocka_unit_test(families),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
