/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_withhold.c - acknowledgements of RoCE that wait for an answer which they can leave with. */
#include "tests/lib/rc_world.h"

/* ROCE-RSP-12: an acknowledgement that waits for a request leaves behind it, or when its time is over. */
static void withheld(void **state)
{
    struct bth send;

    (void)state;
    open_usual();
    send = packet(BTH_SEND, ONLY | ASK, PEER, 10);
    for (unsigned i = 0; i < 5; i++)
        offer_receive(i, 100);
    assert_false(rc_pair_withhold(w.pair, w.net.now_us)); /* nothing is due */
    says(send);
    assert_true(rc_pair_withhold(w.pair, w.net.now_us));
    hear_nothing();
    assert_int_equal(rc_pair_deadline(w.pair), w.net.now_us + RC_HOLD_US);
    request_send(1, 10);
    hear_message(FIRST, BTH_SEND, ONLY, 10);
    hear_ack(PEER, ACK, 1);
    hear_nothing();

    says(send); /* a duplicate is acknowledged at once */
    assert_false(rc_pair_withhold(w.pair, w.net.now_us));
    hear_ack(PEER, ACK, 1);
    acknowledges(FIRST, ACK);

    send.psn++;
    says(send);
    assert_true(rc_pair_withhold(w.pair, w.net.now_us));
    waits(RC_HOLD_US - 1);
    assert_true(rc_pair_withhold(w.pair, w.net.now_us)); /* no longer for that */
    hear_nothing();
    waits(1);
    hear_ack(PEER + 1, ACK, 2);

    send.psn++;
    says(send);
    assert_true(rc_pair_withhold(w.pair, w.net.now_us));
    request_send(2, 0); /* its packet is shorter */
    hear_ack(PEER + 2, ACK, 3);
    hear_message(FIRST + 1, BTH_SEND, ONLY, 0);
    hear_nothing();

    send.psn++;
    says(send);
    assert_true(rc_pair_withhold(w.pair, w.net.now_us));
    rc_pair_release(w.pair);
    hear_ack(PEER + 3, ACK, 4);

    send.psn++;
    says(send);
    says(send); /* the duplicate of one whose acknowledgement waits */
    assert_false(rc_pair_withhold(w.pair, w.net.now_us));
    hear_ack(PEER + 4, ACK, 5);
    close_world();
}

/* One that is about several messages waits as well, and for a stream of them none does. */
static void withheld_for_several(void **state)
{
    struct bth b;

    (void)state;
    open_usual();
    b = packet(BTH_WRITE, ONLY, PEER, 10);
    for (uint32_t rounds = 0; rounds < 2; rounds++)
        for (uint32_t n = 1; n <= RC_HOLD_PACKETS + 1; n++) {
            for (uint32_t i = 1; i < n; i++, b.psn++)
                says(b);
            assert_false(rc_pair_withhold(w.pair, w.net.now_us)); /* none asks for it */
            b.flags |= ASK;
            says(b);
            b.flags &= ~(unsigned)ASK;
            if (n > RC_HOLD_PACKETS) {
                assert_false(rc_pair_withhold(w.pair, w.net.now_us));
            } else {
                assert_true(rc_pair_withhold(w.pair, w.net.now_us));
                hear_nothing();
                (void)rc_pair_release(w.pair);
            }
            hear_ack(b.psn, ACK, b.psn - PEER + 1);
            b.psn++;
        }
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(withheld),
        cmocka_unit_test(withheld_for_several),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
