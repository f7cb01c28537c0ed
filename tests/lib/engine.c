/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* engine.c - fixtures for the tests of core/. */
#include "tests/lib/engine.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_OCTET = 0xe7, UNIT_HEAD = 24 };

void engine_init(struct engine *e)
{
    memset(e, 0, sizeof(*e));
    mr_table_init(&e->mrs, e->slot, ENGINE_SLOTS);
}

static void check_guard(const uint8_t *p)
{
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(p[i], GUARD_OCTET);
}

void engine_fini(struct engine *e)
{
    assert_int_equal(e->pd.users, 0);
    for (uint32_t i = 0; i < e->areas; i++) {
        struct area *a = &e->area[i];

        check_guard(a->buffer);
        check_guard(a->buffer + GUARD + a->mr.length);
        free(a->buffer);
        free(a->want);
    }
}

struct mr *engine_region(struct engine *e, uint32_t length, unsigned access)
{
    struct area *a = &e->area[e->areas];

    assert_true(e->areas < ENGINE_AREAS);
    a->buffer = malloc(2 * (size_t)GUARD + length);
    a->want = malloc(length + 1);
    assert_true(a->buffer && a->want);
    memset(a->buffer, GUARD_OCTET, 2 * (size_t)GUARD + length);
    memset(a->buffer + GUARD, 0, length);
    a->mr.pd = &e->pd;
    a->mr.base = a->buffer + GUARD;
    a->mr.start = access & RDDP_ACCESS_ZERO_BASED ? 0 : (uint64_t)(uintptr_t)a->mr.base;
    a->mr.length = length;
    a->mr.access = access;
    assert_true(mr_insert(&e->mrs, &a->mr, 0x1000 + 0x101 * e->areas++));
    return &a->mr;
}

void engine_remember(struct engine *e)
{
    for (uint32_t i = 0; i < e->areas; i++)
        memcpy(e->area[i].want, e->area[i].mr.base, e->area[i].mr.length);
}

void engine_expect(const struct engine *e)
{
    for (uint32_t i = 0; i < e->areas; i++)
        assert_memory_equal(e->area[i].mr.base, e->area[i].want, e->area[i].mr.length);
}

uint8_t *want_of(struct engine *e, const struct mr *mr)
{
    for (uint32_t i = 0; i < e->areas; i++)
        if (&e->area[i].mr == mr)
            return e->area[i].want;
    fail();
    return NULL;
}

void pattern(uint8_t *p, uint32_t n, uint32_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = (uint8_t)((i + seed * 17) * 2654435761u >> 24);
}

struct rddp_sge piece_of(const struct mr *mr, uint32_t at, uint32_t length)
{
    return (struct rddp_sge){.addr = mr->start + at, .length = length, .lkey = mr->key};
}

struct qp_attr side_attr(struct engine *e)
{
    return (struct qp_attr){
        .pd = &e->pd,
        .mrs = &e->mrs,
        .send_depth = 16,
        .recv_depth = 16,
        .send_sge = 4,
        .recv_sge = 4,
        .inline_max = 64,
        .ird = 4,
        .ord = 4,
        .window = 8,
        .number = 7,
    };
}

void side_init(struct side *s, const struct qp_attr *attr)
{
    struct qp_attr a = *attr;

    cq_init(&s->send_cq, s->send_ring, ENGINE_WC, ENGINE_WC, NULL);
    cq_init(&s->recv_cq, s->recv_ring, ENGINE_WC, ENGINE_WC, NULL);
    a.send_cq = a.send_cq ? a.send_cq : &s->send_cq;
    a.recv_cq = a.recv_cq ? a.recv_cq : &s->recv_cq;
    assert_true(qp_size(&a) > 0);
    /* Exactly the size requested, so that a sanitizer finds accesses beyond it. */
    s->buffer = calloc(1, qp_size(&a));
    assert_non_null(s->buffer);
    qp_init(&s->qp, &a, s->buffer);
}

void side_fini(struct side *s)
{
    qp_fini(&s->qp);
    assert_int_equal(s->send_cq.users, 0);
    assert_int_equal(s->recv_cq.users, 0);
    free(s->buffer);
}

void side_open(struct side *s, struct engine *e, const struct qp_attr *attr)
{
    struct qp_attr usual = side_attr(e);

    side_init(s, attr ? attr : &usual);
    qp_connect(&s->qp, s->qp.attr.ird, s->qp.attr.ord, 0);
}

int post_recv(struct side *s, uint64_t wr_id, const struct rddp_sge *sge, int sges)
{
    struct rddp_sge copy[QP_SGE_MAX + 1];
    struct rddp_recv_wr wr = {.wr_id = wr_id, .sg_list = copy, .num_sge = sges};
    int error;

    if (sges > 0)
        memcpy(copy, sge, (size_t)sges * sizeof(*sge));
    error = s->qp.attr.srq ? rq_post(s->qp.attr.srq, &wr) : qp_post_recv(&s->qp, &wr);
    qp_settle(&s->qp);
    return error;
}

int post_remote(struct side *s, uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, const struct rddp_sge *sge,
                int sges, uint32_t rkey, uint64_t remote_addr)
{
    struct rddp_sge copy[QP_SGE_MAX + 1];
    struct rddp_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = copy,
        .num_sge = sges,
        .opcode = opcode,
        .send_flags = flags,
        .remote_addr = remote_addr,
        .rkey = rkey,
        .invalidate_rkey = rkey,
    };
    int error;

    if (sges > 0)
        memcpy(copy, sge, (size_t)sges * sizeof(*sge));
    error = qp_post_send(&s->qp, &wr);
    qp_settle(&s->qp);
    return error;
}

int post(struct side *s, uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, const struct rddp_sge *sge,
         int sges)
{
    return post_remote(s, wr_id, opcode, flags, sge, sges, 0, 0);
}

struct seg a_send(uint32_t msn, uint32_t mo, const void *data, uint32_t length, unsigned flags)
{
    return (struct seg){.op = SEG_SEND, .msg = msn, .offset = mo, .data = data, .length = length, .flags = flags};
}

struct seg a_write(uint64_t key, uint64_t offset, const void *data, uint32_t length, unsigned flags)
{
    return (struct seg){.op = SEG_WRITE, .key = key, .offset = offset, .data = data, .length = length, .flags = flags};
}

struct seg a_read_request(uint32_t msn, const struct seg_read *read)
{
    return (struct seg){.op = SEG_READ_REQ, .msg = msn, .read = *read, .flags = SEG_LAST};
}

struct seg a_read_response(uint64_t key, uint64_t offset, const void *data, uint32_t length, unsigned flags)
{
    struct seg seg = a_write(key, offset, data, length, flags);

    seg.op = SEG_READ_RESP;
    return seg;
}

/* The payload has a block of its own that is freed afterwards, so that a sanitizer finds whoever keeps a pointer to
 * it. */
enum fault arrive_at(struct side *s, struct seg seg, uint64_t begin, uint64_t end)
{
    uint8_t *data = malloc(seg.length + 1);
    enum fault fault;

    assert_non_null(data);
    if (seg.length && seg.data)
        memcpy(data, seg.data, seg.length);
    seg.data = data;
    seg.begin = begin;
    seg.end = end;
    fault = qp_place(&s->qp, &seg);
    free(data);
    return fault;
}

enum fault arrive(struct side *s, struct seg seg)
{
    uint64_t pos = s->qp.rx_pos;

    return arrive_at(s, seg, pos, pos + UNIT_HEAD + seg.length);
}

void give_up(struct side *s)
{
    const struct fault_note note = s->qp.note;

    qp_fail(&s->qp, &note);
}

struct rddp_wc expect_wc(struct cq *cq, uint64_t wr_id, enum rddp_wc_status status)
{
    struct rddp_wc wc;

    assert_int_equal(cq_poll(cq, &wc, 1), 1);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
    return wc;
}

void expect_quiet(struct cq *cq)
{
    assert_true(cq_is_empty(cq));
}

static void let_go(struct side *s, const struct emit *e)
{
    uint64_t end = s->qp.tx_pos + UNIT_HEAD + e->seg.length;

    qp_queued(&s->qp, end);
    qp_sent(&s->qp, end);
}

struct emit leave(struct side *s, uint32_t max)
{
    struct emit e;

    assert_true(qp_has_output(&s->qp));
    assert_true(qp_emit(&s->qp, &e, max, max));
    let_go(s, &e);
    return e;
}

/* Carries one segment from `from` to `to`, if there is one. */
static bool carry(struct side *from, struct side *to, uint32_t max)
{
    struct emit e;
    uint8_t *data, *p;

    if (!qp_emit(&from->qp, &e, max, max))
        return false;
    data = p = malloc(e.seg.length + 1);
    assert_non_null(data);
    for (uint32_t i = 0; i < e.spans; i++) {
        memcpy(p, e.span[i].at, e.span[i].length);
        p += e.span[i].length;
    }
    assert_int_equal(p - data, e.seg.length);
    e.seg.data = data;
    let_go(from, &e);
    if (arrive(to, e.seg))
        give_up(to);
    free(data);
    return true;
}

void converse(struct side *a, struct side *b, uint32_t max)
{
    bool more = true;

    while (more) {
        more = carry(a, b, max);
        more |= carry(b, a, max);
    }
}

uint32_t chance(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}
