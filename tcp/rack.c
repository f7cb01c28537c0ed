/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rack.c - a segment is lost if one that was sent sufficiently later has been delivered. */
#include "tcp/rack.h"

void utcp_rack_init(struct utcp_rack *r)
{
    *r = (struct utcp_rack){.reo_wnd_mult = 1};
}

static bool sent_after(uint64_t at_us, uint64_t end, uint64_t than_us, uint64_t than_end)
{
    return at_us > than_us || (at_us == than_us && end > than_end);
}

void utcp_rack_delivered(struct utcp_rack *r, const struct utcp_sent *s, const struct utcp_rtt *rtt, uint64_t echo_us,
                         uint64_t now_us)
{
    uint64_t end = s->from + s->length, rtt_us = now_us - s->at_us;

    if (end > r->fack)
        r->fack = end;
    else if (end < r->fack && !(s->flags & UTCP_SENT_RETRANS))
        r->reordering_seen = true;
    /* The first copy may be the one that arrived (RFC 8985 6.2 step 2). */
    if (s->flags & UTCP_SENT_RETRANS && ((echo_us && echo_us < utcp_stamped_us(s->at_us)) || rtt_us < rtt->min_us))
        return;
    if (sent_after(s->at_us, end, r->xmit_us, r->end)) {
        r->xmit_us = s->at_us;
        r->end = end;
        r->rtt_us = rtt_us;
    }
}

void utcp_rack_dsack(struct utcp_rack *r, uint64_t una, uint64_t next)
{
    if (r->dsack_round && una < r->dsack_end)
        return;
    r->dsack_round = true;
    r->dsack_end = next;
    if (r->reo_wnd_mult < UTCP_REO_WND_MULT_MAX)
        r->reo_wnd_mult++;
    r->reo_wnd_persist = UTCP_REO_WND_PERSIST;
}

void utcp_rack_recovered(struct utcp_rack *r)
{
    r->dsack_round = false;
    if (r->reo_wnd_persist && --r->reo_wnd_persist == 0)
        r->reo_wnd_mult = 1;
}

static uint64_t reo_wnd_us(const struct utcp_rack *r, const struct utcp_scoreboard *b, const struct utcp_rtt *rtt,
                           bool recovering)
{
    uint64_t wnd_us = rtt->min_us / 4 * r->reo_wnd_mult;

    if (!r->reordering_seen && (recovering || b->sacked >= UTCP_DUP_THRESHOLD))
        return 0;
    return wnd_us < rtt->srtt_us ? wnd_us : rtt->srtt_us;
}

uint64_t utcp_rack_detect(struct utcp_rack *r, struct utcp_scoreboard *b, const struct utcp_rtt *rtt, bool recovering,
                          uint64_t now_us)
{
    uint64_t limit_us = r->rtt_us + reo_wnd_us(r, b, rtt, recovering), later_us = 0;
    struct utcp_sent *s, *newer;

    if (!r->xmit_us)
        return 0;
    for (s = utcp_scoreboard_slot(b, b->oldest); s; s = newer) {
        newer = utcp_scoreboard_slot(b, s->newer);
        if (!sent_after(r->xmit_us, r->end, s->at_us, s->from + s->length))
            break;
        if (s->at_us + limit_us <= now_us)
            utcp_scoreboard_mark_lost(b, s);
        else if (later_us < s->at_us + limit_us - now_us)
            later_us = s->at_us + limit_us - now_us;
    }
    return later_us;
}
