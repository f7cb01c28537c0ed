/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* select.c - poll() and select() of descriptors some of which are rsockets. */
#include <errno.h>
#include <limits.h>
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "verbs/preload/program_fds.h"

static bool has_held(const struct pollfd *fds, nfds_t n)
{
    for (nfds_t i = 0; i < n; i++)
        if (held(fds[i].fd) >= 0)
            return true;
    return false;
}

INTERPOSE(int, poll, struct pollfd *fds, nfds_t n, int timeout)
{
    struct pollfd *known;
    int ready;

    if (!has_held(fds, n))
        return real()->poll(fds, n, timeout);
    known = malloc(n * sizeof(*known));
    if (!known) {
        errno = ENOMEM;
        return -1;
    }
    for (nfds_t i = 0; i < n; i++) {
        const int rs = held(fds[i].fd);
        known[i] = fds[i];
        if (rs >= 0)
            known[i].fd = rs;
    }
    ready = rpoll(known, n, timeout);
    for (nfds_t i = 0; i < n; i++)
        fds[i].revents = known[i].revents;
    free(known);
    return ready;
}

/* The descriptors of a call of select(), as rpoll() knows them, and by the program's numbers. */
struct selected {
    nfds_t n;
    struct pollfd fds[FD_SETSIZE];
    int own[FD_SETSIZE];
};

static const short set_events[3] = {POLLIN, POLLOUT, POLLPRI};

/* Returns whether there is an rsocket among them. */
static bool selected_find(struct selected *selected, int n, fd_set *const sets[3])
{
    bool has_rsocket = false;

    selected->n = 0;
    for (int fd = 0; fd < n; fd++) {
        const int rs = held(fd);
        short events = 0;
        for (int i = 0; i < 3; i++)
            if (sets[i] && FD_ISSET(fd, sets[i]))
                events |= set_events[i];
        if (!events)
            continue;
        has_rsocket |= rs >= 0;
        selected->own[selected->n] = fd;
        selected->fds[selected->n++] = (struct pollfd){.fd = rs < 0 ? fd : rs, .events = events};
    }
    return has_rsocket;
}

/* Leaves in the sets what is ready, and returns how many that are. */
static int selected_keep(const struct selected *selected, fd_set *const sets[3])
{
    static const short counts_as[3] = {POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI};
    int ready = 0;

    for (nfds_t k = 0; k < selected->n; k++)
        for (int i = 0; i < 3; i++) {
            if (!(selected->fds[k].events & set_events[i]))
                continue;
            if (selected->fds[k].revents & counts_as[i])
                ready++;
            else
                FD_CLR(selected->own[k], sets[i]);
        }
    return ready;
}

/* As the C library's select() takes it: longer than poll() can wait is as long as it can; a negative one is left to the
 * caller, as EINVAL. */
static int selected_ms(const struct timeval *timeout)
{
    if (!timeout)
        return -1;
    if (timeout->tv_sec >= INT_MAX / 1000 || timeout->tv_usec >= INT_MAX)
        return INT_MAX;
    return (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
}

INTERPOSE(int, select, int n, fd_set *readable, fd_set *writable, fd_set *except, struct timeval *timeout)
{
    fd_set *const sets[3] = {readable, writable, except};
    struct selected selected;
    const bool is_no_time = timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0);

    if (n < 0 || n > FD_SETSIZE || is_no_time || !selected_find(&selected, n, sets))
        return real()->select(n, readable, writable, except, timeout);
    return rpoll(selected.fds, selected.n, selected_ms(timeout)) < 0 ? -1 : selected_keep(&selected, sets);
}
