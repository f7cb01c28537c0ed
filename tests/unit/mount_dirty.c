/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount_dirty.c - writes that are not committed: their order, what a restart of the server brings back, and a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/lib/rng.h"
/* The tool is a program, so the functions under test are included as source. */
#include "nfs/mount/dirty.c"

enum { CHUNK_MAX = 64 };

static const struct rpc_cred cred = {.flavor = RPC_AUTH_SYS, .uid = 1000, .gid = 100};
static const uint8_t life[3][NFS3_VERIFIER] = {"first", "second", "third"};
static struct dirty d;

static int setup(void **state)
{
    (void)state;
    dirty_init(&d);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dirty_fini(&d);
    return 0;
}

static void add(uint64_t offset, const char *text)
{
    assert_true(dirty_add(&d, offset, text, (uint32_t)strlen(text), false, &cred, CHUNK_MAX));
}

/* The next chunk that goes out has this text. */
static struct chunk *expect_next(uint64_t offset, const char *text)
{
    struct chunk *c = dirty_next(&d);

    assert_non_null(c);
    assert_int_equal(c->offset, offset);
    assert_int_equal(c->length, strlen(text));
    assert_memory_equal(c->data, text, c->length);
    return c;
}

static void take(struct chunk *c, int server)
{
    dirty_wrote(&d, c, c->length - c->done, false, life[server]);
}

static void test_gather(void **state)
{
    struct rpc_cred other = cred;

    (void)state;
    add(0, "abc");
    add(3, "def");
    take(expect_next(0, "abcdef"), 0);
    add(6, "x");
    add(8, "y"); /* not behind it */
    other.uid++;
    assert_true(dirty_add(&d, 9, "z", 1, false, &other, CHUNK_MAX));
    take(expect_next(6, "x"), 0);
    take(expect_next(8, "y"), 0);
    take(expect_next(9, "z"), 0);
    assert_null(dirty_next(&d));
    assert_int_equal(d.end, 10);
}

/* One below, at and above the limit. */
static void test_gather_limit(void **state)
{
    char text[CHUNK_MAX];

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_true(dirty_add(&d, 0, text, CHUNK_MAX - 1, false, &cred, CHUNK_MAX));
    add(CHUNK_MAX - 1, "b");
    add(CHUNK_MAX, "c");
    assert_int_equal(dirty_next(&d)->length, CHUNK_MAX);
    take(expect_next(CHUNK_MAX, "c"), 0);

    /* One write may be longer, but then nothing comes to it. */
    assert_true(dirty_add(&d, 100, text, CHUNK_MAX, false, &cred, CHUNK_MAX - 1));
    assert_true(dirty_add(&d, 100 + CHUNK_MAX, "d", 1, false, &cred, CHUNK_MAX - 1));
    assert_int_equal(dirty_next(&d)->length, CHUNK_MAX);
}

static void test_overlap_waits(void **state)
{
    struct chunk *first, *apart;

    (void)state;
    add(0, "aaaa");
    first = expect_next(0, "aaaa");
    add(3, "bb");
    add(10, "cc");
    apart = expect_next(10, "cc");
    assert_null(dirty_next(&d));
    assert_true(dirty_is_unsent(&d, 3, 4, 5));
    assert_false(dirty_is_unsent(&d, 3, 5, 10));
    assert_false(dirty_is_unsent(&d, 1, 4, 5)); /* only the first write counts */
    take(first, 0);
    take(apart, 0);
    take(expect_next(3, "bb"), 0);
    assert_false(dirty_is_unsent(&d, 3, 0, UINT64_MAX));
    assert_true(dirty_is_uncommitted(&d, 1));
}

static void test_short_write(void **state)
{
    struct chunk *c;

    (void)state;
    add(0, "abcdef");
    c = expect_next(0, "abcdef");
    dirty_wrote(&d, c, 4, false, life[0]);
    assert_ptr_equal(dirty_next(&d), c);
    assert_int_equal(c->done, 4);
    take(c, 0);
    assert_null(d.active);
    assert_non_null(d.uncommitted);
}

static void test_commit(void **state)
{
    (void)state;
    assert_false(dirty_commit(&d));
    add(0, "a");
    take(expect_next(0, "a"), 0);
    assert_true(dirty_commit(&d));
    assert_false(dirty_commit(&d));
    add(0, "b");
    take(expect_next(0, "b"), 0);
    dirty_committed(&d, life[0]); /* not what came after it was sent */
    assert_false(dirty_is_uncommitted(&d, 1));
    assert_true(dirty_is_uncommitted(&d, 2));
    assert_true(dirty_commit(&d));
    dirty_committed(&d, life[0]);
    assert_true(dirty_is_empty(&d));
    assert_int_equal(d.octets, 0);
    assert_int_equal(d.end, 0);
}

/* COMMIT says that the server is another one: all goes again, the older before the newer. */
static void test_lost_at_commit(void **state)
{
    (void)state;
    add(0, "aaaa");
    take(expect_next(0, "aaaa"), 0);
    add(2, "bb");
    take(expect_next(2, "bb"), 0);
    assert_true(dirty_commit(&d));
    dirty_committed(&d, life[1]);
    take(expect_next(0, "aaaa"), 1);
    take(expect_next(2, "bb"), 1);
    assert_null(dirty_next(&d));
    assert_true(dirty_commit(&d));
    dirty_committed(&d, life[1]);
    assert_true(dirty_is_empty(&d));
}

/* A WRITE shows it: what is outstanding is sent again, too, whatever its answer, and so is this WRITE. */
static void test_lost_at_write(void **state)
{
    struct chunk *late, *news;

    (void)state;
    add(0, "aaaa");
    take(expect_next(0, "aaaa"), 0);
    add(2, "bb");
    news = expect_next(2, "bb");
    add(8, "late");
    late = expect_next(8, "late");
    take(news, 1);
    assert_true(dirty_is_unsent(&d, 1, 0, 1));
    take(late, 0);
    take(expect_next(0, "aaaa"), 1);
    take(expect_next(2, "bb"), 1);
    take(expect_next(8, "late"), 1);
    assert_null(dirty_next(&d));
}

/* Half a chunk was with the server, which has forgotten that too. */
static void test_lost_half(void **state)
{
    struct chunk *half, *news;

    (void)state;
    add(0, "old");
    take(expect_next(0, "old"), 0);
    add(10, "half");
    half = expect_next(10, "half");
    add(20, "news");
    news = expect_next(20, "news");
    dirty_wrote(&d, half, 2, false, life[0]);
    take(news, 1);
    take(expect_next(0, "old"), 1);
    assert_ptr_equal(expect_next(10, "half"), half);
    assert_int_equal(half->done, 0);
}

/* The answer of a COMMIT from before the restart means nothing to what went again meanwhile. */
static void test_late_commit(void **state)
{
    (void)state;
    add(0, "a");
    take(expect_next(0, "a"), 0);
    assert_true(dirty_commit(&d));
    add(5, "b");
    take(expect_next(5, "b"), 1);
    take(expect_next(0, "a"), 1);
    take(expect_next(5, "b"), 1);
    dirty_committed(&d, life[0]);
    assert_true(dirty_is_uncommitted(&d, 1));
    assert_null(dirty_next(&d));
}

/* What is stable need not be kept, unless something older below it may have to go again. */
static void test_stable(void **state)
{
    (void)state;
    add(0, "a");
    dirty_wrote(&d, expect_next(0, "a"), 1, true, life[0]);
    assert_true(dirty_is_empty(&d));
    add(0, "aa");
    take(expect_next(0, "aa"), 0);
    add(1, "b");
    dirty_wrote(&d, expect_next(1, "b"), 1, true, life[0]);
    assert_true(dirty_is_uncommitted(&d, 3));
    assert_true(dirty_commit(&d));
    dirty_committed(&d, life[1]);
    take(expect_next(0, "aa"), 1);
    expect_next(1, "b");
}

static void test_failures(void **state)
{
    (void)state;
    add(0, "a");
    dirty_failed(&d, expect_next(0, "a"));
    assert_true(dirty_is_empty(&d));
    add(0, "a");
    take(expect_next(0, "a"), 0);
    assert_true(dirty_commit(&d));
    dirty_commit_failed(&d);
    assert_true(dirty_is_empty(&d));
    assert_true(!d.sent && !d.actives && !d.octets);
}

static void test_overlay(void **state)
{
    uint8_t buffer[10];

    (void)state;
    add(2, "held");
    take(expect_next(2, "held"), 0);
    add(4, "XY");
    memset(buffer, '.', sizeof(buffer));
    assert_int_equal(dirty_overlay(&d, 0, buffer, 10, 10), 10);
    assert_memory_equal(buffer, "..heXY....", 10);
    /* The server knows of one octet; there is a hole, and the read ends inside. */
    memset(buffer, '.', sizeof(buffer));
    assert_int_equal(dirty_overlay(&d, 0, buffer, 1, 5), 5);
    assert_memory_equal(buffer, ".\0heX.....", 10);
    /* It begins inside, and behind all. */
    memset(buffer, '.', sizeof(buffer));
    assert_int_equal(dirty_overlay(&d, 5, buffer, 0, 5), 1);
    assert_memory_equal(buffer, "Y.........", 10);
    assert_int_equal(dirty_overlay(&d, 6, buffer, 0, 5), 0);
    /* It ends in a hole before what comes later; or the file does. */
    add(20, "z");
    assert_int_equal(dirty_overlay(&d, 6, buffer, 1, 5), 5);
    assert_memory_equal(buffer, "Y\0\0\0\0.....", 10);
    assert_int_equal(dirty_overlay(&d, 18, buffer, 0, 5), 3);
    assert_memory_equal(buffer, "\0\0z", 3);
}

/* --- against a model ------------------------------------------------------------------------------------------- */

enum { FILE_SIZE = 200, SENT_MAX = 8 };

struct server {
    uint8_t memory[FILE_SIZE], disk[FILE_SIZE], verifier[NFS3_VERIFIER];
    struct chunk *sent[SENT_MAX];
    bool executed[SENT_MAX];
    uint32_t took[SENT_MAX];
    uint8_t said[SENT_MAX][NFS3_VERIFIER];
    bool commit, commit_executed;
    uint8_t commit_said[NFS3_VERIFIER];
};

static void execute(struct server *s, struct rng *rng, int i)
{
    const struct chunk *c = s->sent[i];

    s->took[i] = c->length - c->done;
    if (rng_one_in(rng, 3))
        s->took[i] = 1 + rng_below(rng, s->took[i]);
    memcpy(s->memory + c->offset + c->done, c->data + c->done, s->took[i]);
    if (rng_below(rng, 8) == 0)
        memcpy(s->disk, s->memory, FILE_SIZE); /* it may write whenever it likes */
    memcpy(s->said[i], s->verifier, NFS3_VERIFIER);
    s->executed[i] = true;
}

static void some_write(struct rng *rng, uint8_t *model)
{
    uint8_t data[40];
    uint32_t n = 1 + rng_below(rng, sizeof(data)), offset = rng_below(rng, FILE_SIZE - n + 1);

    for (uint32_t i = 0; i < n; i++)
        data[i] = (uint8_t)rng_below(rng, 256);
    memcpy(model + offset, data, n);
    assert_true(dirty_add(&d, offset, data, n, false, &cred, CHUNK_MAX));
}

static void some_wire(struct server *s, struct rng *rng)
{
    int i = (int)rng_below(rng, SENT_MAX);

    if (!s->sent[i]) {
        s->sent[i] = dirty_next(&d);
        s->executed[i] = false;
    } else if (!s->executed[i]) {
        execute(s, rng, i);
    } else {
        struct chunk *c = s->sent[i];

        s->sent[i] = NULL;
        dirty_wrote(&d, c, s->took[i], false, s->said[i]);
    }
}

static void some_commit(struct server *s)
{
    if (!s->commit) {
        s->commit = dirty_commit(&d);
        s->commit_executed = false;
    } else if (!s->commit_executed) {
        memcpy(s->disk, s->memory, FILE_SIZE);
        memcpy(s->commit_said, s->verifier, NFS3_VERIFIER);
        s->commit_executed = true;
    } else {
        s->commit = false;
        dirty_committed(&d, s->commit_said);
    }
}

static void restart(struct server *s)
{
    memcpy(s->memory, s->disk, FILE_SIZE);
    s->verifier[0]++;
}

/* In the end the disk has what a reader saw all the time. */
static void run_model(uint64_t seed)
{
    struct server s = {.verifier = "server"};
    uint8_t model[FILE_SIZE] = {0}, seen[FILE_SIZE];
    struct rng rng = {seed};

    dirty_init(&d);
    for (int step = 0; step < 600; step++) {
        uint32_t dice = rng_below(&rng, 100);

        if (dice < 25)
            some_write(&rng, model);
        else if (dice < 85)
            some_wire(&s, &rng);
        else if (dice < 98)
            some_commit(&s);
        else
            restart(&s);
        memcpy(seen, s.memory, FILE_SIZE);
        dirty_overlay(&d, 0, seen, FILE_SIZE, FILE_SIZE);
        if (memcmp(seen, model, FILE_SIZE))
            fail_msg("seed %d, step %d: a reader sees something else", (int)seed, step);
    }
    for (int step = 0; step < 100000 && !dirty_is_empty(&d); step++) {
        some_wire(&s, &rng);
        some_commit(&s);
    }
    if (!dirty_is_empty(&d) || d.octets || memcmp(s.disk, model, FILE_SIZE))
        fail_msg("seed %d: the disk has something else in the end", (int)seed);
}

static void test_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++)
        run_model(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gather, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gather_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overlap_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_short_write, setup, teardown),
        cmocka_unit_test_setup_teardown(test_commit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_at_commit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_at_write, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_half, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late_commit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overlay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_model, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
