/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctptext.c - the chunks of RFC 9260 3.3, from text. It shares no code with the engine. */
#include "tests/lib/sctptext.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/lib/vectors.h"

enum { COMMON = 12, HEAD = 4, WORDS = 64, COOKIE = 100, LENGTH_AT = 2 };

/* One chunk as words. */
struct phrase {
    struct sctptext *t;
    char *word[WORDS];
    uint32_t words;
    bool wrong;
};

uint8_t sctptext_octet(uint32_t tsn, uint32_t i)
{
    return (uint8_t)(tsn * 31 + i + (i >> 8));
}

static uint32_t number(struct phrase *f, const char *text)
{
    char *end = NULL;
    long long n = text ? strtoll(text, &end, 0) : 0;

    f->wrong |= !text || (*end && *end != '-' && *end != ':');
    return (uint32_t)n;
}

static uint32_t operand(struct phrase *f, uint32_t i)
{
    return number(f, i < f->words ? f->word[i] : NULL);
}

static const char *value(const char *word, const char *key)
{
    size_t n = strlen(key);

    return strncmp(word, key, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static uint32_t setting(struct phrase *f, const char *key, uint32_t otherwise)
{
    for (uint32_t i = 1; i < f->words; i++) {
        if (value(f->word[i], key))
            return number(f, value(f->word[i], key));
    }
    return otherwise;
}

static uint8_t *put_hex(uint8_t *q, const char *hex)
{
    ptrdiff_t n = hex ? hex_decode(hex, q, 2000) : 0;

    return q + (n > 0 ? n : 0);
}

/* Writes a parameter or a cause, "TYPE:HEX", padded. */
static uint8_t *put_parameter(struct phrase *f, uint8_t *q, const char *text)
{
    const char *hex = strchr(text, ':');
    uint8_t *end = put_hex(q + HEAD, hex ? hex + 1 : NULL);

    put16(put16(q, (uint16_t)number(f, text)), (uint16_t)(end - q));
    while ((end - q) % 4)
        *end++ = 0;
    return end;
}

static uint8_t *put_cookie(uint8_t *q, uint32_t octets)
{
    q = put16(put16(q, 7), (uint16_t)(HEAD + octets));
    for (uint32_t i = 0; i < octets; i++)
        *q++ = sctptext_octet(3, i);
    while (octets++ % 4)
        *q++ = 0;
    return q;
}

static uint8_t *init(struct phrase *f, uint8_t *q)
{
    uint32_t octets = setting(f, "cookie", strcmp(f->word[0], "init-ack") ? 0 : COOKIE);

    q = put32(q, setting(f, "itag", SCTPTEXT_PEERS));
    q = put32(q, setting(f, "window", 1 << 20));
    q = put16(q, (uint16_t)setting(f, "out", 10));
    q = put16(q, (uint16_t)setting(f, "in", 10));
    q = put32(q, SCTPTEXT_PEER_ZERO + setting(f, "itsn", 1));
    if (setting(f, "indication", 0))
        q = put32(put16(put16(q, 0xc006), 8), setting(f, "indication", 0));
    for (uint32_t i = 1; i < f->words; i++) {
        if (value(f->word[i], "param"))
            q = put_parameter(f, q, value(f->word[i], "param"));
    }
    return octets ? put_cookie(q, octets) : q;
}

static uint8_t *echo(struct phrase *f, uint8_t *q)
{
    uint32_t n = f->t->cookie_octets, flip = setting(f, "flip", n);

    memcpy(q, setting(f, "before", 0) ? f->t->cookie_before : f->t->cookie, n);
    if (flip < n)
        q[flip] ^= 0x40;
    return q + n - setting(f, "cut", 0);
}

static uint8_t *data(struct phrase *f, uint8_t *q)
{
    uint32_t tsn = operand(f, 1), octets = operand(f, 2);

    q = put32(q, SCTPTEXT_PEER_ZERO + tsn);
    q = put16(q, (uint16_t)setting(f, "stream", 0));
    q = put16(q, (uint16_t)setting(f, "ssn", 0));
    q = put32(q, setting(f, "ppid", 0));
    for (uint32_t i = 0; i < octets; i++)
        *q++ = sctptext_octet(tsn, i);
    return q;
}

static uint8_t *sack(struct phrase *f, uint8_t *q)
{
    uint32_t cum = operand(f, 1), gaps = 0, dups = 0;
    uint8_t *counts = put32(put32(q, SCTPTEXT_ZERO + cum), operand(f, 2));
    const char *v;

    q = counts + 4;
    for (uint32_t i = 3; i < f->words; i++) {
        uint32_t base = value(f->word[i], "gap") ? cum : 0;

        v = value(f->word[i], "gap") ? value(f->word[i], "gap") : value(f->word[i], "block");
        if (!v)
            continue;
        q = put16(q, (uint16_t)(number(f, v) - base));
        q = put16(q, (uint16_t)(number(f, strchr(v, '-') ? strchr(v, '-') + 1 : NULL) - base));
        gaps++;
    }
    for (uint32_t i = 3; i < f->words; i++) {
        v = value(f->word[i], "dup");
        if (v)
            q = put32(q, SCTPTEXT_ZERO + number(f, v));
        dups += v != NULL;
    }
    put16(put16(counts, (uint16_t)gaps), (uint16_t)dups);
    return q;
}

static uint8_t *heartbeat(struct phrase *f, uint8_t *q)
{
    if (f->words > 1)
        return put_hex(q, f->word[1]);
    return put_bytes(q, f->t->info, f->t->info_octets);
}

static uint8_t *shutdown(struct phrase *f, uint8_t *q)
{
    return put32(q, SCTPTEXT_ZERO + operand(f, 1));
}

static uint8_t *causes(struct phrase *f, uint8_t *q)
{
    for (uint32_t i = 1; i < f->words; i++) {
        const char *v = value(f->word[i], "reason");

        if (v)
            q = put_bytes(put16(put16(q, 12), (uint16_t)(HEAD + strlen(v))), v, strlen(v));
        if (value(f->word[i], "cause"))
            q = put_parameter(f, q, value(f->word[i], "cause"));
    }
    return q;
}

static uint8_t *empty(struct phrase *f, uint8_t *q)
{
    (void)f;
    return q;
}

static uint8_t *any(struct phrase *f, uint8_t *q)
{
    return put_hex(q, f->words > 2 && !strchr(f->word[2], '=') ? f->word[2] : NULL);
}

static const struct {
    const char *name;
    uint8_t type, flags;
    uint8_t *(*put)(struct phrase *f, uint8_t *q);
} kinds[] = {
    {"data", 0, 7, data},
    {"init", 1, 0, init},
    {"init-ack", 2, 0, init},
    {"sack", 3, 0, sack},
    {"heartbeat", 4, 0, heartbeat},
    {"heartbeat-ack", 5, 0, heartbeat},
    {"abort", 6, 0, causes},
    {"shutdown", 7, 0, shutdown},
    {"shutdown-ack", 8, 0, empty},
    {"error", 9, 0, causes},
    {"echo", 10, 0, echo},
    {"cookie-ack", 11, 0, empty},
    {"shutdown-complete", 14, 0, empty},
    {"chunk", 255, 0, any},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static uint8_t *put_chunk(struct phrase *f, uint8_t *q)
{
    uint32_t k = 0, flags;
    uint8_t *end;

    while (k < KINDS && strcmp(kinds[k].name, f->word[0]) != 0)
        k++;
    if (k == KINDS || !(end = kinds[k].put(f, q + HEAD))) {
        f->wrong = true;
        return q;
    }
    flags = kinds[k].flags;
    for (uint32_t i = 1; i < f->words; i++)
        flags |= !strcmp(f->word[i], "t") ? 1 : !strcmp(f->word[i], "i") ? 8 : 0;
    q[0] = k == KINDS - 1 ? (uint8_t)operand(f, 1) : kinds[k].type;
    q[1] = (uint8_t)setting(f, "flags", flags);
    put16(q + LENGTH_AT, (uint16_t)setting(f, "length", (uint32_t)(end - q)));
    while ((end - q) % 4)
        *end++ = 0;
    return end;
}

static void split(struct phrase *f, char *text)
{
    char *save;

    f->words = 0;
    for (char *w = strtok_r(text, " ", &save); w && f->words < WORDS; w = strtok_r(NULL, " ", &save))
        f->word[f->words++] = w;
}

uint32_t sctptext_encode(struct sctptext *t, char *text, uint8_t *p, const char **wrong)
{
    uint32_t port = SCTPTEXT_PEER_PORT, to = SCTPTEXT_OUR_PORT, tag = SCTPTEXT_OURS, cut = 0;
    struct phrase f = {.t = t};
    uint8_t *q = p + COMMON;
    bool tagged = false;
    char *save;

    t->from = 1;
    for (char *chunk = strtok_r(text, ",", &save); chunk; chunk = strtok_r(NULL, ",", &save)) {
        split(&f, chunk);
        if (!f.words)
            continue;
        tagged |= !strcmp(f.word[0], "tag");
        if (!strcmp(f.word[0], "tag"))
            tag = operand(&f, 1);
        else if (!strcmp(f.word[0], "from"))
            t->from = operand(&f, 1);
        else if (!strcmp(f.word[0], "port"))
            port = operand(&f, 1);
        else if (!strcmp(f.word[0], "to"))
            to = operand(&f, 1);
        else if (!strcmp(f.word[0], "cut"))
            cut = operand(&f, 1);
        else
            q = put_chunk(&f, q);
        *wrong = f.word[0];
        if (f.wrong)
            return 0;
    }
    if (!tagged && p[COMMON] == 1) /* an INIT has no tag */
        tag = 0;
    put32(put32(put16(put16(p, (uint16_t)port), (uint16_t)to), tag), 0);
    return (uint32_t)(q - p) - cut;
}
