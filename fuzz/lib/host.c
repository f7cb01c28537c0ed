/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.c - the environment of a connection under test: memory, a clock, and a link that takes as much as the input
 * says. */
#include "fuzz/lib/host.h"

#include <assert.h>
#include <string.h>

uint8_t host_stage[HOST_STAGE];
static uint8_t out_buffer[OUT_BUFFER], sent[HOST_SENT];

void host_eat(struct host *h)
{
    size_t eaten;

    h->heard |= h->conn.life.state >= CONN_READY;
    eaten = conn_rx_straight(&h->conn, host_stage, h->staged);
    if (!h->conn.is_straight)
        eaten += conn_rx(&h->conn, host_stage + eaten, h->staged - eaten, h->now_us);
    assert(eaten <= h->staged);
    h->staged -= eaten;
    memmove(host_stage, host_stage + eaten, h->staged);
}

static void eat_again(struct host *h)
{
    while (conn_wants(&h->conn, h->now_us) & CONN_AGAIN)
        host_eat(h);
}

static void send_some(struct host *h)
{
    struct out *out = &h->out;
    size_t n = 0;

    for (uint32_t i = out->first; i < out->first + out->spans && h->takes; i++) {
        size_t take = out->span[i].length < h->takes ? out->span[i].length : h->takes;

        assert(h->sent + take <= HOST_SENT);
        memcpy(sent + h->sent, out->span[i].at, take);
        h->sent += take;
        h->takes -= take;
        n += take;
    }
    conn_sent(&h->conn, n, h->now_us);
}

void host_pump(struct host *h)
{
    struct conn *c = &h->conn;

    conn_check(c, h->now_us);
    eat_again(h);
    while (conn_wants(c, h->now_us) & CONN_TX && h->takes) {
        if (!c->life.out) {
            out_init(&h->out, out_buffer);
            c->life.out = &h->out;
        }
        if (c->start.frame_length)
            h->frame = c->start.frame_length;
        conn_fill(c, h->now_us);
        assert(h->out.octets || !(conn_wants(c, h->now_us) & CONN_TX));
        if (h->out.octets)
            send_some(h);
        eat_again(h);
    }
    if (conn_wants(c, h->now_us) & CONN_FIN)
        conn_fin(c, h->now_us);
    if (c->life.out && !c->life.out->octets)
        c->life.out = NULL;
    c->life.news = 0;
}

void host_scribble(struct host *h, struct input *in)
{
    const struct qp *qp = &h->arena->qp;
    uint8_t octet = input8(in);

    memset(h->arena->mr[ARENA_TARGET].base, octet, ARENA_OCTETS);
    if (qp->sq.head == qp->sq.tail)
        arena_scribble(h->arena, octet);
}

void host_check_sent(const struct host *h, struct wire_state peer, bool may_cut)
{
    size_t at = h->frame, need;
    struct seg seg;

    may_cut |= h->may_cut || (h->conn.life.out && h->conn.life.out->octets);
    while (at < h->sent) {
        int n = h->conn.wire->decode(&peer, &seg, sent + at, h->sent - at, &need);

        assert(n > 0 || (n == 0 && may_cut));
        if (n == 0)
            break;
        at += (size_t)n;
    }
}

void host_lose(struct host *h)
{
    const struct fault_note end = {.fault = FAULT_LOST};

    conn_lost(&h->conn, FAULT_LOST);
    qp_fail(&h->arena->qp, &end);
}
