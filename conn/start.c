/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* start.c - MPA's start-up: the frames of both sides, their order, and what they agree on (RFC 5044 7.1, RFC 6581). */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "conn/conn_inner.h"

static void start_init(struct conn *c, bool active, const struct wire *wire, const struct conn_attr *attr,
                       uint64_t now_us)
{
    const struct life_limits limits = {attr->startup_us, attr->stall_us, attr->close_us};

    memset(c, 0, sizeof(*c));
    c->wire = wire;
    c->attr = *attr;
    c->attr.immediate |= wire->frames_at_once;
    life_init(&c->life, active, &limits, now_us);
}

/* Starts framing. Positions count from the octet behind the start-up frame of each direction (SeqStart). */
static void start_ready(struct conn *c, bool crc, bool tx_markers, bool rx_markers, uint8_t version)
{
    c->agreed = (struct wire_state){
        .crc = crc, .tx_markers = tx_markers, .rx_markers = rx_markers, .version = version, .aligned = c->attr.aligned};
    life_ready(&c->life);
    assert(!c->life.qp->sequence == (c->wire->numbering == SEG_NUMBERS_QUEUES));
    qp_connect(c->life.qp, c->start.ird, c->start.ord, 0);
}

/* Starts framing at the first octet. A wire without start-up frames always has a CRC; its responder "says nothing
 * before" the first segment, which carries the Connection ID. MPA's own mode always has markers and CRC (mpa.txt 8.1),
 * and version 0 as in its figures. */
static void ready_immediately(struct conn *c)
{
    if (c->wire->frames_at_once) {
        start_ready(c, true, false, false, 0);
        c->agreed.connection_id = c->attr.connection_id;
        c->agreed.id_known = c->life.active;
        c->start.silent = !c->life.active;
    } else {
        start_ready(c, true, true, true, 0);
    }
    life_established(&c->life);
}

static int own_frame(struct conn *c, const struct mpa_frame *frame)
{
    size_t limit = MPA_PRIVATE_MAX - (frame->enhanced ? MPA_ENHANCED : 0);

    if (frame->private_length > limit)
        return -EINVAL;
    c->start.frame_length = (uint16_t)mpa_frame_encode(c->start.frame, frame);
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

    start_init(c, true, wire, attr, now_us);
    c->life.qp = qp;
    c->start.ird = attr->ird;
    c->start.ord = attr->ord;
    if (!c->attr.immediate)
        return own_frame(c, &request);
    if (wire->frames_at_once && private_length)
        return -EINVAL;
    ready_immediately(c);
    return 0;
}

/* first_delay_us is not always long enough: on a busy machine siw can take longer to watch its socket. It overlooks
 * what has come before, and finds it when more comes. An initiator that has received nothing, and has nothing else to
 * send, sends an empty Write: no application learns of it. Amid a message it would end that at the peer, who counts the
 * octets of a Write until its immediate data. */
enum { NUDGES = 4, NUDGE_AFTER = 10 /* times first_delay_us, and twice as long each time */ };

void start_tick(struct conn *c, uint64_t now_us)
{
    struct start *s = &c->start;
    bool has_output;

    if (!s->nudge_us || now_us < s->nudge_us)
        return;
    has_output = (c->life.out && c->life.out->octets) || (c->life.qp && qp_has_output(c->life.qp));
    s->nudge_due = c->agreed.tx_pos && !has_output;
    s->nudge_us = ++s->nudges < NUDGES && start_is_unanswered(c)
                      ? now_us + (NUDGE_AFTER * c->attr.first_delay_us << s->nudges)
                      : 0;
}

/* Applies the responder's IRD, ORD and ready-to-receive bits. Returns FAULT_NONE if they are acceptable (RFC 6581 9.1,
 * 9.2). */
static enum fault start_take_reply(struct conn *c)
{
    const struct mpa_frame *reply = &c->start.peer;
    enum fault fault = FAULT_NONE;

    if (!reply->enhanced)
        return FAULT_NONE;
    fault = mpa_agree_initiator(reply, c->attr.ird, c->attr.ord, &c->start.ird, &c->start.ord);
    if (!fault && c->attr.peer_to_peer) {
        /* With an ORD of 0 we cannot send a Read. */
        c->start.rtr = mpa_choose_rtr(c->start.ord ? c->attr.rtr : c->attr.rtr & ~(unsigned)MPA_RTR_READ, reply->rtr);
        fault = reply->peer_to_peer && c->start.rtr ? FAULT_NONE : FAULT_RTR;
    }
    return fault;
}

static int got_reply(struct conn *c, int eaten, uint64_t now_us)
{
    const struct mpa_frame *reply = &c->start.peer;
    struct fault_note note = {.fault = FAULT_NONE};

    if (reply->reject) {
        life_rejected(&c->life, now_us);
        return eaten;
    }
    if (reply->enhanced != (c->attr.revision >= 2) || reply->revision != c->attr.revision) {
        conn_lost(c, FAULT_START_REVISION);
        return -FAULT_START_REVISION;
    }
    c->start.revision = reply->revision;
    note.fault = start_take_reply(c);
    start_ready(c, c->attr.crc || reply->crc, reply->markers, c->attr.markers, 1);
    c->start.tx_after_us = now_us + c->attr.first_delay_us;
    if (note.fault) {
        conn_fail(c, &note, NULL, now_us);
        return eaten;
    }
    if (c->attr.first_delay_us)
        c->start.nudge_us = now_us + NUDGE_AFTER * c->attr.first_delay_us;
    c->start.rtr_due = c->start.rtr != 0;
    life_established(&c->life);
    return eaten;
}

/* --- the responder ------------------------------------------------------------------------------------------- */

void conn_init_passive(struct conn *c, const struct wire *wire, const struct conn_attr *attr, uint64_t now_us)
{
    start_init(c, false, wire, attr, now_us);
    if (c->attr.immediate)
        life_requested(&c->life);
}

static int got_request(struct conn *c, int eaten)
{
    c->start.revision = c->start.peer.revision;
    life_requested(&c->life);
    return eaten;
}

static struct mpa_frame start_answer(const struct conn *c, const void *private_data, uint16_t private_length)
{
    return (struct mpa_frame){
        .reply = true,
        .markers = c->attr.markers,
        .crc = c->attr.crc || c->start.peer.crc,
        .revision = c->start.peer.revision,
        .enhanced = c->start.peer.enhanced,
        .private_data = private_data,
        .private_length = private_length,
    };
}

/* A request of revision 0 comes from a peer of the RDMA Consortium's dialect (RFC 5044 appendix C). It wants markers
 * and CRC. */
static bool is_rdmac(const struct conn *c)
{
    return c->start.peer.revision == 0;
}

int conn_accept(struct conn *c, struct qp *qp, uint16_t ird, uint16_t ord, const void *private_data,
                uint16_t private_length, uint64_t now_us)
{
    struct mpa_frame reply = start_answer(c, private_data, private_length);
    int error;

    if (c->wire->frames_at_once && private_length)
        return -EINVAL;
    c->life.qp = qp;
    c->start.ird = ird;
    c->start.ord = ord;
    if (c->attr.immediate) {
        ready_immediately(c);
        return 0;
    }
    if (is_rdmac(c))
        reply.markers = reply.crc = true;
    if (c->start.peer.enhanced)
        mpa_agree_responder(&c->start.peer, ird, ord, c->attr.rtr, &reply, &c->start.ird, &c->start.ord);
    error = own_frame(c, &reply);
    if (error) {
        c->life.qp = NULL;
        return error;
    }
    start_ready(c, reply.crc, c->start.peer.markers, reply.markers, is_rdmac(c) ? 0 : 1);
    c->start.silent = true;
    c->start.rtr = reply.peer_to_peer ? reply.rtr : 0;
    if (c->start.rtr)
        c->life.startup_deadline_us = now_us + c->attr.startup_us;
    else
        life_established(&c->life);
    return 0;
}

int conn_reject(struct conn *c, const void *private_data, uint16_t private_length, uint64_t now_us)
{
    struct mpa_frame reply = start_answer(c, private_data, private_length);
    int error;

    reply.reject = true;
    reply.ird = c->attr.ird;
    reply.ord = c->attr.ord;
    error = c->attr.immediate ? 0 : own_frame(c, &reply);
    if (error)
        return error;
    life_rejected(&c->life, now_us);
    return 0;
}

/* --- octets -------------------------------------------------------------------------------------------------- */

int start_rx(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us)
{
    size_t need;
    int eaten = mpa_frame_decode(&c->start.peer, c->life.active, p, n, &need);

    if (eaten == 0)
        return 0;
    if (eaten < 0) {
        conn_lost(c, fault_of(eaten));
        return eaten;
    }
    memcpy(c->start.peer_data, c->start.peer.private_data, c->start.peer.private_length);
    c->start.peer.private_data = c->start.peer_data;
    if (c->life.active)
        return got_reply(c, eaten, now_us);
    if ((size_t)eaten < n) {
        conn_lost(c, FAULT_EARLY); /* an initiator sends nothing more before our reply (RFC 5044 7.1.2 rule 6) */
        return -FAULT_EARLY;
    }
    return got_request(c, eaten);
}
