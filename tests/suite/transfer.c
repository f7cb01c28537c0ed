/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transfer.c - Sends, Writes and Reads between two processes' worth of library, over every way to connect. */
#include "tests/suite/lib/pair.h"

#include <errno.h>
#include <string.h>

static struct pair *of(void **state)
{
    return *state;
}

static void expect(const struct rddp_wc *wc, uint64_t id, enum rddp_wc_opcode opcode)
{
    assert_int_equal(wc->status, RDDP_WC_SUCCESS);
    assert_int_equal(wc->wr_id, id);
    assert_int_equal(wc->opcode, opcode);
}

/* RDMAP-5.3-01 DDP-5.4-01 MPA-5.1-09 (the rows over the kernel's TCP): a Send of any length takes one receive, which
 * reports the length. */
static void send_lengths(void **state)
{
    static const size_t length[] = {0, 1, 3, 64, 1441, 1442, 4096, 65000, 64754, 64755, 300000};
    struct pair *pair = of(state);
    struct rddp_wc wc;

    for (unsigned i = 0; i < sizeof(length) / sizeof(*length); i++) {
        pair_receive(&pair->server, 100 + i, 0, 300000);
        pair_pattern(pair->client.buffer, length[i], i);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, i, 0, length[i], 0, RDDP_SEND_SIGNALED),
                         0);
        wc = pair_completion(&pair->client);
        expect(&wc, i, RDDP_WC_SEND);
        wc = pair_completion(&pair->server);
        expect(&wc, 100 + i, RDDP_WC_RECV);
        assert_int_equal(wc.byte_len, length[i]);
        assert_true(pair_is_pattern(pair->server.buffer, length[i], i));
    }
}

/* RDMAP-5.1-01: a Write is placed when the Send behind it is delivered, and is not reported to the target. */
static void write_then_send(void **state)
{
    static const size_t length[] = {0, 1, 7, 508, 65536, 1 << 20, 3333333};
    struct pair *pair = of(state);
    struct rddp_wc wc[2];

    for (unsigned i = 0; i < sizeof(length) / sizeof(*length); i++) {
        pair_receive(&pair->server, i, 0, 0);
        pair_pattern(pair->client.buffer, length[i], i);
        assert_int_equal(
            pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, 1, 0, length[i], 5, RDDP_SEND_SIGNALED), 0);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 2, 0, 0, 0, RDDP_SEND_SIGNALED), 0);
        pair_completions(&pair->client, wc, 2);
        expect(&wc[0], 1, RDDP_WC_RDMA_WRITE);
        expect(&wc[1], 2, RDDP_WC_SEND);
        wc[0] = pair_completion(&pair->server);
        expect(&wc[0], i, RDDP_WC_RECV);
        assert_true(pair_is_pattern(pair->server.buffer + 5, length[i], i));
        assert_int_equal(pair->server.buffer[4], 0xa5);
    }
}

/* RDMAP-5.2-01, RDMAP-5.2-02: Reads of every length, and more at once than the peer answers at a time. */
static void reads(void **state)
{
    static const size_t length[] = {0, 1, 4096, 70000, 1 << 20};
    struct pair *pair = of(state);
    struct rddp_wc wc[PAIR_DEPTH];

    pair_pattern(pair->server.buffer, 1 << 20, 9);
    for (unsigned i = 0; i < sizeof(length) / sizeof(*length); i++) {
        memset(pair->client.buffer, 0, 1 << 20);
        assert_int_equal(
            pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_READ, i, 0, length[i], 0, RDDP_SEND_SIGNALED), 0);
        wc[0] = pair_completion(&pair->client);
        expect(&wc[0], i, RDDP_WC_RDMA_READ);
        assert_int_equal(wc[0].byte_len, length[i]);
        assert_true(pair_is_pattern(pair->client.buffer, length[i], 9));
    }
    memset(pair->client.buffer, 0, 1 << 20);
    for (unsigned i = 0; i < PAIR_DEPTH; i++)
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_READ, i, i * 16384, 16384, i * 16384,
                                   RDDP_SEND_SIGNALED),
                         0);
    pair_completions(&pair->client, wc, PAIR_DEPTH);
    for (unsigned i = 0; i < PAIR_DEPTH; i++)
        expect(&wc[i], i, RDDP_WC_RDMA_READ);
    assert_true(pair_is_pattern(pair->client.buffer, 1 << 20, 9));
}

/* Both directions at once, every operation, and the order of completions (RDMAP-5.5-04). */
static void both_ways(void **state)
{
    struct pair *pair = of(state);
    struct side *side[2] = {&pair->client, &pair->server};
    struct rddp_wc wc[4];

    pair_receive(&pair->server, 1, 2 << 20, 64);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 8, 0, 0), 0);
    wc[0] = pair_completion(&pair->server); /* the initiator has sent: now both may (M44-16) */
    for (unsigned round = 0; round < 20; round++) {
        for (int s = 0; s < 2; s++) {
            pair_receive(side[s], 50, 3 << 20, 64);
            pair_pattern(side[s]->buffer, 500000, 10 + (unsigned)s);
        }
        for (int s = 0; s < 2; s++) {
            assert_int_equal(pair_post(side[s], side[!s], RDDP_WR_RDMA_WRITE, 1, 0, 500000, 600000, RDDP_SEND_SIGNALED),
                             0);
            assert_int_equal(pair_post(side[s], side[!s], RDDP_WR_RDMA_READ, 2, 1200000, 400000, 0, RDDP_SEND_SIGNALED),
                             0);
            assert_int_equal(pair_post(side[s], side[!s], RDDP_WR_SEND, 3, 0, 64, 0, RDDP_SEND_SIGNALED), 0);
        }
        for (int s = 0; s < 2; s++) {
            uint64_t next = 1;

            pair_completions(side[s], wc, 4);
            for (int i = 0; i < 4; i++) {
                assert_int_equal(wc[i].status, RDDP_WC_SUCCESS);
                if (wc[i].opcode != RDDP_WC_RECV)
                    assert_int_equal(wc[i].wr_id, next++);
            }
        }
        for (int s = 0; s < 2; s++) {
            assert_true(pair_is_pattern(side[s]->buffer + 600000, 500000, 10 + (unsigned)!s));
            assert_true(pair_is_pattern(side[s]->buffer + 1200000, 400000, 10 + (unsigned)!s));
        }
    }
}

/* Inline data are copied by the post; unsignalled requests are silent; many sges make one message. */
static void inline_and_pieces(void **state)
{
    struct pair *pair = of(state);
    struct rddp_sge sge[4];
    struct rddp_send_wr wr = {.wr_id = 7, .sg_list = sge, .num_sge = 4, .opcode = RDDP_WR_SEND};
    uint8_t local[16];
    struct rddp_wc wc;

    pair_receive(&pair->server, 1, 0, 4096);
    pair_receive(&pair->server, 2, 4096, 4096);
    memset(local, 'x', sizeof(local));
    sge[0] = (struct rddp_sge){.addr = (uintptr_t)local, .length = sizeof(local), .lkey = 12345};
    wr.num_sge = 1;
    wr.send_flags = RDDP_SEND_INLINE;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    memset(local, 'y', sizeof(local));
    pair_pattern(pair->client.buffer, 1000, 3);
    for (unsigned i = 0; i < 4; i++)
        sge[i] = pair_sge(&pair->client, i * 250, 250);
    wr.num_sge = 4;
    wr.send_flags = RDDP_SEND_SIGNALED | RDDP_SEND_FENCE;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->client);
    expect(&wc, 7, RDDP_WC_SEND);
    wc = pair_completion(&pair->server);
    assert_int_equal(wc.byte_len, sizeof(local));
    for (unsigned i = 0; i < sizeof(local); i++)
        assert_int_equal(pair->server.buffer[i], 'x');
    wc = pair_completion(&pair->server);
    assert_true(pair_is_pattern(pair->server.buffer + 4096, 1000, 3));
}

/* RDMAP-5.3-03: Send with Invalidate makes the peer's region invalid before the peer is told; LOCAL_INV makes ours
 * invalid. */
static void invalidation(void **state)
{
    struct pair *pair = of(state);
    struct rddp_mr *mr =
        rddp_reg_mr(pair->server.pd, pair->server.buffer, 4096, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
    struct rddp_send_wr wr = {.wr_id = 1, .opcode = RDDP_WR_SEND_WITH_INV, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_wc wc;

    assert_non_null(mr);
    wr.invalidate_rkey = rddp_mr_key(mr);
    pair_receive(&pair->server, 2, 8192, 64);
    if (pair->row->silent) {
        assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EOPNOTSUPP);
        wr.opcode = RDDP_WR_SEND;
    }
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->server);
    expect(&wc, 2, RDDP_WC_RECV);
    if (!pair->row->silent) {
        assert_true(wc.wc_flags & RDDP_WC_WITH_INV);
        assert_int_equal(wc.invalidated_rkey, rddp_mr_key(mr));
        assert_false(rddp_mr_is_valid(mr));
    }
    assert_int_equal(rddp_dereg_mr(mr), 0);

    mr = rddp_reg_mr(pair->server.pd, pair->server.buffer, 4096, RDDP_ACCESS_LOCAL_WRITE);
    wr.opcode = RDDP_WR_LOCAL_INV;
    wr.invalidate_rkey = rddp_mr_key(mr);
    assert_int_equal(rddp_post_send(pair->server.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->server);
    expect(&wc, 1, RDDP_WC_LOCAL_INV);
    assert_false(rddp_mr_is_valid(mr));
    assert_int_equal(rddp_dereg_mr(mr), 0);
}

/* EXT-06 EXT-07: the receive completes when the Write is placed; a Send with immediate data has no payload. */
static void immediate_data(void **state)
{
    struct pair *pair = of(state);
    struct rddp_sge sge = pair_sge(&pair->client, 0, 100000);
    struct rddp_send_wr wr = {
        .wr_id = 1,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = RDDP_WR_RDMA_WRITE_WITH_IMM,
        .send_flags = RDDP_SEND_SIGNALED,
        .rkey = rddp_mr_key(pair->server.mr),
        .imm_data = 0x12345678,
    };
    struct rddp_wc wc;

    pair_receive(&pair->server, 2, 200000, 64);
    pair_receive(&pair->server, 3, 200064, 0);
    pair_pattern(pair->client.buffer, 100000, 7);
    if (pair->row->silent) {
        assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EOPNOTSUPP);
        wr.opcode = RDDP_WR_SEND_WITH_IMM;
        assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EOPNOTSUPP);
        return;
    }
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->server);
    expect(&wc, 2, RDDP_WC_RECV_RDMA_WITH_IMM);
    assert_true(pair_is_pattern(pair->server.buffer, 100000, 7));
    assert_int_equal(wc.wc_flags, RDDP_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x12345678);
    if (pair->row->wire != RDDP_WIRE_SCTP) /* chunks do not tell where a Write begins */
        assert_int_equal(wc.byte_len, 100000);
    wc = pair_completion(&pair->client);
    expect(&wc, 1, RDDP_WC_RDMA_WRITE);

    wr.opcode = RDDP_WR_SEND_WITH_IMM;
    if (pair->row->wire != RDDP_WIRE_ROCE)
        assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EOPNOTSUPP);
    wr.num_sge = 0;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->server);
    expect(&wc, 3, RDDP_WC_RECV);
    assert_int_equal(wc.wc_flags, RDDP_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x12345678);
    assert_int_equal(wc.byte_len, 0);
}

/* EXT-03 EXT-04: the old value is returned in this machine's byte order; a wrong address ends the connection. */
static void atomics(void **state)
{
    struct pair *pair = of(state);
    struct rddp_sge sge = pair_sge(&pair->client, 3, 8);
    uint32_t at = (uint32_t)(-(uintptr_t)pair->server.buffer % 8);
    uint64_t *word = (uint64_t *)(void *)(pair->server.buffer + at), was;
    struct rddp_send_wr wr = {
        .wr_id = 1,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = RDDP_WR_ATOMIC_FETCH_AND_ADD,
        .send_flags = RDDP_SEND_SIGNALED,
        .remote_addr = at,
        .rkey = rddp_mr_key(pair->server.mr),
        .compare_add = 2,
    };
    struct rddp_wc wc;

    if (pair->row->silent || pair->row->wire == RDDP_WIRE_SCTP) {
        assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), -EOPNOTSUPP);
        return;
    }
    __atomic_store_n(word, 40, __ATOMIC_SEQ_CST);
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->client);
    expect(&wc, 1, RDDP_WC_FETCH_ADD);
    memcpy(&was, pair->client.buffer + 3, 8);
    assert_int_equal(was, 40);
    wr.opcode = RDDP_WR_ATOMIC_CMP_AND_SWP;
    wr.compare_add = 42;
    wr.swap = 7;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->client);
    expect(&wc, 1, RDDP_WC_COMP_SWAP);
    memcpy(&was, pair->client.buffer + 3, 8);
    assert_int_equal(was, 42);
    assert_int_equal(__atomic_load_n(word, __ATOMIC_SEQ_CST), 7);
    wr.remote_addr++;
    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    wc = pair_completion(&pair->client);
    assert_int_equal(wc.status, pair->row->wire == RDDP_WIRE_ROCE ? RDDP_WC_REM_INV_REQ_ERR : RDDP_WC_REM_OP_ERR);
    assert_int_equal(__atomic_load_n(word, __ATOMIC_SEQ_CST), 7);
}

/* A thousand small messages posted faster than they are sent: back-pressure, and nothing is lost. */
static void stream_of_sends(void **state)
{
    enum { MESSAGES = 2000, WINDOW = 32 };
    struct pair *pair = of(state);
    unsigned sent = 0, received = 0, posted = 0;
    struct rddp_wc wc[16];
    uint32_t value;

    for (; posted < WINDOW; posted++)
        pair_receive(&pair->server, posted, posted * 64, 64);
    while (received < MESSAGES) {
        while (sent < MESSAGES && sent < posted) {
            memcpy(pair->client.buffer + (sent % WINDOW) * 64, &sent, sizeof(sent));
            assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, sent, (sent % WINDOW) * 64,
                                       4 + sent % 60, 0, RDDP_SEND_SIGNALED),
                             0);
            sent++;
            wc[0] = pair_completion(&pair->client);
            expect(&wc[0], sent - 1, RDDP_WC_SEND);
        }
        int n = rddp_poll_cq(pair->server.cq, 16, wc);
        for (int i = 0; i < n; i++, received++) {
            expect(&wc[i], received, RDDP_WC_RECV);
            memcpy(&value, pair->server.buffer + (received % WINDOW) * 64, sizeof(value));
            assert_int_equal(value, received);
            pair_receive(&pair->server, posted, (posted % WINDOW) * 64, 64);
            posted++;
        }
    }
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(send_lengths),   PAIR_TEST(write_then_send),   PAIR_TEST(reads),
        PAIR_TEST(both_ways),      PAIR_TEST(inline_and_pieces), PAIR_TEST(invalidation),
        PAIR_TEST(immediate_data), PAIR_TEST(stream_of_sends),   PAIR_TEST(atomics),
    };

    return pair_run("transfer", tests, sizeof(tests) / sizeof(*tests), true);
}
