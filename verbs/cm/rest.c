/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rest.c - a connection that both ends have left rests, and then its queue pair may be connected again. */
#include "verbs/cm/cm.h"
#include "verbs/cm/datagram.h"

/* As the kernel reckons, from the time-out of acknowledgements: the passive end rests from its own end of the
 * connection on. Without memory the event does not come. */
static uint32_t rest_ms(const struct cm_id *id)
{
    enum { MOST = 31, UNIT = 8 };
    unsigned code = id->ack_timeout > CM_ACK_TIMEOUT ? id->ack_timeout : CM_ACK_TIMEOUT;

    return (UINT32_C(1) << ((code < MOST ? code : MOST) - UNIT)) + 1;
}

void cm_rest(struct cm_id *id)
{
    const struct rddp_event event = {.type = RDDP_EVENT_USER + (unsigned)RDMA_CM_EVENT_TIMEWAIT_EXIT, .user = id};

    if (!cm_is_ib(id) || cm_is_datagram(id) || id->state != CM_OVER || !id->has_left || id->rests)
        return;
    id->rests = !rddp_post_event_later(cm_channel_of(id->ibv.channel)->rddp, &event, rest_ms(id));
}
