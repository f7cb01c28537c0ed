/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctphost.c - the choices of sctp/io/osctp_port.c, for one association and without sockets. */
#include "tests/lib/sctphost.h"

#include "sctp/chunk.h"

static void begin_with(struct sctphost *h, const struct osctp_cookie *cookie, const uint8_t *p, uint32_t n,
                       uint64_t now_us)
{
    h->begun = true;
    osctp_accept(h->o, &h->attr, cookie, h->sent, h->user, h->of, now_us);
    osctp_input(h->o, p, n, now_us);
}

/* INITs are answered, and a cookie of ours begins the association. */
static uint32_t hear_stranger(struct sctphost *h, uint64_t from, const uint8_t *p, uint32_t n, uint64_t now_us)
{
    uint8_t type = p[PACKET_COMMON];
    struct osctp_cookie cookie;

    if (osctp_read_echo(h->key, from, p, n, &cookie) && !osctp_cookie_is_stale(&cookie, now_us)) {
        begin_with(h, &cookie, p, n, now_us);
        return 0;
    }
    if (type == CHUNK_INIT || type == CHUNK_COOKIE_ECHO)
        return osctp_answer(&h->attr, h->key, from, p, n, h->reply, now_us);
    return osctp_refuse(p, n, h->reply);
}

static uint32_t hear_init(struct sctphost *h, uint64_t from, const uint8_t *p, uint32_t n, uint64_t now_us)
{
    enum osctp_collision collision = osctp_collide_init(h->o);

    if (collision == OSCTP_COLLISION_OUTPUT)
        return 0;
    return osctp_answer(collision == OSCTP_COLLISION_SAME ? &h->o->attr : &h->attr, h->key, from, p, n, h->reply,
                        now_us);
}

static uint32_t hear_echo(struct sctphost *h, uint64_t from, const uint8_t *p, uint32_t n, uint64_t now_us)
{
    struct osctp_cookie cookie;

    if (!osctp_read_echo(h->key, from, p, n, &cookie))
        return 0;
    switch (osctp_collide_echo(h->o, &cookie, now_us)) {
    case OSCTP_COLLISION_SAME:
        osctp_input(h->o, p, n, now_us);
        return 0;
    case OSCTP_COLLISION_OTHER:
        osctp_free(h->o);
        h->restarts++;
        begin_with(h, &cookie, p, n, now_us);
        return 0;
    case OSCTP_COLLISION_STALE:
        return osctp_answer(&h->attr, h->key, from, p, n, h->reply, now_us);
    default:
        return 0;
    }
}

uint32_t sctphost_input(struct sctphost *h, uint64_t from, const uint8_t *p, uint32_t n, uint64_t now_us)
{
    if (!h->begun)
        return h->listening && n > PACKET_COMMON ? hear_stranger(h, from, p, n, now_us) : 0;
    if (n > PACKET_COMMON && p[PACKET_COMMON] == CHUNK_INIT)
        return hear_init(h, from, p, n, now_us);
    if (n > PACKET_COMMON && p[PACKET_COMMON] == CHUNK_COOKIE_ECHO)
        return hear_echo(h, from, p, n, now_us);
    osctp_input(h->o, p, n, now_us);
    return 0;
}
