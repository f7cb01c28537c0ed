/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp.c - packets of a peer to a TCP connection, close to correct ones: numbers are relative to what the connection
 * expects.
 *
 * Input: an octet with how the connection began, then steps of 12 octets: the action, flags, position in the stream,
 * length, acknowledgement, window, and an option. The last step may be a raw packet. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "tcp/host.h"

enum { STEP = 12, SENTS = 64, OOO_RANGES = 8, WINDOW = 20000, TO_SEND = 1 << 20, PACKETS = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static const uint8_t octets[65536];
static struct utcp tcp;
static struct utcp_sent sent[SENTS];
static struct utcp_ooo_range ooo[OOO_RANGES];
static uint64_t handed[WINDOW * 64 / 64]; /* a bit for each octet of the stream that was received */

static uint32_t cut(void *user, uint64_t position, uint32_t ready, uint32_t space)
{
    (void)user;
    assert(position < TO_SEND && ready && space >= 24);
    return ready < space - 4 ? ready : space - 4;
}

static void fetch(void *user, uint64_t position, uint32_t n, struct utcp_piece *piece)
{
    (void)user;
    assert(n && position + n <= TO_SEND);
    piece->spans = 1;
    piece->span[0] = (struct span){octets, n};
    put32(piece->option, 25U << 24 | 4 << 16);
    piece->option_length = 4;
}

static struct utcp_verdict arrived(void *user, const struct utcp_arrival *a)
{
    uint32_t taken = a->length;

    (void)user;
    assert(a->length && a->position >= a->segment_position);
    assert(a->position + a->length <= a->segment_position + a->segment_length);
    assert(!a->option || a->option[0] == 25);
    if (a->position + a->length > sizeof(handed) * 8 || a->position % 7 == 3)
        return (struct utcp_verdict){0, 0};
    if (a->position % 5 == 2)
        taken = 1 + (taken - 1) / 3;
    for (uint64_t p = a->position; p < a->position + taken; p++) {
        assert(!(handed[p / 64] >> p % 64 & 1));
        handed[p / 64] |= 1ULL << p % 64;
    }
    return (struct utcp_verdict){taken, a->position % 2 ? taken : 0};
}

static const struct utcp_user user = {cut, fetch, arrived};

static bool listens(void *of, const struct utcp_name *local)
{
    (void)of;
    return local->port % 2;
}

static struct utcp *accept_none(void *of, const struct utcp_name *local, const struct utcp_name *remote)
{
    (void)of;
    (void)local;
    (void)remote;
    return 0;
}

static const struct utcp_host_user host_user = {.listens = listens, .accept = accept_none};

static void check(void)
{
    uint64_t flight = 0, at = 0;

    for (uint32_t i = 0; i < tcp.scoreboard.count; i++) {
        const struct utcp_sent *s = utcp_scoreboard_at(&tcp.scoreboard, i);

        assert(s->from >= at);
        at = s->from + s->length;
        flight += s->flags & (UTCP_SENT_SACKED | UTCP_SENT_LOST) ? 0 : s->length;
    }
    assert(flight == tcp.scoreboard.flight && at <= tcp.tx.next && tcp.tx.next <= tcp.tx.max);
    for (uint32_t i = 1; i < tcp.ooo.count; i++)
        assert(tcp.ooo.range[tcp.ooo.first + i - 1].to < tcp.ooo.range[tcp.ooo.first + i].from);
}

static void drain(uint64_t now_us)
{
    struct utcp_packet p;
    uint32_t n = 0;

    while (utcp_output(&tcp, &p, now_us)) {
        assert(p.head_length <= UTCP_HEAD_MAX && p.spans <= UTCP_SPANS);
        assert(p.head_length + p.length <= tcp.attr.mtu || tcp.attr.mtu < 600 || tcp.path.size);
        assert(++n < PACKETS + SENTS);
    }
    check();
}

/* A distance, forwards or backwards. */
static uint32_t near(const uint8_t *p)
{
    uint32_t by = get16(p);

    return by & 0x8000 ? by | 0xffff0000 : by;
}

static void come_in(const uint8_t *p, uint64_t now_us)
{
    struct utcp_segment s = {
        .flags = p[1] & 0x3f,
        .seq = tcp.rx.irs + (uint32_t)tcp.rx.next + near(p + 2),
        .length = get16(p + 4) % 3000,
        .payload = octets,
        .ack = tcp.attr.isn + (uint32_t)tcp.tx.una + near(p + 6),
        .window = get16(p + 8),
    };
    uint8_t extra[4] = {25, 4, p[11], 0};

    s.opt.has_stamp = p[10] & 1;
    s.opt.stamp = tcp.stamps.recent + (uint32_t)(p[11] & 3);
    s.opt.echo = tcp.stamps.last;
    s.opt.has_mss = p[10] & 2;
    s.opt.mss = get16(p + 2);
    s.opt.has_wscale = p[10] & 4;
    s.opt.wscale = p[11] % 15;
    s.opt.sack_permitted = p[10] & 8;
    s.opt.extra = p[10] & 16 ? extra : 0;
    s.opt.extra_length = p[10] & 64 ? 2 : 4;
    for (s.opt.sacks = 0; p[10] & 32 && s.opt.sacks < p[11] % 4; s.opt.sacks++)
        s.opt.sack[s.opt.sacks] = (struct utcp_block){s.ack + p[11] * (1U + s.opt.sacks), s.ack + p[9] * 100U};
    utcp_input(&tcp, &s, now_us);
}

static void act(const uint8_t *p)
{
    uint64_t position = tcp.tx.end - 1 + get16(p + 2);

    switch (p[1] % 7) {
    case 0:
        if (!tcp.tx.finish && position <= TO_SEND)
            utcp_send(&tcp, position);
        break;
    case 1:
        utcp_release(&tcp, tcp.rx.kept / (p[2] % 3 + 1U));
        break;
    case 2:
        utcp_finish(&tcp);
        break;
    case 3:
        utcp_too_big(&tcp, tcp.attr.isn + (uint32_t)tcp.tx.una + p[2], get16(p + 4));
        break;
    case 4:
        utcp_set_mtu(&tcp, 576 + get16(p + 2) % 9000);
        break;
    case 5:
        utcp_limit(&tcp, utcp_received(&tcp) + get16(p + 2));
        break;
    default:
        if (p[2] == 0)
            utcp_abort(&tcp);
    }
}

static void raw(const uint8_t *p, size_t n)
{
    static struct utcp *bucket[4];
    static struct utcp_half half[4];
    struct utcp_host_buffers buffers = {bucket, half, 4, 4};
    struct utcp_host_attr attr = {.key = {1, 2}};
    struct utcp_packet out;
    struct utcp_host host;

    memset(half, 0, sizeof(half));
    utcp_attr_default(&attr.tcp);
    attr.tcp.option_kind = 25;
    utcp_host_init(&host, &attr, &buffers, &host_user, 0);
    utcp_host_input(&host, p, (uint32_t)n, true, 1);
    while (utcp_host_output(&host, &out, 1))
        assert(out.head_length <= UTCP_HEAD_MAX);
}

static void begin(uint8_t how)
{
    struct utcp_handshake h = {.send_next = 5,
                               .receive_next = 0xfffffff0,
                               .window = 10000,
                               .mss = 1000,
                               .scale = how & 7,
                               .sack = how & 8,
                               .stamps = how & 16,
                               .option = how & 32,
                               .edge = WINDOW};
    struct utcp_buffers buffers = {sent, SENTS, ooo, OOO_RANGES};
    struct utcp_attr attr;

    memset(handed, 0, sizeof(handed));
    h.local.ip[10] = h.local.ip[11] = h.remote.ip[10] = h.remote.ip[11] = how & 128 ? 0 : 0xff;
    h.remote.ip[0] = 1;
    utcp_attr_default(&attr);
    attr.window = WINDOW;
    attr.option_kind = 25;
    attr.keep_idle_us = 5000000;
    utcp_open(&tcp, &attr, &buffers, &user, 0);
    if (how & 64)
        utcp_connect(&tcp, &h.local, &h.remote);
    else
        utcp_adopt(&tcp, &h, 1000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    uint64_t now_us = 1000000;

    if (length < 1)
        return 0;
    begin(input[0]);
    drain(now_us);
    for (input++, length--; length >= STEP; input += STEP, length -= STEP) {
        if (input[0] == 255)
            break;
        now_us += input[0] & 3 ? input[0] : 1000ULL * input[0];
        if (utcp_deadline(&tcp) <= now_us || input[0] % 16 == 15) {
            now_us = utcp_deadline(&tcp) != UTCP_NEVER && utcp_deadline(&tcp) > now_us ? utcp_deadline(&tcp) : now_us;
            utcp_timeout(&tcp, now_us);
        }
        if (input[0] % 8 == 7)
            act(input);
        else
            come_in(input, now_us);
        drain(now_us);
    }
    raw(input, length);
    return 0;
}
