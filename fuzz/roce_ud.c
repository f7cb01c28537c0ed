/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_ud.c - packets of any content, with a right ICRC, to a queue pair of datagrams that posts receives and requests
 * of any kind meanwhile: nothing outside of its receives is written, and each request completes once.
 *
 * Input: steps, an octet each that says what happens. 0, 1: a packet, decoded from the octets of the input as they are
 * or with fields that fit. Others: what an application does. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "conn/ud.h"
#include "fuzz/lib/input.h"
#include "fuzz/lib/packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

enum {
    NAMED = 2048, /* octets of the memory that an entry may name; the last third is not registered */
    REGISTERED = NAMED / 3 * 2,
    PACKET = 5000,
    STEPS = 400,
    QKEY = 7,
};

static struct packets h;
static struct ud ud;
static struct rddp_ah ah;

static void post_any(struct input *in)
{
    uint8_t what = input8(in);
    struct rddp_sge sge[PACKETS_SGES];
    struct rddp_send_wr send = {.sg_list = sge, .num_sge = what & 3, .send_flags = RDDP_SEND_SIGNALED, .ah = &ah};
    struct rddp_recv_wr receive = {.sg_list = sge, .num_sge = what & 3};
    int error;

    for (unsigned i = 0; i < PACKETS_SGES; i++)
        sge[i] = (struct rddp_sge){h.mr.start + 8 * input8(in), input16(in) % NAMED, h.mr.key + (input8(in) > 250)};
    ah.mtu = 256u << (what >> 6);
    send.opcode = what & 16 ? RDDP_WR_SEND : (enum rddp_wr_opcode)(what >> 2 & 15);
    error = what & 32 ? qp_post_send(&h.qp, &send) : qp_post_recv(&h.qp, &receive);
    h.posted += !error;
    ud_check(&ud, 0);
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
    ud_rx(&ud, &b, grh, 0);
}

static void emit_all(void)
{
    const struct destination *to;
    struct rc_packet p;

    while (ud_emit(&ud, &p, &to, 0)) {
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

    while (packets_poll(&h, &wc))
        assert(wc.status != RDDP_WC_SUCCESS || !(wc.opcode & RDDP_WC_RECV) || wc.byte_len >= GRH_OCTETS);
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
            ud_restart(&ud, 0);
        break;
    default:
        ud_drain(&ud, what & 8, 0);
        break;
    }
    poll_all();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    const struct ud_attr attr = {.q_key = QKEY, .number = 3, .pkey = BTH_PKEY_DEFAULT};
    struct input in = {.at = input, .end = input + length};

    memset(&ud, 0, sizeof(ud));
    ah = (struct rddp_ah){.pd = &h.pd};
    packets_open(&h, REGISTERED, RDDP_ACCESS_LOCAL_WRITE, QP_DATAGRAMS, 0);
    qp_use_datagrams(&h.qp);
    ud_init(&ud, &attr, &h.qp, 0);
    ud_start(&ud, 0);
    for (unsigned i = 0; i < STEPS && input_left(&in); i++)
        take_step(&in);
    packets_close(&h);
    return 0;
}
