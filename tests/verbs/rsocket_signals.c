/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_signals.c - signals come while a thread waits in a call of rsockets: as with the sockets of the kernel it
 * goes on after a handler that was installed with SA_RESTART, and fails with EINTR after another. rpoll() fails after
 * both, as poll(2). A thread may be cancelled there, too, and a time-out is as long as it says. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/descriptors.h"

enum { SIGNALS = 50, LARGE = 1 << 20 };

static struct sockaddr_in address;
static int listener, client, server;
static atomic_int handled;
static atomic_bool has_returned;
static char *data;

static void on_signal(int number)
{
    (void)number;
    handled++;
}

static void on_other(int number)
{
    (void)number;
}

/* SIGUSR2 never comes; its handler says the opposite. */
static void install(int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    struct sigaction other = {.sa_handler = on_other, .sa_flags = flags ^ SA_RESTART};

    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &other, NULL);
    handled = 0;
    has_returned = false;
}

/* --- the calls, and what lets each of them go on ----------------------------------------------------------------- */

static int wait_to_receive(void)
{
    char octet;

    return rrecv(client, &octet, 1, 0) == 1 ? 0 : errno;
}

static void let_receive(void)
{
    assert_int_equal(rsend(server, "x", 1, 0), 1);
}

/* The peer takes nothing: there is no room for the second half. */
static int wait_to_send(void)
{
    ssize_t n;

    do
        n = rsend(client, data, LARGE, 0);
    while (n > 0 && !has_returned);
    return n > 0 ? 0 : errno;
}

/* Room comes, again and again, until the call that waited has returned. */
static void let_send(void)
{
    has_returned = true;
    for (int octets = 0; octets < LARGE;) {
        ssize_t n = rrecv(server, data, LARGE, 0);
        assert_true(n > 0);
        octets += (int)n;
    }
}

static int wait_to_accept(void)
{
    int fd = raccept(listener, NULL, NULL);

    return fd >= 0 ? rclose(fd) : errno;
}

static void let_accept(void)
{
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(rconnect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(rclose(fd), 0);
}

static int wait_to_connect(void)
{
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    int error = rconnect(fd, (struct sockaddr *)&address, sizeof(address)) ? errno : 0;

    rclose(fd);
    return error;
}

static void let_connect(void)
{
    int fd = raccept(listener, NULL, NULL);

    assert_true(fd >= 0);
    assert_int_equal(rclose(fd), 0);
}

static int wait_to_poll(void)
{
    struct pollfd fd = {.fd = client, .events = POLLIN};

    return rpoll(&fd, 1, -1) < 0 ? errno : 0;
}

static const struct call {
    const char *name;
    int (*wait)(void);
    void (*let)(void);
} calls[] = {
    {"rrecv", wait_to_receive, let_receive},
    {"raccept", wait_to_accept, let_accept},
    {"rconnect", wait_to_connect, let_connect},
    {"rsend", wait_to_send, let_send}, /* the last: what it sent stays */
    {"rpoll", wait_to_poll, NULL},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* --- the tests --------------------------------------------------------------------------------------------------- */

static void *waiter(void *arg)
{
    int error = ((const struct call *)arg)->wait();

    has_returned = true;
    return (void *)(intptr_t)error;
}

static pthread_t start(const struct call *call)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, waiter, (void *)call), 0);
    return thread;
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

static void connect_them(void)
{
    socklen_t length = sizeof(address);

    listener = rsocket(AF_INET, SOCK_STREAM, 0);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(rbind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(rlisten(listener, 8), 0);
    assert_int_equal(rgetsockname(listener, (struct sockaddr *)&address, &length), 0);
    client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(rconnect(client, (struct sockaddr *)&address, sizeof(address)), -1);
    server = raccept(listener, NULL, NULL);
    assert_true(server >= 0);
    assert_int_equal(rpoll(&(struct pollfd){.fd = client, .events = POLLOUT}, 1, -1), 1);
    assert_int_equal(rfcntl(client, F_SETFL, 0), 0);
}

static void close_them(void)
{
    const struct linger none = {.l_onoff = 1};

    assert_int_equal(rsetsockopt(client, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
    assert_int_equal(rsetsockopt(server, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
    assert_int_equal(rclose(client), 0);
    assert_int_equal(rclose(server), 0);
    assert_int_equal(rclose(listener), 0);
}

static void test_interrupted(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        pthread_t thread;
        connect_them();
        install(0);
        thread = start(&calls[i]);
        interrupt(thread, INT_MAX);
        if (result(thread) != EINTR)
            fail_msg("%s does not fail with EINTR", calls[i].name);
        close_them();
    }
}

static void test_restarted(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        pthread_t thread;
        int error;
        connect_them();
        install(SA_RESTART);
        thread = start(&calls[i]);
        interrupt(thread, calls[i].let ? SIGNALS : INT_MAX);
        if (calls[i].let) {
            if (has_returned)
                fail_msg("%s returns after a handler with SA_RESTART", calls[i].name);
            calls[i].let();
        }
        error = result(thread);
        if (error != (calls[i].let ? 0 : EINTR))
            fail_msg("%s ends with %d", calls[i].name, error);
        close_them();
    }
}

/* What is held back by the program stays so, and what it ignores does not count. */
static void test_held(void **state)
{
    sigset_t held, now;
    pthread_t thread;

    (void)state;
    connect_them();
    install(0);
    sigemptyset(&held);
    sigaddset(&held, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &held, NULL);
    thread = start(&calls[0]);
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(thread, SIGUSR1);
        pthread_kill(thread, SIGCHLD);
        usleep(1000);
    }
    assert_int_equal(handled, 0);
    assert_false(has_returned);
    calls[0].let();
    assert_int_equal(result(thread), 0);
    pthread_sigmask(SIG_UNBLOCK, &held, &now);
    assert_true(sigismember(&now, SIGUSR1));
    assert_false(sigismember(&now, SIGUSR2));
    close_them();
}

/* A thread that is cancelled leaves no lock and no use behind: its sockets work, and what they had is closed. */
static void test_cancelled(void **state)
{
    enum { ROUNDS = 40 };
    const struct call *cancelled[] = {&calls[0], &calls[1], &calls[3], &calls[4]};
    const unsigned before = count_descriptors();

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        void *how;
        pthread_t thread;
        char octet;
        connect_them();
        has_returned = false;
        thread = start(cancelled[i % 4]);
        usleep((unsigned)i / 4 % 3 * 2000); /* before the call, or in it */
        pthread_cancel(thread);
        pthread_join(thread, &how);
        assert_ptr_equal(how, PTHREAD_CANCELED);
        let_receive();
        assert_int_equal(rrecv(client, &octet, 1, 0), 1);
        close_them();
    }
    assert_in_range(count_descriptors(), 0, before + ROUNDS / 2); /* a few stay for what comes next */
}

static void *send_later(void *arg)
{
    (void)arg;
    usleep(20000);
    let_receive();
    return NULL;
}

/* More milliseconds than an int has; what they leave of 32 bits is none. */
static void test_long_select(void **state)
{
    struct timeval long_time = {.tv_sec = 4294967, .tv_usec = 296000}, negative = {.tv_sec = -1};
    pthread_t thread;
    fd_set readable;

    (void)state;
    connect_them();
    FD_ZERO(&readable);
    FD_SET(client, &readable);
    assert_int_equal(rselect(client + 1, &readable, NULL, NULL, &negative), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(pthread_create(&thread, NULL, send_later, NULL), 0);
    assert_int_equal(rselect(client + 1, &readable, NULL, NULL, &long_time), 1);
    pthread_join(thread, NULL);
    assert_int_equal(wait_to_receive(), 0);
    close_them();
}

static int set_up(void **state)
{
    (void)state;
    data = calloc(1, LARGE);
    return !data;
}

static int tear_down(void **state)
{
    (void)state;
    free(data);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupted), cmocka_unit_test(test_restarted),   cmocka_unit_test(test_held),
        cmocka_unit_test(test_cancelled),   cmocka_unit_test(test_long_select),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
