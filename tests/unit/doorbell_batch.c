/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell_batch.c - how long a deferred doorbell waits: queue pairs that are posted to without a connection behind
 * them. What rings is in the suite of the same name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drive/doorbell_batch.h"

/* As the product's: a poster looks at the clock after TIMED requests, and nothing waits for longer than LATEST_US. BUSY
 * requests are a burst, after something that was sent no longer than RECENT_US ago. */
enum { TIMED = 8, LATEST_US = 50, RECENT_US = 20, BUSY = 8, MOST = 256, LARGE = 32768, BURST = 100, TRIES = 100000 };

static struct rddp_context context;
static struct loop loop;
static struct endpoint endpoint;
static struct rddp_cq cq;
static struct rddp_qp first, second;
static struct send request; /* the last one of both */

static void in_a_burst(struct rddp_qp *qp)
{
    *qp = (struct rddp_qp){.context = &context,
                           .last_burst = BURST,
                           .qp.attr = {.send_cq = &cq.cq, .recv_cq = &cq.cq},
                           .qp.sq.ring = &request};
}

static int set_up(void **state)
{
    (void)state;
    loop = (struct loop){.context = &context, .wake.fd = -1};
    endpoint = (struct endpoint){.loop = &loop};
    batch_init(&loop);
    in_a_burst(&first);
    in_a_burst(&second);
    return 0;
}

static enum batch_verdict post_octets(struct rddp_qp *qp, uint32_t octets)
{
    enum batch_verdict verdict;

    request.length = octets;
    verdict = batch_defer(qp, &endpoint, 1);
    qp->deferred = verdict == BATCH_RING ? 0 : qp->deferred + 1;
    return verdict;
}

static enum batch_verdict post_one(struct rddp_qp *qp)
{
    return post_octets(qp, 8);
}

/* Something has just been sent, and the next request waits. */
static void defer(struct rddp_qp *qp)
{
    for (int i = 0; i < TRIES && !qp->deferred; i++) {
        endpoint.sent_us = reactor_now_us();
        post_one(qp);
    }
    assert_int_equal(qp->deferred, 1);
}

/* --- who defers --------------------------------------------------------------------------------------------------- */

/* Returns how many requests a queue pair posts until one waits, of which none keeps its place. */
static uint32_t posts_until_one_waits(uint32_t last_burst)
{
    uint32_t posts = 0;

    first.last_burst = last_burst;
    for (first.burst = 0; !first.deferred && posts < BURST; posts++) {
        endpoint.sent_us = reactor_now_us();
        post_one(&first);
    }
    return posts;
}

/* The shortest of some tries: another process may be given the processor at the wrong time. */
static uint32_t fewest_posts(void **state, uint32_t last_burst)
{
    uint32_t fewest = BURST;

    for (int i = 0; i < 1000; i++) {
        uint32_t posts;
        set_up(state);
        posts = posts_until_one_waits(last_burst);
        if (posts < fewest)
            fewest = posts;
    }
    return fewest;
}

static void only_in_a_burst(void **state)
{
    assert_int_equal(fewest_posts(state, 0), BUSY + 1);
    assert_int_equal(fewest_posts(state, BUSY - 1), BUSY + 1);
    assert_int_equal(fewest_posts(state, BUSY), 1);
}

static void only_behind_something(void **state)
{
    (void)state;
    endpoint.sent_us = reactor_now_us() - RECENT_US - 1;
    assert_int_equal(post_one(&first), BATCH_RING);
}

/* So that a poller knows that one goes on. */
static void posts_are_noted(void **state)
{
    uint32_t posts;

    (void)state;
    cq.posts = 0;
    defer(&first);
    posts = cq.posts;
    assert_int_equal(posts, 1);
    assert_int_not_equal(post_one(&first), BATCH_RING);
    assert_int_equal(cq.posts, 2);
}

/* --- until when --------------------------------------------------------------------------------------------------- */

/* A large one does not wait, and nothing that was posted before it. */
static void large_one_rings(void **state)
{
    (void)state;
    defer(&first);
    assert_int_not_equal(post_octets(&first, LARGE - 1), BATCH_RING);
    assert_int_equal(post_octets(&first, LARGE), BATCH_RING);
    assert_int_equal(post_octets(&first, LARGE + 1), BATCH_RING);
}

/* A poster that goes on rings 50 us after the first request that waits, when it looks at the clock next. */
static void poster_rings(void **state)
{
    (void)state;
    defer(&first);
    reactor_spin(first.deferred_us + LATEST_US);
    for (uint32_t i = 1; i < TIMED - 1; i++)
        assert_int_not_equal(post_one(&first), BATCH_RING);
    assert_int_equal(post_one(&first), BATCH_RING);
}

/* Posts more, as if the first request that waits were new each time. Returns false if it rang nevertheless: for the
 * last request that a batch may have, or because another process was given the processor at the wrong time. */
static bool goes_on(struct rddp_qp *qp, uint32_t requests)
{
    for (; requests; requests--) {
        qp->deferred_us = reactor_now_us();
        if (post_one(qp) == BATCH_RING)
            return false;
    }
    return true;
}

static void poster_goes_on(void **state)
{
    bool went_on = false;

    for (int i = 0; i < TRIES && !went_on; i++) {
        set_up(state);
        defer(&first);
        went_on = goes_on(&first, MOST - 2);
    }
    assert_true(went_on);
    assert_false(goes_on(&first, 1));
}

/* While it goes on the thread leaves the ringing to it ... */
static void thread_leaves_it(void **state)
{
    uint64_t since_us = 0;
    bool went_on = false;

    for (int i = 0; i < TRIES && !went_on; i++) {
        set_up(state);
        defer(&first);
        since_us = loop.batch.since_us;
        assert_int_equal(since_us, first.deferred_us);
        reactor_spin(since_us + 1);
        went_on = goes_on(&first, TIMED - 1);
    }
    assert_true(went_on);
    assert_true(loop.batch.since_us > since_us);
}

/* ... but not if another queue pair waits, whichever of them waits for longer. */
static void others_do_not_wait(void **state)
{
    struct rddp_qp *poster = *state;
    uint64_t since_us = 0;
    bool went_on = false;

    for (int i = 0; i < TRIES && !went_on; i++) {
        set_up(state);
        defer(&first);
        since_us = loop.batch.since_us;
        reactor_spin(since_us + 1);
        defer(&second);
        assert_int_equal(loop.batch.since_us, since_us);
        went_on = goes_on(poster, TIMED - 1);
    }
    assert_true(went_on);
    assert_int_equal(loop.batch.since_us, since_us);
}

static int the_first(void **state)
{
    *state = &first;
    return 0;
}

static int the_second(void **state)
{
    *state = &second;
    return 0;
}

/* The thread sleeps until 50 us after that time at the longest, and rings then. The queue pair has been rung for, so
 * that the list is all that there is to see. */
static void thread_rings(void **state)
{
    uint64_t sleep_us;

    (void)state;
    defer(&first);
    first.deferred = 0;
    assert_int_equal(loop.batch.watch, BATCH_WOKEN);
    loop.batch.since_us = reactor_now_us();
    sleep_us = batch_serve(&loop);
    assert_in_range(sleep_us, 1, LATEST_US);
    reactor_spin(loop.batch.since_us + LATEST_US);
    assert_int_equal(batch_serve(&loop), LATEST_US);
    assert_null(loop.batch.waiting);
    assert_false(first.is_in_batch);
}

/* While it was in the hands of a thread that could not ring, nothing was seen to wait, and no thread looks now. */
static void who_cannot_ring_wakes(void **state)
{
    (void)state;
    defer(&first);
    loop.batch.watch = BATCH_UNWATCHED;
    spin_lock(&first.spin);
    assert_true(batch_ring(&loop));
    assert_ptr_equal(loop.batch.waiting, &first);
    assert_int_equal(loop.batch.watch, BATCH_WOKEN);
    spin_unlock(&first.spin);
}

/* An application without a thread that has the descriptor may sleep there at any time, in a child as well. */
static void descriptor_is_a_sleeper(void **state)
{
    struct rddp_context manual = {.manual = true, .is_fd_known = true};

    (void)state;
    loop.context = &manual;
    batch_init(&loop);
    assert_int_equal(loop.batch.sleepers, 1);
    manual.is_fd_known = false;
    batch_init(&loop);
    assert_int_equal(loop.batch.sleepers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_in_a_burst, set_up),
        cmocka_unit_test_setup(only_behind_something, set_up),
        cmocka_unit_test_setup(posts_are_noted, set_up),
        cmocka_unit_test_setup(large_one_rings, set_up),
        cmocka_unit_test_setup(poster_rings, set_up),
        cmocka_unit_test_setup(poster_goes_on, set_up),
        cmocka_unit_test_setup(thread_leaves_it, set_up),
        {"others_do_not_wait, the older goes on", others_do_not_wait, the_first, NULL, NULL},
        {"others_do_not_wait, the newer goes on", others_do_not_wait, the_second, NULL, NULL},
        cmocka_unit_test_setup(thread_rings, set_up),
        cmocka_unit_test_setup(who_cannot_ring_wakes, set_up),
        cmocka_unit_test_setup(descriptor_is_a_sleeper, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
