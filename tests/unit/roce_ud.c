/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_ud.c - a queue pair of datagrams, packet by packet: those of Linux's ibv_ud_pingpong arrive, and ours are the
 * same octets. ROCE-RSP-19, ROCE-PKT-05, ROCE-PKT-12. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "conn/ud.h"
#include "tests/lib/engine.h"
#include "tests/lib/roce_capture.h"

enum {
    QKEY = 0x11111111, /* of ibv_ud_pingpong */
    NUMBER = 17,
    OCTETS = 4096 + GRH_OCTETS,
    SPACE = 2 * OCTETS,
    SOURCE_QPN = 0x123456,
    MTU = 1024,
    MIGRATED = 0x40, /* of the second octet of the BTH */
};

static struct world {
    struct engine engine;
    struct side side;
    struct ud ud;
    struct mr *region;
    struct rddp_ah ah;
    struct rc_packet out;
    const struct destination *to;
    uint32_t immediate; /* of requests, as in the work request */
} w;

static void open_world(void)
{
    const struct ud_attr attr = {.q_key = QKEY, .number = NUMBER, .pkey = BTH_PKEY_DEFAULT};
    struct qp_attr qp;

    memset(&w, 0, sizeof(w));
    engine_init(&w.engine);
    qp = side_attr(&w.engine);
    qp.service = QP_DATAGRAMS;
    side_init(&w.side, &qp);
    qp_use_datagrams(&w.side.qp);
    w.region = engine_region(&w.engine, SPACE, LOCAL);
    w.ah = (struct rddp_ah){.pd = &w.engine.pd, .mtu = MTU};
    ud_init(&w.ud, &attr, &w.side.qp, 0);
    ud_start(&w.ud, 0xffffff);
}

static void close_world(void)
{
    side_fini(&w.side);
    engine_fini(&w.engine);
}

static void offer(uint64_t wr_id, uint32_t length)
{
    struct rddp_sge sge = piece_of(w.region, 0, length);

    assert_int_equal(post_recv(&w.side, wr_id, &sge, 1), 0);
}

static int request_to(uint32_t qpn, uint64_t wr_id, enum rddp_wr_opcode opcode, uint32_t length)
{
    struct rddp_sge sge = piece_of(w.region, 0, length);
    struct rddp_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = RDDP_SEND_SIGNALED,
        .imm_data = w.immediate,
        .ah = &w.ah,
        .remote_qpn = qpn,
        .remote_qkey = UD_OWN_Q_KEY,
    };

    return qp_post_send(&w.side.qp, &wr);
}

static int request(uint64_t wr_id, enum rddp_wr_opcode opcode, uint32_t length)
{
    return request_to(SOURCE_QPN, wr_id, opcode, length);
}

static struct bth a_packet(uint32_t length)
{
    static uint8_t payload[BTH_MTU_MAX + 1];

    memset(payload, 0x5a, sizeof(payload));
    return (struct bth){
        .service = BTH_UD,
        .op = BTH_SEND,
        .flags = BTH_FIRST | BTH_LAST,
        .qpn = NUMBER,
        .q_key = QKEY,
        .source_qpn = SOURCE_QPN,
        .data = payload,
        .length = length,
    };
}

static void comes(const struct bth *b)
{
    static const uint8_t grh[GRH_OCTETS] = {0x60, [39] = 0x77};

    ud_rx(&w.ud, b, grh, 0);
}

/* --- Linux's packets ---------------------------------------------------------------------------------------------- */

static unsigned exchanged;

static void map_address(const struct icrc_path *path, const uint8_t *from, uint8_t *to)
{
    memset(to, 0, GRH_ADDRESS);
    to[10] = to[11] = 0xff;
    memcpy(to + 12, from, 4);
    assert_false(path->ipv6);
}

/* It arrives as Linux sent it, and leaves again as the same octets up to its ICRC, which roce_captures.c computes. */
static void exchange(const struct roce_captured *packet)
{
    uint8_t from[GRH_ADDRESS], to[GRH_ADDRESS], grh[GRH_OCTETS], read_from[GRH_ADDRESS], read_to[GRH_ADDRESS];
    enum rddp_wr_opcode opcode;
    struct rddp_wc wc;
    struct bth b;

    assert_int_equal(bth_decode(&b, packet->at, packet->octets), BTH_OK);
    if (b.service != BTH_UD || b.qpn <= 1)
        return;
    exchanged++;
    map_address(&packet->path, packet->path.source, from);
    map_address(&packet->path, packet->path.destination, to);
    grh_write(grh, from, to, packet->octets);
    assert_true(grh_read(grh, read_from, read_to));
    assert_memory_equal(read_from, from, GRH_ADDRESS);
    assert_memory_equal(read_to, to, GRH_ADDRESS);
    assert_int_equal(grh[22] << 8 | grh[23], 28 + packet->octets);
    w.ud.attr.q_key = b.q_key;
    offer(1, OCTETS);
    ud_rx(&w.ud, &b, grh, 0);
    wc = expect_wc(&w.side.recv_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(wc.byte_len, GRH_OCTETS + b.length);
    assert_int_equal(wc.src_qp, b.source_qpn);
    assert_memory_equal(w.region->base, grh, GRH_OCTETS);
    assert_memory_equal(w.region->base + GRH_OCTETS, b.data, b.length);

    memcpy(w.region->base, b.data, b.length);
    w.ud.attr.number = b.source_qpn;
    w.ud.psn = b.psn;
    w.ah.mtu = BTH_MTU_MAX;
    put32((uint8_t *)&w.immediate, b.immediate);
    opcode = b.flags & BTH_IMMEDIATE ? RDDP_WR_SEND_WITH_IMM : RDDP_WR_SEND;
    assert_int_equal(request_to(b.qpn, 2, opcode, b.length), 0);
    assert_true(ud_emit(&w.ud, &w.out, &w.to, 0));
    assert_int_equal(w.out.head_length + w.out.length + bth_pad(w.out.length) + ICRC_OCTETS, packet->octets);
    w.out.head[1] ^= MIGRATED; /* rxe leaves it at 0; without alternate paths it says nothing */
    assert_memory_equal(w.out.head, packet->at, w.out.head_length);
    assert_false(ud_emit(&w.ud, &w.out, &w.to, 0));
    expect_wc(&w.side.send_cq, 2, RDDP_WC_SUCCESS);
}

static void captured(void **state)
{
    (void)state;
    open_world();
    roce_capture_each("udpp", exchange);
    assert_int_equal(exchanged, 6);
    exchanged = 0;
    roce_capture_each("udaddy", exchange);
    assert_true(exchanged >= 2);
    close_world();
}

/* --- in ------------------------------------------------------------------------------------------------------------
 */

static void dropped(struct bth b)
{
    comes(&b);
    expect_quiet(&w.side.recv_cq);
    assert_int_equal(w.side.qp.state, QP_READY);
}

static void strange(void **state)
{
    struct bth b = a_packet(100);

    (void)state;
    open_world();
    offer(1, OCTETS);
    b.service = BTH_RC;
    dropped(b);
    b.service = BTH_UC;
    dropped(b);
    b = a_packet(100);
    b.q_key ^= 1;
    dropped(b);
    assert_int_equal(w.ud.wrong_q_key, 1);
    dropped(a_packet(BTH_MTU_MAX + 1));
    b = a_packet(BTH_MTU_MAX);
    comes(&b);
    assert_int_equal(expect_wc(&w.side.recv_cq, 1, RDDP_WC_SUCCESS).byte_len, GRH_OCTETS + BTH_MTU_MAX);
    dropped(a_packet(1));
    assert_int_equal(w.ud.not_ready, 1);
    close_world();
}

/* A receive that has no place even for the header, one whose memory may not be written, and one in pieces. */
static void places(void **state)
{
    struct rddp_sge sge[3];
    struct bth b = a_packet(0);

    (void)state;
    open_world();
    offer(1, GRH_OCTETS - 1);
    comes(&b);
    expect_wc(&w.side.recv_cq, 1, RDDP_WC_LOC_LEN_ERR);
    assert_int_equal(w.side.qp.state, QP_ERROR);
    assert_int_equal(request(2, RDDP_WR_SEND, 1), 0); /* is flushed as soon as it is posted */
    ud_check(&w.ud, 0);
    expect_wc(&w.side.send_cq, 2, RDDP_WC_WR_FLUSH_ERR);
    close_world();

    open_world();
    sge[0] = piece_of(w.region, 0, 39);
    sge[1] = (struct rddp_sge){w.region->start, 100, w.region->key + 1};
    assert_int_equal(post_recv(&w.side, 1, sge, 2), 0);
    b = a_packet(10);
    comes(&b);
    expect_wc(&w.side.recv_cq, 1, RDDP_WC_LOC_PROT_ERR);
    assert_int_equal(w.region->base[0], 0); /* no octet has moved */
    close_world();

    open_world();
    sge[0] = piece_of(w.region, 0, 39);
    sge[1] = piece_of(w.region, 100, 4);
    sge[2] = piece_of(w.region, 200, 50);
    assert_int_equal(post_recv(&w.side, 1, sge, 3), 0);
    comes(&b);
    expect_wc(&w.side.recv_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(w.region->base[0], 0x60);
    assert_int_equal(w.region->base[39], 0);
    assert_memory_equal(w.region->base + 100, "\x77\x5a\x5a\x5a", 4);
    assert_memory_equal(w.region->base + 200, "\x5a\x5a\x5a\x5a\x5a\x5a\x5a\0", 8);
    close_world();
}

static unsigned told[QP_FAILED + 1];

static void tell(struct qp *qp, enum qp_happening what)
{
    (void)qp;
    told[what]++;
}

static void happenings(void **state)
{
    struct bth b = a_packet(1);

    (void)state;
    open_world();
    told[0] = told[1] = 0;
    w.side.qp.attr.happened = tell;
    w.ud.is_waiting = true; /* in RTR */
    comes(&b);
    comes(&b);
    assert_int_equal(told[QP_COMMUNICATES], 1);
    ud_drain(&w.ud, true, 0);
    assert_int_equal(told[QP_DRAINED], 1);
    assert_int_equal(request(1, RDDP_WR_SEND, 1), 0);
    assert_false(ud_has_output(&w.ud));
    assert_false(ud_emit(&w.ud, &w.out, &w.to, 0));
    ud_drain(&w.ud, false, 0);
    assert_true(ud_emit(&w.ud, &w.out, &w.to, 0));
    close_world();
}

/* --- out -----------------------------------------------------------------------------------------------------------
 */

static void requests(void **state)
{
    struct bth b;

    (void)state;
    open_world();
    put32((uint8_t *)&w.immediate, 0x01020304);
    assert_int_equal(request(1, RDDP_WR_SEND, MTU + 1), -EINVAL);
    assert_int_equal(request(1, RDDP_WR_RDMA_WRITE, 1), -EOPNOTSUPP);
    assert_int_equal(request(1, RDDP_WR_SEND_WITH_IMM, MTU), 0);
    assert_int_equal(request(2, RDDP_WR_SEND, 0), 0);
    assert_true(ud_emit(&w.ud, &w.out, &w.to, 0));
    assert_int_equal(w.out.length, MTU);
    memset(w.out.head + w.out.head_length, 0, ICRC_OCTETS);
    assert_int_equal(bth_decode(&b, w.out.head, w.out.head_length + ICRC_OCTETS), BTH_OK);
    assert_int_equal(b.psn, 0xffffff);
    assert_int_equal(b.qpn, SOURCE_QPN);
    assert_int_equal(b.source_qpn, NUMBER);
    assert_int_equal(b.q_key, QKEY);
    assert_int_equal(b.immediate, 0x01020304);
    expect_quiet(&w.side.send_cq); /* it has not left yet */
    assert_true(ud_emit(&w.ud, &w.out, &w.to, 0));
    expect_wc(&w.side.send_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(w.ud.psn, 1);
    assert_false(ud_emit(&w.ud, &w.out, &w.to, 0));
    expect_wc(&w.side.send_cq, 2, RDDP_WC_SUCCESS);
    close_world();
}

/* SQE: the wrong one has its status, those behind it are flushed, and what was sent before has completed. */
static void wrong_request(void **state)
{
    struct rddp_sge sge = {0, 4, 0xdead};
    struct rddp_send_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND, .ah = &w.ah};
    struct bth b = a_packet(1);

    (void)state;
    open_world();
    told[QP_SENDS_FAILED] = 0;
    w.side.qp.attr.happened = tell;
    assert_int_equal(request(1, RDDP_WR_SEND, 1), 0);
    assert_int_equal(qp_post_send(&w.side.qp, &wr), 0);
    assert_int_equal(request(3, RDDP_WR_SEND, 1), 0);
    assert_true(ud_emit(&w.ud, &w.out, &w.to, 0));
    assert_false(ud_emit(&w.ud, &w.out, &w.to, 0));
    expect_wc(&w.side.send_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(expect_wc(&w.side.send_cq, 2, RDDP_WC_LOC_PROT_ERR).vendor_err, FAULT_LOCAL_KEY);
    expect_wc(&w.side.send_cq, 3, RDDP_WC_WR_FLUSH_ERR);
    assert_true(w.side.qp.sends_failed);
    assert_int_equal(told[QP_SENDS_FAILED], 1);
    assert_int_equal(w.side.qp.state, QP_READY);
    offer(9, OCTETS);
    comes(&b);
    expect_wc(&w.side.recv_cq, 9, RDDP_WC_SUCCESS);
    assert_int_equal(request(4, RDDP_WR_SEND, 1), 0);
    assert_false(ud_has_output(&w.ud));
    ud_check(&w.ud, 0);
    expect_wc(&w.side.send_cq, 4, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(request(5, RDDP_WR_SEND, 1), 0); /* not yet flushed when it goes on */
    ud_restart(&w.ud, 0);
    expect_wc(&w.side.send_cq, 5, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(request(6, RDDP_WR_SEND, 1), 0);
    assert_true(ud_emit(&w.ud, &w.out, &w.to, 0));
    assert_false(ud_emit(&w.ud, &w.out, &w.to, 0));
    expect_wc(&w.side.send_cq, 6, RDDP_WC_SUCCESS);
    close_world();
}

/* --- the header in front -------------------------------------------------------------------------------------------
 */

static void headers(void **state)
{
    static const uint8_t v6[GRH_ADDRESS] = {0xfe, 0x80, [15] = 1}, v4[GRH_ADDRESS] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
    uint8_t grh[GRH_OCTETS], from[GRH_ADDRESS], to[GRH_ADDRESS];

    (void)state;
    grh_write(grh, v6, v6, 1000);
    assert_int_equal(grh[0], 0x60);
    assert_int_equal(grh[4] << 8 | grh[5], 1008);
    assert_int_equal(grh[6], 17);
    assert_true(grh_read(grh, from, to));
    assert_memory_equal(from, v6, GRH_ADDRESS);
    assert_memory_equal(to, v6, GRH_ADDRESS);
    grh[0] = 0x50;
    assert_false(grh_read(grh, from, to));

    grh_write(grh, v4, v4, 1000);
    assert_true(grh_read(grh, from, to));
    assert_memory_equal(from, v4, GRH_ADDRESS);
    for (unsigned bit = 0; bit < 160; bit++) { /* of the header of IPv4 */
        grh[20 + bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(grh_read(grh, from, to));
        grh[20 + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured),   cmocka_unit_test(strange),  cmocka_unit_test(places),
        cmocka_unit_test(happenings), cmocka_unit_test(requests), cmocka_unit_test(wrong_request),
        cmocka_unit_test(headers),
    };

    return cmocka_run_group_tests_name("roce_ud", tests, NULL, NULL);
}
