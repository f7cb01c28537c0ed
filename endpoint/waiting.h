/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* waiting.h - the endpoints of a loop on which a message waits for a receive, and who tells them that one is posted.
 *
 * Whoever waits notes the bit of his loop in the receive queue (rq_await()). Who posts takes the bits and asks those
 * loops; their drivers serve all that wait there in turn, and who got nothing notes the bit again. */
#ifndef RDDP_ENDPOINT_WAITING_H
#define RDDP_ENDPOINT_WAITING_H

#include <stdbool.h>
#include <stddef.h>

struct endpoint;
struct loop;
struct rddp_context;
struct rq;

/* A place in a list of those that wait, longest first; the list itself is one, too. */
struct waiting {
    struct waiting *next, *before; /* NULL: in no list */
};

static inline void waiting_init(struct waiting *list)
{
    list->next = list->before = list;
}

/* Appends to a list, removes from it, and moves all of `from` to the front of `list`. */
void waiting_append(struct waiting *list, struct waiting *w);
void waiting_remove(struct waiting *w);
void waiting_put_first(struct waiting *list, struct waiting *from);

/* A receive was posted to the queue: asks the loops in which one is waited for. From any thread, with no lock. */
void waiting_announce(struct rddp_context *context, struct rq *rq);

/* Puts the endpoint at the end of its loop's list if a message waits there, or takes it out. By the driver, who holds
 * the endpoint. waiting_leave() takes it out. */
void waiting_update(struct endpoint *endpoint);
void waiting_leave(struct endpoint *endpoint);

#endif
