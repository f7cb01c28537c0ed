/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bw.c - bandwidth: a window of requests in one direction. */
#include <string.h>

#include "tools/perf/perf.h"

enum { LOT = 16, CREDIT_EVERY = 128 };

static const enum rddp_wr_opcode opcodes[OPS] = {RDDP_WR_RDMA_WRITE, RDDP_WR_SEND, RDDP_WR_RDMA_READ};

/* Request `number`, from 1. The last one moves octets that no other has. */
static void make_request(const struct lane *lane, const struct test *test, uint64_t number, struct rddp_sge *sge,
                         struct rddp_send_wr *wr)
{
    bool last = number == test->count, read = test->op == OP_READ;
    size_t part = read ? 2 * lane->size : last ? lane->size : 0;
    uint64_t remote_part = !read ? 2 * lane->size : last ? lane->size : 0;
    uint64_t every = test->window < 4 ? 1 : test->window / 4;
    *sge = region_sge(&lane->data, part, (uint32_t)test->size);
    *wr = (struct rddp_send_wr){
        .wr_id = number,
        .sg_list = sge,
        .num_sge = 1,
        .opcode = opcodes[test->op],
        .send_flags = last || number % every == 0 ? RDDP_SEND_SIGNALED : 0,
        .remote_addr = lane->peer.offset + remote_part,
        .rkey = lane->peer.key,
    };
}

/* How many requests may be posted now, up to a lot. */
static unsigned room(const struct lane *lane, const struct test *test, uint64_t posted)
{
    uint64_t n = test->window - (posted - lane->completed);
    if (test->op == OP_SEND && n > CREDITS + lane->credits - posted)
        n = CREDITS + lane->credits - posted;
    if (n > test->count - posted)
        n = test->count - posted;
    return n < LOT ? (unsigned)n : LOT;
}

int bandwidth_client(struct lane *lane, const struct test *test)
{
    uint64_t posted = 0;
    while (lane->completed < test->count) {
        struct rddp_sge sges[LOT];
        struct rddp_send_wr wrs[LOT];
        unsigned n = room(lane, test, posted);
        for (unsigned i = 0; i < n; i++) {
            make_request(lane, test, ++posted, &sges[i], &wrs[i]);
            wrs[i].next = i + 1 < n ? &wrs[i + 1] : NULL;
        }
        int code = n ? lane_post(lane, wrs) : 0;
        if (!code)
            code = lane_poll(lane);
        if (code)
            return code;
    }
    return 0;
}

int bandwidth_server(struct lane *lane, const struct test *test)
{
    if (test->op != OP_SEND)
        return 0;
    for (uint64_t told = 0; lane->data_received < test->count;) {
        int code = lane_poll(lane);
        if (!code && lane->reposted >= told + CREDIT_EVERY) {
            told = lane->reposted;
            code = lane_tell(lane, &(struct message){.type = CONTROL_CREDIT, .count = told});
        }
        if (code)
            return code;
    }
    return 0;
}

bool goes_to_server(const struct test *test)
{
    return test->op != OP_READ;
}

bool goes_to_client(const struct test *test)
{
    return test->op == OP_READ || test->kind == KIND_LATENCY;
}

bool last_message_is_right(const struct lane *lane, const struct test *test)
{
    const unsigned char *sink = lane_sink(lane);
    if (test->op == OP_WRITE && test->kind == KIND_LATENCY)
        return last_mark_is_right(lane, test);
    if (test->op != OP_SEND)
        return pattern_matches(sink, test->size, test->nonce, 0);
    const unsigned char *head = lane->ring.at + (size_t)lane->data_slot * HEAD;
    return pattern_matches(head, test->size < HEAD ? test->size : HEAD, test->nonce, 0) &&
           pattern_matches(sink, test->size, test->nonce, HEAD);
}
