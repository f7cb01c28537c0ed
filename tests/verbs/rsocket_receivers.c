/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_receivers.c - threads that receive from one rsocket for datagrams: each message comes to one of them, also
 * while others are cancelled, and none waits any longer when one of the program's threads closes it. */
#include <errno.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/verbs/lib/datagram_ends.h"
#include "tests/lib/descriptors.h"

enum { THREADS = 3, MESSAGES = 200, ROUNDS = 60, STEP_US = 100 };

static int server, client;
static union address server_name, client_name;
static atomic_int received;

/* Returns the errno that ends it. */
static void *receive(void *unused)
{
    char octet;

    (void)unused;
    while (rrecv(server, &octet, 1, 0) == 1)
        received++;
    return (void *)(intptr_t)errno;
}

static pthread_t start(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, receive, NULL), 0);
    return thread;
}

static void send_one(void)
{
    assert_int_equal(datagram_send(client, "m", 1, &server_name), 1);
}

static void await(int count)
{
    for (int us = 0; received < count && us < DATAGRAM_WAIT_MS * 1000; us += STEP_US)
        usleep(STEP_US);
    assert_int_equal(received, count);
}

static int setup(void **state)
{
    (void)state;
    client = datagram_bound(AF_INET, &client_name);
    server = datagram_bound(AF_INET, &server_name);
    received = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return rclose(client);
}

static void close_with(pthread_t *threads, int n)
{
    void *error;

    assert_int_equal(rclose(server), 0);
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_join(threads[i], &error), 0);
        assert_int_equal((intptr_t)error, EBADF);
    }
}

static void test_shared(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        threads[i] = start();
    for (int i = 0; i < MESSAGES; i++) {
        send_one();
        await(i + 1);
    }
    for (int i = 0; i < THREADS; i++) /* at once */
        send_one();
    await(MESSAGES + THREADS);
    close_with(threads, THREADS);
}

/* The message comes while one thread is cancelled, before, or after that; another one still waits. */
static void test_cancelled(void **state)
{
    pthread_t other = start();
    const unsigned before = count_descriptors();

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread = start();
        void *how;

        usleep((unsigned)(i % 7) * 30);
        if (i & 1)
            send_one();
        pthread_cancel(thread);
        if (!(i & 1))
            send_one();
        assert_int_equal(pthread_join(thread, &how), 0);
        assert_ptr_equal(how, PTHREAD_CANCELED);
        await(i + 1);
    }
    assert_in_range(count_descriptors(), 0, before + THREADS);
    close_with(&other, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_cancelled, setup, teardown)};

    return cmocka_run_group_tests_name("rsocket_receivers", tests, NULL, NULL);
}
