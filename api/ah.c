/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ah.c - address handles: the destination of a datagram, and the source of one that came. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/datagram.h"
#include "drive/inherit.h"
#include "drive/transports.h"
#include "endpoint/objects.h"
#include "loop/udp.h"
#include "roce/io/roce_address.h"
#include "roce/io/roce_attr.h"
#include "roce/io/roce_path.h"

void rddp_ah_attr_init(struct rddp_ah_attr *attr)
{
    *attr = (struct rddp_ah_attr){.path_mtu = 0};
}

/* Selects what was not set. Returns 0 or a negative errno. */
static int find_way(struct rddp_ah_attr *attr)
{
    struct sockaddr_storage local;
    int error, mtu;

    roce_address_unmap(&attr->peer);
    roce_address_unmap(&attr->local);
    error = udp_source(&attr->peer, &local);
    if (error)
        return error;
    if (roce_address_is_open(&attr->local, attr->peer.ss_family))
        attr->local = local;
    if (attr->path_mtu)
        return 0;
    mtu = roce_path_mtu(&attr->peer);
    if (mtu < 0)
        return mtu;
    attr->path_mtu = (uint32_t)mtu;
    return 0;
}

static int fill_ah(struct rddp_ah *ah, const struct rddp_ah_attr *given)
{
    struct rddp_ah_attr attr = *given;
    struct roce_address local, peer;
    int error;

    if (!roce_attr_is_mtu(attr.path_mtu) || (attr.peer.ss_family != AF_INET && attr.peer.ss_family != AF_INET6))
        return -EINVAL;
    error = find_way(&attr);
    if (error)
        return error;
    if (!roce_address_read(&attr.local, &local) || !roce_address_read(&attr.peer, &peer) ||
        roce_address_is_v4(&local) != roce_address_is_v4(&peer))
        return -EADDRNOTAVAIL;
    memcpy(ah->local, local.octets, sizeof(ah->local));
    memcpy(ah->peer, peer.octets, sizeof(ah->peer));
    ah->scope = roce_address_scope(&attr.peer);
    ah->mtu = attr.path_mtu;
    return 0;
}

struct rddp_ah *rddp_create_ah(struct rddp_pd *pd, const struct rddp_ah_attr *attr)
{
    struct rddp_ah *ah = calloc(1, sizeof(*ah));
    int error = ah ? context_enter(pd->context) : -ENOMEM;

    if (!error)
        error = transport_by_hand() ? fill_ah(ah, attr) : -EPROTONOSUPPORT;
    if (error) {
        free(ah);
        errno = -error;
        return NULL;
    }
    ah->pd = &pd->pd;
    pd->pd.users++;
    return ah;
}

int rddp_destroy_ah(struct rddp_ah *ah)
{
    ah->pd->users--;
    free(ah);
    return 0;
}

int rddp_ah_attr_from_wc(const struct rddp_wc *wc, const void *grh, struct rddp_ah_attr *attr)
{
    struct roce_address from, to;

    if (!(wc->wc_flags & RDDP_WC_GRH) || !roce_address_read_grh(grh, &from, &to))
        return -EINVAL;
    rddp_ah_attr_init(attr);
    roce_address_name(&from, 0, 0, &attr->peer);
    roce_address_name(&to, 0, 0, &attr->local);
    return 0;
}
