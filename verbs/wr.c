/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wr.c - requests that are built piece by piece (ibv_wr_*) and posted together.
 *
 * Between ibv_wr_start() and ibv_wr_complete() or _abort() a queue pair is one thread's, which verbs promise; a queue
 * pair of a thread domain has one thread anyway, and no lock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/verbs_object.h"

struct wr_builder {
    pthread_mutex_t lock;
    bool is_shared; /* takes `lock`: the queue pair is in no thread domain */
    int error;      /* the first that a builder met: ibv_wr_complete() tells it */
    uint32_t built, sges;
    size_t inlined;            /* octets of `data` in use */
    uint32_t max_wr, max_sge;  /* of the queue, and of a request */
    size_t max_inline;         /* of a request */
    struct rddp_send_wr *wr;   /* max_wr */
    struct rddp_sge *sge;      /* max_wr * max_sge */
    struct rddp_mw_bind *bind; /* max_wr */
    uint8_t *data;             /* max_wr * max_inline */
};

static struct wr_builder *builder_of(struct ibv_qp_ex *ex)
{
    return ((struct verbs_qp *)ex)->builder;
}

static void wr_fail(struct wr_builder *b, int error)
{
    if (!b->error)
        b->error = error;
}

static void wr_start(struct ibv_qp_ex *ex)
{
    struct wr_builder *b = builder_of(ex);

    if (b->is_shared)
        pthread_mutex_lock(&b->lock);
    b->error = 0;
    b->built = b->sges = 0;
    b->inlined = 0;
}

static void wr_end(struct wr_builder *b)
{
    if (b->is_shared)
        pthread_mutex_unlock(&b->lock);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct wr_builder *b = builder_of(ex);
    struct rddp_send_wr *bad;
    int error = b->error;

    if (!error && b->built) {
        b->wr[b->built - 1].next = NULL;
        error = -rddp_post_send(((struct verbs_qp *)ex)->rddp, b->wr, &bad);
    }
    wr_end(b);
    return error;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    wr_end(builder_of(ex));
}

/* Begins a request. With one too many, the last of the array is written again, and nothing will be posted. */
static struct rddp_send_wr *wr_begin(struct ibv_qp_ex *ex, enum rddp_wr_opcode opcode)
{
    struct wr_builder *b = builder_of(ex);
    struct rddp_send_wr *wr;

    if (b->built == b->max_wr) {
        wr_fail(b, ENOMEM);
        b->built--;
    }
    wr = &b->wr[b->built++];
    *wr = (struct rddp_send_wr){
        .wr_id = ex->wr_id, .next = wr + 1, .opcode = opcode, .send_flags = ex->wr_flags & VERBS_SEND_FLAGS};
    return wr;
}

static struct rddp_send_wr *wr_begin_remote(struct ibv_qp_ex *ex, enum rddp_wr_opcode opcode, uint32_t rkey,
                                            uint64_t addr)
{
    struct rddp_send_wr *wr = wr_begin(ex, opcode);

    wr->rkey = rkey;
    wr->remote_addr = addr;
    return wr;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    wr_begin(ex, RDDP_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
    wr_begin(ex, RDDP_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    wr_begin(ex, RDDP_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    wr_begin(ex, RDDP_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
    struct wr_builder *b = builder_of(ex);
    struct rddp_send_wr *wr = wr_begin(ex, RDDP_WR_BIND_MW);

    wr->rkey = rkey;
    wr->bind = mw_translate(&b->bind[b->built - 1], mw, rkey, info);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    wr_begin_remote(ex, RDDP_WR_RDMA_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    wr_begin_remote(ex, RDDP_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm_data)
{
    wr_begin_remote(ex, RDDP_WR_RDMA_WRITE_WITH_IMM, rkey, addr)->imm_data = imm_data;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
    struct rddp_send_wr *wr = wr_begin_remote(ex, RDDP_WR_ATOMIC_CMP_AND_SWP, rkey, addr);

    wr->compare_add = compare;
    wr->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
    wr_begin_remote(ex, RDDP_WR_ATOMIC_FETCH_AND_ADD, rkey, addr)->compare_add = add;
}

/* The request that is being built; NULL: none is, or one before it has failed, and there may be no place for its data.
 */
static struct rddp_send_wr *wr_current(struct wr_builder *b)
{
    if (!b->built)
        wr_fail(b, EINVAL);
    return b->error ? NULL : &b->wr[b->built - 1];
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
    struct rddp_send_wr *wr = wr_current(builder_of(ex));

    if (!wr)
        return;
    wr->ah = ah_of(ah)->rddp;
    wr->remote_qpn = remote_qpn;
    wr->remote_qkey = remote_qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
    struct wr_builder *b = builder_of(ex);
    struct rddp_send_wr *wr = wr_current(b);

    if (!wr || wr->num_sge || n > b->max_sge) {
        wr_fail(b, EINVAL);
        return;
    }
    wr->sg_list = &b->sge[b->sges];
    wr->num_sge = (int)n;
    memcpy(wr->sg_list, list, n * sizeof(*list));
    b->sges += (uint32_t)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

    wr_set_sge_list(ex, 1, &sge);
}

/* The octets are copied now: the application may change them before the request is posted. */
static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
    struct wr_builder *b = builder_of(ex);
    struct rddp_send_wr *wr = wr_current(b);
    uint8_t *to = b->data + b->inlined;
    size_t length = 0;

    if (!wr || wr->num_sge) {
        wr_fail(b, EINVAL);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].length > b->max_inline - length) {
            wr_fail(b, EINVAL);
            return;
        }
        memcpy(to + length, list[i].addr, list[i].length);
        length += list[i].length;
    }
    wr->send_flags |= RDDP_SEND_INLINE;
    wr->sg_list = &b->sge[b->sges++];
    wr->num_sge = 1;
    *wr->sg_list = (struct rddp_sge){.addr = (uintptr_t)to, .length = (uint32_t)length};
    b->inlined += length;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    const struct ibv_data_buf one = {.addr = addr, .length = length};

    wr_set_inline_data_list(ex, 1, &one);
}

static void wr_show(struct ibv_qp_ex *ex)
{
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_bind_mw = wr_bind_mw;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
}

int wr_builder_attach(struct verbs_qp *qp)
{
    struct wr_builder *b = calloc(1, sizeof(*b));

    if (!b)
        return ENOMEM;
    b->is_shared = !pd_of(qp->ibv.pd)->td;
    b->max_wr = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1;
    b->max_sge = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
    b->max_inline = qp->cap.max_inline_data;
    b->wr = calloc(b->max_wr, sizeof(*b->wr));
    b->sge = calloc((size_t)b->max_wr * b->max_sge, sizeof(*b->sge));
    b->bind = calloc(b->max_wr, sizeof(*b->bind));
    b->data = calloc(b->max_wr, b->max_inline ? b->max_inline : 1);
    pthread_mutex_init(&b->lock, NULL);
    qp->builder = b;
    if (!b->wr || !b->sge || !b->bind || !b->data) {
        wr_builder_detach(qp);
        return ENOMEM;
    }
    wr_show(&qp->ex);
    return 0;
}

void wr_builder_detach(struct verbs_qp *qp)
{
    struct wr_builder *b = qp->builder;

    if (!b)
        return;
    pthread_mutex_destroy(&b->lock);
    free(b->wr);
    free(b->sge);
    free(b->bind);
    free(b->data);
    free(b);
    qp->builder = NULL;
}
