/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_ud.c - packets of any content, with a right ICRC, to a queue pair of datagrams that posts receives and requests
 * of any kind meanwhile: nothing outside of its receives is written, and each request completes once.
 *
 * Input: steps, an octet each that says what happens. 0, 1: a packet, decoded from the octets of the input as they are
 * or with fields that fit. Others: what an application does. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "conn/ud.h"
#include "fuzz/lib/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

enum {
    DEPTH = 8,
    SGES = 3,
    MEMORY = 2048, /* octets, of which the last third is not registered */
    REGISTERED = MEMORY / 3 * 2,
    PACKET = 5000,
    STEPS = 400,
    CQE = 64,
    SLOTS = 4,
    KEY = 0x101,
    QKEY = 7,
};

static struct host {
    struct pd pd;
    struct mr_table mrs;
    struct mr_slot slot[SLOTS + 1];
    struct mr mr;
    struct cq cq;
    struct cq_entry ring[CQE];
    struct qp qp;
    struct ud ud;
    struct rddp_ah ah;
    uint8_t memory[MEMORY];
    uint32_t posted, completed;
} h;

static void host_open(void *buffer, const struct qp_attr *qp)
{
    const struct ud_attr attr = {.q_key = QKEY, .number = 3, .pkey = BTH_PKEY_DEFAULT};

    qp_init(&h.qp, qp, buffer);
    qp_use_datagrams(&h.qp);
    ud_init(&h.ud, &attr, &h.qp, 0);
    ud_start(&h.ud, 0);
}

static void post_any(struct input *in)
{
    uint8_t what = input8(in);
    struct rddp_sge sge[SGES];
    struct rddp_send_wr send = {.sg_list = sge, .num_sge = what & 3, .send_flags = RDDP_SEND_SIGNALED, .ah = &h.ah};
    struct rddp_recv_wr receive = {.sg_list = sge, .num_sge = what & 3};
    int error;

    for (unsigned i = 0; i < SGES; i++)
        sge[i] = (struct rddp_sge){h.mr.start + 8 * input8(in), input16(in) % MEMORY, h.mr.key + (input8(in) > 250)};
    h.ah.mtu = 256u << (what >> 6);
    send.opcode = what & 16 ? RDDP_WR_SEND : (enum rddp_wr_opcode)(what >> 2 & 15);
    error = what & 32 ? qp_post_send(&h.qp, &send) : qp_post_recv(&h.qp, &receive);
    h.posted += !error;
    ud_check(&h.ud, 0);
}

static void take_packet(struct input *in, bool fits)
{
    static const uint8_t grh[GRH_OCTETS];
    uint8_t packet[PACKET];
    uint32_t n = input16(in) % PACKET;
    struct bth b;

    for (uint32_t i = 0; i < n; i++)
        packet[i] = i < 24 ? input8(in) : (uint8_t)i;
    if (bth_decode(&b, packet, n) != BTH_OK)
        return;
    if (fits) {
        b.service = BTH_UD;
        b.op = BTH_SEND;
        b.q_key = QKEY;
    }
    ud_rx(&h.ud, &b, grh, 0);
}

static void emit_all(void)
{
    const struct destination *to;
    struct rc_packet p;

    while (ud_emit(&h.ud, &p, &to, 0)) {
        uint32_t sum = 0;

        for (uint32_t i = 0; i < p.emit.spans; i++) {
            assert(p.emit.span[i].at >= h.memory && p.emit.span[i].at + p.emit.span[i].length <= h.memory + REGISTERED);
            sum += p.emit.span[i].length;
        }
        assert(sum == p.length && p.head_length <= BTH_HEAD_MAX);
    }
}

static void poll_all(void)
{
    struct rddp_wc wc;

    while (cq_poll(&h.cq, &wc, 1)) {
        assert(wc.status != RDDP_WC_SUCCESS || !(wc.opcode & RDDP_WC_RECV) || wc.byte_len >= GRH_OCTETS);
        h.completed++;
    }
}

static void take_step(struct input *in)
{
    uint8_t what = input8(in);

    switch (what % 8) {
    case 0:
    case 1:
        take_packet(in, what % 8);
        break;
    case 2:
    case 3:
    case 4:
        post_any(in);
        break;
    case 5:
        emit_all();
        break;
    case 6:
        if (h.qp.sends_failed)
            ud_restart(&h.ud, 0);
        break;
    default:
        ud_drain(&h.ud, what & 8, 0);
        break;
    }
    poll_all();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct input in = {.at = input, .end = input + length};
    const struct fault_note note = {.fault = FAULT_OWNER};
    struct qp_attr qp;
    void *buffer;

    memset(&h, 0, sizeof(h));
    mr_table_init(&h.mrs, h.slot, SLOTS);
    cq_init(&h.cq, h.ring, CQE, CQE, NULL);
    h.mr = (struct mr){
        .pd = &h.pd, .base = h.memory, .start = 0x1000, .length = REGISTERED, .access = RDDP_ACCESS_LOCAL_WRITE};
    assert(mr_insert(&h.mrs, &h.mr, KEY));
    h.ah.pd = &h.pd;
    qp = (struct qp_attr){.pd = &h.pd,
                          .mrs = &h.mrs,
                          .send_cq = &h.cq,
                          .recv_cq = &h.cq,
                          .send_depth = DEPTH,
                          .recv_depth = DEPTH,
                          .send_sge = SGES,
                          .recv_sge = SGES,
                          .inline_max = 16,
                          .window = 1,
                          .service = QP_DATAGRAMS};
    buffer = calloc(1, qp_size(&qp));
    assert(buffer);
    host_open(buffer, &qp);
    for (unsigned i = 0; i < STEPS && input_left(&in); i++)
        take_step(&in);
    qp_fail(&h.qp, &note);
    qp_settle(&h.qp);
    poll_all();
    assert(h.posted == h.completed);
    for (uint32_t i = REGISTERED; i < MEMORY; i++)
        assert(!h.memory[i]);
    qp_fini(&h.qp);
    free(buffer);
    return 0;
}
