/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_window.c - the window of a requester on a path in virtual time: a rate, a queue, delays, and packets lost at
 * random (ROCE-REQ-19). Beside it, if wanted, a flow that follows losses as CUBIC does (RFC 9438). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/psn.h"
#include "roce/rc_requester.h"
#include "roce/rc_responder.h"
#include "tests/lib/rng.h"

enum {
    MTU = 1024,
    MESSAGE = 64 * MTU,
    SLOTS = 64,
    HOPS = 1 << 16,
    MILLION = 1000000,
};

/* Something under way, to one end or the other. */
struct hop {
    uint64_t at_us, position;
    bool ask, rival;
    uint8_t flags, syndrome;
};

/* All take the same time, so they arrive in the order in which they left. */
struct hops {
    struct hop hop[HOPS];
    uint32_t head, tail;
};

struct path {
    uint32_t trip_us, loss; /* of a million, each way */
    uint32_t packet_ns;     /* that the path takes for one */
    uint32_t queue;         /* packets that may wait */
    uint32_t run_s;         /* 0: RUN_S */
    bool keeps;             /* the peer keeps what arrives behind a gap */
    uint32_t stall_us;      /* the peer's process waits that long for a processor, half of the time; 0: never */
};

/* Whoever sends copies of what was lost alone. */
struct rival {
    double window, most, since_us; /* in packets; before the last loss, and when that was */
    double until_most_s;
    uint64_t sent, acked, recover;
    uint64_t delivered;
};

static struct world {
    struct path path;
    struct rng rng;
    uint64_t now_us, free_ns;
    struct hops there, back;
    struct rc_request ring[SLOTS];
    struct rc_requester q;
    struct rc_responder s;
    struct rc_pool pool;
    bool has_rival;
    uint64_t stall_us, stall_end_us; /* when the peer's process is going to wait, or has begun to */
    struct rival rival;
} w;

static void put(struct hops *hops, struct hop hop)
{
    assert_true(hops->head - hops->tail < HOPS);
    if (hop.at_us)
        hops->hop[hops->head++ % HOPS] = hop;
}

static struct hop *next_of(struct hops *hops)
{
    return hops->head == hops->tail ? NULL : &hops->hop[hops->tail % HOPS];
}

static bool is_lost(void)
{
    return rng_below(&w.rng, MILLION) < w.path.loss;
}

/* Through the queue, which all flows share. Returns 0 if the packet is lost. */
static uint64_t arrival_us(void)
{
    uint64_t now_ns = w.now_us * 1000, start_ns = w.free_ns > now_ns ? w.free_ns : now_ns;

    if (start_ns - now_ns > (uint64_t)w.path.queue * w.path.packet_ns)
        return 0;
    w.free_ns = start_ns + w.path.packet_ns / 2 + rng_below(&w.rng, w.path.packet_ns);
    return is_lost() ? 0 : w.free_ns / 1000 + w.path.trip_us / 2;
}

/* --- ours -------------------------------------------------------------------------------------------------------- */

static uint8_t flags_of(const struct rc_outgoing *out)
{
    return (uint8_t)((out->first ? BTH_FIRST : 0u) | (out->last ? BTH_LAST : 0u) | (out->ask ? BTH_ACK_REQUEST : 0u));
}

static void ours_send(void)
{
    struct rc_outgoing out;

    do {
        if (rc_requester_wants(&w.q, w.now_us))
            rc_requester_add(&w.q, RC_MESSAGE, MESSAGE, 0, RC_ASK_ALWAYS);
        if (!rc_requester_next(&w.q, &out, w.now_us))
            return;
        put(&w.there, (struct hop){.at_us = arrival_us(), .position = out.position, .flags = flags_of(&out)});
    } while (true);
}

static void answer(void)
{
    struct bth b;

    while (rc_responder_acknowledge(&w.s, &b, w.now_us))
        if (!is_lost())
            put(&w.back, (struct hop){.at_us = w.now_us + w.path.trip_us / 2,
                                      .position = psn_unwrap(w.s.expected, b.psn),
                                      .syndrome = b.syndrome});
}

static void ours_arrives(const struct hop *hop)
{
    static const uint8_t octets[MTU];
    const struct bth arrived = {
        .op = BTH_SEND, .flags = hop->flags, .psn = psn_wire(hop->position), .length = MTU, .data = octets};
    const struct bth *b = &arrived;

    do {
        if (rc_responder_take(&w.s, b, w.now_us) == RC_EXECUTE)
            rc_responder_executed(&w.s, b, w.now_us);
    } while ((b = rc_responder_kept(&w.s, w.now_us)));
    answer();
}

/* --- the rival --------------------------------------------------------------------------------------------------- */

static void rival_send(void)
{
    struct rival *r = &w.rival;

    while ((double)(r->sent - r->acked) < r->window) {
        uint64_t at_us = arrival_us();

        /* That one was lost is known when the packets behind it are acknowledged. */
        put(&w.there, (struct hop){.at_us = at_us ? at_us : w.now_us + w.path.trip_us / 2 + 1,
                                   .position = r->sent++,
                                   .ask = !at_us,
                                   .rival = true});
    }
}

/* By Newton's method. */
static double cube_root(double x)
{
    double root = 1 + x / 3;

    for (int i = 0; i < 20; i++)
        root -= (root - x / (root * root)) / 3;
    return root;
}

static void rival_hears(const struct hop *hop)
{
    struct rival *r = &w.rival;
    double t, cubic;

    r->acked++;
    r->delivered += !hop->ask;
    if (hop->ask && hop->position >= r->recover) {
        r->most = r->window;
        r->window = r->window * 0.7 > 2 ? r->window * 0.7 : 2;
        r->since_us = (double)w.now_us;
        r->until_most_s = cube_root(0.3 * r->most / 0.4);
        r->recover = r->sent;
    } else if (r->most == 0) {
        r->window++;
    } else {
        t = ((double)w.now_us - r->since_us) / 1e6;
        t -= r->until_most_s;
        cubic = 0.4 * t * t * t + r->most;
        r->window += cubic > r->window ? (cubic - r->window) / r->window : 0.53 / r->window;
    }
}

/* --- the peer's process ------------------------------------------------------------------------------------------- */

/* When it takes what has arrived at that time, which is now or later. */
static uint64_t taken_us(uint64_t at_us)
{
    while (w.path.stall_us && at_us >= w.stall_end_us) {
        w.stall_us = w.stall_end_us + 1 + rng_below(&w.rng, 2 * w.path.stall_us);
        w.stall_end_us = w.stall_us + w.path.stall_us;
    }
    return w.path.stall_us && at_us >= w.stall_us ? w.stall_end_us : at_us;
}

/* --- time -------------------------------------------------------------------------------------------------------- */

static void earlier(uint64_t *at_us, uint64_t other_us)
{
    if (other_us < *at_us)
        *at_us = other_us;
}

static uint64_t later(uint64_t a_us, uint64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

static void all_arrive(void)
{
    struct hop *hop;

    while ((hop = next_of(&w.there)) && hop->at_us <= w.now_us && taken_us(w.now_us) == w.now_us) {
        struct hop here = *hop;

        w.there.tail++;
        if (here.rival)
            put(&w.back,
                (struct hop){
                    .at_us = w.now_us + w.path.trip_us / 2, .position = here.position, .ask = here.ask, .rival = true});
        else
            ours_arrives(&here);
    }
    answer();
    while ((hop = next_of(&w.back)) && hop->at_us <= w.now_us) {
        struct hop here = *hop;

        w.back.tail++;
        if (here.rival)
            rival_hears(&here);
        else
            rc_requester_acknowledged(&w.q, psn_wire(here.position), here.syndrome, w.now_us);
    }
}

static void goes_on(uint64_t until_us)
{
    while (w.now_us < until_us) {
        uint64_t at_us = until_us;

        ours_send();
        if (w.has_rival)
            rival_send();
        if (next_of(&w.there))
            earlier(&at_us, taken_us(later(next_of(&w.there)->at_us, w.now_us)));
        if (next_of(&w.back))
            earlier(&at_us, next_of(&w.back)->at_us);
        earlier(&at_us, rc_responder_deadline(&w.s));
        earlier(&at_us, rc_requester_deadline(&w.q));
        w.now_us = at_us > w.now_us ? at_us : w.now_us;
        all_arrive();
        if (rc_requester_deadline(&w.q) <= w.now_us)
            rc_requester_tick(&w.q, w.now_us);
        assert_int_equal(w.q.why, RC_GOES_ON);
    }
}

/* Returns the packets of ours that arrive in a second, on average over `seconds`. */
static double rate(const struct path *path, bool rival, uint32_t seconds, uint64_t seed)
{
    const struct rc_requester_attr attr = {.mtu = MTU, .timeout_us = 500000, .retries = 7, .rnr_retries = 7};
    const struct rc_responder_attr answers = {.mtu = MTU, .reads = 1, .pool = path->keeps ? &w.pool : NULL};
    static uint64_t memory[64], cells[RC_KEEP_SPAN * (sizeof(struct rc_cell) + BTH_MTU_MAX) / 8];
    uint64_t first;

    memset(&w, 0, sizeof(w));
    assert_true(rc_responder_size(1) <= sizeof(memory) && rc_pool_size(RC_KEEP_SPAN) <= sizeof(cells));
    rc_pool_init(&w.pool, cells, RC_KEEP_SPAN);
    w.path = *path;
    w.has_rival = rival;
    w.rival.window = 10;
    w.now_us = 1;
    w.rng = (struct rng){seed};
    rc_requester_init(&w.q, &attr, w.ring, SLOTS);
    rc_responder_init(&w.s, &answers, memory);
    first = w.s.expected;
    goes_on((uint64_t)seconds * MILLION);
    return (double)(w.s.expected - first) / seconds;
}

/* --- what it must reach ------------------------------------------------------------------------------------------- */

enum { SEEDS = 5, RUN_S = 4 };

/* The mean over some seeds: `share`: of what both deliver, else packets of ours in a second. */
static double mean(const struct path *path, bool share)
{
    uint32_t run_s = path->run_s ? path->run_s : RUN_S;
    double sum = 0, ours;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        ours = rate(path, share, run_s, seed);
        sum += share ? ours / (ours + (double)w.rival.delivered / run_s) : ours;
    }
    return sum / SEEDS;
}

/* A path of 111 packets a millisecond and of 1 ms loses one in a hundred: the queue is empty, so nothing is gained by
 * sending less. Whatever the window, a go-back-N cannot do better there than 100 packets a round trip. The peer
 * drops what comes behind a gap, as Linux's rxe does. In all of these the peer answers by our own responder. */
static void losses_by_chance(void **state)
{
    struct path path = {.trip_us = 1000, .packet_ns = 9000, .queue = 20000};
    double whole = mean(&path, false);

    (void)state;
    path.loss = 10000;
    assert_true(mean(&path, false) >= 0.3 * whole);
    path.loss = 1000;
    assert_true(mean(&path, false) >= 0.6 * whole);
    path.loss = 50000;
    assert_true(mean(&path, false) >= 0.05 * whole);
}

/* A peer that keeps what arrives behind a gap is sent what it lacks: no round trip is lost by a gap, but each finds
 * only one. */
static void losses_by_chance_kept(void **state)
{
    struct path path = {.trip_us = 1000, .packet_ns = 9000, .queue = 20000, .keeps = true};
    double whole = mean(&path, false);

    (void)state;
    path.loss = 10000;
    assert_true(mean(&path, false) >= 0.6 * whole);
    path.loss = 1000;
    assert_true(mean(&path, false) >= 0.9 * whole);
    path.loss = 50000;
    assert_true(mean(&path, false) >= 0.3 * whole);
    path.loss = 10000;
    path.stall_us = 300;
    assert_true(mean(&path, false) >= 0.5 * whole);
    path.stall_us = 0;
    path.trip_us = 20000;
    assert_true(mean(&path, false) >= 4500);
}

/* A path of 270 packets a millisecond. */
static void losses_by_chance_on_a_fast_path(void **state)
{
    struct path path = {.trip_us = 1000, .packet_ns = 3700, .queue = 20000, .keeps = true};
    double whole = mean(&path, false);

    (void)state;
    path.loss = 10000;
    assert_true(mean(&path, false) >= 0.35 * whole);
}

/* As in losses_by_chance(), but processes share processors: many round trips are longer by up to 0.3 ms, without a
 * queue either. */
static void losses_by_chance_and_stalls(void **state)
{
    struct path path = {.trip_us = 1000, .packet_ns = 9000, .queue = 20000, .stall_us = 300};
    double whole = mean(&path, false);

    (void)state;
    path.loss = 10000;
    assert_true(mean(&path, false) >= 0.25 * whole);

    path.stall_us = 1000; /* so that packets time out that arrive: no round trip may seem short by that */
    assert_true(mean(&path, false) >= 0.2 * whole);
    path.stall_us = 3000;
    assert_true(mean(&path, false) >= 0.15 * whole);
    path.keeps = true;
    assert_true(mean(&path, false) >= 0.35 * whole);
}

/* Losses that come with a queue are those of the window: beside CUBIC it takes a fair part. */
static void losses_of_a_queue(void **state)
{
    static const struct path paths[] = {
        {.trip_us = 20000, .packet_ns = 170000, .queue = 59, .run_s = 120}, /* 10 ms of queue each */
        {.trip_us = 10000, .packet_ns = 17000, .queue = 588},
        {.trip_us = 1000, .packet_ns = 17000, .queue = 588},
        {.trip_us = 20000, .packet_ns = 170000, .queue = 59, .run_s = 120, .keeps = true},
        {.trip_us = 10000, .packet_ns = 17000, .queue = 588, .keeps = true},
        {.trip_us = 1000, .packet_ns = 17000, .queue = 588, .keeps = true},
        {.trip_us = 1000, .packet_ns = 3700, .queue = 2700, .keeps = true},
        {.trip_us = 4900, .packet_ns = 34000, .queue = 294},
        {.trip_us = 4900, .packet_ns = 34000, .queue = 294, .keeps = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        double part = mean(&paths[i], true);

        if (part < 0.2 || part > 0.85)
            fail_msg("path %zu: %.2f of what is delivered", i, part);
    }
}

/* A queue of a tenth of the path is no sign of a large window, but bursts lose there: half of the path is used. */
static void losses_of_bursts(void **state)
{
    struct path path = {.trip_us = 10000, .packet_ns = 17000, .queue = 60};

    (void)state;
    assert_true(mean(&path, false) * path.packet_ns >= 0.45e9);
    path.keeps = true;
    assert_true(mean(&path, false) * path.packet_ns >= 0.45e9);
}

/* A window grows by a packet now and then. That one is acknowledged with what follows it: if it asked for an
 * acknowledgement, it would be followed alone, and so on, until each packet left alone and was acknowledged alone. */
static void few_are_acknowledged_alone(void **state)
{
    enum { PACKETS = 100000 };
    const struct rc_requester_attr attr = {.mtu = MTU, .timeout_us = 500000, .window = 512};
    uint64_t asked[SLOTS], asks = 0, answered = 0;
    struct rc_outgoing out = {.position = 0};

    (void)state;
    rc_requester_init(&w.q, &attr, w.ring, SLOTS);
    w.q.congestion.threshold = RC_WINDOW_FIRST; /* it grows slowly */
    rc_requester_add(&w.q, RC_MESSAGE, 2 * PACKETS * MTU, 0, RC_ASK_LAST);
    for (w.now_us = 1; out.position < w.ring[0].psn + PACKETS; w.now_us += 10) {
        while (rc_requester_next(&w.q, &out, w.now_us))
            if (out.ask)
                asked[asks++ % SLOTS] = out.position;
        assert_in_range(asks - answered, 1, SLOTS);
        rc_requester_acknowledged(&w.q, psn_wire(asked[answered++ % SLOTS]), AETH_ACK | AETH_NO_CREDITS, w.now_us);
    }
    assert_true(w.q.congestion.window > 256);
    assert_in_range(asks, PACKETS / 512, PACKETS / 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_acknowledged_alone),
        cmocka_unit_test(losses_by_chance),
        cmocka_unit_test(losses_by_chance_kept),
        cmocka_unit_test(losses_by_chance_on_a_fast_path),
        cmocka_unit_test(losses_by_chance_and_stalls),
        cmocka_unit_test(losses_of_a_queue),
        cmocka_unit_test(losses_of_bursts),
    };

    return cmocka_run_group_tests_name("roce_window", tests, NULL, NULL);
}
