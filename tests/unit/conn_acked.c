/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_acked.c - requests that complete when the peer has acknowledged them: by stream positions, whatever else is
 * acknowledged in between. */
#include "tests/unit/conn_host.h"

enum { LENGTH = 64, REQUESTS = 4 };

static struct mr *mr;
static uint64_t end_of[REQUESTS]; /* the position in our stream at which each request ends */

/* Writes, but the second request is a Read. All of them leave. */
static void post_all(bool acknowledged)
{
    struct conn_attr attr = host_attr();
    struct rddp_sge piece;

    attr.acknowledged = acknowledged;
    mr = engine_region(&h.engine, LENGTH, ALL_ACCESS);
    piece = piece_of(mr, 0, LENGTH);
    host_ready(&h, false, &attr);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        enum rddp_wr_opcode opcode = i == 1 ? RDDP_WR_RDMA_READ : RDDP_WR_RDMA_WRITE;

        assert_int_equal(post_remote(&h.side, i, opcode, RDDP_SEND_SIGNALED, &piece, 1, 9, 0), 0);
        host_pump(&h);
        end_of[i] = h.conn.agreed.tx_pos;
    }
}

static void answer(void)
{
    static const uint8_t octets[LENGTH];

    peer_says(&h, a_read_response(mr->key, mr->start, octets, LENGTH, SEG_LAST));
}

/* One octet less than the end of a request, and its end; completions in posting order, and none twice. */
static void complete_when_acknowledged(void **state)
{
    (void)state;
    post_all(true);
    expect_quiet(&h.side.send_cq);
    conn_acked(&h.conn, end_of[0] - 1, h.now_us);
    expect_quiet(&h.side.send_cq);
    conn_acked(&h.conn, end_of[0], h.now_us);
    expect_wc(&h.side.send_cq, 0, RDDP_WC_SUCCESS);
    conn_acked(&h.conn, end_of[2], h.now_us);
    expect_quiet(&h.side.send_cq); /* the Read before it is not answered */
    conn_acked(&h.conn, end_of[0], h.now_us);
    answer();
    expect_wc(&h.side.send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&h.side.send_cq, 2, RDDP_WC_SUCCESS);
    expect_quiet(&h.side.send_cq);
    conn_acked(&h.conn, end_of[3], h.now_us);
    expect_wc(&h.side.send_cq, 3, RDDP_WC_SUCCESS);
}

/* An acknowledgement beyond what was sent only acknowledges everything that was sent. */
static void what_was_never_sent(void **state)
{
    (void)state;
    post_all(true);
    h.takes = 10;
    assert_int_equal(post_remote(&h.side, 9, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED,
                                 &(struct rddp_sge){mr->start, LENGTH, mr->key}, 1, 9, 0),
                     0);
    host_pump(&h);
    conn_acked(&h.conn, UINT64_MAX, h.now_us);
    answer();
    for (uint64_t i = 0; i < REQUESTS; i++)
        expect_wc(&h.side.send_cq, i, RDDP_WC_SUCCESS);
    expect_quiet(&h.side.send_cq);
    h.takes = SIZE_MAX;
    host_pump(&h);
    expect_quiet(&h.side.send_cq);
    conn_acked(&h.conn, UINT64_MAX, h.now_us);
    expect_wc(&h.side.send_cq, 9, RDDP_WC_SUCCESS);
}

/* Where requests complete when they are sent, an acknowledgement has no effect. */
static void complete_when_sent(void **state)
{
    (void)state;
    post_all(false);
    expect_wc(&h.side.send_cq, 0, RDDP_WC_SUCCESS);
    conn_acked(&h.conn, end_of[3], h.now_us);
    expect_quiet(&h.side.send_cq);
    answer();
    for (uint64_t i = 1; i < REQUESTS; i++)
        expect_wc(&h.side.send_cq, i, RDDP_WC_SUCCESS);
}

/* A close waits for the acknowledgement, but not without limit. */
static void close_waits(void **state)
{
    (void)state;
    for (int acked = 0; acked < 2; acked++) {
        next_connection();
        post_all(true);
        answer();
        conn_close(&h.conn, h.now_us);
        host_pump(&h);
        assert_false(h.fin);
        if (acked) {
            conn_acked(&h.conn, end_of[3], h.now_us);
            host_pump(&h);
            assert_true(h.fin);
            host_hear_end(&h);
        } else {
            host_wait_until(&h, h.now_us + 2000000);
        }
        expect_end(&h, acked ? FAULT_NONE : FAULT_STALLED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(complete_when_acknowledged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_never_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(complete_when_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_waits, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("conn_acked", tests, NULL, NULL);
}
