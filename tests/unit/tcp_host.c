/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_host.c - many connections at one address: delivery of packets, SYN floods, stray segments, reopened
 * connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/tcpnet.h"
#include "tcp/cookie.h"

enum { BUCKETS = 16, HALVES = 64, TCPS = 8, ISN = 5000, OPTION = 25 };

struct rig {
    struct utcp_host host;
    struct utcp *bucket[BUCKETS];
    struct utcp_half half[HALVES];
    struct utcp tcp[TCPS];
    struct utcp_sent sent[TCPS][16];
    struct utcp_ooo_range ooo[TCPS][16];
    uint32_t tcps, space, forged;
    bool listening;
    struct utcp_attr attr;
    uint64_t now_us;
};

static uint32_t cut(void *user, uint64_t position, uint32_t ready, uint32_t space)
{
    (void)user;
    (void)position;
    return ready < space ? ready : space;
}

static void fetch(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece)
{
    (void)user;
    (void)position;
    (void)length;
    piece->spans = 0;
}

static struct utcp_verdict arrived(void *user, const struct utcp_arrival *a)
{
    (void)user;
    return (struct utcp_verdict){.taken = a->length};
}

static bool listens(void *of, const struct utcp_name *local)
{
    const struct rig *r = of;

    return r->listening && local->port == 80;
}

static struct utcp *accept_one(void *of, const struct utcp_name *local, const struct utcp_name *remote)
{
    static const struct utcp_user user = {cut, fetch, arrived};
    struct rig *r = of;
    struct utcp_buffers buffers = {r->sent[r->tcps], 16, r->ooo[r->tcps], 16};

    (void)local;
    (void)remote;
    if (r->tcps == r->space)
        return NULL;
    utcp_open(&r->tcp[r->tcps], &r->attr, &buffers, &user, r);
    return &r->tcp[r->tcps++];
}

static int set_up(void **state)
{
    static const struct utcp_host_user user = {.listens = listens, .accept = accept_one};
    struct rig *r = calloc(1, sizeof(*r));
    struct utcp_host_attr attr = {.key = {1, 2}};
    struct utcp_host_buffers buffers;

    assert_non_null(r);
    buffers = (struct utcp_host_buffers){r->bucket, r->half, BUCKETS, HALVES};
    utcp_attr_default(&r->attr);
    r->attr.option_kind = OPTION;
    attr.tcp = r->attr;
    r->space = TCPS;
    r->listening = true;
    r->now_us = 2000000;
    utcp_host_init(&r->host, &attr, &buffers, &user, r);
    *state = r;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

/* Deliver this segment of client `number` to port `port`. */
static struct utcp *deliver(struct rig *r, uint32_t number, uint16_t port, const struct utcp_head *h)
{
    struct utcp_name from = tcpnet_name(1, false), to = tcpnet_name(0, false);
    struct utcp_packet p = {0};

    to.port = port;
    from.ip[14] = (uint8_t)(number >> 16);
    from.port = (uint16_t)(number & 0xffff);
    utcp_packet_write(&p, &from, &to, h);
    return utcp_host_input(&r->host, p.head, p.head_length, false, r->now_us);
}

static struct utcp *send_in(struct rig *r, uint32_t number, uint16_t port, uint8_t flags, uint32_t seq, uint32_t ack)
{
    struct utcp_head h = {.seq = seq, .ack = ack, .flags = flags, .window = 1000};

    return deliver(r, number, port, &h);
}

static bool answer(struct rig *r, struct utcp_segment *s)
{
    static struct utcp_packet p;
    struct utcp_too_big b;

    if (!utcp_host_output(&r->host, &p, r->now_us))
        return false;
    assert_int_equal(utcp_packet_read(p.head, p.head_length, false, 0, s, &b), UTCP_KIND_SEGMENT);
    return true;
}

/* Send a SYN or an acknowledgement with options. */
static struct utcp *send_stamped(struct rig *r, uint32_t number, uint8_t flags, uint32_t ack, uint32_t stamp,
                                 uint32_t echo)
{
    struct utcp_syn_options o = {.mss = 1452, .scale = 9, .use_scale = true, .sack = true, .stamps = true};
    struct utcp_head h = {.seq = ISN + !(flags & UTCP_SYN), .ack = ack, .flags = flags, .window = 1000};

    o.kind = OPTION;
    o.stamp = stamp;
    o.echo = echo;
    utcp_syn_options_write(&h, &o);
    return deliver(r, number, 80, &h);
}

/* Thousands of clients that send nothing but a SYN. */
static void flood_with(struct rig *r, uint32_t syns)
{
    struct utcp_segment s;

    for (uint32_t i = 0; i < syns; i++) {
        r->now_us++;
        send_in(r, 1 << 16 | r->forged++ % 60000, 80, UTCP_SYN, ISN, 0);
        assert_true(answer(r, &s));
    }
}

static struct utcp *shake(struct rig *r, uint32_t number)
{
    struct utcp_segment s;

    assert_null(send_in(r, number, 80, UTCP_SYN, ISN, 0));
    assert_true(answer(r, &s));
    assert_int_equal(s.flags, UTCP_SYN | UTCP_ACK);
    assert_int_equal(s.ack, ISN + 1);
    return send_in(r, number, 80, UTCP_ACK, ISN + 1, s.seq + 1);
}

static void accepts(void **state)
{
    struct rig *r = *state;
    struct utcp_segment s;

    for (uint32_t i = 1; i <= TCPS; i++) {
        struct utcp *t = shake(r, i);

        assert_ptr_equal(t, &r->tcp[i - 1]);
        assert_int_equal(t->state, UTCP_ESTABLISHED);
        assert_ptr_equal(utcp_host_find(&r->host, &t->local, &t->remote), t);
        assert_ptr_equal(send_in(r, i, 80, UTCP_ACK, ISN + 1, t->attr.isn + 1), t);
    }
    /* Without room for another connection, the host keeps the half-open one, and the client has to try again. */
    assert_null(shake(r, TCPS + 1));
    assert_false(answer(r, &s));
    assert_int_equal(r->host.half_count, 1);
    /* The connection of the last segment is gone like any other. */
    assert_ptr_equal(send_in(r, 1, 80, UTCP_ACK, ISN + 1, r->tcp[0].attr.isn + 1), &r->tcp[0]);
    utcp_host_remove(&r->host, &r->tcp[0]);
    assert_null(utcp_host_find(&r->host, &r->tcp[0].local, &r->tcp[0].remote));
    assert_ptr_equal(utcp_host_find(&r->host, &r->tcp[1].local, &r->tcp[1].remote), &r->tcp[1]);
}

/* The first segment that gets through may be a keep-alive probe. */
static void begins_with_a_probe(void **state)
{
    struct rig *r = *state;
    struct utcp_segment s;

    send_in(r, 1, 80, UTCP_SYN, ISN, 0);
    assert_true(answer(r, &s));
    assert_ptr_equal(send_in(r, 1, 80, UTCP_ACK, ISN, s.seq + 1), &r->tcp[0]);
    assert_int_equal(r->tcp[0].state, UTCP_ESTABLISHED);
}

/* RFC 9293 3.10.7.1 */
static void strays(void **state)
{
    struct rig *r = *state;
    struct utcp_segment s;

    assert_null(send_in(r, 1, 81, UTCP_SYN, ISN, 0));
    assert_true(answer(r, &s) && s.flags == (UTCP_RST | UTCP_ACK) && s.seq == 0 && s.ack == ISN + 1);
    assert_null(send_in(r, 1, 80, UTCP_ACK, ISN, 99));
    assert_true(answer(r, &s) && s.flags == UTCP_RST && s.seq == 99);
    assert_null(send_in(r, 1, 80, UTCP_RST | UTCP_ACK, ISN, 99));
    assert_false(answer(r, &s));
    /* The host sends at most UTCP_RESETS resets a second. */
    for (uint32_t i = 2; i < UTCP_RESETS; i++) {
        send_in(r, i, 81, UTCP_SYN, ISN, 0);
        assert_true(answer(r, &s));
    }
    send_in(r, 1, 81, UTCP_SYN, ISN, 0);
    assert_false(answer(r, &s));
    r->now_us += 1000000;
    send_in(r, 1, 81, UTCP_SYN, ISN, 0);
    assert_true(answer(r, &s));
}

/* 10,000 SYNs use at most HALVES half-open entries, and a client that acknowledges at once is accepted. */
static void flood(void **state)
{
    struct rig *r = *state;
    struct utcp_segment s;
    uint32_t through = 0;

    for (uint32_t i = 0; i < 10000; i++) {
        r->now_us++;
        send_in(r, 1 << 16 | i, 80, UTCP_SYN, ISN, 0);
        assert_true(answer(r, &s));
        assert_true(r->host.half_count <= HALVES);
        if (i % 2000 == 1999)
            through += shake(r, i / 2000) != NULL;
    }
    assert_int_equal(through, 5);
    assert_true(r->host.half_count >= HALVES - 1 && r->host.count.displaced > 9000);
}

/* A client whose acknowledgement comes behind thousands of forged SYNs is let in, with all that it offered (RFC 4987
 * 3.6); one without timestamps does without what only they could have carried. */
static void slow_client(void **state)
{
    struct rig *r = *state;
    struct utcp_segment s, plain;
    struct utcp *t;
    uint32_t late;

    flood_with(r, 1000);
    send_stamped(r, 1, UTCP_SYN, 0, 777, 0);
    assert_true(answer(r, &s) && s.opt.has_stamp && s.opt.has_wscale && s.opt.sack_permitted);
    late = (uint32_t)(r->now_us / 1000) + utcp_host_stamp_offset(&r->host, &s.from, &s.to) - s.opt.stamp;
    assert_true(late < 128); /* our timestamps must never go back */
    send_in(r, 2, 80, UTCP_SYN, ISN, 0);
    assert_true(answer(r, &plain));
    flood_with(r, 1000);
    r->now_us += 100000;
    assert_null(send_stamped(r, 1, UTCP_ACK, s.seq + 2, 778, s.opt.stamp));
    t = send_stamped(r, 1, UTCP_ACK, s.seq + 1, 778, s.opt.stamp);
    assert_ptr_equal(t, &r->tcp[0]);
    assert_int_equal(t->state, UTCP_ESTABLISHED);
    assert_true(t->sack && t->stamps.on && t->option_on && t->tx.scale == 9 && t->stamps.recent == 778);
    assert_int_equal(t->tx.peer_mss, 1440);
    assert_true(t->tx.window == 1000 << 9);
    t = send_in(r, 2, 80, UTCP_ACK, ISN + 1, plain.seq + 1);
    assert_ptr_equal(t, &r->tcp[1]);
    assert_true(!t->sack && !t->stamps.on && !t->option_on && t->tx.scale == 0 && t->rx.scale == 0);
    assert_int_equal(t->tx.peer_mss, 536);
    assert_int_equal(r->host.count.restored, 2);
}

/* Cookies are good for two minutes, from the address and for the SYN that they were made for, and only once half-open
 * connections had to give way. */
static void wrong_cookies(void **state)
{
    struct rig *r = *state;
    struct utcp_half half = {.irs = ISN, .local = tcpnet_name(0, false), .remote = tcpnet_name(1, false)};
    uint32_t isn;

    half.local.port = 80;
    half.remote.port = 1;
    isn = utcp_cookie_make(r->host.attr.key, &half, r->now_us);
    assert_null(send_in(r, 1, 80, UTCP_ACK, ISN + 1, isn + 1));
    flood_with(r, 1000);
    assert_null(send_in(r, 1, 80, UTCP_ACK, ISN + 2, isn + 1));
    assert_null(send_in(r, 2, 80, UTCP_ACK, ISN + 1, isn + 1));
    assert_null(send_in(r, 1, 80, UTCP_ACK, ISN + 1, isn + 2));
    assert_null(send_in(r, 1, 80, UTCP_ACK, ISN + 1, (isn ^ 1U << 29) + 1));
    assert_null(send_in(r, 1, 81, UTCP_ACK, ISN + 1, isn + 1));
    r->now_us += UTCP_COOKIE_US / 2;
    flood_with(r, 1000);
    assert_non_null(send_in(r, 1, 80, UTCP_ACK, ISN + 1, isn + 1));
    utcp_host_remove(&r->host, &r->tcp[0]);
    r->now_us += UTCP_COOKIE_US / 2;
    flood_with(r, 1000);
    assert_null(send_in(r, 1, 80, UTCP_ACK, ISN + 1, isn + 1));
    r->now_us += UTCP_COOKIE_US + 1;
    isn = utcp_cookie_make(r->host.attr.key, &half, r->now_us);
    assert_null(send_in(r, 1, 80, UTCP_ACK, ISN + 1, isn + 1));
}

/* The options are in the low bits of the timestamp, and a timestamp with them is never later than our clock: the peer
 * would take the segments that follow for old ones. */
static void cookie_stamps(void **state)
{
    static const uint32_t stamps[] = {0, 1, 95, 96, 127, 128, 0x7fffffff, 0x80000000, 0xffffffff};
    struct utcp_half half = {.use_scale = true, .scale = 14, .sack = true, .option = true};

    (void)state;
    for (uint32_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
        uint32_t made = utcp_cookie_stamp(&half, stamps[i]);

        assert_int_equal(made & 127, utcp_cookie_stamp(&half, 0) & 127);
        assert_in_range(stamps[i] - made, 0, 127);
    }
}

/* Who came before the flood is answered again like any other. */
static void before_the_flood(void **state)
{
    struct rig *r = *state;
    struct utcp_segment s;
    uint32_t again = 0;

    send_in(r, 1, 80, UTCP_SYN, ISN, 0);
    assert_true(answer(r, &s));
    flood_with(r, 1000);
    r->now_us += 1000000;
    utcp_host_timeout(&r->host, r->now_us);
    while (answer(r, &s))
        again += s.to.port == 1 && s.to.ip[14] == 0;
    assert_int_equal(again, 1);
}

/* The same SYN, however often, is answered as often, and neither lengthens nor puts off what the host does by itself.
 */
static void equal_syns(void **state)
{
    struct rig *r = *state;
    struct utcp_segment s;
    uint64_t end_us = r->now_us + 120000000;

    while (r->now_us < end_us) {
        r->now_us += 100000;
        if (utcp_host_deadline(&r->host) <= r->now_us)
            utcp_host_timeout(&r->host, r->now_us);
        if (r->now_us < end_us - 64000000)
            send_in(r, 1, 80, UTCP_SYN, ISN, 0);
        assert_true(r->host.half_count <= 1);
        while (answer(r, &s))
            assert_int_equal(s.ack, ISN + 1);
    }
    assert_int_equal(r->host.half_count, 0);
    assert_true(utcp_host_deadline(&r->host) == UTCP_NEVER);
}

/* The host repeats its SYN-ACK and finally gives up. An exact reset frees the half-open entry at once. */
static void answers_again(void **state)
{
    struct rig *r = *state;
    struct utcp_segment s;
    uint32_t answers = 0;

    send_in(r, 1, 80, UTCP_SYN, ISN, 0);
    while (r->host.half_count) {
        answers += answer(r, &s);
        assert_false(answer(r, &s));
        r->now_us = utcp_host_deadline(&r->host);
        utcp_host_timeout(&r->host, r->now_us);
    }
    assert_int_equal(answers, UTCP_HALF_TRIES + 1);
    assert_true(utcp_host_deadline(&r->host) == UTCP_NEVER);
    send_in(r, 1, 80, UTCP_SYN, ISN, 0);
    send_in(r, 1, 80, UTCP_RST, ISN, 0);
    assert_int_equal(r->host.half_count, 1);
    send_in(r, 1, 80, UTCP_RST, ISN + 1, 0);
    assert_int_equal(r->host.half_count, 0);
    assert_false(answer(r, &s));
    /* A repeated SYN keeps its entry; a SYN with another sequence number from the same client replaces it. */
    send_in(r, 1, 80, UTCP_SYN, ISN, 0);
    send_in(r, 1, 80, UTCP_SYN, ISN, 0);
    send_in(r, 1, 80, UTCP_SYN, ISN + 9, 0);
    assert_int_equal(r->host.half_count, 1);
    assert_true(answer(r, &s) && s.ack == ISN + 10);
    /* A wrong acknowledgement is a stray segment and is answered with a reset. */
    assert_null(send_in(r, 1, 80, UTCP_ACK, ISN + 10, s.seq + 2));
    assert_true(answer(r, &s) && s.flags == UTCP_RST);
}

/* RFC 9293 3.6.1: only a SYN with a newer sequence number ends TIME-WAIT. */
static void reopens(void **state)
{
    struct rig *r = *state;
    struct utcp *t = shake(r, 1);
    struct utcp_packet p;
    struct utcp_segment s;

    utcp_finish(t);
    assert_true(utcp_output(t, &p, r->now_us));
    send_in(r, 1, 80, UTCP_ACK | UTCP_FIN, ISN + 1, t->attr.isn + 2);
    assert_int_equal(t->state, UTCP_TIME_WAIT);
    send_in(r, 1, 80, UTCP_SYN, ISN - 100, 0);
    send_in(r, 1, 80, UTCP_SYN, t->rx.irs + (uint32_t)t->rx.next, 0);
    assert_int_equal(t->state, UTCP_TIME_WAIT);
    assert_ptr_equal(send_in(r, 1, 80, UTCP_SYN, ISN + 100, 0), t);
    assert_int_equal(t->state, UTCP_CLOSED);
    assert_true(answer(r, &s) && s.flags == (UTCP_SYN | UTCP_ACK) && s.ack == ISN + 101);
    for (int i = 0; i < 2; i++)
        assert_ptr_equal(send_in(r, 1, 80, UTCP_ACK, ISN + 101, s.seq + 1), &r->tcp[1]);
}

/* RFC 6191 2: with timestamps a SYN must be newer by its timestamp, whatever its sequence number says. */
static void reopens_by_stamp(void **state)
{
    struct rig *r = *state;
    struct utcp_packet p;
    struct utcp_segment s;
    struct utcp *t;

    send_stamped(r, 1, UTCP_SYN, 0, 500, 0);
    assert_true(answer(r, &s));
    t = send_stamped(r, 1, UTCP_ACK, s.seq + 1, 501, s.opt.stamp);
    utcp_finish(t);
    assert_true(utcp_output(t, &p, r->now_us));
    send_stamped(r, 1, UTCP_ACK | UTCP_FIN, s.seq + 2, 502, s.opt.stamp);
    assert_int_equal(t->state, UTCP_TIME_WAIT);
    send_stamped(r, 1, UTCP_SYN, 0, 400, 0);
    send_stamped(r, 1, UTCP_SYN, 0, 502, 0);
    assert_int_equal(t->state, UTCP_TIME_WAIT);
    send_stamped(r, 1, UTCP_SYN, 0, 503, 0);
    assert_int_equal(t->state, UTCP_CLOSED);
    assert_true(answer(r, &s) && s.flags == (UTCP_SYN | UTCP_ACK) && s.ack == ISN + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(accepts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(begins_with_a_probe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flood, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slow_client, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_cookies, set_up, tear_down),
        cmocka_unit_test(cookie_stamps),
        cmocka_unit_test_setup_teardown(before_the_flood, set_up, tear_down),
        cmocka_unit_test_setup_teardown(equal_syns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reopens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reopens_by_stamp, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
