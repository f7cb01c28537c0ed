/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy.c - hands each record to the source or the sink, and lets them work. */
#include "tools/xfer/copy.h"

enum { RECORDS_AT_ONCE = 32 }; /* records that a sink takes before it polls the network again */

void copy_close(struct xfer_copy *copy)
{
    if (copy->role == COPY_SOURCE)
        source_close(&copy->source);
    else if (copy->role == COPY_SINK)
        sink_close(&copy->sink);
    copy->role = COPY_IDLE;
}

bool copy_runs(const struct xfer_copy *copy)
{
    return copy->link.state == LINK_UP && !copy->refused && !copy->finished && !tool_stopped;
}

bool copy_over(const struct xfer_copy *copy)
{
    return copy->role == COPY_SOURCE ? source_over(&copy->source) : copy->sink.ended;
}

void copy_put_finish(struct xfer_copy *copy, uint64_t cpu_us)
{
    struct xfer_link *link = &copy->link;
    while (link->state == LINK_UP && !xfer_link_can_put(link) && !tool_stopped) {
        if (!xfer_link_poll(link))
            xfer_link_wait(link, 1000);
    }
    if (xfer_link_can_put(link))
        xfer_link_put(link, &(struct xfer_record){.type = XFER_FINISH, .size = cpu_us});
    xfer_link_flush(link);
}

static void take_error(struct xfer_copy *copy, const struct xfer_record *record)
{
    bool known = record->result && record->result < XFER_RESULTS;
    copy->refused = known ? (enum xfer_result)record->result : XFER_PROTOCOL;
}

bool copy_await(struct xfer_copy *copy, enum xfer_type type, struct xfer_record *record, int timeout_ms)
{
    uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * 1000000;
    while (copy_runs(copy) && clock_ns() < deadline_ns) {
        xfer_link_poll(&copy->link);
        if (!xfer_link_next(&copy->link, record)) {
            xfer_link_wait(&copy->link, 100);
            continue;
        }
        if (record->type == type)
            return true;
        if (record->type == XFER_ERROR)
            take_error(copy, record);
        else
            xfer_link_blame(&copy->link, "a record other than the expected answer");
    }
    return false;
}

static void copy_take(struct xfer_copy *copy, const struct xfer_record *record)
{
    if (record->type == XFER_FINISH) {
        copy->finished = true;
        copy->peer_cpu_us = record->size;
        if (!copy_over(copy))
            xfer_link_blame(&copy->link, "FINISH before the end");
    } else if (record->type == XFER_ERROR) {
        take_error(copy, record);
    } else if (copy->role == COPY_SOURCE) {
        source_take(&copy->source, record);
    } else {
        sink_take(&copy->sink, record);
    }
}

/* A source takes all records at once, since it never has to answer them. So a sink can always send its answers in the
 * end. */
static bool step_source(struct xfer_copy *copy)
{
    struct xfer_record record;
    bool did = false;
    while (copy_runs(copy) && xfer_link_next(&copy->link, &record)) {
        copy_take(copy, &record);
        did = true;
    }
    return copy_runs(copy) && (source_step(&copy->source) || did);
}

static bool step_sink(struct xfer_copy *copy)
{
    struct xfer_record record;
    if (sink_step(&copy->sink))
        return true;
    for (int i = 0; i < RECORDS_AT_ONCE; i++) {
        bool ready = copy_runs(copy) && !copy->sink.hashing && xfer_link_can_put(&copy->link);
        if (!ready || !xfer_link_next(&copy->link, &record))
            return i > 0;
        copy_take(copy, &record);
    }
    return true;
}

bool copy_step(struct xfer_copy *copy)
{
    bool came = xfer_link_poll(&copy->link);
    bool did = copy->role == COPY_SOURCE ? step_source(copy) : step_sink(copy);
    if (did)
        atomic_store_explicit(&copy->moved_ns, clock_ns(), memory_order_relaxed);
    return came || did;
}

const char *copy_verb(bool pull)
{
    return pull ? "pull" : "push";
}
