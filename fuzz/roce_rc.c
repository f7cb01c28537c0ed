/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rc.c - packets of any content, with a right ICRC, to a reliable or unreliable connection of RoCE in any state,
 * which posts and answers meanwhile: nothing is read or written outside of its regions, each request completes once,
 * and what leaves decodes.
 *
 * Input: an octet that says what the queue pair is like, then steps, an octet each that says what happens. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "conn/rc_pair.h"
#include "fuzz/lib/input.h"
#include "roce/psn.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

enum {
    DEPTH = 8,
    SGES = 3,
    MEMORY = 8192, /* octets, of which the last quarter is not registered */
    REGISTERED = MEMORY / 4 * 3,
    PACKET = 700,
    STEPS = 400,
    CQE = 64,
    SLOTS = 4,
    KEY = 0x101,
    PSN = 0xfffffa, /* both count over the end of 24 bits */
    MTU = 256,
    READS = 4,
    TURN = 2000, /* packets that leave at once: more is an endless loop */
};

static struct rc_host {
    struct pd pd;
    struct mr_table mrs;
    struct mr_slot slot[SLOTS + 1];
    struct mr mr;
    struct cq cq;
    struct cq_entry ring[CQE];
    struct qp qp;
    struct rc_pair pair;
    uint8_t memory[MEMORY];
    uint64_t now_us;
    uint32_t posted, completed;
} h;

static struct rddp_sge any_sge(struct input *in)
{
    return (struct rddp_sge){h.mr.start + 32 * input8(in), input16(in) % MEMORY, KEY + (input8(in) > 250)};
}

static void post_any(struct input *in)
{
    uint8_t what = input8(in);
    struct rddp_sge sge[SGES];
    struct rddp_send_wr send = {.sg_list = sge,
                                .num_sge = what & 3,
                                .opcode = what >> 2 & 15,
                                .send_flags = input8(in) & (RDDP_SEND_SIGNALED | RDDP_SEND_FENCE),
                                .remote_addr = h.mr.start,
                                .rkey = KEY};
    struct rddp_recv_wr receive = {.sg_list = sge, .num_sge = what & 3};
    int error;

    for (unsigned i = 0; i < SGES; i++)
        sge[i] = any_sge(in);
    send.send_flags |= RDDP_SEND_SIGNALED;
    error = what & 64 ? qp_post_send(&h.qp, &send) : qp_post_recv(&h.qp, &receive);
    h.posted += !error;
    rc_pair_check(&h.pair, h.now_us);
}

/* Fields that lead further than chance does: the PSN that is due, the region, the right service. */
static void make_fit(struct input *in, struct bth *b)
{
    uint8_t what = input8(in);
    bool is_answer = b->op == BTH_READ_RESPONSE || b->op == BTH_ACKNOWLEDGE || b->op == BTH_ATOMIC_ACKNOWLEDGE;
    uint64_t due = is_answer ? h.pair.requester.una : h.pair.responder.expected;

    b->service = h.pair.attr.service;
    b->pkey = BTH_PKEY_DEFAULT;
    b->psn = psn_wire(due + (what & 7) - (what & 8 ? 8 : 0)) & BTH_MASK24;
    if (what & 16) {
        b->r_key = KEY;
        b->address = h.mr.start + 8 * input8(in);
        b->dma_length = what & 32 ? b->length : input16(in);
    }
    if (what & 64)
        b->syndrome = AETH_NO_CREDITS | (what & 128 ? AETH_RNR_NAK : AETH_ACK);
}

static void take_packet(struct input *in, bool fits)
{
    uint8_t packet[PACKET];
    uint32_t n = input16(in) % PACKET;
    struct bth b;

    for (uint32_t i = 0; i < n; i++)
        packet[i] = i < BTH_HEAD_MAX ? input8(in) : (uint8_t)i;
    if (bth_decode(&b, packet, n) != BTH_OK)
        return;
    if (fits)
        make_fit(in, &b);
    if (b.service == h.pair.attr.service)
        rc_pair_rx(&h.pair, &b, h.now_us);
}

static void check_span(const struct rc_packet *p)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < p->emit.spans; i++)
        sum += p->emit.span[i].length;
    assert(sum == p->length && p->length <= MTU && p->head_length <= BTH_HEAD_MAX);
    for (uint32_t i = 0; i < p->emit.spans; i++) {
        const uint8_t *at = p->emit.span[i].at;

        if (at >= h.memory && at < h.memory + MEMORY)
            assert(at + p->emit.span[i].length <= h.memory + REGISTERED);
    }
}

/* What leaves is a packet that decodes. */
static void emit_all(void)
{
    uint8_t octets[BTH_HEAD_MAX + MTU + BTH_PAD_MAX + ICRC_OCTETS];
    struct rc_packet p;
    unsigned packets = 0;
    struct bth b;

    while (rc_pair_emit(&h.pair, &p, h.now_us)) {
        uint32_t n = p.head_length + p.length + bth_pad(p.length) + ICRC_OCTETS;

        check_span(&p);
        memset(octets, 0, sizeof(octets));
        memcpy(octets, p.head, p.head_length);
        assert(bth_decode(&b, octets, n) == BTH_OK && b.service == h.pair.attr.service);
        assert(packets++ < TURN);
    }
}

static void poll_all(void)
{
    struct rddp_wc wc;

    while (cq_poll(&h.cq, &wc, 1))
        h.completed++;
    assert(h.completed <= h.posted);
}

static void pass_time(struct input *in)
{
    uint64_t due_us = rc_pair_deadline(&h.pair);

    h.now_us += 64u * input8(in);
    if (due_us <= h.now_us || due_us == UINT64_MAX)
        return;
    h.now_us = due_us;
    rc_pair_tick(&h.pair, h.now_us);
}

static void take_step(struct input *in)
{
    uint8_t what = input8(in);

    switch (what % 16) {
    case 0:
        take_packet(in, false);
        break;
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
        take_packet(in, true);
        break;
    case 7:
        rc_pair_drain(&h.pair, what & 16, h.now_us);
        break;
    case 8:
        if (h.qp.sends_failed)
            rc_pair_restart(&h.pair, h.now_us);
        break;
    case 9:
    case 10:
        pass_time(in);
        break;
    case 11:
    case 12:
        emit_all();
        break;
    default:
        post_any(in);
        break;
    }
    poll_all();
}

static void rc_host_open(uint8_t what, void **buffer, void **memory)
{
    struct rc_pair_attr attr = {
        .service = what & 1 ? BTH_UC : BTH_RC,
        .peer_qpn = 9,
        .pkey = BTH_PKEY_DEFAULT,
        .access = what & 2 ? RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC : 0,
        .requester =
            {.psn = PSN, .mtu = MTU, .timeout_us = 20000, .retries = what >> 2 & 7, .rnr_retries = what >> 2 & 7},
        .responder = {.psn = PSN, .rnr_timer = 1, .reads = READS},
        .limits = {.close_us = 1000000},
    };
    const struct qp_attr qp = {.pd = &h.pd,
                               .mrs = &h.mrs,
                               .send_cq = &h.cq,
                               .recv_cq = &h.cq,
                               .send_depth = DEPTH,
                               .recv_depth = DEPTH,
                               .send_sge = SGES,
                               .recv_sge = SGES,
                               .inline_max = 16,
                               .window = 1,
                               .service = what & 1 ? QP_UNRELIABLE : QP_RELIABLE,
                               .ird = READS,
                               .ord = READS};

    *buffer = calloc(1, qp_size(&qp));
    assert(*buffer);
    qp_init(&h.qp, &qp, *buffer);
    qp_use_packets(&h.qp);
    *memory = calloc(1, rc_pair_size(&attr, &h.qp));
    assert(*memory);
    rc_pair_begin(&h.pair, true, &attr.limits, &h.qp, h.now_us);
    rc_pair_connect(&h.pair, &attr, &h.qp, READS, *memory);
    life_established(&h.pair.life);
    h.pair.is_waiting = what & 32;
    if (!(what & 32))
        rc_pair_start(&h.pair, &attr.requester, READS);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct input in = {.at = input, .end = input + length};
    const struct fault_note note = {.fault = FAULT_OWNER};
    void *buffer, *memory;

    memset(&h, 0, sizeof(h));
    h.now_us = 1000000;
    mr_table_init(&h.mrs, h.slot, SLOTS);
    cq_init(&h.cq, h.ring, CQE, CQE, NULL);
    h.mr = (struct mr){.pd = &h.pd,
                       .base = h.memory,
                       .start = 0x1000,
                       .length = REGISTERED,
                       .access = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ |
                                 RDDP_ACCESS_REMOTE_ATOMIC};
    assert(mr_insert(&h.mrs, &h.mr, KEY));
    rc_host_open(input8(&in), &buffer, &memory);
    for (unsigned i = 0; i < STEPS && input_left(&in); i++)
        take_step(&in);
    qp_fail(&h.qp, &note);
    qp_settle(&h.qp);
    poll_all();
    assert(h.posted == h.completed);
    for (uint32_t i = REGISTERED; i < MEMORY; i++)
        assert(!h.memory[i]);
    qp_fini(&h.qp);
    free(memory);
    free(buffer);
    return 0;
}
