/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* other_thread.c - one thread calls, and another takes the event that follows and destroys the id, before the call has
 * returned. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 20000 };

static int (*real_unlock)(pthread_mutex_t *mutex);
static const pthread_mutex_t *lock_of_ids;
static _Thread_local bool is_calling;
static atomic_bool is_destroyed;

/* The thread that calls stops as soon as others can go on. The libraries find this one before that of the C library. */
__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int error;

    if (!real_unlock)
        real_unlock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    error = real_unlock(mutex);
    if (!is_calling || mutex != lock_of_ids)
        return error;
    is_calling = false;
    for (int ms = 0; ms < WAIT_MS && !is_destroyed; ms++)
        usleep(1000);
    return error;
}

/* Destroys the id of the next event. */
static void *destroyer(void *channel)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;

    if (rdma_get_cm_event(channel, &event))
        return NULL;
    id = event->id;
    rdma_ack_cm_event(event);
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
    is_destroyed = true;
    return id;
}

static int call_resolve_addr(struct rdma_cm_id *id)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(1)};

    return rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, WAIT_MS);
}

static int call_resolve_route(struct rdma_cm_id *id)
{
    return rdma_resolve_route(id, WAIT_MS);
}

/* No one listens there. */
static int call_connect(struct rdma_cm_id *id)
{
    return rdma_connect(id, NULL);
}

static int call_accept(struct rdma_cm_id *id)
{
    return rdma_accept(id, NULL);
}

static void check_call(struct rdma_cm_id *id, int (*call)(struct rdma_cm_id *))
{
    pthread_t thread;
    void *destroyed;

    is_destroyed = false;
    assert_int_equal(pthread_create(&thread, NULL, destroyer, id->channel), 0);
    is_calling = true;
    assert_int_equal(call(id), 0);
    assert_false(is_calling);
    pthread_join(thread, &destroyed);
    assert_ptr_equal(destroyed, id);
}

static void make_queue_pair(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};

    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static struct rdma_cm_event *event_of(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;

    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, type);
    return event;
}

static void test_active(void **state)
{
    int (*calls[])(struct rdma_cm_id *) = {call_resolve_addr, call_resolve_route, call_connect};
    struct rdma_event_channel *channel = rdma_create_event_channel();

    (void)state;
    for (unsigned last = 0; last < 3; last++) {
        struct rdma_cm_id *id;
        assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
        for (unsigned i = 0; i < last; i++) {
            assert_int_equal(calls[i](id), 0);
            rdma_ack_cm_event(event_of(channel, (enum rdma_cm_event_type)(2 * i)));
        }
        if (last == 2)
            make_queue_pair(id);
        check_call(id, calls[last]);
    }
    rdma_destroy_event_channel(channel);
}

static void *connect_and_wait(void *arg)
{
    struct rdma_cm_id *id = arg;

    return (void *)(intptr_t)rdma_connect(id, NULL);
}

static void test_passive(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_cm_id *listener, *client, *id;
    struct rdma_cm_event *event;
    pthread_t thread;
    void *result;
    (void)state;

    assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&here), 0);
    assert_int_equal(rdma_listen(listener, 1), 0);
    here.sin_port = rdma_get_src_port(listener);
    assert_int_equal(rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(client, NULL, (struct sockaddr *)&here, WAIT_MS), 0);
    assert_int_equal(rdma_resolve_route(client, WAIT_MS), 0);
    make_queue_pair(client);
    pthread_create(&thread, NULL, connect_and_wait, client);
    event = event_of(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    id = event->id;
    rdma_ack_cm_event(event);
    make_queue_pair(id);
    check_call(id, call_accept);
    pthread_join(thread, &result);
    assert_null(result);
    rdma_destroy_qp(client);
    rdma_destroy_id(client);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(channel);
}

static int set_up(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel(); /* dlsym() finds what is loaded */

    (void)state;
    rdma_destroy_event_channel(channel);
    lock_of_ids = dlsym(RTLD_DEFAULT, "verbs_lock");
    mallopt(M_PERTURB, 0x55); /* what is read of freed memory is wrong; AddressSanitizer sees it without that */
    return lock_of_ids ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_active),
        cmocka_unit_test(test_passive),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
