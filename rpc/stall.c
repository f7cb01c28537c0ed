/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stall.c - peers that answer no RDMA Read or take no reply. Their connection is ended and its memory returned after
 * stall_ms, or after an eighth of that while others wait for memory. */
#include <sys/timerfd.h>
#include <unistd.h>

#include "rpc/responder_inner.h"

enum { CHECK_MS = 1000, PRESSED = 8 };

static uint64_t period_ms(const struct responder *r)
{
    uint64_t ms = r->attr.stall_ms / PRESSED;

    return ms > CHECK_MS ? CHECK_MS : ms ? ms : 1;
}

static bool is_stuck(const struct rpc_conn *conn, uint64_t now, uint64_t limit)
{
    return !conn->dead && conn->link.queue_left < conn->link.attr.queue && now - conn->moved_ms >= limit;
}

void stall_check(struct responder *r)
{
    uint64_t limit = r->attr.stall_ms;

    if (r->now_ms - r->checked_ms < period_ms(r))
        return;
    r->checked_ms = r->now_ms;
    if (pull_is_pressed(r))
        limit /= PRESSED;
    for (uint32_t i = 0; i < r->attr.connections_max; i++)
        if (r->slot[i] && is_stuck(r->slot[i], r->now_ms, limit)) {
            r->stats.stalled++;
            conn_end(r->slot[i]);
        }
}

/* At most one timer runs: a busy responder sets it about once a second, and an idle one is not woken. */
void stall_arm(struct responder *r)
{
    struct itimerspec when = {0};
    uint64_t count, ms = period_ms(r) + 1;

    if (r->timer_ms && r->now_ms >= r->timer_ms) {
        r->timer_ms = 0;
        if (read(r->timer, &count, sizeof(count)) < 0)
            r->timer_ms = r->now_ms + 1; /* the timer has not expired yet */
    }
    if (r->timer_ms || !r->stats.calls_held)
        return;
    when.it_value = (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    if (timerfd_settime(r->timer, 0, &when, NULL) == 0)
        r->timer_ms = r->now_ms + ms;
}
