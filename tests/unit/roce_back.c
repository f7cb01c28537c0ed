/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_back.c - what a queue pair of RoCE tells a peer that it keeps what arrives behind a gap: nothing, unless the
 * peer sends what is missing alone. Linux's rxe, which goes back and sends all of it again, says no more if it
 * sees a message acknowledged while it repeats it. */
#include "tests/lib/rc_world.h"

enum { CELLS = 64, RECEIVES = 12, SHOWS = RC_SKIPS + 2, LEARNT = PEER + RC_SHOWN * SHOWS };

static uint64_t received;

static void open_back(void)
{
    struct rc_pair_attr attr = rc_net_attr();

    attr.responder.reads = 4;
    open_keeping(&attr, CELLS);
    for (uint64_t i = 1; i <= RECEIVES; i++)
        offer_receive(i, 100);
    received = 0;
}

static void say(uint32_t psn)
{
    says(packet(BTH_SEND, ONLY, psn, 10));
}

static void say_asking(uint32_t psn)
{
    says(packet(BTH_SEND, ONLY | ASK, psn, 10));
}

/* Those up to this one were executed, and no other. */
static void executed_to(uint32_t psn)
{
    for (; received < psn - PEER + 1; offer_receive(received + RECEIVES, 100))
        expect_wc(&w.side->recv_cq, ++received, RDDP_WC_SUCCESS);
    expect_quiet(&w.side->recv_cq);
}

static void hear_nak(uint32_t psn)
{
    hear_ack(psn, aeth_nak(NAK_SEQUENCE), psn - PEER);
}

static void hear_all(uint32_t psn)
{
    hear_ack(psn, ACK, psn - PEER + 1);
}

/* The packet at `gap` is lost, those behind it up to `last` arrive. */
static void lose(uint32_t gap, uint32_t last)
{
    for (uint32_t psn = gap + 1; psn <= last; psn++)
        say(psn);
    hear_nak(gap);
    hear_nothing();
}

/* ROCE-RSP-01: each packet has its turn when it comes again, and is acknowledged then. */
static void goes_back(void **state)
{
    (void)state;
    open_back();
    lose(PEER, PEER + 4);
    say(PEER);
    executed_to(PEER);
    for (uint32_t psn = PEER + 1; psn < PEER + 4; psn++) {
        say(psn);
        executed_to(psn);
        hear_nothing();
    }
    say_asking(PEER + 4);
    executed_to(PEER + 4);
    hear_all(PEER + 4);
    assert_int_equal(rc_pool_free(&w.net.pool), CELLS);
    close_world();
}

/* The answer to the lost packet waits for the next one, which shows what the peer does, but not for long. */
static void waits_for_the_next(void **state)
{
    (void)state;
    open_back();
    lose(PEER, PEER + 2);
    say_asking(PEER);
    hear_nothing();
    waits(RC_ACK_DELAY_US - 1);
    hear_nothing();
    waits(1);
    hear_all(PEER);
    say_asking(PEER + 1);
    hear_all(PEER + 1);
    say_asking(PEER + 2);
    hear_all(PEER + 2);
    lose(PEER + 3, PEER + 4);
    say_asking(PEER + 3);
    say_asking(PEER + 4); /* and no longer than for this one */
    hear_all(PEER + 4);
    say(PEER + 6 + RC_KEEP_HOLE); /* is not kept: there is nothing to learn */
    hear_nak(PEER + 5);
    say_asking(PEER + 5);
    hear_all(PEER + 5);
    executed_to(PEER + 5);
    close_world();
}

/* A peer that goes on behind what was kept skips that. */
static void skip_kept_of(uint32_t gap, uint32_t packets)
{
    lose(gap, gap + packets);
    say(gap);
    executed_to(gap);
    say(gap + packets + 1);
    executed_to(gap + packets + 1);
    hear_all(gap + packets + 1);
}

/* At gaps from this one on. */
static void show(uint32_t gap, uint32_t gaps)
{
    for (; gaps; gaps--, gap += SHOWS)
        skip_kept_of(gap, RC_SKIPS);
}

/* It is told of all at once from then on. */
static void learns(void)
{
    show(PEER, RC_SHOWN);
    lose(LEARNT, LEARNT + 2);
    say(LEARNT);
    executed_to(LEARNT + 2);
    hear_all(LEARNT + 2);
}

static void skips(void **state)
{
    (void)state;
    open_back();
    learns();
    close_world();

    open_back(); /* fewer may have been lost once more, */
    for (uint32_t i = 0; i < RC_SHOWN; i++)
        skip_kept_of(PEER + i * (SHOWS - 1), RC_SKIPS - 1);
    assert_false(w.pair->responder.back.skips);
    close_world();

    open_back(); /* as many now and then; and the next one may be missing, too, so that nothing is known of the others
                  */
    show(PEER, RC_SHOWN - 1);
    assert_false(w.pair->responder.back.skips);
    for (uint32_t i = 2; i < SHOWS; i++)
        say(LEARNT - SHOWS + i);
    hear_nak(LEARNT - SHOWS);
    say(LEARNT - SHOWS);
    say(LEARNT);
    hear_nak(LEARNT - SHOWS + 1);
    assert_false(w.pair->responder.back.skips);
    executed_to(LEARNT - SHOWS);
    close_world();
}

/* A peer that has skipped at all gaps but one loses packets there from `gap` on, and goes on in a way of its own up to
 * `next`. Then it skips once more. Was it taken for one that skips? */
static bool is_shown_beside(void (*differs)(uint32_t gap), uint32_t packets)
{
    uint32_t gap = PEER + (RC_SHOWN - 1) * SHOWS;
    bool skips;

    open_back();
    show(PEER, RC_SHOWN - 1);
    lose(gap, gap + 3);
    say(gap);
    differs(gap);
    executed_to(gap + packets - 1);
    waits(RC_ACK_DELAY_US);
    hear_all(gap + packets - 1);
    show(gap + packets, 1);
    skips = w.pair->responder.back.skips;
    close_world();
    return skips;
}

static void but_two(uint32_t gap)
{
    say(gap + 3);
}

static void but_one(uint32_t gap)
{
    say(gap + 2);
    but_two(gap);
}

static void in_turn(uint32_t gap)
{
    say(gap + 1);
    but_one(gap);
}

static void goes_on(uint32_t gap)
{
    say(gap + 4);
    hear_all(gap + 4);
    say(gap + 4);
}

/* What was kept comes again at one of these gaps, or it is not known whether it did. */
static void in_a_row(void **state)
{
    (void)state;
    assert_false(is_shown_beside(in_turn, 4));
    assert_false(is_shown_beside(but_one, 4));
    assert_false(is_shown_beside(but_two, 4));
    assert_true(is_shown_beside(goes_on, 5));
}

/* A Read takes the PSNs of its response, and is one packet: that it was lost once more is no proof. */
static void lost_read(void **state)
{
    struct bth read;

    (void)state;
    open_back();
    read = packet(BTH_READ_REQUEST, ONLY, PEER + 1, 0);
    read.dma_length = RC_SKIPS * MTU;
    says(read);
    hear_nak(PEER);
    say(PEER);
    say(PEER + 1 + RC_SKIPS);
    for (uint32_t i = 0; i < RC_SKIPS; i++)
        assert_int_equal(hear()->psn, PEER + 1 + i);
    assert_false(w.pair->responder.back.skips);
    close_world();
}

/* What comes behind a packet that is lost again proves that the peer has sent that one, and no more. */
static void lost_again(void **state)
{
    (void)state;
    open_back();
    lose(PEER, PEER + 5);
    say(PEER);
    say(PEER + 2);
    executed_to(PEER + 2);
    hear_all(PEER + 2);
    say(PEER + 3);
    executed_to(PEER + 3);
    say_asking(PEER + 5);
    executed_to(PEER + 5);
    hear_all(PEER + 5);
    close_world();
}

/* Another packet is missing among those: one NAK, as soon as one comes behind it. */
static void another_gap(void **state)
{
    (void)state;
    open_back();
    say(PEER + 1);
    hear_nak(PEER);
    say(PEER + 3);
    say(PEER + 4);
    say(PEER);
    say(PEER + 3);
    executed_to(PEER + 1);
    hear_nak(PEER + 2);
    say(PEER + 4); /* sent before it came back again: nothing is known of what follows */
    hear_nothing();
    say(PEER + 2);
    executed_to(PEER + 2);
    say(PEER + 3);
    executed_to(PEER + 3);
    close_world();
}

/* A gap of which the peer sends again what was kept. */
static void unskipped_gap(uint32_t psn)
{
    lose(psn, psn + 2);
    say(psn);
    executed_to(psn + 2);
    hear_all(psn + 2);
    say(psn + 1);
    say_asking(psn + 2);
    hear_all(psn + 2);
    hear_nothing();
}

/* What comes again of what was not kept is no sign that a peer goes back. */
static void others_again(void **state)
{
    uint32_t psn = LEARNT + 3;

    (void)state;
    open_back();
    learns();
    for (int i = 0; i < 2 * RC_NO_SKIPS; i++, psn += 3) {
        lose(psn, psn + 2);
        say(psn);
        executed_to(psn + 2);
        hear_all(psn + 2);
        say_asking(psn);
        hear_all(psn + 2);
    }
    assert_true(w.pair->responder.back.skips);
    close_world();
}

/* ROCE-RSP-02: duplicates that do not ask are acknowledged together, soon after the first. */
static void duplicates_wait(void **state)
{
    (void)state;
    open_back();
    say_asking(PEER);
    hear_all(PEER);
    say(PEER);
    waits(RC_ACK_DELAY_US - 1);
    say(PEER);
    waits(1);
    hear_all(PEER);
    close_world();
}

/* A peer that was taken for one that skips, and goes back. A time-out makes any peer go back: once is no proof. */
static void learns_again(void **state)
{
    uint32_t psn = LEARNT + 3;

    (void)state;
    open_back();
    learns();
    for (int i = 1; i < RC_NO_SKIPS; i++, psn += 3)
        unskipped_gap(psn);
    lose(psn, psn + 2);
    say(psn);
    executed_to(psn + 2);
    hear_all(psn + 2);
    psn += 3;
    for (int i = 0; i < RC_NO_SKIPS; i++, psn += 3)
        unskipped_gap(psn);
    lose(psn, psn + 2);
    say(psn);
    executed_to(psn);
    say(psn + 3);
    executed_to(psn + 3);
    hear_all(psn + 3);
    show(psn + 4, RC_SHOWN - 1); /* as few as at the start are no proof that it skips again */
    assert_false(w.pair->responder.back.skips);
    show(psn + 4 + (RC_SHOWN - 1) * SHOWS, 1);
    say(psn + 5 + (RC_SHOWN - 1) * SHOWS); /* and it is unlearned as slowly */
    assert_true(w.pair->responder.back.skips);
    close_world();
}

/* ROCE-RSP-06: what found no receive comes again, and what is behind it, as from the start. */
static void no_receive(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();

    (void)state;
    open_keeping(&attr, CELLS);
    offer_receive(1, 100);
    lose(PEER, PEER + RC_SKIPS);
    say(PEER);
    expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS);
    say(PEER + 1);
    hear_ack(PEER + 1, AETH_RNR_NAK | attr.responder.rnr_timer, 1);
    for (uint64_t i = 2; i <= 4; i++)
        offer_receive(i, 100);
    say(PEER + 2);
    say(PEER + 1 + RC_SKIPS); /* sent before the peer heard of it, so it proves nothing */
    hear_nothing();
    assert_int_equal(w.pair->responder.back.shown, 0);
    expect_quiet(&w.side->recv_cq);
    say(PEER + 1);
    expect_wc(&w.side->recv_cq, 2, RDDP_WC_SUCCESS);
    say(PEER + 2);
    expect_wc(&w.side->recv_cq, 3, RDDP_WC_SUCCESS);
    expect_quiet(&w.side->recv_cq);
    close_world();
}

/* --- a peer that goes back, on a path that loses packets ---------------------------------------------------------- */

enum { LAST = PEER + 3000, ANSWERS = 4096, SEEDS = 20 };

/* What it sends. One packet of `gaps` is the first of those that are lost, of `lost` on average. */
struct sender {
    enum bth_op op;
    uint32_t window, gaps, lost;
};

static struct {
    struct sender does;
    struct rng rng;
    bool loses;
    uint32_t una, next;
    struct bth answers[ANSWERS]; /* under way to the peer */
    uint32_t head, tail;
} peer;

static void answers_leave(void)
{
    for (; rc_pair_has_output(w.pair, w.net.now_us); peer.head++) {
        assert_true(peer.head - peer.tail < ANSWERS);
        peer.answers[peer.head % ANSWERS] = *hear();
    }
}

static void peer_sends(void)
{
    uint32_t psn = peer.next++;

    if (!peer.loses || !rng_below(&peer.rng, peer.does.lost))
        peer.loses = !rng_below(&peer.rng, peer.does.gaps);
    if (!peer.loses)
        says(packet(peer.does.op, psn % 4 && psn != LAST ? ONLY : ONLY | ASK, psn, 10));
    answers_leave();
    for (struct rddp_wc wc; cq_poll(&w.side->recv_cq, &wc, 1); offer_receive(received + RECEIVES, 100))
        assert_int_equal(wc.wr_id, ++received);
}

/* An acknowledgement of what the peer has not sent since it came back is what stops rxe. */
static void peer_hears(void)
{
    const struct bth *b = &peer.answers[peer.tail++ % ANSWERS];

    if ((b->syndrome & AETH_KIND) == AETH_NAK) {
        peer.una = peer.next = b->psn;
        return;
    }
    assert_true(b->psn < peer.next);
    if (b->psn >= peer.una)
        peer.una = b->psn + 1;
}
/* All have stopped: an acknowledgement that waits leaves, or the peer sends again what it has not seen acknowledged. */
static void time_passes(void)
{
    waits(RC_ACK_DELAY_US);
    answers_leave();
    if (peer.head == peer.tail)
        peer.next = peer.una;
}

static void play(struct sender does)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_back();
        peer.does = does;
        peer.rng = (struct rng){seed};
        peer.loses = false;
        peer.una = peer.next = PEER;
        peer.head = peer.tail = 0;
        while (peer.una <= LAST) {
            bool may_send = peer.next <= LAST && peer.next < peer.una + does.window, hears = peer.head != peer.tail;

            if (may_send && (!hears || rng_below(&peer.rng, 8)))
                peer_sends();
            else if (hears)
                peer_hears();
            else
                time_passes();
        }
        assert_int_equal(w.pair->responder.msn, LAST - PEER + 1);
        assert_int_equal(received, does.op == BTH_SEND ? LAST - PEER + 1 : 0);
        close_world();
    }
}

static void strict_peer(void **state)
{
    (void)state;
    play((struct sender){.op = BTH_SEND, .window = 16, .gaps = 10, .lost = 1});
}

/* If packets are lost in bursts, all that is sent again behind a gap may be lost, and what follows arrives. */
static void bursts(void **state)
{
    (void)state;
    play((struct sender){.op = BTH_WRITE, .window = 48, .gaps = 60, .lost = 8});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_back),    cmocka_unit_test(waits_for_the_next), cmocka_unit_test(skips),
        cmocka_unit_test(lost_again),   cmocka_unit_test(lost_read),          cmocka_unit_test(another_gap),
        cmocka_unit_test(learns_again), cmocka_unit_test(no_receive),         cmocka_unit_test(strict_peer),
        cmocka_unit_test(in_a_row),     cmocka_unit_test(duplicates_wait),    cmocka_unit_test(others_again),
        cmocka_unit_test(bursts),
    };

    return cmocka_run_group_tests_name("roce_back", tests, NULL, NULL);
}
