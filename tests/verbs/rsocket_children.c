/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_children.c - what a child finds of its parent's rsockets: nothing, whatever the parent's threads do when it
 * is made; and what the parent keeps of them: everything. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/verbs/lib/datagram_ends.h"

enum { CHILDREN = 60, LIMIT_S = 30 /* what a call may take that must not wait */ };

static int used;
static atomic_bool is_over;

static void *use(void *unused)
{
    char octet;

    (void)unused;
    while (!is_over)
        rrecv(used, &octet, 1, MSG_DONTWAIT | MSG_PEEK);
    return NULL;
}

static bool is_refused(ssize_t result)
{
    return result == -1 && errno == EBADF;
}

/* Returns the number of the first call that is not refused; 0: all are. */
static int try_calls(const union address *peer)
{
    struct pollfd fd = {.fd = used, .events = POLLIN | POLLOUT};
    union address name;
    socklen_t length = sizeof(name);
    char octet = 'c';

    if (!is_refused(rrecv(used, &octet, 1, MSG_DONTWAIT)))
        return 1;
    if (!is_refused(rsend(used, &octet, 1, MSG_DONTWAIT)))
        return 2;
    if (!is_refused(rsendto(used, &octet, 1, MSG_DONTWAIT, (const struct sockaddr *)&peer->any, sizeof(peer->v4))))
        return 3;
    if (!is_refused(rgetsockname(used, (struct sockaddr *)&name.any, &length)))
        return 4;
    if (!is_refused(rshutdown(used, SHUT_RDWR)))
        return 5;
    if (rpoll(&fd, 1, -1) != 1 || fd.revents != POLLNVAL)
        return 6;
    return rclose(used) ? 7 : 0;
}

static void make_children(const union address *peer)
{
    pthread_t thread;

    is_over = false;
    assert_int_equal(pthread_create(&thread, NULL, use, NULL), 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        int status;

        if (!child) {
            alarm(LIMIT_S);
            _exit(try_calls(peer));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status)); /* or it hangs */
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    is_over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_datagrams(void **state)
{
    union address a_name, b_name;
    int a = datagram_bound(AF_INET, &a_name);

    (void)state;
    used = datagram_bound(AF_INET, &b_name);
    make_children(&a_name);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(datagram_send(a, "to b", 4, &b_name), 4);
        datagram_expect(used, "to b", 4, &a_name);
        assert_int_equal(datagram_send(used, "to a", 4, &a_name), 4);
        datagram_expect(a, "to a", 4, &b_name);
    }
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(used), 0);
}

static void test_stream(void **state)
{
    union address name = datagram_loopback(AF_INET);
    int listener = rsocket(AF_INET, SOCK_STREAM, 0), client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    char octet;

    (void)state;
    assert_int_equal(rbind(listener, (struct sockaddr *)&name.any, sizeof(name.v4)), 0);
    assert_int_equal(rlisten(listener, 1), 0);
    name = datagram_name(listener);
    assert_int_equal(rconnect(client, (struct sockaddr *)&name.any, sizeof(name.v4)), -1);
    assert_int_equal(errno, EINPROGRESS);
    used = raccept(listener, NULL, NULL);
    assert_true(used >= 0);
    assert_int_equal(datagram_events(client, POLLOUT, DATAGRAM_WAIT_MS), POLLOUT);
    make_children(&name);
    assert_int_equal(rsend(client, "s", 1, 0), 1);
    assert_int_equal(rrecv(used, &octet, 1, 0), 1);
    assert_int_equal(octet, 's');
    assert_int_equal(rclose(client), 0);
    assert_int_equal(rrecv(used, &octet, 1, 0), 0);
    assert_int_equal(rclose(used), 0);
    assert_int_equal(rclose(listener), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_datagrams), cmocka_unit_test(test_stream)};

    return cmocka_run_group_tests_name("rsocket_children", tests, NULL, NULL);
}
