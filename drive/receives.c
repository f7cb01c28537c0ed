/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receives.c - serves the endpoints on which a message waits for a receive, when one was posted. */
#include "drive/receives.h"

#include "endpoint/objects.h"

static uint32_t receives_claimed(const struct endpoint *endpoint)
{
    return endpoint->life->qp ? endpoint->life->qp->arriving.claimed : 0;
}

/* Lets the endpoint try again. Returns whether it waits on and has got nothing. It may be closed when it is released,
 * if its bell was rung meanwhile: then it waits no longer. */
static bool waits_in_vain(struct endpoint *endpoint)
{
    uint32_t claimed;
    bool got_nothing;

    endpoint_hold(endpoint);
    claimed = receives_claimed(endpoint);
    endpoint->kind->tick(endpoint, reactor_now_us());
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    got_nothing = receives_claimed(endpoint) == claimed;
    endpoint_release(endpoint, ENDPOINT_DRIVER);
    return got_nothing && endpoint->waiting.next;
}

static void receives_serve(struct loop *loop)
{
    struct waiting turn, in_vain;

    waiting_init(&turn);
    waiting_init(&in_vain);
    waiting_put_first(&turn, &loop->waiting);
    while (turn.next != &turn) {
        struct endpoint *endpoint = container_of(turn.next, struct endpoint, waiting);

        waiting_remove(&endpoint->waiting);
        if (!waits_in_vain(endpoint))
            continue;
        waiting_leave(endpoint);
        waiting_append(&in_vain, &endpoint->waiting);
    }
    waiting_put_first(&loop->waiting, &in_vain);
}

void receives_serve_if_asked(struct loop *loop)
{
    if (loop->receives_posted && atomic_exchange(&loop->receives_posted, false))
        receives_serve(loop);
}
