/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bw.c - bandwidth: a window of requests in one direction. */
#include <endian.h>
#include <string.h>

#include "tools/perf/perf.h"

enum { LOT = 16, CREDIT_EVERY = 128 };

void atomic_request(const struct lane *lane, enum op op, uint64_t number, struct rddp_sge *sge, struct rddp_send_wr *wr)
{
    size_t part = lane_word_part(lane);
    *sge = region_sge(&lane->data, part + sizeof(uint64_t), sizeof(uint64_t));
    *wr = (struct rddp_send_wr){
        .wr_id = number,
        .sg_list = sge,
        .num_sge = 1,
        .opcode = op_codes[op],
        .send_flags = op == OP_SWAP ? RDDP_SEND_MASKED : 0,
        .remote_addr = lane->peer.offset + part,
        .rkey = lane->peer.key,
        .compare_add = op == OP_FETCH_ADD ? 1 : number - 1,
        .swap = number,
        .swap_mask = UINT64_MAX,
    };
}

/* Where a request that is not the last begins in its part: at the start, or behind the one before it. */
static uint64_t place_of_request(const struct test *test, uint64_t number)
{
    uint64_t places = test->walk / test->size;
    return places ? (number - 1) % places * test->size : 0;
}

/* The last one moves octets that no other has, to where no other goes: a lost one may come after it. */
static void data_request(const struct lane *lane, const struct test *test, uint64_t number, struct rddp_sge *sge,
                         struct rddp_send_wr *wr)
{
    bool last = number == test->count, read = test->op == OP_READ;
    uint64_t at = last ? 0 : place_of_request(test, number);
    uint64_t source = (last ? lane->size : 0) + at, sink = (last ? 2 : 3) * lane->size + at;
    uint64_t part = read ? sink : source, remote_part = read ? source : sink;
    *sge = region_sge(&lane->data, part, (uint32_t)test->size);
    if (lane->source && !read)
        sge->lkey = rddp_mr_key(lane->source);
    *wr = (struct rddp_send_wr){
        .wr_id = number,
        .sg_list = sge,
        .num_sge = 1,
        .opcode = op_codes[test->op],
        .remote_addr = lane->peer.offset + remote_part,
        .rkey = lane->peer.key,
        .imm_data = htobe32((uint32_t)number),
    };
}

/* Request `number`, from 1. */
static void make_request(const struct lane *lane, const struct test *test, uint64_t number, struct rddp_sge *sge,
                         struct rddp_send_wr *wr)
{
    uint64_t every = test->window < 4 ? 1 : test->window / 4;
    if (op_is_atomic(test->op))
        atomic_request(lane, test->op, number, sge, wr);
    else
        data_request(lane, test, number, sge, wr);
    if (number == test->count || number % every == 0)
        wr->send_flags |= RDDP_SEND_SIGNALED;
}

/* How many requests may be posted now, up to a lot. */
static unsigned space(const struct lane *lane, const struct test *test, uint64_t posted)
{
    uint64_t n = test->window - (posted - lane->completed);
    if (op_takes_receive(test->op) && n > CREDITS + lane->credits - posted)
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
        unsigned n = space(lane, test, posted);
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
    if (!op_takes_receive(test->op))
        return 0;
    for (uint64_t announced = 0; lane->data_received < test->count;) {
        int code = lane_poll(lane);
        if (!code && lane->reposted >= announced + CREDIT_EVERY) {
            announced = lane->reposted;
            code = lane_send(lane, &(struct message){.type = CONTROL_CREDIT, .count = announced});
        }
        if (code)
            return code;
    }
    return 0;
}
