/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_kinds.c - two associations with every adaptation indication: which requests each can express, and in which
 * form. */
#include <errno.h>

#include "tests/lib/vectors.h"
#include "tests/unit/assoc_both.h"

/* The tag is a key, Writes work without negotiation, and Sends are messages. SCTP-2.1-05 SCTP-2.1-06 SCTP-3.2.1-R5b */
static void tagged_writes(void **state)
{
    static const enum sctpddp_adaptation kinds[] = {SCTPDDP_DDP_WITH_TAG, SCTPDDP_RDMA_ONLY};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct mr *from, *to;
        struct rddp_sge sge;

        open_both(kinds[i], kinds[i]);
        from = region(LOCAL);
        to = region(ALL_ACCESS);
        ready_to_go(from, 6);
        sge = piece_of(from, 0, OCTETS);
        assert_int_equal(post_remote(of(0), 1, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &sge, 1, to->key, to->start), 0);
        net_run(&n);
        expect_wc(&of(0)->send_cq, 1, RDDP_WC_SUCCESS);
        memcpy(want_of(&n.engine, to), from->base, OCTETS);
        engine_expect(&n.engine);
        net_fini(&n);
    }
}

/* The stream determines the buffer, whatever its key is, and only the buffer's length limits access. SCTP-2.1-03 */
static void stream_buffers(void **state)
{
    struct mr *from, *to;
    struct rddp_sge sge;

    (void)state;
    open_both(SCTPDDP_DDP, SCTPDDP_DDP);
    from = region(LOCAL);
    to = region(ALL_ACCESS);
    assert_int_equal(assoc_bind(&n.side[1].assoc, ASSOC_STREAMS, to->key), -EINVAL);
    assert_int_equal(assoc_bind(&n.side[1].assoc, ASSOC_STREAMS - 1, to->key), 0);
    ready_to_go(from, 7);
    sge = piece_of(from, 0, OCTETS);
    assert_int_equal(
        post_remote(of(0), 1, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &sge, 1, ASSOC_STREAMS - 1, to->start), 0);
    net_run(&n);
    expect_wc(&of(0)->send_cq, 1, RDDP_WC_SUCCESS);
    memcpy(want_of(&n.engine, to), from->base, OCTETS);
    engine_expect(&n.engine);
    net_fini(&n);
}

/* The sender's indication governs each direction, and a message without placement is a Send. SCTP-2.2-11 */
static void unlike_indications(void **state)
{
    static const enum sctpddp_adaptation kinds[][2] = {
        {SCTPDDP_DDP, SCTPDDP_DDP_WITH_TAG},
        {SCTPDDP_DDP_WITH_TAG, SCTPDDP_RDMA_AND_NEGOTIATION},
        {SCTPDDP_RDMA_AND_NEGOTIATION, SCTPDDP_DDP},
        {SCTPDDP_RDMA_NEGOTIATION, SCTPDDP_RDMA_NEGOTIATION},
        {SCTPDDP_RDMA_NEGOTIATION, SCTPDDP_RDMA_AND_NEGOTIATION},
        {SCTPDDP_PLAIN, SCTPDDP_PLAIN},
        {SCTPDDP_PLAIN, SCTPDDP_RDMA_ONLY},
        {SCTPDDP_RDMA_AND_NEGOTIATION, SCTPDDP_PLAIN},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct mr *from, *to;

        open_both(kinds[i][0], kinds[i][1]);
        from = region(LOCAL);
        to = region(LOCAL);
        ready_to_go(from, 8);
        for (unsigned side = 0; side < 2; side++) {
            struct rddp_sge sge = piece_of(from, 0, 100);

            receive_into(!side, 50, to);
            assert_int_equal(post(of(side), 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &sge, 1), 0);
            net_run(&n);
            expect_wc(&of(side)->send_cq, 1, RDDP_WC_SUCCESS);
            assert_int_equal(expect_wc(&of(!side)->recv_cq, 50, RDDP_WC_SUCCESS).byte_len, 100);
        }
        memcpy(want_of(&n.engine, to), from->base, 100);
        engine_expect(&n.engine);
        net_fini(&n);
    }
}

/* The vector's 2500 octets take three chunks: offsets advance, the AWS wraps past 2^32 - 1, and only the last chunk
 * carries flags, which are those posted with the Write. SCTP-0-02 SCTP-3.2.2-S3b SCTP-3.2.2-S3c SCTP-2.2-28 */
static void fragmentation(void **state)
{
    json_t *file = vectors_load("sctp"), *vector = json_object_get(file, "fragmentation"), *entry;
    uint32_t length = (uint32_t)vector_number(vector, "message_length");
    struct assoc *a = &n.side[0].assoc;
    struct assoc_chunk chunk;
    struct rddp_sge sge;
    struct mr *from;
    size_t i;

    (void)state;
    open_both(SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY);
    from = region(LOCAL);
    for (uint32_t k = 0; k < length; k++)
        from->base[k] = (uint8_t)(k * 5);
    sge = piece_of(from, 0, length);
    a->tx_pos = 0xfffffffe;
    a->attr.write_flags = SCTPDDP_NOTIFY | SCTPDDP_RELEASE;
    a->payload_max = SCTPDDP_RDMA_HEAD + (uint32_t)vector_number(vector, "max_data_per_chunk");
    assert_int_equal(post_remote(of(0), 1, RDDP_WR_RDMA_WRITE, 0, &sge, 1, 0x42, 0x1000), 0);
    vectors_each(vector, "chunks", i, entry) {
        uint8_t p[2048];
        size_t octets = vector_hex(entry, "hex", p, sizeof(p)) - 16;

        assert_true(assoc_emit(a, &chunk, n.now_us));
        assert_int_equal(chunk.head_length, SCTPDDP_RDMA_HEAD);
        assert_memory_equal(chunk.head, p + 16, SCTPDDP_RDMA_HEAD);
        assert_int_equal(chunk.emit.spans, 1);
        assert_in_range(octets - SCTPDDP_RDMA_HEAD - chunk.emit.span[0].length, 0, 3);
        assert_memory_equal(chunk.emit.span[0].at, p + 16 + SCTPDDP_RDMA_HEAD, chunk.emit.span[0].length);
    }
    assert_int_equal(i, 3);
    assert_false(assoc_emit(a, &chunk, n.now_us));
    json_decref(file);
    net_fini(&n);
}

/* In mode 0 and in DDP mode the application chooses the tag, and the signal reports it. SCTP-2.2-26 SCTP-3.2.2-S4b */
static void tags_of_the_application(void **state)
{
    (void)state;
    for (uint32_t mode = 0; mode < 2; mode++) {
        struct sctpddp_chunk chunk = {.mode = mode, .flags = SCTPDDP_NOTIFY, .tag = 0xcafe};
        struct mr *to;

        open_both(SCTPDDP_DDP, SCTPDDP_DDP);
        to = region(LOCAL);
        receive_into(1, 1, to);
        net_chunk(&n, 1, SCTPDDP_DDP, &chunk);
        assert_int_equal(n.side[1].signal_count, 1);
        assert_int_equal(n.side[1].signals[0].tag, 0xcafe);
        net_fini(&n);
    }
}

/* A message without placement may be fragmented, and has a position for each of its chunks. Kept or not, it is
 * delivered in its turn, and what is behind it, too. */
static void fragmented_messages(void **state)
{
    static const uint32_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    static const struct {
        uint32_t at, tsns;
    } message[] = {{0, 1}, {1, 3}, {4, 1}};

    (void)state;
    for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct sctpddp_chunk chunk = {.mode = SCTPDDP_NO_PLACEMENT};
        uint8_t p[SCTPDDP_HEAD_MAX + 3];
        uint32_t first, head;

        open_both(SCTPDDP_DDP, SCTPDDP_DDP);
        first = (uint32_t)(n.side[1].assoc.window.origin + n.side[1].assoc.window.next);
        head = (uint32_t)sctpddp_encode(SCTPDDP_DDP, &chunk, p);
        for (uint64_t k = 0; k < 3; k++)
            receive_into(1, k, region(LOCAL));
        for (unsigned k = 0; k < 3; k++) {
            uint32_t which = orders[i][k];

            n.tsns = message[which].tsns;
            net_give(&n, 1, p, head + 1 + which, first + message[which].at, 0, n.tsns == 1);
        }
        for (uint64_t k = 0; k < 3; k++)
            assert_int_equal(expect_wc(&of(1)->recv_cq, k, RDDP_WC_SUCCESS).byte_len, 1 + k);
        assert_int_equal(n.side[1].assoc.window.next, 5);
        n.tsns = 0;
        net_fini(&n);
    }
}

/* Its last chunk lies within the window. */
static void longest_fragmented_message(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        struct sctpddp_chunk chunk = {.mode = SCTPDDP_NO_PLACEMENT};
        uint8_t p[SCTPDDP_HEAD_MAX + 1];
        uint32_t first, head;

        open_both(SCTPDDP_DDP, SCTPDDP_DDP);
        first = (uint32_t)(n.side[1].assoc.window.origin + n.side[1].assoc.window.next);
        head = (uint32_t)sctpddp_encode(SCTPDDP_DDP, &chunk, p);
        receive_into(1, 1, region(LOCAL));
        n.tsns = WINDOW_CHUNKS + more;
        net_give(&n, 1, p, head + 1, first, 0, false);
        n.tsns = 0;
        if (more)
            net_expect_abort(&n, 1, FAULT_CHUNK_AHEAD);
        else
            expect_wc(&of(1)->recv_cq, 1, RDDP_WC_SUCCESS);
        net_fini(&n);
    }
}

/* A position that was spent on a stream that does not exist can never come: both are told. Plain messages go on. */
static void skipped_positions(void **state)
{
    (void)state;
    open_both(SCTPDDP_DDP, SCTPDDP_DDP);
    assoc_skipped(&n.side[1].assoc, 99, n.now_us);
    net_run(&n);
    net_expect_abort(&n, 1, FAULT_CHUNK_STREAM);
    net_fini(&n);
    open_both(SCTPDDP_PLAIN, SCTPDDP_PLAIN);
    assoc_skipped(&n.side[1].assoc, 99, n.now_us);
    assert_int_equal(n.side[1].assoc.life.state, CONN_READY);
    net_fini(&n);
}

/* If the peer sent no indication that we know, no message has a header extension, whatever indication we sent. The
 * association tells which indication each side uses. SCTP-3.1-01 SCTP-3.1-02 SCTP-3.1-03 SCTP-3.1-04 SCTP-3.1-05
 * SCTP-3.1-06 SCTP-3.2.2-01 */
static void header_or_none(void **state)
{
    (void)state;
    for (unsigned own = 0; own < SCTPDDP_ADAPTATIONS; own++) {
        for (unsigned peer = 0; peer < 8; peer++) {
            bool on = own && peer >= 1 && peer <= 5;
            struct assoc *a = &n.side[0].assoc;

            net_init(&n, (enum sctpddp_adaptation)own, SCTPDDP_DDP, NULL, 1);
            assoc_up(a, peer, 7, NET_PAYLOAD, n.now_us);
            assert_int_equal(a->own, on ? own : SCTPDDP_PLAIN);
            assert_int_equal(a->peer, on ? peer : SCTPDDP_PLAIN);
            if (a->own != SCTPDDP_RDMA_ONLY && !a->negotiates) {
                struct mr *from = region(LOCAL);
                struct rddp_sge sge = piece_of(from, 0, 10);
                struct assoc_chunk chunk;

                assert_int_equal(post(of(0), 1, RDDP_WR_SEND, 0, &sge, 1), 0);
                assert_true(assoc_emit(a, &chunk, n.now_us));
                assert_int_equal(chunk.head_length, sctpddp_head(a->own));
                assert_int_equal(chunk.emit.span[0].length, 10);
            }
            net_fini(&n);
        }
    }
}

/* A strict endpoint accepts only a peer that sends the same indication. */
static void strict(void **state)
{
    (void)state;
    for (unsigned peer = 0; peer < SCTPDDP_ADAPTATIONS; peer++) {
        struct assoc *a = &n.side[0].assoc;
        bool same = peer == SCTPDDP_RDMA_ONLY;

        net_init(&n, SCTPDDP_RDMA_ONLY, SCTPDDP_DDP, NULL, 1);
        a->attr.strict = true;
        assoc_up(a, peer, 7, NET_PAYLOAD, n.now_us);
        assert_int_equal(a->life.state, same ? CONN_READY : CONN_TERMINATING);
        assert_int_equal(a->life.note.fault, same ? FAULT_NONE : FAULT_NEG_UNLIKE);
        assert_int_equal(assoc_wants(a), same ? 0 : ASSOC_ABORT);
        net_fini(&n);
    }
}

/* --- requests that our own adaptation cannot express --------------------------------------------------------- */

/* S1, S2: such a request fails locally, unseen by the peer. SCTP-3.2.2-S1 SCTP-3.2.2-S2 SCTP-2.1-07 SCTP-2.2-13 */
static void unsupported(void **state)
{
    static const struct {
        enum sctpddp_adaptation own;
        enum rddp_wr_opcode opcode;
        uint32_t length;
        int error;
    } rows[] = {
        {SCTPDDP_RDMA_ONLY, RDDP_WR_RDMA_WRITE, 10, 0},
        {SCTPDDP_RDMA_ONLY, RDDP_WR_SEND, 10, -EOPNOTSUPP},
        {SCTPDDP_RDMA_ONLY, RDDP_WR_RDMA_READ, 10, -EOPNOTSUPP},
        {SCTPDDP_RDMA_NEGOTIATION, RDDP_WR_RDMA_WRITE, 10, -EOPNOTSUPP},
        {SCTPDDP_RDMA_NEGOTIATION, RDDP_WR_RDMA_READ, 10, -EOPNOTSUPP},
        {SCTPDDP_RDMA_AND_NEGOTIATION, RDDP_WR_ATOMIC_FETCH_AND_ADD, 8, -EOPNOTSUPP},
        {SCTPDDP_RDMA_AND_NEGOTIATION, RDDP_WR_ATOMIC_CMP_AND_SWP, 8, -EOPNOTSUPP},
        {SCTPDDP_RDMA_AND_NEGOTIATION, RDDP_WR_RDMA_READ, 10, 0},
        {SCTPDDP_PLAIN, RDDP_WR_RDMA_WRITE, 10, -EOPNOTSUPP},
        {SCTPDDP_PLAIN, RDDP_WR_RDMA_WRITE_WITH_IMM, 10, -EOPNOTSUPP},
        {SCTPDDP_PLAIN, RDDP_WR_SEND, NET_PAYLOAD + 1, -EINVAL}, /* one message has to fit in one chunk */
        {SCTPDDP_DDP, RDDP_WR_SEND, NET_PAYLOAD - 16, 0},
        {SCTPDDP_DDP, RDDP_WR_SEND, NET_PAYLOAD - 15, -EINVAL},
        {SCTPDDP_DDP, RDDP_WR_SEND_WITH_INV, 10, -EOPNOTSUPP},
        {SCTPDDP_DDP, RDDP_WR_SEND_WITH_IMM, 0, -EOPNOTSUPP},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mr *mr;
        struct rddp_sge sge;

        open_both(rows[i].own, rows[i].own);
        mr = region(ALL_ACCESS);
        sge = piece_of(mr, 0, rows[i].length);
        engine_remember(&n.engine);
        assert_int_equal(post_remote(of(0), 1, rows[i].opcode, RDDP_SEND_SIGNALED, &sge, 1, mr->key, mr->start),
                         rows[i].error);
        if (rows[i].error) {
            net_run(&n);
            assert_true(cq_is_empty(&of(0)->send_cq));
            assert_int_equal(n.side[0].assoc.life.state, CONN_READY);
            engine_expect(&n.engine);
        }
        net_fini(&n);
    }
}

/* S1, S2 hold even for a request that was posted where it could be said: it fails, and the peer sees nothing of it.
 * SCTP-3.2.2-S1 SCTP-3.2.2-S2 */
static void no_longer_supported(void **state)
{
    static const struct {
        enum sctpddp_adaptation own;
        enum rddp_wr_opcode opcode;
    } rows[] = {
        {SCTPDDP_RDMA_ONLY, RDDP_WR_SEND},
        {SCTPDDP_RDMA_NEGOTIATION, RDDP_WR_RDMA_WRITE},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rddp_sge sge;
        struct mr *mr;
        uint32_t sent;

        open_both(rows[i].own, rows[i].own);
        mr = region(ALL_ACCESS);
        sge = piece_of(mr, 0, 10);
        engine_remember(&n.engine);
        sent = n.side[0].sent;
        of(0)->qp.unsupported = 0;
        assert_int_equal(post_remote(of(0), 1, rows[i].opcode, RDDP_SEND_SIGNALED, &sge, 1, mr->key, mr->start), 0);
        net_run(&n);
        expect_wc(&of(0)->send_cq, 1, RDDP_WC_LOC_QP_OP_ERR);
        assert_int_equal(n.side[0].assoc.life.note.fault, FAULT_NEG_UNSUPPORTED);
        assert_int_equal(n.side[0].sent, sent);
        engine_expect(&n.engine);
        net_fini(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tagged_writes),
        cmocka_unit_test(stream_buffers),
        cmocka_unit_test(unlike_indications),
        cmocka_unit_test(fragmentation),
        cmocka_unit_test(tags_of_the_application),
        cmocka_unit_test(fragmented_messages),
        cmocka_unit_test(longest_fragmented_message),
        cmocka_unit_test(skipped_positions),
        cmocka_unit_test(header_or_none),
        cmocka_unit_test(strict),
        cmocka_unit_test(unsupported),
        cmocka_unit_test(no_longer_supported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
