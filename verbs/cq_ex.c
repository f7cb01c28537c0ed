/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq_ex.c - an extended CQ: its completions are taken one by one, and read piece by piece. */
#include <errno.h>

#include "verbs/verbs_object.h"

static struct verbs_cq *cq_of_ex(struct ibv_cq_ex *ex)
{
    return (struct verbs_cq *)ex;
}

static int cq_next(struct ibv_cq_ex *ex)
{
    struct verbs_cq *cq = cq_of_ex(ex);
    int n = rddp_poll_cq(cq->rddp, 1, &cq->wc);

    if (n < 1)
        return n ? -n : ENOENT;
    ex->status = (enum ibv_wc_status)cq->wc.status;
    ex->wr_id = cq->wc.wr_id;
    return 0;
}

static int cq_start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    return attr->comp_mask ? EINVAL : cq_next(ex);
}

static void cq_end(struct ibv_cq_ex *ex)
{
    (void)ex; /* nothing was locked */
}

static enum ibv_wc_opcode cq_read_opcode(struct ibv_cq_ex *ex)
{
    return (enum ibv_wc_opcode)cq_of_ex(ex)->wc.opcode;
}

static uint32_t cq_read_vendor_err(struct ibv_cq_ex *ex)
{
    return cq_of_ex(ex)->wc.vendor_err;
}

static uint32_t cq_read_byte_len(struct ibv_cq_ex *ex)
{
    return cq_of_ex(ex)->wc.byte_len;
}

static __be32 cq_read_imm_data(struct ibv_cq_ex *ex)
{
    const struct rddp_wc *wc = &cq_of_ex(ex)->wc;

    return wc->wc_flags & RDDP_WC_WITH_INV ? wc->invalidated_rkey : wc->imm_data;
}

static uint32_t cq_read_qp_num(struct ibv_cq_ex *ex)
{
    return cq_of_ex(ex)->wc.qp_num;
}

static unsigned cq_read_wc_flags(struct ibv_cq_ex *ex)
{
    return cq_of_ex(ex)->wc.wc_flags & ~(unsigned)RDDP_WC_IPV4;
}

static uint32_t cq_read_src_qp(struct ibv_cq_ex *ex)
{
    return cq_of_ex(ex)->wc.src_qp;
}

/* The wire of RoCE version 2 has no service level. The cards of mlx5 say there how a datagram came, and UCX, which
 * reads it, drops what came by IPv4 if it does not say so. */
uint8_t verbs_packet_type(const struct rddp_wc *wc)
{
    enum { BY_UDP = 8, BY_IPV4 = 2, BY_IPV6 = 1 };

    if (!(wc->wc_flags & RDDP_WC_GRH))
        return 0;
    return BY_UDP | (wc->wc_flags & RDDP_WC_IPV4 ? BY_IPV4 : BY_IPV6);
}

static uint8_t cq_read_packet_type(struct ibv_cq_ex *ex)
{
    return verbs_packet_type(&cq_of_ex(ex)->wc);
}

/* Neither IP has a LID, nor a path. */
static uint32_t cq_read_no_word(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint8_t cq_read_no_octet(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint64_t cq_read_timestamp(struct ibv_cq_ex *ex)
{
    return cq_of_ex(ex)->wc.timestamp_ns;
}

static uint64_t cq_read_wallclock(struct ibv_cq_ex *ex)
{
    return clock_to_wall(cq_of_ex(ex)->wc.timestamp_ns);
}

void cq_show_ex(struct verbs_cq *cq)
{
    cq->ex.start_poll = cq_start;
    cq->ex.next_poll = cq_next;
    cq->ex.end_poll = cq_end;
    cq->ex.read_opcode = cq_read_opcode;
    cq->ex.read_vendor_err = cq_read_vendor_err;
    cq->ex.read_byte_len = cq_read_byte_len;
    cq->ex.read_imm_data = cq_read_imm_data;
    cq->ex.read_qp_num = cq_read_qp_num;
    cq->ex.read_src_qp = cq_read_src_qp;
    cq->ex.read_wc_flags = cq_read_wc_flags;
    cq->ex.read_slid = cq_read_no_word;
    cq->ex.read_sl = cq_read_packet_type;
    cq->ex.read_dlid_path_bits = cq_read_no_octet;
    cq->ex.read_completion_ts = cq_read_timestamp;
    cq->ex.read_completion_wallclock_ns = cq_read_wallclock;
}
