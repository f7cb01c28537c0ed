/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.c - the calling end: a connection that is re-established when it is lost, credits, and calls that wait for
 * their replies. */
#include "rpc/requester.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "rpc/clock.h"
#include "rpc/requester_in.h"

enum { POLL_BATCH = 16 };

/* --- the connection -------------------------------------------------------------------------------------------- */

static void go_down(struct requester *r)
{
    rpc_link_close(&r->link);
    r->state = STATE_DOWN;
    r->retry_ms = clock_ms() + r->backoff_ms;
    r->backoff_ms = r->backoff_ms * 2 < BACKOFF_MAX_MS ? r->backoff_ms * 2 : BACKOFF_MAX_MS;
}

/* Closes the link first, so that the peer cannot reach the memory of the calls any more. Sent calls then go to the
 * front of the queue, to be sent again with the same XID and new handles (RFC 8166 4.5.5). */
static void requester_lose(struct requester *r)
{
    if (r->state == STATE_UP)
        r->stats.lost++;
    go_down(r);
    while (r->sent.last) {
        struct request *q = r->sent.last;

        request_unindex(r, q);
        request_take_out(&r->sent, q);
        request_fence(q);
        q->state = REQUEST_QUEUED;
        q->next = r->queued.first;
        q->before = NULL;
        if (q->next)
            q->next->before = q;
        else
            r->queued.last = q;
        r->queued.first = q;
        r->queued.count++;
        r->stats.retransmitted++;
    }
    r->ghosts = 0;
}

static void connect_again(struct requester *r)
{
    uint8_t data[PRIVATE_OCTETS];
    struct private sizes = private_own(r->attr.private_data, r->attr.send_size, r->attr.receive_size);
    struct link_attr link = {.receives = r->attr.credits + r->attr.backward_credits,
                             .receive_size = r->attr.receive_size,
                             .sends = 2 * r->attr.credits + r->attr.backward_credits + SENDS_SPARE,
                             .send_size = r->attr.send_size,
                             .cq = r->cq};
    struct rddp_conn_attr conn;

    rddp_conn_attr_init(&conn);
    conn.wire = r->attr.wire;
    private_encode(data, &sizes);
    if (r->attr.private_data) {
        conn.private_data = data;
        conn.private_data_length = sizeof(data);
    }
    link.queue = link.sends;
    r->error = rpc_link_open(&r->link, r->pd, &link);
    if (r->error == 0)
        r->error = rddp_connect(r->link.qp, r->events, (struct sockaddr *)&r->addr, r->addr_length, &conn);
    if (r->error)
        go_down(r);
    else
        r->state = STATE_CONNECTING;
}

/* One credit until the first reply grants more (RFC 8166 3.3.3). */
static void established(struct requester *r, const struct rddp_event *event)
{
    struct private sizes = private_own(r->attr.private_data, r->attr.send_size, r->attr.receive_size);

    rpc_link_agree(&r->link, &sizes, event->private_data, event->private_data_length);
    r->state = STATE_UP;
    r->granted = 1;
    silence_begin(r);
    r->stats.connects++;
}

static bool requester_take_events(struct requester *r)
{
    struct rddp_event *event;
    bool any = false;

    while (rddp_get_event(r->events, &event) == 0) {
        any = true;
        if (event->type == RDDP_EVENT_ESTABLISHED) {
            established(r, event);
        } else if (event->type != RDDP_EVENT_CONNECT_REQUEST) {
            r->error = event->status ? event->status : -ECONNRESET;
            if (event->type == RDDP_EVENT_DISCONNECTED && event->status == -ETIMEDOUT)
                silence_unacknowledged(r);
            /* The event must be acknowledged before its queue pair is destroyed. */
            rddp_ack_event(event);
            requester_lose(r);
            continue;
        }
        rddp_ack_event(event);
    }
    return any;
}

/* Polling an empty CQ drives the context. Returns the number of completions taken, or a negative errno. */
static int requester_take_completions(struct requester *r)
{
    struct rddp_wc wc[POLL_BATCH];
    int n = rddp_poll_cq(r->cq, POLL_BATCH, wc);

    for (int i = 0; i < n; i++) {
        struct link_done done = {.wc = wc[i]};

        rpc_link_identify(&done);
        if (wc[i].status == RDDP_WC_RETRY_EXC_ERR)
            silence_unacknowledged(r);
        if (rpc_link_take(&r->link, &done) != 0 || (done.kind == LINK_RECEIVE && !intake(r, &done))) {
            requester_lose(r);
            break;
        }
    }
    return n;
}

/* --- a step ------------------------------------------------------------------------------------------------------ */

static void cancel(struct requester *r, struct request *q, enum request_status status)
{
    if (q->state != REQUEST_QUEUED && q->state != REQUEST_SENT)
        return;
    if (!requester_take_back(r, q)) {
        requester_lose(r);
        request_fence(q);
    }
    requester_end(r, q, status);
}

/* Searches the lists only when the earliest deadline may have passed. */
static bool expire(struct requester *r, uint64_t now)
{
    struct request *lists[] = {r->sent.first, r->queued.first};
    bool any = false;

    if (now < r->deadline_ms)
        return false;
    r->deadline_ms = UINT64_MAX;
    for (size_t i = 0; i < 2; i++)
        for (struct request *q = lists[i], *next; q; q = next) {
            next = q->next;
            if (q->deadline_ms <= now) {
                cancel(r, q, REQUEST_TIMED_OUT);
                any = true;
            } else if (q->deadline_ms < r->deadline_ms) {
                r->deadline_ms = q->deadline_ms;
            }
        }
    return any;
}

/* Returns false if there was nothing to send. */
static bool send_queued(struct requester *r)
{
    bool any;

    if (r->state != STATE_UP)
        return false;
    if (!requester_send_queued(r)) {
        requester_lose(r);
        return true;
    }
    any = r->link.sends;
    if (rpc_link_flush(&r->link) != 0)
        requester_lose(r);
    return any;
}

/* Sends what waits, takes completions, and sends what these permit, until the CQ is empty: requester_fd() reports the
 * network alone, not what is left in the CQ. Returns false if there was nothing to do. */
static bool requester_step(struct requester *r)
{
    uint64_t now = clock_ms();
    bool any = false, sent;
    int n;

    r->in_step = true;
    send_queued(r);
    do {
        n = requester_take_completions(r);
        any |= n > 0;
        sent = send_queued(r);
    } while (n == POLL_BATCH || sent);
    /* Looking for events is a system call. While replies arrive, the end of the connection can wait. */
    if (!any || r->state != STATE_UP)
        any |= requester_take_events(r);
    any |= expire(r, now);
    if (r->state == STATE_DOWN && r->retry_ms <= now)
        connect_again(r);
    send_queued(r);
    if (r->state == STATE_UP && !silence_bearable(r, now))
        requester_lose(r);
    silence_report(r, now);
    r->in_step = false;
    return any;
}

/* Milliseconds that the caller may sleep before the next step; -1: without limit. */
static int requester_patience(const struct requester *r, uint64_t until)
{
    uint64_t now = clock_ms();

    if (r->state == STATE_DOWN && r->retry_ms < until)
        until = r->retry_ms;
    if (r->state == STATE_UP && silence_until(r) < until)
        until = silence_until(r);
    if (r->deadline_ms < until)
        until = r->deadline_ms;
    if (silence_report_at(r) < until)
        until = silence_report_at(r);
    if (until == UINT64_MAX)
        return -1;
    return until <= now ? 0 : until - now > 60000 ? 60000 : (int)(until - now);
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

void requester_attr_init(struct requester_attr *attr)
{
    struct rddp_context_attr context;

    *attr = (struct requester_attr){.credits = 32, .send_size = 4096, .receive_size = 4096, .private_data = true};
    attr->backward_credits = 2;
    attr->silence_ms = 60000;
    attr->spin_us = 20;
    rddp_context_attr_init(&context);
    attr->log_level = context.log_level;
    rddp_wire_attr_init(&attr->wire);
}

/* The context has no thread: requester_wait() does its work and sleeps in poll(). */
static int requester_open_objects(struct requester *r)
{
    struct rddp_context_attr attr;
    uint32_t buffers = 3 * r->attr.credits + 2 * r->attr.backward_credits + SENDS_SPARE;

    rddp_context_attr_init(&attr);
    attr.log_level = r->attr.log_level;
    attr.log = r->attr.log;
    attr.log_user = r->attr.user;
    attr.manual_progress = true;
    r->context = rddp_open(&attr);
    if (!r->context)
        return -errno;
    for (r->sent_table.buckets = 1; r->sent_table.buckets < 2 * r->attr.credits;)
        r->sent_table.buckets *= 2;
    r->pd = rddp_alloc_pd(r->context);
    r->events = rddp_create_event_channel(r->context);
    r->cq = rddp_create_cq(r->context, (int)buffers, NULL, NULL);
    r->sent_table.bucket = calloc(r->sent_table.buckets, sizeof(struct request *));
    r->ghost = calloc(r->attr.credits, sizeof(*r->ghost));
    if (!r->pd || !r->events || !r->cq || !r->sent_table.bucket || !r->ghost)
        return -ENOMEM;
    if (getrandom(&r->next_xid, sizeof(r->next_xid), 0) <= 0 || getrandom(&r->secret, sizeof(r->secret), 0) <= 0)
        return -errno;
    return rpc_wait_open(&r->wait, r->context, r->events);
}

struct requester *requester_open(const struct sockaddr *addr, socklen_t length, const struct requester_attr *attr,
                                 int timeout_ms)
{
    struct requester *r = calloc(1, sizeof(*r));
    uint64_t until = clock_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
    struct pollfd fd;

    if (!r)
        return NULL;
    r->wait.fd = r->wait.kick = -1;
    r->deadline_ms = UINT64_MAX;
    r->attr = *attr;
    rpc_log_init(&r->log, attr->log, attr->user);
    r->attr.private_data = attr->private_data && rpc_link_has_private_data(&attr->wire);
    r->attr.credits = attr->credits ? attr->credits : 1;
    r->attr.send_size = private_size(attr->send_size);
    r->attr.receive_size = private_size(attr->receive_size);
    r->backoff_ms = BACKOFF_MIN_MS;
    r->addr_length = length;
    memcpy(&r->addr, addr, length);
    r->error = requester_open_objects(r);
    if (r->error == 0)
        connect_again(r);
    fd = (struct pollfd){.fd = r->wait.fd, .events = POLLIN};
    while (r->state == STATE_CONNECTING) {
        rddp_progress(r->context, 0);
        if (!requester_take_events(r) && clock_ms() >= until)
            r->error = -ETIMEDOUT;
        if (r->error)
            break;
        if (r->state == STATE_CONNECTING)
            poll(&fd, 1, requester_patience(r, until));
    }
    if (r->state == STATE_UP)
        return r;
    errno = -r->error;
    requester_close(r);
    return NULL;
}

void requester_close(struct requester *r)
{
    int error = errno;

    while (r->sent.first)
        cancel(r, r->sent.first, REQUEST_CLOSED);
    while (r->queued.first)
        cancel(r, r->queued.first, REQUEST_CLOSED);
    rpc_link_close(&r->link);
    if (r->cq)
        rddp_destroy_cq(r->cq);
    if (r->events)
        rddp_destroy_event_channel(r->events);
    if (r->pd)
        rddp_dealloc_pd(r->pd);
    if (r->context)
        rddp_close(r->context);
    rpc_wait_close(&r->wait);
    free(r->sent_table.bucket);
    free(r->ghost);
    free(r);
    errno = error;
}

uint32_t requester_xid(struct requester *r)
{
    return r->next_xid++;
}

void requester_start(struct requester *r, struct request *q)
{
    q->xid = (uint32_t)q->call[0] << 24 | (uint32_t)q->call[1] << 16 | (uint32_t)q->call[2] << 8 | q->call[3];
    q->deadline_ms = q->timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)q->timeout_ms;
    q->state = REQUEST_QUEUED;
    q->mrs = 0;
    q->reply_length = 0;
    if (q->deadline_ms < r->deadline_ms)
        r->deadline_ms = q->deadline_ms;
    request_append(&r->queued, q);
    if (r->state != STATE_UP || r->in_step)
        return;
    /* The first call is sent at once. A later one waits to be sent together with others; the kick makes requester_fd()
     * readable. */
    if (requester_in_flight(r) == 0)
        send_queued(r);
    else
        rpc_wait_kick(&r->wait);
}

void requester_gather(struct requester *r)
{
    r->in_step = true;
}

void requester_send(struct requester *r)
{
    r->in_step = false;
    send_queued(r);
}

void requester_cancel(struct requester *r, struct request *q)
{
    cancel(r, q, REQUEST_CANCELLED);
}

int requester_wait(struct requester *r, int timeout_ms)
{
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)timeout_ms;
    struct pollfd fd = {.fd = r->wait.fd, .events = POLLIN};

    r->ended = 0;
    rpc_wait_unkick(&r->wait);
    poll_begin(&r->polling, r->attr.spin_us);
    while (!requester_step(r) && r->ended == 0 && clock_ms() < until)
        if (!poll_goes_on(&r->polling))
            poll(&fd, 1, requester_patience(r, until));
    poll_hit(&r->polling);
    return r->ended;
}

enum request_status requester_run(struct requester *r, struct request *q)
{
    requester_start(r, q);
    while (q->state != REQUEST_DONE)
        requester_wait(r, -1);
    return q->status;
}

int requester_fd(const struct requester *r)
{
    return r->wait.fd;
}

void requester_stats(const struct requester *r, struct requester_stats *stats)
{
    *stats = r->stats;
    stats->in_flight = requester_in_flight(r);
    stats->granted = r->granted;
}

const char *request_status_str(enum request_status status)
{
    static const char *const text[] = {
        [REQUEST_OK] = "answered",
        [REQUEST_TIMED_OUT] = "timed out",
        [REQUEST_CANCELLED] = "cancelled",
        [REQUEST_REFUSED] = "the responder found a fault in the header or its chunks (ERR_CHUNK)",
        [REQUEST_BAD_VERSION] = "the responder does not speak version 1 (ERR_VERS)",
        [REQUEST_BAD_REPLY] = "the reply is not one that the call allows",
        [REQUEST_NOT_SENT] = "the call could not be built",
        [REQUEST_CLOSED] = "closed",
    };

    return text[status];
}
