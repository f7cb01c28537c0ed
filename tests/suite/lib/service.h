/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service.h - an RPC program over RDMA for tests: a responder in its own thread, and the messages of its procedures,
 * encoded by hand so that our XDR code does not check itself. */
#ifndef RDDP_TESTS_SUITE_SERVICE_H
#define RDDP_TESTS_SUITE_SERVICE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rpc/requester.h"
#include "rpc/responder.h"

enum {
    SERVICE_CALL_HEAD = 40, /* octets of a call with AUTH_NONE */
    SERVICE_REPLY_HEAD = 24,
    SERVICE_DATA_MAX = 2 << 20,
    SERVICE_WAIT_MS = 10000,
};

enum service_proc {
    PROC_NULL,
    PROC_ECHO,       /* result: the arguments, inline */
    PROC_STORE,      /* count, eligible data -> its sum */
    PROC_FETCH,      /* count -> count, eligible data */
    PROC_LONG,       /* count -> that many octets, not eligible */
    PROC_COUNT,      /* -> how often it was called: must not be executed twice */
    PROC_CUT,        /* like COUNT, but the connection is cut before the reply */
    PROC_CUT_LATE,   /* like CUT, and the reply waits until the call was repeated */
    PROC_HOLD,       /* like FETCH, after `release` */
    PROC_TWO,        /* count -> count, eligible data, 7, count, eligible data */
    PROC_BACKWARD,   /* calls the caller back, then -> what that returned */
    PROC_DROP,       /* no reply */
    PROC_ONE_OF_TWO, /* like TWO, but its first arm has no data: 0, 7, count, eligible data */
};

struct service {
    struct responder *responder;
    struct sockaddr_storage addr;
    pthread_t thread;
    atomic_bool stop, release;
    atomic_uint counted, held;
    struct responder_call *holding[128];
    unsigned holdings;
    uint8_t *data;
    struct backcall back;
    uint8_t back_call[64], back_reply[64];
    struct responder_call *back_waiter;
    atomic_bool paused, is_paused;
};

/* The wire of both ends. RDDP_WIRE_RDMATCP carries neither private data nor invalidations. */
extern enum rddp_wire service_wire;

/* `attr` may be NULL. */
void service_open(struct service *s, const struct responder_attr *attr, bool v6);
void service_close(struct service *s);
/* Returns its counters, read in its own thread. */
struct responder_stats service_stats(struct service *s);

/* Connects a requester to it. */
struct requester *service_connect(struct service *s, const struct requester_attr *attr);

/* Memory for one request and its messages. */
struct exchange {
    struct request request;
    uint8_t call[SERVICE_DATA_MAX], reply[SERVICE_DATA_MAX];
};

/* Initialises a call of `proc` with `n` words of arguments; the longest reply has `reply_max` octets. */
void exchange_init(struct exchange *e, struct requester *r, enum service_proc proc, const uint32_t *word, unsigned n,
                   size_t reply_max);
uint32_t exchange_result(const struct exchange *e, unsigned word); /* a word of the reply's results */
size_t service_call(uint8_t *to, uint32_t xid, uint32_t proc, const uint32_t *word, unsigned n);

/* Whether a requester marks this octet of a result's place, to see later whether it was written. */
static inline bool service_is_marked(size_t i)
{
    return i % 4096 < sizeof(uint64_t);
}

/* The octets of PROC_FETCH and PROC_LONG, and the sum of PROC_STORE. */
uint8_t service_octet(size_t i);
uint32_t service_sum(const uint8_t *p, size_t n);

#endif
