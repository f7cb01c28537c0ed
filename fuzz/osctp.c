/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp.c - packets of a peer to an SCTP association of ours, close to correct ones: TSNs are relative to what it
 * expects. No message is taken twice, all packets that go out are well-formed, and time-outs end.
 *
 * Input: an octet with how the association begins, then records: an octet that selects the action, and its
 * operands. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fuzz/lib/input.h"
#include "sctp/osctp.h"

enum {
    OUR_PORT = 10,
    PEER_PORT = 20,
    PEER_TAG = 77,
    TSNS = 1 << 16,
    PACKET = 4096,
    STEPS_MAX = 512,
    OUTS_MAX = 2 * OSCTP_PACKETS,
    ROUNDS_MAX = 100,
    HEAD = 4,
    WINDOW = 100000,
};
enum {
    DO_DATA,
    DO_SACK,
    DO_CHUNK,
    DO_RAW,
    DO_INIT,
    DO_SUBMIT,
    DO_TIME,
    DO_WINDOW,
    DO_END,
    DO_SCARCE,
    DO_SEND,
    DO_KINDS
};
enum { ABORT = 6, SHUTDOWN_COMPLETE = 14 };

struct world {
    struct osctp o;
    struct osctp_attr attr;
    struct osctp_sent *sent;
    uint8_t *seen;
    uint64_t now_us;
    uint32_t lent, peer_tsn;
    uint8_t refuse, scarce;
    uint8_t packet[PACKET], *end;
};

static const uint64_t key[2] = {1, 2};
static const uint8_t octets[OSCTP_PACKET_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static bool take(void *of, const struct osctp_data *data)
{
    struct world *w = of;
    uint32_t at = data->tsn - w->peer_tsn, sum = 0;

    assert(data->octets > 0);
    for (uint32_t i = 0; i < data->octets; i++)
        sum += data->data[i]; /* a sanitizer sees whether they are there */
    if (w->refuse && (sum + at) % w->refuse == 0)
        return false;
    if (at < TSNS) {
        assert(!w->seen[at]);
        w->seen[at] = 1;
    }
    return true;
}

static uint8_t *lend(void *of)
{
    struct world *w = of;

    if (w->scarce && w->lent % w->scarce == 0)
        return NULL;
    w->lent++;
    return malloc(w->attr.packet_max);
}

static void put_back(void *of, uint8_t *packet)
{
    struct world *w = of;

    assert(packet && w->lent);
    w->lent--;
    free(packet);
}

static void skip_stream(void *of, uint16_t stream)
{
    (void)of;
    (void)stream;
}

static const struct osctp_user user = {take, skip_stream, lend, put_back};

/* --- what goes out ------------------------------------------------------------------------------------------- */

static void check_packet(const struct world *w, const uint8_t *p, uint32_t n)
{
    uint32_t at = PACKET_COMMON;

    assert(n >= PACKET_COMMON + HEAD && n % 4 == 0);
    assert(n <= w->attr.packet_max || (n <= OSCTP_ANSWER && p[PACKET_COMMON] != 0));
    assert(packet_source(p) == OUR_PORT && packet_destination(p) == PEER_PORT);
    while (at < n) {
        uint32_t chunk = get16(p + at + 2);

        assert(n - at >= HEAD && chunk >= HEAD && chunk <= n - at);
        assert(p[at] || chunk > OSCTP_CHUNK_HEAD);
        assert(w->o.state != OSCTP_CLOSED || p[at] == ABORT || p[at] == SHUTDOWN_COMPLETE);
        at += (chunk + 3) & ~3U;
    }
    assert(at == n);
}

static void check_counters(const struct osctp *o)
{
    uint32_t flight = 0, lost = 0, queued = 0;

    for (uint32_t i = o->tx.first; i != o->tx.end; i++) {
        const struct osctp_sent *sent = &o->tx.sent[i % OSCTP_PACKETS];
        bool was_sent = i - o->tx.first < o->tx.unsent - o->tx.first;

        assert(!sent->flying || (was_sent && !sent->gap_acked));
        flight += sent->flying ? sent->payload : 0;
        lost += was_sent && !sent->flying && !sent->gap_acked;
        queued += sent->octets;
    }
    assert(flight == o->congestion.flight && lost == o->tx.lost && queued == o->tx.queued);
    assert(o->tx.cum - o->attr.tsn + 1 <= o->tx.next - o->attr.tsn);
}

static void drain(struct world *w)
{
    const uint8_t *p;
    uint32_t n;

    for (uint32_t outs = 0; osctp_output(&w->o, &p, &n, w->now_us); outs++) {
        check_packet(w, p, n);
        assert(packet_is_sound(p, n));
        assert(outs < OUTS_MAX);
    }
    check_counters(&w->o);
}

/* The host calls back until the deadline lies ahead. */
static void pass_time(struct world *w, uint64_t us)
{
    w->now_us += us;
    for (uint32_t rounds = 0; osctp_deadline(&w->o) <= w->now_us; rounds++) {
        assert(rounds < ROUNDS_MAX);
        osctp_timeout(&w->o, w->now_us);
        drain(w);
    }
}

/* --- what comes in ------------------------------------------------------------------------------------------- */

/* Begins a packet with the tag that our end expects. */
static void begin_packet(struct world *w)
{
    w->end = put32(put32(put16(put16(w->packet, PEER_PORT), OUR_PORT), w->attr.tag), 0);
}

/* The packet ends where memory ends. */
static void send_packet(struct world *w)
{
    uint32_t n = (uint32_t)(w->end - w->packet);
    uint8_t *copy = malloc(n), reply[OSCTP_ANSWER];
    struct osctp_cookie cookie;

    assert(copy);
    memcpy(copy, w->packet, n);
    osctp_input(&w->o, copy, n, w->now_us);
    /* The host asks these about packets that belong to no association. */
    if (n >= PACKET_COMMON) {
        assert(osctp_answer(&w->attr, key, 1, copy, n, reply, w->now_us) <= OSCTP_ANSWER);
        if (osctp_read_echo(key, 1, copy, n, &cookie))
            osctp_collide_echo(&w->o, &cookie, w->now_us);
        assert(osctp_refuse(copy, n, reply) <= OSCTP_ANSWER);
    }
    free(copy);
    begin_packet(w);
}

/* Appends a chunk whose value ends at `end`. Does nothing if there is no space. */
static void close_chunk(struct world *w, uint8_t type, uint8_t flags, uint8_t *end)
{
    uint8_t *head = w->end;

    put16(put8(put8(head, type), flags), (uint16_t)(end - head));
    while ((end - head) % 4)
        *end++ = 0;
    w->end = end;
}

/* A small distance, mostly forwards. */
static uint32_t near(struct input *in)
{
    uint8_t by = input8(in);

    return by < 240 ? by : (uint32_t)(by - 256) * (1U + input8(in));
}

static void put_data(struct world *w, struct input *in)
{
    uint32_t tsn = w->o.rx.cum + 1 + near(in), n = input8(in);
    uint8_t more = input8(in), *q = put32(w->end + HEAD, more & 16 ? tsn * 257 : tsn);

    q = put16(put16(q, more & 32 ? more : more & 7), 0);
    q = put32(q, tsn);
    close_chunk(w, 0, more & 64 ? more : 7, q + (more & 128 ? n % 4 : n));
}

static void put_sack(struct world *w, struct input *in)
{
    uint8_t blocks = input8(in), *q = put32(w->end + HEAD, w->o.tx.cum + near(in));
    uint32_t from = 0;

    q = put32(q, blocks & 128 ? input8(in) : 1U << (blocks & 31));
    q = put16(put16(q, blocks & 7), blocks >> 3 & 3);
    for (uint32_t i = 0; i < (blocks & 7U); i++) {
        uint32_t to;

        from += near(in);
        to = from + input8(in) % 8;
        q = put16(put16(q, (uint16_t)from), (uint16_t)to);
        from = to;
    }
    for (uint32_t i = 0; i < (blocks >> 3 & 3U); i++)
        q = put32(q, w->o.tx.cum - near(in));
    close_chunk(w, 3, 0, q);
}

static void put_chunk(struct world *w, struct input *in)
{
    uint8_t type = input8(in), flags = input8(in), n = input8(in) % 64, *q = w->end + HEAD;

    if (type < 128)
        type %= 15;
    if (type == 7) /* SHUTDOWN */
        q = put32(q, w->o.tx.cum + near(in));
    q += input_octets(in, q, n);
    close_chunk(w, type, flags, q);
    if (n == 63) /* an impossible length */
        put16(w->end - HEAD, input16(in));
}

/* The tag of the packet is right, or none, or the peer's own. */
static void put_tag(struct world *w, uint8_t how)
{
    put32(w->packet + 4, how % 4 == 0 ? 0 : how % 4 == 1 ? PEER_TAG : how % 4 == 2 ? w->attr.tag : how);
}

static void put_init(struct world *w, struct input *in)
{
    uint8_t how = input8(in), *q = put32(w->end + HEAD, how & 1 ? 0 : PEER_TAG);

    q = put32(q, WINDOW);
    q = put16(put16(q, how & 2 ? 0 : 10), how & 4 ? 0 : 10);
    q = put32(q, w->peer_tsn);
    if (how & 8)
        q = put32(put16(put16(q, 0xc006), 8), 5);
    if (how & 16) /* a cookie */
        q = put32(put16(put16(q, 7), 8), 9);
    q += input_octets(in, q, how >> 3 & 28);
    close_chunk(w, input8(in) % 4 ? 2 : 1, 0, q);
}

static void raw(struct world *w, struct input *in)
{
    uint8_t n = input8(in);

    if (n & 128)
        w->end = w->packet;
    w->end += input_octets(in, w->end, n & 127);
}

/* --- the run ------------------------------------------------------------------------------------------------- */

static void submit(struct world *w, struct input *in)
{
    uint32_t n = input16(in) % (w->attr.packet_max + 8), count = input8(in) % 32;

    for (uint32_t i = 0; i < count; i++) {
        struct span span[2] = {{octets, n / 2}, {octets, n - n / 2}};

        osctp_submit(&w->o, span, 2, (uint16_t)(n % 12), n);
    }
}

static void user_ends(struct world *w, struct input *in)
{
    uint8_t how = input8(in);

    if (how < 32)
        osctp_abort(&w->o, octets, how * 9U);
    else if (how < 128)
        osctp_shutdown(&w->o, w->now_us);
}

static void one_step(struct world *w, struct input *in)
{
    uint8_t op = input8(in), n;

    if (w->end - w->packet > PACKET / 2)
        send_packet(w);
    switch (op % DO_KINDS) {
    case DO_DATA:
        put_data(w, in);
        break;
    case DO_SACK:
        put_sack(w, in);
        break;
    case DO_CHUNK:
        put_chunk(w, in);
        break;
    case DO_RAW:
        raw(w, in);
        break;
    case DO_INIT:
        put_init(w, in);
        break;
    case DO_SUBMIT:
        submit(w, in);
        break;
    case DO_TIME:
        n = input8(in);
        if (n & 1 && osctp_deadline(&w->o) != OSCTP_NEVER && osctp_deadline(&w->o) > w->now_us)
            w->now_us = osctp_deadline(&w->o);
        pass_time(w, n & 2 ? 0 : n * 100ULL * (1U + input8(in)));
        break;
    case DO_WINDOW:
        osctp_window(&w->o, input16(in) * 16U);
        break;
    case DO_END:
        user_ends(w, in);
        break;
    case DO_SCARCE:
        w->refuse = input8(in);
        w->scarce = input8(in);
        break;
    default:
        put_tag(w, input8(in) < 16 ? input8(in) : 2);
        send_packet(w);
    }
    if (op < 128) { /* else more follows in the packet, or the host is slow to send */
        send_packet(w);
        drain(w);
    }
}

/* Our INIT-ACK has the cookie as its last parameter, without an indication in front of it. */
static void accept_one(struct world *w)
{
    uint8_t reply[OSCTP_ANSWER];
    struct osctp_cookie cookie;
    uint32_t n;

    w->end = put32(put32(w->end + HEAD, PEER_TAG), WINDOW);
    w->end = put32(put16(put16(w->end, 10), 10), w->peer_tsn);
    put16(put8(put8(w->packet + PACKET_COMMON, 1), 0), (uint16_t)(w->end - w->packet - PACKET_COMMON));
    put32(w->packet + 4, 0);
    n = osctp_answer(&w->attr, key, 1, w->packet, (uint32_t)(w->end - w->packet), reply, w->now_us);
    assert(n > OSCTP_COOKIE);
    begin_packet(w);
    put_bytes(w->end + HEAD, reply + n - OSCTP_COOKIE, OSCTP_COOKIE);
    close_chunk(w, 10, 0, w->end + HEAD + OSCTP_COOKIE);
    n = (uint32_t)(w->end - w->packet);
    assert(osctp_read_echo(key, 1, w->packet, n, &cookie));
    assert(!osctp_read_echo(key, 2, w->packet, n, &cookie));
    assert(osctp_read_echo(key, 1, w->packet, n, &cookie));
    osctp_accept(&w->o, &w->attr, &cookie, w->sent, &user, w, w->now_us);
    send_packet(w);
}

static void begin(struct world *w, uint8_t how)
{
    static const uint32_t longest[] = {256, 576, 1484, 8948};
    static const uint8_t answer[] = {16, 1}; /* an INIT-ACK with a cookie */
    struct input in = {answer, answer + sizeof(answer)};

    w->attr = (struct osctp_attr){
        .local_port = OUR_PORT,
        .peer_port = PEER_PORT,
        .packet_max = longest[how >> 2 & 3],
        .indication = how & 1 ? how : 0,
        .streams = 10,
        .window = WINDOW,
        .store = how & 16 ? 5000 : 1 << 20,
        .init_retries = 4,
        .init_max_us = 60000000,
        .tag = 0x1234567,
        .tsn = 0xffffffe0,
    };
    w->peer_tsn = how & 32 ? 0xfffffff0 : 1;
    begin_packet(w);
    if (how & 64) {
        accept_one(w);
        return;
    }
    osctp_connect(&w->o, &w->attr, w->sent, &user, w, w->now_us);
    if (how & 128)
        return;
    put_init(w, &in);
    send_packet(w);
    close_chunk(w, 11, 0, w->end + HEAD);
    send_packet(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct input in = {input, input + length};
    struct world *w = calloc(1, sizeof(*w));

    assert(w);
    w->sent = calloc(OSCTP_PACKETS, sizeof(*w->sent));
    w->seen = calloc(1, TSNS);
    assert(w->sent && w->seen);
    w->now_us = 1000000;
    begin(w, input8(&in));
    w->o.batches = length > 1 && input[0] & 2;
    drain(w);
    for (unsigned i = 0; i < STEPS_MAX && input_left(&in); i++)
        one_step(w, &in);
    drain(w);
    osctp_free(&w->o);
    assert(!osctp_output(&w->o, &(const uint8_t *){NULL}, &(uint32_t){0}, w->now_us));
    assert(!w->lent && osctp_deadline(&w->o) == OSCTP_NEVER);
    free(w->sent);
    free(w->seen);
    free(w);
    return 0;
}
