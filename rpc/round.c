/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* round.c - the event loop of a responder: takes completions, does what follows from them, and flushes what is sent.
 * The cost of a round depends on the completions alone, not on the number of connections. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "rpc/clock.h"
#include "rpc/responder_inner.h"

enum {
    POLL_BATCH = 16,
    TURNS = 16, /* a round ends after this many batches, so that its caller gets a turn */
    REAP_TURNS = 256,
};

/* --- requests for the next round --------------------------------------------------------------------------------- */

void responder_kick(struct responder *r)
{
    uint64_t one = 1;

    if (r->in_round || r->kicked)
        return;
    r->kicked = write(r->kick, &one, sizeof(one)) == sizeof(one);
}

static void round_unkick(struct responder *r)
{
    uint64_t count;

    if (r->kicked && read(r->kick, &count, sizeof(count)) == sizeof(count))
        r->kicked = false;
}

void conn_end(struct rpc_conn *conn)
{
    struct responder *r = conn->responder;

    if (conn->dead)
        return;
    conn->dead = true;
    conn->next_dying = r->dying;
    r->dying = conn;
    responder_kick(r);
}

void conn_touch(struct rpc_conn *conn)
{
    struct responder *r = conn->responder;

    if (conn->link.queue_left == conn->link.attr.queue)
        conn->moved_ms = r->now_ms;
    if (conn->is_dirty)
        return;
    conn->is_dirty = true;
    conn->next_dirty = r->dirty;
    r->dirty = conn;
    responder_kick(r);
}

/* --- a round --------------------------------------------------------------------------------------------------- */

/* Flushes the dirty links. Returns false if there were none. */
static bool round_flush(struct responder *r)
{
    struct rpc_conn *conn = r->dirty;
    bool any = conn;

    r->dirty = NULL;
    for (struct rpc_conn *next; conn; conn = next) {
        next = conn->next_dirty;
        conn->is_dirty = false;
        if (!conn->dead && rpc_link_flush(&conn->link) != 0)
            conn_end(conn);
    }
    return any;
}

/* The first RDMA request that fails names the call with the bad chunk; the requests behind it are only flushed. */
static void round_fail(struct rpc_conn *conn, const struct link_done *done)
{
    if (done->kind == LINK_RDMA && done->wc.status != RDDP_WC_WR_FLUSH_ERR)
        failure_note(done->cookie);
    conn_end(conn);
}

static void round_complete(struct responder *r, struct link_done *done)
{
    struct rpc_conn *conn;

    rpc_link_identify(done);
    conn = done->kind == LINK_RDMA ? ((struct rpc_serve *)done->cookie)->call.conn : r->slot[done->tag];
    if (rpc_link_take(&conn->link, done) != 0) {
        round_fail(conn, done);
        return;
    }
    if (conn->dead)
        return;
    if (done->kind == LINK_RECEIVE) {
        conn->heard_ms = r->now_ms;
        serve_receive(conn, done);
        return;
    }
    conn->moved_ms = r->now_ms;
    if (done->kind == LINK_RDMA)
        serve_transferred(done->cookie);
    serve_waiting(conn);
    backward_send(conn);
}

/* Takes one batch of completions and does what follows from them. Returns their number. */
static int round_take_completions(struct responder *r)
{
    struct rddp_wc wc[POLL_BATCH];
    int n = rddp_poll_cq(r->cq, POLL_BATCH, wc);

    for (int i = 0; i < n; i++) {
        struct link_done done = {.wc = wc[i]};

        round_complete(r, &done);
    }
    pull_starved(r);
    return n;
}

/* Takes the remaining completions of dead connections first: they refer to their calls. */
void responder_reap(struct responder *r)
{
    struct rpc_conn *conn;

    for (int turns = REAP_TURNS; turns && round_take_completions(r) == POLL_BATCH; turns--)
        round_flush(r);
    round_flush(r);
    while ((conn = r->dying)) {
        r->dying = conn->next_dying;
        r->stats.lost++;
        conn_take_down(conn);
    }
}

bool responder_round(struct responder *r)
{
    bool any, again;
    int turns = TURNS;

    r->in_round = true;
    r->now_ms = clock_ms();
    round_unkick(r);
    round_flush(r);
    rddp_progress(r->context, 0);
    any = responder_take_events(r);
    do {
        again = round_take_completions(r) > 0;
        again |= round_flush(r);
        any |= again;
    } while (again && --turns);
    stall_check(r);
    if (r->dying)
        responder_reap(r);
    pull_starved(r);
    stall_arm(r);
    r->in_round = false;
    if (again || r->dirty || r->dying)
        responder_kick(r);
    return any;
}

int responder_run(struct responder *r, int timeout_ms)
{
    struct pollfd fd = {.fd = r->fd, .events = POLLIN};

    spin_begin(&r->spin, r->attr.spin_us);
    while (!responder_round(r)) {
        if (timeout_ms == 0)
            return 0;
        if (spin_goes_on(&r->spin))
            continue;
        if (poll(&fd, 1, timeout_ms) < 0)
            return -errno;
        responder_round(r);
        return 0;
    }
    spin_hit(&r->spin);
    return 0;
}
