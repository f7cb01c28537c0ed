/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagrams.c - the queue pair and the UDP socket of an rsocket for datagrams, and what comes by them. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "verbs/rsock/rsock_datagram.h"

/* The context that librdmacm has of the device with datagrams; NULL: RDDP_DEVICE leaves it out. */
static struct ibv_context *datagram_context(void)
{
    struct ibv_context **list = rdma_get_devices(NULL), *found = NULL;

    for (unsigned i = 0; list && list[i]; i++)
        if (list[i]->device->transport_type == IBV_TRANSPORT_IB)
            found = list[i];
    rdma_free_devices(list);
    return found;
}

int rs_datagram_new(struct rsocket *rs)
{
    struct rs_datagrams *d = calloc(1, sizeof(*d));
    struct epoll_event event = {.events = EPOLLIN};

    if (!d)
        return ENOMEM;
    rs->datagrams = d;
    rs->state = RS_DATAGRAM;
    d->udp = socket(rs->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    d->news = epoll_create1(EPOLL_CLOEXEC);
    if (d->udp < 0 || d->news < 0 || epoll_ctl(d->news, EPOLL_CTL_ADD, d->udp, &event))
        return errno;
    return datagram_context() ? 0 : ENODEV;
}

static void datagram_close(struct rsocket *rs)
{
    struct rs_datagrams *d = rs->datagrams;

    if (d->qp)
        ibv_destroy_qp(d->qp);
    d->qp = NULL;
    rs_queues_free(rs);
    memset(&rs->queues, 0, sizeof(rs->queues));
    free(d->free_out);
    free(d->free_spare);
    free(d->arrivals);
    d->free_out = d->free_spare = NULL;
    d->arrivals = NULL;
}

void rs_datagram_free(struct rsocket *rs)
{
    struct rs_datagrams *d = rs->datagrams;

    if (!d)
        return;
    rs_destinations_free(rs);
    datagram_close(rs);
    if (d->udp >= 0)
        close(d->udp);
    if (d->news >= 0)
        close(d->news);
    free(d);
    rs->datagrams = NULL;
}

/* --- what is needed ---------------------------------------------------------------------------------------------- */

/* A queue is as long as its option says, but not longer than what its buffer has place for. */
static unsigned slots_of(uint32_t queue, uint32_t buffer)
{
    return queue < buffer / RD_MESSAGE ? queue : buffer / RD_MESSAGE;
}

static uint8_t *in_at(const struct rsocket *rs, unsigned slot)
{
    return rs->in.buffer + (size_t)slot * RD_IN;
}

static int post_in(struct rsocket *rs, unsigned slot)
{
    struct ibv_sge sge = {.addr = (uintptr_t)in_at(rs, slot), .length = RD_IN, .lkey = rs->queues.in->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(rs->datagrams->qp, &wr, &bad);
}

static int make_memory(struct rsocket *rs)
{
    struct rs_datagrams *d = rs->datagrams;
    struct rs_queues *q = &rs->queues;
    const size_t in = (size_t)d->in_slots * RD_IN, out = (size_t)d->out_slots * RD_MESSAGE;

    d->free_out = calloc(d->out_slots, sizeof(*d->free_out));
    d->free_spare = calloc(RD_SPARE, sizeof(*d->free_spare));
    d->arrivals = calloc(d->in_slots, sizeof(*d->arrivals));
    q->memory = calloc(1, in + out);
    if (!d->free_out || !d->free_spare || !d->arrivals || !q->memory)
        return ENOMEM;
    rs->in.buffer = q->memory;
    rs->out.buffer = q->memory + in;
    q->in = rs_region(rs, rs->in.buffer, in, IBV_ACCESS_LOCAL_WRITE);
    q->out = rs_region(rs, rs->out.buffer, out, 0);
    if (!q->in || !q->out)
        return errno;
    for (unsigned i = 0; i < d->out_slots; i++)
        d->free_out[i] = i;
    for (unsigned i = 0; i < RD_SPARE; i++)
        d->free_spare[i] = d->in_slots - RD_SPARE + i;
    d->free_outs = d->out_slots;
    d->free_spares = RD_SPARE;
    d->first_arrival = d->arrived = 0;
    return 0;
}

static int lead_to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RDMA_UDP_QKEY};
    int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    attr.qp_state = IBV_QPS_RTR;
    if (!error)
        error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    return error ? error : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int make_queues(struct rsocket *rs, struct ibv_context *context)
{
    struct rs_datagrams *d = rs->datagrams;
    struct rs_queues *q = &rs->queues;
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = d->out_slots, .max_recv_wr = d->in_slots, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .sq_sig_all = 1,
    };

    q->pd = ibv_alloc_pd(context);
    q->comp = ibv_create_comp_channel(context);
    if (!q->pd || !q->comp)
        return errno;
    fcntl(q->comp->fd, F_SETFL, fcntl(q->comp->fd, F_GETFL) | O_NONBLOCK);
    q->cq = ibv_create_cq(context, (int)(d->in_slots + d->out_slots), rs, q->comp, 0);
    if (!q->cq)
        return errno;
    init.send_cq = init.recv_cq = q->cq;
    d->qp = ibv_create_qp(q->pd, &init);
    return d->qp ? lead_to_rts(d->qp) : errno;
}

static int watch_queue_pair(const struct rsocket *rs)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(rs->datagrams->news, EPOLL_CTL_ADD, rs->queues.comp->fd, &event) ? errno : 0;
}

int rs_datagram_open(struct rsocket *rs)
{
    struct ibv_context *context = datagram_context();
    struct rs_datagrams *d = rs->datagrams;
    int error;

    if (d->qp)
        return 0;
    if (!context)
        return ENODEV;
    d->in_slots = slots_of(rs->sizes.recv_queue, rs->sizes.recv_buffer) + RD_SPARE;
    d->out_slots = slots_of(rs->sizes.send_queue, rs->sizes.send_buffer);
    error = make_queues(rs, context);
    if (!error)
        error = make_memory(rs);
    for (unsigned slot = 0; !error && slot < d->in_slots - RD_SPARE; slot++)
        error = post_in(rs, slot);
    if (!error)
        error = watch_queue_pair(rs);
    if (error)
        datagram_close(rs);
    else
        rs_wake(rs, -1);
    return error;
}

/* --- what comes -------------------------------------------------------------------------------------------------- */

static void add_arrival(struct rs_datagrams *d, unsigned slot, uint32_t length)
{
    d->arrivals[(d->first_arrival + d->arrived++) % d->in_slots] = (struct rs_arrival){slot, length};
}

void rs_datagram_drop(struct rsocket *rs)
{
    struct rs_datagrams *d = rs->datagrams;
    const unsigned slot = d->arrivals[d->first_arrival].slot;

    d->first_arrival = (d->first_arrival + 1) % d->in_slots;
    d->arrived--;
    if (slot >= d->in_slots - RD_SPARE)
        d->free_spare[d->free_spares++] = slot;
    else
        post_in(rs, slot);
}

/* A message can name another port of its sender's host, but no other host. */
static bool is_from_host(const uint8_t *grh, const struct sockaddr_storage *origin)
{
    enum { V4_SOURCE = 32, V6_SOURCE = 8 }; /* where a GRH, or the header of IPv4 at its end, has it */
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)origin;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)origin;

    if (origin->ss_family == AF_INET6)
        return !memcmp(grh + V6_SOURCE, &v6->sin6_addr, sizeof(v6->sin6_addr));
    return !memcmp(grh + V4_SOURCE, &v4->sin_addr, sizeof(v4->sin_addr));
}

/* A connected socket hears its peer alone, as the kernel sees to it for what comes by UDP. Messages confirm the queue
 * pair that they come from, and no other: a greeting may have been forged. */
static bool is_of_peer(struct rsocket *rs, unsigned slot, uint32_t length, uint32_t qpn)
{
    const struct rs_datagrams *d = rs->datagrams;
    struct sockaddr_storage origin;
    struct rs_destination *from;

    if (!rs_origin_decode(&origin, in_at(rs, slot) + RD_GRH, length) || !is_from_host(in_at(rs, slot), &origin))
        return false;
    rs_address_shown(rs, &origin);
    from = rs_destination_of(rs, &origin);
    if (from && from->qpn == qpn)
        from->fresh_until_us = rs_now_us() + RD_FRESH_US;
    return !d->connected || from == d->connected;
}

static void take_one(struct rsocket *rs, const struct ibv_wc *wc)
{
    struct rs_datagrams *d = rs->datagrams;
    const unsigned slot = (unsigned)wc->wr_id;

    if (wc->wr_id & RS_ID_SENT)
        d->free_out[d->free_outs++] = (unsigned)(wc->wr_id >> RS_ID_FREED_SHIFT);
    else if (wc->status != IBV_WC_SUCCESS)
        rs->error = EIO; /* the queue pair has failed */
    else if (wc->byte_len > RD_GRH && is_of_peer(rs, slot, wc->byte_len - RD_GRH, wc->src_qp))
        add_arrival(d, slot, wc->byte_len - RD_GRH);
    else
        post_in(rs, slot);
}

/* The queue pair behind a UDP address, with a message, or without one. */
static void answer_greeting(struct rsocket *rs, const struct rs_destination *to)
{
    struct rs_greeting answer = {.what = RS_CONTROL, .qpn = rs->datagrams->qp->qp_num, .address = to->local};
    uint8_t octets[RD_GREETING_MAX];
    unsigned n = rs_greeting_encode(octets, &answer);

    sendto(rs->datagrams->udp, octets, n, MSG_DONTWAIT, (const struct sockaddr *)&to->address,
           to->address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

/* A message that came by UDP lies as if it had come to the queue pair. */
static void keep_message(struct rsocket *rs, const struct rs_destination *from, const uint8_t *message, size_t n)
{
    struct rs_datagrams *d = rs->datagrams;
    uint8_t *to;
    unsigned slot, origin;

    if (!d->free_spares)
        return; /* lost, as datagrams are */
    slot = d->free_spare[--d->free_spares];
    to = in_at(rs, slot) + RD_GRH;
    origin = rs_origin_encode(to, &from->peer);
    memcpy(to + origin, message, n);
    add_arrival(d, slot, origin + (uint32_t)n);
    rs_wake(rs, -1); /* the thread that waits for it may not be the one that reads UDP */
}

static void hear_message(struct rsocket *rs, const struct sockaddr_storage *address, uint32_t qpn,
                         const uint8_t *message, size_t n)
{
    struct rs_destination *from;

    if (rs_destination_get(rs, address, &from))
        return;
    answer_greeting(rs, from);
    rs_destination_greeted(from, qpn);
    keep_message(rs, from, message, n);
}

/* False: there is nothing more. */
static bool hear_one(struct rsocket *rs)
{
    uint8_t octets[RD_GREETING_MAX + RD_MESSAGE];
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);
    ssize_t n = recvfrom(rs->datagrams->udp, octets, sizeof(octets), MSG_DONTWAIT | MSG_TRUNC,
                         (struct sockaddr *)&address, &length);
    struct rs_destination *from;
    struct rs_greeting greeting;
    unsigned header;

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        rs->error = errno; /* the peer's host says that the port is closed */
    if (n < 0)
        return false;
    if (n > (ssize_t)sizeof(octets))
        return true; /* no peer sends that much, and part of a message is none */
    header = rs_greeting_decode(&greeting, octets, (size_t)n);
    if (header && greeting.what == RS_DATA)
        hear_message(rs, &address, greeting.qpn, octets + header, (size_t)n - header);
    else if (header && (from = rs_destination_known(rs, &address)))
        rs_destination_greeted(from, greeting.qpn); /* others were not asked */
    return true;
}

void rs_datagram_hear(struct rsocket *rs)
{
    for (int i = 0; i < RD_SPARE && hear_one(rs); i++)
        ;
}

/* UDP brings the first messages of a peer alone, and is asked less often while others come. */
void rs_datagram_advance(struct rsocket *rs)
{
    enum { AT_ONCE = 16, SELDOM = 64 };
    struct rs_datagrams *d = rs->datagrams;
    struct ibv_wc wc[AT_ONCE];
    int n;

    if (!d->qp)
        return;
    do {
        n = ibv_poll_cq(rs->queues.cq, AT_ONCE, wc);
        for (int i = 0; i < n; i++)
            take_one(rs, &wc[i]);
    } while (n == AT_ONCE);
    if (!d->arrived || ++d->looks % SELDOM == 0)
        rs_datagram_hear(rs);
}

bool rs_datagram_is_open(const struct rsocket *rs)
{
    return rs->datagrams && rs->datagrams->qp;
}

bool rs_datagram_is_readable(const struct rsocket *rs)
{
    return rs->datagrams->arrived || rs->error || rs->state != RS_DATAGRAM;
}

bool rs_datagram_is_writable(const struct rsocket *rs)
{
    return !rs->datagrams->qp || rs->datagrams->free_outs || rs->error || rs->state != RS_DATAGRAM;
}

bool rs_datagram_is_sent(const struct rsocket *rs)
{
    return !rs->datagrams->qp || rs->datagrams->free_outs == rs->datagrams->out_slots;
}
