/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_assoc.c - what an association hands to its owner, and the messages it is given. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sctp/io/osctp_inner.h"

enum { INBOX_FIRST = 16, WINDOW_STEP = 64 << 10 }; /* octets taken until the window is set again */

/* --- the inbox ----------------------------------------------------------------------------------------------- */

static bool inbox_grow(struct osctp_inbox *inbox)
{
    uint32_t size = inbox->size ? 2 * inbox->size : INBOX_FIRST, tail;
    struct osctp_message *ring;

    if (inbox->count < inbox->size)
        return true;
    ring = malloc(size * sizeof(*ring));
    if (!ring)
        return false;
    tail = inbox->size - inbox->first;
    if (inbox->size) {
        memcpy(ring, inbox->ring + inbox->first, tail * sizeof(*ring));
        memcpy(ring + tail, inbox->ring, inbox->first * sizeof(*ring));
    }
    free(inbox->ring);
    *inbox = (struct osctp_inbox){.ring = ring, .size = size, .count = inbox->count, .octets = inbox->octets};
    return true;
}

/* There is a free place. */
static void inbox_push(struct osctp_inbox *inbox, const struct osctp_message *m)
{
    inbox->ring[(inbox->first + inbox->count++) & (inbox->size - 1)] = *m;
    inbox->octets += m->octets + OSCTP_ENTRY;
}

static struct osctp_message inbox_pop(struct osctp_inbox *inbox)
{
    struct osctp_message m = inbox->ring[inbox->first];

    inbox->first = (inbox->first + 1) & (inbox->size - 1);
    inbox->count--;
    inbox->octets -= m.octets + OSCTP_ENTRY;
    return m;
}

static void inbox_fini(struct osctp_inbox *inbox)
{
    while (inbox->count)
        free(inbox_pop(inbox).data);
    free(inbox->ring);
}

/* Half of what is left: a message costs more memory than its own octets. */
uint32_t osctp_assoc_window(const struct osctp_assoc *s)
{
    return (OSCTP_INBOX - s->inbox.octets - s->order.octets) / 2;
}

/* --- what the engine calls ----------------------------------------------------------------------------------- */

/* The chunks of this message were acknowledged: without memory for it the association ends. */
static void osctp_assoc_give(void *of, const struct osctp_message *m)
{
    struct osctp_assoc *s = of;

    osctp_assoc_mark_ready(s);
    if (inbox_grow(&s->inbox)) {
        inbox_push(&s->inbox, m);
        return;
    }
    free(m->data);
    s->broken = "no memory";
}

static bool osctp_assoc_take_whole(struct osctp_assoc *s, const struct osctp_data *d)
{
    struct osctp_message m = {
        .octets = d->octets, .tsn = d->tsn, .ppid = d->ppid, .stream = d->stream, .unordered = true};

    if (!inbox_grow(&s->inbox))
        return false;
    m.data = malloc(d->octets);
    if (!m.data)
        return false;
    memcpy(m.data, d->data, d->octets);
    inbox_push(&s->inbox, &m);
    osctp_assoc_mark_ready(s);
    return true;
}

/* Fragments alone fill all memory, and none completes a message: the message is too long, or the peer ignores the
 * window. */
static bool osctp_assoc_is_stuck(const struct osctp_assoc *s, uint32_t octets, uint32_t space)
{
    return !s->inbox.count && s->order.octets + octets + OSCTP_ENTRY > space;
}

static enum osctp_verdict osctp_assoc_hold(struct osctp_assoc *s, const struct osctp_data *d, uint32_t space)
{
    enum osctp_verdict verdict;

    s->port->held -= s->order.octets;
    verdict = osctp_order_take(&s->order, d, space);
    s->port->held += s->order.octets;
    return verdict;
}

static void osctp_assoc_drop_held(struct osctp_assoc *s)
{
    s->port->held -= s->order.octets;
    osctp_order_fini(&s->order);
}

static bool osctp_assoc_take(void *of, const struct osctp_data *d)
{
    struct osctp_assoc *s = of;
    uint32_t space = OSCTP_INBOX - s->inbox.octets;
    enum osctp_verdict verdict;

    if (s->broken)
        return false;
    if (d->first && d->last && d->unordered && !s->order.count)
        return d->octets + OSCTP_ENTRY <= space && osctp_assoc_take_whole(s, d);
    if (s->port->held >= OSCTP_HELD && space > OSCTP_HELD_EACH)
        space = OSCTP_HELD_EACH;
    verdict = osctp_assoc_hold(s, d, space);
    if (verdict == OSCTP_WRONG)
        s->broken = "chunks contradict each other";
    else if (verdict == OSCTP_NO_SPACE && osctp_assoc_is_stuck(s, d->octets, space))
        s->broken = "more fragments than memory for them";
    return verdict == OSCTP_TAKEN;
}

static uint8_t *osctp_assoc_lend(void *of)
{
    struct osctp_port *port = ((struct osctp_assoc *)of)->port;
    struct osctp_spare *spare = port->spare;

    if (!spare)
        return malloc(port->packet_max);
    port->spare = spare->next;
    port->spare_octets -= port->packet_max;
    return (uint8_t *)spare;
}

/* The last one put back is the next one lent: it may still be in a cache. */
static void osctp_assoc_put_back(void *of, uint8_t *packet)
{
    struct osctp_port *port = ((struct osctp_assoc *)of)->port;
    struct osctp_spare *spare = (void *)packet;

    if (port->spare_octets + port->packet_max > OSCTP_SPARES) {
        free(packet);
        return;
    }
    spare->next = port->spare;
    port->spare = spare;
    port->spare_octets += port->packet_max;
}

const struct osctp_user osctp_assoc_user = {
    .take = osctp_assoc_take, .lend = osctp_assoc_lend, .put_back = osctp_assoc_put_back};

/* --- events -------------------------------------------------------------------------------------------------- */

/* Nobody owns an association that was not accepted. */
void osctp_assoc_mark_ready(struct osctp_assoc *s)
{
    if (s->ready || !s->accepted)
        return;
    s->ready = true;
    s->next_ready = s->port->ready;
    s->port->ready = s;
}

void osctp_assoc_end(struct osctp_assoc *s, enum sctp_news_kind kind)
{
    if (s->over)
        return;
    s->over = s->news.end = true;
    s->end = kind;
    osctp_assoc_drop_held(s);
    osctp_table_hide(s);
    osctp_table_schedule(s, OSCTP_NEVER);
    osctp_assoc_mark_ready(s);
}

static void osctp_assoc_tell_end(struct osctp_assoc *s)
{
    switch (s->engine.end) {
    case OSCTP_SHUT:
        osctp_assoc_end(s, SCTP_NEWS_SHUTDOWN);
        s->news.end = !s->shut; /* told once */
        break;
    case OSCTP_ABORTED:
        osctp_assoc_end(s, SCTP_NEWS_ABORTED);
        break;
    case OSCTP_LOST:
        osctp_assoc_end(s, SCTP_NEWS_LOST);
        break;
    case OSCTP_LEFT:
        osctp_assoc_end(s, SCTP_NEWS_LOST);
        s->news.end = s->broken != NULL; /* otherwise the owner has left */
        break;
    }
}

void osctp_assoc_tell(struct osctp_assoc *s)
{
    const struct osctp *o = &s->engine;

    if (s->over)
        return;
    if (o->up && !s->up) {
        s->up = s->news.up = true;
        osctp_assoc_mark_ready(s);
    }
    if (o->peer_end && !s->shut) {
        s->shut = s->news.shutdown = true;
        osctp_assoc_mark_ready(s);
    }
    if (o->state == OSCTP_CLOSED)
        osctp_assoc_tell_end(s);
    if (s->full && (s->over || osctp_has_space(o))) {
        s->full = false;
        osctp_assoc_mark_ready(s);
    }
}

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
    osctp_port_touch(s);
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
        struct osctp_message m = inbox_pop(&s->inbox);

        news->data = m.data;
        news->octets = m.octets;
        news->tsn = m.tsn;
        news->ppid = m.ppid;
        news->stream = m.stream;
        news->unordered = m.unordered;
        osctp_assoc_widen(s, m.octets + OSCTP_ENTRY);
    } else {
        has = osctp_assoc_event(s, news);
    }
    pthread_mutex_unlock(&port->lock);
    return has;
}

/* --- messages out -------------------------------------------------------------------------------------------- */

int osctp_assoc_submit(struct sctp_assoc *base, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid,
                       bool more)
{
    struct osctp_assoc *s = osctp_assoc_of(base);
    int error = s->over ? -EPIPE : osctp_submit(&s->engine, span, spans, stream, ppid);

    (void)more; /* packets leave with flush(), full or not */
    if (!error) {
        osctp_port_touch(s);
        return 0;
    }
    /* If the association has ended, the waiting event tells more than the errno. */
    if (error != -EAGAIN && !s->inbox.count && !s->news.shutdown && !s->news.end)
        return error;
    s->full = true;
    return -EAGAIN;
}

/* --- from the beginning to the end --------------------------------------------------------------------------- */

struct osctp_assoc *osctp_assoc_new(struct osctp_port *port, const struct osctp_key *key,
                                    const struct sockaddr_storage *peer)
{
    struct osctp_assoc *s = calloc(1, sizeof(*s));
    struct osctp_sent *sent = malloc(OSCTP_PACKETS * sizeof(*sent));

    if (s && sent) {
        s->base.provider = &osctp;
        s->port = port;
        s->sent = sent;
        s->peer = *peer;
        s->place.key = *key;
        s->order.give = osctp_assoc_give;
        s->order.of = s;
        if (!osctp_table_add(s))
            return s;
    }
    free(s);
    free(sent);
    return NULL;
}

/* Out of the lists of its port. */
static void osctp_assoc_unlink(struct osctp_assoc *s)
{
    struct osctp_port *port = s->port;
    struct osctp_assoc **at;

    if (s->ready) {
        for (at = &port->ready; *at != s;)
            at = &(*at)->next_ready;
        *at = s->next_ready;
    }
    if (s->touched) {
        for (at = &port->touched; *at != s;)
            at = &(*at)->next_touched;
        *at = s->next_touched;
    }
}

void osctp_assoc_free(struct osctp_assoc *s)
{
    if (!s->over) {
        osctp_abort(&s->engine, NULL, 0);
        osctp_port_touch(s);
    }
    osctp_port_settle(s->port); /* sends the ABORT */
    osctp_assoc_unlink(s);
    osctp_table_remove(s);
    osctp_free(&s->engine);
    inbox_fini(&s->inbox);
    osctp_assoc_drop_held(s);
    free(s->sent);
    free(s);
}
