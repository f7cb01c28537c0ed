/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock.c - the clock of the devices, which is CLOCK_MONOTONIC in nanoseconds, as rddp stamps completions. */
#include <errno.h>
#include <time.h>

#include "verbs/verbs_object.h"

static uint64_t clock_read(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t clock_device_ns(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

/* The ticks are all in tv_nsec, where the drivers of adapters have theirs. */
int clock_query(struct ibv_context *context, struct ibv_values_ex *values)
{
    (void)context;
    if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return verbs_refuse(EINVAL, "ibv_query_rt_values_ex: comp_mask %#x has unknown bits", values->comp_mask);
    if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
        values->raw_clock = (struct timespec){.tv_nsec = (long)clock_device_ns()};
    return 0;
}

/* As the wall clock goes now: a program that reads after a step of it gets the new time. */
uint64_t clock_to_wall(uint64_t device_ns)
{
    return clock_read(CLOCK_REALTIME) - (clock_device_ns() - device_ns);
}
