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

/* What nobody takes fills the window and no more; when it is taken, the peer is told. */
static void window(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);
    static const uint8_t octets[1400];
    uint32_t said = OSCTP_INBOX, sent = 0, taken = 0;
    struct sctp_news news;

    (void)state;
    for (uint32_t at = 100; sent < 2 * OSCTP_INBOX && said >= sizeof(octets); at++, sent += sizeof(octets)) {
        send_data(at, B | E | U, 0, 0, octets, sizeof(octets));
        osctp.drive(ours);
        while (take_packet() == SACK)
            said = get32(got + PACKET_COMMON + 8);
    }
    assert_in_range(sent, OSCTP_INBOX - (1 << 20), OSCTP_INBOX);
    while (osctp.next(assoc, &news)) {
        taken += news.octets;
        sctp_news_free(&news);
    }
    assert_true(taken >= sent - 2 * sizeof(octets));
    assert_int_equal(take_packet(), SACK);
    assert_true(get32(got + PACKET_COMMON + 8) >= sizeof(octets));
    osctp.close(assoc);
}

/* A peer that ignores the window: no more than the limit is kept. */
static void flood(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);
    uint32_t messages = 0;
    struct sctp_news news;

    (void)state;
    for (uint32_t i = 0; i < OSCTP_INBOX / 65 + 1000; i++) {
        send_data(100 + i, B | E | U, 0, 0, "x", 1);
        if (i % 64 == 63)
            osctp.drive(ours);
    }
    while (osctp.next(assoc, &news)) {
        messages++;
        sctp_news_free(&news);
    }
    assert_true(messages <= OSCTP_INBOX / 65);
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

enum { PARTS = 4000, PART = 1400, HOLDERS = 14 };

/* Sends parts of a message, all but the first, and returns false if the association is aborted for it. */
static bool holds_parts(void)
{
    static const uint8_t octets[PART];

    for (uint32_t at = 101; at < 101 + PARTS; at++) {
        int is;

        send_data(at, U, 0, 0, octets, sizeof(octets));
        osctp.drive(ours);
        while ((is = take_packet()) >= 0)
            if (is == ABORT)
                return false;
    }
    return true;
}

/* Many associations: together they hold no more than the limit, and what one held is free when it ends. */
static void many_parts(void **state)
{
    struct sctp_assoc *assoc[HOLDERS], *last;
    uint32_t holders = 0;

    (void)state;
    for (uint16_t i = 0; i < HOLDERS; i++) {
        peer_port = (uint16_t)(PEER_PORT + 1 + i);
        assoc[i] = connect_peer(5, 100);
        holders += holds_parts();
    }
    assert_int_equal(holders, OSCTP_HELD / (PARTS * (PART + OSCTP_ENTRY)));
    peer_port = PEER_PORT;
    osctp.close(assoc[0]);
    last = connect_peer(5, 100);
    assert_true(holds_parts());
    osctp.close(last);
    for (unsigned i = 1; i < HOLDERS; i++)
        osctp.close(assoc[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fragments), TEST(contradiction), TEST(restart), TEST(aborted),
        TEST(window),    TEST(flood),         TEST(endless), TEST(many_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
