/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* defaults.c - the sizes of rsockets whose program asks for none: the administrator's, from /etc/rdma/rsocket. */
#include <stdio.h>

#include "verbs/rsock/rsocket.h"

static pthread_once_t defaults_once = PTHREAD_ONCE_INIT;
static struct rs_sizes defaults;

uint32_t rs_bounded(int64_t n, uint32_t least, uint32_t most)
{
    if (n < (int64_t)least)
        return least;
    return n > (int64_t)most ? most : (uint32_t)n;
}

/* The integer in a file, within bounds; `otherwise` without one. */
static uint32_t configured(const char *name, uint32_t otherwise, uint32_t least, uint32_t most)
{
    char path[64];
    FILE *file;
    int n;

    snprintf(path, sizeof(path), "/etc/rdma/rsocket/%s", name);
    file = fopen(path, "re");
    if (!file)
        return otherwise;
    if (fscanf(file, "%d", &n) == 1)
        otherwise = rs_bounded(n, least, most);
    fclose(file);
    return otherwise;
}

static void defaults_read(void)
{
    enum { BUFFER = 128 << 10, QUEUE = 384, POLLING_US = 10, POLLING_US_MAX = 1000000 };

    defaults = (struct rs_sizes){
        .send_queue = configured("sqsize_default", QUEUE, RS_QUEUE_MIN, RS_QUEUE_MAX),
        .recv_queue = configured("rqsize_default", QUEUE, RS_QUEUE_MIN, RS_QUEUE_MAX),
        .inline_data = configured("inline_default", RS_INLINE_MIN, RS_INLINE_MIN, RS_INLINE_MAX),
        .iomaps = configured("iomap_size", 0, 0, RS_IOMAPS_MAX),
        .send_buffer = configured("wmem_default", BUFFER, RS_BUFFER_MIN, RS_BUFFER_MAX),
        .recv_buffer = configured("mem_default", BUFFER, RS_BUFFER_MIN, RS_BUFFER_MAX),
        .polling_us = configured("polling_time", POLLING_US, 0, POLLING_US_MAX),
    };
}

void rs_defaults(struct rs_sizes *sizes)
{
    pthread_once(&defaults_once, defaults_read);
    *sizes = defaults;
}
