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
#include "fuzz/lib/packets.h"
#include "roce/psn.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

enum {
    REGISTERED = PACKETS_MEMORY / 4 * 3,
    PACKET = 700,
    STEPS = 400,
    PSN = 0xfffffa, /* both count over the end of 24 bits */
    MTU = 256,
    READS = 4,
    CELLS = 20,  /* packets kept behind gaps, or fewer */
    TURN = 2000, /* packets that leave at once: more is an endless loop */
};

static struct packets h;
static struct rc_pair pair;
static struct rc_pool pool;
static uint64_t now_us;

static struct rddp_sge any_sge(struct input *in)
{
    return (struct rddp_sge){h.mr.start + 32 * input8(in), input16(in) % PACKETS_MEMORY,
                             PACKETS_KEY + (input8(in) > 250)};
}

static void post_any(struct input *in)
{
    uint8_t what = input8(in);
    struct rddp_sge sge[PACKETS_SGES];
    struct rddp_send_wr send = {.sg_list = sge,
                                .num_sge = what & 3,
                                .opcode = what >> 2 & 15,
                                .send_flags = input8(in) & (RDDP_SEND_SIGNALED | RDDP_SEND_FENCE),
                                .remote_addr = h.mr.start,
                                .rkey = PACKETS_KEY};
    struct rddp_recv_wr receive = {.sg_list = sge, .num_sge = what & 3};
    int error;

    for (unsigned i = 0; i < PACKETS_SGES; i++)
        sge[i] = any_sge(in);
    send.send_flags |= RDDP_SEND_SIGNALED;
    error = what & 64 ? qp_post_send(&h.qp, &send) : qp_post_recv(&h.qp, &receive);
    h.posted += !error;
    rc_pair_check(&pair, now_us);
}

/* Fields that lead further than chance does: the PSN that is due, the region, the right service. */
static void make_fit(struct input *in, struct bth *b)
{
    uint8_t what = input8(in);
    bool is_answer = b->op == BTH_READ_RESPONSE || b->op == BTH_ACKNOWLEDGE || b->op == BTH_ATOMIC_ACKNOWLEDGE;
    uint64_t due = is_answer ? pair.requester.una : pair.responder.expected;

    b->service = pair.attr.service;
    b->pkey = BTH_PKEY_DEFAULT;
    b->psn = psn_wire(due + (what & 7) - (what & 8 ? 8 : 0)) & BTH_MASK24;
    if (what & 16) {
        b->r_key = PACKETS_KEY;
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
    if (b.service == pair.attr.service)
        rc_pair_rx(&pair, &b, now_us);
}

static void check_span(const struct rc_packet *p)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < p->emit.spans; i++)
        sum += p->emit.span[i].length;
    assert(sum == p->length && p->length <= MTU && p->head_length <= BTH_HEAD_MAX);
    for (uint32_t i = 0; i < p->emit.spans; i++) {
        const uint8_t *at = p->emit.span[i].at;

        if (at >= h.memory && at < h.memory + PACKETS_MEMORY)
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

    while (rc_pair_emit(&pair, &p, now_us)) {
        uint32_t n = p.head_length + p.length + bth_pad(p.length) + ICRC_OCTETS;

        check_span(&p);
        memset(octets, 0, sizeof(octets));
        memcpy(octets, p.head, p.head_length);
        assert(bth_decode(&b, octets, n) == BTH_OK && b.service == pair.attr.service);
        assert(packets++ < TURN);
    }
}

static void poll_all(void)
{
    struct rddp_wc wc;

    while (packets_poll(&h, &wc))
        continue;
}

static void pass_time(struct input *in)
{
    uint64_t due_us = rc_pair_deadline(&pair);

    now_us += 64u * input8(in);
    if (due_us <= now_us || due_us == UINT64_MAX)
        return;
    now_us = due_us;
    rc_pair_tick(&pair, now_us);
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
        rc_pair_drain(&pair, what & 16, now_us);
        break;
    case 8:
        if (h.qp.sends_failed)
            rc_pair_restart(&pair, now_us);
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

/* Returns memory to free in the end. */
static void *connect_pair(uint8_t what)
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
    void *memory;

    rc_pool_init(&pool, malloc(rc_pool_size(CELLS)), what & 64 ? 3 : CELLS);
    assert(pool.cell);
    attr.responder.pool = what & 128 ? NULL : &pool;
    qp_use_packets(&h.qp);
    memory = calloc(1, rc_pair_size(&attr, &h.qp));
    assert(memory);
    rc_pair_begin(&pair, true, &attr.limits, &h.qp, now_us);
    rc_pair_connect(&pair, &attr, &h.qp, READS, memory);
    life_established(&pair.life);
    pair.is_waiting = what & 32;
    if (!(what & 32))
        rc_pair_start(&pair, &attr.requester, READS);
    return memory;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    enum { RIGHTS = RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC };
    struct input in = {.at = input, .end = input + length};
    uint8_t what = input8(&in);
    void *memory;

    memset(&pair, 0, sizeof(pair));
    now_us = 1000000;
    packets_open(&h, REGISTERED, RDDP_ACCESS_LOCAL_WRITE | RIGHTS, what & 1 ? QP_UNRELIABLE : QP_RELIABLE, READS);
    memory = connect_pair(what);
    for (unsigned i = 0; i < STEPS && input_left(&in); i++)
        take_step(&in);
    rc_pair_fini(&pair);
    assert(rc_pool_free(&pool) == pool.cells);
    packets_close(&h);
    free(pool.cell);
    free(memory);
    return 0;
}
