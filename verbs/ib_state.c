/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_state.c - the states of a queue pair of rddpe0, and the attributes that each step reads: InfiniBand's, as the
 * kernel checks them for every adapter. */
#include <errno.h>
#include <string.h>

#include "verbs/ah.h"
#include "verbs/gid.h"
#include "verbs/verbs_object.h"

enum {
    REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    TIMER_MAX = 31, /* a code has five bits */
    COUNT_MAX = 7,  /* and a count of retries three */
    NUMBER_MAX = 0xffffff,
    MTU_UNIT = 128, /* octets of path MTU 1 << code times this */
    CUR = IBV_QP_CUR_STATE,
    RIGHTS = IBV_QP_ACCESS_FLAGS,
    NEEDS_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT,
    NEEDS_UC_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    NEEDS_RC_RTR = NEEDS_UC_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    NEEDS_RC_RTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
    KEY = IBV_QP_QKEY,
    PARTITION = IBV_QP_PKEY_INDEX,
    RNR = IBV_QP_MIN_RNR_TIMER,
    /* of RC, once its requests are drained: all but the numbers of the peer and of packets, and the path MTU */
    IN_SQD = IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
             IBV_QP_MAX_DEST_RD_ATOMIC | RNR,
};

/* InfiniBand Architecture 1.4, 11.2.5.2: what each step must be told, and what it may be, by type. Alternate paths are
 * missing: there is no path migration. */
static const struct ib_step {
    enum ibv_qp_state from, to;
    enum ibv_qp_type type;
    unsigned must, may;
} ib_steps[] = {
    /* clang-format off */
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC, NEEDS_INIT | RIGHTS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UC, NEEDS_INIT | RIGHTS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD, NEEDS_INIT | KEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0, NEEDS_INIT | RIGHTS},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UC, 0, NEEDS_INIT | RIGHTS},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0, NEEDS_INIT | KEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC, NEEDS_RC_RTR, RIGHTS | PARTITION},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UC, NEEDS_UC_RTR, RIGHTS | PARTITION},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, KEY | PARTITION},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC, NEEDS_RC_RTS, CUR | RIGHTS | RNR},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UC, IBV_QP_SQ_PSN, CUR | RIGHTS},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, IBV_QP_SQ_PSN, CUR | KEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0, CUR | RIGHTS | RNR},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | RIGHTS},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | KEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_RC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_RC, 0, RIGHTS | PARTITION | IN_SQD},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UC, 0, RIGHTS | PARTITION | IBV_QP_AV},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UD, 0, KEY | PARTITION},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_RC, 0, CUR | RIGHTS | RNR},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | RIGHTS},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | KEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | RIGHTS},
    {IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | KEY},
    /* clang-format on */
};

/* The states have the same numbers on both sides. One that the connection manager leads is where the program believes
 * it to be, until there is a connection. */
static enum ibv_qp_state ib_state_now(struct verbs_qp *qp, struct rddp_ib_attr *ib, bool *has_manager)
{
    struct rddp_qp_info info;

    rddp_query_ib(qp->rddp, ib);
    rddp_query_qp(qp->rddp, &info);
    *has_manager = qp->awaits_cm || (qp->id && info.state != RDDP_QP_IDLE);
    if (qp->awaits_cm && ib->state == RDDP_IB_INIT)
        return qp->ibv.state;
    if (ib->state == RDDP_IB_RTS && info.state == RDDP_QP_CONNECTING && !ib->peer_qpn)
        return IBV_QPS_INIT; /* the peer has not answered */
    if (ib->state == RDDP_IB_RTS && info.state == RDDP_QP_CLOSING)
        return IBV_QPS_ERR;
    return (enum ibv_qp_state)ib->state;
}

/* Why a step is refused: for people. */
struct refusal {
    const char *attribute; /* "": none */
    const char *rule;
};

/* By the bits of the mask. */
static const char *attribute_of(unsigned mask)
{
    static const char *const names[] = {
        "qp_state",
        "cur_qp_state",
        "en_sqd_async_notify",
        "qp_access_flags",
        "pkey_index",
        "port_num",
        "qkey",
        "ah_attr",
        "path_mtu",
        "timeout",
        "retry_cnt",
        "rnr_retry",
        "rq_psn",
        "max_rd_atomic",
        "alt_ah_attr",
        "min_rnr_timer",
        "sq_psn",
        "max_dest_rd_atomic",
        "path_mig_state",
        "cap",
        "dest_qp_num",
    };
    unsigned bit = (unsigned)__builtin_ctz(mask);

    return bit < sizeof(names) / sizeof(names[0]) ? names[bit] : "an unknown attribute";
}

static int ib_refuse(struct refusal *why, unsigned attribute, const char *rule)
{
    *why = (struct refusal){attribute ? attribute_of(attribute) : "", rule};
    return EINVAL;
}

static int ib_check_mask(unsigned mask, unsigned must, unsigned may, struct refusal *why)
{
    if (must & ~mask)
        return ib_refuse(why, must & ~mask, "is missing");
    if (mask & ~(must | may))
        return ib_refuse(why, mask & ~(must | may), "is not for this step");
    return 0;
}

/* Is this step one of the table, with all that it needs, and nothing else? Returns 0 or an errno. */
static int ib_check_step(const struct verbs_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, unsigned mask,
                         struct refusal *why)
{
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return ib_check_mask(mask, 0, IBV_QP_STATE | CUR, why);
    for (size_t i = 0; i < sizeof(ib_steps) / sizeof(ib_steps[0]); i++) {
        const struct ib_step *step = &ib_steps[i];
        if (step->from == from && step->to == to && step->type == qp->ibv.qp_type)
            return ib_check_mask(mask, step->must, step->may | IBV_QP_STATE, why);
    }
    return ib_refuse(why, 0, "there is no such step");
}

/* Numbers of the program, and the largest that each may be. */
static int ib_check_range(const struct ibv_qp_attr *attr, unsigned mask, struct refusal *why)
{
    const struct {
        unsigned bit, is, least, most;
    } numbers[] = {
        {IBV_QP_PORT, attr->port_num, 1, 1},
        {IBV_QP_PKEY_INDEX, attr->pkey_index, 0, 0},
        {IBV_QP_PATH_MTU, (unsigned)attr->path_mtu, IBV_MTU_256, IBV_MTU_4096},
        {RNR, attr->min_rnr_timer, 0, TIMER_MAX},
        {IBV_QP_DEST_QPN, attr->dest_qp_num, 0, NUMBER_MAX},
        {IBV_QP_TIMEOUT, attr->timeout, 0, TIMER_MAX},
        {IBV_QP_RETRY_CNT, attr->retry_cnt, 0, COUNT_MAX},
        {IBV_QP_RNR_RETRY, attr->rnr_retry, 0, COUNT_MAX},
        {IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, 0, VERBS_READS_MAX},
        {IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, 0, VERBS_READS_MAX},
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (mask & numbers[i].bit && (numbers[i].is < numbers[i].least || numbers[i].is > numbers[i].most))
            return ib_refuse(why, numbers[i].bit, "is out of range");
    return 0;
}

/* What the program names, over what was there before. Returns 0 or an errno. */
static int ib_read(const struct ibv_qp_attr *attr, unsigned mask, struct rddp_ib_attr *ib, struct refusal *why)
{
    int error = ib_check_range(attr, mask, why);

    if (error)
        return error;
    if (mask & IBV_QP_ACCESS_FLAGS)
        ib->access = attr->qp_access_flags & REMOTE;
    if (mask & IBV_QP_QKEY)
        ib->qkey = attr->qkey;
    if (mask & IBV_QP_PATH_MTU)
        ib->path_mtu = (uint32_t)MTU_UNIT << attr->path_mtu;
    if (mask & IBV_QP_DEST_QPN)
        ib->peer_qpn = attr->dest_qp_num;
    if (mask & IBV_QP_RQ_PSN)
        ib->rq_psn = attr->rq_psn & NUMBER_MAX;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        ib->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        ib->min_rnr_timer = attr->min_rnr_timer;
    if (mask & IBV_QP_SQ_PSN)
        ib->sq_psn = attr->sq_psn & NUMBER_MAX;
    if (mask & IBV_QP_TIMEOUT)
        ib->timeout = attr->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        ib->retry_cnt = attr->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        ib->rnr_retry = attr->rnr_retry;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        ib->max_rd_atomic = attr->max_rd_atomic;
    if (!(mask & IBV_QP_AV))
        return 0;
    why->attribute = "ah_attr";
    return ah_path(&attr->ah_attr, &ib->local, &ib->peer, &why->rule);
}

/* What is read by the steps that stay where they are, so that comes before or behind another step. */
static bool ib_changes(enum ibv_qp_state from, unsigned mask)
{
    unsigned changed = IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY;

    if (from >= IBV_QPS_RTR)
        changed |= RNR;
    if (from == IBV_QPS_SQD)
        changed |= IN_SQD;
    return mask & changed && from != IBV_QPS_RESET;
}

/* Takes the step. */
static int ib_step(struct verbs_qp *qp, struct rddp_ib_attr *ib, enum ibv_qp_state from, enum ibv_qp_state to,
                   unsigned mask)
{
    bool changes = ib_changes(from, mask), is_first = changes && from != IBV_QPS_RTR && from != IBV_QPS_SQE;
    struct rddp_ib_attr before;
    int error = 0;

    if (is_first) {
        rddp_query_ib(qp->rddp, &before);
        ib->state = (enum rddp_ib_state)from;
        error = rddp_modify_qp(qp->rddp, ib);
        changes = false;
    }
    ib->state = (enum rddp_ib_state)to;
    if (!error && (to != from || to == IBV_QPS_RESET || to == IBV_QPS_ERR))
        error = rddp_modify_qp(qp->rddp, ib);
    if (!error && changes)
        error = rddp_modify_qp(qp->rddp, ib);
    if (error && is_first) { /* a step that is refused leaves the rights as they were */
        before.state = (enum rddp_ib_state)from;
        rddp_modify_qp(qp->rddp, &before);
    }
    if (error)
        return -error;
    if (to == IBV_QPS_RESET)
        qp->awaits_cm = qp->names_sgid = false;
    return 0;
}

/* The connection manager does, or has done, what the program asks for with what rdma_init_qp_attr() gave it. */
static bool ib_is_led(struct verbs_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state from, enum ibv_qp_state to,
                      unsigned mask, bool has_manager)
{
    if (qp->ibv.qp_type != IBV_QPT_RC || to < IBV_QPS_INIT || to > IBV_QPS_RTS)
        return false;
    if (to == IBV_QPS_INIT)
        return has_manager && from >= IBV_QPS_RTR;
    if (to == IBV_QPS_RTR && mask & IBV_QP_DEST_QPN && attr->dest_qp_num == VERBS_QPN_OF_CM)
        qp->awaits_cm = true;
    return qp->awaits_cm || (has_manager && mask & (IBV_QP_AV | IBV_QP_SQ_PSN));
}

/* Of such a step only the rights are left to do: a program may have refused all before it connected. */
static int ib_set_rights(struct verbs_qp *qp, const struct ibv_qp_attr *attr, unsigned mask)
{
    return mask & IBV_QP_ACCESS_FLAGS ? -rddp_set_qp_access(qp->rddp, attr->qp_access_flags & REMOTE) : 0;
}

static int ib_modify_locked(struct verbs_qp *qp, const struct ibv_qp_attr *attr, unsigned mask,
                            enum ibv_qp_state *before, struct refusal *why)
{
    struct rddp_ib_attr ib;
    bool has_manager;
    enum ibv_qp_state from = *before = ib_state_now(qp, &ib, &has_manager);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    int error = mask & CUR && attr->cur_qp_state != from ? ib_refuse(why, CUR, "is another one") : 0;

    if (!error && from < IBV_QPS_SQD && ib_is_led(qp, attr, from, to, mask, has_manager))
        return ib_set_rights(qp, attr, mask);
    if (!error)
        error = ib_check_step(qp, from, to, mask, why);
    if (!error)
        error = ib_read(attr, mask, &ib, why);
    if (error)
        return error;
    *why = (struct refusal){"", "there is no route to the GID, or what was asked for cannot be had"};
    error = ib_step(qp, &ib, from, to, mask);
    if (!error && mask & IBV_QP_AV) {
        qp->sgid_index = attr->ah_attr.grh.sgid_index;
        qp->names_sgid = true;
    }
    return error;
}

static const char *state_name(enum ibv_qp_state state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

    return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "an unknown state";
}

int ib_modify(struct verbs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct refusal why = {"", "its rights cannot be changed"};
    enum ibv_qp_state before;
    int error;

    verbs_enter(); /* events of a connection vanish with a reset */
    error = ib_modify_locked(qp, attr, (unsigned)mask, &before, &why);
    if (!error && mask & IBV_QP_STATE) {
        qp->ibv.state = attr->qp_state;
        atomic_store(&qp->is_reset, attr->qp_state == IBV_QPS_RESET);
    }
    verbs_leave();
    return verbs_refuse(error, "ibv_modify_qp: QP %#x: %s to %s: %s%s%s", qp->ibv.qp_num, state_name(before),
                        state_name(mask & IBV_QP_STATE ? attr->qp_state : before), why.attribute,
                        *why.attribute ? " " : "", why.rule);
}

static enum ibv_mtu mtu_code(uint32_t octets)
{
    enum ibv_mtu code = IBV_MTU_256;

    while (code < IBV_MTU_4096 && (uint32_t)MTU_UNIT << code < octets)
        code++;
    return code;
}

void ib_query(struct verbs_qp *qp, struct ibv_qp_attr *attr)
{
    struct rddp_ib_attr ib;
    bool has_manager;

    verbs_enter();
    qp->ibv.state = ib_state_now(qp, &ib, &has_manager);
    verbs_leave();
    *attr = (struct ibv_qp_attr){
        .path_mtu = ib.path_mtu ? mtu_code(ib.path_mtu) : 0,
        .path_mig_state = IBV_MIG_MIGRATED,
        .qkey = ib.qkey,
        .rq_psn = ib.rq_psn,
        .sq_psn = ib.sq_psn,
        .dest_qp_num = ib.peer_qpn,
        .qp_access_flags = ib.access,
        .max_rd_atomic = ib.max_rd_atomic,
        .max_dest_rd_atomic = ib.max_dest_rd_atomic,
        .min_rnr_timer = ib.min_rnr_timer,
        .timeout = ib.timeout,
        .retry_cnt = ib.retry_cnt,
        .rnr_retry = ib.rnr_retry,
    };
    if (ib.peer.ss_family == AF_UNSPEC)
        return;
    (void)verbs_path(&ib.local, &ib.peer, &attr->ah_attr);
    if (qp->names_sgid)
        attr->ah_attr.grh.sgid_index = qp->sgid_index;
}
