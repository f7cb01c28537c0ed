/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_assoc.c - what an association hands to its owner, and the messages it is given. */
#include <stdlib.h>
#include <string.h>

#include "sctp/io/osctp_inner.h"

enum { INBOX_FIRST = 16 };

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

struct osctp_message osctp_inbox_pop(struct osctp_inbox *inbox)
{
    struct osctp_message m = inbox->ring[inbox->first];

    inbox->first = (inbox->first + 1) & (inbox->size - 1);
    inbox->count--;
    inbox->octets -= m.octets + OSCTP_ENTRY;
    return m;
}

void osctp_inbox_fini(struct osctp_inbox *inbox)
{
    while (inbox->count)
        free(osctp_inbox_pop(inbox).data);
    free(inbox->ring);
}

/* Half of what is left: a message costs more memory than its own octets. */
uint32_t osctp_assoc_window(const struct osctp_assoc *s)
{
    return (OSCTP_INBOX - s->inbox.octets - s->order.octets) / 2;
}

/* --- the memory of a socket ---------------------------------------------------------------------------------- */

void osctp_assoc_count(struct osctp_assoc *s)
{
    uint32_t now = s->inbox.octets + s->order.octets + s->kept;

    s->port->held += (uint64_t)now - s->counted;
    s->counted = now;
}

/* Frees what waits in it; its owner, who may keep more, is told soon. */
static void osctp_assoc_evict(struct osctp_assoc *s)
{
    s->broken = "others need the memory";
    while (s->inbox.count)
        free(osctp_inbox_pop(&s->inbox).data);
    s->kept = 0;
    osctp_assoc_drop_held(s);
    osctp_assoc_touch(s);
}

bool osctp_assoc_reserve(struct osctp_assoc *s, uint32_t octets)
{
    while (s->port->held + octets > OSCTP_HELD) {
        struct osctp_assoc *most = osctp_table_most(s->port);

        if (most->counted <= s->counted)
            return false;
        osctp_assoc_evict(most);
    }
    return true;
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
        .octets = d->octets, .tsn = d->tsn, .tsns = 1, .ppid = d->ppid, .stream = d->stream, .unordered = true};

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

void osctp_assoc_drop_held(struct osctp_assoc *s)
{
    osctp_order_fini(&s->order);
    osctp_assoc_count(s);
}

static bool osctp_assoc_hold(struct osctp_assoc *s, const struct osctp_data *d, uint32_t space)
{
    enum osctp_verdict verdict = osctp_order_take(&s->order, d, space);

    if (verdict == OSCTP_WRONG)
        s->broken = "chunks contradict each other";
    else if (verdict == OSCTP_NO_SPACE && osctp_assoc_is_stuck(s, d->octets, space))
        s->broken = "more fragments than memory for them";
    return verdict == OSCTP_TAKEN;
}

static bool osctp_assoc_take(void *of, const struct osctp_data *d)
{
    struct osctp_assoc *s = of;
    uint32_t cost = d->octets + OSCTP_ENTRY, space = OSCTP_INBOX - s->inbox.octets;
    bool taken;

    if (s->broken)
        return false;
    if (!osctp_assoc_reserve(s, cost)) {
        s->broken = "more waits here than anywhere else";
        return false;
    }
    if (d->first && d->last && d->unordered && !s->order.count)
        taken = cost <= space && osctp_assoc_take_whole(s, d);
    else
        taken = osctp_assoc_hold(s, d, space);
    osctp_assoc_count(s);
    return taken;
}

static void osctp_assoc_skip(void *of, uint16_t stream)
{
    struct osctp_assoc *s = of;

    s->news.skipped = true;
    s->skipped_stream = stream;
    osctp_assoc_mark_ready(s);
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
    .take = osctp_assoc_take, .skip = osctp_assoc_skip, .lend = osctp_assoc_lend, .put_back = osctp_assoc_put_back};

/* --- events -------------------------------------------------------------------------------------------------- */

/* An association that was not accepted has no owner. */
void osctp_assoc_mark_ready(struct osctp_assoc *s)
{
    if (s->ready || !s->accepted)
        return;
    s->ready = true;
    s->next_ready = s->port->ready;
    s->port->ready = s;
}

void osctp_assoc_touch(struct osctp_assoc *s)
{
    if (s->touched)
        return;
    s->touched = true;
    s->next_touched = s->port->touched;
    s->port->touched = s;
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

static void osctp_assoc_notify_end(struct osctp_assoc *s)
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

void osctp_assoc_notify(struct osctp_assoc *s)
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
        osctp_assoc_notify_end(s);
    if (s->full && (s->over || osctp_has_space(o))) {
        s->full = false;
        osctp_assoc_mark_ready(s);
    }
}

/* --- from the beginning to the end --------------------------------------------------------------------------- */

struct osctp_assoc *osctp_assoc_new(struct osctp_port *port, const struct osctp_key *key,
                                    const struct sockaddr_storage *peer)
{
    struct osctp_assoc *s = calloc(1, sizeof(*s));

    if (s) {
        s->port = port;
        s->peer = *peer;
        s->place.key = *key;
        s->order.give = osctp_assoc_give;
        s->order.of = s;
        if (!osctp_table_add(s))
            return s;
    }
    free(s);
    return NULL;
}
