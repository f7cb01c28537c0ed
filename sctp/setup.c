/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* setup.c - the beginning of an association (RFC 9260 5): INIT, INIT-ACK, and the cookie. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "sctp/inner.h"

enum { PARAMETER_STATE_COOKIE = 7, PARAMETER_UNRECOGNIZED = 8, TAG_AT = 4, REPORT_MAX = 64 /* octets repeated */ };

static void osctp_begin(struct osctp *o, const struct osctp_attr *attr, struct osctp_sent *sent,
                        const struct osctp_user *user, void *of)
{
    assert(attr->tag && attr->packet_max >= OSCTP_PACKET_MIN && attr->packet_max % 4 == 0);
    assert(attr->packet_max <= OSCTP_PACKET_MAX);
    memset(o, 0, sizeof(*o));
    o->user = user;
    o->of = of;
    o->attr = *attr;
    o->tx.sent = sent;
    o->tx.next = attr->tsn;
    o->tx.cum = attr->tsn - 1;
    o->rx.window = o->rx.said = attr->window;
    o->rtt.rto_us = OSCTP_RTO_FIRST_US;
    o->congestion = (struct osctp_congestion){
        .window = osctp_min(4 * attr->packet_max, osctp_max(2 * attr->packet_max, OSCTP_WINDOW_FIRST)),
        .threshold = UINT32_MAX,
        .burst = OSCTP_BURST,
        .reorder = OSCTP_REORDER,
        .reacted = attr->tsn - 1,
    };
    osctp_flight_begin(o);
    osctp_stop_timers(o);
}

/* --- the active end ------------------------------------------------------------------------------------------ */

void osctp_connect(struct osctp *o, const struct osctp_attr *attr, struct osctp_sent *sent,
                   const struct osctp_user *user, void *of, uint64_t now_us)
{
    osctp_begin(o, attr, sent, user, of);
    o->state = OSCTP_COOKIE_WAIT;
    o->due.init = true;
    o->timer.init_us = now_us + o->rtt.rto_us;
}

uint32_t osctp_write_init(const struct osctp *o, uint8_t *p)
{
    const struct chunk_init init = {.tag = o->attr.tag,
                                    .window = o->attr.window,
                                    .out = o->attr.streams,
                                    .in = o->attr.streams,
                                    .tsn = o->attr.tsn};
    uint8_t *chunk = chunk_packet(p, o->attr.local_port, o->attr.peer_port, 0);
    uint8_t *end = chunk_init(chunk, CHUNK_INIT, &init);

    end = chunk_indication(end, o->attr.indication);
    return (uint32_t)(chunk_close(chunk, o->attr.ecn ? chunk_ecn(end) : end) - p);
}

/* Stores what the peer said about itself. */
static void meet(struct osctp *o, uint32_t tag, uint32_t tsn, uint32_t window, uint32_t indication, uint16_t streams,
                 bool ecn)
{
    o->ecn = ecn;
    o->peer_tag = tag;
    o->peer_tsn = tsn;
    o->peer_indication = indication;
    o->streams = streams;
    o->rx.cum = o->rx.highest = tsn - 1;
    o->tx.window = window;
}

/* The octets of a parameter that are repeated to its sender. */
static uint32_t repeated(const uint8_t *parameter)
{
    return osctp_min(get16(parameter + 2), REPORT_MAX);
}

/* Returns false if it ends the association. */
static bool is_welcome(struct osctp *o, const struct chunk_init *init)
{
    if (init->host_name)
        osctp_fail(o, CAUSE_ADDRESS, init->host_name, repeated(init->host_name));
    else if (!init->cookie || init->cookie_octets > OSCTP_COOKIE_MAX)
        osctp_fail(o, CAUSE_VIOLATION, NULL, 0);
    return o->state != OSCTP_CLOSED;
}

/* Reports the parameters of an INIT-ACK that we do not know, as far as there is space, with the cookie. */
static void report_to_responder(struct osctp *o, const struct chunk_init *init)
{
    uint8_t report[OSCTP_ANSWER / 2], *end = report, *q;
    uint32_t octets;

    for (uint32_t i = 0; i < init->unknowns; i++) {
        octets = get16(init->unknown[i] + 2);
        if (chunk_padded(octets) > (uint32_t)(report + sizeof(report) - end))
            continue;
        memset(end, 0, chunk_padded(octets));
        put_bytes(end, init->unknown[i], octets);
        end += chunk_padded(octets);
    }
    octets = (uint32_t)(end - report);
    q = octets ? osctp_add_answer(o, CHUNK_ERROR, CAUSE_HEAD + octets) : NULL;
    if (q)
        put_bytes(put16(put16(q, CAUSE_PARAMETERS), (uint16_t)(CAUSE_HEAD + octets)), report, octets);
}

void osctp_init_ack(struct osctp *o, const struct osctp_chunk *chunk, uint64_t now_us)
{
    struct chunk_init init;

    if (o->state != OSCTP_COOKIE_WAIT || !chunk_read_init(chunk, &init))
        return;
    o->peer_tag = init.tag;
    if (!is_welcome(o, &init))
        return;
    meet(o, init.tag, init.tsn, init.window, init.indication, (uint16_t)osctp_min(o->attr.streams, init.in),
         o->attr.ecn && init.ecn);
    report_to_responder(o, &init);
    memcpy(o->cookie, init.cookie, init.cookie_octets);
    o->cookie_octets = init.cookie_octets;
    if (!o->timer.inits)
        osctp_rtt_sample(&o->rtt, now_us + OSCTP_RTO_FIRST_US - o->timer.init_us);
    o->state = OSCTP_COOKIE_ECHOED;
    o->due.init = false;
    o->due.echo = true;
    o->timer.inits = 0;
    o->timer.init_us = now_us + o->rtt.rto_us;
}

/* --- the passive end ----------------------------------------------------------------------------------------- */

static const struct osctp_chunk *first_chunk(const uint8_t *p, uint32_t n, struct osctp_chunk *chunk)
{
    uint32_t at = PACKET_COMMON;

    return chunk_next(p, n, &at, chunk) ? chunk : NULL;
}

/* Reports the parameters of an INIT that we do not know, as far as there is space. */
static uint8_t *report_unknown(const struct chunk_init *init, uint8_t *q, const uint8_t *end)
{
    for (uint32_t i = 0; i < init->unknowns; i++) {
        uint32_t octets = get16(init->unknown[i] + 2);

        if (PARAMETER_HEAD + chunk_padded(octets) <= (uint32_t)(end - q))
            q = chunk_parameter(q, PARAMETER_UNRECOGNIZED, init->unknown[i], octets);
    }
    return q;
}

/* Is the first chunk a COOKIE-ECHO with a cookie of ours, from this peer? */
static bool echoes_cookie(const uint64_t key[2], uint64_t peer, const uint8_t *p, uint32_t n,
                          struct osctp_cookie *cookie)
{
    struct osctp_chunk first;

    return first_chunk(p, n, &first) && first.type == CHUNK_COOKIE_ECHO &&
           osctp_cookie_read(cookie, key, first.at + CHUNK_HEAD, first.octets - CHUNK_HEAD) && cookie->peer == peer &&
           cookie->local_port == packet_destination(p) && cookie->peer_port == packet_source(p) &&
           get32(p + TAG_AT) == cookie->tag;
}

/* The ERROR says by how much the cookie is too old, in microseconds (RFC 9260 5.2.6). */
static uint32_t answer_stale(const struct osctp_cookie *cookie, uint8_t *reply, uint64_t now_us)
{
    uint64_t late_us = now_us - cookie->made_us - OSCTP_COOKIE_US;
    uint8_t *q = chunk_packet(reply, cookie->local_port, cookie->peer_port, cookie->peer_tag);

    q = chunk_head(q, CHUNK_ERROR, 0, CHUNK_HEAD + CAUSE_HEAD + 4);
    q = put16(put16(q, CAUSE_STALE_COOKIE), CAUSE_HEAD + 4);
    return (uint32_t)(put32(q, late_us < UINT32_MAX ? (uint32_t)late_us : UINT32_MAX) - reply);
}

/* RFC 9260 3.3.2: none may send a Host Name Address. */
static uint32_t refuse_host_name(const struct chunk_init *init, const uint8_t *p, uint8_t *reply)
{
    uint32_t octets = repeated(init->host_name);
    uint8_t *chunk = chunk_packet(reply, packet_destination(p), packet_source(p), init->tag);
    uint8_t *q = put16(put16(chunk_head(chunk, CHUNK_ABORT, 0, 0), CAUSE_ADDRESS), (uint16_t)(CAUSE_HEAD + octets));

    return (uint32_t)(chunk_close(chunk, put_bytes(q, init->host_name, octets)) - reply);
}

uint32_t osctp_answer(const struct osctp_attr *attr, const uint64_t key[2], uint64_t peer, const uint8_t *p, uint32_t n,
                      uint8_t *reply, uint64_t now_us)
{
    struct osctp_chunk first;
    struct chunk_init init, own;
    struct osctp_cookie cookie;
    uint8_t octets[OSCTP_COOKIE], *chunk, *q;

    if (echoes_cookie(key, peer, p, n, &cookie))
        return osctp_cookie_is_stale(&cookie, now_us) ? answer_stale(&cookie, reply, now_us) : 0;
    /* An INIT is alone in its packet, which has no verification tag (RFC 9260 6.10, 8.5.1). */
    if (!first_chunk(p, n, &first) || first.type != CHUNK_INIT || get32(p + TAG_AT) ||
        chunk_padded(first.octets) < n - PACKET_COMMON)
        return 0;
    if (!chunk_read_init(&first, &init))
        return osctp_refuse(p, n, reply);
    if (init.host_name)
        return refuse_host_name(&init, p, reply);
    cookie = (struct osctp_cookie){
        .made_us = now_us,
        .peer = peer,
        .tag = attr->tag,
        .tsn = attr->tsn,
        .peer_tag = init.tag,
        .peer_tsn = init.tsn,
        .peer_window = init.window,
        .peer_indication = init.indication,
        .local_port = packet_destination(p),
        .peer_port = packet_source(p),
        .streams = (uint16_t)osctp_min(attr->streams, init.in),
        .ecn = attr->ecn && init.ecn,
    };
    osctp_cookie_write(&cookie, key, octets);
    own = (struct chunk_init){
        .tag = attr->tag, .window = attr->window, .out = attr->streams, .in = attr->streams, .tsn = attr->tsn};
    chunk = chunk_packet(reply, cookie.local_port, cookie.peer_port, init.tag);
    q = chunk_indication(chunk_init(chunk, CHUNK_INIT_ACK, &own), attr->indication);
    if (cookie.ecn)
        q = chunk_ecn(q);
    q = chunk_parameter(q, PARAMETER_STATE_COOKIE, octets, sizeof(octets));
    q = report_unknown(&init, q, reply + OSCTP_ANSWER);
    return (uint32_t)(chunk_close(chunk, q) - reply);
}

bool osctp_read_echo(const uint64_t key[2], uint64_t peer, const uint8_t *p, uint32_t n, struct osctp_cookie *cookie)
{
    return echoes_cookie(key, peer, p, n, cookie);
}

void osctp_meet(struct osctp *o, const struct osctp_cookie *cookie, uint64_t now_us)
{
    meet(o, cookie->peer_tag, cookie->peer_tsn, cookie->peer_window, cookie->peer_indication, cookie->streams,
         cookie->ecn);
    osctp_rtt_sample(&o->rtt, now_us - cookie->made_us);
    osctp_established(o, now_us);
}

void osctp_accept(struct osctp *o, const struct osctp_attr *attr, const struct osctp_cookie *cookie,
                  struct osctp_sent *sent, const struct osctp_user *user, void *of, uint64_t now_us)
{
    struct osctp_attr own = *attr;

    own.tag = cookie->tag;
    own.tsn = cookie->tsn;
    own.local_port = cookie->local_port;
    own.peer_port = cookie->peer_port;
    osctp_begin(o, &own, sent, user, of);
    o->cookie_us = cookie->made_us;
    osctp_meet(o, cookie, now_us);
}
