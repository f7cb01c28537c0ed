/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_responder.c - executes requests in order and once, and answers in order: responses, acknowledgements, NAKs. */
#include "roce/rc_responder.h"

#include <assert.h>
#include <stddef.h>

#include "base/ring.h"
#include "roce/psn.h"

enum { AT_ONCE = 1 /* a time that has passed: such an acknowledgement is not withheld */ };

size_t rc_responder_size(uint32_t reads)
{
    return ring_slots(reads) * (2 * sizeof(struct rc_answer) + sizeof(struct rc_result));
}

void rc_responder_init(struct rc_responder *s, const struct rc_responder_attr *attr, void *buffer)
{
    assert(attr->reads <= RC_READS_MAX);
    *s = (struct rc_responder){
        .attr = *attr, .expected = psn_first(attr->psn), .answers = buffer, .mask = ring_slots(attr->reads) - 1};
    s->not_ready.at = UINT64_MAX;
    s->acked = s->expected;
    s->kept.pool = attr->pool;
    s->again = s->answers + s->mask + 1;
    s->results = (struct rc_result *)(s->again + s->mask + 1);
}

void rc_responder_fini(struct rc_responder *s)
{
    if (s->kept.pool)
        rc_kept_clear(&s->kept);
}

static struct rc_answer *answer_at(struct rc_responder *s, uint32_t i)
{
    return &s->answers[i & s->mask];
}

static bool is_atomic_request(enum bth_op op)
{
    return op == BTH_CMP_SWAP || op == BTH_FETCH_ADD;
}

static bool responder_is_answered(enum bth_op op)
{
    return op == BTH_READ_REQUEST || is_atomic_request(op);
}

/* --- is the packet a right one? ---------------------------------------------------------------------------------- */

/* Sends and Writes: First, Middle, Last in turn, of the right lengths. */
static bool responder_continues(const struct rc_responder *s, const struct bth *b)
{
    bool first = b->flags & BTH_FIRST, last = b->flags & BTH_LAST;
    uint32_t got = first ? 0 : s->got, total = first ? b->dma_length : s->total;

    if (first ? s->inside : !s->inside || s->op != b->op)
        return false;
    if (last ? b->length > s->attr.mtu || (!first && !b->length) : b->length != s->attr.mtu)
        return false;
    if (b->op == BTH_SEND)
        return b->length <= UINT32_MAX - got;
    return total >= got && (last ? b->length == total - got : b->length < total - got);
}

static bool is_valid(const struct rc_responder *s, const struct bth *b)
{
    if (!responder_is_answered(b->op))
        return responder_continues(s, b);
    if (s->inside || s->answer_head - s->answer_tail >= s->attr.reads)
        return false;
    return !is_atomic_request(b->op) || !(b->address & 7);
}

static enum rc_verdict begin(struct rc_responder *s, const struct bth *b)
{
    if (b->flags & BTH_FIRST) {
        s->got = 0;
        s->total = b->dma_length;
        s->op = b->op;
    }
    return RC_EXECUTE;
}

/* --- duplicates -------------------------------------------------------------------------------------------------- */

static const struct rc_result *find_result(const struct rc_responder *s, uint64_t position)
{
    for (uint32_t i = 0; i <= s->mask; i++)
        if (s->results[i].position == position)
            return &s->results[i];
    return NULL;
}

/* A Read is executed again, an atomic never: its result was kept. What still waits for its first response needs no
 * second one. */
static void answer_again(struct rc_responder *s, const struct bth *b, uint64_t position)
{
    struct rc_answer *a = &s->again[s->again_head & s->mask];
    const struct rc_result *result = is_atomic_request(b->op) ? find_result(s, position) : NULL;

    if (s->answer_tail != s->answer_head && position >= answer_at(s, s->answer_tail)->position)
        return;
    if (s->again_head - s->again_tail >= s->attr.reads || (is_atomic_request(b->op) && !result))
        return;
    *a = (struct rc_answer){
        .position = position,
        .packets = is_atomic_request(b->op) ? 1 : psn_packets(b->dma_length, s->attr.mtu),
        .msn = s->msn,
        .atomic = is_atomic_request(b->op),
        .original = result ? result->original : 0,
        .address = b->address,
        .r_key = b->r_key,
        .length = b->dma_length,
    };
    if (a->packets <= s->expected - position)
        s->again_head++;
}

static void see_unskipped(struct rc_responder *s)
{
    s->back.skipped = 0;
    if (++s->back.unskipped < RC_NO_SKIPS)
        return;
    s->back.skips = false;
    s->back.shown = 0;
}

/* It is acknowledged with the newest PSN. Of several the last one asks for it, and before that the peer may not have
 * sent again as much: Linux's rxe says no more if it sees a message acknowledged while it repeats it. */
static void duplicate(struct rc_responder *s, const struct bth *b, uint64_t position, uint64_t now_us)
{
    s->duplicates++;
    if (position == s->back.skipped)
        see_unskipped(s);
    if (responder_is_answered(b->op))
        answer_again(s, b, position);
    else if (b->flags & BTH_ACK_REQUEST)
        s->ack_us = AT_ONCE;
    else if (!s->ack_us)
        s->ack_us = now_us + RC_ACK_DELAY_US;
}

/* --- arriving ---------------------------------------------------------------------------------------------------- */

static void give_nak(struct rc_responder *s, uint8_t syndrome)
{
    s->syndrome = syndrome;
    s->nak = s->expected;
    s->nak_due = s->silent = true;
}

/* A gap makes the message void that is arriving; the next one begins with a First. */
static enum rc_verdict take_unreliable(struct rc_responder *s, const struct bth *b, uint64_t position)
{
    bool gap = position != s->expected;

    s->gaps += gap;
    if (s->inside && (gap || !responder_continues(s, b))) {
        s->inside = false;
        return RC_DISCARD;
    }
    s->expected = position;
    if (!responder_is_answered(b->op) && responder_continues(s, b))
        return begin(s, b);
    s->expected++;
    return RC_DROP;
}

static void see_skipped(struct rc_responder *s)
{
    if (++s->back.shown < RC_SHOWN)
        return;
    s->back.skips = true;
    s->back.unskipped = 0;
}

/* What comes behind a gap is judged when its turn comes. If the peer has come back to the gap, and goes on behind what
 * was kept, it skips that, unless all that it sent again was lost once more. */
static void take_early(struct rc_responder *s, const struct bth *b, uint64_t position)
{
    bool again = s->kept.last && position <= s->kept.last->position, many = s->kept.count >= RC_SKIPS;

    (void)rc_kept_put(&s->kept, b, position, s->expected, s->attr.mtu);
    if (s->silent)
        return;
    s->back.reach = position;
    if (again)
        s->back.shown = 0;
    else if (many && s->kept.first->position == s->expected)
        see_skipped(s);
}

enum rc_verdict rc_responder_take(struct rc_responder *s, const struct bth *b, uint64_t now_us)
{
    uint64_t position = psn_unwrap(s->expected, b->psn);

    if (s->refused)
        return RC_DROP;
    if (s->attr.unreliable)
        return take_unreliable(s, b, position);
    if (position < s->expected) {
        duplicate(s, b, position, now_us);
        return RC_DROP;
    }
    if (position > s->expected) {
        take_early(s, b, position);
        return RC_DROP;
    }
    if (!is_valid(s, b)) {
        rc_responder_refuse(s, NAK_INVALID_REQUEST);
        return RC_DROP;
    }
    if (position == s->back.skipped && !s->back.skips)
        s->back.shown = 0;
    s->back.came = s->silent;
    s->silent = s->nak_due = false;
    return begin(s, b);
}

/* The peer has come back to the gap: what it sends next shows whether it skips what was kept. */
static void await_skip(struct rc_responder *s, bool has_kept, uint64_t now_us)
{
    s->back.came = false;
    s->back.reach = 0;
    if (!has_kept)
        return;
    if (s->back.skipped)
        s->back.unskipped = 0;
    s->back.skipped = s->expected;
    if (s->back.skips)
        return;
    s->ack_due = false;
    s->ack_us = now_us + RC_ACK_DELAY_US;
}

/* A peer that goes back sends what was kept again, and each packet has its turn when it does: the peer is told of none
 * that it has not sent since, as by those that keep nothing. To one that skips, all are acknowledged at once. Another
 * gap among what it has sent has its NAK: one for each. */
const struct bth *rc_responder_kept(struct rc_responder *s, uint64_t now_us)
{
    const struct bth *b = s->kept.first ? rc_kept_at(&s->kept, s->expected) : NULL;
    bool again;

    if (s->back.came)
        await_skip(s, b, now_us);
    again = s->expected <= s->back.reach;
    if (s->silent || !(again || s->back.skips))
        return NULL;
    if (again && !b) {
        s->gaps++;
        give_nak(s, aeth_nak(NAK_SEQUENCE));
    }
    if (!s->back.skips)
        s->back.skipped = 0; /* it is not known whether the peer has sent this again */
    s->ack_due |= b != NULL;
    return b;
}

static void await_answer(struct rc_responder *s, const struct bth *b)
{
    *answer_at(s, s->answer_head++) = (struct rc_answer){
        .position = s->expected,
        .packets = is_atomic_request(b->op) ? 1 : psn_packets(b->dma_length, s->attr.mtu),
        .msn = s->msn,
        .atomic = is_atomic_request(b->op),
    };
}

void rc_responder_executed(struct rc_responder *s, const struct bth *b, uint64_t now_us)
{
    s->inside = !(b->flags & BTH_LAST);
    s->got += b->length;
    s->msn = (s->msn + (b->flags & BTH_LAST ? 1 : 0)) & BTH_MASK24;
    if (responder_is_answered(b->op)) {
        await_answer(s, b);
        s->expected += answer_at(s, s->answer_head - 1)->packets;
        return;
    }
    s->expected++;
    if (s->attr.unreliable)
        return;
    if (b->flags & BTH_ACK_REQUEST || s->expected - s->acked >= RC_ACK_PACKETS)
        s->ack_due = true;
    else if (!s->ack_us)
        s->ack_us = now_us + RC_ACK_DELAY_US;
}

/* Linux gives 0.66 s for each try, and programs that allow a few count on it. Here the first waits are short, since
 * most receives are only a moment late, each is four times the one before, and the last is as long. */
static uint8_t rnr_code(struct rc_responder *s)
{
    enum { FOURFOLD = 4, LONGEST = 0 };
    unsigned code = s->attr.rnr_timer & AETH_VALUE;
    struct rc_not_ready *seen = &s->not_ready;

    seen->waits = seen->at == s->expected ? seen->waits + 1 : 0;
    seen->at = s->expected;
    if (!s->attr.rnr_tries || code == LONGEST)
        return (uint8_t)code;
    code += FOURFOLD * (seen->waits < AETH_VALUE ? seen->waits : AETH_VALUE);
    return code > AETH_VALUE || seen->waits + 1 >= s->attr.rnr_tries ? LONGEST : (uint8_t)code;
}

void rc_responder_not_ready(struct rc_responder *s)
{
    s->not_ready.count++;
    give_nak(s, AETH_RNR_NAK | rnr_code(s));
}

void rc_responder_postpone(struct rc_responder *s)
{
    s->silent = true;
}

void rc_responder_skip(struct rc_responder *s)
{
    s->not_ready.count++;
    s->inside = false;
    s->expected++;
}

void rc_responder_refuse(struct rc_responder *s, enum bth_nak reason)
{
    give_nak(s, aeth_nak(reason));
    s->refused = true;
    s->answer_tail = s->answer_head; /* nothing is executed any more, and no response is given */
    s->again_tail = s->again_head;
}

void rc_responder_refuse_answer(struct rc_responder *s, enum bth_nak reason)
{
    const struct rc_answer *a = answer_at(s, s->answer_tail);
    uint64_t position = s->answer_tail != s->answer_head ? a->position + a->sent : s->expected;

    rc_responder_refuse(s, reason);
    s->nak = position;
}

/* --- leaving ----------------------------------------------------------------------------------------------------- */

static struct rc_answer *next_answer(struct rc_responder *s, bool *again)
{
    *again = s->again_tail != s->again_head;
    if (*again)
        return &s->again[s->again_tail & s->mask];
    return s->answer_tail != s->answer_head ? answer_at(s, s->answer_tail) : NULL;
}

const struct rc_answer *rc_responder_answer(struct rc_responder *s, bool *again)
{
    return next_answer(s, again);
}

void rc_responder_drop_again(struct rc_responder *s)
{
    s->again_tail++;
}

static void keep_result(struct rc_responder *s, uint64_t position, uint64_t original)
{
    s->results[s->result_head++ & s->mask] = (struct rc_result){position, original};
}

void rc_responder_answered(struct rc_responder *s, uint64_t original)
{
    bool again;
    struct rc_answer *a = next_answer(s, &again);

    if (a->atomic && !again)
        keep_result(s, a->position, original);
    if (++a->sent < a->packets)
        return;
    if (again) {
        s->again_tail++;
        return;
    }
    s->answer_tail++;
    if (a->position + a->packets > s->acked)
        s->acked = a->position + a->packets; /* a response acknowledges what was before it */
}

uint32_t rc_responder_train(const struct rc_answer *a, uint32_t most)
{
    uint32_t middles = a->sent ? a->packets - a->sent - 1 : 0;

    return middles < most ? middles : most;
}

void rc_responder_answered_train(struct rc_responder *s, uint32_t packets)
{
    bool again;
    struct rc_answer *a = next_answer(s, &again);

    a->sent += packets;
}

/* Nothing is acknowledged beyond a response that was not sent: what waits for that acknowledges by itself. */
bool rc_responder_acknowledge(struct rc_responder *s, struct bth *b, uint64_t now_us)
{
    bool naks = s->nak_due;

    if (s->answer_tail != s->answer_head || (!naks && !rc_responder_is_ack_due(s, now_us)))
        return false;
    b->psn = psn_wire(naks ? s->nak : s->expected - 1);
    b->msn = s->msn;
    b->syndrome = naks ? s->syndrome : AETH_ACK | AETH_NO_CREDITS;
    s->nak_due = s->ack_due = false;
    s->ack_us = s->held_us = 0;
    s->acked = s->expected;
    return true;
}

bool rc_responder_withhold(struct rc_responder *s, uint64_t now_us)
{
    if (!s->ack_due || s->ack_us == AT_ONCE || s->nak_due || s->expected - s->acked > RC_HOLD_PACKETS)
        return false;
    if (!s->held_us)
        s->held_us = now_us + RC_HOLD_US;
    return true;
}

bool rc_responder_release(struct rc_responder *s)
{
    bool waited = s->held_us;

    s->held_us = 0;
    return waited;
}
