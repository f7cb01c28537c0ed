/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.c - the answering end: a listener and its connections. */
#include "rpc/responder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rpc/clock.h"
#include "rpc/responder_inner.h"

enum { LISTEN_BACKLOG = 64 };

void responder_attr_init(struct responder_attr *attr)
{
    struct rddp_context_attr context;

    *attr = (struct responder_attr){.credits = 64, .send_size = 4096, .receive_size = 4096, .private_data = true};
    attr->read_max = (1 << 20) + 65536;
    attr->connections_max = 256;
    attr->rest_ms = 1000;
    attr->stall_ms = 30000;
    attr->backward_credits = 2;
    attr->replay_entries = 1024;
    attr->replay_octets = 8192;
    attr->memory_max = 512 << 20;
    attr->spin_us = 20;
    rddp_context_attr_init(&context);
    attr->log_level = context.log_level;
    rddp_wire_attr_init(&attr->wire);
}

/* The most completions that one connection can have outstanding. */
static uint32_t completions(const struct responder *r)
{
    return 2 * (r->attr.credits + r->attr.backward_credits) + CONN_SENDS_SPARE + CONN_RDMA;
}

static bool open_slots(struct responder *r)
{
    uint32_t n = COMPLETIONS_MAX / completions(r);

    if (r->attr.connections_max > n)
        r->attr.connections_max = n;
    r->slot = calloc(r->attr.connections_max, sizeof(*r->slot));
    r->slot_idle = calloc(r->attr.connections_max, sizeof(*r->slot_idle));
    if (!r->slot || !r->slot_idle)
        return false;
    while (r->slots_idle < r->attr.connections_max) {
        r->slot_idle[r->slots_idle] = r->attr.connections_max - 1 - r->slots_idle;
        r->slots_idle++;
    }
    return true;
}

/* The context has no thread: responder_run() does its work, and the caller may sleep in poll(). */
static bool responder_open_objects(struct responder *r)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.log_level = r->attr.log_level;
    attr.log = rpc_log_line;
    attr.log_user = &r->log;
    attr.manual_progress = true;
    r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    r->context = rddp_open(&attr);
    if (r->timer < 0 || !r->context || replay_init(&r->replay, r->attr.replay_entries) != 0)
        return false;
    r->events = rddp_create_event_channel(r->context);
    if (!open_slots(r) || !r->events)
        return false;
    r->cq = rddp_create_cq(r->context, (int)(completions(r) * r->attr.connections_max), NULL, NULL);
    return r->cq && rpc_wait_open(&r->wait, r->context, r->events) == 0 && rpc_wait_add(&r->wait, r->timer) == 0;
}

struct responder *responder_open(const struct sockaddr *addr, socklen_t length, const struct responder_attr *attr)
{
    struct responder *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->wait.fd = r->wait.kick = r->timer = -1;
    r->now_ms = clock_ms();
    rpc_log_init(&r->log, attr->log, attr->user);
    r->attr = *attr;
    r->attr.private_data = attr->private_data && rpc_link_has_private_data(&attr->wire);
    r->attr.credits = attr->credits ? attr->credits : 1;
    r->attr.send_size = private_size(attr->send_size);
    r->attr.receive_size = private_size(attr->receive_size);
    r->attr.replay_entries = attr->replay_entries ? attr->replay_entries : 1;
    r->attr.connections_max = attr->connections_max ? attr->connections_max : 1;
    if (!attr->address_max)
        r->attr.address_max = r->attr.connections_max - r->attr.connections_max / 2;
    budget_init(&r->budget, r->attr.memory_max);
    errno = ENOMEM;
    if (responder_open_objects(r))
        r->listener = rddp_listen(r->events, addr, length, LISTEN_BACKLOG, &r->attr.wire, NULL);
    if (r->listener)
        return r;
    responder_close(r);
    return NULL;
}

void responder_close(struct responder *r)
{
    struct rddp_event *event;
    int error = errno;

    if (r->listener)
        rddp_destroy_listener(r->listener);
    r->in_round = true;
    for (uint32_t i = 0; r->slot && i < r->attr.connections_max; i++)
        if (r->slot[i])
            conn_take_down(r->slot[i]);
    while (r->events && rddp_get_event(r->events, &event) == 0)
        rddp_ack_event(event);
    if (r->cq)
        rddp_destroy_cq(r->cq);
    if (r->events)
        rddp_destroy_event_channel(r->events);
    if (r->context)
        rddp_close(r->context);
    rpc_wait_close(&r->wait);
    if (r->timer >= 0)
        close(r->timer);
    replay_fini(&r->replay);
    budget_fini(&r->budget);
    serve_free_spares(r);
    free(r->slot);
    free(r->slot_idle);
    free(r);
    errno = error;
}

int responder_fd(const struct responder *r)
{
    return r->wait.fd;
}

int responder_addr(const struct responder *r, struct sockaddr_storage *addr)
{
    return rddp_listener_addr(r->listener, addr);
}

void responder_stats(const struct responder *r, struct responder_stats *stats)
{
    *stats = r->stats;
    stats->memory = r->budget.reserved;
}
