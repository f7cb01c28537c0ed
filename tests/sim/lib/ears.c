/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ears.c - ends that hear the same octets in different ways, and what must be alike at all of them. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/talk.h"

struct talk_tally talk_tally;

/* --- what must be alike ---------------------------------------------------------------------------------------- */

void ears_compare_completions(const struct rddp_wc *a, const struct rddp_wc *b)
{
    assert_int_equal(a->wr_id, b->wr_id);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->opcode, b->opcode);
    assert_int_equal(a->vendor_err, b->vendor_err);
    assert_int_equal(a->byte_len, b->byte_len);
    assert_int_equal(a->imm_data, b->imm_data);
    assert_int_equal(a->wc_flags, b->wc_flags);
    assert_int_equal(a->invalidated_rkey, b->invalidated_rkey);
}

static void same_note(const struct fault_note *a, const struct fault_note *b)
{
    assert_string_equal(fault_name(a->fault), fault_name(b->fault));
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->key, b->key);
    assert_int_equal(a->offset, b->offset);
    if (a->fault != FAULT_READS) /* how many are ahead depends on when others were answered */
        assert_int_equal(a->got, b->got);
    assert_int_equal(a->want, b->want);
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->msg, b->msg);
}

/* A Send of which a part has come may have claimed its receive. */
static uint32_t receives_left(const struct qp *qp)
{
    return rq_state(qp->rq).posted + qp->arriving.claimed - qp->arriving.next;
}

static void same_place(const struct host *a, const struct host *b)
{
    const struct qp *p = &a->side.qp, *q = &b->side.qp;

    same_note(&a->conn.life.note, &b->conn.life.note);
    for (uint32_t i = 0; i < TALK_REGIONS; i++)
        assert_memory_equal(a->engine.area[i].mr.base, b->engine.area[i].mr.base, TALK_REGION_OCTETS);
    assert_int_equal(a->conn.life.state, b->conn.life.state);
    assert_int_equal(a->conn.agreed.rx_pos, b->conn.agreed.rx_pos);
    assert_int_equal(a->told, b->told);
    assert_int_equal(p->state, q->state);
    assert_int_equal(p->rx_pos, q->rx_pos);
    assert_int_equal(p->rx_octets, q->rx_octets);
    if (p->state == QP_READY)
        assert_int_equal(p->arriving.next, q->arriving.next);
    assert_int_equal(p->written.octets, q->written.octets);
    assert_int_equal(p->written.length, q->written.length);
    assert_int_equal(p->rq->taken, q->rq->taken);
    assert_int_equal(receives_left(p), receives_left(q));
    assert_int_equal(conn_wants(&a->conn, a->now_us), conn_wants(&b->conn, b->now_us));
    assert_int_equal(conn_deadline(&a->conn, a->now_us), conn_deadline(&b->conn, b->now_us));
}

static void same_words(const struct ear *a, const struct ear *b)
{
    assert_int_equal(a->host.staged, b->host.staged);
    assert_int_equal(a->host.sent_octets, b->host.sent_octets);
    assert_memory_equal(a->host.sent, b->host.sent, a->host.sent_octets);
}

/* Returns the octets of the Terminate that was sent, or 0. */
static uint32_t last_word(const struct ear *ear, uint8_t *out)
{
    const struct host *h = &ear->host;
    struct wire_state peer = h->peer;
    size_t need, n = h->sent_octets - h->read_octets;
    uint8_t *copy = malloc(n + 1), *at = copy; /* decoding closes up markers */
    uint32_t octets = 0;
    struct seg seg;
    int unit;

    assert_non_null(copy);
    memcpy(copy, h->sent + h->read_octets, n);
    peer.rx_pos = ear->tx_begun;
    while (!octets && (unit = wire_iwarp.decode(&peer, &seg, at, n - (size_t)(at - copy), &need)) > 0) {
        at += unit;
        octets = seg.op == SEG_TERMINATE ? seg.length : 0;
        memcpy(out, seg.data, octets);
    }
    free(copy);
    return octets;
}

void ears_compare_last_word(void)
{
    uint8_t x[WIRE_TERM_MAX], y[WIRE_TERM_MAX];
    uint32_t n = last_word(&talk.ear[STRAIGHT], x);

    if (!ear_is_comparable(SLOW))
        return;
    assert_int_equal(n, last_word(&talk.ear[SLOW], y));
    assert_memory_equal(x, y, n);
}

bool ear_is_comparable(enum ear_kind kind)
{
    return kind == SLOW ? !talk.has_close : kind != APART || !talk.has_gone;
}

/* When answers leave depends on how the questions came, and a payload that is read apart is in its place early. */
void ears_compare(void)
{
    const struct ear *ear = talk.ear;

    for (enum ear_kind kind = PLAIN; kind < EARS; kind++) {
        if (!ear_is_comparable(kind) || ear[kind].host.conn.place_at)
            continue;
        same_place(&ear[STRAIGHT].host, &ear[kind].host);
        if (kind != SLOW)
            same_words(&ear[STRAIGHT], &ear[kind]);
    }
}

/* --- ways of hearing -------------------------------------------------------------------------------------------- */

static void hear_straight(struct host *h)
{
    unsigned wants = conn_wants(&h->conn, h->now_us);
    uint64_t deadline = conn_deadline(&h->conn, h->now_us);
    size_t eaten = conn_rx_straight(&h->conn, h->stage, h->staged);

    if (h->conn.is_straight) {
        assert_int_equal(eaten, h->staged);
        assert_int_equal(conn_wants(&h->conn, h->now_us), wants);
        assert_int_equal(conn_deadline(&h->conn, h->now_us), deadline);
        talk_tally.straight++;
    } else {
        eaten += conn_rx(&h->conn, h->stage + eaten, h->staged - eaten, h->now_us);
    }
    h->staged -= eaten;
    memmove(h->stage, h->stage + eaten, h->staged);
}

/* A Send whose receive was claimed before is placed like a part of a long one. */
static void hear_plain(struct host *h)
{
    size_t n, eaten;
    struct seg seg;
    int unit;

    do {
        unit = h->conn.wire->look(&h->conn.agreed, &seg, h->stage, h->staged);
        n = unit > 0 ? (size_t)unit : h->staged;
        if (unit > 0 && !h->conn.held)
            qp_claim_receive(&h->side.qp, &seg);
        eaten = conn_rx(&h->conn, h->stage, n, h->now_us);
        h->staged -= eaten;
        memmove(h->stage, h->stage + eaten, h->staged);
    } while (eaten && h->staged && !h->conn.held);
}

static void hear(struct ear *ear, enum ear_kind kind)
{
    struct host *h = &ear->host;

    if (kind == STRAIGHT || kind == APART)
        hear_straight(h);
    else if (kind == PLAIN)
        hear_plain(h);
    else
        host_hear(h, NULL, 0);
    host_pump(h);
}

/* Copies those of the next octets that belong directly to their place. Returns their number. */
static size_t put_in_place(struct host *h, const uint8_t *p, size_t n)
{
    uint32_t staged = (uint32_t)h->staged;
    struct conn_place place;

    if (!staged || !conn_read_to_place(&h->conn, h->stage, &staged, 1, &place, h->now_us))
        return 0;
    h->staged = staged;
    n = n < place.octets ? n : place.octets;
    memcpy(place.at, p, n);
    conn_filled(&h->conn, n);
    talk_tally.apart += n;
    return n;
}

void ear_listen(struct ear *ear, enum ear_kind kind, size_t octets)
{
    struct host *h = &ear->host;
    bool is_new;

    do {
        while (conn_wants(&h->conn, h->now_us) & CONN_AGAIN)
            hear(ear, kind);
        is_new = ear->heard < octets && conn_wants_rx(&h->conn);
        if (is_new) {
            const uint8_t *p = talk.stream + ear->heard;
            size_t n = kind == SLOW ? 1 : octets - ear->heard, there = kind == APART ? put_in_place(h, p, n) : 0;

            memcpy(h->stage + h->staged, p + there, n - there);
            h->staged += n - there;
            ear->heard += n;
            hear(ear, kind);
        }
    } while (is_new || conn_wants(&h->conn, h->now_us) & CONN_AGAIN);
}

/* --- their life --------------------------------------------------------------------------------------------------- */

void ear_open(struct ear *ear, const struct options *options)
{
    static const unsigned access[TALK_REGIONS] = {
        ALL_ACCESS, LOCAL | RDDP_ACCESS_REMOTE_WRITE, RDDP_ACCESS_REMOTE_READ, LOCAL, ALL_ACCESS, LOCAL, ALL_ACCESS,
    };
    struct qp_attr attr;

    memset(ear, 0, sizeof(*ear));
    host_init(&ear->host, NULL);
    side_fini(&ear->host.side);
    for (uint32_t i = 0; i < TALK_REGIONS; i++)
        engine_region(&ear->host.engine, TALK_REGION_OCTETS, access[i] | RDDP_ACCESS_ZERO_BASED);
    ear->host.engine.area[TALK_REGIONS - 1].mr.pd = &ear->host.engine.other_pd;
    attr = side_attr(&ear->host.engine);
    attr.window = 1;
    attr.ird = attr.ord = TALK_READS;
    attr.receive_wait_us = options->receive_wait_us;
    if (options->is_shared) {
        ear->srq_buffer = calloc(1, rq_size(attr.recv_depth, attr.recv_sge));
        assert_non_null(ear->srq_buffer);
        rq_init(&ear->srq, options->is_of_other ? &ear->host.engine.other_pd : &ear->host.engine.pd, attr.recv_depth,
                attr.recv_sge, ear->srq_buffer);
        attr.srq = &ear->srq;
    }
    side_init(&ear->host.side, &attr);
    ear->host.side.recv_cq.cqe = options->cqe;
    host_ready(&ear->host, options->is_active, &options->conn);
    ear->tx_begun = ear->host.conn.agreed.tx_pos;
}

void ear_close(struct ear *ear)
{
    talk_tally.faults[ear->host.conn.life.note.fault]++;
    host_fini(&ear->host);
    free(ear->srq_buffer);
}
