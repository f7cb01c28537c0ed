/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ksctp_read.c - what a socket of the kernel's SCTP says: messages, and what became of their association. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "sctp/io/ksctp_inner.h"
#include "loop/reactor.h"
#include "sctp/packet.h"

enum { DATA_HEAD = 16, CONNECT_MS = 3000 };

static enum ksctp_item ksctp_lost(struct ksctp *s, struct sctp_news *news, const uint8_t *chunk, size_t n)
{
    size_t length = 0;
    const uint8_t *reason = packet_reason(chunk, n, &length);

    *news = (struct sctp_news){.kind = n ? SCTP_NEWS_ABORTED : SCTP_NEWS_LOST};
    s->over = true;
    if (!reason)
        return ITEM_NEWS;
    news->data = malloc(length ? length : 1);
    if (!news->data)
        return ITEM_NEWS;
    memcpy(news->data, reason, length);
    news->octets = (uint32_t)length;
    return ITEM_NEWS;
}

/* The kernel does not say whether the peer refused or did not answer; without an answer the time-out has passed. */
static enum ksctp_item not_begun(struct ksctp *s, struct sctp_news *news)
{
    uint32_t patience_ms = s->port->attr.connect_ms ? s->port->attr.connect_ms : CONNECT_MS;
    bool refused = reactor_now_us() - s->begun_us < patience_ms * 1000ull;

    s->over = true;
    *news = (struct sctp_news){.kind = refused ? SCTP_NEWS_REFUSED : SCTP_NEWS_LOST};
    return ITEM_NEWS;
}

static enum ksctp_item ksctp_changed(struct ksctp *s, const struct sctp_assoc_change *change, size_t n,
                                     struct sctp_news *news)
{
    size_t info = n > sizeof(*change) ? n - sizeof(*change) : 0;

    switch (change->sac_state) {
    case SCTP_COMM_UP:
        s->id = change->sac_assoc_id;
        *news = (struct sctp_news){.kind = SCTP_NEWS_UP};
        return ITEM_NEWS;
    case SCTP_SHUTDOWN_COMP:
        *news = (struct sctp_news){.kind = SCTP_NEWS_SHUTDOWN};
        s->over = true;
        return ITEM_NEWS;
    case SCTP_CANT_STR_ASSOC:
        return info ? ksctp_lost(s, news, change->sac_info, info) : not_begun(s, news);
    case SCTP_RESTART: /* whoever it is now, it is not who was connected */
        return ksctp_lost(s, news, NULL, 0);
    default:
        return ksctp_lost(s, news, change->sac_info, info);
    }
}

static enum ksctp_item ksctp_notified(struct ksctp *s, const void *data, size_t n, struct sctp_news *news)
{
    const union sctp_notification *note = data;

    if (n < sizeof(note->sn_header))
        return ITEM_NOISE;
    if (note->sn_header.sn_type == SCTP_ASSOC_CHANGE && n >= sizeof(note->sn_assoc_change))
        return ksctp_changed(s, &note->sn_assoc_change, n, news);
    if (note->sn_header.sn_type == SCTP_ADAPTATION_INDICATION && n >= sizeof(note->sn_adaptation_event)) {
        *news = (struct sctp_news){.indication = note->sn_adaptation_event.sai_adaptation_ind};
        return ITEM_INDICATION;
    }
    if (note->sn_header.sn_type != SCTP_SHUTDOWN_EVENT)
        return ITEM_NOISE;
    *news = (struct sctp_news){.kind = SCTP_NEWS_SHUTDOWN};
    return ITEM_NEWS;
}

/* The kernel does not tell the peer's initial TSN. With the first message it says up to where all had come when it
 * came: right before it, or before the gap in front of it. */
static uint32_t count_from_first(struct ksctp *s, const struct sctp_rcvinfo *info)
{
    bool gap = info->rcv_flags & SCTP_UNORDERED && (int32_t)(info->rcv_cumtsn - info->rcv_tsn) < 0;

    if (!s->counted)
        s->origin = gap ? info->rcv_cumtsn + 1 : info->rcv_tsn;
    s->counted = true;
    return info->rcv_tsn - s->origin;
}

static enum ksctp_item ksctp_take_message(struct ksctp *s, struct msghdr *m, size_t n, struct sctp_news *news)
{
    struct sctp_rcvinfo info = {0};

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO)
            memcpy(&info, CMSG_DATA(c), sizeof(info));
    *news = (struct sctp_news){
        .kind = SCTP_NEWS_MESSAGE,
        .data = malloc(n ? n : 1),
        .octets = (uint32_t)n,
        .tsn = count_from_first(s, &info),
        .ppid = ntohl(info.rcv_ppid),
        .stream = info.rcv_sid,
        .unordered = info.rcv_flags & SCTP_UNORDERED,
    };
    if (!news->data || !(m->msg_flags & MSG_EOR)) { /* no memory, or longer than any that we take */
        sctp_news_free(news);
        return ksctp_lost(s, news, NULL, 0);
    }
    memcpy(news->data, s->port->message, n);
    return ITEM_NEWS;
}

enum ksctp_item ksctp_read(struct ksctp *s, int fd, struct sctp_news *news)
{
    union {
        struct cmsghdr align;
        char buffer[CMSG_SPACE(sizeof(struct sctp_rcvinfo)) + CMSG_SPACE(sizeof(struct sctp_sndrcvinfo))];
    } control;
    struct iovec iov = {s->port->message, sizeof(s->port->message)};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buffer, .msg_controllen = sizeof(control.buffer)};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

    if (n < 0 && errno == EINTR)
        return ITEM_NOISE;
    if (n < 0 && (errno == EAGAIN || s->over))
        return ITEM_NONE;
    if (n < 0)
        return ksctp_lost(s, news, NULL, 0);
    if (m.msg_flags & MSG_NOTIFICATION)
        return ksctp_notified(s, s->port->message, (size_t)n, news);
    if (n == 0)
        return ITEM_NONE;
    return ksctp_take_message(s, &m, (size_t)n, news);
}

uint32_t ksctp_look(struct ksctp *s)
{
    struct sctp_status status = {.sstat_assoc_id = s->id};
    socklen_t length = sizeof(status);
    uint32_t heads = (s->peer.ss_family == AF_INET6 ? SCTP_IPV6_HEAD : SCTP_IPV4_HEAD) + PACKET_COMMON + DATA_HEAD;
    uint32_t mtu = s->port->attr.mtu ? s->port->attr.mtu : SCTP_MTU, most;

    if (getsockopt(s->fd, IPPROTO_SCTP, SCTP_STATUS, &status, &length))
        return 0;
    most = (mtu - heads - (s->port->attr.raw ? 0 : SCTP_UDP_HEAD)) & ~3u;
    memcpy(&s->peer, &status.sstat_primary.spinfo_address, sizeof(s->peer));
    return status.sstat_fragmentation_point < most ? status.sstat_fragmentation_point : most;
}

/* The peer's indication comes right behind the word that it is up, or never. */
static void complete_up(struct ksctp *s, struct sctp_news *news)
{
    enum ksctp_item item;

    do
        item = ksctp_read(s, s->fd, &s->kept);
    while (item == ITEM_NOISE);
    if (item == ITEM_INDICATION)
        news->indication = s->kept.indication;
    s->has_kept = item == ITEM_NEWS;
    news->payload_max = ksctp_look(s);
}

bool ksctp_next(struct sctp_assoc *base, struct sctp_news *news)
{
    struct ksctp *s = ksctp_of(base);
    enum ksctp_item item;

    if (s->up_due) {
        s->up_due = false;
        *news = (struct sctp_news){.kind = SCTP_NEWS_UP};
        complete_up(s, news);
        return true;
    }
    if (s->has_kept) {
        s->has_kept = false;
        *news = s->kept;
        return true;
    }
    do
        item = ksctp_read(s, s->fd, news);
    while (item == ITEM_NOISE || item == ITEM_INDICATION);
    if (item == ITEM_NEWS && news->kind == SCTP_NEWS_UP)
        complete_up(s, news);
    return item == ITEM_NEWS;
}
