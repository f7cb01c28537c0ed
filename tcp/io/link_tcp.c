/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_tcp.c - a kernel TCP socket as a link. */
#include "tcp/io/link_tcp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/container.h"
#include "conn/out.h"
#include "loop/descriptors.h"
#include "tcp/io/tcp.h"

static_assert((int)OUT_SPANS == (int)TCP_SPANS, "what a connection gathers leaves in one call");

enum { CALL_AGAIN_US = 5000 }; /* from one refusal to the next attempt */

/* What a link needs to call a peer that refuses once more. */
struct caller {
    struct link_tcp *tcp;
    struct timer timer;
    struct sockaddr_storage peer;
    uint64_t until_us;
};

struct link_tcp {
    struct link link;
    struct watch watch;
    struct caller *caller; /* NULL: the first refusal counts, or the handshake has ended */
};

static struct link_tcp *link_tcp_of(struct link *link)
{
    return container_of(link, struct link_tcp, link);
}

static void drop_caller(struct link_tcp *tcp)
{
    if (!tcp->caller)
        return;
    reactor_forget_timer(tcp->link.reactor, &tcp->caller->timer);
    free(tcp->caller);
    tcp->caller = NULL;
}

static void call_again(struct timer *timer, uint64_t now_us)
{
    const struct caller *caller = container_of(timer, struct caller, timer);
    struct link_tcp *tcp = caller->tcp;
    struct link *link = &tcp->link;

    (void)now_us;
    link->error = tcp_connect_again(tcp->watch.fd, &caller->peer);
    if (!link->error)
        link->error = reactor_watch(link->reactor, &tcp->watch, EPOLLOUT);
    if (link->error)
        link->on_event(link, LINK_LOST);
}

/* A socket that is not connecting is ready all the time, so it is not watched until it is. */
static bool calls_again(struct link_tcp *tcp)
{
    uint64_t at_us = reactor_now_us() + CALL_AGAIN_US;

    if (tcp->link.error != -ECONNREFUSED || !tcp->caller || at_us > tcp->caller->until_us)
        return false;
    reactor_unwatch(tcp->link.reactor, &tcp->watch);
    reactor_set_timer(tcp->link.reactor, &tcp->caller->timer, at_us);
    return true;
}

/* The handshake has ended: stores the result, and tells the owner unless another attempt follows. */
static void come_up(struct link_tcp *tcp)
{
    tcp->link.error = tcp_result(tcp->watch.fd);
    if (calls_again(tcp))
        return;
    drop_caller(tcp);
    tcp->link.is_up = !tcp->link.error;
    tcp->link.on_event(&tcp->link, tcp->link.is_up ? LINK_UP : LINK_LOST);
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

    if (tcp->link.is_up)
        tcp->link.on_event(&tcp->link, link_tcp_news_of(events));
    else
        come_up(tcp);
}

static void link_tcp_want(struct link *link, unsigned wants)
{
    uint32_t events = wants & LINK_WANT_READ ? EPOLLIN : 0;

    if (wants & LINK_WANT_WRITE)
        events |= EPOLLOUT;
    if (wants & LINK_WANT_END)
        events |= EPOLLRDHUP;
    reactor_rewatch(link->reactor, &link_tcp_of(link)->watch, events);
}

/* Only while octets are all that is waited for: a poller asks for nothing else, and who waits for more since is to be
 * back in the set. */
static void link_tcp_rest(struct link *link, bool rests)
{
    struct watch *watch = &link_tcp_of(link)->watch;

    if (rests && watch->events == EPOLLIN)
        reactor_rest(link->reactor, watch);
    else
        reactor_rouse(link->reactor, watch);
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
    if (descriptors_are_ours()) /* or it is the program's connection that would end */
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

    drop_caller(tcp);
    reactor_unwatch(link->reactor, &tcp->watch);
    descriptor_close(tcp->watch.fd);
    free(tcp);
}

static const struct link_kind octets = {
    .name = "TCP",
    .in_order = true,
    .reads_to_places = true,
    .want = link_tcp_want,
    .rest = link_tcp_rest,
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
    .rest = link_tcp_rest,
    .receive = link_tcp_receive,
    .send = send_record,
    .finish = link_tcp_finish,
    .segment_size = link_tcp_segment_size,
    .names = link_tcp_names,
    .close = link_tcp_close_link,
};

struct link *link_tcp_new(struct reactor *reactor, int fd, bool is_up, bool aligned)
{
    struct link_tcp *tcp = calloc(1, sizeof(*tcp));
    int error = tcp ? 0 : -ENOMEM;

    if (tcp) {
        tcp->link = (struct link){.kind = aligned ? &records : &octets, .reactor = reactor, .is_up = is_up};
        tcp->watch = (struct watch){.fd = fd, .ready = on_ready};
        error = reactor_watch(reactor, &tcp->watch, is_up ? 0 : EPOLLOUT);
    }
    if (error) {
        free(tcp);
        close(fd);
        errno = -error;
        return NULL;
    }
    return &tcp->link;
}

int link_tcp_insist(struct link *link, const struct sockaddr_storage *peer, uint64_t until_us)
{
    struct caller *caller = calloc(1, sizeof(*caller));

    if (!caller || reactor_add_timer(link->reactor, &caller->timer)) {
        free(caller);
        return -ENOMEM;
    }
    caller->tcp = link_tcp_of(link);
    caller->timer.fire = call_again;
    caller->peer = *peer;
    caller->until_us = until_us;
    caller->tcp->caller = caller;
    return 0;
}
