/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_output.c - sends what the associations of a socket have to send, tells their owners, and sets their timers. */
#include <string.h>

#include "sctp/io/osctp_inner.h"

void osctp_port_output(struct osctp_assoc *s, uint64_t now_us)
{
    struct osctp_port *port = s->port;
    const uint8_t *p;
    uint32_t n;

    while (!port->silent && osctp_output(&s->engine, &p, &n, now_us)) {
        if (osctp_lasts(&s->engine, p)) {
            udp_lend(&port->udp, &s->peer, p, n, osctp_is_ect(&s->engine, p));
        } else {
            memcpy(udp_buffer(&port->udp, &s->peer, n), p, n);
            udp_put(&port->udp, n);
        }
    }
}

/* The first measurement decides: later ones include the time that packets wait in queues, our own among them. */
static void fit_store(struct osctp_assoc *s)
{
    uint64_t ms = s->engine.rtt.srtt_us / 1000;

    if (s->measured || !s->engine.up || !s->engine.rtt.known)
        return;
    s->measured = true;
    s->engine.attr.store = ms < OSCTP_STORE / OSCTP_STORE_MS ? (uint32_t)(ms + 1) * OSCTP_STORE_MS : OSCTP_STORE;
}

void osctp_port_settle_one(struct osctp_assoc *s, uint64_t now_us)
{
    uint64_t due_us;

    if (s->over && s->engine.state != OSCTP_CLOSED)
        return;
    if (s->broken)
        osctp_abort(&s->engine, s->broken, (uint32_t)strlen(s->broken));
    osctp_window(&s->engine, osctp_assoc_window(s));
    osctp_port_output(s, now_us);
    fit_store(s);
    osctp_assoc_notify(s);
    if (s->over && s->left) {
        osctp_assoc_reap(s);
        return;
    }
    due_us = osctp_deadline(&s->engine);
    if (!s->over && due_us < s->place.due_us)
        osctp_table_schedule(s, due_us);
}

void osctp_port_settle(struct osctp_port *port)
{
    uint64_t now_us = port->touched ? reactor_now_us() : 0;
    struct osctp_assoc *s;

    while ((s = port->touched)) {
        port->touched = s->next_touched;
        s->touched = false;
        osctp_port_settle_one(s, now_us);
    }
    udp_flush(&port->udp);
}
