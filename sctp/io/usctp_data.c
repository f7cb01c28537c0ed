/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_data.c - what an association of usrsctp hands up, and the messages it is given. */
#ifdef RDDP_USRSCTP

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sctp/io/usctp_inner.h"

/* The set-up has measured the round trip. Without this the buffer is that of the nearest peers. */
static void enlarge_buffer(struct usctp *s, uint32_t round_trip_ms)
{
    int octets = round_trip_ms < USCTP_BUFFER / USCTP_SEND_MS ? (int)(round_trip_ms + 1) * USCTP_SEND_MS : USCTP_BUFFER;

    usrsctp_setsockopt(s->socket, SOL_SOCKET, SO_SNDBUF, &octets, sizeof(octets));
}

/* Returns the octets of the largest message of an association that has come up, 0 if it is gone. */
static uint32_t usctp_settle(struct usctp *s)
{
    struct sctp_status status = {0};
    socklen_t length = sizeof(status);

    if (usrsctp_getsockopt(s->socket, IPPROTO_SCTP, SCTP_STATUS, &status, &length))
        return 0;
    enlarge_buffer(s, status.sstat_primary.spinfo_srtt);
    return status.sstat_fragmentation_point;
}

bool usctp_next(struct sctp_assoc *base, struct sctp_news *event)
{
    struct usctp *s = usctp_of(base);
    struct usctp_entry *news;

    pthread_mutex_lock(&usctp_stack.lock);
    news = s->first;
    if (news) {
        s->first = news->next;
        if (!s->first)
            s->last = &s->first;
        *event = news->event;
        if (event->kind == SCTP_NEWS_MESSAGE)
            s->waiting -= event->octets;
        if (event->kind == SCTP_NEWS_UP) {
            event->indication = s->indication;
            event->payload_max = usctp_settle(s);
        }
        usctp_put_entry(s->port, news);
    }
    if (!news && s->starved) {
        *event = (struct sctp_news){.kind = SCTP_NEWS_LOST};
        s->starved = false;
        pthread_mutex_unlock(&usctp_stack.lock);
        return true;
    }
    pthread_mutex_unlock(&usctp_stack.lock);
    return news != NULL;
}

/* Lets the stack wait until messages fill a packet, or forbids it: then it sends all that wait with the next. */
static void let_delay(struct usctp *s, bool delay)
{
    uint32_t nodelay = !delay;

    if (s->delays == delay)
        return;
    if (!usrsctp_setsockopt(s->socket, IPPROTO_SCTP, SCTP_NODELAY, &nodelay, sizeof(nodelay)))
        s->delays = delay;
}

int usctp_submit(struct sctp_assoc *base, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid,
                 bool more)
{
    struct usctp *s = usctp_of(base);
    struct sctp_sndinfo info = {.snd_sid = stream, .snd_flags = SCTP_UNORDERED, .snd_ppid = htonl(ppid)};
    uint32_t n = 0;
    ssize_t sent;
    int error = 0;

    for (uint32_t i = 0; i < spans && !error; i++) {
        if (span[i].length > sizeof(usctp_stack.message) - n)
            error = -EMSGSIZE;
        else if (span[i].length)
            memcpy(usctp_stack.message + n, span[i].at, span[i].length);
        n += span[i].length;
    }
    if (!error) {
        if (!more || n < s->port->packet_max / 2)
            let_delay(s, more);
        sent = usrsctp_sendv(s->socket, usctp_stack.message, n, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0);
        error = sent < 0 ? -errno : 0;
    }
    /* If the association has ended, the waiting event tells more than the errno. */
    if (!error || (error != -EWOULDBLOCK && error != -ENOBUFS && !s->first))
        return error;
    s->port->full += !s->full;
    s->full = true;
    return -EAGAIN;
}

#endif
