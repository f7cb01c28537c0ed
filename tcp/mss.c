/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mss.c - how long segments may be. */
#include "tcp/inner.h"

uint16_t utcp_mss_offer(const struct utcp_name *remote, uint32_t mtu)
{
    uint32_t heads = utcp_heads(remote);

    return (uint16_t)utcp_min(utcp_max(mtu, heads + UTCP_MSS_MIN) - heads, UINT16_MAX);
}

/* The smaller of what the peer and the path accept (RFC 9293 3.7.1), less the options that every segment carries. */
uint32_t utcp_mss_of(const struct utcp *t, uint32_t mtu)
{
    uint32_t heads = utcp_heads(&t->remote);
    uint32_t path = mtu > heads + UTCP_MSS_MIN ? mtu - heads : UTCP_MSS_MIN;
    uint32_t mss = t->tx.peer_mss < path ? t->tx.peer_mss : path;

    if (mss > UTCP_PAYLOAD_MAX)
        mss = UTCP_PAYLOAD_MAX;
    if (mss < UTCP_MSS_MIN)
        mss = UTCP_MSS_MIN;
    return t->stamps.on ? mss - UTCP_STAMPS_LENGTH : mss;
}
