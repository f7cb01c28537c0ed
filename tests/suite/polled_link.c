/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled_link.c - a link that is polled all the time leaves the epoll set, and is back before anything sleeps there. */
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "drive/thread.h"
#include "endpoint/objects.h"
#include "endpoint/transfer.h"
#include "tests/suite/lib/manual.h"

enum { POLLS_MAX = 1000000, TURNS = 10, FULL = 4 * TURN_OCTETS, PIECE = 1 << 16, PIECES = TURN_OCTETS / PIECE };

static uint64_t received;

/* Until the initiator has sent something, the responder may not (RFC 5044 7.1.2). */
static void speak_first(void)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE, .remote_addr = (uintptr_t)there.memory}, *bad;

    wr.rkey = rddp_mr_key(there.mr);
    assert_int_equal(rddp_post_send(here.qp, &wr, &bad), 0);
}

static int set_up(void **state)
{
    received = 0;
    manual_open(state);
    speak_first();
    return 0;
}

/* Polls until the link rests; a message makes it the one that is asked. */
static void poll_until_it_rests(void)
{
    struct loop *loop = here.context->loop;
    struct rddp_wc wc;
    uint64_t before = received;

    manual_send(&there, &here);
    for (int i = 0; i < POLLS_MAX && (received == before || !loop->resting); i++)
        received += (uint64_t)rddp_poll_cq(here.cq, 1, &wc);
    assert_int_equal(received, before + 1);
    assert_non_null(loop->resting);
}

/* Without a poll that drives the loop: only what the caller does brings the completion. */
static bool has_come(void)
{
    struct rddp_wc wc;

    return cq_poll(&here.cq->cq, &wc, 1) == 1 && ++received;
}

static void a_sleeper_is_woken(void **state)
{
    (void)state;
    for (int i = 0; i < TURNS; i++) {
        poll_until_it_rests();
        manual_send(&there, &here);
        while (!has_come())
            assert_int_equal(rddp_progress(here.context, -1), 0);
        assert_null(here.context->loop->resting);
    }
}

static void rounds_without_sleep(void **state)
{
    (void)state;
    poll_until_it_rests();
    manual_send(&there, &here);
    for (int i = 0; i < PAIR_WAIT_MS && !has_come(); i++) {
        poll(NULL, 0, 1);
        assert_int_equal(rddp_progress(here.context, 0), 0);
    }
    assert_int_equal(received, 2);
}

static void at_the_descriptor(void **state)
{
    struct pollfd fd = {.events = POLLIN};
    struct rddp_wc wc;

    (void)state;
    poll_until_it_rests();
    fd.fd = rddp_progress_fd(here.context);
    assert_null(here.context->loop->resting); /* an old timer may end the sleep below as well */
    manual_send(&there, &here);
    while (!has_come()) {
        assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
        assert_int_equal(rddp_progress(here.context, 0), 0);
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    assert_null(here.context->loop->resting); /* its application may sleep at the descriptor at any time */
}

static void poll_one(void)
{
    struct rddp_wc wc;
    int n = 0;

    for (int i = 0; i < POLLS_MAX && !n; i++)
        n = rddp_poll_cq(here.cq, 1, &wc);
    assert_int_equal(n, 1);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
}

/* Memory of `here`, and of `there`, for more than one turn. */
static struct {
    struct rddp_mr *source, *target;
    uint8_t from[FULL], to[FULL];
} large;

static void register_large(void)
{
    memset(large.to, 0, FULL);
    memset(large.from, 1, FULL);
    large.source = rddp_reg_mr(here.pd, large.from, FULL, RDDP_ACCESS_LOCAL_WRITE);
    large.target = rddp_reg_mr(there.pd, large.to, FULL, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
}

static void write_large(struct rddp_qp *qp, uint32_t at, uint32_t length)
{
    struct rddp_sge sge = {(uintptr_t)large.from + at, length, rddp_mr_key(large.source)};
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE}, *bad;

    wr.send_flags = RDDP_SEND_SIGNALED;
    wr.remote_addr = (uintptr_t)large.to + at;
    wr.rkey = rddp_mr_key(large.target);
    assert_int_equal(rddp_post_send(qp, &wr, &bad), 0);
}

static void post_large(struct rddp_qp *qp)
{
    register_large();
    write_large(qp, 0, FULL);
}

/* Until what was written up to here has arrived. The memory itself says so, as to a program that waits at it. */
__attribute__((no_sanitize_thread)) static void await_large(uint32_t end)
{
    const volatile uint8_t *to = large.to;

    while (!to[end - 1])
        continue;
}

static void finish_large(uint32_t end)
{
    poll_one();
    await_large(end);
    assert_int_equal(rddp_dereg_mr(large.source), 0);
    assert_int_equal(rddp_dereg_mr(large.target), 0);
}

/* A link that rests is asked for octets alone: it comes back when it is full, and tells that there is room again. */
static void full_while_it_rests(void **state)
{
    (void)state;
    poll_until_it_rests();
    post_large(here.qp);
    atomic_store(&here.context->loop->asking.turn_over, false); /* as if the link had been full */
    finish_large(FULL);
}

/* Who waits for anything but octets stays in the epoll set, which tells of it. */
static void writers_do_not_rest(void **state)
{
    struct loop *loop = here.context->loop;
    struct endpoint *endpoint;

    (void)state;
    poll_until_it_rests();
    loop_lock(loop);
    loop_rouse(loop);
    endpoint = loop->hot;
    endpoint_hold(endpoint);
    link_want(endpoint->link, LINK_WANT_READ | LINK_WANT_WRITE);
    link_rest(endpoint->link, true);
    assert_true(reactor_sleep(&loop->reactor, 0));
    link_want(endpoint->link, LINK_WANT_READ);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
    loop_unlock(loop);
}

static struct rddp_qp *second_of(const struct manual_end *end)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = end->cq;
    attr.wait_for_receive_ms = RDDP_WAIT_WITHOUT_LIMIT;
    return rddp_create_qp(end->pd, &attr);
}

/* `there` connects a second queue pair to one of `here`. */
static void connect_second(struct rddp_qp *from, struct rddp_qp *to)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_listener *listener;
    struct rddp_conn_attr attr;
    struct sockaddr_storage addr;

    rddp_conn_attr_init(&attr);
    attr.wire.first_delay_ms = 0;
    listener = rddp_listen(here.events, (struct sockaddr *)&any, sizeof(any), 1, &attr.wire, NULL);
    assert_non_null(listener);
    assert_int_equal(rddp_listener_addr(listener, &addr), 0);
    assert_int_equal(rddp_connect(from, there.events, (struct sockaddr *)&addr, sizeof(any), &attr), 0);
    assert_int_equal(rddp_accept(manual_event(&here, RDDP_EVENT_CONNECT_REQUEST).request, to, NULL), 0);
    manual_event(&there, RDDP_EVENT_ESTABLISHED);
    manual_event(&here, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

static void send_to_second(struct rddp_qp *from, struct rddp_qp *to)
{
    struct rddp_recv_wr receive = {.num_sge = 0}, *bad_receive;
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND}, *bad;

    assert_int_equal(rddp_post_recv(to, &receive, &bad_receive), 0);
    assert_int_equal(rddp_post_send(from, &wr, &bad), 0);
    poll_one();
}

/* From here on the poller asks another link, and the one that rested has to be in the epoll set. */
static void another_speaks(void **state)
{
    struct rddp_qp *from = second_of(&there), *to = second_of(&here);

    (void)state;
    connect_second(from, to);
    poll_until_it_rests();
    send_to_second(from, to);
    assert_ptr_not_equal(here.context->loop->hot, here.context->loop->resting);
    manual_send(&there, &here);
    poll_one();
    rddp_destroy_qp(to);
    rddp_destroy_qp(from);
}

/* The link whose turn to send is over goes on at the next poll, although another one had something last. */
static void a_turn_goes_on_at_once(void **state)
{
    struct rddp_qp *asks = second_of(&there), *sends = second_of(&here);
    struct loop *loop = here.context->loop;
    uint64_t first_turn;
    struct rddp_wc wc;

    (void)state;
    connect_second(asks, sends);
    send_to_second(asks, sends); /* who was asked to connect may send after this alone */
    manual_send(&there, &here);
    poll_one();
    assert_ptr_not_equal(loop->hot, sends->endpoint);
    post_large(sends);
    first_turn = sends->endpoint->conn.agreed.tx_pos;
    while (!reactor_sleep(&loop->reactor, 0)) /* the link reports that it is writable */
        continue;
    loop->asking.turns = 0; /* it is not time for all */
    assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    assert_true(sends->endpoint->conn.agreed.tx_pos > first_turn);
    finish_large(FULL);
    rddp_destroy_qp(sends);
    rddp_destroy_qp(asks);
}

/* While another link ends a turn before each poll, the one that rested has to be in the epoll set. */
static void turns_hide_no_arrival(void **state)
{
    struct loop *loop = here.context->loop;
    struct rddp_wc wc;
    int n = 0;

    (void)state;
    poll_until_it_rests();
    manual_send(&there, &here);
    for (int i = 0; i < POLLS_MAX && !n; i++) {
        atomic_store(&loop->asking.turn_over, true);
        n = rddp_poll_cq(here.cq, 1, &wc);
    }
    assert_int_equal(n, 1);
}

/* From here on `here` posts as if a thread would send what no poll sends; its last poll was now, or is long past. */
static void post_beside_a_thread(bool is_polled)
{
    here.context->manual = false;
    here.qp->endpoint->turn.polls = qp_polls(here.qp) - is_polled;
    here.qp->endpoint->turn.polled_us = 0;
}

/* Posts that drive nothing in between, each when the one before has arrived. Returns how many do. */
static uint32_t pieces_that_leave(uint32_t posted, bool is_polled)
{
    uint32_t left = 0, at = 0;

    register_large();
    for (uint32_t i = 0; i < posted; i++, at += PIECE) {
        atomic_fetch_add(&here.cq->polls, is_polled);
        write_large(here.qp, at, PIECE);
        left += !here.qp->endpoint->blocked;
        if (left > i)
            await_large(at + PIECE);
    }
    return left;
}

static void finish_pieces(uint32_t posted)
{
    here.context->manual = true;
    for (uint32_t i = 1; i < posted; i++)
        poll_one();
    finish_large(posted * PIECE);
}

static void posts_share_a_turn(void **state)
{
    (void)state;
    post_beside_a_thread(true);
    assert_int_equal(pieces_that_leave(2 * PIECES, true), PIECES);
    finish_pieces(2 * PIECES);
}

/* When no poll follows, who posts sends what has waited for that. */
static void posts_without_polls_go_on(void **state)
{
    (void)state;
    post_beside_a_thread(true);
    assert_int_equal(pieces_that_leave(PIECES + 1, true), PIECES);
    post_beside_a_thread(false);
    write_large(here.qp, (PIECES + 1) * PIECE, PIECE);
    await_large((PIECES + 2) * PIECE);
    finish_pieces(PIECES + 2);
}

static void posts_without_polls_have_their_own(void **state)
{
    (void)state;
    post_beside_a_thread(false);
    assert_int_equal(pieces_that_leave(2 * PIECES, false), 2 * PIECES);
    finish_pieces(2 * PIECES);
}

static void posts_without_a_thread_have_their_own(void **state)
{
    (void)state;
    assert_int_equal(pieces_that_leave(2 * PIECES, true), 2 * PIECES);
    finish_pieces(2 * PIECES);
}

/* What has to be answered is, although nothing but polls drives this end. */
static void reads_are_answered(void **state)
{
    uint8_t to[MANUAL_SIZE];
    struct rddp_mr *source = rddp_reg_mr(here.pd, here.memory, MANUAL_SIZE, RDDP_ACCESS_REMOTE_READ);
    struct rddp_mr *sink = rddp_reg_mr(there.pd, to, MANUAL_SIZE, RDDP_ACCESS_LOCAL_WRITE);
    struct rddp_sge sge = {(uintptr_t)to, MANUAL_SIZE, rddp_mr_key(sink)};
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_READ}, *bad;
    struct rddp_wc wc;

    (void)state;
    wr.send_flags = RDDP_SEND_SIGNALED;
    wr.remote_addr = (uintptr_t)here.memory;
    wr.rkey = rddp_mr_key(source);
    poll_until_it_rests();
    for (int turn = 0; turn < TURNS; turn++) {
        int n = 0;

        assert_int_equal(rddp_post_send(there.qp, &wr, &bad), 0);
        for (int i = 0; i < POLLS_MAX && !n; i++) {
            assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
            n = rddp_poll_cq(there.cq, 1, &wc);
        }
        assert_int_equal(n, 1);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    }
    assert_int_equal(rddp_dereg_mr(source), 0);
    assert_int_equal(rddp_dereg_mr(sink), 0);
}

/* When the connection is gone, no poll asks its link, or rouses it. */
static void polls_see_the_end(void **state)
{
    struct loop *loop = here.context->loop;
    struct rddp_wc wc;
    bool is_over = false;

    (void)state;
    poll_until_it_rests();
    assert_int_equal(rddp_disconnect(there.qp), 0);
    for (int i = 0; i < POLLS_MAX && !is_over; i++) {
        (void)rddp_poll_cq(here.cq, 1, &wc);
        loop_lock(loop);
        is_over = !loop->endpoints;
        loop_unlock(loop);
    }
    assert_true(is_over);
    assert_null(loop->resting);
    assert_null(loop->hot);
    manual_event(&here, RDDP_EVENT_DISCONNECTED);
    manual_event(&there, RDDP_EVENT_DISCONNECTED);
}

static bool is_waiting(struct rddp_qp *qp)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(qp, &info), 0);
    return info.waits_for_receive;
}

/* Does the connection know that the peer has gone? */
static bool is_left(struct rddp_qp *qp)
{
    struct loop *loop = here.context->loop;
    bool is_gone;

    loop_lock(loop);
    is_gone = qp->endpoint->life->peer_is_gone;
    loop_unlock(loop);
    return is_gone;
}

/* While a message waits for a receive, nothing is read from its link, so polls do not see the end: the epoll set does.
 */
static void the_end_of_a_waiting_link(void **state)
{
    struct rddp_qp *from = second_of(&there), *to = second_of(&here);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND}, *bad;
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    (void)state;
    connect_second(from, to);
    send_to_second(from, to);
    while (here.context->loop->resting != to->endpoint)
        assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    assert_int_equal(rddp_post_send(from, &wr, &bad), 0);
    while (!is_waiting(to))
        assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    assert_ptr_equal(here.context->loop->resting, to->endpoint); /* nothing has slept, or taken it back, meanwhile */
    rddp_destroy_qp(from);
    while (!is_left(to)) {
        assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
        assert_true(reactor_now_us() - began_us < PAIR_WAIT_MS * 1000);
    }
    rddp_destroy_qp(to);
}

/* The peer ends the connection of a link that rests: a poller sees it, and then the application that waits for it. */
static void the_end_is_seen(void **state)
{
    (void)state;
    poll_until_it_rests();
    assert_int_equal(rddp_disconnect(there.qp), 0);
    manual_event(&here, RDDP_EVENT_DISCONNECTED);
    manual_event(&there, RDDP_EVENT_DISCONNECTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sleeper_is_woken, set_up, manual_close),
        cmocka_unit_test_setup_teardown(rounds_without_sleep, set_up, manual_close),
        cmocka_unit_test_setup_teardown(at_the_descriptor, set_up, manual_close),
        cmocka_unit_test_setup_teardown(full_while_it_rests, set_up, manual_close),
        cmocka_unit_test_setup_teardown(writers_do_not_rest, set_up, manual_close),
        cmocka_unit_test_setup_teardown(another_speaks, set_up, manual_close),
        cmocka_unit_test_setup_teardown(a_turn_goes_on_at_once, set_up, manual_close),
        cmocka_unit_test_setup_teardown(turns_hide_no_arrival, set_up, manual_close),
        cmocka_unit_test_setup_teardown(posts_share_a_turn, set_up, manual_close),
        cmocka_unit_test_setup_teardown(posts_without_polls_go_on, set_up, manual_close),
        cmocka_unit_test_setup_teardown(posts_without_polls_have_their_own, set_up, manual_close),
        cmocka_unit_test_setup_teardown(posts_without_a_thread_have_their_own, set_up, manual_close),
        cmocka_unit_test_setup_teardown(reads_are_answered, set_up, manual_close),
        cmocka_unit_test_setup_teardown(polls_see_the_end, set_up, manual_close),
        cmocka_unit_test_setup_teardown(the_end_of_a_waiting_link, set_up, manual_close),
        cmocka_unit_test_setup_teardown(the_end_is_seen, set_up, manual_close),
    };

    return cmocka_run_group_tests_name("polled_link", tests, NULL, NULL);
}
