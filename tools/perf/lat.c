/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lat.c - latency: one message at a time, there and back, both sides polling. */
#include <endian.h>
#include <string.h>

#include "tools/perf/perf.h"

enum { SIGNAL_EVERY = 64 };

/* The mark of Write `number` (from 1) in its last octet: never that of the one before, nor zero. */
static unsigned char mark(uint64_t number)
{
    return (unsigned char)(number % 255 + 1);
}

/* What moves data is made once, as a program does that sends the same memory again and again. */
struct lat_request {
    struct rddp_sge sge;
    struct rddp_send_wr wr;
    unsigned flags; /* of each message, beside that some are signalled */
};

/* Octets that fit go inline, as perftest has them by default: no completion is needed for their memory then. An sge of
 * a region that begins at 0 names no address that they could be copied from. */
static void lat_request_init(struct lat_request *r, const struct lane *lane, const struct test *test)
{
    bool read = test->op == OP_READ;
    bool is_inline = !read && test->size <= HEAD && !(lane->endpoint->access & RDDP_ACCESS_ZERO_BASED);
    r->flags = (read ? RDDP_SEND_SIGNALED : 0) | (is_inline ? RDDP_SEND_INLINE : 0);
    r->sge = region_sge(&lane->data, read ? 2 * lane->size : lane->size, (uint32_t)test->size);
    r->wr = (struct rddp_send_wr){
        .sg_list = &r->sge,
        .num_sge = 1,
        .opcode = op_codes[test->op],
        .remote_addr = lane->peer.offset + (read ? 1 : 2) * lane->size,
        .rkey = lane->peer.key,
    };
}

static int post_one(struct lane *lane, struct lat_request *r, uint64_t number)
{
    r->wr.wr_id = number;
    r->wr.send_flags = r->flags | (number % SIGNAL_EVERY == 0 ? RDDP_SEND_SIGNALED : 0);
    r->wr.imm_data = htobe32((uint32_t)number);
    return lane_post(lane, &r->wr);
}

/* --- Write: each side watches the last octet of its sink ----------------------------------------------------- */

static int send_mark(struct lane *lane, const struct test *test, struct lat_request *r, uint64_t number)
{
    lane_last(lane)[test->size - 1] = mark(number);
    return post_one(lane, r, number);
}

static int await_mark(struct lane *lane, const struct test *test, uint64_t number)
{
    const unsigned char *octet = lane_sink(lane) + test->size - 1;
    unsigned char wanted = mark(number);
    while (__atomic_load_n(octet, __ATOMIC_ACQUIRE) != wanted) {
        int code = lane_poll(lane);
        if (code)
            return code;
    }
    lane_note_progress(lane);
    return 0;
}

/* --- Send, Write with immediate: each side waits for its receive --------------------------------------------- */

static int await_data(struct lane *lane, uint64_t number)
{
    while (lane->data_received < number) {
        int code = lane_poll(lane);
        if (code)
            return code;
    }
    return 0;
}

/* --- Read, atomics: the client alone ------------------------------------------------------------------------- */

static int post_atomic(struct lane *lane, const struct test *test, uint64_t number)
{
    struct rddp_sge sge;
    struct rddp_send_wr wr;
    atomic_request(lane, test->op, number, &sge, &wr);
    wr.send_flags |= RDDP_SEND_SIGNALED;
    return lane_post(lane, &wr);
}

static int await_request(struct lane *lane, uint64_t number)
{
    while (lane->completed < number) {
        int code = lane_poll(lane);
        if (code)
            return code;
    }
    return 0;
}

static int latency_go(struct lane *lane, const struct test *test, struct lat_request *r, uint64_t number)
{
    if (test->op == OP_WRITE)
        return send_mark(lane, test, r, number);
    return op_is_atomic(test->op) ? post_atomic(lane, test, number) : post_one(lane, r, number);
}

static int await(struct lane *lane, const struct test *test, uint64_t number)
{
    switch (test->op) {
    case OP_WRITE:
        return await_mark(lane, test, number);
    case OP_SEND:
    case OP_WRITE_IMM:
        return await_data(lane, number);
    default:
        return await_request(lane, number);
    }
}

int latency_client(struct lane *lane, const struct test *test, double *samples_us)
{
    double per_ns = op_is_full_round_trip(test->op) ? 1e-3 : 0.5e-3; /* else half of the way there and back */
    struct lat_request request;
    lat_request_init(&request, lane, test);
    uint64_t before_ns = clock_ns();
    for (uint64_t number = 1; number <= test->count; number++) {
        int code = latency_go(lane, test, &request, number);
        if (!code)
            code = await(lane, test, number);
        if (code)
            return code;
        uint64_t now_ns = clock_ns();
        if (samples_us)
            samples_us[number - 1] = (double)(now_ns - before_ns) * per_ns;
        before_ns = now_ns;
    }
    return 0;
}

int latency_server(struct lane *lane, const struct test *test)
{
    struct lat_request request;
    if (op_is_full_round_trip(test->op))
        return 0;
    lat_request_init(&request, lane, test);
    for (uint64_t number = 1; number <= test->count; number++) {
        int code = await(lane, test, number);
        if (!code)
            code = latency_go(lane, test, &request, number);
        if (code)
            return code;
    }
    return 0;
}

bool last_mark_is_right(const struct lane *lane, const struct test *test)
{
    const unsigned char *sink = lane_sink(lane);
    return pattern_matches(sink, test->size - 1, test->nonce, 0) && sink[test->size - 1] == mark(test->count);
}
