/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.c - a whole requester with its calls, against a responder that does what the input says: replies that lie,
 * Writes at any time, any messages, lost connections. Each call ends once, and its memory is then out of reach. */
#include "tests/sim/rpc_provider.h"

#include "fuzz/lib/input.h"
#include "rpc/requester_in.h"
#include "rpc/xdrbytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

enum { CALLS = 8, BUFFER = 5000, MESSAGE_MAX = 4200 };

static struct slot {
    struct request request;
    uint8_t call[BUFFER], argument[BUFFER], result[2][BUFFER], reply[BUFFER];
    uint8_t message[4096]; /* as sent */
    size_t length;
} slot[CALLS];

static struct input in;

/* --- the calls --------------------------------------------------------------------------------------------------- */

static bool is_under_way(const struct request *q)
{
    return q->state == REQUEST_QUEUED || q->state == REQUEST_SENT;
}

/* A call that has ended offers no memory any more. */
static void check(void)
{
    for (unsigned i = 0; i < CALLS; i++) {
        const struct request *q = &slot[i].request;

        if (is_under_way(q))
            continue;
        assert(q->mrs == 0 && q->reply_length <= q->reply_size);
        for (unsigned k = 0; k < q->results; k++)
            assert(q->result[k].used <= q->result[k].length);
    }
}

static void start(struct requester *r)
{
    static const size_t sizes[] = {0, 40, 900, 3000, 4500};
    uint8_t how = input8(&in);
    struct slot *s = &slot[how % CALLS];
    struct request *q = &s->request;
    struct xdr_out out = {.at = s->call, .left = sizeof(s->call)};

    if (is_under_way(q))
        return;
    *q = (struct request){.call = s->call, .call_length = 40, .reply = s->reply, .timeout_ms = 10000};
    xdr_put32(&out, requester_xid(r));
    xdr_put32(&out, 0);
    q->reply_size = 24 + sizes[how / 8 % 5];
    if (how & 64) {
        q->arguments = 1;
        q->argument[0] = (struct request_item){.data = s->argument, .position = 40, .length = (uint32_t)sizes[how % 5]};
    }
    q->results = how / 128 + (how & 1);
    q->result[0] = (struct request_item){.data = how & 32 ? NULL : s->result[0], .length = 1000};
    q->result[1] = (struct request_item){.data = s->result[1], .length = 1001};
    requester_start(r, q);
}

/* --- the peer ---------------------------------------------------------------------------------------------------- */

static void peer_message(struct rddp_qp *qp, const uint8_t *p, size_t n, uint32_t invalidated)
{
    struct rpcrdma h;

    (void)qp;
    assert(n <= sizeof(slot[0].message) && invalidated == 0);
    if (rpcrdma_direction(p, n) == RPCRDMA_REPLY || rpcrdma_decode_call(&h, p, n) != RPCRDMA_ACCEPT)
        return;
    for (unsigned i = 0; i < CALLS; i++)
        if (slot[i].request.xid == h.xid) {
            memcpy(slot[i].message, p, n);
            slot[i].length = n;
        }
}

/* The only Write of a requester is the empty one with which it nudges a silent peer. */
static bool peer_write(struct rddp_qp *qp, uint32_t handle, uint64_t offset, const uint8_t *p, size_t n)
{
    (void)qp, (void)handle, (void)offset, (void)p;
    assert(n == 0);
    return true;
}

static bool peer_read(struct rddp_qp *qp, uint32_t handle, uint64_t offset, uint8_t *p, size_t n)
{
    (void)qp, (void)handle, (void)offset, (void)p, (void)n;
    abort(); /* a requester posts no other RDMA requests */
}

/* Builds a correct reply to a call, with a few changes. */
static size_t reply_to(const struct slot *s, uint8_t *to, uint32_t *invalidated)
{
    uint8_t how = input8(&in), lie = input8(&in);
    struct rpcrdma asked, h;
    size_t n;

    *invalidated = 0;
    if (rpcrdma_decode_call(&asked, s->message, s->length) != RPCRDMA_ACCEPT)
        return 0;
    rpcrdma_init(&h, asked.xid, how & 1 ? RDMA_NOMSG : RDMA_MSG);
    h.credit = input8(&in);
    for (uint32_t i = 0; i < asked.writes && !(how & 2); i++)
        rpcrdma_add_write(&h, &asked.segment[asked.write[i].first], asked.write[i].count);
    if (asked.has_reply && !(how & 4))
        rpcrdma_set_reply(&h, &asked.segment[asked.reply.first], asked.reply.count);
    if (h.segments && (how & 8))
        h.segment[lie % h.segments].length = (uint32_t)input8(&in) << (lie >> 3);
    if (h.segments && (how & 16))
        *invalidated = h.segment[lie % h.segments].handle + (lie >> 7);
    if ((how & 96) == 96) {
        h.proc = RDMA_ERROR;
        h.error = lie & 1 ? ERR_VERS : ERR_CHUNK;
    }
    n = rpcrdma_encode(&h, to, MESSAGE_MAX);
    if (h.proc == RDMA_MSG && n + 24 + lie <= MESSAGE_MAX) {
        memset(to + n, 0, 24U + lie);
        memcpy(to + n, to, 4);
        to[n + 7] = 1;
        n += 24U + lie;
    }
    if (how & 128)
        to[input8(&in) % n] ^= lie;
    return n;
}

static struct rddp_qp *the_qp(void)
{
    for (unsigned i = 0; i < PROVIDER_QPS; i++)
        if (provider.qp[i] && provider.qp[i]->connected)
            return provider.qp[i];
    return NULL;
}

static void deliver(struct rddp_qp *qp, bool raw)
{
    static uint8_t message[MESSAGE_MAX];
    uint32_t invalidated = 0;
    size_t n;

    if (raw) {
        n = (size_t)input8(&in) << 2;
        n += input8(&in) & 3;
        n = input_octets(&in, message, n);
    } else {
        n = reply_to(&slot[input8(&in) % CALLS], message, &invalidated);
    }
    if (qp && (raw || n))
        provider_deliver(qp, message, n, invalidated);
}

static size_t backward(void *user, const uint8_t *call, size_t length, uint8_t *reply, size_t space)
{
    (void)user;
    length = length < space ? length : space;
    memcpy(reply, call, length);
    return length;
}

static void act(struct requester *r)
{
    uint8_t what = input8(&in);
    struct rddp_qp *qp = the_qp();

    switch (what % 8) {
    case 1:
        start(r);
        break;
    case 2:
    case 6:
        deliver(qp, what % 8 == 6);
        break;
    case 3:
        if (qp)
            provider_run(qp, input8(&in));
        else
            input8(&in);
        break;
    case 4:
        requester_cancel(r, &slot[input8(&in) % CALLS].request);
        break;
    case 5:
        if (qp && input8(&in) == 1) {
            provider_cut(qp);
            r->backoff_ms = 0; /* it may reconnect in the next round */
        }
        break;
    default:
        requester_wait(r, 0);
    }
    check();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct sockaddr_storage addr = {.ss_family = AF_INET};
    struct requester_stats stats;
    struct requester_attr attr;
    struct requester *r;

    memset(&provider, 0, sizeof(provider));
    provider.message = peer_message;
    provider.write = peer_write;
    provider.read = peer_read;
    for (unsigned i = 0; i < CALLS; i++) {
        memset(&slot[i].request, 0, sizeof(slot[i].request));
        slot[i].length = 0;
    }
    in = (struct input){input, input + length};
    requester_attr_init(&attr);
    attr.credits = 4;
    attr.backward = backward;
    r = requester_open((struct sockaddr *)&addr, sizeof(addr), &attr, 0);
    assert(r);
    while (input_left(&in))
        act(r);
    requester_stats(r, &stats);
    assert(stats.in_flight <= attr.credits);
    requester_close(r);
    for (unsigned i = 0; i < CALLS; i++)
        assert(!is_under_way(&slot[i].request));
    check();
    assert(provider.objects == 0);
    return 0;
}
