/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsock_wait.c - threads that wait for rsockets. Each waits for the descriptors of its sockets and for one of its own:
 * an event of a completion channel can be taken once, and the thread that takes it wakes the others. */
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "verbs/rsock/rsock_datagram.h"

void rs_advance(struct rsocket *rs)
{
    enum rs_state before = rs->state;

    if (rs->state == RS_CONNECTING || rs->state == RS_ACCEPTING)
        rs_advance_connection(rs);
    if (rs->state == RS_CONNECTED || rs->state == RS_OVER)
        rs_progress(rs);
    if (rs->state == RS_DATAGRAM)
        rs_datagram_advance(rs);
    if (rs->state != before)
        rs_wake(rs, -1);
}

static bool has_queues(const struct rsocket *rs)
{
    return rs->state == RS_CONNECTED || rs->state == RS_OVER || rs_datagram_is_open(rs);
}

int rs_descriptor(const struct rsocket *rs)
{
    if (rs->datagrams)
        return rs->datagrams->news;
    if (has_queues(rs))
        return rs->queues.comp->fd;
    return rs->state == RS_LISTENING || rs->state == RS_CONNECTING || rs->state == RS_ACCEPTING ? rs->events->fd : -1;
}

void rs_arm(struct rsocket *rs)
{
    if (has_queues(rs))
        ibv_req_notify_cq(rs->queues.cq, 0);
}

void rs_take_event(struct rsocket *rs)
{
    struct ibv_cq *cq;
    void *user;

    if (!has_queues(rs) || ibv_get_cq_event(rs->queues.comp, &cq, &user))
        return;
    ibv_ack_cq_events(cq, 1);
    rs_wake(rs, rs_waiter_fd());
}

/* Looks again for a time before it sleeps: what comes now costs no wake-up. */
static bool rs_spin(struct rsocket *rs, bool (*is_ready)(const struct rsocket *))
{
    const int64_t until = rs->sizes.polling_us ? rs_now_us() + rs->sizes.polling_us : 0;

    while (has_queues(rs) && until && rs_now_us() < until) {
        rs_unlock(rs);
        rs_lock(rs);
        rs_advance(rs);
        if (is_ready(rs))
            return true;
    }
    return false;
}

/* A signal that is pending has a handler without SA_RESTART. `held` is what the program itself holds back. */
static bool has_interruption(const sigset_t *held)
{
    sigset_t pending;
    struct sigaction action;

    sigpending(&pending);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&pending, number) > 0 && !sigismember(held, number) && !sigaction(number, NULL, &action) &&
            action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN && !(action.sa_flags & SA_RESTART))
            return true;
    return false;
}

/* poll(2) ends after every handler, but the calls that wait here go on after one with SA_RESTART. So signals are held
 * back during poll(2), which sees them at a descriptor; then their handlers run, and it is known what they say. Returns
 * 0, also after a signal that does not count; ETIMEDOUT, EINTR, or what else failed. */
static int poll_restarting(struct pollfd fds[3], int timeout_ms)
{
    sigset_t all, held;
    int n, error, signal_fd;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &held);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&held, number) > 0)
            sigdelset(&all, number);
    signal_fd = rs_waiter_signal_fd(&all);
    fds[2] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    n = signal_fd < 0 ? -1 : poll(fds, 3, timeout_ms);
    error = n > 0 ? 0 : n ? errno : ETIMEDOUT;
    if (error == EINTR) /* by a signal of the C library's own, which cannot be held back */
        error = 0;
    if (fds[2].revents && has_interruption(&held))
        error = EINTR;
    pthread_sigmask(SIG_SETMASK, &held, NULL);
    return error;
}

/* Sleeps without the lock. */
static int rs_sleep(struct rsocket *rs, int fd, int timeout_ms)
{
    struct pollfd fds[3] = {{.fd = rs_descriptor(rs), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    int error;

    rs_unlock(rs);
    error = poll_restarting(fds, timeout_ms);
    rs_lock(rs);
    if (fds[1].revents)
        rs_waiter_clear(fd);
    if (fds[0].revents)
        rs_take_event(rs);
    return error;
}

struct wait {
    struct rsocket *rs;
    struct rs_waiter waiter;
    int fd; /* the thread's own */
};

static void rs_wait_cancelled(void *arg)
{
    struct wait *wait = arg;

    rs_lock(wait->rs);
    rs_waiter_remove(&wait->waiter);
    rs_leave(wait->rs, 0);
}

static int rs_wait_until(struct wait *wait, bool (*is_ready)(const struct rsocket *), int timeout_ms)
{
    const int64_t until = timeout_ms < 0 ? 0 : rs_now_us() + timeout_ms * 1000LL;
    struct rsocket *rs = wait->rs;
    int error = 0;

    while (!error) {
        rs_arm(rs);
        rs_advance(rs); /* what came before it was armed */
        if (is_ready(rs))
            break;
        error = rs_sleep(rs, wait->fd, timeout_ms < 0 ? -1 : rs_ms_until(until));
    }
    return error;
}

int rs_wait(struct rsocket *rs, bool (*is_ready)(const struct rsocket *), bool dont_wait, int timeout_ms)
{
    struct wait wait = {.rs = rs};
    int error;

    rs_advance(rs);
    if (is_ready(rs))
        return 0;
    if (dont_wait)
        return EAGAIN;
    if (rs_spin(rs, is_ready))
        return 0;
    wait.fd = rs_waiter_fd();
    if (wait.fd < 0)
        return errno;
    rs_waiter_add(rs, &wait.waiter, wait.fd);
    pthread_cleanup_push(rs_wait_cancelled, &wait);
    error = rs_wait_until(&wait, is_ready, timeout_ms);
    pthread_cleanup_pop(false);
    rs_waiter_remove(&wait.waiter);
    return error;
}
