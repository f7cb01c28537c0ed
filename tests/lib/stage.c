/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stage.c - one endpoint with its memory. */
#include "tests/lib/stage.h"

#include <string.h>

struct engine e;
struct side s;
struct mr *local, *remote;
uint8_t data[STAGE_LOCAL];

int stage_open(void **state)
{
    (void)state;
    engine_init(&e);
    local = engine_region(&e, STAGE_LOCAL, LOCAL);
    remote = engine_region(&e, STAGE_REMOTE, ALL_ACCESS);
    pattern(data, sizeof(data), 5);
    pattern(remote->base, STAGE_REMOTE, 1);
    side_open(&s, &e, NULL);
    return 0;
}

int stage_close(void **state)
{
    (void)state;
    side_fini(&s);
    engine_fini(&e);
    return 0;
}

void stage_again(const struct qp_attr *attr)
{
    side_fini(&s);
    side_open(&s, &e, attr);
    memset(local->base, 0, local->length);
    pattern(remote->base, STAGE_REMOTE, 1);
    remote->valid = true;
}

int request(uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, uint32_t length)
{
    const struct rddp_sge sge = piece_of(remote, 0, length);

    return post_remote(&s, wr_id, opcode, flags | RDDP_SEND_SIGNALED, &sge, 1, 0x700, 0x4000);
}

void expect_op(enum seg_op op)
{
    assert_int_equal(leave(&s, STAGE_REMOTE).seg.op, op);
}

void expect_idle(void)
{
    struct emit out;

    assert_false(qp_has_output(&s.qp));
    assert_false(qp_emit(&s.qp, &out, STAGE_REMOTE, STAGE_REMOTE));
    assert_int_equal(s.qp.state, QP_READY);
}

enum fault answer_read(uint32_t length)
{
    return arrive(&s, a_read_response(remote->key, remote->start, remote->base, length, SEG_LAST));
}

struct seg read_of(const struct mr *source, uint32_t msn, uint32_t length)
{
    const struct seg_read read = {
        .sink_key = 0xaaaa0001,
        .sink_offset = 0x1000,
        .source_key = source->key,
        .source_offset = source->start,
        .length = length,
    };

    return a_read_request(msn, &read);
}

void peer_reads(uint32_t msn, uint32_t length)
{
    assert_int_equal(arrive(&s, read_of(remote, msn, length)), FAULT_NONE);
}

void post_buffers(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct rddp_sge sge = piece_of(local, i % STAGE_BUFFERS * STAGE_BUFFER, STAGE_BUFFER);

        assert_int_equal(post_recv(&s, i, &sge, 1), 0);
    }
}

void read_into(uint32_t buffer)
{
    const struct rddp_sge sge = piece_of(local, buffer * STAGE_BUFFER, STAGE_BUFFER);

    assert_int_equal(post_remote(&s, buffer, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, 7, 0), 0);
    expect_op(SEG_READ_REQ);
}

struct seg response(uint32_t buffer, uint32_t at, uint32_t length)
{
    uint32_t from = buffer * STAGE_BUFFER + at;

    return a_read_response(local->key, local->start + from, data + from, length,
                           at + length == STAGE_BUFFER ? SEG_LAST : 0);
}

struct seg send_inv(uint32_t msn, uint32_t key)
{
    struct seg seg = a_send(msn, 0, NULL, 0, SEG_LAST | SEG_INVALIDATE);

    seg.invalidate = key;
    return seg;
}
