/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* signals.c - signals come while a thread waits for an event: as with an adapter's descriptors, the call goes on after
 * a handler that was installed with SA_RESTART, and fails with EINTR after another. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/verbs/lib/ids.h"

enum { SIGNALS = 50 };

static struct ids ids;
static struct rdma_event_channel *channel;
static atomic_int handled;
static atomic_bool has_returned;

static void on_signal(int number)
{
    (void)number;
    handled++;
}

static void install(int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

    sigaction(SIGUSR1, &action, NULL);
    handled = 0;
    has_returned = false;
}

static int wait_for_connection(void)
{
    struct rdma_cm_event *event;
    int error = rdma_get_cm_event(channel, &event) ? errno : 0;

    if (!error)
        rdma_ack_cm_event(event);
    return error;
}

static int wait_for_completion(void)
{
    struct ibv_cq *cq;
    void *user;
    int error = ibv_get_cq_event(ids.client->recv_cq_channel, &cq, &user) ? errno : 0;

    if (!error)
        ibv_ack_cq_events(cq, 1);
    return error;
}

static int wait_for_async(void)
{
    struct ibv_async_event event;
    int error = ibv_get_async_event(ids.client->verbs, &event) ? errno : 0;

    if (!error)
        ibv_ack_async_event(&event);
    return error;
}

static void *waiter(void *arg)
{
    int error = (*(int (**)(void))arg)();

    has_returned = true;
    return (void *)(intptr_t)error;
}

/* Signals `thread` until that many were handled, or it has returned. */
static void interrupt(pthread_t thread, int signals)
{
    while (handled < signals && !has_returned) {
        pthread_kill(thread, SIGUSR1);
        usleep(1000);
    }
}

static int result(pthread_t thread)
{
    void *error;

    pthread_join(thread, &error);
    return (int)(intptr_t)error;
}

static void test_interrupted(void **state)
{
    int (*calls[])(void) = {wait_for_connection, wait_for_completion, wait_for_async};

    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        install(0);
        pthread_create(&thread, NULL, waiter, &calls[i]);
        interrupt(thread, INT_MAX);
        assert_int_equal(result(thread), EINTR);
    }
}

/* What ends each of the waits: the id that is moved to the channel is over, a receive is flushed, its queue pair has
 * failed. */
static void test_restarted(void **state)
{
    int (*calls[])(void) = {wait_for_connection, wait_for_completion, wait_for_async};
    pthread_t thread[3];

    (void)state;
    assert_int_equal(ibv_req_notify_cq(ids.client->recv_cq, 0), 0);
    install(SA_RESTART);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, waiter, &calls[i]);
    for (int i = 0; i < 3; i++) {
        interrupt(thread[i], SIGNALS);
        assert_false(has_returned);
        handled = 0;
    }
    /* A Write that the peer does not allow. */
    ids.server_mr->rkey++;
    assert_int_equal(rdma_post_write(ids.server, NULL, ids.server_buffer, 1, ids.server_mr, 0,
                                     (uintptr_t)ids.client_buffer, ids.server_mr->rkey),
                     0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(result(thread[i]), 0);
}

static void *wait_at(void *at)
{
    struct rdma_cm_event *event;

    return (void *)(intptr_t)rdma_get_cm_event(at, &event);
}

/* A thread that is cancelled leaves no lock behind, and its channel can go: all have the same descriptor. */
static void test_cancelled(void **state)
{
    enum { THREADS = 30 };
    struct rdma_event_channel *own;
    int fd = -1;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        void *how;
        pthread_t thread;
        own = rdma_create_event_channel();
        assert_true(fd < 0 || own->fd == fd);
        fd = own->fd;
        pthread_create(&thread, NULL, wait_at, own);
        usleep((unsigned)i % 2 * 2000); /* before the call, or in it */
        pthread_cancel(thread);
        pthread_join(thread, &how);
        assert_ptr_equal(how, PTHREAD_CANCELED);
        rdma_destroy_event_channel(own);
    }
}

static void *query_gid(void *context)
{
    union ibv_gid gid;

    pthread_cancel(pthread_self());
    ibv_query_gid(context, 1, 0, &gid);
    return NULL;
}

static void *stop_listening(void *listener)
{
    pthread_cancel(pthread_self());
    rdma_destroy_ep(listener);
    return NULL;
}

static void *destroy(void *id)
{
    rdma_destroy_id(id);
    return NULL;
}

/* So does one that is cancelled in the middle of a call, where it does more than wait for an event: others go on. */
static void test_cancelled_inside(void **state)
{
    struct rdma_event_channel *own = rdma_create_event_channel();
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_cm_event *event;
    struct ids other = {0};
    struct rdma_cm_id *id;
    union ibv_gid gid;
    pthread_t thread;
    char port[8];

    (void)state;
    alarm(WAIT_MS / 1000);
    ids_listen(&other, port);
    pthread_create(&thread, NULL, stop_listening, other.listener);
    pthread_join(thread, NULL);
    assert_int_equal(rdma_create_id(own, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, WAIT_MS), 0);
    assert_int_equal(rdma_get_cm_event(own, &event), 0);
    pthread_create(&thread, NULL, destroy, id); /* waits until the event was given back */
    usleep(20000);
    pthread_cancel(thread);
    rdma_ack_cm_event(event);
    pthread_join(thread, NULL);
    rdma_destroy_event_channel(own);
    pthread_create(&thread, NULL, query_gid, ids.client->verbs);
    pthread_join(thread, NULL);
    assert_int_equal(ibv_query_gid(ids.client->verbs, 1, 0, &gid), 0);
    alarm(0);
}

static int set_up(void **state)
{
    (void)state;
    ids_connect(&ids);
    channel = rdma_create_event_channel();
    return rdma_migrate_id(ids.client, channel);
}

static int tear_down(void **state)
{
    (void)state;
    ids_free(&ids);
    rdma_destroy_event_channel(channel);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_cancelled_inside),
        cmocka_unit_test(test_restarted),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
