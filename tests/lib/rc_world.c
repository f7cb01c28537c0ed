/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_world.c - plays the peer of a queue pair of RoCE. */
#include "tests/lib/rc_world.h"

#include <string.h>

enum { OWN = 0 };

struct world w;

void open_keeping(const struct rc_pair_attr *attr, uint32_t cells)
{
    struct qp_attr qp[2];
    struct rc_pair_attr pair[2] = {*attr, *attr};
    const uint32_t psn[2] = {FIRST, PEER};

    memset(&w, 0, sizeof(w));
    rc_net_init(&w.net, 1);
    w.net.cells = cells;
    qp[0] = qp[1] = side_attr(&w.net.engine);
    w.region = engine_region(&w.net.engine, SPACE, ALL_ACCESS);
    w.remote = engine_region(&w.net.engine, SPACE, LOCAL);
    pattern(w.region->base, SPACE, 3);
    rc_net_connect(&w.net, qp, pair, psn);
    engine_remember(&w.net.engine);
    w.pair = &w.net.end[OWN].pair;
    w.side = &w.net.end[OWN].side;
}

void open_world(const struct rc_pair_attr *attr)
{
    open_keeping(attr, 0);
}

void open_usual(void)
{
    struct rc_pair_attr attr = rc_net_attr();

    open_world(&attr);
}

void close_world(void)
{
    rc_net_fini(&w.net);
}

/* --- the peer ----------------------------------------------------------------------------------------------------- */

struct bth packet(enum bth_op op, unsigned flags, uint32_t psn, uint32_t length)
{
    static uint8_t data[SPACE];

    pattern(data, SPACE, 9);
    return (struct bth){.service = BTH_RC,
                        .op = op,
                        .flags = flags,
                        .psn = psn & BTH_MASK24,
                        .data = data,
                        .length = length,
                        .r_key = w.region->key,
                        .address = w.region->start,
                        .dma_length = length};
}

void says(struct bth b)
{
    rc_pair_rx(w.pair, &b, w.net.now_us);
}

void acknowledges(uint32_t psn, uint8_t syndrome)
{
    struct bth b = packet(BTH_ACKNOWLEDGE, BTH_FIRST | BTH_LAST, psn, 0);

    b.syndrome = syndrome;
    says(b);
}

/* The next packet of ours, of which there must be one. */
const struct bth *hear(void)
{
    uint8_t *at = w.octets;

    rc_pair_check(w.pair, w.net.now_us);
    assert_true(rc_pair_emit(w.pair, &w.out, w.net.now_us));
    memcpy(at, w.out.head, w.out.head_length);
    at += w.out.head_length;
    for (uint32_t i = 0; i < w.out.emit.spans; i++) {
        memcpy(at, w.out.emit.span[i].at, w.out.emit.span[i].length);
        at += w.out.emit.span[i].length;
    }
    memset(at, 0, bth_pad(w.out.length) + ICRC_OCTETS);
    assert_int_equal(
        bth_decode(&w.said, w.octets, w.out.head_length + w.out.length + bth_pad(w.out.length) + ICRC_OCTETS), BTH_OK);
    return &w.said;
}

void hear_nothing(void)
{
    rc_pair_check(w.pair, w.net.now_us);
    assert_false(rc_pair_emit(w.pair, &w.out, w.net.now_us));
}

void hear_ack(uint32_t psn, uint8_t syndrome, uint32_t msn)
{
    const struct bth *b = hear();

    assert_int_equal(b->op, BTH_ACKNOWLEDGE);
    assert_int_equal(b->psn, psn & BTH_MASK24);
    assert_int_equal(b->syndrome, syndrome);
    assert_int_equal(b->msn, msn);
}

void hear_message(uint32_t psn, enum bth_op op, unsigned flags, uint32_t length)
{
    const struct bth *b = hear();

    assert_int_equal(b->psn, psn & BTH_MASK24);
    assert_int_equal(b->op, op);
    assert_int_equal(b->flags & (BTH_FIRST | BTH_LAST), flags);
    assert_int_equal(b->length, length);
}

uint32_t train(uint32_t most)
{
    w.out.emit.buffer = NULL;
    return rc_pair_emit_train(w.pair, &w.out, most, w.net.now_us);
}

void expect_train(enum bth_op op, uint32_t psn, uint32_t packets, uint32_t offset)
{
    uint8_t octets[BTH_OCTETS + MTU + ICRC_OCTETS] = {0};
    struct bth b;

    memcpy(octets, w.out.head, w.out.head_length);
    assert_int_equal(w.out.head_length, BTH_OCTETS);
    assert_int_equal(bth_decode(&b, octets, sizeof(octets)), BTH_OK);
    assert_int_equal(b.op, op);
    assert_int_equal(b.psn, psn & BTH_MASK24);
    assert_int_equal(b.flags & (BTH_FIRST | BTH_LAST | ASK), 0);
    assert_int_equal(w.out.length, MTU);
    assert_int_equal(w.out.emit.spans, 1);
    assert_ptr_equal(w.out.emit.span[0].at, w.region->base + offset);
    assert_int_equal(w.out.emit.span[0].length, packets * MTU);
}

void waits(uint64_t us)
{
    w.net.now_us += us;
    rc_pair_tick(w.pair, w.net.now_us);
}

void request_send(uint64_t wr_id, uint32_t length)
{
    struct rddp_sge sge = piece_of(w.region, 0, length);

    assert_int_equal(post(w.side, wr_id, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &sge, 1), 0);
}

void request_read(uint64_t wr_id, uint32_t length)
{
    struct rddp_sge sge = piece_of(w.remote, 0, length);

    assert_int_equal(post_remote(w.side, wr_id, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, 77, 0x1000), 0);
}

void offer_receive(uint64_t wr_id, uint32_t length)
{
    struct rddp_sge sge = piece_of(w.remote, 0, length);

    assert_int_equal(post_recv(w.side, wr_id, &sge, 1), 0);
}

void expect_failed(uint64_t wr_id, enum rddp_wc_status status)
{
    expect_wc(&w.side->send_cq, wr_id, status);
    assert_int_equal(w.side->qp.state, QP_ERROR);
    hear_nothing();
}
