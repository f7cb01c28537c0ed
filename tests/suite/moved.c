/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* moved.c - while one thread waits for the lock of a queue pair's loop, the queue pair is connected again, on another
 * loop: the loop lock that the thread gives back is the one that it took. And threads ask for its state while its
 * connections come and go. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum { LOOPS = 2, THREADS = 3, CYCLES = 200 };

static struct rddp_context *context;
static struct rddp_event_channel *events;
static struct rddp_pd *pd;
static struct rddp_cq *cq;
static struct rddp_qp *qp;
static struct sockaddr_in addr; /* a socket that accepts nothing: who connects to it keeps waiting */
static int deaf;

static int set_up(void **state)
{
    struct rddp_context_attr attr;
    struct rddp_qp_attr qp_attr;
    socklen_t length = sizeof(addr);

    (void)state;
    rddp_context_attr_init(&attr);
    attr.loops = LOOPS;
    context = rddp_open(&attr);
    assert_non_null(context);
    pd = rddp_alloc_pd(context);
    events = rddp_create_event_channel(context);
    rddp_qp_attr_init(&qp_attr);
    qp_attr.send_cq = qp_attr.recv_cq = cq = rddp_create_cq(context, 16, NULL, NULL);
    assert_non_null(qp = rddp_create_qp(pd, &qp_attr));
    addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(deaf, (struct sockaddr *)&addr, length), 0);
    assert_int_equal(listen(deaf, 1 + CYCLES), 0);
    return getsockname(deaf, (struct sockaddr *)&addr, &length);
}

static int tear_down(void **state)
{
    (void)state;
    rddp_destroy_qp(qp);
    rddp_destroy_cq(cq);
    rddp_destroy_event_channel(events);
    rddp_dealloc_pd(pd);
    close(deaf);
    return rddp_close(context);
}

static void connect_on(uint32_t loop)
{
    context->next_loop = loop;
    assert_int_equal(rddp_connect(qp, events, (struct sockaddr *)&addr, sizeof(addr), NULL), 0);
    assert_ptr_equal(qp->loop, &context->loop[loop]);
}

static void *query(void *info)
{
    return rddp_query_qp(qp, info) ? NULL : info;
}

/* Can the loop lock be had? */
static bool is_free(struct loop *loop)
{
    for (int i = 0; i < PAIR_WAIT_MS; i++) {
        if (loop_trylock(loop)) {
            loop_unlock(loop);
            return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static void to_another_loop(void **state)
{
    struct loop *first = &context->loop[0];
    struct rddp_qp_info info;
    pthread_t thread;
    void *result;

    (void)state;
    connect_on(0);
    assert_int_equal(rddp_reset_qp(qp), 0);
    loop_lock(first);
    assert_int_equal(pthread_create(&thread, NULL, query, &info), 0);
    while (!first->wanted) /* it waits */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    connect_on(1);
    loop_unlock(first);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &info);
    assert_int_equal(info.state, RDDP_QP_CONNECTING);
    for (int i = 0; i < LOOPS; i++)
        assert_true(is_free(&context->loop[i]));
}

/* --- asked all the time ---------------------------------------------------------------------------------------- */

/* Whoever asks holds `use`, since no thread may use a queue pair that is reset. */
static pthread_rwlock_t use = PTHREAD_RWLOCK_INITIALIZER;
static _Atomic bool over;

static void *ask(void *arg)
{
    struct rddp_qp_info info;
    unsigned wrong = 0;

    (void)arg;
    while (!over) {
        pthread_rwlock_rdlock(&use);
        for (unsigned i = 0; i < 20; i++) {
            wrong += rddp_query_qp(qp, &info) || info.state == RDDP_QP_CONNECTED;
            wrong += rddp_disconnect(qp) != -ENOTCONN; /* it was never established */
        }
        pthread_rwlock_unlock(&use);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return (void *)(uintptr_t)wrong;
}

/* ThreadSanitizer shows whether what remains of a connection is read while it is written. */
static void asked(void **state)
{
    pthread_t thread[THREADS];
    struct rddp_event *event;
    void *wrong;

    (void)state;
    over = false;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ask, NULL), 0);
    for (uint32_t i = 0; i < CYCLES; i++) {
        connect_on(i % LOOPS);
        assert_int_equal(rddp_fail_qp(qp), 0);
        assert_int_equal(rddp_get_event(events, &event), 0);
        assert_int_equal(event->type, RDDP_EVENT_CONNECT_ERROR);
        rddp_ack_event(event);
        pthread_rwlock_wrlock(&use);
        assert_int_equal(rddp_reset_qp(qp), 0);
        pthread_rwlock_unlock(&use);
    }
    over = true;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(to_another_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asked, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
