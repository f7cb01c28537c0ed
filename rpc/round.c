/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* round.c - the event loop of a responder: takes completions, does what follows from them, and flushes what is sent.
 * The cost of a round depends on the completions alone, not on the number of connections. */
#include <errno.h>
#include <poll.h>

#include "rpc/clock.h"
#include "rpc/responder_inner.h"

enum { TURNS = 16 }; /* a round ends after this many batches of completions, so that its caller gets a turn */

/* Does all the work that there is now. Returns false if there was none. */
static bool responder_round(struct responder *r)
{
    bool any, again;
    int turns = TURNS;

    r->in_round = true;
    r->now_ms = clock_ms();
    rpc_wait_unkick(&r->wait);
    responder_flush(r);
    rddp_progress(r->context, 0);
    any = responder_take_events(r);
    do {
        again = responder_take_completions(r) > 0;
        again |= responder_flush(r);
        any |= again;
    } while (again && --turns);
    stall_check(r);
    if (r->dying)
        responder_reap(r);
    serve_starved(r);
    stall_arm(r);
    r->in_round = false;
    if (again || r->dirty || r->dying)
        responder_kick(r);
    return any;
}

int responder_run(struct responder *r, int timeout_ms)
{
    struct pollfd fd = {.fd = r->wait.fd, .events = POLLIN};

    poll_begin(&r->polling, r->attr.spin_us);
    while (!responder_round(r)) {
        if (timeout_ms == 0)
            return 0;
        if (poll_goes_on(&r->polling))
            continue;
        if (poll(&fd, 1, timeout_ms) < 0)
            return -errno;
        responder_round(r);
        return 0;
    }
    poll_hit(&r->polling);
    return 0;
}
