/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_tcp.c - a kernel TCP socket as a link. */
#include "tcp/io/link_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/container.h"
#include "tcp/io/tcp.h"

struct link_tcp {
    struct link link;
    struct watch watch;
};

static struct link_tcp *link_tcp_of(struct link *link)
{
    return container_of(link, struct link_tcp, link);
}

/* The handshake has ended: stores the result. */
static unsigned come_up(struct link_tcp *tcp)
{
    tcp->link.error = tcp_result(tcp->watch.fd);
    tcp->link.is_up = !tcp->link.error;
    return tcp->link.is_up ? LINK_UP : LINK_LOST;
}

static unsigned link_tcp_news_of(uint32_t events)
{
    unsigned news = 0;

    if (events & EPOLLOUT)
        news |= LINK_WRITABLE;
    if (events & EPOLLIN)
        news |= LINK_READABLE;
    if (events & EPOLLRDHUP)
        news |= LINK_ENDED;
    if (events & (EPOLLERR | EPOLLHUP))
        news |= LINK_LOST;
    return news;
}

static void on_ready(struct watch *watch, uint32_t events)
{
    struct link_tcp *tcp = container_of(watch, struct link_tcp, watch);

    tcp->link.told(&tcp->link, tcp->link.is_up ? link_tcp_news_of(events) : come_up(tcp));
}

static void link_tcp_want(struct link *link, unsigned wants)
{
    uint32_t events = wants & LINK_WANT_READ ? EPOLLIN : 0;

    if (wants & LINK_WANT_WRITE)
        events |= EPOLLOUT;
    if (wants & LINK_WANT_END)
        events |= EPOLLRDHUP;
    loop_rewatch(link->loop, &link_tcp_of(link)->watch, events);
}

static ssize_t link_tcp_receive(struct link *link, const struct link_buffers *buffers)
{
    int fd = link_tcp_of(link)->watch.fd;

    return buffers->then ? tcp_recv_apart(fd, buffers->at, buffers->octets, buffers->then, buffers->then_octets)
                         : tcp_recv(fd, buffers->at, buffers->octets);
}

static ssize_t send_octets(struct link *link, const struct span *span, uint32_t spans)
{
    return tcp_send(link_tcp_of(link)->watch.fd, span, spans, false);
}

static ssize_t send_record(struct link *link, const struct span *span, uint32_t spans)
{
    return tcp_send(link_tcp_of(link)->watch.fd, span, spans, true);
}

static void link_tcp_finish(struct link *link)
{
    tcp_finish(link_tcp_of(link)->watch.fd);
}

static uint32_t link_tcp_segment_size(struct link *link)
{
    return tcp_emss(link_tcp_of(link)->watch.fd);
}

int link_tcp_fd(const struct link *link)
{
    return container_of(link, const struct link_tcp, link)->watch.fd;
}

static void link_tcp_names(struct link *link, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    socklen_t local_length = sizeof(*local), peer_length = sizeof(*peer);

    getsockname(link_tcp_of(link)->watch.fd, (struct sockaddr *)local, &local_length);
    getpeername(link_tcp_of(link)->watch.fd, (struct sockaddr *)peer, &peer_length);
}

static void link_tcp_close_link(struct link *link)
{
    struct link_tcp *tcp = link_tcp_of(link);

    loop_unwatch(link->loop, &tcp->watch);
    close(tcp->watch.fd);
    free(tcp);
}

static const struct link_kind octets = {
    .name = "TCP",
    .in_order = true,
    .reads_to_places = true,
    .want = link_tcp_want,
    .receive = link_tcp_receive,
    .send = send_octets,
    .finish = link_tcp_finish,
    .segment_size = link_tcp_segment_size,
    .names = link_tcp_names,
    .close = link_tcp_close_link,
};

static const struct link_kind records = {
    .name = "TCP, aligned",
    .keeps_units = true,
    .in_order = true,
    .reads_to_places = true,
    .want = link_tcp_want,
    .receive = link_tcp_receive,
    .send = send_record,
    .finish = link_tcp_finish,
    .segment_size = link_tcp_segment_size,
    .names = link_tcp_names,
    .close = link_tcp_close_link,
};

struct link *link_tcp_new(struct loop *loop, int fd, bool is_up, bool aligned)
{
    struct link_tcp *tcp = calloc(1, sizeof(*tcp));
    int error = tcp ? 0 : -ENOMEM;

    if (tcp) {
        tcp->link = (struct link){.kind = aligned ? &records : &octets, .loop = loop, .is_up = is_up};
        tcp->watch = (struct watch){.fd = fd, .ready = on_ready};
        error = loop_watch(loop, &tcp->watch, is_up ? 0 : EPOLLOUT);
    }
    if (error) {
        free(tcp);
        close(fd);
        errno = -error;
        return NULL;
    }
    return &tcp->link;
}
