/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* start.c - MPA's start-up: who says what first, and what is agreed (RFC 5044 7.1, RFC 6581). */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "conn/conn_inner.h"

static void init(struct conn *c, const struct wire *wire, const struct conn_attr *attr, uint64_t now_us)
{
    memset(c, 0, sizeof(*c));
    c->wire = wire;
    c->attr = *attr;
    c->attr.immediate |= wire->frames_at_once;
    c->startup_deadline_us = now_us + attr->startup_us;
}

/* Framing begins. SeqStart of either direction is the octet behind that side's own start-up frame. */
static void ready(struct conn *c, bool crc, bool tx_markers, bool rx_markers, uint8_t version)
{
    c->w = (struct wire_state){.crc = crc, .tx_markers = tx_markers, .rx_markers = rx_markers, .version = version};
    c->state = CONN_READY;
    c->startup_deadline_us = 0;
    assert(!c->qp->group == (c->wire->numbering == SEG_NUMBERS_QUEUES));
    qp_connect(c->qp, c->ird, c->ord, 0);
}

static void established(struct conn *c)
{
    c->established = true;
    c->news |= CONN_NEWS_ESTABLISHED;
}

/* Framing from the first octet. A wire without start-up frames has a CRC always, and the responder learns from the
 * first segment which connection it is: it "says nothing before". MPA's own mode has markers and CRC always on
 * (mpa.txt 8.1), version 0 as in its figures. */
static void ready_immediately(struct conn *c)
{
    if (c->wire->frames_at_once) {
        ready(c, true, false, false, 0);
        c->w.connection_id = c->attr.connection_id;
        c->w.id_known = c->active;
        c->hold = !c->active;
    } else {
        ready(c, true, true, true, 0);
    }
    established(c);
}

static void fail(struct conn *c, enum fault fault)
{
    conn_lost(c, fault);
}

static int own_frame(struct conn *c, const struct mpa_frame *frame)
{
    size_t limit = MPA_PRIVATE_MAX - (frame->enhanced ? MPA_ENHANCED : 0);

    if (frame->private_length > limit)
        return -EINVAL;
    c->frame_length = (uint16_t)mpa_frame_encode(c->frame, frame);
    return 0;
}

/* --- the initiator ------------------------------------------------------------------------------------------- */

int conn_init_active(struct conn *c, const struct wire *wire, const struct conn_attr *attr, struct qp *qp,
                     const void *private_data, uint16_t private_length, uint64_t now_us)
{
    struct mpa_frame request = {
        .markers = attr->markers,
        .crc = attr->crc,
        .revision = attr->revision,
        .enhanced = attr->revision >= 2,
        .peer_to_peer = attr->peer_to_peer && attr->revision >= 2,
        .rtr = attr->rtr,
        .ird = attr->ird,
        .ord = attr->ord,
        .private_data = private_data,
        .private_length = private_length,
    };

    init(c, wire, attr, now_us);
    c->active = true;
    c->qp = qp;
    c->ird = attr->ird;
    c->ord = attr->ord;
    c->state = CONN_WAIT_REPLY;
    if (!c->attr.immediate)
        return own_frame(c, &request);
    if (wire->frames_at_once && private_length)
        return -EINVAL;
    ready_immediately(c);
    return 0;
}

/* What the responder answered to IRD, ORD and ready-to-receive; FAULT_NONE if we can live with it (RFC 6581 9.1, 9.2).
 */
static enum fault take_reply(struct conn *c)
{
    const struct mpa_frame *reply = &c->peer;
    enum fault fault = FAULT_NONE;

    if (!reply->enhanced)
        return FAULT_NONE;
    fault = mpa_agree_initiator(reply, c->attr.ird, c->attr.ord, &c->ird, &c->ord);
    if (!fault && c->attr.peer_to_peer) {
        /* Without an ORD we cannot make a Read. */
        c->rtr = mpa_choose_rtr(c->ord ? c->attr.rtr : c->attr.rtr & ~(unsigned)MPA_RTR_READ, reply->rtr);
        fault = reply->peer_to_peer && c->rtr ? FAULT_NONE : FAULT_RTR;
    }
    return fault;
}

static int got_reply(struct conn *c, int eaten, uint64_t now_us)
{
    const struct mpa_frame *reply = &c->peer;
    struct fault_note note = {.fault = FAULT_NONE};

    if (reply->reject) {
        c->note = note = (struct fault_note){.fault = FAULT_REJECTED};
        qp_fail(c->qp, &note);
        c->news |= CONN_NEWS_REJECTED;
        c->state = CONN_ENDING;
        c->startup_deadline_us = 0;
        c->close_deadline_us = now_us + c->attr.close_us;
        return eaten;
    }
    if (reply->enhanced != (c->attr.revision >= 2) || reply->revision != c->attr.revision) {
        fail(c, FAULT_START_REVISION);
        return -FAULT_START_REVISION;
    }
    c->revision = reply->revision;
    note.fault = take_reply(c);
    ready(c, c->attr.crc || reply->crc, reply->markers, c->attr.markers, 1);
    c->tx_after_us = now_us + c->attr.first_delay_us;
    if (note.fault) {
        conn_fail(c, &note, NULL, now_us);
        return eaten;
    }
    c->rtr_due = c->rtr != 0;
    established(c);
    return eaten;
}

/* --- the responder ------------------------------------------------------------------------------------------- */

void conn_init_passive(struct conn *c, const struct wire *wire, const struct conn_attr *attr, uint64_t now_us)
{
    init(c, wire, attr, now_us);
    c->state = CONN_WAIT_REQUEST;
    if (c->attr.immediate) {
        c->state = CONN_WAIT_ANSWER;
        c->news |= CONN_NEWS_REQUEST;
        c->startup_deadline_us = 0;
    }
}

static int got_request(struct conn *c, int eaten)
{
    c->revision = c->peer.revision;
    c->state = CONN_WAIT_ANSWER;
    c->startup_deadline_us = 0;
    c->news |= CONN_NEWS_REQUEST;
    return eaten;
}

static struct mpa_frame answer(const struct conn *c, const void *private_data, uint16_t private_length)
{
    return (struct mpa_frame){
        .reply = true,
        .markers = c->attr.markers,
        .crc = c->attr.crc || c->peer.crc,
        .revision = c->peer.revision,
        .enhanced = c->peer.enhanced,
        .private_data = private_data,
        .private_length = private_length,
    };
}

/* A Rev 0 request that wants markers and CRC comes from a peer of the RDMA Consortium's dialect (RFC 5044 appendix C).
 */
static bool is_rdmac(const struct conn *c)
{
    return c->peer.revision == 0;
}

int conn_accept(struct conn *c, struct qp *qp, uint16_t ird, uint16_t ord, const void *private_data,
                uint16_t private_length, uint64_t now_us)
{
    struct mpa_frame reply = answer(c, private_data, private_length);
    int error;

    if (c->wire->frames_at_once && private_length)
        return -EINVAL;
    c->qp = qp;
    c->ird = ird;
    c->ord = ord;
    if (c->attr.immediate) {
        ready_immediately(c);
        return 0;
    }
    if (is_rdmac(c))
        reply.markers = reply.crc = true;
    if (c->peer.enhanced)
        mpa_agree_responder(&c->peer, ird, ord, c->attr.rtr, &reply, &c->ird, &c->ord);
    error = own_frame(c, &reply);
    if (error) {
        c->qp = NULL;
        return error;
    }
    ready(c, reply.crc, c->peer.markers, reply.markers, is_rdmac(c) ? 0 : 1);
    c->hold = true;
    c->rtr = reply.peer_to_peer ? reply.rtr : 0;
    if (c->rtr)
        c->startup_deadline_us = now_us + c->attr.startup_us;
    else
        established(c);
    return 0;
}

int conn_reject(struct conn *c, const void *private_data, uint16_t private_length, uint64_t now_us)
{
    struct mpa_frame reply = answer(c, private_data, private_length);
    int error;

    reply.reject = true;
    reply.ird = c->attr.ird;
    reply.ord = c->attr.ord;
    error = c->attr.immediate ? 0 : own_frame(c, &reply);
    if (error)
        return error;
    c->note.fault = FAULT_REJECTED;
    c->state = CONN_ENDING;
    c->close_deadline_us = now_us + c->attr.close_us;
    return 0;
}

/* --- octets -------------------------------------------------------------------------------------------------- */

int start_rx(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us)
{
    size_t need;
    int eaten = mpa_frame_decode(&c->peer, c->active, p, n, &need);

    if (eaten == 0)
        return 0;
    if (eaten < 0) {
        fail(c, (enum fault) - eaten);
        return eaten;
    }
    memcpy(c->peer_data, c->peer.private_data, c->peer.private_length);
    c->peer.private_data = c->peer_data;
    if (c->active)
        return got_reply(c, eaten, now_us);
    if ((size_t)eaten < n) {
        fail(c, FAULT_EARLY); /* an initiator may say no more before our answer (RFC 5044 7.1.2 rule 6) */
        return -FAULT_EARLY;
    }
    return got_request(c, eaten);
}
