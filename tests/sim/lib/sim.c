/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim.c - a run: a random actor among those with something to do goes next; then the clock advances. */
#include "tests/sim/lib/sim.h"

#include <stdlib.h>

#include "tests/sim/lib/ending.h"
#include "tests/sim/lib/report.h"

enum { STEPS_MAX = 20000000, START_US = 1000000, TRIES_MAX = 3000 };

static bool is_over(const struct sim *s)
{
    return s->stack[0].over && s->stack[1].over;
}

static bool is_in_order(const struct sim *s)
{
    return s->ending == ending_in_order();
}

static bool is_exhausted(const struct sim *s)
{
    return (s->party[0].counts.requests >= s->work.budget && s->party[1].counts.requests >= s->work.budget) ||
           s->app_turns > 30 * s->work.budget + 200;
}

/* --- how it ends --------------------------------------------------------------------------------------------- */

/* Is everything done and seen? After the last Send of each side all that was before it has been placed. */
static bool is_finished(const struct sim *s)
{
    return s->finale == 3 && party_is_idle(&s->party[0]) && party_is_idle(&s->party[1]);
}

static void post_finale(struct sim *s, int side)
{
    struct party *p = &s->party[side];
    struct request *r;

    if (s->finale & 1u << side)
        return;
    if (!p->peer->promised && !work_receive(p->peer, 0, 1))
        return;
    r = work_request(p, RDDP_WR_SEND, 0);
    if (!r)
        return;
    r->flags = RDDP_SEND_SIGNALED;
    if (party_post(p, r))
        s->finale |= 1u << side;
    else
        request_free(r);
}

static bool is_due(const struct sim *s)
{
    uint64_t requests = s->party[0].counts.requests + s->party[1].counts.requests;

    if (is_in_order(s))
        return is_finished(s);
    return requests >= s->strike_at || is_exhausted(s);
}

static void strike(struct sim *s)
{
    bool established = s->stack[0].conn.life.established && s->stack[1].conn.life.established;

    if (s->struck || !is_due(s))
        return;
    /* The ending may never become possible. */
    if (s->tries++ > TRIES_MAX && !(s->ending->flags & REJECTS))
        s->ending = ending_in_order() + 1;
    if (!s->ending->strike(s))
        return;
    s->struck = true;
    s->was_established = established;
    stack_pump(&s->stack[0], s->now_us);
    stack_pump(&s->stack[1], s->now_us);
}

/* Nothing will happen any more by itself: makes something happen. */
static void nudge(struct sim *s)
{
    if (!s->struck || s->closing)
        report_failure("nothing moves: states %d and %d", (int)s->stack[0].conn.life.state,
                       (int)s->stack[1].conn.life.state);
    s->closing = true;
    for (int i = 0; i < 2; i++) {
        conn_close(&s->stack[i].conn, s->now_us);
        stack_pump(&s->stack[i], s->now_us);
    }
}

/* --- the applications ---------------------------------------------------------------------------------------- */

static bool is_blind(const struct sim *s, int side)
{
    return s->struck && s->ending->flags & BLINDS && side == s->struck_side;
}

static bool may_work(const struct sim *s, int side)
{
    if (s->stack[side].detached || s->closing || is_exhausted(s) || (s->struck && is_in_order(s)))
        return false;
    return !s->struck || !(s->ending->flags & ENDS) || rng_one_in(&(struct rng){s->app_turns}, 3);
}

static bool has_request(const struct sim *s, int side)
{
    const struct stack *t = &s->stack[side];

    return t->conn.life.state == CONN_WAIT_ANSWER && !(s->ending->flags & REJECTS) && !t->detached;
}

static void answer(struct sim *s, int side)
{
    struct stack *t = &s->stack[side];

    if (has_request(s, side) && conn_accept(&t->conn, &t->qp, t->attr.conn.ird, t->attr.conn.ord, "reply",
                                            t->attr.wire->frames_at_once ? 0 : 5, s->now_us))
        report_failure("conn_accept() refuses");
}

static bool has_completions(const struct sim *s, int side)
{
    const struct stack *t = &s->stack[side];

    return !is_blind(s, side) && (!cq_is_empty(&t->send_cq) || !cq_is_empty(&t->recv_cq));
}

/* Returns when the application wakes up by itself: now, as long as it finds work. */
static uint64_t sleep_until(struct sim *s, int side)
{
    bool idle = s->struck || (is_in_order(s) && s->finale == 3);

    if (idle && !may_work(s, side) && !has_completions(s, side) && !has_request(s, side))
        return UINT64_MAX;
    return s->now_us + ((uint64_t)(1 + rng_size(&s->rng, s->think_us)) << (s->idle[side] < 16 ? s->idle[side] : 16));
}

/* Wakes an application on a completion or a request, or on what it is waiting for. */
static void wake(struct sim *s, int side)
{
    uint64_t at_us = s->now_us + rng_size(&s->rng, s->think_us);

    if ((has_completions(s, side) || has_request(s, side)) && at_us < s->app_us[side])
        s->app_us[side] = at_us;
}

static void app_turn(struct sim *s, int side)
{
    struct stack *t = &s->stack[side];
    bool busy = has_request(s, side);

    s->app_turns++;
    answer(s, side);
    for (uint32_t n = rng_below(&s->rng, 8); n; n--)
        busy |= may_work(s, side) && work_step(&s->party[side], &s->work);
    if (s->work.hot)
        work_stir(&s->party[side]);
    if (!is_blind(s, side) && rng_below(&s->rng, 3))
        busy |= party_poll(&s->party[side]);
    s->idle[side] = busy ? 0 : s->idle[side] + 1;
    if (is_in_order(s) && is_exhausted(s))
        post_finale(s, side);
    if (rng_one_in(&s->rng, 16))
        t->conn.attr.emss = rng_between(&s->rng, 200, 65483);
    stack_pump(t, s->now_us);
    strike(s);
    s->app_us[side] = sleep_until(s, side);
}

/* --- the clock ----------------------------------------------------------------------------------------------- */

enum { ACTORS = 5 };

/* Returns when an actor is due: the two hosts, the two applications, the side that closes a little later. */
static uint64_t due_us(const struct sim *s, int actor)
{
    if (actor < 2)
        return stack_next_us(&s->stack[actor], s->now_us);
    if (actor < 4)
        return s->app_us[actor - 2];
    return s->other_close_us ? s->other_close_us : UINT64_MAX;
}

static void act(struct sim *s, int actor)
{
    if (actor < 2) {
        stack_turn(&s->stack[actor], s->now_us);
        wake(s, actor);
    } else if (actor < 4) {
        app_turn(s, actor - 2);
    } else {
        s->other_close_us = 0;
        conn_close(&s->stack[!s->struck_side].conn, s->now_us);
        stack_pump(&s->stack[!s->struck_side], s->now_us);
    }
}

static void step(struct sim *s)
{
    uint64_t next_us = UINT64_MAX;
    int first = (int)rng_below(&s->rng, ACTORS);

    for (int i = 0; i < ACTORS; i++) {
        int actor = (first + i) % ACTORS;
        uint64_t at_us = due_us(s, actor);

        if (at_us <= s->now_us) {
            act(s, actor);
            return;
        }
        next_us = at_us < next_us ? at_us : next_us;
    }
    if (next_us == UINT64_MAX)
        nudge(s);
    else
        s->now_us = next_us;
}

/* --- the run ------------------------------------------------------------------------------------------------- */

/* Requests of a queue pair that was never connected are ended by its owner. */
static void end_queues(struct sim *s, int side)
{
    const struct fault_note none = {.fault = FAULT_NONE};
    struct stack *t = &s->stack[side];

    if (t->detached || t->qp.state == QP_ERROR)
        return;
    if (t->conn.life.qp)
        report_failure("side %d is over and its queue pair is not", side);
    qp_fail(&t->qp, &none);
}

static void judge(struct sim *s)
{
    for (int i = 0; i < 2; i++)
        end_queues(s, i);
    while (party_poll(&s->party[0]) || party_poll(&s->party[1]))
        ;
    if (!s->struck)
        report_failure("over before anything ended it: %s; %s", fault_text(s->stack[0].conn.life.note.fault),
                       fault_text(s->stack[1].conn.life.note.fault));
    ending_judge(s);
    party_judge(&s->party[0]);
    party_judge(&s->party[1]);
    if (is_in_order(s) && s->party[0].counts.flushed + s->party[1].counts.flushed)
        report_failure("requests were flushed though everything was done");
}

static void count(const struct sim *s, struct tally *tally)
{
    const struct conn *c = &s->stack[0].conn;

    tally->runs++;
    tally->crc += c->agreed.crc;
    tally->markers += c->agreed.tx_markers || c->agreed.rx_markers;
    tally->peer_to_peer += c->start.rtr != 0;
    tally->immediate += c->attr.immediate;
    for (int i = 0; i < 2; i++) {
        tally->shared += s->stack[i].attr.shared;
        tally->early += s->stack[i].early;
        tally->apart += s->stack[i].apart;
        tally->straight += s->stack[i].straight;
        tally->told += s->party[i].counts.told;
        tally->requests += s->party[i].counts.requests;
        tally->receives += s->party[i].counts.receives;
        tally->octets += s->party[i].counts.octets;
        tally->flushed += s->party[i].counts.flushed;
    }
}

void sim_run(uint64_t seed, const struct wire *wire, struct tally *tally)
{
    struct sim *s = calloc(1, sizeof(*s));
    uint64_t steps = 0;

    report_begin(seed);
    if (!s)
        report_failure("no memory");
    s->now_us = START_US;
    sim_draw(s, seed, wire);
    for (int i = 0; i < 2; i++)
        stack_start(&s->stack[i], i == 0, &s->link[i], &s->link[!i], s->now_us);
    while (!is_over(s)) {
        step(s);
        if (steps++ > STEPS_MAX)
            report_failure("does not come to an end: states %d and %d", (int)s->stack[0].conn.life.state,
                           (int)s->stack[1].conn.life.state);
    }
    judge(s);
    count(s, tally);
    report_end();
    for (int i = 0; i < 2; i++) {
        party_fini(&s->party[i]);
        stack_fini(&s->stack[i]);
        link_fini(&s->link[i]);
    }
    free(s);
}
