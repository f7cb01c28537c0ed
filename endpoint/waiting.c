/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* waiting.c - the endpoints of a loop on which a message waits for a receive. */
#include "endpoint/waiting.h"

#include "endpoint/objects.h"

void waiting_append(struct waiting *list, struct waiting *w)
{
    w->next = list;
    w->before = list->before;
    list->before->next = w;
    list->before = w;
}

void waiting_remove(struct waiting *w)
{
    w->next->before = w->before;
    w->before->next = w->next;
    w->next = w->before = NULL;
}

void waiting_put_first(struct waiting *list, struct waiting *from)
{
    if (from->next == from)
        return;
    from->before->next = list->next;
    list->next->before = from->before;
    list->next = from->next;
    from->next->before = list;
    waiting_init(from);
}

void waiting_announce(struct rddp_context *context, struct rq *rq)
{
    for (uint64_t loops = rq_take_waiters(rq); loops; loops &= loops - 1) {
        struct loop *loop = &context->loop[__builtin_ctzll(loops)];

        if (!atomic_exchange(&loop->receives_posted, true))
            loop_wake(loop);
    }
}

void waiting_leave(struct endpoint *endpoint)
{
    if (endpoint->waiting.next)
        waiting_remove(&endpoint->waiting);
}

void waiting_update(struct endpoint *endpoint)
{
    if (!life_awaits_receive(endpoint->life))
        waiting_leave(endpoint);
    else if (!endpoint->waiting.next)
        waiting_append(&endpoint->loop->waiting, &endpoint->waiting);
}
