/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arena.c - a queue pair and memory of every kind, created for each input. */
#include "fuzz/lib/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_OCTET = 0x5c, SGES = 3 };

enum { POSTED, COMPLETE, SILENT };

static const unsigned access_of[ARENA_REGIONS] = {
    [ARENA_TARGET] =
        RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC,
    [ARENA_LOCAL] = RDDP_ACCESS_LOCAL_WRITE,
    [ARENA_READ_ONLY] = RDDP_ACCESS_REMOTE_READ,
    [ARENA_FOREIGN] = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ,
    [ARENA_DEAD] = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ,
    [ARENA_PART] = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ,
};

uint64_t input_number(struct input *in)
{
    uint8_t n = input8(in);

    switch (n >> 6) {
    case 0:
        return n;
    case 1:
        return ARENA_OCTETS - 0x20 + (n & 0x3fU);
    case 2:
        return (uint64_t)(n & 0x3f) << 32 | input16(in);
    default:
        return n & 0x20 ? -(uint64_t)(n & 0x1f) : (uint64_t)ARENA_THIRD + input16(in);
    }
}

/* The memory of the queue pair has exactly the size that it asks for, so that sanitizers detect accesses beyond it. */
static void open_queues(struct arena *a, uint32_t window, uint32_t reads, const struct qp_attr *allowed)
{
    struct qp_attr attr = {
        .pd = &a->pd,
        .mrs = &a->mrs,
        .send_cq = &a->cq,
        .recv_cq = &a->cq,
        .send_depth = 32,
        .recv_depth = 32,
        .send_sge = SGES,
        .recv_sge = SGES,
        .inline_max = 64,
        .ird = reads,
        .ord = reads,
        .window = window,
        .number = 1,
        .out_of_order = allowed && allowed->out_of_order,
        .rdma_control = allowed && allowed->rdma_control,
    };

    cq_init(&a->cq, a->ring, ARENA_REQUESTS, ARENA_REQUESTS, NULL);
    assert(qp_size(&attr));
    a->qp_buffer = calloc(1, qp_size(&attr));
    assert(a->qp_buffer);
    qp_init(&a->qp, &attr, a->qp_buffer);
}

static struct arena *open_with(uint32_t window, uint32_t reads, const struct qp_attr *allowed)
{
    uint64_t moment;
    struct arena *a = calloc(1, sizeof(*a));

    assert(a);
    mr_table_init(&a->mrs, a->slot, 32);
    for (uint32_t i = 0; i < ARENA_REGIONS; i++) {
        a->buffer[i] = malloc(2 * GUARD + ARENA_OCTETS);
        assert(a->buffer[i]);
        memset(a->buffer[i], GUARD_OCTET, 2 * GUARD + ARENA_OCTETS);
        a->mr[i] = (struct mr){
            .pd = i == ARENA_FOREIGN ? &a->other_pd : &a->pd,
            .base = a->buffer[i] + GUARD,
            .length = ARENA_OCTETS,
            .access = access_of[i],
        };
        a->whole = (struct mr){.pd = &a->pd, .base = a->buffer[i], .length = 2 * GUARD + ARENA_OCTETS, .valid = true};
        a->whole.access = access_of[i];
        if (i == ARENA_PART &&
            !mr_part(&a->mr[i], &a->whole, a->buffer[i] + GUARD, ARENA_OCTETS, access_of[i] | RDDP_ACCESS_ZERO_BASED))
            abort();
        if (!mr_insert(&a->mrs, &a->mr[i], i + 1))
            abort();
    }
    if (mr_invalidate(&a->mrs, &a->pd, ARENA_DEAD + 1, false, &moment))
        abort();
    open_queues(a, window, reads, allowed);
    return a;
}

struct arena *arena_open(uint32_t window, uint32_t reads)
{
    return open_with(window, reads, NULL);
}

struct arena *arena_open_sequence(uint32_t window, uint32_t reads, const struct qp_attr *attr)
{
    struct arena *a = open_with(1, reads, attr);

    a->sequence_buffer = calloc(1, qp_sequence_size(&a->qp, window));
    assert(a->sequence_buffer);
    qp_sequence(&a->qp, UINT32_MAX - 3, window, a->sequence_buffer);
    return a;
}

/* --- posting ------------------------------------------------------------------------------------------------- */

/* Lengths are mostly below 256, so that part of the region is never named. */
static uint32_t some_sges(struct input *in, struct rddp_sge *sge, uint32_t most)
{
    uint32_t count = input8(in) % (most + 1);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = input16(in), length = at & 0x8000 ? input16(in) : input8(in);

        at = (at & 0x7fff) % ARENA_THIRD;
        length %= ARENA_THIRD - at;
        sge[i] = (struct rddp_sge){.addr = ARENA_THIRD + at, .length = length, .lkey = ARENA_LOCAL + 1};
    }
    return count;
}

static void name(struct arena *a, const struct rddp_sge *sge, int count)
{
    for (int i = 0; i < count; i++)
        if (sge[i].lkey == ARENA_LOCAL + 1)
            memset(a->named + sge[i].addr, 1, sge[i].length);
}

/* Memory of exactly the given size, so that sanitizers detect accesses beyond it. */
static uint8_t *some_buffer(struct arena *a, struct input *in)
{
    uint32_t octets = input8(in) * 4U + input8(in) % 4;

    a->control[a->posted] = malloc(octets + 1);
    assert(a->control[a->posted]);
    a->control_size[a->posted] = octets;
    a->control[a->posted][octets] = GUARD_OCTET;
    return a->control[a->posted];
}

static void some_control(struct arena *a, struct input *in, struct rddp_send_wr *send, struct rddp_recv_wr *recv)
{
    static const uint8_t head[1020];
    uint8_t kind = input8(in);

    send->send_flags |= kind & 1 ? RDDP_SEND_ORDER : 0;
    send->send_flags |= kind & 2 ? RDDP_SEND_SOLICITED : 0;
    send->order = kind >> 4;
    send->control = head;
    send->control_length = kind & 4 ? input8(in) * 4U : 0;
    if (!(kind & 8))
        return;
    free(a->control[a->posted]); /* of a request that was refused */
    recv->control = send->response_control = some_buffer(a, in);
    recv->control_size = send->response_size = a->control_size[a->posted];
}

/* Three bits of the input select one of these. */
static const enum rddp_wr_opcode opcodes[] = {
    RDDP_WR_RDMA_WRITE,    RDDP_WR_SEND,          RDDP_WR_RDMA_READ,           RDDP_WR_LOCAL_INV,
    RDDP_WR_SEND_WITH_INV, RDDP_WR_SEND_WITH_IMM, RDDP_WR_RDMA_WRITE_WITH_IMM, RDDP_WR_ATOMIC_FETCH_AND_ADD};

void arena_post(struct arena *a, struct input *in)
{
    struct rddp_sge sge[SGES] = {{0}};
    uint8_t kind = input8(in);
    struct rddp_send_wr send = {.wr_id = a->posted, .sg_list = sge, .opcode = opcodes[kind >> 2 & 7]};
    struct rddp_recv_wr recv = {.wr_id = a->posted, .sg_list = sge};
    bool is_recv = kind & 1;
    int error;

    if (a->posted == ARENA_REQUESTS)
        return;
    recv.num_sge = send.num_sge = (int)some_sges(in, sge, SGES);
    send.send_flags = kind & 2 ? RDDP_SEND_SIGNALED : 0;
    send.send_flags |= kind & 0x20 ? RDDP_SEND_FENCE : 0;
    send.rkey = send.invalidate_rkey = input8(in);
    send.remote_addr = input_number(in);
    /* Use a wrong key, but not that of memory that may change while it is sent. */
    if (kind & 0x40 && !is_recv)
        sge[0].lkey = ARENA_LOCAL + 1 + input8(in);
    if (send.opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD && !is_recv) {
        send.num_sge = recv.num_sge = 1;
        sge[0].length = 8;
    }
    if (a->qp.sequence)
        some_control(a, in, &send, &recv);
    error = is_recv ? qp_post_recv(&a->qp, &recv) : qp_post_send(&a->qp, &send);
    qp_settle(&a->qp);
    if (error)
        return;
    if (is_recv || send.opcode == RDDP_WR_RDMA_READ || send.opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD)
        name(a, sge, recv.num_sge);
    for (int i = 0; i < recv.num_sge; i++)
        a->octets[a->posted] += sge[i].length;
    a->outcome[a->posted++] = is_recv || kind & 2 ? POSTED : SILENT;
}

void arena_poll(struct arena *a)
{
    struct rddp_wc wc;

    while (cq_poll(&a->cq, &wc, 1)) {
        assert(wc.wr_id < a->posted && a->outcome[wc.wr_id] != COMPLETE && wc.qp_num == 1);
        a->outcome[wc.wr_id] = COMPLETE;
        if (wc.status == RDDP_WC_SUCCESS && wc.opcode == RDDP_WC_RDMA_READ)
            assert(wc.byte_len == a->octets[wc.wr_id]);
        if (wc.status == RDDP_WC_SUCCESS && wc.opcode == RDDP_WC_RECV)
            assert(wc.byte_len <= a->octets[wc.wr_id]);
        if (wc.status == RDDP_WC_SUCCESS && !(wc.wc_flags & RDDP_WC_WITH_IMM) &&
            (wc.opcode == RDDP_WC_RECV_RDMA_WITH_IMM || wc.opcode == RDDP_WC_RECV_RDMA_READ)) {
            assert(wc.control_length && a->qp.attr.rdma_control);
            a->control_told += wc.control_length;
        }
    }
}

void arena_scribble(struct arena *a, uint8_t octet)
{
    memset(a->mr[ARENA_LOCAL].base + ARENA_THIRD, octet, ARENA_THIRD);
    memset(a->named + ARENA_THIRD, 1, ARENA_THIRD);
}

/* --- the end ------------------------------------------------------------------------------------------------- */

/* Checks that all octets still have the value that regions are filled with. */
static void check_untouched(const uint8_t *p, size_t n)
{
    static uint8_t guard[ARENA_OCTETS];

    if (!guard[0])
        memset(guard, GUARD_OCTET, sizeof(guard));
    assert(!memcmp(p, guard, n));
}

static void check_named(const struct arena *a)
{
    for (uint32_t i = 0; i < ARENA_OCTETS; i++)
        assert(a->named[i] || a->mr[ARENA_LOCAL].base[i] == GUARD_OCTET);
}

void arena_close(struct arena *a)
{
    arena_poll(a);
    assert(a->qp.state == QP_ERROR && !a->cq.overflowed);
    for (uint32_t i = 0; i < a->posted; i++)
        assert(a->outcome[i] != POSTED);
    for (uint32_t i = 0; i < ARENA_REGIONS; i++) {
        check_untouched(a->buffer[i], GUARD);
        check_untouched(a->buffer[i] + GUARD + ARENA_OCTETS, GUARD);
        if (i == ARENA_LOCAL)
            check_named(a);
        else if (i != ARENA_TARGET && i != ARENA_PART)
            check_untouched(a->mr[i].base, ARENA_OCTETS);
        assert(!a->mr[i].sending);
        free(a->buffer[i]);
    }
    qp_fini(&a->qp);
    assert(!a->pd.users && !a->cq.users);
    for (uint32_t i = 0; i < ARENA_REQUESTS; i++) {
        assert(!a->control[i] || a->control[i][a->control_size[i]] == GUARD_OCTET);
        free(a->control[i]);
    }
    free(a->sequence_buffer);
    free(a->qp_buffer);
    free(a);
}

void arena_copy(const struct arena *a, uint8_t *to)
{
    for (uint32_t i = 0; i < ARENA_REGIONS; i++)
        memcpy(to + (size_t)i * ARENA_OCTETS, a->mr[i].base, ARENA_OCTETS);
}
