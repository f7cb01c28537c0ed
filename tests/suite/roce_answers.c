/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_answers.c - an acknowledgement that waits for the application's answer arrives before that answer, and leaves
 * without one, too. */
#include "endpoint/objects.h"
#include "tests/suite/lib/by_hand.h"

enum { ROUNDS = 400, SINGLE = 50, RECEIVE = 77, NEVER = 0 /* code of the time-out: nothing is sent twice */ };

static struct hands h;

static void open_ends(bool manual, uint32_t depth)
{
    if (manual)
        hands_open_manual(&h, RDDP_QPT_RC, "127.0.0.1");
    else
        hands_open(&h, RDDP_QPT_RC, "127.0.0.1");
    h.qp.max_send_wr = depth;
    h.ib.timeout = NEVER;
    hands_make(&h);
    hands_connect(&h);
}

static void send_one(unsigned from, uint32_t length)
{
    hand_post(&h.end[from], &h.end[!from], RDDP_WR_SEND, 0, length, 0);
}

/* Polls until a message has come. Returns how many Sends were complete before it. */
static unsigned await_message(unsigned end)
{
    unsigned sends = 0;

    for (;;) {
        struct rddp_wc wc = hand_completion(&h.end[end]);

        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        if (wc.wr_id == RECEIVE)
            return sends;
        sends++;
    }
}

/* With a queue of one request each end can only answer if what it sent is complete when it sees the answer. */
static void answer_in_turn(bool manual, uint32_t length)
{
    unsigned sent[2] = {0}, completed[2] = {0};

    open_ends(manual, 1);
    for (unsigned end = 0; end < 2; end++)
        hand_receive(&h.end[end], RECEIVE, 4096, 4096);
    send_one(0, length);
    sent[0]++;
    for (unsigned i = 1; i < ROUNDS; i++) {
        unsigned end = i % 2;

        completed[end] += await_message(end);
        assert_int_equal(completed[end], sent[end]);
        hand_receive(&h.end[end], RECEIVE, 4096, 4096);
        send_one(end, length);
        sent[end]++;
    }
    hands_close(&h);
}

static void queue_of_one(void **state)
{
    (void)state;
    answer_in_turn(true, 8);
    answer_in_turn(true, 0); /* shorter than an acknowledgement */
    answer_in_turn(true, 3000);
    answer_in_turn(false, 8);
}

/* The receiver polls until it has the message, and never again. */
static void receive_and_leave(bool manual)
{
    open_ends(manual, 4);
    for (unsigned i = 0; i < SINGLE; i++) {
        hand_receive(&h.end[1], RECEIVE, 4096, 4096);
        send_one(0, 8);
        assert_int_equal(await_message(1), 0);
        assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    }
    hands_close(&h);
}

/* Its library's thread does the rest. */
static void never_polls_again(void **state)
{
    (void)state;
    receive_and_leave(false);
}

/* Without a thread nothing waits, as the receiver has not answered before. */
static void only_receives(void **state)
{
    (void)state;
    receive_and_leave(true);
}

/* This end has something to say, so that it may have more. */
static void say(unsigned end)
{
    hand_post(&h.end[end], &h.end[!end], RDDP_WR_RDMA_WRITE, 0, 8, 8192);
    assert_int_equal(rddp_progress(h.end[!end].context, 0), 0);
    assert_int_equal(hand_completion(&h.end[end]).status, RDDP_WC_SUCCESS);
}

/* Without a thread it calls once more, before it sleeps or does something else. */
static void progress_sends_it(void **state)
{
    (void)state;
    open_ends(true, 4);
    for (unsigned i = 0; i < SINGLE; i++) {
        say(1);
        hand_receive(&h.end[1], RECEIVE, 4096, 4096);
        send_one(0, 8);
        assert_int_equal(await_message(1), 0);
        assert_non_null(h.end[1].context->loop->owing);
        assert_int_equal(rddp_progress(h.end[1].context, 0), 0);
        assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    }
    hands_close(&h);
}

/* Whichever turn of a poller finds the message: that of the socket that spoke last, or that of all. */
static void any_turn_withholds(void **state)
{
    struct rddp_wc wc;

    (void)state;
    open_ends(true, 4);
    for (unsigned i = 0; i < 4 * SINGLE; i++) {
        say(1);
        hand_receive(&h.end[1], RECEIVE, 4096, 4096);
        send_one(0, 8);
        while (!rddp_poll_cq(h.end[1].cq, 1, &wc))
            continue;
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_non_null(h.end[1].context->loop->owing);
        assert_int_equal(rddp_poll_cq(h.end[1].cq, 1, &wc), 0);
        assert_null(h.end[1].context->loop->owing);
        assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    }
    hands_close(&h);
}

/* One message for the first of two CQs that are armed. Returns whether its acknowledgement waits. */
static bool waits(struct rddp_cq *polled, struct rddp_cq *beside)
{
    struct hand *to = &h.end[1];
    struct rddp_wc wc;
    bool is_owing;

    say(1);
    assert_int_equal(rddp_req_notify_cq(beside, false), 0);
    assert_int_equal(rddp_req_notify_cq(to->cq, false), 0);
    hand_receive(to, RECEIVE, 4096, 4096);
    assert_int_equal(rddp_poll_cq(polled, 1, &wc), 0);
    send_one(0, 8);
    while (!rddp_poll_cq(to->cq, 1, &wc))
        continue;
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    is_owing = to->context->loop->owing;
    assert_int_equal(rddp_progress(to->context, 0), 0);
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    return is_owing;
}

/* Who polls armed CQs alone may sleep behind each poll, so what it owes leaves at once. Who polls another one, too,
 * goes on. */
static void beside_armed_ones(void **state)
{
    struct hand *to = &h.end[1];
    struct rddp_comp_channel *channel;
    struct rddp_cq *beside, *plain;
    unsigned waiting = 0;

    (void)state;
    hands_open_manual(&h, RDDP_QPT_RC, "127.0.0.1");
    plain = to->cq;
    channel = rddp_create_comp_channel(to->context);
    to->cq = rddp_create_cq(to->context, HAND_DEPTH, NULL, channel);
    beside = rddp_create_cq(to->context, HAND_DEPTH, NULL, channel);
    assert_non_null(beside);
    hands_make(&h);
    hands_connect(&h);
    for (unsigned i = 0; i < SINGLE; i++)
        waiting += waits(plain, beside);
    assert_true(waiting > SINGLE / 2);
    for (unsigned i = 0; i < SINGLE; i++)
        assert_false(waits(beside, beside));
    assert_int_equal(rddp_destroy_qp(to->qp), 0);
    to->qp = NULL;
    assert_int_equal(rddp_destroy_cq(to->cq), 0);
    assert_int_equal(rddp_destroy_cq(beside), 0);
    assert_int_equal(rddp_destroy_comp_channel(channel), 0);
    to->cq = plain;
    hands_close(&h);
}

/* The receiver has what it wanted, and ends its queue pair at once. */
static void ends_at_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SINGLE; i++) {
        open_ends(true, 4);
        say(1);
        hand_receive(&h.end[1], RECEIVE, 4096, 4096);
        send_one(0, 8);
        assert_int_equal(await_message(1), 0);
        assert_non_null(h.end[1].context->loop->owing);
        assert_int_equal(rddp_destroy_qp(h.end[1].qp), 0);
        h.end[1].qp = NULL;
        assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
        hands_close(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_of_one),  cmocka_unit_test(never_polls_again), cmocka_unit_test(progress_sends_it),
        cmocka_unit_test(only_receives), cmocka_unit_test(beside_armed_ones), cmocka_unit_test(any_turn_withholds),
        cmocka_unit_test(ends_at_once),
    };

    return cmocka_run_group_tests_name("roce_answers", tests, NULL, NULL);
}
