/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctptext_decode.c - the packets that we send, as text. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/lib/sctptext.h"

enum { COMMON = 12, HEAD = 4 };

/* Text that grows, and the value of one chunk, without its head. */
struct story {
    struct sctptext *t;
    char *text;
    size_t space;
    const uint8_t *p;
    uint32_t n;
    uint8_t type, flags, usual;
};

static void __attribute__((format(printf, 2, 3))) say(struct story *s, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(s->text, s->space, format, list);
    va_end(list);
    n = n < 0 ? 0 : (size_t)n < s->space ? n : (int)s->space - 1;
    s->text += n;
    s->space -= (size_t)n;
}

static void say_hex(struct story *s, const uint8_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        say(s, "%02x", p[i]);
}

/* Calls `each` with parameters or causes. */
static void walk(struct story *s, const uint8_t *p, uint32_t n,
                 void (*each)(struct story *s, uint16_t type, const uint8_t *p, uint32_t n))
{
    while (n >= HEAD) {
        uint32_t octets = get16(p + 2), padded = (octets + 3) & ~3u;

        if (octets < HEAD || octets > n) {
            say(s, " BAD-LENGTH");
            return;
        }
        each(s, get16(p), p + HEAD, octets - HEAD);
        padded = padded < n ? padded : n;
        p += padded;
        n -= padded;
    }
    if (n)
        say(s, " TRAILING");
}

static void parameter(struct story *s, uint16_t type, const uint8_t *p, uint32_t n)
{
    if (type == 0xc006 && n == 4) {
        say(s, " indication=%u", get32(p));
    } else if (type == 7) {
        say(s, " cookie");
        memcpy(s->t->cookie_before, s->t->cookie, sizeof(s->t->cookie));
        s->t->cookie_octets = n <= sizeof(s->t->cookie) ? n : 0;
        memcpy(s->t->cookie, p, s->t->cookie_octets);
    } else {
        say(s, " param=%#x:", type);
        say_hex(s, p, n);
    }
}

static void cause(struct story *s, uint16_t type, const uint8_t *p, uint32_t n)
{
    if (type == 12) {
        say(s, " reason=%.*s", (int)n, (const char *)p);
    } else {
        say(s, " cause=%u:", type);
        say_hex(s, p, n);
    }
}

static void init(struct story *s)
{
    say(s, s->type == 1 ? "init" : "init-ack");
    if (s->n < 16) {
        say(s, " SHORT");
        return;
    }
    if (get32(s->p) != SCTPTEXT_OURS)
        say(s, " itag=%#x", get32(s->p));
    if (get32(s->p + 4) != s->t->window)
        say(s, " window=%u", get32(s->p + 4));
    say(s, " out=%u in=%u", get16(s->p + 8), get16(s->p + 10));
    if (get32(s->p + 12) != SCTPTEXT_ZERO + 1u)
        say(s, " itsn=%d", (int)(get32(s->p + 12) - SCTPTEXT_ZERO));
    walk(s, s->p + 16, s->n - 16, parameter);
}

static void data(struct story *s)
{
    int tsn;
    bool same = true;

    s->usual = 7;
    if (s->n < 13) {
        say(s, "data SHORT");
        return;
    }
    tsn = (int)(get32(s->p) - SCTPTEXT_ZERO);
    say(s, "data %d %u", tsn, s->n - 12);
    if (get16(s->p + 4))
        say(s, " stream=%u", get16(s->p + 4));
    if (get16(s->p + 6))
        say(s, " ssn=%u", get16(s->p + 6));
    if (get32(s->p + 8))
        say(s, " ppid=%u", get32(s->p + 8));
    for (uint32_t i = 12; i < s->n; i++)
        same &= s->p[i] == sctptext_octet((uint32_t)tsn, i - 12);
    if (!same)
        say(s, " CHANGED");
}

static void sack(struct story *s)
{
    uint32_t gaps, dups;
    int cum;

    if (s->n < 12 || s->n != 12 + 4u * (get16(s->p + 8) + get16(s->p + 10))) {
        say(s, "sack BAD-LENGTH");
        return;
    }
    cum = (int)(get32(s->p) - SCTPTEXT_PEER_ZERO);
    gaps = get16(s->p + 8);
    dups = get16(s->p + 10);
    say(s, "sack %d", cum);
    if (get32(s->p + 4) != s->t->window)
        say(s, " window=%u", get32(s->p + 4));
    for (uint32_t i = 0; i < gaps; i++)
        say(s, " gap=%d-%d", cum + get16(s->p + 12 + 4 * i), cum + get16(s->p + 14 + 4 * i));
    for (uint32_t i = 0; i < dups; i++)
        say(s, " dup=%d", (int)(get32(s->p + 12 + 4 * gaps + 4 * i) - SCTPTEXT_PEER_ZERO));
}

static void heartbeat(struct story *s)
{
    if (s->type == 5) {
        say(s, "heartbeat-ack ");
        say_hex(s, s->p, s->n);
        return;
    }
    say(s, "heartbeat");
    if (s->n < HEAD || get16(s->p) != 1 || get16(s->p + 2) != s->n || s->n > sizeof(s->t->info)) {
        say(s, " BAD-INFO");
        return;
    }
    memcpy(s->t->info, s->p, s->n);
    s->t->info_octets = s->n;
}

static void echo(struct story *s)
{
    bool same = s->n > 0;

    for (uint32_t i = 0; i < s->n; i++)
        same &= s->p[i] == sctptext_octet(3, i);
    say(s, same ? "echo" : "echo CHANGED");
}

static void chunk(struct story *s)
{
    switch (s->type) {
    case 0:
        data(s);
        break;
    case 1:
    case 2:
        init(s);
        break;
    case 3:
        sack(s);
        break;
    case 4:
    case 5:
        heartbeat(s);
        break;
    case 6:
    case 9:
        say(s, s->type == 6 ? "abort" : "error");
        walk(s, s->p, s->n, cause);
        break;
    case 7:
        say(s, s->n == 4 ? "shutdown %d" : "shutdown %d BAD-LENGTH", (int)(get32(s->p) - SCTPTEXT_PEER_ZERO));
        break;
    case 10:
        echo(s);
        break;
    case 8:
    case 11:
    case 14:
        say(s, s->type == 8 ? "shutdown-ack" : s->type == 11 ? "cookie-ack" : "shutdown-complete");
        if (s->n)
            say(s, " BAD-LENGTH");
        break;
    default:
        say(s, "chunk %u ", s->type);
        say_hex(s, s->p, s->n);
    }
}

static void say_flags(struct story *s)
{
    uint8_t more = s->flags & (uint8_t)~s->usual;

    if (!more && (s->flags & s->usual) == s->usual)
        return;
    if ((s->type == 6 || s->type == 14) && s->flags == 1)
        say(s, " t");
    else if (s->type == 0 && s->flags == 15)
        say(s, " i");
    else
        say(s, " flags=%u", s->flags);
}

void sctptext_decode(struct sctptext *t, const uint8_t *p, uint32_t n, char *text, size_t space)
{
    struct story s = {.t = t, .text = text, .space = space};
    uint32_t at = COMMON, tag;

    text[0] = 0;
    if (n < COMMON + HEAD || n % 4) {
        say(&s, "BAD-LENGTH %u", n);
        return;
    }
    tag = get32(p + 4);
    if (get16(p) != SCTPTEXT_OUR_PORT || get16(p + 2) != SCTPTEXT_PEER_PORT)
        say(&s, "BAD-PORTS ");
    if (tag != (p[COMMON] == 1 ? 0 : SCTPTEXT_PEERS))
        say(&s, tag == SCTPTEXT_OURS ? "tag ours, " : "tag %#x, ", tag);
    for (bool more = false; at + HEAD <= n; more = true) {
        uint32_t octets = get16(p + at + 2);

        if (octets < HEAD || octets > n - at) {
            say(&s, " BAD-LENGTH");
            return;
        }
        s.type = p[at];
        s.flags = p[at + 1];
        s.usual = 0;
        s.p = p + at + HEAD;
        s.n = octets - HEAD;
        say(&s, more ? ", " : "");
        chunk(&s);
        say_flags(&s);
        for (at += octets; at % 4; at++) {
            if (p[at])
                say(&s, " BAD-PADDING");
        }
    }
}
