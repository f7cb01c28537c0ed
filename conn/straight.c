/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* straight.c - what comes and goes on a connection where nothing else happens: whole Writes and Sends, and what is
 * posted. It needs neither a clock nor a look at what the connection wants, which would not change. */
#include "conn/conn_inner.h"

/* Do octets come in order, without markers, with nothing of the start before them, and without an answer of the start
 * to them? */
static bool comes_plain(const struct conn *c)
{
    return !c->reorder && !c->agreed.rx_markers && !c->start.silent && !c->start.rtr_answer_due && !start_nudges(c);
}

/* Does nothing of the start go before what is posted? An empty Write may, as long as the peer says nothing. */
static bool goes_plain(const struct conn *c)
{
    const struct start *s = &c->start;

    return !s->frame_length && !s->rtr_due && !s->tx_after_us;
}

/* Does no time limit run, is nothing put back, and is there nothing but the stream itself that the next unit could end,
 * begin or wait for? */
static bool is_straight(const struct conn *c)
{
    const struct life *l = &c->life;

    return l->state == CONN_READY && !l->unfinished && !l->stall_deadline_us && !l->resume_us &&
           !life_awaits_receive(l) && !c->held && !c->place_at && (c->is_plain || comes_plain(c)) &&
           qp_takes_whole(l->qp);
}

size_t conn_rx_straight(struct conn *c, uint8_t *p, size_t n)
{
    size_t eaten = 0, need;

    c->is_straight = n && is_straight(c);
    while (c->is_straight && eaten < n) {
        int octets = c->wire->decode(&c->agreed, &c->front, p + eaten, n - eaten, &need);
        bool is_taken = octets > 0 && qp_take_whole(c->life.qp, &c->front);

        if (is_taken)
            eaten += (size_t)octets;
        else if (octets > 0)
            c->front_octets = octets;
        c->is_straight = is_taken && c->life.qp->state == QP_READY;
        if (is_taken && !c->is_plain)
            c->is_plain = goes_plain(c);
    }
    return eaten;
}

/* Is the connection up for good, and is there nothing that goes in front, or that is to be told? */
bool conn_sends_straight(const struct conn *c)
{
    const struct life *l = &c->life;

    return is_straight(c) && (c->is_plain || goes_plain(c)) && !l->out && !l->news && !l->peer_ended &&
           !l->awaits_spans;
}
