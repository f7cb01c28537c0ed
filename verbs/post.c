/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.c - requests become rddp's, some at a time. A list of verbs stays together in parts of VERBS_BATCH. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "verbs/verbs_object.h"

/* Entries of a list are passed on as they are. */
static_assert(sizeof(struct ibv_sge) == sizeof(struct rddp_sge) &&
                  offsetof(struct ibv_sge, addr) == offsetof(struct rddp_sge, addr) &&
                  offsetof(struct ibv_sge, length) == offsetof(struct rddp_sge, length) &&
                  offsetof(struct ibv_sge, lkey) == offsetof(struct rddp_sge, lkey),
              "an sge is the same on both sides");

static void translate_destination(struct rddp_send_wr *to, const struct ibv_send_wr *from)
{
    to->ah = from->wr.ud.ah ? ah_of(from->wr.ud.ah)->rddp : NULL;
    to->remote_qpn = from->wr.ud.remote_qpn;
    to->remote_qkey = from->wr.ud.remote_qkey;
}

static void translate_send(struct rddp_send_wr *to, const struct ibv_send_wr *from, struct rddp_mw_bind *bind)
{
    to->wr_id = from->wr_id;
    to->next = to + 1;
    to->sg_list = (struct rddp_sge *)from->sg_list;
    to->num_sge = from->num_sge;
    to->opcode = (enum rddp_wr_opcode)from->opcode;
    to->send_flags = from->send_flags & VERBS_SEND_FLAGS; /* no adapter minds IP_CSUM for a connection */
    to->invalidate_rkey = to->imm_data = from->imm_data;
    if (from->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || from->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        to->remote_addr = from->wr.atomic.remote_addr;
        to->rkey = from->wr.atomic.rkey;
        to->compare_add = from->wr.atomic.compare_add;
        to->swap = from->wr.atomic.swap;
    } else if (from->opcode == IBV_WR_BIND_MW) {
        to->rkey = from->bind_mw.rkey;
        to->bind = mw_translate(bind, from->bind_mw.mw, from->bind_mw.rkey, &from->bind_mw.bind_info);
    } else {
        to->remote_addr = from->wr.rdma.remote_addr;
        to->rkey = from->wr.rdma.rkey;
    }
    to->ah = NULL;
    to->control_length = 0;
    to->control = NULL;
    to->response_control = NULL;
}

/* Programs try until there is room again, so a queue says once that it is full. */
static int refuse_post(const char *call, uint32_t number, atomic_bool *was_full, int error, uint64_t wr_id)
{
    if (error == ENOMEM && atomic_exchange(was_full, true))
        return error;
    if (error == ENOMEM)
        return verbs_refuse(error, "%s %u: its queue is full until a completion of it is polled", call, number);
    return verbs_refuse(error,
                        "%s %u, wr_id %llu: its state, opcode, address handle, number of SGEs or octets are wrong",
                        call, number, (unsigned long long)wr_id);
}

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct rddp_send_wr to[VERBS_BATCH], *bad;
    struct rddp_mw_bind bind[VERBS_BATCH];

    while (wr) {
        struct ibv_send_wr *first = wr;
        int n = 0, error;
        for (; wr && n < VERBS_BATCH; wr = wr->next) {
            translate_send(&to[n], wr, &bind[n]);
            if (qp->qp_type == IBV_QPT_UD)
                translate_destination(&to[n], wr);
            n++;
        }
        to[n - 1].next = NULL;
        error = post_errno(qp, rddp_post_send(qp_of(qp)->rddp, to, &bad));
        if (error) {
            for (; bad > to; bad--)
                first = first->next;
            *bad_wr = first;
            return refuse_post("ibv_post_send: QP", qp->qp_num, &qp_of(qp)->was_full, error, first->wr_id);
        }
    }
    return 0;
}

/* A queue pair, or an SRQ. */
struct receiver {
    const char *call;
    uint32_t number;
    struct rddp_qp *qp;
    struct rddp_srq *srq;
    atomic_bool *was_full;
};

static int post_recv_list(const struct receiver *r, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct rddp_recv_wr to[VERBS_BATCH], *bad;

    while (wr) {
        struct ibv_recv_wr *first = wr;
        int n = 0, error;
        for (; wr && n < VERBS_BATCH; wr = wr->next, n++)
            to[n] = (struct rddp_recv_wr){.wr_id = wr->wr_id,
                                          .next = &to[n + 1],
                                          .sg_list = (struct rddp_sge *)wr->sg_list,
                                          .num_sge = wr->num_sge};
        to[n - 1].next = NULL;
        error = r->qp ? rddp_post_recv(r->qp, to, &bad) : rddp_post_srq_recv(r->srq, to, &bad);
        if (error) {
            for (; bad > to; bad--)
                first = first->next;
            *bad_wr = first;
            return refuse_post(r->call, r->number, r->was_full, -error, first->wr_id);
        }
    }
    return 0;
}

int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    const struct receiver r = {"ibv_post_recv: QP", qp->qp_num, qp_of(qp)->rddp, NULL, &qp_of(qp)->was_full};

    if (atomic_load_explicit(&qp_of(qp)->is_reset, memory_order_relaxed)) {
        *bad_wr = wr;
        return refuse_post(r.call, r.number, r.was_full, EINVAL, wr ? wr->wr_id : 0);
    }
    return post_recv_list(&r, wr, bad_wr);
}

int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    const struct receiver r = {"ibv_post_srq_recv: SRQ", 0, NULL, srq_of(srq)->rddp, &srq_of(srq)->was_full};

    return post_recv_list(&r, wr, bad_wr);
}
