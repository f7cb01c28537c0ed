/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_tcp.c - two processes that look at memory, into which a thread of each puts what comes by TCP. */
#include "bench/lib/raw_tcp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "bench/lib/ends.h"
#include "bench/lib/raw_pair.h"

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

    if (pthread_create(&thread, NULL, put_in_memory, raw))
        ends_fail("pthread_create", 0);
    return thread;
}

static void raw_answer(int fd, void *of)
{
    struct raw_tcp raw = {.fd = fd};

    (void)of;
    raw_begin(&raw);
    for (uint64_t count = 1; look_for(&raw, count) && raw_send(&raw, count); count++)
        ;
}

size_t raw_tcp_trips(double seconds, double *took_us, size_t most)
{
    struct raw_tcp raw = {.fd = -1};
    uint64_t end_ns, before;
    struct raw_pair pair;
    pthread_t thread;
    size_t n = 0;

    raw_pair_open(&pair, raw_answer, NULL);
    raw.fd = pair.fd;
    thread = raw_begin(&raw);
    for (end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9); ends_now_ns() < end_ns && n < most; n++) {
        before = ends_now_ns();
        if (!raw_send(&raw, n + 1) || !look_for(&raw, n + 1))
            ends_fail("the other process has ended", 0);
        took_us[n] = (double)(ends_now_ns() - before) / 2e3;
    }
    shutdown(raw.fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    raw_pair_close(&pair);
    return n;
}
