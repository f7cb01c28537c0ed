/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* emit_whole.c - two ends are given the same: one cuts what is a segment by itself the short way (core/whole.c), one
 * does not. What leaves has to be alike, segment by segment, and so do the queues and completions. */
#include "base/container.h"
#include "core/qp_inner.h"
#include "tests/lib/engine.h"
#include "tests/lib/rng.h"

enum { RUNS = 2000, STEPS = 120, REGIONS = 3, ODD = 2, REGION = 300, SGES = 3, LONGEST = 40 };

static struct engine e;
static struct side quick, plain;
static struct numbering without;         /* numbering_queues without the short way */
static struct mr *region[REGIONS + ODD]; /* behind the others a window of another queue pair, and one on demand */
static struct rng rng;
static uint32_t peer_reads;

/* How often the short way was taken, and what it had to leave. */
static struct {
    uint32_t whole, cut, failed, answers;
} seen;

static bool copy_none(uint8_t *to, const uint8_t *from, uint32_t octets)
{
    (void)to, (void)from, (void)octets;
    return false;
}

/* --- what both are given ------------------------------------------------------------------------------------------ */

static struct rddp_sge some_piece(uint32_t longest)
{
    const struct mr *mr = region[rng_one_in(&rng, 60) ? REGIONS + rng_below(&rng, ODD) : rng_below(&rng, REGIONS)];
    uint32_t n = rng_below(&rng, longest + 1);
    struct rddp_sge sge = piece_of(mr, rng_below(&rng, REGION - n + 1), n);

    if (rng_one_in(&rng, 100))
        sge.lkey++;
    if (rng_one_in(&rng, 100))
        sge.addr = mr->start + REGION - n / 2;
    return sge;
}

static void post_both(uint64_t id)
{
    static const enum rddp_wr_opcode opcodes[] = {
        RDDP_WR_RDMA_WRITE, RDDP_WR_RDMA_WRITE,          RDDP_WR_RDMA_WRITE,    RDDP_WR_SEND,      RDDP_WR_SEND,
        RDDP_WR_SEND,       RDDP_WR_RDMA_WRITE_WITH_IMM, RDDP_WR_SEND_WITH_INV, RDDP_WR_RDMA_READ,
    };
    enum rddp_wr_opcode opcode = opcodes[rng_below(&rng, countof(opcodes))];
    bool is_read = opcode == RDDP_WR_RDMA_READ;
    int sges = is_read ? 1 : (int)rng_below(&rng, SGES + 1);
    struct rddp_sge sge[SGES];
    unsigned flags = 0;
    uint64_t at = rng_below(&rng, 1000);
    uint32_t rkey = rng_below(&rng, 1000);

    for (int i = 0; i < sges; i++)
        sge[i] = some_piece(i && rng_one_in(&rng, 2) ? 0 : LONGEST / 2);
    flags |= rng_one_in(&rng, 2) ? RDDP_SEND_SIGNALED : 0;
    flags |= rng_one_in(&rng, 3) ? RDDP_SEND_SOLICITED : 0;
    flags |= rng_one_in(&rng, 4) ? RDDP_SEND_FENCE : 0;
    flags |= !is_read && rng_one_in(&rng, 3) ? RDDP_SEND_INLINE : 0;
    for (int i = 0; flags & RDDP_SEND_INLINE && i < sges; i++)
        sge[i].addr = (uintptr_t)region[0]->base; /* it is copied without a look at any region */
    assert_int_equal(post_remote(&quick, id, opcode, flags, sge, sges, rkey, at),
                     post_remote(&plain, id, opcode, flags, sge, sges, rkey, at));
}

static void read_both(void)
{
    const struct seg_read read = {1, 0, region[1]->key, region[1]->start, 1 + rng_below(&rng, LONGEST)};

    if (quick.qp.answers.head - quick.qp.answers.tail == quick.qp.attr.ird)
        return;
    peer_reads++;
    assert_int_equal(arrive(&quick, a_read_request(peer_reads, &read)),
                     arrive(&plain, a_read_request(peer_reads, &read)));
}

static void answer_both(void)
{
    uint8_t octets[LONGEST] = {0};
    const struct send *s;
    struct seg seg;

    if (!reads_out(&quick.qp))
        return;
    s = read_out_at(&quick.qp, quick.qp.reads.tail);
    seg = a_read_response(s->sge->lkey, s->sge->addr, octets, s->length, SEG_LAST);
    assert_int_equal(arrive(&quick, seg), arrive(&plain, seg));
}

/* --- what leaves -------------------------------------------------------------------------------------------------- */

static void expect_alike(const struct emit *a, const struct emit *b)
{
    assert_int_equal(a->seg.op, b->seg.op);
    assert_int_equal(a->seg.flags, b->seg.flags);
    assert_int_equal(a->seg.msg, b->seg.msg);
    assert_int_equal(a->seg.key, b->seg.key);
    assert_int_equal(a->seg.offset, b->seg.offset);
    assert_int_equal(a->seg.invalidate, b->seg.invalidate);
    assert_int_equal(a->seg.immediate, b->seg.immediate);
    assert_memory_equal(&a->seg.read, &b->seg.read, sizeof(a->seg.read));
    assert_int_equal(a->seg.length, b->seg.length);
    assert_int_equal(a->seg.control_length, b->seg.control_length);
    assert_int_equal(a->volatile_data, b->volatile_data);
    assert_int_equal(a->may_change, b->may_change);
    assert_int_equal(a->spans, b->spans);
    for (uint32_t i = 0; i < a->spans; i++) {
        assert_ptr_equal(a->region[i], b->region[i]);
        assert_int_equal(a->span[i].length, b->span[i].length);
        if (a->region[i])
            assert_ptr_equal(a->span[i].at, b->span[i].at);
        else
            assert_memory_equal(a->span[i].at, b->span[i].at, a->span[i].length);
    }
}

static void expect_same_queues(void)
{
    const struct qp *a = &quick.qp, *b = &plain.qp;

    assert_int_equal(a->state, b->state);
    assert_int_equal(a->note.fault, b->note.fault);
    assert_int_equal(a->sq.next, b->sq.next);
    assert_int_equal(a->sq.tail, b->sq.tail);
    assert_int_equal(a->cut.source, b->cut.source);
    assert_int_equal(a->answers.turn, b->answers.turn);
    assert_int_equal(a->tx_octets, b->tx_octets);
    assert_int_equal(a->tx_send_msg, b->tx_send_msg);
    assert_int_equal(qp_has_output(a), qp_has_output(b));
}

/* A segment of each, if there is one; both have left by the time of the next one, or the one after. */
static bool emit_both(void)
{
    uint32_t tagged_max = 1 + rng_below(&rng, LONGEST), untagged_max = 1 + rng_below(&rng, LONGEST);
    struct emit a = {.buffer = NULL}, b = {.buffer = NULL};
    uint32_t next = quick.qp.sq.next;
    bool is_there = qp_emit(&quick.qp, &a, tagged_max, untagged_max);

    assert_int_equal(qp_emit(&plain.qp, &b, tagged_max, untagged_max), is_there);
    seen.failed += quick.qp.state == QP_ERROR;
    if (is_there) {
        expect_alike(&a, &b);
        seen.whole += quick.qp.sq.next != next && a.seg.length == sq_at(&quick.qp, next)->length;
        seen.cut += quick.qp.sq.next == next && a.seg.op != SEG_READ_RESP;
        seen.answers += a.seg.op == SEG_READ_RESP;
        qp_queued(&quick.qp, quick.qp.tx_pos + 50);
        qp_queued(&plain.qp, plain.qp.tx_pos + 50);
        if (rng_one_in(&rng, 2)) {
            qp_sent(&quick.qp, quick.qp.tx_pos + 50);
            qp_sent(&plain.qp, plain.qp.tx_pos + 50);
        }
    }
    expect_same_queues();
    return is_there;
}

static void poll_both(void)
{
    struct rddp_wc a, b;

    while (cq_poll(&quick.send_cq, &a, 1)) {
        assert_int_equal(cq_poll(&plain.send_cq, &b, 1), 1);
        assert_int_equal(a.wr_id, b.wr_id);
        assert_int_equal(a.status, b.status);
        assert_int_equal(a.opcode, b.opcode);
    }
    expect_quiet(&plain.send_cq);
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

static void run(uint64_t seed)
{
    static const struct mr_copier nothing_is_there = {copy_none, copy_none};
    static const unsigned access[REGIONS + ODD] = {0, 0, RDDP_ACCESS_STABLE, 0, RDDP_ACCESS_ON_DEMAND};

    rng = (struct rng){seed};
    peer_reads = 0;
    engine_init(&e);
    e.mrs.copier = &nothing_is_there;
    for (uint32_t i = 0; i < REGIONS + ODD; i++)
        region[i] = engine_region(&e, REGION, ALL_ACCESS | access[i]);
    side_open(&quick, &e, NULL);
    side_open(&plain, &e, NULL);
    plain.qp.numbering = &without;
    region[REGIONS]->user = quick.qp.user + plain.qp.user;
    for (uint32_t step = 0; step < STEPS && quick.qp.state == QP_READY; step++) {
        switch (rng_below(&rng, 8)) {
        case 0:
        case 1:
        case 2:
            post_both(step);
            break;
        case 3:
            read_both();
            break;
        case 4:
            answer_both();
            break;
        default:
            emit_both();
            break;
        }
        poll_both();
    }
    side_fini(&quick);
    side_fini(&plain);
    engine_fini(&e);
}

static void test_alike(void **state)
{
    (void)state;
    without = numbering_queues;
    without.emit_whole = NULL;
    for (uint64_t seed = 1; seed <= RUNS; seed++)
        run(seed);
    assert_true(seen.whole > RUNS && seen.cut > RUNS && seen.answers > RUNS && seen.failed > RUNS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alike)};

    return cmocka_run_group_tests_name("emit_whole", tests, NULL, NULL);
}
