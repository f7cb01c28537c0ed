/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sequence.c - the endpoint of stage.h on a wire that numbers messages in one sequence. */
#include "tests/lib/sequence.h"

#include <stdlib.h>
#include <string.h>

enum { UNITS = 2048 };

static void *sequence_buffer;
static bool placed[UNITS];

const uint32_t first = UINT32_MAX - 1;

static void begin(bool out_of_order, bool rdma_control)
{
    struct qp_attr attr = side_attr(&e);

    attr.out_of_order = out_of_order;
    attr.rdma_control = rdma_control;
    stage_again(&attr);
    memset(placed, 0, sizeof(placed));
    free(sequence_buffer);
    sequence_buffer = calloc(1, qp_sequence_size(&s.qp, WINDOW));
    qp_sequence(&s.qp, first, WINDOW, sequence_buffer);
}

void sequence_again(bool out_of_order)
{
    begin(out_of_order, false);
}

void sequence_for_control(bool out_of_order)
{
    begin(out_of_order, true);
}

int sequence_open(void **state)
{
    if (stage_open(state))
        return -1;
    pattern(data, sizeof(data), 3);
    sequence_again(false);
    return 0;
}

int sequence_shut(void **state)
{
    free(sequence_buffer);
    sequence_buffer = NULL;
    return stage_close(state);
}

/* --- the peer's segments, the n-th message of its sequence ------------------------------------------------------- */

struct seg send_(uint32_t n, uint32_t at, uint32_t length, unsigned flags, uint16_t order)
{
    struct seg seg = a_send(first + n, at, data + at, length, flags);

    seg.order = order;
    return seg;
}

struct seg write_(uint32_t n, uint32_t at, uint32_t length, uint32_t total, unsigned flags, uint16_t order)
{
    struct seg seg = a_write(remote->key, remote->start + at, data + at, length, flags);

    seg.msg = first + n;
    seg.total = total;
    seg.order = order;
    return seg;
}

struct seg read_(uint32_t n, uint32_t length, uint16_t order)
{
    struct seg seg = read_of(remote, first + n, length);

    seg.flags = WHOLE;
    seg.order = order;
    return seg;
}

enum fault unit(uint32_t n, struct seg seg)
{
    enum fault fault;

    assert_true(n < UNITS);
    seg.begin = (uint64_t)n * STEP;
    seg.end = seg.begin + STEP;
    if (seg.begin > s.qp.rx_pos && placed[n])
        return FAULT_NONE;
    seg.flags |= placed[n] ? SEG_PLACED : 0;
    if (seg.begin <= s.qp.rx_pos)
        return arrive_at(&s, seg, seg.begin, seg.end);
    fault = qp_place_early(&s.qp, &seg);
    placed[n] = !fault;
    return fault;
}

void received(uint64_t wr_id, uint32_t length)
{
    assert_int_equal(expect_wc(&s.recv_cq, wr_id, RDDP_WC_SUCCESS).byte_len, length);
}
