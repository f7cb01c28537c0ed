/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsock_post.c - requests of an rsocket: messages, and Writes into the peer's memory. */
#include <byteswap.h>
#include <endian.h>

#include "verbs/rsock/rsocket.h"

bool rs_is_big_endian(void)
{
    return __BYTE_ORDER == __BIG_ENDIAN;
}

bool rs_is_turned(const struct rsocket *rs)
{
    return rs->peer.is_big_endian != rs_is_big_endian();
}

void rs_sge_turn(const struct rsocket *rs, struct rs_sge *sge)
{
    if (!rs_is_turned(rs))
        return;
    sge->addr = bswap_64(sge->addr);
    sge->key = bswap_32(sge->key);
    sge->length = bswap_32(sge->length);
}

uint32_t rs_message(enum rs_message what, uint32_t value)
{
    return (uint32_t)what << RS_MESSAGE_SHIFT | value;
}

void rs_break(struct rsocket *rs, int error)
{
    if (rs->state == RS_OVER || rs->state == RS_FAILED)
        return;
    rs->state = RS_FAILED;
    rs->error = error;
}

static int post_list(struct rsocket *rs, struct ibv_send_wr *wr, unsigned places)
{
    struct ibv_send_wr *bad;
    int error = ibv_post_send(rs->id->qp, wr, &bad);

    if (error)
        rs_break(rs, error);
    else
        rs->out.slots -= places;
    return error;
}

/* The message is signalled, and stands for the Write before it too. */
static void prepare_message(struct ibv_send_wr *wr, struct ibv_sge *sge, const uint32_t *message)
{
    *sge = (struct ibv_sge){.addr = (uintptr_t)message, .length = sizeof(*message)};
    *wr = (struct ibv_send_wr){.wr_id = RS_ID_SENT | 1,
                               .sg_list = sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
}

int rs_post_message(struct rsocket *rs, enum rs_message what, uint32_t value)
{
    const uint32_t message = rs_message(what, value);
    struct ibv_send_wr wr;
    struct ibv_sge sge;

    prepare_message(&wr, &sge, &message);
    return post_list(rs, &wr, 1);
}

static void prepare_write(struct ibv_send_wr *wr, struct ibv_sge *from, const struct rs_sge *to)
{
    *wr = (struct ibv_send_wr){
        .sg_list = from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = from->lkey ? 0 : IBV_SEND_INLINE};
    wr->wr.rdma.remote_addr = to->addr;
    wr->wr.rdma.rkey = to->key;
}

int rs_post_write(struct rsocket *rs, struct ibv_sge *from, const struct rs_sge *to, uint32_t message, uint32_t freed)
{
    struct ibv_send_wr wr[2];
    struct ibv_sge sge;

    prepare_write(&wr[0], from, to);
    prepare_message(&wr[1], &sge, &message);
    wr[0].next = &wr[1];
    wr[1].wr_id = RS_ID_SENT | 2 | (uint64_t)freed << RS_ID_FREED_SHIFT;
    return post_list(rs, wr, 2);
}

int rs_post_silent(struct rsocket *rs, struct ibv_sge *from, const struct rs_sge *to, uint32_t freed)
{
    struct ibv_send_wr wr;

    prepare_write(&wr, from, to);
    wr.wr_id = RS_ID_SENT | 1 | (uint64_t)freed << RS_ID_FREED_SHIFT;
    wr.send_flags |= IBV_SEND_SIGNALED;
    return post_list(rs, &wr, 1);
}
