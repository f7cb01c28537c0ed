/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c - completion queues, and the channels that wake those who wait for them: each is one of rddp, and so is the
 * descriptor. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/context.h"
#include "verbs/verbs_object.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct verbs_channel *channel = calloc(1, sizeof(*channel));

    if (!channel || !(channel->rddp = rddp_create_comp_channel(verbs_process()))) {
        free(channel);
        return NULL;
    }
    channel->ibv.context = context;
    channel->ibv.fd = rddp_comp_channel_fd(channel->rddp);
    return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    struct verbs_channel *channel = (struct verbs_channel *)ibv;
    int error = rddp_destroy_comp_channel(channel->rddp);

    if (!error)
        free(channel);
    return verbs_refuse(-error, "ibv_destroy_comp_channel: CQs use the channel");
}

static struct verbs_cq *cq_create(struct ibv_context *context, uint32_t cqe, void *user,
                                  struct ibv_comp_channel *channel, uint32_t vector)
{
    struct verbs_cq *cq;

    if (cqe > VERBS_CQE_MAX || vector >= (uint32_t)context->num_comp_vectors) {
        verbs_refuse(EINVAL, "ibv_create_cq: %u entries of at most %d, vector %u of %d", cqe, VERBS_CQE_MAX, vector,
                     context->num_comp_vectors);
        return NULL;
    }
    cq = calloc(1, sizeof(*cq));
    if (!cq)
        return NULL;
    cq->rddp = rddp_create_cq(verbs_process(), (int)cqe, cq, channel ? ((struct verbs_channel *)channel)->rddp : NULL);
    if (!cq->rddp) {
        free(cq);
        verbs_refuse(errno, "ibv_create_cq: %u entries, of 1 to %d", cqe, VERBS_CQE_MAX);
        return NULL;
    }
    rddp_watch_cq(cq->rddp, open_device_of(context)->async, cq);
    cq->ibv.context = context;
    cq->ibv.channel = channel;
    cq->ibv.cq_context = user;
    cq->ibv.cqe = (int)cqe;
    pthread_mutex_init(&cq->ibv.mutex, NULL);
    pthread_cond_init(&cq->ibv.cond, NULL);
    return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *user, struct ibv_comp_channel *channel,
                             int vector)
{
    struct verbs_cq *cq;

    if (cqe < 0 || vector < 0) {
        verbs_refuse(EINVAL, "ibv_create_cq: %d entries, vector %d: neither can be negative", cqe, vector);
        return NULL;
    }
    cq = cq_create(context, (uint32_t)cqe, user, channel, (uint32_t)vector);
    return cq ? &cq->ibv : NULL;
}

struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    enum { TIMESTAMPS = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK };
    struct verbs_cq *cq;

    /* verbs.h calls the readers of a completion unchecked: one that is missing must not be asked for. */
    if (attr->wc_flags & ~(uint64_t)(IBV_WC_STANDARD_FLAGS | TIMESTAMPS) ||
        attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
        (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
         attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
        verbs_refuse(EOPNOTSUPP, "ibv_create_cq_ex: wc_flags, comp_mask or flags ask for what the device has not");
        return NULL;
    }
    cq = cq_create(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
    if (!cq)
        return NULL;
    if (attr->wc_flags & TIMESTAMPS)
        rddp_stamp_cq(cq->rddp); /* no queue pair uses it yet */
    cq_show_ex(cq);
    return &cq->ex;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
    struct verbs_cq *cq = cq_of(ibv);
    int error = rddp_destroy_cq(cq->rddp); /* waits until events that were taken are acknowledged */

    if (error)
        return verbs_refuse(-error, "ibv_destroy_cq: queue pairs use the CQ of %d entries", ibv->cqe);
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
    free(cq);
    return 0;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    int error = rddp_resize_cq(cq_of(cq)->rddp, cqe);

    if (!error)
        cq->cqe = cqe;
    return verbs_refuse(-error, "ibv_resize_cq: %d entries: of 1 to %d, and no fewer than completions wait", cqe,
                        VERBS_CQE_MAX);
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **user)
{
    struct rddp_cq *rddp;
    struct verbs_cq *taken;
    void *own;
    int error = rddp_get_cq_event(((struct verbs_channel *)ibv)->rddp, &rddp, &own);

    if (error) {
        errno = -error;
        return -1;
    }
    taken = own;
    *cq = &taken->ibv;
    *user = taken->ibv.cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    rddp_ack_cq_events(cq_of(cq)->rddp, n);
}

int verbs_cq_arm(struct ibv_cq *cq, int solicited_only)
{
    int error = rddp_req_notify_cq(cq_of(cq)->rddp, solicited_only);

    return verbs_refuse(-error, "ibv_req_notify_cq: the CQ of %d entries has no channel", cq->cqe);
}

static void cq_translate(struct ibv_wc *to, const struct rddp_wc *from)
{
    to->wr_id = from->wr_id;
    to->status = (enum ibv_wc_status)from->status;
    to->opcode = (enum ibv_wc_opcode)from->opcode;
    to->vendor_err = from->vendor_err;
    to->byte_len = from->byte_len;
    to->imm_data = from->wc_flags & RDDP_WC_WITH_INV ? from->invalidated_rkey : from->imm_data;
    to->qp_num = from->qp_num;
    to->src_qp = from->src_qp;
    to->wc_flags = from->wc_flags & ~(unsigned)RDDP_WC_IPV4;
    to->pkey_index = to->slid = 0;
    to->sl = verbs_packet_type(from);
    to->dlid_path_bits = 0;
}

int verbs_cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    struct rddp_wc from[VERBS_BATCH];
    int done = 0;

    while (done < n) {
        int want = n - done < VERBS_BATCH ? n - done : VERBS_BATCH;
        int got = rddp_poll_cq(cq_of(cq)->rddp, want, from);
        if (got < 0)
            return done ? done : got;
        for (int i = 0; i < got; i++)
            cq_translate(&wc[done++], &from[i]);
        if (got < want)
            break;
    }
    return done;
}
