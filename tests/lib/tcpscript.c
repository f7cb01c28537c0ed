/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpscript.c - one step per line; segments are encoded and decoded by the engine's own codec. */
#include "tests/lib/tcpscript.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/lib/tcpnet.h"
#include "tests/lib/vectors.h"

enum { IRS = 0xfffffe00, ISN = 0x7ffffe00, STAMP = 1000, SENTS = 256, OOO_RANGES = 16, WORDS = 16 };

struct play {
    const char *name;
    uint32_t line;
    struct utcp tcp;
    struct utcp_attr attr;
    struct utcp_sent sent[SENTS];
    struct utcp_ooo_range ooo[OOO_RANGES];
    uint64_t now_us, refuse, keep;
    char *word[WORDS];
    uint32_t words;
    bool stamps;
    uint32_t stamp;
};

static _Noreturn void wrong(const struct play *p, const char *what, const char *was)
{
    fail_msg("%s, line %u: %s (%s)", p->name, p->line, what, was);
    abort();
}

static uint64_t number(const struct play *p, uint32_t i)
{
    char *end = NULL;
    uint64_t n = i < p->words ? strtoull(p->word[i], &end, 0) : 0;

    if (i >= p->words || *end)
        wrong(p, "a number is missing", i < p->words ? p->word[i] : "end of line");
    return n;
}

static const char *value(const struct play *p, uint32_t i, const char *key)
{
    size_t n = strlen(key);

    return strncmp(p->word[i], key, n) == 0 && p->word[i][n] == '=' ? p->word[i] + n + 1 : NULL;
}

static uint32_t cut(void *user, uint64_t position, uint32_t ready, uint32_t space)
{
    (void)user;
    (void)position;
    return ready < space ? ready : space;
}

static void fetch(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece)
{
    static const uint8_t octets[65536];

    (void)user;
    (void)position;
    piece->spans = 1;
    piece->span[0] = (struct span){octets, length};
}

static struct utcp_verdict arrived(void *user, const struct utcp_arrival *a)
{
    struct play *p = user;

    if (p->refuse) {
        p->refuse--;
        return (struct utcp_verdict){0, 0};
    }
    return (struct utcp_verdict){a->length, p->keep ? a->length : 0};
}

static const struct utcp_user user = {cut, fetch, arrived};

static void begin(struct play *p)
{
    struct utcp_buffers buffers = {p->sent, SENTS, p->ooo, OOO_RANGES};
    struct utcp_name local = tcpnet_name(0, false), remote = tcpnet_name(1, false);
    struct utcp_handshake h = {local, remote, ISN + 1, IRS + 1, 65535, 1000, 0,    0,
                               true,  true,   true,    false,   STAMP, true, 65535};
    const char *v;

    utcp_attr_default(&p->attr);
    p->attr.isn = ISN;
    p->attr.window = 65535;
    for (uint32_t i = 1; i < p->words; i++) {
        h.ecn |= !strcmp(p->word[i], "ecn");
        p->attr.no_sack |= !strcmp(p->word[i], "nosack");
        p->attr.no_stamps |= !strcmp(p->word[i], "nostamps");
        p->attr.no_scale |= !strcmp(p->word[i], "noscale");
        h.stamp_known &= strcmp(p->word[i], "unstamped") != 0;
        h.stamp_recent = h.stamp_known ? STAMP : 0;
        if ((v = value(p, i, "window")))
            p->attr.window = h.edge = (uint32_t)atoi(v);
        if ((v = value(p, i, "mtu")))
            p->attr.mtu = (uint32_t)atoi(v);
        if ((v = value(p, i, "keep")))
            p->attr.keep_idle_us = 1000ULL * (uint32_t)atoi(v);
        if ((v = value(p, i, "giveup")))
            p->attr.give_up_us = 1000ULL * (uint32_t)atoi(v);
        if ((v = value(p, i, "option")))
            p->attr.option_kind = (uint8_t)atoi(v);
    }
    p->attr.no_ecn = !h.ecn;
    utcp_open(&p->tcp, &p->attr, &buffers, &user, p);
    p->stamps = !p->attr.no_stamps;
    p->stamp = STAMP;
    h.sack = !p->attr.no_sack;
    h.stamps = p->stamps;
    if (!strcmp(p->word[0], "active"))
        utcp_connect(&p->tcp, &local, &remote);
    else
        utcp_adopt(&p->tcp, &h, p->now_us);
}

static uint8_t flags_of(const char *text)
{
    static const struct {
        char letter;
        uint8_t flag;
    } flag[] = {{'S', UTCP_SYN}, {'F', UTCP_FIN}, {'R', UTCP_RST}, {'P', UTCP_PSH},
                {'A', UTCP_ACK}, {'E', UTCP_ECE}, {'C', UTCP_CWR}};
    uint8_t flags = 0;

    for (; *text; text++)
        for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++)
            flags |= *text == flag[i].letter ? flag[i].flag : 0;
    return flags;
}

static struct utcp_block block_of(const char *text, uint32_t start)
{
    char *end;
    uint32_t from = (uint32_t)strtoul(text, &end, 0);

    return (struct utcp_block){start + from, start + (uint32_t)strtoul(end + 1, NULL, 0)};
}

static void come_in(struct play *p)
{
    static const uint8_t octets[65536];
    struct utcp_segment s = {
        .from = p->tcp.remote,
        .to = p->tcp.local,
        .flags = flags_of(p->word[1]),
        .seq = IRS + (uint32_t)number(p, 2),
        .payload = octets,
        .length = (uint32_t)number(p, 3),
        .ack = ISN + (uint32_t)number(p, 4),
        .window = (uint16_t)number(p, 5),
        .opt = {.has_stamp = p->stamps, .stamp = p->stamp, .echo = p->tcp.stamps.last},
    };
    uint8_t extra[40];
    const char *v;

    for (uint32_t i = 6; i < p->words; i++) {
        s.opt.sack_permitted |= !strcmp(p->word[i], "sack");
        s.opt.has_stamp &= strcmp(p->word[i], "nostamp") != 0;
        s.ecn = strcmp(p->word[i], "ce") ? s.ecn : UTCP_CE;
        if ((v = value(p, i, "mss"))) {
            s.opt.has_mss = true;
            s.opt.mss = (uint16_t)atoi(v);
        } else if ((v = value(p, i, "scale"))) {
            s.opt.has_wscale = true;
            s.opt.wscale = (uint8_t)atoi(v);
        } else if ((v = value(p, i, "stamp"))) {
            s.opt.has_stamp = true;
            s.opt.stamp = (uint32_t)atoi(v);
        } else if ((v = value(p, i, "late"))) {
            s.opt.echo -= (uint32_t)atoi(v);
        } else if ((v = value(p, i, "block"))) {
            s.opt.sack[s.opt.sacks++] = block_of(v, ISN);
        } else if ((v = value(p, i, "option"))) {
            s.opt.extra = extra;
            s.opt.extra_length = (uint8_t)hex_decode(v, extra, sizeof(extra));
        }
    }
    utcp_input(&p->tcp, &s, p->now_us);
}

static void expect_word(struct play *p, uint32_t i, const struct utcp_segment *s, const char *was, uint32_t *block)
{
    uint8_t hex[40];
    const char *v;

    if ((v = value(p, i, "block"))) {
        struct utcp_block b = block_of(v, IRS);

        if (*block >= s->opt.sacks || s->opt.sack[*block].from != b.from || s->opt.sack[*block].to != b.to)
            wrong(p, "another SACK block", was);
        ++*block;
    } else if ((v = value(p, i, "window"))) {
        if (s->window != (uint32_t)atoi(v))
            wrong(p, "another window", was);
    } else if ((v = value(p, i, "echo"))) {
        if (s->opt.echo != (uint32_t)atoi(v))
            wrong(p, "another timestamp echo", was);
    } else if (!strcmp(p->word[i], "ect")) {
        if (s->ecn != UTCP_ECT)
            wrong(p, "not open to marks", was);
    } else if ((v = value(p, i, "option"))) {
        if (!s->opt.extra || s->opt.extra_length != hex_decode(v, hex, sizeof(hex)) ||
            memcmp(hex, s->opt.extra, s->opt.extra_length) != 0)
            wrong(p, "another option", was);
    } else {
        wrong(p, "no such word", p->word[i]);
    }
}

/* Decodes the next packet sent, also as text. */
static bool go_out(struct play *p, struct utcp_segment *s, char *text, size_t space)
{
    static uint8_t octets[65536 + 128];
    struct utcp_packet packet;
    struct utcp_too_big b;
    uint8_t *q = octets;

    if (!utcp_output(&p->tcp, &packet, p->now_us))
        return false;
    q = put_bytes(q, packet.head, packet.head_length);
    for (uint32_t i = 0; i < packet.spans; i++)
        q = put_bytes(q, packet.span[i].at, packet.span[i].length);
    if (utcp_packet_read(octets, (uint32_t)(q - octets), false, p->attr.option_kind, s, &b) != UTCP_KIND_SEGMENT)
        wrong(p, "not a packet", "");
    tcpnet_check(&p->tcp);
    snprintf(text, space, "%s%s%s%s%s%s%s %u %u %u window=%u%s", s->flags & UTCP_SYN ? "S" : "",
             s->flags & UTCP_FIN ? "F" : "", s->flags & UTCP_RST ? "R" : "", s->flags & UTCP_PSH ? "P" : "",
             s->flags & UTCP_ACK ? "A" : "", s->flags & UTCP_ECE ? "E" : "", s->flags & UTCP_CWR ? "C" : "",
             s->seq - ISN, s->length, s->flags & UTCP_ACK ? s->ack - IRS : 0, s->window,
             s->opt.sacks ? " with blocks" : "");
    return true;
}

static void expect_out(struct play *p)
{
    struct utcp_segment s;
    uint32_t blocks = 0;
    char was[128] = "nothing";

    if (!go_out(p, &s, was, sizeof(was)) || s.flags != flags_of(p->word[1]) || s.seq != ISN + (uint32_t)number(p, 2) ||
        s.length != number(p, 3) || (strcmp(p->word[4], "-") != 0 && s.ack != IRS + (uint32_t)number(p, 4)))
        wrong(p, "another packet goes out", was);
    for (uint32_t i = 5; i < p->words; i++)
        expect_word(p, i, &s, was, &blocks);
    if (s.ecn && strcmp(p->word[p->words - 1], "ect") != 0)
        wrong(p, "open to marks", was);
    if (blocks != s.opt.sacks)
        wrong(p, "SACK blocks that are not expected", was);
}

static void expect_none(struct play *p)
{
    struct utcp_segment s;
    char was[128];

    if (go_out(p, &s, was, sizeof(was)))
        wrong(p, "nothing is to go out", was);
}

static void pass_time(struct play *p)
{
    uint64_t end_us = p->now_us + 1000 * number(p, 1);

    p->stamp += (uint32_t)number(p, 1);
    while (utcp_deadline(&p->tcp) <= end_us) {
        uint64_t at_us = utcp_deadline(&p->tcp);

        p->now_us = at_us > p->now_us ? at_us : p->now_us;
        utcp_timeout(&p->tcp, p->now_us);
        if (p->now_us < end_us && (p->tcp.due.ack || p->tcp.due.syn || p->tcp.due.reset || p->tcp.tlp.due ||
                                   p->tcp.due.keep || p->tcp.due.probe || p->tcp.scoreboard.lost)) {
            p->stamp -= (uint32_t)((end_us - p->now_us) / 1000);
            return; /* a packet must be sent now: the script has to expect it and then wait again */
        }
    }
    p->now_us = end_us;
}

/* Timers fire once the time has passed. */
static void stop_clock(struct play *p)
{
    p->now_us += 1000 * number(p, 1);
    p->stamp += (uint32_t)number(p, 1);
    if (utcp_deadline(&p->tcp) <= p->now_us)
        utcp_timeout(&p->tcp, p->now_us);
}

static void expect_figure(struct play *p)
{
    static const char *const names[] = {"closed",     "syn-sent",   "syn-received", "established", "fin-wait-1",
                                        "fin-wait-2", "close-wait", "closing",      "last-ack",    "time-wait"};
    const char *what = p->word[0];
    long long is = 0;
    char was[64];

    if (!strcmp(what, "state")) {
        if (strcmp(names[p->tcp.state], p->word[1]) != 0)
            wrong(p, "another state", names[p->tcp.state]);
        return;
    }
    is = !strcmp(what, "error")      ? p->tcp.error
         : !strcmp(what, "received") ? (long long)utcp_received(&p->tcp)
         : !strcmp(what, "acked")    ? (long long)utcp_acked(&p->tcp)
         : !strcmp(what, "cwnd")     ? (long long)p->tcp.cubic.cwnd
         : !strcmp(what, "urgent")   ? (long long)utcp_urgent(&p->tcp)
         : !strcmp(what, "emss")     ? (long long)utcp_emss(&p->tcp, 20)
                                     : (long long)p->tcp.rx.kept;
    snprintf(was, sizeof(was), "%lld", is);
    if (is != atoll(p->word[1]))
        wrong(p, what, was);
}

static void ask_user(struct play *p)
{
    const char *what = p->word[0];

    if (!strcmp(what, "send"))
        utcp_send(&p->tcp, number(p, 1));
    else if (!strcmp(what, "finish"))
        utcp_finish(&p->tcp);
    else if (!strcmp(what, "abort"))
        utcp_abort(&p->tcp);
    else if (!strcmp(what, "release"))
        utcp_release(&p->tcp, number(p, 1));
    else if (!strcmp(what, "limit"))
        utcp_limit(&p->tcp, number(p, 1));
    else if (!strcmp(what, "refuse"))
        p->refuse = number(p, 1);
    else if (!strcmp(what, "keep"))
        p->keep = number(p, 1);
    else if (!strcmp(what, "mtu"))
        utcp_set_mtu(&p->tcp, (uint32_t)number(p, 1));
    else if (!strcmp(what, "toobig"))
        utcp_too_big(&p->tcp, ISN + (uint32_t)number(p, 1), (uint32_t)number(p, 2));
    else
        wrong(p, "no such step", what);
}

static void step(struct play *p)
{
    const char *what = p->word[0];

    if (!strcmp(what, "active") || !strcmp(what, "passive"))
        begin(p);
    else if (!strcmp(what, "<") && p->words >= 6)
        come_in(p);
    else if (!strcmp(what, ">") && p->words >= 5)
        expect_out(p);
    else if (!strcmp(what, "none"))
        expect_none(p);
    else if (!strcmp(what, "wait"))
        pass_time(p);
    else if (!strcmp(what, "stop"))
        stop_clock(p);
    else if (!strcmp(what, "state") || !strcmp(what, "error") || !strcmp(what, "received") || !strcmp(what, "acked") ||
             !strcmp(what, "kept") || !strcmp(what, "emss") || !strcmp(what, "urgent") || !strcmp(what, "cwnd"))
        expect_figure(p);
    else
        ask_user(p);
}

void tcpscript_play(const char *name, const char *script)
{
    struct play *p = calloc(1, sizeof(*p));
    char line[256];

    assert_non_null(p);
    p->name = name;
    p->now_us = 5000000;
    while (*script) {
        size_t n = strcspn(script, "\n");
        char *save;

        p->line++;
        assert_true(n < sizeof(line));
        memcpy(line, script, n);
        line[n] = 0;
        script += n + (script[n] != 0);
        line[strcspn(line, "#")] = 0;
        p->words = 0;
        for (char *w = strtok_r(line, " ", &save); w && p->words < WORDS; w = strtok_r(NULL, " ", &save))
            p->word[p->words++] = w;
        if (p->words)
            step(p);
    }
    free(p);
}
