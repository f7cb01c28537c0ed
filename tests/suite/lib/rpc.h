/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc.h - for the tests of RPC over RDMA: a service, an exchange with it, and memory for what is moved by RDMA. */
#ifndef RDDP_TESTS_SUITE_RPC_H
#define RDDP_TESTS_SUITE_RPC_H

#include <stdlib.h>
#include <string.h>

#include "tests/suite/lib/service.h"

enum { TARGET = SERVICE_DATA_MAX };

static struct service service;
static struct exchange *e;
static uint8_t *target;

static inline int set_up(void **state)
{
    (void)state;
    e = calloc(1, sizeof(*e));
    target = malloc(TARGET);
    memset(target, 0xa5, TARGET);
    return e && target ? 0 : -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    free(e);
    free(target);
    return 0;
}

/* Starts the usual service and connects a requester to it. */
static inline struct requester *open_both(void)
{
    service_open(&service, NULL, false);
    return service_connect(&service, NULL);
}

static inline void close_both(struct requester *r)
{
    requester_close(r);
    service_close(&service);
}

static inline enum request_status run(struct requester *r)
{
    enum request_status status = requester_run(r, &e->request);
    struct requester_stats stats;

    requester_stats(r, &stats);
    assert_int_equal(stats.in_flight, 0);
    assert_int_equal(e->request.mrs, 0);
    return status;
}

#endif
