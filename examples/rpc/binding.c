/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* binding.c - what store.x may transfer by RDMA: the data of STORE_PUT and of STORE_GET. */
#include <store.h>

#include "examples/rpc/binding.h"

static const void *put_data(const void *arguments, uint32_t *length)
{
    const put_args *put = arguments;

    *length = put->data.data_len;
    return put->data.data_val;
}

static const void *got_data(const void *results, uint32_t *length)
{
    const get_result *got = results;

    if (got->status != STORE_OK)
        return NULL;
    *length = got->get_result_u.data.data_len;
    return got->get_result_u.data.data_val;
}

static uint32_t get_max(const void *arguments)
{
    const get_args *get = arguments;

    return get->count;
}

static void *get_place(const void *results)
{
    const get_result *got = results;

    return got->get_result_u.data.data_val;
}

static uint32_t get_rest(const void *arguments)
{
    (void)arguments;
    return 8; /* the status and the length of the data */
}

static uint32_t put_rest(const void *arguments)
{
    (void)arguments;
    return 4;
}

static const struct rddp_rpc_proc procs[] = {
    {.number = STORE_PUT, .argument = put_data, .reply_max = put_rest},
    {.number = STORE_GET,
     .result = got_data,
     .result_max = get_max,
     .place = get_place,
     .reply_max = get_rest,
     .repeatable = true},
};

const struct rddp_rpc_binding store_binding = {
    .program = STORE_PROGRAM, .version = STORE_VERSION, .proc = procs, .procs = sizeof(procs) / sizeof(*procs)};
