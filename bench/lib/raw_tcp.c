/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_tcp.c - two processes that look at memory, into which a thread of each puts what comes by TCP. */
#include "bench/lib/raw_tcp.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/lib/ends.h"

struct raw_tcp {
    int fd;
    _Atomic uint64_t arrived;
};

/* Sleeps as exactly as the library's own thread. */
static void *put_in_memory(void *arg)
{
    struct raw_tcp *raw = arg;
    uint64_t count;

    prctl(PR_SET_TIMERSLACK, 1000UL);
    while (recv(raw->fd, &count, sizeof(count), MSG_WAITALL) == sizeof(count))
        atomic_store(&raw->arrived, count);
    atomic_store(&raw->arrived, UINT64_MAX); /* the peer is done */
    return NULL;
}

static bool look_for(const struct raw_tcp *raw, uint64_t count)
{
    uint64_t arrived;

    do
        arrived = atomic_load(&raw->arrived);
    while (arrived != count && arrived != UINT64_MAX);
    return arrived == count;
}

static bool raw_send(const struct raw_tcp *raw, uint64_t count)
{
    return send(raw->fd, &count, sizeof(count), MSG_NOSIGNAL) == sizeof(count);
}

static pthread_t raw_begin(struct raw_tcp *raw)
{
    pthread_t thread;
    int on = 1;

    if (raw->fd < 0 || setsockopt(raw->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
        pthread_create(&thread, NULL, put_in_memory, raw))
        ends_fail("a TCP connection of our own", 0);
    return thread;
}

static void raw_answer(const struct sockaddr_in *to)
{
    struct raw_tcp raw = {.fd = socket(AF_INET, SOCK_STREAM, 0)};

    if (connect(raw.fd, (const struct sockaddr *)to, sizeof(*to)))
        ends_fail("connect", 0);
    raw_begin(&raw);
    for (uint64_t count = 1; look_for(&raw, count) && raw_send(&raw, count); count++)
        ;
    _exit(0);
}

size_t raw_tcp_trips(double seconds, double *took_us, size_t most)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = sizeof(own);
    struct raw_tcp raw = {.fd = -1};
    uint64_t end_ns, before;
    pthread_t thread;
    size_t n = 0;
    pid_t child;

    if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&own, &length))
        ends_fail("listen", 0);
    child = fork();
    if (!child)
        raw_answer(&own);
    raw.fd = accept(listener, NULL, NULL);
    thread = raw_begin(&raw);
    for (end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9); ends_now_ns() < end_ns && n < most; n++) {
        before = ends_now_ns();
        if (!raw_send(&raw, n + 1) || !look_for(&raw, n + 1))
            ends_fail("the other process has ended", 0);
        took_us[n] = (double)(ends_now_ns() - before) / 2e3;
    }
    shutdown(raw.fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(raw.fd);
    close(listener);
    waitpid(child, NULL, 0);
    return n;
}
