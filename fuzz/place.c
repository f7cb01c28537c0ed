/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.c - segments of any kind with any numbers in any order, at a queue pair that continues to post and send. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fuzz/lib/arena.h"

enum { PAYLOAD = 1 << 16, STEPS_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void give_up(struct qp *qp)
{
    struct fault_note note = qp->note;

    assert(note.fault != FAULT_NONE && note.fault != FAULT_NOT_NOW);
    qp_fail(qp, &note);
}

/* The offset at which a message that has begun continues. */
static uint32_t turn;

/* A segment with the expected numbers in most cases, else with neighbouring or arbitrary ones. */
static struct seg a_segment(struct input *in, const struct qp *qp)
{
    static uint8_t payload[PAYLOAD];
    uint8_t kind = input8(in), where = input8(in), numbers = input8(in), size = input8(in);
    struct seg seg = {.op = (enum seg_op)(kind & 3), .flags = kind >> 2 & 7, .data = payload};

    if (kind & 0x80 && seg.op == SEG_SEND) {
        seg.op = SEG_IMMEDIATE;
        seg.flags = SEG_LAST | (seg.flags & SEG_SOLICITED);
        seg.immediate = size & 3;
    }
    if (kind & 0x80 && (seg.op == SEG_READ_REQ || seg.op == SEG_READ_RESP)) {
        seg.op = seg.op == SEG_READ_REQ ? SEG_ATOMIC_REQ : SEG_ATOMIC_RESP;
        seg.flags = SEG_LAST;
    }
    seg.msg = (seg.op == SEG_SEND || seg.op == SEG_IMMEDIATE ? qp->arriving.next : qp->answers.head) +
              (uint32_t)(int8_t)(numbers << 4) / 16;
    if (kind & 0x20)
        seg.msg = (uint32_t)input_number(in);
    seg.key = numbers >> 4;
    seg.offset = kind & 0x40 ? input_number(in) : turn;
    if (seg.op < SEG_IMMEDIATE && seg.op != SEG_READ_REQ)
        seg.length = size & 0x80 ? input16(in) : size;
    turn = seg.flags & SEG_LAST ? 0 : turn + seg.length;
    seg.invalidate = input8(in);
    if (seg.op == SEG_ATOMIC_REQ || seg.op == SEG_ATOMIC_RESP)
        seg.atomic = (struct seg_atomic){
            size & 1 ? SEG_FETCH_ADD : SEG_CMP_SWAP, size >> 1, input8(in), input_number(in), kind, size, size, numbers,
        };
    if (seg.op == SEG_READ_REQ)
        seg.read = (struct seg_read){input8(in), input_number(in), input8(in), input_number(in), size};
    seg.begin = qp->rx_pos + (where & 0x80 ? 0 : (where & 0x70U) * 16) - (where == 1 && qp->rx_pos);
    seg.end = seg.begin + 1 + (where & 0x0fU) * 16;
    memset(payload, kind, seg.length);
    return seg;
}

static void let_leave(struct qp *qp, struct input *in)
{
    uint32_t most = 1 + input16(in);
    struct emit e;

    for (uint32_t n = 1 + input8(in) % 8; n && qp_emit(qp, &e, most, most); n--) {
        uint32_t sum = 0;

        for (uint32_t i = 0; i < e.spans; i++)
            sum += e.span[i].length;
        assert(e.seg.length <= most && (e.seg.op == SEG_READ_REQ || e.seg.op == SEG_ATOMIC_REQ || sum == e.seg.length));
        qp_queued(qp, qp->tx_pos + 1);
        qp_sent(qp, qp->tx_pos + 1);
    }
}

static void step(struct arena *a, struct input *in)
{
    struct qp *qp = &a->qp;
    struct seg seg;

    switch (input8(in) % 8) {
    case 0:
    case 1:
        arena_post(a, in);
        break;
    case 2:
        let_leave(qp, in);
        break;
    case 3:
        arena_poll(a);
        break;
    case 4:
        if (qp_advance(qp, qp->rx_pos + input8(in)))
            give_up(qp);
        break;
    default:
        seg = a_segment(in, qp);
        switch (qp_place(qp, &seg)) {
        case FAULT_NONE:
        case FAULT_NOT_NOW:
            break;
        default:
            give_up(qp);
        }
    }
}

/* A queue pair that has failed drops all segments (RFC 5041 7.1). */
static void check_deaf(struct arena *a)
{
    static const uint8_t payload[16];
    struct seg seg = {.op = SEG_WRITE, .key = ARENA_TARGET + 1, .data = payload, .length = sizeof(payload)};
    uint8_t *at = a->mr[ARENA_TARGET].base;

    memset(at, 1, sizeof(payload));
    seg.begin = a->qp.rx_pos;
    seg.end = seg.begin + 1;
    assert(qp_place(&a->qp, &seg) == FAULT_NONE && at[0] == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct input in = {data, data + length};
    const struct fault_note end = {.fault = FAULT_LOST};
    uint8_t shape = input8(&in);
    struct arena *a = arena_open(1 + shape % 8, shape / 8 % 8);

    turn = 0;
    qp_connect(&a->qp, a->qp.attr.ird, a->qp.attr.ord, 0);
    for (int i = 0; in.at < in.end && i < STEPS_MAX; i++) {
        step(a, &in);
        assert(a->qp.answers.head - a->qp.answers.tail <= a->qp.attr.ird);
        assert(a->qp.reads.head - a->qp.reads.tail <= a->qp.attr.ord);
    }
    qp_fail(&a->qp, &end);
    check_deaf(a);
    arena_close(a);
    return 0;
}
