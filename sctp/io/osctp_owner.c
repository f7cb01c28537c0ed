/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_owner.c - what the owner of an association takes from it and gives to it, and how it leaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sctp/io/osctp_inner.h"

enum { WINDOW_STEP = 64 << 10 }; /* octets taken until the window is set again */

/* --- events -------------------------------------------------------------------------------------------------- */

/* The reason is lost if there is no memory for it. */
static void osctp_assoc_reason(const struct osctp *o, struct sctp_news *news)
{
    news->data = o->reason_octets ? malloc(o->reason_octets) : NULL;
    if (!news->data)
        return;
    memcpy(news->data, o->reason, o->reason_octets);
    news->octets = o->reason_octets;
}

/* After the messages. Returns false if there is nothing. */
static bool osctp_assoc_event(struct osctp_assoc *s, struct sctp_news *news)
{
    if (s->news.skipped) {
        s->news.skipped = false;
        news->kind = SCTP_NEWS_SKIPPED;
        news->stream = s->skipped_stream;
        return true;
    }
    if (s->news.shutdown) {
        s->news.shutdown = false;
        news->kind = SCTP_NEWS_SHUTDOWN;
        return true;
    }
    if (!s->news.end)
        return false;
    s->news.end = false;
    news->kind = s->end;
    if (s->end == SCTP_NEWS_ABORTED)
        osctp_assoc_reason(&s->engine, news);
    return true;
}

/* Memory is free again: tells the engine, and at once the peer if it waits for this. */
static void osctp_assoc_widen(struct osctp_assoc *s, uint32_t octets)
{
    s->freed += octets;
    if (s->over || (s->freed < WINDOW_STEP && s->inbox.count))
        return;
    s->freed = 0;
    osctp_window(&s->engine, osctp_assoc_window(s));
    if (!s->engine.rx.due)
        return;
    osctp_assoc_touch(s);
    osctp_port_settle(s->port);
}

bool osctp_assoc_next(struct sctp_assoc *base, struct sctp_news *news)
{
    struct osctp_assoc *s = osctp_assoc_of(base);
    struct osctp_port *port = s->port;
    bool has = true;

    *news = (struct sctp_news){.kind = SCTP_NEWS_MESSAGE};
    pthread_mutex_lock(&port->lock);
    if (s->news.up) {
        s->news.up = false;
        news->kind = SCTP_NEWS_UP;
        news->tsn = s->engine.peer_tsn;
        news->indication = s->engine.peer_indication;
        news->payload_max = osctp_payload_max(&s->engine);
    } else if (s->inbox.count) {
        struct osctp_message m = osctp_inbox_pop(&s->inbox);

        news->data = m.data;
        news->octets = m.octets;
        news->tsn = m.tsn;
        news->tsns = m.tsns;
        news->ppid = m.ppid;
        news->stream = m.stream;
        news->unordered = m.unordered;
        osctp_assoc_count(s);
        osctp_assoc_widen(s, m.octets + OSCTP_ENTRY);
    } else {
        has = osctp_assoc_event(s, news);
    }
    pthread_mutex_unlock(&port->lock);
    return has;
}

/* --- messages out -------------------------------------------------------------------------------------------- */

/* So a peer that says nothing, to which nothing is said, costs no memory for packets. */
static bool osctp_assoc_find_places(struct osctp_assoc *s)
{
    if (!s->sent) {
        s->sent = malloc(OSCTP_PACKETS * sizeof(*s->sent));
        osctp_lend(&s->engine, s->sent);
    }
    return s->sent;
}

int osctp_assoc_submit(struct sctp_assoc *base, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid,
                       bool more)
{
    struct osctp_assoc *s = osctp_assoc_of(base);
    int error = -EPIPE;

    (void)more; /* packets leave with leave(), full or not */
    if (!s->over)
        error = osctp_assoc_find_places(s) ? osctp_submit(&s->engine, span, spans, stream, ppid) : -ENOMEM;
    if (!error) {
        osctp_assoc_touch(s);
        return 0;
    }
    /* If the association has ended, the waiting event tells more than the errno. */
    if (error != -EAGAIN && !s->inbox.count && !s->news.shutdown && !s->news.end)
        return error;
    s->full = true;
    return -EAGAIN;
}

/* If it is this one that keeps the most, it is aborted itself. */
void osctp_assoc_keeps(struct sctp_assoc *base, uint32_t octets)
{
    struct osctp_assoc *s = osctp_assoc_of(base);

    pthread_mutex_lock(&s->port->lock);
    if (!s->broken) {
        s->kept = octets;
        osctp_assoc_count(s);
        if (!osctp_assoc_reserve(s, 0)) {
            s->broken = "more waits here than anywhere else";
            osctp_assoc_touch(s);
        }
        osctp_port_settle(s->port);
    }
    pthread_mutex_unlock(&s->port->lock);
}

void osctp_assoc_batches(struct sctp_assoc *base)
{
    struct osctp_assoc *s = osctp_assoc_of(base);

    pthread_mutex_lock(&s->port->lock);
    s->engine.batches = true;
    pthread_mutex_unlock(&s->port->lock);
}

/* The addresses do not change. */
void osctp_assoc_names(struct sctp_assoc *base, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    const struct osctp_assoc *s = osctp_assoc_of(base);

    *peer = s->peer;
    udp_local(&s->port->udp, local);
    if (!sctp_is_wildcard(local) || !udp_source(peer, local))
        sctp_set_port(local, s->place.key.local_port);
    sctp_set_port(peer, s->place.key.peer_port);
}

/* --- the end ------------------------------------------------------------------------------------------------- */

void osctp_assoc_shutdown(struct sctp_assoc *base)
{
    struct osctp_assoc *s = osctp_assoc_of(base);

    pthread_mutex_lock(&s->port->lock);
    if (!s->over) {
        osctp_shutdown(&s->engine, reactor_now_us());
        osctp_assoc_touch(s);
    }
    osctp_port_settle(s->port);
    pthread_mutex_unlock(&s->port->lock);
}

void osctp_assoc_abort(struct sctp_assoc *base, const char *reason, size_t octets)
{
    struct osctp_assoc *s = osctp_assoc_of(base);

    pthread_mutex_lock(&s->port->lock);
    if (!s->over) {
        osctp_abort(&s->engine, reason, octets < OSCTP_REASON ? (uint32_t)octets : OSCTP_REASON);
        osctp_assoc_touch(s);
    }
    osctp_port_settle(s->port);
    pthread_mutex_unlock(&s->port->lock);
}

/* --- leaving ------------------------------------------------------------------------------------------------- */

/* The socket of one that has called is closed with it. */
static bool waits_for_complete(const struct osctp_assoc *s)
{
    return !s->over && !s->port->silent && s->engine.state == OSCTP_SHUTDOWN_ACK_SENT && s->port->listens &&
           s->place.key.local_port == s->port->listen_port;
}

/* If the SHUTDOWN-ACK is lost the peer repeats its SHUTDOWN, which is answered by an ABORT if it is out of the blue.
 * All data are acknowledged, so `sent` is not needed. */
static void osctp_assoc_leave(struct osctp_assoc *s)
{
    struct osctp_port *port = s->port;

    osctp_assoc_unlink(s);
    s->accepted = false;
    s->left = true;
    osctp_assoc_forget_news(s);
    free(s->sent);
    s->sent = NULL;
    osctp_lend(&s->engine, NULL);
    osctp_queue_push(&port->left, s);
    osctp_port_forget_left(port, OSCTP_LEFT_MAX);
    osctp_assoc_touch(s);
    osctp_port_settle(port);
}

void osctp_assoc_free(struct osctp_assoc *s)
{
    if (waits_for_complete(s)) {
        osctp_assoc_leave(s);
        return;
    }
    /* One that only waits for the answer to its SHUTDOWN-ACK has nothing left to lose: the answer will be a packet out
     * of the blue, to which none is due. */
    if (!s->over && s->engine.state != OSCTP_SHUTDOWN_ACK_SENT)
        osctp_abort(&s->engine, NULL, 0);
    if (!s->over)
        osctp_assoc_touch(s);
    osctp_port_settle(s->port); /* sends the ABORT, or the SHUTDOWN-ACK */
    osctp_assoc_discard(s);
}
