/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* silence.c - what a requester does when a responder does not answer: it sends a nudge, and in the end it
 * reconnects. */
#include "rpc/requester_in.h"

enum {
    NUDGE_FIRST_MS = 100,
    NUDGE_MAX_MS = 3200,
    RETRIES_MS = 4000, /* RoCE gives a connection up that acknowledges nothing for a little longer than this */
};

/* --- the log ----------------------------------------------------------------------------------------------------- */

/* A call that was not sent yet counts as well: the credit of a cancelled call may never come back. */
static bool silence_waits(const struct requester *r)
{
    return r->sent.first || r->queued.first;
}

void silence_report(struct requester *r, uint64_t now)
{
    char text[RPC_ADDRESS];

    if (!silence_waits(r)) {
        r->silence.mute_ms = 0;
    } else if (!r->silence.mute_ms) {
        r->silence.mute_ms = now;
    } else if (!r->silence.is_mute && now - r->silence.mute_ms >= SILENCE_TELL_MS) {
        r->silence.is_mute = true;
        rpc_log(&r->log, RDDP_LOG_WARN, "%s: the server is not responding; calls that wait: %u",
                rpc_address_text(text, &r->addr), r->sent.count + r->queued.count);
    }
}

uint64_t silence_report_at(const struct requester *r)
{
    return r->silence.mute_ms && !r->silence.is_mute && silence_waits(r) ? r->silence.mute_ms + SILENCE_TELL_MS
                                                                         : UINT64_MAX;
}

static void report_life(struct requester *r)
{
    char text[RPC_ADDRESS];

    r->silence.mute_ms = 0;
    if (!r->silence.is_mute)
        return;
    r->silence.is_mute = false;
    rpc_log(&r->log, RDDP_LOG_WARN, "%s: the server responds again", rpc_address_text(text, &r->addr));
}

/* --- the connection ---------------------------------------------------------------------------------------------- */

void silence_begin(struct requester *r)
{
    r->silence.quiet_ms = 0;
    r->silence.answered = false;
}

void silence_unacknowledged(struct requester *r)
{
    r->silence.may_be_busy = true;
}

/* Who answers later than that was busy, and will be again. */
void silence_broken(struct requester *r, uint64_t now)
{
    if (!r->silence.quiet_ms || now - r->silence.quiet_ms < RETRIES_MS)
        r->silence.may_be_busy = false;
    r->silence.quiet_ms = 0;
    r->silence.answered = true;
    report_life(r);
}

/* Linux's siw may leave a message that arrives right behind its MPA Reply unread until more data arrives. An RDMA Write
 * of no octets provides that data and has no effect (RFC 5040 5.1). Over RoCE the peer acknowledges it, as long as its
 * queue pair exists: nothing else tells that its process was killed after it had acknowledged a call. But one whose
 * only thread executes a call acknowledges nothing, either. Who has once let all retries pass has the next connections
 * to itself, until it answers in less time than that, or a call that takes longer would be sent, and executed, again
 * without end. */
static bool is_nudged(const struct requester *r)
{
    if (r->attr.wire.wire == RDDP_WIRE_ROCE)
        return !r->silence.may_be_busy;
    return rpc_link_has_private_data(&r->attr.wire) && !r->silence.answered;
}

/* Returns false if the connection must be closed. */
static bool nudge(struct requester *r, uint64_t now)
{
    if (now < r->silence.nudge_ms || !is_nudged(r))
        return true;
    r->silence.nudge_gap_ms = r->silence.nudge_gap_ms * 2 < NUDGE_MAX_MS ? r->silence.nudge_gap_ms * 2 : NUDGE_MAX_MS;
    r->silence.nudge_ms = now + r->silence.nudge_gap_ms;
    r->stats.nudges++;
    return rpc_link_nudge(&r->link) == 0;
}

bool silence_bearable(struct requester *r, uint64_t now)
{
    if (!silence_waits(r)) {
        r->silence.quiet_ms = 0;
        return true;
    }
    if (!r->silence.quiet_ms) {
        r->silence.quiet_ms = now;
        r->silence.nudge_gap_ms = NUDGE_FIRST_MS;
        r->silence.nudge_ms = now + NUDGE_FIRST_MS;
        return true;
    }
    return now - r->silence.quiet_ms < r->attr.silence_ms && nudge(r, now);
}

uint64_t silence_until(const struct requester *r)
{
    uint64_t until = r->silence.quiet_ms + r->attr.silence_ms;

    if (!silence_waits(r) || !r->silence.quiet_ms)
        return UINT64_MAX;
    return is_nudged(r) && r->silence.nudge_ms < until ? r->silence.nudge_ms : until;
}
