/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_signals.c - the sequence of a peer's chunks: impossible sequence numbers, and signals, which are held until
 * their turn. */
#include "tests/unit/assoc_peer.h"

/* An AWS that was seen before, placed or held; one too far ahead; and 2^31 ahead and more. SCTP-2.2-25 SCTP-2.2-28 */
static void sequence(void **state)
{
    static const struct {
        uint32_t first, second;
        enum fault fault;
    } rows[] = {
        {0, 0, FAULT_CHUNK_AGAIN},
        {5, 5, FAULT_CHUNK_AGAIN},
        {0, 0xffffffff, FAULT_CHUNK_AGAIN},
        {0, 0x80000002, FAULT_CHUNK_AGAIN},
        {0, 0x80000001, FAULT_CHUNK_AHEAD},
        {0, 0x80000000, FAULT_CHUNK_AHEAD},
        {0, 1 + WINDOW_CHUNKS, FAULT_CHUNK_AHEAD},
        {0, WINDOW_CHUNKS, FAULT_NONE},
        {0, 1, FAULT_NONE},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sctpddp_chunk chunk;
        struct mr *mr;

        open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
        mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
        chunk = placed(SCTPDDP_MODE_RDMA, mr->key, mr->start, 10);
        chunk.aws = rows[i].first;
        give(SCTPDDP_RDMA_ONLY, chunk);
        engine_remember(&n.engine);
        chunk.aws = rows[i].second;
        chunk.offset += 100;
        give(SCTPDDP_RDMA_ONLY, chunk);
        if (rows[i].fault) {
            expect_abort(SCTPDDP_RDMA_ONLY, rows[i].fault, mr);
            continue;
        }
        memcpy(want_of(&n.engine, mr) + 100, data, 10);
        engine_expect(&n.engine);
        net_fini(&n);
    }
}

static void expect_signal(uint32_t at, uint64_t pos, uint32_t tag, uint8_t flags)
{
    const struct assoc_signal *s = &n.side[VICTIM].signals[at];

    assert_true(at < n.side[VICTIM].signal_count);
    assert_int_equal(s->pos, pos);
    assert_int_equal(s->tag, tag);
    assert_int_equal(s->flags, flags);
}

/* Chunks are placed on arrival and signalled in their turn: by AWS, or by TSN. Reserved flags have no effect.
 * SCTP-2.2-19 SCTP-2.2-20 SCTP-2.2-21 SCTP-2.2-22 SCTP-2.2-23 SCTP-2.2-24 SCTP-1-01 SCTP-2.2-06 */
static void signals(void **state)
{
    static const enum sctpddp_adaptation kinds[] = {SCTPDDP_DDP_WITH_TAG, SCTPDDP_RDMA_ONLY};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct sctpddp_chunk chunk;
        struct mr *mr, *other;

        open_both(kinds[i], kinds[i]);
        mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
        other = engine_region(&n.engine, OCTETS, ALL_ACCESS);
        engine_remember(&n.engine);
        chunk = placed(i ? SCTPDDP_MODE_RDMA : SCTPDDP_MODE_TAG, mr->key, mr->start, 10);
        chunk.aws = 2;
        chunk.flags = SCTPDDP_NOTIFY | 0x1f;
        give(kinds[i], chunk);
        memcpy(want_of(&n.engine, mr), data, 10);
        engine_expect(&n.engine);
        assert_int_equal(n.side[VICTIM].signal_count, 0);
        chunk.aws = 3;
        chunk.flags = SCTPDDP_RELEASE | SCTPDDP_ACK;
        chunk.tag = other->key;
        chunk.offset = other->start;
        give(kinds[i], chunk);
        chunk.aws = 0;
        chunk.flags = 0;
        give(kinds[i], chunk); /* the tag still counts: the release has not had its turn */
        assert_int_equal(n.side[VICTIM].signal_count, 0);
        assert_true(other->valid);
        chunk.aws = 1;
        give(kinds[i], chunk);
        assert_int_equal(n.side[VICTIM].signal_count, 2);
        expect_signal(0, 2, mr->key, SCTPDDP_NOTIFY);
        expect_signal(1, 3, other->key, SCTPDDP_RELEASE | SCTPDDP_ACK);
        assert_false(other->valid);
        memcpy(want_of(&n.engine, other), data, 10);
        engine_expect(&n.engine);
        chunk.aws = 4;
        give(kinds[i], chunk);
        net_expect_abort(&n, VICTIM, FAULT_KEY);
        net_fini(&n);
    }
}

/* One chunk makes more signals due than the host takes in one batch: none is lost, and all are in order. */
static void many_signals(void **state)
{
    enum { MANY = 200 };
    struct sctpddp_chunk chunk;
    struct mr *mr;

    (void)state;
    open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
    mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
    chunk = placed(SCTPDDP_MODE_RDMA, mr->key, mr->start, 1);
    chunk.flags = SCTPDDP_NOTIFY;
    for (chunk.aws = 1; chunk.aws < MANY; chunk.aws++)
        give(SCTPDDP_RDMA_ONLY, chunk);
    assert_int_equal(n.side[VICTIM].signal_count, 0);
    chunk.aws = 0;
    give(SCTPDDP_RDMA_ONLY, chunk);
    assert_int_equal(n.side[VICTIM].signal_count, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        expect_signal(i, i, mr->key, SCTPDDP_NOTIFY);
    net_fini(&n);
}

/* Nothing is placed behind a chunk that releases the tag, even if the release has not had its turn. SCTP-2.2-21 */
static void released(void **state)
{
    (void)state;
    for (unsigned order = 0; order < 2; order++) {
        struct sctpddp_chunk chunk;
        struct mr *mr;

        open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
        mr = engine_region(&n.engine, OCTETS, ALL_ACCESS);
        chunk = placed(SCTPDDP_MODE_RDMA, mr->key, mr->start, 10);
        chunk.aws = order ? 2 : 1;
        chunk.flags = order ? 0 : SCTPDDP_RELEASE;
        give(SCTPDDP_RDMA_ONLY, chunk);
        engine_remember(&n.engine);
        chunk.aws = order ? 1 : 2;
        chunk.flags = order ? SCTPDDP_RELEASE : 0;
        chunk.offset += 50;
        give(SCTPDDP_RDMA_ONLY, chunk);
        expect_abort(SCTPDDP_RDMA_ONLY, FAULT_CHUNK_RELEASED, mr);
    }
}

/* The peer releases a tag that it may not release. */
static void release_of_others(void **state)
{
    struct sctpddp_chunk chunk;
    struct mr *mr;

    (void)state;
    open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
    mr = engine_region(&n.engine, OCTETS, LOCAL);
    engine_remember(&n.engine);
    chunk = placed(SCTPDDP_MODE_RDMA, mr->key, mr->start, 0);
    chunk.flags = SCTPDDP_RELEASE;
    give(SCTPDDP_RDMA_ONLY, chunk);
    assert_true(mr->valid);
    expect_abort(SCTPDDP_RDMA_ONLY, FAULT_INVALIDATE, NULL);
}

/* A Read Request, and a message of a peer that does not negotiate, wait for what was sent before them. SCTP-2.2-29 */
static void in_turn(void **state)
{
    const struct neg request = {.type = NEG_READ_REQUEST, .id = 1, .source_tag = 5, .sink_tag = 6, .length = 1};
    struct sctpddp_chunk first = {.mode = SCTPDDP_NO_PLACEMENT, .data = data, .length = 1};
    struct sctpddp_chunk second = {.mode = SCTPDDP_NO_PLACEMENT, .data = data + 1, .length = 2};
    struct rddp_sge sge;
    struct mr *mr;

    (void)state;
    open_both(BOTH, BOTH);
    assert_int_equal(net_neg(&n, VICTIM, next_aws() + 1, &request), ASSOC_KEPT);
    assert_int_equal(victim()->life.state, CONN_READY);
    net_fini(&n);

    open_both(SCTPDDP_DDP, SCTPDDP_DDP);
    mr = engine_region(&n.engine, OCTETS, LOCAL);
    for (uint64_t i = 0; i < 2; i++) {
        sge = piece_of(mr, 0, 10);
        assert_int_equal(post_recv(&n.side[VICTIM].side, i, &sge, 1), 0);
    }
    second.aws = 1;
    assert_int_equal(net_chunk(&n, VICTIM, SCTPDDP_DDP, &second), ASSOC_KEPT);
    assert_true(cq_is_empty(&n.side[VICTIM].side.recv_cq));
    assert_int_equal(net_chunk(&n, VICTIM, SCTPDDP_DDP, &first), ASSOC_TAKEN);
    net_run(&n);
    assert_int_equal(expect_wc(&n.side[VICTIM].side.recv_cq, 0, RDDP_WC_SUCCESS).byte_len, 1);
    assert_int_equal(expect_wc(&n.side[VICTIM].side.recv_cq, 1, RDDP_WC_SUCCESS).byte_len, 2);
    net_fini(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequence), cmocka_unit_test(signals),  cmocka_unit_test(many_signals),
        cmocka_unit_test(in_turn),  cmocka_unit_test(released), cmocka_unit_test(release_of_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
