/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq_model.c - random calls of a CQ beside a plain list: wherever the ring begins and wraps, and the counters with it.
 */
#include <string.h>

#include "base/ring.h"
#include "core/cq.h"
#include "tests/lib/engine.h"
#include "tests/lib/rng.h"

enum { RUNS = 1000, STEPS = 200, QPS = 4, MOST = 16, SPACE = 2 * MOST };

struct entry {
    uint64_t wr_id;
    uint32_t qp;
    bool failed, orphaned;
};

static struct model {
    struct cq cq;
    struct cq_entry ring[2][SPACE];
    unsigned used; /* which of them */
    struct entry list[SPACE];
    uint32_t count, cqe;
    uint64_t next;
    _Atomic uint32_t taken[QPS];
    uint32_t expected[QPS];
} m;
static struct rng rng;
static uint64_t now_ns;

static uint32_t below(uint32_t limit)
{
    return rng_below(&rng, limit);
}

static uint64_t tick(void)
{
    return ++now_ns;
}

static void push_some(void)
{
    struct cq_writer writer = {.cq = &m.cq};

    for (uint32_t n = 1 + below(3); n && m.count < m.cqe; n--) {
        struct entry entry = {.wr_id = m.next++, .qp = below(QPS), .failed = below(4) == 0};
        struct rddp_wc *wc;

        m.taken[entry.qp]++;
        m.expected[entry.qp]++;
        wc = cq_add(&writer, false, &m.taken[entry.qp]);
        assert_non_null(wc);
        *wc = (struct rddp_wc){
            .wr_id = entry.wr_id, .qp_num = entry.qp, .status = entry.failed ? RDDP_WC_WR_FLUSH_ERR : RDDP_WC_SUCCESS};
        m.list[m.count++] = entry;
    }
    cq_show(&writer);
}

static void poll_some(void)
{
    struct rddp_wc wc[5];
    uint32_t most = 1 + below(5), n = cq_poll(&m.cq, wc, most);

    assert_int_equal(n, m.count < most ? m.count : most);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(wc[i].wr_id, m.list[i].wr_id);
        assert_int_equal(wc[i].qp_num, m.list[i].qp);
        assert_true(!m.cq.clock_ns || (wc[i].timestamp_ns && wc[i].timestamp_ns <= now_ns));
        m.expected[m.list[i].qp] -= !m.list[i].orphaned;
    }
    m.count -= n;
    memmove(m.list, m.list + n, m.count * sizeof(m.list[0]));
}

static void resize(void)
{
    uint32_t cqe = 1 + below(MOST), size = ring_slots(cqe) << below(2);
    struct cq_entry *old = cq_resize(&m.cq, m.ring[!m.used], size, cqe);

    assert_ptr_equal(old, m.count <= cqe ? m.ring[m.used] : NULL);
    if (!old)
        return;
    memset(old, 0xdd, sizeof(m.ring[0]));
    m.used = !m.used;
    m.cqe = cqe;
}

static void forget(void)
{
    uint32_t qp = below(QPS), kept = 0;

    cq_forget(&m.cq, qp);
    for (uint32_t i = 0; i < m.count; i++) {
        if (m.list[i].qp != qp || m.list[i].orphaned)
            m.list[kept++] = m.list[i];
        else
            m.expected[qp]--;
    }
    m.count = kept;
}

static void orphan(void)
{
    uint32_t qp = below(QPS);

    cq_orphan(&m.cq, qp);
    for (uint32_t i = 0; i < m.count; i++) {
        if (m.list[i].qp != qp || m.list[i].failed || m.list[i].orphaned)
            continue;
        m.list[i].orphaned = true;
        m.expected[qp]--;
    }
}

/* A child of fork() counts the places again. */
static void leave_it(void)
{
    for (uint32_t i = 0; i < QPS; i++)
        m.taken[i] = 0;
    cq_leave(&m.cq);
}

static void take_step(void)
{
    static void (*const others[])(void) = {resize, forget, orphan, leave_it};
    uint32_t what = below(12);

    if (what < 5)
        push_some();
    else if (what < 8)
        poll_some();
    else
        others[what - 8]();
    for (uint32_t i = 0; i < QPS; i++)
        assert_int_equal(m.taken[i], m.expected[i]);
}

static void beside_a_list(void **state)
{
    (void)state;
    for (uint32_t run = 0; run < RUNS; run++) {
        memset(&m, 0, sizeof(m));
        rng = (struct rng){run};
        m.cqe = 1 + below(MOST);
        cq_init(&m.cq, m.ring[0], ring_slots(m.cqe), m.cqe, NULL);
        m.cq.clock_ns = run % 2 ? tick : NULL;
        m.cq.head = m.cq.tail = run % 3 ? UINT32_MAX - below(40) : 0;
        for (uint32_t step = 0; step < STEPS; step++)
            take_step();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(beside_a_list)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
