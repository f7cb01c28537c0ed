/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_offers.c - a ring of requests for each listener that does not keep up. */
#include "roce/io/roce_offers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RING_FIRST = 64 /* places of a new ring; a power of two */ };

struct waiting_offer {
    struct roce_run run; /* run.at is set when it is offered */
    uint8_t packet[OFFER_OCTETS];
};

/* Apart from the request, so that a search touches little memory. */
struct offer_place {
    uint32_t id;
    struct waiting_offer *offer; /* owned */
};

struct offer_queue {
    uint64_t service;
    struct roce_address to;
    struct offer_place *ring; /* owned */
    uint32_t places;          /* a power of two */
    uint32_t head, tail;      /* free-running */
    struct offer_queue *next;
};

static void queue_free(struct roce_offers *offers, struct offer_queue *q)
{
    offers->waiting -= q->head - q->tail;
    while (q->tail != q->head)
        free(q->ring[q->tail++ & (q->places - 1)].offer);
    free(q->ring);
    free(q);
}

void roce_offers_fini(struct roce_offers *offers)
{
    struct offer_queue *q;

    while ((q = offers->queues)) {
        offers->queues = q->next;
        queue_free(offers, q);
    }
}

static struct offer_queue *queue_find(const struct roce_offers *offers, uint64_t service, const struct roce_address *to)
{
    struct offer_queue *q = offers->queues;

    while (q && (q->service != service || !roce_address_is_equal(&q->to, to)))
        q = q->next;
    return q;
}

static struct offer_queue *queue_new(struct roce_offers *offers, uint64_t service, const struct roce_address *to)
{
    struct offer_queue *q = calloc(1, sizeof(*q));

    if (!q)
        return NULL;
    q->service = service;
    q->to = *to;
    q->next = offers->queues;
    offers->queues = q;
    return q;
}

static bool queue_grow(struct offer_queue *q)
{
    uint32_t places = q->places ? 2 * q->places : RING_FIRST;
    struct offer_place *ring = malloc(places * sizeof(*ring));

    if (!ring)
        return false;
    for (uint32_t i = q->tail; i != q->head; i++)
        ring[i & (places - 1)] = q->ring[i & (q->places - 1)];
    free(q->ring);
    q->ring = ring;
    q->places = places;
    return true;
}

static bool queue_has(const struct offer_queue *q, uint32_t id)
{
    for (uint32_t i = q->tail; i != q->head; i++)
        if (q->ring[i & (q->places - 1)].id == id)
            return true;
    return false;
}

/* A request that finds no space is lost. */
static void offer_keep(struct roce_offers *offers, struct offer_queue *q, uint32_t id, const struct roce_run *run)
{
    struct waiting_offer *offer;

    if (offers->waiting == OFFERS_MAX || run->octets > OFFER_OCTETS || queue_has(q, id) ||
        (q->head - q->tail == q->places && !queue_grow(q)) || !(offer = malloc(sizeof(*offer))))
        return;
    offer->run = *run;
    memcpy(offer->packet, run->at, run->octets);
    q->ring[q->head++ & (q->places - 1)] = (struct offer_place){id, offer};
    offers->waiting++;
}

bool roce_offers_put(struct roce_offers *offers, struct roce_passing *passing, uint64_t service, uint32_t id,
                     const struct roce_run *run)
{
    struct offer_queue *q = queue_find(offers, service, &run->to);
    int error;

    if (!q) {
        error = roce_passing_offer(passing, service, run);
        if (error != -EAGAIN)
            return error != -ECONNREFUSED;
        q = queue_new(offers, service, &run->to);
    }
    if (q)
        offer_keep(offers, q, id, run);
    return true;
}

/* Returns whether some still wait. */
static bool offer_waiting(struct roce_offers *offers, struct roce_passing *passing, struct offer_queue *q)
{
    for (; q->tail != q->head; q->tail++, offers->waiting--) {
        struct waiting_offer *offer = q->ring[q->tail & (q->places - 1)].offer;

        offer->run.at = offer->packet;
        if (roce_passing_offer(passing, q->service, &offer->run) == -EAGAIN)
            return true;
        free(offer);
    }
    return false;
}

void roce_offers_again(struct roce_offers *offers, struct roce_passing *passing)
{
    struct offer_queue **at = &offers->queues, *q;

    while ((q = *at)) {
        if (offer_waiting(offers, passing, q)) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        queue_free(offers, q);
    }
}
