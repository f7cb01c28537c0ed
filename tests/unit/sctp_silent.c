/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_silent.c - which association that says nothing gives way: the oldest of an address with its share, or of all. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sctp/io/silent.h"

static struct silent silent;
static struct silent_entry entry[2 * SILENT_SHARE];
static const uint64_t key[2] = {1, 2};

static struct sockaddr_storage v4(uint32_t address)
{
    struct sockaddr_storage peer = {.ss_family = AF_INET};

    ((struct sockaddr_in *)&peer)->sin_addr.s_addr = htonl(address);
    return peer;
}

static struct sockaddr_storage v6(uint8_t network, uint8_t host)
{
    struct sockaddr_storage peer = {.ss_family = AF_INET6};
    struct in6_addr *address = &((struct sockaddr_in6 *)&peer)->sin6_addr;

    address->s6_addr[7] = network;
    address->s6_addr[15] = host;
    return peer;
}

/* An IPv4 address of another list than that of `than`. */
static struct sockaddr_storage other(struct sockaddr_storage than)
{
    struct silent probe;
    struct silent_entry one = {0}, two = {0};

    silent_init(&probe, key);
    silent_add(&probe, &one, &than);
    for (uint32_t i = 1;; i++) {
        struct sockaddr_storage peer = v4(i);

        silent_add(&probe, &two, &peer);
        if (two.list != one.list)
            return peer;
        silent_remove(&two);
    }
}

/* The share of an address, one below, at it, one above. */
static void share(void **state)
{
    struct sockaddr_storage peer = v4(0x0a000001), far = other(peer);

    (void)state;
    silent_init(&silent, key);
    for (uint32_t i = 0; i < SILENT_SHARE - 1; i++)
        silent_add(&silent, &entry[i], &peer);
    assert_null(silent_over_share(&silent, &peer));
    silent_add(&silent, &entry[SILENT_SHARE - 1], &peer);
    assert_ptr_equal(silent_over_share(&silent, &peer), &entry[0]);
    assert_null(silent_over_share(&silent, &far));
    silent_remove(&entry[0]);
    assert_null(silent_over_share(&silent, &peer));
    silent_add(&silent, &entry[SILENT_SHARE], &peer);
    assert_ptr_equal(silent_over_share(&silent, &peer), &entry[1]);
}

/* A network of 64 bits is one address, another is another. */
static void networks(void **state)
{
    struct sockaddr_storage peer = v6(1, 0);
    uint32_t lists = 0;

    (void)state;
    silent_init(&silent, key);
    for (uint32_t i = 0; i < SILENT_SHARE; i++) {
        struct sockaddr_storage host = v6(1, (uint8_t)i);

        silent_add(&silent, &entry[i], &host);
    }
    assert_ptr_equal(silent_over_share(&silent, &peer), &entry[0]);
    for (uint32_t i = 0; i < 64; i++) {
        peer = v6((uint8_t)(2 + i), 0);
        lists += !silent_over_share(&silent, &peer);
    }
    assert_true(lists > 32);
}

/* How many of the peers that follow this one have the share of this one. */
static uint32_t share_with_it(struct sockaddr_storage peer)
{
    uint32_t shares = 0;

    silent_init(&silent, key);
    for (uint32_t i = 0; i < SILENT_SHARE; i++)
        silent_add(&silent, &entry[i], &peer);
    for (uint8_t i = 1; i <= 64; i++) {
        ((struct sockaddr_in6 *)&peer)->sin6_addr.s6_addr[15] += i;
        shares += silent_over_share(&silent, &peer) != NULL;
        ((struct sockaddr_in6 *)&peer)->sin6_addr.s6_addr[15] -= i;
    }
    return shares;
}

/* A socket for both has an IPv4 address as an IPv6 one: each is a host of its own. So is each on one link. */
static void hosts(void **state)
{
    struct sockaddr_storage peer = v6(0, 0);
    struct in6_addr *address = &((struct sockaddr_in6 *)&peer)->sin6_addr;

    (void)state;
    assert_int_equal(share_with_it(peer), 64);
    address->s6_addr[10] = address->s6_addr[11] = 0xff;
    assert_true(share_with_it(peer) < 32);
    *address = (struct in6_addr){.s6_addr = {0xfe, 0x80}};
    assert_true(share_with_it(peer) < 32);
}

/* The oldest of all, whatever its list; removal from the middle and from both ends. */
static void oldest(void **state)
{
    static const uint32_t order[] = {3, 0, 7, 1, 2, 6, 5, 4};
    struct sockaddr_storage peer = v4(0x0a000001), far = other(peer);
    bool gone[8] = {false};

    (void)state;
    silent_init(&silent, key);
    assert_null(silent_oldest(&silent));
    for (uint32_t i = 0; i < 8; i++)
        silent_add(&silent, &entry[i], i % 3 ? &far : &peer);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t first = 0;

        while (gone[first])
            first++;
        assert_ptr_equal(silent_oldest(&silent), &entry[first]);
        silent_remove(&entry[order[i]]);
        silent_remove(&entry[order[i]]); /* it is in no list */
        gone[order[i]] = true;
    }
    assert_null(silent_oldest(&silent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(share), cmocka_unit_test(networks), cmocka_unit_test(hosts),
                                       cmocka_unit_test(oldest)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
