/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_liar.c - a responder that breaks the rules: a bare queue pair answers what a table says. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "rpc/rpcrdma.h"
#include "tests/suite/lib/pair.h"
#include "tests/suite/lib/service.h"

enum { BUFFER = 4096, RECEIVES = 16, SENT_AT = 1 << 20 };

static const struct row row = {.name = "crc", .crc = true, .mpa_revision = 2};
static const struct row roce = {.name = "roce", .wire = RDDP_WIRE_ROCE, .crc = true, .mpa_revision = 2};
static struct pair pair;

/* --- a bare responder against the requester ---------------------------------------------------------------------- */

struct liar {
    struct requester *requester;
    struct exchange *e;
    pthread_t thread;
    uint8_t target[BUFFER];
};

static void *accept_one(void *user)
{
    struct rddp_event request = pair_event(&pair.server, RDDP_EVENT_CONNECT_REQUEST);
    struct rddp_qp_attr attr;

    (void)user;
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = pair.server.cq;
    pair.server.qp = rddp_create_qp(pair.server.pd, &attr);
    for (int i = 0; i < RECEIVES; i++)
        pair_receive(&pair.server, (uint64_t)i, (size_t)i * BUFFER, BUFFER);
    assert_int_equal(rddp_accept(request.request, pair.server.qp, NULL), 0);
    pair_event(&pair.server, RDDP_EVENT_ESTABLISHED);
    return NULL;
}

static void liar_open_over(struct liar *liar, const struct row *over)
{
    struct requester_attr attr;

    memset(&pair, 0, sizeof(pair));
    pair_open(&pair, over);
    liar->e = calloc(1, sizeof(*liar->e));
    assert_int_equal(pthread_create(&liar->thread, NULL, accept_one, NULL), 0);
    requester_attr_init(&attr);
    attr.wire.wire = over->wire;
    attr.wire.first_delay_ms = 0;
    liar->requester = requester_open((struct sockaddr *)&pair.addr, sizeof(pair.addr), &attr, SERVICE_WAIT_MS);
    pthread_join(liar->thread, NULL);
    assert_non_null(liar->requester);
}

static void liar_open(struct liar *liar)
{
    liar_open_over(liar, &row);
}

static void liar_close(struct liar *liar)
{
    requester_close(liar->requester);
    free(liar->e);
    pair_close(&pair);
}

/* Starts a FETCH with one Write chunk and returns its header. */
static void liar_ask(struct liar *liar, struct rpcrdma *asked)
{
    const uint32_t n = 100;
    struct rddp_wc wc;

    memset(liar->target, 0xa5, sizeof(liar->target));
    exchange_init(liar->e, liar->requester, PROC_FETCH, &n, 1, 4);
    liar->e->request.results = 1;
    liar->e->request.result[0] = (struct request_item){.data = liar->target, .length = 100};
    requester_start(liar->requester, &liar->e->request);
    do {
        requester_wait(liar->requester, 1);
    } while (rddp_poll_cq(pair.server.cq, 1, &wc) == 0 || (wc.wr_id == 1000 && wc.status == 0));
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(rpcrdma_decode_call(asked, pair.server.buffer + wc.wr_id * BUFFER, wc.byte_len), RPCRDMA_ACCEPT);
    pair_receive(&pair.server, wc.wr_id, (size_t)wc.wr_id * BUFFER, BUFFER);
}

/* Writes `n` octets of zeros to the Write chunk, at `at`. */
static void liar_write(const struct rpcrdma *asked, uint64_t at, size_t n)
{
    const struct rpcrdma_segment *to = &asked->segment[asked->write[0].first];
    struct rddp_sge sge = pair_sge(&pair.server, SENT_AT, (uint32_t)n);
    struct rddp_send_wr wr = {.wr_id = 1000,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_RDMA_WRITE,
                              .send_flags = RDDP_SEND_SIGNALED,
                              .rkey = to->handle,
                              .remote_addr = to->offset + at};

    memset(pair.server.buffer + SENT_AT, 0, n);
    assert_int_equal(rddp_post_send(pair.server.qp, &wr, NULL), 0);
}

static void liar_send(const uint8_t *p, size_t n)
{
    memcpy(pair.server.buffer + SENT_AT, p, n);
    assert_int_equal(pair_post(&pair.server, &pair.client, RDDP_WR_SEND, 1000, SENT_AT, n, 0, RDDP_SEND_SIGNALED), 0);
}

/* Writes a correct reply to `asked`, which says that nothing was written. */
static size_t good_reply(uint8_t *to, const struct rpcrdma *asked)
{
    struct rpcrdma h = *asked;
    size_t n;

    h.credit = 4;
    rpcrdma_fill(&h, h.write[0], 0);
    n = rpcrdma_encode(&h, to, BUFFER);
    memset(to + n, 0, SERVICE_REPLY_HEAD);
    put32(put32(to + n, h.xid), 1);
    return n + SERVICE_REPLY_HEAD;
}

enum liar_result { SILENCE, BAD, REFUSED, VERSION };

static size_t lie(unsigned which, uint8_t *to, const struct rpcrdma *asked)
{
    size_t n = good_reply(to, asked), payload = n - SERVICE_REPLY_HEAD;

    switch (which) {
    case 0: /* another XID in the RPC message */
        to[payload]++;
        break;
    case 1: /* for an unknown call */
        to[0]++, to[payload]++;
        break;
    case 2:
        put32(to + 4, 2);
        break;
    case 3: /* RPCR-4.6.1-03 */
        put32(to + 12, RDMA_MSGP);
        break;
    case 4:
        put32(to + 12, RDMA_DONE);
        break;
    case 5: /* RPCR-4.3.1-03: a Read list, of one segment */
        memmove(to + 16 + 24, to + 16, n - 16);
        put32(put32(put32(put64(put32(put32(to + 16, 1), 40), 0), 0), 0), 0);
        put32(to + 16, 1);
        put32(to + 40, 0);
        return n + 24;
    case 6:
        return 27;
    case 7: /* RDMA_NOMSG without a Reply chunk */
        put32(to + 12, RDMA_NOMSG);
        break;
    case 8: /* RPCR-4.5-07 */
        put32(put32(to + 12, RDMA_ERROR), 3);
        return 28;
    case 9: /* another handle than offered */
        to[28]++;
        break;
    case 10: /* longer than offered */
        put32(to + 32, 101);
        break;
    case 11: /* one chunk too many */
        memmove(to + 44 + 8, to + 44, n - 44);
        put32(put32(to + 44, 1), 0);
        return n + 8;
    case 12: /* longer than the room */
        memset(to + n, 0, 64);
        return n + 64;
    case 13:
        put32(put32(to + 12, RDMA_ERROR), ERR_CHUNK);
        return 20;
    case 14:
        put32(put32(to + 12, RDMA_ERROR), ERR_VERS);
        put32(put32(to + 20, 2), 2);
        put32(to + 4, 1);
        return 28;
    }
    return n;
}

/* RPCR-3.4.3-01, RPCR-4.2.1-02: header errors are dropped in silence, and the true reply counts (RPCR-4.5-04); chunks
 * that were not offered and the two errors end the call for good (RPCR-4.5-06, RPCR-6.1-06). The connection stays. */
static void lying_replies(void **state)
{
    struct liar liar;

    (void)state;
    liar_open(&liar);
    for (unsigned which = 0; which < 15; which++) {
        enum request_status want = which < 9 ? REQUEST_OK : which < 13 ? REQUEST_BAD_REPLY : REQUEST_REFUSED;
        struct requester_stats stats;
        struct rpcrdma asked;
        uint8_t bytes[BUFFER];

        if (which == 14)
            want = REQUEST_BAD_VERSION;
        liar_ask(&liar, &asked);
        liar_send(bytes, lie(which, bytes, &asked));
        if (want == REQUEST_OK) {
            requester_wait(liar.requester, 20);
            assert_int_equal(liar.e->request.state, REQUEST_SENT);
            liar_send(bytes, good_reply(bytes, &asked));
        }
        while (liar.e->request.state != REQUEST_DONE)
            requester_wait(liar.requester, 100);
        if (liar.e->request.status != want)
            fail_msg("lie %u: %s", which, request_status_str(liar.e->request.status));
        requester_stats(liar.requester, &stats);
        assert_int_equal(stats.connects, 1);
        assert_int_equal(stats.in_flight, 0);
    }
    liar_close(&liar);
}

/* A reply says how much was written, and the caller believes it only where something was. */
static void never_written(void **state)
{
    static const struct {
        uint32_t says, at, length;
        enum request_status status;
    } claim[] = {
        {100, 0, 100, REQUEST_OK}, {100, 0, 0, REQUEST_BAD_REPLY}, {100, 8, 92, REQUEST_BAD_REPLY},
        {0, 0, 0, REQUEST_OK},     {8, 0, 0, REQUEST_BAD_REPLY},   {8, 0, 8, REQUEST_OK},
        {100, 7, 93, REQUEST_OK},
    };
    struct liar liar;

    (void)state;
    liar_open(&liar);
    for (size_t i = 0; i < sizeof(claim) / sizeof(*claim); i++) {
        struct rpcrdma asked;
        uint8_t bytes[BUFFER];
        size_t n;

        liar_ask(&liar, &asked);
        if (claim[i].length)
            liar_write(&asked, claim[i].at, claim[i].length);
        n = good_reply(bytes, &asked);
        put32(bytes + 32, claim[i].says);
        liar_send(bytes, n);
        while (liar.e->request.state != REQUEST_DONE)
            requester_wait(liar.requester, 100);
        if (liar.e->request.status != claim[i].status)
            fail_msg("claim %zu: %s", i, request_status_str(liar.e->request.status));
    }
    liar_close(&liar);
}

/* RPCR-3.4.5.1-03, RPCR-8.1.3-02, RPCR-4.4.1-02: when the caller sees the reply the chunk is out of reach; a late Write
 * is refused and changes nothing.
 */
static void late_write(void **state)
{
    struct liar liar;
    struct rpcrdma asked;
    uint8_t bytes[BUFFER], before[sizeof(uint64_t)];
    struct rddp_sge sge;
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE};
    struct pollfd fd = {.events = POLLIN};

    (void)state;
    liar_open(&liar);
    fd.fd = rddp_event_channel_fd(pair.server.events);
    liar_ask(&liar, &asked);
    liar_send(bytes, good_reply(bytes, &asked));
    while (liar.e->request.state != REQUEST_DONE)
        requester_wait(liar.requester, 100);
    assert_int_equal(liar.e->request.status, REQUEST_OK);
    memcpy(before, liar.target, sizeof(before)); /* the requester's mark */
    memset(pair.server.buffer + SENT_AT, 0x11, 100);
    sge = pair_sge(&pair.server, SENT_AT, 100);
    wr.rkey = asked.segment[0].handle;
    wr.remote_addr = asked.segment[0].offset;
    assert_int_equal(rddp_post_send(pair.server.qp, &wr, NULL), 0);
    for (int i = 0; i < SERVICE_WAIT_MS && poll(&fd, 1, 0) == 0; i++)
        requester_wait(liar.requester, 1);
    pair_event(&pair.server, RDDP_EVENT_DISCONNECTED);
    for (size_t i = 0; i < sizeof(liar.target); i++)
        assert_int_equal(liar.target[i], i < sizeof(uint64_t) ? before[i] : 0xa5);
    liar_close(&liar);
}

/* RPCR-4.4.1-01, RPCR-8.1.3-01, RPCR-8.1.2-01, RPCR-8.1.2-02: each call has its own handles, and none predicts the
 * next. */
static void handles_are_new(void **state)
{
    uint32_t before = 0, step = 0;
    struct liar liar;

    (void)state;
    liar_open(&liar);
    for (int i = 0; i < 20; i++) {
        struct rpcrdma asked;
        uint8_t bytes[BUFFER];

        liar_ask(&liar, &asked);
        assert_int_not_equal(asked.segment[0].handle, before);
        assert_int_not_equal(asked.segment[0].handle - before, step);
        step = asked.segment[0].handle - before;
        before = asked.segment[0].handle;
        liar_send(bytes, good_reply(bytes, &asked));
        while (liar.e->request.state != REQUEST_DONE)
            requester_wait(liar.requester, 100);
    }
    liar_close(&liar);
}

/* Returns the next call that the requester sent, or 0 if it sends none for a while. */
static uint32_t next_call(struct liar *liar)
{
    struct rpcrdma h;
    struct rddp_wc wc;

    for (int i = 0; i < 40; i++) {
        requester_wait(liar->requester, 1);
        while (rddp_poll_cq(pair.server.cq, 1, &wc) == 1) {
            assert_int_equal(wc.status, RDDP_WC_SUCCESS);
            if (wc.opcode != RDDP_WC_RECV)
                continue;
            assert_int_equal(rpcrdma_decode_call(&h, pair.server.buffer + wc.wr_id * BUFFER, wc.byte_len),
                             RPCRDMA_ACCEPT);
            pair_receive(&pair.server, wc.wr_id, (size_t)wc.wr_id * BUFFER, BUFFER);
            return h.xid;
        }
    }
    return 0;
}

static void grant(uint32_t xid, uint32_t credit)
{
    struct rpcrdma h;
    uint8_t bytes[256];
    size_t n;

    rpcrdma_init(&h, xid, RDMA_MSG);
    h.credit = credit;
    n = rpcrdma_encode(&h, bytes, sizeof(bytes));
    memset(bytes + n, 0, SERVICE_REPLY_HEAD);
    put32(put32(bytes + n, xid), 1);
    liar_send(bytes, n + SERVICE_REPLY_HEAD);
}

/* RPCR-3.3.1-08: the grant of a connection rises and falls while calls are pending: nothing is sent until fewer are
 * pending than it says. */
static void grants_that_change(void **state)
{
    /* The grant of each reply, and how many new calls follow it. */
    static const struct {
        uint32_t credit, calls;
    } reply[] = {{5, 5}, {2, 0}, {2, 0}, {2, 0}, {2, 1}, {3, 2}, {1, 0}, {0, 0}, {0, 1}, {6, 6}};
    static struct exchange many[24];
    uint32_t xid[24], asked = 0, answered = 0;
    struct liar liar;

    (void)state;
    liar_open(&liar);
    for (int i = 0; i < 24; i++) {
        exchange_init(&many[i], liar.requester, PROC_NULL, NULL, 0, 0);
        requester_start(liar.requester, &many[i].request);
    }
    xid[asked++] = next_call(&liar);
    for (size_t i = 0; i < sizeof(reply) / sizeof(*reply); i++) {
        grant(xid[answered++], reply[i].credit);
        for (uint32_t k = 0; k < reply[i].calls; k++)
            assert_int_not_equal(xid[asked++] = next_call(&liar), 0);
        assert_int_equal(next_call(&liar), 0);
    }
    liar_close(&liar);
}

/* A first call that is not answered is followed by empty RDMA Writes, which the peer does not notice; after the first
 * reply there are none, but over RoCE, where they show whether the peer is still there. */
static void silence_over(const struct row *over)
{
    struct requester_stats stats;
    struct liar liar;
    struct rpcrdma asked;
    uint8_t bytes[BUFFER];

    liar_open_over(&liar, over);
    for (uint64_t i = 0, before = 0; i < 2; i++, before = stats.nudges) {
        liar_ask(&liar, &asked);
        assert_int_equal(next_call(&liar), 0);
        requester_wait(liar.requester, 200);
        requester_wait(liar.requester, 200);
        requester_stats(liar.requester, &stats);
        if (i && over->wire != RDDP_WIRE_ROCE)
            assert_int_equal(stats.nudges, before);
        else
            assert_in_range(stats.nudges, before + 1, before + 2);
        assert_int_equal(liar.e->request.state, REQUEST_SENT);
        liar_send(bytes, good_reply(bytes, &asked));
        while (liar.e->request.state != REQUEST_DONE)
            requester_wait(liar.requester, 100);
        assert_int_equal(liar.e->request.status, REQUEST_OK);
    }
    assert_int_equal(stats.connects, 1);
    liar_close(&liar);
}

static void silence_is_nudged(void **state)
{
    (void)state;
    silence_over(&row);
    silence_over(&roce);
}

/* Waits for `ms`, and returns how many nudges were sent until then. */
static uint64_t nudges_after(const struct liar *liar, int ms)
{
    struct requester_stats stats;

    for (; ms > 0; ms -= 50)
        requester_wait(liar->requester, 50);
    requester_stats(liar->requester, &stats);
    return stats.nudges;
}

/* Starts a call that has no results, and returns its XID when it has arrived. */
static uint32_t ask_nothing(struct liar *liar)
{
    exchange_init(liar->e, liar->requester, PROC_NULL, NULL, 0, 0);
    requester_start(liar->requester, &liar->e->request);
    return next_call(liar);
}

/* A connection that the server ends in order does not say that it is busy: on the next one it is nudged as before. */
static void end_is_no_sign(void **state)
{
    struct requester_stats stats = {0};
    struct liar liar;
    uint32_t xid;

    (void)state;
    liar_open_over(&liar, &roce);
    xid = ask_nothing(&liar);
    assert_true(nudges_after(&liar, 200) > 0);
    rddp_destroy_qp(pair.server.qp);
    assert_int_equal(pthread_create(&liar.thread, NULL, accept_one, NULL), 0);
    for (; stats.connects < 2; requester_stats(liar.requester, &stats))
        requester_wait(liar.requester, 10);
    pthread_join(liar.thread, NULL);
    assert_int_equal(next_call(&liar), xid);
    assert_true(nudges_after(&liar, 400) > stats.nudges);
    grant(xid, 4);
    while (liar.e->request.state != REQUEST_DONE)
        requester_wait(liar.requester, 100);
    assert_int_equal(liar.e->request.status, REQUEST_OK);
    liar_close(&liar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lying_replies),   cmocka_unit_test(never_written),      cmocka_unit_test(late_write),
        cmocka_unit_test(handles_are_new), cmocka_unit_test(grants_that_change), cmocka_unit_test(silence_is_nudged),
        cmocka_unit_test(end_is_no_sign),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
