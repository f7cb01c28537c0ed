/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_peer.c - our own SCTP at a socket, and what a peer may do to an association: fragments, restarts, old cookies,
 * more than fits. */
#include "tests/suite/osctp_peer.h"

/* A foreign stack fragments messages, and orders them. */
static void fragments(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);

    (void)state;
    send_data(102, E, 0, 0, "cd", 2);
    send_data(103, B | E, 0, 1, "second", 6);
    send_data(101, 0, 0, 0, "ab", 2);
    send_data(104, B | E | U, 3, 0, "now", 3);
    expect_news(assoc, SCTP_NEWS_MESSAGE, "now");
    send_data(100, B, 0, 0, ">", 1);
    expect_news(assoc, SCTP_NEWS_MESSAGE, ">abcd");
    expect_news(assoc, SCTP_NEWS_MESSAGE, "second");
    osctp.close(assoc);
    expect_packet(ABORT);
}

/* The peer is told, and so is the owner, behind what came before. */
static void contradiction(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);

    (void)state;
    send_data(100, B | E | U, 0, 0, "before", 6);
    send_data(101, B | U, 0, 0, "ab", 2);
    send_data(102, B | U, 0, 0, "cd", 2);
    expect_packet(ABORT);
    expect_news(assoc, SCTP_NEWS_MESSAGE, "before");
    expect_news(assoc, SCTP_NEWS_LOST, NULL);
    expect_none(assoc);
    osctp.close(assoc);
}

/* A peer that restarts at the same ports gets a new association; cookies of the old one return to no effect. */
static void restart(void **state)
{
    struct sctp_assoc *old = connect_peer(5, 100), *new;
    uint8_t first[COOKIE], again[COOKIE];
    uint32_t first_octets = cookie_octets, first_tag = our_tag;

    (void)state;
    memcpy(first, cookie, sizeof(first));
    ask(5, 100); /* the INIT came twice */
    memcpy(again, cookie, sizeof(again));
    send_chunk(our_tag, COOKIE_ECHO, 0, again, cookie_octets);
    expect_silence();
    our_tag = first_tag;
    send_chunk(our_tag, COOKIE_ECHO, 0, first, first_octets); /* our COOKIE-ACK was lost */
    expect_packet(COOKIE_ACK);
    send_data(100, B | E | U, 0, 0, "before", 6);
    osctp.drive(ours);
    new = connect_peer(6, 500);
    expect_news(old, SCTP_NEWS_MESSAGE, "before");
    expect_news(old, SCTP_NEWS_LOST, NULL);
    send_chunk(first_tag, COOKIE_ECHO, 0, first, first_octets);
    expect_silence();
    expect_none(old);
    send_data(500, B | E | U, 0, 0, "after", 5);
    expect_news(new, SCTP_NEWS_MESSAGE, "after");
    osctp.close(old);
    assert_int_not_equal(take_packet(), ABORT);
    send_data(501, B | E | U, 0, 0, "more", 4);
    expect_news(new, SCTP_NEWS_MESSAGE, "more");
    osctp.close(new);
    expect_packet(ABORT);
}

/* The peer shuts the association down. Its owner leaves at once: it has nothing to abort. */
static void shut_by_peer(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);
    uint8_t cum[4];

    (void)state;
    put32(cum, our_tsn - 1);
    send_data(100, B | E | U, 0, 0, "before", 6);
    send_chunk(our_tag, SHUTDOWN, 0, cum, sizeof(cum));
    expect_packet(SHUTDOWN_ACK);
    expect_news(assoc, SCTP_NEWS_MESSAGE, "before");
    expect_news(assoc, SCTP_NEWS_SHUTDOWN, NULL);
    aborts = 0;
    osctp.close(assoc);
    send_chunk(our_tag, SHUTDOWN_COMPLETE, 0, NULL, 0);
    for (unsigned i = 0; i < 20; i++) {
        poll(NULL, 0, 1);
        drive();
        take_packet();
    }
    assert_int_equal(aborts, 0);
}

static void shut_down(uint32_t to_tag)
{
    uint8_t cum[4];

    put32(cum, our_tsn - 1);
    send_chunk(to_tag, SHUTDOWN, 0, cum, sizeof(cum));
}

/* Waits for the ABORT of a stranger, who repeats this tag. What others still say is not looked at. */
static void expect_stranger(uint32_t with_tag)
{
    do
        expect_packet(ABORT);
    while (get32(got + 4) != with_tag);
}

/* RFC 9260 9.2: the SHUTDOWN-ACK is lost, and the owner has left. It is sent again until the answer comes. */
static void left_by_owner(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);

    (void)state;
    aborts = 0;
    send_data(100, B | E | U, 0, 0, "not taken", 9);
    shut_down(our_tag);
    expect_packet(SHUTDOWN_ACK);
    osctp.close(assoc);
    expect_packet(SHUTDOWN_ACK);
    assert_null(osctp.ready(ours));
    shut_down(our_tag);
    send_chunk(5, SHUTDOWN_COMPLETE, 0, NULL, 0); /* not its tag */
    shut_down(our_tag);
    send_chunk(our_tag, SHUTDOWN_COMPLETE, 0, NULL, 0);
    shut_down(our_tag);
    expect_stranger(our_tag);
    expect_silence();
    assert_int_equal(aborts, 1);
    osctp.close(connect_peer(5, 100));
}

/* Beyond OSCTP_LEFT_MAX the oldest is forgotten. The socket is closed with the others. */
static void most_left(void **state)
{
    static uint32_t tags[OSCTP_LEFT_MAX + 1], tsns[OSCTP_LEFT_MAX + 1];

    (void)state;
    aborts = 0;
    for (uint16_t i = 0; i <= OSCTP_LEFT_MAX; i++) {
        struct sctp_assoc *assoc;

        peer_port = (uint16_t)(PEER_PORT + i);
        assoc = connect_peer(5, 100);
        tags[i] = our_tag;
        tsns[i] = our_tsn;
        shut_down(our_tag);
        expect_packet(SHUTDOWN_ACK);
        osctp.close(assoc);
        if (i == OSCTP_LEFT_MAX - 1) {
            peer_port = PEER_PORT;
            our_tsn = tsns[0];
            shut_down(tags[0]);
        }
    }
    assert_int_equal(aborts, 0);
    for (uint16_t i = OSCTP_LEFT_MAX + 1; i--;) {
        peer_port = (uint16_t)(PEER_PORT + i);
        our_tsn = tsns[i];
        shut_down(tags[i]);
        drive();
    }
    expect_stranger(tags[0]);
    assert_int_equal(aborts, 1);
    peer_port = PEER_PORT;
}

/* RFC 9260 5.2.4, 9.2: while it waits for the answer to its SHUTDOWN-ACK an association gives way to no other at its
 * ports: it asks for that answer again. */
static void ends_first(void **state)
{
    uint8_t early[COOKIE], cum[4];
    uint32_t old_tag, early_tag, early_octets;
    struct sctp_assoc *old, *new;

    (void)state;
    old = connect_peer(5, 100);
    old_tag = our_tag;
    put32(cum, our_tsn - 1);
    ask(6, 500); /* an INIT-ACK from before the end */
    memcpy(early, cookie, sizeof(early));
    early_octets = cookie_octets;
    early_tag = our_tag;
    tag = 5;
    send_chunk(old_tag, SHUTDOWN, 0, cum, sizeof(cum));
    expect_packet(SHUTDOWN_ACK);
    send_chunk(early_tag, COOKIE_ECHO, 0, early, early_octets);
    expect_packet(ERROR);
    assert_int_equal(get16(got + PACKET_COMMON + 4), 10);
    expect_packet(SHUTDOWN_ACK);
    tag = 7;
    send_init();
    expect_packet(SHUTDOWN_ACK);
    assert_int_equal(get32(got + 4), 5);
    assert_int_equal(take_packet(), -1);
    send_chunk(5, SHUTDOWN_COMPLETE, 1, NULL, 0);
    expect_news(old, SCTP_NEWS_SHUTDOWN, NULL);
    new = connect_peer(7, 900);
    osctp.close(old);
    osctp.close(new);
}

/* No port is 0. */
static void port_0(void **state)
{
    struct sockaddr_in peer = loopback(0);
    struct sctp_assoc *assoc;

    (void)state;
    assert_int_equal(osctp.connect(ours, (const struct sockaddr *)&peer, &assoc), -ECONNREFUSED);
    tag = 5;
    peer_port = 0;
    send_init();
    peer_port = PEER_PORT;
    sctp_port = 0;
    send_init();
    sctp_port = SCTP_PORT;
    expect_silence();
}

static void aborted(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100), *new;
    const uint8_t cause[] = {0, 12, 0, 7, 'w', 'h', 'y'};

    (void)state;
    send_data(100, B | E | U, 0, 0, "before", 6);
    send_chunk(our_tag, ABORT, 0, cause, sizeof(cause));
    send_init(); /* in the same batch: the association is over */
    expect_packet(INIT_ACK);
    expect_news(assoc, SCTP_NEWS_MESSAGE, "before");
    expect_news(assoc, SCTP_NEWS_ABORTED, "why");
    expect_none(assoc);
    new = connect_peer(5, 100);
    osctp.close(assoc);
    osctp.close(new);
}

/* What is not taken fills the window and no more; when it is taken, the peer is told. */
static void window(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);
    static const uint8_t octets[1400];
    uint32_t said = OSCTP_INBOX, sent = 0, taken = 0;
    struct sctp_news news;

    (void)state;
    for (uint32_t at = 100; sent < 2 * OSCTP_INBOX && said >= sizeof(octets); at++, sent += sizeof(octets)) {
        send_data(at, B | E | U, 0, 0, octets, sizeof(octets));
        await_and_drive();
        await_answer(at % 2 * 10); /* at the latest the second packet is acknowledged at once */
        while (take_packet() == SACK)
            said = get32(got + PACKET_COMMON + 8);
    }
    assert_in_range(sent, OSCTP_INBOX - (1 << 20), OSCTP_INBOX);
    while (osctp.next(assoc, &news)) {
        taken += news.octets;
        sctp_news_free(&news);
    }
    assert_true(taken >= sent - 2 * sizeof(octets));
    do
        expect_packet(SACK);
    while (get32(got + PACKET_COMMON + 8) < sizeof(octets));
    osctp.close(assoc);
}

/* A peer that ignores the window: no more than the limit is kept. */
static void flood(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);
    uint32_t messages = 0;
    struct sctp_news news;

    (void)state;
    for (uint32_t i = 0; i < OSCTP_INBOX / (1 + OSCTP_ENTRY) + 1000; i++) {
        send_data(100 + i, B | E | U, 0, 0, "x", 1);
        if (i % 64 == 63)
            osctp.drive(ours);
    }
    while (osctp.next(assoc, &news)) {
        messages++;
        sctp_news_free(&news);
    }
    assert_true(messages <= OSCTP_INBOX / (1 + OSCTP_ENTRY));
    osctp.close(assoc);
    while (take_packet() >= 0)
        continue;
}

/* A message that never ends: the association does. */
static void endless(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);
    static const uint8_t octets[1400];
    uint32_t at = 100;

    (void)state;
    for (int is = 0; is != ABORT; is = take_packet()) {
        assert_true(at < 100 + 2 * OSCTP_INBOX / sizeof(octets));
        send_data(at, at == 100 ? B | U : U, 0, 0, octets, sizeof(octets));
        at++;
        osctp.drive(ours);
    }
    expect_news(assoc, SCTP_NEWS_LOST, NULL);
    osctp.close(assoc);
}

enum { PARTS = 4000, PART = 1400, EACH = PARTS * (PART + OSCTP_ENTRY), HOLDERS = OSCTP_HELD / EACH + 3 };

/* Sends parts of a message, all but the first. Returns how many associations of the peer were aborted for it, and
 * whether this one was. */
static uint32_t send_parts(bool *aborted)
{
    static const uint8_t octets[PART];
    uint32_t others = 0;

    *aborted = false;
    for (uint32_t at = 101; at < 101 + PARTS; at++) {
        int is;

        send_data(at, U, 0, 0, octets, sizeof(octets));
        await_and_drive();
        await_answer(at == 100 + PARTS ? 50 : 0);
        while ((is = take_packet()) >= 0) {
            others += is == ABORT && get16(got + 2) != peer_port;
            *aborted |= is == ABORT && get16(got + 2) == peer_port;
        }
    }
    return others;
}

/* Together the associations of a socket keep no more than the limit: the one that keeps the most gives way, and never
 * one that keeps little. What one kept is free when it ends. */
static void many_parts(void **state)
{
    struct sctp_assoc *assoc[HOLDERS], *small;
    uint32_t evicted = 0;
    bool aborted;

    (void)state;
    peer_port = PEER_PORT;
    small = connect_peer(5, 100);
    send_data(101, U, 0, 0, "ab", 2);
    for (uint16_t i = 0; i < HOLDERS; i++) {
        peer_port = (uint16_t)(PEER_PORT + 1 + i);
        assoc[i] = connect_peer(5, 100);
        evicted += send_parts(&aborted);
        assert_false(aborted);
        assert_int_equal(evicted, i < OSCTP_HELD / EACH ? 0 : i + 1 - OSCTP_HELD / EACH);
    }
    for (unsigned i = 0; i < HOLDERS; i++)
        osctp.close(assoc[i]);
    peer_port = PEER_PORT + 1;
    assoc[0] = connect_peer(5, 100);
    assert_int_equal(send_parts(&aborted), 0);
    assert_false(aborted);
    osctp.close(assoc[0]);
    osctp.close(small);
}

/* What an owner keeps counts, too. */
static void kept_by_owners(void **state)
{
    struct sctp_assoc *assoc[2];

    (void)state;
    for (uint16_t i = 0; i < 2; i++) {
        peer_port = (uint16_t)(PEER_PORT + i);
        assoc[i] = connect_peer(5, 100);
    }
    osctp.keeps(assoc[0], OSCTP_HELD - 1);
    osctp.keeps(assoc[1], 1);
    expect_none(assoc[0]);
    osctp.keeps(assoc[1], 2);
    expect_packet(ABORT);
    expect_news(assoc[0], SCTP_NEWS_LOST, NULL);
    osctp.keeps(assoc[1], OSCTP_HELD);
    expect_none(assoc[1]);
    osctp.keeps(assoc[1], OSCTP_HELD + 1U);
    expect_packet(ABORT);
    expect_news(assoc[1], SCTP_NEWS_LOST, NULL);
    osctp.close(assoc[0]);
    osctp.close(assoc[1]);
    peer_port = PEER_PORT;
}

/* Of two that keep as much the one that asks for more than there is gives way, whichever came first. */
static void kept_alike(void **state)
{
    enum { HALF = OSCTP_HELD / 2 + 1 };
    struct sctp_assoc *assoc[2];

    (void)state;
    for (unsigned last = 0; last < 2; last++) {
        for (uint16_t i = 0; i < 2; i++) {
            peer_port = (uint16_t)(PEER_PORT + i);
            assoc[i] = connect_peer(5, 100);
        }
        osctp.keeps(assoc[!last], HALF);
        osctp.keeps(assoc[last], HALF);
        expect_packet(ABORT);
        expect_news(assoc[last], SCTP_NEWS_LOST, NULL);
        expect_none(assoc[!last]);
        osctp.close(assoc[0]);
        osctp.close(assoc[1]);
        while (take_packet() >= 0)
            continue;
    }
    peer_port = PEER_PORT;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fragments),  TEST(contradiction), TEST(shut_by_peer), TEST(left_by_owner),  TEST(most_left),
        TEST(ends_first), TEST(port_0),        TEST(restart),      TEST(aborted),        TEST(window),
        TEST(flood),      TEST(endless),       TEST(many_parts),   TEST(kept_by_owners), TEST(kept_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
