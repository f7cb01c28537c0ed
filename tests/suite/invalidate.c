/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* invalidate.c - a key is invalidated while another connection is placing data: nothing is reported before that is over
 * (RDMAP-5.3-03).
 *
 * The target is a file that is truncated: the thread that places data there gets SIGBUS, and waits in the handler until
 * the test lets it continue. */
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

enum { LENGTH = 4096, LINKS = 2, GRACE_MS = 150 };

static FILE *temporary;
static int file;
static uint8_t *memory;
static atomic_bool stuck, go;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void on_bus_error(int sig)
{
    (void)sig;
    stuck = true;
    while (!go)
        pause_ms(1);
    if (ftruncate(file, LENGTH))
        _exit(3);
}

struct end {
    struct rddp_qp *qp[LINKS];
    struct rddp_cq *cq[LINKS];
    struct rddp_pd *pd;
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_mr *mr;
};

static struct end here, there;
static struct rddp_mr *target;
static uint8_t own[LENGTH], inbox[LENGTH];
static struct rddp_listener *listener;

static void open_end(struct end *end, void *at, uint32_t loops)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.loops = loops;
    end->context = rddp_open(&attr);
    end->pd = rddp_alloc_pd(end->context);
    end->events = rddp_create_event_channel(end->context);
    end->mr = rddp_reg_mr(end->pd, at, LENGTH, RDDP_ACCESS_LOCAL_WRITE);
    assert_non_null(end->mr);
}

static struct rddp_qp *make_qp(struct end *end, int i)
{
    struct rddp_qp_attr attr;

    end->cq[i] = rddp_create_cq(end->context, 256, NULL, NULL);
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = end->cq[i];
    end->qp[i] = rddp_create_qp(end->pd, &attr);
    assert_non_null(end->qp[i]);
    return end->qp[i];
}

static struct rddp_event next_event(struct end *end, enum rddp_event_type type)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(end->events), .events = POLLIN};
    struct rddp_event *event, copy;

    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(end->events, &event), 0);
    copy = *event;
    rddp_ack_event(event);
    assert_int_equal(copy.type, type);
    return copy;
}

/* A listener gives connections to the loops in turn: each of the two has its own thread at that end. */
static void connect_both(void)
{
    struct sockaddr_storage addr;
    struct rddp_conn_attr attr;

    addr = (struct sockaddr_storage){.ss_family = AF_INET};
    listener = rddp_listen(there.events, (struct sockaddr *)&addr, sizeof(struct sockaddr_in), 4, NULL, NULL);
    assert_non_null(listener);
    rddp_listener_addr(listener, &addr);
    rddp_conn_attr_init(&attr);
    attr.wire.first_delay_ms = 0;
    for (int i = 0; i < LINKS; i++) {
        assert_int_equal(
            rddp_connect(make_qp(&here, i), here.events, (struct sockaddr *)&addr, sizeof(struct sockaddr_in), &attr),
            0);
        assert_int_equal(rddp_accept(next_event(&there, RDDP_EVENT_CONNECT_REQUEST).request, make_qp(&there, i), NULL),
                         0);
        next_event(&here, RDDP_EVENT_ESTABLISHED);
        next_event(&there, RDDP_EVENT_ESTABLISHED);
    }
}

static int set_up(void **state)
{
    (void)state;
    temporary = tmpfile();
    if (!temporary)
        return -1;
    file = fileno(temporary);
    stuck = go = false;
    if (ftruncate(file, LENGTH))
        return -1;
    memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    open_end(&here, own, 1);
    open_end(&there, inbox, LINKS);
    target = rddp_reg_mr(there.pd, memory, LENGTH, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
    connect_both();
    return 0;
}

static void close_end(struct end *end)
{
    for (int i = 0; i < LINKS; i++) {
        rddp_destroy_qp(end->qp[i]);
        rddp_destroy_cq(end->cq[i]);
    }
    rddp_dereg_mr(end->mr);
    rddp_destroy_event_channel(end->events);
    assert_int_equal(rddp_dealloc_pd(end->pd), 0);
    assert_int_equal(rddp_close(end->context), 0);
}

static int tear_down(void **state)
{
    (void)state;
    go = true;
    rddp_destroy_listener(listener);
    if (target)
        rddp_dereg_mr(target);
    close_end(&here);
    close_end(&there);
    munmap(memory, LENGTH);
    fclose(temporary);
    return 0;
}

static void post(struct rddp_qp *qp, uint64_t id, enum rddp_wr_opcode opcode, uint32_t length, uint32_t key)
{
    struct rddp_sge sge = {(uintptr_t)own, length, rddp_mr_key(here.mr)};
    struct rddp_send_wr wr = {
        .wr_id = id,
        .opcode = opcode,
        .send_flags = RDDP_SEND_SIGNALED,
        .sg_list = &sge,
        .num_sge = length ? 1 : 0,
        .remote_addr = (uintptr_t)memory,
        .rkey = key,
        .invalidate_rkey = key,
    };

    assert_int_equal(rddp_post_send(qp, &wr, NULL), 0);
}

static void post_receive(int i)
{
    struct rddp_sge sge = {(uintptr_t)inbox, 64, rddp_mr_key(there.mr)};
    struct rddp_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};

    assert_int_equal(rddp_post_recv(there.qp[i], &wr, NULL), 0);
}

/* Polls for completions, which must not come before `go`. */
static int completions(struct rddp_cq *cq, struct rddp_wc *wc, int n, int ms)
{
    int got = 0;

    for (; ms > 0 && got < n; ms--) {
        got += rddp_poll_cq(cq, n - got, wc + got);
        pause_ms(1);
    }
    return got;
}

/* The first connection gets stuck in a Write to the region. */
static void get_stuck(void)
{
    struct sigaction action = {.sa_handler = on_bus_error};

    sigaction(SIGBUS, &action, NULL); /* cmocka installs its own handler around each test */
    pair_pattern(own, LENGTH, 5);
    assert_int_equal(ftruncate(file, 0), 0);
    post(here.qp[0], 1, RDDP_WR_RDMA_WRITE, 1000, rddp_mr_key(target));
    for (int i = 0; i < PAIR_WAIT_MS && !stuck; i++)
        pause_ms(1);
    assert_true(stuck);
}

static void is_invalid(void)
{
    for (int i = 0; i < PAIR_WAIT_MS && rddp_mr_is_valid(target); i++)
        pause_ms(1);
    assert_false(rddp_mr_is_valid(target));
}

static void by_a_send(void **state)
{
    struct rddp_wc wc[2];

    (void)state;
    post_receive(1);
    post_receive(1);
    get_stuck();
    post(here.qp[1], 2, RDDP_WR_SEND_WITH_INV, 8, rddp_mr_key(target));
    post(here.qp[1], 3, RDDP_WR_SEND, 8, 0);
    is_invalid();
    assert_int_equal(completions(there.cq[1], wc, 2, GRACE_MS), 0);
    go = true;
    assert_int_equal(completions(there.cq[1], wc, 2, PAIR_WAIT_MS), 2);
    assert_true(pair_is_pattern(memory, 1000, 5)); /* the whole Write, and nothing afterwards */
    assert_int_equal(wc[0].status, RDDP_WC_SUCCESS);
    assert_int_equal(wc[0].wc_flags, RDDP_WC_WITH_INV);
    assert_int_equal(wc[0].invalidated_rkey, rddp_mr_key(target));
    assert_int_equal(wc[1].status, RDDP_WC_SUCCESS);
    assert_int_equal(wc[1].wc_flags, 0);
}

/* The last message of a peer is delivered although the peer closes. */
static void by_a_send_and_a_close(void **state)
{
    struct rddp_wc wc[1];

    (void)state;
    post_receive(1);
    get_stuck();
    post(here.qp[1], 2, RDDP_WR_SEND_WITH_INV, 8, rddp_mr_key(target));
    assert_int_equal(rddp_disconnect(here.qp[1]), 0);
    is_invalid();
    assert_int_equal(completions(there.cq[1], wc, 1, GRACE_MS), 0);
    go = true;
    assert_int_equal(completions(there.cq[1], wc, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(wc[0].status, RDDP_WC_SUCCESS);
    assert_int_equal(wc[0].invalidated_rkey, rddp_mr_key(target));
}

/* The post does not wait; requests posted after it are sent, and complete after it. */
static void by_its_owner(void **state)
{
    struct rddp_wc wc[2], far;

    (void)state;
    assert_int_equal(rddp_post_recv(here.qp[1], &(struct rddp_recv_wr){.wr_id = 9}, NULL), 0);
    post_receive(1);
    post(here.qp[1], 3, RDDP_WR_SEND, 8, 0); /* a responder must not send first */
    assert_int_equal(completions(there.cq[1], wc, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(completions(here.cq[1], wc, 1, PAIR_WAIT_MS), 1);
    get_stuck();
    post(there.qp[1], 4, RDDP_WR_LOCAL_INV, 0, rddp_mr_key(target));
    post(there.qp[1], 5, RDDP_WR_SEND, 0, 0);
    is_invalid();
    assert_int_equal(completions(here.cq[1], &far, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(far.wr_id, 9);
    assert_int_equal(completions(there.cq[1], wc, 2, GRACE_MS), 0);
    go = true;
    assert_int_equal(completions(there.cq[1], wc, 2, PAIR_WAIT_MS), 2);
    assert_true(pair_is_pattern(memory, 1000, 5));
    assert_int_equal(wc[0].wr_id, 4);
    assert_int_equal(wc[0].status, RDDP_WC_SUCCESS);
    assert_int_equal(wc[1].wr_id, 5);
    assert_int_equal(wc[1].status, RDDP_WC_SUCCESS);
}

static void *deregister(void *done)
{
    rddp_dereg_mr(target);
    *(atomic_bool *)done = true;
    return NULL;
}

/* rddp_dereg_mr() does wait. */
static void by_deregistration(void **state)
{
    static atomic_bool done;
    pthread_t thread;

    (void)state;
    get_stuck();
    assert_int_equal(pthread_create(&thread, NULL, deregister, &done), 0);
    pause_ms(GRACE_MS);
    assert_false(done);
    go = true;
    pthread_join(thread, NULL);
    assert_true(done);
    assert_true(pair_is_pattern(memory, 1000, 5));
    target = NULL;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(by_a_send),
        TEST(by_a_send_and_a_close),
        TEST(by_its_owner),
        TEST(by_deregistration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
