/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reclaim.c - copies what endpoints still send from regions that were invalidated, as TCP would have done: nothing that
 * is done with a region may wait for a peer that does not read. */
#include "endpoint/reclaim.h"

#include "endpoint/objects.h"

/* The holder of a bell may have entered another epoch since it borrowed (life_renew()), and `borrows` is correct only
 * when there is no holder; so the bell is looked at first. */
static bool may_borrow_spans(const struct endpoint *endpoint)
{
    return doorbell_is_held(&endpoint->bell) || endpoint->borrows;
}

void reclaim_spans(struct loop *loop)
{
    for (struct endpoint *endpoint = loop->endpoints; endpoint; endpoint = endpoint->next) {
        if (!may_borrow_spans(endpoint))
            continue;
        endpoint_hold(endpoint);
        if (endpoint->life->out)
            out_own_invalid(endpoint->life->out);
        endpoint_release(endpoint, ENDPOINT_POSTER); /* closes nothing, so that the list stays */
    }
}

void reclaim_if_asked(struct loop *loop)
{
    if (atomic_load_explicit(&loop->spans_wanted, memory_order_relaxed) && atomic_exchange(&loop->spans_wanted, false))
        reclaim_spans(loop);
}
