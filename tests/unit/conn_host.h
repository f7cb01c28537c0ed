/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_host.h - the host of a connection test, included by each test program. */
#ifndef TESTS_UNIT_CONN_HOST_H
#define TESTS_UNIT_CONN_HOST_H

#include "tests/lib/host.h"

static struct host h;

static inline int set_up(void **state)
{
    (void)state;
    host_init(&h, NULL);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    host_fini(&h);
    return 0;
}

/* Starts over, for tests that use many connections. */
static inline void next_connection(void)
{
    host_fini(&h);
    host_init(&h, NULL);
}

#endif
