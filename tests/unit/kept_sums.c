/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kept_sums.c - digests that were begun are found by the version of their file alone, and no network keeps the places
 * of others. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* The tool is a program: what is to be tested of it comes in by its source. */
#include "http/kept_sums.c"

static struct kept_sums sums;
static int fd;

static struct sockaddr_storage address(const char *text)
{
    struct sockaddr_storage a = {.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};
    void *to = a.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)(void *)&a)->sin6_addr
                                       : (void *)&((struct sockaddr_in *)(void *)&a)->sin_addr;

    assert_int_equal(inet_pton(a.ss_family, text, to), 1);
    return a;
}

static XXH3_state_t *sum_of(const char *text)
{
    XXH3_state_t *sum = XXH3_createState();

    assert_non_null(sum);
    XXH3_128bits_reset(sum);
    XXH3_128bits_update(sum, text, strlen(text));
    return sum;
}

static void put(const char *tag, const char *text, uint64_t octets, const char *from)
{
    struct sockaddr_storage peer = address(from);

    kept_sums_put(&sums, fd, tag, sum_of(text), octets, &peer);
}

/* Of how many octets is the sum of this version? 0: there is none. `text` is what it must be of. */
static uint64_t kept_of(const char *tag, const char *text)
{
    uint64_t octets = 0;
    XXH3_state_t *copy = kept_sums_copy(&sums, fd, tag, &octets), *same = sum_of(text);

    if (copy)
        assert_true(XXH128_isEqual(XXH3_128bits_digest(copy), XXH3_128bits_digest(same)));
    XXH3_freeState(copy);
    XXH3_freeState(same);
    return copy ? octets : 0;
}

static char *numbered(char tag[HTTP_TAG_MAX], unsigned i)
{
    snprintf(tag, HTTP_TAG_MAX, "\"%u\"", i);
    return tag;
}

static int set_up(void **state)
{
    (void)state;
    sums = (struct kept_sums){0};
    fd = memfd_create("kept_sums", MFD_CLOEXEC);
    return fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    kept_sums_fini(&sums);
    return close(fd);
}

static void versions(void **state)
{
    int pipes[2];
    uint64_t octets;

    (void)state;
    put("\"a\"", "small", KEPT_MIN - 1, "10.0.0.1");
    assert_int_equal(kept_of("\"a\"", "small"), 0);
    put("\"a\"", "one", KEPT_MIN, "10.0.0.1");
    put("W/\"b\"", "weak", KEPT_MIN, "10.0.0.1");
    assert_int_equal(kept_of("\"a\"", "one"), KEPT_MIN);
    assert_int_equal(kept_of("\"b\"", "weak"), 0);
    assert_int_equal(kept_of("W/\"b\"", "weak"), 0);
    put("\"a\"", "more", KEPT_MIN + 2, "10.0.0.2"); /* more of it replaces less */
    put("\"a\"", "less", KEPT_MIN + 1, "10.0.0.3");
    assert_int_equal(kept_of("\"a\"", "more"), KEPT_MIN + 2);
    assert_int_equal(sums.n, 1);
    /* A file elsewhere may have the same inode, size and time. */
    assert_int_equal(pipe(pipes), 0);
    assert_null(kept_sums_copy(&sums, pipes[0], "\"a\"", &octets));
    close(pipes[0]);
    close(pipes[1]);
}

/* One address: what was not used for the longest time gives way. */
static void places(void **state)
{
    char tag[HTTP_TAG_MAX];

    (void)state;
    for (unsigned i = 0; i < KEPT_SUMS; i++)
        put(numbered(tag, i), tag, KEPT_MIN, "10.0.0.1");
    assert_int_equal(kept_of(numbered(tag, 0), tag), KEPT_MIN); /* used again */
    put("\"new\"", "new", KEPT_MIN, "10.0.0.1");
    assert_int_equal(sums.n, KEPT_SUMS);
    assert_int_equal(kept_of("\"new\"", "new"), KEPT_MIN);
    assert_int_equal(kept_of(numbered(tag, 0), tag), KEPT_MIN);
    assert_int_equal(kept_of(numbered(tag, 1), tag), 0);
    assert_int_equal(kept_of(numbered(tag, 2), tag), KEPT_MIN);
}

/* A network that floods with addresses and files keeps one from no other, and takes none away from another. */
static void shares(void **state)
{
    char tag[HTTP_TAG_MAX], from[INET6_ADDRSTRLEN];

    (void)state;
    put("\"mine\"", "mine", KEPT_MIN, "10.0.0.1");
    for (unsigned i = 0; i < 3 * KEPT_SUMS; i++) {
        snprintf(from, sizeof(from), "fd00::%x", i + 1);
        put(numbered(tag, i), tag, KEPT_MIN, from);
    }
    assert_int_equal(kept_of("\"mine\"", "mine"), KEPT_MIN);
    put("\"other\"", "other", KEPT_MIN, "10.0.0.2");
    assert_int_equal(kept_of("\"other\"", "other"), KEPT_MIN);
    assert_int_equal(kept_of("\"mine\"", "mine"), KEPT_MIN);
}

/* All have one each: the longest unused one gives way. */
static void crowded(void **state)
{
    char tag[HTTP_TAG_MAX], from[INET6_ADDRSTRLEN];

    (void)state;
    for (unsigned i = 0; i < KEPT_SUMS; i++) {
        snprintf(from, sizeof(from), "10.0.1.%u", i);
        put(numbered(tag, i), tag, KEPT_MIN, from);
    }
    put("\"new\"", "new", KEPT_MIN, "10.0.2.1");
    assert_int_equal(kept_of("\"new\"", "new"), KEPT_MIN);
    for (unsigned i = 0; i < KEPT_SUMS; i++)
        assert_int_equal(kept_of(numbered(tag, i), tag), i ? KEPT_MIN : 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(versions), TEST(places), TEST(shares), TEST(crowded)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
