/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell_batch.c - a deferred doorbell is rung even if its application neither polls nor posts again. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "drive/doorbell_batch.h"
#include "endpoint/objects.h"
#include "tests/suite/lib/deferred.h"
#include "tests/suite/lib/pair.h"

enum {
    BURST = PAIR_DEPTH - 1,
    SIZE = 8,
    PLACES = 64,
    TRIES_MS = 5000,
    MANY = 20, /* requests that are a burst */
    LARGE = 32768,
    LARGE_AT = 1 << 20
};

/* Where a burst lies on both sides. Bursts that follow each other do not overlap: a lost Write may arrive after Writes
 * of the next burst (RFC 5040 5.5). */
static size_t place_of(unsigned seed)
{
    return (size_t)(seed % PLACES) * BURST * SIZE;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Posts single Writes, each to its own place; *waits: the last of them was not sent at once. The last one alone is
 * signalled, or all are. */
static void post_some(struct pair *pair, unsigned seed, size_t count, bool all, bool *waits)
{
    size_t at = place_of(seed);

    pair_pattern(pair->client.buffer + at, count * SIZE, seed);
    for (size_t i = 0; i < count; i++, at += SIZE)
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, at, SIZE, at,
                                   all || i == count - 1 ? RDDP_SEND_SIGNALED : 0),
                         0);
    *waits = has_deferred(pair->client.qp);
}

static void post_writes(struct pair *pair, unsigned seed, bool all, bool *waits)
{
    post_some(pair, seed, BURST, all, waits);
}

static void post_burst(struct pair *pair, unsigned seed, bool *waits)
{
    post_writes(pair, seed, true, waits);
}

/* Checks only the server, so that nothing but its own thread drives the client. Bursts are counted from 1, like
 * seeds. */
static void wait_for_burst(struct pair *pair, unsigned seed)
{
    int64_t end_ms = now_ms() + PAIR_WAIT_MS;
    struct rddp_qp_info info;

    while (rddp_query_qp(pair->server.qp, &info) == 0 && info.rx_octets < (uint64_t)seed * BURST * SIZE) {
        assert_true(now_ms() < end_ms);
        sleep_ms(1);
    }
    assert_true(pair_is_pattern(pair->server.buffer + place_of(seed), (size_t)BURST * SIZE, seed));
}

/* Posts bursts until the last post of one waits for its bell. Returns false on a machine that is too slow for that. */
static bool burst_waits(struct pair *pair, unsigned *seed)
{
    int64_t end_ms = now_ms() + TRIES_MS;
    struct rddp_wc wc[BURST];
    bool waits;

    do {
        post_burst(pair, ++*seed, &waits);
        if (waits)
            return true;
        pair_completions(&pair->client, wc, BURST);
        wait_for_burst(pair, *seed);
    } while (now_ms() < end_ms);
    return false;
}

static void nobody_polls(void **state)
{
    struct pair *pair = *state;
    struct rddp_wc wc[BURST];
    unsigned seed = 0;

    for (int i = 0; i < 20; i++) {
        if (!burst_waits(pair, &seed))
            skip();
        wait_for_burst(pair, seed);
        pair_completions(&pair->client, wc, BURST);
        for (size_t j = 0; j < BURST; j++)
            assert_int_equal(wc[j].wr_id, j);
    }
}

/* The timer is not set for each burst: after many of them, the last one must not be forgotten. */
static void stops_after_many(void **state)
{
    struct pair *pair = *state;
    struct rddp_wc wc[BURST];
    unsigned seed = 0;
    bool waits;

    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 30; j++) {
            post_burst(pair, ++seed, &waits);
            pair_completions(&pair->client, wc, BURST);
        }
        wait_for_burst(pair, seed);
        if (!burst_waits(pair, &seed))
            skip();
        wait_for_burst(pair, seed);
        pair_completions(&pair->client, wc, BURST);
    }
}

/* The poster is in the middle of a post, and has lost its processor there: another thread that rings does not wait for
 * it, and the doorbell is rung when the poster is through. */
static void poster_is_displaced(void **state)
{
    struct pair *pair = *state;
    struct rddp_qp *qp = pair->client.qp;
    struct rddp_wc wc[BURST];
    unsigned seed = 0;

    if (!burst_waits(pair, &seed))
        skip();
    spin_lock(&qp->spin);
    for (int i = 0; i < 100; i++)
        batch_ring(qp->loop); /* returns */
    spin_unlock(&qp->spin);
    wait_for_burst(pair, seed);
    pair_completions(&pair->client, wc, BURST);
}

/* Requests without a completion take no place when they have left, but a burst of them shares a doorbell, too: from its
 * second time on as a whole. */
static void without_completions(void **state)
{
    struct pair *pair = *state;
    int64_t end_ms = now_ms() + TRIES_MS;
    bool waits = false;

    for (unsigned seed = 1; !waits && now_ms() < end_ms; seed++) {
        post_writes(pair, seed, false, &waits);
        pair_completion(&pair->client);
        wait_for_burst(pair, seed);
    }
    assert_true(waits);
}

/* Posts a large Write and a small one behind it, in one list. Returns whether they wait. */
static bool large_one_waits(struct pair *pair)
{
    struct rddp_sge large = pair_sge(&pair->client, LARGE_AT, LARGE), small = pair_sge(&pair->client, LARGE_AT, SIZE);
    struct rddp_send_wr behind = {.wr_id = 2,
                                  .sg_list = &small,
                                  .num_sge = 1,
                                  .opcode = RDDP_WR_RDMA_WRITE,
                                  .send_flags = RDDP_SEND_SIGNALED,
                                  .remote_addr = LARGE_AT,
                                  .rkey = rddp_mr_key(pair->server.mr)};
    struct rddp_send_wr wr = behind;

    wr.wr_id = 1;
    wr.sg_list = &large;
    wr.next = &behind;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    return has_deferred(pair->client.qp);
}

/* What is large leaves at once, wherever it stands in a list. */
static void large_one_in_a_list(void **state)
{
    struct pair *pair = *state;
    struct rddp_wc wc[BURST];
    bool waits;

    for (unsigned seed = 1; seed <= 20; seed++) {
        post_some(pair, seed, MANY, true, &waits);
        assert_false(large_one_waits(pair));
        pair_completions(&pair->client, wc, MANY + 2);
    }
}

/* Posted requests are sent although their queue pair is destroyed; over SCTP only those that its stack has room for.
 * The first burst is sent before: until the peer has answered a ready-to-receive Read, nothing may be sent. */
static void queue_pair_goes(void **state)
{
    struct pair *pair = *state;
    struct rddp_wc wc[BURST];
    unsigned seed = 1;
    bool waits;

    post_burst(pair, seed, &waits);
    pair_completions(&pair->client, wc, BURST);
    if (pair->row->wire == RDDP_WIRE_SCTP || !burst_waits(pair, &seed))
        skip();
    assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
    pair->client.qp = NULL;
    wait_for_burst(pair, seed);
}

/* More threads post at once than a context has places for: the driver does the work. */
static void too_many_posters(void **state)
{
    struct pair *pair = *state;
    struct rddp_context *context = pair->client.context;
    struct epoch_reader *reader[64];
    size_t readers = 0;

    while (readers < countof(reader) && (reader[readers] = epoch_enter_any(&context->mrs.epochs, context->loops, 0)))
        readers++;
    assert_in_range(readers, 1, countof(reader) - 1);
    for (uint64_t i = 0; i < 50; i++) {
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, 0, 64, 64, RDDP_SEND_SIGNALED),
                         0);
        assert_int_equal(pair_completion(&pair->client).wr_id, i);
    }
    while (readers)
        epoch_leave(reader[--readers]);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(nobody_polls),        PAIR_TEST(stops_after_many),    PAIR_TEST(poster_is_displaced),
        PAIR_TEST(without_completions), PAIR_TEST(large_one_in_a_list), PAIR_TEST(queue_pair_goes),
        PAIR_TEST(too_many_posters),
    };

    return pair_run("doorbell_batch", tests, countof(tests), true);
}
