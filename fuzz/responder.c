/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.c - a whole responder with its connections, calls, transfers and answers, against peers that do what the
 * input says: messages of any content, lost connections, failed transfers. It never accesses memory that was not
 * offered. */
#include "tests/sim/rpc_provider.h"

#include "fuzz/lib/input.h"
#include "rpc/responder_inner.h"
#include "rpc/xdrbytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

enum { OFFERS = 1024, HELD = 64, MESSAGE_MAX = 1100, DATA = 3000, BUDGET = 1 << 18 };

/* The memory that peers have offered in their messages so far. */
static struct offer {
    uint32_t number; /* number of the queue pair */
    bool to_read;
    struct rpcrdma_segment segment;
} offer[OFFERS];
static unsigned offers, helds, releases;
static struct responder_call *held[HELD];
static uint8_t data[DATA];
volatile uint32_t last_sum; /* makes sure that all written octets are read */

static struct input in;

/* --- the peer ---------------------------------------------------------------------------------------------------- */

static void note_offers(const struct rddp_qp *qp, const uint8_t *p, size_t n)
{
    struct rpcrdma h;

    if (rpcrdma_decode_call(&h, p, n) != RPCRDMA_ACCEPT)
        return;
    for (uint32_t i = 0; i < h.segments; i++)
        offer[offers++ % OFFERS] = (struct offer){qp->number, i < h.reads, h.segment[i]};
}

static void check_offered(const struct rddp_qp *qp, bool to_read, uint32_t handle, uint64_t offset, size_t n)
{
    for (unsigned i = 0; i < (offers < OFFERS ? offers : OFFERS); i++) {
        const struct rpcrdma_segment *s = &offer[i].segment;

        if (offer[i].number == qp->number && offer[i].to_read == to_read && s->handle == handle &&
            offset >= s->offset && offset - s->offset <= s->length && n <= s->length - (offset - s->offset))
            return;
    }
    assert(offers > OFFERS);
}

static bool peer_write(struct rddp_qp *qp, uint32_t handle, uint64_t offset, const uint8_t *p, size_t n)
{
    uint32_t sum = 0;

    check_offered(qp, false, handle, offset, n);
    for (size_t i = 0; i < n; i++)
        sum += p[i];
    last_sum = sum;
    return handle != 0xdead;
}

static bool peer_read(struct rddp_qp *qp, uint32_t handle, uint64_t offset, uint8_t *p, size_t n)
{
    check_offered(qp, true, handle, offset, n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i < 4 ? offset >> (24 - 8 * i) : input8(&in));
    return handle != 0xdead;
}

/* Checks that the responder's messages are valid, whatever it received. */
static void peer_message(struct rddp_qp *qp, const uint8_t *p, size_t n, uint32_t invalidated)
{
    struct rpcrdma h;

    (void)qp;
    (void)invalidated;
    if (rpcrdma_direction(p, n) == RPCRDMA_CALL)
        return;
    assert(n <= 4096 && rpcrdma_decode_reply(&h, p, n) == RPCRDMA_ACCEPT && h.credit > 0);
}

/* --- the program ------------------------------------------------------------------------------------------------- */

static void released(void *user)
{
    (void)user;
    releases--;
}

static void answer(struct responder_call *call, uint8_t how)
{
    uint8_t message[DATA];
    struct reply reply = {.payload = message, .length = 28};
    struct xdr_out out = {.at = message, .left = sizeof(message)};
    struct xdr_in xid = {.at = call->payload, .left = call->length};

    memset(message, 0, sizeof(message));
    xdr_put32(&out, xdr_get32(&xid));
    xdr_put32(&out, 1);
    if (how % 8 == 0) {
        call_drop(call);
        return;
    }
    if (how % 8 == 1) {
        call_refuse(call);
        return;
    }
    if (how % 8 == 2)
        reply.length = 28 + 4U * how;
    for (unsigned i = 0; how % 8 > 2 && i < (how & 1U) + 1; i++)
        reply.item[reply.items++] =
            (struct stream_item){.position = 28 + i * (DATA + 4), .length = i ? how : DATA - how % 4, .data = data};
    if (reply.items == 2)
        reply.length += 4, reply.item[1].position = 32 + reply.item[0].length + xdr_roundup(reply.item[0].length);
    if (how & 16) {
        reply.release = released;
        releases++;
    }
    call_reply(call, &reply);
}

/* Reads all octets of the call. */
static void handle(void *user, struct responder_call *call)
{
    uint32_t sum = 0;

    (void)user;
    for (size_t i = 0; i < call->length; i++)
        sum += call->payload[i];
    for (unsigned i = 0; i < call->items; i++)
        for (uint32_t k = 0; k < call->item[i].length; k++)
            sum += ((const uint8_t *)call->item[i].data)[k];
    if (helds == HELD || sum % 3)
        answer(call, (uint8_t)sum);
    else
        held[helds++] = call;
}

/* --- the input --------------------------------------------------------------------------------------------------- */

static struct rddp_qp *any_qp(void)
{
    struct rddp_qp *qp = provider.qp[input8(&in) % 4];

    return qp && qp->connected ? qp : NULL;
}

static void deliver(struct rddp_qp *qp)
{
    static uint8_t message[MESSAGE_MAX];
    static size_t n;
    uint8_t how = input8(&in);
    struct rpcrdma h;

    /* Otherwise the last message is sent again. */
    if (how & 1) {
        n = (size_t)input8(&in) << 2 | (how >> 6);
        n = input_octets(&in, message, n);
    }
    /* Copy the header's XID into the message: few inputs would pass that check by chance. */
    if ((how & 2) && rpcrdma_decode_call(&h, message, n) == RPCRDMA_SAY_CHUNK && h.length + 8 <= n)
        memcpy(message + h.length, message, 4);
    if (!qp)
        return;
    note_offers(qp, message, n);
    provider_deliver(qp, message, n, how & 4 ? input8(&in) : 0);
}

static void act(struct responder *r)
{
    static const uint8_t private_data[] = {0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3};
    uint8_t what = input8(&in);
    struct rddp_qp *qp = any_qp();

    switch (what % 8) {
    case 0:
        if (provider.events < 8)
            provider_tell(RDDP_EVENT_CONNECT_REQUEST, NULL, private_data, what & 8 ? sizeof(private_data) : 0);
        break;
    case 1:
    case 2:
        deliver(qp);
        break;
    case 3:
        if (qp)
            provider_run(qp, input8(&in));
        break;
    case 4:
        if (helds)
            answer(held[--helds], input8(&in));
        break;
    case 5:
        if (qp && what & 16)
            provider_cut(qp);
        break;
    default:
        assert(responder_run(r, 0) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct sockaddr_storage addr = {.ss_family = AF_INET};
    struct responder_attr attr;
    struct responder_stats stats;
    struct responder *r;

    memset(&provider, 0, sizeof(provider));
    provider.message = peer_message;
    provider.write = peer_write;
    provider.read = peer_read;
    offers = helds = releases = 0;
    in = (struct input){input, input + length};
    responder_attr_init(&attr);
    attr.credits = 4;
    attr.connections_max = 3;
    attr.replay_entries = 8;
    attr.read_max = 65536;
    attr.memory_max = BUDGET;
    attr.handle = handle;
    r = responder_open((struct sockaddr *)&addr, sizeof(addr), &attr);
    assert(r);
    while (input_left(&in))
        act(r);
    while (helds)
        answer(held[--helds], 2);
    assert(responder_run(r, 0) == 0);
    for (unsigned i = 0; i < PROVIDER_QPS; i++)
        if (provider.qp[i])
            provider_cut(provider.qp[i]);
    for (int i = 0; i < 4; i++)
        assert(responder_run(r, 0) == 0);
    while (helds)
        answer(held[--helds], 2);
    assert(responder_run(r, 0) == 0);
    responder_stats(r, &stats);
    assert(stats.connections == 0 && stats.calls_held == 0 && stats.memory == 0 && releases == 0);
    responder_close(r);
    assert(provider.objects == 0);
    return 0;
}
