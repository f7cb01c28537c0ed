/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpscript.c - one step per line; the host of one association, which checks what the engine promises to its host. */
#include "tests/lib/sctpscript.h"

#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sctp/chunk.h"
#include "sctp/osctp.h"
#include "tests/lib/sctphost.h"
#include "tests/lib/sctptext.h"

enum {
    WORDS = 16,
    LINE = 4096,
    OUTS = 20000,
    TSNS = 65536,
    PACKET_MAX = 1484,
    TEXT = 3000,
    STREAMS = 10,
    BEGAN_US = 5000000
};

struct out {
    char *text;
    uint64_t at_us;
};

struct play {
    const char *name;
    uint32_t line;
    struct osctp o;
    struct sctphost host;
    struct osctp_sent sent[OSCTP_PACKETS];
    struct sctptext text;
    uint64_t now_us, step_us; /* step_us: when the last step began that was not an expectation */
    bool quiet;               /* the host does not send yet */
    uint32_t refuse, scarce, submitted, taken, skipped, lent;
    bool ect; /* the last packet was ECN-capable */
    uint8_t seen[TSNS];
    struct out out[OUTS];
    uint32_t first, end; /* of out */
    char *word[WORDS];
    uint32_t words;
};

static _Noreturn void wrong(const struct play *p, const char *what, const char *was)
{
    fail_msg("%s, line %u: %s (%s)", p->name, p->line, what, was);
    abort();
}

static double fraction(const struct play *p, uint32_t i)
{
    char *end = NULL;
    double n = i < p->words ? strtod(p->word[i], &end) : 0;

    if (i >= p->words || *end)
        wrong(p, "a number is missing", i < p->words ? p->word[i] : "end of line");
    return n;
}

static uint32_t number(const struct play *p, uint32_t i)
{
    return (uint32_t)fraction(p, i);
}

static uint32_t setting(const struct play *p, const char *key, uint32_t otherwise)
{
    size_t n = strlen(key);

    for (uint32_t i = 1; i < p->words; i++)
        if (strncmp(p->word[i], key, n) == 0 && p->word[i][n] == '=')
            return (uint32_t)strtol(p->word[i] + n + 1, NULL, 0);
    return otherwise;
}

static bool has_word(const struct play *p, const char *word)
{
    for (uint32_t i = 1; i < p->words; i++)
        if (!strcmp(p->word[i], word))
            return true;
    return false;
}

/* --- the user of the association ----------------------------------------------------------------------------- */

static bool take(void *of, const struct osctp_data *data)
{
    struct play *p = of;
    uint32_t tsn = data->tsn - SCTPTEXT_PEER_ZERO;

    if (!data->octets || tsn >= TSNS || p->seen[tsn])
        wrong(p, "a chunk is empty, far away, or comes twice", "");
    for (uint32_t i = 0; i < data->octets; i++)
        if (data->data[i] != sctptext_octet(tsn, i))
            wrong(p, "a chunk has other octets", "");
    if (p->refuse) {
        p->refuse--;
        return false;
    }
    p->seen[tsn] = 1;
    p->taken++;
    return true;
}

static uint8_t *lend(void *of)
{
    struct play *p = of;

    if (p->scarce) {
        p->scarce--;
        return NULL;
    }
    p->lent++;
    return malloc(p->host.attr.packet_max);
}

static void put_back(void *of, uint8_t *packet)
{
    struct play *p = of;

    p->lent--;
    free(packet);
}

static void skip_stream(void *of, uint16_t stream)
{
    (void)stream;
    ((struct play *)of)->skipped++;
}

static const struct osctp_user user = {take, skip_stream, lend, put_back};

/* --- packets ------------------------------------------------------------------------------------------------- */

static void go_out(struct play *p, const uint8_t *octets, uint32_t n)
{
    char text[TEXT];
    struct out *out = &p->out[p->end++];

    if (p->end == OUTS)
        wrong(p, "more packets go out than anybody expects", "");
    sctptext_decode(&p->text, octets, n, text, sizeof(text));
    if (n > p->host.attr.packet_max)
        wrong(p, "a packet is too long", text);
    if (getenv("SCRIPT_VERBOSE"))
        fprintf(stderr, "%s, line %u, %llu us: %s\n", p->name, p->line, (unsigned long long)p->now_us - BEGAN_US, text);
    *out = (struct out){strdup(text), p->now_us};
    assert_non_null(out->text);
}

static void drain(struct play *p)
{
    const uint8_t *octets;
    uint32_t n;

    while (p->host.begun && !p->quiet && osctp_output(&p->o, &octets, &n, p->now_us)) {
        if (!packet_is_sound(octets, n))
            wrong(p, "a packet has a wrong checksum", "");
        p->ect = osctp_is_ect(&p->o, octets);
        go_out(p, octets, n);
    }
}

/* The packet ends where memory ends, so that a sanitizer sees who reads on. */
static void come_in(struct play *p, const char *packet, bool strange)
{
    uint8_t *octets = malloc(SCTPTEXT_OCTETS), *end;
    char line[LINE];
    const char *what = "";
    uint32_t n;

    snprintf(line, sizeof(line), "%s", packet);
    n = sctptext_encode(&p->text, line, octets, &what);
    if (!n)
        wrong(p, "no packet", what);
    end = malloc(n);
    assert_non_null(end);
    memcpy(end, octets, n);
    free(octets);
    n = strange ? osctp_refuse(end, n, p->host.reply) : sctphost_input(&p->host, p->text.from, end, n, p->now_us);
    if (n)
        go_out(p, p->host.reply, n);
    free(end);
}

/* Forgets the first packet that was sent. */
static void forget(struct play *p)
{
    free(p->out[p->first++].text);
    if (p->first == p->end)
        p->first = p->end = 0;
}

static void expect_out(struct play *p, const char *line)
{
    char *end = NULL;
    uint32_t times = line[1] >= '0' && line[1] <= '9' ? (uint32_t)strtoul(line + 1, &end, 10) : 1;
    double at_ms = line[1] == '@' ? strtod(line + 2, &end) : 0;
    const char *pattern = strchr(line, ' ') + 1;

    for (; times; times--) {
        const struct out *out = &p->out[p->first];
        double was_ms;

        if (p->first == p->end)
            wrong(p, "nothing goes out", pattern);
        was_ms = (double)(out->at_us - p->step_us) / 1000;
        if (fnmatch(pattern, out->text, 0) != 0)
            wrong(p, pattern, out->text);
        if (line[1] == '@' && (was_ms < at_ms - 0.001 || was_ms > at_ms + 0.001))
            fail_msg("%s, line %u: sent at %g ms: %s", p->name, p->line, was_ms, out->text);
        forget(p);
    }
}

/* --- steps --------------------------------------------------------------------------------------------------- */

static void begin(struct play *p, bool active)
{
    p->host.attr = (struct osctp_attr){
        .local_port = SCTPTEXT_OUR_PORT,
        .peer_port = SCTPTEXT_PEER_PORT,
        .packet_max = setting(p, "packet", PACKET_MAX),
        .indication = setting(p, "indication", 0),
        .streams = (uint16_t)setting(p, "streams", STREAMS),
        .window = setting(p, "window", 1 << 20),
        .store = setting(p, "store", 1 << 22),
        .init_retries = setting(p, "retries", 8),
        .init_max_us = 1000ULL * setting(p, "initmax", 60000),
        .ecn = has_word(p, "ecn"),
        .tag = SCTPTEXT_OURS,
        .tsn = SCTPTEXT_ZERO + 1U,
    };
    p->text.window = p->host.attr.window;
    p->host.listening = !active;
    p->host.begun = active;
    if (active)
        osctp_connect(&p->o, &p->host.attr, p->sent, &user, p, p->now_us);
}

static void set_up(struct play *p)
{
    bool active = !has_word(p, "passive");
    char init[128];

    begin(p, active);
    drain(p);
    snprintf(init, sizeof(init), "%s window=%u%s", active ? "init-ack" : "init", setting(p, "rwnd", 1 << 20),
             p->host.attr.ecn ? " param=0x8000:" : "");
    come_in(p, init, false);
    drain(p);
    come_in(p, active ? "cookie-ack" : "echo", false);
    drain(p);
    if (p->end != 2)
        wrong(p, "two packets set up an association", "");
    while (p->end)
        forget(p);
}

static void pass_time(struct play *p)
{
    uint64_t end_us = p->now_us + (uint64_t)(1000 * fraction(p, 1) + 0.5);

    for (uint32_t rounds = 0; p->host.begun && osctp_deadline(&p->o) <= end_us; rounds++) {
        uint64_t at_us = osctp_deadline(&p->o);

        if (at_us > p->now_us)
            rounds = 0;
        else if (rounds > 100)
            wrong(p, "time-outs do not end", "");
        p->now_us = at_us > p->now_us ? at_us : p->now_us;
        osctp_timeout(&p->o, p->now_us);
        drain(p);
    }
    p->now_us = end_us;
}

static void submit(struct play *p)
{
    static uint8_t octets[OSCTP_PACKET_MAX];
    uint32_t n = number(p, 1), third = n / 3;
    int error = (int)setting(p, "error", 0);

    for (uint32_t i = setting(p, "count", 1); i; i--) {
        struct span span[2] = {{octets, third}, {octets + third, n - third}};
        int is;

        for (uint32_t k = 0; k < n; k++)
            octets[k] = sctptext_octet(p->submitted + 1, k);
        is = osctp_submit(&p->o, span, 2, (uint16_t)setting(p, "stream", 0), setting(p, "ppid", 0));
        if (is != error)
            wrong(p, "osctp_submit()", strerror(-is));
        p->submitted += !is;
    }
}

static void expect_name(struct play *p, const char *const *names, uint32_t is)
{
    if (strcmp(names[is], p->word[1]) != 0)
        wrong(p, p->word[0], names[is]);
}

static void expect_figure(struct play *p)
{
    static const char *const states[] = {"closed",           "cookie-wait",   "cookie-echoed",     "established",
                                         "shutdown-pending", "shutdown-sent", "shutdown-received", "shutdown-ack-sent"};
    static const char *const ends[] = {"shut", "aborted", "lost", "left"};
    const struct osctp *o = &p->o;
    uint64_t deadline_us = osctp_deadline(o);
    const struct {
        const char *name;
        double is;
    } figure[] = {{"taken", p->taken},
                  {"skipped", p->skipped},
                  {"restarts", p->host.restarts},
                  {"urgent", osctp_urgent(o)},
                  {"space", osctp_has_space(o)},
                  {"indication", o->peer_indication},
                  {"flight", o->congestion.flight},
                  {"cwnd", o->congestion.window},
                  {"lost", o->tx.lost},
                  {"marks", (double)o->count.marks},
                  {"ect", p->ect},
                  {"looks", (double)o->count.looks},
                  {"lent", p->lent},
                  {"payload", osctp_payload_max(o)},
                  {"deadline", deadline_us == OSCTP_NEVER ? -1 : ((double)deadline_us - (double)p->now_us) / 1000}};
    char was[OSCTP_REASON + 1];

    if (!strcmp(p->word[0], "state")) {
        expect_name(p, states, o->state);
        return;
    }
    if (!strcmp(p->word[0], "end")) {
        if (o->state != OSCTP_CLOSED)
            wrong(p, "not over", states[o->state]);
        expect_name(p, ends, o->end);
        return;
    }
    if (!strcmp(p->word[0], "reason")) {
        snprintf(was, sizeof(was), "%.*s", (int)o->reason_octets, (const char *)o->reason);
        if (strcmp(was, p->words > 1 ? p->word[1] : "") != 0)
            wrong(p, "reason", was);
        return;
    }
    for (size_t i = 0; i < sizeof(figure) / sizeof(figure[0]); i++) {
        if (strcmp(figure[i].name, p->word[0]) != 0)
            continue;
        snprintf(was, sizeof(was), "%.10g", figure[i].is);
        if (figure[i].is != fraction(p, 1))
            wrong(p, p->word[0], was);
        return;
    }
    wrong(p, "no such step", p->word[0]);
}

static bool ask_user(struct play *p)
{
    const char *what = p->word[0];

    if (!strcmp(what, "send")) {
        submit(p);
    } else if (!strcmp(what, "window")) {
        p->text.window = number(p, 1);
        osctp_window(&p->o, number(p, 1));
    } else if (!strcmp(what, "shutdown")) {
        osctp_shutdown(&p->o, p->now_us);
    } else if (!strcmp(what, "abort")) {
        osctp_abort(&p->o, p->words > 1 ? p->word[1] : "", p->words > 1 ? (uint32_t)strlen(p->word[1]) : 0);
    } else if (!strcmp(what, "free")) {
        osctp_free(&p->o);
    } else if (!strcmp(what, "refuse")) {
        p->refuse = number(p, 1);
    } else if (!strcmp(what, "scarce")) {
        p->scarce = number(p, 1);
    } else if (!strcmp(what, "batches")) {
        p->o.batches = true;
    } else if (!strcmp(what, "marked")) {
        osctp_marked(&p->o);
    } else if (!strcmp(what, "key")) {
        p->host.key[0] = number(p, 1);
    } else if (!strcmp(what, "our")) {
        p->host.attr.tag = number(p, 2);
    } else if (!strcmp(what, "wait")) {
        pass_time(p);
    } else {
        return false;
    }
    return true;
}

static void step(struct play *p, const char *line)
{
    const char *what = p->word[0], *packet = strchr(line, ' ') ? strchr(line, ' ') + 1 : "";

    if (what[0] == '>') {
        expect_out(p, line);
        return;
    }
    if (!strcmp(what, "none")) {
        if (p->first != p->end)
            wrong(p, "nothing is to go out", p->out[p->first].text);
        return;
    }
    p->quiet = !strcmp(what, "<+");
    p->step_us = p->now_us;
    if (!strcmp(what, "active") || !strcmp(what, "passive"))
        begin(p, what[0] == 'a');
    else if (!strcmp(what, "up"))
        set_up(p);
    else if (what[0] == '<' || what[0] == '?')
        come_in(p, packet, what[0] == '?');
    else if (!strcmp(what, "drop"))
        while (p->end)
            forget(p);
    else if (!ask_user(p))
        expect_figure(p);
    drain(p);
}

static void play_line(struct play *p, const char *text, size_t n)
{
    char line[LINE], copy[LINE], *save;

    p->line++;
    assert_true(n < sizeof(line));
    memcpy(line, text, n);
    line[n] = 0;
    for (n = strcspn(line, "#"); n && line[n - 1] == ' ';)
        n--;
    line[n] = 0;
    memcpy(copy, line, sizeof(copy));
    p->words = 0;
    for (char *w = strtok_r(copy, " ", &save); w && p->words < WORDS; w = strtok_r(NULL, " ", &save))
        p->word[p->words++] = w;
    if (p->words)
        step(p, line);
}

void sctpscript_play(const char *name, const char *script)
{
    struct play *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    p->name = name;
    p->now_us = BEGAN_US;
    p->host = (struct sctphost){.o = &p->o, .sent = p->sent, .user = &user, .of = p, .key = {1, 2}};
    while (*script) {
        size_t n = strcspn(script, "\n");

        play_line(p, script, n);
        script += n + (script[n] != 0);
    }
    if (p->host.begun)
        osctp_free(&p->o);
    assert_int_equal(p->lent, 0);
    while (p->end)
        forget(p);
    free(p);
}
