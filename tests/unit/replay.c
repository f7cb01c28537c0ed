/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c - the duplicate-request cache: which replies it keeps, how long, and which calls are duplicates. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/replay.h"

enum { ENTRIES = 4, LONGEST = 16 };

static struct replay replay;
static uint64_t now_ms;

static int set_up(void **state)
{
    (void)state;
    return replay_init(&replay, ENTRIES);
}

static int tear_down(void **state)
{
    (void)state;
    replay_fini(&replay);
    return 0;
}

static struct replay_key key_of(const char *address, uint16_t port, uint32_t xid, const char *message)
{
    struct sockaddr_storage peer = {.ss_family = AF_INET6};
    struct responder_call call = {.payload = (const uint8_t *)message, .length = strlen(message)};
    struct replay_key key;

    inet_pton(AF_INET6, address, &((struct sockaddr_in6 *)&peer)->sin6_addr);
    ((struct sockaddr_in6 *)&peer)->sin6_port = htons(port);
    replay_key(&key, &peer, xid, &call);
    return key;
}

static struct replay_key number(uint32_t xid)
{
    return key_of("fd77::1", 1, xid, "call");
}

static struct replay_entry *add(uint32_t xid)
{
    struct replay_key key = number(xid);

    return replay_add(&replay, &key, now_ms);
}

static bool has(uint32_t xid)
{
    struct replay_key key = number(xid);

    return replay_find(&replay, &key, now_ms) != NULL;
}

static void keep(struct replay_entry *entry, const char *text)
{
    struct reply reply = {.payload = (const uint8_t *)text, .length = strlen(text)};

    replay_keep(&replay, entry, &reply, LONGEST, now_ms);
}

static void what_makes_it_the_same(void **state)
{
    struct replay_key key = number(7), same = key_of("fd77::1", 999, 7, "call");
    const struct replay_key other[] = {key_of("fd77::2", 1, 7, "call"), key_of("fd77::1", 1, 8, "call"),
                                       key_of("fd77::1", 1, 7, "Call"), key_of("fd77::1", 1, 7, "call ")};

    (void)state;
    replay_add(&replay, &key, now_ms);
    assert_non_null(replay_find(&replay, &same, now_ms));
    for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
        assert_null(replay_find(&replay, &other[i], now_ms));
}

/* The key of a call of `n` octets, of which `length` from `position` are in an item. */
static struct replay_key key_with_item(const uint8_t *message, size_t n, uint32_t position, uint32_t length)
{
    struct sockaddr_storage peer = {.ss_family = AF_INET};
    struct responder_call call = {.items = 1, .item = {{position, length, message + position}}};
    static uint8_t payload[4096];
    struct replay_key key;

    memcpy(payload, message, position);
    memcpy(payload + position, message + position + length, n - position - length);
    call.payload = payload;
    call.length = n - length;
    replay_key(&key, &peer, 1, &call);
    return key;
}

/* Each octet of a call counts, wherever it is, and the sum does not depend on how the call was cut. */
static void each_octet_counts(void **state)
{
    enum { OCTETS = 2048 };
    static uint8_t message[OCTETS];
    struct replay_key key, other;

    (void)state;
    for (size_t i = 0; i < OCTETS; i++)
        message[i] = (uint8_t)(i * 7);
    key = key_with_item(message, OCTETS, 100, 1024);
    for (uint32_t at = 0; at < OCTETS; at += 4) {
        other = key_with_item(message, OCTETS, at, (OCTETS - at) / 8 * 4);
        assert_memory_equal(&key, &other, sizeof(key));
    }
    for (unsigned i = 0; i < OCTETS; i++)
        for (unsigned bit = 1; bit < 256; bit += bit) {
            message[i] ^= (uint8_t)bit;
            message[(i + 32) % OCTETS] ^= 0x80; /* the same lane of the sum */
            other = key_with_item(message, OCTETS, 100, 1024);
            assert_memory_not_equal(&key, &other, sizeof(key));
            message[(i + 32) % OCTETS] ^= 0x80;
            other = key_with_item(message, OCTETS, 100, 1024);
            assert_memory_not_equal(&key, &other, sizeof(key));
            message[i] ^= (uint8_t)bit;
        }
}

/* A reply is kept for REPLAY_MS, however few there are. A call without a reply yet does not age. */
static void replies_age(void **state)
{
    (void)state;
    now_ms = 1000;
    add(1);
    keep(add(2), "kept");
    now_ms += REPLAY_MS - 1;
    assert_true(has(1) && has(2));
    now_ms++;
    assert_true(has(1) && !has(2));
    keep(add(3), "kept");
    now_ms += REPLAY_MS;
    add(4); /* frees what is old */
    assert_null(replay.oldest);
    now_ms = 0;
}

/* The reply that was kept first is evicted first, whatever the order of the entries. Entries without a reply stay. */
static void oldest_goes(void **state)
{
    struct replay_entry *first = add(1), *second = add(2);

    (void)state;
    keep(second, "2");
    keep(first, "1");
    keep(add(3), "3");
    assert_non_null(add(4));
    assert_true(has(1) && has(2) && has(3) && has(4));
    keep(add(5), "5"); /* replaces 2 */
    assert_true(has(1) && !has(2) && has(3) && has(4) && has(5));
    assert_non_null(add(6)); /* replaces 1 */
    assert_non_null(add(7)); /* replaces 3 */
    assert_non_null(add(8)); /* replaces 5 */
    assert_true(has(4) && has(6) && has(7) && has(8));
    assert_null(add(9));
    assert_true(has(4) && has(6) && has(7) && has(8));
}

/* A dropped entry leaves its place free for the next one, so dropped entries do not evict several replies. */
static void dropped_ones_cost_nothing(void **state)
{
    (void)state;
    for (uint32_t xid = 1; xid < ENTRIES; xid++)
        keep(add(xid), "kept");
    for (uint32_t xid = 100; xid < 200; xid++)
        replay_drop(&replay, add(xid));
    assert_true(has(1) && has(2) && has(3));
    keep(add(4), "kept");
    assert_true(has(1) && has(2) && has(3) && has(4));
    replay_drop(&replay, add(200));
    assert_true(!has(1) && has(2) && has(3) && has(4));
}

static void lengths(void **state)
{
    struct replay_key key = number(1);

    (void)state;
    keep(add(1), "0123456789abcdef");
    assert_int_equal(replay_find(&replay, &key, now_ms)->reply.length, LONGEST);
    assert_memory_equal(replay_find(&replay, &key, now_ms)->reply.payload, "0123456789abcdef", LONGEST);
    keep(add(2), "0123456789abcdefg");
    assert_false(has(2));
    keep(add(3), "");
    assert_true(has(3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_makes_it_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_octet_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(replies_age, set_up, tear_down),
        cmocka_unit_test_setup_teardown(oldest_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dropped_ones_cost_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lengths, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
