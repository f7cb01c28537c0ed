/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_stream.c - what programs rely on that use rsockets: data, in both directions and in any amount, waiting, the
 * ends of connections, mapped buffers. It is such a program itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 20000 };

struct pair {
    int listener, client, server;
};

static int listen_here(struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(rbind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(rlisten(fd, 8), 0);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static int poll_one(int fd, short events, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = events};
    int n = rpoll(&one, 1, timeout_ms);

    return n <= 0 ? n : one.revents;
}

static int error_of(int fd)
{
    int error = -1;
    socklen_t length = sizeof(error);

    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length), 0);
    return error;
}

/* One thread is enough: the client does not wait. `set` changes a socket before it is connected. */
static void connect_pair(struct pair *pair, void (*set)(int fd))
{
    struct sockaddr_in address;

    pair->listener = listen_here(&address);
    pair->client = rsocket(AF_INET, SOCK_STREAM, 0);
    if (set) {
        set(pair->listener);
        set(pair->client);
    }
    assert_int_equal(rfcntl(pair->client, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(rconnect(pair->client, (struct sockaddr *)&address, sizeof(address)), -1);
    assert_int_equal(errno, EINPROGRESS);
    assert_int_equal(poll_one(pair->listener, POLLIN, WAIT_MS), POLLIN);
    pair->server = raccept(pair->listener, NULL, NULL);
    assert_true(pair->server >= 0);
    assert_int_equal(poll_one(pair->client, POLLOUT, WAIT_MS), POLLOUT);
    assert_int_equal(error_of(pair->client), 0);
    assert_int_equal(rfcntl(pair->client, F_SETFL, 0), 0);
}

static void close_pair(struct pair *pair)
{
    assert_int_equal(rclose(pair->client), 0);
    assert_int_equal(rclose(pair->server), 0);
    assert_int_equal(rclose(pair->listener), 0);
}

static void test_exchange(void **state)
{
    char all[64] = {0}, part[8];
    struct iovec out[] = {{"scat", 4}, {"", 0}, {"tered", 6}}, in[] = {{all, 3}, {part, 0}, {all + 3, 7}};
    struct pair pair;
    (void)state;

    connect_pair(&pair, NULL);
    assert_int_equal(rsend(pair.client, "hello", 6, 0), 6);
    assert_int_equal(rrecv(pair.server, all, sizeof(all), MSG_PEEK), 6);
    assert_int_equal(rrecv(pair.server, part, 3, 0), 3);
    assert_memory_equal(part, "hel", 3);
    assert_int_equal(rread(pair.server, part, sizeof(part)), 3);
    assert_string_equal(part, "lo");
    assert_int_equal(rwritev(pair.server, out, 3), 10);
    memset(all, 0, sizeof(all));
    for (int done = 0; done < 10;) { /* it comes in as many parts as it went in */
        ssize_t n = rreadv(pair.client, in, 3);
        assert_true(n > 0);
        done += (int)n;
        in[0].iov_len = 0;
        in[2] = (struct iovec){all + done, sizeof(all) - (size_t)done};
    }
    assert_string_equal(all, "scattered");
    assert_int_equal(rwrite(pair.client, "1", 1), 1);
    assert_int_equal(rwrite(pair.client, "2", 2), 2);
    assert_int_equal(rrecv(pair.server, all, 3, MSG_WAITALL), 3);
    assert_string_equal(all, "12");
    close_pair(&pair);
}

/* No half of a buffer looks like the next one. */
static uint8_t octet_at(size_t at, unsigned seed)
{
    return (uint8_t)(at * 167 + (at >> 8) * 13 + (at >> 16) * 29 + seed);
}

enum { LARGE = 24 << 20 };

struct sender {
    int fd;
    unsigned seed;
    size_t step;
    bool failed;
};

static void *send_large(void *arg)
{
    struct sender *sender = arg;
    uint8_t *data = malloc(sender->step);

    for (size_t at = 0; at < LARGE && !sender->failed; at += sender->step) {
        size_t n = LARGE - at < sender->step ? LARGE - at : sender->step;
        for (size_t i = 0; i < n; i++)
            data[i] = octet_at(at + i, sender->seed);
        sender->failed = rsend(sender->fd, data, n, 0) != (ssize_t)n;
    }
    free(data);
    return NULL;
}

static void *receive_large(void *arg)
{
    struct sender *from = arg;
    static _Thread_local uint8_t data[100003];

    for (size_t at = 0; at < LARGE && !from->failed;) {
        ssize_t n = rrecv(from->fd, data, sizeof(data), 0);
        from->failed = n <= 0;
        for (ssize_t i = 0; i < n; i++)
            from->failed |= data[i] != octet_at(at + (size_t)i, from->seed);
        at += n > 0 ? (size_t)n : 0;
    }
    return NULL;
}

/* What leaves wraps elsewhere than the buffer in which it arrives. */
static void set_uneven(int fd)
{
    int size = 50000;

    assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
}

/* A thread for each direction of each end: two use a socket at the same time. */
static void test_large(void **state)
{
    struct pair pair;
    struct sender work[4];
    pthread_t thread[4];
    (void)state;

    connect_pair(&pair, set_uneven);
    work[0] = (struct sender){pair.client, 1, 1 << 20, false};
    work[1] = (struct sender){pair.server, 2, 3001, false};
    work[2] = (struct sender){pair.client, 2, 0, false};
    work[3] = (struct sender){pair.server, 1, 0, false};
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, i < 2 ? send_large : receive_large, &work[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_false(work[i].failed);
    }
    close_pair(&pair);
}

static void set_small(int fd)
{
    int size = 4096, queue = 16;

    assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &queue, sizeof(queue)), 0);
    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &queue, sizeof(queue)), 0);
}

/* Writes until the socket takes no more; the peer does not read. Returns the octets. */
static size_t fill(int fd, size_t step)
{
    uint8_t data[1024];
    size_t done = 0;
    ssize_t n;

    for (;;) {
        if (poll_one(fd, POLLOUT, 300) != POLLOUT)
            return done;
        for (size_t i = 0; i < step; i++)
            data[i] = octet_at(done + i, 0);
        n = rsend(fd, data, step, MSG_DONTWAIT);
        assert_true(n > 0);
        done += (size_t)n;
    }
}

static void drain(int fd, size_t expected)
{
    uint8_t data[1000];

    for (size_t done = 0; done < expected;) {
        ssize_t n;
        assert_int_equal(poll_one(fd, POLLIN, WAIT_MS), POLLIN);
        n = rrecv(fd, data, sizeof(data), MSG_DONTWAIT);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(data[i], octet_at(done + (size_t)i, 0));
        done += (size_t)n;
    }
}

/* Octets run out first, then credits: both come back. */
static void test_full(void **state)
{
    uint8_t octet = 0;
    struct pair pair;
    (void)state;

    connect_pair(&pair, set_small);
    for (int round = 0; round < 3; round++) {
        for (size_t step = 1; step <= 1024; step += 1023) {
            size_t n = fill(pair.client, step);
            assert_true(n > 0 && n <= 2 * 8192);
            assert_int_equal(rsend(pair.client, &octet, 1, MSG_DONTWAIT), -1);
            assert_int_equal(errno, EAGAIN);
            drain(pair.server, n);
        }
        assert_int_equal(rrecv(pair.server, &octet, 1, MSG_DONTWAIT), -1);
        assert_int_equal(errno, EAGAIN);
    }
    close_pair(&pair);
}

static void test_poll_and_select(void **state)
{
    struct timeval none = {0}, long_time = {.tv_sec = WAIT_MS / 1000};
    struct pollfd fds[3];
    int pipes[2];
    struct pair pair;
    fd_set readable;
    char octet;
    (void)state;

    connect_pair(&pair, NULL);
    assert_int_equal(pipe(pipes), 0);
    fds[0] = (struct pollfd){.fd = pipes[0], .events = POLLIN};
    fds[1] = (struct pollfd){.fd = pair.server, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = -1, .events = POLLIN};
    assert_int_equal(rpoll(fds, 3, 20), 0);
    assert_int_equal(write(pipes[1], "x", 1), 1);
    assert_int_equal(rpoll(fds, 3, WAIT_MS), 1);
    assert_int_equal(fds[0].revents, POLLIN);
    assert_int_equal(fds[1].revents, 0);
    assert_int_equal(read(pipes[0], &octet, 1), 1);
    assert_int_equal(rsend(pair.client, "y", 1, 0), 1);
    assert_int_equal(rpoll(fds, 3, WAIT_MS), 1);
    assert_int_equal(fds[1].revents, POLLIN);
    FD_ZERO(&readable);
    FD_SET(pair.server, &readable);
    FD_SET(pipes[0], &readable);
    assert_int_equal(rselect(FD_SETSIZE, &readable, NULL, NULL, &long_time), 1);
    assert_true(FD_ISSET(pair.server, &readable) && !FD_ISSET(pipes[0], &readable));
    assert_int_equal(rrecv(pair.server, &octet, 1, 0), 1);
    assert_int_equal(rselect(FD_SETSIZE, &readable, NULL, NULL, &none), 0);
    assert_false(FD_ISSET(pair.server, &readable));
    close(pipes[0]);
    close(pipes[1]);
    close_pair(&pair);
}

static void *poll_readable(void *arg)
{
    return (void *)(intptr_t)poll_one(*(int *)arg, POLLIN, WAIT_MS);
}

static void *peek_octet(void *arg)
{
    char octet = 0;

    return (void *)(intptr_t)(rrecv(*(int *)arg, &octet, 1, MSG_PEEK) == 1 ? octet : -1);
}

/* The event of a completion channel can be taken by one thread alone. */
static void test_two_threads_wait(void **state)
{
    pthread_t polling, peeking;
    void *polled, *peeked;
    struct pair pair;
    char octet;
    (void)state;

    connect_pair(&pair, NULL);
    for (int i = 0; i < 50; i++) {
        pthread_create(&polling, NULL, poll_readable, &pair.server);
        pthread_create(&peeking, NULL, peek_octet, &pair.server);
        if (i % 2)
            usleep(1000); /* now and then both sleep */
        assert_int_equal(rsend(pair.client, "z", 1, 0), 1);
        pthread_join(polling, &polled);
        pthread_join(peeking, &peeked);
        assert_int_equal((intptr_t)polled, POLLIN);
        assert_int_equal((intptr_t)peeked, 'z');
        assert_int_equal(rrecv(pair.server, &octet, 1, 0), 1);
    }
    close_pair(&pair);
}

static void test_shutdown(void **state)
{
    struct pair pair;
    char data[8];
    (void)state;

    connect_pair(&pair, NULL);
    assert_int_equal(rsend(pair.client, "last", 4, 0), 4);
    assert_int_equal(rshutdown(pair.client, SHUT_WR), 0);
    assert_int_equal(rsend(pair.client, "more", 4, 0), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(rrecv(pair.server, data, sizeof(data), MSG_WAITALL), 4);
    assert_int_equal(rrecv(pair.server, data, sizeof(data), 0), 0);
    assert_int_equal(rsend(pair.server, "answer", 6, 0), 6); /* the other half is open */
    assert_int_equal(rrecv(pair.client, data, 6, MSG_WAITALL), 6);
    assert_memory_equal(data, "answer", 6);
    assert_int_equal(rshutdown(pair.server, SHUT_WR), 0);
    assert_int_equal(rrecv(pair.client, data, sizeof(data), 0), 0);
    close_pair(&pair);

    connect_pair(&pair, NULL);
    assert_int_equal(rsend(pair.client, "kept", 4, 0), 4);
    assert_int_equal(rclose(pair.client), 0);
    assert_int_equal(poll_one(pair.server, POLLRDHUP, WAIT_MS), POLLRDHUP); /* no POLLHUP: there are data */
    assert_int_equal(rrecv(pair.server, data, sizeof(data), MSG_WAITALL), 4);
    assert_int_equal(poll_one(pair.server, POLLIN, WAIT_MS), POLLIN | POLLHUP);
    assert_int_equal(rrecv(pair.server, data, sizeof(data), 0), 0);
    assert_int_equal(rsend(pair.server, "x", 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_int_equal(rclose(pair.server), 0);
    assert_int_equal(rclose(pair.listener), 0);
}

/* What no one will read is taken all the same, so that the peer is not held up. */
static void test_unread(void **state)
{
    static uint8_t data[1024];
    struct pair pair;
    char answer;
    (void)state;

    connect_pair(&pair, set_small);
    assert_int_equal(rshutdown(pair.server, SHUT_RD), 0);
    for (int sent = 0, tries = 0; sent < 64; tries++) {
        if (rsend(pair.client, data, sizeof(data), MSG_DONTWAIT) > 0) {
            sent++;
            continue;
        }
        assert_int_equal(errno, EAGAIN);
        assert_true(tries < WAIT_MS);
        assert_int_equal(rsend(pair.server, "x", 1, 0), 1); /* it looks at what came */
        assert_int_equal(rrecv(pair.client, &answer, 1, 0), 1);
    }
    assert_int_equal(rrecv(pair.server, data, sizeof(data), 0), 0);
    close_pair(&pair);
}

static void test_refused(void **state)
{
    struct sockaddr_in address;
    int listener = listen_here(&address), fd = rsocket(AF_INET, SOCK_STREAM, 0);
    (void)state;

    rclose(listener);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&address, sizeof(address)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    rclose(fd);
    fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&address, sizeof(address)), -1);
    assert_int_equal(poll_one(fd, POLLOUT, WAIT_MS) & (POLLOUT | POLLERR), POLLOUT | POLLERR);
    assert_int_equal(error_of(fd), ECONNREFUSED);
    rclose(fd);
}

/* A process that connects to `address`, sends an octet, and then does what `how` says. */
static pid_t start_child(const struct sockaddr_in *address, void (*how)(void))
{
    pid_t child = fork();

    if (!child) {
        int fd = rsocket(AF_INET, SOCK_STREAM, 0);
        if (rconnect(fd, (const struct sockaddr *)address, sizeof(*address)) || rsend(fd, "c", 1, 0) != 1)
            _exit(1);
        how();
    }
    return child;
}

static void wait_for_signal(void)
{
    pause();
}

static void end_at_once(void)
{
    exit(0);
}

/* A program that ends closes its sockets; one that is killed breaks them, for a reader that waits too. */
static void test_peer_ends(void **state)
{
    struct sockaddr_in address;
    int listener = listen_here(&address);
    (void)state;

    for (int is_killed = 0; is_killed < 2; is_killed++) {
        pid_t child = start_child(&address, is_killed ? wait_for_signal : end_at_once);
        int fd = raccept(listener, NULL, NULL);
        char octet;
        assert_int_equal(rrecv(fd, &octet, 1, 0), 1);
        if (is_killed)
            kill(child, SIGKILL);
        assert_int_equal(rrecv(fd, &octet, 1, 0), is_killed ? -1 : 0);
        if (is_killed)
            assert_int_equal(errno, ECONNRESET);
        assert_int_equal(poll_one(fd, POLLIN, 0) & POLLHUP, POLLHUP);
        assert_int_equal(waitpid(child, NULL, 0), child);
        rclose(fd);
    }
    rclose(listener);
}

static void test_many(void **state)
{
    enum { MANY = 50 };
    struct pair pairs[MANY];
    struct pollfd fds[MANY];
    int found;
    (void)state;

    for (int i = 0; i < MANY; i++) {
        connect_pair(&pairs[i], set_small);
        fds[i] = (struct pollfd){.fd = pairs[i].server, .events = POLLIN};
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(rsend(pairs[i].client, &i, sizeof(i), 0), sizeof(i));
        assert_int_equal(rpoll(fds, MANY, WAIT_MS), 1);
        assert_int_equal(fds[i].revents, POLLIN);
        assert_int_equal(rrecv(pairs[i].server, &found, sizeof(found), 0), sizeof(found));
        assert_int_equal(found, i);
    }
    for (int i = 0; i < MANY; i++)
        close_pair(&pairs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange),  cmocka_unit_test(test_large),
        cmocka_unit_test(test_full),      cmocka_unit_test(test_poll_and_select),
        cmocka_unit_test(test_shutdown),  cmocka_unit_test(test_two_threads_wait),
        cmocka_unit_test(test_unread),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_peer_ends), cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
