/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_path.c - the addresses of a path, and its MTU. */
#include "roce/io/roce_path.h"

#include <errno.h>
#include <netinet/in.h>

#include <rddp/rddp.h>

#include "loop/udp.h"
#include "roce/bth.h"
#include "roce/io/roce_address.h"

enum { IPV4_HEAD = 20, IPV6_HEAD = 40, UDP_HEAD = 8 };

int roce_path_mtu(const struct sockaddr_storage *peer)
{
    int packet = udp_route_mtu(peer), mtu = BTH_MTU_MAX;
    bool is_v4 = peer->ss_family == AF_INET;
    struct roce_address address;

    if (packet < 0)
        return packet;
    if (roce_address_read(peer, &address))
        is_v4 = roce_address_is_v4(&address);
    packet -= (is_v4 ? IPV4_HEAD : IPV6_HEAD) + UDP_HEAD + BTH_OCTETS + RETH_OCTETS + IMMEDIATE_OCTETS + ICRC_OCTETS;
    while (mtu > BTH_MTU_MIN && mtu > packet)
        mtu /= 2;
    return mtu;
}

int roce_path_complete(struct rddp_ib_attr *attr)
{
    struct sockaddr_storage local;
    int mtu = 0, error;

    roce_address_unmap(&attr->peer);
    roce_address_unmap(&attr->local);
    error = udp_source(&attr->peer, &local);
    if (!error && roce_address_is_open(&attr->local, attr->peer.ss_family))
        attr->local = local;
    if (!error && !attr->path_mtu)
        mtu = roce_path_mtu(&attr->peer);
    if (mtu > 0)
        attr->path_mtu = (uint32_t)mtu;
    return error ? error : mtu < 0 ? mtu : 0;
}

int roce_path_ends(const struct sockaddr *addr, socklen_t length, const struct sockaddr *local,
                   struct sockaddr_storage *own, struct sockaddr_storage *peer)
{
    struct sockaddr_storage named;
    uint16_t port = 0;
    int error;

    *own = *peer = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (!roce_address_copy(addr, length, peer))
        return -EAFNOSUPPORT;
    roce_address_unmap(peer);
    error = udp_source(peer, own);
    if (error)
        return error;
    if (local && roce_address_copy(local, sizeof(struct sockaddr_in6), &named)) {
        roce_address_unmap(&named);
        port = roce_address_port(&named);
        if (!roce_address_is_any(&named))
            *own = named;
        error = roce_address_is_here(&named);
    }
    roce_address_set_port(own, port);
    return error;
}
