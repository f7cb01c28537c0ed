/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.c - the calling end: a connection that comes back, credits, and the calls that wait for their replies. */
#include "rpc/requester.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "rpc/clock.h"
#include "rpc/requester_in.h"

static uint32_t in_flight(const struct requester *r)
{
    uint32_t n = r->ghosts;

    for (const struct request *q = r->sent; q; q = q->next)
        n++;
    return n;
}

/* --- the connection -------------------------------------------------------------------------------------------- */

static struct private mine(const struct requester *r)
{
    if (!r->attr.private_data)
        return (struct private){PRIVATE_SIZE_MIN, PRIVATE_SIZE_MIN, false};
    return (struct private){r->attr.send_size, r->attr.receive_size, true};
}

static void go_down(struct requester *r)
{
    link_close(&r->link);
    r->state = STATE_DOWN;
    r->retry_ms = clock_ms() + r->backoff_ms;
    r->backoff_ms = r->backoff_ms * 2 < BACKOFF_MAX_MS ? r->backoff_ms * 2 : BACKOFF_MAX_MS;
}

/* The link goes first: then nobody reaches the memory of the calls, which wait in front of the others to be sent once
 * more with the same XID and new handles (RFC 8166 4.5.5). */
static void lose(struct requester *r)
{
    struct request **last = &r->sent;

    go_down(r);
    for (; *last; last = &(*last)->next) {
        (*last)->state = REQUEST_QUEUED;
        request_fence(*last);
        r->stats.retransmitted++;
    }
    *last = r->queued;
    r->queued = r->sent;
    r->sent = NULL;
    r->ghosts = 0;
}

static void connect_again(struct requester *r)
{
    uint8_t data[PRIVATE_OCTETS];
    struct private sizes = mine(r);
    struct link_attr link = {.receives = r->attr.credits + r->attr.backward_credits,
                             .receive_size = r->attr.receive_size,
                             .sends = 2 * r->attr.credits + r->attr.backward_credits + SENDS_SPARE,
                             .send_size = r->attr.send_size};
    struct rddp_conn_attr conn;

    rddp_conn_attr_init(&conn);
    conn.wire = r->attr.wire;
    private_encode(data, &sizes);
    if (r->attr.private_data) {
        conn.private_data = data;
        conn.private_data_length = sizeof(data);
    }
    link.queue = link.sends;
    r->error = link_open(&r->link, r->context, r->pd, r->channel, &link);
    if (r->error == 0)
        r->error = rddp_connect(r->link.qp, r->events, (struct sockaddr *)&r->addr, r->addr_length, &conn);
    if (r->error)
        go_down(r);
    else
        r->state = STATE_CONNECTING;
}

/* One credit until the first reply tells of more (RFC 8166 3.3.3). */
static void established(struct requester *r, const struct rddp_event *event)
{
    struct private sizes = mine(r);

    link_agree(&r->link, &sizes, event->private_data, event->private_data_length);
    r->state = STATE_UP;
    r->granted = 1;
    r->stats.connects++;
}

static bool take_events(struct requester *r)
{
    struct rddp_event *event;
    bool any = false;

    while (rddp_get_event(r->events, &event) == 0) {
        any = true;
        if (event->type == RDDP_EVENT_ESTABLISHED) {
            established(r, event);
        } else if (event->type != RDDP_EVENT_CONNECT_REQUEST) {
            r->error = event->status ? event->status : -ECONNRESET;
            /* The event goes back before its queue pair goes away. */
            rddp_ack_event(event);
            lose(r);
            continue;
        }
        rddp_ack_event(event);
    }
    return any;
}

static bool take_completions(struct requester *r)
{
    struct link_done done;
    struct rddp_cq *cq;
    void *user;
    bool any = false;
    int n;

    if (!r->link.cq)
        return false;
    while (rddp_get_cq_event(r->channel, &cq, &user) == 0)
        any = true;
    if (any && rddp_req_notify_cq(r->link.cq, false) != 0)
        return false;
    while ((n = link_poll(&r->link, &done)) != 0) {
        any = true;
        if (n < 0 || (done.kind == LINK_RECEIVE && !intake(r, &done))) {
            lose(r);
            break;
        }
    }
    return any;
}

/* --- what goes out --------------------------------------------------------------------------------------------- */

static void send_queued(struct requester *r)
{
    struct request_limits limits = {r->link.send_max, r->link.receive_max, r->attr.credits};

    while (r->queued && rpcrdma_allowed(r->attr.credits, r->granted, in_flight(r)) && link_has_room(&r->link, 0)) {
        struct request *q = r->queued;
        size_t n = request_build(q, r->pd, &limits, r->message);
        struct link_message message = {.head = r->message, .head_length = n};

        request_take_out(&r->queued, q);
        if (n == 0) {
            requester_end(r, q, REQUEST_NOT_SENT);
            continue;
        }
        r->stats.registered += q->mrs;
        request_append(&r->sent, q);
        q->state = REQUEST_SENT;
        if (link_send(&r->link, &message, 0) != 0) {
            lose(r);
            return;
        }
        r->stats.sent++;
        if (in_flight(r) > r->stats.most_in_flight)
            r->stats.most_in_flight = in_flight(r);
    }
}

static void cancel(struct requester *r, struct request *q, enum request_status status)
{
    bool was_sent = request_take_out(&r->sent, q);

    if (!was_sent && !request_take_out(&r->queued, q))
        return;
    if (was_sent && r->ghosts < r->attr.credits)
        r->ghost[r->ghosts++] = q->xid;
    if (!request_fence(q)) {
        lose(r);
        request_fence(q);
    }
    requester_end(r, q, status);
}

static bool expire(struct requester *r, struct request *list, uint64_t now)
{
    bool any = false;

    for (struct request *q = list, *next; q; q = next) {
        next = q->next;
        if (q->deadline_ms <= now) {
            cancel(r, q, REQUEST_TIMED_OUT);
            any = true;
        }
    }
    return any;
}

/* One round. False: there was nothing to do. */
static bool step(struct requester *r)
{
    bool any = take_events(r);

    any |= take_completions(r);
    any |= expire(r, r->sent, clock_ms());
    any |= expire(r, r->queued, clock_ms());
    if (r->state == STATE_DOWN && r->retry_ms <= clock_ms())
        connect_again(r);
    if (r->state == STATE_UP)
        send_queued(r);
    return any;
}

/* How long the next round may wait. */
static int patience(const struct requester *r, uint64_t until)
{
    const struct request *lists[] = {r->queued, r->sent};
    uint64_t now = clock_ms();

    if (r->state == STATE_DOWN && r->retry_ms < until)
        until = r->retry_ms;
    for (size_t i = 0; i < 2; i++)
        for (const struct request *q = lists[i]; q; q = q->next)
            until = q->deadline_ms < until ? q->deadline_ms : until;
    if (until == UINT64_MAX)
        return -1;
    return until <= now ? 0 : until - now > 60000 ? 60000 : (int)(until - now);
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

void requester_attr_init(struct requester_attr *attr)
{
    *attr = (struct requester_attr){.credits = 32, .send_size = 4096, .receive_size = 4096, .private_data = true};
    attr->backward_credits = 2;
    attr->log_level = RDDP_LOG_ERROR;
    rddp_wire_attr_init(&attr->wire);
}

static int watch(struct requester *r, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        return -1;
    return epoll_ctl(r->fd, EPOLL_CTL_ADD, fd, &event);
}

static bool open_objects(struct requester *r)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.log_level = r->attr.log_level;
    r->fd = epoll_create1(EPOLL_CLOEXEC);
    r->context = rddp_open(&attr);
    if (r->fd < 0 || !r->context)
        return false;
    r->pd = rddp_alloc_pd(r->context);
    r->events = rddp_create_event_channel(r->context);
    r->channel = rddp_create_comp_channel(r->context);
    r->ghost = calloc(r->attr.credits, sizeof(*r->ghost));
    r->message = malloc(r->attr.send_size);
    return r->pd && r->events && r->channel && r->ghost && r->message &&
           watch(r, rddp_event_channel_fd(r->events)) == 0 && watch(r, rddp_comp_channel_fd(r->channel)) == 0;
}

static uint32_t at_least(uint32_t v, uint32_t least)
{
    return v < least ? least : v;
}

struct requester *requester_open(const struct sockaddr *addr, socklen_t length, const struct requester_attr *attr,
                                 int timeout_ms)
{
    struct requester *r = calloc(1, sizeof(*r));
    uint64_t until = clock_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
    struct pollfd fd;

    if (!r)
        return NULL;
    r->attr = *attr;
    r->attr.credits = at_least(attr->credits, 1);
    r->attr.send_size = at_least(attr->send_size, PRIVATE_SIZE_MIN);
    r->attr.receive_size = at_least(attr->receive_size, PRIVATE_SIZE_MIN);
    r->backoff_ms = BACKOFF_MIN_MS;
    r->addr_length = length;
    memcpy(&r->addr, addr, length);
    r->error = open_objects(r) && getrandom(&r->next_xid, sizeof(r->next_xid), 0) > 0 ? 0 : -(errno ? errno : ENOMEM);
    if (r->error == 0)
        connect_again(r);
    fd = (struct pollfd){.fd = r->fd, .events = POLLIN};
    while (r->state == STATE_CONNECTING) {
        if (!take_events(r) && clock_ms() >= until)
            r->error = -ETIMEDOUT;
        if (r->error)
            break;
        if (r->state == STATE_CONNECTING)
            poll(&fd, 1, patience(r, until));
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

    while (r->sent)
        cancel(r, r->sent, REQUEST_CLOSED);
    while (r->queued)
        cancel(r, r->queued, REQUEST_CLOSED);
    link_close(&r->link);
    if (r->channel)
        rddp_destroy_comp_channel(r->channel);
    if (r->events)
        rddp_destroy_event_channel(r->events);
    if (r->pd)
        rddp_dealloc_pd(r->pd);
    if (r->context)
        rddp_close(r->context);
    if (r->fd >= 0)
        close(r->fd);
    free(r->ghost);
    free(r->message);
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
    request_append(&r->queued, q);
    if (r->state == STATE_UP)
        send_queued(r);
}

void requester_cancel(struct requester *r, struct request *q)
{
    cancel(r, q, REQUEST_CANCELLED);
}

int requester_wait(struct requester *r, int timeout_ms)
{
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)timeout_ms;
    struct pollfd fd = {.fd = r->fd, .events = POLLIN};

    r->ended = 0;
    while (!step(r) && r->ended == 0 && clock_ms() < until)
        poll(&fd, 1, patience(r, until));
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
    return r->fd;
}

void requester_stats(const struct requester *r, struct requester_stats *stats)
{
    *stats = r->stats;
    stats->in_flight = in_flight(r);
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
