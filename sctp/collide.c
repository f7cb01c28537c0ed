/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* collide.c - an INIT or a COOKIE-ECHO at the ports of an association that exists (RFC 9260 5.2). */
#include "base/bytes.h"
#include "sctp/inner.h"

static bool is_starting(const struct osctp *o)
{
    return o->state == OSCTP_COOKIE_WAIT || o->state == OSCTP_COOKIE_ECHOED;
}

/* It waits for the answer to its SHUTDOWN-ACK, which is sent again (RFC 9260 5.2.4, 9.2). */
static bool ends_first(struct osctp *o, bool cookie)
{
    uint8_t *q;

    if (o->state != OSCTP_SHUTDOWN_ACK_SENT)
        return false;
    q = cookie ? osctp_add_answer(o, CHUNK_ERROR, CAUSE_HEAD) : NULL;
    if (q)
        put16(put16(q, CAUSE_SHUTTING_DOWN), CAUSE_HEAD);
    o->due.shutdown_ack = true;
    return true;
}

enum osctp_collision osctp_collide_init(struct osctp *o)
{
    if (ends_first(o, false))
        return OSCTP_COLLISION_OUTPUT;
    return is_starting(o) ? OSCTP_COLLISION_SAME : OSCTP_COLLISION_OTHER;
}

enum osctp_collision osctp_collide_echo(struct osctp *o, const struct osctp_cookie *cookie, uint64_t now_us)
{
    bool own = cookie->tag == o->attr.tag, peers = cookie->peer_tag == o->peer_tag;

    if (osctp_cookie_is_stale(cookie, now_us) && !(own && peers))
        return OSCTP_COLLISION_STALE;
    if (own) {
        if (is_starting(o))
            osctp_meet(o, cookie, now_us);
        o->peer_tag = cookie->peer_tag;
        return OSCTP_COLLISION_SAME;
    }
    /* One that is not newer than this association's was made without knowledge of it: it has no tie tags. */
    if (peers || cookie->made_us <= o->cookie_us)
        return OSCTP_COLLISION_NONE;
    return ends_first(o, true) ? OSCTP_COLLISION_OUTPUT : OSCTP_COLLISION_OTHER;
}
