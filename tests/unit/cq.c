/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c - completions are returned once and in order, events fire once for each arming, and no loss goes unreported. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/engine.h"

static unsigned events;

static void notify(struct cq *cq)
{
    (void)cq;
    events++;
}

static bool push(struct cq *cq, uint64_t wr_id, uint32_t qp_num, enum rddp_wc_status status, bool solicited)
{
    const struct rddp_wc wc = {.wr_id = wr_id, .qp_num = qp_num, .status = status};

    return cq_push(cq, &wc, solicited, NULL);
}

/* Some completions may stay from one round to the next, so that the ring wraps. */
static void exchange(uint32_t counter, uint64_t stay)
{
    struct cq_entry ring[8];
    struct rddp_wc wc[8];
    uint64_t in = 0, out = 0;
    struct cq cq;

    cq_init(&cq, ring, 8, 8, NULL);
    atomic_store(&cq.head, counter);
    atomic_store(&cq.tail, counter);
    assert_true(cq_is_empty(&cq));
    for (uint64_t round = 0; round < 50; round++) {
        for (uint64_t i = 0; i <= round % 8 && in - out < 8; i++)
            assert_true(push(&cq, in++, 1, RDDP_WC_SUCCESS, false));
        while (in - out > stay) {
            uint64_t most = in - out - stay, wanted = 1 + round % 3;
            uint32_t n = cq_poll(&cq, wc, (uint32_t)(wanted < most ? wanted : most));

            assert_true(n > 0);
            for (uint32_t i = 0; i < n; i++)
                assert_int_equal(wc[i].wr_id, out++);
        }
        assert_true(cq_is_empty(&cq) == (in == out));
    }
    assert_int_equal(cq_poll(&cq, wc, 8), in - out);
    assert_int_equal(cq_poll(&cq, wc, 8), 0);
}

/* Also where the counters pass 2^32. */
static void test_order(void **state)
{
    static const uint32_t counters[] = {0, 5, UINT32_MAX - 20, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        for (uint64_t stay = 0; stay <= 3; stay++)
            exchange(counters[i], stay);
}

/* A CQ that is polled until it is empty keeps to the front of its ring. */
static void test_front(void **state)
{
    struct cq_entry ring[8];
    struct rddp_wc wc[2];
    struct cq cq;

    (void)state;
    cq_init(&cq, ring, 8, 8, NULL);
    for (uint64_t i = 0; i < 20; i++) {
        assert_true(push(&cq, i, 1, RDDP_WC_SUCCESS, false));
        assert_true(push(&cq, i + 1, 1, RDDP_WC_SUCCESS, false));
        assert_int_equal(ring[0].wc.wr_id, i);
        assert_int_equal(ring[1].wc.wr_id, i + 1);
        assert_int_equal(cq_poll(&cq, wc, 2), 2);
    }
}

/* The limit is the size that was asked for, not the size of the ring; an overflow is permanent (RDMAP-8-02). */
static void test_overflow(void **state)
{
    struct cq_entry ring[8];
    struct rddp_wc wc[8];
    struct cq cq;

    (void)state;
    events = 0;
    cq_init(&cq, ring, 8, 5, notify);
    for (uint64_t i = 0; i < 5; i++)
        assert_true(push(&cq, i, 1, RDDP_WC_SUCCESS, false));
    assert_false(cq.overflowed);
    cq_arm(&cq, CQ_SOLICITED);
    assert_false(push(&cq, 5, 1, RDDP_WC_SUCCESS, false));
    assert_true(cq.overflowed);
    assert_int_equal(events, 1); /* a thread that waits must learn of it */
    assert_int_equal(cq_poll(&cq, wc, 8), 5);
    assert_int_equal(wc[4].wr_id, 4);
    assert_false(push(&cq, 6, 1, RDDP_WC_SUCCESS, false));
    assert_int_equal(cq_poll(&cq, wc, 8), 0);
    assert_true(cq.overflowed);
}

static void test_arm(void **state)
{
    static const struct {
        enum cq_arm first, second;
        enum rddp_wc_status status;
        bool solicited;
        unsigned events;
    } rows[] = {
        {CQ_QUIET, CQ_QUIET, RDDP_WC_SUCCESS, true, 0},
        {CQ_SOLICITED, CQ_QUIET, RDDP_WC_SUCCESS, false, 0},
        {CQ_SOLICITED, CQ_QUIET, RDDP_WC_SUCCESS, true, 1},
        {CQ_SOLICITED, CQ_QUIET, RDDP_WC_WR_FLUSH_ERR, false, 1}, /* RDMAP-5.3-02, and errors always */
        {CQ_NEXT, CQ_QUIET, RDDP_WC_SUCCESS, false, 1},
        {CQ_NEXT, CQ_SOLICITED, RDDP_WC_SUCCESS, false, 1}, /* a stronger arming is not weakened */
        {CQ_SOLICITED, CQ_NEXT, RDDP_WC_SUCCESS, false, 1},
    };
    struct cq_entry ring[8];
    struct cq cq;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        events = 0;
        cq_init(&cq, ring, 8, 8, notify);
        cq_arm(&cq, rows[i].first);
        cq_arm(&cq, rows[i].second);
        assert_true(push(&cq, 1, 1, rows[i].status, rows[i].solicited));
        assert_int_equal(events, rows[i].events);
        assert_true(push(&cq, 2, 1, rows[i].status, rows[i].solicited));
        assert_int_equal(events, rows[i].events); /* once for each arming */
        cq_arm(&cq, CQ_NEXT);
        assert_true(push(&cq, 3, 1, RDDP_WC_SUCCESS, false));
        assert_int_equal(events, rows[i].events + 1);
    }
}

/* A place that was reserved at the post is free again when the completion is polled, forgotten, or lost in an overflow.
 */
static void test_places(void **state)
{
    struct cq_entry ring[4];
    struct rddp_wc wc = {.qp_num = 1};
    _Atomic uint32_t mine = 2, other = 2;
    struct cq cq;

    (void)state;
    cq_init(&cq, ring, 4, 4, NULL);
    assert_true(cq_push(&cq, &wc, false, &mine));
    assert_true(cq_push(&cq, &wc, false, NULL));
    assert_true(cq_push(&cq, &wc, false, &mine));
    wc.qp_num = 2;
    assert_true(cq_push(&cq, &wc, false, &other));
    assert_int_equal(mine, 2);
    assert_int_equal(other, 2);
    assert_false(cq_push(&cq, &wc, false, &other));
    assert_int_equal(other, 1);
    assert_int_equal(cq_poll(&cq, &wc, 1), 1);
    assert_int_equal(mine, 1);
    cq_forget(&cq, 1);
    assert_int_equal(mine, 0);
    assert_int_equal(other, 1);
    assert_int_equal(cq_poll(&cq, &wc, 1), 1);
    assert_int_equal(other, 0);
}

static unsigned overruns;

static void count_overrun(struct cq *cq)
{
    (void)cq;
    overruns++;
}

static uint64_t tick_ns(void)
{
    static uint64_t ns;

    return ns += 5;
}

/* Completions of one writer are seen together, have one time, and make one event. */
static void test_together(void **state)
{
    struct cq_entry ring[8];
    struct rddp_wc wc[8], *place;
    _Atomic uint32_t taken = 7;
    struct cq cq;
    struct cq_writer w = {.cq = &cq};

    (void)state;
    events = overruns = 0;
    cq_init(&cq, ring, 8, 4, notify);
    cq.overran = count_overrun;
    cq.clock_ns = tick_ns;
    cq_arm(&cq, CQ_SOLICITED);
    cq_show(&w); /* nothing was added */
    for (uint64_t i = 0; i < 4; i++) {
        place = cq_add(&w, i == 1, &taken);
        assert_non_null(place);
        *place = (struct rddp_wc){.wr_id = i};
        assert_true(cq_is_empty(&cq));
        assert_int_equal(events, 0);
    }
    cq_show(&w);
    assert_int_equal(events, 1);
    assert_int_equal(cq_poll(&cq, wc, 2), 2);
    assert_int_equal(wc[1].wr_id, 1);
    assert_int_equal(wc[0].timestamp_ns, 5);
    assert_int_equal(wc[1].timestamp_ns, 5);
    assert_int_equal(taken, 5);

    cq_arm(&cq, CQ_SOLICITED);
    for (uint64_t i = 4; i < 6; i++) {
        place = cq_add(&w, false, &taken);
        assert_non_null(place);
        *place = (struct rddp_wc){.wr_id = i};
    }
    assert_null(cq_add(&w, false, &taken));
    assert_int_equal(cq_poll(&cq, wc, 1), 1);
    assert_null(cq_add(&w, false, NULL));   /* there is room again, but none may follow what is lost */
    assert_int_equal(events + overruns, 1); /* neither with the lock held */
    assert_false(cq.overflowed);            /* a reader would look for no more, and two are to come */
    cq_show(&w);
    assert_int_equal(events, 2);
    assert_int_equal(overruns, 1);
    assert_true(cq.overflowed);
    assert_int_equal(taken, 3);
    assert_int_equal(cq_poll(&cq, wc, 8), 3);
    assert_int_equal(wc[2].wr_id, 5);
    assert_int_equal(wc[2].timestamp_ns, 10);
    assert_int_equal(taken, 0);
}

static void test_forget(void **state)
{
    struct cq_entry ring[8];
    struct rddp_wc wc[8];
    struct cq cq;

    (void)state;
    cq_init(&cq, ring, 8, 8, NULL);
    atomic_store(&cq.head, UINT32_MAX - 2);
    atomic_store(&cq.tail, UINT32_MAX - 2);
    for (uint64_t i = 0; i < 8; i++)
        assert_true(push(&cq, i, i % 3 ? 10 : 20, RDDP_WC_SUCCESS, false));
    cq_forget(&cq, 10);
    assert_int_equal(cq_poll(&cq, wc, 8), 3);
    assert_int_equal(wc[0].wr_id, 0);
    assert_int_equal(wc[1].wr_id, 3);
    assert_int_equal(wc[2].wr_id, 6);
    for (uint64_t i = 0; i < 8; i++)
        assert_true(push(&cq, i, 10, RDDP_WC_SUCCESS, false));
    cq_forget(&cq, 30);
    assert_int_equal(cq_poll(&cq, wc, 1), 1);
    cq_forget(&cq, 10);
    assert_true(cq_is_empty(&cq));
}

/* Those of success survive their queue pair, without a place in its queues, and also the next one of its number. */
static void test_orphan(void **state)
{
    _Atomic uint32_t taken = 4;
    struct cq_entry ring[8];
    struct rddp_wc wc[8];
    struct cq cq;

    (void)state;
    cq_init(&cq, ring, 8, 8, NULL);
    for (uint64_t i = 0; i < 4; i++) {
        struct rddp_wc one = {.wr_id = i, .qp_num = 10, .status = i % 2 ? RDDP_WC_WR_FLUSH_ERR : RDDP_WC_SUCCESS};
        assert_true(cq_push(&cq, &one, false, &taken));
    }
    cq_orphan(&cq, 10);
    assert_int_equal(taken, 2);
    cq_orphan(&cq, 10);
    assert_int_equal(taken, 2);
    cq_forget(&cq, 10);
    assert_int_equal(taken, 0);
    assert_int_equal(cq_poll(&cq, wc, 8), 2);
    assert_int_equal(wc[0].wr_id, 0);
    assert_int_equal(wc[1].wr_id, 2);
    assert_int_equal(taken, 0);
}

/* From every size to every other, with every number of completions, wherever the ring has its end; each gives its place
 * back. */
static void test_resize(void **state)
{
    enum { SIZE = 9 };
    static struct cq_entry ring[2][16];
    struct rddp_wc wc[SIZE];
    struct cq cq;

    (void)state;
    for (uint32_t from = 1; from < SIZE; from++)
        for (uint32_t to = 1; to <= SIZE; to++)
            for (uint32_t n = 0; n <= from; n++) {
                uint32_t size = n <= to ? to : from;
                _Atomic uint32_t taken = size;

                cq_init(&cq, ring[0], from > 4 ? 8 : from > 2 ? 4 : from, from, notify);
                cq.head = cq.tail = UINT32_MAX - from / 2;
                for (uint32_t i = 0; i < n; i++)
                    assert_true(cq_push(&cq, &(struct rddp_wc){.wr_id = i}, false, &taken));
                cq_arm(&cq, CQ_NEXT);
                assert_ptr_equal(cq_resize(&cq, ring[1], 16, to), n <= to ? ring[0] : NULL);
                events = 0;
                for (uint32_t i = n; i < size; i++)
                    assert_true(cq_push(&cq, &(struct rddp_wc){.wr_id = i}, false, &taken));
                assert_int_equal(events, n < size); /* it is armed as before */
                assert_int_equal(cq_poll(&cq, wc, SIZE), size);
                assert_int_equal(taken, 0);
                for (uint32_t i = 0; i < size; i++)
                    assert_int_equal(wc[i].wr_id, i);
                for (uint32_t i = 0; i < size; i++)
                    assert_true(push(&cq, i, 1, RDDP_WC_SUCCESS, false));
                assert_false(push(&cq, 0, 1, RDDP_WC_SUCCESS, false));
            }
}

/* Two writers, two readers, a thread that changes the size, and now and then cq_forget(). Each writer posts as a queue
 * does: only while a place is free. So the CQ, as large as both queues together, is never full; no completion is
 * duplicated, none is missing, and all are in order. */
enum { RUN = 20000, WRITERS = 2, DEPTH = 32, FORGOTTEN = 100 };

static struct cq shared;
static _Atomic uint32_t places[WRITERS + 1];
static atomic_uint written, seen;

static void *read_some(void *unused)
{
    uint64_t last[WRITERS + 1] = {0};
    struct rddp_wc wc[48];

    (void)unused;
    for (;;) {
        bool end = atomic_load(&written) == WRITERS;
        uint32_t n = cq_poll(&shared, wc, 48);

        for (uint32_t i = 0; i < n; i++) {
            if (wc[i].qp_num == FORGOTTEN)
                continue;
            assert(wc[i].wr_id > last[wc[i].qp_num]); /* each reader sees increasing numbers */
            last[wc[i].qp_num] = wc[i].wr_id;
            atomic_fetch_add(&seen, 1);
        }
        if (!n && end)
            return NULL;
        if (!n)
            sched_yield();
    }
}

static void *write_some(void *number)
{
    uint32_t qp_num = *(const uint32_t *)number;

    for (uint64_t i = 1; i <= RUN; i++) {
        while (atomic_load(&places[qp_num]) >= DEPTH - 1)
            sched_yield();
        atomic_fetch_add(&places[qp_num], 1);
        assert(cq_push(&shared, &(struct rddp_wc){.wr_id = i, .qp_num = qp_num}, false, &places[qp_num]));
        if (qp_num == 1 && i % 100 == 0) {
            assert(push(&shared, i, FORGOTTEN, RDDP_WC_SUCCESS, false));
            cq_forget(&shared, FORGOTTEN);
        }
    }
    atomic_fetch_add(&written, 1);
    return NULL;
}

static void test_threads(void **state)
{
    static const uint32_t number[WRITERS] = {1, 2};
    enum { SIZES = 3, LARGEST = WRITERS * DEPTH << (SIZES - 1) };
    static struct cq_entry ring[SIZES][LARGEST];
    pthread_t reader[2], writer[WRITERS];

    (void)state;
    cq_init(&shared, ring[0], WRITERS * DEPTH, WRITERS * DEPTH, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&reader[i], NULL, read_some, NULL), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writer[i], NULL, write_some, (void *)(uintptr_t)&number[i]), 0);
    for (uint32_t i = 1; atomic_load(&written) < WRITERS; i++) {
        uint32_t size = (uint32_t)(WRITERS * DEPTH) << i % SIZES;

        /* The smallest has room for what both queues hold and for one that cq_forget() drops. */
        assert_ptr_equal(cq_resize(&shared, ring[i % SIZES], size, size - 1), ring[(i - 1) % SIZES]);
        sched_yield();
    }
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writer[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(reader[i], NULL), 0);
    assert_int_equal(atomic_load(&seen), WRITERS * RUN);
    assert_false(shared.overflowed);
}

#if defined(__SANITIZE_THREAD__)
#define CAN_LOOK false /* its run-time library holds a lock of its own while it writes the counter */
#elif defined(__has_feature)
#define CAN_LOOK (!__has_feature(thread_sanitizer))
#else
#define CAN_LOOK true
#endif

static struct cq tight;
static void *page;
static long page_octets;
static uint32_t tail_seen;

/* A place is about to be given back. */
static void look(int number)
{
    (void)number;
    tail_seen = atomic_load(&tight.tail);
    mprotect(page, (size_t)page_octets, PROT_READ | PROT_WRITE);
}

/* When places are given back, the ring has space already: requests that take them at once can complete. The counter
 * lies in memory that may not be written, so that the first write to it is seen when it happens. */
static void test_space_first(void **state)
{
    enum { ENTRIES = 4, MORE = 2 };
    static const struct sigaction looks = {.sa_handler = look, .sa_flags = (int)SA_RESETHAND};
    struct cq_entry ring[ENTRIES];
    struct rddp_wc wc[ENTRIES];
    _Atomic uint32_t *place;
    struct sigaction before;

    (void)state;
    if (!CAN_LOOK)
        skip();
    page_octets = sysconf(_SC_PAGESIZE);
    page = mmap(NULL, (size_t)page_octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    place = page;
    cq_init(&tight, ring, ENTRIES, ENTRIES, NULL);
    for (uint32_t i = 0; i < ENTRIES; i++)
        assert_true(cq_push(&tight, &(struct rddp_wc){.wr_id = i}, false, &place[i / MORE]));
    atomic_store(&place[0], MORE);
    atomic_store(&place[1], MORE);
    assert_int_equal(sigaction(SIGSEGV, &looks, &before), 0);
    assert_int_equal(mprotect(page, (size_t)page_octets, PROT_READ), 0);
    assert_int_equal(cq_poll(&tight, wc, ENTRIES), ENTRIES);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(tail_seen, MORE);
    assert_int_equal(place[0], 0);
    assert_int_equal(place[1], 0);
    assert_int_equal(munmap(page, (size_t)page_octets), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),       cmocka_unit_test(test_overflow), cmocka_unit_test(test_arm),
        cmocka_unit_test(test_places),      cmocka_unit_test(test_together), cmocka_unit_test(test_forget),
        cmocka_unit_test(test_orphan),      cmocka_unit_test(test_resize),   cmocka_unit_test(test_threads),
        cmocka_unit_test(test_space_first), cmocka_unit_test(test_front),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
