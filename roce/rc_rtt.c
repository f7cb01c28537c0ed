/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_rtt.c - measures round trips, of packets that are acknowledged and of those that draw a NAK. */
#include "roce/rc_rtt.h"

static void rc_rtt_add(struct rc_rtt *rtt, uint32_t us)
{
    if (!rtt->samples || us < rtt->least_us)
        rtt->least_us = us;
    rtt->newest_us[rtt->samples++ % RC_NEWEST] = us;
}

/* RFC 6298 2.3. */
void rc_rtt_measure(struct rc_rtt *rtt, uint64_t now_us)
{
    uint32_t us = now_us - rtt->timed_us < RC_RTO_MAX_US ? (uint32_t)(now_us - rtt->timed_us) + 1 : RC_RTO_MAX_US;
    uint32_t off = us > rtt->smooth_us ? us - rtt->smooth_us : rtt->smooth_us - us;

    rtt->var_us = rtt->smooth_us ? rtt->var_us - rtt->var_us / 4 + off / 4 : us / 2;
    rtt->smooth_us = rtt->smooth_us ? rtt->smooth_us - rtt->smooth_us / 8 + us / 8 : us;
    rtt->timed = 0;
    rc_rtt_add(rtt, us);
}

/* A NAK answers the packet behind the one that it names. If that is not known any more, the round trip counts as a long
 * one. If it left twice because an answer was late, the NAK may be that answer. */
void rc_rtt_measure_nak(struct rc_rtt *rtt, const struct rc_marks *m, uint64_t position, uint64_t now_us)
{
    uint32_t i = m->count, oldest = m->count < RC_MARKS ? 0 : m->count - RC_MARKS, answered = (uint32_t)position + 1;

    if (position < m->from)
        return;
    while (i != oldest && (int32_t)(m->mark[(i - 1) % RC_MARKS].position - answered) > 0)
        i--;
    rc_rtt_add(rtt, i == oldest ? UINT32_MAX : (uint32_t)now_us - m->mark[(i - 1) % RC_MARKS].us + 1);
}

bool rc_rtt_has_queue(const struct rc_rtt *rtt)
{
    uint32_t us = UINT32_MAX;

    for (uint32_t i = 0; i < RC_NEWEST; i++)
        us = rtt->newest_us[i] < us ? rtt->newest_us[i] : us;
    return rtt->samples < RC_NEWEST || us - rtt->least_us > rtt->least_us / RC_RTT_PART + RC_QUEUE_US;
}

void rc_marks_set(struct rc_marks *m, uint64_t position, uint32_t window, uint64_t now_us)
{
    m->mark[m->count % RC_MARKS].position = (uint32_t)position;
    m->mark[m->count++ % RC_MARKS].us = (uint32_t)now_us;
    m->due = position + window / (RC_MARKS / 2) + 1;
}
