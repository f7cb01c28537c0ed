/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_attr.c - limits of what a queue pair is given when it is connected by hand. */
#include "roce/io/roce_attr.h"

#include "roce/bth.h"
#include "roce/rc_requester.h"

bool roce_attr_is_mtu(uint32_t mtu)
{
    return !mtu || (mtu >= BTH_MTU_MIN && mtu <= BTH_MTU_MAX && !(mtu & (mtu - 1)));
}

bool roce_attr_may_receive(const struct rddp_ib_attr *attr)
{
    return !((attr->peer_qpn | attr->rq_psn) & ~BTH_MASK24) && roce_attr_is_mtu(attr->path_mtu) &&
           attr->min_rnr_timer <= ROCE_ATTR_CODE_MAX;
}

bool roce_attr_may_send(const struct rddp_ib_attr *attr)
{
    return !(attr->sq_psn & ~BTH_MASK24) && attr->timeout <= ROCE_ATTR_CODE_MAX && attr->retry_cnt <= RC_RETRIES_MAX &&
           attr->rnr_retry <= RC_RNR_ENDLESS;
}
