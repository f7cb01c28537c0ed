/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_host.h - the host that each test of a connection has for itself. */
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

/* For tests that go through many connections. */
static inline void next_connection(void)
{
    host_fini(&h);
    host_init(&h, NULL);
}

#endif
