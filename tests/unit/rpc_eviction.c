/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_eviction.c - the connection that gives way when there is no place for another: each limit one below, at, and
 * above.
 * */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/eviction.h"

enum { MAX = 8, ADDRESS_MAX = 4, REST_MS = 1000 };

static const struct eviction_limits limits = {MAX, ADDRESS_MAX, REST_MS};
static struct sockaddr_storage peer[MAX + 1];
static struct rpc_eviction place[MAX + 1];

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
    place[i] = (struct rpc_eviction){.peer = &peer[i], .idle_ms = idle_ms};
}

static int find(unsigned n, unsigned from, bool v6)
{
    struct sockaddr_storage newcomer = address(from, v6);

    return eviction_find(place, n, &limits, &newcomer);
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
    assert_false(eviction_same_address(&v4, &v6));
    assert_false(eviction_same_address(&v6, &v4));
    assert_true(eviction_same_address(&v4, &v4) && eviction_same_address(&v6, &v6));
}

/* Busy connections, none of which may be closed for being idle: an address with two more than the newcomer's gives one
 * up, the one that is idle longest. */
static void shares_busy_places(void **state)
{
    static const unsigned from[MAX] = {1, 2, 2, 3, 3, 3, 4, 5};

    (void)state;
    for (unsigned i = 0; i < MAX; i++) {
        set(i, from[i], false, i == 4 ? 2 : 1);
        place[i].is_busy = true;
    }
    for (unsigned i = 1; i <= 5; i++) {
        struct sockaddr_storage newcomer = address(i, false);

        assert_int_equal(eviction_find(place, MAX, &limits, &newcomer), PLACE_NONE);
        assert_int_equal(eviction_find_fair(place, MAX, &limits, &newcomer), i == 2 || i == 3 ? PLACE_NONE : 4);
        assert_int_equal(eviction_find_fair(place, MAX - 1, &limits, &newcomer), PLACE_FREE);
    }
    for (unsigned i = 0; i < MAX; i++) /* one from each address */
        set(i, 1 + i, false, 1);
    struct sockaddr_storage newcomer = address(9, false);

    assert_int_equal(eviction_find_fair(place, MAX, &limits, &newcomer), PLACE_NONE);
    place[6].idle_ms = REST_MS;
    assert_int_equal(eviction_find_fair(place, MAX, &limits, &newcomer), 6);
}

static struct sockaddr_storage from_text(const char *text)
{
    struct sockaddr_storage a = {.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&a;
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&a;

    assert_int_equal(inet_pton(a.ss_family, text, a.ss_family == AF_INET6 ? (void *)&v6->sin6_addr : &v4->sin_addr), 1);
    return a;
}

/* A host has as many addresses of its IPv6 network as it likes: together they have no more places than another. Who is
 * in the same network is served as long as the others have more places than he by one address. Addresses of one link
 * and those of IPv4 are hosts. */
static void shares_by_network(void **state)
{
    static const struct {
        const char *from[MAX], *newcomer;
        int gives;
    } row[] = {
        {{"fd00::1", "fd00::2", "fd00::3", "fd00::4", "fd00::5", "fd00::6", "fd00::7", "fd00::8"}, "fd00:0:0:1::1", 7},
        {{"fd00::1", "fd00::2", "fd00::3", "fd00::4", "fd00::5", "fd00::6", "fd00::7", "fd00::8"}, "1.1.1.1", 7},
        {{"fd00::1", "fd00::2", "fd00::3", "fd00::4", "fd00::5", "fd00::6", "fd00::7", "fd00::8"},
         "fd00::9",
         PLACE_NONE},
        {{"fd00::1", "fd00::2", "fd00::2", "fd00::4", "fd00::5", "fd00::6", "fd00::7", "fd00::8"}, "fd00::9", 2},
        {{"fd00::1", "fd00::2", "fd00::2", "fd00::4", "fd00::5", "fd00::6", "fd00::7", "fd00::8"},
         "fd00::1",
         PLACE_NONE},
        {{"fd00::1", "fd00::2", "fd00::2", "fd00::4", "fd01::1", "fd01::1", "fd01::1", "fd02::1"}, "fd02::1", 2},
        {{"fd00::1", "fd00::2", "fd00::2", "fd01::2", "fd01::2", "fd01::2", "1.1.1.1", "1.1.1.2"}, "1.1.1.1", 5},
        {{"fe80::1", "fe80::2", "fe80::3", "fe80::4", "fe80::5", "fe80::6", "fe80::7", "fe80::8"},
         "fd00::1",
         PLACE_NONE},
        {{"::ffff:1.1.1.1", "::ffff:1.1.1.2", "::ffff:1.1.1.3", "::ffff:1.1.1.4", "::ffff:1.1.1.5", "::ffff:1.1.1.6",
          "::ffff:1.1.1.7", "::ffff:1.1.1.8"},
         "fd00::1",
         PLACE_NONE},
        {{"::1", "::2", "::3", "::4", "::ffff:1.1.1.1", "::ffff:1.1.1.1", "::ffff:1.1.1.1", "::ffff:1.1.1.2"},
         "fd00::1",
         3},
    };

    (void)state;
    for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
        struct sockaddr_storage newcomer = from_text(row[k].newcomer);

        for (unsigned i = 0; i < MAX; i++) {
            peer[i] = from_text(row[k].from[i]);
            place[i] = (struct rpc_eviction){.peer = &peer[i], .idle_ms = i, .is_busy = true};
        }
        assert_int_equal(eviction_find_fair(place, MAX, &limits, &newcomer), row[k].gives);
    }
}

/* No address gets more than the limit of an address because others have even more. */
static void keeps_to_its_limit(void **state)
{
    static const struct eviction_limits two = {MAX, 2, REST_MS};
    struct sockaddr_storage newcomer = address(1, false);

    (void)state;
    for (unsigned i = 0; i < MAX; i++) {
        set(i, i < 2 ? 1 : 2, false, 1);
        place[i].is_busy = true;
    }
    assert_int_equal(eviction_find_fair(place, MAX, &two, &newcomer), PLACE_NONE);
    set(1, 2, false, 1);
    place[1].is_busy = true;
    assert_true(eviction_find_fair(place, MAX, &two, &newcomer) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limit_of_all),
        cmocka_unit_test(nobody_can),
        cmocka_unit_test(limit_of_an_address),
        cmocka_unit_test(who_has_most),
        cmocka_unit_test(families),
        cmocka_unit_test(shares_busy_places),
        cmocka_unit_test(shares_by_network),
        cmocka_unit_test(keeps_to_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
