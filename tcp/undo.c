/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* undo.c - a time-out that was wrong: the octets, or their acknowledgement, were only late (RFC 3522). */
#include "tcp/inner.h"

void utcp_undo_keep(struct utcp *t)
{
    t->undo = (struct utcp_undo){.on = true, .cubic = t->cubic};
}

void utcp_undo_sent(struct utcp *t, uint64_t now_us)
{
    if (!t->undo.at_us)
        t->undo.at_us = now_us;
}

/* The first acknowledgement after it decides. If it echoes what was sent before the first octet was sent again, that
 * had arrived. Timestamps count milliseconds. */
void utcp_undo_judge(struct utcp *t, uint64_t echo_us)
{
    struct utcp_undo *u = &t->undo;

    if (!u->on || !u->at_us)
        return;
    u->on = false;
    if (!echo_us || echo_us >= utcp_stamped_us(u->at_us))
        return;
    t->count.undone++;
    t->cubic = u->cubic; /* RFC 9438 4.9.1 */
    utcp_scoreboard_regain(&t->scoreboard);
    t->recovery = (struct utcp_recovery){.limited = t->recovery.limited};
}
