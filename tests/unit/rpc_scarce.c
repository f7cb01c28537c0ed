/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_scarce.c - a responder and a requester without a network: short memory and failing memory registration. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "tests/sim/rpc_provider.h"

#include "base/bytes.h"
#include "rpc/responder_inner.h"
#include "rpc/requester_in.h"

enum { CHUNK = 65536, CALL = 48, CONNS = 9, CREDITS = 4, OFFSET = 0x1000, MANY = 200 };

static const struct sockaddr_storage nowhere = {.ss_family = AF_INET};
static struct responder *responder;
static unsigned answered[PROVIDER_QPS], handled;
static bool copy_back; /* handle() adds an item without a release function to the reply */
static bool hold;      /* handle() does not answer the call */
static struct responder_call *held;
static uint8_t octets[CHUNK];

/* --- the peers --------------------------------------------------------------------------------------------------- */

static unsigned place_of(const struct rddp_qp *qp)
{
    unsigned i = 0;

    while (provider.qp[i] != qp)
        i++;
    return i;
}

static void peer_message(struct rddp_qp *qp, const uint8_t *p, size_t n, uint32_t invalidated)
{
    struct rpcrdma h;

    (void)invalidated;
    assert_int_equal(rpcrdma_decode_reply(&h, p, n), RPCRDMA_ACCEPT);
    assert_int_equal(h.proc, RDMA_MSG);
    answered[place_of(qp)]++;
}

static bool peer_write(struct rddp_qp *qp, uint32_t handle, uint64_t offset, const uint8_t *p, size_t n)
{
    (void)qp, (void)handle, (void)offset, (void)p;
    assert_int_equal(n, CHUNK);
    return true;
}

static bool peer_read(struct rddp_qp *qp, uint32_t handle, uint64_t offset, uint8_t *p, size_t n)
{
    (void)qp, (void)handle, (void)offset;
    memset(p, 0x5a, n);
    return true;
}

static void answer(struct responder_call *call)
{
    uint8_t message[28] = {0};
    struct reply reply = {.payload = message, .length = sizeof(message)};

    memcpy(message, call->payload, 4);
    if (copy_back) {
        reply.items = 1;
        reply.item[0] = (struct stream_item){.position = sizeof(message), .length = CHUNK, .data = octets};
    }
    call_reply(call, &reply);
}

static void handle(void *user, struct responder_call *call)
{
    (void)user;
    handled++;
    held = call;
    if (!hold)
        answer(call);
}

/* Send a call with a Read chunk (pull) or a Write chunk of CHUNK octets. */
static void send_call(struct rddp_qp *qp, uint32_t xid, bool pull)
{
    const struct rpcrdma_segment segment = {7, CHUNK, OFFSET};
    uint8_t message[256] = {0};
    struct rpcrdma h;
    size_t n;

    rpcrdma_init(&h, xid, RDMA_MSG);
    h.credit = CREDITS;
    if (pull)
        rpcrdma_add_read(&h, CALL, segment);
    else
        rpcrdma_add_write(&h, &segment, 1);
    n = rpcrdma_encode(&h, message, sizeof(message));
    put32(message + n, xid);
    provider_deliver(qp, message, n + CALL, 0);
}

/* --- a responder with room for `calls` of them ------------------------------------------------------------------- */

static void open_responder(unsigned calls, unsigned conns)
{
    struct responder_attr attr;

    memset(&provider, 0, sizeof(provider));
    memset(answered, 0, sizeof(answered));
    provider.message = peer_message;
    provider.write = peer_write;
    provider.read = peer_read;
    handled = 0;
    copy_back = hold = false;
    responder_attr_init(&attr);
    attr.credits = CREDITS;
    attr.memory_max = calls * budget_size(CHUNK + 64);
    attr.handle = handle;
    responder = responder_open((const struct sockaddr *)&nowhere, sizeof(nowhere), &attr);
    assert_non_null(responder);
    for (unsigned i = 0; i < conns; i++)
        provider_tell(RDDP_EVENT_CONNECT_REQUEST, NULL, NULL, 0);
    responder_run(responder, 0);
}

static void close_responder(void)
{
    struct responder_stats stats;

    responder_run(responder, 0);
    responder_stats(responder, &stats);
    assert_int_equal(stats.calls_held, 0);
    assert_int_equal(stats.memory, 0);
    responder_close(responder);
    assert_int_equal(provider.objects, 0);
}

/* Return the number of posted requests that connection i has not executed. */
static unsigned pulling(unsigned i)
{
    return provider.qp[i]->post_head - provider.qp[i]->post_tail;
}

static unsigned pulling_all(unsigned conns)
{
    unsigned n = 0;

    for (unsigned i = 0; i < conns; i++)
        n += pulling(i);
    return n;
}

/* One connection less than the memory serves, as many, and one more. The call that gets no memory stays unread until
 * another call frees its memory (RPCR-8.1.4-01). */
static void as_much_as_there_is(void **state)
{
    (void)state;
    for (unsigned conns = CONNS - 2; conns <= CONNS; conns++) {
        unsigned space = CONNS - 1, first = conns < space ? conns : space;

        open_responder(space, conns);
        for (unsigned i = 0; i < conns; i++)
            send_call(provider.qp[i], 100 + i, true);
        responder_run(responder, 0);
        assert_int_equal(pulling_all(conns), first);
        assert_int_equal(responder->stats.starved, conns - first);
        assert_int_equal(responder->budget.reserved, first * budget_size(CHUNK + 64));
        provider_run(provider.qp[0], 1);
        responder_run(responder, 0);
        assert_int_equal(handled, 1);
        provider_run(provider.qp[0], 1);
        responder_run(responder, 0);
        assert_int_equal(answered[0], 1);
        assert_int_equal(pulling_all(conns), conns - 1);
        for (unsigned i = 1; i < conns; i++)
            for (int k = 0; k < 2; k++) {
                provider_run(provider.qp[i], 1);
                responder_run(responder, 0);
            }
        for (unsigned i = 0; i < conns; i++)
            assert_int_equal(answered[i], 1);
        close_responder();
    }
}

/* A connection with many calls uses only its share of the memory and does not delay the next connection. */
static void a_share_each(void **state)
{
    (void)state;
    open_responder(BUDGET_SHARES, 2);
    for (uint32_t xid = 0; xid < CREDITS; xid++)
        send_call(provider.qp[0], xid, true);
    responder_run(responder, 0);
    assert_int_equal(pulling(0), 1);
    send_call(provider.qp[1], 50, true);
    responder_run(responder, 0);
    assert_int_equal(pulling(0), 1);
    assert_int_equal(pulling(1), 1);
    for (int i = 0; i < 2 * CREDITS; i++) {
        provider_run(provider.qp[0], 1);
        responder_run(responder, 0);
    }
    assert_int_equal(answered[0], CREDITS);
    assert_int_equal(answered[1], 0);
    provider_run(provider.qp[1], 1);
    responder_run(responder, 0);
    provider_run(provider.qp[1], 1);
    assert_int_equal(answered[1], 1);
    close_responder();
}

/* A call that needs more memory than the whole budget is served when no other call holds memory. */
static void more_than_all(void **state)
{
    (void)state;
    open_responder(1, 2);
    responder->budget.max = CHUNK / 2;
    send_call(provider.qp[0], 1, true);
    send_call(provider.qp[1], 2, true);
    responder_run(responder, 0);
    assert_int_equal(pulling(0) + pulling(1), 1);
    for (unsigned i = 0; i < 8; i++) {
        provider_run(provider.qp[i % 2], 1);
        responder_run(responder, 0);
    }
    assert_int_equal(answered[0] + answered[1], 2);
    close_responder();
}

/* The responder ends a connection whose call holds memory for stall_ms without progress, or for an eighth of
 * stall_ms if another connection waits for memory. The other connections stay. */
static void silent_peers(void **state)
{
    struct responder_stats stats;

    (void)state;
    for (int pressed = 0; pressed < 2; pressed++) {
        uint64_t limit;

        open_responder(2, 3);
        limit = responder->attr.stall_ms / (pressed ? 8 : 1);
        send_call(provider.qp[0], 1, true);
        send_call(provider.qp[1], 2, true);
        if (pressed)
            send_call(provider.qp[2], 3, true);
        responder_run(responder, 0);
        assert_int_equal(pulling(0) + pulling(1), 2);
        assert_int_equal(pulling(2), 0);
        for (int more = -50; more <= 0; more += 50) {
            /* First 50 ms below the limit, then at the limit. */
            responder->slot[0]->moved_ms = responder->now_ms - limit - (uint64_t)more;
            responder->checked_ms = 0;
            assert_int_equal(responder->stats.stalled, 0);
            responder_run(responder, 0);
        }
        responder_run(responder, 0);
        responder_stats(responder, &stats);
        assert_int_equal(stats.stalled, 1);
        assert_int_equal(stats.connections, 2);
        assert_int_equal(pulling(2), pressed);
        for (int k = 0; k < 2; k++)
            for (unsigned i = 1; i < 3; i++) {
                provider_run(provider.qp[i], 1);
                responder_run(responder, 0);
            }
        assert_int_equal(answered[1], 1);
        assert_int_equal(answered[2], pressed);
        close_responder();
    }
}

/* A peer that makes progress shortly before each stall limit keeps its connection. */
static void slow_peer(void **state)
{
    (void)state;
    open_responder(4 * BUDGET_SHARES, 1);
    for (uint32_t xid = 0; xid < CREDITS; xid++)
        send_call(provider.qp[0], xid, true);
    responder_run(responder, 0);
    for (unsigned i = 0; i < 2 * CREDITS; i++) {
        responder->slot[0]->moved_ms = responder->now_ms - responder->attr.stall_ms + 100;
        responder->checked_ms = 0;
        responder_run(responder, 0);
        assert_int_equal(responder->stats.stalled, 0);
        provider_run(provider.qp[0], 1);
        responder_run(responder, 0);
        if (responder->slot[0]->calls)
            assert_true(responder->now_ms - responder->slot[0]->moved_ms < 50);
    }
    assert_int_equal(answered[0], CREDITS);
    close_responder();
}

/* Neither a connection that has used up its share nor a call too large for the remaining memory delays a third
 * connection. */
static void nobody_stands_in_the_way(void **state)
{
    (void)state;
    open_responder(4, 3);
    for (uint32_t xid = 0; xid < CREDITS; xid++)
        send_call(provider.qp[0], xid, true);
    responder_run(responder, 0);
    assert_int_equal(pulling(0), 1);
    responder->budget.max -= 2 * budget_size(CHUNK + 64) + 1;
    send_call(provider.qp[1], 1, true);
    send_call(provider.qp[2], 1, false);
    responder_run(responder, 0);
    assert_int_equal(pulling(1), 0);
    assert_int_equal(answered[1], 0);
    provider_run(provider.qp[2], 1);
    assert_int_equal(answered[2], 1);
    for (int i = 0; i < 40; i++) {
        provider_run(provider.qp[i % 2], 1);
        responder_run(responder, 0);
    }
    assert_int_equal(answered[0], CREDITS);
    assert_int_equal(answered[1], 1);
    close_responder();
}

/* In random orders of completions, and when a connection is lost, the responder answers every call of the remaining
 * connections. A failure prints its seed. */
static void nobody_is_forgotten(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= MANY; seed++) {
        struct rng rng = {seed};
        unsigned sent[CONNS] = {0}, left = 0, gone = CONNS;

        open_responder(1 + (unsigned)(rng_next(&rng) % 12), CONNS);
        copy_back = seed & 1;
        for (int step = 0; step < 400; step++) {
            unsigned i = (unsigned)(rng_next(&rng) % CONNS);

            if (i == gone)
                continue;
            if (sent[i] - answered[i] < CREDITS && step < 300)
                send_call(provider.qp[i], i << 16 | sent[i]++, !copy_back);
            if (rng_next(&rng) % 2)
                provider_run(provider.qp[i], (unsigned)(rng_next(&rng) % 4));
            if (step == 200 && seed % 3 == 0) {
                provider_cut(provider.qp[i]);
                gone = i;
            }
            if (rng_next(&rng) % 3)
                responder_run(responder, 0);
        }
        for (unsigned k = 0; k < 40 * CONNS; k++) {
            if (k % CONNS != gone)
                provider_run(provider.qp[k % CONNS], 1);
            responder_run(responder, 0);
        }
        for (unsigned i = 0; i < CONNS; i++)
            left += i == gone ? 0 : sent[i] - answered[i];
        if (left)
            fail_msg("seed %u: %u calls were not answered", (unsigned)seed, left);
        close_responder();
    }
}

static bool is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 1;
}

/* An answer given outside responder_run() makes the descriptor readable; the next responder_run() sends it. */
static void answered_later(void **state)
{
    (void)state;
    open_responder(BUDGET_SHARES, 1);
    hold = true;
    send_call(provider.qp[0], 1, true);
    responder_run(responder, 0);
    provider_run(provider.qp[0], 1);
    responder_run(responder, 0);
    assert_int_equal(handled, 1);
    assert_false(is_readable(responder_fd(responder)));
    answer(held);
    assert_true(is_readable(responder_fd(responder)));
    assert_int_equal(pulling(0), 0);
    responder_run(responder, 0);
    assert_false(is_readable(responder_fd(responder)));
    provider_run(provider.qp[0], 1);
    assert_int_equal(answered[0], 1);
    close_responder();
}

/* --- what the machine refuses ------------------------------------------------------------------------------------ */

/* RPCR-4.5.4-03: if the responder cannot register memory for a reply, it ends that connection and no other. */
static void answer_that_cannot_be_made(void **state)
{
    (void)state;
    open_responder(BUDGET_SHARES, 2);
    copy_back = true;
    send_call(provider.qp[0], 1, false);
    provider.fail_reg = true;
    responder_run(responder, 0);
    provider.fail_reg = false;
    assert_int_equal(handled, 1);
    assert_null(provider.qp[0]);
    assert_int_equal(responder->stats.lost, 1);
    send_call(provider.qp[1], 2, false);
    responder_run(responder, 0);
    provider_run(provider.qp[1], 2);
    assert_int_equal(answered[1], 1);
    close_responder();
}

static uint8_t request_bytes[64];
static size_t requested;
static struct rpcrdma asked;

static void take_request(struct rddp_qp *qp, const uint8_t *p, size_t n, uint32_t invalidated)
{
    (void)qp, (void)invalidated;
    assert_int_equal(rpcrdma_decode_call(&asked, p, n), RPCRDMA_ACCEPT);
    requested++;
}

/* RPCR-4.5.4-02: if the requester cannot deregister memory after a reply, it ends the connection before it completes
 * the call, and then sends the call again. */
static void fence_that_fails(void **state)
{
    struct request q = {.call = request_bytes, .call_length = 40, .timeout_ms = 10000, .results = 1};
    uint8_t reply[64], message[256] = {0}, result[1000];
    struct requester_attr attr;
    struct requester *r;

    (void)state;
    memset(&provider, 0, sizeof(provider));
    provider.message = take_request;
    requested = 0;
    requester_attr_init(&attr);
    r = requester_open((const struct sockaddr *)&nowhere, sizeof(nowhere), &attr, 0);
    assert_non_null(r);
    q.reply = reply;
    q.reply_size = sizeof(reply);
    q.result[0] = (struct request_item){.data = result, .length = sizeof(result)};
    requester_start(r, &q);
    for (int i = 0; i < 2; i++) {
        struct rddp_qp *qp = provider.qp[0];
        size_t n;

        provider_run(qp, 1);
        assert_int_equal(requested, i + 1);
        asked.credit = 1;
        memset(result, i, sizeof(result)); /* the RDMA Write that the reply tells of */
        n = rpcrdma_encode(&asked, message, sizeof(message));
        put32(put32(message + n, asked.xid), 1);
        provider_deliver(qp, message, n + 24, 0);
        provider.fail_dereg = i == 0;
        requester_wait(r, 0);
        provider.fail_dereg = false;
        if (i == 1)
            break;
        assert_int_equal(q.state, REQUEST_QUEUED);
        assert_int_equal(r->state, STATE_DOWN);
        assert_null(provider.qp[0]);
        r->retry_ms = 0;
        for (int k = 0; k < 3; k++)
            requester_wait(r, 0);
    }
    assert_int_equal(q.state, REQUEST_DONE);
    assert_int_equal(q.status, REQUEST_OK);
    assert_int_equal(q.mrs, 0);
    requester_close(r);
    assert_int_equal(provider.objects, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_much_as_there_is), cmocka_unit_test(a_share_each),
        cmocka_unit_test(more_than_all),       cmocka_unit_test(silent_peers),
        cmocka_unit_test(slow_peer),           cmocka_unit_test(nobody_stands_in_the_way),
        cmocka_unit_test(answered_later),      cmocka_unit_test(nobody_is_forgotten),
        cmocka_unit_test(fence_that_fails),    cmocka_unit_test(answer_that_cannot_be_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
