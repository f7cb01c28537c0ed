/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* state.c - the steps of an association from one state to the next, and the timers that begin with them. */
#include "base/bytes.h"
#include "sctp/inner.h"

/* --- timers -------------------------------------------------------------------------------------------------- */

void osctp_stop_timers(struct osctp *o)
{
    struct osctp_timers *t = &o->timer;

    t->init_us = t->data_us = t->probe_us = t->sack_us = t->shutdown_us = t->heartbeat_us = t->asked_us = OSCTP_NEVER;
}

void osctp_arm_probe(struct osctp *o, uint64_t now_us)
{
    struct osctp_timers *t = &o->timer;
    bool waits = o->congestion.flight > (o->batches ? 0 : o->attr.packet_max) && !t->probed;

    t->probe_us = waits ? now_us + 2 * (uint64_t)o->rtt.srtt_us + OSCTP_PROBE_US : OSCTP_NEVER;
    if (t->probe_us >= t->data_us)
        t->probe_us = OSCTP_NEVER;
}

void osctp_arm(struct osctp *o, uint64_t now_us)
{
    o->timer.data_us = osctp_waits(o) ? now_us + o->rtt.rto_us : OSCTP_NEVER;
    o->timer.probed = false;
    osctp_arm_probe(o, now_us);
}

void osctp_set_heartbeat(struct osctp *o, uint64_t now_us)
{
    o->timer.heartbeat_us = now_us + OSCTP_HEARTBEAT_US + o->rtt.rto_us;
}

void osctp_restart_heartbeat(struct osctp *o, uint64_t now_us)
{
    if (o->timer.heartbeat_us != OSCTP_NEVER || o->up)
        osctp_set_heartbeat(o, now_us);
}

/* --- states -------------------------------------------------------------------------------------------------- */

void osctp_over(struct osctp *o, enum osctp_end end)
{
    o->state = OSCTP_CLOSED;
    o->end = end;
    o->answer_octets = o->echo_octets = 0;
    o->due =
        (struct osctp_due){.shutdown_complete = o->due.shutdown_complete, .abort = o->due.abort, .cause = o->due.cause};
    o->rx.due = false;
    osctp_stop_timers(o);
}

void osctp_fail(struct osctp *o, uint16_t cause, const void *reason, uint32_t octets)
{
    o->due.abort = true;
    o->due.cause = cause;
    o->reason_octets = osctp_min(octets, OSCTP_REASON);
    put_bytes(o->reason, reason, o->reason_octets);
    osctp_over(o, OSCTP_LOST);
}

void osctp_established(struct osctp *o, uint64_t now_us)
{
    o->state = OSCTP_ESTABLISHED;
    o->up = true;
    o->due.echo = o->due.init = false;
    o->timer.init_us = OSCTP_NEVER;
    osctp_restart_heartbeat(o, now_us);
}

void osctp_drained(struct osctp *o, uint64_t now_us)
{
    if (!osctp_is_drained(o))
        return;
    if (o->state == OSCTP_SHUTDOWN_PENDING) {
        o->state = OSCTP_SHUTDOWN_SENT;
        o->due.shutdown = true;
    } else if (o->state == OSCTP_SHUTDOWN_RECEIVED) {
        o->state = OSCTP_SHUTDOWN_ACK_SENT;
        o->due.shutdown_ack = true;
    } else {
        return;
    }
    o->timer.shutdown_us = now_us + o->rtt.rto_us;
}
