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

enum { BUCKETS = 16, HALVES = 64, TCPS = 8, ISN = 5000 };

struct rig {
    struct utcp_host host;
    struct utcp *bucket[BUCKETS];
    struct utcp_half half[HALVES];
    struct utcp tcp[TCPS];
    struct utcp_sent sent[TCPS][16];
    struct utcp_held_range held[TCPS][16];
    uint32_t tcps, space;
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
    struct utcp_buffers buffers = {r->sent[r->tcps], 16, r->held[r->tcps], 16};

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

/* Deliver a packet of client `number` to port `port`. */
static struct utcp *send_in(struct rig *r, uint32_t number, uint16_t port, uint8_t flags, uint32_t seq, uint32_t ack)
{
    struct utcp_name from = tcpnet_name(1, false), to = tcpnet_name(0, false);
    struct utcp_head h = {.seq = seq, .ack = ack, .flags = flags, .window = 1000};
    struct utcp_packet p = {0};

    to.port = port;
    from.ip[14] = (uint8_t)(number >> 16);
    from.port = (uint16_t)(number & 0xffff);
    utcp_packet_write(&p, &from, &to, &h);
    return utcp_host_input(&r->host, p.head, p.head_length, false, r->now_us);
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
    assert_int_equal(t->state, UTCP_TIME_WAIT);
    assert_ptr_equal(send_in(r, 1, 80, UTCP_SYN, ISN + 100, 0), t);
    assert_int_equal(t->state, UTCP_CLOSED);
    assert_true(answer(r, &s) && s.flags == (UTCP_SYN | UTCP_ACK) && s.ack == ISN + 101);
    for (int i = 0; i < 2; i++)
        assert_ptr_equal(send_in(r, 1, 80, UTCP_ACK, ISN + 101, s.seq + 1), &r->tcp[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(accepts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flood, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reopens, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
