/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.c - queue pairs of RoCE over loopback, connected by hand: what arrives, what completes, and with which error. */
#include <errno.h>
#include <string.h>

#include "loop/reactor.h"
#include "roce/rc_requester.h"
#include "tests/suite/lib/by_hand.h"

static struct hands h;

static void succeeds(struct hand *hand, enum rddp_wc_opcode opcode, uint32_t octets)
{
    struct rddp_wc wc = hand_completion(hand);

    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.opcode, opcode);
    assert_int_equal(wc.qp_num, rddp_qp_num(hand->qp));
    if (opcode & RDDP_WC_RECV || opcode == RDDP_WC_RDMA_READ)
        assert_int_equal(wc.byte_len, octets);
}

static void fails(struct hand *hand, enum rddp_wc_status status)
{
    assert_int_equal(hand_completion(hand).status, status);
}

static void open_all(enum rddp_qp_type type, const char *address)
{
    hands_open(&h, type, address);
    hands_make(&h);
}

static void connected(enum rddp_qp_type type)
{
    open_all(type, "127.0.0.1");
    hands_connect(&h);
}

/* --- what arrives ------------------------------------------------------------------------------------------------- */

enum { FAR = 1 << 20 }; /* where the other end's octets go */

static void write_once(uint32_t octets)
{
    hand_fill(h.end[0].buffer, octets, octets);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, octets, FAR);
    succeeds(&h.end[0], RDDP_WC_RDMA_WRITE, 0);
    hand_check(h.end[1].buffer + FAR, octets, octets); /* acknowledged: it is placed */
}

static void send_once(uint32_t octets, enum rddp_wr_opcode opcode)
{
    struct rddp_wc wc;

    hand_fill(h.end[1].buffer, octets, octets + 1);
    hand_receive(&h.end[0], 7, FAR, octets);
    hand_post(&h.end[1], &h.end[0], opcode, 0, octets, 0);
    wc = hand_completion(&h.end[0]);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.byte_len, octets);
    assert_int_equal(wc.wc_flags, opcode == RDDP_WR_SEND ? 0 : RDDP_WC_WITH_IMM);
    assert_true(opcode == RDDP_WR_SEND || wc.imm_data == 0x12345678);
    hand_check(h.end[0].buffer + FAR, octets, octets + 1);
    succeeds(&h.end[1], RDDP_WC_SEND, 0);
}

static void read_once(uint32_t octets)
{
    hand_fill(h.end[1].buffer + FAR, octets, octets + 2);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_READ, 0, octets, FAR);
    succeeds(&h.end[0], RDDP_WC_RDMA_READ, octets);
    hand_check(h.end[0].buffer, octets, octets + 2);
}

static void write_immediate(void)
{
    struct rddp_wc wc;

    hand_receive(&h.end[1], 8, 0, 0);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE_WITH_IMM, 0, 3000, FAR);
    wc = hand_completion(&h.end[1]);
    assert_int_equal(wc.opcode, RDDP_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.byte_len, 3000);
    assert_int_equal(wc.imm_data, 0x12345678);
    succeeds(&h.end[0], RDDP_WC_RDMA_WRITE, 0);
}

static void atomics(void)
{
    uint64_t value = 5, got;

    memcpy(h.end[1].buffer + FAR, &value, sizeof(value));
    hand_post(&h.end[0], &h.end[1], RDDP_WR_ATOMIC_CMP_AND_SWP, 64, 8, FAR);
    succeeds(&h.end[0], RDDP_WC_COMP_SWAP, 8);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_ATOMIC_FETCH_AND_ADD, 72, 8, FAR);
    succeeds(&h.end[0], RDDP_WC_FETCH_ADD, 8);
    memcpy(&got, h.end[0].buffer + 64, sizeof(got));
    assert_int_equal(got, 5);
    memcpy(&got, h.end[0].buffer + 72, sizeof(got));
    assert_int_equal(got, 77);
    memcpy(&got, h.end[1].buffer + FAR, sizeof(got));
    assert_int_equal(got, 82);
}

/* What one end has sent, the other has received. */
static void counted(void)
{
    struct rddp_qp_info info[2];

    for (unsigned end = 0; end < 2; end++)
        assert_int_equal(rddp_query_qp(h.end[end].qp, &info[end]), 0);
    assert_true(info[0].tx_octets && info[1].tx_octets);
    assert_int_equal(info[0].tx_octets, info[1].rx_octets);
    assert_int_equal(info[1].tx_octets, info[0].rx_octets);
}

/* ROCE-REQ-03, ROCE-REQ-07, ROCE-REQ-15, ROCE-REQ-17; ROCE-RSP-15. */
static void exchange(uint32_t mtu, const char *address)
{
    const uint32_t octets[] = {0, 1, mtu - 1, mtu, mtu + 1, 4 * mtu, 100 * mtu + 3, FAR};

    hands_open(&h, RDDP_QPT_RC, address);
    h.ib.path_mtu = mtu;
    hands_make(&h);
    hands_connect(&h);
    for (unsigned i = 0; i < sizeof(octets) / sizeof(octets[0]); i++) {
        write_once(octets[i]);
        send_once(octets[i], RDDP_WR_SEND);
        send_once(octets[i], RDDP_WR_SEND_WITH_IMM);
        read_once(octets[i]);
    }
    write_immediate();
    counted();
    atomics();
    hands_close(&h);
}

static void every_mtu(void **state)
{
    (void)state;
    for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2)
        exchange(mtu, "127.0.0.1");
}

static void ipv6(void **state)
{
    (void)state;
    exchange(1024, "::1");
    exchange(1024, "::ffff:127.0.0.1");
}

/* ROCE-REQ-18, ROCE-RSP-18: completes when it has left, and Reads are refused. */
static void unreliable(void **state)
{
    (void)state;
    connected(RDDP_QPT_UC);
    for (uint32_t octets = 0; octets < 20000; octets += 4999) {
        hand_fill(h.end[0].buffer, octets, octets);
        hand_receive(&h.end[1], 1, FAR, 20000);
        hand_post(&h.end[0], &h.end[1], RDDP_WR_SEND, 0, octets, 0);
        succeeds(&h.end[0], RDDP_WC_SEND, 0);
        succeeds(&h.end[1], RDDP_WC_RECV, octets);
        hand_check(h.end[1].buffer + FAR, octets, octets);
    }
    write_immediate();
    hands_close(&h);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

/* ROCE-RSP-06, ROCE-REQ-10: the Send waits for its receive as long as the retries last. */
static void not_ready(void **state)
{
    struct rddp_qp_info info;

    (void)state;
    open_all(RDDP_QPT_RC, "127.0.0.1");
    h.ib.min_rnr_timer = 1; /* 10 us */
    hands_connect(&h);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_SEND, 0, 5000, 0);
    do
        assert_int_equal(rddp_query_qp(h.end[0].qp, &info), 0);
    while (info.ib.not_ready < 20);
    hand_receive(&h.end[1], 1, FAR, 5000);
    succeeds(&h.end[1], RDDP_WC_RECV, 5000);
    succeeds(&h.end[0], RDDP_WC_SEND, 0);
    assert_int_equal(rddp_query_qp(h.end[1].qp, &info), 0);
    assert_true(info.ib.not_ready_here >= 20);
    hands_close(&h);

    open_all(RDDP_QPT_RC, "127.0.0.1");
    h.ib.min_rnr_timer = 1;
    h.ib.rnr_retry = 3;
    hands_connect(&h);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_SEND, 0, 5000, 0);
    fails(&h.end[0], RDDP_WC_RNR_RETRY_EXC_ERR);
    hands_close(&h);
}

/* ROCE-REQ-11, ROCE-RSP-08: both ends come to ERR, and a later request is flushed. */
static void both_fail(enum rddp_wc_status status)
{
    struct rddp_ib_attr attr;

    fails(&h.end[0], status);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 8, 0);
    fails(&h.end[0], RDDP_WC_WR_FLUSH_ERR);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rddp_query_ib(h.end[i].qp, &attr), 0);
        assert_int_equal(attr.state, RDDP_IB_ERR);
    }
    hands_close(&h);
}

static void refused(void **state)
{
    (void)state;
    connected(RDDP_QPT_RC);
    hand_receive(&h.end[1], 1, FAR, 64);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 65, HAND_BUFFER - 64);
    fails(&h.end[1], RDDP_WC_WR_FLUSH_ERR);
    both_fail(RDDP_WC_REM_ACCESS_ERR);

    connected(RDDP_QPT_RC);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_READ, 0, 65, HAND_BUFFER - 64);
    both_fail(RDDP_WC_REM_ACCESS_ERR);

    connected(RDDP_QPT_RC);
    assert_int_equal(rddp_set_qp_access(h.end[1].qp, RDDP_ACCESS_REMOTE_READ), 0);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 65, 0);
    both_fail(RDDP_WC_REM_INV_REQ_ERR); /* ROCE-RSP-10 */

    connected(RDDP_QPT_RC);
    hand_receive(&h.end[1], 1, FAR, 64);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_SEND, 0, 65, 0);
    fails(&h.end[1], RDDP_WC_LOC_LEN_ERR); /* ROCE-RSP-07 */
    both_fail(RDDP_WC_REM_INV_REQ_ERR);
}

static _Atomic unsigned explained;

static void note_explanation(void *user, enum rddp_log_level level, const char *line)
{
    (void)user;
    if (strstr(line, "acknowledged nothing, after all retries") && strstr(line, "none of its packets have come") &&
        strstr(line, ", 3 time-outs, 2 packets sent again") && level == RDDP_LOG_WARN)
        explained++;
}

/* ROCE-REQ-08: nothing answers at that number. */
static void no_answer(void **state)
{
    struct rddp_context_attr attr;
    struct rddp_qp_info info;

    (void)state;
    explained = 0;
    rddp_context_attr_init(&attr);
    attr.log = note_explanation;
    attr.log_level = RDDP_LOG_WARN;
    hands_open_with(&h, RDDP_QPT_RC, "127.0.0.1", &attr);
    hands_make(&h);
    h.ib.timeout = 8; /* 1 ms */
    h.ib.retry_cnt = 2;
    hand_connect(&h, 0, rddp_qp_num(h.end[1].qp)); /* which stays in RESET */
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 8, 0);
    fails(&h.end[0], RDDP_WC_RETRY_EXC_ERR);
    assert_int_equal(rddp_query_qp(h.end[0].qp, &info), 0);
    assert_int_equal(info.ib.timeouts, 3);
    assert_int_equal(info.state, RDDP_QP_ERROR);
    hands_close(&h);
    assert_int_equal(explained, 1);
}

/* Nor that soon: the least time-out of all is shorter than a process may have to wait for a processor. */
static void no_answer_yet(void **state)
{
    uint64_t from_us;

    (void)state;
    open_all(RDDP_QPT_RC, "127.0.0.1");
    h.ib.timeout = 1; /* 8 us */
    h.ib.retry_cnt = 2;
    hand_connect(&h, 0, rddp_qp_num(h.end[1].qp));
    from_us = reactor_now_us();
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 8, 0);
    fails(&h.end[0], RDDP_WC_RETRY_EXC_ERR);
    assert_true(reactor_now_us() - from_us >= 3 * RC_PATIENCE_MIN_US);
    hands_close(&h);
}

/* --- states ------------------------------------------------------------------------------------------------------- */

/* Every step from every state; only those of the table are taken. ROCE-RSP-21. */
static void steps(void **state)
{
    static const bool may[RDDP_IB_ERR + 1][RDDP_IB_ERR + 1] = {
        [RDDP_IB_RESET] = {[RDDP_IB_RESET] = true, [RDDP_IB_INIT] = true, [RDDP_IB_ERR] = true},
        [RDDP_IB_INIT] = {[RDDP_IB_RESET] = true, [RDDP_IB_INIT] = true, [RDDP_IB_RTR] = true, [RDDP_IB_ERR] = true},
        [RDDP_IB_RTR] = {[RDDP_IB_RESET] = true, [RDDP_IB_RTS] = true, [RDDP_IB_ERR] = true},
        [RDDP_IB_RTS] = {[RDDP_IB_RESET] = true, [RDDP_IB_RTS] = true, [RDDP_IB_SQD] = true, [RDDP_IB_ERR] = true},
        [RDDP_IB_SQD] = {[RDDP_IB_RESET] = true, [RDDP_IB_RTS] = true, [RDDP_IB_SQD] = true, [RDDP_IB_ERR] = true},
        [RDDP_IB_ERR] = {[RDDP_IB_RESET] = true, [RDDP_IB_ERR] = true},
    };

    (void)state;
    open_all(RDDP_QPT_RC, "127.0.0.1");
    for (enum rddp_ib_state from = RDDP_IB_RESET; from <= RDDP_IB_ERR; from++)
        for (enum rddp_ib_state to = RDDP_IB_RESET; to <= RDDP_IB_ERR; to++) {
            struct rddp_qp *qp = h.end[0].qp;
            struct rddp_ib_attr attr = h.ib, now;
            int error;

            if (from == RDDP_IB_SQE)
                continue;
            attr.peer = h.address;
            assert_int_equal(rddp_reset_qp(qp), 0);
            for (attr.state = RDDP_IB_INIT; attr.state <= from && from != RDDP_IB_ERR; attr.state++)
                assert_int_equal(rddp_modify_qp(qp, &attr), 0);
            attr.state = from;
            if (from == RDDP_IB_ERR)
                assert_int_equal(rddp_modify_qp(qp, &attr), 0);
            attr.state = to;
            error = rddp_modify_qp(qp, &attr);
            assert_int_equal(error, may[from][to] ? 0 : -EINVAL);
            assert_int_equal(rddp_query_ib(qp, &now), 0);
            assert_int_equal(now.state, error ? from : to);
        }
    hands_close(&h);
}

/* Requests are refused until RTS; receives are taken in any state. */
static void posting(void **state)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_ib_attr attr;

    (void)state;
    open_all(RDDP_QPT_RC, "127.0.0.1");
    attr = h.ib;
    attr.peer = h.address;
    attr.peer_qpn = rddp_qp_num(h.end[0].qp); /* itself */
    for (attr.state = RDDP_IB_RESET; attr.state <= RDDP_IB_RTS; attr.state++) {
        if (attr.state)
            assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), 0);
        hand_receive(&h.end[0], attr.state, 0, 64);
        assert_int_equal(rddp_post_send(h.end[0].qp, &wr, NULL), attr.state == RDDP_IB_RTS ? 0 : -EINVAL);
    }
    succeeds(&h.end[0], RDDP_WC_RECV, 0);
    succeeds(&h.end[0], RDDP_WC_SEND, 0);
    hands_close(&h);
}

static void limits(void **state)
{
    struct rddp_ib_attr attr;
    struct rddp_qp *qp;

    (void)state;
    open_all(RDDP_QPT_RC, "127.0.0.1");
    qp = h.end[0].qp;
    attr = h.ib;
    attr.state = RDDP_IB_INIT;
    attr.access = RDDP_ACCESS_ZERO_BASED;
    assert_int_equal(rddp_modify_qp(qp, &attr), -EINVAL);
    attr.access = RDDP_ACCESS_REMOTE_WRITE;
    assert_int_equal(rddp_modify_qp(qp, &attr), 0);
    attr.state = RDDP_IB_RTR;
    attr.peer = h.address;
#define ONE_OVER(member, value, good) \
    attr.member = value; \
    assert_int_equal(rddp_modify_qp(qp, &attr), -EINVAL); \
    attr.member = good
    ONE_OVER(peer_qpn, 1 << 24, (1 << 24) - 1);
    ONE_OVER(rq_psn, 1 << 24, (1 << 24) - 1);
    ONE_OVER(path_mtu, 255, 256);
    ONE_OVER(path_mtu, 257, 256);
    ONE_OVER(path_mtu, 8192, 4096);
    ONE_OVER(min_rnr_timer, 32, 31);
    attr.local = (struct sockaddr_storage){.ss_family = AF_INET6};
    assert_int_equal(rddp_modify_qp(qp, &attr), -EADDRNOTAVAIL);
    attr.local.ss_family = AF_UNSPEC;
    assert_int_equal(rddp_modify_qp(qp, &attr), 0);
    attr.state = RDDP_IB_RTS;
    ONE_OVER(sq_psn, 1 << 24, (1 << 24) - 1);
    ONE_OVER(timeout, 32, 31);
    ONE_OVER(retry_cnt, 8, 7);
    ONE_OVER(rnr_retry, 8, 7);
    attr.max_rd_atomic = 255;
    assert_int_equal(rddp_modify_qp(qp, &attr), 0);
    assert_int_equal(rddp_query_ib(qp, &attr), 0);
    assert_int_equal(attr.max_rd_atomic, HAND_READS);
    assert_int_equal(attr.max_dest_rd_atomic, HAND_READS);
    assert_int_equal(attr.access, RDDP_ACCESS_REMOTE_WRITE);
    assert_int_equal(attr.path_mtu, 4096);
    assert_int_equal(attr.local.ss_family, AF_INET); /* the one of the route */
    hands_close(&h);
}

/* The same number again after a reset; what was posted before has gone. */
static void again(void **state)
{
    (void)state;
    open_all(RDDP_QPT_RC, "127.0.0.1");
    for (unsigned round = 0; round < 5; round++) {
        uint32_t numbers[2] = {rddp_qp_num(h.end[0].qp), rddp_qp_num(h.end[1].qp)};

        hands_connect(&h);
        write_once(100000);
        send_once(5000, RDDP_WR_SEND);
        hand_receive(&h.end[0], 99, 0, 10);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(rddp_reset_qp(h.end[i].qp), 0);
            assert_int_equal(rddp_qp_num(h.end[i].qp), numbers[i]);
        }
        h.end[0].psn += 77777;
        h.end[1].psn = (h.end[1].psn * 3) & 0xffffff;
        h.end[0].psn &= 0xffffff;
    }
    hands_close(&h);
}

/* ROCE-PORT-02, in small: more queue pairs than one port has, each with a number of its own, in both directions. */
static void many(void **state)
{
    enum { PAIRS = 300 };
    static struct rddp_qp *made[2][PAIRS];

    (void)state;
    open_all(RDDP_QPT_RC, "127.0.0.1");
    for (unsigned i = 0; i < PAIRS; i++) {
        hands_connect(&h);
        write_once(10 * i);
        for (unsigned end = 0; end < 2; end++)
            made[end][i] = h.end[end].qp;
        hands_make(&h);
    }
    for (unsigned i = 0; i < PAIRS; i++)
        for (unsigned end = 0; end < 2; end++)
            assert_int_equal(rddp_destroy_qp(made[end][i]), 0);
    hands_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mtu),     cmocka_unit_test(ipv6),    cmocka_unit_test(unreliable),
        cmocka_unit_test(not_ready),     cmocka_unit_test(refused), cmocka_unit_test(no_answer),
        cmocka_unit_test(no_answer_yet), cmocka_unit_test(steps),   cmocka_unit_test(posting),
        cmocka_unit_test(limits),        cmocka_unit_test(again),   cmocka_unit_test(many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
