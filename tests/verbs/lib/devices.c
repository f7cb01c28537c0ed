/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* devices.c - see devices.h. */
#include "tests/verbs/lib/devices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct ibv_context *devices_open(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *found = NULL;

    for (int i = 0; list[i] && !found; i++)
        if (!strcmp(ibv_get_device_name(list[i]), name))
            found = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    assert_non_null(found);
    return found;
}

uint8_t devices_loopback(struct ibv_context *context, union ibv_gid *gid)
{
    static const uint8_t here[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};

    for (uint8_t i = 0;; i++) {
        assert_int_equal(ibv_query_gid(context, 1, i, gid), 0);
        if (!memcmp(gid, here, sizeof(here)))
            return i;
    }
}
