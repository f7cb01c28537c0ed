/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_order.c - joins the fragments of messages, and puts the messages of each stream into order.
 *
 * Parts of a message that have consecutive TSNs are a run; its first and its last part know each other. So a new part
 * needs its two neighbours alone, however many are held. */
#include "sctp/io/osctp_order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS_FIRST = 64 };

struct osctp_held {
    struct osctp_held *chain; /* in the table */
    struct osctp_held *next;  /* the part with the next TSN, if that is held */
    struct osctp_held *other; /* first part of a run: its last; last part: its first */
    struct osctp_message m;   /* or a part of one */
    uint32_t run;             /* first and last part: octets of the run */
    uint16_t ssn;
    bool first, last;
    bool whole; /* a message that waits for others of its stream */
};
static_assert(sizeof(struct osctp_held) <= OSCTP_ENTRY, "what is counted is less than what is used");

/* --- the table ----------------------------------------------------------------------------------------------- */

/* No hash with a key: a peer that would fill a chain on purpose has to send as many chunks between those. SSNs can be
 * chosen, but there are only 32768 of them. */
static struct osctp_held **osctp_order_head(const struct osctp_order *r, bool whole, uint32_t number, uint16_t stream)
{
    return &r->heads[(whole ? number * SCTP_STREAMS_MAX + stream : number) & (r->size - 1)];
}

static struct osctp_held **osctp_order_head_of(const struct osctp_order *r, const struct osctp_held *held)
{
    return osctp_order_head(r, held->whole, held->whole ? held->ssn : held->m.tsn, held->m.stream);
}

static struct osctp_held *osctp_order_part(const struct osctp_order *r, uint32_t tsn)
{
    struct osctp_held *held = r->count ? *osctp_order_head(r, false, tsn, 0) : NULL;

    while (held && (held->whole || held->m.tsn != tsn))
        held = held->chain;
    return held;
}

static struct osctp_held *osctp_order_whole(const struct osctp_order *r, uint16_t stream, uint16_t ssn)
{
    struct osctp_held *held = r->count ? *osctp_order_head(r, true, ssn, stream) : NULL;

    while (held && (!held->whole || held->m.stream != stream || held->ssn != ssn))
        held = held->chain;
    return held;
}

static void osctp_order_link(struct osctp_order *r, struct osctp_held *held)
{
    struct osctp_held **head = osctp_order_head_of(r, held);

    held->chain = *head;
    *head = held;
}

/* Without memory the chains get longer; without a table nothing can be held. */
static bool osctp_order_grow(struct osctp_order *r)
{
    struct osctp_order old = *r;
    struct osctp_held *held;

    if (r->count < r->size)
        return true;
    r->size = old.size ? 2 * old.size : HEADS_FIRST;
    r->heads = calloc(r->size, sizeof(struct osctp_held *));
    if (!r->heads) {
        *r = old;
        return r->size != 0;
    }
    for (uint32_t i = 0; i < old.size; i++)
        while ((held = old.heads[i])) {
            old.heads[i] = held->chain;
            osctp_order_link(r, held);
        }
    free(old.heads);
    return true;
}

static void osctp_order_add(struct osctp_order *r, struct osctp_held *held)
{
    osctp_order_link(r, held);
    r->count++;
    r->octets += held->m.octets + OSCTP_ENTRY;
}

static void osctp_order_remove(struct osctp_order *r, const struct osctp_held *held)
{
    struct osctp_held **at = osctp_order_head_of(r, held);

    while (*at != held)
        at = &(*at)->chain;
    *at = held->chain;
    r->count--;
    r->octets -= held->m.octets + OSCTP_ENTRY;
}

void osctp_order_fini(struct osctp_order *r)
{
    struct osctp_held *held;

    for (uint32_t i = 0; i < r->size; i++)
        while ((held = r->heads[i])) {
            r->heads[i] = held->chain;
            free(held->m.data);
            free(held);
        }
    free(r->heads);
    r->heads = NULL;
    r->size = r->count = r->octets = 0;
}

/* --- whole messages ------------------------------------------------------------------------------------------ */

/* Gives a message whose turn it is, and all that have waited for it. */
static void osctp_order_turn(struct osctp_order *r, const struct osctp_message *m)
{
    uint16_t stream = m->stream;
    struct osctp_held *held;

    r->give(r->of, m);
    r->next[stream]++;
    while ((held = osctp_order_whole(r, stream, r->next[stream]))) {
        osctp_order_remove(r, held);
        r->give(r->of, &held->m);
        free(held);
        r->next[stream]++;
    }
}

/* Copies a run behind `to`, and frees its parts. */
static uint8_t *osctp_order_unite(struct osctp_order *r, struct osctp_held *part, uint8_t *to)
{
    while (part) {
        struct osctp_held *next = part->next;

        memcpy(to, part->m.data, part->m.octets);
        to += part->m.octets;
        osctp_order_remove(r, part);
        free(part->m.data);
        free(part);
        part = next;
    }
    return to;
}

/* Joins the run before the chunk, the chunk, and the run behind it, into a message. */
static enum osctp_verdict osctp_order_finish(struct osctp_order *r, const struct osctp_data *d,
                                             struct osctp_held *before, struct osctp_held *behind)
{
    const struct osctp_held *start = before ? before->other : NULL;
    struct osctp_message m = {
        .octets = d->octets + (before ? before->run : 0) + (behind ? behind->run : 0),
        .tsn = start ? start->m.tsn : d->tsn,
        .tsns = (behind ? behind->other->m.tsn : d->tsn) - (start ? start->m.tsn : d->tsn) + 1,
        .ppid = start ? start->m.ppid : d->ppid,
        .stream = d->stream,
        .unordered = d->unordered,
    };
    bool waits = !d->unordered && d->ssn != r->next[d->stream];
    struct osctp_held *held = waits ? calloc(1, sizeof(*held)) : NULL;
    uint8_t *at;

    m.data = malloc(m.octets);
    if (!m.data || (waits && (!held || !osctp_order_grow(r)))) {
        free(m.data);
        free(held);
        return OSCTP_NO_SPACE;
    }
    at = osctp_order_unite(r, before ? before->other : NULL, m.data);
    memcpy(at, d->data, d->octets);
    osctp_order_unite(r, behind, at + d->octets);
    if (waits) {
        *held = (struct osctp_held){.m = m, .ssn = d->ssn, .whole = true};
        osctp_order_add(r, held);
    } else if (d->unordered) {
        r->give(r->of, &m);
    } else {
        osctp_order_turn(r, &m);
    }
    return OSCTP_TAKEN;
}

/* --- parts --------------------------------------------------------------------------------------------------- */

static struct osctp_held *osctp_order_copy(const struct osctp_data *d)
{
    struct osctp_held *held = calloc(1, sizeof(*held));
    uint8_t *data = malloc(d->octets);

    if (!held || !data) {
        free(held);
        free(data);
        return NULL;
    }
    memcpy(data, d->data, d->octets);
    *held = (struct osctp_held){
        .m = {.data = data,
              .octets = d->octets,
              .tsn = d->tsn,
              .ppid = d->ppid,
              .stream = d->stream,
              .unordered = d->unordered},
        .ssn = d->ssn,
        .first = d->first,
        .last = d->last,
        .run = d->octets,
    };
    held->other = held;
    return held;
}

/* Holds the chunk, between the last part of the run before it and the first part of the run behind it. */
static enum osctp_verdict osctp_order_hold(struct osctp_order *r, const struct osctp_data *d, struct osctp_held *before,
                                           struct osctp_held *behind)
{
    struct osctp_held *held = osctp_order_grow(r) ? osctp_order_copy(d) : NULL;
    struct osctp_held *start = before ? before->other : held, *end = behind ? behind->other : held;

    if (!held)
        return OSCTP_NO_SPACE;
    if (before) {
        before->next = held;
        held->run += before->run;
    }
    if (behind)
        held->run += behind->run;
    held->next = behind;
    start->run = end->run = held->run;
    start->other = end;
    end->other = start;
    osctp_order_add(r, held);
    return OSCTP_TAKEN;
}

static bool is_same_message(const struct osctp_held *part, const struct osctp_data *d)
{
    return part->m.stream == d->stream && part->m.unordered == d->unordered && (d->unordered || part->ssn == d->ssn);
}

/* Is it what its neighbours expect, if they are held? An SSN behind the next one was used before. */
static bool osctp_order_agrees(const struct osctp_order *r, const struct osctp_data *d, const struct osctp_held *before,
                               const struct osctp_held *behind)
{
    if (d->stream >= SCTP_STREAMS_MAX)
        return false;
    if (before && (before->last != d->first || (!d->first && !is_same_message(before, d))))
        return false;
    if (behind && (behind->first != d->last || (!d->last && !is_same_message(behind, d))))
        return false;
    return d->unordered ||
           ((uint16_t)(d->ssn - r->next[d->stream]) < 0x8000 && !osctp_order_whole(r, d->stream, d->ssn));
}

enum osctp_verdict osctp_order_take(struct osctp_order *r, const struct osctp_data *d, uint32_t space)
{
    struct osctp_held *before = osctp_order_part(r, d->tsn - 1), *behind = osctp_order_part(r, d->tsn + 1);
    uint32_t cost;

    if (!osctp_order_agrees(r, d, before, behind))
        return OSCTP_WRONG;
    before = d->first ? NULL : before;
    behind = d->last ? NULL : behind;
    if ((d->first || (before && before->other->first)) && (d->last || (behind && behind->other->last))) {
        /* The entries of the other parts become free. */
        cost = d->octets + (before || behind ? 0 : OSCTP_ENTRY);
        return cost > space || r->octets > space - cost ? OSCTP_NO_SPACE : osctp_order_finish(r, d, before, behind);
    }
    cost = d->octets + OSCTP_ENTRY;
    return cost > space || r->octets > space - cost ? OSCTP_NO_SPACE : osctp_order_hold(r, d, before, behind);
}
