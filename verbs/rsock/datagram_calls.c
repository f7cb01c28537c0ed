/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram_calls.c - datagrams are sent and received; their rsockets are bound and connected. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "verbs/rsock/rsock_datagram.h"

static socklen_t address_octets(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int rs_datagram_bind(struct rsocket *rs, const struct sockaddr *address)
{
    int error = rs_datagram_open(rs);

    if (!error && bind(rs->datagrams->udp, address, address_octets(address)))
        error = errno;
    return error;
}

/* A socket without a name takes any port, since each message says where it comes from. */
static int begin_to_send(struct rsocket *rs)
{
    struct sockaddr_storage name = {0}, any = {.ss_family = (sa_family_t)rs->family};
    socklen_t length = sizeof(name);

    if (rs->is_bound)
        return 0;
    if (getsockname(rs->datagrams->udp, (struct sockaddr *)&name, &length))
        return errno;
    if (!((struct sockaddr_in *)&name)->sin_port) {
        int error = rs_datagram_bind(rs, (struct sockaddr *)&any);
        if (error)
            return error;
    }
    rs->is_bound = true;
    return 0;
}

static int find_destination(struct rsocket *rs, const struct sockaddr *address, socklen_t length,
                            struct rs_destination **out)
{
    struct sockaddr_storage copy = {0};

    if (length < sizeof(address->sa_family) || length < address_octets(address))
        return EINVAL;
    if (address->sa_family != rs->family)
        return EAFNOSUPPORT;
    memcpy(&copy, address, address_octets(address));
    return rs_destination_get(rs, &copy, out);
}

int rs_datagram_connect(struct rsocket *rs, const struct sockaddr *address)
{
    struct rs_destination *to;
    int error = begin_to_send(rs);

    if (!error)
        error = find_destination(rs, address, address_octets(address), &to);
    if (!error && connect(rs->datagrams->udp, (struct sockaddr *)&to->address, address_octets(address)))
        error = errno;
    if (!error)
        rs->datagrams->connected = to;
    return error;
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

static size_t length_of_parts(const struct msghdr *msg)
{
    size_t n = 0;

    for (size_t i = 0; i < msg->msg_iovlen; i++)
        n += msg->msg_iov[i].iov_len;
    return n;
}

static void message_gather(uint8_t *to, const struct msghdr *msg)
{
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        memcpy(to, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
        to += msg->msg_iov[i].iov_len;
    }
}

/* To the queue pair that is behind the address. */
static int send_to_queue_pair(struct rsocket *rs, const struct rs_destination *to, const struct msghdr *msg, size_t n)
{
    struct rs_datagrams *d = rs->datagrams;
    const unsigned slot = d->free_out[d->free_outs - 1];
    uint8_t *place = rs->out.buffer + (size_t)slot * RD_MESSAGE;
    struct ibv_sge sge = {
        .addr = (uintptr_t)place, .length = to->origin_length + (uint32_t)n, .lkey = rs->queues.out->lkey};
    struct ibv_send_wr wr = {.wr_id = RS_ID_SENT | (uint64_t)slot << RS_ID_FREED_SHIFT,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND},
                       *bad;
    int error;

    memcpy(place, to->origin, to->origin_length);
    message_gather(place + to->origin_length, msg);
    wr.wr.ud.ah = to->ah;
    wr.wr.ud.remote_qpn = to->qpn;
    wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
    error = ibv_post_send(d->qp, &wr, &bad);
    if (!error)
        d->free_outs--;
    return error;
}

/* Behind a greeting, which the peer answers with one. */
static int send_by_udp(struct rsocket *rs, struct rs_destination *to, const struct msghdr *msg, size_t n,
                       bool dont_wait)
{
    const struct rs_greeting greeting = {.what = RS_DATA, .qpn = rs->datagrams->qp->qp_num, .address = to->local};
    uint8_t octets[RD_GREETING_MAX + RD_MESSAGE];
    unsigned header = rs_greeting_encode(octets, &greeting);

    message_gather(octets + header, msg);
    to->fresh_until_us = rs_now_us() + RD_FRESH_US;
    to->is_asked = true;
    return sendto(rs->datagrams->udp, octets, header + n, dont_wait ? MSG_DONTWAIT : 0, (struct sockaddr *)&to->address,
                  address_octets((struct sockaddr *)&to->address)) < 0
               ? errno
               : 0;
}

static int send_message(struct rsocket *rs, struct rs_destination *to, const struct msghdr *msg, bool dont_wait)
{
    const size_t n = length_of_parts(msg);

    if (n > to->most)
        return EMSGSIZE;
    if (!to->qpn || to->is_asked)
        rs_datagram_hear(rs); /* its greeting may be there */
    return rs_destination_has_way(rs, to) ? send_to_queue_pair(rs, to, msg, n) : send_by_udp(rs, to, msg, n, dont_wait);
}

ssize_t rs_datagram_send(struct rsocket *rs, const struct msghdr *msg, int flags)
{
    const bool dont_wait = rs->is_nonblocking || flags & MSG_DONTWAIT;
    struct rs_destination *to;
    int error = flags & MSG_OOB ? EOPNOTSUPP : begin_to_send(rs);

    if (!error && !rs->datagrams->free_outs)
        error = rs_wait(rs, rs_datagram_is_writable, dont_wait, -1);
    if (!error && rs->state != RS_DATAGRAM)
        error = EBADF; /* closed meanwhile */
    if (!error)
        error = rs_take_error(rs);
    to = rs->datagrams->connected;
    if (!error && msg->msg_name)
        error = find_destination(rs, msg->msg_name, msg->msg_namelen, &to);
    if (!error)
        error = to ? send_message(rs, to, msg, dont_wait) : EDESTADDRREQ;
    return error ? -error : (ssize_t)length_of_parts(msg);
}

/* --- receiving --------------------------------------------------------------------------------------------------- */

static size_t message_scatter(const struct msghdr *msg, const uint8_t *from, size_t n)
{
    size_t done = 0;

    for (size_t i = 0; i < msg->msg_iovlen && done < n; i++) {
        size_t part = msg->msg_iov[i].iov_len < n - done ? msg->msg_iov[i].iov_len : n - done;
        memcpy(msg->msg_iov[i].iov_base, from + done, part);
        done += part;
    }
    return done;
}

/* An address of a link only has its interface if the peer has sent by UDP. */
static void name_sender(struct rsocket *rs, struct sockaddr_storage *origin, struct msghdr *msg)
{
    const struct rs_destination *known;

    rs_address_shown(rs, origin);
    known = rs_destination_of(rs, origin);
    rs_copy_address((const struct sockaddr *)(known ? &known->address : origin), msg->msg_name, &msg->msg_namelen);
}

ssize_t rs_datagram_receive(struct rsocket *rs, struct msghdr *msg, int flags)
{
    struct rs_datagrams *d = rs->datagrams;
    int error = flags & MSG_OOB ? EOPNOTSUPP
                                : rs_wait(rs, rs_datagram_is_readable, rs->is_nonblocking || flags & MSG_DONTWAIT, -1);
    struct sockaddr_storage origin;
    const struct rs_arrival *arrival;
    const uint8_t *from;
    size_t n, taken;

    if (error)
        return -error;
    if (!d->arrived)
        return rs->state == RS_DATAGRAM ? -rs_take_error(rs) : -EBADF;
    arrival = &d->arrivals[d->first_arrival];
    from = rs->in.buffer + (size_t)arrival->slot * RD_IN + RD_GRH;
    n = rs_origin_decode(&origin, from, arrival->length);
    from += n;
    n = arrival->length - n;
    taken = message_scatter(msg, from, n);
    if (msg->msg_name)
        name_sender(rs, &origin, msg);
    msg->msg_flags = taken < n ? MSG_TRUNC : 0;
    if (!(flags & MSG_PEEK))
        rs_datagram_drop(rs);
    return (ssize_t)(flags & MSG_TRUNC ? n : taken);
}
