/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transports.c - the table of transports. CMake leaves out the line of one that RDDP_WITHOUT names. */
#include "drive/transports.h"

#include <errno.h>

#include "endpoint/attr.h"
#include "roce/io/roce_transport.h"
#include "sctp/io/endpoint_sctp.h"

static const struct transport *const transports[] = {
    [RDDP_WIRE_IWARP] = NULL, /* these two are links */
    [RDDP_WIRE_RDMATCP] = NULL,
#ifndef RDDP_WITHOUT_SCTP
    [RDDP_WIRE_SCTP] = &transport_sctp,
#endif
#ifndef RDDP_WITHOUT_ROCE
    [RDDP_WIRE_ROCE] = &transport_roce,
#endif
};

const struct transport *transport_of(const struct rddp_wire_attr *wire)
{
    return wire->wire < countof(transports) ? transports[wire->wire] : NULL;
}

int transport_check(struct rddp_context *context, const struct rddp_wire_attr *wire)
{
    if (wire_is_stream(wire) || transport_of(wire))
        return 0;
    context_log(context, RDDP_LOG_ERROR, "this build of rddp has no %s: it was left out with RDDP_WITHOUT",
                wire->wire == RDDP_WIRE_SCTP ? "SCTP" : "RoCE");
    return -EPROTONOSUPPORT;
}

const struct transport_ib *transport_by_hand(void)
{
    const struct transport_ib *ib = NULL;

    for (size_t i = 0; i < countof(transports) && !ib; i++)
        ib = transports[i] ? transports[i]->ib : NULL;
    return ib;
}

void transports_close(struct loop *loop)
{
    for (size_t i = 0; i < countof(transports); i++) {
        if (transports[i] && transports[i]->close)
            transports[i]->close(loop);
    }
}

void transports_abandon(bool ours)
{
    for (size_t i = 0; i < countof(transports); i++) {
        if (transports[i] && transports[i]->abandon)
            transports[i]->abandon(ours);
    }
}

void transports_leave(struct loop *loop)
{
    for (size_t i = 0; i < countof(transports); i++) {
        if (transports[i] && transports[i]->leave)
            transports[i]->leave(loop);
    }
}
