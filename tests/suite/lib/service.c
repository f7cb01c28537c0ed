/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service.c - an RPC program over RDMA for tests. */
#include "tests/suite/lib/service.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "rpc/responder_inner.h"

enum { PROGRAM = 0x20000001 };

enum rddp_wire service_wire = RDDP_WIRE_IWARP;

uint8_t service_octet(size_t i)
{
    return (uint8_t)((i * 2654435761u) >> 13);
}

uint32_t service_sum(const uint8_t *p, size_t n)
{
    uint32_t sum = 1;

    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + p[i];
    return sum;
}

size_t service_call(uint8_t *to, uint32_t xid, uint32_t proc, const uint32_t *word, unsigned n)
{
    uint8_t *p = to;

    p = put32(put32(put32(p, xid), 0), 2);
    p = put32(put32(put32(p, PROGRAM), 1), proc);
    p = put32(put32(put32(put32(p, 0), 0), 0), 0);
    for (unsigned i = 0; i < n; i++)
        p = put32(p, word[i]);
    return (size_t)(p - to);
}

/* --- procedures ------------------------------------------------------------------------------------------------ */

static uint8_t *reply_head(uint8_t *to, const struct responder_call *call)
{
    memcpy(to, call->payload, 4);
    memset(to + 4, 0, SERVICE_REPLY_HEAD - 4);
    put32(to + 4, 1);
    return to + SERVICE_REPLY_HEAD;
}

static void reply_words(struct responder_call *call, const uint32_t *word, unsigned n)
{
    uint8_t message[128], *p = reply_head(message, call);

    for (unsigned i = 0; i < n; i++)
        p = put32(p, word[i]);
    call_reply(call, &(struct reply){.payload = message, .length = (size_t)(p - message)});
}

static uint32_t argument(const struct responder_call *call, unsigned word)
{
    return get32(call->payload + SERVICE_CALL_HEAD + 4 * word);
}

static void echo(struct responder_call *call)
{
    size_t n = stream_length(call->length, call->item, call->items);
    uint8_t *whole = malloc(2 * n), *message = whole + n;

    stream_join(whole, call->payload, call->length, call->item, call->items);
    memcpy(reply_head(message, call), whole + SERVICE_CALL_HEAD, n - SERVICE_CALL_HEAD);
    call_reply(call, &(struct reply){.payload = message, .length = n - SERVICE_CALL_HEAD + SERVICE_REPLY_HEAD});
    free(whole);
}

/* The data of this procedure are eligible, and no others. */
static void store(struct responder_call *call)
{
    uint32_t n = argument(call, 0), sum;

    if (call->items)
        sum = service_sum(call->item[0].data, n);
    else
        sum = service_sum(call->payload + SERVICE_CALL_HEAD + 4, n);
    if (call->items && call->item[0].length != n && call->item[0].length != n + (-n & 3))
        call_refuse(call);
    else
        reply_words(call, &sum, 1);
}

static struct stream_item data_at(const struct service *s, uint32_t position, uint32_t n)
{
    return (struct stream_item){.position = position, .length = n, .data = s->data};
}

static void fetch(struct service *s, struct responder_call *call)
{
    uint8_t message[64];
    uint32_t n = argument(call, 0);

    put32(reply_head(message, call), n);
    call_reply(call, &(struct reply){.payload = message,
                                     .length = SERVICE_REPLY_HEAD + 4,
                                     .items = 1,
                                     .item = {data_at(s, SERVICE_REPLY_HEAD + 4, n)}});
}

static void two(struct service *s, struct responder_call *call, bool first)
{
    uint8_t message[64], *p = reply_head(message, call);
    uint32_t n = argument(call, 0), whole = n + (-n & 3);
    struct reply reply = {.payload = message};

    p = put32(put32(put32(p, first ? n : 0), 7), n);
    reply.length = (size_t)(p - message);
    if (first)
        reply.item[reply.items++] = data_at(s, SERVICE_REPLY_HEAD + 4, n);
    reply.item[reply.items++] = data_at(s, SERVICE_REPLY_HEAD + 12 + (first ? whole : 0), n);
    call_reply(call, &reply);
}

static void lengthy(struct service *s, struct responder_call *call)
{
    uint32_t n = argument(call, 0);
    uint8_t *message = malloc(SERVICE_REPLY_HEAD + n);

    memcpy(reply_head(message, call), s->data, n);
    call_reply(call, &(struct reply){.payload = message, .length = SERVICE_REPLY_HEAD + n});
    free(message);
}

static void backward(struct service *s, struct responder_call *call)
{
    s->back = (struct backcall){.call = s->back_call, .reply = s->back_reply, .capacity = sizeof(s->back_reply)};
    /* The XID equals that of the forward call: the directions must not be confused (RFC 8167 2.4). */
    s->back.length = service_call(s->back_call, get32(call->payload), 99, NULL, 0);
    s->back_waiter = call;
    if (responder_call_back(call->conn, &s->back) != 0)
        call_drop(call);
}

static void hold(struct service *s, struct responder_call *call)
{
    s->holding[s->holdings++] = call;
    atomic_fetch_add(&s->held, 1);
}

static bool may_be_reduced(const struct responder_call *call, uint32_t proc)
{
    return call->items == 0 || proc == PROC_ECHO ||
           (proc == PROC_STORE && call->items == 1 && call->item[0].position == SERVICE_CALL_HEAD + 4);
}

static void handle(void *user, struct responder_call *call)
{
    struct service *s = user;
    uint32_t proc = call->length >= SERVICE_CALL_HEAD ? get32(call->payload + 20) : PROC_DROP;
    uint32_t count;

    call->user = (void *)(uintptr_t)proc;
    if (!may_be_reduced(call, proc)) {
        call_refuse(call);
        return;
    }
    switch (proc) {
    case PROC_NULL:
        reply_words(call, NULL, 0);
        break;
    case PROC_ECHO:
        echo(call);
        break;
    case PROC_STORE:
        store(call);
        break;
    case PROC_FETCH:
        fetch(s, call);
        break;
    case PROC_LONG:
        lengthy(s, call);
        break;
    case PROC_COUNT:
        count = atomic_fetch_add(&s->counted, 1) + 1;
        reply_words(call, &count, 1);
        break;
    case PROC_CUT:
    case PROC_CUT_LATE:
        atomic_fetch_add(&s->counted, 1);
        conn_end(call->conn);
        hold(s, call);
        break;
    case PROC_HOLD:
        hold(s, call);
        break;
    case PROC_TWO:
    case PROC_ONE_OF_TWO:
        two(s, call, proc == PROC_TWO);
        break;
    case PROC_BACKWARD:
        backward(s, call);
        break;
    default:
        call_drop(call);
    }
}

/* --- its thread ------------------------------------------------------------------------------------------------ */

/* Has the event come that this call waits for? */
static bool is_due(struct service *s, const struct responder_call *call)
{
    struct responder_stats stats;

    responder_stats(s->responder, &stats);
    switch ((uintptr_t)call->user) {
    case PROC_CUT:
        return !call->conn;
    case PROC_CUT_LATE:
        return stats.replayed > 0;
    default:
        return atomic_load(&s->release);
    }
}

static void answer_held(struct service *s)
{
    for (unsigned i = 0; i < s->holdings; i++) {
        struct responder_call *call = s->holding[i];
        uint32_t count = atomic_load(&s->counted);

        if (!is_due(s, call))
            continue;
        s->holding[i--] = s->holding[--s->holdings];
        if ((uintptr_t)call->user == PROC_HOLD)
            fetch(s, call);
        else
            reply_words(call, &count, 1);
    }
    if (s->back_waiter && s->back.state >= BACKCALL_ANSWERED) {
        struct responder_call *call = s->back_waiter;
        uint32_t word[2] = {s->back.state, s->back.reply_length >= 28 ? get32(s->back_reply + 24) : 0};

        s->back_waiter = NULL;
        reply_words(call, word, 2);
    }
}

static void *run(void *user)
{
    struct service *s = user;

    while (!atomic_load(&s->stop)) {
        while (atomic_load(&s->paused))
            atomic_store(&s->is_paused, true);
        atomic_store(&s->is_paused, false);
        responder_run(s->responder, 5);
        answer_held(s);
    }
    return NULL;
}

struct responder_stats service_stats(struct service *s)
{
    struct responder_stats stats;

    atomic_store(&s->paused, true);
    while (!atomic_load(&s->is_paused))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    responder_stats(s->responder, &stats);
    atomic_store(&s->paused, false);
    return stats;
}

void service_open(struct service *s, const struct responder_attr *given, bool v6)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    struct responder_attr attr;

    memset(s, 0, sizeof(*s));
    responder_attr_init(&attr);
    if (given)
        attr = *given;
    attr.wire.wire = service_wire;
    attr.handle = handle;
    attr.user = s;
    s->data = malloc(SERVICE_DATA_MAX);
    assert_non_null(s->data);
    for (size_t i = 0; i < SERVICE_DATA_MAX; i++)
        s->data[i] = service_octet(i);
    s->responder = v6 ? responder_open((struct sockaddr *)&six, sizeof(six), &attr)
                      : responder_open((struct sockaddr *)&v4, sizeof(v4), &attr);
    assert_non_null(s->responder);
    assert_int_equal(responder_addr(s->responder, &s->addr), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

void service_close(struct service *s)
{
    struct responder_stats stats;

    atomic_store(&s->stop, true);
    pthread_join(s->thread, NULL);
    while (s->holdings)
        call_drop(s->holding[--s->holdings]);
    responder_stats(s->responder, &stats);
    responder_close(s->responder);
    free(s->data);
}

struct requester *service_connect(struct service *s, const struct requester_attr *given)
{
    struct requester_attr attr;
    struct requester *r;

    requester_attr_init(&attr);
    if (given)
        attr = *given;
    attr.wire.first_delay_ms = 0;
    attr.wire.wire = service_wire;
    r = requester_open((struct sockaddr *)&s->addr, sizeof(s->addr), &attr, SERVICE_WAIT_MS);
    assert_non_null(r);
    return r;
}

void exchange_init(struct exchange *e, struct requester *r, enum service_proc proc, const uint32_t *word, unsigned n,
                   size_t reply_max)
{
    memset(&e->request, 0, sizeof(e->request));
    e->request.call = e->call;
    e->request.call_length = service_call(e->call, requester_xid(r), proc, word, n);
    e->request.reply = e->reply;
    e->request.reply_size = SERVICE_REPLY_HEAD + reply_max;
    e->request.timeout_ms = SERVICE_WAIT_MS;
}

uint32_t exchange_result(const struct exchange *e, unsigned word)
{
    assert_true(e->request.reply_length >= SERVICE_REPLY_HEAD + 4 * (word + 1));
    return get32(e->reply + SERVICE_REPLY_HEAD + 4 * word);
}
