/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll.c - rpoll() and rselect(): rsockets and other descriptors together. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>

#include "verbs/rsock/rsock_datagram.h"

struct polled {
    struct rsocket *rs; /* NULL: another descriptor */
    bool is_parents;    /* an rsocket that this process has inherited: nothing happens to it */
    struct rs_waiter waiter;
};

/* One call of rpoll(). `real` is what poll() waits for: the sockets' own descriptors, and the thread's at the end. */
struct round {
    struct pollfd *fds;
    nfds_t n;
    struct polled *polled;
    struct pollfd *real;
    bool has_others;
    bool is_waiting; /* it is a waiter of each socket */
    int ready;       /* how many are; or a negative errno */
};

static bool is_requested_now(const struct rsocket *rs)
{
    struct pollfd fd = {.fd = rs->events->fd, .events = POLLIN};

    return poll(&fd, 1, 0) > 0;
}

static int happened(struct rsocket *rs)
{
    enum { READ = POLLIN | POLLRDNORM, WRITE = POLLOUT | POLLWRNORM };

    switch (rs->state) {
    case RS_NEW:
        return WRITE | POLLHUP;
    case RS_DATAGRAM:
        return (rs_datagram_is_readable(rs) ? READ : 0) | (rs_datagram_is_writable(rs) ? WRITE : 0) |
               (rs->error ? POLLERR : 0);
    case RS_LISTENING:
        return is_requested_now(rs) ? READ : 0;
    case RS_CONNECTING:
    case RS_ACCEPTING:
        return 0;
    case RS_CONNECTED:
        return (rs_is_readable(rs) ? READ : 0) | (rs_is_writable(rs) ? WRITE : 0) | (rs->peer_is_done ? POLLRDHUP : 0);
    case RS_OVER: /* programs read no further than POLLHUP */
        return READ | WRITE | POLLRDHUP | (rs->in.ready ? 0 : POLLHUP);
    case RS_FAILED:
        break;
    }
    return READ | WRITE | POLLRDHUP | POLLHUP | POLLERR;
}

static short look_at(struct rsocket *rs, short events)
{
    int now;

    rs_lock(rs);
    rs_advance(rs);
    now = happened(rs);
    rs_unlock(rs);
    return (short)(now & (events | POLLHUP | POLLERR));
}

/* What is ready now? Returns the number, or a negative errno. */
static int round_look(struct round *round)
{
    int ready = 0;

    if (round->has_others && poll(round->real, round->n, 0) < 0)
        return -errno;
    for (nfds_t i = 0; i < round->n; i++) {
        struct polled *polled = &round->polled[i];
        if (polled->rs)
            round->fds[i].revents = look_at(polled->rs, round->fds[i].events);
        else
            round->fds[i].revents = polled->is_parents ? POLLNVAL : round->real[i].revents;
        ready += round->fds[i].revents != 0;
    }
    return ready;
}

static void round_wait(struct round *round, int own_fd)
{
    for (nfds_t i = 0; i < round->n; i++) {
        struct polled *polled = &round->polled[i];
        if (!polled->rs)
            continue;
        rs_lock(polled->rs);
        rs_waiter_add(polled->rs, &polled->waiter, own_fd);
        rs_unlock(polled->rs);
    }
    round->is_waiting = true;
}

static void round_end(void *arg)
{
    const struct round *round = arg;

    for (nfds_t i = 0; i < round->n && round->polled; i++) {
        struct polled *polled = &round->polled[i];
        if (!polled->rs)
            continue;
        if (round->is_waiting) {
            rs_lock(polled->rs);
            rs_waiter_remove(&polled->waiter);
            rs_unlock(polled->rs);
        }
        rs_put(polled->rs);
    }
    free(round->polled);
    free(round->real);
}

/* What comes after the look that follows wakes us. */
static void round_arm(struct round *round)
{
    for (nfds_t i = 0; i < round->n; i++) {
        struct rsocket *rs = round->polled[i].rs;
        if (!rs)
            continue;
        rs_lock(rs);
        rs_arm(rs);
        round->real[i] = (struct pollfd){.fd = rs_descriptor(rs), .events = POLLIN};
        rs_unlock(rs);
    }
}

static void round_take(struct round *round)
{
    for (nfds_t i = 0; i < round->n; i++) {
        struct rsocket *rs = round->polled[i].rs;
        if (!rs || !round->real[i].revents)
            continue;
        rs_lock(rs);
        rs_take_event(rs);
        rs_unlock(rs);
    }
    if (round->real[round->n].revents)
        rs_waiter_clear(round->real[round->n].fd);
}

/* Returns 0 if something may be ready, ETIMEDOUT, or an errno. */
static int round_sleep(struct round *round, int timeout_ms)
{
    int n = poll(round->real, round->n + 1, timeout_ms);

    if (n < 0)
        return errno;
    round_take(round);
    return n ? 0 : ETIMEDOUT;
}

static int round_run(struct round *round, int timeout)
{
    const int64_t until = timeout < 0 ? 0 : rs_now_us() + timeout * 1000LL;
    int ready = round_look(round), own_fd, error = 0;

    if (ready || !timeout)
        return ready;
    own_fd = rs_waiter_fd();
    if (own_fd < 0)
        return -errno;
    round->real[round->n] = (struct pollfd){.fd = own_fd, .events = POLLIN};
    round_wait(round, own_fd);
    while (!error) {
        round_arm(round);
        ready = round_look(round);
        if (ready)
            break;
        error = round_sleep(round, timeout < 0 ? -1 : rs_ms_until(until));
    }
    return ready || error == ETIMEDOUT ? ready : -error;
}

static bool round_begin(struct round *round)
{
    round->polled = calloc(round->n ? round->n : 1, sizeof(*round->polled));
    round->real = calloc(round->n + 1, sizeof(*round->real));
    if (!round->polled || !round->real)
        return false;
    for (nfds_t i = 0; i < round->n; i++) {
        round->polled[i].rs = rs_get(round->fds[i].fd);
        round->real[i] = round->fds[i];
        round->polled[i].is_parents = !round->polled[i].rs && rs_is_parents(round->fds[i].fd);
        if (round->polled[i].rs || round->polled[i].is_parents)
            round->real[i].fd = -1;
        else
            round->has_others = true;
    }
    return true;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    struct round round = {.fds = fds, .n = nfds, .ready = -ENOMEM};

    pthread_cleanup_push(round_end, &round); /* also of a thread that is cancelled */
    if (round_begin(&round))
        round.ready = round_run(&round, timeout);
    pthread_cleanup_pop(true);
    return round.ready < 0 ? rs_fail(-round.ready) : round.ready;
}

static bool is_in_set(int fd, const fd_set *set)
{
    return set && FD_ISSET(fd, set);
}

static nfds_t fds_of_sets(int n, const fd_set *readfds, const fd_set *writefds, const fd_set *exceptfds,
                          struct pollfd *fds)
{
    nfds_t used = 0;

    for (int fd = 0; fd < n; fd++) {
        short events = (short)((is_in_set(fd, readfds) ? POLLIN : 0) | (is_in_set(fd, writefds) ? POLLOUT : 0) |
                               (is_in_set(fd, exceptfds) ? POLLPRI : 0));
        if (events)
            fds[used++] = (struct pollfd){.fd = fd, .events = events};
    }
    return used;
}

static int keep_in_set(fd_set *set, const struct pollfd *fd, int asked, int happened_now)
{
    if (!set || !(fd->events & asked))
        return 0;
    if (fd->revents & happened_now)
        return 1;
    FD_CLR(fd->fd, set);
    return 0;
}

/* In milliseconds, rounded up, at most what poll(2) can wait; -1 for NULL, -EINVAL for what is no time. */
static int64_t select_ms(const struct timeval *timeout)
{
    if (!timeout)
        return -1;
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
        return -EINVAL;
    if (timeout->tv_sec >= INT_MAX / 1000 || timeout->tv_usec >= INT_MAX)
        return INT_MAX; /* 24 days */
    return timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
    struct pollfd fds[FD_SETSIZE];
    const int64_t timeout_ms = select_ms(timeout);
    int ready = 0;
    nfds_t n;

    if (nfds < 0 || nfds > FD_SETSIZE || timeout_ms < -1)
        return rs_fail(EINVAL);
    n = fds_of_sets(nfds, readfds, writefds, exceptfds, fds);
    if (rpoll(fds, n, (int)timeout_ms) < 0)
        return -1;
    for (nfds_t i = 0; i < n; i++) {
        if (fds[i].revents & POLLNVAL)
            return rs_fail(EBADF);
        ready += keep_in_set(readfds, &fds[i], POLLIN, POLLIN | POLLHUP | POLLERR);
        ready += keep_in_set(writefds, &fds[i], POLLOUT, POLLOUT | POLLERR);
        ready += keep_in_set(exceptfds, &fds[i], POLLPRI, POLLPRI);
    }
    return ready;
}
