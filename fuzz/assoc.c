/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.c - messages of a peer to an association, with any indication and in any order. Memory changes only where
 * the peer may write, each request completes once, and nothing happens after the end.
 *
 * Input: an octet with our indication and the peer's, then records: an octet that selects the action, and its
 * operands. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "conn/assoc.h"
#include "fuzz/lib/arena.h"

enum { PAYLOAD = 600, KEPT = 64, STEPS_MAX = 2048, STEP_US = 1000 };
enum { DO_POST, DO_PLACE, DO_NEG, DO_RAW, DO_PUMP, DO_TICK, DO_SCRIBBLE, DO_END, DO_KINDS };

struct kept {
    uint8_t data[PAYLOAD];
    struct assoc_message m;
    bool used;
};

struct world {
    struct arena *arena;
    struct assoc assoc;
    struct window_slot *slots;
    struct kept kept[KEPT];
    uint64_t now_us;
    uint32_t aws;
};

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void give(struct world *w, struct assoc_message m)
{
    struct assoc *a = &w->assoc;
    bool over = a->life.state >= CONN_TERMINATING;
    struct assoc_signal signal;
    struct kept *k = w->kept;
    uint32_t name;

    while (k < w->kept + KEPT && k->used)
        k++;
    if (k == w->kept + KEPT)
        return;
    memcpy(k->data, m.data, m.octets);
    k->m = m;
    k->m.data = k->data;
    k->m.name = (uint32_t)(k - w->kept) + 1;
    k->used = assoc_rx(a, &k->m, w->now_us) == ASSOC_KEPT;
    assert(!over || !k->used);
    while (assoc_due(a, &name)) {
        assert(name >= 1 && name <= KEPT && w->kept[name - 1].used);
        w->kept[name - 1].used = assoc_rx(a, &w->kept[name - 1].m, w->now_us) == ASSOC_KEPT;
        assert(!w->kept[name - 1].used);
    }
    while (assoc_signal(a, &signal, w->now_us))
        assert(signal.flags && !(signal.flags & ~SCTPDDP_SIGNALS));
}

/* Mostly the next sequence number, so that inputs make progress. */
static uint32_t sequence(struct world *w, struct input *in)
{
    uint8_t jump = input8(in);

    if (jump < 200)
        return w->aws++;
    return jump < 250 ? w->aws + (jump - 200) : (uint32_t)input_number(in);
}

static void give_chunk(struct world *w, struct input *in, const struct sctpddp_chunk *chunk, uint32_t at)
{
    uint8_t p[PAYLOAD] = {0};
    size_t n = sctpddp_encode(w->assoc.peer, chunk, p);

    memcpy(p + n, chunk->data, chunk->length);
    give(w, (struct assoc_message){
                .data = p,
                .octets = (uint32_t)n + chunk->length,
                .tsn = at,
                .stream = input8(in) & 31,
                .whole = true,
            });
}

static void place(struct world *w, struct input *in)
{
    uint8_t data[256];
    struct sctpddp_chunk chunk = {.data = data};

    chunk.aws = sequence(w, in);
    chunk.mode = w->assoc.peer > SCTPDDP_DDP_WITH_TAG ? SCTPDDP_MODE_RDMA : (uint32_t)w->assoc.peer;
    if (input8(in) > 250)
        chunk.mode = input8(in);
    chunk.flags = input8(in) < 64 ? (uint8_t)(input8(in) & SCTPDDP_SIGNALS) : 0;
    chunk.tag = input8(in) < 128 ? input8(in) & 7 : w->assoc.read[input8(in) & 3].tag;
    chunk.offset = input_number(in);
    chunk.length = input8(in);
    memset(data, input8(in), sizeof(data));
    give_chunk(w, in, &chunk, chunk.aws);
}

static void negotiate(struct world *w, struct input *in)
{
    uint8_t p[256];
    struct sctpddp_chunk chunk = {.data = p, .mode = SCTPDDP_NO_PLACEMENT};
    struct neg neg = {.type = (enum neg_type)(input8(in) % 4 + 1), .flags = input8(in) & 31};
    uint32_t space;

    chunk.aws = sequence(w, in);
    neg.id = input8(in);
    neg.ird = neg.ord = input8(in);
    neg.offset = (uint32_t)input_number(in);
    neg.value = input8(in) & 7;
    neg.source_tag = input8(in) & 7;
    neg.sink_tag = input8(in);
    neg.source_offset = input_number(in);
    neg.length = (uint32_t)input_number(in);
    chunk.length = (uint32_t)neg_encode(&neg, p);
    space = input8(in) & 127;
    if (neg.type <= NEG_SEND) {
        memset(p + chunk.length, input8(in), space);
        chunk.length += space;
    }
    give_chunk(w, in, &chunk, chunk.aws);
}

static void raw(struct world *w, struct input *in)
{
    uint8_t p[PAYLOAD];
    uint32_t n = (uint32_t)input_octets(in, p, input8(in));

    give(w, (struct assoc_message){.data = p, .octets = n, .tsn = sequence(w, in), .whole = input8(in) & 1});
}

static void pump(struct world *w)
{
    struct assoc *a = &w->assoc;
    struct assoc_chunk chunk;
    char reason[NEG_REASON_MAX];

    assoc_check(a, w->now_us);
    for (unsigned i = 0; i < 64 && assoc_wants(a) & ASSOC_TX && assoc_emit(a, &chunk, w->now_us); i++) {
        uint32_t octets = chunk.head_length;

        for (uint32_t k = 0; k < chunk.emit.spans; k++)
            octets += chunk.emit.span[k].length;
        assert(octets <= PAYLOAD);
        assoc_sent(a, chunk.end, w->now_us);
    }
    if (assoc_wants(a) & ASSOC_FIN)
        assoc_fin(a, w->now_us);
    if (assoc_wants(a) & ASSOC_ABORT) {
        assert(assoc_reason(a, reason) <= NEG_REASON_MAX);
        assoc_lost(a, FAULT_LOST);
    }
    if (a->life.state == CONN_WAIT_ANSWER)
        assert(assoc_accept(a, &w->arena->qp, 4, 4, NULL, 0) == 0);
    a->life.news = 0;
}

static void one_step(struct world *w, struct input *in)
{
    char reason[64];

    switch (input8(in) % DO_KINDS) {
    case DO_POST:
        arena_post(w->arena, in);
        break;
    case DO_PLACE:
        place(w, in);
        break;
    case DO_NEG:
        negotiate(w, in);
        break;
    case DO_RAW:
        raw(w, in);
        break;
    case DO_PUMP:
        pump(w);
        break;
    case DO_TICK:
        w->now_us += STEP_US;
        assoc_tick(&w->assoc, w->now_us);
        break;
    case DO_SCRIBBLE:
        arena_poll(w->arena);
        break;
    default:
        if (input8(in) < 240)
            break;
        if (input8(in) & 1)
            assoc_peer_aborted(&w->assoc, reason, input_octets(in, (uint8_t *)reason, sizeof(reason)), w->now_us);
        else
            assoc_peer_ended(&w->assoc, w->now_us);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct input in = {input, input + length};
    uint8_t kinds = input8(&in);
    struct assoc_attr attr = {
        .adaptation = (enum sctpddp_adaptation)((kinds & 0x7f) % SCTPDDP_ADAPTATIONS),
        .ird = 4,
        .ord = 4,
        .seed = 1,
        .limits = {.startup_us = 1000000, .stall_us = 100000, .close_us = 100000},
    };
    struct world *w = calloc(1, sizeof(*w));

    if (!w)
        return 0;
    w->arena = arena_open(8, 4);
    w->slots = calloc(WINDOW_CHUNKS, sizeof(*w->slots));
    assert(w->slots);
    if (kinds & 0x80)
        assoc_init_passive(&w->assoc, &attr, w->slots, 0);
    else
        assoc_init_active(&w->assoc, &attr, w->slots, &w->arena->qp, NULL, 0, 0);
    assoc_up(&w->assoc, (kinds >> 3 & 15) % 7, 0, PAYLOAD, 0);
    for (unsigned i = 0; i < ASSOC_STREAMS; i++)
        assoc_bind(&w->assoc, (uint16_t)i, i & 7);
    for (unsigned i = 0; i < STEPS_MAX && input_left(&in); i++)
        one_step(w, &in);
    pump(w);
    assoc_lost(&w->assoc, FAULT_LOST);
    pump(w);
    if (w->arena->qp.state != QP_ERROR)
        qp_fail(&w->arena->qp, &(struct fault_note){.fault = FAULT_LOST});
    arena_close(w->arena);
    free(w->slots);
    free(w);
    return 0;
}
